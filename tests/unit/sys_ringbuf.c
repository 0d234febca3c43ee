/* SPDX-License-Identifier: MIT
 *
 * ringbuf: a receive that goes on takes buffers as bytes come, names each, finds none when all are out, and finds those again that were given back.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/ringbuf.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COUNT = 4, BYTES = 64 };

struct fixture {
    struct weft__ring ring;
    struct weft__ringbuf bufs;
    int fds[2];
};

static void open_all(struct fixture *f)
{
    int r = weft__ring_open(&f->ring, 8);
    if (r == -EPERM || r == -ENOSYS) TEST_SKIP("no io_uring here: %d", r);
    ASSERT_OK(r);
    r = weft__ringbuf_open(&f->bufs, &f->ring, COUNT, BYTES);
    if (r == -EINVAL) {
        weft__ring_close(&f->ring);
        TEST_SKIP("the kernel knows no buffer rings");
    }
    ASSERT_OK(r);
    ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, f->fds));
}

static void close_all(struct fixture *f)
{
    weft__fd_close(f->fds[0]);
    weft__fd_close(f->fds[1]);
    weft__ringbuf_stop(&f->bufs, &f->ring);
    weft__ringbuf_close(&f->bufs);
    weft__ringbuf_close(&f->bufs); /* one that is not open is fine */
    weft__ring_close(&f->ring);
}

static void ask_for_all(struct fixture *f)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(&f->ring);
    sqe->opcode = IORING_OP_RECV;
    sqe->fd = f->fds[0];
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = WEFT__RINGBUF_GROUP;
    ASSERT_EQ(weft__ring_submit(&f->ring), 1);
}

static struct weft__ring_done next(struct fixture *f)
{
    struct weft__ring_done done;
    while (weft__ring_reap(&f->ring, &done, 1) == 0)
        ASSERT_OK(weft__ring_wait(&f->ring, WEFT__NEVER));
    return done;
}

TEST(ringbuf_goes_round)
{
    struct fixture f;
    open_all(&f);
    ask_for_all(&f);
    for (int i = 0; i < 3 * COUNT; i++) {
        char text[BYTES];
        int n = snprintf(text, sizeof text, "message %d", i);
        ASSERT_EQ(write(f.fds[1], text, (size_t)n), n);
        struct weft__ring_done done = next(&f);
        ASSERT_EQ(done.result, n);
        ASSERT(done.flags & IORING_CQE_F_BUFFER);
        ASSERT(done.flags & IORING_CQE_F_MORE);
        uint32_t number = done.flags >> IORING_CQE_BUFFER_SHIFT;
        ASSERT_LE(number, COUNT - 1);
        ASSERT_EQ(memcmp(weft__ringbuf_at(&f.bufs, number), text, (size_t)n), 0);
        weft__ringbuf_give(&f.bufs, number);
    }
    close_all(&f);
}

TEST(ringbuf_is_empty_and_then_is_not)
{
    struct fixture f;
    uint32_t number = 0;
    open_all(&f);
    ask_for_all(&f);
    for (int i = 0; i < COUNT + 1; i++)
        ASSERT_EQ(write(f.fds[1], "xy", 2), 2);
    for (int i = 0; i < COUNT; i++) {
        struct weft__ring_done done = next(&f);
        ASSERT_EQ(done.result, 2);
        number = done.flags >> IORING_CQE_BUFFER_SHIFT;
    }
    struct weft__ring_done none = next(&f);
    ASSERT_EQ(none.result, -ENOBUFS);
    ASSERT(!(none.flags &
             IORING_CQE_F_MORE)); /* that was its end, and the message is still in the socket */
    weft__ringbuf_give(&f.bufs, number);
    ask_for_all(&f);
    struct weft__ring_done more = next(&f);
    ASSERT_EQ(more.result, 2);
    ASSERT_EQ(more.flags >> IORING_CQE_BUFFER_SHIFT, number);
    close_all(&f);
}

#if defined(WEFT_FAULTS)
TEST(ringbuf_that_cannot_be_had_leaves_nothing)
{
    struct weft__ring ring;
    struct weft__ringbuf bufs;
    int r = weft__ring_open(&ring, 8);
    if (r == -EPERM || r == -ENOSYS) TEST_SKIP("no io_uring here: %d", r);
    ASSERT_OK(r);
    for (uint32_t nth = 1; nth <= 2; nth++) {
        weft__fault_arm(WEFT__FAULT_MMAP, nth, 1, -ENOMEM);
        ASSERT_EQ(weft__ringbuf_open(&bufs, &ring, COUNT, BYTES), -ENOMEM);
        weft__fault_reset();
        weft__ringbuf_stop(&bufs, &ring);
        weft__ringbuf_close(&bufs);
    }
    weft__ring_close(&ring);
}
#endif
