/* SPDX-License-Identifier: MIT
 *
 * wheel - a shard's timers: a hierarchical timing wheel with exact deadlines, and a list of those
 * that have no deadline yet.
 *
 * Nine levels of 64 slots. A slot of level 0 is 2^10 ns wide (1 us), one of each further level 64
 * times as wide; nine levels span all of 64 bits, so no deadline needs special treatment. A timer
 * lies on the level of the highest bit in which its deadline differs from `elapsed`, the time up to
 * which the wheel has turned:
 *     level 0   in the slot of `elapsed`, or in a later one of the same 64
 *     level k   in a later slot than that of `elapsed`, of the same 64
 * so that whatever is on a level comes before all that is on the next, the slots of a level in their
 * order. When `elapsed` comes to a slot of level k, its timers fall to the levels below. Slots only
 * sort: a timer fires when its exact deadline has come, never before.
 *
 * LANES  A slot is four lists, by the quarter of it that a deadline is in; what is past lies where
 * `elapsed` is. Of two with the same deadline the first armed fires first, in whatever order the lists are gone through (but for one that is armed while a slot with it
 * is falling, in a turn that was cut short: it may go before those that have not fallen yet). They are gone through side
 * by side. Who follows one list through timers that nobody has touched for milliseconds waits for the
 * memory at each of them; of four lists it waits for four at a time.
 *
 * FRESH  A relative timer goes into a list without a look at the clock: arm and cancel, which is the
 * fate of most timers, then cost a few nanoseconds. Its deadline counts from a reading of the clock
 * that begins after it was armed. Whoever reads therefore first *gathers* what is fresh, into a list
 * of its own, then reads, then lets expire stamp that list: another thread may arm in between, or
 * read and gather, and does not get a time that was read before. What is gathered lies neither in the
 * wheel nor among the fresh; so while a reading is under way nobody is told when to look next, but to
 * look again: who gathers for another may be held up, and would not wake it. The wheel's owner arms nothing while it reads, and needs no such list.
 *
 *     OUT      in no list; the frame may die
 *     ARMED    in the wheel, or fresh
 *     FIRED    out of the wheel, its waker was claimed
 *
 *     OUT   -> ARMED    [arm_at, arm_after]
 *     ARMED -> FIRED    [expire]            by whoever drives the wheel: unlinks, claims
 *     ARMED -> OUT      [cancel]            by the owner: it had not fired
 *     FIRED -> OUT      [cancel]            by the owner: it had
 *     FIRED -> OUT      [take_granted]      by the owner, if the claim was granted
 * As with all waiters (sync/waitlist.h) the owner takes the lock once before its frame dies, so that
 * expire never touches a dead one; a claim that was granted needs no lock, since the task runs only
 * by the push that follows. The claimed are pushed after the lock is dropped.
 *
 * `next` is a lower bound of all deadlines, readable without the lock; weft__wheel_next makes it as
 * good as it can be: exact, unless the next timers are more than WEFT__WHEEL_SCAN in one slot of a
 * higher level; then it is the beginning of that slot, which is an early look, not an early timer.
 * A turn of the wheel has a bound: who asks for at most n timers holds the lock for n claims and
 * 4 n moves, whatever lies in the wheel; `next` then says that there is more to do.
 *
 * Threads: arm by the thread that the wheel belongs to (others would have to wake it up if they come
 * first); gather, expire, next and cancel by any, each by its door (sys/bias.h): arm and cancel of that
 * thread are without a read-modify-write. The clock is the caller's: `now` is an argument,
 * and one that goes backwards stands still here. LOCK ORDER: rank WHEEL.
 * Rejected: slots of 66 us on level 0, and one level less (a turn goes through the whole slot that it is in: of a million sleepers 600 lie there, and
 * each look of a busy worker found a few of them due; a sleep cost 560 ns instead of 400, on two workers 460 instead of 254); a heap (Go's four-ary one: arm and cancel are 130 ns with a million timers); slots that
 * round deadlines (Tokio's of 1 ms; Linux's, which are coarser the farther away, and never cascade:
 * right for time-outs that nobody lets happen, wrong for sleeps); one lock-free list per wheel for
 * cancels from other threads (the frame would have to stay until the owner looks); eight lanes (no
 * faster than four, and two cache lines a slot); lanes in turn instead of by deadline (a cancel shifts
 * one against the others, and equal deadlines lose their order).
 */
