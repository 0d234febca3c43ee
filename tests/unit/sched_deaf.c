/* SPDX-License-Identifier: MIT
 *
 * Polls that do not end, as the monitor sees them: a task that was told to stop is named if it is the same one all the time. By looks at a worker that stands
 * still, at times that the test makes up. Those that spend their budget: tests/feature/cancel_deaf.c.
 */
#include "death.h"
#include "sched/sched.h"
#include "test.h"

#include <string.h>

#define STEP INT64_C(100000000) /* between two looks; named after ten */

static const struct weft_site site = {.name = "stuck", .file = "there.c", .line = 7};
static struct weft_task tasks[2];
static struct weft__here here;
static struct weft__worker worker = {.here = &here};
static struct weft__deaf deaf;

static void begin(void)
{
    weft__deaf_init(&deaf);
    for (int i = 0; i < 2; i++) {
        tasks[i].site = &site;
        weft__state_init(&tasks[i], 1);
        (void)weft__state_cancel(&tasks[i]);
    }
}

/* At step `at` the worker, which has ended so many polls, runs that task. */
static void look(struct weft_task *task, uint64_t polls, int at)
{
    here.task = task;
    store_relaxed(&worker.counts.polls, polls);
    weft__deaf_look(&deaf, &worker, polls, (at + 1) * STEP);
}

static void same_poll_of_one(void *unused)
{
    (void)unused;
    begin();
    for (int at = 0; at < 100; at++)
        look(&tasks[0], 3, at);
    _exit((int)deaf.named_count);
}

TEST(deaf_poll_of_one_that_was_told_is_named_once)
{
    struct death d = death_of(same_poll_of_one, NULL);
    if (d.code == 0) TEST_SKIP("the process may not peek");
    ASSERT_EQ(d.code, 1);
    ASSERT_STR(
        d.said,
        "weft: task 'stuck' (spawned at there.c:7) was told to stop, and goes on: for 1000 ms it has not come back from its poll\n");
}

/* Inside of one poll of the worker's others come and go: it turns another runtime. */
TEST(deaf_poll_in_which_others_come_and_go_is_nobodys)
{
    begin();
    for (int at = 0; at < 100; at++)
        look(&tasks[at / 9 % 2], 3, at);
    ASSERT_EQ(deaf.named_count, 0);
}

/* The same block, and another task in it. */
TEST(deaf_poll_in_which_a_block_is_used_again_is_nobodys)
{
    begin();
    for (int at = 0; at < 100; at++) {
        if (at % 9 == 0) fetch_add_relaxed(&tasks[0].state, UINT64_C(1) << WEFT__STATE_GEN_SHIFT);
        look(&tasks[0], 3, at);
    }
    ASSERT_EQ(deaf.named_count, 0);
}

TEST(deaf_polls_that_end_are_nobodys)
{
    begin();
    for (int at = 0; at < 100; at++)
        look(&tasks[0], (uint64_t)at / 9, at);
    ASSERT_EQ(deaf.named_count, 0);
}
