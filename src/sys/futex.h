/* SPDX-License-Identifier: MIT
 *
 * futex - sleep until a word changes.
 */
#ifndef WEFT_SYS_FUTEX_H
#define WEFT_SYS_FUTEX_H

#include "base/atomic.h"

#include <stdint.h>

#define WEFT__NEVER INT64_MAX /* a deadline that does not come */

#if defined(WEFT_MODEL)
#include "model.h"
#define weft__futex_wait(word, expected, deadline_ns) model_futex_wait((word), (expected), (deadline_ns) != WEFT__NEVER)
#define weft__futex_wake(word, count)                 model_futex_wake((word), (count))
#else

/* Sleep while *word is `expected`, until woken or until `deadline_ns` (absolute, on the monotonic clock; WEFT__NEVER: no end).
 * Blocks: yes. Returns 0 when woken, also for no reason; -EAGAIN if *word differed; -EINTR; -ETIMEDOUT. The caller looks at the word again in every case. */
int weft__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);

/* Wake at most `count` sleepers of *word. Blocks: no. Returns how many. The word's memory may be gone by the time of the call:
 * the kernel then finds nobody, or wakes a stranger for no reason, which every waiter must bear. */
int weft__futex_wake(_Atomic uint32_t *word, int count);

#endif
#endif