#ifndef WEFT_TIME_WHEEL_H
#define WEFT_TIME_WHEEL_H

#include "base/list.h"
#include "limits.h"
#include "sys/bias.h"
#include "task/waker.h"
#include "types.h"

#define WEFT__WHEEL_GRAIN_BITS 10 /* of a nanosecond count: the width of a slot of level 0 */
#define WEFT__WHEEL_SLOT_BITS  6
#define WEFT__WHEEL_SLOTS      (1 << WEFT__WHEEL_SLOT_BITS)
#define WEFT__WHEEL_LEVELS     9
#define WEFT__WHEEL_LANE_BITS  2
#define WEFT__WHEEL_LANES      (1 << WEFT__WHEEL_LANE_BITS)

_Static_assert(WEFT__WHEEL_GRAIN_BITS + WEFT__WHEEL_LEVELS * WEFT__WHEEL_SLOT_BITS == 64,
               "the levels span all deadlines");

/* One timer. Lives in the frame or on the stack of who waits. All of it is zero while it is OUT, or
 * as weft__timer_init leaves it. */
struct weft__timer {
    int64_t when;           /* its deadline; while fresh, nanoseconds    [wheel's lock] */
    struct weft__link link; /* while ARMED                               [wheel's lock] */
    _Atomic uintptr_t word; /* waker | state    [wheel's lock; OUT, granted: the owner] */
};

_Static_assert(sizeof(struct weft__timer) == 32, "a sleep is a frame of 40 bytes");

#define WEFT__TIMER_ARMED ((uintptr_t)2)
#define WEFT__TIMER_FIRED ((uintptr_t)4)
#define WEFT__TIMER_GRANTED                                                                        \
    ((uintptr_t)8) /* with FIRED: the task runs by the driver's push alone */
#define WEFT__TIMER_BITS (WEFT__TIMER_ARMED | WEFT__TIMER_FIRED | WEFT__TIMER_GRANTED)

_Static_assert((WEFT__TIMER_BITS & WEFT__WAKER_FOREIGN) == 0,
               "a waker's tag lies beside the state");
_Static_assert((WEFT__TIMER_BITS & ~WEFT__WAKER_BITS) == 0, "the state lies below the address");

/* A cache line of list heads. */
struct weft__wheel_slot {
    struct weft__link lane[WEFT__WHEEL_LANES];
};

struct weft__wheel {
    /* -- the lock and what others look at -- */
    WEFT__CACHE_ALIGNED struct weft__bias lock; /* guards all that follows; may favour who arms */
    _Atomic uint32_t live; /* timers armed; written under the lock, a hint without it */
    _Atomic int64_t next;  /* no deadline is before; INT64_MIN: something is half done  [as live] */
    bool exact;            /* `next` is as good as it can be */
    uint32_t readings;     /* under way, with timers that have no deadline yet */

    struct weft__link fresh;         /* `when` is relative */
    uint64_t elapsed;                /* as far as it has turned */
    struct weft__wheel_slot falling; /* out of a slot that `elapsed` has come to, not yet in another */

    uint64_t occupied[WEFT__WHEEL_LEVELS]; /* bit n: slot n may hold something; set if it does */
    WEFT__CACHE_ALIGNED struct weft__wheel_slot slot[WEFT__WHEEL_LEVELS][WEFT__WHEEL_SLOTS];
};

/* Its lock favours nobody: either door is anybody's, though arming is not. */
void weft__wheel_init(struct weft__wheel *wheel, int64_t now);

