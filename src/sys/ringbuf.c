/* SPDX-License-Identifier: MIT
 *
 * ringbuf - the mapping, its registration, and giving one back.
 */
#include "sys/ringbuf.h"

#include "base/assert.h"
#include "base/fault.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_io_uring_register
#define SYS_io_uring_register 427
#endif

static size_t queue_bytes(const struct weft__ringbuf *bufs)
{
    return bufs->count * sizeof(struct io_uring_buf);
}

static size_t memory_bytes(const struct weft__ringbuf *bufs)
{
    return bufs->count * weft__ringbuf_pitch(bufs);
}

static int map(size_t bytes, void **into)
{
    int r = weft__fault(WEFT__FAULT_MMAP);
    if (r < 0) return r;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return -errno;
    *into = at;
    return 0;
}

static int enlist(const struct weft__ringbuf *bufs, const struct weft__ring *ring)
{
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)bufs->queue,
                                   .ring_entries = bufs->count,
                                   .bgid = WEFT__RINGBUF_GROUP};
    long r = syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_PBUF_RING, &reg, 1);
    return r < 0 ? -errno : 0;
}

int weft__ringbuf_open(struct weft__ringbuf *bufs, const struct weft__ring *ring, uint32_t count,
                       uint32_t bytes)
{
    void *queue = NULL;
    void *memory = NULL;

    *bufs = (struct weft__ringbuf){.count = count, .bytes = bytes};
    int r = map(queue_bytes(bufs), &queue);
    if (r < 0) return r;
    bufs->queue = queue;
    r = map(memory_bytes(bufs), &memory);
    if (r < 0) goto out_queue;
    bufs->memory = memory;
    r = enlist(bufs, ring);
    if (r < 0) goto out_memory;
    for (uint32_t i = 0; i < count; i++)
        weft__ringbuf_give(bufs, i);
    return 0;

out_memory:
    (void)munmap(bufs->memory, memory_bytes(bufs));
out_queue:
    (void)munmap(bufs->queue, queue_bytes(bufs));
    *bufs = (struct weft__ringbuf){0};
    return r;
}

void weft__ringbuf_stop(struct weft__ringbuf *bufs, const struct weft__ring *ring)
{
    struct io_uring_buf_reg reg = {.bgid = WEFT__RINGBUF_GROUP};
    if (!bufs->queue) return;
    (void)syscall(SYS_io_uring_register, ring->fd, IORING_UNREGISTER_PBUF_RING, &reg, 1);
    (void)munmap(bufs->queue, queue_bytes(bufs));
    bufs->queue = NULL;
}

void weft__ringbuf_close(struct weft__ringbuf *bufs)
{
    weft_assert(!bufs->queue); /* it was stopped */
    if (bufs->memory) (void)munmap(bufs->memory, memory_bytes(bufs));
    bufs->memory = NULL;
}

void weft__ringbuf_give(struct weft__ringbuf *bufs, uint32_t number)
{
    if (!bufs->queue) return; /* the kernel wants none any more */
    struct io_uring_buf *place = &bufs->queue->bufs[bufs->tail & (bufs->count - 1)];
    place->addr = (uintptr_t)weft__ringbuf_at(bufs, number);
    place->len = bufs->bytes;
    place->bid = (uint16_t)number;
    bufs->tail++;
    store_release((_Atomic uint16_t *)(void *)&bufs->queue->tail,
                  bufs->tail); /* [ring-sq] with the kernel: the entry is written */
}
