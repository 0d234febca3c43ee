/* SPDX-License-Identifier: MIT
 *
 * fork - pthread_atfork and _exit.
 */
#include "sys/fork.h"

#include "base/fault.h"

#include <pthread.h>
#include <unistd.h>

int weft__fork_watch(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    int r = weft__fault(WEFT__FAULT_ATFORK);
    if (r < 0) return r;
    return -pthread_atfork(before, parent, child);
}

void weft__process_end(int code)
{
    _exit(code);
}
