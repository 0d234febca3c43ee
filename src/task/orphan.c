/* SPDX-License-Identifier: MIT
 *
 * orphan - clears the record of the thread that forked, and ends a child that goes back; the idea is in orphan.h.
 */
#include "task/orphan.h"

#include "base/assert.h"
#include "sys/fork.h"
#include "task/here.h"
#include "task/holds.h"
#include "task/lent.h"
#include "task/linked.h"
#include "task/name.h"

#include <stdio.h>

/* Of this process's last fork, seen by the child. Written while it has one thread. */
static bool left_a_worker;
static const struct weft_site
    *left_task; /* of the task that forked; NULL: a hook of the worker did */
static const char *left_name; /* of that task: in this process it never ends */

uint32_t weft__forks;

void weft__orphan_here(void)
{
    struct weft__here *here = weft__here();

    weft__forks++;
    weft__lent_forget();
    weft__linked_forget();
    weft__holds_forget();
    here->entered = NULL;
    if (!here->worker) return;
    left_a_worker = true;
    left_task = here->task ? here->task->site : NULL;
    left_name = here->task ? weft__name_of(here->task) : NULL;
    here->worker = NULL;
    here->number = 0;
    here->keeper = NULL;
    here->task = NULL;
    here->cx = NULL;
    here->fiber = NULL;
    here->stacks = NULL;
    here->magazine = NULL;
}

void weft__orphan_returns(void)
{
    weft_assert(left_a_worker); /* else nobody forked, and a fiber was suspended off its stack */
    if (left_task) {
        fprintf(stderr, "weft: the child of a fork went back into task '%s' (spawned at %s:%u)",
                left_name, left_task->file, left_task->line);
    } else {
        fputs("weft: the child of a fork went back into a worker's hook", stderr);
    }
    fputs(", whose runtime stayed with the parent: end it by exit, _exit or exec\n", stderr);
    weft__process_end(WEFT__ORPHAN_CODE);
}
