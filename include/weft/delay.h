/* SPDX-License-Identifier: MIT
 *
 * delay - a delay queue: items that come out when their time has come.
 *
 *     typedef WEFT_DELAY(struct session) session_delay;      items are type-checked; weft_delay carries any type
 *     session_delay *idle;
 *     r = weft_delay_new(&idle);
 *     r = weft_delay_insert(idle, &session, weft_secs(30), &key);    key: to find it again; NULL: nobody will
 *     r = weft_delay_reset(idle, key, weft_secs(30));                it said something: another 30 s. -ENOENT: too late, it is out
 *     while ((r = weft_delay_next(idle, &session)) > 0) hang_up(&session);   in the order of their deadlines; waits
 *     weft_await(f->next, weft_delay_next, weft_on(f->idle, &f->session));   stackless
 *
 * Fibers and threads call, stackless tasks await, and any number of them put in and take out at once. Items are copied in and out. To put in, to
 * take out and to move is O(log n). Nothing comes out early; of two with one deadline the one that was put in, or moved, first comes first.
 * TIME  is weft_now's: the runtime's clock, which in tests may stand. All who use a queue use one clock.
 * GIVEN UP  A wait that was cancelled, or has lost in a select, has taken nothing, and somebody else is woken in its place.
 */
#ifndef WEFT_DELAY_H
#define WEFT_DELAY_H

#include <weft/set.h>
#include <weft/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A queue of items of type T. The member is there for its type; nobody reads it. */
#define WEFT_DELAY(T)                                                                              \
    struct {                                                                                       \
        T *weft_of;                                                                                \
        char weft__delay;                                                                          \
    }

/* One of any type, unchecked; and what the typed ones are inside. */
typedef struct weft_delay {
    void *weft_of;
    char weft__delay;
} weft_delay;
#define weft_delay_of(queue) WEFT__AS(weft_delay, queue)

/* Finds an item as long as it is in its queue; never another one. All zero finds nothing. */
typedef struct weft_delay_key {
    uint64_t weft__key;
} weft_delay_key;

/* weft_delay_new(&queue): gives an empty one. Returns 0; -EINVAL: no into, items of no or of more than 1 MiB; -ENOMEM. */
WEFT_API int weft_delay_new_sized(size_t item_bytes, weft_delay **into);

/* weft_delay_free(queue): takes it, with the items left in it. Nobody may be using it but those whose wait has been answered;
 * whoever waits makes it a mistake that aborts. NULL is nothing. */
WEFT_API void weft__delay_free(weft_delay *queue);

/* weft_delay_close(queue): nothing is put in any more; what is in it still comes out at its time, then the end: 0. Never waits.
 * Returns 0; -EALREADY; -EINVAL for NULL. */
WEFT_API int weft__delay_close(weft_delay *queue);

/* ---- in -------------------------------------------------------------------------------------------------------------------------
 *
 * weft_delay_insert(queue, &item, ns, &key): to come out `ns` from now; zero or less: at once.
 * weft_delay_insert_at(queue, &item, at, &key): the same at a point in time.
 * Copies *item. Never waits. Context: anywhere. Returns 0; -EPIPE: closed; -ENOMEM; -EINVAL for NULL. */
WEFT_API int weft__delay_insert(weft_delay *queue, const void *item, weft_time ns,
                                weft_delay_key *key);
WEFT_API int weft__delay_insert_at(weft_delay *queue, const void *item, weft_time at,
                                   weft_delay_key *key);

/* weft_delay_reset(queue, key, ns), weft_delay_reset_at(queue, key, at): another time for an item that is in it.
 * Returns 0; -ENOENT: it came out, or was removed; -EINVAL for NULL. Context: anywhere. */
WEFT_API int weft__delay_reset(weft_delay *queue, weft_delay_key key, weft_time ns);
WEFT_API int weft__delay_reset_at(weft_delay *queue, weft_delay_key key, weft_time at);

