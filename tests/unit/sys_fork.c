/* SPDX-License-Identifier: MIT
 *
 * Handlers around fork: called on the right side, in the right order; and the end that calls nobody.
 */
#include "base/fault.h"
#include "death.h"
#include "sys/fork.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>

static char called[8];

static void note(char who)
{
    size_t used = strlen(called);
    if (used + 1 < sizeof(called)) called[used] = who;
}

static void before(void)
{
    note('b');
}

static void parent(void)
{
    note('p');
}

static void child(void)
{
    note('c');
}

static void looks_in_the_child(void *unused)
{
    (void)unused;
    _exit(strcmp(called, "bc") == 0 ? 0 : 1);
}

TEST(fork_calls_the_handlers_of_its_side)
{
    ASSERT_OK(weft__fork_watch(before, parent, child));
    ASSERT_OK(death_of(looks_in_the_child, NULL).code);
    ASSERT_STR(called, "bp");
}

static void says_goodbye(void)
{
    fputs("goodbye", stderr);
}

static void ends_at_once(void *unused)
{
    (void)unused;
    atexit(says_goodbye);
    weft__process_end(5);
}

TEST(process_end_calls_nobody)
{
    struct death d = death_of(ends_at_once, NULL);
    ASSERT_EQ(d.code, 5);
    ASSERT_STR(d.said, "");
}

#if defined(WEFT_FAULTS)
TEST(fork_watch_reports_its_error)
{
    weft__fault_arm(WEFT__FAULT_ATFORK, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__fork_watch(before, parent, child), -ENOMEM);
    weft__fault_reset();
}
#endif
