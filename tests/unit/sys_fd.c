/* SPDX-License-Identifier: MIT
 *
 * Close: closes, bears a negative number, and finds a descriptor that is not open. And what a descriptor is ready for.
 */
#include "death.h"
#include "sys/fd.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(fd_close_closes)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    weft__fd_close(fd);
    ASSERT_EQ(fcntl(fd, F_GETFD), -1);
    ASSERT_EQ(errno, EBADF);
    weft__fd_close(-1);
    weft__fd_close(-EMFILE);
}

/* The first free number may be one of the standard three. */
TEST(fd_beyond_standard_leaves_those_alone)
{
    int before = fcntl(0, F_DUPFD_CLOEXEC, 10);
    close(0);
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd = weft__fd_beyond_standard(low);
    int left = fcntl(0, F_GETFD);
    ASSERT_EQ(dup2(before, 0), 0);
    ASSERT_EQ(low, 0);
    ASSERT_GE(fd, 3);
    ASSERT_EQ(left, -1);
    ASSERT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ASSERT_EQ(weft__fd_beyond_standard(fd), fd);
    ASSERT_EQ(weft__fd_beyond_standard(-EMFILE), -EMFILE);
    weft__fd_close(fd);
    close(before);
}

/* The end of the peer is something to read, and the end of what is urgent; it is no reason to write. */
TEST(fd_ready_tells_what_was_asked_for)
{
    int fds[2];
    ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_IN | WEFT__FD_PRI), 0);
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_IN | WEFT__FD_OUT), WEFT__FD_OUT);
    ASSERT_EQ(write(fds[1], "x", 1), 1);
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_IN | WEFT__FD_PRI), WEFT__FD_IN);
    ASSERT_OK(shutdown(fds[1], SHUT_WR));
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_IN), WEFT__FD_IN);
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_PRI), WEFT__FD_PRI);
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_OUT), WEFT__FD_OUT);
    weft__fd_close(fds[1]);
    int all = WEFT__FD_IN | WEFT__FD_OUT | WEFT__FD_PRI;
    ASSERT_EQ(weft__fd_ready(fds[0], all), all);
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_PRI), WEFT__FD_PRI);
    weft__fd_close(fds[0]);
    ASSERT_EQ(weft__fd_ready(fds[0], WEFT__FD_IN), -EBADF);
}

/* A file's type does not tell, but for sockets and pipes. */
TEST(fd_has_readiness_as_epoll_says)
{
    static const struct {
        const char *path;
        int answer;
    } files[] = {{"/proc/self/mounts", 0},
                 {"/proc/self/status", -EPERM},
                 {"/dev/null", -EPERM},
                 {"/", -EPERM}};
    int ends[2];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = open(files[i].path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        ASSERT_EQ(weft__fd_has_readiness(fd), files[i].answer);
        weft__fd_close(fd);
    }
    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ASSERT_OK(weft__fd_has_readiness(ends[0]));
    weft__fd_close(ends[0]);
    ASSERT_EQ(weft__fd_has_readiness(ends[0]), -EBADF);
    weft__fd_close(ends[1]);
}

#if defined(WEFT_DEBUG)
static void close_twice(void *arg)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)arg;
    weft__fd_close(fd);
    weft__fd_close(fd);
}

TEST(fd_close_twice_aborts)
{
    struct death d = death_of(close_twice, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "EBADF"));
}
#endif
