/* SPDX-License-Identifier: MIT
 *
 * Pipes: nothing blocks, and a pipe without a reader is an error and no signal, whatever the thread's mask is.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t put(int fd, char c)
{
    struct iovec iov = {&c, 1};
    return weft__pipe_write(fd, &iov, 1);
}

TEST(pipe_moves_bytes_and_never_blocks)
{
    int fds[2];
    char b[4];
    struct iovec iov = {b, sizeof b};
    ASSERT_OK(weft__pipe_open(fds));
    ASSERT_EQ(weft__pipe_read(fds[0], &iov, 1), -EAGAIN);
    ASSERT_EQ(put(fds[1], 'x'), 1);
    ASSERT_EQ(weft__pipe_read(fds[0], &iov, 1), 1);
    ASSERT_EQ(b[0], 'x');
    ssize_t r = 1;
    for (int i = 0; i < 1000000 && r > 0; i++)
        r = put(fds[1], 'y');
    ASSERT_EQ(r, -EAGAIN); /* full */
    weft__fd_close(fds[1]);
    weft__fd_close(fds[0]);
}

static bool is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE);
}

static bool is_blocked(void)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, SIGPIPE);
}

TEST(pipe_without_reader_raises_no_signal)
{
    sigset_t pipe_signal;
    int fds[2];
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    for (int blocked = 0; blocked < 2; blocked++) {
        pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &pipe_signal, NULL);
        ASSERT_OK(weft__pipe_open(fds));
        weft__fd_close(fds[0]);
        for (int i = 0; i < 3; i++)
            ASSERT_EQ(put(fds[1], 'x'), -EPIPE);
        ASSERT(!is_pending());
        ASSERT_EQ(is_blocked(), blocked);
        weft__fd_close(fds[1]);
    }
}

#if defined(WEFT_FAULTS)
TEST(pipe_calls_are_made_again_behind_a_signal)
{
    int fds[2];
    char b[1];
    struct iovec iov = {b, 1};
    ASSERT_OK(weft__pipe_open(fds));
    weft__fault_arm(WEFT__FAULT_WRITEV, 1, 2, -EINTR);
    weft__fault_arm(WEFT__FAULT_READV, 1, 2, -EINTR);
    ASSERT_EQ(put(fds[1], 'x'), 1);
    ASSERT_EQ(weft__pipe_read(fds[0], &iov, 1), 1);
    weft__fault_arm(WEFT__FAULT_PIPE, 1, 1, -EMFILE);
    int none[2] = {-7, -7};
    ASSERT_EQ(weft__pipe_open(none), -EMFILE);
    ASSERT_EQ(none[0], -7);
    weft__fault_reset();
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
}
#endif

/* Each side in front of the other; a writer that has gone shows; what is there stays to be read. */
TEST(pipe_fifo_knows_its_other_side)
{
    char path[] = "/tmp/weft-sys-fifo-XXXXXX";
    int scratch[2];
    int in, out;
    char b[4];
    int plain = mkstemp(path);
    ASSERT_EQ(weft__pipe_open_fifo(path, O_RDONLY, &in), -EINVAL);
    ASSERT_OK(close(plain));
    ASSERT_OK(unlink(path));
    ASSERT_EQ(weft__pipe_open_fifo(path, O_RDONLY, &in), -ENOENT);
    ASSERT_OK(mkfifo(path, 0600));
    ASSERT_EQ(weft__pipe_open_fifo(path, O_RDONLY | O_TRUNC, &in), -EINVAL);
    ASSERT_EQ(weft__pipe_open_fifo(path, O_WRONLY, &out), -EAGAIN);
    ASSERT_OK(weft__pipe_open(scratch));
    ASSERT_OK(weft__pipe_open_fifo(path, O_RDONLY, &in));
    ASSERT_EQ(weft__pipe_is_joined(in, scratch), -EAGAIN);
    ASSERT_OK(weft__pipe_open_fifo(path, O_WRONLY, &out));
    ASSERT_OK(weft__pipe_is_joined(in, scratch));
    ASSERT_EQ(write(out, "ab", 2), 2);
    ASSERT_OK(weft__pipe_is_joined(in, scratch));
    ASSERT_OK(close(out));
    ASSERT_OK(weft__pipe_is_joined(in, scratch));
    ASSERT_EQ(read(in, b, sizeof b), 2);
    ASSERT_OK(weft__pipe_is_joined(in, scratch));
    ASSERT_EQ(fcntl(in, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ASSERT_OK(close(in));
    ASSERT_OK(close(scratch[0]));
    ASSERT_OK(close(scratch[1]));
    ASSERT_OK(unlink(path));
}
