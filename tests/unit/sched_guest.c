/* SPDX-License-Identifier: MIT
 *
 * Guests without a runtime: who gets which, and what becomes of their memory.
 */
#include "sched/guest.h"

#include "slab_fixture.h"

#include <pthread.h>

#define BYTES 96

struct fixture {
    struct source source;
    struct weft__slab_group group;
    struct weft__guests guests;
    struct weft__slab worker;
};

/* slab_fixture's, with this group's guests behind it. */
static void *map(void *ctx, size_t bytes, size_t align)
{
    return source_map(&((struct fixture *)ctx)->source, bytes, align);
}

static void unmap(void *ctx, void *memory, size_t bytes)
{
    source_unmap(&((struct fixture *)ctx)->source, memory, bytes);
}

static struct weft__slab *spare_take(void *ctx)
{
    return weft__guests_spare_take(&((struct fixture *)ctx)->guests);
}

static void spare_give(void *ctx, struct weft__slab *slab)
{
    weft__guests_spare_give(&((struct fixture *)ctx)->guests, slab);
}

static void start(struct fixture *f)
{
    *f = (struct fixture){.source = {0}};
    weft__slab_group_init(&f->group, &(struct weft__slab_source){.map = map,
                                                                 .unmap = unmap,
                                                                 .ctx = f,
                                                                 .spare_take = spare_take,
                                                                 .spare_give = spare_give});
    weft__guests_init(&f->guests, &f->group);
    weft__slab_init(&f->worker, &f->group);
}

static void finish(struct fixture *f)
{
    ASSERT_EQ(weft__slab_group_check(&f->group), 0);
    weft__guests_close(&f->guests);
    ASSERT_EQ(weft__guests_out(&f->guests) + load_relaxed(&f->worker.allocated) -
                  load_relaxed(&f->worker.freed),
              0);
    weft__slab_group_done(&f->group, false);
    weft__guests_done(&f->guests);
    ASSERT_EQ(f->source.mapped, 0);
}

static void on_a_thread(void *(*body)(void *), struct fixture *f)
{
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, body, f));
    ASSERT_OK(pthread_join(thread, NULL));
}

static void *makes_and_drops_two(void *arg)
{
    struct fixture *f = arg;
    struct weft__slab *slab = weft__guest_slab(&f->guests);
    ASSERT_PTR(weft__guest_slab(&f->guests), slab);
    void *one = make(slab, BYTES);
    void *two = make(slab, BYTES);
    drop(slab, one);
    drop(slab, two);
    return NULL;
}

/* Two blocks to borrow, then the rest of the chunk by adoption: nothing is mapped for it. */
TEST(guest_idle_memory_is_adopted_before_any_is_mapped)
{
    struct fixture f;
    void *blocks[600];
    start(&f);
    on_a_thread(makes_and_drops_two, &f);
    uint32_t maps = load_relaxed(&f.source.maps);
    for (int i = 0; i < 600; i++)
        ASSERT(blocks[i] = make(&f.worker, BYTES));
    ASSERT_EQ(load_relaxed(&f.source.maps), maps);
    ASSERT_NULL(f.guests.idle);
    ASSERT(f.guests.adopted);
    for (int i = 0; i < 600; i++)
        drop(&f.worker, blocks[i]);
    on_a_thread(makes_and_drops_two, &f); /* the emptied one serves again: it borrows, or maps */
    ASSERT_EQ(weft__guests_count(&f.guests), 1);
    finish(&f);
}

static void *sits_down(void *arg)
{
    struct fixture *f = arg;
    for (int i = 0; i < 6; i++)
        ASSERT(weft__guest_slab(&f[i].guests));
    for (int i = 5; i >= 0; i--)
        ASSERT(weft__guest_slab(&f[i].guests));
    return NULL;
}

/* Six groups for four seats: who has to leave is idle, and is found again. */
TEST(guest_leaves_a_seat_that_another_group_wants)
{
    struct fixture *f = calloc(6, sizeof(*f));
    for (int i = 0; i < 6; i++)
        start(&f[i]);
    on_a_thread(sits_down, f);
    for (int i = 0; i < 6; i++) {
        ASSERT_EQ(weft__guests_count(&f[i].guests), 1);
        ASSERT(f[i].guests.idle);
        finish(&f[i]);
    }
    free(f);
}

/* A seat of a group that is gone is no seat of the next one in the same place. */
TEST(guest_of_a_group_that_is_gone_is_not_found)
{
    struct fixture f;
    for (int i = 0; i < 10; i++) {
        start(&f);
        struct weft__slab *slab = weft__guest_slab(&f.guests);
        ASSERT_PTR(slab->group, &f.group);
        ASSERT_EQ(weft__guests_count(&f.guests), 1);
        finish(&f);
    }
}
