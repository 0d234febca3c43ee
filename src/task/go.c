/* SPDX-License-Identifier: MIT
 *
 * go - starts a fiber: a task whose frame holds the call to make.
 */
#include <weft/fiber.h>

weft_task *weft__go(const struct weft_site *site, const weft_call *call,
                    const weft_spawn_opts *opts)
{
    weft_task *task = weft__task_new(site, opts);
    if (!task) return NULL;

    struct weft__go_frame *frame = weft__task_frame(task);
    *frame = (struct weft__go_frame){.call = *call};
    return weft__task_start(task);
}
