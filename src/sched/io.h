/* SPDX-License-Identifier: MIT
 *
 * io - the driver in the workers' loops: who turns which port, and how a worker sleeps that has one.
 *
 *     a worker       at its fairness tick, and when it has found work elsewhere without having slept
 *     asleep         in its port, if that has an fd, until its wheel's deadline; else on its futex. Awake, it delivers
 *                    what it was woken by: its own queues, and one sleeper is told if that is more than it runs
 *     another one    if the monitor has seen that the worker is stuck in a poll, and that its port has something (watch.h)
 *     a host's turn  at its beginning; the host's fd has the port in it (host.h)
 * A runtime without an fd pays one load of a zero for each of these, and sleeps on futexes as ever.
 *
 * THE SLEEP  A waker reaches a sleeper by its token (park.h), wherever it sleeps: on the futex, or in the port, by the port's event. The token
 * is stored before the signal, and looked at before the wait: so whoever is about to wait returns at once. The first fd of a port may be added
 * by another thread while its worker sleeps on the futex: who adds it stirs that worker, which then sleeps in the port.
 * A worker with fds does not spin before it sleeps: the wait itself looks at the kernel first, and returns at once if there is something.
 */
#ifndef WEFT_SCHED_IO_H
#define WEFT_SCHED_IO_H

#include "driver/driver.h"

struct weft_rt;
struct weft__worker;

int weft__io_new(struct weft_rt *rt);   /* 0; -ENOMEM */
void weft__io_stop(struct weft_rt *rt); /* no worker is there any more */
void weft__io_done(
    struct weft_rt
        *rt); /* nobody is: threads that sleep on its clock look at the fds beyond the stop */

/* One turn of a port without sleeping, by any worker of its runtime. Returns how many tasks it has woken. */
uint32_t weft__io_turn(struct weft__worker *w, struct weft__port *port);

/* Does the port have something that nobody has fetched? A system call, if it has an fd. */
bool weft__io_has(struct weft__port *port);

/* When the port has to be turned again, whatever comes: what the kernel would not take is handed in then. On the system's clock; WEFT__NEVER as a rule. */
int64_t weft__io_next_look(const struct weft__port *port);

/* Sleep until a token, an event or the deadline. True: one of the first two. What was fetched is delivered by the caller when it counts as awake. */
bool weft__io_park(struct weft__worker *w, int64_t deadline_ns, struct weft__events *into);
void weft__io_deliver(struct weft__worker *w, const struct weft__events *events);

/* Fds of the runtime: while there are any, something may come from outside. */
bool weft__io_is_watched(const struct weft_rt *rt);

#endif
