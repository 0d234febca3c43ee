/* SPDX-License-Identifier: MIT
 *
 * root - the runtime of a case and its root task: the logic of a case runs inside a spawned task on a
 * worker, never on the main thread.
 *
 *     BENCH(spawn, .n = 1000000, .end = root_end)
 *     {
 *         uint64_t start = root_start(b);
 *         return root_finish(b, start, weft_spawn(spawner, b->n), b->n, b->n);
 *     }
 */
#ifndef WEFT_BENCH_ROOT_H
#define WEFT_BENCH_ROOT_H

#include "harness.h"

#include <weft/weft.h>

/* The runtime of the case, made in its first round and entered by this thread. */
weft_rt *root_rt(struct bench *b);

/* Ends it: `.end` of every case. */
void root_end(struct bench *b);

/* Waits for the root task. Takes it. Returns its result, an int64_t. */
int64_t root_wait(struct bench *b, weft_task *root);

/* A round begins: the time, with the runtime up. */
uint64_t root_start(struct bench *b);

/* Waits for the root task, whose result is the checksum. Takes it. Returns the nanoseconds since
 * `start_ns` for each of `ops`. */
double root_finish(struct bench *b, uint64_t start_ns, weft_task *root, uint64_t ops,
                   uint64_t expected);

/* ---- spawn all, join all ------------------------------------------------------------------------ */

/* Starts `n` tasks, each with an int64_t for a result, and puts their handles into `tasks`. Called
 * once by the root, so that the loop around the spawn is the case's own. */
typedef void root_spawn_all(weft_task **tasks, uint64_t n, uint64_t arg);

/* A root that has them spawned, keeps the handles, then joins them in this order. Gives the root
 * task; its result is the sum of theirs. */
weft_task *root_all(root_spawn_all *spawn, uint64_t n, uint64_t arg);

#endif
