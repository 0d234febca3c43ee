/* SPDX-License-Identifier: MIT
 *
 * ring: requests are answered with their word, a full queue says so, no answer is lost when there are more than places, what
 * fails leaves nothing behind and loses nothing.
 */
#include "base/fault.h"
#include "sys/clock.h"
#include "sys/epoll.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/ring.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct weft__ring ring_open(uint32_t entries)
{
    struct weft__ring ring;
    int r = weft__ring_open(&ring, entries);
    if (r == -EPERM || r == -ENOSYS) TEST_SKIP("no io_uring here: %d", r);
    ASSERT_OK(r);
    return ring;
}

static void ask_nop(struct weft__ring *ring, uint64_t data)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(ring);
    ASSERT(sqe);
    ASSERT_EQ(sqe->user_data, 0);
    sqe->opcode = IORING_OP_NOP;
    sqe->user_data = data;
}

static void ask_read(struct weft__ring *ring, int fd, void *into, uint32_t bytes, uint64_t data)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(ring);
    ASSERT(sqe);
    sqe->opcode = IORING_OP_READ;
    sqe->fd = fd;
    sqe->addr = (uintptr_t)into;
    sqe->len = bytes;
    sqe->user_data = data;
}

/* One answer, waited for by the ring's own readiness. */
static struct weft__ring_done await_one(struct weft__ring *ring)
{
    struct weft__ring_done done;
    struct epoll_event event;
    int epoll;

    ASSERT_OK(weft__epoll_open(&epoll));
    ASSERT_OK(weft__epoll_add(epoll, ring->fd, EPOLLIN, 0));
    while (weft__ring_reap(ring, &done, 1) == 0)
        ASSERT_GE(weft__epoll_wait(epoll, &event, 1, WEFT__NEVER), 0);
    weft__fd_close(epoll);
    return done;
}

TEST(ring_answers_with_the_word_of_the_request)
{
    struct weft__ring ring = ring_open(8);
    struct weft__ring_done done[8];

    ASSERT(fcntl(ring.fd, F_GETFD) & FD_CLOEXEC);
    ASSERT_EQ(weft__ring_submit(&ring), 0);
    ASSERT(!weft__ring_due(&ring));
    for (uint64_t i = 0; i < 5; i++)
        ask_nop(&ring, UINT64_C(0x123456789abcde00) + i);
    ASSERT_EQ(weft__ring_unsubmitted(&ring), 5);
    ASSERT_EQ(weft__ring_submit(&ring), 5);
    ASSERT_EQ(weft__ring_unsubmitted(&ring), 0);
    ASSERT(weft__ring_due(&ring));
    ASSERT_EQ(weft__ring_reap(&ring, done, 3), 3);
    ASSERT_EQ(weft__ring_reap(&ring, done + 3, 5), 2);
    for (uint64_t i = 0; i < 5; i++) {
        ASSERT(done[i].data == UINT64_C(0x123456789abcde00) + i);
        ASSERT_EQ(done[i].result, 0);
    }
    ASSERT_EQ(weft__ring_reap(&ring, done, 8), 0);
    ASSERT(!weft__ring_due(&ring));
    weft__ring_close(&ring);
    weft__ring_close(&ring); /* one that is not open is fine */
}

TEST(ring_reads_a_file_into_a_buffer)
{
    struct weft__ring ring = ring_open(2);
    char path[] = "/tmp/weft-ring-XXXXXX";
    char read[16] = {0};
    int fd = mkstemp(path);

    ASSERT_GE(fd, 0);
    ASSERT_OK(unlink(path));
    ASSERT_EQ(pwrite(fd, "ten bytes.", 10, 0), 10);
    ask_read(&ring, fd, read, sizeof(read), 7);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    struct weft__ring_done done = await_one(&ring);
    ASSERT_EQ(done.data, 7);
    ASSERT_EQ(done.result, 10);
    ASSERT(memcmp(read, "ten bytes.", 10) == 0);
    weft__fd_close(fd);
    weft__ring_close(&ring);
}

TEST(ring_says_when_it_is_full)
{
    struct weft__ring ring = ring_open(4);
    struct weft__ring_done done[8];

    for (int round = 0; round < 3; round++) { /* also across its end */
        for (uint64_t i = 0; i < 4; i++)
            ask_nop(&ring, i);
        ASSERT(!weft__ring_sqe(&ring));
        ASSERT_EQ(weft__ring_submit(&ring), 4);
        ASSERT_EQ(weft__ring_reap(&ring, done, 8), 4);
        ask_nop(&ring, 9);
        ASSERT_EQ(weft__ring_submit(&ring), 1);
        ASSERT_EQ(weft__ring_reap(&ring, done, 8), 1);
        ASSERT_EQ(done[0].data, 9);
    }
    weft__ring_close(&ring);
}

