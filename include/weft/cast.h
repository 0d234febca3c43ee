/* SPDX-License-Identifier: MIT
 *
 * cast - one word to many: broadcast, where everybody hears every message, and watch, where everybody sees the latest value.
 *
 *     typedef WEFT_BROADCAST(struct event) event_cast;
 *     event_cast *events;
 *     r = weft_broadcast_new(64, &events);               the last 64 are kept
 *     weft_cursor at = weft_broadcast_now(events);       each listener has one: from here on
 *     while ((r = weft_broadcast_recv(events, &at, &event)) != 0) {
 *         if (r > 0) handle(&event);                     1; 0 at the end (closed, and all heard)
 *         else if (r == -EOVERFLOW) late(at.missed);     too slow: so many are gone; the next call goes on behind them
 *         else return r;
 *     }
 *
 *     typedef WEFT_WATCH(struct config) config_watch;
 *     r = weft_watch_new(&initial, &config);
 *     weft_watch_set(config, &next);
 *     weft_cursor seen = {0};                            nothing yet: the first one comes at once
 *     while ((r = weft_watch_changed(config, &seen, &now)) > 0) use(&now);
 *
 * Who sends never waits. Who listens is a cursor and costs nothing else: there is nobody to register, and nothing to leave.
 * A cursor belongs to one task at a time. Cancel-safe: a wait that was given up has not moved its cursor.
 * Fibers and threads call, stackless tasks await: weft_await(f->rx, weft_broadcast_recv, f->events, &f->at, &f->event).
 */
#ifndef WEFT_CAST_H
#define WEFT_CAST_H

#include <weft/chan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of messages of type T. The members are there for the types, of messages and of the whole, which is no channel; nobody reads them. */
#define WEFT_BROADCAST(T)                                                                          \
    struct {                                                                                       \
        T *weft_of;                                                                                \
        void *weft__cast[2];                                                                       \
    }
#define WEFT_WATCH(T) WEFT_BROADCAST(T)

/* Of any type, unchecked; and what the typed ones are inside. */
typedef struct weft_cast {
    void *weft_of;
    void *weft__cast[2];
} weft_cast;
#define WEFT__CAST(cast) WEFT__AS(weft_cast, cast)

/* Where a listener is. All zero: before the first message, or the first value. */
typedef struct weft_cursor {
    uint64_t next;   /* messages that it has heard or missed so far */
    uint64_t missed; /* with -EOVERFLOW: so many are gone; of a watch: values that it did not see */
} weft_cursor;

/* ---- broadcast ----------------------------------------------------------------------------------------------------------
 *
 * weft_broadcast_new(capacity, &cast): gives one that keeps the last `capacity` messages.
 * Returns 0; -EINVAL: a capacity of 0 or beyond 2^31 - 1, messages of no or of more than 1 MiB; -ENOMEM. */
WEFT_API int weft_broadcast_new_sized(size_t msg_bytes, size_t capacity, weft_cast **into);

/* weft_broadcast_send(cast, &msg): to all who listen. Copies *msg. The oldest message goes when there is no place. Never waits.
 * Context: anywhere, any thread. Returns 0; -EPIPE: closed; -EINVAL for NULL. */
WEFT_API int weft__cast_send(weft_cast *cast, const void *msg);

/* From here on. Context: anywhere. */
WEFT_API weft_cursor weft__cast_now(weft_cast *cast);

/* weft_broadcast_recv(cast, &at, &msg): the next message behind the cursor, waiting until there is one.
 * Returns 1: it is in *msg; 0: the end; -EOVERFLOW: the next at->missed messages were overwritten, and the cursor has moved
 * on to the oldest that is left; -ECANCELED, -ETIME: told to stop; -EINVAL for NULL; -EDEADLK in a stackless poll (call
 * form). */
