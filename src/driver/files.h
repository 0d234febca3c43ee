/* SPDX-License-Identifier: MIT
 *
 * files - operations on files by io_uring: a ring for each port, beside whatever the port itself stands on.
 *
 *     begin    the request goes to the kernel at once. What it can answer on the spot is DONE when begin returns
 *     reap     its answers are given to their operations, whose tasks are woken
 *     poll     fileop.h
 * The ring opens with the first request of its port's worker, once. Its fd is watched by the port as any other; the waiter there
 * is no task but the ring itself (a foreign waker), which fetches its answers and waits again. So whoever
 * turns the port brings the files on, on any backend; and what makes a busy worker's sockets be looked after does the same for its files.
 *
 * THE COUNT  The port's count of fds is what keeps workers looking at the kernel, and a clock that stands from moving. The ring itself
 * does not count: each operation under way does, from before it is asked for until its task was woken, or what it left was disposed of.
 * NO ANSWER IS LOST, NO CANCEL EITHER  So many operations are under way that the kernel has a place for the answer of each and of its cancel:
 *     due = answers that are still to come <= DEPTH when an operation begins, <= 2 * DEPTH = the places always
 * An entry is handed to the kernel as soon as it is written, so there is always room for one. If the kernel does not take it, it is taken
 * back: an operation then goes the other way (the pool); a cancel stays in a list until the next look at the ring, or the end.
 * WHO ASKED MAY BE GONE  The kernel cancels requests of a thread that ends. One that nobody has told to stop is asked for anew, by whoever finds its
 * answer; likewise one that was interrupted. Those that its own threads work on are not cancelled but waited for, in the exit of who asked. That is short, but for
 * an open, which may wait for the other end of a FIFO: so a runtime that is turned by threads of the program's leaves opens to the pool.
 * THREADS OF THE KERNEL  It has as many as there are operations under way if all of them block; so none waits behind another for ever, as two
 * ends of a FIFO would.
 *
 * Threads: begin by a worker of the port; all else by anyone. Lock: rank driver, held across the calls that submit: they do not wait.
 * Pairs: [port-files] the ring is there. Memory: the driver's; closed with its port, when nothing is under way.
 * Rejected: the port's own ring where it has one (files would go another way on each backend, and wait behind the sockets' answers); threads that
 * only wait for a ring (a switch more for each answer); SQPOLL (a thread that spins, and acts by the rights that the process had when it began);
 * several requests in one call (what can be answered on the spot would wait, and nothing of it was ever the limit).
 */
#ifndef WEFT_DRIVER_FILES_H
#define WEFT_DRIVER_FILES_H

#include "driver/driver.h"
#include "driver/fileop.h"
#include "sys/file_ring.h"

struct weft__files {
    struct weft__lock lock; /* rank driver; guards all that is not constant or marked */
    struct weft__ring ring;
    struct weft__link to_cancel; /* operations whose cancel the kernel has not taken yet */
    uint32_t due;                /* answers that are still to come */
    uint32_t running;            /* operations under way */
    struct weft__port *port;     /* constant, as the next two */
    uint64_t known;              /* bits by enum weft__file_op: what the kernel can do */
    struct weft__fdslot *slot;
    struct weft__waiter waiter;   /* at the slot                   [the slot, and who has its turn] */
    struct weft__foreign foreign; /* what is woken there */
    _Atomic uint64_t done;        /* operations; written under the lock, as the next */
    _Atomic uint64_t late;        /* answers to what had been given up */
};

/* The ring of a port, opened if this is the first time. By the port's worker. NULL: there is none. */
struct weft__files *weft__port_files(struct weft__port *port);

/* Can the ring do it? */
bool weft__files_know(const struct weft__files *files, const struct weft__file_req *req);

/* Ask for `req`. Pins both until DONE. True: it is under way, or DONE; false: the kernel does not take it, and nothing has happened.
 * `room`, `dispose`: fileop.h. */
bool weft__files_begin(struct weft__files *files, struct weft__fileop *op, struct weft_waker waker);

/* Fetch answers. */
void weft__files_reap(struct weft__files *files);

/* ---- by the driver ---- */

/* What was given up and is still under way, of all ports: cancelled, and waited for until `until_ns`. No task lives. Returns 0; -ETIME. */
int weft__files_settle(struct weft__driver *driver, int64_t until_ns);

/* Operations that have ended, and those of them that had been given up. */
void weft__files_count(const struct weft__driver *driver, uint64_t *done, uint64_t *late);

/* Nothing is under way. */
void weft__files_close(struct weft__port *port);

/* Why do the operations of this driver not go by a ring? Returns 0: they do, or would; -ENOTSUP: the runtime was told not to; else what the
 * opening of a ring has answered: asks the kernel if nobody has. Blocks: no. */
int weft__files_why_not(const struct weft__driver *driver);

#endif
