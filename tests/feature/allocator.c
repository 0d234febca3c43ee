/* SPDX-License-Identifier: MIT
 *
 * A program's own allocator: it sees all memory of the library go and come back, and may fail at any call.
 */
#include "base/alloc.h"
#include "crew.h"
#include "sys/lock.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/alloc.h>

struct counting {
    _Atomic uint64_t calls; /* relaxed, all: counts */
    _Atomic int64_t blocks;
    _Atomic int64_t bytes;
    _Atomic uint64_t fail_from; /* the call that fails first, from 1; 0: none */
    _Atomic uint64_t wide;      /* calls that asked for 64 KiB or more of alignment */
};
static struct counting counting;

static void *count_alloc(void *ctx, size_t bytes, size_t align)
{
    struct counting *c = ctx;
    void *memory = NULL;
    weft__lock_assert_none_held(); /* an allocator may wait for locks of its own, around a fork too */
    uint64_t call = fetch_add_relaxed(&c->calls, 1) + 1;
    uint64_t from = load_relaxed(&c->fail_from);
    ASSERT(bytes > 0 && align >= 16 && (align & (align - 1)) == 0 && align <= 2 * 1024 * 1024);
    if (align >= 65536) fetch_add_relaxed(&c->wide, 1);
    if (from && call >= from) return NULL;
    if (posix_memalign(&memory, align, bytes) != 0) return NULL;
    memset(memory, 0xa5, bytes);
    fetch_add_relaxed(&c->blocks, 1);
    fetch_add_relaxed(&c->bytes, (int64_t)bytes);
    return memory;
}

static void count_free(void *ctx, void *memory, size_t bytes)
{
    struct counting *c = ctx;
    weft__lock_assert_none_held();
    ASSERT(memory && bytes > 0);
    memset(memory, 0x5a, bytes); /* all of it is ours again */
    fetch_sub_relaxed(&c->blocks, 1);
    fetch_sub_relaxed(&c->bytes, (int64_t)bytes);
    free(memory);
}

static const weft_allocator counted = {count_alloc, count_free, &counting};

static void expect_all_back(void)
{
    ASSERT_EQ(load_relaxed(&counting.blocks), 0);
    ASSERT_EQ(load_relaxed(&counting.bytes), 0);
}

/* ---- when it can be set ---- */

TEST(allocator_is_set_once_and_in_time)
{
    weft_rt *rt;
    ASSERT_EQ(weft_set_allocator(NULL), -EINVAL);
    ASSERT_EQ(weft_set_allocator(&(weft_allocator){.alloc = count_alloc}), -EINVAL);
    ASSERT_EQ(weft_set_allocator(&(weft_allocator){.free = count_free}), -EINVAL);
    ASSERT_OK(weft_set_allocator(&counted));
    ASSERT_EQ(weft_set_allocator(&counted), -EBUSY);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_EQ(weft_set_allocator(&counted), -EBUSY);
    expect_all_back();
}

TEST(allocator_after_the_first_use_is_refused)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_EQ(weft_set_allocator(&counted), -EBUSY);
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_EQ(load_relaxed(&counting.calls), 0);
}

/* ---- what it sees ---- */

struct roomy {
    WEFT_FRAME(int);
    struct weft_yield pause;
    char room[3000];
};
static weft_async(roomy)
{
    weft_begin;
    memset(f->room, 1, sizeof(f->room));
    weft_await(f->pause, weft_yield);
    weft_return(f->room[0] + f->room[2999]);
    weft_end;
}

static int sums(int depth)
{
    int part[2] = {0, 0};
    if (depth == 0) return 1;
    weft_task *kid[2] = {weft_go(sums, depth - 1), weft_go(sums, depth - 1)};
    int r = weft_join(kid[0], &part[0]);
    int q = weft_join(kid[1], &part[1]);
    return r < 0         ? r
           : q < 0       ? q
           : part[0] < 0 ? part[0]
           : part[1] < 0 ? part[1]
                         : part[0] + part[1];
}

/* A fiber by number. All of them are there at once: the directory of numbers grows. */
static _Atomic uint32_t fibers; /* relaxed: a count */

#define FIBERS 200

