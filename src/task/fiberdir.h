/* SPDX-License-Identifier: MIT
 *
 * fiberdir - fibers by number, for frames that have four bytes to remember theirs.
 *
 * A frame begins with one int32, and a frame declared by weft_fiber has nothing else that is the
 * library's; a stack's address does not fit. So such a fiber has a number, its place in a table of
 * blocks that double in size and never move:
 *     block k holds 64 << k places;  number - 1 = 64 * (2^k - 1) + place
 * Places are taken and given back under a lock. A number is looked up without it: whoever knows it
 * got it, with all that was written before, by the hand-over of the frame, and the block stays while
 * one number is in use. When none is, all blocks but the first, which is static, go.
 *
 * Threads: any; a number is used by the poller of its frame alone. Guarded by a lock of rank slab.
 * Rejected: a pointer in the frame (the macros' contract gives four bytes, and sizes of frames are
 * part of the ABI); the stack's place in its pool (frames would be tied to one pool).
 */
#ifndef WEFT_TASK_FIBERDIR_H
#define WEFT_TASK_FIBERDIR_H

#include <stdint.h>

struct weft__fiber;
struct weft__lock;

/* Gives a number above zero, for remove; -ENOMEM. */
int32_t weft__fiberdir_add(struct weft__fiber *fiber);

/* The fiber of a number in use. */
struct weft__fiber *weft__fiberdir_get(int32_t number);

/* Takes the number. */
void weft__fiberdir_remove(int32_t number);

/* For who freezes it around fork. */
struct weft__lock *weft__fiberdir_lock(void);

#endif
