/* SPDX-License-Identifier: MIT
 *
 * fiber - a plain function as a task with a stack of its own: weft_go(fn, args...).
 */
#ifndef WEFT_FIBER_H
#define WEFT_FIBER_H

#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plain function with its arguments, bound: up to six integers and pointers. */
typedef struct weft_call {
    void (*fn)(void);
    uint64_t arg[6];
    uint8_t ret_bytes;                         /* 0: void */
    uint8_t ret_signed;
} weft_call;

/* Starts a fiber that makes the call. `site` names it; its poll and frame are the library's (see weft__fiber_site). */
WEFT_API weft_task *weft__go(const struct weft_site *site, const weft_call *call, const weft_spawn_opts *opts) __attribute__((warn_unused_result));

/* The poll function of weft_go's tasks, and their frame: what a site of weft_go is filled with. */
struct weft__go_frame {
    int32_t weft__at;
    uint64_t ret;                              /* the function's result, in its low ret_bytes */
    weft_call call;
    void *weft__fiber;
};
WEFT_API weft_pollfn weft__go_poll;

/* The poll function of a weft_fiber frame: runs body(frame) on a stack of its own. */
WEFT_API weft_poll weft__fiber_poll(void (*body)(void *frame), void *frame, weft_cx *cx);

#ifdef __cplusplus
}
#endif

#endif