struct weft_broadcast_recv {
    WEFT_FRAME(int);
    void *cast;
    weft_cursor *at;
    void *into;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_broadcast_recv_poll;
WEFT_API int weft__broadcast_recv(weft_cast *cast, weft_cursor *at, void *into);
#define WEFT__PROBES_weft_broadcast_recv ~, WEFT__ARM_PROBES

/* weft_broadcast_try_recv: the same at once; -EAGAIN: there is none now. Context: anywhere. */
WEFT_API int weft__broadcast_try_recv(weft_cast *cast, weft_cursor *at, void *into);

/* ---- watch ----------------------------------------------------------------------------------------------------------------
 *
 * weft_watch_new(&initial, &watch): gives one with a first value. Returns 0; -EINVAL, -ENOMEM as above. */
WEFT_API int weft_watch_new_sized(size_t value_bytes, const void *initial, weft_cast **into);

/* weft_watch_set(watch, &value): as weft_broadcast_send. */

/* weft_watch_get(watch, &value): the latest, also of a closed one. Never waits. Context: anywhere.
 * Returns 1; -EINVAL for NULL. */
WEFT_API int weft__watch_get(weft_cast *watch, void *into);

/* weft_watch_update(watch, &seen, &value): sets it, if the cursor has seen the latest; else *value becomes that one, to be changed anew:
 *     weft_cursor seen = {0};
 *     while ((r = weft_watch_update(config, &seen, &value)) == -EAGAIN) value.level++;
 * So nobody's change is lost, and who does not like what it finds breaks out of the loop. Never waits. Context: anywhere.
 * Returns 0: it is set, and seen; -EAGAIN: a newer one is in *value; -EPIPE: closed; -EINVAL for NULL. */
WEFT_API int weft__watch_update(weft_cast *watch, weft_cursor *seen, void *value);

/* weft_watch_changed(watch, &seen, &value): the latest value, once it is a newer one than the cursor has seen. Values in
 * between are skipped. Returns 1; 0: it is closed, and the latest was seen; else as weft_broadcast_recv. */
struct weft_watch_changed {
    WEFT_FRAME(int);
    void *watch;
    weft_cursor *seen;
    void *into;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_watch_changed_poll;
WEFT_API int weft__watch_changed(weft_cast *watch, weft_cursor *seen, void *into);
#define WEFT__PROBES_weft_watch_changed ~, WEFT__ARM_PROBES

/* ---- both -------------------------------------------------------------------------------------------------------------------
 *
 * weft_broadcast_close, weft_watch_close: as weft_chan_close. weft_broadcast_free, weft_watch_free: takes it; nobody may be
 * using it, nor wait, or it is a mistake that aborts. NULL is nothing. */
WEFT_API int weft__cast_close(weft_cast *cast);
WEFT_API void weft__cast_free(weft_cast *cast, const char *caller);

#ifdef __cplusplus
}
#endif

#define weft_broadcast_new(capacity, into)                                                         \
    weft_broadcast_new_sized(WEFT__MSG_BYTES(into), capacity, WEFT__INTO(weft_cast, into))
#define weft_broadcast_send(cast, msg) weft__cast_send(WEFT__CAST(cast), WEFT__MSG(cast, msg))
#define weft_broadcast_now(cast)       weft__cast_now(WEFT__CAST(cast))
#define weft_broadcast_recv(cast, at, into)                                                        \
    (WEFT__CALL_FORM("weft_broadcast_recv()"),                                                     \
     weft__broadcast_recv(WEFT__CAST(cast), at, WEFT__MSG(cast, into)))
#define weft_broadcast_try_recv(cast, at, into)                                                    \
    weft__broadcast_try_recv(WEFT__CAST(cast), at, WEFT__MSG(cast, into))
#define weft_broadcast_close(cast) weft__cast_close(WEFT__CAST(cast))
#define weft_broadcast_free(cast)  weft__cast_free(WEFT__CAST(cast), WEFT__CALLER)

#define weft_watch_new(initial, into)                                                              \
    weft_watch_new_sized(WEFT__MSG_BYTES(into), WEFT__MSG(*(into), initial),                       \
                         WEFT__INTO(weft_cast, into))
#define weft_watch_set(watch, value) weft__cast_send(WEFT__CAST(watch), WEFT__MSG(watch, value))
#define weft_watch_update(watch, seen, value)                                                      \
    weft__watch_update(WEFT__CAST(watch), seen, WEFT__MSG(watch, value))
#define weft_watch_get(watch, into)  weft__watch_get(WEFT__CAST(watch), WEFT__MSG(watch, into))
#define weft_watch_now(watch)        weft__cast_now(WEFT__CAST(watch))
#define weft_watch_changed(watch, seen, into)                                                      \
    (WEFT__CALL_FORM("weft_watch_changed()"),                                                      \
     weft__watch_changed(WEFT__CAST(watch), seen, WEFT__MSG(watch, into)))
#define weft_watch_close(watch) weft__cast_close(WEFT__CAST(watch))
#define weft_watch_free(watch)  weft__cast_free(WEFT__CAST(watch), WEFT__CALLER)

#endif
