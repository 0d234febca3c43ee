/* SPDX-License-Identifier: MIT
 *
 * Shared descriptors: what can be opened anew, and calls on blocking ones that do not wait, by the kernel's help or behind a look.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/stdio.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void closes(const int fds[2])
{
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
}

TEST(stdio_opens_pipes_anew_and_nothing_else)
{
    int fds[2];
    ASSERT_OK(pipe(fds));
    int again = weft__stdio_reopen(fds[0], false);
    ASSERT_GE(again, 3);
    ASSERT_NE(fcntl(again, F_GETFL) & O_NONBLOCK, 0);
    ASSERT_NE(fcntl(again, F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_EQ(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    weft__fd_close(again);
#if defined(WEFT_FAULTS)
    weft__fault_arm(WEFT__FAULT_OPEN, 1, 1, -EACCES);
    ASSERT_EQ(weft__stdio_reopen(fds[0], false), -EACCES);
    weft__fault_reset();
#endif
    closes(fds);
    ASSERT_EQ(weft__stdio_reopen(fds[0], false), -EBADF);
    ASSERT_EQ(weft__stdio_dup(fds[0]), -EBADF);

    ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    ASSERT_EQ(weft__stdio_reopen(fds[0], false), -EOPNOTSUPP);
    closes(fds);
    int null = open("/dev/null", O_RDWR);
    ASSERT_EQ(weft__stdio_reopen(null, true), -EOPNOTSUPP);
    weft__fd_close(null);
}

/* Both ends block; nothing here does. `error`: what RWF_NOWAIT is answered; 0: what the kernel says. */
static void without_waiting(bool sockets, int error)
{
    char in[300];
    char out[300] = {7};
    struct iovec into = {in, sizeof in};
    struct iovec from = {out, sizeof out};
    int fds[2];
    ASSERT_OK(sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, fds) : pipe(fds));
#if defined(WEFT_FAULTS)
    if (error) {
        weft__fault_arm(WEFT__FAULT_READ, 1, UINT32_MAX, error);
        weft__fault_arm(WEFT__FAULT_WRITE, 1, UINT32_MAX, error);
    }
#endif
    ASSERT_EQ(weft__stdio_read(fds[0], &into), -EAGAIN);
    ssize_t n = weft__stdio_write(fds[1], &from);
    ASSERT(n == 300 || (error && n == 256)); /* behind a look in small pieces */
    ASSERT_EQ(weft__stdio_read(fds[0], &into), n);
    ASSERT_EQ(memcmp(in, out, (size_t)n), 0);
    ssize_t full = 0;
    while ((n = weft__stdio_write(fds[1], &from)) > 0)
        full += n;
    ASSERT_EQ(n, -EAGAIN);
    ASSERT_GE(full, 4096);
    weft__fd_close(fds[0]);
    ASSERT_EQ(weft__stdio_write(fds[1], &from), -EPIPE); /* and no signal */
#if defined(WEFT_FAULTS)
    weft__fault_reset();
#endif
    weft__fd_close(fds[1]);
}

TEST(stdio_never_waits)
{
    without_waiting(false, 0);
    without_waiting(true, 0);
#if defined(WEFT_FAULTS)
    without_waiting(false, -EOPNOTSUPP);
#endif
}

#if defined(WEFT_FAULTS)
TEST(stdio_goes_on_behind_a_signal)
{
    int fds[2];
    char byte = 'w';
    struct iovec one = {&byte, 1};
    ASSERT_OK(pipe(fds));
    weft__fault_arm(WEFT__FAULT_WRITE, 1, 2, -EINTR);
    ASSERT_EQ(weft__stdio_write(fds[1], &one), 1);
    weft__fault_arm(WEFT__FAULT_READ, 1, 2, -EINTR);
    ASSERT_EQ(weft__stdio_read(fds[0], &one), 1);
    weft__fault_reset();
    weft__fd_close(fds[1]);
    ASSERT_EQ(weft__stdio_read(fds[0], &one), 0);
    weft__fd_close(fds[0]);
}
#endif
