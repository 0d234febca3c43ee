/* SPDX-License-Identifier: MIT
 *
 * Tasks that have a home of their own making: local sets, and blocks during which a fiber keeps to its thread. Pinned tasks:
 * home.c.
 */
#include "street.h"
#include "task/place.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <weft/blocking.h>
#include <weft/local.h>
#include <weft/region.h>
#include <weft/time.h>

/* On which thread it runs. */
static pid_t tells_thread(void)
{
    return thread_now();
}

/* ---- local sets ------------------------------------------------------------------------------------------------ */

/* Shared without lock or atomics: only for tasks of one set. */
struct shared {
    weft_local home;
    pid_t thread;
    uint64_t sum;
    bool inside; /* between two awaits: nobody else may be */
    int unfinished;
};

static int adds(struct shared *s, int times)
{
    for (int i = 0; i < times; i++) {
        if (s->inside) return -EBUSY;
        s->inside = true;
        uint64_t before = s->sum;
        note_unless_on(s->thread);
        if (!weft_local_is_here(&s->home)) fetch_add_relaxed(&strays, 1);
        s->sum = before + 1;
        s->inside = false;
        if (weft_yield() < 0) break;
    }
    s->unfinished--;
    return 0;
}

struct adds_too {
    WEFT_FRAME(int);
    struct shared *s;
    int times;
    struct weft_yield pause;
};
static weft_async(adds_too)
{
    weft_begin;
    for (; f->times > 0; f->times--) {
        note_unless_on(f->s->thread);
        f->s->sum++;
        weft_await(f->pause, weft_yield);
    }
    f->s->unfinished--;
    weft_return(0);
    weft_end;
}

/* Each generation spawns the next, two at a time. */
static int nests(struct shared *s, int depth)
{
    note_unless_on(s->thread);
    s->sum++;
    if (depth > 0) {
        weft_task *a = weft_go_as((.local = &s->home), nests, s, depth - 1);
        weft_task *b = weft_go_as((.local = &s->home), nests, s, depth - 1);
        if (weft_join(a, (int *)NULL) < 0 || weft_join(b, (int *)NULL) < 0) return -1;
    }
    note_unless_on(s->thread);
    return 0;
}

#define LOCALS 32

static int makes_a_set(struct bell *bell)
{
    weft_task *task[LOCALS];
    struct shared s = {.home = weft_local_here(), .thread = thread_now(), .unfinished = LOCALS};
    int times = (int)test_scaled(40);
    int got = -1;

    for (int i = 0; i < LOCALS; i++) {
        task[i] = i % 2 ? weft_go_as((.local = &s.home), adds, &s, times)
                        : weft_spawn_as((.local = &s.home), adds_too, &s, times);
    }
    for (int i = 0; i < 10;
         i++) { /* it is pinned itself by now: woken from outside, it comes back here */
        if (weft_run(hear, .bell = bell) < 0) return -1;
        note_unless_on(s.thread);
    }
    for (int i = 0; i < LOCALS; i++) {
        if (weft_join(task[i], &got) < 0 || got < 0) return -1;
    }
    if (s.unfinished != 0 || s.sum != (uint64_t)times * LOCALS) return -2;
    s.sum = 0;
    if (weft_join(weft_go_as((.local = &s.home), nests, &s, 8), &got) < 0) return -1;
    return s.sum == 511 ? 0 : -3;
}

static void local_sets(struct crew *crew)
{
    struct street s;
    weft_task *task[8];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < 8; i++) /* several sets, of which some share a worker */
        task[i] = weft_go(makes_a_set, &bells[i]);
    join_all(task, 8);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(local_set_shares_without_locks)
{
    crew_each(local_sets);
}

/* A child of a set spawned without .local is a task like any other: no harm, and it can join one that is local. */
static int joins_a_local(weft_task *local)
{
    int got = -1;
    int r = weft_join(local, &got);
    return r < 0 ? r : got;
}

