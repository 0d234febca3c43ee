/* SPDX-License-Identifier: MIT
 *
 * chan_cast - broadcast and watch: a ring that is overwritten, under one lock, and cursors that go through it.
 *
 * `sent` counts the messages, the last `capacity` of which lie in the ring. A listener is a cursor in the program's
 * memory, so the sender knows nothing of who listens, but for those who wait: each message gives all of them a turn to
 * look. A turn is nobody's to keep: whoever gives up just leaves.
 * A watch is a broadcast of capacity 1 whose listeners go straight to the latest; its first value is message 1.
 *
 *     weft__at == 0    not begun
 *     weft__at == 1    queued, or given a turn
 * Threads: any. The last touch of a send with fewer than WEFT__WAKE_BATCH waiters is the drop of the lock, and free takes
 * it.
 * Rejected: a count of listeners a message, so that it goes with the last (it must be registered, and left on every path);
 * a sequence lock for the copy (the copies of a value that is written meanwhile are races in C).
 */
#include <weft/cast.h>

#include "base/alloc.h"
#include "sync/chan.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <errno.h>

/* As of a channel. */
#define MSG_BYTES_MAX ((size_t)1 << 20)

struct cast {
    struct weft__waitlist list; /* listeners that wait; its lock guards all that is not constant */
    uint64_t sent;              /* messages so far */
    uint32_t capacity;          /*                                                   [constant] */
    uint32_t msg_bytes;         /*                                                   [constant] */
    bool closed;
    _Alignas(16) char ring[];
};

/* What both frames are. */
struct hears {
    int32_t at; /* weft__at */
    int ret;
    struct cast *cast;
    weft_cursor *cursor;
    void *into;
    struct weft__waiter waiter;
};

#define SAME_PLACE(type, object, where)                                                            \
    _Static_assert(offsetof(struct type, ret) == offsetof(struct hears, ret), "one frame");        \
    _Static_assert(offsetof(struct type, object) == offsetof(struct hears, cast), "as above");     \
    _Static_assert(offsetof(struct type, where) == offsetof(struct hears, cursor), "as above");    \
    _Static_assert(offsetof(struct type, into) == offsetof(struct hears, into), "as above");       \
    _Static_assert(offsetof(struct type, weft__waiter) == offsetof(struct hears, waiter),          \
                   "as above")

SAME_PLACE(weft_broadcast_recv, cast, at);
SAME_PLACE(weft_watch_changed, watch, seen);

static struct cast *cast_of(weft_cast *cast)
{
    return (struct cast *)(void *)cast;
}

/* ---- making ---------------------------------------------------------------------------------- */

static struct cast *cast_new(size_t msg_bytes, size_t capacity)
{
    if (capacity > SIZE_MAX / 2 / msg_bytes) return NULL;
    struct cast *c = weft__alloc(sizeof(*c) + capacity * msg_bytes);
    if (!c) return NULL;
    weft__waitlist_init(&c->list);
    c->capacity = (uint32_t)capacity;
    c->msg_bytes = (uint32_t)msg_bytes;
    return c;
}

int weft_broadcast_new_sized(size_t msg_bytes, size_t capacity, weft_cast **into)
{
    if (!into || msg_bytes == 0 || msg_bytes > MSG_BYTES_MAX) return -EINVAL;
    if (capacity == 0 || capacity > INT32_MAX) return -EINVAL;
    struct cast *c = cast_new(msg_bytes, capacity);
    if (!c) return -ENOMEM;
    *into = (weft_cast *)(void *)c;
    return 0;
}

int weft_watch_new_sized(size_t value_bytes, const void *initial, weft_cast **into)
{
    if (!into || !initial || value_bytes == 0 || value_bytes > MSG_BYTES_MAX) return -EINVAL;
    struct cast *c = cast_new(value_bytes, 1);
    if (!c) return -ENOMEM;
    __builtin_memcpy(c->ring, initial, value_bytes);
    c->sent = 1;
    *into = (weft_cast *)(void *)c;
    return 0;
}

void weft__cast_free(weft_cast *cast, const char *caller)
{
    if (!cast) return;
    /* takes the lock: behind a send on its way out */
    weft__leaf_done(&cast_of(cast)->list, "a broadcast or watch", caller);
    weft__free(cast_of(cast));
}

/* ---- sending --------------------------------------------------------------------------------- */

/* holds: the lock, in all of these. */
static char *slot_of(struct cast *c, uint64_t number)
{
    return c->ring + number % c->capacity * c->msg_bytes;
}

int weft__cast_send(weft_cast *cast, const void *msg)
{
    if (!cast || !msg) return -EINVAL;
    struct cast *c = cast_of(cast);

    weft__waitlist_lock(&c->list);
    if (c->closed) {
        weft__waitlist_unlock(&c->list);
        return -EPIPE;
    }
    __builtin_memcpy(slot_of(c, c->sent++), msg, c->msg_bytes);
    (void)weft__waitlist_unlock_wake_all(&c->list, &weft__sched);
    return 0;
}

int weft__cast_close(weft_cast *cast)
{
    if (!cast) return -EINVAL;
    struct cast *c = cast_of(cast);

    weft__waitlist_lock(&c->list);
    bool already = c->closed;
    c->closed = true;
    (void)weft__waitlist_unlock_wake_all(&c->list, &weft__sched);
    return already ? -EALREADY : 0;
}

