/* SPDX-License-Identifier: MIT
 *
 * adapt - sources around others: filter, map, take, merge, chunks, within, throttle.
 *
 * What they keep to:
 *     when a pull answers, nothing beneath it has begun: timers are out, the sources that lost were told to stop and have settled
 *     an item that came out of a source beneath is the answer, or is kept: none is dropped but by a filter
 *     of a source that lends its items one is never kept while that source is asked for the next: chunks refuses it, a merge has given out its late ones first
 *     where there is room for one item, several are refused: of chunks there is no filter, map, merge, nor are there chunks
 * Those with a timer ask the source first, so that an item that is there needs no clock.
 * Threads: the poller's.
 */
#include "flow/source.h"

#include "task/here.h"

#include <errno.h>

#define AROUND(its_poll, bytes, its_of)                                                            \
    {.poll = (its_poll),                                                                           \
     .item_bytes = (bytes),                                                                        \
     .weft__probes = (its_of) ? (its_of)->weft__probes : WEFT__SOURCE_PROBES}

static weft_poll answers(weft_source *source, int ret)
{
    source->ret = ret;
    return WEFT_READY;
}

static size_t bytes_of(const weft_source *of)
{
    return of ? of->item_bytes : 0;
}

/* There, and what it gives is one at a time. */
static bool gives_one(const weft_source *of)
{
    return of && !(of->weft__probes & WEFT__SOURCE_SEVERAL);
}

/* ---- filter, map ------------------------------------------------------------------------------ */

