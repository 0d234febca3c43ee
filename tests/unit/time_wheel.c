/* SPDX-License-Identifier: MIT
 *
 * The timer wheel: what fires, when and in which order, at all distances and at the ends of time. With many: time_wheel_many.c.
 */
#include "wheel.h"

#include <signal.h>

/* ---- one timer ------------------------------------------------------------------------------- */

/* At each distance: not one nanosecond before its deadline, and no look too many on the way. */
TEST(wheel_fires_at_the_deadline_and_not_before)
{
    for (unsigned bit = 0; bit < 62; bit++) {
        struct fixture *f = fixture_at(START);
        int64_t when = START + (INT64_C(1) << bit);
        arm_at(f, 0, when);
        ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), when);
        ASSERT_EQ(turn(f, when - 1, MANY), 0);
        ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), when);
        ASSERT_EQ(turn(f, when, MANY), 1);
        ASSERT(weft__timer_take_granted(&f->timers[0]));
        ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MAX);
        weft__timer_check_out(&f->timers[0]);
        weft__wheel_done(&f->wheel);
    }
}

TEST(wheel_fires_what_is_past_at_the_next_turn)
{
    struct fixture *f = fixture_at(START);

    arm_at(f, 0, START - HOUR);
    arm_at(f, 1, START);
    arm_at(f, 2, 0);
    arm_at(f, 3, INT64_MIN);
    ASSERT(weft__wheel_due(&f->wheel, START));
    ASSERT_EQ(turn(f, START, MANY), 4);
}

/* The end of time does not come, not even at the last nanosecond before it. */
TEST(wheel_keeps_what_is_never_due)
{
    struct fixture *f = fixture_at(START);

    arm_at(f, 0, INT64_MAX);
    arm_after(f, 1, INT64_MAX);
    ASSERT_EQ(turn(f, START, MANY), 0);
    ASSERT_EQ(f->timers[1].when, INT64_MAX);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MAX);
    ASSERT_EQ(turn_all(f, INT64_MAX - 1), 0);
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[1], WEFT__BY_ANY));
    weft__wheel_done(&f->wheel);
}

TEST(wheel_cancel_tells_whether_it_had_fired)
{
    struct fixture *f = fixture_at(START);

    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY)); /* never armed */
    arm_at(f, 0, START + 5);
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY));
    ASSERT_EQ(turn(f, START + 5, MANY), 0);
    arm_at(f, 0, START + 9);
    ASSERT_EQ(turn(f, START + 9, MANY), 1);
    ASSERT(weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY));
}

/* A task that was notified already: the timer fires all the same, but nothing is granted by it. */
TEST(wheel_fires_for_a_task_that_is_queued_already)
{
    struct fixture *f = fixture_at(START);

    arm_at(f, 0, START + 1);
    ASSERT_EQ(weft__state_claim(&f->tasks[0]), WEFT__STATE_ENQUEUE);
    ASSERT_EQ(turn(f, START + 1, MANY), 1);
    ASSERT_EQ(f->count, 0);
    ASSERT(!weft__timer_take_granted(&f->timers[0]));
    ASSERT(weft__wheel_fired(&f->wheel, &f->timers[0], WEFT__BY_ANY));
    weft__timer_check_out(&f->timers[0]);
}

TEST(wheel_fired_is_false_while_it_is_armed)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 10);
    ASSERT(!weft__wheel_fired(&f->wheel, &f->timers[0], WEFT__BY_ANY));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY));
}

/* ---- relative timers ------------------------------------------------------------------------- */

/* The deadline counts from the reading, not from what the wheel knew before. */
TEST(wheel_stamps_what_is_fresh_by_the_next_reading)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 1000);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MIN); /* somebody is to read the clock */
    ASSERT_EQ(turn(f, START + 700, MANY), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), START + 1700);
    ASSERT_EQ(turn(f, START + 1699, MANY), 0);
    ASSERT_EQ(turn(f, START + 1700, MANY), 1);
}

