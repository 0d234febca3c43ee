/* SPDX-License-Identifier: MIT
 *
 * Broadcast and watch: everybody hears everything, or how much was missed; everybody sees the latest. By both kinds of tasks and
 * plain threads, on every shape of runtime, and given up at any moment.
 */
#include "crew.h"
#include "pool.h"
#include "test.h"
#include "waiters.h"

#include <weft/weft.h>

typedef WEFT_BROADCAST(uint64_t) word_cast;
typedef WEFT_WATCH(uint64_t) word_watch;
typedef WEFT_WATCH(int) int_watch;

static uint64_t joined(weft_task *t)
{
    uint64_t ret = 0;
    ASSERT_OK(weft_join(t, &ret));
    return ret;
}

/* ---- listeners: heard and missed together are all ---- */

/* Numbers come in order, and a gap is as long as it was said to be. */
struct ear {
    weft_cursor at;
    uint64_t next;
    uint64_t heard;
    uint64_t missed;
};

static void ear_takes(struct ear *ear, int ret, uint64_t value)
{
    if (ret == -EOVERFLOW) {
        ASSERT(ear->at.missed > 0);
        ear->missed += ear->at.missed;
        ear->next += ear->at.missed;
    } else if (ret == 1) {
        ASSERT_EQ(value, ear->next);
        ear->next++;
        ear->heard++;
    } else {
        ASSERT(ret == -ECANCELED || ret == -ETIME); /* it has not moved */
    }
}

static uint64_t listens(word_cast *cast, uint64_t random)
{
    struct ear ear = {.next = 0};
    uint64_t value;
    int r;

    do {
        if (pool_random(&random, 2)) {
            r = weft_broadcast_recv(cast, &ear.at, &value);
        } else {
            WEFT_TIMEOUT(weft_us(pool_random(&random, 30)))
            r = weft_broadcast_recv(cast, &ear.at, &value);
        }
        if (r != 0) ear_takes(&ear, r, value);
    } while (r != 0);
    return ear.heard + ear.missed;
}

struct listens_too {
    WEFT_FRAME(uint64_t);
    word_cast *cast;
    uint64_t random;
    uint64_t value;
    struct ear ear;
    struct weft_broadcast_recv rx;
    struct weft_yield pause;
    struct weft_select sel;
};
static weft_async(listens_too)
{
    weft_begin;
    do {
        if (pool_random(&f->random, 2)) {
            weft_await(f->rx, weft_broadcast_recv, f->cast, &f->ear.at, &f->value);
        } else {
            weft_await(f->sel, weft_select,
                       .arm = {weft_arm(f->rx, weft_broadcast_recv, f->cast, &f->ear.at, &f->value),
                               weft_arm(f->pause, weft_yield)});
        }
        if (f->rx.ret != 0) ear_takes(&f->ear, f->rx.ret, f->value);
    } while (f->rx.ret != 0);
    weft_return(f->ear.heard + f->ear.missed);
    weft_end;
}

enum { LISTENERS = 6 };

static void all_hear(struct crew *crew)
{
    uint64_t count = test_scaled(2000);
    weft_task *t[LISTENERS];
    word_cast *cast;

    (void)crew;
    for (size_t capacity = 1; capacity < 100; capacity += 40) {
        ASSERT_OK(weft_broadcast_new(capacity, &cast));
        for (uint64_t i = 0; i < LISTENERS; i++)
            t[i] = i % 2 ? weft_go(listens, cast, pool_seed(i))
                         : weft_spawn(listens_too, cast, pool_seed(i));
        for (uint64_t i = 0; i < count; i++)
            ASSERT_OK(weft_broadcast_send(cast, &i));
        ASSERT_OK(weft_broadcast_close(cast));
        for (int i = 0; i < LISTENERS; i++)
            ASSERT_EQ(joined(t[i]), count);
        weft_broadcast_free(cast);
    }
}
TEST(broadcast_reaches_all_or_says_what_is_missing)
{
    crew_each(all_hear);
}

