/* SPDX-License-Identifier: MIT
 *
 * chan - channels: messages of one size, from any number of senders to any number of receivers.
 *
 *     typedef WEFT_CHAN(struct job) job_chan;            messages are type-checked; weft_chan carries any type
 *     job_chan *jobs;
 *     r = weft_chan_new(64, &jobs);                      at most 64 wait in it; 0: sender and receiver meet
 *     r = weft_send(jobs, &job);                         0; -EPIPE once closed
 *     while ((r = weft_recv(jobs, &job)) > 0) work(&job);
 *     weft_await(f->rx, weft_recv, weft_on(f->jobs, &f->job));      stackless; weft_on checks the type
 *     weft_chan_close(jobs);                             what is in it is still received, then the end: 0
 *     weft_chan_free(jobs);
 *
 * Fibers and threads call, stackless tasks await, and all of them share one channel; a thread needs no runtime. Messages are
 * copied in and out. A time-out is a region around the call (WEFT_TIMEOUT, weft_timeout).
 *
 * ORDER  Messages of one sender arrive in the order in which it sent them. Senders that wait are given places first come,
 * first served: nobody passes while one waits. (Two that were given places at once may come to theirs in either order.)
 * Receivers that wait are woken in the order in which they came; one that comes while a message lies there may be faster than
 * the one that was woken for it.
 * GIVEN UP  A send that was cancelled has sent nothing, a receive that was cancelled has taken nothing, and somebody else
 * gets its turn: no message is lost. So does an arm that loses in a select. (Of a channel of capacity 0 a message can be
 * taken just before the sender gives up: then the send answers 0, as it has happened.)
 */
#ifndef WEFT_CHAN_H
#define WEFT_CHAN_H

#include <weft/select.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A channel of messages of type T. The member is there for its type; nobody reads it. */
#define WEFT_CHAN(T)                                                                               \
    struct {                                                                                       \
        T *weft_of;                                                                                \
    }

/* One of any type: made by weft_chan_new_sized, or a typed one by weft_chan_of. Messages are not checked. */
typedef struct weft_chan {
    void *weft_of;
} weft_chan;

#define weft_chan_of(chan) WEFT__AS(weft_chan, chan)

/* ---- making, closing -------------------------------------------------------------------------------------------------------- */

enum weft_chan_kind {
    WEFT_CHAN_BOUNDED,   /* `capacity` messages at most; 0: a send lasts until somebody receives */
    WEFT_CHAN_UNBOUNDED, /* as many as there is memory for: nothing holds senders back */
    WEFT_CHAN_ONESHOT,   /* one message in all: behind it the channel is closed */
};

/* Gives a channel of messages of `msg_bytes` each. `capacity` is looked at for BOUNDED only. Context: anywhere.
 * Returns 0; -EINVAL: no into, messages of no or of more than 1 MiB, a capacity beyond 2^31 - 1; -ENOMEM. */
WEFT_API int weft_chan_new_sized(enum weft_chan_kind kind, size_t msg_bytes, size_t capacity,
                                 weft_chan **into);

/* The same by type:
 *     weft_chan_new(capacity, &chan)   weft_chan_unbounded(&chan)   weft_chan_oneshot(&chan) */

/* Close it: sends are refused from now on, with -EPIPE, also those that wait; what was sent before is still received, and so is
 * what permits send (weft_reserve); then receivers are answered 0. Never waits. Context: anywhere, any thread.
 * Either side may close it, and both may come to it at once: so to be the second is no mistake to be reported, and of all who close
 * it exactly one is answered 0.
 * Returns 0; -EALREADY: it was closed, or is a oneshot that has its message; -EINVAL for NULL. */
WEFT_API int weft__chan_close(weft_chan *chan);

/* Takes the channel, with the messages left in it. Nobody may be using it but those whose operation has been
 * answered, or whose message was received: they may still be on their way out. Whoever waits makes it a mistake that
 * aborts, and is named. NULL is nothing. */
WEFT_API void weft__chan_free(weft_chan *chan, const char *caller);

/* Messages in it now; by the time you look it may be another number. */
WEFT_API size_t weft__chan_len(weft_chan *chan);

WEFT_API bool weft__chan_is_closed(weft_chan *chan);

/* weft_chan_closed(chan): wait until it is closed: for who makes messages that nobody may want any more. Cancel-safe: it takes nothing.
 * Returns 0: it is closed, though messages may lie in it still; -ECANCELED, -ETIME; -EINVAL for NULL; -EDEADLK in a stackless poll. */
