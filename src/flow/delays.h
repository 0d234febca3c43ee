/* SPDX-License-Identifier: MIT
 *
 * delays - items by their deadlines: a heap of four children a node, and slots by which an item is found again.
 *
 * A heap entry has deadline, number and slot; the numbers rise, so that of two items with one deadline the older goes first. A slot knows where
 * in the heap its entry is, and how often it was used: a key is slot and generation, and finds nothing once its item is gone.
 *     heap[slot[s].place].slot == s                for every slot in use        slot[heap[i].slot].place == i
 *     heap[i] goes before heap[4 * i + 1 .. + 4]
 * All of it lies in one block, which the caller makes and frees: growing never fails half way, and never allocates under the caller's lock.
 *
 * Threads: the caller's lock. Rejected: the wheel (time/wheel.h), which fires timers, and to know its first deadline exactly may have to look at many; a heap of
 * pointers to items (a cache miss for each comparison).
 */
#ifndef WEFT_FLOW_DELAYS_H
#define WEFT_FLOW_DELAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__delay_entry {
    int64_t when;
    uint64_t number;
    uint32_t slot;
};

struct weft__delay_slot {
    uint32_t generation; /* odd: in use */
    uint32_t place;      /* in the heap; of a free one, the next free slot */
};

struct weft__delays {
    struct weft__delay_entry *heap; /* the block's beginning */
    struct weft__delay_slot *slot;
    char *items;       /* by slot */
    size_t item_bytes; /* constant */
    uint32_t count;
    uint32_t capacity;
    uint32_t used;      /* slots that ever were */
    uint32_t free_slot; /* NONE: there is none */
    uint64_t number;    /* of the newest entry */
};

#define WEFT__DELAY_NONE UINT32_MAX

void weft__delays_init(struct weft__delays *d, size_t item_bytes);

/* The bytes of a block for so many; 0: more than there can be. */
size_t weft__delays_block_bytes(const struct weft__delays *d, uint32_t capacity);

/* Takes a larger block, gives the old one back, to be freed. */
void *weft__delays_grow(struct weft__delays *d, void *block, uint32_t capacity);

static inline bool weft__delays_full(const struct weft__delays *d)
{
    return d->count == d->capacity;
}

/* It is not full. Gives the key, never 0. */
uint64_t weft__delays_insert(struct weft__delays *d, const void *item, int64_t when);

/* The slot of a key, or NONE. */
uint32_t weft__delays_find(const struct weft__delays *d, uint64_t key);

static inline int64_t weft__delays_when(const struct weft__delays *d, uint32_t slot)
{
    return d->heap[d->slot[slot].place].when;
}

/* Another deadline; among those that have it, it is the newest. */
void weft__delays_move(struct weft__delays *d, uint32_t slot, int64_t when);

/* The item goes to `into`, if that is not NULL. */
void weft__delays_remove(struct weft__delays *d, uint32_t slot, void *into);

void weft__delays_clear(struct weft__delays *d);

/* Walks all of it and asserts what the top of this file says. For tests. */
void weft__delays_check(const struct weft__delays *d);

#endif
