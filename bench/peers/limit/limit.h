/* SPDX-License-Identifier: MIT
 *
 * limit - what the machine allows: echo and HTTP by loops written out by hand, one thread, no runtime, nothing that is not needed.
 *
 * Each is as fast as somebody would make it who knows the interface; where one of them can be made faster, it should be: weft is
 * compared with these.
 */
#ifndef WEFT_BENCH_LIMIT_H
#define WEFT_BENCH_LIMIT_H

#include <stdbool.h>

enum limit_case { LIMIT_ECHO, LIMIT_HTTP };

/* Serve until a signal. Borrow the listener. End the process with a sentence where the kernel lacks something. */
void limit_epoll(int listener, enum limit_case which);
void limit_uring(int listener, enum limit_case which);

/* Says what has failed, with errno, and ends the process. */
__attribute__((noreturn)) void limit_give_up(const char *what);

#endif
