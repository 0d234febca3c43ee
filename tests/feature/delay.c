/* SPDX-License-Identifier: MIT
 *
 * Delay queues on real runtimes: items come out at their times and in their order, on clocks that stand and clocks that run, however many put in,
 * move, remove and wait; keys that are old find nothing; what is given up loses nothing.
 */
#include "base/fault.h"
#include "crew.h"
#include "death.h"
#include "pool.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

typedef WEFT_DELAY(int) int_delay;

/* ---- order ---------------------------------------------------------------------------------------------- */

static int in_order(void)
{
    static const int ms[] = {30, 10, 50, 20, 40, 20, 0};
    static const int order[] = {6, 1, 3, 5, 0, 4, 2};
    int_delay *queue;
    weft_time start = weft_now();
    weft_time at;
    int got;

    ASSERT_OK(weft_delay_new(&queue));
    ASSERT_EQ(weft_delay_peek(queue, &at), 0);
    for (int i = 0; i < 7; i++)
        ASSERT_OK(weft_delay_insert(queue, &i, weft_ms(ms[i]), NULL));
    ASSERT_EQ(weft_delay_len(queue), 7);
    for (int i = 0; i < 7; i++) {
        ASSERT_EQ(weft_delay_next(queue, &got), 1);
        ASSERT_EQ(got, order[i]);
        ASSERT_EQ(weft_now() - start, weft_ms(ms[got])); /* exactly */
    }
    ASSERT_EQ(weft_delay_try_next(queue, &got), -EAGAIN);
    ASSERT_OK(weft_delay_close(queue));
    ASSERT_EQ(weft_delay_close(queue), -EALREADY);
    ASSERT_EQ(weft_delay_next(queue, &got), 0);
    ASSERT_EQ(weft_delay_insert(queue, &got, 0, NULL), -EPIPE);
    weft_delay_free(queue);
    return 0;
}

TEST(delay_items_come_out_at_their_times)
{
    each_paused(in_order);
}

struct takes_delayed {
    WEFT_FRAME(int);
    int_delay *queue;
    int got;
    int count;
    struct weft_delay_next next;
};
static weft_async(takes_delayed)
{
    weft_begin;
    for (f->count = 0;; f->count++) {
        weft_await(f->next, weft_delay_next, weft_on(f->queue, &f->got));
        if (f->next.ret <= 0) weft_return(f->next.ret < 0 ? f->next.ret : f->count);
    }
    weft_end;
}

static int takes(int_delay *queue)
{
    int count = 0;
    int got;
    int r;
    while ((r = weft_delay_next(queue, &got)) > 0)
        count++;
    return r < 0 ? r : count;
}

/* ---- changes while somebody waits -------------------------------------------------------------------------- */

static int waits_for_one(int_delay *queue)
{
    int got = -1;
    int r = weft_delay_next(queue, &got);
    return r > 0 ? got : r;
}

static int changed_meanwhile(void)
{
    int_delay *queue;
    weft_delay_key key;
    weft_delay_key other;
    weft_time start = weft_now();
    weft_time at;
    int item = 1;
    int got;

    ASSERT_OK(weft_delay_new(&queue));
    weft_task *task = weft_go(waits_for_one, queue);
    ASSERT_OK(weft_sleep(weft_ms(1))); /* it waits for the first of all */
    ASSERT_OK(weft_delay_insert(queue, &item, weft_ms(50), &key));
    ASSERT_OK(weft_sleep(weft_ms(1)));
    item = 2;
    ASSERT_OK(weft_delay_insert(queue, &item, weft_ms(20), &other)); /* goes before */
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_delay_reset(queue, key, weft_ms(5))); /* and the other one before that */
    ASSERT_OK(weft_delay_deadline(queue, key, &at));
    ASSERT_EQ(at, start + weft_ms(8));
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 1);
    ASSERT_EQ(weft_now() - start, weft_ms(8));

    ASSERT_EQ(weft_delay_reset(queue, key, weft_ms(5)), -ENOENT);
    ASSERT_EQ(weft_delay_remove(queue, key, &got), -ENOENT);
    ASSERT_EQ(weft_delay_deadline(queue, key, &at), -ENOENT);

    task = weft_go(waits_for_one, queue);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(
        weft_delay_reset(queue, other, weft_ms(100))); /* put off: its timer comes too early */
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 2);
    ASSERT_EQ(weft_now() - start, weft_ms(109));

    ASSERT_OK(weft_delay_insert_at(queue, &item, weft_now() + 70, &key));
    ASSERT_OK(weft_delay_reset_at(queue, key, weft_now() + 7));
    ASSERT_EQ(weft_delay_reset_at(NULL, key, 1), -EINVAL);
    ASSERT_EQ(weft_delay_peek(queue, &at), 1);
    ASSERT_EQ(at, weft_now() + 7);
    ASSERT_OK(weft_delay_remove(queue, key, &got));
    ASSERT_EQ(got, 2);
    ASSERT_OK(weft_delay_insert_at(queue, &item, 0, &key)); /* long ago */
    ASSERT_EQ(weft_delay_try_next(queue, &got), 1);
    ASSERT_OK(weft_delay_insert(queue, &item, WEFT_FOREVER, &key));
    int r = 0;
    WEFT_TIMEOUT(weft_ms(5)) r = weft_delay_next(queue, &got);
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(weft_delay_clear(queue), 1);
    ASSERT_EQ(weft_delay_reset(queue, key, 1), -ENOENT);
    weft_delay_free(queue);
    return 0;
}

