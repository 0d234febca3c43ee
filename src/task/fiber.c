/* SPDX-License-Identifier: MIT
 *
 * fiber - birth, poll, suspension and end; the idea is in fiber.h.
 */
#include "task/fiber.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "sys/lock.h"
#include "task/fiberdir.h"
#include "task/here.h"
#include "task/lent.h"
#include "task/orphan.h"
#include "task/overflow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Lines by which tops of stacks differ; a power of two. Doubled: 1 KiB more of each first page
 * are colour, which calls no longer have; halved: of thousands of fibers twice as many meet in the
 * same sets, 1 % of a request with 8,000 connections. */
#define COLOURS UINT32_C(16)

/* The stack of a fiber that is polled where there is no pool. Doubled: twice the addresses. */
#define OWN_STACK_BYTES ((size_t)256 * 1024)

/* In a frame's weft__at: the fiber has ended, and a further poll is a mistake. */
#define AT_ENDED INT32_C(-1)

#define AT_STARTED INT32_C(1) /* of weft_go's frames, which have a pointer */

/* Inlined in plain builds, in functions that return by a jump (context.h): a round trip of switches is 2 ns without
 * any return behind it, 4 with returns on one side, 17 with one on both, 21 with three. The sanitizers' builds keep
 * them apart: they must not be instrumented, and their callers should be. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
#define SWITCHING WEFT__UNSANITIZED __attribute__((noinline)) static void
#else
#define SWITCHING static inline __attribute__((always_inline)) void
#endif

/* ---- the two functions that switch --------------------------------------------------------------- */

SWITCHING enter(struct weft__fiber *f)
{
    weft__fiber_hook_enter(&f->hooks);
    weft__context_swap(&f->back, &f->self);
    weft__fiber_hook_left(&f->hooks);
}

SWITCHING leave(struct weft__fiber *f, bool for_good)
{
    weft__fiber_hook_leave(&f->hooks, for_good);
    weft__context_swap(&f->self, &f->back);
    weft__fiber_hook_entered(&f->hooks);
}

static inline __attribute__((always_inline)) void suspend(void)
{
    struct weft__fiber *f = weft__here()->fiber;

    if (__builtin_expect(!f, 0)) weft__orphan_returns(); /* it forked, and this is the child */
    weft_assert(!f->polling); /* what is polled on this stack must answer first */
    weft__lock_assert_none_held();
    leave(f, false);
}

WEFT__JUMPS_BACK int weft__fiber_suspend(void)
{
    suspend();
    return weft__here()->cx->why;
}

/* Nothing of the thread is kept from one round to the next: it may be another one. */
WEFT__JUMPS_BACK int weft__fiber_wait(struct weft__fiber *f, weft_pollfn *poll, void *frame)
{
    for (;;) {
        suspend();
        f->polling = true;
        weft_poll answer = weft__fiber_poll_inside(f, poll, frame, weft__here()->cx);
        f->polling = false;
        if (answer == WEFT_READY) return 0;
    }
}

/* The bottom of every fiber's stack. */
WEFT__UNSANITIZED static void fiber_main(void *arg)
{
    struct weft__fiber *f = arg;

    weft__fiber_hook_entered(&f->hooks);
    f->body(f->frame);
    f->ended = true;
    leave(f, true);
    __builtin_trap(); /* an ended fiber was entered */
}

/* ---- birth and end ------------------------------------------------------------------------------- */

struct weft__fiber *weft__fiber_at(const char *lo, size_t bytes)
{
    /* The upper bits of the product depend on all of the address; slots lie at equal distances, so
     * its low bits alone may all be the same. */
    uint32_t colour = ((uint32_t)((uintptr_t)lo >> 12) * UINT32_C(0x9e3779b1)) >> 16;
    uintptr_t hi = (uintptr_t)lo + bytes - colour % COLOURS * WEFT__CACHE_LINE;

    return (struct weft__fiber *)((hi - sizeof(struct weft__fiber)) &
                                  ~(uintptr_t)(WEFT__CACHE_LINE - 1));
}