/* There are places for 8 answers; 64 come before one is fetched. Each is there, once. */
TEST(ring_loses_no_answer_beyond_its_places)
{
    struct weft__ring ring = ring_open(4);
    struct weft__ring_done done[3];
    uint64_t seen = 0;
    uint32_t asked = 0;
    uint32_t got = 0;

    while (asked < 64) {
        ask_nop(&ring, asked);
        int r = weft__ring_submit(&ring);
        if (r == -EBUSY) break; /* kernels that want them fetched before they take more */
        ASSERT_EQ(r, 1);
        asked++;
    }
    ASSERT_GE(asked, 8);
    for (uint32_t n; (n = weft__ring_reap(&ring, done, 3)) > 0; got += n)
        for (uint32_t i = 0; i < n; i++) {
            ASSERT(!(seen & UINT64_C(1) << done[i].data));
            seen |= UINT64_C(1) << done[i].data;
        }
    ASSERT_EQ(got, asked);
    weft__ring_close(&ring);
}

TEST(ring_cancels_what_waits)
{
    struct weft__ring ring = ring_open(4);
    struct weft__ring_done done;
    int ends[2];
    char byte;

    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ask_read(&ring, ends[0], &byte, 1, 1);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    ASSERT_EQ(weft__ring_reap(&ring, &done, 1), 0);
    struct io_uring_sqe *sqe = weft__ring_sqe(&ring);
    sqe->opcode = IORING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->addr = 1;
    sqe->user_data = 2;
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    for (int i = 0; i < 2; i++) {
        done = await_one(&ring);
        ASSERT_EQ(done.result, done.data == 1 ? -ECANCELED : 0);
    }
    weft__fd_close(ends[0]);
    weft__fd_close(ends[1]);
    weft__ring_close(&ring);
}

static void *reap_here(void *arg)
{
    struct weft__ring_done done = await_one(arg);
    ASSERT_EQ(done.data, 5);
    ASSERT_EQ(done.result, 1);
    return NULL;
}

/* Whoever submitted sits elsewhere: another thread fetches the answer. */
TEST(ring_answers_another_thread_than_the_one_that_asked)
{
    struct weft__ring ring = ring_open(4);
    pthread_t thread;
    int ends[2];
    char byte = 0;

    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ask_read(&ring, ends[0], &byte, 1, 5);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    ASSERT_OK(pthread_create(&thread, NULL, reap_here, &ring));
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    pthread_join(thread, NULL);
    ASSERT_EQ(byte, 'x');
    weft__fd_close(ends[0]);
    weft__fd_close(ends[1]);
    weft__ring_close(&ring);
}

/* An entry that the kernel has not taken is taken back: what follows has its place. */
TEST(ring_takes_back_what_was_not_submitted)
{
    struct weft__ring ring = ring_open(2);
    struct weft__ring_done done[4];

    for (uint64_t i = 0; i < 5; i++) {
        ask_nop(&ring, 100 + i);
        ask_nop(&ring, i);
        ASSERT(weft__ring_withdraw(&ring));
        ASSERT_EQ(weft__ring_unsubmitted(&ring), 1);
        ASSERT_EQ(weft__ring_submit(&ring), 1);
        ASSERT_EQ(weft__ring_reap(&ring, done, 4), 1);
        ASSERT_EQ(done[0].data, 100 + i);
    }
    weft__ring_close(&ring);
}

TEST(ring_lets_so_many_work)
{
    struct weft__ring ring = ring_open(2);
    int r = weft__ring_let_work(&ring, 16);
    ASSERT(r == 0 || r == -EINVAL);
    weft__ring_close(&ring);
    ASSERT_LE(weft__ring_let_work(&ring, 16), -1);
}

TEST(ring_probe_says_what_the_kernel_knows)
{
    struct weft__ring ring = ring_open(2);
    ASSERT_OK(weft__ring_probe(&ring, IORING_OP_READ));
    ASSERT_EQ(weft__ring_probe(&ring, 250), -EOPNOTSUPP);
    weft__ring_close(&ring);
    ASSERT_LE(weft__ring_probe(&ring, IORING_OP_READ), -1);
}

