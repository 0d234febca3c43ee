/* SPDX-License-Identifier: MIT
 *
 * weft_pull and sources on real runtimes: one way to ask channels, sets, delay queues, intervals, generators and a program's own; sources around others, their
 * times on a clock that stands; and that nothing is lost when a pull is given up.
 */
#include "crew.h"
#include "still.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

typedef WEFT_CHAN(int) int_chan;
typedef WEFT_SET(int) int_set;
typedef WEFT_DELAY(int) int_delay;

/* A channel that was sent 0 .. count - 1, and closed. */
static int_chan *counted(int count)
{
    int_chan *chan;
    ASSERT_OK(weft_chan_unbounded(&chan));
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_send(chan, &i));
    ASSERT_OK(weft_chan_close(chan));
    return chan;
}

struct numbers {
    WEFT_ITEMS(int);
    int count;
    int i;
    struct weft_yield pause;
};
static weft_async(numbers)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++) {
        weft_await(f->pause, weft_yield);
        weft_emit(f->i);
        if (f->ret < 0) weft_return(f->ret);
    }
    weft_return(0);
    weft_end;
}

/* ---- anything ------------------------------------------------------------------------------------------------ */

static int all_kinds(void)
{
    int_chan *chan = counted(3);
    int_set set = {0};
    int_delay *queue;
    weft_interval every = weft_interval_of(weft_ms(10));
    weft_time at;
    weft_time start = weft_now();
    int got = -1;

    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(weft_pull(chan, &got), 1);
        ASSERT_EQ(got, i);
    }
    ASSERT_EQ(weft_pull(chan, &got), 0);
    weft_chan_free(chan);

    ASSERT_OK(weft_set_go(&set, answers, 7));
    ASSERT_EQ(weft_pull(&set, &got), 1);
    ASSERT_EQ(got, 7);
    ASSERT_EQ(weft_pull(&set, &got), 0);
    weft_set_done(&set);

    ASSERT_OK(weft_delay_new(&queue));
    ASSERT_OK(weft_delay_insert(queue, &got, weft_ms(1), NULL));
    ASSERT_OK(weft_delay_close(queue));
    ASSERT_EQ(weft_pull(queue, &got), 1);
    ASSERT_EQ(weft_pull(queue, &got), 0);
    weft_delay_free(queue);

    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(weft_pull(&every, &at), 1);
        ASSERT_EQ(at - start, weft_ms(1 + 10 * i));
        ASSERT_EQ(weft_now(), at);
    }
    every.period = 0;
    ASSERT_EQ(weft_pull(&every, &at), -EINVAL);
    return 0;
}

TEST(pull_takes_the_next_of_anything)
{
    each_paused(all_kinds);
}

struct pulls_all {
    WEFT_FRAME(int);
    int_chan *chan;
    int_set set;
    int_delay *queue;
    struct numbers generator;
    struct weft_from_generator from;
    weft_interval every;
    weft_time at;
    int got;
    int i;
    struct weft_pull pull;
};
static weft_async(pulls_all)
{
    weft_begin;
    for (f->i = 0;; f->i++) {
        weft_await(f->pull, weft_pull, f->chan, &f->got);
        if (f->pull.ret <= 0) break;
        ASSERT_EQ(f->got, f->i);
    }
    ASSERT_EQ(f->i, 5);
    ASSERT_OK(weft_set_try_go(&f->set, answers, 8));
    weft_await(f->pull, weft_pull, &f->set, &f->got);
    ASSERT_EQ(f->pull.ret, 1);
    ASSERT_EQ(f->got, 8);
    weft_set_done(&f->set);
    f->at = weft_now();
    for (f->i = 1; f->i <= 3; f->i++) { /* by the time that they are due, not as they were put in */
        weft_await(f->pull, weft_pull, f->queue, &f->got);
        ASSERT_EQ(f->pull.ret, 1);
        ASSERT_EQ(f->got, f->i);
        ASSERT_EQ(weft_now() - f->at, weft_ms(f->i));
    }
    weft_await(f->pull, weft_pull, f->queue, &f->got);
    ASSERT_EQ(f->pull.ret, 0);
    weft_start(f->generator, numbers, .count = 4);
    f->from = weft_from_generator(&f->generator, numbers);
    for (f->i = 0;; f->i++) {
        weft_await(f->pull, weft_pull, &f->from.source, &f->got);
        if (f->pull.ret <= 0) break;
        ASSERT_EQ(f->got, f->i);
    }
    ASSERT_EQ(f->pull.ret, 0);
    ASSERT_EQ(f->i, 4);
    f->every = weft_interval_of(weft_ms(1));
    for (f->i = 0; f->i < 3; f->i++) {
        weft_await(f->pull, weft_pull, &f->every, &f->at);
        ASSERT_EQ(f->pull.ret, 1);
    }
    weft_return(0);
    weft_end;
}

