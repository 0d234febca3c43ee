/* SPDX-License-Identifier: MIT
 *
 * ring - io_uring: a queue of requests to the kernel, and one of its answers.
 *
 *     struct io_uring_sqe *sqe = weft__ring_sqe(&ring);       NULL: full; submit, then ask again
 *     sqe->opcode = IORING_OP_READ; ...                       it comes zeroed
 *     weft__ring_submit(&ring);                               one syscall for all that were written
 *     weft__ring_reap(&ring, done, 64);                       what has come, without a syscall as a rule
 *
 * Both queues are memory that the kernel shares; each side owns one end of each:
 *     SQ   we write entries and the tail     the kernel reads them, and writes the head
 *     CQ   the kernel writes entries, tail   we read them, and write the head
 * A request that was submitted has been copied: its entry is free, what it points to is not before its answer.
 * NO ANSWER IS LOST: with more answers than places the kernel keeps the rest (IORING_FEAT_NODROP, asked for
 * at the opening) and says so in a flag, which reap looks at: it then fetches them by a syscall.
 *
 * Set up with COOP_TASKRUN, so that nobody is interrupted for an answer: it is posted at the next syscall of whoever
 * submitted, or when reap finds the flag that it is due; and SUBMIT_ALL, so that a bad request does not hold up those
 * behind it. Kernels that know neither are asked without. Not SINGLE_ISSUER, not DEFER_TASKRUN: anybody may
 * submit, cancel and reap while the usual thread is stuck.
 *
 * Threads: any, one at a time: the caller has a lock around all of it but weft__ring_probe, weft__ring_due, weft__ring_has and weft__ring_wait.
 * Pairs: [ring-sq], [ring-cq], each with the kernel.
 * Rejected: liburing (2.3 as packaged lacks half of what is asked of it, and this is what is left when its
 * inline preparations of requests are taken away).
 */
#ifndef WEFT_SYS_RING_H
#define WEFT_SYS_RING_H

#include "base/atomic.h"

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of newer kernels than the headers. */
enum { WEFT__RING_OP_FTRUNCATE = 55 };

struct weft__ring {
    int fd;            /* -1: not open. Readable while there are answers; may be watched by an epoll */
    uint32_t features; /* IORING_FEAT_*; constant */
    bool coop;         /* nobody is interrupted for an answer: 5.19 */

    /* -- requests -- */
    _Atomic uint32_t *sq_head;  /* the kernel's [ring-sq] */
    _Atomic uint32_t *sq_tail;  /* ours, read by the kernel [ring-sq] */
    _Atomic uint32_t *sq_flags; /* the kernel's: what it wants of us */
    uint32_t sq_mask;
    uint32_t sq_entries;
    uint32_t written; /* the tail as far as entries were handed out; submit publishes it */
    struct io_uring_sqe *sqes;

    /* -- answers -- */
    _Atomic uint32_t *cq_head; /* ours, read by the kernel [ring-cq] */
    _Atomic uint32_t *cq_tail; /* the kernel's [ring-cq] */
    uint32_t cq_mask;
    struct io_uring_cqe *cqes;

    void *queues; /* the mapping of both */
    size_t queues_bytes;
    size_t sqes_bytes;
};

/* An answer: the word of the request, and what came of it. */
struct weft__ring_done {
    uint64_t data;
    int32_t result;  /* as the syscall would: a count or a negative errno */
    uint32_t flags;  /* IORING_CQE_F_* */
};

/* Open one for `entries` requests at a time, a power of two. Blocks: no. Returns 0; -ENOSYS, also
 * from a kernel before 5.5; -EPERM where it is forbidden (sysctl, filter); -ENOMEM, also at the limit
 * of locked memory; -EMFILE; -ENFILE. */
int weft__ring_open(struct weft__ring *ring, uint32_t entries);

/* Likewise, with `places` for answers, more than twice the requests: for requests with several each. */
int weft__ring_open_wide(struct weft__ring *ring, uint32_t entries, uint32_t places);

/* Close it; one that is not open is fine. The kernel cancels what is in flight, and may still write to where it was told
 * to for a while: nothing is in flight. In the child of a fork: its copy, the parent's goes on. */
void weft__ring_close(struct weft__ring *ring);

/* Does the kernel know this operation? Asks it. Blocks: no. Returns 0, or the negative errno that says why not:
 * -EOPNOTSUPP, or that it cannot be asked (before 5.6). */
int weft__ring_probe(const struct weft__ring *ring, uint8_t opcode);

/* A table of places that are empty at first, `most` or as many as the process may have descriptors: IORING_OP_FILES_UPDATE fills them,
 * IOSQE_FIXED_FILE names them. A descriptor's file is open as long as it has one. Blocks: no.
 * Returns how many; -EOPNOTSUPP from a kernel before 6.14; -ENOMEM; -EPERM; -EINVAL, -EMFILE where the process may have none, or fewer since. */
int weft__ring_table_open(const struct weft__ring *ring, uint32_t most);

/* All places are empty, and there are none. Nothing is in flight. */
void weft__ring_table_close(const struct weft__ring *ring);

/* Gives the next entry, zeroed, to be filled; NULL: there is no room before a submit. Blocks: no. */
struct io_uring_sqe *weft__ring_sqe(struct weft__ring *ring);

/* Entries that were given and are not submitted. */
uint32_t weft__ring_unsubmitted(const struct weft__ring *ring);

/* Hand what was written to the kernel. Blocks: no more than the requests themselves, done inline (a file's page that is in the cache is
 * read here). Returns how many were taken, perhaps not all; -EBUSY when the kernel wants its answers fetched first;
 * -EAGAIN, -ENOMEM when it is short of memory; -EINTR. Nothing is lost: the rest stays for the next submit. */
int weft__ring_submit(struct weft__ring *ring);

/* Takes the newest entry back that was given and is not submitted, as it was written; NULL: there is none. Behind a submit that did not take all. */
const struct io_uring_sqe *weft__ring_withdraw(struct weft__ring *ring);

/* Sleep until there is an answer, at most `timeout_ns` from now; WEFT__NEVER: without end. By any thread, without the lock.
 * Blocks: yes. Returns 0: look; also when the time is over, or a signal handler ran. -EINVAL: the kernel is before 5.11; -EBADR: it lost answers, having no memory. */
int weft__ring_wait(const struct weft__ring *ring, int64_t timeout_ns);

/* Let up to `count` threads of the kernel work at once for each thread that submits here; its own bound is four for a CPU. Blocks: no.
 * Returns 0; -EINVAL from a kernel before 5.15. */
int weft__ring_let_work(struct weft__ring *ring, uint32_t count);

/* Is there something to reap? A hint for whoever holds no lock. Blocks: no. */
bool weft__ring_due(const struct weft__ring *ring);

/* Is there an answer that anybody could reap now? Not, as above, what the kernel would post if the thread that asked came by. Without a lock. */
bool weft__ring_has(const struct weft__ring *ring);

/* Answers that could be reaped now. Without a lock: a hint. */
uint32_t weft__ring_left(const struct weft__ring *ring);

/* Take up to `max` answers. Blocks: no. Returns how many. */
uint32_t weft__ring_reap(struct weft__ring *ring, struct weft__ring_done *into, uint32_t max);

#endif
