/* SPDX-License-Identifier: MIT
 *
 * The allocator: zeroed, aligned, counted, and failing when told.
 */
#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "test.h"

#include <errno.h>
#include <string.h>

/* The sanitizers' allocators end the program on a hopeless size unless they are told to answer
 * NULL, as malloc does. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static bool all_zero(const char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i]) return false;
    return true;
}

/* Freed memory that comes back is zeroed again. */
TEST(alloc_gives_zeroed_memory)
{
    for (int round = 0; round < 100; round++) {
        char *memory = weft__alloc(1000);
        ASSERT(all_zero(memory, 1000));
        memset(memory, 0xff, 1000);
        weft__free(memory);
    }
    weft__free(NULL);
}

TEST(alloc_aligned_is_aligned_and_zeroed)
{
    for (size_t align = 1; align <= 65536; align *= 2) {
        char *memory = weft__alloc_aligned(333, align);
        ASSERT(weft__is_aligned(memory, align));
        ASSERT(all_zero(memory, 333));
        memset(memory, 0xff, 333);
        weft__free(memory);
    }
}

TEST(alloc_aligned_part_is_zeroed_so_far)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        char *memory = weft__alloc_aligned_part(3333, align, 100);
        ASSERT(weft__is_aligned(memory, align));
        ASSERT(all_zero(memory, 100));
        memset(memory, 0xff, 3333);
        weft__free(memory);
    }
}

TEST(alloc_of_too_much_answers_null)
{
    volatile size_t far_too_much = SIZE_MAX / 2;
    ASSERT_NULL(weft__alloc(far_too_much));
    ASSERT_NULL(weft__alloc_aligned(far_too_much, 64));
}

#if defined(WEFT_DEBUG)
TEST(alloc_counts_what_is_alive)
{
    int64_t before = weft__alloc_live();
    void *a = weft__alloc(1);
    void *b = weft__alloc_aligned(1, 64);
    ASSERT_EQ(weft__alloc_live(), before + 2);
    weft__free(a);
    weft__free(NULL);
    weft__free(b);
    ASSERT_EQ(weft__alloc_live(), before);
}
#endif

#if defined(WEFT_FAULTS)
TEST(alloc_fails_when_told)
{
    int64_t before = weft__alloc_live();
    weft__fault_arm(WEFT__FAULT_ALLOC, 2, 2, -ENOMEM);
    void *first = weft__alloc(8);
    ASSERT(first);
    ASSERT_NULL(weft__alloc(8));
    ASSERT_NULL(weft__alloc_aligned(8, 64));
    void *fourth = weft__alloc(8);
    ASSERT(fourth);
    ASSERT_EQ(weft__alloc_live(), before + 2);
    weft__free(first);
    weft__free(fourth);
}
#endif
