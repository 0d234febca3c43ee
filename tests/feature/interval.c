/* SPDX-License-Identifier: MIT
 *
 * Intervals: when the ticks come, and what becomes of those that were missed; exact, on a clock that
 * stands.
 */
#include "still.h"
#include "test.h"

#include <errno.h>

#define TICKS 6

/* When each tick came, from the beginning; and how long to work behind each. */
struct log {
    int64_t at[TICKS];
    int64_t work[TICKS];
};

struct ticks {
    WEFT_FRAME(int);
    weft_interval every;
    struct log *log;
    weft_time start;
    int i;
    struct weft_tick tick;
    struct weft_sleep sleep;
};
static weft_async(ticks)
{
    weft_begin;
    f->start = weft_now();
    if (f->every.next != WEFT__AT_ONCE) f->every.next += f->start;
    for (f->i = 0; f->i < TICKS; f->i++) {
        weft_await(f->tick, weft_tick, &f->every);
        if (f->tick.ret < 0) weft_return(f->tick.ret);
        f->log->at[f->i] = weft_now() - f->start;
        weft_await(f->sleep, weft_sleep, f->log->work[f->i]);
    }
    weft_return((int)f->every.ticks);
    weft_end;
}

static int ticks(weft_interval *every, struct log *log)
{
    weft_time start = weft_now();
    if (every->next != WEFT__AT_ONCE) every->next += start;
    for (int i = 0; i < TICKS; i++) {
        int r = weft_tick(every);
        if (r < 0) return r;
        log->at[i] = weft_now() - start;
        r = weft_sleep(log->work[i]);
        if (r < 0) return r;
    }
    return (int)every->ticks;
}

/* In both forms, and on the test's own thread. */
static void expect(weft_interval every, const int64_t *work, const int64_t *at)
{
    for (int form = 0; form < 3; form++) {
        struct log log = {{0}, {0}};
        weft_interval copy = every;
        int count = -1;
        for (int i = 0; i < TICKS; i++)
            log.work[i] = work[i];
        switch (form) {
        case 0:
            ASSERT_OK(weft_join(weft_spawn(ticks, every, &log), &count));
            break;
        case 1:
            ASSERT_OK(weft_join(weft_go(ticks, &copy, &log), &count));
            break;
        default:
            count = ticks(&copy, &log);
            break;
        }
        ASSERT_EQ(count, TICKS);
        for (int i = 0; i < TICKS; i++)
            ASSERT_EQ(log.at[i], at[i]);
    }
}

static const int64_t short_work[TICKS] = {3, 3, 3, 3, 3, 3};
static const int64_t long_work[TICKS] = {0, 25, 0, 0, 0, 0}; /* in a period of 10 */

static void on_time(struct crew *crew)
{
    (void)crew;
    expect(weft_interval_of(10), short_work, (int64_t[]){0, 10, 20, 30, 40, 50});
    expect(weft_interval_at(7, 10), short_work, (int64_t[]){7, 17, 27, 37, 47, 57});
}

TEST(interval_ticks_come_a_period_apart)
{
    still_each(on_time);
}

/* Ticks at 20 and 30 are missed; the work behind the tick at 10 lasts until 35. */
static void missed(struct crew *crew)
{
    weft_interval every = weft_interval_of(10);
    (void)crew;
    expect(every, long_work, (int64_t[]){0, 10, 35, 35, 40, 50});
    every.missed = WEFT_MISSED_DELAY;
    expect(every, long_work, (int64_t[]){0, 10, 35, 45, 55, 65});
    every.missed = WEFT_MISSED_SKIP;
    expect(every, long_work, (int64_t[]){0, 10, 35, 40, 50, 60});
}

TEST(interval_missed_ticks_in_three_ways)
{
    still_each(missed);
}

static void of_nothing(struct crew *crew)
{
    weft_interval every = weft_interval_of(0);
    struct log log = {{0}, {0}};
    int r = 0;
    (void)crew;
    ASSERT_EQ(weft_tick(&every), -EINVAL);
    every.period = -1;
    ASSERT_OK(weft_join(weft_spawn(ticks, every, &log), &r));
    ASSERT_EQ(r, -EINVAL);
    ASSERT_EQ(weft_tick(NULL), -EINVAL);
}

TEST(interval_of_no_time_is_refused)
{
    still_each(of_nothing);
}

/* A tick that was given up was not taken: the next one is still to come. */
static int given_up(weft_interval *every)
{
    return weft_tick(every);
}

static void gives_up(struct crew *crew)
{
    weft_interval every = weft_interval_at(weft_now() + weft_mins(60), 10);
    weft_time next = every.next;
    int r = 0;
    (void)crew;
    ASSERT_OK(weft_clock_resume(NULL));
    weft_task *t = weft_go(given_up, &every);
    weft_cancel(t);
    ASSERT_OK(weft_join(t, &r));
    ASSERT_EQ(r, -ECANCELED);
    ASSERT_EQ(every.ticks, 0);
    ASSERT_EQ(every.next, next);
}

TEST(interval_tick_given_up_is_not_taken)
{
    still_each(gives_up);
}

static int resets(int64_t *late)
{
    weft_interval every = weft_interval_of(10);
    weft_time start = weft_now();
    int r = weft_tick(&every);
    if (r == 0) r = weft_sleep(4);
    weft_interval_reset(&every);
    if (r == 0) r = weft_tick(&every);
    *late = weft_now() - start;
    return r;
}

static void reset(struct crew *crew)
{
    int64_t late = 0;
    int r = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(resets, &late), &r));
    ASSERT_OK(r);
    ASSERT_EQ(late, 14);
}

TEST(interval_reset_begins_a_period_anew)
{
    still_each(reset);
}

/* A million periods behind: no loop counts them. */
static void far_behind(struct crew *crew)
{
    weft_interval every = weft_interval_at(weft_now() - weft_secs(1), 1000);
    weft_time now = weft_now();
    (void)crew;
    every.missed = WEFT_MISSED_SKIP;
    ASSERT_OK(weft_tick(&every));
    ASSERT_EQ(every.next, now + 1000);
}

TEST(interval_skips_any_number_at_once)
{
    still_each(far_behind);
}
