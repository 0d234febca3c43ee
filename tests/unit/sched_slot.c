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

/* Of a slot that has one task at most. */
static struct weft_task *steal(struct weft__slot *slot)
{
    struct weft_task *got[WEFT__SLOT_MOST];
    uint32_t count = weft__slot_steal(slot, got);

    ASSERT_LE(count, 1);
    return count ? got[0] : NULL;
}

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
    ASSERT_NULL(steal(&slot));
    weft__slot_let_go(&slot);
    ASSERT_PTR(steal(&slot), &a);
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
    ASSERT_NULL(steal(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(steal(&slot), &a);
    ASSERT_NULL(steal(&slot));
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &b)); /* a thief leaves it as good as empty */
    ASSERT_PTR(weft__slot_take(&slot), &b);
}

static struct weft_task hand[WEFT__HAND];

static void deal(struct weft__slot *slot, uint32_t count)
{
    struct weft_task *tasks[WEFT__HAND];

    for (uint32_t i = 0; i < count; i++) tasks[i] = &hand[i];
    weft__slot_deal(slot, tasks, count);
}

TEST(slot_hand_is_played_in_its_order)
{
    struct weft__slot slot;

    weft__slot_init(&slot, false);
    ASSERT(!weft__slot_is_shared(&slot));
    for (uint32_t count = 0; count <= WEFT__HAND; count++) {
        ASSERT(!weft__slot_has_hand(&slot));
        ASSERT_NULL(weft__slot_play(&slot));
        deal(&slot, count);
        for (uint32_t i = 0; i < count; i++) {
            ASSERT(weft__slot_has_hand(&slot));
            ASSERT_EQ(weft__slot_hand(&slot), count - i);
            ASSERT_PTR(weft__slot_play(&slot), &hand[i]);
        }
        ASSERT_EQ(weft__slot_hand(&slot), 0);
    }
}

TEST(slot_next_and_hand_do_not_mix)
{
    struct weft__slot slot;

    weft__slot_init(&slot, false);
    deal(&slot, 2);
    ASSERT(weft__slot_empty(&slot));
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_EQ(weft__slot_hand(&slot), 2);
    ASSERT_EQ(weft__slot_within_reach(&slot), 3);
    ASSERT_PTR(weft__slot_play(&slot), &hand[0]);
    ASSERT_PTR(weft__slot_take(&slot), &a);
    ASSERT_PTR(weft__slot_play(&slot), &hand[1]);
}

/* A thief gets what is left of the hand, oldest first, and `next` behind it; the owner finds it played. */
TEST(slot_is_stolen_whole)
{
    struct weft__slot slot;
    struct weft_task *got[WEFT__SLOT_MOST];

    weft__slot_init(&slot, false);
    deal(&slot, 3);
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT_PTR(weft__slot_play(&slot), &hand[0]);
    ASSERT_EQ(weft__slot_steal(&slot, got), 3);
    ASSERT_PTR(got[0], &hand[1]);
    ASSERT_PTR(got[1], &hand[2]);
    ASSERT_PTR(got[2], &a);
    ASSERT_EQ(weft__slot_within_reach(&slot), 0); /* though the owner has not seen it yet */
    ASSERT_EQ(weft__slot_steal(&slot, got), 0);
    ASSERT(weft__slot_has_hand(&slot));
    ASSERT_NULL(weft__slot_play(&slot));
    ASSERT(!weft__slot_has_hand(&slot));
    deal(&slot, WEFT__HAND);
    ASSERT_NULL(weft__slot_put(&slot, &b));
    ASSERT_EQ(weft__slot_steal(&slot, got), WEFT__SLOT_MOST);
    ASSERT_PTR(got[WEFT__HAND], &b);
}

/* An owner whose slot is empty learns it, too, before it deals or at its tick. */
TEST(slot_is_shared_when_a_thief_has_left_its_word)
{
    struct weft__slot slot;

    weft__slot_init(&slot, true);
    ASSERT(weft__slot_is_shared(&slot));
    weft__slot_init(&slot, false);
    ASSERT(!weft__slot_is_shared(&slot));
    deal(&slot, 2);
    (void)fetch_or_relaxed(&slot.thieves, WEFT__SLOT_FOR_GOOD); /* relaxed: one thread */
    ASSERT_EQ(weft__slot_within_reach(&slot), 0);
    ASSERT(weft__slot_is_shared(&slot));
    ASSERT_EQ(weft__slot_within_reach(&slot), 2);
    ASSERT_PTR(weft__slot_play(&slot), &hand[0]);
    ASSERT_PTR(weft__slot_play(&slot), &hand[1]);
}

TEST(slot_shared_is_used_as_any_other)
{
    struct weft__slot slot;

    weft__slot_init(&slot, true);
    ASSERT_NULL(weft__slot_take(&slot));
    ASSERT_NULL(weft__slot_put(&slot, &a));
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT_PTR(weft__slot_put(&slot, &b), &a);
    ASSERT_PTR(steal(&slot), &b);
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
    ASSERT_NULL(steal(&slot));
    ASSERT(!weft__slot_within_reach(&slot));
    ASSERT(!weft__slot_empty(&slot));
    ASSERT_PTR(weft__slot_take(&slot), &a);
    ASSERT_NULL(weft__slot_put(&slot, &b));
    ASSERT(weft__slot_within_reach(&slot));
    ASSERT_PTR(steal(&slot), &b);
    weft__fault_reset();
}
#endif
