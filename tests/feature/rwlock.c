/* SPDX-License-Identifier: MIT
 *
 * The read-write lock on real runtimes: many read, one writes, a writer that waits is not passed; cancelled at any moment;
 * and what must not be done with it.
 */
#include "crew.h"
#include "death.h"
#include "storm.h"
#include "sync/semaphore.h"
#include "test.h"
#include "waiters.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static weft_rwlock lock = WEFT_RWLOCK_INIT;
static _Atomic int readers;
static _Atomic int writers;
static _Atomic int readers_most;

static void begin(void)
{
    weft_rwlock_init(&lock);
    store_relaxed(&readers, 0);
    store_relaxed(&writers, 0);
    store_relaxed(&readers_most, 0);
}

static void enter(bool writes)
{
    if (writes) {
        ASSERT_EQ(fetch_add_relaxed(&writers, 1), 0);
        ASSERT_EQ(load_relaxed(&readers), 0);
        return;
    }
    int now = fetch_add_relaxed(&readers, 1) + 1;
    ASSERT_EQ(load_relaxed(&writers), 0);
    int most = load_relaxed(&readers_most);
    while (most < now && !cas_relaxed(&readers_most, &most, now))
        continue;
}

static void leave(bool writes)
{
    (void)fetch_sub_relaxed(writes ? &writers : &readers, 1);
    ASSERT_OK(writes ? weft_write_unlock(&lock) : weft_read_unlock(&lock));
}

static int uses(bool writes, uint32_t pause)
{
    int r = writes ? weft_write_lock(&lock) : weft_read_lock(&lock);
    if (r < 0) return r;
    enter(writes);
    storm_pause_here(pause);
    leave(writes);
    return 0;
}

struct using
{
    WEFT_FRAME(int);
    bool writes;
    uint32_t pause;
    union {
        struct weft_read_lock read;
        struct weft_write_lock write;
    };
    struct storm_pause paused;
};
static weft_async(using)
{
    weft_begin;
    if (f->writes) {
        weft_await(f->write, weft_write_lock, &lock);
        f->ret = f->write.ret;
    } else {
        weft_await(f->read, weft_read_lock, &lock);
        f->ret = f->read.ret;
    }
    if (f->ret < 0) weft_return(f->ret);
    enter(f->writes);
    weft_await(f->paused, storm_pause, f->pause);
    leave(f->writes);
    weft_return(0);
    weft_end;
}

static weft_task *start(void *of, uint32_t i, bool stackless)
{
    uint64_t *random = of;
    bool writes = pool_random(random, 3) == 0;
    uint32_t pause = pool_random(random, 4);
    (void)i;
    return stackless ? weft_spawn(using, writes, pause) : weft_go(uses, writes, pause);
}

static void cancelled_at_any_moment(struct crew *crew)
{
    uint64_t random = pool_seed(4);
    (void)crew;
    begin();
    struct storm_sum sum = storm(start, &random, (uint32_t)test_scaled(400), NULL);
    ASSERT_EQ(sum.other, 0);
    ASSERT_OK(weft_try_write_lock(&lock)); /* nobody has it */
    ASSERT_OK(weft_write_unlock(&lock));
    weft_rwlock_done(&lock);
}

TEST(rwlock_loses_nothing_when_cancelled)
{
    crew_each(cancelled_at_any_moment);
}

static uint32_t waiting(void)
{
    return waiters_in(&((struct weft__sem *)(void *)&lock.weft__sem)->list);
}