/* Armed after the gather: the reading may be older, so it does not count for this one. */
TEST(wheel_stamps_nothing_by_an_earlier_reading)
{
    struct fixture *f = fixture_at(START);
    struct weft__reading early;
    struct weft__reading late;

    arm_after(f, 0, 1000);
    ASSERT(weft__wheel_gather(&f->wheel, &early, WEFT__BY_ANY)); /* its clock says START + 10 */
    arm_after(f, 1, 1000);
    ASSERT(weft__wheel_gather(&f->wheel, &late, WEFT__BY_ANY)); /* and this one's START + 500 */
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &early, START + 10, MANY, &f->sched, WEFT__BY_ANY), 0);
    arm_after(f, 2, 1000);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &late, START + 500, MANY, &f->sched, WEFT__BY_ANY), 0);
    ASSERT_EQ(f->timers[0].when, START + 1010);
    ASSERT_EQ(f->timers[1].when, START + 1500);
    ASSERT_EQ(f->timers[2].when, 1000); /* still fresh */
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MIN);
}

/* Another one gathers the owner's timer and is held up before it has read the clock: the owner looks again, and does not sleep past a deadline that nobody
 * has set yet. */
TEST(wheel_is_looked_at_again_while_another_reads_the_clock)
{
    struct fixture *f = fixture_at(START);
    struct weft__reading thief;
    struct weft__reading owner;

    arm_after(f, 0, 1000);
    ASSERT(weft__wheel_gather(&f->wheel, &thief, WEFT__BY_ANY));
    ASSERT(!weft__wheel_gather(&f->wheel, &owner, WEFT__BY_ANY));
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &owner, START + 5, MANY, &f->sched, WEFT__BY_ANY), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MIN);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &thief, START + 7, MANY, &f->sched, WEFT__BY_ANY), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), START + 1007);
    arm_after(f, 1, 10);
    ASSERT(weft__wheel_gather(&f->wheel, &thief, WEFT__BY_ANY));
    ASSERT(!weft__wheel_cancel(
        &f->wheel, &f->timers[1], WEFT__BY_ANY)); /* the reading has nothing left: it counts all the same */
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MIN);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &thief, START + 8, MANY, &f->sched, WEFT__BY_ANY), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), START + 1007);
    ASSERT_EQ(turn(f, START + 1007, MANY), 1);
}

TEST(wheel_cancels_what_a_reading_has_gathered)
{
    struct fixture *f = fixture_at(START);
    struct weft__reading reading;

    arm_after(f, 0, 5);
    arm_after(f, 1, 5);
    ASSERT(weft__wheel_gather(&f->wheel, &reading, WEFT__BY_ANY));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY));
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &reading, START, MANY, &f->sched, WEFT__BY_ANY), 0);
    ASSERT_EQ(turn(f, START + 5, MANY), 1);
    ASSERT_EQ(f->pushed[1], 1);
}

/* A turn may not move them all: the rest is stamped by a later reading, and keeps its order. */
TEST(wheel_leaves_fresh_what_a_turn_cannot_stamp)
{
    struct fixture *f = fixture_at(START);

    for (unsigned i = 0; i < 20; i++)
        arm_after(f, i, 100);
    ASSERT_EQ(turn(f, START, 2), 0);
    ASSERT_EQ(f->timers[7].when, START + 100);
    ASSERT_EQ(f->timers[8].when, 100);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MIN);
    (void)turn_all(f, START + 1);
    ASSERT_EQ(f->timers[19].when, START + 101);
    ASSERT_EQ(turn_all(f, START + 101), 20);
    for (unsigned i = 0; i < 20; i++)
        ASSERT_EQ(f->order[i], i);
}

/* Nobody else arms, so the owner needs no list of what was there before it read the clock. */
TEST(wheel_stamps_by_its_owner_without_a_turn)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 1000);
    arm_after(f, 1, INT64_MAX);
    ASSERT(weft__wheel_stamp(&f->wheel, START + 700));
    weft__wheel_check(&f->wheel);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_OWNER), START + 1700);
    ASSERT_EQ(f->timers[1].when, INT64_MAX);
    ASSERT_EQ(turn(f, START + 1699, MANY), 0);
    ASSERT_EQ(turn(f, START + 1700, MANY), 1);
    (void)weft__wheel_cancel(&f->wheel, &f->timers[1], WEFT__BY_OWNER);
}

/* Another one has turned it since the owner read the clock. */
TEST(wheel_stamps_by_a_reading_that_is_behind)
{
    struct fixture *f = fixture_at(START);

    ASSERT_EQ(turn(f, START + 900, MANY), 0);
    arm_after(f, 0, 100);
    arm_after(f, 1, 1000);
    ASSERT(weft__wheel_stamp(&f->wheel, START + 700));
    weft__wheel_check(&f->wheel);
    ASSERT_EQ(f->timers[0].when, START + 800);
    ASSERT_EQ(turn(f, START + 900, MANY), 1);
    ASSERT_EQ(turn(f, START + 1700, MANY), 1);
}

