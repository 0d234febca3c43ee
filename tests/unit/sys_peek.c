/* SPDX-License-Identifier: MIT
 *
 * Peek: reads what is there, answers -EFAULT for what is not, in this process and in another.
 */
#include "base/fault.h"
#include "sys/mem.h"
#include "sys/peek.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void skip_where_filtered(void)
{
    int there = 1;
    int r = weft__peek(&there, &there, sizeof(there));
    if (r == -ENOSYS || r == -EPERM) TEST_SKIP("process_vm_readv is filtered here");
}

TEST(peek_reads_what_is_there)
{
    static const char text[] = "what is there";
    char seen[sizeof(text)];
    skip_where_filtered();
    ASSERT_OK(weft__peek(text, seen, sizeof(text)));
    ASSERT_STR(seen, text);
    ASSERT_OK(weft__peek(text, seen, 0));
    ASSERT_OK(weft__peek(NULL, seen, 0));
}

TEST(peek_at_nothing_is_efault)
{
    int seen;
    skip_where_filtered();
    ASSERT_EQ(weft__peek(NULL, &seen, sizeof(seen)), -EFAULT);
    ASSERT_EQ(weft__peek((void *)8, &seen, sizeof(seen)), -EFAULT);
    ASSERT_EQ(weft__peek((void *)(UINTPTR_MAX - 2), &seen, sizeof(seen)), -EFAULT);
}

/* A range that begins in a page and ends in a hole is an error, never a short read. */
TEST(peek_over_an_edge_is_efault)
{
    size_t page = weft__mem_page_bytes();
    char *two;
    void *mapped;
    char *seen = malloc(2 * page);

    skip_where_filtered();
    ASSERT_OK(weft__mem_map(2 * page, &mapped));
    two = mapped;
    memset(two, 'x', 2 * page);
    ASSERT_OK(weft__peek(two, seen, 2 * page));
    ASSERT_EQ(seen[2 * page - 1], 'x');
    ASSERT_OK(weft__mem_protect(two + page, page));
    ASSERT_EQ(weft__peek(two, seen, 2 * page), -EFAULT);
    ASSERT_EQ(weft__peek(two + page - 1, seen, 2), -EFAULT);
    ASSERT_OK(weft__peek(two + page - 1, seen, 1));
    ASSERT_EQ(weft__peek_text(two + page - 3, seen, 9), -EFAULT);
    ASSERT_OK(weft__peek_text(two + page - 3, seen, 3)); /* cut before the edge */
    ASSERT_STR(seen, "xx");
    two[page - 1] = '\0';
    ASSERT_OK(weft__peek_text(two + page - 3, seen, 9));
    ASSERT_STR(seen, "xx");
    ASSERT_OK(weft__mem_unmap(two, 2 * page));
    ASSERT_EQ(weft__peek(two, seen, 1), -EFAULT);
    free(seen);
}

/* A child that stands still shows its own copy of a variable. */
TEST(peek_reads_another_process)
{
    static volatile int value = 1;
    int ends[2];
    char ready;
    int seen = 0;

    skip_where_filtered();
    ASSERT_OK(pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        value = 42;
        (void)!write(ends[1], "", 1);
        for (;;)
            pause();
    }
    ASSERT_EQ(read(ends[0], &ready, 1), 1);
    int r = weft__peek_pid(child, (const void *)&value, &seen, sizeof(seen));
    int beyond = weft__peek_pid(child, NULL, &seen, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    if (r == -EPERM) TEST_SKIP("this process may not trace its child");
    ASSERT_EQ(r, 0);
    ASSERT_EQ(seen, 42);
    ASSERT_EQ(value, 1);
    ASSERT_EQ(beyond, -EFAULT);
    ASSERT_EQ(weft__peek_pid(child, (const void *)&value, &seen, sizeof(seen)), -ESRCH);
}

#if defined(WEFT_FAULTS)
TEST(peek_fails_when_told)
{
    int there = 1;
    int seen = 0;
    weft__fault_arm(WEFT__FAULT_PEEK, 1, 1, -EPERM);
    ASSERT_EQ(weft__peek(&there, &seen, sizeof(seen)), -EPERM);
    ASSERT_EQ(seen, 0);
}
#endif