struct weft_chan_closed {
    WEFT_FRAME(int);
    void *chan;
    void *weft__waiter[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_chan_closed_poll;
WEFT_API int weft__chan_closed(weft_chan *chan);
#define WEFT__PROBES_weft_chan_closed ~, WEFT__ARM_PROBES
#define weft_chan_closed(chan)                                                                     \
    (WEFT__CALL_FORM("weft_chan_closed()"), weft__chan_closed(weft_chan_of(chan)))

#define weft_chan_close(chan)     weft__chan_close(weft_chan_of(chan))
#define weft_chan_free(chan)      weft__chan_free(weft_chan_of(chan), WEFT__CALLER)
#define weft_chan_len(chan)       weft__chan_len(weft_chan_of(chan))
#define weft_chan_is_closed(chan) weft__chan_is_closed(weft_chan_of(chan))

/* ---- send ------------------------------------------------------------------------------------------------------------------
 *
 * weft_send(chan, &msg): send one message, waiting while the channel is full. Borrows *msg until it is over.
 * Returns 0; -EPIPE: it is closed; -ECANCELED, -ETIME: told to stop, nothing was sent; -ENOMEM: unbounded, and there is no memory;
 * -EINVAL for NULL; -EDEADLK in a stackless poll (call form).
 * weft_try_send: the same at once; -EAGAIN: it is full, or others wait already. Context: anywhere.
 * Of a capacity of 0 it is sent if somebody waits to receive, and -EAGAIN otherwise, or while 16 that were sent so have not been
 * fetched; -ENOMEM: the first time it needs memory. Should that receiver give up, the message is the next one's. */
struct weft_send {
    WEFT_FRAME(int);
    void *chan;
    const void *msg;
    void *weft__waiter[3] WEFT__ZERO; /* in the channel's list while it waits */
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_send_poll;
WEFT__CALLED(int, weft__send, weft_send, (weft_chan *chan, const void *msg), weft__f.chan = chan,
             weft__f.msg = msg)
WEFT_API int weft__try_send(weft_chan *chan, const void *msg);
#define WEFT__PROBES_weft_send ~, WEFT__ARM_PROBES

/* ---- receive ----------------------------------------------------------------------------------------------------------------
 *
 * weft_recv(chan, &msg): receive one message, waiting while there is none.
 * Returns 1: it is in *msg; 0: the end, the channel is closed and drained; -ECANCELED, -ETIME: told to stop, nothing was
 * taken; -EINVAL for NULL; -EDEADLK in a stackless poll (call form).
 * weft_try_recv: the same at once; -EAGAIN: there is none now. Context: anywhere. */
struct weft_recv {
    WEFT_FRAME(int);
    void *chan;
    void *into;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_recv_poll;
WEFT__CALLED(int, weft__recv, weft_recv, (weft_chan *chan, void *into), weft__f.chan = chan,
             weft__f.into = into)
WEFT_API int weft__try_recv(weft_chan *chan, void *into);
#define WEFT__PROBES_weft_recv ~, WEFT__ARM_PROBES

/* weft_recv_many(chan, msgs, max): receive up to `max` messages, in order, waiting until there is one.
 * Returns how many; else as weft_recv; -EINVAL also for a `max` of 0. */
struct weft_recv_many {
    WEFT_FRAME(ssize_t);
    void *chan;
    void *into;
    size_t max;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_recv_many_poll;
WEFT__CALLED(ssize_t, weft__recv_many, weft_recv_many, (weft_chan *chan, void *into, size_t max),
             weft__f.chan = chan, weft__f.into = into, weft__f.max = max)
#define WEFT__PROBES_weft_recv_many ~, WEFT__ARM_PROBES

/* ---- permits: first a place, then the message --------------------------------------------------------------------------------
 *
 *     r = weft_reserve(jobs);                     0: one place is yours
 *     weft_permit_send(jobs, &job);               uses it; it cannot be full, nor closed
 *     weft_permit_drop(jobs);                     or gives it back
 * For who must not make a message that it cannot send. Each reserve is followed by one of the two, by whoever; a receiver of
 * a closed channel waits for it. weft_reserve_many(jobs, n): n places at once, for n of the two.
 * weft_reserve returns as weft_send; -EINVAL also for a channel without places: unbounded, or of capacity 0; and for none, or more
 * than its capacity. Who waits for many keeps its place in the line: nobody passes.
 * The two return 0; -EINVAL: nothing is reserved. They never wait. Context: anywhere. */
struct weft_reserve {
    WEFT_FRAME(int);
    void *chan;
    const void *weft__none WEFT__ZERO;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_reserve_poll;
WEFT_API int weft__reserve(weft_chan *chan);
WEFT_API int weft__permit_send(weft_chan *chan, const void *msg);
WEFT_API int weft__permit_drop(weft_chan *chan);
#define WEFT__PROBES_weft_reserve ~, WEFT__ARM_PROBES
struct weft_reserve_many {
    WEFT_FRAME(int);
    void *chan;
    size_t count;
    struct weft_reserve weft__one WEFT__ZERO;
};
WEFT_API weft_pollfn weft_reserve_many_poll;
WEFT_API int weft__reserve_many(weft_chan *chan, size_t count);
#define WEFT__PROBES_weft_reserve_many ~, WEFT__ARM_PROBES
#define weft_reserve(chan)     (WEFT__CALL_FORM("weft_reserve()"), weft__reserve(weft_chan_of(chan)))
#define weft_reserve_many(chan, count)                                                             \
    (WEFT__CALL_FORM("weft_reserve_many()"), weft__reserve_many(weft_chan_of(chan), count))
#define weft_permit_drop(chan) weft__permit_drop(weft_chan_of(chan))

#ifdef __cplusplus
}
#endif

/* ---- the typed front ------------------------------------------------------------------------------------------------------------
 *
 * `1 ? msg : chan->weft_of` is the message's address, and a mismatch of the two types is the compiler's to report. */
#ifndef __cplusplus
#define WEFT__MSG(chan, msg) (1 ? (msg) : (chan)->weft_of)
#define WEFT__ONE_READER(chan)                                                                     \
    ((void)sizeof(struct {                                                                         \
         char weft__;                                                                              \
         _Static_assert(                                                                           \
             sizeof(*(chan)) <= 2 * sizeof(void *),                                                \
             "weft_on takes a channel or a delay queue: of others who asks has a cursor, too");    \
     }),                                                                                           \
     (chan))
#define WEFT__MSG_BYTES(into)                                                                      \
    (sizeof(struct {                                                                               \
         char weft__;                                                                              \
         _Static_assert(!__builtin_types_compatible_p(__typeof__((*(into))->weft_of), void *),     \
                        "a weft_chan of any type needs a size: weft_chan_new_sized()");            \
     }) * 0 +                                                                                      \
     sizeof(*(*(into))->weft_of))
#else
template <class T> static inline T *weft__msg(T *of, T *msg)
{
    (void)of;
    return msg;
}
template <class T> static inline const T *weft__msg(T *of, const T *msg)
{
    (void)of;
    return msg;
}
static inline void *weft__msg(void *of, void *msg)
{
    (void)of;
    return msg;
}
static inline const void *weft__msg(void *of, const void *msg)
{
    (void)of;
    return msg;
}
/* A null pointer of that type: the member itself is not read here either, the channel may be none yet (weft_watch_new), or NULL. */
#define WEFT__OF(chan)        static_cast<decltype((chan)->weft_of)>(nullptr)
#define WEFT__MSG(chan, msg)  weft__msg(WEFT__OF(chan), msg)
template <class C> static inline C *weft__one_reader(C *chan)
{
    static_assert(sizeof(C) <= 2 * sizeof(void *),
                  "weft_on takes a channel or a delay queue: of others who asks has a cursor, too");
    return chan;
}
#define WEFT__ONE_READER(chan) weft__one_reader(chan)
#define WEFT__MSG_BYTES(into) sizeof(*(*(into))->weft_of)
#endif

#define WEFT__CHAN_NEW(kind, capacity, into)                                                       \
    weft_chan_new_sized(kind, WEFT__MSG_BYTES(into), capacity, WEFT__INTO(weft_chan, into))
#define weft_chan_new(capacity, into) WEFT__CHAN_NEW(WEFT_CHAN_BOUNDED, capacity, into)
#define weft_chan_unbounded(into)     WEFT__CHAN_NEW(WEFT_CHAN_UNBOUNDED, 0, into)
#define weft_chan_oneshot(into)       WEFT__CHAN_NEW(WEFT_CHAN_ONESHOT, 1, into)

/* The two arguments of a send or receive, checked: for weft_await and weft_arm. Also those of a delay queue's next (delay.h). */
#define weft_on(chan, msg) WEFT__ONE_READER(chan), WEFT__MSG(chan, msg)

#define weft_send(chan, msg)                                                                       \
    (WEFT__CALL_FORM("weft_send()"), weft__send(weft_chan_of(chan), WEFT__MSG(chan, msg)))
#define weft_recv(chan, into)                                                                      \
    (WEFT__CALL_FORM("weft_recv()"), weft__recv(weft_chan_of(chan), WEFT__MSG(chan, into)))
#define weft_recv_many(chan, into, max)                                                            \
    (WEFT__CALL_FORM("weft_recv_many()"),                                                          \
     weft__recv_many(weft_chan_of(chan), WEFT__MSG(chan, into), max))
#define weft_try_send(chan, msg)    weft__try_send(weft_chan_of(chan), WEFT__MSG(chan, msg))
#define weft_try_recv(chan, into)   weft__try_recv(weft_chan_of(chan), WEFT__MSG(chan, into))
#define weft_permit_send(chan, msg) weft__permit_send(weft_chan_of(chan), WEFT__MSG(chan, msg))

#endif
