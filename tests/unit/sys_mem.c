/* SPDX-License-Identifier: MIT
 *
 * Mappings: zeroed, aligned, guarded by both means, given back; and every failure without a mapping
 * left behind.
 */
#include "base/bits.h"
#include "base/fault.h"
#include "death.h"
#include "statm.h"
#include "sys/mem.h"
#include "test.h"

#include <errno.h>
#include <sys/mman.h>

static void write_one(void *arg)
{
    *(volatile char *)arg = 1;
}

static bool mapped(const void *addr)
{
    unsigned char resident;
    return mincore((void *)(uintptr_t)addr, 1, &resident) == 0;
}

TEST(mem_map_gives_zeroed_pages)
{
    void *memory;
    size_t page = weft__mem_page_bytes();
    ASSERT(weft__is_pow2(page));
    ASSERT_OK(weft__mem_map(3 * page - 1, &memory));
    ASSERT(weft__is_aligned(memory, page));
    char *bytes = memory;
    for (size_t i = 0; i < 3 * page; i++)
        bytes[i] = (char)(bytes[i] + 1);
    ASSERT_EQ(bytes[3 * page - 1], 1);
    ASSERT_OK(weft__mem_unmap(memory, 3 * page - 1));
    ASSERT(!mapped(memory));
    ASSERT(!mapped(bytes + 2 * page));
    ASSERT_OK(weft__mem_unmap(NULL, page));
}

TEST(mem_map_of_too_much_is_enomem)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind answers such a mapping itself, with another error");
    void *memory = NULL;
    ASSERT_EQ(weft__mem_map((size_t)1 << 60, &memory), -ENOMEM);
    ASSERT_EQ(weft__mem_map(SIZE_MAX, &memory), -ENOMEM);
    ASSERT_EQ(weft__mem_map_aligned(SIZE_MAX, 1 << 21, &memory), -ENOMEM);
    ASSERT_EQ(weft__mem_map_aligned(4096, (size_t)1 << 62, &memory), -ENOMEM);
    ASSERT_NULL(memory);
}

/* Aligned to every power of two up to 64 MiB, with nothing of the surplus left on either side.
 * Eight at once, so that they do not all fall right by luck. */
TEST(mem_map_aligned_is_aligned_and_exact)
{
    size_t page = weft__mem_page_bytes();
    for (size_t align = 1; align <= 64 << 20; align *= 2) {
        void *spans[8];
        for (int i = 0; i < 8; i++) {
            ASSERT_OK(weft__mem_map_aligned(3 * page, align, &spans[i]));
            ASSERT(weft__is_aligned(spans[i], align));
            ((char *)spans[i])[3 * page - 1] = 1;
        }
        for (int i = 0; i < 8; i++) {
            ASSERT_OK(weft__mem_unmap(spans[i], 3 * page));
            ASSERT(!mapped(spans[i]));
        }
    }
}

TEST(mem_map_aligned_leaves_no_surplus)
{
    void *span;
    size_t page = weft__mem_page_bytes();
    (void)statm(); /* stdio's own buffer is there from now on */
    size_t before = statm().total_bytes;
    ASSERT_OK(weft__mem_map_aligned(page, 32 << 20, &span));
    ASSERT_LE(statm().total_bytes, before + (4 << 20)); /* 32 MiB of surplus would show */
    ASSERT_OK(weft__mem_unmap(span, page));
}

TEST(mem_discard_zeroes)
{
    void *memory;
    size_t page = weft__mem_page_bytes();
    ASSERT_OK(weft__mem_map(2 * page, &memory));
    char *bytes = memory;
    bytes[0] = bytes[page] = 1;
    ASSERT_OK(weft__mem_discard(bytes, page));
    ASSERT_EQ(bytes[0], 0);
    ASSERT_EQ(bytes[page], 1);
    ASSERT_OK(weft__mem_unmap(memory, 2 * page));
}

TEST(mem_huge_advice_is_taken_or_refused)
{
    void *memory;
    ASSERT_OK(weft__mem_map_aligned(4 << 20, 2 << 20, &memory));
    int yes = weft__mem_advise_huge(memory, 4 << 20);
    int no = weft__mem_advise_no_huge(memory, 4 << 20);
    ASSERT(yes == 0 || yes == -EINVAL);
    ASSERT_EQ(no, yes);
    ((char *)memory)[0] = 1;
    ASSERT_OK(weft__mem_unmap(memory, 4 << 20));
}

