/* SPDX-License-Identifier: MIT
 *
 * The timer wheel: what fires, when and in which order, at all distances and at the ends of time; and
 * at random, against a list that is searched from end to end.
 */
#include "time/wheel.h"

#include "base/alloc.h"
#include "base/rand.h"
#include "task/state.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#define MANY  512
#define GRAIN (INT64_C(1) << WEFT__WHEEL_GRAIN_BITS)
#define HOUR  (INT64_C(3600) * 1000000000)
#define START INT64_C(123456789012345)

/* A wheel, and idle tasks that each own a timer. */
struct fixture {
    struct weft__wheel wheel;
    struct weft_task tasks[MANY];
    struct weft__timer timers[MANY];
    unsigned pushed[MANY];
    unsigned order[MANY * 4]; /* which task was pushed as the nth */
    unsigned count;
    struct weft__sched sched;
};

static struct fixture fixture;

/* The task runs at once, and is idle again. */
static void fixture_push(void *sched, struct weft_task *task)
{
    struct fixture *f = sched;
    unsigned index = (unsigned)(task - f->tasks);

    f->pushed[index]++;
    if (f->count < MANY * 4) f->order[f->count] = index;
    f->count++;
    (void)weft__state_begin_poll(task);
    (void)weft__state_end_poll(task);
}

static void fixture_push_chain(void *sched, struct weft_task *first, struct weft_task *last,
                               uint32_t count)
{
    (void)last;
    (void)count;
    for (struct weft_task *next; first; first = next) {
        next = load_relaxed(&first->link);
        fixture_push(sched, first);
    }
}

static const struct weft__sched_ops fixture_ops = {.push = fixture_push,
                                                   .push_chain = fixture_push_chain};

static struct fixture *fixture_at(int64_t now)
{
    struct fixture *f = &fixture;

    memset(f, 0, sizeof(*f));
    f->sched = (struct weft__sched){&fixture_ops, f};
    weft__wheel_init(&f->wheel, now);
    for (unsigned i = 0; i < MANY; i++) {
        weft__state_init(&f->tasks[i], 0);
        (void)weft__state_end_poll(&f->tasks[i]);
        weft__timer_init(&f->timers[i]);
    }
    return f;
}

static void arm_at(struct fixture *f, unsigned i, int64_t when)
{
    weft__wheel_arm_at(&f->wheel, &f->timers[i], when, weft__waker_of(&f->tasks[i]));
}

static void arm_after(struct fixture *f, unsigned i, int64_t ns)
{
    weft__wheel_arm_after(&f->wheel, &f->timers[i], ns, weft__waker_of(&f->tasks[i]));
}

/* As a driver does it, with a clock that stands at `now`. */
static uint32_t turn(struct fixture *f, int64_t now, uint32_t max)
{
    struct weft__reading reading;

    (void)weft__wheel_gather(&f->wheel, &reading);
    uint32_t fired = weft__wheel_expire(&f->wheel, &reading, now, max, &f->sched);
    weft__wheel_check(&f->wheel);
    return fired;
}

static uint32_t turn_all(struct fixture *f, int64_t now)
{
    uint32_t fired = 0;
    do {
        fired += turn(f, now, MANY);
    } while (weft__wheel_due(&f->wheel, now));
    return fired;
}

/* ---- one timer ------------------------------------------------------------------------------- */

/* At each distance: not one nanosecond before its deadline, and no look too many on the way. */
TEST(wheel_fires_at_the_deadline_and_not_before)
{
    for (unsigned bit = 0; bit < 62; bit++) {
        struct fixture *f = fixture_at(START);
        int64_t when = START + (INT64_C(1) << bit);
        arm_at(f, 0, when);
        ASSERT_EQ(weft__wheel_next(&f->wheel), when);
        ASSERT_EQ(turn(f, when - 1, MANY), 0);
        ASSERT_EQ(weft__wheel_next(&f->wheel), when);
        ASSERT_EQ(turn(f, when, MANY), 1);
        ASSERT(weft__timer_take_granted(&f->timers[0]));
        ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MAX);
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
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MAX);
    ASSERT_EQ(turn_all(f, INT64_MAX - 1), 0);
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0]));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[1]));
    weft__wheel_done(&f->wheel);
}

TEST(wheel_cancel_tells_whether_it_had_fired)
{
    struct fixture *f = fixture_at(START);

    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0])); /* never armed */
    arm_at(f, 0, START + 5);
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0]));
    ASSERT_EQ(turn(f, START + 5, MANY), 0);
    arm_at(f, 0, START + 9);
    ASSERT_EQ(turn(f, START + 9, MANY), 1);
    ASSERT(weft__wheel_cancel(&f->wheel, &f->timers[0]));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0]));
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
    ASSERT(weft__wheel_fired(&f->wheel, &f->timers[0]));
    weft__timer_check_out(&f->timers[0]);
}

