/* SPDX-License-Identifier: MIT
 *
 * clock - what time it is in a runtime: the system's, moved by a constant; or a time that stands
 * still until somebody moves it.
 *
 *     runs      now = the system's monotonic clock + shift
 *     stands    now = frozen
 *     runs   -> stands    [pause]      at the time that it is
 *     stands -> runs      [resume]     from the time at which it stands: shift makes up for the rest
 *     stands -> stands    [advance]    later by so much
 *     stands -> stands    [idle]       at the next deadline, if nothing else is left to do
 * Time never goes backwards, but for the moment of a pause: who has read the clock just then may have
 * read a little more than it stands at. Wheels stand still meanwhile (time/wheel.h).
 *
 * IDLE  A runtime whose clock stands moves it itself when all its workers sleep and no queue holds
 * anything: to the earliest deadline of all wheels, no further. The worker that falls asleep last
 * does it: each marks itself asleep by a read-modify-write of one word and looks behind its fence, so
 * the last one sees all the others. If another one is just looking, it is asked to look again. It drives all wheels itself, in their order, so what becomes due
 * at one time is queued by one thread. `holds` keeps it from happening: something is under way that
 * the queues do not show, a blocking job. A job that waits in a call of ours is no reason to wait for
 * it; it is asleep until it is rung, and whoever rings it is awake himself, or moves the clock; nor are those that
 * wait behind it for a place in their lane. Nor is a runtime idle
 * that has an fd: what the kernel will bring, and when, nobody knows. Its clock moves when it is told to.
 * A runtime that has stopped is idle: only threads outside that still sleep on its clock look.
 *
 * All must sleep before anything else is looked at, and behind that, and nobody may have fallen asleep in between: a task that is woken meanwhile may arm a timer, begin a
 * job and wait, and all would seem idle, with a deadline that the job has to come before.
 *
 * Threads: any. Pairs: [rt-clock] resume -> readers: the shift. [clock-holds] release -> is_held: that its task is awake.
 * [clock-rest] worker_rests -> move_idle: what its tasks hold.
 */
#ifndef WEFT_SCHED_CLOCK_H
#define WEFT_SCHED_CLOCK_H

#include "base/atomic.h"
#include "sys/clock.h"
#include "sys/futex.h"
#include "sys/lock.h"

#include <stdbool.h>

struct weft_rt;

#define WEFT__CLOCK_RUNS INT64_MIN /* in `frozen` */

struct weft__clock {
    /* on a line that is hardly ever written: each reading looks at it */
    WEFT__CACHE_ALIGNED _Atomic int64_t
        frozen;             /* the time at which it stands, or RUNS  [rt-clock] */
    _Atomic int64_t shift;  /* beyond the system's clock */
    _Atomic uint32_t holds; /* while above zero it is not moved for being idle  [clock-holds] */
    _Atomic uint32_t moving; /* by whom it is moved for being idle: see below  [clock-move] */
    struct weft__lock lock; /* rank rt; pause and resume, one at a time */
};

void weft__clock_init(struct weft__clock *clock, bool paused);

static inline int64_t weft__clock_read(const struct weft__clock *clock)
{
    int64_t frozen = load_acquire(&clock->frozen); /* [rt-clock] with resume */
    if (__builtin_expect(frozen != WEFT__CLOCK_RUNS, 0)) return frozen;
    return weft__clock_now() + load_relaxed(&clock->shift); /* relaxed: ordered by the load above */
}

/* Does it stand? A hint. */
static inline bool weft__clock_stands(const struct weft__clock *clock)
{
    return load_relaxed(&clock->frozen) != WEFT__CLOCK_RUNS; /* relaxed: a hint */
}

/* A wheel's next look as a deadline of the system's clock, for the kernel; 0: now. What is in the
 * future does not come while the clock stands. */
static inline int64_t weft__clock_to_system(const struct weft__clock *clock, int64_t when)
{
    if (when == INT64_MIN) return 0; /* a wheel's way to say that there is something to do now */
    if (when == WEFT__NEVER) return WEFT__NEVER;
    int64_t frozen = load_relaxed(&clock->frozen); /* relaxed, as below */
    if (frozen != WEFT__CLOCK_RUNS) return when <= frozen ? 0 : WEFT__NEVER;
    int64_t system =
        when - load_relaxed(&clock->shift); /* relaxed: who changes it wakes all who sleep */
    return system < 0 ? 0 : system;
}