/* A broadcast of three keeps three; who is five behind is told of two, once, and goes on with the oldest. */
TEST(broadcast_tells_the_exact_lag)
{
    word_cast *cast;
    uint64_t value = 0;

    ASSERT_OK(weft_broadcast_new(3, &cast));
    ASSERT_OK(weft_broadcast_send(cast, &(uint64_t){9})); /* before anybody listens */
    weft_cursor slow = weft_broadcast_now(cast), prompt = slow;
    ASSERT_EQ(weft_broadcast_try_recv(cast, &slow, &value), -EAGAIN);
    for (uint64_t i = 0; i < 5; i++) {
        ASSERT_OK(weft_broadcast_send(cast, &i));
        ASSERT_EQ(weft_broadcast_recv(cast, &prompt, &value), 1);
        ASSERT_EQ(value, i);
    }
    ASSERT_EQ(weft_broadcast_recv(cast, &slow, &value), -EOVERFLOW);
    ASSERT_EQ(slow.missed, 2);
    for (uint64_t i = 2; i < 5; i++) {
        ASSERT_EQ(weft_broadcast_try_recv(cast, &slow, &value), 1);
        ASSERT_EQ(value, i);
    }
    ASSERT_OK(weft_broadcast_close(cast));
    ASSERT_EQ(weft_broadcast_close(cast), -EALREADY);
    ASSERT_EQ(weft_broadcast_send(cast, &value), -EPIPE);
    ASSERT_EQ(weft_broadcast_recv(cast, &slow, &value), 0);
    ASSERT_EQ(weft_broadcast_try_recv(cast, &prompt, &value), 0);
    weft_broadcast_free(cast);
}

/* A plain thread listens without a runtime. */
static void *thread_sends(void *cast)
{
    for (uint64_t i = 0; i < 1000; i++)
        ASSERT_OK(weft_broadcast_send((word_cast *)cast, &i));
    ASSERT_OK(weft_broadcast_close((word_cast *)cast));
    return NULL;
}
TEST(broadcast_between_plain_threads)
{
    word_cast *cast;
    pthread_t sender;

    ASSERT_OK(weft_broadcast_new(16, &cast));
    ASSERT_OK(pthread_create(&sender, NULL, thread_sends, cast));
    ASSERT_EQ(listens(cast, pool_seed(1)), 1000);
    ASSERT_OK(pthread_join(sender, NULL));
    weft_broadcast_free(cast);
}

/* ---- watch ---- */

/* Values only grow; the last one is always seen. Seen and skipped together are all. */
static uint64_t watches(word_watch *watch)
{
    weft_cursor seen = {0};
    uint64_t value, last = 0, count = 0;

    while (weft_watch_changed(watch, &seen, &value) > 0) {
        ASSERT(value > last);
        last = value;
        count += 1 + seen.missed;
    }
    ASSERT_EQ(count, last);
    return last;
}

struct watches_too {
    WEFT_FRAME(uint64_t);
    word_watch *watch;
    uint64_t value;
    weft_cursor seen;
    struct weft_watch_changed changed;
    struct weft_yield pause;
    struct weft_select sel;
};
static weft_async(watches_too)
{
    weft_begin;
    for (;;) {
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->changed, weft_watch_changed, f->watch, &f->seen, &f->value),
                           weft_arm(f->pause, weft_yield)});
        if (f->changed.ret == 0) weft_return(f->value);
    }
    weft_end;
}

static void all_see(struct crew *crew)
{
    uint64_t count = test_scaled(2000);
    weft_task *t[LISTENERS];
    word_watch *watch;

    (void)crew;
    ASSERT_OK(weft_watch_new(&(uint64_t){1}, &watch));
    for (int i = 0; i < LISTENERS; i++)
        t[i] = i % 2 ? weft_go(watches, watch) : weft_spawn(watches_too, watch);
    for (uint64_t i = 2; i <= count; i++)
        ASSERT_OK(weft_watch_set(watch, &i));
    ASSERT_OK(weft_watch_close(watch));
    for (int i = 0; i < LISTENERS; i++)
        ASSERT_EQ(joined(t[i]), count);
    weft_watch_free(watch);
}
TEST(watch_shows_the_latest_to_all)
{
    crew_each(all_see);
}

