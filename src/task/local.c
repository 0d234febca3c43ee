/* SPDX-License-Identifier: MIT
 *
 * local - finding, making and ending a task's own values; the idea is in local.h.
 */
#include "task/local.h"

#include "base/alloc.h"
#include "task/ext.h"
#include "task/here.h"

#include <string.h>

/* Slots of a task's first table. Doubled: a task with one value carries 64 bytes more of nothing. */
#define SLOTS_MIN 8

/* The front of a value's memory; the value follows, aligned as its type asks. */
struct value {
    struct value *older;
    struct weft__task_key *key;
};

struct weft__locals {
    struct value *newest;
    void **slot; /* by number - 1: the value, or NULL */
    uint32_t slot_count;
    bool ending;
};

static size_t value_at(const struct weft__task_key *key)
{
    return (sizeof(struct value) + key->align - 1) & ~(key->align - 1);
}

/* ---- numbers ---- */

static uint32_t number_look(struct weft__task_key *key)
{
    return load_relaxed((_Atomic uint32_t *)&key->weft__number); /* relaxed: a number */
}

static uint32_t number_of(struct weft__task_key *key)
{
    static _Atomic uint32_t last;
    uint32_t number = number_look(key);

    if (number) return number;
    uint32_t mine =
        fetch_add_relaxed(&last, 1) + 1; /* relaxed, both: numbers; one that loses is never used */
    return cas_relaxed((_Atomic uint32_t *)&key->weft__number, &number, mine) ? mine : number;
}

/* ---- memory ---- */

static struct weft__locals *locals_new(struct weft_task *task)
{
    struct weft__ext *ext = task->ext;
    struct weft__locals *locals = weft__alloc(sizeof(*locals));

    if (!locals) return NULL;
    if (!ext) {
        ext = weft__ext_new(task);
        if (!ext) {
            weft__free(locals);
            return NULL;
        }
        weft__ext_publish(task, ext);
    }
    ext->locals = locals;
    return locals;
}

static bool slots_reach(struct weft__locals *locals, uint32_t number)
{
    uint32_t count = locals->slot_count ? locals->slot_count : SLOTS_MIN;

    if (number <= locals->slot_count) return true;
    while (count < number)
        count *= 2;
    void **slot = weft__alloc(count * sizeof(*slot));
    if (!slot) return false;
    if (locals->slot_count) memcpy(slot, locals->slot, locals->slot_count * sizeof(*slot));
    weft__free(locals->slot);
    locals->slot = slot;
    locals->slot_count = count;
    return true;
}

static void *value_new(struct weft__locals *locals, struct weft__task_key *key, uint32_t number)
{
    size_t align = key->align > _Alignof(max_align_t) ? key->align : _Alignof(max_align_t);
    struct value *v = weft__alloc_aligned(value_at(key) + key->bytes, align);

    if (!v) return NULL;
    v->key = key;
    v->older = locals->newest;
    locals->newest = v;
    return locals->slot[number - 1] = (char *)v + value_at(key);
}

/* ---- finding ---- */

static void *local_slow(struct weft_task *task, struct weft__task_key *key)
{
    struct weft__ext *ext = task->ext;
    struct weft__locals *locals = ext ? ext->locals : NULL;
    uint32_t number = number_of(key);

    if (!locals) locals = locals_new(task);
    if (!locals || locals->ending || !slots_reach(locals, number)) return NULL;
    return value_new(locals, key, number);
}

void *weft__task_local(struct weft__task_key *key)
{
    struct weft_task *task = weft__here()->task;
    if (!task) return NULL;

    const struct weft__ext *ext = task->ext;
    const struct weft__locals *locals = ext ? ext->locals : NULL;
    uint32_t at = number_look(key) - 1; /* no number: at the end of all tables */
    void *value = locals && at < locals->slot_count ? locals->slot[at] : NULL;
    return value ? value : local_slow(task, key);
}

/* ---- the end ---- */

static void value_end(struct weft__locals *locals, struct value *v)
{
    void *value = (char *)v + value_at(v->key);

    locals->newest = v->older;
    if (v->key->done) v->key->done(value);
    locals->slot[number_look(v->key) - 1] = NULL;
    weft__free(v);
}

void weft__locals_end(struct weft_task *task)
{
    struct weft__ext *ext = task->ext;
    struct weft__locals *locals = ext->locals;

    if (!locals) return;
    locals->ending = true;
    while (locals->newest)
        value_end(locals, locals->newest);
    ext->locals = NULL;
    weft__free(locals->slot);
    weft__free(locals);
}
