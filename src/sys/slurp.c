/* SPDX-License-Identifier: MIT
 *
 * slurp - open, read to the end, close.
 *
 * Files in /proc say that their size is 0, so the buffer grows until a read finds the end.
 */
#include "sys/slurp.h"

#include "base/alloc.h"
#include "base/fault.h"
#include "limits.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTES 4096

static int open_file(int dir, const char *path)
{
    int r = weft__fault(WEFT__FAULT_OPEN);
    if (r < 0) return r;
    do
        r = openat(dir, path, O_RDONLY | O_CLOEXEC);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

static ssize_t read_some(int fd, char *at, size_t bytes)
{
    ssize_t r = weft__fault(WEFT__FAULT_READ);
    if (r < 0) return r;
    do
        r = read(fd, at, bytes);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

/* A buffer of twice the size with the same text in it; takes the old one, also when it fails. */
static char *grow(char *text, size_t used, size_t bytes)
{
    char *larger = weft__alloc(bytes);
    if (larger && text) memcpy(larger, text, used);
    weft__free(text);
    return larger;
}

static int read_to_end(int fd, char **into)
{
    char *text = NULL;
    size_t used = 0;
    ssize_t got = 0;

    for (size_t bytes = FIRST_BYTES; bytes <= WEFT__SLURP_BYTES_MAX; bytes *= 2) {
        text = grow(text, used, bytes);
        if (!text) return -ENOMEM;
        while (used < bytes - 1) { /* the last byte is the NUL's: memory comes zeroed */
            got = read_some(fd, text + used, bytes - 1 - used);
            if (got <= 0) break;
            used += (size_t)got;
        }
        if (got < 0) break;
        if (got == 0) {
            *into = text;
            return 0;
        }
    }
    weft__free(text);
    return got < 0 ? (int)got : -EFBIG;
}

int weft__slurp(int dir, const char *path, char **into)
{
    int fd = open_file(dir, path);
    if (fd < 0) return fd;
    int r = read_to_end(fd, into);
    weft__fd_close(fd);
    return r;
}
