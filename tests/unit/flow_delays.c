/* SPDX-License-Identifier: MIT
 *
 * The heap of a delay queue by hand: order, keys, growth; and at random, beside a list that is searched from end to end.
 */
#include "flow/delays.h"

#include "pool.h"
#include "test.h"

#include <string.h>

static void with_room(struct weft__delays *d, uint32_t capacity)
{
    void *block = malloc(weft__delays_block_bytes(d, capacity));
    free(weft__delays_grow(d, block, capacity));
}

static int take_first(struct weft__delays *d)
{
    int item = 0;
    weft__delays_remove(d, d->heap[0].slot, &item);
    return item;
}

TEST(delays_come_out_by_deadline_then_by_age)
{
    static const int64_t when[] = {5, 3, 5, 1, 3, 5, INT64_MIN, INT64_MAX};
    static const int order[] = {6, 3, 1, 4, 0, 2, 5, 7};
    struct weft__delays d;

    weft__delays_init(&d, sizeof(int));
    with_room(&d, 8);
    for (int i = 0; i < 8; i++)
        ASSERT_NE(weft__delays_insert(&d, &i, when[i]), 0);
    weft__delays_check(&d);
    for (int i = 0; i < 8; i++)
        ASSERT_EQ(take_first(&d), order[i]);
    ASSERT_EQ(d.count, 0);
    free(d.heap);
}

TEST(delays_keys_find_their_own_item_only)
{
    struct weft__delays d;
    int one = 1;
    int two = 2;

    weft__delays_init(&d, sizeof(int));
    with_room(&d, 4);
    ASSERT_EQ(weft__delays_find(&d, 0), WEFT__DELAY_NONE);
    uint64_t a = weft__delays_insert(&d, &one, 1);
    ASSERT_EQ(weft__delays_when(&d, weft__delays_find(&d, a)), 1);
    weft__delays_remove(&d, weft__delays_find(&d, a), NULL);
    ASSERT_EQ(weft__delays_find(&d, a), WEFT__DELAY_NONE);
    uint64_t b = weft__delays_insert(&d, &two, 2); /* the same slot */
    ASSERT_EQ((uint32_t)a, (uint32_t)b);
    ASSERT_EQ(weft__delays_find(&d, a), WEFT__DELAY_NONE);
    ASSERT_NE(weft__delays_find(&d, b), WEFT__DELAY_NONE);
    weft__delays_clear(&d);
    weft__delays_check(&d);
    ASSERT_EQ(weft__delays_find(&d, b), WEFT__DELAY_NONE);
    ASSERT_EQ(weft__delays_find(&d, UINT64_MAX), WEFT__DELAY_NONE);
    free(d.heap);
}

TEST(delays_refuse_what_cannot_be)
{
    struct weft__delays d;
    weft__delays_init(&d, 1 << 20);
    ASSERT_EQ(weft__delays_block_bytes(&d, UINT32_MAX), 0);
    ASSERT(weft__delays_block_bytes(&d, 16) > 16 << 20);
}

/* ---- at random ---- */

#define MANY 200

struct known {
    uint64_t key; /* 0: not in it */
    int64_t when;
    uint64_t age;
};

static int first_of(const struct known *known)
{
    int first = -1;
    for (int i = 0; i < MANY; i++) {
        if (!known[i].key) continue;
        if (first < 0 || known[i].when < known[first].when ||
            (known[i].when == known[first].when && known[i].age < known[first].age))
            first = i;
    }
    return first;
}

TEST(delays_at_random_beside_a_list)
{
    static struct known known[MANY];
    struct weft__delays d;
    uint64_t random = pool_seed(1);
    uint64_t age = 0;

    memset(known, 0, sizeof(known));
    weft__delays_init(&d, sizeof(int));
    for (uint64_t n = test_scaled(20000); n > 0; n--) {
        int i = (int)pool_random(&random, MANY);
        int64_t when = pool_random(&random, 50);
        if (!known[i].key) {
            if (weft__delays_full(&d)) with_room(&d, d.capacity * 2 + 1);
            known[i] = (struct known){weft__delays_insert(&d, &i, when), when, age++};
        } else if (pool_random(&random, 3) == 0) {
            weft__delays_move(&d, weft__delays_find(&d, known[i].key), when);
            known[i].when = when;
            known[i].age = age++;
        } else if (pool_random(&random, 2) == 0) {
            int item = -1;
            weft__delays_remove(&d, weft__delays_find(&d, known[i].key), &item);
            ASSERT_EQ(item, i);
            known[i].key = 0;
        } else {
            int first = first_of(known);
            ASSERT_EQ(take_first(&d), first);
            known[first].key = 0;
        }
        if (n % 16 == 0) weft__delays_check(&d);
    }
    weft__delays_check(&d);
    free(d.heap);
}