static int stackless_pulls(void)
{
    int_chan *chan = counted(5);
    int_delay *queue;
    ASSERT_OK(weft_delay_new(&queue));
    for (int i = 3; i > 0; i--)
        ASSERT_OK(weft_delay_insert(queue, &i, weft_ms(i), NULL));
    ASSERT_OK(weft_delay_close(queue));
    int r = weft_run(pulls_all, .chan = chan, .queue = queue);
    weft_delay_free(queue);
    weft_chan_free(chan);
    return r;
}

TEST(pull_is_awaited)
{
    each_paused(stackless_pulls);
}

/* ---- functions over sources ----------------------------------------------------------------------------------- */

/* Sums whatever it is given, and does not know what that is. */
static int sums(weft_source *numbers_of)
{
    int sum = 0;
    int got;
    int r;
    while ((r = weft_pull(numbers_of, &got)) > 0)
        sum += got;
    return r < 0 ? r : sum;
}

static int is_odd(void *ctx, void *item)
{
    (void)ctx;
    return *(int *)item % 2;
}

static int fails_at(void *ctx, void *item)
{
    return *(int *)item == *(int *)ctx ? -EIO : 1;
}

struct named {
    char name[8];
    int number;
};
static int names(void *ctx, const void *in, void *into)
{
    struct named *named = into;
    named->number = *(const int *)in;
    memcpy(named->name, ctx, sizeof(named->name));
    return named->number != 3; /* that one is left out */
}

static int over_and_around(void)
{
    int_chan *chan = counted(10);
    struct weft_from from = weft_from(chan);
    struct weft_filter odd = weft_filter(&from.source, is_odd, NULL);
    ASSERT_EQ(sums(&odd.source), 1 + 3 + 5 + 7 + 9);
    ASSERT_EQ(sums(&odd.source), 0); /* the end stays */
    weft_chan_free(chan);

    struct numbers generator;
    weft_start(generator, numbers, .count = 6);
    struct weft_from_generator gen = weft_from_generator(&generator, numbers);
    struct weft_take four = weft_take(&gen.source, 4);
    ASSERT_EQ(sums(&four.source), 0 + 1 + 2 + 3);
    ASSERT_EQ(sums(&gen.source), 4 + 5); /* what was not taken is still there */

    chan = counted(6);
    int in;
    int at = 4;
    struct named named;
    char x[8] = "x";
    from = weft_from(chan);
    struct weft_filter failing = weft_filter(&from.source, fails_at, &at);
    struct weft_map map = weft_map(&failing.source, names, x, &in, struct named);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(weft_pull(&map.source, &named), 1);
        ASSERT_EQ(named.number, i);
        ASSERT_STR(named.name, "x");
    }
    ASSERT_EQ(weft_pull(&map.source, &in), -EINVAL); /* of another size */
    ASSERT_EQ(weft_pull(&map.source, &named), -EIO);
    ASSERT_EQ(weft_pull(&map.source, &named), 1); /* an error is an answer, no end */
    ASSERT_EQ(named.number, 5);
    ASSERT_EQ(weft_pull(&map.source, &named), 0);
    weft_chan_free(chan);
    return 0;
}

TEST(source_functions_take_any)
{
    each_paused(over_and_around);
}

