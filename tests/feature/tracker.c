/* SPDX-License-Identifier: MIT
 *
 * Task trackers on real runtimes: counted from everywhere, waited for by all kinds, let through when closed and empty and at no
 * other time; and the memory of whoever has ended is free at once.
 */
#include "crew.h"
#include "death.h"
#include "sched/sched.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic uint32_t over;

static int waits_for(weft_token *token)
{
    int r = weft_token_wait(token);
    fetch_add_relaxed(&over, 1);
    return r;
}

struct waits_for_too {
    WEFT_FRAME(int);
    weft_token *token;
    struct weft_token_wait wait;
};
static weft_async(waits_for_too)
{
    weft_begin;
    weft_await(f->wait, weft_token_wait, f->token);
    fetch_add_relaxed(&over, 1);
    weft_return(f->wait.ret);
    weft_end;
}

static int lets_through(weft_tracker *tracker)
{
    return weft_tracker_wait(tracker);
}

struct lets_through_too {
    WEFT_FRAME(int);
    weft_tracker *tracker;
    struct weft_tracker_wait wait;
};
static weft_async(lets_through_too)
{
    weft_begin;
    weft_await(f->wait, weft_tracker_wait, f->tracker);
    weft_return(f->wait.ret);
    weft_end;
}

/* ---- a shutdown, as programs have it --------------------------------------------------------------------- */

static void shutdown(struct crew *crew)
{
    weft_tracker tracker = {0};
    weft_token stop = {0};
    int r = 1;
    (void)crew;

    store_relaxed(&over, 0);
    for (int i = 0; i < 50; i++) {
        ASSERT_OK(weft_tracker_go(&tracker, waits_for, &stop));
        ASSERT_OK(weft_tracker_spawn(&tracker, waits_for_too, &stop));
    }
    ASSERT_EQ(weft_tracker_len(&tracker), 100);
    weft_task *a = weft_go(lets_through, &tracker);
    weft_task *b = weft_spawn(lets_through_too, &tracker);
    (void)weft_token_cancel(&stop);
    ASSERT(weft_tracker_close(&tracker));
    ASSERT(!weft_tracker_close(&tracker));
    ASSERT_OK(weft_tracker_wait(&tracker)); /* of a plain thread */
    ASSERT_EQ(load_relaxed(&over), 100);
    ASSERT_OK(weft_join(a, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(b, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_tracker_wait(&tracker));
    weft_tracker_done(&tracker);
    weft_token_done(&stop);
}

TEST(tracker_waits_for_the_last)
{
    crew_each(shutdown);
}

/* Tasks that were counted spawn others, also when it is closed. */
static int spawns_on(weft_tracker *tracker, int depth)
{
    for (int i = 0; i < 3 && depth > 0; i++)
        ASSERT_OK(weft_tracker_go(tracker, spawns_on, tracker, depth - 1));
    fetch_add_relaxed(&over, 1);
    return 0;
}

static void from_many_workers(struct crew *crew)
{
    (void)crew;
    for (uint64_t round = test_scaled(20); round > 0; round--) {
        weft_tracker *tracker = calloc(1, sizeof(*tracker));
        store_relaxed(&over, 0);
        ASSERT_OK(weft_tracker_go(tracker, spawns_on, tracker, 4));
        (void)weft_tracker_close(tracker);
        ASSERT_OK(weft_tracker_wait(tracker));
        ASSERT_EQ(load_relaxed(&over), 1 + 3 + 9 + 27 + 81);
        weft_tracker_done(tracker);
        memset(tracker, 0x5a, sizeof(*tracker)); /* nobody comes back to it */
        free(tracker);
    }
}

TEST(tracker_is_used_from_many_workers)
{
    crew_each(from_many_workers);
}

/* ---- when it lets through ----------------------------------------------------------------------------------- */

static int closed_and_empty(void)
{
    weft_tracker tracker = {0};
    int r = 0;

    WEFT_TIMEOUT(weft_ms(5)) r = weft_tracker_wait(&tracker); /* empty, but open */
    ASSERT_EQ(r, -ETIME);
    (void)weft_tracker_close(&tracker);
    ASSERT(weft_tracker_is_closed(&tracker));
    ASSERT_OK(weft_tracker_wait(&tracker));
    weft_tracker_enter(&tracker);
    WEFT_TIMEOUT(weft_ms(5)) r = weft_tracker_wait(&tracker); /* closed, but not empty */
    ASSERT_EQ(r, -ETIME);
    ASSERT(weft_tracker_reopen(&tracker));
    ASSERT(!weft_tracker_reopen(&tracker));
    weft_tracker_leave(&tracker);
    WEFT_TIMEOUT(weft_ms(5)) r = weft_tracker_wait(&tracker);
    ASSERT_EQ(r, -ETIME);

    /* A moment of it is enough, for whoever waits then. */
    weft_task *task = weft_go(lets_through, &tracker);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    (void)weft_tracker_close(&tracker);
    (void)weft_tracker_reopen(&tracker);
    weft_tracker_enter(&tracker);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_tracker_leave(&tracker);
    weft_tracker_done(&tracker);
    return 0;
}

TEST(tracker_lets_through_when_closed_and_empty)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int r = 1;
        weft_rt_opts opts = {.workers = crew_sizes[i], .seed = test_seed() | 1, .paused = true};
        crew_start_with(&crew, &opts);
        ASSERT_OK(weft_join(weft_go(closed_and_empty), &r));
        ASSERT_OK(r);
        crew_stop(&crew);
    }
}

