/* SPDX-License-Identifier: MIT
 *
 * Large counts: a hundred thousand fibers, a million stackless tasks, long chains, wide joins, deep
 * recursion. All of them alive at once, none lost, each with what it had before it waited.
 *
 * What each costs in memory is printed, for the reader: nothing hangs on it.
 */
#include "base/sanitize.h"
#include "crew.h"
#include "statm.h"
#include "sys/mem.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a door: many wait, one opens ---------------------------------------------------------------------- */

static struct {
    weft_waker *waker;       /* a reference of each that waits, by number */
    _Atomic uint32_t inside; /* who has left his waker  [door: release, counted by the opener] */
    _Atomic bool open;       /* relaxed: a wake follows */
} door;

static void door_init(uint32_t count)
{
    door.waker = calloc(count, sizeof(*door.waker));
    ASSERT(door.waker != NULL);
    store_relaxed(&door.inside, 0);
    store_relaxed(&door.open, false);
}

/* All are inside: whoever polled saw the door closed. */
static void door_open(uint32_t count)
{
    CREW_UNTIL(load_acquire(&door.inside) ==
               count); /* acquire: with the wait's release, the wakers */
    store_relaxed(&door.open, true);
    for (uint32_t i = 0; i < count; i++) {
        weft_waker_wake(door.waker[i]);
        weft_waker_unref(door.waker[i]);
    }
}

static void door_done(void)
{
    free(door.waker);
    door.waker = NULL;
}

/* Waits for the door. It is woken once, and the door is open then. */
struct pass {
    WEFT_FRAME(int);
    uint32_t number;
};
static weft_poll pass_poll(void *frame, weft_cx *cx)
{
    struct pass *f = frame;
    f->ret = weft_cx_cancelled(cx);
    if (f->weft__at || f->ret < 0) return WEFT_READY;
    f->weft__at = 1;
    door.waker[f->number] = weft_waker_ref(weft_cx_waker(cx));
    fetch_add_release(&door.inside, 1); /* with door_open: the waker */
    return WEFT_PENDING;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

static uint64_t available(void)
{
    char line[128];
    uint64_t kib = UINT64_MAX / 1024;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return UINT64_MAX;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1) break;
    fclose(f);
    return kib * 1024;
}

static void say_cost(const char *what, uint32_t count, uint64_t before)
{
    uint64_t now = statm().resident_bytes;
    if (now < before) return;
    printf("%u %s alive at once: %lu bytes of memory each\n", count, what,
           (unsigned long)((now - before) / count));
}

static void need(uint64_t count, uint64_t bytes)
{
    if (available() / bytes < count)
        TEST_SKIP("less than %lu bytes of memory for each of %lu", (unsigned long)bytes,
                  (unsigned long)count);
}

/* ---- fibers ------------------------------------------------------------------------------------------------ */

/* A local that lives on the fiber's stack across the wait. */
static int lives_on(uint32_t number)
{
    volatile uint32_t stamp[16];
    for (uint32_t i = 0; i < 16; i++)
        stamp[i] = number * 31 + i;
    int r = weft_run(pass, .number = number);
    if (r < 0) return r;
    for (uint32_t i = 0; i < 16; i++)
        if (stamp[i] != number * 31 + i) return -1;
    return (int)number;
}

static uint32_t fiber_count(void)
{
#if defined(WEFT__TSAN)
    return 4000; /* TSan has room for some 8,000 threads and fibers */
#else
    return (uint32_t)test_scaled(100000);
#endif
}

static void fibers_on(int workers)
{
    uint32_t count = fiber_count();
    weft_task **task = calloc(count, sizeof(*task));
    struct crew crew;
    uint64_t before = statm().resident_bytes;
    ASSERT(task != NULL);
    door_init(count);
    crew_start(&crew, workers);
    for (uint32_t i = 0; i < count; i++) {
        task[i] = weft_go(lives_on, i);
        ASSERT(task[i] != NULL);
    }
    CREW_UNTIL(load_acquire(&door.inside) == count);
    say_cost("fibers", count, before);
    door_open(count);
    for (uint32_t i = 0; i < count; i++) {
        int got = -1;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, (int)i);
    }
    crew_stop(&crew);
    door_done();
    free(task);
}

/* Without a word to the system: by mprotect they would need more mappings than it grants. */
TEST_WITH(large_a_hundred_thousand_fibers_alive, .timeout_s = 600)
{
    int r = weft__mem_guard_probe();
    if (r < 0)
        TEST_SKIP("no MADV_GUARD_INSTALL on this kernel (%d), and mprotect ends near 32,000", r);
    need(fiber_count(), 16384);
    fibers_on(2);
    fibers_on(-1);
}

/* ---- stackless tasks ------------------------------------------------------------------------------------------ */

struct waits {
    WEFT_FRAME(uint32_t);
    uint32_t number;
    uint32_t stamp;
    struct pass pass;
};
static weft_async(waits)
{
    weft_begin;
    f->stamp = f->number * 31;
    weft_await(f->pass, pass, .number = f->number);
    weft_return(f->pass.ret < 0 ? UINT32_MAX : f->stamp);
    weft_end;
}

static void spawn_waiters(weft_task **task, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        task[i] = weft_spawn(waits, .number = i);
        ASSERT(task[i] != NULL);
    }
}

