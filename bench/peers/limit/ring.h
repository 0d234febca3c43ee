/* SPDX-License-Identifier: MIT
 *
 * ring - as much of io_uring as the bare loop needs, on raw system calls: one thread submits and reaps, entries are written straight into
 * the queue, and one io_uring_enter submits all and waits.
 *
 * DEFER_TASKRUN: completions are worked off inside of that call, and nowhere else. No array between the queue and its entries, the ring
 * itself and all sockets registered: nothing is looked up or counted for a request. A ring of buffers for receives.
 */
#ifndef WEFT_BENCH_LIMIT_RING_H
#define WEFT_BENCH_LIMIT_RING_H

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of newer kernels than many headers. */
#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif

struct ring {
    int fd;
    int enter_fd;         /* its number among registered rings, or fd */
    unsigned enter_flags; /* IORING_ENTER_REGISTERED_RING, or none */
    uint32_t sq_mask;
    uint32_t sq_entries;
    uint32_t sq_written;   /* the tail, before it is published */
    uint32_t sq_submitted; /* up to where the kernel was told */
    _Atomic uint32_t *sq_head;
    _Atomic uint32_t *sq_tail;
    struct io_uring_sqe *sqes;
    uint32_t cq_mask;
    _Atomic uint32_t *cq_head;
    _Atomic uint32_t *cq_tail;
    struct io_uring_cqe *cqes;

    /* receive buffers */
    struct io_uring_buf_ring *bufs;
    char *buf_memory;
    uint16_t buf_tail;
    uint16_t buf_mask;
    uint32_t buf_bytes;
};

/* Ends the process where it fails. Room for `files` sockets. */
void ring_open(struct ring *r, uint32_t entries, uint32_t cq_entries, uint32_t files);

/* `count` buffers, a power of two, of `bytes` each, as group 0. */
void ring_open_bufs(struct ring *r, uint16_t count, uint32_t bytes);

/* Submits what was written, and waits until there are `wait` answers. Returns 0, or -EINTR. */
int ring_enter(struct ring *r, unsigned wait);

/* The next entry, zeroed. Submits if there is no room. */
struct io_uring_sqe *ring_sqe(struct ring *r);

/* ---- buffers ---- */

static inline char *ring_buf(const struct ring *r, uint16_t id)
{
    return r->buf_memory + (size_t)id * r->buf_bytes;
}

/* Back to the kernel. */
static inline void ring_buf_give(struct ring *r, uint16_t id)
{
    struct io_uring_buf *buf = &r->bufs->bufs[r->buf_tail & r->buf_mask];
    buf->addr = (uint64_t)(uintptr_t)ring_buf(r, id);
    buf->len = r->buf_bytes;
    buf->bid = id;
    r->buf_tail++;
    /* release, with the kernel: the entry is written */
    atomic_store_explicit((_Atomic uint16_t *)&r->bufs->tail, r->buf_tail, memory_order_release);
}

/* ---- answers ---- */

/* NULL: there is none. */
static inline const struct io_uring_cqe *ring_peek(const struct ring *r)
{
    uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed); /* relaxed: ours */
    /* acquire, with the kernel: the answers are written */
    if (head == atomic_load_explicit(r->cq_tail, memory_order_acquire)) return NULL;
    return &r->cqes[head & r->cq_mask];
}

static inline void ring_seen(struct ring *r)
{
    uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed); /* relaxed: ours */
    /* release, with the kernel: it is read */
    atomic_store_explicit(r->cq_head, head + 1, memory_order_release);
}

#endif
