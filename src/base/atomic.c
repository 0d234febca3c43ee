/* SPDX-License-Identifier: MIT
 *
 * atomic - the word behind a fence under TSan (see atomic.h); nothing in other builds.
 */
#include "base/atomic.h"

#if defined(WEFT__TSAN)
_Atomic uint32_t weft__tsan_fence_word;
#else
typedef int weft__atomic_c_is_empty; /* ISO C wants a declaration in every file */
#endif
