/* SPDX-License-Identifier: MIT
 *
 * Cases about time.
 */
#include "leaves.h"
#include "root.h"

#include <stdlib.h>

/* ---- timer_churn: arm an hour out, poll once so that it is linked, cancel; N others are live ----- */

enum { CHURNS = 500000 };

struct churn {
    WEFT_FRAME(int64_t);
    struct weft_sleep *others; /* one for each of `n`; armed in the first round, or to be settled */
    uint64_t n;
    enum { CHURN, ARM, SETTLE } what;
};

static uint64_t arm_others(struct churn *f, weft_cx *cx)
{
    uint64_t pending = 0;
    for (uint64_t i = 0; i < f->n; i++) {
        f->others[i] = (struct weft_sleep){.ns = weft_ms((int64_t)(60000 + i * 60 % 3600000))};
        pending += weft_sleep_poll(&f->others[i], cx) == WEFT_PENDING;
    }
    return pending;
}

static uint64_t settle_others(struct churn *f, weft_cx *cx)
{
    uint64_t settled = 0;
    for (uint64_t i = 0; i < f->n; i++)
        settled += weft__poll_stop(weft_sleep_poll, &f->others[i], cx) == WEFT_READY;
    return settled;
}

static uint64_t churn(weft_cx *cx)
{
    uint64_t pending = 0;
    for (uint64_t i = 0; i < CHURNS; i++) {
        struct weft_sleep sleep = {.ns = weft_ms((int64_t)(3600000 + i % 1000))};
        pending += weft_sleep_poll(&sleep, cx) == WEFT_PENDING;
        (void)weft__poll_stop(weft_sleep_poll, &sleep, cx);
    }
    return pending;
}

static weft_poll churn_poll(void *frame, weft_cx *cx)
{
    struct churn *f = frame;
    switch (f->what) {
    case ARM:
        f->ret = (int64_t)arm_others(f, cx);
        break;
    case SETTLE:
        f->ret = (int64_t)settle_others(f, cx);
        break;
    default:
        f->ret = (int64_t)churn(cx);
        break;
    }
    return WEFT_READY;
}

/* The others outlive the task that arms them: in a benchmark their wakers never come, since they are
 * settled long before their time; the task is kept by a handle until then. */
struct others {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct weft_sleep *sleeps;
    weft_notify *armed;
    weft_notify *over;
    struct churn all;
    struct weft_notify_wait wait;
};

static weft_async(others)
{
    weft_begin;
    weft_await(f->all, churn, f->sleeps, f->n, ARM);
    weft_notify_one(f->armed);
    weft_await(f->wait, weft_notify_wait, f->over);
    weft_await(f->all, churn, f->sleeps, f->n, SETTLE);
    weft_return(f->all.ret);
    weft_end;
}

/* A root around a round: it has the others armed, then churns, then lets them go. */
struct churner {
    WEFT_FRAME(int64_t);
    uint64_t n;
    double *per_op;
    struct weft_sleep *sleeps;
    weft_task *others;
    weft_notify armed, over;
    uint64_t start;
    struct churn churn;
    struct weft_notify_wait wait;
    struct weft_join join;
};

static weft_async(churner)
{
    weft_begin;
    weft_notify_init(&f->armed);
    weft_notify_init(&f->over);
    f->sleeps = f->n ? malloc(f->n * sizeof(*f->sleeps)) : NULL;
    f->others = weft_spawn(others, f->n, f->sleeps, &f->armed, &f->over);
    weft_await(f->wait, weft_notify_wait, &f->armed);
    f->start = bench_now_ns();
    weft_await(f->churn, churn);
    *f->per_op = bench_per_op(f->start, CHURNS);
    weft_notify_one(&f->over);
    weft_await(f->join, weft_join, f->others, NULL);
    free(f->sleeps);
    weft_return(f->churn.ret);
    weft_end;
}

BENCH(timer_churn, .n = 0, .end = root_end)
{
    double per_op = 0;
    (void)root_rt(b);
    bench_check(b, (uint64_t)root_wait(b, weft_spawn(churner, b->n, &per_op)), CHURNS);
    return per_op;
}

/* ---- timer_many: N tasks asleep 0 to 99 ms, all joined -------------------------------------------- */

struct naps {
    WEFT_FRAME(int64_t);
    weft_time ns;
    struct weft_sleep sleep;
};

static weft_async(naps)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, f->ns);
    weft_return(f->sleep.ret == 0);
    weft_end;
}

static void spawn_naps(weft_task **tasks, uint64_t n, uint64_t unused)
{
    (void)unused;
    for (uint64_t i = 0; i < n; i++)
        tasks[i] = weft_spawn(naps, weft_ms((int64_t)(i % 100)));
}

BENCH(timer_many, .n = 1000000, .end = root_end)
{
    uint64_t start = root_start(b);
    return root_finish(b, start, root_all(spawn_naps, b->n, 0), b->n, b->n);
}

/* ---- sleep_error: the median lateness of N sleeps of 1 ms, in nanoseconds -------------------------- */

struct lateness {
    WEFT_FRAME(int64_t);
    uint64_t n, i;
    int64_t *late;
    uint64_t start;
    struct weft_sleep sleep;
};

static weft_async(lateness)
{
    weft_begin;
    for (f->i = 0; f->i < f->n; f->i++) {
        f->start = bench_now_ns();
        weft_await(f->sleep, weft_sleep, weft_ms(1));
        f->late[f->i] = (int64_t)(bench_now_ns() - f->start) - weft_ms(1);
    }
    weft_return((int64_t)f->n);
    weft_end;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

BENCH(sleep_error, .n = 300, .end = root_end)
{
    int64_t *late = calloc(b->n, sizeof(*late));
    (void)root_rt(b);
    bench_check(b, (uint64_t)root_wait(b, weft_spawn(lateness, .n = b->n, .late = late)), b->n);
    qsort(late, b->n, sizeof(*late), by_value);
    uint64_t middle = b->n / 2;
    double median = (double)late[middle];
    free(late);
    return median;
}

/* ---- mem_sleep: N tasks asleep for an hour; resident bytes of each --------------------------------- */

static struct latch asleep;

struct sleeper {
    WEFT_FRAME(int);
    struct weft_sleep sleep;
};

static weft_async(sleeper)
{
    weft_begin;
    latch_count(&asleep);
    weft_await(f->sleep, weft_sleep, weft_secs(3600));
    weft_end;
}

struct dormitory {
    WEFT_FRAME(int64_t);
    uint64_t n;
    struct weft_notify_wait wait;
};

static weft_async(dormitory)
{
    weft_begin;
    latch_init(&asleep, f->n);
    for (uint64_t i = 0; i < f->n; i++)
        (void)weft_detach(weft_spawn(sleeper));
    weft_await(f->wait, weft_notify_wait, &asleep.all);
    weft_return((int64_t)(f->n - latch_left(&asleep)));
    weft_end;
}

BENCH(mem_sleep, .n = 1000000, .once = true, .unit = "B", .end = root_end)
{
    (void)root_rt(b);
    uint64_t before = bench_rss_bytes();
    bench_check(b, (uint64_t)root_wait(b, weft_spawn(dormitory, b->n)), b->n);
    return (double)(bench_rss_bytes() - before) / (double)b->n;
}
