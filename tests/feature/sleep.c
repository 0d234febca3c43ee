/* SPDX-License-Identifier: MIT
 *
 * Sleeping: in fibers, stackless tasks and plain threads; for how long, in which order, given up, moved;
 * and beside others that run.
 */
#include "nap.h"
#include "still.h"
#include "test.h"

#include "base/rand.h"

#include <errno.h>
#include <weft/region.h>

#define HOUR weft_mins(60)

/* ---- one function, two forms ----------------------------------------------------------------- */

/* Answers how long it lasted. */
struct sleeps {
    WEFT_FRAME(int64_t);
    int64_t ns;
    weft_time before;
    struct weft_sleep sleep;
};
static weft_async(sleeps)
{
    weft_begin;
    f->before = weft_now();
    weft_await(f->sleep, weft_sleep, .ns = f->ns);
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : weft_now() - f->before);
    weft_end;
}

/* A clock that stands says exactly how long it was. */
static void lasts(struct crew *crew)
{
    static const int64_t ns[] = {1, 999, 65535, 65536, 65537, 1000000, 4194304, 3600000000000};
    (void)crew;
    for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
        ASSERT_EQ(joined(weft_go(sleeps, ns[i])), ns[i]);
        ASSERT_EQ(joined(weft_spawn(sleeps, ns[i])), ns[i]);
    }
}

TEST(sleep_lasts_as_long_as_asked_for)
{
    still_each(lasts);
}

/* And one that runs never says less. */
static void is_never_early(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 20; i++) {
        ASSERT_GE(joined(weft_go(sleeps, weft_us(50 * i + 1))), weft_us(50 * i + 1));
        ASSERT_GE(joined(weft_spawn(sleeps, weft_us(50 * i + 1))), weft_us(50 * i + 1));
    }
}

TEST(sleep_is_never_early)
{
    crew_each(is_never_early);
}

static void none_is_none(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(joined(weft_go(sleeps, 0)), 0);
    ASSERT_EQ(joined(weft_spawn(sleeps, 0)), 0);
    ASSERT_EQ(joined(weft_go(sleeps, -HOUR)), 0);
    ASSERT_EQ(joined(weft_spawn(sleeps, INT64_MIN)), 0);
}

TEST(sleep_for_nothing_is_over_at_once)
{
    still_each(none_is_none);
}

/* ---- a point in time ------------------------------------------------------------------------- */

static int64_t sleeps_until(weft_time at)
{
    weft_time before = weft_now();
    int r = weft_sleep_until(at);
    return r < 0 ? r : weft_now() - before;
}

struct sleeps_until {
    WEFT_FRAME(int64_t);
    weft_time at, before;
    struct weft_sleep_until sleep;
};
static weft_async(sleeps_until)
{
    weft_begin;
    f->before = weft_now();
    weft_await(f->sleep, weft_sleep_until, f->at);
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : weft_now() - f->before);
    weft_end;
}

static void until(struct crew *crew)
{
    (void)crew;
    weft_time now = weft_now();
    ASSERT_EQ(joined(weft_go(sleeps_until, now + HOUR)), HOUR);
    ASSERT_EQ(joined(weft_spawn(sleeps_until, now + 2 * HOUR)), HOUR);
    ASSERT_EQ(joined(weft_go(sleeps_until, now)), 0);
    ASSERT_EQ(joined(weft_spawn(sleeps_until, INT64_MIN)), 0);
    ASSERT_EQ(weft_now(), now + 2 * HOUR);
}

TEST(sleep_until_ends_at_its_time)
{
    still_each(until);
}

/* ---- several --------------------------------------------------------------------------------- */

#define MANY 200

static _Atomic uint32_t turn;

/* Answers as the how manyth it woke. */
static int64_t wakes_as(int64_t ns)
{
    int r = weft_sleep(ns);
    return r < 0 ? r : (int64_t)fetch_add_relaxed(&turn, 1);
}

struct wakes_as {
    WEFT_FRAME(int64_t);
    int64_t ns;
    struct weft_sleep sleep;
};
static weft_async(wakes_as)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, f->ns);
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : (int64_t)fetch_add_relaxed(&turn, 1));
    weft_end;
}

