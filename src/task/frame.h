/* SPDX-License-Identifier: MIT
 *
 * frame - what the library does for the frames of stackless functions beyond polling them (weft/future.h).
 *
 * A local of a stackless body is dead after the first suspension, and yet its bytes often lie where they lay: such a
 * bug hides until some other call has used the stack in between. Debug builds therefore write over that stretch before
 * each poll.
 *
 * Threads: each function touches its caller's stack, and the frame and cx it is given.
 */
#ifndef WEFT__TASK_FRAME_H
#define WEFT__TASK_FRAME_H

/* Writes over the stack below the caller, where the poll that follows will have its locals; all but the few highest
 * bytes, where functions save registers. To be called right before the poll of a task, by the function that makes it. */
#ifdef WEFT_DEBUG
void weft__scribble(void);
#else
static inline void weft__scribble(void)
{
}
#endif

#endif
