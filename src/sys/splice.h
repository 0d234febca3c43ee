/* SPDX-License-Identifier: MIT
 *
 * splice - bytes from descriptor to descriptor, inside the kernel. SIGPIPE is held back, as around a write (pipe.h).
 * Threads: any. Blocks: never on descriptors that do not; sendfile_at on a file's disk.
 */
#ifndef WEFT_SYS_SPLICE_H
#define WEFT_SYS_SPLICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One of them is a pipe. Returns how much; 0 at the end; -EAGAIN; -EINVAL: not these two; -EPIPE ... */
ssize_t weft__splice(int from, int to, size_t bytes);

/* Of a file, from `offset` on; its own place stays. Returns as above. */
ssize_t weft__sendfile_at(int file, int64_t offset, int to, size_t bytes);

#endif
