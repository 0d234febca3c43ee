/* SPDX-License-Identifier: MIT
 *
 * Fibers, polled by hand: no scheduler, only here->task and here->stacks filled in as it would.
 */
#include "task/fiber.h"

#include "base/fault.h"
#include "task/call.h"
#include "task/fiberdir.h"
#include "task/here.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unwind.h>

#define STACK_BYTES ((size_t)64 * 1024)

static struct weft__stacks pool;

static void pool_begin(void)
{
    struct weft__stacks_options o = {.stack_bytes = STACK_BYTES};
    ASSERT_OK(weft__stacks_init(&pool, &o));
    weft__here()->stacks = &pool;
}

static void pool_end(void)
{
    weft__stacks_check(&pool);
    ASSERT_EQ(pool.in_use_count, 0);
    weft__stacks_done(&pool);
    weft__here()->stacks = NULL;
}

#define CALL(fn_, bytes_, signed_, ...)                                                            \
    ((struct weft__go_frame){.call = {.fn = (void (*)(void))(fn_),                                 \
                                      .arg = {__VA_ARGS__},                                        \
                                      .ret_bytes = (bytes_),                                       \
                                      .ret_signed = (signed_)}})

/* Poll to the end; gives how many polls that took. */
static unsigned drive(struct weft__go_frame *frame)
{
    struct weft_cx cx = {.budget = 128};
    unsigned polls = 1;
    while (weft__go_poll(frame, &cx) == WEFT_PENDING)
        polls++;
    return polls;
}

/* ---- arguments and results ---- */

