/* SPDX-License-Identifier: MIT
 *
 * here - the thread-local record.
 */
#include "task/here.h"

static _Thread_local struct weft__here record;

WEFT__OPAQUE struct weft__here *weft__here(void)
{
    struct weft__here *here = &record;
    __asm__ volatile("" : "+r"(here)); /* nobody may know where it came from */
    return here;
}