TEST(wheel_fired_is_false_while_it_is_armed)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 10);
    ASSERT(!weft__wheel_fired(&f->wheel, &f->timers[0]));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0]));
}

/* ---- relative timers ------------------------------------------------------------------------- */

/* The deadline counts from the reading, not from what the wheel knew before. */
TEST(wheel_stamps_what_is_fresh_by_the_next_reading)
{
    struct fixture *f = fixture_at(START);

    arm_after(f, 0, 1000);
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MIN); /* somebody is to read the clock */
    ASSERT_EQ(turn(f, START + 700, MANY), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel), START + 1700);
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
    ASSERT(weft__wheel_gather(&f->wheel, &early)); /* its clock says START + 10 */
    arm_after(f, 1, 1000);
    ASSERT(weft__wheel_gather(&f->wheel, &late)); /* and this one's START + 500 */
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &early, START + 10, MANY, &f->sched), 0);
    arm_after(f, 2, 1000);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &late, START + 500, MANY, &f->sched), 0);
    ASSERT_EQ(f->timers[0].when, START + 1010);
    ASSERT_EQ(f->timers[1].when, START + 1500);
    ASSERT_EQ(f->timers[2].when, 1000); /* still fresh */
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MIN);
}

/* Another one gathers the owner's timer and is held up before it has read the clock: the owner looks again, and does not sleep past a deadline that nobody
 * has set yet. */
TEST(wheel_is_looked_at_again_while_another_reads_the_clock)
{
    struct fixture *f = fixture_at(START);
    struct weft__reading thief;
    struct weft__reading owner;

    arm_after(f, 0, 1000);
    ASSERT(weft__wheel_gather(&f->wheel, &thief));
    ASSERT(!weft__wheel_gather(&f->wheel, &owner));
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &owner, START + 5, MANY, &f->sched), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MIN);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &thief, START + 7, MANY, &f->sched), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel), START + 1007);
    arm_after(f, 1, 10);
    ASSERT(weft__wheel_gather(&f->wheel, &thief));
    ASSERT(!weft__wheel_cancel(
        &f->wheel, &f->timers[1])); /* the reading has nothing left: it counts all the same */
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MIN);
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &thief, START + 8, MANY, &f->sched), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel), START + 1007);
    ASSERT_EQ(turn(f, START + 1007, MANY), 1);
}

TEST(wheel_cancels_what_a_reading_has_gathered)
{
    struct fixture *f = fixture_at(START);
    struct weft__reading reading;

    arm_after(f, 0, 5);
    arm_after(f, 1, 5);
    ASSERT(weft__wheel_gather(&f->wheel, &reading));
    ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[0]));
    ASSERT_EQ(weft__wheel_expire(&f->wheel, &reading, START, MANY, &f->sched), 0);
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
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MIN);
    (void)turn_all(f, START + 1);
    ASSERT_EQ(f->timers[19].when, START + 101);
    ASSERT_EQ(turn_all(f, START + 101), 20);
    for (unsigned i = 0; i < 20; i++)
        ASSERT_EQ(f->order[i], i);
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
    ASSERT_EQ(weft__wheel_next(&f->wheel), INT64_MIN); /* half done */
    for (unsigned i = 0; i < 100; i += 2)
        ASSERT(!weft__wheel_cancel(&f->wheel, &f->timers[i]));
    ASSERT_EQ(turn_all(f, HOUR - 1), 0);
    ASSERT_EQ(weft__wheel_next(&f->wheel), HOUR + GRAIN);
    ASSERT_EQ(turn_all(f, HOUR + 99 * GRAIN), 50);
}

