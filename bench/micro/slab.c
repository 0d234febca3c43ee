/* SPDX-License-Identifier: MIT
 *
 * slab - what a block costs, beside malloc and free.
 *
 *     pair      alloc and free at once, by the owner
 *     fill      a million blocks of 80 bytes, then all freed in the order they came, or in random order (headers of chunks meet in the cache)
 *     foreign   one thread allocates, another frees, through a ring between them; the line per block that the ring costs is in both numbers
 * Best of five rounds, in ns per block.
 */
#include "base/slab.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define ROUNDS 5
#define PAIRS  20000000u
#define MANY   1000000u
#define RING   4096u
#define BYTES  80

static void *map(void *ctx, size_t bytes, size_t align)
{
    (void)ctx;
    char *p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    char *aligned = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
    if (bytes >= WEFT__SLAB_SPAN_MAX) (void)madvise(aligned, bytes, MADV_HUGEPAGE);
    return aligned; /* the ends stay mapped: this program ends soon */
}

static void unmap(void *ctx, void *memory, size_t bytes)
{
    (void)ctx;
    (void)munmap(memory, bytes);
}

static struct weft__slab_group group;
static struct weft__slab slabs[2];

/* Either allocator behind one pair of calls, inlined into the loops. */
struct way {
    const char *name;
    bool slab;
};

static inline void *take(bool slab, unsigned thread)
{
    return slab ? weft__slab_alloc(&slabs[thread], BYTES) : malloc(BYTES);
}

static inline void give(bool slab, unsigned thread, void *block)
{
    if (slab) {
        weft__slab_free(&slabs[thread], block);
    } else {
        free(block);
    }
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline __attribute__((always_inline)) double pair(bool slab)
{
    double begin = now_ns();
    for (unsigned i = 0; i < PAIRS; i++) {
        void *block = take(slab, 0);
        __asm__ volatile("" ::"r"(block) : "memory");
        give(slab, 0, block);
    }
    return (now_ns() - begin) / PAIRS;
}

static void *many[MANY];
static uint32_t order[MANY];

static void shuffle(void)
{
    uint64_t random = 42;
    for (uint32_t i = 0; i < MANY; i++)
        order[i] = i;
    for (uint32_t i = MANY - 1; i > 0; i--) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t j = (uint32_t)((random >> 33) % (i + 1));
        uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static inline __attribute__((always_inline)) double fill(bool slab, bool shuffled)
{
    double begin = now_ns();
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = take(slab, 0);
        *(uint64_t *)many[i] = 0; /* as a task would be written */
    }
    for (unsigned i = 0; i < MANY; i++)
        give(slab, 0, many[shuffled ? order[i] : i]);
    return (now_ns() - begin) / MANY;
}

static struct {
    WEFT__CACHE_ALIGNED _Atomic uint32_t head; /* [ring] */
    WEFT__CACHE_ALIGNED _Atomic uint32_t tail; /* [ring] */
    WEFT__CACHE_ALIGNED void *slot[RING];
    bool slab;
} ring;

static void *consume(void *arg)
{
    (void)arg;
    for (uint32_t head = 0; head < MANY;) {
        uint32_t tail = load_acquire(&ring.tail); /* [ring] with produce: the slots */
        if (head == tail) sched_yield(); /* the machine may have less than two cores for us */
        for (; head != tail; head++)
            give(ring.slab, 1, ring.slot[head % RING]);
        store_release(&ring.head, head); /* [ring] with produce: the slots are read */
    }
    return NULL;
}

static void produce(void)
{
    for (uint32_t tail = 0; tail < MANY;) {
        uint32_t space = RING - (tail - load_acquire(&ring.head)); /* [ring] with consume */
        if (!space) sched_yield();
        for (; space && tail < MANY; space--, tail++) {
            void *block = take(ring.slab, 0);
            *(uint64_t *)block = 0;
            ring.slot[tail % RING] = block;
            if (tail % 64 == 63) store_release(&ring.tail, tail + 1); /* [ring] with consume */
        }
        store_release(&ring.tail, tail); /* [ring] with consume: publishes the slots */
    }
}

static double foreign(bool slab)
{
    pthread_t thread;
    ring.slab = slab;
    store_relaxed(&ring.head, 0); /* relaxed: before the thread starts */
    store_relaxed(&ring.tail, 0);
    double begin = now_ns();
    if (pthread_create(&thread, NULL, consume, NULL) != 0) return 0;
    produce();
    pthread_join(thread, NULL);
    return (now_ns() - begin) / MANY;
}

/* The branch on the way stands outside of the loops. */
static double one(unsigned what, bool slab)
{
    switch (what) {
    case 0:
        return slab ? pair(true) : pair(false);
    case 1:
        return foreign(slab);
    case 2:
        return slab ? fill(true, false) : fill(false, false);
    default:
        return slab ? fill(true, true) : fill(false, true);
    }
}

int main(void)
{
    static const char *const names[] = {"pair", "foreign", "fill, in order", "fill, shuffled"};

    weft__slab_group_init(&group, &(struct weft__slab_source){.map = map, .unmap = unmap});
    weft__slab_init(&slabs[0], &group);
    weft__slab_init(&slabs[1], &group);
    shuffle();
    printf("%-16s %8s %8s   ns per block of %d bytes\n", "", "slab", "malloc", BYTES);
    for (unsigned what = 0; what < 4; what++) {
        double best[2] = {1e9, 1e9};
        for (unsigned i = 0; i < 2 * ROUNDS; i++) {
            double ns = one(what, i % 2 == 0);
            if (ns < best[i % 2]) best[i % 2] = ns;
        }
        printf("%-16s %8.2f %8.2f\n", names[what], best[0], best[1]);
    }
    weft__slab_group_done(&group, true);
    return 0;
}