TEST(wheel_leaves_to_a_turn_what_is_much)
{
    struct fixture *f = fixture_at(START);

    for (unsigned i = 0; i < 100; i++)
        arm_after(f, i, 1000);
    ASSERT(!weft__wheel_stamp(&f->wheel, START + 1));
    weft__wheel_check(&f->wheel);
    ASSERT_EQ(f->timers[0].when, START + 1001);
    ASSERT_EQ(f->timers[99].when, 1000);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_OWNER), INT64_MIN);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, NULL, START + 2, MANY, &f->sched, WEFT__BY_OWNER), 0);
    ASSERT_EQ(f->timers[99].when, START + 1002);
    ASSERT_EQ(turn_all(f, START + 1002), 100);
}

TEST(wheel_leaves_to_a_turn_what_is_due_at_once)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 0);
    ASSERT(!weft__wheel_stamp(&f->wheel, START));
    ASSERT_EQ(weft__wheel_expire(&f->wheel, NULL, START, MANY, &f->sched, WEFT__BY_OWNER), 1);
}

TEST(wheel_leaves_to_a_turn_what_would_fall_far)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 1000);
    ASSERT(!weft__wheel_stamp(&f->wheel, START + HOUR));
    ASSERT_EQ(f->timers[0].when, 1000);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, NULL, START + HOUR, MANY, &f->sched, WEFT__BY_OWNER), 0);
    ASSERT_EQ(f->timers[0].when, START + HOUR + 1000);
    ASSERT_EQ(turn(f, START + HOUR + 1000, MANY), 1);
}

TEST(wheel_takes_a_sleep_below_zero_for_none)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, -5);
    arm_after(f, 1, 0);
    arm_after(f, 2, INT64_MIN);
    ASSERT_EQ(turn(f, START, MANY), 3);
}

/* ---- several --------------------------------------------------------------------------------- */

TEST(wheel_fires_equal_deadlines_in_the_order_of_arming)
{
    struct fixture *f = fixture_at(START);

    for (unsigned i = 0; i < 100; i++)
        arm_at(f, i, START + HOUR);
    ASSERT_EQ(turn_all(f, START + HOUR), 100);
    for (unsigned i = 0; i < 100; i++)
        ASSERT_EQ(f->order[i], i);
}

/* A slot apart and more: by deadline, whatever the order of arming, also if the clock jumps. */
TEST(wheel_fires_in_the_order_of_deadlines)
{
    struct fixture *f = fixture_at(START);

    for (unsigned i = 0; i < 40; i++)
        arm_at(f, 39 - i, START + (GRAIN << (40 - i)));
    ASSERT_EQ(turn_all(f, INT64_MAX - 1), 40);
    for (unsigned i = 0; i < 40; i++)
        ASSERT_EQ(f->order[i], i);
}

/* What is past as it is armed: in the order of arming, whatever quarter of a slot its deadline was in; and before what comes later. */
TEST(wheel_fires_what_is_past_in_the_order_of_arming)
{
    struct fixture *f = fixture_at(1 << 20);
    static const int64_t past[] = {1, 0, 1000000, 2000, 300, 600, 900};
    enum { PAST = sizeof(past) / sizeof(past[0]) };

    arm_at(f, PAST, (1 << 20) + GRAIN - 1);
    for (unsigned i = 0; i < PAST; i++)
        arm_at(f, i, (1 << 20) - past[i]);
    ASSERT_EQ(turn_all(f, (1 << 20) + GRAIN), PAST + 1);
    for (unsigned i = 0; i <= PAST; i++)
        ASSERT_EQ(f->order[i], i);
}

TEST(wheel_fires_no_more_than_it_is_asked_for)
{
    struct fixture *f = fixture_at(START);

    for (unsigned i = 0; i < 10; i++)
        arm_at(f, i, START + 1);
    ASSERT_EQ(turn(f, START + 1, 4), 4);
    ASSERT(weft__wheel_due(&f->wheel, START + 1));
    ASSERT_EQ(turn(f, START + 1, 4), 4);
    ASSERT_EQ(turn(f, START + 1, 4), 2);
    ASSERT(!weft__wheel_due(&f->wheel, START + 1));
}