/* weft_delay_remove(queue, key, &item): out of it before its time; into *item, unless that is NULL. Returns as weft_delay_reset. */
WEFT_API int weft__delay_remove(weft_delay *queue, weft_delay_key key, void *into);

/* weft_delay_deadline(queue, key, &at): when it will come out. Returns as weft_delay_reset. */
WEFT_API int weft__delay_deadline(weft_delay *queue, weft_delay_key key, weft_time *into);

/* ---- out ------------------------------------------------------------------------------------------------------------------------
 *
 * weft_delay_next(queue, &item): the item with the earliest deadline, waiting until that has come; also for the first item.
 * Returns 1: it is in *item; 0: the end, the queue is closed and empty; -ECANCELED, -ETIME: told to stop, nothing was taken;
 * -ENOMEM: as weft_sleep; -EINVAL for NULL; -EDEADLK in a stackless poll (call form).
 * weft_delay_try_next: the same at once; -EAGAIN: none is due. Context: anywhere. */
struct weft_delay_next {
    WEFT_FRAME(int);
    void *queue;
    void *into;
    void *weft__waiter[3] WEFT__ZERO;
    struct weft_sleep_until weft__until WEFT__ZERO;
};
WEFT_API weft_pollfn weft_delay_next_poll;
WEFT_API int weft__delay_next(weft_delay *queue, void *into);
WEFT_API int weft__delay_try_next(weft_delay *queue, void *into);
#define WEFT__PROBES_weft_delay_next ~, WEFT__ARM_PROBES

/* weft_delay_peek(queue, &at): when the next one comes out. Returns 1; 0: it is empty; -EINVAL for NULL. */
WEFT_API int weft__delay_peek(weft_delay *queue, weft_time *into);

/* weft_delay_len(queue): items in it. weft_delay_clear(queue): drops them all, answers how many. */
WEFT_API size_t weft__delay_len(weft_delay *queue);
WEFT_API size_t weft__delay_clear(weft_delay *queue);

#ifdef __cplusplus
}
#endif

#define weft_delay_new(into)                                                                       \
    weft_delay_new_sized(WEFT__MSG_BYTES(into), WEFT__INTO(weft_delay, into))
#define weft_delay_free(queue)  weft__delay_free(weft_delay_of(queue))
#define weft_delay_close(queue) weft__delay_close(weft_delay_of(queue))
#define weft_delay_insert(queue, item, ns, key)                                                    \
    weft__delay_insert(weft_delay_of(queue), WEFT__MSG(queue, item), ns, key)
#define weft_delay_insert_at(queue, item, at, key)                                                 \
    weft__delay_insert_at(weft_delay_of(queue), WEFT__MSG(queue, item), at, key)
#define weft_delay_reset(queue, key, ns)    weft__delay_reset(weft_delay_of(queue), key, ns)
#define weft_delay_reset_at(queue, key, at) weft__delay_reset_at(weft_delay_of(queue), key, at)
#define weft_delay_remove(queue, key, into)                                                        \
    weft__delay_remove(weft_delay_of(queue), key, WEFT__RESULT(queue, into))
#define weft_delay_deadline(queue, key, into) weft__delay_deadline(weft_delay_of(queue), key, into)
#define weft_delay_next(queue, into)                                                               \
    (WEFT__CALL_FORM("weft_delay_next()"),                                                         \
     weft__delay_next(weft_delay_of(queue), WEFT__MSG(queue, into)))
#define weft_delay_try_next(queue, into)                                                           \
    weft__delay_try_next(weft_delay_of(queue), WEFT__MSG(queue, into))
#define weft_delay_peek(queue, into) weft__delay_peek(weft_delay_of(queue), into)
#define weft_delay_len(queue)        weft__delay_len(weft_delay_of(queue))
#define weft_delay_clear(queue)      weft__delay_clear(weft_delay_of(queue))

#endif
