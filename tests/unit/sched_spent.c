/* SPDX-License-Identifier: MIT
 *
 * The ring of blocks that wait before they are freed, in debug builds. What it is for is in
 * tests/feature/misuse.c.
 */
#include "sched/spent.h"

#include "death.h"
#include "task/state.h"
#include "test.h"

#include <string.h>

#ifdef WEFT_DEBUG

static struct weft_task tasks[3 * WEFT__SPENT_MAX];

/* First in, first out, and no more than there is room for. */
TEST(spent_gives_back_the_oldest)
{
    static struct weft__spent spent;
    for (unsigned i = 0; i < 3 * WEFT__SPENT_MAX; i++) {
        struct weft_task *oldest = weft__spent_put(&spent, &tasks[i]);
        if (i < WEFT__SPENT_MAX) {
            ASSERT_NULL(oldest);
        } else {
            ASSERT_PTR(oldest, &tasks[i - WEFT__SPENT_MAX]);
        }
    }
}

TEST(spent_closed_gives_back_all_and_keeps_none)
{
    static struct weft__spent spent;
    unsigned count = 0;
    for (unsigned i = 0; i < 5; i++)
        ASSERT_NULL(weft__spent_put(&spent, &tasks[i]));
    while (weft__spent_close(&spent))
        count++;
    ASSERT_EQ(count, 5);
    ASSERT_PTR(weft__spent_put(&spent, &tasks[7]), &tasks[7]);
    ASSERT_NULL(weft__spent_close(&spent));
}

static void spend_twice(void *arg)
{
    weft__handle_spend(arg, "one");
    weft__handle_spend(arg, "two");
}

static void use_free_block(void *arg)
{
    weft__handle_check(arg, "user");
}

TEST(spent_second_spender_is_named)
{
    static const struct weft_site site = {.name = "name", .file = "file", .line = 7};
    struct weft_task task = {.site = &site};
    weft__state_init(&task, 2);
    weft__handle_check(&task, "user");
    struct death d = death_of(spend_twice, &task);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "weft: two: the handle of task 'name' (spawned at file:7)"));
}

/* Its own name, as long as it lives: behind that the name may be gone. */
TEST(spent_second_spender_is_told_the_name_that_was_given)
{
    static const struct weft_site site = {.name = "name", .file = "file", .line = 7};
    struct weft__ext ext = {.name = "own"};
    struct weft_task task = {.site = &site, .ext = &ext};
    weft__state_init(&task, 2);
    struct death d = death_of(spend_twice, &task);
    ASSERT(strstr(d.said, "weft: two: the handle of task 'own' (spawned at file:7)"));
    fetch_or_relaxed(&task.state, WEFT__STATE_COMPLETE); /* relaxed: there is one thread */
    d = death_of(spend_twice, &task);
    ASSERT(strstr(d.said, "weft: two: the handle of task 'name' (spawned at file:7)"));
}

TEST(spent_free_block_is_told_without_a_name)
{
    struct weft_task task = {.site = NULL};
    struct death d = death_of(use_free_block, &task);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "weft: user: the handle was spent before, and its task is gone"));
}

#else

TEST(spent_is_for_debug_builds)
{
    TEST_SKIP("not a debug build");
}

#endif
