/* SPDX-License-Identifier: MIT
 *
 * The mutex on real runtimes: one at a time, in every mixture of fibers, stackless tasks and threads; cancelled at any
 * moment; overtaken for a millisecond and no longer; and what must not be done with it.
 */
#include "crew.h"
#include "death.h"
#include "storm.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/test.h>
#include <weft/weft.h>

static weft_mutex mutex = WEFT_MUTEX_INIT;
static uint64_t counter; /* guarded by it */
static bool inside;      /* the same */
static _Atomic uint32_t begun;

static void begin(void)
{
    weft_mutex_init(&mutex);
    counter = 0;
    inside = false;
    store_relaxed(&begun, 0);
}

static void enter(void)
{
    ASSERT(!inside);
    inside = true;
    counter++;
}

static void leave(void)
{
    ASSERT(inside);
    inside = false;
    ASSERT_OK(weft_unlock(&mutex));
}

/* ---- one function, two forms ------------------------------------------------------------------------ */

static int adds(uint32_t times, uint32_t pause)
{
    (void)fetch_add_relaxed(&begun, 1);
    for (uint32_t i = 0; i < times; i++) {
        int r = weft_lock(&mutex);
        if (r < 0) return r;
        enter();
        storm_pause_here(pause);
        leave();
    }
    return 0;
}

struct adding {
    WEFT_FRAME(int);
    uint32_t times;
    uint32_t pause;
    struct weft_lock lock;
    struct storm_pause paused;
};
static weft_async(adding)
{
    weft_begin;
    (void)fetch_add_relaxed(&begun, 1);
    while (f->times-- > 0) {
        weft_await(f->lock, weft_lock, &mutex);
        if (f->lock.ret < 0) weft_return(f->lock.ret);
        enter();
        weft_await(f->paused, storm_pause, f->pause);
        leave();
    }
    weft_return(0);
    weft_end;
}

static weft_task *adder(uint32_t times, uint32_t pause, bool stackless)
{
    return stackless ? weft_spawn(adding, times, pause) : weft_go(adds, times, pause);
}

static void *thread_adds(void *arg)
{
    (void)arg;
    ASSERT_OK(adds(200, 0));
    return NULL;
}

/* ---- behaviour -------------------------------------------------------------------------------------- */

TEST(mutex_on_a_thread_without_a_runtime)
{
    static weft_mutex m = WEFT_MUTEX_INIT;
    ASSERT_OK(weft_lock(&m));
    ASSERT_EQ(weft_try_lock(&m), -EBUSY);
    ASSERT_OK(weft_unlock(&m));
    ASSERT_OK(weft_try_lock(&m));
    ASSERT_OK(weft_unlock(&m));
    ASSERT_EQ(weft_lock(NULL), -EINVAL);
    ASSERT_EQ(weft_try_lock(NULL), -EINVAL);
    ASSERT_EQ(weft_unlock(NULL), -EINVAL);
    weft_mutex_done(&m);
    weft_mutex_done(NULL);
}

static void one_at_a_time(struct crew *crew)
{
    weft_task *task[40];
    pthread_t thread[3];
    uint32_t times = (uint32_t)test_scaled(2000);
    (void)crew;
    begin();
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_adds, NULL));
    for (uint32_t i = 0; i < 40; i++)
        task[i] = adder(i < 4 ? 100 : times, i < 4 ? 2 : 0, i % 2);
    for (uint32_t i = 0; i < 40; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    ASSERT_OK(weft_lock(&mutex));
    ASSERT_EQ(counter, 3 * 200 + 4 * 100 + 36 * (uint64_t)times);
    ASSERT_OK(weft_unlock(&mutex));
    weft_mutex_done(&mutex);
}

TEST(mutex_one_at_a_time)
{
    crew_each(one_at_a_time);
}

static weft_task *start(void *of, uint32_t i, bool stackless)
{
    uint64_t *random = of;
    (void)i;
    return adder(1, pool_random(random, 4), stackless);
}

static void cancelled_at_any_moment(struct crew *crew)
{
    uint64_t random = pool_seed(3);
    uint32_t count = (uint32_t)test_scaled(500);
    (void)crew;
    begin();
    struct storm_sum sum = storm(start, &random, count, NULL);
    ASSERT_EQ(sum.other, 0);
    ASSERT_OK(weft_try_lock(&mutex)); /* nobody has it any more */
    ASSERT_EQ(counter, sum.got);
    ASSERT_OK(weft_unlock(&mutex));
    weft_mutex_done(&mutex);
}

TEST(mutex_loses_nothing_when_cancelled)
{
    crew_each(cancelled_at_any_moment);
}