static int over_casts(void)
{
    typedef WEFT_BROADCAST(int) int_cast;
    typedef WEFT_WATCH(int) int_watch;
    int_cast *cast;
    int_watch *watch;
    weft_cursor at = {0};
    weft_cursor seen = {0};
    int got = 0;

    ASSERT_OK(weft_broadcast_new(4, &cast));
    struct weft_from_cast heard = weft_from_broadcast(cast, &at);
    struct weft_filter odd = weft_filter(&heard.source, is_odd, NULL);
    for (int i = 0; i < 6; i++)
        ASSERT_OK(weft_broadcast_send(cast, &i));
    ASSERT_EQ(weft_pull(&odd.source, &got), -EOVERFLOW); /* 0 and 1 are gone */
    ASSERT_EQ(at.missed, 2);
    ASSERT_OK(weft_broadcast_close(cast));
    ASSERT_EQ(sums(&odd.source), 3 + 5);
    weft_broadcast_free(cast);

    int first = 8;
    ASSERT_OK(weft_watch_new(&first, &watch));
    struct weft_from_cast sight = weft_from_watch(watch, &seen);
    ASSERT_EQ(weft_pull(&sight.source, &got), 1);
    ASSERT_EQ(got, 8);
    int r = 0;
    WEFT_TIMEOUT(weft_ms(1)) r = weft_pull(&sight.source, &got);
    ASSERT_EQ(r, -ETIME);
    first = 9;
    ASSERT_OK(weft_watch_set(watch, &first));
    ASSERT_OK(weft_watch_close(watch));
    ASSERT_EQ(sums(&sight.source), 9);
    weft_watch_free(watch);
    return 0;
}

TEST(source_over_broadcast_and_watch)
{
    each_paused(over_casts);
}

/* ---- a source of the program's own ------------------------------------------------------------------------------ */

struct countdown {
    weft_source source;
    int left;
    bool yielded;
};

static weft_poll countdown_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct countdown *f = (struct countdown *)(void *)source;
    source->ret = weft_cx_cancelled(cx);
    if (source->ret < 0) return WEFT_READY;
    f->yielded = !f->yielded;
    if (f->yielded) { /* not at once */
        weft_waker_wake(weft_cx_waker(cx));
        return WEFT_PENDING;
    }
    *(int *)into = f->left;
    source->ret = f->left-- > 0;
    return WEFT_READY;
}

static int own_source(void)
{
    struct countdown down = {.source = {.poll = countdown_poll, .item_bytes = sizeof(int)},
                             .left = 10};
    ASSERT_EQ(sums(&down.source), 55);
    struct countdown again = {.source = {.poll = countdown_poll, .item_bytes = sizeof(int)},
                              .left = 3};
    struct weft_pull pull;
    struct weft_sleep sleep;
    int got = 0;
    /* A look is not for it: it begins in its turn, and finishes before the sleep does. */
    ASSERT_EQ(weft_select(weft_arm(pull, weft_pull, &again.source, &got),
                          weft_arm(sleep, weft_sleep, weft_secs(1))),
              0);
    ASSERT_EQ(got, 3);
    return 0;
}

TEST(source_of_the_program)
{
    each_paused(own_source);
}

/* ---- merge -------------------------------------------------------------------------------------------------------- */

static int feeds(int_chan *chan, int from, int count, int ms)
{
    for (int i = 0; i < count; i++) {
        (void)weft_sleep(weft_ms(ms));
        int item = from + i;
        ASSERT_OK(weft_send(chan, &item));
    }
    return weft_chan_close(chan);
}

static int merged(void)
{
    int_chan *chan[3];
    struct weft_from from[3];
    weft_source *of[3];
    int late[3];
    weft_task *task[3];
    int seen[3] = {0};
    int got;
    int r;

    for (int i = 0; i < 3; i++) {
        ASSERT_OK(weft_chan_new(1, &chan[i]));
        from[i] = weft_from(chan[i]);
        of[i] = &from[i].source;
        task[i] = weft_go(feeds, chan[i], 1000 * i, 20 + i, i);
    }
    struct weft_merge all = weft_merge(of, 3, late);
    while ((r = weft_pull(&all.source, &got)) > 0) {
        ASSERT_EQ(got % 1000, seen[got / 1000]); /* each in its order */
        seen[got / 1000]++;
    }
    ASSERT_OK(r);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(seen[i], 20 + i);
        ASSERT_OK(weft_join(task[i], &r));
        weft_chan_free(chan[i]);
    }
    struct weft_merge none = weft_merge(of, 0, late);
    ASSERT_EQ(weft_pull(&none.source, &got), -EINVAL);
    return 0;
}

