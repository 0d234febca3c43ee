/* SPDX-License-Identifier: MIT
 *
 * delays - the heap and its slots; the idea is in delays.h.
 */
#include "flow/delays.h"

#include "base/assert.h"

#include <string.h>

#define CHILDREN UINT32_C(4)

/* ---- the block -------------------------------------------------------------------------------- */

void weft__delays_init(struct weft__delays *d, size_t item_bytes)
{
    *d = (struct weft__delays){.item_bytes = item_bytes, .free_slot = WEFT__DELAY_NONE};
}

size_t weft__delays_block_bytes(const struct weft__delays *d, uint32_t capacity)
{
    size_t each = sizeof(*d->heap) + sizeof(*d->slot) + d->item_bytes;
    size_t bytes;
    if (capacity > INT32_MAX || __builtin_mul_overflow(each, (size_t)capacity, &bytes)) return 0;
    return bytes;
}

void *weft__delays_grow(struct weft__delays *d, void *block, uint32_t capacity)
{
    struct weft__delays old = *d;

    weft_assert(capacity > old.capacity);
    d->heap = block;
    d->slot = (struct weft__delay_slot *)(void *)(d->heap + capacity);
    d->items = (char *)(d->slot + capacity);
    d->capacity = capacity;
    if (!old.heap) return NULL;
    memcpy(d->heap, old.heap, old.count * sizeof(*d->heap));
    memcpy(d->slot, old.slot, old.used * sizeof(*d->slot));
    memcpy(d->items, old.items, old.used * d->item_bytes);
    return old.heap;
}

/* ---- the heap --------------------------------------------------------------------------------- */

static bool goes_before(const struct weft__delay_entry *a, const struct weft__delay_entry *b)
{
    return a->when < b->when || (a->when == b->when && a->number < b->number);
}

static void put(struct weft__delays *d, uint32_t place, struct weft__delay_entry entry)
{
    d->heap[place] = entry;
    d->slot[entry.slot].place = place;
}

/* From a hole at `place` towards the top. */
static void rise(struct weft__delays *d, uint32_t place, struct weft__delay_entry entry)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / CHILDREN;
        if (!goes_before(&entry, &d->heap[parent])) break;
        put(d, place, d->heap[parent]);
        place = parent;
    }
    put(d, place, entry);
}

static uint32_t first_child(const struct weft__delays *d, uint32_t place)
{
    uint32_t from = place * CHILDREN + 1;
    uint32_t to = from + CHILDREN < d->count ? from + CHILDREN : d->count;
    uint32_t first = from;

    for (uint32_t i = from + 1; i < to; i++)
        if (goes_before(&d->heap[i], &d->heap[first])) first = i;
    return first;
}

/* From a hole at `place` towards the leaves. */
static void sink(struct weft__delays *d, uint32_t place, struct weft__delay_entry entry)
{
    while (place * CHILDREN + 1 < d->count) {
        uint32_t child = first_child(d, place);
        if (!goes_before(&d->heap[child], &entry)) break;
        put(d, place, d->heap[child]);
        place = child;
    }
    put(d, place, entry);
}

/* Into a hole, up or down. */
static void settle(struct weft__delays *d, uint32_t place, struct weft__delay_entry entry)
{
    if (place > 0 && goes_before(&entry, &d->heap[(place - 1) / CHILDREN])) {
        rise(d, place, entry);
    } else {
        sink(d, place, entry);
    }
}

/* ---- slots ------------------------------------------------------------------------------------ */

static uint32_t slot_take(struct weft__delays *d)
{
    uint32_t slot = d->free_slot;
    if (slot == WEFT__DELAY_NONE) {
        slot = d->used++;
        d->slot[slot].generation = 0;
    } else {
        d->free_slot = d->slot[slot].place;
    }
    d->slot[slot].generation++;
    return slot;
}

static void slot_give(struct weft__delays *d, uint32_t slot)
{
    d->slot[slot].generation++;
    d->slot[slot].place = d->free_slot;
    d->free_slot = slot;
}

/* ---- items ------------------------------------------------------------------------------------ */

uint64_t weft__delays_insert(struct weft__delays *d, const void *item, int64_t when)
{
    weft_assert(!weft__delays_full(d));
    uint32_t slot = slot_take(d);
    struct weft__delay_entry entry = {.when = when, .number = ++d->number, .slot = slot};

    memcpy(d->items + slot * d->item_bytes, item, d->item_bytes);
    rise(d, d->count++, entry);
    return (uint64_t)d->slot[slot].generation << 32 | slot;
}

uint32_t weft__delays_find(const struct weft__delays *d, uint64_t key)
{
    uint32_t slot = (uint32_t)key;
    uint32_t generation = (uint32_t)(key >> 32);

    if (slot >= d->used || generation % 2 == 0) return WEFT__DELAY_NONE;
    return d->slot[slot].generation == generation ? slot : WEFT__DELAY_NONE;
}

void weft__delays_move(struct weft__delays *d, uint32_t slot, int64_t when)
{
    struct weft__delay_entry entry = {.when = when, .number = ++d->number, .slot = slot};
    settle(d, d->slot[slot].place, entry);
}

void weft__delays_remove(struct weft__delays *d, uint32_t slot, void *into)
{
    uint32_t place = d->slot[slot].place;
    struct weft__delay_entry last = d->heap[--d->count];

    if (into) memcpy(into, d->items + slot * d->item_bytes, d->item_bytes);
    if (last.slot != slot) settle(d, place, last);
    slot_give(d, slot);
}

void weft__delays_clear(struct weft__delays *d)
{
    while (d->count > 0)
        slot_give(d, d->heap[--d->count].slot);
}

void weft__delays_check(const struct weft__delays *d)
{
    uint32_t in_use = 0;

    weft_assert(d->count <= d->capacity);
    for (uint32_t i = 0; i < d->count; i++) {
        weft_assert(d->slot[d->heap[i].slot].place == i);
        if (i > 0) weft_assert(goes_before(&d->heap[(i - 1) / CHILDREN], &d->heap[i]));
    }
    for (uint32_t s = 0; s < d->used; s++)
        in_use += d->slot[s].generation % 2;
    weft_assert(in_use == d->count);
}
