/* SPDX-License-Identifier: MIT
 *
 * op - one operation on a slot, from its first poll to its end: enter, try, wait, try again, leave.
 *
 *     BEGINS   not entered; `as` is 0
 *     TRIES    entered, in no list
 *     WAITS    entered, in its side's list
 *     BEGINS -> TRIES    [first poll]      answered at once if it was told to stop, or may not enter
 *     TRIES  -> WAITS    [nothing there]   unless it is a probe: then back to BEGINS
 *     WAITS  -> TRIES    [has its turn]
 *     any    -> BEGINS   [settles: leaves]
 * A waiting leaf: given up, it has taken nothing, and settles at once. One that moves everything (ALL) keeps what it has moved in `done`, and
 * goes on as the same reader or writer.
 * A try that brings something costs budget; so a stream that never runs dry still lets others run.
 * Lives in the frame of the operation, as struct weft_io. Threads: the poller's.
 */
#ifndef WEFT_DRIVER_OP_H
#define WEFT_DRIVER_OP_H

#include "driver/driver.h"

#include <weft/stream.h>

struct weft__op {
    struct weft__waiter waiter;
    uint32_t as; /* WEFT__USE_...; 0: not begun */
    bool waits;
    size_t done; /* bytes, of ALL */
};

_Static_assert(sizeof(struct weft__op) <= sizeof(struct weft_io), "an operation fits its room");

static inline struct weft__op *weft__op_of(struct weft_io *io)
{
    return (struct weft__op *)(void *)io;
}

/* What kind of operation: constant. `tries` is one try; it answers -EAGAIN if there is nothing, and has then cleared what is not ready. */
struct weft__op_kind {
    enum weft__side side;
    uint32_t as;
    uint64_t bits; /* of the word: what it waits for */
    ssize_t (*tries)(struct weft__fdslot *slot, struct weft__op *op, void *arg);
    bool all; /* until `want` is reached */
};

/* A poll. `want`: of ALL, how many bytes. READY: *ret is what the last try answered, or of ALL `want`, or less at the end; or why not. */
weft_poll weft__op_poll(struct weft__fdslot *slot, struct weft__op *op,
                        const struct weft__op_kind *kind, void *arg, size_t want, weft_cx *cx,
                        ssize_t *ret);

#endif