TEST(mem_protect_kills_who_touches)
{
    void *memory;
    size_t page = weft__mem_page_bytes();
    ASSERT_OK(weft__mem_map(2 * page, &memory));
    ASSERT_OK(weft__mem_protect(memory, page));
    ASSERT_EQ(death_of(write_one, memory).signal, SIGSEGV);
    ASSERT_EQ(death_of(write_one, (char *)memory + page).signal, 0);
    ASSERT_OK(weft__mem_unmap(memory, 2 * page));
}

/* The guard kills, survives a discard, and takes no mapping of its own. */
TEST(mem_guard_kills_who_touches)
{
    void *memory;
    size_t page = weft__mem_page_bytes();

    int r = weft__mem_guard_probe();
    if (r < 0) TEST_SKIP("the kernel has no MADV_GUARD_INSTALL (%s)", strerror(-r));
    ASSERT_OK(weft__mem_map(2 * page, &memory));
    ASSERT_OK(weft__mem_guard(memory, page));
    ASSERT_EQ(death_of(write_one, memory).signal, SIGSEGV);
    ASSERT_OK(weft__mem_discard(memory, 2 * page));
    ASSERT_EQ(death_of(write_one, memory).signal, SIGSEGV);
    ASSERT_EQ(death_of(write_one, (char *)memory + page).signal, 0);
    ASSERT_OK(weft__mem_unmap(memory, 2 * page));
}

#if defined(WEFT_FAULTS)

TEST(mem_fails_when_told)
{
    void *memory = NULL;
    size_t page = weft__mem_page_bytes();

    weft__fault_arm(WEFT__FAULT_MMAP, 1, 2, -ENOMEM);
    ASSERT_EQ(weft__mem_map(page, &memory), -ENOMEM);
    ASSERT_EQ(weft__mem_guard_probe(), -ENOMEM);
    ASSERT_NULL(memory);
    ASSERT_OK(weft__mem_map(page, &memory));
    weft__fault_arm(WEFT__FAULT_MADVISE, 1, 3, -EINVAL);
    ASSERT_EQ(weft__mem_discard(memory, page), -EINVAL);
    ASSERT_EQ(weft__mem_advise_huge(memory, page), -EINVAL);
    ASSERT_EQ(weft__mem_advise_no_huge(memory, page), -EINVAL);
    weft__fault_arm(WEFT__FAULT_GUARD, 1, 2, -EINVAL);
    ASSERT_EQ(weft__mem_guard(memory, page), -EINVAL);
    ASSERT_EQ(weft__mem_guard_probe(), -EINVAL);
    weft__fault_arm(WEFT__FAULT_MPROTECT, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__mem_protect(memory, page), -ENOMEM);
    ((char *)memory)[0] = 1; /* none of it changed the page */
    ASSERT_OK(weft__mem_unmap(memory, page));
}

/* An unmapping at the limit of mappings keeps the addresses, but not the pages. */
TEST(mem_unmap_that_fails_gives_the_pages_back)
{
    void *memory;
    size_t page = weft__mem_page_bytes();
    ASSERT_OK(weft__mem_map(page, &memory));
    ((char *)memory)[0] = 1;
    weft__fault_arm(WEFT__FAULT_MUNMAP, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__mem_unmap(memory, page), -ENOMEM);
    ASSERT_EQ(((char *)memory)[0], 0);
    ASSERT_OK(weft__mem_unmap(memory, page));
}

/* Fail the mmap, then each munmap of the ends: nothing stays mapped. */
TEST(mem_map_aligned_fails_cleanly)
{
    size_t page = weft__mem_page_bytes();
    size_t align = 32 << 20;
    void *memory = NULL;

    (void)statm();
    size_t before = statm().total_bytes;
    weft__fault_arm(WEFT__FAULT_MMAP, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__mem_map_aligned(page, align, &memory), -ENOMEM);
    for (uint32_t nth = 1; nth <= 2; nth++) {
        weft__fault_arm(WEFT__FAULT_MUNMAP, nth, 1, -ENOMEM);
        int r = weft__mem_map_aligned(page, align, &memory);
        weft__fault_reset(); /* it may have fallen right, with an end to spare: then the fault would hit this test */
        if (r == 0) ASSERT_OK(weft__mem_unmap(memory, page));
        ASSERT(r == 0 || r == -ENOMEM);
    }
    ASSERT_LE(statm().total_bytes, before + (4 << 20));
}

#endif
