/* SPDX-License-Identifier: MIT
 *
 * Sockets by themselves: nothing blocks, errors are answers, options and addresses come back as they were set.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/socket.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

static void wait_for(int fd, short what)
{
    struct pollfd p = {.fd = fd, .events = what};
    ASSERT_EQ(poll(&p, 1, -1), 1);
}

static void connected(int into[2])
{
    struct weft__address addr;
    int listener;
    ASSERT_OK(weft__address_parse("127.0.0.1:0", &addr));
    ASSERT_OK(weft__socket_open(&addr, &listener));
    ASSERT_OK(weft__socket_bind(listener, &addr));
    ASSERT_OK(weft__socket_listen(listener, 5));
    ASSERT_OK(weft__socket_local(listener, &addr));
    ASSERT_OK(weft__socket_open(&addr, &into[0]));
    int r = weft__socket_connect(into[0], &addr);
    ASSERT(r == 0 || r == -EINPROGRESS);
    wait_for(listener, POLLIN);
    struct weft__address from;
    ASSERT_OK(weft__socket_accept(listener, &from, &into[1]));
    ASSERT_GE(weft__address_port(&from), 1);
    ASSERT_EQ(weft__socket_accept(listener, NULL, &listener), -EAGAIN);
    wait_for(into[0], POLLOUT);
    ASSERT_OK(weft__socket_error(into[0]));
    weft__fd_close(listener);
}

static void close_both(const int fds[2])
{
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
}

TEST(socket_moves_bytes_and_never_blocks)
{
    int fds[2];
    char b[10];
    struct iovec in = {b, sizeof b};
    struct iovec out[2] = {{(void *)(uintptr_t)"ab", 2}, {(void *)(uintptr_t)"cd", 2}};
    connected(fds);
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ASSERT_EQ(weft__socket_recv(fds[1], &in, 1, false), -EAGAIN);
    ASSERT_EQ(weft__socket_send(fds[0], out, 2), 4);
    wait_for(fds[1], POLLIN);
    ASSERT_EQ(weft__socket_recv(fds[1], &in, 1, true), 4);
    ASSERT_EQ(weft__socket_recv(fds[1], &in, 1, false), 4);
    ASSERT_EQ(memcmp(b, "abcd", 4), 0);
    ASSERT_OK(weft__socket_shutdown(fds[0], WEFT__HALF_WRITE));
    wait_for(fds[1], POLLIN);
    ASSERT_EQ(weft__socket_recv(fds[1], &in, 1, false), 0);
    ASSERT_EQ(weft__socket_send(fds[0], out, 1), -EPIPE); /* and this process lives */
    close_both(fds);
}

TEST(socket_knows_whether_it_listens)
{
    struct weft__address addr;
    bool packets = true;
    int fds[2];
    int fd;
    ASSERT_OK(weft__address_parse("127.0.0.1:0", &addr));
    ASSERT_OK(weft__socket_open(&addr, &fd));
    ASSERT_EQ(weft__socket_listens(fd, &packets), -EINVAL);
    ASSERT_OK(weft__socket_bind(fd, &addr));
    ASSERT_OK(weft__socket_listen(fd, 5));
    ASSERT_OK(weft__socket_listens(fd, &packets));
    ASSERT(!packets);
    weft__fd_close(fd);
    connected(fds);
    ASSERT_EQ(weft__socket_listens(fds[0], &packets), -EINVAL);
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
    ASSERT_EQ(weft__socket_listens(fds[0], &packets), -EBADF);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(weft__socket_listens(fd, &packets), -ENOTSOCK);
    weft__fd_close(fd);
}

TEST(socket_options_come_back)
{
    static const struct {
        enum weft__socket_option option;
        int value;
    } set[] = {
        {WEFT__SOCKET_NODELAY, 1},   {WEFT__SOCKET_KEEPALIVE, 1}, {WEFT__SOCKET_KEEPIDLE, 33},
        {WEFT__SOCKET_KEEPINTVL, 5}, {WEFT__SOCKET_KEEPCNT, 4},   {WEFT__SOCKET_LINGER, 2},
        {WEFT__SOCKET_LINGER, -1},   {WEFT__SOCKET_REUSEADDR, 1}, {WEFT__SOCKET_REUSEPORT, 1}};
    int fds[2];
    int value;
    connected(fds);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        ASSERT_OK(weft__socket_set(fds[0], set[i].option, set[i].value));
        ASSERT_OK(weft__socket_get(fds[0], set[i].option, &value));
        ASSERT_EQ(value, set[i].value);
    }
    ASSERT_OK(weft__socket_set(fds[0], WEFT__SOCKET_TOS, 0x10));
    ASSERT_OK(weft__socket_get(fds[0], WEFT__SOCKET_TOS, &value));
    ASSERT_EQ(value, 0x10);
    ASSERT_EQ(weft__socket_set(1000, WEFT__SOCKET_NODELAY, 1), -EBADF);
    ASSERT_EQ(weft__socket_set(1000, WEFT__SOCKET_TOS, 1), -EBADF);
    close_both(fds);
    ASSERT_OK(weft__socket_pair(fds));
    ASSERT_EQ(weft__socket_set(fds[0], WEFT__SOCKET_NODELAY, 1), -EOPNOTSUPP);
    close_both(fds);
}

#if defined(WEFT_FAULTS)
TEST(socket_calls_are_made_again_behind_a_signal)
{
    int fds[2];
    char b[2] = "x";
    struct iovec iov = {b, 1};
    ASSERT_OK(weft__socket_pair(fds));
    weft__fault_arm(WEFT__FAULT_SEND, 1, 3, -EINTR);
    weft__fault_arm(WEFT__FAULT_RECV, 1, 3, -EINTR);
    ASSERT_EQ(weft__socket_send(fds[0], &iov, 1), 1);
    bool cut = true;
    ASSERT_EQ(weft__socket_recv_unix(fds[1], &iov, 1, &cut), 1);
    ASSERT(!cut);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_SEND), 4);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_RECV), 4);
    weft__fault_arm(WEFT__FAULT_SEND, 1, 1, -EPERM); /* -1 is an errno, too */
    ASSERT_EQ(weft__socket_send(fds[0], &iov, 1), -EPERM);
    weft__fault_reset();
    close_both(fds);
}
#endif