static int64_t weigh(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f)
{
    weft__fiber_suspend();
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

TEST(fiber_passes_six_arguments_and_a_result)
{
    pool_begin();
    struct weft__go_frame frame = CALL(weigh, 8, 1, 1, 2, 3, 4, 5, 6);
    ASSERT_EQ(drive(&frame), 2);
    ASSERT_EQ(frame.ret, 654321);
    pool_end();
}

static signed char minus_two(void)
{
    return -2;
}

static const char *echo(const char *text)
{
    return text;
}

static void nothing(void)
{
}

/* What lies above the result's bytes is zero, whatever the function left in the register. */
TEST(fiber_keeps_the_low_bytes_of_the_result)
{
    static const char text[] = "here";

    pool_begin();
    struct weft__go_frame small = CALL(minus_two, 1, 1, 0);
    struct weft__go_frame pointer = CALL(echo, 8, 0, (uintptr_t)text);
    struct weft__go_frame none = CALL(nothing, 0, 0, 0);
    ASSERT_EQ(drive(&small), 1);
    ASSERT_EQ(drive(&pointer), 1);
    ASSERT_EQ(drive(&none), 1);
    ASSERT_EQ(small.ret, 0xfe);
    ASSERT_PTR((void *)(uintptr_t)pointer.ret, text);
    ASSERT_EQ(none.ret, 0);
    pool_end();
}

/* ---- what a suspension keeps ---- */

/* Values of every kind stay what they were: integers and doubles in registers, an array. */
__attribute__((noinline)) static int hold(unsigned depth, double x)
{
    long longs[8];
    double sum = x;

    for (unsigned i = 0; i < 8; i++)
        longs[i] = (long)depth * 8 + (long)i;
    if (depth > 0 && hold(depth - 1, x + 0.5) != 0) return 1;
    weft__fiber_suspend();
    for (unsigned i = 0; i < 8; i++) {
        if (longs[i] != (long)depth * 8 + (long)i) return 1;
        sum += 0.25;
    }
    return sum == x + 2.0 ? 0 : 1;
}

static int hold_deep(void)
{
    return hold(20, 1.0);
}

TEST(fiber_keeps_its_frames_across_suspensions)
{
    pool_begin();
    struct weft__go_frame a = CALL(hold_deep, 4, 1, 0);
    struct weft__go_frame b = CALL(hold_deep, 4, 1, 0);
    struct weft_cx cx = {.budget = 128};
    weft_poll pa;
    weft_poll pb;
    do { /* in turns, so that each finds the other's registers */
        pa = weft__go_poll(&a, &cx);
        pb = weft__go_poll(&b, &cx);
        ASSERT_EQ(pa, pb);
    } while (pa == WEFT_PENDING);
    ASSERT_EQ((int)a.ret, 0);
    ASSERT_EQ((int)b.ret, 0);
    pool_end();
}

TEST(fiber_has_its_stack_from_first_poll_to_end)
{
    pool_begin();
    struct weft_cx cx = {.budget = 128};
    struct weft__go_frame frame = CALL(weigh, 8, 1, 0);
    ASSERT_EQ(pool.in_use_count, 0);
    ASSERT_EQ(weft__go_poll(&frame, &cx), WEFT_PENDING);
    ASSERT_EQ(pool.in_use_count, 1);
    ASSERT_EQ(weft__go_poll(&frame, &cx), WEFT_READY);
    ASSERT_EQ(pool.in_use_count, 0);
    ASSERT_NULL(frame.weft__fiber);
    pool_end();
}

/* ---- here ---- */

static struct weft_task outer_task;
static struct weft_cx outer_cx;

struct witness {
    struct weft__fiber *fiber;
    struct weft_cx *cx;
    struct weft_task *task;
};

static void look(struct witness *into)
{
    struct weft__here *here = weft__here();
    *into = (struct witness){.fiber = here->fiber, .cx = here->cx, .task = here->task};
}

static void look_twice(struct witness *w)
{
    look(&w[0]);
    weft__fiber_suspend();
    look(&w[1]);
}

TEST(fiber_sees_the_cx_of_each_poll_and_leaves_here_as_it_was)
{
    struct witness w[2];
    struct weft_cx first = {.budget = 1};
    struct weft_cx second = {.budget = 2};
    struct weft__go_frame frame = CALL(look_twice, 0, 0, (uintptr_t)w);
    struct weft__here *here = weft__here();

    pool_begin();
    here->task = &outer_task;
    here->cx = &outer_cx;
    ASSERT_EQ(weft__go_poll(&frame, &first), WEFT_PENDING);
    ASSERT_PTR(here->task, &outer_task);
    ASSERT_PTR(here->cx, &outer_cx);
    ASSERT_NULL(here->fiber);
    ASSERT_EQ(weft__go_poll(&frame, &second), WEFT_READY);
    ASSERT_PTR(here->cx, &outer_cx);
    ASSERT_NULL(here->fiber);
    ASSERT_PTR(w[0].cx, &first);
    ASSERT_PTR(w[1].cx, &second);
    ASSERT_PTR(w[0].task, &outer_task);
    ASSERT_PTR(w[0].fiber, w[1].fiber);
    ASSERT(w[0].fiber != NULL);
    here->task = NULL;
    here->cx = NULL;
    pool_end();
}

/* ---- fiber in fiber ---- */

static int nested(int depth)
{
    struct weft__fiber *self = weft__here()->fiber;
    weft__fiber_suspend();
    if (depth == 0) return 1;

    struct weft__go_frame inner = CALL(nested, 4, 1, (uint64_t)(depth - 1));
    weft__run(weft__go_poll, &inner);
    return weft__here()->fiber == self ? (int)inner.ret + 1 : -1000;
}

/* Each suspension of the innermost suspends all around it: 20 fibers deep, one poll reaches the
 * bottom through 20 stacks and comes back. */
TEST(fiber_polls_fibers_polling_fibers)
{
    pool_begin();
    struct weft__go_frame frame = CALL(nested, 4, 1, 20);
    ASSERT_EQ(drive(&frame), 22);
    ASSERT_EQ((int)frame.ret, 21);
    pool_end();
}

/* ---- frames with four bytes ---- */

struct small_frame {
    int32_t weft__at;
    int ret;
};

static void small_body(void *arg)
{
    struct small_frame *frame = arg;
    for (int i = 0; i < 3; i++) {
        weft__fiber_suspend();
        frame->ret++;
    }
}

static weft_poll small_poll(void *frame, weft_cx *cx)
{
    return weft__fiber_poll(small_body, frame, cx);
}

/* More of them than the directory's first block has places, all alive at once. */
TEST(fiber_frames_of_four_bytes_find_their_fibers)
{
    enum { COUNT = 200 };
    static struct small_frame frames[COUNT];
    struct weft_cx cx = {.budget = 128};

    pool_begin();
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            ASSERT_EQ(small_poll(&frames[i], &cx), round < 3 ? WEFT_PENDING : WEFT_READY);
            if (round < 3) ASSERT(frames[i].weft__at > 0);
        }
    }
    for (unsigned i = 0; i < COUNT; i++)
        ASSERT_EQ(frames[i].ret, 3);
    pool_end();
}

