/* SPDX-License-Identifier: MIT
 *
 * Call forms: on a fiber, on a plain thread, and refused inside a poll.
 */
#include "task/call.h"

#include "base/alloc.h"
#include "base/fault.h"
#include "caller.h"
#include "death.h"
#include "task/fiber.h"
#include "task/here.h"
#include "task/waker.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>

/* ---- a future that is woken by hand ---- */

struct bell {
    int32_t weft__at;
    int ret;
    int polls;
    int pendings; /* how often it answers PENDING before READY */
    bool yields;  /* and asks to be polled again */
    bool spends_budget;
    struct weft_waker waker;
    void (*on_poll)(struct bell *bell);
    _Atomic uint32_t may_ring; /* polls that others may answer with a wake */
};

static weft_poll bell_poll(void *arg, weft_cx *cx)
{
    struct bell *bell = arg;

    ASSERT_PTR(weft__here()->cx, cx);
    bell->polls++;
    if (bell->spends_budget) {
        ASSERT_EQ(cx->budget, 128);
        cx->budget = 0;
    }
    if (bell->pendings-- == 0) {
        bell->ret = 42;
        return WEFT_READY;
    }
    bell->waker = cx->waker;
    cx->yielded = bell->yields;
    if (bell->on_poll) bell->on_poll(bell);
    return WEFT_PENDING;
}

static void no_push(void *sched, struct weft_task *task)
{
    (void)sched;
    (void)task;
    ck_abort_msg("a plain thread is no task");
}

static const struct weft__sched_ops no_sched_ops = {.push = no_push};
static const struct weft__sched no_sched = {.ops = &no_sched_ops};

static void ring(struct bell *bell)
{
    weft__waker_wake(bell->waker, &no_sched);
}

/* ---- on a fiber ---- */

static int fiber_call(struct bell *bell)
{
    weft__run(bell_poll, bell);
    return bell->ret + 1;
}

TEST(call_on_a_fiber_suspends_it_at_each_pending)
{
    struct bell bell = {.pendings = 3};
    struct weft__go_frame frame = {
        .call = {.fn = (void (*)(void))fiber_call, .arg = {(uintptr_t)&bell}, .ret_bytes = 4}};
    struct weft_cx cx = {.waker = {16}, .why = -ECANCELED, .budget = 5};

    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(weft__go_poll(&frame, &cx), WEFT_PENDING);
        ASSERT_EQ(bell.polls, i + 1);
        ASSERT_EQ(bell.waker.word, 16); /* the poller's cx, not one of our own */
    }
    ASSERT_EQ(weft__go_poll(&frame, &cx), WEFT_READY);
    ASSERT_EQ(frame.ret, 43);
}

/* ---- on a plain thread ---- */

TEST(call_on_a_thread_that_is_ready_at_once_sleeps_not)
{
    struct bell bell = {.pendings = 0};
    weft__run(bell_poll, &bell);
    ASSERT_EQ(bell.ret, 42);
    ASSERT_EQ(bell.polls, 1);
    ASSERT_NULL(weft__here()->cx);
}

TEST(call_on_a_thread_refills_the_budget_each_poll)
{
    struct bell bell = {.pendings = 3, .spends_budget = true, .on_poll = ring};
    weft__run(bell_poll, &bell);
    ASSERT_EQ(bell.polls, 4);
}

TEST(call_on_a_thread_polls_a_yielder_again)
{
    struct bell bell = {.pendings = 3, .yields = true};
    weft__run(bell_poll, &bell);
    ASSERT_EQ(bell.polls, 4);
}

static void let_ring(struct bell *bell)
{
    store_release(&bell->may_ring, (uint32_t)bell->polls); /* publishes the waker to the ringer */
}

static void *ringer(void *arg)
{
    struct bell *bell = arg;
    for (uint32_t i = 1; i <= 100; i++) {
        while (load_acquire(&bell->may_ring) < i)
            sched_yield();
        ring(bell);
    }
    return NULL;
}

