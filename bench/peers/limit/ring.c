/* SPDX-License-Identifier: MIT
 *
 * ring - setting up, entries, and the one call (ring.h).
 */
#include "ring.h"

#include "limit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup    425
#define SYS_io_uring_enter    426
#define SYS_io_uring_register 427
#endif

static void *map(int fd, size_t bytes, off_t what)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, what);
    if (at == MAP_FAILED) limit_give_up("mmap");
    return at;
}

static int ring_register(const struct ring *r, unsigned what, void *arg, unsigned count)
{
    return (int)syscall(SYS_io_uring_register, r->fd, what, arg, count);
}

static void map_queues(struct ring *r, const struct io_uring_params *p)
{
    size_t bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    char *queues = map(r->fd, bytes, IORING_OFF_SQ_RING);

    r->sqes = map(r->fd, p->sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    r->sq_entries = p->sq_entries;
    r->sq_mask = p->sq_entries - 1;
    r->sq_head = (void *)(queues + p->sq_off.head);
    r->sq_tail = (void *)(queues + p->sq_off.tail);
    r->cq_mask = p->cq_entries - 1;
    r->cq_head = (void *)(queues + p->cq_off.head);
    r->cq_tail = (void *)(queues + p->cq_off.tail);
    r->cqes = (void *)(queues + p->cq_off.cqes);
}

static void register_ring(struct ring *r)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint64_t)r->fd};

    r->enter_fd = r->fd;
    if (ring_register(r, IORING_REGISTER_RING_FDS, &update, 1) != 1) return;
    r->enter_fd = (int)update.offset;
    r->enter_flags = IORING_ENTER_REGISTERED_RING;
}

void ring_open(struct ring *r, uint32_t entries, uint32_t cq_entries, uint32_t files)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_NO_SQARRAY,
        .cq_entries = cq_entries,
    };
    struct io_uring_rsrc_register sockets = {.nr = files, .flags = IORING_RSRC_REGISTER_SPARSE};

    *r = (struct ring){.fd = (int)syscall(SYS_io_uring_setup, entries, &params)};
    if (r->fd < 0) limit_give_up("io_uring, as of Linux 6.6");
    map_queues(r, &params);
    register_ring(r);
    if (ring_register(r, IORING_REGISTER_FILES2, &sockets, sizeof(sockets)) < 0)
        limit_give_up("room for sockets in the ring");
}

void ring_open_bufs(struct ring *r, uint16_t count, uint32_t bytes)
{
    r->bufs = map(-1, count * sizeof(struct io_uring_buf), 0);
    r->buf_memory = map(-1, (size_t)count * bytes, 0);
    r->buf_mask = (uint16_t)(count - 1);
    r->buf_bytes = bytes;
    struct io_uring_buf_reg reg = {
        .ring_addr = (uint64_t)(uintptr_t)r->bufs, .ring_entries = count, .bgid = 0};
    if (ring_register(r, IORING_REGISTER_PBUF_RING, &reg, 1) < 0)
        limit_give_up("a ring of buffers");
    for (uint16_t id = 0; id < count; id++)
        ring_buf_give(r, id);
}

int ring_enter(struct ring *r, unsigned wait)
{
    uint32_t count = r->sq_written - r->sq_submitted;
    unsigned flags = r->enter_flags | (wait ? IORING_ENTER_GETEVENTS : 0);

    /* release, with the kernel: the entries are written */
    atomic_store_explicit(r->sq_tail, r->sq_written, memory_order_release);
    long n = syscall(SYS_io_uring_enter, r->enter_fd, count, wait, flags, NULL, (size_t)0);
    if (n >= 0) r->sq_submitted += (uint32_t)n;
    if (n < 0 && errno != EINTR && errno != EBUSY && errno != EAGAIN)
        limit_give_up("io_uring_enter");
    return n < 0 ? -EINTR : 0;
}

struct io_uring_sqe *ring_sqe(struct ring *r)
{
    /* acquire, with the kernel: it has copied what lies before */
    while (r->sq_written - atomic_load_explicit(r->sq_head, memory_order_acquire) == r->sq_entries)
        (void)ring_enter(r, 0);
    struct io_uring_sqe *sqe = &r->sqes[r->sq_written++ & r->sq_mask];
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}
