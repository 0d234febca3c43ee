/* SPDX-License-Identifier: MIT
 *
 * root - the runtime of a case, and its root task: the logic of a case runs inside a spawned task, never on the main thread.
 */
#ifndef WEFT_BENCH_ROOT_H
#define WEFT_BENCH_ROOT_H

#include "../harness.h"

#include <weft/weft.h>

/* The runtime of the case, made in its first round. */
weft_rt *root_rt(struct bench *b);

/* Ends it: `.end` of every case. */
void root_end(struct bench *b);

/* Waits for the root task. Takes it. Returns its result. */
int64_t root_wait(struct bench *b, weft_task *root);

#endif
