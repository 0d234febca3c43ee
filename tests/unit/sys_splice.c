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
#include <stdio.h>
#include <string.h>
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