static weft_poll filter_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_filter *f = weft__container_of(source, struct weft_filter, source);

    if (!gives_one(f->of) || !f->fn) return answers(source, -EINVAL);
    do { /* as long as it drops what there is */
        if (weft__source_poll(f->of, into, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (f->of->ret <= 0) return answers(source, f->of->ret);
        int r = f->fn(f->ctx, into);
        if (r != 0) return answers(source, r > 0 ? 1 : r);
    } while (weft__source_may(cx));
    return WEFT_PENDING;
}

void weft__filter_init(struct weft_filter *source, weft_source *of,
                       int (*fn)(void *ctx, void *item), void *ctx)
{
    *source = (struct weft_filter){
        .source = AROUND(filter_poll, bytes_of(of), of), .of = of, .fn = fn, .ctx = ctx};
}

static weft_poll map_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_map *f = weft__container_of(source, struct weft_map, source);

    if (!gives_one(f->of) || !f->fn || !f->in || f->of->item_bytes != f->in_bytes)
        return answers(source, -EINVAL);
    do {
        if (weft__source_poll(f->of, f->in, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (f->of->ret <= 0) return answers(source, f->of->ret);
        int r = f->fn(f->ctx, f->in, into);
        if (r != 0) return answers(source, r > 0 ? 1 : r);
    } while (weft__source_may(cx));
    return WEFT_PENDING;
}

void weft__map_init(struct weft_map *source, weft_source *of,
                    int (*fn)(void *ctx, const void *in, void *into), void *ctx, void *in,
                    size_t in_bytes, size_t out_bytes)
{
    *source = (struct weft_map){.source = AROUND(map_poll, out_bytes, of),
                                .of = of,
                                .fn = fn,
                                .ctx = ctx,
                                .in = in,
                                .in_bytes = in_bytes};
    source->source.weft__probes &= ~WEFT__SOURCE_LENDS; /* what fn makes is the program's own */
}

/* ---- take ------------------------------------------------------------------------------------- */

static weft_poll take_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_take *f = weft__container_of(source, struct weft_take, source);

    if (!f->of) return answers(source, -EINVAL);
    if (f->left == 0) return answers(source, 0);
    if (weft__source_poll(f->of, into, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->of->ret > 0) f->left--;
    return answers(source, f->of->ret);
}

void weft__take_init(struct weft_take *source, weft_source *of, uint64_t count)
{
    *source =
        (struct weft_take){.source = AROUND(take_poll, bytes_of(of), of), .of = of, .left = count};
}

/* ---- merge ------------------------------------------------------------------------------------ */

#define MERGE_MAX 64

static void *late_of(struct weft_merge *f, size_t i)
{
    return (char *)f->late + i * f->source.item_bytes;
}

/* The source's answer. True: it is this pull's. */
static bool merge_hears(struct weft_merge *f, size_t i, void *into)
{
    int ret = f->of[i]->ret;

    f->weft__begun &= ~(UINT64_C(1) << i);
    if (ret == 0) f->weft__ended |= UINT64_C(1) << i;
    if (ret == 0) return false;
    if (ret > 0) memcpy(into, late_of(f, i), f->source.item_bytes);
    f->weft__won = ret;
    f->weft__next = (uint32_t)((i + 1) % f->count);
    return true;
}

/* One that has something from a time before. */
static bool merge_has_late(struct weft_merge *f, void *into)
{
    for (size_t n = 0; f->weft__late && n < f->count; n++) {
        size_t i = (f->weft__next + n) % f->count;
        if (!(f->weft__late & UINT64_C(1) << i)) continue;
        f->weft__late &= ~(UINT64_C(1) << i);
        f->weft__next = (uint32_t)((i + 1) % f->count);
        f->weft__won = f->of[i]->ret < 0 ? f->of[i]->ret : 1;
        if (f->weft__won > 0) memcpy(into, late_of(f, i), f->source.item_bytes);
        return true;
    }
    return false;
}

static bool merge_round(struct weft_merge *f, void *into, weft_cx *cx)
{
    for (size_t n = 0; n < f->count; n++) {
        size_t i = (f->weft__next + n) % f->count;
        if (f->weft__ended & UINT64_C(1) << i) continue;
        if (weft__source_poll(f->of[i], late_of(f, i), cx) == WEFT_READY) {
            if (merge_hears(f, i, into)) return true;
        } else if (!cx->probe) {
            f->weft__begun |= UINT64_C(1) << i;
        }
    }
    return false;
}

/* An item, or an error of its own: not the answer of one that was told to stop, now or before. */
static bool is_news(int ret)
{
    return ret != 0 && ret != -ECANCELED && ret != -ETIME;
}

/* Those that lost, or all of a pull that is told to stop. What they have all the same is kept; with no winner yet, the first of it is the answer. */
static bool merge_settles(struct weft_merge *f, void *into, weft_cx *cx)
{
    for (size_t i = 0; i < f->count; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (!(f->weft__begun & bit)) continue;
        if (weft__source_stop(f->of[i], late_of(f, i), cx, -ECANCELED) == WEFT_PENDING) continue;
        f->weft__begun &= ~bit;
        if (is_news(f->of[i]->ret)) f->weft__late |= bit;
        if (f->of[i]->ret == 0) f->weft__ended |= bit;
    }
    if (f->weft__begun) return false;
    if (f->weft__won == 0 && cx->why) (void)merge_has_late(f, into);
    return true;
}

static weft_poll merge_ends(struct weft_merge *f, int ret)
{
    f->weft__won = 0;
    return answers(&f->source, ret);
}

static bool merge_is_sound(const struct weft_merge *f)
{
    if (!f->of || !f->late || f->count == 0 || f->count > MERGE_MAX) return false;
    for (size_t i = 0; i < f->count; i++)
        if (!gives_one(f->of[i]) || f->of[i]->item_bytes != f->source.item_bytes) return false;
    return true;
}

static uint64_t merge_all(const struct weft_merge *f)
{
    return f->count == MERGE_MAX ? UINT64_MAX : (UINT64_C(1) << f->count) - 1;
}

static weft_poll merge_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_merge *f = weft__container_of(source, struct weft_merge, source);

    if (!f->weft__begun && f->weft__won == 0) {
        if (!merge_is_sound(f)) return merge_ends(f, -EINVAL);
        if (cx->why && weft__told_yields(cx)) return WEFT_PENDING;
        if (cx->why) return merge_ends(f, weft_cx_cancelled(cx));
        (void)merge_has_late(f, into);
    }
    if (f->weft__won == 0 && !cx->why) (void)merge_round(f, into, cx);
    if (f->weft__won == 0 && !cx->why && f->weft__ended == merge_all(f)) return merge_ends(f, 0);
    if (f->weft__won == 0 && !cx->why) return WEFT_PENDING;
    if (!merge_settles(f, into, cx)) return WEFT_PENDING;
    return merge_ends(f, f->weft__won ? f->weft__won : weft_cx_cancelled(cx));
}

static int merge_lends(weft_source *const *of, size_t count)
{
    int lends = 0;
    for (size_t i = 0; of && count <= MERGE_MAX && i < count; i++)
        if (of[i]) lends |= of[i]->weft__probes & WEFT__SOURCE_LENDS;
    return lends;
}

void weft__merge_init(struct weft_merge *source, weft_source *const *of, size_t count, void *late,
                      size_t late_bytes)
{
    *source = (struct weft_merge){
        .source = {.poll = merge_poll,
                   .item_bytes = late_bytes,
                   .weft__probes = WEFT__SOURCE_PROBES | merge_lends(of, count)},
        .of = of,
        .count = count,
        .late = late};
}

/* ---- a source beside a timer ------------------------------------------------------------------ */

/* The source is asked first; then, if it has none, is the time over? */
struct beside {
    weft_source *of;
    void *into;
    bool *begun;              /* the source was asked, and has not answered */
    bool *late;               /* the time is over */
    struct weft_sleep *sleep; /* armed, or not begun */
};

static void timer_off(struct weft_sleep *sleep, weft_cx *cx)
{
    if (sleep->weft__at > 0) (void)weft__poll_stop(weft_sleep_poll, sleep, cx);
}

/* True: the source has answered. Then its pull is over; the timer may still be there. */
static bool ask_beside(const struct beside *b, weft_cx *cx)
{
    weft_poll poll = *b->late ? weft__source_stop(b->of, b->into, cx, -ECANCELED)
                              : weft__source_poll(b->of, b->into, cx);
    *b->begun = poll == WEFT_PENDING && !cx->probe;
    return poll == WEFT_READY;
}

/* The source is waited for. True: the time is over just now, and it has to be asked again, to stop. */
static bool time_is_over(const struct beside *b, weft_cx *cx)
{
    if (*b->late || cx->probe || cx->why) return false;
    if (weft_sleep_poll(b->sleep, cx) == WEFT_PENDING) return false;
    *b->late = true;
    return true;
}

/* ---- chunks ----------------------------------------------------------------------------------- */

static weft_poll chunk_ends(struct weft_chunks *f, weft_cx *cx, int after)
{
    uint32_t count = f->weft__count;

    timer_off(&f->weft__sleep, cx);
    f->weft__count = 0;
    f->weft__late = false;
    if (count == 0) return answers(&f->source, after);
    f->weft__knows = after <= 0;
    f->weft__after = after;
    return answers(&f->source, (int)count);
}

/* The answer that came behind the chunk before. An end stays. */
static weft_poll chunk_remembers(struct weft_chunks *f)
{
    f->weft__knows = f->weft__after == 0;
    return answers(&f->source, f->weft__after);
}

/* It was told to stop, by its timer or from outside: what the source says to that is no news. */
static int chunk_after(const struct weft_chunks *f, int ret, int why)
{
    if (f->weft__count == 0 || ret == 0) return ret;
    return ret == why || (f->weft__late && ret == -ECANCELED) ? 1 : ret;
}

static void chunk_grows(struct weft_chunks *f)
{
    if (f->weft__count++ == 0) f->weft__sleep = (struct weft_sleep){.ns = f->ns};
}

static bool chunks_is_sound(const struct weft_chunks *f)
{
    if (!gives_one(f->of) || f->max == 0 || f->max > INT32_MAX) return false;
    return !(f->of->weft__probes & WEFT__SOURCE_LENDS); /* the second would end the first */
}

static weft_poll chunks_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_chunks *f = weft__container_of(source, struct weft_chunks, source);

    if (!chunks_is_sound(f)) return answers(source, -EINVAL);
    if (f->weft__knows) return chunk_remembers(f);
    for (;;) {
        struct beside b = {.of = f->of,
                           .into = (char *)into + f->weft__count * source->item_bytes,
                           .begun = &f->weft__begun,
                           .late = &f->weft__late,
                           .sleep = &f->weft__sleep};
        if (ask_beside(&b, cx)) {
            if (f->of->ret <= 0) return chunk_ends(f, cx, chunk_after(f, f->of->ret, cx->why));
            chunk_grows(f);
            if (f->weft__count == f->max || f->weft__late) return chunk_ends(f, cx, 1);
            continue;
        }
        if (f->weft__count == 0 || f->ns == WEFT_FOREVER || !time_is_over(&b, cx))
            return WEFT_PENDING;
    }
}

