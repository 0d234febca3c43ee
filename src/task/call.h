/* SPDX-License-Identifier: MIT
 *
 * call - call forms: poll a frame to its end from code that is no poll itself.
 *
 *     on a fiber            poll; PENDING: suspend the fiber, which its task's waker brings back
 *     on a plain thread     poll; PENDING: sleep on a futex, which a foreign waker wakes
 *     inside another poll   refused with -EDEADLK: the caller of that poll would wait for an answer
 *                           that only it can bring about; so would a worker that waits in a hook
 * "Inside another poll" is known without a count: on a fiber, its `polling` is set while a frame is
 * polled on its stack; off fibers, a poll is there when here->cx or here->task is, and a worker that is
 * in none is in a hook. A fiber polled beneath has a record of its own, and may suspend.
 *
 * A plain thread's waker may be delivered late, when the call has returned and its stack is another
 * call's. So the foreign waker lies on the heap, and every deliverer holds a reference. The thread keeps
 * it for its next call, unless somebody has a reference by then: a wait takes nothing from the heap but the
 * first one of a thread. Where there is no memory it lies on the stack, and the call waits until the
 * last reference is gone.
 *     Pairs: [call-ring] wake -> sleeper, what was written before the wake.
 *            [call-gone] last unref -> owner of a waker on the stack, the last touch.
 * Rejected: a waker in the thread's own record (who has kept a reference would hold the thread's end up).
 */
#ifndef WEFT_TASK_CALL_H
#define WEFT_TASK_CALL_H

#include "types.h"

/* Poll the frame to its end. Blocks: the fiber or the thread. Returns 0; -EDEADLK inside a poll: then
 * the frame was not polled, one line on stderr (once per place) names the task and the caller, and
 * a debug build aborts. For call forms of the library, which give the address they were called from;
 * weft__run (weft/future.h) is the same for weft_run. */
int weft__run_from(weft_pollfn *poll, void *frame, const void *caller);

/* The whole of a call form whose poll is name##_poll of a struct name, from its arguments:
 *     int weft__fs_mkdir(const char *path, mode_t mode)
 *     {
 *         return WEFT__RUN_FRAME(weft_fs_mkdir, .path = path, .mode = mode);
 *     }
 * A macro, since the frame has another type each time, and the address must be the caller's. */
#define WEFT__RUN_FRAME(name, ...)                                                                 \
    ({                                                                                             \
        struct name f_ = {__VA_ARGS__};                                                            \
        int r_ = weft__run_from(name##_poll, &f_, __builtin_return_address(0));                    \
        r_ < 0 ? r_ : f_.ret;                                                                      \
    })

/* Give back what this thread keeps for its next call. It does so when it ends. */
void weft__call_forget(void);

/* Would it be refused here? */
bool weft__run_is_refused(void);

#endif