TEST(ring_refuses_no_entries)
{
    struct weft__ring ring;
    struct weft__ring there = ring_open(2);
    ASSERT_EQ(weft__ring_open(&ring, 0), -EINVAL);
    ASSERT_EQ(ring.fd, -1);
    weft__ring_close(&there);
}

#if defined(WEFT_FAULTS)

TEST(ring_fails_to_open_when_told)
{
    static const int errors[] = {-ENOMEM, -EPERM, -ENOSYS, -EMFILE};
    struct weft__ring ring = ring_open(2);
    weft__ring_close(&ring);

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, errors[i]);
        ASSERT_EQ(weft__ring_open(&ring, 2), errors[i]);
        ASSERT_EQ(ring.fd, -1);
    }
    for (uint32_t nth = 1; nth <= 2; nth++) {
        weft__fault_arm(WEFT__FAULT_MMAP, nth, 1, -ENOMEM);
        ASSERT_EQ(weft__ring_open(&ring, 2), -ENOMEM);
        ASSERT_EQ(ring.fd, -1);
    }
}

/* A kernel that does not know the flags is asked without. */
TEST(ring_opens_on_an_older_kernel)
{
    struct weft__ring_done done;
    struct weft__ring probe = ring_open(2);
    weft__ring_close(&probe);
    weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, -EINVAL);
    struct weft__ring ring = ring_open(2);
    ask_nop(&ring, 3);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    ASSERT_EQ(weft__ring_reap(&ring, &done, 1), 1);
    ASSERT_EQ(done.data, 3);
    weft__ring_close(&ring);
}

/* Refused, it is still ours to take back. */
TEST(ring_takes_back_what_was_refused)
{
    struct weft__ring ring = ring_open(2);
    struct weft__ring_done done[2];

    ask_nop(&ring, 1);
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__ring_submit(&ring), -ENOMEM);
    ASSERT(weft__ring_withdraw(&ring));
    ASSERT_EQ(weft__ring_submit(&ring), 0);
    ask_nop(&ring, 2);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    ASSERT_EQ(weft__ring_reap(&ring, done, 2), 1);
    ASSERT_EQ(done[0].data, 2);
    weft__ring_close(&ring);
}

TEST(ring_is_not_asked_what_it_knows_when_told)
{
    struct weft__ring ring = ring_open(2);
    weft__fault_arm(WEFT__FAULT_URING_PROBE, 1, 1, -EOPNOTSUPP);
    ASSERT_EQ(weft__ring_probe(&ring, IORING_OP_READ), -EOPNOTSUPP);
    ASSERT_OK(weft__ring_probe(&ring, IORING_OP_READ));
    weft__ring_close(&ring);
}

/* The kernel is short of memory for a while: requests stay where they are. */
TEST(ring_keeps_what_the_kernel_does_not_take)
{
    struct weft__ring ring = ring_open(4);
    struct weft__ring_done done[4];

    ask_nop(&ring, 1);
    ask_nop(&ring, 2);
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 2, -EAGAIN);
    ASSERT_EQ(weft__ring_submit(&ring), -EAGAIN);
    ASSERT_EQ(weft__ring_unsubmitted(&ring), 2);
    ask_nop(&ring, 3);
    ASSERT_EQ(weft__ring_submit(&ring), -EAGAIN);
    ASSERT_EQ(weft__ring_submit(&ring), 3);
    ASSERT_EQ(weft__ring_reap(&ring, done, 4), 3);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(done[i].data, (uint64_t)i + 1);
    weft__ring_close(&ring);
}

#endif

TEST(ring_wait_ends_by_time_and_by_an_answer)
{
    struct weft__ring ring = ring_open(2);
    struct weft__ring_done done;
    if (!(ring.features & IORING_FEAT_EXT_ARG)) TEST_SKIP("a sleep in the ring has no time-out here");
    int64_t before = weft__clock_now();
    ASSERT_OK(weft__ring_wait(&ring, 2000000));
    ASSERT_GE(weft__clock_now() - before, 2000000);
    ASSERT(!weft__ring_has(&ring));
    ask_nop(&ring, 7);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    ASSERT_OK(weft__ring_wait(&ring, WEFT__NEVER));
    ASSERT(weft__ring_has(&ring));
    ASSERT_EQ(weft__ring_reap(&ring, &done, 1), 1);
    ASSERT_EQ(done.data, 7);
    weft__ring_close(&ring);
}

