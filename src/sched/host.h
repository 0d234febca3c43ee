/* SPDX-License-Identifier: MIT
 *
 * host - what the host of a current-thread runtime waits for: one fd for queued work, for the next
 * deadline, and for what comes to its fds.
 *
 * An epoll with two fds in it: an event, which a push from outside signals, and an alarm, which the
 * end of each turn sets to the wheel's next deadline, or to when the port has to be turned again
 * (io.h). Level-triggered: readable until a turn has taken the event, and set the alarm anew. The
 * epoll itself is never waited on here. Once the runtime's port is open it is in it, too: readable
 * while it has something that no turn has fetched.
 * Threads: the one that turns the runtime; signal by any (rt.c).
 */
#ifndef WEFT_SCHED_HOST_H
#define WEFT_SCHED_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct weft__port;

struct weft__host {
    int epoll;        /* what the host has; -1: not asked for */
    int alarm;        /* -1 likewise */
    int64_t alarm_at; /* what it is set to, on the system's clock */
    bool nested;      /* the port is in it */
};

void weft__host_init(struct weft__host *host);

/* Open both, around an event that is open. Returns 0, or what opening an fd answers; then nothing is
 * open. */
int weft__host_open(struct weft__host *host, int event);

/* The next look at the wheel. Nothing happens if nobody has asked for the fd. */
void weft__host_set(struct weft__host *host, int64_t next);

/* The runtime's port may have been opened since. False: memory is short, and it has to be tried again behind another turn. */
bool weft__host_nest(struct weft__host *host, struct weft__port *port);

void weft__host_close(struct weft__host *host);

#endif
