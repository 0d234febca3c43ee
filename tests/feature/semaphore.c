/* SPDX-License-Identifier: MIT
 *
 * The semaphore on real runtimes: permits are never lost nor made, also where waits are cancelled at any moment; first
 * come, first served; closing and forgetting; beside plain threads and inside of a select.
 */
#include "sync/semaphore.h"
#include "crew.h"
#include "storm.h"
#include "test.h"
#include "waiters.h"

#include <errno.h>
#include <weft/weft.h>

static weft_sem sem;
static _Atomic int in_use; /* permits */
static _Atomic int most;
static _Atomic uint32_t turn; /* the next place in `order` */
static uint32_t order[64];
static _Atomic uint32_t begun;

static void begin(uint64_t permits)
{
    weft_sem_init(&sem, permits);
    store_relaxed(&in_use, 0);
    store_relaxed(&most, 0);
    store_relaxed(&turn, 0);
    store_relaxed(&begun, 0);
}

/* ---- one function, two forms ------------------------------------------------------------------------ */

static void use(int permits)
{
    int used = fetch_add_relaxed(&in_use, permits) + permits;
    int seen = load_relaxed(&most);
    while (seen < used && !cas_relaxed(&most, &seen, used))
        continue;
}

static void unuse(int permits)
{
    (void)fetch_sub_relaxed(&in_use, permits);
    weft_sem_release(&sem, (uint64_t)permits);
}

static int holds(int permits, uint32_t pause)
{
    (void)fetch_add_relaxed(&begun, 1);
    int r = weft_sem_acquire(&sem, (uint64_t)permits);
    if (r < 0) return r;
    use(permits);
    storm_pause_here(pause);
    unuse(permits);
    return 0;
}

struct holding {
    WEFT_FRAME(int);
    int permits;
    uint32_t pause;
    struct weft_sem_acquire acquire;
    struct storm_pause paused;
};
static weft_async(holding)
{
    weft_begin;
    (void)fetch_add_relaxed(&begun, 1);
    weft_await(f->acquire, weft_sem_acquire, &sem, (uint64_t)f->permits);
    if (f->acquire.ret < 0) weft_return(f->acquire.ret);
    use(f->permits);
    weft_await(f->paused, storm_pause, f->pause);
    unuse(f->permits);
    weft_return(0);
    weft_end;
}

static weft_task *holder(int permits, uint32_t pause, bool stackless)
{
    return stackless ? weft_spawn(holding, permits, pause) : weft_go(holds, permits, pause);
}

/* ---- behaviour -------------------------------------------------------------------------------------- */

TEST(semaphore_on_a_thread_without_a_runtime)
{
    weft_sem s = WEFT_SEM_INIT(3);

    ASSERT_EQ(weft_sem_permits(&s), 3);
    ASSERT_OK(weft_sem_try_acquire(&s, 2));
    ASSERT_EQ(weft_sem_try_acquire(&s, 2), -EBUSY);
    ASSERT_OK(weft_sem_acquire(&s, 1));
    ASSERT_EQ(weft_sem_permits(&s), 0);
    weft_sem_release(&s, 5); /* there may be more than at the start */
    ASSERT_EQ(weft_sem_forget(&s, 2), 2);
    ASSERT_EQ(weft_sem_permits(&s), 3);
    ASSERT_EQ(weft_sem_forget(&s, 9), 3);
    ASSERT_EQ(weft_sem_acquire(&s, 0), -EINVAL);
    ASSERT_EQ(weft_sem_acquire(NULL, 1), -EINVAL);
    ASSERT_EQ(weft_sem_close(NULL), -EINVAL);
    ASSERT_EQ(weft_sem_try_acquire(&s, WEFT_SEM_MAX + 1), -EINVAL);
    ASSERT(!weft_sem_closed(&s));
    ASSERT_OK(weft_sem_close(&s));
    ASSERT(weft_sem_closed(&s));
    weft_sem_release(&s, 1);
    ASSERT_EQ(weft_sem_acquire(&s, 1), -EPIPE);
    ASSERT_EQ(weft_sem_try_acquire(&s, 1), -EPIPE);
    weft_sem_done(&s);
    weft_sem_done(NULL);
}

static void comes_out(uint32_t number)
{
    order[load_relaxed(&turn)] = number;
    (void)fetch_add_relaxed(&turn, 1);
}

static int in_order(uint32_t number, int permits)
{
    int r = weft_sem_acquire(&sem, (uint64_t)permits);
    if (r < 0) return r;
    comes_out(number);
    return 0;
}

struct in_order_too {
    WEFT_FRAME(int);
    uint32_t number;
    int permits;
    struct weft_sem_acquire acquire;
};
static weft_async(in_order_too)
{
    weft_begin;
    weft_await(f->acquire, weft_sem_acquire, &sem, (uint64_t)f->permits);
    if (f->acquire.ret < 0) weft_return(f->acquire.ret);
    comes_out(f->number);
    weft_return(0);
    weft_end;
}

