/* SPDX-License-Identifier: MIT
 *
 * root - starts and ends the runtime of a case; turns it, if it is the current thread's.
 */
#include "root.h"

#include <stdio.h>
#include <stdlib.h>

weft_rt *root_rt(struct bench *b)
{
    weft_rt *rt = b->state;
    if (!rt) {
        int r = weft_rt_new(&(weft_rt_opts){.workers = b->workers ? (int)b->workers : -1}, &rt);
        if (r < 0) {
            fprintf(stderr, "weft_bench: no runtime: %d\n", r);
            exit(2);
        }
        b->state = rt;
    }
    weft_rt_enter(rt);
    return rt;
}

void root_end(struct bench *b)
{
    (void)weft_rt_stop(b->state, -1);
    weft_rt_enter(NULL);
}

int64_t root_wait(struct bench *b, weft_task *root)
{
    int64_t result = -1;
    while (!b->workers && !weft_done(root)) (void)weft_rt_turn(b->state, -1);
    int r = weft_join(root, &result);
    if (r < 0) {
        fprintf(stderr, "weft_bench: the root task was not joined: %d\n", r);
        exit(2);
    }
    return result;
}
