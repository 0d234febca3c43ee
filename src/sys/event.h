/* SPDX-License-Identifier: MIT
 *
 * event - an eventfd: a descriptor that becomes readable when somebody says so.
 *
 * Signals add up until they are drained: any number of signals is one wake-up, and none is lost.
 * Threads: any. Blocks: never.
 */
#ifndef WEFT_SYS_EVENT_H
#define WEFT_SYS_EVENT_H

#include <stdbool.h>

/* Open one, close-on-exec and non-blocking; weft__fd_close closes it. Returns 0; -EMFILE;
 * -ENFILE; -ENOMEM; -ENODEV. */
int weft__event_open(int *into);

#if defined(WEFT_MODEL)
/* What a signal does in a model is the model's to say. */
#ifndef MODEL_EVENT_SIGNAL
#define MODEL_EVENT_SIGNAL(fd) ((void)(fd), 0)
#endif
#define weft__event_signal(fd) MODEL_EVENT_SIGNAL(fd)
#else

/* Make it readable. Returns 0; what is already full is readable and counts as done. May be
 * called from a signal handler. Any other answer (-EBADF) means that `fd` is none of ours. EINTR
 * cannot happen: the call does not sleep. */
int weft__event_signal(int fd);

#endif

/* Take all signals that have come. Returns 1 if there were some, 0 if there were none; an error
 * as above. */
int weft__event_drain(int fd);

#endif