void weft__chunks_init(struct weft_chunks *source, weft_source *of, uint32_t max, weft_time ns)
{
    /* it answers no look: with the first item it would have begun */
    *source = (struct weft_chunks){.source = {.poll = chunks_poll,
                                              .item_bytes = bytes_of(of),
                                              .weft__probes = WEFT__SOURCE_SEVERAL},
                                   .of = of,
                                   .max = max,
                                   .ns = ns};
}

/* ---- within ----------------------------------------------------------------------------------- */

static weft_poll within_ends(struct weft_within *f, weft_cx *cx, int ret)
{
    bool late = f->weft__late;

    timer_off(&f->weft__sleep, cx);
    f->weft__late = false;
    return answers(&f->source, late && ret == -ECANCELED && !cx->why ? -ETIME : ret);
}

static weft_poll within_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_within *f = weft__container_of(source, struct weft_within, source);
    struct beside b = {.of = f->of,
                       .into = into,
                       .begun = &f->weft__begun,
                       .late = &f->weft__late,
                       .sleep = &f->weft__sleep};

    if (!f->of) return answers(source, -EINVAL);
    if (!f->weft__begun) f->weft__sleep = (struct weft_sleep){.ns = f->ns};
    do {
        if (ask_beside(&b, cx)) return within_ends(f, cx, f->of->ret);
    } while (time_is_over(&b, cx));
    return WEFT_PENDING;
}