/* Each poll is answered by one wake of another thread, whether the sleeper sleeps yet or not. */
TEST(call_on_a_thread_is_woken_by_another)
{
    struct bell bell = {.pendings = 100, .on_poll = let_ring};
    pthread_t thread;

    ASSERT_OK(pthread_create(&thread, NULL, ringer, &bell));
    weft__run(bell_poll, &bell);
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(bell.ret, 42);
}

static struct weft_waker kept;

/* Somebody claims twice: one brings the next poll, the other is still under way at the end. */
static void claim_and_keep(struct bell *bell)
{
    ring(bell);
    kept = weft__waker_claim(bell->waker);
}

/* The call has returned, its frames are gone, and the wake still comes. */
TEST(call_on_a_thread_survives_a_late_delivery)
{
    struct bell bell = {.pendings = 1, .on_poll = claim_and_keep};
    weft__run(bell_poll, &bell);
    ASSERT_EQ(bell.ret, 42);
    weft__waker_push(kept, &no_sched);
}

#if defined(WEFT_DEBUG) /* else nobody counts */

/* A thread's waits take nothing from the heap but its first one, whether somebody comes late or not. */
TEST(call_on_a_thread_keeps_its_waker_for_the_next)
{
    struct bell late = {.pendings = 1, .on_poll = claim_and_keep};
    int64_t before = weft__alloc_live();
    weft__run(bell_poll, &late);
    ASSERT_EQ(weft__alloc_live(), before + 1); /* kept; but somebody has its waker still: the next call leaves it to them */
    for (int i = 0; i < 3; i++) {
        struct bell bell = {.pendings = 2, .on_poll = ring};
        weft__run(bell_poll, &bell);
        ASSERT_EQ(bell.ret, 42);
        ASSERT_EQ(weft__alloc_live(), before + 2);
    }
    weft__waker_push(kept, &no_sched);
    ASSERT_EQ(weft__alloc_live(), before + 1);
    weft__call_forget();
    ASSERT_EQ(weft__alloc_live(), before);
}

static void *call_once(void *arg)
{
    struct bell bell = {.pendings = 1, .on_poll = ring};
    (void)arg;
    weft__run(bell_poll, &bell);
    return NULL;
}

/* Also where it calls, by another's destructor, behind the end of what was kept. */
static void call_at_the_end(void *value)
{
    (void)call_once(value);
}

static void *calls_with_a_key(void *arg)
{
    const pthread_key_t *key = arg;
    (void)pthread_setspecific(*key, arg);
    return call_once(NULL);
}

TEST(call_of_a_thread_that_ends_leaves_nothing)
{
    pthread_t thread;
    pthread_key_t key;
    int64_t before = weft__alloc_live();
    ASSERT_OK(pthread_create(&thread, NULL, call_once, NULL));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(weft__alloc_live(), before);

    ASSERT_OK(pthread_key_create(&key, call_at_the_end));
    ASSERT_OK(pthread_create(&thread, NULL, calls_with_a_key, &key));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(weft__alloc_live(), before);
    ASSERT_OK(pthread_key_delete(key));
}

#endif

#if defined(WEFT_FAULTS)

static void *deliver_kept(void *arg)
{
    (void)arg;
    weft__waker_push(kept, &no_sched);
    return NULL;
}

static pthread_t deliverer;

static void claim_and_deliver_elsewhere(struct bell *bell)
{
    claim_and_keep(bell);
    ASSERT_OK(pthread_create(&deliverer, NULL, deliver_kept, NULL));
}

/* Without memory the waker lies on the stack, and the call waits for its last user. */
TEST(call_on_a_thread_without_memory_waits_for_late_deliveries)
{
    struct bell bell = {.pendings = 1, .on_poll = claim_and_deliver_elsewhere};

    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    weft__run(bell_poll, &bell);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_ALLOC), 1);
    weft__fault_reset();
    ASSERT_EQ(bell.ret, 42);
    ASSERT_OK(pthread_join(deliverer, NULL));
}

#endif

static int suspend_twice(void)
{
    struct bell bell = {.pendings = 2, .yields = true};
    weft__run(bell_poll, &bell);
    return bell.ret;
}

