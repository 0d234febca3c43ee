/* SPDX-License-Identifier: MIT
 *
 * fd - close.
 */
#include "sys/fd.h"

#include "base/assert.h"

#include <errno.h>
#include <unistd.h>

void weft__fd_close(int fd)
{
    if (fd < 0) return;
    int r = close(fd) < 0 ? -errno : 0;
    /* Else the number may be somebody else's by now, and the next close of this kind hits that. */
    weft_dassert(r != -EBADF);
    (void)r; /* EINTR too means closed */
}