/* A nanosecond apart, armed in any order: each has its turn before the next one's time comes. */
static void in_order(struct crew *crew)
{
    weft_task *tasks[MANY];
    uint32_t order[MANY];
    struct weft__rand rand;
    (void)crew;

    weft__rand_seed(&rand, test_seed());
    store_relaxed(&turn, 0);
    for (uint32_t i = 0; i < MANY; i++)
        order[i] = i;
    weft__rand_shuffle(&rand, order, MANY, sizeof(order[0]));
    ASSERT_OK(weft_clock_pause(NULL) == -EALREADY ? 0 : -1);
    for (uint32_t i = 0; i < MANY; i++) {
        weft_time at = HOUR + order[i];
        tasks[order[i]] = i % 2 ? weft_go(wakes_as, at) : weft_spawn(wakes_as, at);
    }
    for (uint32_t i = 0; i < MANY; i++)
        ASSERT_GE(joined(tasks[i]), 0);
    ASSERT_EQ(load_relaxed(&turn), MANY);
}

TEST(sleep_many_all_wake)
{
    still_each(in_order);
}

/* Begun by one task, which then goes on: all count from the same time, so the order is exact. */
static int64_t spawns_sleepers(int64_t *wrong)
{
    weft_task *tasks[MANY];

    store_relaxed(&turn, 0);
    for (int64_t i = 0; i < MANY; i++) {
        int64_t at = 1000 + (i * 77) % MANY;
        tasks[(i * 77) % MANY] = weft_spawn(wakes_as, at);
    }
    for (int64_t i = 0; i < MANY; i++) {
        int64_t as = -1;
        int r = weft_join(tasks[i], &as);
        if (r < 0 || as != i) ++*wrong;
    }
    return *wrong;
}

TEST(sleep_wakes_in_the_order_of_deadlines)
{
    struct crew crew;
    int64_t wrong = 0;

    crew_start_with(&crew, &(weft_rt_opts){.workers = 1, .seed = test_seed() | 1, .paused = true});
    ASSERT_EQ(joined(weft_go(spawns_sleepers, &wrong)), 0);
    crew_stop(&crew);
}

/* ---- given up -------------------------------------------------------------------------------- */

static void given_up(struct crew *crew)
{
    (void)crew;
    ASSERT_OK(weft_clock_resume(NULL)); /* so that it does not come to the end of the sleep first */
    for (int i = 0; i < 50; i++) {
        weft_task *t = i % 2 ? weft_go(sleeps, HOUR) : weft_spawn(sleeps, HOUR);
        if (i % 4 < 2) sched_yield();
        weft_cancel(t);
        ASSERT_EQ(joined(t), -ECANCELED);
    }
}

TEST(sleep_that_is_cancelled_ends_at_once)
{
    still_each(given_up);
}

struct cancels_itself {
    WEFT_FRAME(int);
    struct weft_sleep sleep;
};
static weft_async(cancels_itself)
{
    weft_begin;
    weft_cancel(weft_self());
    weft_await(f->sleep, weft_sleep, weft_ms(1)); /* the request comes with the next poll */
    weft_await(f->sleep, weft_sleep, HOUR);
    weft_return(f->sleep.ret);
    weft_end;
}

static void begins_cancelled(struct crew *crew)
{
    int r = 0;
    (void)crew;
    weft_time before = weft_now();
    ASSERT_OK(weft_join(weft_spawn(cancels_itself), &r));
    ASSERT_EQ(r, -ECANCELED);
    ASSERT_LE(weft_now() - before, weft_ms(1));
}

TEST(sleep_of_a_cancelled_task_does_not_begin)
{
    still_each(begins_cancelled);
}

/* At random moments around the end of the sleep: it answers one of two things, and never hangs. */
static void around_the_end(struct crew *crew)
{
    struct weft__rand rand;
    uint64_t rounds = test_scaled(300);
    (void)crew;

    weft__rand_seed(&rand, test_seed());
    for (uint64_t i = 0; i < rounds; i++) {
        int64_t ns = (int64_t)weft__rand_below(&rand, 60000);
        weft_task *t = i % 2 ? weft_go(sleeps, ns) : weft_spawn(sleeps, ns);
        weft_time until = weft_now() + (int64_t)weft__rand_below(&rand, 60000);
        while (weft_now() < until)
            sched_yield();
        weft_cancel(t);
        int64_t r = joined(t);
        ASSERT(r == -ECANCELED || r >= ns);
    }
}

TEST(sleep_cancelled_around_its_end)
{
    crew_each(around_the_end);
}

/* ---- moved ----------------------------------------------------------------------------------- */

/* Polled by hand: begins, is moved twice, and lasts until the last end that it was given. */
struct moves {
    WEFT_FRAME(int64_t);
    weft_time first, second; /* from the beginning; 0: not moved */
    bool before_it_begins;
    weft_time start;
    struct weft_sleep sleep;
};
static weft_poll moves_poll(void *frame, weft_cx *cx)
{
    struct moves *f = frame;
    if (!f->start) {
        f->start = weft_now();
        f->sleep = (struct weft_sleep){.ns = HOUR};
        if (!f->before_it_begins) (void)weft_sleep_poll(&f->sleep, cx);
        if (f->first) weft_sleep_reset(&f->sleep, f->start + f->first);
        if (f->second) weft_sleep_reset(&f->sleep, f->start + f->second);
    }
    if (weft_sleep_poll(&f->sleep, cx) == WEFT_PENDING) return WEFT_PENDING;
    f->ret = f->sleep.ret < 0 ? f->sleep.ret : weft_now() - f->start;
    return WEFT_READY;
}