static int local_joined_elsewhere(void)
{
    weft_local here = weft_local_here();
    for (uint64_t i = 0; i < test_scaled(300); i++) {
        int got = -1;
        weft_task *local = weft_go_as((.local = &here), answers, 1);
        if (weft_join(weft_go(joins_a_local, local), &got) < 0 || got != 1) return -1;
    }
    return 0;
}

static void joined_elsewhere(struct crew *crew)
{
    int got = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(local_joined_elsewhere), &got));
    ASSERT_EQ(got, 0);
}

TEST(local_task_is_joined_from_elsewhere)
{
    crew_each(joined_elsewhere);
}

/* ---- with timers, and with the pool's threads ---- */

/* On a thread of the pool, which is nobody's home. */
static int blocks_elsewhere(pid_t home)
{
    if (thread_now() == home) fetch_add_relaxed(&strays, 1);
    return 7;
}

/* Woken by a timer, then by another thread: each time it comes back home, and nobody of the set is inside. */
static int sleeps_and_asks(struct shared *s, int times)
{
    for (int i = 0; i < times; i++) {
        if (s->inside) return -EBUSY;
        s->inside = true;
        note_unless_on(s->thread);
        s->sum++;
        s->inside = false;
        int r = weft_sleep(weft_us(1 + i % 50));
        if (r < 0) return r;
        note_unless_on(s->thread);
        r = weft_blocking(blocks_elsewhere, s->thread);
        if (r != 7) return r < 0 ? r : -EIO;
        note_unless_on(s->thread);
    }
    s->unfinished--;
    return 0;
}

struct sleeps_and_asks_too {
    WEFT_FRAME(int);
    struct shared *s;
    int times;
    struct weft_sleep sleep;
    struct weft_blocking job;
};
static weft_async(sleeps_and_asks_too)
{
    weft_begin;
    for (; f->times > 0; f->times--) {
        note_unless_on(f->s->thread);
        f->s->sum++;
        weft_await(f->sleep, weft_sleep, weft_us(1 + f->times % 50));
        if (f->sleep.ret < 0) weft_return(f->sleep.ret);
        note_unless_on(f->s->thread);
        weft_await(f->job, weft_blocking, weft_bind(blocks_elsewhere, f->s->thread));
        if (f->job.ret != 7) weft_return(f->job.ret < 0 ? (int)f->job.ret : -EIO);
        note_unless_on(f->s->thread);
    }
    f->s->unfinished--;
    weft_return(0);
    weft_end;
}

#define SLEEPERS 12

static int set_of_sleepers(void)
{
    weft_task *task[SLEEPERS];
    struct shared s = {.home = weft_local_here(), .thread = thread_now(), .unfinished = SLEEPERS};
    int times = (int)test_scaled(15);
    int failed = 0;

    for (int i = 0; i < SLEEPERS; i++) {
        task[i] = i % 2 ? weft_go_as((.local = &s.home), sleeps_and_asks, &s, times)
                        : weft_spawn_as((.local = &s.home), sleeps_and_asks_too, &s, times);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        int got = -1;
        if (weft_join(task[i], &got) < 0 || got < 0) failed = got;
    }
    if (failed) return failed;
    return s.unfinished == 0 && s.sum == (uint64_t)times * SLEEPERS ? 0 : -EIO;
}

static void sets_of_sleepers(struct crew *crew)
{
    struct street s;
    weft_task *task[3];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < 3; i++)
        task[i] = weft_go(set_of_sleepers);
    join_all(task, 3);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(local_tasks_sleep_and_ask_the_pool)
{
    crew_each(sets_of_sleepers);
}

/* Given up while it sleeps, it unwinds at home; what it asked the pool for and what runs there is waited for. */
static int is_called_away(struct shared *s)
{
    int r = weft_sleep(weft_secs(3600));
    note_unless_on(s->thread);
    WEFT_SHIELD(weft_secs(3600))
    {
        if (weft_blocking(blocks_elsewhere, s->thread) != 7) r = -EIO;
        note_unless_on(s->thread);
    }
    return r;
}