struct summed {
    WEFT_FRAME(int);
    int a;
    int b;
};
static weft_fiber(summed)
{
    int r = 0;
    fetch_add_relaxed(&fibers, 1);
    while (r == 0 && load_relaxed(&fibers) < FIBERS)
        r = weft_yield();
    f->ret = r < 0 ? r : f->a + f->b;
}

/* At a place, and with a failure, of its own: a record of it is kept. */
static int fails(int with)
{
    return with;
}

static void quietly(struct crew *crew, void (*body)(struct crew *))
{
    int kept = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    ASSERT(kept >= 0 && nowhere >= 0);
    dup2(nowhere, STDERR_FILENO);
    body(crew);
    dup2(kept, STDERR_FILENO);
    close(nowhere);
    close(kept);
}

static void fails_unread(struct crew *crew)
{
    weft_stats s;
    for (int i = 0; i < 20; i++) {
        ASSERT_OK(weft_detach(weft_go(fails, -EIO)));
        ASSERT_OK(weft_detach(weft_go(fails, -EPIPE)));
    }
    do {
        weft_rt_stats(crew->rt, &s);
        sched_yield();
    } while (s.unread_failures < 40);
}

#define MANY 2000

static void uses_fibers_by_number(void)
{
    weft_task *task[FIBERS];
    int got;
    store_relaxed(&fibers, 0);
    for (int i = 0; i < FIBERS; i++)
        ASSERT(task[i] = weft_spawn(summed, i, 1));
    for (int i = 0; i < FIBERS; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, i + 1);
    }
}

static void uses_all_kinds(struct crew *crew)
{
    weft_task *task[MANY];
    int got;
    uses_fibers_by_number();
    quietly(crew, fails_unread);
    for (int i = 0; i < MANY; i++)
        ASSERT(task[i] = weft_spawn_as((.name = "named"), roomy));
    for (int i = 0; i < MANY; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 2);
    }
    ASSERT_OK(weft_join(weft_go(sums, 8), &got));
    ASSERT_EQ(got, 256);
}

TEST(allocator_sees_everything_come_back)
{
    ASSERT_OK(weft_set_allocator(&counted));
    crew_each(uses_all_kinds);
    ASSERT_GE(load_relaxed(&counting.calls), MANY);
    ASSERT_GE(load_relaxed(&counting.wide), 4); /* the blocks of tasks, too */
    expect_all_back();
}

/* ---- when it fails ---- */

/* Everything from some call on is refused: a build, a spawn from outside, a fiber's children. */
static void run_out(int workers)
{
    weft_rt *rt = NULL;
    int got = -1;
    int r = weft_rt_new(&(weft_rt_opts){.workers = workers}, &rt);
    if (r < 0) {
        ASSERT_EQ(r, -ENOMEM);
        ASSERT_NULL(rt);
        return;
    }
    weft_task *task = weft_go_as((.rt = rt, .name = "sums"), sums, 6);
    if (task && workers < 0)
        while (!weft_done(task))
            ASSERT_GE(weft_rt_turn(rt, 0), 0);
    r = weft_join(task, &got);
    if (!task) ASSERT_EQ(r, -ECHILD);
    if (r == 0) ASSERT(got == 64 || got == -ENOMEM || got == -ECHILD);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static uint64_t calls_of_a_run(int workers)
{
    uint64_t before = load_relaxed(&counting.calls);
    run_out(workers);
    return load_relaxed(&counting.calls) - before;
}

static void fails_at_each(int workers)
{
    store_relaxed(&counting.fail_from, 0);
    uint64_t calls = calls_of_a_run(workers);
    for (uint64_t n = 1; n <= calls + 1; n++) {
        store_relaxed(&counting.calls, 0);
        store_relaxed(&counting.fail_from, n);
        run_out(workers);
        expect_all_back();
    }
    store_relaxed(&counting.fail_from, 0);
    run_out(workers);
    expect_all_back();
}

TEST(allocator_that_fails_at_any_call_leaves_nothing)
{
    ASSERT_OK(weft_set_allocator(&counted));
    for (size_t i = 0; i < CREW_SIZES; i++)
        fails_at_each(crew_sizes[i]);
}
