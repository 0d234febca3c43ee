/* SPDX-License-Identifier: MIT
 *
 * peek - process_vm_readv, which checks addresses in the kernel.
 */
#include "sys/peek.h"

#include "base/fault.h"

#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

int weft__peek_pid(pid_t pid, const void *addr, void *into, size_t bytes)
{
    size_t done = 0;
    int r = weft__fault(WEFT__FAULT_PEEK);
    if (r < 0) return r;

    /* One call copies up to the first hole, or 2 GiB; the call after a hole finds nothing and
     * says -EFAULT. */
    while (done < bytes) {
        struct iovec ours = {.iov_base = (char *)into + done, .iov_len = bytes - done};
        struct iovec theirs = {.iov_base = (char *)(uintptr_t)addr + done, .iov_len = bytes - done};
        ssize_t got = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
        if (got < 0) return -errno;
        if (got == 0) return -EFAULT;
        done += (size_t)got;
    }
    return 0;
}

int weft__peek(const void *addr, void *into, size_t bytes)
{
    return weft__peek_pid(getpid(), addr, into, bytes);
}