/* Spawned from outside, or all by one task: through the inject queue, or the ring and its overflow. */
static void million_on(int workers, bool by_a_task)
{
    uint32_t count = (uint32_t)test_scaled(1000000);
    weft_task **task = calloc(count, sizeof(*task));
    struct crew crew;
    uint64_t before = statm().resident_bytes;
    ASSERT(task != NULL);
    door_init(count);
    crew_start(&crew, workers);
    if (by_a_task) {
        ASSERT_OK(weft_join(weft_go(spawn_waiters, task, count), NULL));
    } else {
        spawn_waiters(task, count);
    }
    CREW_UNTIL(load_acquire(&door.inside) == count);
    say_cost("stackless tasks", count, before);
    door_open(count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t got = 0;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, i * 31u);
    }
    weft_stats s;
    weft_rt_stats(crew.rt, &s);
    ASSERT_EQ(s.spawned, count + by_a_task);
    ASSERT_EQ(s.completed, s.spawned);
    crew_stop(&crew);
    door_done();
    free(task);
}

TEST_WITH(large_a_million_stackless_tasks_alive, .timeout_s = 600)
{
    need(test_scaled(1000000), 512);
    million_on(2, false);
    million_on(2, true);
    million_on(-1, true);
}

/* Cancelled instead of woken, by the stop itself. */
TEST_WITH(large_a_million_tasks_are_stopped, .timeout_s = 600)
{
    uint32_t count = (uint32_t)test_scaled(1000000);
    struct crew crew;
    need(count, 512);
    door_init(count);
    crew_start(&crew, 2);
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(weft_detach(weft_spawn(waits, .number = i)));
    crew_stop(&crew);
    for (uint32_t i = 0; i < count; i++)
        weft_waker_unref(door.waker[i]); /* of those that had waited already */
    door_done();
}

/* ---- chains ----------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t links; /* relaxed: a count */

/* Each spawns the next and ends. */
struct hands_on {
    WEFT_FRAME(int);
    uint32_t left;
};
static weft_async(hands_on)
{
    weft_begin;
    fetch_add_relaxed(&links, 1);
    if (f->left > 0) (void)weft_detach(weft_spawn(hands_on, .left = f->left - 1));
    weft_return(0);
    weft_end;
}

static void hands_on_as_fibers(uint32_t left)
{
    fetch_add_relaxed(&links, 1);
    if (left > 0) (void)weft_detach(weft_go(hands_on_as_fibers, left - 1));
}

static void chains(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(300000);
    (void)crew;
    store_relaxed(&links, 0);
    ASSERT_OK(weft_detach(weft_spawn(hands_on, .left = count - 1)));
    CREW_UNTIL(load_relaxed(&links) == count);
    ASSERT_OK(weft_detach(weft_go(hands_on_as_fibers, count - 1)));
    CREW_UNTIL(load_relaxed(&links) == 2 * count);
}

TEST_WITH(large_chain_of_300000_spawns, .timeout_s = 300)
{
    crew_each(chains);
}

/* Each waits for the next: all of them are alive when the last one ends. */
struct waits_for_the_next {
    WEFT_FRAME(uint32_t);
    uint32_t left;
    uint32_t below;
    struct weft_join join;
};
static weft_async(waits_for_the_next)
{
    weft_begin;
    if (f->left == 0) weft_return(1);
    weft_await(f->join, weft_join, weft_spawn(waits_for_the_next, .left = f->left - 1), &f->below);
    weft_return(f->join.ret < 0 ? 0 : f->below + 1);
    weft_end;
}

static void waiting_chain(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(300000);
    uint32_t got = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(waits_for_the_next, .left = count - 1), &got));
    ASSERT_EQ(got, count);
}

TEST_WITH(large_chain_of_300000_joins, .timeout_s = 300)
{
    crew_each(waiting_chain);
}

/* ---- wide ---------------------------------------------------------------------------------------------------------- */

struct square {
    WEFT_FRAME(uint64_t);
    uint64_t of;
};
static weft_async(square)
{
    weft_begin;
    weft_return(f->of * f->of);
    weft_end;
}

struct joins_all {
    WEFT_FRAME(uint64_t);
    weft_task **task;
    uint64_t count, i, one, sum;
    struct weft_join join;
};
static weft_async(joins_all)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++)
        f->task[f->i] = weft_spawn(square, .of = f->i);
    for (f->i = f->count; f->i-- > 0;) { /* the newest first: the oldest have run by themselves */
        weft_await(f->join, weft_join, f->task[f->i], &f->one);
        if (f->join.ret < 0) weft_return(0);
        f->sum += f->one;
    }
    weft_return(f->sum);
    weft_end;
}

static void wide(struct crew *crew)
{
    uint64_t n = test_scaled(200000);
    weft_task **task = calloc(n, sizeof(*task));
    uint64_t sum = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(joins_all, .task = task, .count = n), &sum));
    ASSERT_EQ(sum, (n - 1) * n * (2 * n - 1) / 6);
    free(task);
}

TEST_WITH(large_join_of_200000_children, .timeout_s = 300)
{
    crew_each(wide);
}

/* ---- deep ------------------------------------------------------------------------------------------------------------ */

/* One task whose function awaits itself: a frame on the heap for each level, and at each poll a call
 * for each level. */
struct digs {
    WEFT_FRAME(int);
    int left;
    struct digs *kid;
    struct weft_yield pause;
};
static weft_async(digs)
{
    weft_begin;
    if (f->left == 0) {
        weft_await(f->pause, weft_yield);
        weft_return(f->pause.ret);
    }
    weft_await_boxed(f->kid, digs, .left = f->left - 1);
    f->ret = weft_unbox(f->kid);
    weft_return(f->ret < 0 ? f->ret : f->ret + 1);
    weft_end;
}

static void recursion(struct crew *crew)
{
    int depth = (int)test_scaled(50000);
    int got = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_spawn(digs, .left = depth), &got));
    ASSERT_EQ(got, depth);
    ASSERT_EQ(weft_run(digs, .left = depth), depth);
}

/* As deep as weft/future.h says; deeper chains are of tasks, above. */
TEST(large_recursion_through_fifty_thousand_boxes)
{
    crew_each(recursion);
}
