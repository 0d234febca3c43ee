/* SPDX-License-Identifier: MIT
 *
 * signals - which signals have come, as counts and a descriptor that tells.
 *
 * A handler counts and makes one event readable (sys/event.h); whoever listens has a descriptor of its own for it, and looks at
 * the count of its signal when something has come. So the handler does the least that one can do, and no thread has to block signals
 * for signalfd, whose mask every child would inherit.
 * The handler is there while somebody listens; then the disposition is again what it was. In the child of a fork a signal does what it
 * does by default: who listened is not there.
 *
 * Threads: any. Pairs: [signal-count] handler -> count: what was written before the signal was sent, as far as the kernel keeps order;
 * [signal-sb] handler and the last who listens: one of them sees the other, so that an event is not signalled behind its close.
 */
#ifndef WEFT_SYS_SIGNALS_H
#define WEFT_SYS_SIGNALS_H

#include <stdint.h>

struct weft__lock;

/* Listen to `number`. Gives a descriptor, close-on-exec, that an epoll reports anew whenever a signal comes, of any number; closed by the caller behind
 * weft__signals_close. Returns 0; -EINVAL: no such signal, or one that cannot be caught or must not be: those of faults in the program; -EMFILE, -ENFILE, -ENOMEM. */
int weft__signals_open(int number, int *fd);
void weft__signals_close(int number);

/* How many have come since the first listened; it goes round. */
uint32_t weft__signals_count(int number);

/* In the child of a fork, with one thread: nobody listens, and who does from now on hears the child's. */
void weft__signals_forget(void);

/* For who freezes it around fork. */
struct weft__lock *weft__signals_lock(void);

#endif
