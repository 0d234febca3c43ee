/* SPDX-License-Identifier: MIT
 *
 * wheel - arm, cancel, turn; the idea is in wheel.h.
 */
#include "time/wheel.h"

#include "base/assert.h"

/* Moves that a turn may make for each timer that it may fire. A timer falls at most seven times in
 * its life, two or three times for most. */
#define MOVES_PER_FIRE 4

/* Fresh timers that get their deadlines without a turn: of more, or where the wheel lags behind by a slot of level 2 (4 ms), a turn is worth its while. */
#define STAMPS_MAX 16
#define LAG_LEVELS 2

/* ---- where a timer lies ---------------------------------------------------------------------- */

static unsigned shift_of(unsigned level)
{
    return WEFT__WHEEL_GRAIN_BITS + level * WEFT__WHEEL_SLOT_BITS;
}

static unsigned slot_of(uint64_t time, unsigned level)
{
    return (unsigned)(time >> shift_of(level)) & (WEFT__WHEEL_SLOTS - 1);
}

static unsigned lane_of(uint64_t when, unsigned level)
{
    return (unsigned)(when >> (shift_of(level) - WEFT__WHEEL_LANE_BITS)) & (WEFT__WHEEL_LANES - 1);
}

static void slot_init(struct weft__wheel_slot *slot)
{
    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++)
        weft__link_init(&slot->lane[lane]);
}

static bool slot_empty(const struct weft__wheel_slot *slot)
{
    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++) {
        if (!weft__list_empty(&slot->lane[lane])) return false;
    }
    return true;
}

/* By the highest bit in which the two differ; what is past lies where `elapsed` is. */
static unsigned level_of(uint64_t elapsed, uint64_t when)
{
    uint64_t differs = (elapsed ^ when) >> WEFT__WHEEL_GRAIN_BITS;

    if (differs == 0) return 0;
    return (63 - (unsigned)__builtin_clzll(differs)) / WEFT__WHEEL_SLOT_BITS;
}

/* Holds: the lock. */
static void put(struct weft__wheel *wheel, struct weft__timer *timer)
{
    uint64_t when = (uint64_t)timer->when;
    if (when < wheel->elapsed) when = wheel->elapsed;
    unsigned level = level_of(wheel->elapsed, when);
    unsigned slot = slot_of(when, level);
    unsigned lane = lane_of(when, level);

    weft__list_push_back(&wheel->slot[level][slot].lane[lane], &timer->link);
    wheel->occupied[level] |= UINT64_C(1) << slot;
}

static struct weft__timer *timer_of(struct weft__link *link)
{
    return weft__container_of(link, struct weft__timer, link);
}

/* ---- what is kept beside --------------------------------------------------------------------- */

static int64_t next_of(const struct weft__wheel *wheel)
{
    return load_relaxed(&wheel->next); /* relaxed: the lock orders it */
}

static void set_next(struct weft__wheel *wheel, int64_t next, bool exact)
{
    store_relaxed(&wheel->next, next); /* relaxed: the lock orders it; to others it is a hint */
    wheel->exact = exact;
}

/* A deadline has come into the wheel. */
static void note_deadline(struct weft__wheel *wheel, int64_t when)
{
    if (when < next_of(wheel)) set_next(wheel, when, true);
}

/* ---- init, done ------------------------------------------------------------------------------ */

void weft__wheel_init(struct weft__wheel *wheel, int64_t now)
{
    weft__bias_init(&wheel->lock, WEFT__RANK_WHEEL);
    store_relaxed(&wheel->live, 0); /* relaxed: not shared yet */
    set_next(wheel, INT64_MAX, true);
    wheel->readings = 0;
    wheel->elapsed = now < 0 ? 0 : (uint64_t)now;
    weft__link_init(&wheel->fresh);
    slot_init(&wheel->falling);
    for (unsigned level = 0; level < WEFT__WHEEL_LEVELS; level++) {
        wheel->occupied[level] = 0;
        for (unsigned slot = 0; slot < WEFT__WHEEL_SLOTS; slot++)
            slot_init(&wheel->slot[level][slot]);
    }
}