/* One has it, two wait, the first of them is cancelled after so many turns of others. */
static void every_moment(struct crew *crew)
{
    (void)crew;
    for (uint32_t held = 0; held < 5; held++) {
        for (uint32_t cancel = 0; cancel < 8; cancel++) {
            for (unsigned kinds = 0; kinds < 4; kinds++) {
                int first = 1, second = 1;
                begin();
                weft_task *holder = adder(1, held, kinds & 1);
                weft_task *a = adder(1, 1, kinds & 1);
                weft_task *b = adder(1, 1, kinds & 2);
                for (uint32_t k = 0; k < cancel; k++)
                    sched_yield();
                weft_cancel(a);
                ASSERT_OK(weft_join(holder, NULL));
                ASSERT_OK(weft_join(a, &first));
                ASSERT_OK(weft_join(b, &second));
                ASSERT(first == 0 || first == -ECANCELED);
                ASSERT_EQ(second, 0);
                ASSERT_EQ(counter, first == 0 ? 3 : 2);
                weft_mutex_done(&mutex);
            }
        }
    }
}

TEST(mutex_cancelled_at_every_moment)
{
    crew_each(every_moment);
}

/* In one poll: it is unlocked, so that the first who waits gets its turn, who is cancelled before it can look. On one worker it
 * is never otherwise. */
static int unlocks_and_cancels(bool stackless, int *first, int *second)
{
    ASSERT_OK(weft_lock(&mutex));
    weft_task *a = adder(1, 0, stackless);
    while (load_relaxed(&begun) < 1)
        (void)weft_yield();
    storm_pause_here(3); /* it waits */
    weft_task *b = adder(1, 0, !stackless);
    while (load_relaxed(&begun) < 2)
        (void)weft_yield();
    storm_pause_here(3);
    ASSERT_OK(weft_unlock(&mutex));
    weft_cancel(a);
    ASSERT_OK(weft_join(a, first));
    return weft_join(b, second);
}

static void cancelled_with_its_turn(struct crew *crew)
{
    for (unsigned kinds = 0; kinds < 2; kinds++) {
        int first = 1, second = 1;
        begin();
        ASSERT_OK(weft_join(weft_go(unlocks_and_cancels, kinds & 1, &first, &second), NULL));
        ASSERT(first == -ECANCELED || (first == 0 && crew->workers > 1));
        ASSERT_EQ(second, 0);
        weft_mutex_done(&mutex);
    }
}

TEST(mutex_cancelled_with_its_turn)
{
    crew_each(cancelled_with_its_turn);
}

/* A deadline bounds the wait, and then the lock is not taken. */
static int in_time(void)
{
    int r = 0;
    WEFT_TIMEOUT(weft_us(50)) r = weft_lock(&mutex);
    return r;
}

static void deadline(struct crew *crew)
{
    int r = 1;
    (void)crew;
    begin();
    ASSERT_OK(weft_lock(&mutex));
    ASSERT_OK(weft_join(weft_go(in_time), &r));
    ASSERT_EQ(r, -ETIME);
    ASSERT_OK(weft_unlock(&mutex));
    weft_mutex_done(&mutex);
}

TEST(mutex_waits_no_longer_than_its_deadline)
{
    crew_each(deadline);
}

/* ---- overtaken -------------------------------------------------------------------------------------- */

static _Atomic bool late_has_it;

static int late(void)
{
    int r = weft_lock(&mutex);
    if (r < 0) return r;
    store_relaxed(&late_has_it, true);
    (void)weft_yield();
    return weft_unlock(&mutex);
}

struct late_awaiting {
    WEFT_FRAME(int);
    struct weft_lock lock;
    struct weft_yield yield;
};
static weft_async(late_awaiting)
{
    weft_begin;
    weft_await(f->lock, weft_lock, &mutex);
    if (f->lock.ret < 0) weft_return(f->lock.ret);
    store_relaxed(&late_has_it, true);
    weft_await(f->yield, weft_yield);
    weft_return(weft_unlock(&mutex));
    weft_end;
}

/* Unlocks and takes it again at once, before the woken one looks. */
static void overtake(void)
{
    ASSERT_OK(weft_unlock(&mutex));
    ASSERT_OK(weft_try_lock(&mutex));
    storm_pause_here(3);
    ASSERT(!load_relaxed(&late_has_it));
}

/* On a clock that stands, with one worker: overtaken while less than a millisecond has passed; then, once more looked at in
 * vain, it gets the lock with the next unlock, and nobody else does. */
static int overtaken(bool stackless)
{
    int r = 1;
    begin();
    store_relaxed(&late_has_it, false);
    ASSERT_OK(weft_lock(&mutex));
    weft_task *task = stackless ? weft_spawn(late_awaiting) : weft_go(late);
    storm_pause_here(3); /* it waits */
    for (int i = 0; i < 5; i++)
        overtake();
    ASSERT_OK(weft_clock_advance(NULL, weft_us(999)));
    overtake();
    ASSERT_OK(weft_clock_advance(NULL, weft_us(1)));
    overtake(); /* it looks, and has had enough */
    ASSERT_OK(weft_unlock(&mutex));
    ASSERT_EQ(weft_try_lock(&mutex), -EBUSY);
    ASSERT_OK(weft_lock(&mutex)); /* behind it */
    ASSERT(load_relaxed(&late_has_it));
    ASSERT_OK(weft_unlock(&mutex));
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_try_lock(&mutex)); /* as before */
    ASSERT_OK(weft_unlock(&mutex));
    weft_mutex_done(&mutex);
    return 0;
}