weft_cursor weft__cast_now(weft_cast *cast)
{
    weft_cursor now = {0, 0};
    if (!cast) return now;
    struct cast *c = cast_of(cast);

    weft__waitlist_lock(&c->list);
    now.next = c->sent;
    weft__waitlist_unlock(&c->list);
    return now;
}

/* ---- listening ------------------------------------------------------------------------------- */

/* holds: the lock. The next one, or the latest of a watch. */
static int take_next(struct cast *c, weft_cursor *at, void *into)
{
    uint64_t oldest = c->sent > c->capacity ? c->sent - c->capacity : 0;

    if (at->next >= c->sent) return c->closed ? 0 : -EAGAIN;
    if (at->next < oldest) {
        at->missed = oldest - at->next;
        at->next = oldest;
        return -EOVERFLOW;
    }
    __builtin_memcpy(into, slot_of(c, at->next++), c->msg_bytes);
    return 1;
}

static int take_latest(struct cast *c, weft_cursor *seen, void *into)
{
    if (seen->next >= c->sent) return c->closed ? 0 : -EAGAIN;
    seen->missed = c->sent - 1 - seen->next;
    seen->next = c->sent;
    __builtin_memcpy(into, slot_of(c, c->sent - 1), c->msg_bytes);
    return 1;
}

typedef int take_fn(struct cast *c, weft_cursor *at, void *into);

static weft_poll answers(struct hears *f, int ret)
{
    f->at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* holds: the lock, and drops it. It has no turn, or had one. */
static weft_poll looks(struct hears *f, weft_cx *cx, take_fn *take)
{
    struct weft__waitlist *list = &f->cast->list;
    int r = take(f->cast, f->cursor, f->into);
    bool waits = r == -EAGAIN && !cx->probe;

    if (waits) {
        weft__waiter_init(&f->waiter);
        weft__waitlist_add(list, &f->waiter, cx->waker);
        f->at = 1;
    }
    weft__waitlist_unlock(list);
    return r == -EAGAIN ? WEFT_PENDING : answers(f, r);
}

static weft_poll begins(struct hears *f, weft_cx *cx, take_fn *take)
{
    if (!f->cast || !f->cursor || !f->into) return answers(f, -EINVAL);
    if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : answers(f, weft_cx_cancelled(cx));
    if (!weft__chan_charge(cx)) return WEFT_PENDING;
    weft__waitlist_lock(&f->cast->list);
    return looks(f, cx, take);
}

static weft_poll goes_on(struct hears *f, weft_cx *cx, take_fn *take)
{
    struct weft__waitlist *list = &f->cast->list;

    weft__waitlist_lock(list);
    if (!cx->why && weft__waiter_queued(list, &f->waiter)) {
        weft__waitlist_unlock(list);
        return WEFT_PENDING;
    }
    (void)weft__waitlist_settle(list, &f->waiter); /* a turn is everybody's: none to pass on */
    f->at = 0;
    if (!cx->why) return looks(f, cx, take);
    weft__waitlist_unlock(list);
    return answers(f, weft_cx_cancelled(cx));
}

static weft_poll hears_poll(struct hears *f, weft_cx *cx, take_fn *take)
{
    return f->at ? goes_on(f, cx, take) : begins(f, cx, take);
}

weft_poll weft_broadcast_recv_poll(void *frame, weft_cx *cx)
{
    return hears_poll(frame, cx, take_next);
}

weft_poll weft_watch_changed_poll(void *frame, weft_cx *cx)
{
    return hears_poll(frame, cx, take_latest);
}

int weft__broadcast_try_recv(weft_cast *cast, weft_cursor *at, void *into)
{
    if (!cast || !at || !into) return -EINVAL;
    struct cast *c = cast_of(cast);

    weft__waitlist_lock(&c->list);
    int r = take_next(c, at, into);
    weft__waitlist_unlock(&c->list);
    return r;
}

int weft__watch_get(weft_cast *watch, void *into)
{
    if (!watch || !into) return -EINVAL;
    struct cast *c = cast_of(watch);

    weft__waitlist_lock(&c->list);
    __builtin_memcpy(into, slot_of(c, c->sent - 1), c->msg_bytes);
    weft__waitlist_unlock(&c->list);
    return 1;
}

/* Compare and set: user code runs between two calls, and never under the lock. */
int weft__watch_update(weft_cast *watch, weft_cursor *seen, void *value)
{
    if (!watch || !seen || !value) return -EINVAL;
    struct cast *c = cast_of(watch);

    weft__waitlist_lock(&c->list);
    int r = c->closed ? -EPIPE : 0;
    if (r == 0 && take_latest(c, seen, value) == 1) r = -EAGAIN;
    if (r < 0) {
        weft__waitlist_unlock(&c->list);
        return r;
    }
    __builtin_memcpy(slot_of(c, c->sent++), value, c->msg_bytes);
    seen->next = c->sent;
    (void)weft__waitlist_unlock_wake_all(&c->list, &weft__sched);
    return 0;
}

/* ---- call forms ------------------------------------------------------------------------------ */

int weft__broadcast_recv(weft_cast *cast, weft_cursor *at, void *into)
{
    struct weft_broadcast_recv f = {.cast = cast, .at = at, .into = into};
    int r = weft__run_from(weft_broadcast_recv_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__watch_changed(weft_cast *watch, weft_cursor *seen, void *into)
{
    struct weft_watch_changed f = {.watch = watch, .seen = seen, .into = into};
    int r = weft__run_from(weft_watch_changed_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
