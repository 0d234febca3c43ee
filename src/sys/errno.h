/* SPDX-License-Identifier: MIT
 *
 * errno - the thread's errno, put aside by what runs in a signal handler, or fails without its caller's failing. Elsewhere nobody needs it: src/sys reads it right
 * after the call, and answers with a number.
 */
#ifndef WEFT_SYS_ERRNO_H
#define WEFT_SYS_ERRNO_H

/* Async-signal-safe, both. */
int weft__errno_save(void);
void weft__errno_restore(int saved);

#endif