/* More than are looked at in one slot: the next look is early, never late, and ends. */
TEST(wheel_looks_early_where_many_share_a_slot)
{
    struct fixture *f = fixture_at(0);
    int64_t now = 0;
    unsigned looks = 0;

    for (unsigned i = 0; i < 200; i++)
        arm_at(f, i, HOUR + 1000 + i);
    (void)weft__wheel_cancel(&f->wheel, &f->timers[0]); /* the earliest: the bound is found anew */
    for (; f->count < 199; looks++) {
        int64_t next = weft__wheel_next(&f->wheel);
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

/* ---- many ------------------------------------------------------------------------------------ */

struct crowd {
    struct weft_task task;
    struct weft__timer timer;
};

static void crowd_push(void *count, struct weft_task *task)
{
    (void)task;
    ++*(unsigned *)count;
}

static void crowd_push_chain(void *pushed, struct weft_task *first, struct weft_task *last,
                             uint32_t count)
{
    (void)first;
    (void)last;
    *(unsigned *)pushed += count;
}

/* A million at once, of one deadline; turns of 128 work them off. */
TEST_WITH(wheel_bears_a_million_at_once, .timeout_s = 300)
{
    static const struct weft__sched_ops ops = {.push = crowd_push, .push_chain = crowd_push_chain};
    static struct weft__wheel wheel;
    size_t count = test_scaled(1000000);
    struct crowd *crowd = weft__alloc_aligned(count * sizeof(*crowd), 16);
    unsigned pushed = 0;
    struct weft__sched sched = {&ops, &pushed};
    struct weft__reading reading;
    uint64_t turns = 0;

    ASSERT(crowd != NULL);
    weft__wheel_init(&wheel, START);
    for (size_t i = 0; i < count; i++) {
        weft__state_init(&crowd[i].task, 0);
        (void)weft__state_end_poll(&crowd[i].task);
        weft__timer_init(&crowd[i].timer);
        weft__wheel_arm_after(&wheel, &crowd[i].timer, HOUR, weft__waker_of(&crowd[i].task));
    }
    for (; weft__wheel_next(&wheel) == INT64_MIN; turns++) {
        (void)weft__wheel_gather(&wheel, &reading);
        ASSERT_EQ(weft__wheel_expire(&wheel, &reading, START, WEFT__WHEEL_BATCH, &sched), 0);
    }
    ASSERT_EQ(turns, (count + 4 * WEFT__WHEEL_BATCH - 1) / (4 * WEFT__WHEEL_BATCH));
    while (weft__wheel_due(&wheel, START + HOUR)) {
        (void)weft__wheel_expire(&wheel, NULL, START + HOUR, WEFT__WHEEL_BATCH, &sched);
    }
    ASSERT_EQ(pushed, count);
    weft__wheel_done(&wheel);
    weft__free(crowd);
}

/* ---- at random, against a plain list --------------------------------------------------------- */

enum state { OUT, FRESH, ARMED, FIRED };

struct oracle {
    struct fixture *f;
    struct weft__rand rand;
    int64_t now;
    enum state state[MANY];
    int64_t when[MANY]; /* while FRESH: relative */
    uint32_t cut_short;
};

/* A distance of any size, most of them small. */
static int64_t any_distance(struct oracle *o)
{
    unsigned bits = (unsigned)weft__rand_below(&o->rand, 5) ? 30 : 62;
    return (int64_t)(weft__rand_u64(&o->rand) >> (63 - weft__rand_below(&o->rand, bits)));
}

static int64_t later(int64_t now, int64_t ns)
{
    int64_t when;
    return __builtin_add_overflow(now, ns, &when) ? INT64_MAX : when;
}

static void oracle_arm(struct oracle *o, unsigned i)
{
    int64_t ns = any_distance(o);

    if (o->state[i] != OUT) return;
    if (weft__rand_chance(&o->rand, 1, 2)) {
        o->state[i] = FRESH;
        o->when[i] = ns;
        arm_after(o->f, i, ns);
    } else {
        if (weft__rand_chance(&o->rand, 1, 10)) ns = -ns;
        o->state[i] = ARMED;
        o->when[i] = later(o->now, ns) < 0 ? 0 : later(o->now, ns);
        arm_at(o->f, i, o->when[i]);
    }
}

static void oracle_cancel(struct oracle *o, unsigned i)
{
    ASSERT_EQ(weft__wheel_cancel(&o->f->wheel, &o->f->timers[i]), o->state[i] == FIRED);
    o->state[i] = OUT;
}

static int64_t oracle_earliest(const struct oracle *o)
{
    int64_t earliest = INT64_MAX;
    for (unsigned i = 0; i < MANY; i++) {
        if (o->state[i] == FRESH) return INT64_MIN;
        if (o->state[i] == ARMED && o->when[i] < earliest) earliest = o->when[i];
    }
    return earliest;
}

/* Who fired was due; who was due fired, unless the turn was cut short, which shows. */
static void oracle_turn(struct oracle *o, int64_t now, uint32_t max)
{
    unsigned before[MANY];
    uint32_t fired = 0;
    uint32_t left = 0;
    uint32_t unstamped = 0;

    memcpy(before, o->f->pushed, sizeof(before));
    o->now = now;
    uint32_t said = turn(o->f, now, max);
    for (unsigned i = 0; i < MANY; i++) {
        if (o->state[i] == FRESH) {
            bool same = o->f->timers[i].when == o->when[i] && o->f->pushed[i] == before[i];
            if (same && o->when[i] != later(now, o->when[i])) {
                unstamped++;
                continue;
            }
            o->state[i] = ARMED;
            o->when[i] = later(now, o->when[i]);
        }
        if (o->f->pushed[i] > before[i]) {
            ASSERT_EQ(o->f->pushed[i], before[i] + 1);
            ASSERT_EQ(o->state[i], ARMED);
            ASSERT_LE(o->when[i], now);
            o->state[i] = FIRED;
            fired++;
        } else if (o->state[i] == ARMED && o->when[i] <= now) {
            left++;
        }
    }
    ASSERT_EQ(fired, said);
    if (left) ASSERT(weft__wheel_due(&o->f->wheel, now));
    if (max == MANY) ASSERT_EQ(left + unstamped, 0);
    o->cut_short += left + unstamped > 0;
}

static void oracle_step(struct oracle *o)
{
    unsigned i = (unsigned)weft__rand_below(&o->rand, MANY);
    int64_t next;

    switch (weft__rand_below(&o->rand, 8)) {
    case 0:
    case 1:
    case 2:
        oracle_arm(o, i);
        break;
    case 3:
        oracle_cancel(o, i);
        break;
    case 4: /* what fired is taken as its owner would */
        for (unsigned k = 0; k < MANY; k++)
            if (o->state[k] == FIRED) oracle_cancel(o, k);
        break;
    case 5: /* to the next look and no further */
        next = weft__wheel_next(&o->f->wheel);
        ASSERT_LE(next, oracle_earliest(o));
        oracle_turn(o, next > o->now && next < INT64_MAX / 2 ? next : o->now, MANY);
        break;
    case 6:
        oracle_turn(o, o->now + (any_distance(o) >> 24), MANY);
        break;
    default:
        oracle_turn(o, o->now + (any_distance(o) >> 24),
                    1 + (uint32_t)weft__rand_below(&o->rand, 8));
        break;
    }
}

TEST(wheel_agrees_with_a_plain_list)
{
    static struct oracle o;
    uint64_t rounds = test_scaled(8000);

    memset(&o, 0, sizeof(o));
    weft__rand_seed(&o.rand, test_seed());
    o.now = (int64_t)(weft__rand_u64(&o.rand) >> (2 + weft__rand_below(&o.rand, 40)));
    o.f = fixture_at(o.now);
    for (uint64_t i = 0; i < rounds && o.now < INT64_MAX / 2; i++)
        oracle_step(&o);
    for (unsigned i = 0; i < MANY; i++)
        oracle_cancel(&o, i);
    weft__wheel_done(&o.f->wheel);
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

/* ---- beside another thread ------------------------------------------------------------------- */

static _Atomic uint32_t armed_round;     /* that the canceller may cancel */
static _Atomic uint32_t cancelled_round; /* that it has */

/* The two should meet: it spins for a moment, and lets others run then. acquire, release: the test's own */
static void until_round(_Atomic uint32_t *word, uint32_t round)
{
    for (uint32_t spins = 1; load_acquire(word) < round; spins++) {
        if (spins % 256 == 0) {
            sched_yield();
        } else {
            cpu_pause();
        }
    }
}

static void *cancels_each_round(void *rounds)
{
    for (uint32_t i = 1; i <= (uint32_t)(uintptr_t)rounds; i++) {
        until_round(&armed_round, i);
        (void)weft__wheel_cancel(&fixture.wheel, &fixture.timers[0]);
        store_release(&cancelled_round, i);
    }
    return NULL;
}

/* A timer that was gathered is cancelled by another thread, which writes to the reading it hangs on. A gather that says "none"
 * has nobody on it any more: what lies there afterwards is not written to. (Under TSan this fails in some runs if the
 * question is asked behind the lock.) */
TEST_WITH(wheel_gathers_beside_a_cancel, .timeout_s = 300)
{
    struct fixture *f = fixture_at(START);
    uint32_t rounds = 20000; /* also under TSan, which is who sees it */
    pthread_t thread;
    int64_t now = START;

    store_relaxed(&armed_round, 0);
    store_relaxed(&cancelled_round, 0);
    ASSERT_OK(pthread_create(&thread, NULL, cancels_each_round, (void *)(uintptr_t)rounds));
    for (uint32_t i = 1; i <= rounds; i++) {
        struct weft__reading reading;
        arm_after(f, 0, HOUR);
        store_release(&armed_round, i);
        bool some = weft__wheel_gather(&f->wheel, &reading);
        if (some) {
            ASSERT_EQ(weft__wheel_expire(&f->wheel, &reading, now++, MANY, &f->sched), 0);
        } else {
            memset(&reading, 0x5a, sizeof(reading));
        }
        until_round(&cancelled_round, i);
        if (!some) ASSERT_EQ((uintptr_t)reading.gathered.prev, UINT64_C(0x5a5a5a5a5a5a5a5a));
    }
    ASSERT_OK(pthread_join(thread, NULL));
    weft__wheel_done(&f->wheel);
}
