/* SPDX-License-Identifier: MIT
 *
 * file_wait: what would wait for somebody else stops when it is told to, and is open, read and written as ever when somebody comes.
 */
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/file_wait.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];

static void fifo_make(void)
{
    snprintf(path, sizeof(path), "/tmp/weft-wait-XXXXXX");
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    ASSERT_OK(unlink(path));
    ASSERT_OK(mkfifo(path, 0600));
}

static const struct weft__file_req goes_on = {.op = WEFT__FILE_OPEN};

/* Of one that is told, nothing stays open: the harness looks. */
TEST(file_wait_stops_when_it_is_told)
{
    struct weft__file_req told = {.stopped = true};
    uint64_t count = 0;
    int ends[2];
    char b = 0;
    fifo_make();
    ASSERT_EQ(weft__file_wait_open(&told, path, O_RDONLY, 0), -ECANCELED);
    ASSERT_EQ(weft__file_wait_open(&told, path, O_WRONLY, 0), -ECANCELED);
    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ASSERT_EQ(weft__file_wait_read(&told, ends[0], &b, 1), -ECANCELED);
    ASSERT_EQ(weft__file_wait_write(&told, ends[1], &b, 1), -ECANCELED);
    int event = eventfd(0, EFD_CLOEXEC);
    ASSERT_EQ(weft__file_wait_read(&told, event, &count, sizeof count), -ECANCELED);
    close(event);
    close(ends[0]);
    close(ends[1]);
    ASSERT_OK(unlink(path));
}

/* Both sides are there: it is open at once, and blocks as it would have. */
TEST(file_wait_opens_what_is_joined)
{
    static const int ways[] = {O_RDONLY, O_WRONLY, O_WRONLY | O_CREAT | O_TRUNC};
    fifo_make();
    int both = (int)weft__file_wait_open(&goes_on, path, O_RDWR, 0); /* waits for nobody */
    ASSERT_GE(both, 0);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int fd = (int)weft__file_wait_open(&goes_on, path, ways[i], 0600);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
        ASSERT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    close(both);
    ASSERT_EQ(weft__file_wait_open(&goes_on, path, O_WRONLY | O_NONBLOCK, 0), -ENXIO);
    ASSERT_EQ(weft__file_wait_open(&goes_on, path, O_WRONLY | O_CREAT | O_EXCL, 0600), -EEXIST);
    ASSERT_EQ(weft__file_wait_open(&goes_on, path, O_RDONLY | O_DIRECTORY, 0), -ENOTDIR);
    ASSERT_OK(unlink(path));
    ASSERT_EQ(weft__file_wait_open(&goes_on, path, O_RDONLY, 0), -ENOENT);
}

/* No more than goes at once, but for sockets, whose messages would be cut. */
TEST(file_wait_writes_what_goes_at_once)
{
    static char page[2 * PIPE_BUF];
    int ends[2];
    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ASSERT_EQ(weft__file_wait_write(&goes_on, ends[1], page, sizeof page), PIPE_BUF);
    ASSERT_EQ(weft__file_wait_read(&goes_on, ends[0], page, sizeof page), PIPE_BUF);
    close(ends[0]);
    ASSERT_EQ(weft__file_wait_write(&goes_on, ends[1], page, 1), -EPIPE); /* and no signal */
    close(ends[1]);
    ASSERT_OK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
    ASSERT_EQ(weft__file_wait_write(&goes_on, ends[1], page, sizeof page), sizeof page);
    ASSERT_EQ(weft__file_wait_read(&goes_on, ends[0], page, sizeof page), sizeof page);
    close(ends[0]);
    close(ends[1]);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ASSERT_EQ(weft__file_wait_write(&goes_on, null, page, sizeof page), sizeof page);
    ASSERT_EQ(weft__file_wait_read(&goes_on, null, page, sizeof page), 0);
    close(null);
    ASSERT_EQ(weft__file_wait_read(&goes_on, null, page, 1), -EBADF);
}
