/* SPDX-License-Identifier: MIT
 *
 * The state word: every arrow of the drawing in task/state.h, what each answers, and every misuse
 * that it asserts.
 */
#include "task/state.h"
#include "test.h"

#include <errno.h>
#include <signal.h>

#define A WEFT__STATE_ALIVE
#define S WEFT__STATE_SCHED
#define N WEFT__STATE_NOTIFIED
#define X WEFT__STATE_CANCELLED
#define C WEFT__STATE_COMPLETE

/* A task with these flags and references, in its 8th life. */
static struct weft_task task_with(uint64_t flags, uint32_t references)
{
    struct weft_task t = {.site = NULL};
    store_relaxed(&t.state, UINT64_C(7) << WEFT__STATE_GEN_SHIFT |
                                (uint64_t)references << WEFT__STATE_REF_SHIFT | flags);
    return t;
}

/* Flags and references are these, the generation is still 7, and the word is one of the possible
 * ones. */
static void assert_word(const struct weft_task *t, uint64_t flags, uint32_t references)
{
    uint64_t word = weft__state_look(t);
    weft__state_check(word);
    ASSERT_EQ(word & WEFT__STATE_FLAGS, flags);
    ASSERT_EQ(weft__state_references(t), references);
    ASSERT_EQ(weft__state_generation(t), 7);
}

TEST(state_init_makes_a_queued_task_and_keeps_the_generation)
{
    struct weft_task t = task_with(0, 0);
    weft__state_init(&t, 2);
    assert_word(&t, A | S, 2);
}

