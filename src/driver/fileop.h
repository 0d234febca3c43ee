/* SPDX-License-Identifier: MIT
 *
 * fileop - one request about files on a ring: the hand-over between who awaits it and who fetches its answer.
 *
 *     (begin)  -> ASKED       the kernel has it; it pins the request, and all that this points at
 *     ASKED    -> ASKED       [poll, told to stop]   the kernel is asked to cancel it, and it is waited for:
 *                             it writes to the buffer until its answer has come
 *     ASKED    -> abandoned   [poll, told to stop]   one that owns itself: it is the ring's from now on, who
 *                             disposes of what comes of it
 *     ASKED    -> DONE        [finish]               the answer stands
 * All but the look for DONE happen under the ring's lock. DONE is the ring's last touch of it: the frame
 * may be gone in the next moment. Before it, under the same lock, the waker is claimed; so a poll either finds DONE, or
 * ends before the claim and is followed by another. The same as for jobs of the pool (sched/job.h).
 *
 * Threads: poll by who awaits, finish by whoever fetches answers. Pairs: [file-done].
 */
#ifndef WEFT_DRIVER_FILEOP_H
#define WEFT_DRIVER_FILEOP_H

#include "base/list.h"
#include "sys/lock.h"
#include "task/waker.h"

struct weft__files;
struct weft__file_req;

enum weft__fileop_state { WEFT__FILEOP_ASKED, WEFT__FILEOP_DONE };

struct weft__fileop {
    struct weft__link link; /* in files->to_cancel, or among the late      [the ring's lock] */
    struct weft__files *files; /* constant, as the next three */
    const struct weft__file_req *req;
    void *room; /* what the kernel writes to beside; NULL: nothing */
    void (*dispose)(struct weft__fileop *op, int64_t ret); /* it owns itself; NULL: it borrows */
    struct weft_waker waker; /* of who awaits it; none while that one looks   [lock] */
    int64_t ret;             /* published by DONE */
    _Atomic uint32_t state;  /* enum weft__fileop_state             [file-done] */
    bool stopping;           /* it was told to stop                          [lock] */
    bool abandoned;          /*                                              [lock] */
};

enum weft__fileop_answer {
    WEFT__FILEOP_WAIT,
    WEFT__FILEOP_READY, /* DONE: ret stands, and it is the caller's again */
    WEFT__FILEOP_LEFT,  /* it is the ring's, and disposed of there */
};

/* By who awaits it, and has just begun it: was it answered on the spot? */
static inline bool weft__fileop_is_done(const struct weft__fileop *op)
{
    return load_acquire(&op->state) == WEFT__FILEOP_DONE; /* [file-done] with finish: the answer */
}

/* By who awaits it. `lock`: the ring's. `stop`: the caller gives it up. */
enum weft__fileop_answer weft__fileop_poll(struct weft__fileop *op, struct weft__lock *lock, bool stop);

/* Holds: the ring's lock. Its answer has come, and it is not abandoned. The claimed waker goes into the chain. */
void weft__fileop_finish(struct weft__fileop *op, int64_t ret, struct weft__wake_chain *chain);

/* Holds: the ring's lock. Ask the kernel to cancel it; in files.c. */
void weft__files_cancel(struct weft__fileop *op);

#endif
