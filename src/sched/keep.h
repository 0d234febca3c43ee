/* SPDX-License-Identifier: MIT
 *
 * keep - who looks at which wheel, and when.
 *
 *     a worker       at its fairness tick; after a poll that armed a timer (the stretch is cut short: so a
 *                    sleep counts from the end of that poll); when it has nothing; and it sleeps no
 *                    longer than until its wheel's next deadline
 *     another one    if the monitor has seen that the worker is stuck in a poll (watch.h)
 *     a host's turn  at its beginning, and its wait ends at the next deadline
 *     a thread       that is no worker looks at the wheel for threads outside while it waits
 * Timers are armed in the armer's own wheel, so nobody sleeps past a deadline that another has set.
 * The clock is read once for each look, and not at all while the wheel is empty.
 *
 * A thread outside has a keeper of its own. If it has entered a runtime, its timers are on that
 * runtime's clock and lie in the runtime's last wheel, which all such threads share and each of them
 * looks at. It may stop meanwhile: the thread holds its memory, sleeps on to its end, and has then left
 * the runtime; a clock that stands is moved by those who still sleep. Otherwise they lie in a wheel of
 * its own, on the system's clock.
 */
#ifndef WEFT_SCHED_KEEP_H
#define WEFT_SCHED_KEEP_H

#include "time/keeper.h"

struct weft_rt;
struct weft__worker;

/* For `count` workers, and threads outside. Returns 0; -ENOMEM. */
int weft__wheels_new(struct weft_rt *rt);
void weft__wheels_free(struct weft_rt *rt);

void weft__keeper_init(struct weft__worker *w);

/* One turn of a wheel, by anyone. Returns how many timers fired; their tasks are where a wake by this
 * thread puts them. */
uint32_t weft__wheel_look(struct weft_rt *rt, struct weft__wheel *wheel);

/* A worker's own. */
uint32_t weft__worker_look(struct weft__worker *w);

/* When a worker has to look again at the latest, on the system's clock; 0: now. */
int64_t weft__worker_next_look(struct weft__worker *w);

/* The stretch is over: if it was cut short by a timer that was armed, the wheel is looked at. */
void weft__worker_look_hurried(struct weft__worker *w);

/* Is there a timer in the wheel of a worker that is due? By anyone; a hint. */
bool weft__worker_has_due(const struct weft__worker *w);

#endif
