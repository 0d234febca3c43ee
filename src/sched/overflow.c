/* SPDX-License-Identifier: MIT
 *
 * overflow - the list of arrays under its lock; the spare; packing and unpacking.
 *
 * What the lock guards or hands over is read and written by plain_read and plain_write, so that the
 * model checker can tell if the lock were missing.
 */
#include "sched/overflow.h"

#include "base/alloc.h"

#include <errno.h>
#include <stddef.h>

void weft__overflow_init(struct weft__overflow *o)
{
    weft__lock_init(&o->lock, WEFT__RANK_OVERFLOW);
    store_relaxed(&o->count, 0); /* relaxed: not shared yet */
    o->oldest = NULL;
    o->newest = NULL;
    o->spare = NULL;
}

void weft__overflow_done(struct weft__overflow *o)
{
    weft_assert(!plain_read(&o->oldest));
    weft__free(o->spare);
    o->spare = NULL;
}

/* ---- arrays: one spare per worker, the rest is the heap's ------------------------------------ */

static struct weft__overflow_array *array_new(struct weft__overflow *own)
{
    struct weft__overflow_array *array = own->spare;

    own->spare = NULL;
    if (!array) array = weft__alloc(sizeof(*array));
    if (!array) return NULL;
    plain_write(&array->next, NULL);
    plain_write(&array->first, 0);
    plain_write(&array->end, 0);
    return array;
}

static void array_give_back(struct weft__overflow *own, struct weft__overflow_array *array)
{
    if (own->spare) {
        weft__free(array);
    } else {
        own->spare = array;
    }
}

static uint32_t array_length(struct weft__overflow_array *array)
{
    return plain_read(&array->end) - plain_read(&array->first);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* holds: o->lock. `change` may be negative in two's complement. */
static void count_add(struct weft__overflow *o, uint64_t change)
{
    uint64_t count = load_relaxed(&o->count); /* relaxed: written under the lock only */
    /* relaxed: for those without the lock it is a hint  [overflow-count] */
    store_relaxed(&o->count, count + change);
}

/* Of the arrays from `first` to `last`, with so many tasks. */
static void list_append(struct weft__overflow *o, struct weft__overflow_array *first,
                        struct weft__overflow_array *last, uint64_t tasks)
{
    weft__lock_take(&o->lock);
    if (plain_read(&o->oldest)) {
        struct weft__overflow_array *before = plain_read(&o->newest);
        plain_write(&before->next, first);
    } else {
        plain_write(&o->oldest, first);
    }
    plain_write(&o->newest, last);
    count_add(o, tasks);
    weft__lock_drop(&o->lock);
}

static void list_prepend(struct weft__overflow *o, struct weft__overflow_array *array)
{
    weft__lock_take(&o->lock);
    if (!plain_read(&o->oldest)) plain_write(&o->newest, array);
    plain_write(&array->next, plain_read(&o->oldest));
    plain_write(&o->oldest, array);
    count_add(o, array_length(array));
    weft__lock_drop(&o->lock);
}

struct weft__overflow_array *weft__overflow_take(struct weft__overflow *from)
{
    if (weft__overflow_count(from) == 0) return NULL;

    weft__lock_take(&from->lock);
    struct weft__overflow_array *array = plain_read(&from->oldest);
    if (array) {
        plain_write(&from->oldest, plain_read(&array->next));
        count_add(from, 0 - (uint64_t)array_length(array));
    }
    weft__lock_drop(&from->lock);
    return array;
}

/* holds: o->lock. The last of the older half of the arrays, of as many as a thief may carry; NULL if there is none. */
static struct weft__overflow_array *half_of(struct weft__overflow *o, uint64_t *tasks)
{
    uint64_t half = (load_relaxed(&o->count) + 1) / 2; /* relaxed: written under the lock only */
    struct weft__overflow_array *last = NULL;
    struct weft__overflow_array *array = plain_read(&o->oldest);

    for (uint32_t n = 0; array && n < WEFT__OVERFLOW_HAUL && *tasks < half; n++) {
        *tasks += array_length(array);
        last = array;
        array = plain_read(&array->next);
    }
    return last;
}

uint64_t weft__overflow_take_half(struct weft__overflow *own, struct weft__overflow *from)
{
    uint64_t tasks = 0;

    if (weft__overflow_count(from) == 0) return 0;
    weft__lock_take(&from->lock);
    struct weft__overflow_array *first = plain_read(&from->oldest);
    struct weft__overflow_array *last = half_of(from, &tasks);
    if (last) {
        plain_write(&from->oldest, plain_read(&last->next));
        plain_write(&last->next, NULL);
        count_add(from, 0 - tasks);
    }
    weft__lock_drop(&from->lock);
    if (last) list_append(own, first, last, tasks);
    return tasks;
}

/* ---- between ring and arrays ----------------------------------------------------------------- */

int weft__overflow_spill(struct weft__overflow *o, struct weft__runq *ring)
{
    struct weft__overflow_array *array = array_new(o);

    if (!array) return -ENOMEM;
    uint32_t count = weft__runq_take_many(ring, WEFT__OVERFLOW_SPILL, array->task);
    plain_write(&array->end, count);
    if (count > 0) {
        list_append(o, array, array, count);
    } else {
        array_give_back(o, array);
    }
    return (int)count;
}

/* Push tasks of the array while the ring has room. Returns how many. */
static uint32_t unpack_into_ring(struct weft__overflow_array *array, struct weft__runq *into)
{
    uint32_t first = plain_read(&array->first);
    uint32_t end = plain_read(&array->end);
    uint32_t at = first;

    while (at < end && weft__runq_push(into, plain_read(&array->task[at]))) {
        at++;
    }
    plain_write(&array->first, at);
    return at - first;
}

struct weft__haul weft__overflow_unpack(struct weft__overflow *own,
                                        struct weft__overflow_array *array, struct weft__runq *into)
{
    uint32_t first = plain_read(&array->first);
    struct weft__haul haul = {0};

    weft_assert(array_length(array) > 0);
    haul.run = plain_read(&array->task[first]);
    plain_write(&array->first, first + 1);
    haul.count = 1 + unpack_into_ring(array, into);
    if (array_length(array) > 0) {
        list_prepend(own, array);
    } else {
        array_give_back(own, array);
    }
    return haul;
}

struct weft__haul weft__overflow_refill(struct weft__overflow *own, struct weft__runq *into)
{
    struct weft__overflow_array *array = weft__overflow_take(own);

    if (!array) return (struct weft__haul){0};
    return weft__overflow_unpack(own, array, into);
}

void weft__overflow_check(struct weft__overflow *o)
{
    uint64_t count = 0;
    struct weft__overflow_array *last = NULL;

    weft__lock_take(&o->lock);
    for (struct weft__overflow_array *a = plain_read(&o->oldest); a; a = plain_read(&a->next)) {
        weft_assert(plain_read(&a->first) < plain_read(&a->end));
        weft_assert(plain_read(&a->end) <= WEFT__OVERFLOW_BATCH);
        for (uint32_t i = plain_read(&a->first); i < plain_read(&a->end); i++) {
            weft_assert(plain_read(&a->task[i]));
        }
        count += array_length(a);
        last = a;
    }
    if (last) weft_assert(plain_read(&o->newest) == last);
    weft_assert(load_relaxed(&o->count) == count); /* relaxed: written under the lock only */
    weft__lock_drop(&o->lock);
}
