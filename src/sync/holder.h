/* SPDX-License-Identifier: MIT
 *
 * holder - who has a lock, and where it was taken: two words, written by plain stores, for messages and for the refusal of
 * mistakes.
 *
 *     a task      its address, with 16 bits of its block's generation above it: a task that comes later is another holder
 *     a thread    the address of its record (task/here.h), with the low bit set
 *     nobody      0
 *     a reader    in debug builds, of a read-write lock: any of these, with the bit above the lowest set
 * The word holds no reference. What it says of another task is looked at by weft__peek alone: task and runtime may be gone.
 * `at` is text of the program, "file.c:12", or NULL: it was not told. It stays when the lock is given back.
 * Threads: any. Under WEFT_MODEL, where all threads are one, the test says who it is, and nobody asks where.
 */
#ifndef WEFT_SYNC_HOLDER_H
#define WEFT_SYNC_HOLDER_H

#include "base/atomic.h"

#include <weft/future.h>

#include <stddef.h>
#include <stdint.h>

#if defined(WEFT_MODEL)
#include "base/assert.h"

uintptr_t weft__holder_self(void);
#define weft__misuse(what, at) ((void)(at), weft__assert_failed(what, __FILE__, __LINE__))

static inline bool weft__holder_may_block(void)
{
    return false;
}
#else
#include "task/here.h"
#include "task/holds.h"
#include "task/state.h"

#define WEFT__HOLDER_THREAD    ((uintptr_t)1)
#define WEFT__HOLDER_GEN_SHIFT 48 /* addresses of a process end below, unless it asks for more */

/* `what` was done at `at` (NULL: not known), and there is no going on: one line that names who did it and where, and an abort. */
__attribute__((noreturn, cold)) void weft__misuse(const char *what, const char *at);

static inline uintptr_t weft__holder_self(void)
{
    struct weft__here *here = weft__here();
    struct weft_task *task = here->task;
    if (!task) return (uintptr_t)here | WEFT__HOLDER_THREAD;
    return (uintptr_t)task | (uintptr_t)weft__state_generation(task) << WEFT__HOLDER_GEN_SHIFT;
}

/* A plain thread outside of everything: nobody tells it to stop, and it has nobody to let run. */
static inline bool weft__holder_may_block(void)
{
    const struct weft__here *here = weft__here();
    return !here->fiber && !here->cx && !here->task && !here->regions;
}
#endif

#define WEFT__HOLDER_READS ((uintptr_t)2) /* beside who it is */

struct weft__holder {
    _Atomic uintptr_t who;  /* as above                         [holder; others look] */
    const char *_Atomic at; /* where it was taken last          [holder; others look] */
};
_Static_assert(offsetof(struct weft__holder, at) == sizeof(uintptr_t), "task/holds.c reads both");

/* relaxed, in all of these: it is one's own word, or not; nobody reads anything on the strength of it */
static inline void weft__holder_take(struct weft__holder *holder, const char *at)
{
    store_relaxed(&holder->who, weft__holder_self());
#if defined(WEFT_MODEL)
    (void)at;
#else
    store_relaxed(&holder->at, at);
    weft__holds_add(&holder->who);
#endif
}

static inline void weft__holder_leave(struct weft__holder *holder)
{
#if !defined(WEFT_MODEL)
    weft__holds_remove(&holder->who);
#endif
    store_relaxed(&holder->who, 0);
}

static inline bool weft__holder_is_me(const struct weft__holder *holder)
{
    return load_relaxed(&holder->who) == weft__holder_self();
}

static inline bool weft__holder_is_any(const struct weft__holder *holder)
{
    return load_relaxed(&holder->who) != 0;
}

/* The holder is a task that has ended: says so, by its name if that is still there, and where it took the lock. True: it was said. */
bool weft__holder_report_ended(const struct weft__holder *holder, const char *what,
                               const void *lock);

/* `what` was done at `at` (NULL: not known) to a lock that this caller should have had, or not: one line that names both sides and
 * both places. Debug builds abort. Gives `error` back. `holder` NULL: there is nobody to name. */
int weft__holder_misuse(const struct weft__holder *holder, const char *what, const char *at,
                        int error);

/* Something that somebody waits for, with this waker, is ended at `at`: says who. The caller aborts. holds: what keeps the waiter. */
void weft__holder_report_waiter(struct weft_waker waker, const char *what, const char *at);

#endif
