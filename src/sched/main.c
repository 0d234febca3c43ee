/* SPDX-License-Identifier: MIT
 *
 * main - what WEFT_MAIN does.
 */
#include "sched/sched.h"

#include "base/err.h"

#include <weft/fiber.h>

#include <stdio.h>

static const struct weft_site app_site = {
    .poll = weft__go_poll,
    .name = "app",
    .file = "WEFT_MAIN",
    .frame_bytes = sizeof(struct weft__go_frame),
    .ret_at = offsetof(struct weft__go_frame, ret),
    .ret_bytes = sizeof(int),
    .ret_signed = 1,
    .kind = WEFT__FIBER,
};

int weft__main(int (*app)(int, char **), int argc, char **argv)
{
    weft_rt *rt;
    int result = 0;
    int r = weft_rt_new(&(weft_rt_opts){.make_default = true}, &rt);
    if (r < 0) {
        fprintf(stderr, "weft: no runtime: %s\n", weft__err_name(r));
        return 1;
    }
    weft_call call = {.fn = (void (*)(void))app, .arg = {(uint64_t)argc, (uint64_t)(uintptr_t)argv}, .ret_bytes = sizeof(int), .ret_signed = 1};
    weft_task *task = weft__go(&app_site, &call, &(weft_spawn_opts){.rt = rt});
    r = weft__join(task, &result, sizeof(result));
    if (r == 0) r = result;
    if (r < 0) fprintf(stderr, "weft: app ended with %s: %s\n", weft__err_name(r), weft__err_text(r));
    (void)weft_rt_stop(rt, -1);
    return r < 0 ? 1 : r;
}
