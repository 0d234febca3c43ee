/* SPDX-License-Identifier: MIT
 *
 * Frames of stackless functions: the dead stack is written over, a child on it is refused, a stop reaches one poll.
 */
#include "death.h"
#include "task/frame.h"
#include "test.h"
#include "types.h"

#include <errno.h>
#include <string.h>

enum { WORDS = 16, MARK = 0x77656674 };

/* Leaves marks where a poll would have its locals. */
__attribute__((noinline)) static void leave_marks(void)
{
    unsigned local[WORDS];

    for (int i = 0; i < WORDS; i++)
        local[i] = MARK;
    __asm__ volatile("" : : "m"(local)); /* somebody may look: the marks are written */
}

/* Counts the marks that lie there still. The asm says that it has written them, since nothing else has. */
__attribute__((noinline)) static int find_marks(void)
{
    unsigned local[WORDS];
    int found = 0;

    __asm__ volatile("" : "=m"(local));
    for (int i = 0; i < WORDS; i++)
        found += local[i] == MARK;
    return found;
}

/* The highest bytes are where scribble itself saves registers, as a body does: of these it may leave a few. */
TEST(scribble_writes_over_dead_locals)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind objects to reading a dead stack, which is the point");
    leave_marks();
    weft__scribble();
#ifdef WEFT_DEBUG
    ASSERT_LE(find_marks(), 4);
#else
    ASSERT_LE(find_marks(), WORDS);
#endif
}

__attribute__((noinline)) static void await_local(void)
{
    int local = 0;

    weft__child_elsewhere(&local, __builtin_dwarf_cfa(), "careless.c", 7);
    __asm__ volatile("" : : "r"(&local) : "memory");
}

static void await_local_of(void *unused)
{
    (void)unused;
    await_local();
}

TEST(child_on_the_stack_of_the_poll_is_refused)
{
    struct death d = death_of(await_local_of, NULL);

    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "careless.c:7: what is awaited lies on the stack"));
}

static int static_child;

__attribute__((noinline)) static void await_lasting(const void *of_caller)
{
    void *heap = malloc(8);

    weft__child_elsewhere(&static_child, __builtin_dwarf_cfa(), "careful.c", 7);
    weft__child_elsewhere(heap, __builtin_dwarf_cfa(), "careful.c", 8);
    weft__child_elsewhere(of_caller, __builtin_dwarf_cfa(), "careful.c", 9);
    free(heap);
}

TEST(child_in_memory_that_stays_is_none_of_our_business)
{
    int of_caller = 0;

    await_lasting(&of_caller);
}

static weft_poll note_why(void *frame, weft_cx *cx)
{
    *(int *)frame = cx->why;
    return WEFT_READY;
}

TEST(poll_stop_gives_a_reason_for_one_poll)
{
    weft_cx cx = {.why = 0};
    int seen = 0;

    ASSERT_EQ(weft__poll_stop(note_why, &seen, &cx), WEFT_READY);
    ASSERT_EQ(seen, -ECANCELED);
    ASSERT_EQ(cx.why, 0);
    cx.why = -ETIME;
    weft__poll_stop(note_why, &seen, &cx);
    ASSERT_EQ(seen, -ETIME);
    ASSERT_EQ(cx.why, -ETIME);
}