static int calls_them_away(void)
{
    struct shared s = {.home = weft_local_here(), .thread = thread_now()};
    for (uint64_t i = 0; i < test_scaled(50); i++) {
        int got = 0;
        weft_task *t = weft_go_as((.local = &s.home), is_called_away, &s);
        if (i % 2 && weft_yield() < 0) return -1; /* it may have begun to sleep */
        weft_cancel(t);
        if (weft_join(t, &got) < 0 || got != -ECANCELED) return -2;
    }
    return 0;
}

static void called_away(struct crew *crew)
{
    int got = -1;
    (void)crew;
    street_clear();
    ASSERT_OK(weft_join(weft_go(calls_them_away), &got));
    ASSERT_EQ(got, 0);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(local_task_that_sleeps_is_called_away)
{
    crew_each(called_away);
}

/* From a thread outside, onto each worker by its number; the worker sleeps between two of them. */
static void spawned_from_outside(struct crew *crew)
{
    unsigned count = crew->workers > 0 ? (unsigned)crew->workers : 1;
    pid_t at[4] = {0};
    for (unsigned i = 0; i < test_scaled(3000); i++) {
        weft_local home = weft_local_at(crew->rt, i % count);
        pid_t got;
        ASSERT_OK(weft_join(weft_go_as((.local = &home), tells_thread), &got));
        if (i < count) at[i] = got;
        ASSERT_EQ(got, at[i % count]);
    }
    for (unsigned i = 1; i < count; i++)
        ASSERT_NE(at[i], at[0]);
}

TEST(local_spawn_from_outside_wakes_its_worker)
{
    crew_each(spawned_from_outside);
}

static int waits_for_ever(struct bell *bell)
{
    pid_t home = thread_now();
    int r = weft_run(hear, .bell = bell);
    note_unless_on(home); /* it is cancelled, and unwinds at home */
    return r;
}

static void cancelled_from_elsewhere(struct crew *crew)
{
    (void)crew;
    street_clear();
    for (unsigned i = 0; i < test_scaled(300); i++) {
        struct bell bell;
        int got = 0;
        bell_init(&bell);
        weft_task *t = weft_go_as((.pinned = true), waits_for_ever, &bell);
        weft_cancel(t);
        ASSERT_OK(weft_join(t, &got));
        ASSERT_EQ(got, -ECANCELED);
    }
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(local_task_is_cancelled_from_elsewhere)
{
    crew_each(cancelled_from_elsewhere);
}

/* ---- pin blocks ---------------------------------------------------------------------------------------------------- */

static uint64_t place_now(void)
{
    return weft__place_look(weft_self()) & (WEFT__PLACE | WEFT__PLACE_PIN_BLOCK);
}

static int stays_in_block(struct bell *bell)
{
    WEFT_PINNED
    {
        pid_t home = thread_now();
        for (int i = 0; i < 3; i++) {
            int r = weft_run(hear, .bell = bell);
            if (r < 0) return r;
            WEFT_PINNED
            {
                note_unless_on(home);
                (void)weft_yield();
            }
            note_unless_on(home);
            if (!place_now()) return -1;
        }
    }
    return place_now() ? -2 : 0;
}

/* In blocks it stays; between them it moves, if there is where to: that the test waits for. */
static int stays_and_moves(struct bell *bell, bool *has_moved)
{
    pid_t first = thread_now();
    for (uint64_t i = 0; i < test_scaled(3) || (has_moved && !*has_moved && !load_relaxed(&over));
         i++) {
        int r = stays_in_block(bell);
        if (r < 0) return r;
        for (int spin = 0; spin < 5000; spin++)
            cpu_pause();
        if ((r = weft_run(hear, .bell = bell)) < 0) return r;
        if (has_moved && thread_now() != first) *has_moved = true;
    }
    return 0;
}

static void pin_blocks(struct crew *crew)
{
    struct street s;
    weft_task *task[BELLS];
    bool moved[BELLS] = {false};
    street_opens(&s);
    for (int i = 0; i < BELLS; i++)
        task[i] =
            weft_go(stays_and_moves, &bells[i], crew->workers > 1 && i == 0 ? &moved[i] : NULL);
    join_all(task, BELLS);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
    ASSERT_EQ(moved[0], crew->workers > 1);
}

TEST(pin_block_keeps_the_thread_and_lets_go)
{
    crew_each(pin_blocks);
}

static int leaves_by_return(void)
{
    WEFT_PINNED
    {
        WEFT_PINNED return place_now() ? 1 : 0;
    }
    return 0;
}

static int leaves_in_all_ways(void)
{
    if (place_now()) return -1;
    WEFT_PINNED break;
    if (place_now()) return -2;
    WEFT_PINNED
    {
        if (place_now()) continue;
        return -3;
    }
    if (place_now()) return -4;
    if (leaves_by_return() != 1 || place_now()) return -5;
    WEFT_PINNED goto out;
    return -6;
out:
    return place_now() ? -7 : 0;
}

static uint64_t place_after_local_here(void)
{
    WEFT_PINNED(void) weft_local_here();
    return place_now();
}

static void ways_out(struct crew *crew)
{
    int got = -1;
    uint64_t place = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(leaves_in_all_ways), &got));
    ASSERT_EQ(got, 0);
    ASSERT_OK(weft_join(weft_go(place_after_local_here), &place));
    ASSERT(place & WEFT__PLACE); /* for life */
    ASSERT(!(place & WEFT__PLACE_PIN_BLOCK));
    WEFT_PINNED got = 5; /* a plain thread */
    ASSERT_EQ(got, 5);
}