/* A pool of one stack, for the life of one fiber. */
static struct weft__stacks *own_pool_new(void)
{
    struct weft__stacks_options o = {.stack_bytes = OWN_STACK_BYTES, .chunk_slots = 1};
    struct weft__stacks *pool = weft__alloc(sizeof(*pool));

    if (pool && weft__stacks_init(pool, &o) < 0) {
        weft__free(pool);
        return NULL;
    }
    return pool;
}

static void own_pool_free(struct weft__stacks *pool)
{
    weft__stacks_done(pool);
    weft__free(pool);
}

/* Of the size that the task asked for, else the runtime's; NULL: there is none. */
static struct weft__stacks *pool_here(const struct weft__here *here)
{
    const struct weft__ext *ext = here->task ? here->task->ext : NULL;
    return ext && ext->stacks ? ext->stacks : here->stacks;
}

/* NULL: no stack. */
static struct weft__fiber *fiber_new(void (*body)(void *), void *frame)
{
    struct weft__here *here = weft__here();
    struct weft__stacks *lent = pool_here(here);
    struct weft__stacks *pool = lent ? lent : own_pool_new();
    struct weft__stack *stack;

    if (!pool) return NULL;
    if (weft__stack_get_by(here->magazine, pool, &stack) < 0) {
        if (!lent) own_pool_free(pool);
        return NULL;
    }
    struct weft__fiber *f = weft__fiber_at(stack->lo, weft__stack_bytes(stack));
    weft_assert((char *)f > stack->lo);
    weft__fiber_hooks_init(&f->hooks, stack->lo, weft__stack_bytes(stack));
    f->body = body;
    f->frame = frame;
    f->task = here->task;
    f->stack = stack;
    f->pool = pool;
    f->own_pool = !lent;
    if (!lent) weft__overflow_thread_watch(); /* a plain thread's */
    f->thrown = (struct weft__thrown){.caught = NULL};
    f->pin_blocks = 0;
    f->regions = NULL;
    f->running = false;
    f->polling = false;
    f->ended = false;
    weft__context_init(&f->self, f, fiber_main, f);
    return f;
}

/* By the poller, on its own stack. */
static void fiber_free(struct weft__fiber *f)
{
    struct weft__stacks *pool = f->pool;
    bool own_pool = f->own_pool;

    weft__lent_check(f->stack->lo, weft__stack_bytes(f->stack), f->task);
    weft__fiber_hooks_done(&f->hooks);
    weft__stack_put_by(weft__here()->magazine, pool, f->stack); /* *f goes with it */
    if (own_pool) own_pool_free(pool);
}

/* ---- poll ------------------------------------------------------------------------------------------ */

/* Run it to its next suspension or its end. A poll ends on the thread it began on, so `here` is
 * still ours afterwards. */
static inline __attribute__((always_inline)) weft_poll fiber_run(struct weft__fiber *f, weft_cx *cx)
{
    struct weft__here *here = weft__here();
    struct weft__fiber *outer_fiber = here->fiber;
    struct weft_task *outer_task = here->task;
    struct weft_cx *outer_cx = here->cx;

    weft_assert(!f->running);           /* polled by two at once */
    weft_assert(f->task == outer_task); /* polled by one task only, from its first poll on */
    f->running = true;
    here->fiber = f;
    here->cx = cx;
    struct weft__thrown outer_thrown = weft__thrown_swap(f->thrown);
    enter(f);
    f->thrown = weft__thrown_swap(outer_thrown);
    if (__builtin_expect(here->fiber != f, 0)) weft__orphan_returns(); /* it forked, and this is the child */
    here->fiber = outer_fiber;
    here->task = outer_task;
    here->cx = outer_cx;
    f->running = false;
    return f->ended ? WEFT_READY : WEFT_PENDING;
}

/* Queue it again, behind those who may give a stack back. */
static weft_poll retry_later(weft_cx *cx)
{
    static _Atomic uint32_t said;

    /* relaxed: nothing hangs on who speaks */
    if (exchange_relaxed(&said, 1) == 0)
        fputs(
            "weft: no stack for a fiber (out of memory, or of mappings); it starts when there is one\n",
            stderr);
    cx->yielded = true;
    return WEFT_PENDING;
}