/* A fiber's frame polled by a thread: a pool of its own, and the thread's waker in its cx. */
TEST(call_on_a_thread_polls_a_fiber)
{
    struct weft__go_frame frame = {.call = {.fn = (void (*)(void))suspend_twice, .ret_bytes = 4}};
    weft__run(weft__go_poll, &frame);
    ASSERT_EQ(frame.ret, 42);
}

/* ---- inside a poll ---- */

static const struct weft_site site = {.name = "stackless", .file = "frame.c", .line = 17};
static struct weft_task task = {.site = &site};

static weft_poll never_polled(void *frame, weft_cx *cx)
{
    (void)frame;
    (void)cx;
    ck_abort_msg("a refused frame is not polled");
    return WEFT_READY;
}

/* A helper, three calls below a stackless poll. */
CALLER static weft_poll calling_poll(void *frame, weft_cx *cx)
{
    (void)cx;
    for (volatile int i = 0; i < 3; i++) /* one place that calls: not to be unrolled into three */
        *(int *)frame = weft__run(never_polled, NULL);
    return WEFT_READY;
}

static void poll_in_a_task(void *arg)
{
    struct weft_cx cx = {.budget = 128};
    weft__here()->task = &task;
    (void)calling_poll(arg, &cx);
    if (*(int *)arg != -EDEADLK) _exit(1);
}

static void poll_on_a_thread(void *arg)
{
    weft__run(calling_poll, arg);
    if (*(int *)arg != -EDEADLK) _exit(1);
}

static void run_calling_poll(void *arg)
{
    weft__run(calling_poll, arg);
}

static void poll_on_a_fiber(void *arg)
{
    struct weft__go_frame frame = {
        .call = {.fn = (void (*)(void))run_calling_poll, .arg = {(uintptr_t)arg}}};
    struct weft_cx cx = {.budget = 128};
    weft__here()->task = &task;
    if (weft__go_poll(&frame, &cx) != WEFT_READY) _exit(2);
    if (*(int *)arg != -EDEADLK) _exit(1);
}

static unsigned lines_with(const char *text, const char *word)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

/* Debug builds abort at the first; others refuse each, and say so once for the place, which is the caller's own and not one of the frames below. */
static void assert_refused(void (*body)(void *), const char *who)
{
    int answer = 0;
    struct death d = death_of(body, &answer);

    ASSERT(strstr(d.said, who));
    ASSERT_EQ(lines_with(d.said, "waits inside a poll, called from "), 1);
    ASSERT(caller_is_told(d.said));
#if defined(WEFT_DEBUG)
    ASSERT_EQ(d.signal, SIGABRT);
#else
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
#endif
}

TEST(call_inside_a_tasks_poll_is_refused)
{
    assert_refused(poll_in_a_task, "weft: task 'stackless' (spawned at frame.c:17) ");
}

TEST(call_inside_a_poll_is_refused_by_the_name_that_the_task_was_given)
{
    struct weft__ext ext = {.name = "own"};
    task.ext = &ext;
    assert_refused(poll_in_a_task, "weft: task 'own' (spawned at frame.c:17) ");
    task.ext = NULL;
}

TEST(call_inside_a_threads_poll_is_refused)
{
    assert_refused(poll_on_a_thread, "weft: a thread ");
}

TEST(call_inside_a_poll_on_a_fibers_stack_is_refused)
{
    assert_refused(poll_on_a_fiber, "weft: task 'stackless' (spawned at frame.c:17) ");
}

/* A fiber beneath a poll has a stack of its own to wait on. */
static weft_poll polls_a_fiber(void *frame, weft_cx *cx)
{
    return weft__go_poll(frame, cx);
}

TEST(call_on_a_fiber_beneath_a_poll_is_fine)
{
    struct weft__go_frame frame = {.call = {.fn = (void (*)(void))suspend_twice, .ret_bytes = 4}};
    struct weft_cx cx = {.budget = 128};

    weft__here()->task = &task;
    while (polls_a_fiber(&frame, &cx) == WEFT_PENDING)
        ASSERT_NULL(weft__here()->fiber);
    weft__here()->task = NULL;
    ASSERT_EQ(frame.ret, 42);
}
