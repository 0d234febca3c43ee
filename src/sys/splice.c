/* SPDX-License-Identifier: MIT
 *
 * splice - the calls; splice.h says what they promise.
 */
#include "sys/splice.h"

#include "base/fault.h"
#include "sys/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>

static ssize_t splice_once(int from, int to, size_t bytes)
{
    ssize_t r = weft__fault(WEFT__FAULT_SPLICE);
    if (r < 0) return r;
    r = splice(from, NULL, to, NULL, bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    return r < 0 ? -errno : r;
}

ssize_t weft__splice(int from, int to, size_t bytes)
{
    struct weft__pipe_hush hush;
    ssize_t r;
    weft__pipe_hush(&hush);
    do {
        r = splice_once(from, to, bytes);
    } while (r == -EINTR);
    weft__pipe_unhush_pieces(&hush, r, bytes);
    return r;
}

static ssize_t sendfile_once(int file, int64_t offset, int to, size_t bytes)
{
    off_t at = offset;
    ssize_t r = weft__fault(WEFT__FAULT_SENDFILE);
    if (r < 0) return r;
    r = sendfile(to, file, &at, bytes);
    return r < 0 ? -errno : r;
}

ssize_t weft__sendfile_at(int file, int64_t offset, int to, size_t bytes)
{
    struct weft__pipe_hush hush;
    ssize_t r;
    weft__pipe_hush(&hush);
    do {
        r = sendfile_once(file, offset, to, bytes);
    } while (r == -EINTR);
    weft__pipe_unhush_pieces(&hush, r, bytes);
    return r;
}