TEST(ring_gives_back_what_was_not_submitted_newest_first)
{
    struct weft__ring ring = ring_open(4);
    struct weft__ring_done done;
    ask_nop(&ring, 1);
    ask_nop(&ring, 2);
    ask_nop(&ring, 3);
    ASSERT_EQ(weft__ring_withdraw(&ring)->user_data, 3);
    ASSERT_EQ(weft__ring_withdraw(&ring)->user_data, 2);
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    ASSERT(!weft__ring_withdraw(&ring));
    ASSERT_EQ(weft__ring_reap(&ring, &done, 1), 1);
    ASSERT_EQ(done.data, 1);
    weft__ring_close(&ring);
}

TEST(ring_has_room_for_more_answers_if_asked)
{
    struct weft__ring ring;
    int r = weft__ring_open_wide(&ring, 4, 64);
    if (r == -EPERM || r == -ENOSYS) TEST_SKIP("no io_uring here: %d", r);
    ASSERT_OK(r);
    for (int i = 0; i < 15; i++) {
        for (uint64_t k = 0; k < 4; k++)
            ask_nop(&ring, k);
        ASSERT_EQ(weft__ring_submit(&ring), 4);
    }
    ASSERT_EQ(load_relaxed(ring.sq_flags) & IORING_SQ_CQ_OVERFLOW, 0); /* relaxed: by this thread */
    weft__ring_close(&ring);
}

/* ---- places ---- */

static int table_open(struct weft__ring *ring, uint32_t most)
{
    int r = weft__ring_table_open(ring, most);
    if (r == -EOPNOTSUPP || r == -EINVAL) TEST_SKIP("the kernel has no such table: %d", r);
    return r;
}

/* Puts it there, or empties it: -1. Returns the kernel's answer. */
static int place(struct weft__ring *ring, uint32_t which, int fd)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(ring);
    sqe->opcode = IORING_OP_FILES_UPDATE;
    sqe->fd = -1;
    sqe->off = which;
    sqe->addr = (uintptr_t)&fd;
    sqe->len = 1;
    ASSERT_EQ(weft__ring_submit(ring), 1);
    return await_one(ring).result;
}

static int send_from(struct weft__ring *ring, uint32_t which)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(ring);
    sqe->opcode = IORING_OP_SEND;
    sqe->flags = IOSQE_FIXED_FILE;
    sqe->fd = (int)which;
    sqe->addr = (uintptr_t)"x";
    sqe->len = 1;
    ASSERT_EQ(weft__ring_submit(ring), 1);
    return await_one(ring).result;
}

static bool hears_the_end(int fd)
{
    char b;
    return recv(fd, &b, 1, MSG_DONTWAIT) == 0;
}

TEST(ring_place_keeps_a_file_until_it_is_empty)
{
    struct weft__ring ring = ring_open(4);
    int fds[2][2];
    char b;
    ASSERT_EQ(table_open(&ring, 16), 16);
    for (uint32_t i = 0; i < 2; i++) {
        ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]));
        ASSERT_EQ(place(&ring, 7 + i, fds[i][0]), 1);
        weft__fd_close(fds[i][0]);
        ASSERT(!hears_the_end(fds[i][1]));
        ASSERT_EQ(send_from(&ring, 7 + i), 1);
        ASSERT_EQ(read(fds[i][1], &b, 1), 1);
    }
    ASSERT_EQ(place(&ring, 7, -1), 1);
    ASSERT(hears_the_end(fds[0][1])); /* at once: what a close promises */
    ASSERT_EQ(send_from(&ring, 7), -EBADF);
    ASSERT_EQ(place(&ring, 7, -1), 1); /* it is empty */
    weft__ring_table_close(&ring);
    ASSERT(hears_the_end(fds[1][1]));
    weft__fd_close(fds[0][1]);
    weft__fd_close(fds[1][1]);
    weft__ring_close(&ring);
}

TEST(ring_has_no_more_places_than_the_process_descriptors)
{
    struct weft__ring ring = ring_open(4);
    struct rlimit before, few;
    ASSERT_OK(getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    few.rlim_cur = 64;
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &few));
    int r = table_open(&ring, 1000);
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &before));
    ASSERT_EQ(r, 64);
    ASSERT_LE(place(&ring, 64, 0), -1);
    weft__ring_close(&ring);
}

#if defined(WEFT_FAULTS)
TEST(ring_has_no_places_when_told)
{
    struct weft__ring ring = ring_open(4);
    weft__fault_arm(WEFT__FAULT_URING_TABLE, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__ring_table_open(&ring, 16), -ENOMEM);
    ring.features &= (1U << 16) - 1; /* as an older kernel's */
    ASSERT_EQ(weft__ring_table_open(&ring, 16), -EOPNOTSUPP);
    weft__ring_close(&ring);
}
#endif