TEST(delay_follows_changes_while_somebody_waits)
{
    each_paused(changed_meanwhile);
}

/* ---- ends ---------------------------------------------------------------------------------------------------- */

/* All who wait hear of the end, however the last item goes. */
static int ends_by(int way)
{
    int_delay *queue;
    weft_delay_key key;
    weft_task *task[6];
    int item = 0;
    int all = 0;

    ASSERT_OK(weft_delay_new(&queue));
    ASSERT_OK(weft_delay_insert(queue, &item, weft_ms(10), &key));
    for (int i = 0; i < 6; i++)
        task[i] = i % 2 ? weft_go(takes, queue) : weft_spawn(takes_delayed, queue);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_OK(weft_delay_close(queue));
    ASSERT_OK(weft_sleep(weft_ms(1)));
    if (way == 1) ASSERT_OK(weft_delay_remove(queue, key, NULL));
    if (way == 2) ASSERT_EQ(weft_delay_clear(queue), 1);
    if (way == 3) {
        ASSERT_OK(weft_clock_advance(NULL, weft_ms(20)));
        (void)weft_delay_try_next(queue, &item);
    }
    for (int i = 0; i < 6; i++) {
        int count = -1;
        ASSERT_OK(weft_join(task[i], &count));
        ASSERT_GE(count, 0);
        all += count;
    }
    if (way == 0) ASSERT_EQ(all, 1);
    if (way == 1 || way == 2) ASSERT_EQ(all, 0);
    weft_delay_free(queue);
    return 0;
}

static int ends_all_ways(void)
{
    for (int way = 0; way < 4; way++)
        ASSERT_OK(ends_by(way));
    return 0;
}

TEST(delay_end_is_heard_by_all_who_wait)
{
    each_paused(ends_all_ways);
}

/* ---- from everywhere, on a clock that runs --------------------------------------------------------------------- */

struct yard {
    int_delay *queue;
    _Atomic uint64_t in;  /* items that were put in and not removed */
    _Atomic uint64_t out; /* taken out */
    uint64_t rounds;
};
static struct yard *yard;

static int puts_in(int number)
{
    uint64_t random = pool_seed((uint64_t)number + 10);
    weft_delay_key key = {0};

    for (uint64_t i = 0; i < yard->rounds; i++) {
        int item = (int)i;
        ASSERT_OK(weft_delay_insert(yard->queue, &item, weft_us(pool_random(&random, 200)), &key));
        fetch_add_relaxed(&yard->in, 1);
        if (pool_random(&random, 4) == 0)
            (void)weft_delay_reset(yard->queue, key, weft_us(pool_random(&random, 200)));
        if (pool_random(&random, 4) == 0 && weft_delay_remove(yard->queue, key, NULL) == 0)
            fetch_sub_relaxed(&yard->in, 1);
        if (pool_random(&random, 8) == 0) (void)weft_yield();
    }
    return 0;
}

static int takes_counting(int number)
{
    uint64_t random = pool_seed((uint64_t)number + 100);
    int got;
    int r = 1;

    while (r != 0) {
        WEFT_TIMEOUT(weft_us(pool_random(&random, 100))) r = weft_delay_next(yard->queue, &got);
        if (r > 0) fetch_add_relaxed(&yard->out, 1);
        if (r < 0) ASSERT_EQ(r, -ETIME);
    }
    return 0;
}

static void *takes_on_thread(void *unused)
{
    (void)unused;
    int got;
    while (weft_delay_next(yard->queue, &got) > 0)
        fetch_add_relaxed(&yard->out, 1);
    return NULL;
}

static void everywhere(struct crew *crew)
{
    struct yard y = {.rounds = test_scaled(300)};
    weft_task *putter[4];
    weft_task *taker[4];
    pthread_t thread;
    int r;
    (void)crew;

    yard = &y;
    ASSERT_OK(weft_delay_new(&y.queue));
    for (int i = 0; i < 4; i++) {
        taker[i] = i % 2 ? weft_go(takes_counting, i) : weft_spawn(takes_delayed, y.queue);
        putter[i] = weft_go(puts_in, i);
    }
    ASSERT_OK(pthread_create(&thread, NULL, takes_on_thread, NULL));
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weft_join(putter[i], &r));
    ASSERT_OK(weft_delay_close(y.queue));
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(weft_join(taker[i], &r));
        ASSERT_GE(r, 0);
        fetch_add_relaxed(&y.out, (uint64_t)r);
    }
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(load_relaxed(&y.in), load_relaxed(&y.out));
    ASSERT_EQ(weft_delay_len(y.queue), 0);
    weft_delay_free(y.queue);
}

