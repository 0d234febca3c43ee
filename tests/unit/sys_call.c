/* SPDX-License-Identifier: MIT
 *
 * A system call without libc: its answer, its error, its six arguments; interrupted, and failing.
 */
#include "sys/call.h"

#include "test.h"

#include <sys/syscall.h>
#include <unistd.h>

#if !defined(WEFT__CALL_BY_LIBC)
TEST(a_call_gives_its_answer)
{
    ASSERT_EQ(weft__call6(SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
}

TEST(a_call_gives_its_error_and_leaves_errno)
{
    errno = ENOTBLK;
    ASSERT_EQ(weft__call6(SYS_close, -1, 0, 0, 0, 0, 0), -EBADF);
    ASSERT_EQ(errno, ENOTBLK);
}

/* The last one arrives, too: a flag that does not exist is refused. */
TEST(a_call_has_six_arguments)
{
    int fds[2] = {-1, -1};
    char out[] = "weft";
    char in[5] = "";

    ASSERT_EQ(pipe(fds), 0);
    ASSERT_EQ(weft__call6(SYS_write, fds[1], (long)out, 5, 0, 0, 0), 5);
    ASSERT_EQ(weft__call6(SYS_splice, fds[0], 0, fds[1], 0, 5, 0x7fff0000), -EINVAL);
    ASSERT_EQ(weft__call6(SYS_read, fds[0], (long)in, 5, 0, 0, 0), 5);
    ASSERT_STR(in, "weft");
    (void)close(fds[0]);
    (void)close(fds[1]);
}
#endif

TEST(what_a_signal_interrupts_is_done_again)
{
    int calls = 0;
    ASSERT_EQ(WEFT__CALL(WEFT__FAULT_RECV, ++calls < 3 ? -EINTR : 7), 7);
    ASSERT_EQ(calls, 3);
}

#if defined(WEFT_FAULTS)
TEST(a_fault_answers_for_the_call)
{
    int calls = 0;
    weft__fault_arm(WEFT__FAULT_RECV, 1, 1, -ENOBUFS);
    ASSERT_EQ(WEFT__CALL(WEFT__FAULT_RECV, ++calls), -ENOBUFS);
    ASSERT_EQ(calls, 0);
    weft__fault_reset();
}
#endif