/* By threads without a runtime. Each second value comes when all of them sleep, the others whenever; and so does the end. */
static void *thread_watches(void *watch)
{
    ASSERT_EQ(watches((word_watch *)watch), 1000);
    return NULL;
}
TEST(watch_wakes_plain_threads)
{
    word_watch *watch;
    pthread_t thread[LISTENERS];

    ASSERT_OK(weft_watch_new(&(uint64_t){1}, &watch));
    for (int i = 0; i < LISTENERS; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, thread_watches, watch));
    for (uint64_t i = 2; i <= 1000; i++) {
        if (i % 2 == 0) CREW_UNTIL(waiters_of(watch) == LISTENERS);
        ASSERT_OK(weft_watch_set(watch, &i));
    }
    CREW_UNTIL(waiters_of(watch) == LISTENERS);
    ASSERT_OK(weft_watch_close(watch));
    for (int i = 0; i < LISTENERS; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    weft_watch_free(watch);
}

TEST(watch_counts_versions)
{
    word_watch *watch;
    uint64_t value = 0;

    ASSERT_OK(weft_watch_new(&(uint64_t){7}, &watch));
    weft_cursor fresh = {0}, seen = weft_watch_now(watch);
    ASSERT_EQ(weft_watch_changed(watch, &fresh, &value), 1); /* it had seen nothing */
    ASSERT_EQ(value, 7);
    WEFT_TIMEOUT(0) ASSERT_EQ(weft_watch_changed(watch, &seen, &value), -ETIME);
    for (uint64_t i = 8; i < 11; i++)
        ASSERT_OK(weft_watch_set(watch, &i));
    ASSERT_EQ(weft_watch_get(watch, &value), 1); /* which does not count as seen */
    ASSERT_EQ(value, 10);
    ASSERT_OK(weft_watch_close(watch));
    ASSERT_EQ(weft_watch_set(watch, &value), -EPIPE);
    ASSERT_EQ(weft_watch_changed(watch, &seen, &value), 1); /* also once it is closed */
    ASSERT_EQ(value, 10);
    ASSERT_EQ(seen.missed, 2);
    ASSERT_EQ(weft_watch_changed(watch, &seen, &value), 0);
    ASSERT_EQ(weft_watch_get(watch, &value), 1);
    weft_watch_free(watch);
}

/* Many change one value at once: none of the changes is lost, and who listens sees the last. */
enum { CHANGES = 300, CHANGERS = 6 };

static int changes(int_watch *watch)
{
    for (int i = 0; i < CHANGES; i++) {
        weft_cursor seen = {0, 0};
        int value, r;
        while ((r = weft_watch_update(watch, &seen, &value)) == -EAGAIN)
            value++;
        if (r < 0) return r;
        ASSERT_EQ(weft_watch_get(watch, &(int){0}), 1);
    }
    return 0;
}

static int follows(int_watch *watch)
{
    weft_cursor seen = {0, 0};
    int value = -1, last = -1, r;
    while ((r = weft_watch_changed(watch, &seen, &value)) > 0) {
        if (value <= last) return -EILSEQ;
        last = value;
    }
    return r < 0 ? r : last;
}

static void updates(struct crew *crew)
{
    int_watch *watch;
    weft_task *task[CHANGERS];
    int r;

    (void)crew;
    ASSERT_OK(weft_watch_new(&(int){0}, &watch));
    weft_task *listener = weft_go(follows, watch);
    for (int i = 0; i < CHANGERS; i++)
        task[i] = weft_go(changes, watch);
    for (int i = 0; i < CHANGERS; i++) {
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_watch_close(watch));
    ASSERT_OK(weft_join(listener, &r));
    ASSERT_EQ(r, CHANGES * CHANGERS);
    weft_watch_free(watch);
}
TEST(watch_update_loses_no_change)
{
    crew_each(updates);
}