TEST(fiberdir_numbers_are_distinct_and_used_again)
{
    enum { COUNT = 64 + 128 + 256 + 1 }; /* one into the fourth block */
    static struct weft__fiber fibers[COUNT];
    static int32_t numbers[COUNT];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            numbers[i] = weft__fiberdir_add(&fibers[i]);
            ASSERT(numbers[i] > 0);
        }
        for (unsigned i = 0; i < COUNT; i++)
            ASSERT_PTR(weft__fiberdir_get(numbers[i]), &fibers[i]);
        for (unsigned i = 1; i < COUNT; i += 2)
            weft__fiberdir_remove(numbers[i]);
        int32_t again = weft__fiberdir_add(&fibers[0]);
        ASSERT_LE(again, COUNT);
        weft__fiberdir_remove(again);
        for (unsigned i = 0; i < COUNT; i += 2)
            weft__fiberdir_remove(numbers[i]);
    }
}

/* ---- no pool, no stack ---- */

TEST(fiber_without_a_pool_brings_its_own)
{
    struct weft__go_frame frame = CALL(weigh, 8, 1, 7);
    ASSERT_NULL(weft__here()->stacks);
    ASSERT_EQ(drive(&frame), 2);
    ASSERT_EQ(frame.ret, 7);
}

#if defined(WEFT_FAULTS)

static void no_memory_from(uint32_t first, uint32_t count)
{
    weft__fault_arm(WEFT__FAULT_MMAP, first, count, -ENOMEM);
}

static int one(void)
{
    return 1;
}

TEST(fiber_without_a_stack_answers_enomem_as_a_signed_int)
{
    struct weft_cx cx = {.budget = 128};
    struct weft__go_frame narrow = CALL(one, 4, 1, 0);
    struct weft__go_frame wide = CALL(one, 8, 1, 0);

    pool_begin();
    no_memory_from(1, 2);
    ASSERT_EQ(weft__go_poll(&narrow, &cx), WEFT_READY);
    ASSERT_EQ(weft__go_poll(&wide, &cx), WEFT_READY);
    weft__fault_reset();
    ASSERT_EQ((int32_t)narrow.ret, -ENOMEM);
    ASSERT_EQ((int64_t)wide.ret, -ENOMEM);
    ASSERT(!cx.yielded);
    pool_end();
}

/* A result that cannot say so: the function runs late, rather than never. */
TEST(fiber_without_a_stack_is_tried_again_where_no_result_means_failure)
{
    static const char text[] = "late";
    struct weft_cx cx = {.budget = 128};
    struct weft__go_frame pointer = CALL(echo, 8, 0, (uintptr_t)text);
    struct small_frame small = {0};

    pool_begin();
    no_memory_from(1, 2);
    ASSERT_EQ(weft__go_poll(&pointer, &cx), WEFT_PENDING);
    ASSERT(cx.yielded);
    cx.yielded = false;
    ASSERT_EQ(small_poll(&small, &cx), WEFT_PENDING);
    ASSERT(cx.yielded);
    weft__fault_reset();
    cx.yielded = false;
    ASSERT_EQ(weft__go_poll(&pointer, &cx), WEFT_READY);
    ASSERT_PTR((void *)(uintptr_t)pointer.ret, text);
    while (small_poll(&small, &cx) == WEFT_PENDING)
        ASSERT(!cx.yielded);
    ASSERT_EQ(small.ret, 3);
    pool_end();
}

#endif

/* ---- unwinding ---- */

struct walked {
    unsigned frames;
    uintptr_t last; /* the outermost frame's place in the code; the end itself is 0 */
};

