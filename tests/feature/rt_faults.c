/* SPDX-License-Identifier: MIT
 *
 * Runtimes and spawns whose memory, mappings or threads fail: an error, and nothing stays.
 */
#include "base/fault.h"
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/local.h>

#ifdef WEFT_FAULTS
/* Every allocation, mapping and thread of a build fails once: an error, and nothing stays. */
static void build_fails_at_each(enum weft__fault_kind kind, int error, int workers)
{
    for (uint32_t nth = 1;; nth++) {
        weft_rt *rt = NULL;
        weft__fault_arm(kind, nth, 1, error);
        int r = weft_rt_new(&(weft_rt_opts){.workers = workers}, &rt);
        uint32_t calls = weft__fault_calls(kind);
        weft__fault_reset();
        if (r == 0) ASSERT_OK(weft_rt_stop(rt, -1));
        if (r < 0) ASSERT_EQ(r, error);
        if (r < 0) ASSERT_NULL(rt);
        if (calls < nth) break;
        ASSERT_LE(nth, 100);
    }
}

TEST(rt_build_that_fails_leaves_nothing)
{
    build_fails_at_each(WEFT__FAULT_ALLOC, -ENOMEM, -1);
    build_fails_at_each(WEFT__FAULT_ALLOC, -ENOMEM, 2);
    build_fails_at_each(WEFT__FAULT_MMAP, -ENOMEM, 2);
    build_fails_at_each(WEFT__FAULT_THREAD, -EAGAIN, 4);
}

/* ---- a build that fails when some of its threads are there ---------------------------------------------- */

static _Atomic uint32_t hooks_begun; /* relaxed, all: counts, read when all is quiet */
static _Atomic uint32_t hooks_over;
static _Atomic uint32_t tasks_begun;
static _Atomic uint32_t tasks_ended;

/* Waits until it is cancelled. */
struct waits {
    WEFT_FRAME(int);
};
static weft_poll waits_poll(void *frame, weft_cx *cx)
{
    struct waits *f = frame;
    if (!f->weft__at) fetch_add_relaxed(&tasks_begun, 1);
    f->weft__at = 1;
    f->ret = weft_cx_cancelled(cx);
    if (f->ret == 0) return WEFT_PENDING;
    fetch_add_relaxed(&tasks_ended, 1);
    return WEFT_READY;
}

/* For itself, and for a worker that may never be there. */
static void spawns_at_the_start(weft_rt *rt, unsigned worker)
{
    weft_local last = weft_local_at(rt, 3);
    (void)worker;
    fetch_add_relaxed(&hooks_begun, 1);
    ASSERT_OK(weft_detach(weft_spawn(waits)));
    ASSERT_OK(weft_detach(weft_spawn_as((.local = &last), waits)));
}

static void counts_the_end(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    fetch_add_relaxed(&hooks_over, 1);
}

static int build_with_hooks(enum weft__fault_kind kind, uint32_t nth, int error)
{
    weft_rt *rt = NULL;
    weft_rt_opts o = {
        .workers = 4,
        .on_thread_start = spawns_at_the_start,
        .on_thread_stop = counts_the_end,
    };
    if (nth > 0) weft__fault_arm(kind, nth, 1, error);
    int r = weft_rt_new(&o, &rt);
    weft__fault_reset();
    if (r == 0) ASSERT_OK(weft_rt_stop(rt, -1));
    return r;
}

/* Each thread's creation, and the monitor's, fails once; each time others may be there that would have spawned. What began has
 * ended, hooks came in pairs, and nothing stays. */
TEST(rt_build_that_fails_at_a_thread_leaves_no_task)
{
    for (uint64_t round = 0; round < test_scaled(100); round++) {
        for (uint32_t nth = 1; nth <= 5; nth++) {
            ASSERT_EQ(build_with_hooks(WEFT__FAULT_THREAD, nth, -EAGAIN), -EAGAIN);
            ASSERT_EQ(load_relaxed(&hooks_begun), load_relaxed(&hooks_over));
            ASSERT_EQ(load_relaxed(&tasks_begun), load_relaxed(&tasks_ended));
        }
    }
    ASSERT_EQ(load_relaxed(&hooks_begun), 0); /* nobody was called for a runtime that never was */
    ASSERT_OK(build_with_hooks(WEFT__FAULT_THREAD, 0, 0));
    ASSERT_EQ(load_relaxed(&hooks_begun), 4);
    ASSERT_EQ(load_relaxed(&hooks_over), 4);
    ASSERT_EQ(load_relaxed(&tasks_begun), 8);
    ASSERT_EQ(load_relaxed(&tasks_ended), 8);
}

struct roomy {
    WEFT_FRAME(int);
    char room[3000];
};
static weft_async(roomy)
{
    weft_begin;
    weft_return(f->room[0] + 1);
    weft_end;
}

struct yields_until_told_too {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(yields_until_told_too)
{
    weft_begin;
    do {
        weft_await(f->pause, weft_yield);
    } while (f->pause.ret == 0);
    weft_return(f->pause.ret);
    weft_end;
}

/* A spawn without memory for the block (a mapping), or for a large frame (the heap), from outside
 * and from inside. */
static int spawn_without_memory(void)
{
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
    weft_task *task = weft_spawn(roomy);
    weft__fault_reset();
    return task ? -1 : 0;
}

static int spawn_without_mappings(void)
{
    weft_task *first = NULL;
    weft_task *kept[20000];
    int count = 0;
    weft__fault_arm(WEFT__FAULT_MMAP, 1, UINT32_MAX, -ENOMEM);
    while (count < 20000 && (first = weft_spawn(yields_until_told_too)))
        kept[count++] = first;
    weft__fault_reset();
    for (int i = 0; i < count; i++) {
        weft_cancel(kept[i]);
        (void)weft_detach(kept[i]);
    }
    return count;
}

static void no_memory(struct crew *crew)
{
    int got = 1;
    ASSERT_OK(spawn_without_memory());
    ASSERT_OK(weft_join(weft_go_as((.rt = crew->rt), spawn_without_memory), &got));
    ASSERT_OK(got);
    ASSERT_LE(spawn_without_mappings(), 19999);
    ASSERT_OK(weft_join(weft_spawn(roomy), &got));
    ASSERT_EQ(got, 1);
}

TEST(rt_spawn_without_memory_takes_nothing)
{
    crew_each(no_memory);
}
#else
TEST(rt_faults_need_a_build_that_has_them)
{
    TEST_SKIP("this build has no fault injection");
}
#endif
