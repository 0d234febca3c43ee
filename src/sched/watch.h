/* SPDX-License-Identifier: MIT
 *
 * watch - what monitor and workers say to each other: who stands still, who may be robbed, who sleeps.
 *
 * STANDS STILL  The monitor looks at each worker from time to time and keeps what it saw. A worker
 * that has work behind it at two looks in a row, and has neither ended a poll nor made a turn of its
 * shard in between, has been in one poll all that time; or it got no CPU, which is the same to those
 * behind it. Work at *both* looks: who went to search and just found something has not ended a poll
 * either, and had nothing at the first look.
 *
 * LEAVE  Thieves leave lone tasks alone: their worker is about to run them. The one that stands
 * still is not, so the monitor gives leave to rob it: `word` is its poll count plus one. The leave
 * stands while the count does, so the poll's end takes it back by itself, for nothing: the victim
 * neither knows of it nor looks at it. A count never comes again, so a leave is never good for
 * another poll. A thief may read the count a moment late, and take what it should not, once.
 *
 * A leave is work that was pushed, and travels as such: the monitor stores it, fences, looks for a
 * sleeper and wakes it (weft__idle_submit); a sleeper's re-scan looks for leaves too. So whoever
 * searches, falls asleep or sleeps at that moment finds it by the proof in idle.h. [idle-sb] also
 * carries what the monitor had seen in the victim's slot: who finds the leave by the re-scan finds
 * the task, or one put there later, or that it has gone.
 *
 * THE MONITOR'S SLEEP  When all workers sleep there is nothing to watch, and the monitor sleeps too,
 * until one of them leaves its sleep. Each side writes one place and reads the other's:
 *     monitor, in doze    asleep = true                  fence   read the idle words   [watch-sb]
 *     worker, in stir     its bit is off (idle_unsleep)  fence   read asleep           [watch-sb]
 * so that it sees the worker, or the worker sees it asleep and wakes it: a fence and a load in a
 * worker that leaves its sleep, and a read-modify-write only if the monitor sleeps. In between, and
 * between two looks, it waits for a deadline, which nobody needs to cut short but the end.
 *
 * Threads: stir by workers; rest, doze, give and take_back by the monitor; stop by who joins it.
 * Pairs: [watch-sb] doze <-> stir; [idle-sb] carries the leaves, [park] the rest.
 * Rejected: a leave in the thief's own record: it may be awake for another reason by the time that
 * it is written, and one thief has it where three could help; moving the tasks to the inject queue:
 * the monitor would be one more taker, and could hold tasks when it is preempted.
 */
#ifndef WEFT_SCHED_WATCH_H
#define WEFT_SCHED_WATCH_H

#include "base/atomic.h"
#include "sched/idle.h"
#include "sched/park.h"

/* ---- what stands still ---- */

/* What the monitor saw of one worker at one look. */
struct weft__look {
    uint64_t polls;  /* ended so far */
    uint64_t turns;  /* of its shard */
    uint64_t
        queued; /* tasks in its `next`, hand, ring and arrays, and one more if a timer of its is due, or an fd has something */
};

/* Between two looks at one worker: is there somebody to help? */
static inline bool weft__look_stands_still(const struct weft__look *before,
                                           const struct weft__look *now)
{
    if (before->queued == 0 || now->queued == 0) return false;
    return before->polls == now->polls && before->turns == now->turns;
}

/* ---- leave ---- */

struct weft__leave {
    _Atomic uint64_t word; /* the victim's poll count + 1; 0: none */
};

/* Monitor: others may take all that is behind the poll after `polls`. It then calls idle_submit. */
static inline void weft__leave_give(struct weft__leave *leave, uint64_t polls)
{
    store_relaxed(&leave->word, polls + 1); /* relaxed: the fence of submit orders it */
}

/* Monitor: the worker moves. The leave is void already; thieves now see it without the count. */
static inline void weft__leave_take_back(struct weft__leave *leave)
{
    /* relaxed, both: one writer, and it says nothing new */
    if (load_relaxed(&leave->word)) store_relaxed(&leave->word, 0);
}

/* Thief: may it rob the worker whose count this is? The count is looked at only if there is a leave:
 * its line is the victim's own, which writes it with each poll. */
static inline bool weft__leave_stands(const struct weft__leave *leave,
                                      const _Atomic uint64_t *polls)
{
    uint64_t word = load_relaxed(&leave->word); /* relaxed: behind the thief's fence, or a hint */
    return word && word == load_relaxed(polls) + 1; /* relaxed: late by a moment at worst */
}

/* ---- how often ---- */

/* Looks at the short interval after trouble. Doubled: 2 % of a core for twice as long. */
#define WEFT__PACE_ALERT_LOOKS 100

/* Looks at which all slept before the monitor sleeps too: a second. Halved: programs that do
 * something once a second pay for its wake each time, 5 us. */
#define WEFT__PACE_QUIET_LOOKS 200

/* The short interval is this part of the long one. */
#define WEFT__PACE_ALERT_PART 5

enum weft__pace_next {
    WEFT__PACE_LONG,
    WEFT__PACE_SHORT,
    WEFT__PACE_DOZE,
};

struct weft__pace {
    uint32_t alert_left; /* looks still to come at the short interval */
    uint32_t quiet;      /* looks in a row at which all slept */
};

/* After a look, which found trouble, or all asleep, or neither: what now? */
enum weft__pace_next weft__pace_after(struct weft__pace *pace, bool trouble, bool all_asleep);

/* ---- the monitor's sleep ---- */

struct weft__watch {
    /* on a line that is hardly ever written: each worker that leaves its sleep reads it  [watch-sb] */
    WEFT__CACHE_ALIGNED _Atomic bool asleep;
    /* on another, which the monitor writes at each rest */
    WEFT__CACHE_ALIGNED struct weft__park park;
    _Atomic bool stopped; /* the token of `park` carries it */
};

void weft__watch_init(struct weft__watch *watch);

/* By anyone: it was not told to stop; a hint. */
bool weft__watch_goes_on(const struct weft__watch *watch);

/* Monitor: wait for a point in time. False: it was told to stop. */
bool weft__watch_rest(struct weft__watch *watch, int64_t until_ns);

/* Monitor: if all workers sleep, sleep until one leaves its sleep, or `until_ns`. True: it has slept
 * until then, and nobody has stirred. */
bool weft__watch_doze(struct weft__watch *watch, const struct weft__idle *idle, int64_t until_ns);

/* A worker has left its sleep: its bit is off. */
void weft__watch_stir(struct weft__watch *watch);

/* The monitor leaves its loop soon. */
void weft__watch_stop(struct weft__watch *watch);

#endif
