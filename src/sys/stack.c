/* SPDX-License-Identifier: MIT
 *
 * stack - chunks, guards, and the two lists of free slots.
 */
#include "sys/stack.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/sanitize.h"
#include "sys/mem.h"
#include "sys/stackdir.h"

#include <errno.h>

#if defined(WEFT__ASAN)
#include <sanitizer/asan_interface.h>
/* The frames of whoever left the stack without returning are still marked in the shadow; the
 * next user must not trip over them. */
#define FORGET_FRAMES(stack) __asan_unpoison_memory_region((stack)->lo, weft__stack_bytes(stack))
#else
#define FORGET_FRAMES(stack) ((void)(stack))
#endif

struct weft__stack_chunk {
    struct weft__stack_chunk *next;
    char *base;
    size_t bytes;
    struct weft__stackdir_entry *entry;
    size_t slot_count;
    struct weft__stack slots[];
};

static struct weft__stack *stack_of(struct weft__link *link)
{
    return weft__container_of(link, struct weft__stack, link);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void slots_init(struct weft__stack_chunk *c, const struct weft__stacks *pool)
{
    for (size_t i = 0; i < c->slot_count; i++) {
        struct weft__stack *s = &c->slots[i];
        weft__link_init(&s->link);
        s->lo = c->base + i * (pool->stack_bytes + pool->guard_bytes) + pool->guard_bytes;
        s->units = (uint32_t)(pool->stack_bytes / WEFT__STACK_UNIT);
    }
}

/* Make its slots findable by address. */
static int chunk_enter(struct weft__stack_chunk *c, struct weft__stacks *pool)
{
    struct weft__stackdir_span span = {
        .base = c->base,
        .slot_bytes = pool->stack_bytes + pool->guard_bytes,
        .guard_bytes = pool->guard_bytes,
        .count = c->slot_count,
        .owner = pool,
    };
    return weft__stackdir_add(&span, &c->entry);
}

static void chunk_free(struct weft__stack_chunk *c)
{
    weft__stackdir_remove(c->entry);
    (void)weft__mem_unmap(c->base, c->bytes); /* at worst the addresses stay taken, without pages */
    weft__free(c);
}

static int chunk_new(struct weft__stacks *pool, struct weft__stack_chunk **into)
{
    size_t count = pool->chunk_slots;
    size_t slot_bytes = pool->stack_bytes + pool->guard_bytes;
    void *base;

    struct weft__stack_chunk *c = weft__alloc(sizeof(*c) + count * sizeof(c->slots[0]));
    if (!c) return -ENOMEM;
    int r = weft__mem_map(count * slot_bytes, &base);
    if (r < 0) goto out_free;
    (void)weft__mem_advise_no_huge(base, count * slot_bytes); /* else a stack may cost 2 MiB */
    c->base = base;
    c->bytes = count * slot_bytes;
    c->slot_count = count;
    slots_init(c, pool);
    r = chunk_enter(c, pool);
    if (r < 0) goto out_unmap;
    *into = c;
    return 0;

out_unmap:
    (void)weft__mem_unmap(base, c->bytes);
out_free:
    weft__free(c);
    return r;
}

/* ---- pool ------------------------------------------------------------------------------------ */

static int choose_guard(enum weft__stack_guard asked, enum weft__stack_guard *into)
{
    int r = asked == WEFT__STACK_GUARD_MPROTECT ? -EINVAL : weft__mem_guard_probe();
    if (r == -ENOMEM) return r;
    if (r < 0 && asked == WEFT__STACK_GUARD_MADVISE) return r;
    *into = r < 0 ? WEFT__STACK_GUARD_MPROTECT : WEFT__STACK_GUARD_MADVISE;
    return 0;
}

int weft__stacks_init(struct weft__stacks *pool, const struct weft__stacks_options *o)
{
    size_t page = weft__mem_page_bytes();
    size_t slots = o->chunk_slots ? o->chunk_slots : WEFT__STACK_CHUNK_SLOTS;
    enum weft__stack_guard guard;

    if (o->stack_bytes == 0 || o->stack_bytes > SIZE_MAX / 4 / slots || o->stack_bytes / WEFT__STACK_UNIT >= UINT32_MAX) return -EINVAL;
    int r = choose_guard(o->guard, &guard);
    if (r < 0) return r;
    size_t guard_min = guard == WEFT__STACK_GUARD_MADVISE ? WEFT__STACK_GUARD_BYTES : page;
    *pool = (struct weft__stacks){
        .stack_bytes = weft__round_up(o->stack_bytes, page),
        .guard_bytes = weft__round_up(guard_min, page),
        .chunk_slots = slots,
        .guard = guard,
    };
    weft__lock_init(&pool->lock, WEFT__RANK_SLAB);
    weft__link_init(&pool->warm);
    weft__link_init(&pool->cold);
    return 0;
}

void weft__stacks_done(struct weft__stacks *pool)
{
    weft_assert(pool->in_use_count == 0); /* somebody may still run on it */
    while (pool->chunks) {
        struct weft__stack_chunk *c = pool->chunks;
        pool->chunks = c->next;
        chunk_free(c);
    }
}

/* holds: lock */
static struct weft__stack *take_free(struct weft__stacks *pool)
{
    weft__lock_assert_held(&pool->lock);
    struct weft__link *link = weft__list_pop_front(&pool->warm);
    if (link) {
        pool->warm_count--;
    } else {
        link = weft__list_pop_front(&pool->cold);
    }
    return link ? stack_of(link) : NULL;
}

/* holds: lock */
static void mark_used(struct weft__stacks *pool, struct weft__stack *s)
{
    weft__lock_assert_held(&pool->lock);
    weft_assert(!s->in_use);
    s->in_use = true;
    pool->in_use_count++;
}

/* Map a chunk and take its first slot. Two threads may both find the pool empty and both map:
 * the second chunk is used next. */
static int grow(struct weft__stacks *pool, struct weft__stack **into)
{
    struct weft__stack_chunk *c;
    int r = chunk_new(pool, &c);
    if (r < 0) return r;

    weft__lock_take(&pool->lock);
    c->next = pool->chunks;
    pool->chunks = c;
    pool->slot_count += c->slot_count;
    for (size_t i = 1; i < c->slot_count; i++)
        weft__list_push_back(&pool->cold, &c->slots[i].link);
    mark_used(pool, &c->slots[0]);
    weft__lock_drop(&pool->lock);
    *into = &c->slots[0];
    return 0;
}

/* Called by the slot's only user. A mapping that refuses the cheap guard, as locked memory does
 * on some kernels, gets the other kind, as large. */
static int install_guard(struct weft__stacks *pool, struct weft__stack *s)
{
    char *lo = s->lo - pool->guard_bytes;
    int r = -EINVAL;

    if (pool->guard == WEFT__STACK_GUARD_MADVISE) r = weft__mem_guard(lo, pool->guard_bytes);
    if (r == -EINVAL) r = weft__mem_protect(lo, pool->guard_bytes);
    s->guarded = r == 0;
    return r;
}

static void give_back_cold(struct weft__stacks *pool, struct weft__stack *s)
{
    weft__lock_take(&pool->lock);
    s->in_use = false;
    pool->in_use_count--;
    weft__list_push_front(&pool->cold, &s->link);
    weft__lock_drop(&pool->lock);
}

int weft__stack_get(struct weft__stacks *pool, struct weft__stack **into)
{
    int r = 0;

    weft__lock_take(&pool->lock);
    struct weft__stack *s = take_free(pool);
    if (s) mark_used(pool, s);
    weft__lock_drop(&pool->lock);

    if (!s) r = grow(pool, &s);
    if (r < 0) return r;
    if (!s->guarded) r = install_guard(pool, s);
    if (r < 0) {
        give_back_cold(pool, s);
        return r;
    }
    *into = s;
    return 0;
}

/* holds: lock */
static void put_warm(struct weft__stacks *pool, struct weft__stack *s)
{
    weft__lock_assert_held(&pool->lock);
    weft_assert(s->in_use); /* not put twice */
    s->in_use = false;
    pool->in_use_count--;
    weft__list_push_front(&pool->warm, &s->link);
    pool->warm_count++;
}

void weft__stack_put(struct weft__stacks *pool, struct weft__stack *s)
{
    FORGET_FRAMES(s);
    weft__lock_take(&pool->lock);
    put_warm(pool, s);
    weft__lock_drop(&pool->lock);
}

/* ---- magazines ------------------------------------------------------------------------------- */

int weft__stack_get_by(struct weft__stack_magazine *magazine, struct weft__stacks *pool, struct weft__stack **into)
{
    if (!magazine || magazine->pool != pool || magazine->count == 0) return weft__stack_get(pool, into);
    *into = magazine->stack[--magazine->count];
    return 0;
}

void weft__stack_put_by(struct weft__stack_magazine *magazine, struct weft__stacks *pool, struct weft__stack *s)
{
    if (!magazine || magazine->pool != pool || magazine->count == WEFT__STACK_MAGAZINE) {
        weft__stack_put(pool, s);
        return;
    }
    FORGET_FRAMES(s);
    magazine->stack[magazine->count++] = s;
}

void weft__stack_magazine_flush(struct weft__stack_magazine *magazine)
{
    if (magazine->count == 0) return;
    weft__lock_take(&magazine->pool->lock);
    for (uint32_t i = 0; i < magazine->count; i++) put_warm(magazine->pool, magazine->stack[i]); /* the last used goes to the front */
    weft__lock_drop(&magazine->pool->lock);
    magazine->count = 0;
}

/* ---- trim ------------------------------------------------------------------------------------ */

/* Take up to a batch of the longest unused warm slots, but leave `keep`. They count as in use
 * while they are out. */
static size_t trim_take(struct weft__stacks *pool, size_t keep, struct weft__link *into)
{
    size_t taken = 0;

    weft__lock_take(&pool->lock);
    for (; taken < WEFT__STACK_TRIM_BATCH && pool->warm_count > keep; taken++) {
        struct weft__link *coldest = pool->warm.prev;
        weft__list_remove(coldest);
        weft__list_push_back(into, coldest);
        pool->warm_count--;
        mark_used(pool, stack_of(coldest));
    }
    weft__lock_drop(&pool->lock);
    return taken;
}

size_t weft__stacks_trim_some(struct weft__stacks *pool, size_t keep)
{
    struct weft__link batch = WEFT__LIST_INIT(batch);
    size_t taken = trim_take(pool, keep, &batch);

    while (!weft__list_empty(&batch)) {
        struct weft__stack *s = stack_of(weft__list_pop_front(&batch));
        (void)weft__mem_discard(s->lo, weft__stack_bytes(s)); /* locked memory keeps its pages, as it must */
        give_back_cold(pool, s);
    }
    return taken;
}

size_t weft__stacks_trim(struct weft__stacks *pool, size_t keep)
{
    size_t trimmed = 0;

    /* What others put meanwhile is not waited for: the goal bounds the work. */
    weft__lock_take(&pool->lock);
    size_t goal = pool->warm_count > keep ? pool->warm_count - keep : 0;
    weft__lock_drop(&pool->lock);
    while (trimmed < goal) {
        size_t some = weft__stacks_trim_some(pool, keep);
        if (some == 0) break;
        trimmed += some;
    }
    return trimmed;
}

bool weft__stacks_are_warm(struct weft__stacks *pool, size_t keep)
{
    weft__lock_take(&pool->lock);
    bool warm = pool->warm_count > keep;
    weft__lock_drop(&pool->lock);
    return warm;
}

/* ---- looking --------------------------------------------------------------------------------- */

bool weft__stack_find(const void *addr, struct weft__stack_hit *into)
{
    struct weft__stackdir_span span;
    if (!weft__stackdir_find(addr, &span)) return false;

    size_t offset = (size_t)((const char *)addr - span.base);
    into->owner = span.owner;
    into->index = offset / span.slot_bytes;
    into->guard_lo = span.base + into->index * span.slot_bytes;
    into->guard_bytes = span.guard_bytes;
    into->lo = into->guard_lo + span.guard_bytes;
    into->bytes = span.slot_bytes - span.guard_bytes;
    into->in_guard = offset % span.slot_bytes < span.guard_bytes;
    return true;
}

void weft__stacks_check(struct weft__stacks *pool)
{
    size_t warm = 0;
    size_t cold = 0;
    size_t in_use = 0;
    size_t slots = 0;

    weft__lock_take(&pool->lock);
    weft__list_each (it, &pool->warm)
        warm += !stack_of(it)->in_use && stack_of(it)->guarded;
    weft__list_each (it, &pool->cold)
        cold += !stack_of(it)->in_use;
    for (struct weft__stack_chunk *c = pool->chunks; c; c = c->next) {
        slots += c->slot_count;
        for (size_t i = 0; i < c->slot_count; i++)
            in_use += c->slots[i].in_use;
    }
    weft_assert(warm == pool->warm_count);
    weft_assert(in_use == pool->in_use_count);
    weft_assert(slots == pool->slot_count);
    weft_assert(in_use + warm + cold == slots);
    weft__lock_drop(&pool->lock);
}