void weft__wheel_done(struct weft__wheel *wheel)
{
    /* as its owner, which is gone; whoever cancelled last is through with it */
    bool favoured = weft__bias_enter(&wheel->lock, WEFT__BY_OWNER);
    weft_assert(load_relaxed(&wheel->live) == 0); /* relaxed: the lock orders it */
    weft__bias_leave(&wheel->lock, favoured);
}

/* ---- arm ------------------------------------------------------------------------------------- */

void weft__wheel_arm_at(struct weft__wheel *wheel, struct weft__timer *timer, int64_t when,
                        struct weft_waker waker)
{
    bool favoured = weft__bias_enter(&wheel->lock, WEFT__BY_OWNER);
    weft__wheel_mark_armed(wheel, timer, waker);
    timer->when = when < 0 ? 0 : when;
    put(wheel, timer);
    note_deadline(wheel, timer->when);
    weft__bias_leave(&wheel->lock, favoured);
}

void weft__wheel_arm_after_shared(struct weft__wheel *wheel, struct weft__timer *timer, int64_t ns,
                                  struct weft_waker waker)
{
    bool favoured = weft__bias_enter(&wheel->lock, WEFT__BY_OWNER);
    weft__wheel_link_fresh(wheel, timer, ns, waker);
    weft__bias_leave(&wheel->lock, favoured);
}

bool weft__wheel_cancel(struct weft__wheel *wheel, struct weft__timer *timer, enum weft__door door)
{
    bool favoured = weft__bias_enter(&wheel->lock, door);
    uintptr_t word = weft__wheel_unlink(wheel, timer);
    weft__bias_leave(&wheel->lock, favoured);
    return word & WEFT__TIMER_FIRED;
}

bool weft__wheel_fired(struct weft__wheel *wheel, struct weft__timer *timer, enum weft__door door)
{
    bool favoured = weft__bias_enter(&wheel->lock, door);
    uintptr_t word = load_relaxed(&timer->word); /* relaxed, both: the lock orders it */
    if (word & WEFT__TIMER_FIRED) store_relaxed(&timer->word, 0);
    weft__bias_leave(&wheel->lock, favoured);
    return word & WEFT__TIMER_FIRED;
}

/* ---- the turn -------------------------------------------------------------------------------- */

/* What one turn may still do, and what it has done. */
struct turn {
    int64_t now;
    uint32_t fires_left;
    uint32_t moves_left;
    struct weft__wake_chain chain;
};

/* Takes the timer out and claims its waker. After the claim it stays valid until the lock is dropped,
 * or, if the claim was granted, until the push: its owner waits for that. */
static void fire(struct weft__wheel *wheel, struct weft__timer *timer, struct turn *turn)
{
    /* relaxed, both: the lock orders it, or the push */
    uintptr_t waker = load_relaxed(&timer->word) & ~WEFT__TIMER_BITS;
    uint32_t tasks = turn->chain.count;

    weft__list_remove(&timer->link);
    weft__wheel_count(wheel, (uint32_t)-1);
    weft__wake_chain_claim(&turn->chain, (struct weft_waker){waker});
    bool granted = turn->chain.count > tasks;
    store_relaxed(&timer->word, waker | WEFT__TIMER_FIRED | (granted ? WEFT__TIMER_GRANTED : 0));
    turn->fires_left--;
}

static bool fire_lane(struct weft__wheel *wheel, struct weft__link *head, struct turn *turn)
{
    weft__list_each_safe (it, after, head) {
        if (timer_of(it)->when > turn->now) continue;
        if (turn->fires_left == 0) return false;
        fire(wheel, timer_of(it), turn);
    }
    return true;
}