static int fiber_overtaken(void)
{
    return overtaken(false);
}

static int stackless_overtaken(void)
{
    return overtaken(true);
}

TEST(mutex_is_handed_over_after_a_millisecond)
{
    ASSERT_OK(weft_test_run(fiber_overtaken));
    ASSERT_OK(weft_test_run(stackless_overtaken));
}

/* The starving one is cancelled: the lock is as it was. */
static int starving_cancelled(void)
{
    begin();
    store_relaxed(&late_has_it, false);
    ASSERT_OK(weft_lock(&mutex));
    weft_task *task = weft_go(late);
    storm_pause_here(3);
    ASSERT_OK(weft_clock_advance(NULL, weft_ms(2)));
    overtake();
    weft_cancel(task);
    ASSERT_OK(weft_join(task, NULL));
    ASSERT_OK(weft_unlock(&mutex));
    ASSERT_OK(weft_try_lock(&mutex));
    ASSERT_OK(weft_unlock(&mutex));
    weft_mutex_done(&mutex);
    return 0;
}

TEST(mutex_is_whole_when_the_starving_one_is_cancelled)
{
    ASSERT_OK(weft_test_run(starving_cancelled));
}

/* ---- one task, two functions ------------------------------------------------------------------------ */

static int both_in_one_task(void)
{
    struct adding one;
    struct adding two;
    return weft_all(weft_arm(one, adding, 20, 1), weft_arm(two, adding, 20, 2));
}

static void two_in_one_task(struct crew *crew)
{
    int r = 1;
    (void)crew;
    begin();
    ASSERT_OK(weft_join(weft_go(both_in_one_task), &r));
    ASSERT_OK(r);
    ASSERT_EQ(counter, 40);
    weft_mutex_done(&mutex);
}

TEST(mutex_between_two_functions_of_one_task)
{
    crew_each(two_in_one_task);
}

/* ---- mistakes --------------------------------------------------------------------------------------- */

static int unlocks(void)
{
    return weft_unlock(&mutex);
}

static int locks(void)
{
    return weft_lock(&mutex);
}

static int locks_twice(void)
{
    int r = weft_lock(&mutex);
    if (r == 0) r = weft_lock(&mutex);
    return r;
}

struct mistake {
    int (*make)(void);
    int error;
    bool held; /* by the test's thread */
    const char *told;
};

static const struct mistake mistakes[] = {
    {unlocks, -EPERM, false, "a mutex is unlocked by task 'unlocks' (spawned at "},
    {unlocks, -EPERM, true, "it is held by a thread"},
    {locks_twice, -EDEADLK, false,
     "a mutex is locked once more by task 'locks_twice' (spawned at "},
};

static void make_it(void *arg)
{
    const struct mistake *mistake = arg;
    struct crew crew;
    int r = 1;
    begin();
    crew_start(&crew, 1);
    if (mistake->held && weft_lock(&mutex) < 0) _exit(3);
    if (mistake->make == unlocks) (void)weft_join(weft_go(unlocks), &r);
    if (mistake->make == locks_twice) (void)weft_join(weft_go(locks_twice), &r);
    _exit(r == mistake->error ? 9 : 4);
}

TEST(mutex_mistakes_are_named)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct death d = death_of(make_it, (void *)(uintptr_t)&mistakes[i]);
#ifdef WEFT_DEBUG
        bool right = d.signal == SIGABRT;
#else
        bool right = d.signal == 0 && d.code == 9;
#endif
        if (!right || !strstr(d.said, mistakes[i].told))
            ck_abort_msg("%zu: signal %d, code %d, said: %s", i, d.signal, d.code, d.said);
    }
}

/* A task ends with the lock; whoever comes then is told whose it is. */
static void ends_with_it(void *arg)
{
    struct crew crew;
    (void)arg;
    begin();
    crew_start(&crew, 1);
    if (weft_join(weft_go(locks), NULL) < 0) _exit(3);
    weft_task *task = weft_go(in_time);
    int r = 1;
    if (weft_join(task, &r) < 0 || r != -ETIME) _exit(4);
    _exit(9);
}

TEST(mutex_of_a_task_that_has_ended_is_reported)
{
    struct death d = death_of(ends_with_it, NULL);
    if (d.code != 9 || !strstr(d.said, "is still held by ") || !strstr(d.said, ", which has ended"))
        ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
#ifdef WEFT_DEBUG /* the block is not used again so soon */
    ASSERT(strstr(d.said, "task 'locks' (spawned at "));
#endif
}

static void ends_it_locked(void *arg)
{
    (void)arg;
    begin();
    if (weft_try_lock(&mutex) < 0) _exit(3);
    weft_mutex_done(&mutex);
}

TEST(mutex_that_is_locked_is_not_ended)
{
    struct death d = death_of(ends_it_locked, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "a mutex that is locked is ended by a thread"));
}
