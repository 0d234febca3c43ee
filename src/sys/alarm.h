/* SPDX-License-Identifier: MIT
 *
 * alarm - an fd that becomes readable at a point in time (timerfd), for hosts that sleep in poll(2).
 *
 * Readable from its deadline on until it is set again. Deadlines are those of sys/clock.h.
 * Threads: any. Blocks: no.
 */
#ifndef WEFT_SYS_ALARM_H
#define WEFT_SYS_ALARM_H

#include <stdint.h>

/* Open one that is not set, close-on-exec and non-blocking; weft__fd_close closes it. Returns 0;
 * -EMFILE; -ENFILE; -ENOMEM; -ENODEV. */
int weft__alarm_open(int *into);

/* Set it to `deadline_ns`, what is past to now; WEFT__NEVER (sys/futex.h): to none. Returns 0; -EBADF
 * or -EINVAL for an fd that is none. */
int weft__alarm_set(int fd, int64_t deadline_ns);

#endif