static _Unwind_Reason_Code see_frame(struct _Unwind_Context *context, void *arg)
{
    struct walked *w = arg;
    uintptr_t at = _Unwind_GetIP(context);
    if (at != 0) w->last = at;
    return ++w->frames < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

static int walk(struct walked *w)
{
    weft__fiber_suspend();
    return (int)_Unwind_Backtrace(see_frame, w);
}

/* The walk ends at the fiber's first instructions, and takes nothing behind them for a caller. */
TEST(fiber_unwinding_ends_at_its_bottom)
{
    uintptr_t entry = (uintptr_t)weft__context_entry;
    struct walked w = {0};

    pool_begin();
    struct weft__go_frame frame = CALL(walk, 4, 1, (uintptr_t)&w);
    ASSERT_EQ(drive(&frame), 2);
    ASSERT_EQ((int)frame.ret, _URC_END_OF_STACK);
    ASSERT_LE(w.frames, 8);
    ASSERT(w.last > entry && w.last < entry + 32);
    pool_end();
}

/* ---- what belongs to the thread ---- */

struct move {
    struct weft__go_frame frame;
    struct weft__here *here[2];
    int error[2];
    pthread_t thread[2];
};

/* errno through a door that the compiler cannot see behind, as weft__here() is. */
WEFT__OPAQUE static int *errno_here(void)
{
    int *p = &errno;
    __asm__ volatile("" : "+r"(p));
    return p;
}

WEFT__OPAQUE static pthread_t thread_here(void)
{
    pthread_t self = pthread_self(); /* declared const: a compiler may keep it across the suspension, as errno's address */
    __asm__ volatile("" : "+r"(self));
    return self;
}

static void moving(struct move *m)
{
    for (unsigned i = 0; i < 2; i++) {
        m->here[i] = weft__here();
        m->error[i] = *errno_here();
        m->thread[i] = thread_here();
        *errno_here() = 100 + (int)i;
        if (i == 0) weft__fiber_suspend();
    }
}

static void *finish_move(void *arg)
{
    struct move *m = arg;
    struct weft_cx cx = {.budget = 128};

    errno = 7;
    ASSERT_EQ(weft__go_poll(&m->frame, &cx), WEFT_READY);
    ASSERT_EQ(errno, 101);
    ASSERT_PTR(m->here[1], weft__here());
    return NULL;
}

/* Begun on one thread and ended on another, a fiber finds the other's record and the other's errno;
 * its stack goes home to the pool it came from, though the other thread has none. */
TEST(fiber_that_moves_finds_the_new_threads_record_and_errno)
{
    struct move m = {.frame = CALL(moving, 0, 0, 0)};
    struct weft_cx cx = {.budget = 128};
    pthread_t other;

    pool_begin();
    m.frame.call.arg[0] = (uintptr_t)&m;
    errno = 5;
    ASSERT_EQ(weft__go_poll(&m.frame, &cx), WEFT_PENDING);
    ASSERT_EQ(errno, 100);
    ASSERT_OK(pthread_create(&other, NULL, finish_move, &m));
    ASSERT_OK(pthread_join(other, NULL));
    ASSERT_PTR(m.here[0], weft__here());
    ASSERT(m.here[0] != m.here[1]);
    ASSERT_EQ(m.error[0], 5);
    ASSERT_EQ(m.error[1], 7);
    ASSERT(!pthread_equal(m.thread[0], m.thread[1]));
    ASSERT_EQ(errno, 100);
    pool_end();
}

/* ---- mistakes ---- */

TEST_WITH(fiber_suspend_off_a_fiber_dies, .signal = SIGABRT)
{
    weft__fiber_suspend();
}

TEST_WITH(fiber_polled_after_its_end_dies, .signal = SIGABRT)
{
    pool_begin();
    struct weft__go_frame frame = CALL(nothing, 0, 0, 0);
    drive(&frame);
    drive(&frame);
}

static void poll_self(struct weft__go_frame *frame)
{
    drive(frame);
}

TEST_WITH(fiber_that_polls_itself_dies, .signal = SIGABRT)
{
    pool_begin();
    struct weft__go_frame frame = CALL(poll_self, 0, 0, 0);
    frame.call.arg[0] = (uintptr_t)&frame;
    drive(&frame);
}