static void moved(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(joined(weft_spawn(moves)), HOUR);
    ASSERT_EQ(joined(weft_spawn(moves, .first = 5)), 5);
    ASSERT_EQ(joined(weft_spawn(moves, .first = 3 * HOUR)), 3 * HOUR);
    ASSERT_EQ(joined(weft_spawn(moves, .first = 5, .second = 2 * HOUR)), 2 * HOUR);
    ASSERT_EQ(joined(weft_spawn(moves, .first = 7, .before_it_begins = true)), 7);
    ASSERT_EQ(joined(weft_spawn(moves, .first = -1)), 0);
}

TEST(sleep_reset_moves_its_end)
{
    still_each(moved);
}

/* ---- the ends of time ------------------------------------------------------------------------ */

/* However far: armed and taken out again, after a minute, exactly. */
static int64_t minute_of(int64_t ns, int64_t at)
{
    weft_time before = weft_now();
    int r = 0;
    int s = 0;
    WEFT_TIMEOUT(weft_mins(1)) r = weft_sleep(ns);
    WEFT_TIMEOUT(weft_mins(1)) s = weft_sleep_until(at);
    return r == -ETIME && s == -ETIME ? weft_now() - before : -EBADMSG;
}

static int64_t ticks_once(int64_t period)
{
    weft_interval every = weft_interval_of(period);
    int r = weft_tick(&every);
    if (r < 0) return r;
    WEFT_TIMEOUT(weft_mins(1)) r = weft_tick(&every);
    return r;
}

static void ends_of_time(struct crew *crew)
{
    static const int64_t far[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_C(1) << 62};
    (void)crew;
    for (int i = 0; i < 4; i++) {
        ASSERT_EQ(joined(weft_go(minute_of, far[i], far[i])), weft_mins(2));
        ASSERT_EQ(joined(weft_go(ticks_once, far[i])), -ETIME);
    }
    ASSERT_EQ(joined(weft_spawn(sleeps, INT64_MIN)), 0);
    ASSERT_EQ(joined(weft_go(sleeps, INT64_MIN)), 0);
    ASSERT_OK(weft_sleep_until(INT64_MIN));
    ASSERT_EQ(weft_secs(INT64_MAX), WEFT_FOREVER);
    ASSERT_EQ(weft_later(WEFT_FOREVER, 1), WEFT_FOREVER);
    ASSERT_EQ(weft_later(INT64_MIN, -1), INT64_MIN);
}

TEST(sleep_at_the_ends_of_time)
{
    still_each(ends_of_time);
}

/* A clock that has jumped by years, as a suspended machine's would: all that was due fires, each once. */
static void after_years(struct crew *crew)
{
    enum { COUNT = 50 };
    weft_task *task[COUNT];
    weft_stats stats;
    uint64_t woken = 0;

    ASSERT_OK(weft_clock_resume(crew->rt));
    for (int64_t i = 0; i < COUNT; i++)
        task[i] = weft_go(sleeps, weft_mins(1 + i * i * 1000)); /* up to five years */
    do
        weft_rt_stats(crew->rt, &stats); /* until they sleep, or nearly so */
    while (stats.polls < COUNT);
    ASSERT_OK(weft_clock_pause(crew->rt));
    ASSERT_OK(weft_clock_advance(crew->rt, weft_mins(INT64_C(10) * 365 * 24 * 60)));
    for (int i = 0; i < COUNT; i++)
        woken += joined(task[i]) > 0;
    ASSERT_EQ(woken, COUNT);
}

TEST(sleep_while_the_clock_jumps_by_years)
{
    still_each(after_years);
}

/* ---- plain threads --------------------------------------------------------------------------- */

/* No runtime at all: the system's clock. */
TEST(sleep_on_a_plain_thread)
{
    weft_time before = weft_now();

    ASSERT_OK(weft_sleep(weft_ms(2)));
    ASSERT_GE(weft_now() - before, weft_ms(2));
    ASSERT_OK(weft_sleep_until(before + weft_ms(5)));
    ASSERT_GE(weft_now() - before, weft_ms(5));
    ASSERT_OK(weft_sleep(0));
    ASSERT_GE(weft_run(sleeps, .ns = weft_ms(1)), weft_ms(1));
}

