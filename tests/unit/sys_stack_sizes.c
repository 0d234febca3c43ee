/* SPDX-License-Identifier: MIT
 *
 * Pools of stacks by size: rounding, limits, one pool a size, and what fails.
 */
#include "sys/stack_sizes.h"

#include "base/atomic.h"
#include "base/fault.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>

#define USUAL ((size_t)200 * 1024)

struct fixture {
    struct weft__stacks usual;
    struct weft__stack_sizes sizes;
};

static void start(struct fixture *f)
{
    ASSERT_OK(weft__stacks_init(&f->usual, &(struct weft__stacks_options){.stack_bytes = USUAL}));
    weft__stack_sizes_init(&f->sizes, &f->usual);
}

static void finish(struct fixture *f)
{
    weft__stack_sizes_done(&f->sizes);
    weft__stacks_done(&f->usual);
}

static struct weft__stacks *pool(struct fixture *f, size_t bytes)
{
    struct weft__stacks *into = NULL;
    ASSERT_OK(weft__stack_sizes_get(&f->sizes, bytes, &into));
    ASSERT_GE(into->stack_bytes, bytes);
    return into;
}

TEST(stack_sizes_are_rounded_up_to_powers_of_two)
{
    struct fixture f;
    start(&f);
    ASSERT_EQ(pool(&f, 1)->stack_bytes, 16 * 1024);
    ASSERT_EQ(pool(&f, 16 * 1024)->stack_bytes, 16 * 1024);
    ASSERT_EQ(pool(&f, 16 * 1024 + 1)->stack_bytes, 32 * 1024);
    ASSERT_EQ(pool(&f, 1000 * 1000)->stack_bytes, 1 << 20);
    ASSERT_PTR(pool(&f, 1), pool(&f, 16 * 1024));
    ASSERT_PTR(pool(&f, 1 << 20), pool(&f, (1 << 19) + 1));
    finish(&f);
}

TEST(stack_sizes_prefer_the_usual_pool_where_it_fits)
{
    struct fixture f;
    start(&f);
    ASSERT_PTR(pool(&f, USUAL), &f.usual);
    ASSERT_PTR(pool(&f, USUAL - 4096), &f.usual);
    ASSERT_PTR(pool(&f, 128 * 1024 + 1), &f.usual);
    ASSERT(pool(&f, 128 * 1024) != &f.usual);
    ASSERT(pool(&f, USUAL + 1) != &f.usual);
    finish(&f);
}

TEST(stack_sizes_refuse_what_is_absurd)
{
    struct fixture f;
    struct weft__stacks *into = NULL;
    start(&f);
    ASSERT_EQ(weft__stack_sizes_get(&f.sizes, SIZE_MAX, &into), -EINVAL);
    ASSERT_EQ(weft__stack_sizes_get(&f.sizes, SIZE_MAX / 2 + 2, &into), -EINVAL);
    ASSERT_EQ(weft__stack_sizes_get(&f.sizes, ((size_t)1 << WEFT__STACK_MAX_BITS) + 1, &into),
              -EINVAL);
    ASSERT_NULL(into);
    finish(&f);
}

/* A mapping of large stacks is bounded by bytes, one of small ones by their number. */
TEST(stack_sizes_map_few_of_the_large)
{
    struct fixture f;
    start(&f);
    ASSERT_EQ(pool(&f, 16 * 1024)->chunk_slots, WEFT__STACK_CHUNK_SLOTS);
    ASSERT_EQ(pool(&f, 4 << 20)->chunk_slots, 4);
    ASSERT_EQ(pool(&f, 256 << 20)->chunk_slots, 1);
    struct weft__stack *stack;
    ASSERT_OK(weft__stack_get(pool(&f, 4 << 20), &stack));
    ASSERT_GE(weft__stack_bytes(stack), 4 << 20);
    stack->lo[0] = 1;
    stack->lo[weft__stack_bytes(stack) - 1] = 1;
    weft__stack_put(pool(&f, 4 << 20), stack);
    finish(&f);
}

#if defined(WEFT_FAULTS)
TEST(stack_sizes_without_memory_answer_and_go_on)
{
    struct fixture f;
    struct weft__stacks *into = NULL;
    start(&f);
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__stack_sizes_get(&f.sizes, 1 << 20, &into), -ENOMEM);
    weft__fault_reset();
    ASSERT_NULL(into);
    ASSERT_EQ(pool(&f, 1 << 20)->stack_bytes, 1 << 20);
    finish(&f);
}
#endif

struct asker {
    struct fixture *f;
    pthread_barrier_t *together;
    struct weft__stacks *got;
};

static void *asks(void *arg)
{
    struct asker *me = arg;
    pthread_barrier_wait(me->together);
    me->got = pool(me->f, 1 << 21);
    return NULL;
}

TEST(stack_sizes_first_askers_agree_on_one_pool)
{
    for (uint64_t round = 0; round < test_scaled(200); round++) {
        struct fixture f;
        pthread_barrier_t together;
        pthread_t thread[3];
        struct asker asker[3];
        start(&f);
        pthread_barrier_init(&together, NULL, 3);
        for (int i = 0; i < 3; i++) {
            asker[i] = (struct asker){.f = &f, .together = &together};
            ASSERT_OK(pthread_create(&thread[i], NULL, asks, &asker[i]));
        }
        for (int i = 0; i < 3; i++)
            ASSERT_OK(pthread_join(thread[i], NULL));
        ASSERT_PTR(asker[0].got, asker[1].got);
        ASSERT_PTR(asker[0].got, asker[2].got);
        pthread_barrier_destroy(&together);
        finish(&f);
    }
}