TEST(delay_is_used_from_everywhere)
{
    crew_each(everywhere);
}

static int hundred_thousand(void)
{
    int_delay *queue;
    uint64_t random = pool_seed(3);
    int count = (int)test_scaled(100000);
    int before = -1;
    int got;

    ASSERT_OK(weft_delay_new(&queue));
    for (int i = 0; i < count; i++) {
        int ms = (int)pool_random(&random, 1000);
        ASSERT_OK(weft_delay_insert(queue, &ms, weft_ms(ms), NULL));
    }
    ASSERT_OK(weft_delay_close(queue));
    for (int i = 0; i < count; i++) {
        ASSERT_EQ(weft_delay_next(queue, &got), 1);
        ASSERT(got >= before);
        before = got;
    }
    ASSERT_EQ(weft_delay_next(queue, &got), 0);
    weft_delay_free(queue);
    return 0;
}

TEST_WITH(delay_of_a_hundred_thousand, .timeout_s = 300)
{
    each_paused(hundred_thousand);
}

/* ---- select ---------------------------------------------------------------------------------------------------- */

static int in_a_select(void)
{
    int_delay *queue;
    struct weft_delay_next next;
    struct weft_sleep idle;
    int item = 9;
    int got = 0;

    ASSERT_OK(weft_delay_new(&queue));
    ASSERT_OK(weft_delay_insert(queue, &item, weft_ms(10), NULL));
    ASSERT_EQ(weft_select(weft_arm(next, weft_delay_next, weft_on(queue, &got)),
                          weft_arm(idle, weft_sleep, weft_ms(5))),
              1);
    ASSERT_EQ(next.ret, -ECANCELED);
    ASSERT_EQ(weft_select(weft_arm(next, weft_delay_next, weft_on(queue, &got)), weft_otherwise),
              1);
    ASSERT_EQ(weft_select(weft_arm(next, weft_delay_next, weft_on(queue, &got)),
                          weft_arm(idle, weft_sleep, weft_ms(50))),
              0);
    ASSERT_EQ(got, 9);
    weft_delay_free(queue);
    return 0;
}

TEST(delay_next_is_an_arm)
{
    each_paused(in_a_select);
}

/* ---- without a runtime, without memory ---------------------------------------------------------------------------- */

TEST(delay_serves_plain_threads)
{
    int_delay *queue;
    int item = 3;
    int got = 0;
    weft_time start = weft_now();

    ASSERT_OK(weft_delay_new(&queue));
    ASSERT_OK(weft_delay_insert(queue, &item, weft_ms(2), NULL));
    ASSERT_EQ(weft_delay_next(queue, &got), 1);
    ASSERT_EQ(got, 3);
    ASSERT_GE(weft_now() - start, weft_ms(2));
    weft_delay_free(queue);
    weft_delay_free((int_delay *)NULL);
    ASSERT_EQ(weft_delay_new_sized(0, (weft_delay **)(void *)&queue), -EINVAL);
    ASSERT_EQ(weft_delay_next((int_delay *)NULL, &got), -EINVAL);
    ASSERT_EQ(weft_delay_len((int_delay *)NULL), 0);
    ASSERT_EQ(weft_delay_clear((int_delay *)NULL), 0);
    ASSERT_EQ(weft_delay_insert((int_delay *)NULL, &got, 1, NULL), -EINVAL);
}

#ifdef WEFT_FAULTS
/* Without memory an item is refused, the queue stays as it was, and goes on when there is some. */
TEST(delay_without_memory)
{
    int_delay *queue;
    int got;

    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft_delay_new(&queue), -ENOMEM);
    ASSERT_OK(weft_delay_new(&queue));
    for (int i = 0; i < 16; i++)
        ASSERT_OK(weft_delay_insert_at(queue, &i, i, NULL));
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    int item = 16;
    ASSERT_EQ(weft_delay_insert_at(queue, &item, 16, NULL), -ENOMEM);
    ASSERT_EQ(weft_delay_len(queue), 16);
    ASSERT_OK(weft_delay_insert_at(queue, &item, 16, NULL));
    for (int i = 0; i < 17; i++) {
        ASSERT_EQ(weft_delay_try_next(queue, &got), 1);
        ASSERT_EQ(got, i);
    }
    weft__fault_reset();
    weft_delay_free(queue);
}
#endif

static void freed_while_one_waits(void *unused)
{
    weft_rt *rt;
    int_delay *queue;
    (void)unused;
    if (weft_rt_new(&(weft_rt_opts){.workers = -1, .paused = true}, &rt) < 0) _exit(2);
    (void)weft_rt_enter(rt);
    if (weft_delay_new(&queue) < 0) _exit(3);
    weft_task *task = weft_go(waits_for_one, queue);
    while (weft_rt_turn(rt, 0) > 0) {
    }
    weft_delay_free(queue);
    (void)weft_detach(task);
}

TEST(delay_freed_while_one_waits_is_a_mistake)
{
    struct death d = death_of(freed_while_one_waits, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "somebody_waits_for_an_item"));
}