TEST(source_merge_takes_from_all)
{
    each_paused(merged);
}

/* Two that are always ready are served alike. */
static int merged_fairly(void)
{
    int_chan *one = counted(100);
    int_chan *two = counted(100);
    struct weft_from from[2] = {weft_from(one), weft_from(two)};
    weft_source *of[] = {&from[0].source, &from[1].source};
    int late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    int got;
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(weft_pull(&both.source, &got), 1);
        ASSERT_EQ(got, i / 2);
    }
    ASSERT_EQ(weft_pull(&both.source, &got), 0);
    weft_chan_free(one);
    weft_chan_free(two);
    return 0;
}

TEST(source_merge_is_fair)
{
    each_paused(merged_fairly);
}

/* Ticks are taken by the clock, whoever asks: of intervals that tick at one time none is lost. */
static int merged_ticks(void)
{
    weft_interval a = weft_interval_of(weft_ms(10));
    weft_interval b = weft_interval_of(weft_ms(10));
    struct weft_from from[2] = {weft_from(&a), weft_from(&b)};
    weft_source *of[] = {&from[0].source, &from[1].source};
    weft_time late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    weft_time start = weft_now();
    weft_time at;
    for (int i = 0; i < 40; i++) {
        ASSERT_EQ(weft_pull(&both.source, &at), 1);
        ASSERT_EQ(at - start, weft_ms(10 * (i / 2)));
    }
    ASSERT_EQ(a.ticks + b.ticks, 40 + (uint64_t)__builtin_popcountll(both.weft__late));
    return 0;
}

TEST(source_merge_loses_no_tick)
{
    each_paused(merged_ticks);
}

/* ---- chunks, within, throttle ---------------------------------------------------------------------------------------- */

static int chunked(void)
{
    int_chan *chan;
    int batch[4];
    weft_time start = weft_now();

    chan = counted(10);
    struct weft_from from = weft_from(chan);
    struct weft_chunks some = weft_chunks(&from.source, 4, WEFT_FOREVER);
    ASSERT_EQ(weft_pull(&some.source, batch), 4);
    ASSERT_EQ(batch[3], 3);
    ASSERT_EQ(weft_pull(&some.source, batch), 4);
    ASSERT_EQ(weft_pull(&some.source, batch), 2);
    ASSERT_EQ(batch[1], 9);
    ASSERT_EQ(weft_pull(&some.source, batch), 0);
    ASSERT_EQ(weft_pull(&some.source, batch), 0);
    weft_chan_free(chan);
    ASSERT_EQ(weft_now(), start);

    /* One each 10 ms: the time of a chunk begins with its first item. */
    ASSERT_OK(weft_chan_new(1, &chan));
    weft_task *task = weft_go(feeds, chan, 0, 6, 10);
    from = weft_from(chan);
    some = weft_chunks(&from.source, 4, weft_ms(25));
    ASSERT_EQ(weft_pull(&some.source, batch), 3); /* at 10, 20, 30; 35 */
    ASSERT_EQ(weft_now() - start, weft_ms(35));
    ASSERT_EQ(weft_pull(&some.source, batch), 3); /* at 40, 50, 60, and the end */
    ASSERT_EQ(batch[0], 3);
    ASSERT_EQ(weft_now() - start, weft_ms(60));
    ASSERT_EQ(weft_pull(&some.source, batch), 0);
    ASSERT_OK(weft_join(task, &batch[0]));
    weft_chan_free(chan);

    /* Given up, it is what there is. */
    ASSERT_OK(weft_chan_new(1, &chan));
    task = weft_go(feeds, chan, 0, 5, 10);
    from = weft_from(chan);
    some = weft_chunks(&from.source, 4, WEFT_FOREVER);
    int r = 0;
    WEFT_TIMEOUT(weft_ms(25)) r = weft_pull(&some.source, batch);
    ASSERT_EQ(r, 2);
    ASSERT_EQ(weft_pull(&some.source, batch), 3);
    ASSERT_EQ(batch[0], 2);
    ASSERT_OK(weft_join(task, &batch[0]));
    weft_chan_free(chan);

    /* An error ends a chunk, and is the next answer. */
    int at = 2;
    chan = counted(4);
    from = weft_from(chan);
    struct weft_filter failing = weft_filter(&from.source, fails_at, &at);
    some = weft_chunks(&failing.source, 4, weft_ms(1));
    ASSERT_EQ(weft_pull(&some.source, batch), 2);
    ASSERT_EQ(weft_pull(&some.source, batch), -EIO);
    ASSERT_EQ(weft_pull(&some.source, batch), 1);
    ASSERT_EQ(batch[0], 3);
    ASSERT_EQ(weft_pull(&some.source, batch), 0);
    weft_chan_free(chan);
    return 0;
}

