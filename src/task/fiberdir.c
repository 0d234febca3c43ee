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

/* ---- blocks: memory comes and goes without the lock, since the program's own allocator may wait for anything ---- */

/* Empty: it is made without the lock, and may be too late. */
static union place *block_new(uint32_t block)
{
    if (block == 0) return first_block;
    if (block >= BLOCKS_MAX) return NULL;
    return weft__alloc(sizeof(union place) * (FIRST_PLACES << block));
}

static void block_free(union place *places)
{
    if (places != first_block) weft__free(places);
}

/* holds: lock. False: another thread was faster, or all are gone again. */
static bool block_enter(uint32_t block, union place *places)
{
    if (dir.free != 0 || dir.block_count != block) return false;
    dir.blocks[block] = places;
    dir.block_count++;
    chain_block(block);
    return true;
}

/* holds: lock, and lets go of it meanwhile. False: no memory. */
static bool grow(void)
{
    uint32_t block = dir.block_count;
    weft__lock_drop(&dir.lock);
    union place *places = block_new(block);
    weft__lock_take(&dir.lock);
    if (!places) return dir.free != 0;
    if (block_enter(block, places)) return true;
    weft__lock_drop(&dir.lock);
    block_free(places);
    weft__lock_take(&dir.lock);
    return true;
}

/* holds: lock. Nobody has a number: takes all blocks out, for who frees them later. */
static uint32_t shrink(union place **into)
{
    uint32_t count = dir.block_count;
    for (uint32_t block = 0; block < count; block++)
        into[block] = dir.blocks[block];
    dir.block_count = 0;
    dir.free = 0;
    return count;
}

/* ---- numbers ---- */

/* holds: lock. There is a free place. */
static int32_t take_place(struct weft__fiber *fiber)
{
    uint32_t number = dir.free;
    union place *place = place_of(number);
    dir.free = place->next_free;
    place->fiber = fiber;
    dir.used_count++;
    return (int32_t)number;
}

int32_t weft__fiberdir_add(struct weft__fiber *fiber)
{
    bool memory = true;
    weft__lock_take(&dir.lock);
    while (dir.free == 0 && memory)
        memory = grow();
    int32_t number = dir.free != 0 ? take_place(fiber) : -ENOMEM;
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
    union place *unused[BLOCKS_MAX];
    uint32_t count = 0;

    weft_assert(number > 0);
    weft__lock_take(&dir.lock);
    weft_assert(dir.used_count > 0);
    place_of((uint32_t)number)->next_free = dir.free;
    dir.free = (uint32_t)number;
    if (--dir.used_count == 0) count = shrink(unused);
    weft__lock_drop(&dir.lock);
    for (uint32_t block = 0; block < count; block++)
        block_free(unused[block]);
}

struct weft__lock *weft__fiberdir_lock(void)
{
    return &dir.lock;
}
