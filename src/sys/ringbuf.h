/* SPDX-License-Identifier: MIT
 *
 * ringbuf - buffers that a ring's requests choose from: a receive that waits for ever holds none, and one is taken when bytes come.
 *
 *     weft__ringbuf_open(&bufs, &ring, 1024, 4096)       all of them are the kernel's
 *     an answer names one by its number (IORING_CQE_F_BUFFER): it is the program's, until
 *     weft__ringbuf_give(&bufs, number)                   it is the kernel's again
 * They lie a cache line more than their size apart: at pages' distance, small messages would all be in the same few sets of the cache (measured:
 * 0.4 us of a request of 6).
 * The memory is touched as it is used: what nobody sends costs addresses alone. The kernel gives them out in the order in which they came back.
 *
 * Threads: any, one at a time: under the ring's lock. Pairs: [ring-sq] with the kernel.
 */
#ifndef WEFT_SYS_RINGBUF_H
#define WEFT_SYS_RINGBUF_H

#include "sys/ring.h"

struct weft__ringbuf {
    struct io_uring_buf_ring *queue; /* NULL: not open */
    char *memory;
    uint32_t count; /* a power of two */
    uint32_t bytes; /* of each */
    uint16_t tail;  /* ours; the kernel reads the one in the queue [ring-sq] */
};

enum { WEFT__RINGBUF_GROUP = 0 }; /* the number by which requests name them */

/* Returns 0; -ENOMEM; -EINVAL: the kernel is before 5.19. Blocks: no. */
int weft__ringbuf_open(struct weft__ringbuf *bufs, const struct weft__ring *ring, uint32_t count,
                       uint32_t bytes);

/* The kernel has none any more; what lies in those that are the program's stays readable. No request is in flight. */
void weft__ringbuf_stop(struct weft__ringbuf *bufs, const struct weft__ring *ring);

/* The memory goes; one that is not open is fine. */
void weft__ringbuf_close(struct weft__ringbuf *bufs);

static inline size_t weft__ringbuf_pitch(const struct weft__ringbuf *bufs)
{
    return (size_t)bufs->bytes + WEFT__CACHE_LINE;
}

static inline char *weft__ringbuf_at(const struct weft__ringbuf *bufs, uint32_t number)
{
    return bufs->memory + number * weft__ringbuf_pitch(bufs);
}

void weft__ringbuf_give(struct weft__ringbuf *bufs, uint32_t number);

#endif