/* Of the slot where `elapsed` is. False: there is more than this turn may do. */
static bool fire_slot(struct weft__wheel *wheel, struct turn *turn)
{
    unsigned number = slot_of(wheel->elapsed, 0);
    struct weft__wheel_slot *slot = &wheel->slot[0][number];

    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++) {
        if (!fire_lane(wheel, &slot->lane[lane], turn)) return false;
    }
    if (slot_empty(slot)) wheel->occupied[0] &= ~(UINT64_C(1) << number);
    return true;
}

/* It comes to level 0 in the end, and then its task is claimed: the line of that is asked for as soon as the word is seen. */
static void move_down(struct weft__wheel *wheel, struct weft__timer *timer)
{
    uintptr_t waker = load_relaxed(&timer->word) & ~WEFT__TIMER_BITS; /* relaxed: the lock orders it */
    __builtin_prefetch((const void *)waker, 1);
    weft__list_remove(&timer->link);
    put(wheel, timer);
}

static bool let_fall(struct weft__wheel *wheel, struct turn *turn)
{
    while (!slot_empty(&wheel->falling)) {
        for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++) {
            struct weft__link *link = weft__list_first(&wheel->falling.lane[lane]);
            if (!link) continue;
            if (turn->moves_left == 0) return false;
            turn->moves_left--;
            move_down(wheel, timer_of(link));
        }
    }
    return true;
}

/* A slot that holds something. */
struct place {
    uint64_t start;
    unsigned level;
    unsigned slot;
};

/* The first of a level behind that of `elapsed`, or with it. Bits without a timer are taken out. */
static bool find_on(struct weft__wheel *wheel, unsigned level, bool with_current,
                    struct place *into)
{
    unsigned current = slot_of(wheel->elapsed, level);
    uint64_t behind = ~(((UINT64_C(1) << current) << !with_current) - 1);
    uint64_t revolution = ((UINT64_C(1) << shift_of(level)) << WEFT__WHEEL_SLOT_BITS) - 1;

    if (current == WEFT__WHEEL_SLOTS - 1 && !with_current) return false;
    for (;;) {
        uint64_t bits = wheel->occupied[level] & behind;
        if (bits == 0) return false;
        unsigned slot = (unsigned)__builtin_ctzll(bits);
        if (slot_empty(&wheel->slot[level][slot])) {
            wheel->occupied[level] &= ~(UINT64_C(1) << slot);
            continue;
        }
        *into = (struct place){
            .start = (wheel->elapsed & ~revolution) | ((uint64_t)slot << shift_of(level)),
            .level = level,
            .slot = slot,
        };
        return true;
    }
}

/* The slot that `elapsed` comes to next. What lies on a level is before all that is above it. */
static bool find_next(struct weft__wheel *wheel, bool with_current, struct place *into)
{
    if (find_on(wheel, 0, with_current, into)) return true;
    for (unsigned level = 1; level < WEFT__WHEEL_LEVELS; level++) {
        if (find_on(wheel, level, false, into)) return true;
    }
    return false;
}

/* The wheel has come to a slot: what lies there falls, or is where it should be. */
static void come_to(struct weft__wheel *wheel, const struct place *at)
{
    wheel->elapsed = at->start;
    if (at->level == 0) return;
    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++)
        weft__list_splice_back(&wheel->falling.lane[lane], &wheel->slot[at->level][at->slot].lane[lane]);
    wheel->occupied[at->level] &= ~(UINT64_C(1) << at->slot);
}

/* False: it has not come to `now`, there is more than this turn may do. */
static bool advance(struct weft__wheel *wheel, struct turn *turn)
{
    struct place at;

    for (;;) {
        if (!let_fall(wheel, turn) || !fire_slot(wheel, turn)) return false;
        if (!find_next(wheel, false, &at) || at.start > (uint64_t)turn->now) break;
        come_to(wheel, &at);
    }
    wheel->elapsed = (uint64_t)turn->now;
    return true;
}

/* It gets its deadline, by the clock's reading that followed. */
static void stamp_one(struct weft__wheel *wheel, struct weft__timer *timer, int64_t now)
{
    weft__list_remove(&timer->link);
    if (__builtin_add_overflow(now, timer->when, &timer->when)) timer->when = INT64_MAX;
    put(wheel, timer);
}