/* A pool of four has room for the next as soon as one has ended: nobody has to ask for results. */
static void memory_is_free(struct crew *crew)
{
    size_t bytes = WEFT_POOL_BYTES(4, waits_for_too) + 4 * WEFT__MEMBER_BYTES;
    void *memory = malloc(bytes);
    weft_pool pool;
    weft_tracker tracker = {0};
    weft_pool_opts opts = {.rt = crew->rt,
                           .frame_bytes = sizeof(struct waits_for_too) + WEFT__MEMBER_BYTES + 16};

    ASSERT_OK(weft_pool_init(&pool, memory, bytes, &opts));
    for (int i = 0; i < 200; i++) {
        while (weft_tracker_spawn_as((.pool = &pool), &tracker, answers_too, i) == -ENOMEM)
            CREW_UNTIL(weft_pool_used(&pool) < weft_pool_capacity(&pool));
    }
    (void)weft_tracker_close(&tracker);
    ASSERT_OK(weft_tracker_wait(&tracker));
    ASSERT_EQ(weft_pool_used(&pool), 0);
    weft_tracker_done(&tracker);
    ASSERT_OK(weft_pool_done(&pool));
    free(memory);
}

TEST(tracker_frees_whoever_has_ended)
{
    crew_each(memory_is_free);
}

static void failures_are_told(struct crew *crew)
{
    weft_tracker tracker = {0};
    weft_stats stats;
    ASSERT_OK(weft_tracker_go(&tracker, answers, -EIO));
    (void)weft_tracker_close(&tracker);
    ASSERT_OK(weft_tracker_wait(&tracker));
    weft_rt_stats(crew->rt, &stats);
    ASSERT_EQ(stats.unread_failures, 1);
    weft_tracker_done(&tracker);
}

TEST(tracker_reports_failures)
{
    crew_each(failures_are_told);
}

/* ---- refused, misused ------------------------------------------------------------------------------------------ */

TEST(tracker_without_a_runtime)
{
    weft_tracker tracker = {0};
    ASSERT_EQ(weft_tracker_go(&tracker, answers, 1), -ENXIO);
    ASSERT_EQ(weft_tracker_spawn(&tracker, answers_too, 1), -ENXIO);
    ASSERT_EQ(weft_tracker_len(&tracker), 0);
    (void)weft_tracker_close(&tracker);
    ASSERT_OK(weft_tracker_wait(&tracker)); /* a thread needs none */
    ASSERT_EQ(weft_tracker_wait(NULL), -EINVAL);
    ASSERT_EQ(weft_tracker_go(NULL, answers, 1), -EINVAL);
    ASSERT_EQ(weft_tracker_spawn(NULL, answers_too, 1), -EINVAL);
    weft_tracker_done(&tracker);
    weft_tracker_done(NULL);
}

static void done_while_counting(void *unused)
{
    weft_tracker tracker = {0};
    (void)unused;
    weft_tracker_enter(&tracker);
    weft_tracker_done(&tracker);
}

static void left_twice(void *unused)
{
    weft_tracker tracker = {0};
    (void)unused;
    weft_tracker_leave(&tracker);
}

TEST(tracker_misuse_is_named)
{
    struct death d = death_of(done_while_counting, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "weft: a tracker that still counts is ended by a thread at "));
    ASSERT(strstr(d.said, "tracker.c:"));
    d = death_of(left_twice, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "weft: a tracker is left once more than it was entered by a thread at "));
}
