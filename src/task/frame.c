/* SPDX-License-Identifier: MIT
 *
 * frame - what the library does for the frames of stackless functions beyond polling them. The idea is in frame.h.
 */
#include "task/frame.h"

#include "base/sanitize.h"
#include "types.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WEFT__ASAN
#include <sanitizer/asan_interface.h>

/* With its check for use after return, ASan puts locals onto a stack of its own, and knows whose they are: where on
 * the real stack they would lie. */
static uintptr_t on_real_stack(const void *address)
{
    void *fake = __asan_get_current_fake_stack();
    void *real =
        fake ? __asan_addr_is_in_fake_stack(fake, (void *)(uintptr_t)address, NULL, NULL) : NULL;

    return (uintptr_t)(real ? real : address);
}
#else
static uintptr_t on_real_stack(const void *address)
{
    return (uintptr_t)address;
}
#endif

/* Stacks grow down: what the poll has on its stack lies between this function's own frame and where that of the poll
 * ends. What lies above belongs to callers and outlives the poll: a frame that weft_run keeps on a fiber's stack, for
 * one. */
__attribute__((noinline)) void weft__child_elsewhere(const void *child, const void *stack_end,
                                                     const char *file, int line)
{
    uintptr_t at = on_real_stack(child);

    if (at < (uintptr_t)__builtin_frame_address(0) || at >= (uintptr_t)stack_end) return;
    fprintf(
        stderr,
        "weft: %s:%d: what is awaited lies on the stack, which does not survive the await: put it into the frame\n",
        file, line);
    abort();
}

/* `cx` is changed in place rather than copied: a fiber beneath finds it by this address. */
weft_poll weft__poll_stop(weft_pollfn *poll, void *frame, weft_cx *cx)
{
    int why = cx->why;

    if (why == 0) cx->why = -ECANCELED;
    weft_poll answer = poll(frame, cx);
    cx->why = why;
    return answer;
}

#ifdef WEFT_DEBUG
enum {
    SCRIBBLE_BYTES = 1024
}; /* covers a body and the calls next to it; doubled, a debug poll writes twice as much */

__attribute__((noinline, no_sanitize("address"))) void weft__scribble(void)
{
    char dead[SCRIBBLE_BYTES];

    __builtin_memset(dead, 0xa5, sizeof dead);
    __asm__ volatile("" : : "r"(dead) : "memory"); /* somebody may look: the bytes are written */
}
#endif