/* Two sleeps in one frame: the thread's wheel has both. */
struct two {
    WEFT_FRAME(int);
    struct weft_sleep a, b;
    int done;
};
static weft_poll two_poll(void *frame, weft_cx *cx)
{
    struct two *f = frame;
    if (!(f->done & 1) && weft_sleep_poll(&f->a, cx) == WEFT_READY) f->done |= 1;
    if (!(f->done & 2) && weft_sleep_poll(&f->b, cx) == WEFT_READY) f->done |= 2;
    return f->done == 3 ? WEFT_READY : WEFT_PENDING;
}

TEST(sleep_twice_at_once_on_a_plain_thread)
{
    weft_time before = weft_now();

    (void)weft_run(two, .a = {.ns = weft_us(300)}, .b = {.ns = weft_us(900)});
    ASSERT_GE(weft_now() - before, weft_us(900));
}

/* A thread that has entered a runtime sleeps on its clock, beside the runtime's tasks. */
static void thread_inside(struct crew *crew)
{
    (void)crew;
    weft_time before = weft_now();
    weft_task *t = weft_go(sleeps, 2 * HOUR);
    ASSERT_OK(weft_sleep(HOUR));
    ASSERT_GE(weft_now() - before, HOUR);
    ASSERT_EQ(joined(t), 2 * HOUR);
    ASSERT_EQ(weft_run(sleeps, .ns = HOUR), HOUR);
}

TEST(sleep_on_a_thread_that_has_entered_a_runtime)
{
    still_each(thread_inside);
}

/* ---- beside others --------------------------------------------------------------------------- */

static _Atomic bool quit;

static int spins(void)
{
    while (!load_relaxed(&quit))
        (void)weft_yield();
    return 0;
}

/* Workers that never run dry look at their wheels from the tick. */
static void beside_busy(struct crew *crew)
{
    weft_task *busy[8];
    (void)crew;

    store_relaxed(&quit, false);
    for (int i = 0; i < 8; i++)
        busy[i] = weft_go(spins);
    for (int i = 0; i < 10; i++)
        ASSERT_GE(joined(weft_go(sleeps, weft_us(200))), weft_us(200));
    store_relaxed(&quit, true);
    for (int i = 0; i < 8; i++)
        ASSERT_OK(weft_join(busy[i], NULL));
}

TEST(sleep_beside_tasks_that_never_rest)
{
    crew_each(beside_busy);
}

/* ---- past, beside others that are busy --------------------------------------------------------- */

static _Atomic uint64_t others; /* relaxed everywhere, both: one worker has all of them */
static _Atomic bool others_end;

static int yields_and_counts(void)
{
    int r = 0;
    while (r == 0 && !load_relaxed(&others_end)) {
        fetch_add_relaxed(&others, 1);
        r = weft_yield();
    }
    return r;
}

/* A deadline that has just passed is over after one turn, not at the next time that a busy worker looks at all its timers. */
static int sleeps_until_just_now(void)
{
    int r = 0;
    for (int64_t back = 0; r == 0 && back < 10000; back += 500) {
        uint64_t before = load_relaxed(&others);
        r = weft_sleep_until(weft_now() - back);
        ASSERT_LE(load_relaxed(&others) - before, 8);
    }
    store_relaxed(&others_end, true);
    return r;
}

static int busy_and_late(void)
{
    store_relaxed(&others_end, false);
    weft_task *a = weft_go(yields_and_counts);
    weft_task *b = weft_go(yields_and_counts);
    int r = 0;
    ASSERT_OK(weft_join(weft_go(sleeps_until_just_now), &r));
    ASSERT_OK(weft_join(a, NULL));
    ASSERT_OK(weft_join(b, NULL));
    return r;
}

static void just_now(struct crew *crew)
{
    int r = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(busy_and_late), &r));
    ASSERT_OK(r);
}

TEST(sleep_until_just_now_beside_busy_tasks)
{
    crew_each_of(just_now, 1, -1);
}

/* Thousands on a clock that runs, each as long as asked for. */
static void thousands(struct crew *crew)
{
    uint64_t count = test_scaled(20000);
    weft_task **tasks = calloc(count, sizeof(*tasks));
    struct weft__rand rand;
    (void)crew;

    ASSERT(tasks != NULL);
    weft__rand_seed(&rand, test_seed());
    for (uint64_t i = 0; i < count; i++)
        tasks[i] = weft_spawn(sleeps, (int64_t)weft__rand_below(&rand, 30000000));
    for (uint64_t i = 0; i < count; i++)
        ASSERT_GE(joined(tasks[i]), 0);
    free(tasks);
}

TEST(sleep_by_thousands)
{
    crew_each(thousands);
}
