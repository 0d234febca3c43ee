/* SPDX-License-Identifier: MIT
 *
 * The condition variable on real runtimes: a queue of one between those who put and those who take; cancelled waits hold the
 * mutex and pass their wake-up on.
 */
#include "crew.h"
#include "death.h"
#include "storm.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static weft_mutex mutex = WEFT_MUTEX_INIT;
static weft_cond changed = WEFT_COND_INIT;
static uint32_t there; /* guarded by the mutex */
static uint32_t taken; /* the same */
static _Atomic uint32_t waiting;

static void begin(void)
{
    weft_mutex_init(&mutex);
    weft_cond_init(&changed);
    there = 0;
    taken = 0;
    store_relaxed(&waiting, 0);
}

static void end(void)
{
    weft_cond_done(&changed);
    weft_mutex_done(&mutex);
}

static int takes(void)
{
    int r = weft_lock(&mutex);
    if (r < 0) return r;
    (void)fetch_add_relaxed(&waiting, 1);
    while (r == 0 && there == 0)
        r = weft_cond_wait(&changed, &mutex);
    if (r == 0) {
        there--;
        taken++;
    }
    int unlocked = weft_unlock(&mutex); /* it is ours, whatever happened */
    return unlocked < 0 ? unlocked : r;
}

struct taking {
    WEFT_FRAME(int);
    struct weft_lock lock;
    struct weft_cond_wait wait;
};
static weft_async(taking)
{
    weft_begin;
    weft_await(f->lock, weft_lock, &mutex);
    if (f->lock.ret < 0) weft_return(f->lock.ret);
    (void)fetch_add_relaxed(&waiting, 1);
    f->wait.ret = 0;
    while (f->wait.ret == 0 && there == 0)
        weft_await(f->wait, weft_cond_wait, &changed, &mutex);
    if (f->wait.ret == 0) {
        there--;
        taken++;
    }
    f->ret = weft_unlock(&mutex);
    if (f->ret == 0) f->ret = f->wait.ret;
    weft_end;
}

static weft_task *taker(bool stackless)
{
    return stackless ? weft_spawn(taking) : weft_go(takes);
}

static void put(uint32_t count)
{
    ASSERT_OK(weft_lock(&mutex));
    there += count;
    ASSERT_OK(weft_unlock(&mutex));
}

/* One thing is put for each of two takers, of whom one is cancelled at any moment: what it leaves, the other gets. */
static void passed_on(struct crew *crew)
{
    uint64_t random = pool_seed(5);
    uint32_t rounds = (uint32_t)test_scaled(300);
    (void)crew;
    for (uint32_t k = 0; k < rounds; k++) {
        int first = 1, second = 1;
        begin();
        weft_task *a = taker(pool_random(&random, 2));
        weft_task *b = taker(pool_random(&random, 2));
        storm_linger(&random);
        put(1);
        weft_cond_wake_one(&changed);
        if (pool_random(&random, 2)) storm_linger(&random);
        weft_cancel(a);
        ASSERT_OK(weft_join(a, &first));
        if (first == 0) { /* then the other waits for its own */
            put(1);
            weft_cond_wake_one(&changed);
        }
        ASSERT_OK(weft_join(b, &second));
        ASSERT_OK(second);
        ASSERT(first == 0 || first == -ECANCELED);
        ASSERT_EQ(taken, first == 0 ? 2 : 1);
        end();
    }
}

TEST(cond_passes_a_cancelled_wake_up_on)
{
    crew_each(passed_on);
}

static void all(struct crew *crew)
{
    weft_task *task[100];
    (void)crew;
    begin();
    for (uint32_t i = 0; i < 100; i++)
        task[i] = taker(i % 2);
    CREW_UNTIL(load_relaxed(&waiting) == 100);
    put(100);
    (void)weft_cond_wake_all(&changed); /* who was at the mutex meanwhile finds it there */
    for (uint32_t i = 0; i < 100; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_EQ(taken, 100);
    end();
}

TEST(cond_wakes_all)
{
    crew_each(all);
}

static void *thread_takes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        ASSERT_OK(takes());
    return NULL;
}

static void beside_threads(struct crew *crew)
{
    pthread_t thread;
    weft_task *task[100];
    (void)crew;
    begin();
    ASSERT_OK(pthread_create(&thread, NULL, thread_takes, NULL));
    for (uint32_t i = 0; i < 100; i++)
        task[i] = taker(i % 2);
    for (uint32_t i = 0; i < 200; i++) {
        put(1);
        weft_cond_wake_one(&changed);
    }
    for (uint32_t i = 0; i < 100; i++)
        ASSERT_OK(weft_join(task[i], NULL));
    ASSERT_OK(pthread_join(thread, NULL));
    end();
}

TEST(cond_between_threads_and_tasks)
{
    crew_each(beside_threads);
}

static void without_the_mutex(void *arg)
{
    (void)arg;
    begin();
    _exit(weft_cond_wait(&changed, &mutex) == -EPERM ? 9 : 3);
}

TEST(cond_without_its_mutex_is_refused)
{
    struct death d = death_of(without_the_mutex, NULL);
#ifdef WEFT_DEBUG
    ASSERT_EQ(d.signal, SIGABRT);
#else
    ASSERT_EQ(d.code, 9);
#endif
    ASSERT(strstr(d.said, "a condition is waited for without its mutex by a thread"));
}
