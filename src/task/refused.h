/* SPDX-License-Identifier: MIT
 *
 * refused - why a spawn gave no task, for those forms of it that answer with an errno.
 */
#ifndef WEFT_TASK_REFUSED_H
#define WEFT_TASK_REFUSED_H

#include "types.h"

/* weft__task_new gave NULL for these options, which may be NULL. -EINVAL: they contradict each other; -ENXIO: there is no
 * runtime; -ESHUTDOWN: it stops; -ENOMEM. In sched/refused.c: it knows the runtime. */
int weft__spawn_refused(const weft_spawn_opts *opts);

#endif
