/* SPDX-License-Identifier: MIT
 *
 * refused - why a spawn gave no task (task/refused.h): looked at afterwards, so that spawning itself carries no reason.
 */
#include "task/refused.h"

#include "sched/pool.h"
#include "sched/sched.h"

#include <errno.h>

static struct weft_rt *asked_for(const weft_spawn_opts *opts)
{
    struct weft_rt *rt = opts ? weft__place_rt(opts) : NULL;
    if (!rt && opts && opts->pool) rt = weft__pool_rt(opts->pool);
    return rt ? rt : weft_rt_current();
}

int weft__spawn_refused(const weft_spawn_opts *opts)
{
    if (opts && !weft__place_is_sound(opts)) return -EINVAL;
    struct weft_rt *rt = asked_for(opts);
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    return load_relaxed(&rt->stage) == WEFT__OPEN ? -ENOMEM : -ESHUTDOWN; /* relaxed: a look */
}