static void go_body(void *arg)
{
    typedef uint64_t six(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    struct weft__go_frame *frame = arg;
    const uint64_t *a = frame->call.arg;

    /* The ABIs pass integers and pointers alike, and a callee does not see arguments that it does
     * not ask for; a result lies in the low bytes of the register that a uint64_t fills. */
    frame->ret = ((six *)frame->call.fn)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* A function leaves the rest of the register as it likes. */
static uint64_t low_bytes(uint64_t value, uint8_t bytes)
{
    return bytes >= 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* ---- no stack -------------------------------------------------------------------------------------- */

const uint64_t weft__no_stack;

/* The task whose frame this is, the frame itself and not one inside of it; NULL: none. */
static struct weft_task *task_of_frame(const void *frame)
{
    struct weft_task *task = weft__here()->task;
    if (!task) return NULL;
    const void *place = task + 1;
    bool boxed = task->site->frame_bytes > WEFT__FRAME_MAX;
    return frame == (boxed ? *(void *const *)place : place) ? task : NULL;
}

/* A result that is no signed integer cannot say it: then join does. */
static weft_poll never_runs(struct weft_task *task, void *frame)
{
    const struct weft_site *site = task->site;
    int64_t error = -ENOMEM; /* its low bytes, which come first, are the same error in a narrower type */

    if (site->ret_signed) {
        memcpy((char *)frame + site->ret_at, &error, site->ret_bytes);
    } else {
        store_relaxed(&task->wait, (uintptr_t)&weft__no_stack); /* relaxed: COMPLETE publishes it */
    }
    *(int32_t *)frame = AT_ENDED; /* weft__at, the first member of every frame */
    return WEFT_READY;
}

static weft_poll go_without_stack(struct weft__go_frame *frame, weft_cx *cx)
{
    struct weft_task *task = task_of_frame(frame);
    if (task) return never_runs(task, frame);
    if (!frame->call.ret_signed) return retry_later(cx);
    frame->ret = low_bytes((uint64_t)(int64_t)-ENOMEM, frame->call.ret_bytes);
    frame->weft__at = AT_ENDED;
    return WEFT_READY;
}

static weft_poll fiber_without_stack(void *frame, weft_cx *cx)
{
    struct weft_task *task = task_of_frame(frame);
    return task ? never_runs(task, frame) : retry_later(cx);
}

WEFT__JUMPS_BACK weft_poll weft__go_poll(void *arg, weft_cx *cx)
{
    struct weft__go_frame *frame = arg;

    weft_assert(frame->weft__at != AT_ENDED); /* READY is final */
    if (frame->weft__at == 0) {
        frame->weft__fiber = fiber_new(go_body, frame);
        if (!frame->weft__fiber) return go_without_stack(frame, cx);
        frame->weft__at = AT_STARTED;
    }
    if (fiber_run(frame->weft__fiber, cx) == WEFT_PENDING) return WEFT_PENDING;
    frame->ret = low_bytes(frame->ret, frame->call.ret_bytes);
    fiber_free(frame->weft__fiber);
    frame->weft__fiber = NULL;
    frame->weft__at = AT_ENDED;
    return WEFT_READY;
}

/* Starts the fiber of a frame that has only its first word, `at`. Returns whether it could. */
static bool start_numbered(int32_t *at, void (*body)(void *), void *frame)
{
    struct weft__fiber *f = fiber_new(body, frame);
    if (!f) return false;

    int32_t number = weft__fiberdir_add(f);
    if (number < 0) {
        fiber_free(f);
        return false;
    }
    *at = number * 2 + 1; /* odd: an even number would be the distance to an await record */
    return true;
}

WEFT__JUMPS_BACK weft_poll weft__fiber_poll(void (*body)(void *frame), void *frame, weft_cx *cx)
{
    int32_t *at = frame; /* weft__at, the first member of every frame */

    weft_assert(*at != AT_ENDED); /* READY is final */
    if (*at == 0 && !start_numbered(at, body, frame)) return fiber_without_stack(frame, cx);

    struct weft__fiber *f = weft__fiberdir_get(*at / 2);
    if (fiber_run(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    weft__fiberdir_remove(*at / 2);
    fiber_free(f);
    *at = AT_ENDED;
    return WEFT_READY;
}