TEST(state_claim_gives_the_right_to_one_caller)
{
    struct weft_task t = task_with(A, 1);
    ASSERT_EQ(weft__state_claim(&t), WEFT__STATE_ENQUEUE);
    assert_word(&t, A | S, 1);
    ASSERT_EQ(weft__state_claim(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | S | N, 1);
    ASSERT_EQ(weft__state_claim(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | S | N, 1);
}

TEST(state_claim_of_a_complete_task_does_nothing)
{
    struct weft_task t = task_with(A | C, 1);
    ASSERT_EQ(weft__state_claim(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | C, 1);
}

TEST(state_begin_poll_takes_the_wake_that_came_before_it)
{
    struct weft_task t = task_with(A | S | N | X, 3);
    ASSERT_EQ(weft__state_begin_poll(&t) & WEFT__STATE_FLAGS, A | S | X);
    assert_word(&t, A | S | X, 3);
    ASSERT_EQ(weft__state_begin_poll(&t) & WEFT__STATE_FLAGS, A | S | X);
    assert_word(&t, A | S | X, 3);
    ASSERT_EQ(weft__state_end_poll(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | X, 3);
}

TEST(state_end_poll_requeues_when_a_wake_came_during_it)
{
    struct weft_task t = task_with(A | S, 0);
    weft__state_begin_poll(&t);
    ASSERT_EQ(weft__state_claim(&t), WEFT__STATE_NOTHING);
    ASSERT_EQ(weft__state_end_poll(&t), WEFT__STATE_REQUEUE);
    assert_word(&t, A | S, 0);
    ASSERT_EQ(weft__state_end_poll(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A, 0);
}

TEST(state_cancel_claims_in_the_same_step)
{
    struct weft_task idle = task_with(A, 1);
    ASSERT(!weft__state_is_cancelled(&idle));
    ASSERT_EQ(weft__state_cancel(&idle), WEFT__STATE_ENQUEUE);
    assert_word(&idle, A | S | X, 1);
    ASSERT(weft__state_is_cancelled(&idle));

    struct weft_task running = task_with(A | S, 1);
    ASSERT_EQ(weft__state_cancel(&running), WEFT__STATE_NOTHING);
    assert_word(&running, A | S | N | X, 1);
}

TEST(state_cancel_happens_once_and_not_after_the_end)
{
    struct weft_task twice = task_with(A | X, 1);
    ASSERT_EQ(weft__state_cancel(&twice), WEFT__STATE_NOTHING);
    assert_word(&twice, A | X, 1);

    struct weft_task ended = task_with(A | C, 1);
    ASSERT_EQ(weft__state_cancel(&ended), WEFT__STATE_NOTHING);
    assert_word(&ended, A | C, 1);
}

TEST(state_cancel_by_id_spares_other_lives_of_the_block)
{
    struct weft_task t = task_with(A, 1);
    ASSERT_EQ(weft__state_cancel_id(&t, 6), WEFT__STATE_NOTHING);
    assert_word(&t, A, 1);
    ASSERT_EQ(weft__state_cancel_id(&t, 7), WEFT__STATE_ENQUEUE);
    assert_word(&t, A | S | X, 1);

    struct weft_task gone = task_with(0, 0);
    ASSERT_EQ(weft__state_cancel_id(&gone, 7), WEFT__STATE_NOTHING);
    assert_word(&gone, 0, 0);
}

TEST(state_complete_without_references_tells_the_completer_to_free)
{
    struct weft_task t = task_with(A | S | N | X, 0);
    ASSERT_EQ(weft__state_complete(&t), WEFT__STATE_FREE);
    assert_word(&t, A | X | C, 0);
}

TEST(state_complete_with_references_leaves_the_block_to_them)
{
    struct weft_task t = task_with(A | S, 2);
    ASSERT(!weft__state_is_complete(&t));
    ASSERT_EQ(weft__state_complete(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | C, 2);
    ASSERT(weft__state_is_complete(&t));
    ASSERT_EQ(weft__state_unref(&t), WEFT__STATE_NOTHING);
    ASSERT_EQ(weft__state_unref(&t), WEFT__STATE_FREE);
    assert_word(&t, A | C, 0);
}

TEST(state_complete_keeps_a_wake_that_nobody_will_look_at)
{
    struct weft_task t = task_with(A | S | N, 1);
    ASSERT_EQ(weft__state_complete(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | C | N, 1);
}

TEST(state_last_reference_of_a_running_task_frees_nothing)
{
    struct weft_task t = task_with(A | S, 1);
    ASSERT_EQ(weft__state_unref(&t), WEFT__STATE_NOTHING);
    ASSERT_EQ(weft__state_complete(&t), WEFT__STATE_FREE);
}

TEST(state_ref_counts_up_to_its_limit)
{
    struct weft_task t = task_with(A | S, 0);
    ASSERT_OK(weft__state_ref(&t));
    assert_word(&t, A | S, 1);

    struct weft_task full = task_with(A, WEFT__STATE_REFS_MAX - 1);
    ASSERT_OK(weft__state_ref(&full));
    ASSERT_EQ(weft__state_ref(&full), -EOVERFLOW);
    assert_word(&full, A, WEFT__STATE_REFS_MAX);
}

TEST(state_free_ends_one_life_and_makes_room_for_the_next)
{
    struct weft_task t = task_with(A | C | X, 0);
    ASSERT(weft__state_lives(&t, 7));
    ASSERT(!weft__state_lives(&t, 8));
    weft__state_free(&t);
    ASSERT_EQ(weft__state_look(&t), UINT64_C(8) << WEFT__STATE_GEN_SHIFT);
    ASSERT(!weft__state_lives(&t, 8));
    weft__state_init(&t, 1);
    ASSERT(weft__state_lives(&t, 8));
    ASSERT(!weft__state_lives(&t, 7));
}

TEST(state_generation_wraps_into_nothing_else)
{
    struct weft_task t = {.site = NULL};
    store_relaxed(&t.state, UINT64_C(0xffffffff) << WEFT__STATE_GEN_SHIFT | A | C);
    weft__state_free(&t);
    ASSERT_EQ(weft__state_look(&t), 0);
}

/* ---- places ---- */

TEST(state_home_is_a_place_and_no_background)
{
    for (uint32_t i = 0; i < WEFT__WORKERS_MAX; i++) {
        uint64_t place = weft__state_home(i);
        ASSERT(place != 0);
        ASSERT_EQ(place & ~WEFT__STATE_PLACE, 0);
        ASSERT(place != WEFT__STATE_BACKGROUND);
    }
}

TEST(state_place_lasts_until_the_block_is_free)
{
    struct weft_task t = task_with(0, 0);
    const uint64_t home = weft__state_home(3) | WEFT__STATE_UNBUDGETED;
    weft__state_init(&t, 1);
    weft__state_born_with(&t, home);
    assert_word(&t, A | S | home, 1);
    ASSERT_EQ(weft__state_begin_poll(&t) & WEFT__STATE_FLAGS, A | S | home);
    ASSERT_EQ(weft__state_end_poll(&t), WEFT__STATE_NOTHING);
    ASSERT_EQ(weft__state_claim(&t), WEFT__STATE_ENQUEUE);
    ASSERT_EQ(weft__state_cancel(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | S | N | X | home, 1);
    (void)weft__state_begin_poll(&t);
    ASSERT_EQ(weft__state_complete(&t), WEFT__STATE_NOTHING);
    assert_word(&t, A | C | X | home, 1);
    ASSERT_EQ(weft__state_unref(&t), WEFT__STATE_FREE);
    weft__state_free(&t);
    ASSERT_EQ(weft__state_look(&t) & WEFT__STATE_FLAGS, 0);
}

TEST(state_place_changes_nothing_else)
{
    struct weft_task t = task_with(A | S | N | X | WEFT__STATE_UNBUDGETED, 3);
    const uint64_t rest = A | S | N | X | WEFT__STATE_UNBUDGETED;
    weft__state_place(&t, weft__state_home(0) | WEFT__STATE_PIN_BLOCK);
    assert_word(&t, rest | weft__state_home(0) | WEFT__STATE_PIN_BLOCK, 3);
    weft__state_place(&t, WEFT__STATE_BACKGROUND);
    assert_word(&t, rest | WEFT__STATE_BACKGROUND, 3);
    weft__state_place(&t, 0);
    assert_word(&t, rest, 3);
}

TEST(state_check_accepts_every_word_of_the_drawing)
{
    static const uint64_t good[] = {0,         A,         A | S,         A | S | N,
                                    A | X,     A | S | X, A | S | N | X, A | C,
                                    A | C | X, A | C | N, A | C | N | X};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        weft__state_check(good[i]);
}

#define MISUSE(name) TEST_WITH(name, .timeout_s = 60, .signal = SIGABRT)

MISUSE(state_check_refuses_flags_without_alive)
{
    weft__state_check(S);
}

MISUSE(state_check_refuses_references_to_a_free_block)
{
    weft__state_check(WEFT__STATE_REF);
}

MISUSE(state_check_refuses_complete_and_scheduled)
{
    weft__state_check(A | C | S);
}

MISUSE(state_check_refuses_notified_and_idle)
{
    weft__state_check(A | N);
}

MISUSE(state_check_refuses_a_flag_nobody_knows)
{
    weft__state_check(A | UINT64_C(0x80));
}

MISUSE(state_init_of_a_living_task)
{
    struct weft_task t = task_with(A, 0);
    weft__state_init(&t, 1);
}

MISUSE(state_init_with_too_many_references)
{
    struct weft_task t = task_with(0, 0);
    weft__state_init(&t, WEFT__STATE_REFS_MAX + 1);
}

MISUSE(state_complete_by_one_who_may_not_poll)
{
    struct weft_task t = task_with(A, 0);
    weft__state_complete(&t);
}

MISUSE(state_complete_twice)
{
    struct weft_task t = task_with(A | S, 1);
    weft__state_complete(&t);
    weft__state_complete(&t);
}

MISUSE(state_unref_without_references)
{
    struct weft_task t = task_with(A | C, 0);
    weft__state_unref(&t);
}

MISUSE(state_unref_of_a_free_block)
{
    struct weft_task t = task_with(0, 0);
    weft__state_unref(&t);
}

MISUSE(state_ref_of_a_free_block)
{
    struct weft_task t = task_with(0, 0);
    (void)weft__state_ref(&t);
}

MISUSE(state_free_of_a_running_task)
{
    struct weft_task t = task_with(A | S, 0);
    weft__state_free(&t);
}

MISUSE(state_free_with_references)
{
    struct weft_task t = task_with(A | C, 1);
    weft__state_free(&t);
}

#if defined(WEFT_DEBUG) /* facts on the hot path, asserted in debug builds */
MISUSE(state_claim_of_a_free_block)
{
    struct weft_task t = task_with(0, 0);
    weft__state_claim(&t);
}

MISUSE(state_cancel_of_a_free_block)
{
    struct weft_task t = task_with(0, 0);
    weft__state_cancel(&t);
}

MISUSE(state_begin_poll_of_an_idle_task)
{
    struct weft_task t = task_with(A, 0);
    weft__state_begin_poll(&t);
}

MISUSE(state_begin_poll_of_a_complete_task)
{
    struct weft_task t = task_with(A | C | S, 0);
    weft__state_begin_poll(&t);
}

MISUSE(state_end_poll_of_an_idle_task)
{
    struct weft_task t = task_with(A, 0);
    weft__state_end_poll(&t);
}

MISUSE(state_end_poll_of_a_complete_task)
{
    struct weft_task t = task_with(A | S | C, 0);
    weft__state_end_poll(&t);
}
#endif