/* It sets what the cursor has seen, and nothing else; who breaks out of the loop has changed nothing. */
TEST(watch_update_sets_if_seen)
{
    int_watch *watch;
    weft_cursor mine = {0, 0}, other;
    int value = 99, now;

    ASSERT_OK(weft_watch_new(&(int){1}, &watch));
    ASSERT_EQ(weft_watch_update(watch, &mine, &value), -EAGAIN);
    ASSERT_EQ(value, 1);
    other = weft_watch_now(watch);
    ASSERT_OK(weft_watch_set(watch, &(int){2}));
    value = 10;
    ASSERT_EQ(weft_watch_update(watch, &mine, &value), -EAGAIN);
    ASSERT_EQ(value, 2);
    value = 20;
    ASSERT_OK(weft_watch_update(watch, &mine, &value));
    ASSERT_EQ(weft_watch_get(watch, &now), 1);
    ASSERT_EQ(now, 20);
    ASSERT_OK(weft_watch_update(watch, &mine, &(int){21})); /* what it has set it has seen */
    ASSERT_EQ(weft_watch_changed(watch, &other, &now), 1);
    ASSERT_EQ(now, 21);
    ASSERT_EQ(other.missed, 2);
    ASSERT_EQ(weft_watch_update(watch, NULL, &now), -EINVAL);
    ASSERT_OK(weft_watch_close(watch));
    ASSERT_EQ(weft_watch_update(watch, &mine, &now), -EPIPE);
    weft_watch_free(watch);
}

/* ---- given up ---- */

/* Whoever is cancelled leaves nothing behind: free looks for waiters. */
static int hangs(word_cast *cast)
{
    weft_cursor at = weft_broadcast_now(cast);
    uint64_t value;
    return weft_broadcast_recv(cast, &at, &value);
}
static void cancelled(struct crew *crew)
{
    uint64_t random = pool_seed(3);

    (void)crew;
    for (uint64_t i = 0; i < test_scaled(300); i++) {
        word_cast *cast;
        weft_task *t[3];
        ASSERT_OK(weft_broadcast_new(1, &cast));
        for (int k = 0; k < 3; k++)
            t[k] = weft_go(hangs, cast);
        for (uint32_t n = pool_random(&random, 300); n > 0; n--)
            cpu_pause();
        weft_cancel(t[pool_random(&random, 3)]);
        ASSERT_OK(weft_broadcast_send(cast, &i));
        ASSERT_OK(weft_broadcast_close(cast));
        for (int k = 0; k < 3; k++) {
            int r = -1;
            ASSERT_OK(weft_join(t[k], &r));
            ASSERT(r == 1 || r == 0 || r == -ECANCELED);
        }
        weft_broadcast_free(cast);
    }
}
TEST(broadcast_cancelled_listeners_leave)
{
    crew_each(cancelled);
}

TEST(cast_bad_arguments)
{
    weft_cast *cast = NULL;
    weft_cursor at = {0};
    int value = 0;

    ASSERT_EQ(weft_broadcast_new_sized(0, 1, &cast), -EINVAL);
    ASSERT_EQ(weft_broadcast_new_sized(4, 0, &cast), -EINVAL);
    ASSERT_EQ(weft_broadcast_new_sized(4, 1, NULL), -EINVAL);
    ASSERT_EQ(weft_watch_new_sized(4, NULL, &cast), -EINVAL);
    ASSERT_EQ(weft_watch_new_sized(0, &value, &cast), -EINVAL);
    ASSERT_EQ(weft_broadcast_send(cast, &value), -EINVAL);
    ASSERT_EQ(weft_broadcast_recv(cast, &at, &value), -EINVAL);
    ASSERT_EQ(weft_broadcast_try_recv(cast, &at, &value), -EINVAL);
    ASSERT_EQ(weft_watch_get(cast, &value), -EINVAL);
    ASSERT_EQ(weft_watch_changed(cast, &at, &value), -EINVAL);
    ASSERT_EQ(weft_broadcast_close(cast), -EINVAL);
    ASSERT_EQ(weft_broadcast_now(cast).next, 0);
    weft_broadcast_free(cast);
}
