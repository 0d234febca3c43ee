/* SPDX-License-Identifier: MIT
 *
 * The directory of stack mappings: finds what is entered, forgets what is removed, and a reader
 * beside writers never sees a mixture.
 */
#include "base/atomic.h"
#include "base/fault.h"
#include "base/rand.h"
#include "sys/stackdir.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>

/* Addresses are only compared, so any number will do. */
static struct weft__stackdir_span span_at(uintptr_t base, size_t slots)
{
    return (struct weft__stackdir_span){.base = (char *)base,
                                        .slot_bytes = 0x3000,
                                        .guard_bytes = 0x1000,
                                        .count = slots,
                                        .owner = (void *)(base + slots)};
}

TEST(stackdir_finds_by_any_address_inside)
{
    struct weft__stackdir_entry *entry;
    struct weft__stackdir_span span = span_at(0x100000, 4);
    struct weft__stackdir_span found;

    ASSERT(!weft__stackdir_find((void *)0x100000, &found));
    ASSERT(!weft__stackdir_find(NULL, &found));
    ASSERT_OK(weft__stackdir_add(&span, &entry));
    ASSERT(weft__stackdir_find((void *)0x100000, &found));
    ASSERT_PTR(found.base, span.base);
    ASSERT_EQ(found.count, 4);
    ASSERT_PTR(found.owner, span.owner);
    ASSERT(weft__stackdir_find((void *)(0x100000 + 4 * 0x3000 - 1), &found));
    ASSERT(!weft__stackdir_find((void *)(0x100000 + 4 * 0x3000), &found));
    ASSERT(!weft__stackdir_find((void *)0xfffff, &found));
    ASSERT(!weft__stackdir_find(NULL, &found));
    ASSERT(!weft__stackdir_find((void *)UINTPTR_MAX, &found));
    weft__stackdir_remove(entry);
    ASSERT(!weft__stackdir_find((void *)0x100000, &found));
    weft__stackdir_remove(NULL);
}

/* More than one block of entries; removed ones are used again. */
TEST(stackdir_holds_many_and_reuses_entries)
{
    enum { MANY = 1000 };
    static struct weft__stackdir_entry *entries[MANY];
    struct weft__stackdir_span found;

    for (int round = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < MANY; i++) {
            struct weft__stackdir_span span = span_at((i + 1) << 24, 64);
            ASSERT_OK(weft__stackdir_add(&span, &entries[i]));
        }
        for (uintptr_t i = 0; i < MANY; i++) {
            ASSERT(weft__stackdir_find((void *)(((i + 1) << 24) + 5), &found));
            ASSERT_EQ(found.base, (i + 1) << 24);
        }
        for (int i = 0; i < MANY; i++)
            weft__stackdir_remove(entries[i]);
        ASSERT(!weft__stackdir_find((void *)((uintptr_t)1 << 24), &found));
    }
#if defined(WEFT_FAULTS)
    ASSERT_LE(weft__fault_calls(WEFT__FAULT_MMAP), 20); /* no block was mapped for a need twice */
#endif
}

static _Atomic uint32_t stop;

struct writer {
    struct weft__thread thread;
    uint64_t seed;
    uint64_t rounds;
};

/* Enter and remove spans of changing shape at the same few entries. */
static void enter_and_remove(void *arg)
{
    struct writer *w = arg;
    struct weft__rand r;

    weft__rand_seed(&r, w->seed);
    for (uint64_t i = 0; i < w->rounds; i++) {
        struct weft__stackdir_entry *entry;
        struct weft__stackdir_span span =
            span_at((weft__rand_below(&r, 64) + 1) << 28, weft__rand_below(&r, 9) + 1);
        if (weft__stackdir_add(&span, &entry) < 0) break;
        weft__stackdir_remove(entry);
    }
    (void)fetch_add_relaxed(&stop, 1); /* relaxed: a count, nothing hangs on it */
}

/* Two threads enter and remove while this one looks up an entry that stays, and random ones.
 * What stays is found every time; of the others, what is found is one of the shapes that were
 * entered, whole: owner = base + count. Seeded. */
TEST(stackdir_reader_never_sees_a_mixture)
{
    struct weft__stackdir_entry *fixed;
    struct weft__stackdir_span span = span_at((uintptr_t)1 << 40, 7);
    struct writer writers[2];
    struct weft__rand r;
    bool good = true;

    weft__rand_seed(&r, test_seed());
    ASSERT_OK(weft__stackdir_add(&span, &fixed));
    for (int i = 0; i < 2; i++) {
        writers[i] =
            (struct writer){.seed = test_seed() + (uint64_t)i + 1, .rounds = test_scaled(20000)};
        ASSERT_OK(weft__thread_start(&writers[i].thread, &(struct weft__thread_options){0},
                                     enter_and_remove, &writers[i]));
    }
    while (load_relaxed(&stop) < 2) { /* relaxed: a count */
        struct weft__stackdir_span found;
        good = good && weft__stackdir_find(span.base + 1, &found) && found.count == 7;
        if (weft__stackdir_find((void *)((weft__rand_below(&r, 64) + 1) << 28), &found)) {
            good = good && (char *)found.owner == found.base + found.count &&
                   found.slot_bytes == 0x3000;
        }
    }
    for (int i = 0; i < 2; i++)
        weft__thread_join(&writers[i].thread);
    weft__stackdir_remove(fixed);
    ASSERT(good);
}

#if defined(WEFT_FAULTS)
TEST(stackdir_without_memory_says_so)
{
    struct weft__stackdir_entry *entry = NULL;
    struct weft__stackdir_span span = span_at(0x100000, 1);
    struct weft__stackdir_span found;

    weft__fault_arm(WEFT__FAULT_MMAP, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__stackdir_add(&span, &entry), -ENOMEM);
    ASSERT_NULL(entry);
    ASSERT(!weft__stackdir_find(span.base, &found));
    ASSERT_OK(weft__stackdir_add(&span, &entry));
    weft__stackdir_remove(entry);
}
#endif