void weft__within_init(struct weft_within *source, weft_source *of, weft_time ns)
{
    *source =
        (struct weft_within){.source = AROUND(within_poll, bytes_of(of), of), .of = of, .ns = ns};
}

/* ---- throttle --------------------------------------------------------------------------------- */

/* First the time, then the item: whoever gives up meanwhile has taken none. 0: it may be asked. */
static int throttle_waits(struct weft_throttle *f, weft_cx *cx)
{
    bool armed = f->weft__sleep.weft__at > 0;

    if (f->weft__begun || (!armed && f->weft__next <= weft_now())) return 0;
    if (!armed) f->weft__sleep = (struct weft_sleep_until){.at = f->weft__next};
    if (weft_sleep_until_poll(&f->weft__sleep, cx) == WEFT_PENDING) return -EAGAIN;
    return f->weft__sleep.ret;
}

static weft_poll throttle_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_throttle *f = weft__container_of(source, struct weft_throttle, source);
    if (!f->of) return answers(source, -EINVAL);

    int r = throttle_waits(f, cx);
    if (r == -EAGAIN) return WEFT_PENDING;
    if (r < 0) return answers(source, r);
    weft_poll poll = weft__source_poll(f->of, into, cx);
    f->weft__begun = poll == WEFT_PENDING && !cx->probe;
    if (poll == WEFT_PENDING) return WEFT_PENDING;
    if (f->of->ret > 0) f->weft__next = weft_later(weft_now(), f->ns);
    return answers(source, f->of->ret);
}

void weft__throttle_init(struct weft_throttle *source, weft_source *of, weft_time ns)
{
    *source = (struct weft_throttle){.source = AROUND(throttle_poll, bytes_of(of), of),
                                     .of = of,
                                     .ns = ns,
                                     .weft__next = INT64_MIN};
}