/* Before it is used: it belongs to one thread at a time, which comes BY_OWNER; all others come BY_ANY. */
static inline void weft__wheel_favour(struct weft__wheel *wheel)
{
    weft__bias_favour(&wheel->lock);
}

/* Asserts that it is empty. */
void weft__wheel_done(struct weft__wheel *wheel);

static inline void weft__timer_init(struct weft__timer *timer)
{
    store_relaxed(&timer->word, 0); /* relaxed: nobody else knows it yet */
}

/* ---- private: what arm and cancel stand on; they are inline, since most timers see nothing else ---- */

/* Holds: the lock. */
static inline void weft__wheel_count(struct weft__wheel *wheel, uint32_t change)
{
    /* relaxed, both: written under the lock, a hint to others */
    store_relaxed(&wheel->live, load_relaxed(&wheel->live) + change);
}

/* Holds: the lock. */
static inline void weft__wheel_mark_armed(struct weft__wheel *wheel, struct weft__timer *timer,
                                          struct weft_waker waker)
{
    weft_assert(!weft__waker_is_none(waker));
    weft_dassert(load_relaxed(&timer->word) == 0); /* relaxed, both: OUT, so the owner's */
    store_relaxed(&timer->word, waker.word | WEFT__TIMER_ARMED);
#if defined(WEFT_DEBUG)
    weft__link_init(&timer->link); /* who links it asserts that it is not linked */
#endif
    weft__wheel_count(wheel, 1);
}

/* Holds: the lock. The bit of a slot that is empty now stays: who looks there next takes it out. */
static inline void weft__wheel_take_out(struct weft__wheel *wheel, struct weft__timer *timer)
{
    weft__list_remove(&timer->link);
    weft__wheel_count(wheel, (uint32_t)-1);
    if (load_relaxed(&wheel->live) == 0) { /* relaxed, all: the lock orders them */
        store_relaxed(&wheel->next, INT64_MAX);
        wheel->exact = true;
    } else if (timer->when == load_relaxed(&wheel->next)) {
        wheel->exact = false;
    }
}

/* Holds: the lock. */
static inline void weft__wheel_link_fresh(struct weft__wheel *wheel, struct weft__timer *timer,
                                          int64_t ns, struct weft_waker waker)
{
    weft__wheel_mark_armed(wheel, timer, waker);
    timer->when = ns < 0 ? 0 : ns;
    weft__list_push_back(&wheel->fresh, &timer->link);
}

/* Holds: the lock. Returns what the word was. */
static inline uintptr_t weft__wheel_unlink(struct weft__wheel *wheel, struct weft__timer *timer)
{
    uintptr_t word = load_relaxed(&timer->word); /* relaxed, both: the lock orders it */
    if (word & WEFT__TIMER_ARMED) weft__wheel_take_out(wheel, timer);
    store_relaxed(&timer->word, 0);
    return word;
}

/* The long way: the wheel does not favour who comes. */
void weft__wheel_arm_after_shared(struct weft__wheel *wheel, struct weft__timer *timer, int64_t ns,
                                  struct weft_waker waker);

/* ---- the owner of a timer -------------------------------------------------------------------- */

/* Fires once the clock has come to `when`; what is past fires at the next turn. Pins the timer until
 * it is OUT again. The waker is claimed then; it holds no reference. */
void weft__wheel_arm_at(struct weft__wheel *wheel, struct weft__timer *timer, int64_t when,
                        struct weft_waker waker);

/* The same `ns` after the clock reading that comes next; below zero is zero, and what would be
 * beyond the end of time is at its end. */
static inline void weft__wheel_arm_after(struct weft__wheel *wheel, struct weft__timer *timer,
                                         int64_t ns, struct weft_waker waker)
{
    if (!weft__bias_try_enter(&wheel->lock)) {
        weft__wheel_arm_after_shared(wheel, timer, ns, waker);
        return;
    }
    weft__wheel_link_fresh(wheel, timer, ns, waker);
    weft__bias_leave(&wheel->lock, true);
}

