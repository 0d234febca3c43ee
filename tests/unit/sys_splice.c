/* SPDX-License-Identifier: MIT
 *
 * Bytes from descriptor to descriptor: how much went, the end, nothing there, nobody who reads; and no signal.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "sys/splice.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

static void pipes(int a[2], int b[2])
{
    ASSERT_OK(weft__pipe_open(a));
    ASSERT_OK(weft__pipe_open(b));
}

static void closes(const int fds[2])
{
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
}

TEST(splice_moves_what_is_there)
{
    int a[2], b[2];
    char in[8];
    pipes(a, b);
    ASSERT_EQ(weft__splice(a[0], b[1], 100), -EAGAIN);
    ASSERT_EQ(write(a[1], "hello", 5), 5);
    ASSERT_EQ(weft__splice(a[0], b[1], 3), 3);
    ASSERT_EQ(weft__splice(a[0], b[1], 100), 2);
    ASSERT_EQ(read(b[0], in, sizeof in), 5);
    ASSERT_EQ(memcmp(in, "hello", 5), 0);
    weft__fd_close(a[1]);
    ASSERT_EQ(weft__splice(a[0], b[1], 100), 0);
    weft__fd_close(a[0]);
    closes(b);
}

TEST(splice_to_nobody_is_an_error_and_no_signal)
{
    int a[2], b[2];
    pipes(a, b);
    ASSERT_EQ(write(a[1], "x", 1), 1);
    weft__fd_close(b[0]);
    ASSERT_EQ(weft__splice(a[0], b[1], 1), -EPIPE);
    weft__fd_close(b[1]);
    closes(a);
}

static bool peer_goes; /* between two pieces of a call */

static ssize_t goes_between(size_t bytes)
{
    ASSERT_OK(pthread_kill(pthread_self(), SIGPIPE)); /* as the kernel does */
    return (ssize_t)bytes / 2;
}

/* In the place of libc's: they do as the kernel does, if the peer of a socket is gone when half of it is sent. */
ssize_t sendfile(int out_fd, int in_fd, off_t *offset, size_t count)
{
    return peer_goes ? goes_between(count) : syscall(SYS_sendfile, out_fd, in_fd, offset, count);
}

ssize_t splice(int fdin, off64_t *offin, int fdout, off64_t *offout, size_t len, unsigned flags)
{
    return peer_goes ? goes_between(len)
                     : syscall(SYS_splice, fdin, offin, fdout, offout, len, flags);
}

/* How much went is answered, and there is no signal for the rest. */
TEST(splice_to_one_who_goes_in_between_is_no_signal)
{
    int a[2], b[2];
    pipes(a, b);
    peer_goes = true;
    ASSERT_EQ(weft__splice(a[0], b[1], 100), 50);
    ASSERT_EQ(weft__sendfile_at(a[0], 0, b[1], 100), 50);
    peer_goes = false;
    closes(a);
    closes(b);
}

#if defined(WEFT_FAULTS)
TEST(splice_goes_on_behind_a_signal)
{
    int a[2], b[2];
    pipes(a, b);
    ASSERT_EQ(write(a[1], "x", 1), 1);
    weft__fault_arm(WEFT__FAULT_SPLICE, 1, 3, -EINTR);
    ASSERT_EQ(weft__splice(a[0], b[1], 1), 1);
    weft__fault_arm(WEFT__FAULT_SPLICE, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__splice(a[0], b[1], 1), -ENOMEM);
    weft__fault_reset();
    closes(a);
    closes(b);
}
#endif

TEST(sendfile_leaves_the_files_place)
{
    int p[2];
    char in[8];
    FILE *file = tmpfile();
    ASSERT(file);
    int fd = fileno(file);
    ASSERT_EQ(write(fd, "0123456789", 10), 10);
    ASSERT_OK(weft__pipe_open(p));
    ASSERT_EQ(weft__sendfile_at(fd, 7, p[1], 100), 3);
    ASSERT_EQ(weft__sendfile_at(fd, 10, p[1], 100), 0);
    ASSERT_EQ(lseek(fd, 0, SEEK_CUR), 10);
    ASSERT_EQ(read(p[0], in, sizeof in), 3);
    ASSERT_EQ(memcmp(in, "789", 3), 0);
#if defined(WEFT_FAULTS)
    weft__fault_arm(WEFT__FAULT_SENDFILE, 1, 2, -EINTR);
    ASSERT_EQ(weft__sendfile_at(fd, 0, p[1], 1), 1);
    weft__fault_reset();
#endif
    weft__fd_close(p[0]);
    ASSERT_EQ(weft__sendfile_at(fd, 0, p[1], 1), -EPIPE);
    weft__fd_close(p[1]);
    ASSERT_OK(fclose(file));
}
