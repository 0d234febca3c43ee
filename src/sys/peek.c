/* SPDX-License-Identifier: MIT
 *
 * peek - process_vm_readv, which checks addresses in the kernel.
 */
#include "sys/peek.h"

#include "base/fault.h"
#include "sys/membarrier.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* What can be read is known by pages of at least this size. */
#define PAGE_MIN 4096

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

int weft__peek_text(const char *from, char *into, size_t bytes)
{
    size_t used = 0;

    while (used < bytes - 1) {
        size_t n = PAGE_MIN - ((uintptr_t)from + used) % PAGE_MIN;
        if (n > bytes - 1 - used) n = bytes - 1 - used;
        int r = weft__peek(from + used, into + used, n);
        if (r < 0) return r;
        if (memchr(into + used, '\0', n)) return 0;
        used += n;
    }
    into[used] = '\0';
    return 0;
}

int weft__peek_order(void)
{
#if defined(__x86_64__)
    return 0; /* the copy was a system call, and stores appear in their order */
#else
    return weft__membarrier();
#endif
}