/* Of what was gathered, or is fresh. Its order stays: of two with the same deadline the first armed
 * fires first. */
static bool stamp(struct weft__wheel *wheel, struct weft__link *fresh, struct turn *turn)
{
    struct weft__link *link;

    while ((link = weft__list_first(fresh))) {
        if (turn->moves_left == 0) return false;
        turn->moves_left--;
        stamp_one(wheel, timer_of(link), turn->now);
    }
    return true;
}

/* It has not been turned for so long that what is put now would fall through more levels than it has to. */
static bool lags(const struct weft__wheel *wheel, int64_t now)
{
    return ((uint64_t)now ^ wheel->elapsed) >> shift_of(LAG_LEVELS) != 0;
}

bool weft__wheel_stamp(struct weft__wheel *wheel, int64_t now)
{
    bool favoured = weft__bias_enter(&wheel->lock, WEFT__BY_OWNER);
    bool all = !lags(wheel, now);
    struct weft__link *link;

    for (uint32_t moves = 0; all && (link = weft__list_first(&wheel->fresh)); moves++) {
        struct weft__timer *timer = timer_of(link);
        all = moves < STAMPS_MAX && timer->when > 0; /* what is due at once wants a turn, too */
        if (!all) break;
        stamp_one(wheel, timer, now);
        note_deadline(wheel, timer->when);
    }
    weft__bias_leave(&wheel->lock, favoured);
    return all;
}

/* ---- the next deadline ----------------------------------------------------------------------- */

/* The earliest of a slot; where there are too many to look at, the slot's beginning. */
static int64_t earliest_of(struct weft__wheel *wheel, const struct place *at)
{
    int64_t earliest = INT64_MAX;
    uint32_t seen = 0;

    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++) {
        weft__list_each (it, &wheel->slot[at->level][at->slot].lane[lane]) {
            if (at->level > 0 && seen++ >= WEFT__WHEEL_SCAN) return (int64_t)at->start;
            if (timer_of(it)->when < earliest) earliest = timer_of(it)->when;
        }
    }
    return earliest;
}

/* Holds: the lock. */
static void find_deadline(struct weft__wheel *wheel)
{
    struct place at;
    if (!slot_empty(&wheel->falling)) {
        set_next(wheel, INT64_MIN, true); /* a turn was cut short */
    } else if (find_next(wheel, true, &at)) {
        set_next(wheel, earliest_of(wheel, &at), true);
    } else {
        set_next(wheel, INT64_MAX, true);
    }
}

int64_t weft__wheel_next(struct weft__wheel *wheel, enum weft__door door)
{
    bool favoured = weft__bias_enter(&wheel->lock, door);
    if (!wheel->exact) find_deadline(wheel);
    bool all_stamped = weft__list_empty(&wheel->fresh) && wheel->readings == 0;
    int64_t next = all_stamped ? next_of(wheel) : INT64_MIN;
    weft__bias_leave(&wheel->lock, favoured);
    return next;
}

/* ---- gather, expire -------------------------------------------------------------------------- */

bool weft__wheel_gather(struct weft__wheel *wheel, struct weft__reading *reading,
                        enum weft__door door)
{
    weft__link_init(&reading->gathered);
    bool favoured = weft__bias_enter(&wheel->lock, door);
    weft__list_splice_back(&reading->gathered, &wheel->fresh);
    /* Under the lock: who cancels the last of them meanwhile writes to the list's head, which goes if this says "none". */
    bool some = !weft__list_empty(&reading->gathered);
    wheel->readings += some;
    weft__bias_leave(&wheel->lock, favoured);
    reading->some = some;
    return some;
}

/* Holds: the lock. What this turn could not stamp is fresh again, before what came since. */
static void give_back(struct weft__wheel *wheel, struct weft__reading *reading)
{
    weft__list_splice_back(&reading->gathered, &wheel->fresh);
    weft__list_splice_back(&wheel->fresh, &reading->gathered);
    wheel->readings -= reading->some;
}

