/* SPDX-License-Identifier: MIT
 *
 * here - this thread's own record, through one opaque door.
 *
 * A compiler may keep the address of a thread-local in a register across a call. A fiber that is suspended in that call goes on on another thread, and would
 * write the first one's record. So the address is computed in a function that the compiler knows nothing about, each time it is asked for.
 */
#ifndef WEFT_TASK_HERE_H
#define WEFT_TASK_HERE_H

#include "types.h"

#if defined(__clang__)
#define WEFT__OPAQUE __attribute__((noinline))
#else
#define WEFT__OPAQUE __attribute__((noipa))
#endif

struct weft__here *weft__here(void);

#endif
