/* SPDX-License-Identifier: MIT
 *
 * Close: closes, bears a negative number, and finds a descriptor that is not open.
 */
#include "death.h"
#include "sys/fd.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>

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