/* If all workers sleep, nothing is queued, and the clock stands: move it to the next deadline, but not
 * beyond `limit`, and fire what is due there; onto the queues of the worker that calls, if it is one.
 * True: it was moved, or something fired. */
bool weft__clock_move_idle(struct weft_rt *rt, int64_t limit);

/* The same by a thread outside, which may go on behind that and not look again: somebody in the runtime looks for it, who may have asked meanwhile, and sleeps. */
bool weft__clock_move_outside(struct weft_rt *rt);

/* Of `moving`:
 *     LEFT   -> MOVING    [keep_still]    whoever did that looks, and may move it
 *     MOVING -> ASKED     [keep_still]    another one wanted to, and sleeps now: perhaps the first has seen it awake
 *     ASKED  -> MOVING    [look_again]    so that one looks again
 *     MOVING -> LEFT      [look_again, let_move]
 *     ASKED  -> LEFT      [let_move]      it stays awake, and will look by itself */
enum { WEFT__CLOCK_LEFT, WEFT__CLOCK_MOVING, WEFT__CLOCK_ASKED };

/* One at a time moves a clock that stands for being idle; while somebody has this right nobody does. False: another one has it, and who it rings
 * may not be awake yet; it is told that there was one more. */
static inline bool weft__clock_keep_still(struct weft__clock *clock)
{
    uint32_t was = WEFT__CLOCK_LEFT;
    uint32_t next;
    do
        next = was == WEFT__CLOCK_LEFT ? WEFT__CLOCK_MOVING : WEFT__CLOCK_ASKED;
    while (!cas_acq_rel(&clock->moving, &was, next)); /* [clock-move] with let_move, look_again */
    return was == WEFT__CLOCK_LEFT;
}

/* By one who stays awake, and looks once more before it sleeps, or has another one look: whoever asked meanwhile needs no answer. */
static inline void weft__clock_let_move(struct weft__clock *clock)
{
    /* [clock-move] with keep_still: what it has queued, and whom it rang */
    store_release(&clock->moving, WEFT__CLOCK_LEFT);
}

/* By one who would sleep now. True: somebody has asked since, and the right is still ours. */
static inline bool weft__clock_look_again(struct weft__clock *clock)
{
    uint32_t was = WEFT__CLOCK_MOVING;
    /* [clock-move] with keep_still: what was looked at */
    if (cas_release(&clock->moving, &was, WEFT__CLOCK_LEFT)) return false;
    /* [clock-move] with keep_still: whoever asked sleeps */
    (void)exchange_acquire(&clock->moving, WEFT__CLOCK_MOVING);
    return true;
}

/* `move` looks whether all is idle and moves it then, which it tells. Done again for whoever wanted to do so meanwhile. */
static inline bool weft__clock_move_by(struct weft__clock *clock, bool (*move)(void *ctx),
                                       void *ctx)
{
    if (!weft__clock_keep_still(clock)) return false;
    do {
        if (!move(ctx)) continue;
        weft__clock_let_move(clock);
        return true;
    } while (weft__clock_look_again(clock));
    return false;
}

/* Of a runtime that has stopped: to the end of all who sleep on it. */
void weft__clock_run_out(struct weft_rt *rt);

/* The clock stands, and something has changed that the queues do not show: somebody in the runtime
 * is to look whether it is idle now, before it sleeps on. */
void weft__clock_nudge(struct weft_rt *rt);

/* Is something under way beside the workers? A blocking job, unless it waits itself. */
bool weft__clock_is_held(struct weft_rt *rt);

/* While held, the clock is not moved for being idle. For what runs beside the workers. */
static inline void weft__clock_hold(struct weft__clock *clock)
{
    (void)fetch_add_relaxed(&clock->holds,
                            1); /* relaxed: the caller is a task that runs, or holds one */
}

static inline void weft__clock_release(struct weft__clock *clock)
{
    /* [clock-holds] with is_held: this worker is awake, and its task may have timers that are over with the job */
    (void)fetch_sub_release(&clock->holds, 1);
}

#endif