/* By any thread. The timer is OUT. True: it had fired, its wake came or is on its way. One that is
 * OUT already may be cancelled, too. */
bool weft__wheel_cancel(struct weft__wheel *wheel, struct weft__timer *timer, enum weft__door door);

/* The same by the owner of the wheel, if it is favoured: so that it is a few loads and stores, and no call. False: it is not,
 * nothing was done. */
static inline bool weft__wheel_try_cancel(struct weft__wheel *wheel, struct weft__timer *timer,
                                          bool *fired)
{
    if (!weft__bias_try_enter(&wheel->lock)) return false;
    *fired = weft__wheel_unlink(wheel, timer) & WEFT__TIMER_FIRED;
    weft__bias_leave(&wheel->lock, true);
    return true;
}

/* Without the lock. True: it has fired, the driver is through with it, and it is OUT. False: it may
 * have fired all the same, which weft__wheel_fired shows. */
static inline bool weft__timer_take_granted(struct weft__timer *timer)
{
    /* relaxed, both: the mark was made before the push that brought this poll, whose order the
     * queues carry; a poll for another reason cannot see it */
    if (!(load_relaxed(&timer->word) & WEFT__TIMER_GRANTED)) return false;
    store_relaxed(&timer->word, 0);
    return true;
}

/* True: it has fired, and is OUT. False: it is still armed, and its waker will come. */
bool weft__wheel_fired(struct weft__wheel *wheel, struct weft__timer *timer, enum weft__door door);

/* Asserts that it is OUT: its frame may die. By the owner. */
static inline void weft__timer_check_out(const struct weft__timer *timer)
{
    weft_assert(load_relaxed(&timer->word) == 0); /* relaxed: the owner's by now */
}

/* ---- who drives the wheel -------------------------------------------------------------------- */

/* Is there nothing armed? A hint; exact for the thread that arms. */
static inline bool weft__wheel_idle(const struct weft__wheel *wheel)
{
    return load_relaxed(&wheel->live) == 0; /* relaxed: a hint */
}

/* Is there something for expire to do at `now`? A hint; fresh timers do not count. */
static inline bool weft__wheel_due(const struct weft__wheel *wheel, int64_t now)
{
    return load_relaxed(&wheel->next) <= now; /* relaxed: a hint */
}

/* A reading of the clock under way: on the stack of who reads. Its timers can be cancelled as before,
 * so it is pinned, and goes to expire. */
struct weft__reading {
    struct weft__link gathered; /* fresh timers that count from it    [wheel's lock] */
    bool some;                  /* there were; it counts in `readings` [its thread] */
};

/* Before the clock is read: what is fresh now counts from that reading. True: there is some, and expire must follow. */
bool weft__wheel_gather(struct weft__wheel *wheel, struct weft__reading *reading,
                        enum weft__door door);

/* Turn to `now`, which was read after the gather: stamp what was gathered, fire what is due, at most
 * `max` of them, and push their wakers. Takes the reading; NULL: by the owner, which alone arms, so that all that is fresh was there before it read
 * the clock. Returns how many fired; if weft__wheel_due afterwards, there is more to do. Holds: no lock. */
uint32_t weft__wheel_expire(struct weft__wheel *wheel, struct weft__reading *reading, int64_t now,
                            uint32_t max, const struct weft__sched *sched, enum weft__door door);

/* By the owner, which needs no turn at `now`, a time that it has just read: what is fresh gets its deadline without one. False: there is too much of it, or the wheel
 * lags behind; expire does the rest. */
bool weft__wheel_stamp(struct weft__wheel *wheel, int64_t now);

/* The time of the next look, WEFT__NEVER if nothing is armed; INT64_MIN if there is something to do
 * now (fresh timers, or a turn that was cut short), or in a moment: another one reads the clock for some. */
int64_t weft__wheel_next(struct weft__wheel *wheel, enum weft__door door);

/* Walks all of it and asserts what the top of this file says. For tests; no reading is under way. */
void weft__wheel_check(struct weft__wheel *wheel);

#endif
