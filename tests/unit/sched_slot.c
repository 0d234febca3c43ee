/* SPDX-License-Identifier: MIT
 *
 * The `next` slot, by one thread: who gets what out of it.
 */
#include "base/fault.h"
#include "sched/slot.h"
#include "test.h"

#include <errno.h>

static struct weft_task a;
static struct weft_task b;

TEST(slot_gives_back_what_was_put)
{
    struct weft__slot slot;

    weft__slot_init(&slot, false);
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

    weft__slot_init(&slot, false);
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(weft__slot_put(&slot, &b), &a);
    ASSERT_PTR(weft__slot_take(&slot), &b);
    ASSERT_NULL(weft__slot_take(&slot));
}

TEST(slot_is_held_for_the_task_that_is_in_it)
{
    struct weft__slot slot;

    weft__slot_init(&slot, false);
    ASSERT(!weft__slot_hold_if(&slot, &a));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT(!weft__slot_hold_if(&slot, &b));
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT(weft__slot_hold_if(&slot, &a));
    ASSERT(!weft__slot_within_reach(&slot));
    ASSERT_NULL(weft__slot_steal(&slot));
    weft__slot_let_go(&slot);
    ASSERT_PTR(weft__slot_steal(&slot), &a);
    weft__slot_init(&slot, true);
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT(!weft__slot_hold_if(&slot, &a)); /* all use read-modify-writes */
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT_PTR(weft__slot_take(&slot), &a);
}

TEST(slot_can_be_stolen_from_once)
{
    struct weft__slot slot;

    weft__slot_init(&slot, false);
    ASSERT_NULL(weft__slot_steal(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(weft__slot_steal(&slot), &a);
    ASSERT_NULL(weft__slot_steal(&slot));
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &b)); /* a thief leaves it as good as empty */
    ASSERT_PTR(weft__slot_take(&slot), &b);
}

TEST(slot_shared_is_used_as_any_other)
{
    struct weft__slot slot;

    weft__slot_init(&slot, true);
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT_PTR(weft__slot_put(&slot, &b), &a);
    ASSERT_PTR(weft__slot_steal(&slot), &b);
    ASSERT(!weft__slot_within_reach(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(weft__slot_take(&slot), &a);
}

#if defined(WEFT_FAULTS)
/* No membarrier any more: a thief gets nothing until the owner has seen its word; the owner gets all that it ever got. */
TEST(slot_is_shared_once_the_owner_knows)
{
    struct weft__slot slot;

    weft__slot_init(&slot, false);
    ASSERT_NULL(weft__slot_put(&slot, &a));
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, UINT32_MAX, -EPERM);
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT_NULL(weft__slot_steal(&slot));
    ASSERT(!weft__slot_within_reach(&slot));
    ASSERT(!weft__slot_empty(&slot));
    ASSERT_PTR(weft__slot_take(&slot), &a);
    ASSERT_NULL(weft__slot_put(&slot, &b));
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT_PTR(weft__slot_steal(&slot), &b);
    weft__fault_reset();
}
#endif
