/* SPDX-License-Identifier: MIT
 *
 * weft_try_all stops the others as soon as one has failed, wherever among them it stands: also those that were polled before it, and for which no wake
 * will ever come. On a clock that stands: what is told at once takes no time.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

#define LONG_TIME weft_secs(3600)

static struct {
    weft_event never;
    weft_event fails; /* set: the failing arm goes on to fail */
    weft_sem sem;
    weft_mutex mutex;
} of;

/* Fails in its first poll, or behind a wait. */
struct failing {
    WEFT_FRAME(int);
    bool waits;
    struct weft_event_wait wait;
};
static weft_async(failing)
{
    weft_begin;
    if (f->waits) weft_await(f->wait, weft_event_wait, &of.fails);
    weft_return(-EIO);
    weft_end;
}

/* Told to stop it still has something to do. */
struct thorough {
    WEFT_FRAME(int);
    struct weft_event_wait wait;
    struct weft_sleep last;
    struct weft_shield shield;
};
static weft_async(thorough)
{
    weft_begin;
    weft_await(f->wait, weft_event_wait, &of.never);
    weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->last, weft_sleep, weft_ms(1)));
    weft_return(f->wait.ret);
    weft_end;
}

struct stackless {
    WEFT_FRAME(int);
    int at;
    bool waits;
    weft_time begun;
    weft_time took;
    int rets[4];
    struct failing failing;
    struct weft_event_wait event;
    struct weft_sleep sleep;
    struct weft_sem_acquire sem;
    struct thorough thorough;
    struct weft_try_all all;
};
/* The one that fails stands in place `at`. */
static weft_async(stackless)
{
    weft_future arm[4];
    weft_begin;
    f->begun = weft_now();
    weft_future fails = weft_arm(f->failing, failing, .waits = f->waits);
    weft_future others[] = {weft_arm(f->event, weft_event_wait, &of.never),
                            weft_arm(f->sleep, weft_sleep, LONG_TIME),
                            weft_arm(f->sem, weft_sem_acquire, &of.sem, 1)};
    for (int i = 0, next = 0; i < 4; i++)
        arm[i] = i == f->at ? fails : others[next++];
    weft_await(f->all, weft_try_all, .arm = {arm[0], arm[1], arm[2], arm[3]});
    ASSERT_EQ(f->all.ret, -EIO);
    ASSERT_EQ(f->event.ret, -ECANCELED);
    ASSERT_EQ(f->sleep.ret, -ECANCELED);
    ASSERT_EQ(f->sem.ret, -ECANCELED);
    f->took = weft_now() - f->begun;
    ASSERT_EQ(f->took, 0);
    weft_return(0);
    weft_end;
}

static int on_a_fiber(int at, int waits)
{
    struct failing failing;
    struct weft_event_wait event;
    struct weft_sleep sleep;
    struct weft_lock lock;
    weft_time begun = weft_now();
    int r;

    if (at == 0) {
        r = weft_try_all(
            weft_arm(failing, failing, .waits = waits), weft_arm(event, weft_event_wait, &of.never),
            weft_arm(sleep, weft_sleep, LONG_TIME), weft_arm(lock, weft_lock, &of.mutex));
    } else {
        r = weft_try_all(
            weft_arm(event, weft_event_wait, &of.never), weft_arm(sleep, weft_sleep, LONG_TIME),
            weft_arm(lock, weft_lock, &of.mutex), weft_arm(failing, failing, .waits = waits));
    }
    ASSERT_EQ(r, -EIO);
    ASSERT_EQ(event.ret, -ECANCELED);
    ASSERT_EQ(sleep.ret, -ECANCELED);
    ASSERT_EQ(lock.ret, -ECANCELED);
    ASSERT_EQ(weft_now() - begun, 0);
    return 0;
}

/* Those who wait are awaited, though they had their turn in the poll that failed. */
static int the_thorough(void)
{
    struct failing failing;
    struct thorough thorough;
    weft_time begun = weft_now();

    ASSERT_EQ(weft_try_all(weft_arm(thorough, thorough), weft_arm(failing, failing)), -EIO);
    ASSERT_EQ(thorough.ret, -ECANCELED);
    ASSERT_OK(thorough.shield.ret);
    ASSERT_EQ(weft_now() - begun, weft_ms(1));
    return 0;
}

/* ---- the runs: everything lies inside of one task, so that the clock moves only when all wait ---- */

static int one_fails(weft_task *t, bool waits)
{
    int r = -1;
    if (waits) {
        for (int i = 0; i < 10; i++)
            ASSERT_OK(weft_yield());
        weft_event_set(&of.fails);
    }
    ASSERT_OK(weft_join(t, &r));
    weft_event_reset(&of.fails);
    return r;
}

static int all_of_them(void)
{
    ASSERT_OK(weft_lock(&of.mutex));
    for (int waits = 0; waits < 2; waits++) {
        for (int at = 0; at < 4; at++)
            ASSERT_OK(one_fails(weft_spawn(stackless, .at = at, .waits = waits), waits));
        for (int at = 0; at < 2; at++)
            ASSERT_OK(one_fails(weft_go(on_a_fiber, at, waits), waits));
    }
    ASSERT_OK(the_thorough());
    ASSERT_OK(weft_unlock(&of.mutex));
    return 0;
}

TEST(try_all_stops_those_that_were_polled_before)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int r = -1;
        crew_start_with(
            &crew,
            &(weft_rt_opts){.workers = crew_sizes[i], .seed = test_seed() | 1, .paused = true});
        weft_event_init(&of.never);
        weft_event_init(&of.fails);
        weft_sem_init(&of.sem, 0);
        weft_mutex_init(&of.mutex);
        ASSERT_OK(weft_join(weft_go(all_of_them), &r));
        ASSERT_OK(r);
        weft_event_done(&of.never);
        weft_event_done(&of.fails);
        weft_sem_done(&of.sem);
        weft_mutex_done(&of.mutex);
        crew_stop(&crew);
    }
}