/* A full slot of a high level falls in several turns, and what falls can be cancelled meanwhile. */
TEST(wheel_lets_a_full_slot_fall_bit_by_bit)
{
    struct fixture *f = fixture_at(0);

    for (unsigned i = 0; i < 100; i++)
        arm_at(f, i, HOUR + i * GRAIN);
    (void)turn(f, HOUR - GRAIN * 40, 1);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), INT64_MIN); /* half done */
    for (unsigned i = 0; i < 100; i += 2)
        ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[i], WEFT__BY_ANY));
    ASSERT_EQ(turn_all(f, HOUR - 1), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel, WEFT__BY_ANY), HOUR + GRAIN);
    ASSERT_EQ(turn_all(f, HOUR + 99 * GRAIN), 50);
}

/* Four deadlines, one in each lane of a slot that falls twice, each armed 25 times in turn; some are given up before it falls, some while it does. The rest fires by
 * deadline, and those of one deadline in the order of arming, though the lanes are of different lengths by then. */
TEST(wheel_keeps_the_order_of_arming_in_every_lane)
{
    struct fixture *f = fixture_at(0);
    int64_t lane = (GRAIN << 2 * WEFT__WHEEL_SLOT_BITS) / WEFT__WHEEL_LANES;
    int64_t slot = 5 * WEFT__WHEEL_LANES * lane;
    unsigned expected = 0;

    for (unsigned i = 0; i < 100; i++)
        arm_at(f, i, slot + (i % 4) * lane + GRAIN);
    for (unsigned i = 1; i < 100; i += 8)
        ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[i], WEFT__BY_ANY));
    (void)turn(f, slot, 5);
    ASSERT(weft__wheel_due(&f->wheel, slot)); /* half done */
    for (unsigned i = 2; i < 100; i += 12)
        ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[i], WEFT__BY_ANY));
    (void)turn_all(f, slot + WEFT__WHEEL_LANES * lane - 1);
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        for (unsigned i = quarter; i < 100; i += 4) {
            if (i % 8 == 1 || i % 12 == 2) continue;
            ASSERT_EQ(f->order[expected++], i);
        }
    }
    ASSERT_EQ(f->count, expected);
}

/* More than are looked at in one slot: the next look is early, never late, and ends. */
TEST(wheel_looks_early_where_many_share_a_slot)
{
    struct fixture *f = fixture_at(0);
    int64_t now = 0;
    unsigned looks = 0;

    for (unsigned i = 0; i < 200; i++)
        arm_at(f, i, HOUR + 1000 + i);
    (void)weft__wheel_cancel(&f->wheel, &f->timers[0], WEFT__BY_ANY); /* the earliest: the bound is found anew */
    for (; f->count < 199; looks++) {
        int64_t next = weft__wheel_next(&f->wheel, WEFT__BY_ANY);
        if (next == INT64_MIN) next = now;
        ASSERT_LE(next, HOUR + 1000 + 199);
        ASSERT_GE(next, now);
        now = next;
        (void)turn(f, now, MANY);
    }
    ASSERT_LE(looks, 199 + WEFT__WHEEL_LEVELS);
}

TEST(wheel_stands_still_while_the_clock_goes_backwards)
{
    struct fixture *f = fixture_at(START);

    arm_at(f, 0, START + HOUR);
    ASSERT_EQ(turn(f, START + HOUR - 1, MANY), 0);
    ASSERT_EQ(turn(f, START, MANY), 0);
    arm_after(f, 1, 10);
    ASSERT_EQ(turn(f, 0, MANY), 0);
    ASSERT_EQ(f->timers[1].when, START + HOUR - 1 + 10); /* later than asked for, not earlier */
    ASSERT_EQ(turn(f, START + HOUR, MANY), 1);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

TEST_WITH(wheel_done_with_a_timer_inside_aborts, .signal = SIGABRT)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 1);
    weft__wheel_done(&f->wheel);
}

TEST_WITH(wheel_check_out_of_an_armed_timer_aborts, .signal = SIGABRT)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 1);
    weft__timer_check_out(&f->timers[0]);
}

TEST_WITH(wheel_arm_without_a_waker_aborts, .signal = SIGABRT)
{
    struct fixture *f = fixture_at(START);

    weft__wheel_arm_after(&f->wheel, &f->timers[0], 1, weft__waker_none());
}
