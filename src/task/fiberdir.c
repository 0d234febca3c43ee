/* SPDX-License-Identifier: MIT
 *
 * fiberdir - the blocks, and the chain of free places through them.
 */
#include "task/fiberdir.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "sys/lock.h"

#include <errno.h>
#include <stddef.h>

#define FIRST_PLACES 64u

/* Together 33 million places. Doubled places need one more; the number's 31 bits allow 24. */
#define BLOCKS_MAX 19u

/* A fiber, or while it is free the number of the next free place. */
union place {
    struct weft__fiber *fiber;
    uint32_t next_free;
};

static union place first_block[FIRST_PLACES];

static struct {
    struct weft__lock lock; /* rank slab; guards the next four */
    union place
        *blocks[BLOCKS_MAX]; /* those below block_count; read without it by users of a number */
    uint32_t block_count;
    uint32_t free; /* the first free place's number; 0: none */
    uint32_t used_count;
} dir = {.lock = WEFT__LOCK_INIT(WEFT__RANK_SLAB)};

static uint32_t block_of(uint32_t number)
{
    return 31u - (uint32_t)__builtin_clz((number - 1) / FIRST_PLACES + 1);
}

static uint32_t first_number_of(uint32_t block)
{
    return FIRST_PLACES * ((1u << block) - 1) + 1;
}

static union place *place_of(uint32_t number)
{
    uint32_t block = block_of(number);
    return &dir.blocks[block][number - first_number_of(block)];
}

/* holds: lock */
static void chain_block(uint32_t block)
{
    uint32_t first = first_number_of(block);
    for (uint32_t i = FIRST_PLACES << block; i-- > 0;) {
        dir.blocks[block][i].next_free = dir.free;
        dir.free = first + i;
    }
}

/* holds: lock. Taking memory under it is rare: the blocks double. */
static bool grow(void)
{
    uint32_t block = dir.block_count;
    if (block == BLOCKS_MAX) return false;
    union place *places = first_block;
    if (block > 0) places = weft__alloc(sizeof(*places) * (FIRST_PLACES << block));
    if (!places) return false;
    dir.blocks[block] = places;
    dir.block_count++;
    chain_block(block);
    return true;
}

/* holds: lock */
static void shrink(void)
{
    for (uint32_t block = 1; block < dir.block_count; block++)
        weft__free(dir.blocks[block]);
    dir.block_count = 0;
    dir.free = 0;
}

int32_t weft__fiberdir_add(struct weft__fiber *fiber)
{
    int32_t number = -ENOMEM;

    weft__lock_take(&dir.lock);
    if (dir.free != 0 || grow()) {
        union place *place = place_of(dir.free);
        number = (int32_t)dir.free;
        dir.free = place->next_free;
        place->fiber = fiber;
        dir.used_count++;
    }
    weft__lock_drop(&dir.lock);
    return number;
}

struct weft__fiber *weft__fiberdir_get(int32_t number)
{
    weft_assert(number > 0);
    return place_of((uint32_t)number)->fiber;
}

void weft__fiberdir_remove(int32_t number)
{
    weft_assert(number > 0);
    weft__lock_take(&dir.lock);
    weft_assert(dir.used_count > 0);
    place_of((uint32_t)number)->next_free = dir.free;
    dir.free = (uint32_t)number;
    if (--dir.used_count == 0) shrink();
    weft__lock_drop(&dir.lock);
}

struct weft__lock *weft__fiberdir_lock(void)
{
    return &dir.lock;
}
