/* SPDX-License-Identifier: MIT
 *
 * The timer wheel with many timers: a million at once; at random, against a list that is searched from end to end; and beside a thread that cancels.
 */
#include "wheel.h"

#include "base/alloc.h"
#include "base/rand.h"

#include <pthread.h>
#include <sched.h>

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
    for (; weft__wheel_next(&wheel, WEFT__BY_ANY) == INT64_MIN; turns++) {
        (void)weft__wheel_gather(&wheel, &reading, WEFT__BY_ANY);
        ASSERT_EQ(weft__wheel_expire(&wheel, &reading, START, WEFT__WHEEL_BATCH, &sched, WEFT__BY_ANY), 0);
    }
    ASSERT_EQ(turns, (count + 4 * WEFT__WHEEL_BATCH - 1) / (4 * WEFT__WHEEL_BATCH));
    while (weft__wheel_due(&wheel, START + HOUR)) {
        (void)weft__wheel_expire(&wheel, NULL, START + HOUR, WEFT__WHEEL_BATCH, &sched, WEFT__BY_ANY);
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
    ASSERT_EQ(weft__wheel_cancel(&o->f->wheel, &o->f->timers[i], WEFT__BY_ANY), o->state[i] == FIRED);
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
    if (weft__rand_chance(&o->rand, 1, 2) && !weft__wheel_due(&o->f->wheel, now)) /* as a worker does: then the turn finds less to do */
        (void)weft__wheel_stamp(&o->f->wheel, now);
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
        next = weft__wheel_next(&o->f->wheel, WEFT__BY_ANY);
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
        (void)weft__wheel_cancel(&fixture.wheel, &fixture.timers[0], WEFT__BY_ANY);
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
        bool some = weft__wheel_gather(&f->wheel, &reading, WEFT__BY_ANY);
        if (some) {
            ASSERT_EQ(weft__wheel_expire(&f->wheel, &reading, now++, MANY, &f->sched, WEFT__BY_ANY), 0);
        } else {
            memset(&reading, 0x5a, sizeof(reading));
        }
        until_round(&cancelled_round, i);
        if (!some) ASSERT_EQ((uintptr_t)reading.gathered.prev, UINT64_C(0x5a5a5a5a5a5a5a5a));
    }
    ASSERT_OK(pthread_join(thread, NULL));
    weft__wheel_done(&f->wheel);
}