TEST(pin_block_is_left_by_every_way_out)
{
    crew_each(ways_out);
}

static uint64_t place_around_block(void)
{
    WEFT_PINNED
    {
        if ((place_now() & WEFT__PLACE) == WEFT__PLACE_BACKGROUND) return 0;
        (void)weft_yield();
    }
    return place_now();
}

static void block_in_background(struct crew *crew)
{
    uint64_t place = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_go_as((.background = true), place_around_block), &place));
    ASSERT_EQ(place, WEFT__PLACE_BACKGROUND);
    ASSERT_OK(weft_join(weft_go_as((.pinned = true), place_around_block), &place));
    ASSERT(place != 0);
    ASSERT(!(place & WEFT__PLACE_PIN_BLOCK));
}

TEST(pin_block_gives_the_place_back)
{
    crew_each(block_in_background);
}

/* Two fibers of one task, in blocks that overlap and do not nest: whichever leaves first, the other one stays. */
struct half {
    WEFT_FRAME(int);
    struct bell *bell;
    int waits;
};
static weft_fiber(half)
{
    pid_t home = 0;
    f->ret = 0;
    WEFT_PINNED
    {
        home = thread_now();
        for (int i = 0; i < f->waits; i++) {
            if ((f->ret = weft_run(hear, .bell = f->bell)) < 0) break;
            note_unless_on(home);
        }
    }
}

struct both {
    WEFT_FRAME(int);
    struct half a, b;
    bool a_done, b_done;
};
static weft_poll both_poll(void *frame, weft_cx *cx)
{
    struct both *f = frame;
    if (!f->a_done) f->a_done = half_poll(&f->a, cx) == WEFT_READY;
    if (!f->b_done) f->b_done = half_poll(&f->b, cx) == WEFT_READY;
    f->ret = f->a.ret < 0 ? f->a.ret : f->b.ret;
    return f->a_done && f->b_done ? WEFT_READY : WEFT_PENDING;
}

static void overlapping(struct crew *crew)
{
    struct street s;
    weft_task *task[BELLS / 2];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < BELLS / 2; i++)
        task[i] = weft_spawn(both, .a = {.bell = &bells[2 * i], .waits = 3},
                             .b = {.bell = &bells[2 * i + 1], .waits = 8});
    join_all(task, BELLS / 2);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(pin_blocks_of_two_fibers_may_overlap)
{
    crew_each(overlapping);
}
