/* SPDX-License-Identifier: MIT
 *
 * membarrier - the expedited kind, which wants to be announced.
 */
#include "sys/membarrier.h"

#include "base/fault.h"
#include "sys/errno.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ask(int command)
{
    int before = weft__errno_save(); /* the caller's own call has not failed */
    int r = syscall(SYS_membarrier, command, 0, 0) < 0 ? -errno : 0;
    weft__errno_restore(before);
    return r;
}

static int call(int command)
{
    int r = weft__fault(WEFT__FAULT_MEMBARRIER);
    return r < 0 ? r : ask(command);
}

/* While there is one thread, as a rule: with two, the kernel takes 12 ms for it. If it fails, the first call does it; main finds errno zero. */
static __attribute__((constructor)) void announce_early(void)
{
    (void)ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

int weft__membarrier(void)
{
    int r = call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (r != -EPERM) return r;
    /* The process has not announced it yet, or is a child that forked since. */
    r = call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    return r < 0 ? r : call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