/* Holds: the lock. First up to `now`, so that what is stamped falls as little as possible; then what
 * was stamped with a time that has come. True: all is done. */
static bool turn_to_now(struct weft__wheel *wheel, struct weft__reading *reading, struct turn *turn)
{
    struct weft__link *fresh = reading ? &reading->gathered : &wheel->fresh;
    if (!advance(wheel, turn)) return false;
    if (weft__list_empty(fresh)) return true;
    return stamp(wheel, fresh, turn) && fire_slot(wheel, turn);
}

uint32_t weft__wheel_expire(struct weft__wheel *wheel, struct weft__reading *reading, int64_t now,
                            uint32_t max, const struct weft__sched *sched, enum weft__door door)
{
    struct turn turn = {
        .now = now,
        .fires_left = max,
        .moves_left = max * MOVES_PER_FIRE,
        .chain = WEFT__WAKE_CHAIN_INIT,
    };

    bool favoured = weft__bias_enter(&wheel->lock, door);
    if (turn.now < (int64_t)wheel->elapsed) turn.now = (int64_t)wheel->elapsed;
    bool done = turn_to_now(wheel, reading, &turn);
    if (reading) give_back(wheel, reading);
    if (done) {
        find_deadline(wheel);
    } else {
        set_next(wheel, INT64_MIN, true); /* no search, which would be one for each turn of many */
    }
    weft__bias_leave(&wheel->lock, favoured);
    weft__wake_chain_push(&turn.chain, sched);
    return max - turn.fires_left;
}

/* ---- check ----------------------------------------------------------------------------------- */

static uint32_t check_list(const struct weft__wheel *wheel, struct weft__link *head, bool stamped)
{
    uint32_t count = 0;

    weft__list_each (it, head) {
        const struct weft__timer *timer = timer_of(it);
        weft_assert(load_relaxed(&timer->word) & WEFT__TIMER_ARMED); /* relaxed: under the lock */
        weft_assert(timer->when >= 0);
        if (stamped) weft_assert(timer->when >= next_of(wheel));
        count++;
    }
    return count;
}

static uint32_t check_lane(struct weft__wheel *wheel, unsigned level, unsigned slot, unsigned lane)
{
    struct weft__link *head = &wheel->slot[level][slot].lane[lane];

    weft__list_each (it, head) {
        uint64_t when = (uint64_t)timer_of(it)->when;
        if (when < wheel->elapsed) when = wheel->elapsed; /* it was past as it was put: `elapsed` goes on behind what has fired */
        weft_assert(lane_of(when, level) == lane);
        weft_assert(wheel->occupied[level] & (UINT64_C(1) << slot));
        weft_assert(level_of(wheel->elapsed, when) == level);
        weft_assert(slot_of(when, level) == slot);
    }
    return check_list(wheel, head, true);
}

static uint32_t check_slot(struct weft__wheel *wheel, unsigned level, unsigned slot)
{
    uint32_t count = 0;

    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++)
        count += check_lane(wheel, level, slot, lane);
    return count;
}

void weft__wheel_check(struct weft__wheel *wheel)
{
    bool favoured = weft__bias_enter(&wheel->lock, WEFT__BY_ANY);
    uint32_t count = check_list(wheel, &wheel->fresh, false);
    for (unsigned lane = 0; lane < WEFT__WHEEL_LANES; lane++)
        count += check_list(wheel, &wheel->falling.lane[lane], true);
    for (unsigned level = 0; level < WEFT__WHEEL_LEVELS; level++) {
        for (unsigned slot = 0; slot < WEFT__WHEEL_SLOTS; slot++)
            count += check_slot(wheel, level, slot);
    }
    weft_assert(count == load_relaxed(&wheel->live)); /* relaxed: under the lock */
    weft__bias_leave(&wheel->lock, favoured);
}
