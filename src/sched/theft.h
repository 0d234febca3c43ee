/* SPDX-License-Identifier: MIT
 *
 * theft - what a theft was worth, whom thieves leave alone, and who gathers tasks that belong together.
 *
 * SHUNNED  A thief of tiny tasks slows both sides down. When it runs dry it judges what it took: less than 50 us of work, or 70 ns for each task, and its victim is shunned
 * for a while, 100 us at first, doubling up to 1 ms; a theft that was worth it makes that 100 us again. One that is shunned is not stolen from, and wakes nobody to be. The judgement is of what lies there, so it is written
 * there, for all thieves: what others have is shared as ever, also with who has just judged.
 *
 * CROWDS  Tasks that do nothing but use one lock are slower on two workers than on one. Whoever meets another thread at such a lock counts it, and says where (weft__here_meets). A worker that has stolen and
 * meets others once in 4 us has taken what belongs together. At its next tick it writes down the places, and its victim is shunned, up to 8 ms; later than that behind the theft it is
 * no longer the victim's business whom the thief meets. Who is in a crowd at one of them, at its own tick, gathers the ring of
 * who says so, as thieves do, and is shunned as well. Of two that have stolen the one with the lower number gathers, and one that has not gathers from all: so a crowd ends at one worker, and never goes back and forth.
 *
 *     crowd   0 -> places         [tick]         by the worker: it has stolen, and is in a crowd there
 *             places -> places    [tick]         the same, elsewhere
 *             places -> 0         [gather]       by who has come for its ring
 *             places -> 0         [tick, ends]   by the worker: it is in no crowd any more, for a millisecond at least, or has run dry
 * A place is one bit of 64, made of an address: two that have the same bit are taken for one, and cost what one does. The addresses themselves are kept nowhere: what was there may be gone.
 * All words here are hints, relaxed, and may be old or written over: a task lies in one ring or the other throughout, and is taken from it as by any thief (runq.h). A worker with a ring is awake, whoever
 * shuns it: what it has can be shared late, by 8 ms, and not lost. Behind a poll that does not end everything may be taken, shunned or not (watch.h); that is a rescue, and not judged.
 * Tasks that work for 100 ns between two operations meet more seldom than that, and gain by two workers (docs/BENCHMARKS.md).
 *
 * Threads: begins, ends and tick by the worker itself; the words of struct weft__shun by all workers of its runtime.
 * Rejected: a time for the whole runtime before which nobody offers (one crowd made all others share late); a thief that is deaf to all (the same, for what others offer it); the victim's number instead of the places
 * (tasks of one crowd that two thieves took from a third, who has none of it, would never come together); the address of the last meeting alone (tasks that use two channels in turn: one worker may say the one each
 * time, and another the other).
 */
#ifndef WEFT_SCHED_THEFT_H
#define WEFT_SCHED_THEFT_H

#include "base/atomic.h"

struct weft__worker;

/* What others know and say of a worker. */
struct weft__shun {
    _Atomic int64_t until;     /* thieves leave it alone before this time; they write, and it does */
    _Atomic int64_t next_ns;   /* how long it will be shunned the next time; the same */
    _Atomic uint64_t crowd;    /* its loot is in the way of others, there; 0: it is not */
};

/* What a worker knows of its last theft, and of those whom it meets. Its own. */
struct weft__theft {
    struct weft__worker *victim; /* whom it stole from, and it has not run dry since; NULL: it works on its own */
    int64_t begun;               /* when */
    bool judged;                 /* it is to be: it was no rescue, and no crowd has shown what it was worth */
    uint64_t count;              /* how many tasks that were */
    int64_t met_since;           /* its meetings (here->met) are counted from then on, */
    uint32_t met;                /* when they were so many */
};

void weft__shun_init(struct weft__shun *shun);

/* Thieves leave it alone, now. */
static inline bool weft__shunned(const struct weft__shun *shun, int64_t now)
{
    return now < load_relaxed(&shun->until); /* relaxed: a hint */
}

/* It has stolen so many, and works on them from now on. `judged`: it is no rescue. */
void weft__theft_begins(struct weft__worker *w, struct weft__worker *victim, uint32_t count, bool judged);
void weft__theft_ends(struct weft__worker *w);  /* it has run dry: was it worth it? */
void weft__theft_tick(struct weft__worker *w);  /* at each tick: is it in a crowd? */

#endif
