/* SPDX-License-Identifier: MIT
 *
 * source - the next item of anything: weft_pull, and sources over what there is. Those around others are in flow/adapt.c.
 *
 * A pull is the leaf of what it pulls from, in a frame that has room for each of them; a source over a channel is a pull that is begun anew for each item.
 *     weft__at == 0    not begun; a probe leaves it so
 *     weft__at == 1    the leaf has begun
 * Threads: the poller's; what is shared is what lies beneath.
 */
#include "flow/source.h"

#include "task/call.h"

#include <errno.h>

/* ---- one leaf of several ---------------------------------------------------------------------- */

static void begin(struct weft_pull *f)
{
    switch ((enum weft__pull_kind)f->kind) {
    case WEFT__PULL_CHAN:
        f->weft__u.weft__recv = (struct weft_recv){.chan = f->from, .into = f->into};
        break;
    case WEFT__PULL_DELAY:
        f->weft__u.weft__delay = (struct weft_delay_next){.queue = f->from, .into = f->into};
        break;
    case WEFT__PULL_SET:
        f->weft__u.weft__set =
            (struct weft_set_join_next){.set = f->from, .into = f->into, .bytes = f->bytes};
        break;
    case WEFT__PULL_INTERVAL:
        f->weft__u.weft__tick = (struct weft_tick){.every = f->from};
        break;
    case WEFT__PULL_SOURCE:
        break;
    }
}

static weft_poll answers(struct weft_pull *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

/* The item is the time at which the tick was due. */
static weft_poll poll_interval(struct weft_pull *f, weft_cx *cx)
{
    weft_interval *every = f->from;
    weft_time due = every->next;

    if (weft_tick_poll(&f->weft__u.weft__tick, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->weft__u.weft__tick.ret < 0) return answers(f, f->weft__u.weft__tick.ret);
    *(weft_time *)f->into = due == WEFT__AT_ONCE ? weft_now() : due;
    return answers(f, 1);
}

static weft_poll poll_source(struct weft_pull *f, weft_cx *cx)
{
    weft_source *source = f->from;

    if (weft__source_poll(source, f->into, cx) == WEFT_PENDING) return WEFT_PENDING;
    return answers(f, source->ret);
}

static weft_poll poll_leaf(struct weft_pull *f, weft_cx *cx)
{
    switch ((enum weft__pull_kind)f->kind) {
    case WEFT__PULL_CHAN:
        if (weft_recv_poll(&f->weft__u.weft__recv, cx) == WEFT_PENDING) return WEFT_PENDING;
        return answers(f, f->weft__u.weft__recv.ret);
    case WEFT__PULL_DELAY:
        if (weft_delay_next_poll(&f->weft__u.weft__delay, cx) == WEFT_PENDING) return WEFT_PENDING;
        return answers(f, f->weft__u.weft__delay.ret);
    case WEFT__PULL_SET:
        if (weft_set_join_next_poll(&f->weft__u.weft__set, cx) == WEFT_PENDING) return WEFT_PENDING;
        return answers(f, f->weft__u.weft__set.ret);
    case WEFT__PULL_INTERVAL:
        return poll_interval(f, cx);
    default:
        return poll_source(f, cx);
    }
}

static bool fits(const struct weft_pull *f)
{
    if (!f->from || !f->into) return false;
    if (f->kind == WEFT__PULL_SOURCE) return ((const weft_source *)f->from)->item_bytes == f->bytes;
    return f->kind != WEFT__PULL_INTERVAL || f->bytes == sizeof(weft_time);
}

weft_poll weft_pull_poll(void *frame, weft_cx *cx)
{
    struct weft_pull *f = frame;

    if (!f->weft__at) {
        if (!fits(f)) return answers(f, -EINVAL);
        if (f->kind == WEFT__PULL_SOURCE && !weft__source_may(cx)) return WEFT_PENDING;
        begin(f);
    }
    weft_poll poll = poll_leaf(f, cx);
    f->weft__at = poll == WEFT_PENDING && !cx->probe;
    return poll;
}

int weft__pull(int kind, void *from, void *into, size_t bytes)
{
    struct weft_pull f = {.from = from, .into = into, .bytes = bytes, .kind = kind};
    int r = weft__run_from(weft_pull_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- sources over what there is --------------------------------------------------------------- */

static weft_poll from_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_from *f = weft__container_of(source, struct weft_from, source);

    f->weft__pull.into = into;
    weft_poll poll = weft_pull_poll(&f->weft__pull, cx);
    if (poll == WEFT_READY) source->ret = f->weft__pull.ret;
    return poll;
}

void weft__from_init(struct weft_from *source, int kind, void *from, size_t bytes)
{
    *source = (struct weft_from){
        .source = {.poll = from_poll, .item_bytes = bytes, .weft__probes = WEFT__SOURCE_PROBES},
        .weft__pull = {.from = from, .bytes = bytes, .kind = kind}};
}

/* The two leaves of a cursor have one shape. */
_Static_assert(sizeof(struct weft_broadcast_recv) == sizeof(struct weft_watch_changed), "as said");
_Static_assert(offsetof(struct weft_broadcast_recv, into) ==
                   offsetof(struct weft_watch_changed, into),
               "as said");

static weft_poll cast_poll(weft_source *source, void *into, weft_cx *cx, weft_pollfn *leaf)
{
    struct weft_from_cast *f = weft__container_of(source, struct weft_from_cast, source);
    struct weft_broadcast_recv *recv = &f->weft__recv;

    if (!recv->weft__at)
        *recv =
            (struct weft_broadcast_recv){.cast = f->weft__cast, .at = f->weft__at, .into = into};
    if (leaf(recv, cx) == WEFT_PENDING) return WEFT_PENDING;
    source->ret = recv->ret;
    return WEFT_READY;
}

static weft_poll broadcast_poll(weft_source *source, void *into, weft_cx *cx)
{
    return cast_poll(source, into, cx, weft_broadcast_recv_poll);
}

static weft_poll watch_poll(weft_source *source, void *into, weft_cx *cx)
{
    return cast_poll(source, into, cx, weft_watch_changed_poll);
}

void weft__from_cast_init(struct weft_from_cast *source, weft_cast *cast, weft_cursor *at,
                          size_t bytes, bool watches)
{
    *source = (struct weft_from_cast){.source = {.poll = watches ? watch_poll : broadcast_poll,
                                                 .item_bytes = bytes,
                                                 .weft__probes = WEFT__SOURCE_PROBES},
                                      .weft__cast = cast,
                                      .weft__at = at};
}

/* A generator knows no probe; weft__source_poll sees to it. */
weft_poll weft__from_generator_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_from_generator *f = weft__container_of(source, struct weft_from_generator, source);

    if (f->weft__poll(f->weft__frame, cx) == WEFT_PENDING) return WEFT_PENDING;
    source->ret = *f->weft__ret;
    if (source->ret > 0) memcpy(into, f->weft__item, source->item_bytes);
    return WEFT_READY;
}