static uint32_t waiting(void)
{
    return waiters_in(&((struct weft__sem *)(void *)&sem)->list);
}

/* Twenty wait, the first for more than there is: nobody passes it, and they come out as they came in. */
static void fifo(struct crew *crew)
{
    weft_task *task[20];
    (void)crew;
    begin(0);
    for (uint32_t i = 0; i < 20; i++) {
        task[i] = weft_go(in_order, i, i == 0 ? 3 : 1);
        CREW_UNTIL(waiting() == i + 1);
    }
    weft_sem_release(&sem, 2);
    ASSERT_EQ(waiting(), 20);
    ASSERT_EQ(weft_sem_try_acquire(&sem, 1), -EBUSY); /* there are two, but not for who comes now */
    for (uint32_t i = 0; i < 20; i++) {
        weft_sem_release(&sem, 1);
        CREW_UNTIL(load_relaxed(&turn) == i + 1);
    }
    for (uint32_t i = 0; i < 20; i++)
        ASSERT_OK(weft_join(task[i], NULL));
    for (uint32_t i = 0; i < 20; i++)
        ASSERT_EQ(order[i], i);
    ASSERT_EQ(weft_sem_permits(&sem), 0);
    weft_sem_done(&sem);
}

TEST(semaphore_first_come_first_served)
{
    crew_each(fifo);
}

/* Two permits that are too few for those who wait are still there to be forgotten; nobody is woken by that, nor by what
 * only makes up for it. Then each gets its three, in the order in which they came. A release has granted when it returns:
 * who got nothing by then gets nothing from it. */
static void forgets(struct crew *crew)
{
    (void)crew;
    for (unsigned stackless_first = 0; stackless_first < 2; stackless_first++) {
        weft_task *task[2];
        begin(2);
        for (uint32_t i = 0; i < 2; i++) {
            task[i] =
                i == stackless_first ? weft_go(in_order, i, 3) : weft_spawn(in_order_too, i, 3);
            CREW_UNTIL(waiting() == i + 1);
        }
        ASSERT_EQ(weft_sem_forget(&sem, 5), 2);
        ASSERT_EQ(weft_sem_permits(&sem), 0);
        ASSERT_EQ(waiting(), 2);
        weft_sem_release(&sem, 2);
        ASSERT_EQ(waiting(), 2);
        ASSERT_EQ(weft_sem_permits(&sem), 2);
        weft_sem_release(&sem, 1);
        ASSERT_EQ(waiting(), 1);
        CREW_UNTIL(load_relaxed(&turn) == 1);
        weft_sem_release(&sem, 3);
        ASSERT_EQ(waiting(), 0);
        for (uint32_t i = 0; i < 2; i++) {
            int r = 1;
            ASSERT_OK(weft_join(task[i], &r));
            ASSERT_OK(r);
            ASSERT_EQ(order[i], i);
        }
        ASSERT_EQ(weft_sem_permits(&sem), 0);
        weft_sem_done(&sem);
    }
}

TEST(semaphore_forget_beside_a_waiter)
{
    crew_each(forgets);
}

static weft_task *start_holder(void *of, uint32_t i, bool stackless)
{
    uint64_t *random = of;
    (void)i;
    return holder(1 + (int)pool_random(random, 3), pool_random(random, 4), stackless);
}

/* Three permits, tasks that want one to three, cancelled at any moment: never more than three are used, and three are
 * left. */
static void cancelled_at_any_moment(struct crew *crew)
{
    uint64_t random = pool_seed(1);
    uint32_t count = (uint32_t)test_scaled(400);
    (void)crew;
    begin(3);
    struct storm_sum sum = storm(start_holder, &random, count, NULL);
    ASSERT_EQ(sum.other, 0);
    ASSERT_EQ(sum.got + sum.cancelled, count);
    ASSERT_EQ(load_relaxed(&in_use), 0);
    ASSERT_LE(load_relaxed(&most), 3);
    ASSERT_EQ(weft_sem_permits(&sem), 3);
    weft_sem_done(&sem);
}

TEST(semaphore_loses_nothing_when_cancelled)
{
    crew_each(cancelled_at_any_moment);
}

static int puts_later(uint32_t pause)
{
    storm_pause_here(pause);
    weft_sem_release(&sem, 2);
    return 0;
}

/* One waits for two permits, another behind it for one; both come after so many turns of others, and the cancel after so
 * many: whatever meets, the permits are used or left. */
static void every_moment(struct crew *crew)
{
    (void)crew;
    for (uint32_t put = 0; put < 5; put++) {
        for (uint32_t cancel = 0; cancel < 8; cancel++) {
            for (unsigned kinds = 0; kinds < 4; kinds++) {
                int first = 1, second = 1;
                begin(0);
                weft_task *a = holder(2, 1, kinds & 1);
                weft_task *b = holder(1, 1, kinds & 2);
                weft_task *putter = weft_go(puts_later, put);
                for (uint32_t k = 0; k < cancel; k++)
                    sched_yield();
                weft_cancel(a);
                ASSERT_OK(weft_join(a, &first));
                ASSERT_OK(weft_join(b, &second));
                ASSERT_OK(weft_join(putter, NULL));
                ASSERT(first == 0 || first == -ECANCELED);
                ASSERT_EQ(second, 0);
                ASSERT_EQ(weft_sem_permits(&sem), 2);
                weft_sem_done(&sem);
            }
        }
    }
}