TEST(source_chunks_by_number_and_by_time)
{
    each_paused(chunked);
}

static int in_time(void)
{
    int_chan *chan;
    int got = 0;
    int r = 0;
    weft_time start = weft_now();

    ASSERT_OK(weft_chan_new(1, &chan));
    weft_task *task = weft_go(feeds, chan, 0, 3, 10);
    struct weft_from from = weft_from(chan);
    struct weft_within quick = weft_within(&from.source, weft_ms(4));
    ASSERT_EQ(weft_pull(&quick.source, &got), -ETIME);
    ASSERT_EQ(weft_now() - start, weft_ms(4));
    ASSERT_EQ(weft_pull(&quick.source, &got), -ETIME);
    ASSERT_EQ(weft_pull(&quick.source, &got), 1); /* at 10 */
    ASSERT_EQ(got, 0);
    ASSERT_EQ(weft_now() - start, weft_ms(10));
    WEFT_TIMEOUT(weft_ms(2)) r = weft_pull(&quick.source, &got);
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(weft_now() - start, weft_ms(12));
    struct weft_throttle slow = weft_throttle(&from.source, weft_ms(15));
    ASSERT_EQ(weft_pull(&slow.source, &got), 1);
    ASSERT_EQ(weft_now() - start, weft_ms(20)); /* the first as it comes */
    WEFT_TIMEOUT(weft_ms(2)) r = weft_pull(&slow.source, &got);
    ASSERT_EQ(r, -ETIME);
    ASSERT_EQ(weft_pull(&slow.source, &got), 1);
    ASSERT_EQ(got, 2);
    ASSERT_EQ(weft_now() - start, weft_ms(35)); /* it was there at 30 */
    ASSERT_EQ(weft_pull(&slow.source, &got), 0);
    ASSERT_OK(weft_join(task, &got));
    weft_chan_free(chan);
    return 0;
}

TEST(source_within_and_throttle_keep_time)
{
    each_paused(in_time);
}

/* ---- from plain threads ------------------------------------------------------------------------------------------------ */

TEST(source_serves_plain_threads)
{
    int_chan *chan = counted(5);
    int batch[2];
    struct weft_from from = weft_from(chan);
    struct weft_within quick = weft_within(&from.source, weft_secs(99));
    struct weft_chunks some = weft_chunks(&quick.source, 2, weft_secs(99));
    ASSERT_EQ(weft_pull(&some.source, batch), 2);
    ASSERT_EQ(weft_pull(&some.source, batch), 2);
    ASSERT_EQ(weft_pull(&some.source, batch), 1);
    ASSERT_EQ(weft_pull(&some.source, batch), 0);
    weft_chan_free(chan);
    ASSERT_EQ(weft_pull((int_chan *)NULL, batch), -EINVAL);
    ASSERT_EQ(weft_pull((weft_source *)NULL, batch), -EINVAL);
    struct weft_filter bad = weft_filter(NULL, is_odd, NULL);
    bad.source.item_bytes = sizeof(int);
    ASSERT_EQ(weft_pull(&bad.source, batch), -EINVAL);
}
