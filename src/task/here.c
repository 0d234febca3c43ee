/* SPDX-License-Identifier: MIT
 *
 * here - the thread-local record.
 */
#include "task/here.h"

/* initial-exec: one instruction instead of a call, also in the shared library; some of the space that the loader keeps for this. */
_Thread_local struct weft__here weft__here_record __attribute__((used));

#if defined(__x86_64__)
const char weft__here_anchor;
#else
WEFT__OPAQUE struct weft__here *weft__here(void)
{
    struct weft__here *here = &weft__here_record;
    __asm__ volatile("" : "+r"(here)); /* nobody may know where it came from */
    return here;
}
#endif