TEST(semaphore_cancelled_at_every_moment)
{
    crew_each(every_moment);
}

static void closes(struct crew *crew)
{
    weft_task *task[20];
    (void)crew;
    begin(1);
    ASSERT_OK(weft_sem_try_acquire(&sem, 1));
    for (uint32_t i = 0; i < 20; i++)
        task[i] = holder(1, 0, i % 2);
    CREW_UNTIL(load_relaxed(&begun) == 20);
    weft_sem_close(&sem);
    for (uint32_t i = 0; i < 20; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(r, -EPIPE);
    }
    weft_sem_release(&sem, 1); /* what was taken may come back */
    ASSERT_EQ(weft_sem_permits(&sem), 1);
    weft_sem_done(&sem);
}

TEST(semaphore_close_ends_every_wait)
{
    crew_each(closes);
}

static void *thread_holds(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++)
        ASSERT_OK(holds(1 + i % 2, 0));
    return NULL;
}

static void beside_threads(struct crew *crew)
{
    pthread_t thread[3];
    weft_task *task[40];
    (void)crew;
    begin(2);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_holds, NULL));
    for (uint32_t i = 0; i < 40; i++)
        task[i] = holder(1 + (int)(i % 2), i % 3, i % 2);
    for (uint32_t i = 0; i < 40; i++)
        ASSERT_OK(weft_join(task[i], NULL));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    ASSERT_LE(load_relaxed(&most), 2);
    ASSERT_EQ(weft_sem_permits(&sem), 2);
    weft_sem_done(&sem);
}

TEST(semaphore_for_threads_and_tasks)
{
    crew_each(beside_threads);
}

/* The arm that loses has taken nothing, whether it was asked once or had waited. */
static int selects(void)
{
    struct weft_sem_acquire acquire;
    struct weft_sleep sleep;
    int which = weft_select_biased(weft_arm(sleep, weft_sleep, 0),
                                   weft_arm(acquire, weft_sem_acquire, &sem, 1));
    if (which < 0) return which;
    if (which == 1) weft_sem_release(&sem, 1);
    which = weft_select(weft_arm(acquire, weft_sem_acquire, &sem, 2),
                        weft_arm(sleep, weft_sleep, weft_us(10)));
    return which == 1 && acquire.ret == -ECANCELED ? 0 : -EPROTO;
}

static void in_a_select(struct crew *crew)
{
    int r = 1;
    (void)crew;
    begin(1);
    ASSERT_OK(weft_join(weft_go(selects), &r));
    ASSERT_OK(r);
    ASSERT_EQ(weft_sem_permits(&sem), 1);
    weft_sem_done(&sem);
}

TEST(semaphore_in_a_select_that_it_loses)
{
    crew_each(in_a_select);
}

/* What is cancelled before it begins takes nothing, although there is enough. */
static int cancelled_before(void)
{
    weft_cancel(weft_self());
    (void)weft_yield();
    return weft_sem_acquire(&sem, 1);
}

static void not_begun(struct crew *crew)
{
    int r = 1;
    (void)crew;
    begin(1);
    ASSERT_OK(weft_join(weft_go(cancelled_before), &r));
    ASSERT_EQ(r, -ECANCELED);
    ASSERT_EQ(weft_sem_permits(&sem), 1);
    weft_sem_done(&sem);
}

TEST(semaphore_cancelled_before_it_begins)
{
    crew_each(not_begun);
}

/* In one poll: the first gets its permits, and is cancelled before it can look. On one worker it is never otherwise. */
static int grants_and_cancels(weft_task *first)
{
    while (waiting() < 2)
        (void)weft_yield();
    weft_sem_release(&sem, 2);
    weft_cancel(first);
    weft_unref(first);
    return 0;
}

static void cancelled_with_its_permits(struct crew *crew)
{
    for (unsigned kinds = 0; kinds < 4; kinds++) {
        int first = 1, second = 1;
        begin(0);
        weft_task *a = holder(2, 0, kinds & 1);
        CREW_UNTIL(waiting() == 1);
        weft_task *b = holder(1, 0, kinds & 2);
        ASSERT_OK(weft_join(weft_go(grants_and_cancels, weft_ref(a)), NULL));
        ASSERT_OK(weft_join(a, &first));
        ASSERT_OK(weft_join(b, &second));
        ASSERT(first == -ECANCELED || (first == 0 && crew->workers > 1));
        ASSERT_EQ(second, 0);
        ASSERT_EQ(weft_sem_permits(&sem), 2);
        weft_sem_done(&sem);
    }
}

TEST(semaphore_cancelled_with_its_permits)
{
    crew_each(cancelled_with_its_permits);
}
