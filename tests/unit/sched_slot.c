/* SPDX-License-Identifier: MIT
 *
 * The `next` slot, by one thread: who gets what out of it.
 */
#include "sched/slot.h"
#include "test.h"

static struct weft_task a;
static struct weft_task b;

TEST(slot_gives_back_what_was_put)
{
    struct weft__slot slot;

    weft__slot_init(&slot);
    ASSERT(weft__slot_empty(&slot));
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT(!weft__slot_empty(&slot));
    ASSERT_PTR(weft__slot_take(&slot), &a);
    ASSERT(weft__slot_empty(&slot));
}

TEST(slot_put_hands_the_occupant_to_its_caller)
{
    struct weft__slot slot;

    weft__slot_init(&slot);
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(weft__slot_put(&slot, &b), &a);
    ASSERT_PTR(weft__slot_take(&slot), &b);
    ASSERT_NULL(weft__slot_take(&slot));
}

TEST(slot_can_be_stolen_from_once)
{
    struct weft__slot slot;

    weft__slot_init(&slot);
    ASSERT_NULL(weft__slot_steal(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(weft__slot_steal(&slot), &a);
    ASSERT_NULL(weft__slot_steal(&slot));
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &b)); /* a thief leaves it as good as empty */
    ASSERT_PTR(weft__slot_take(&slot), &b);
}