/* Behind a writer that waits, a reader waits, too; the writer comes first. Given up, it lets the readers in. */
static void writer_is_not_passed(struct crew *crew)
{
    (void)crew;
    for (unsigned cancel = 0; cancel < 2; cancel++) {
        int wrote = 1;
        begin();
        ASSERT_OK(weft_read_lock(&lock));
        ASSERT_OK(weft_try_read_lock(&lock)); /* many read */
        ASSERT_OK(weft_read_unlock(&lock));
        ASSERT_EQ(weft_try_write_lock(&lock), -EBUSY);
        weft_task *writer = weft_go(uses, true, 0);
        CREW_UNTIL(waiting() == 1);
        ASSERT_EQ(weft_try_read_lock(&lock), -EBUSY);
        weft_task *reader = weft_go(uses, false, 0);
        if (cancel) {
            weft_cancel(writer);
            ASSERT_OK(weft_join(reader, NULL)); /* beside us */
        }
        ASSERT_OK(weft_read_unlock(&lock));
        ASSERT_OK(weft_join(writer, &wrote));
        ASSERT_EQ(wrote, cancel ? -ECANCELED : 0);
        if (!cancel) ASSERT_OK(weft_join(reader, NULL));
        weft_rwlock_done(&lock);
    }
}

TEST(rwlock_writer_is_not_passed)
{
    crew_each(writer_is_not_passed);
}

/* ---- threads without a runtime: they sleep in the kernel ---- */

enum { THREADS = 4, ROUNDS = 500 };

static int halves[2]; /* the same, but for whoever writes */

static void *thread_uses(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        bool writes = (i + *(int *)number) % 3 == 0;
        ASSERT_OK(writes ? weft_write_lock(&lock) : weft_read_lock(&lock));
        enter(writes);
        if (writes) {
            halves[0]++;
            sched_yield(); /* on one core as well somebody comes meanwhile */
            halves[1]++;
        }
        ASSERT_EQ(halves[0], halves[1]);
        leave(writes);
    }
    return NULL;
}

/* First all of them have to wait, readers and writers; then as it happens. */
TEST(rwlock_threads_sleep_for_it)
{
    pthread_t thread[THREADS];
    int number[THREADS], written = 0;

    begin();
    halves[0] = halves[1] = 0;
    ASSERT_OK(weft_write_lock(&lock));
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        for (int k = 0; k < ROUNDS; k++)
            written += (k + i) % 3 == 0;
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_uses, &number[i]));
    }
    CREW_UNTIL(waiting() == THREADS);
    ASSERT_OK(weft_write_unlock(&lock));
    for (int i = 0; i < THREADS; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    ASSERT_EQ(halves[1], written);
    ASSERT_OK(weft_try_write_lock(&lock)); /* nobody has it */
    ASSERT_OK(weft_write_unlock(&lock));
    weft_rwlock_done(&lock);
}

TEST(rwlock_on_a_thread_without_a_runtime)
{
    static weft_rwlock l = WEFT_RWLOCK_INIT;
    ASSERT_OK(weft_write_lock(&l));
    ASSERT_EQ(weft_try_read_lock(&l), -EBUSY);
    ASSERT_OK(weft_downgrade(&l));
    ASSERT_OK(weft_try_read_lock(&l));
    ASSERT_EQ(weft_try_write_lock(&l), -EBUSY);
    ASSERT_OK(weft_read_unlock(&l));
    ASSERT_OK(weft_read_unlock(&l));
    ASSERT_OK(weft_write_lock(&l));
    ASSERT_OK(weft_write_unlock(&l));
    ASSERT_EQ(weft_read_lock(NULL), -EINVAL);
    ASSERT_EQ(weft_write_lock(NULL), -EINVAL);
    ASSERT_EQ(weft_write_unlock(NULL), -EINVAL);
    weft_rwlock_done(&l);
    weft_rwlock_done(NULL);
}

static void read_unlock_of_none(void *arg)
{
    (void)arg;
    begin();
    _exit(weft_read_unlock(&lock) == -EPERM ? 9 : 3);
}

static void write_twice(void *arg)
{
    (void)arg;
    begin();
    if (weft_write_lock(&lock) < 0) _exit(3);
    _exit(weft_write_lock(&lock) == -EDEADLK ? 9 : 4);
}

TEST(rwlock_mistakes_are_named)
{
    death_expect_told(read_unlock_of_none,
                      "a read-write lock that nobody reads is unlocked by a thread");
    death_expect_told(write_twice, "a read-write lock is locked once more by a thread");
}
