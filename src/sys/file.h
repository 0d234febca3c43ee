/* SPDX-License-Identifier: MIT
 *
 * file - requests about files, as data: what is to be done is written down once, and whoever has a thread that may block
 * does it.
 *
 *     struct weft__file_req req = {.op = WEFT__FILE_READ, .fd = fd, .into = buf, .bytes = len, .offset = 0};
 *     int64_t n = weft__file_try(&req);                   without blocking; -EAGAIN: it cannot be told without
 *     if (n == -EAGAIN) n = weft__file_do(&req);          on a thread that may block
 *
 * Answers are a count, an fd or 0, or a negative errno. A call that a signal interrupts goes on.
 * Threads: any. What a request points at is borrowed until it was done.
 */
#ifndef WEFT_SYS_FILE_H
#define WEFT_SYS_FILE_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft__file_op {
    WEFT__FILE_OPEN,     /* path, flags, mode: an fd, close-on-exec */
    WEFT__FILE_TEMP,     /* path: a directory; a file without a name in it, read and write: an fd */
    WEFT__FILE_READ,     /* fd, into, bytes, offset */
    WEFT__FILE_WRITE,    /* fd, from, bytes, offset */
    WEFT__FILE_SYNC,     /* fd; flags: 1 if the data alone will do */
    WEFT__FILE_TRUNCATE, /* fd, offset: the new size */
    WEFT__FILE_STAT,     /* fd, or path (NULL: the fd), flags: 1 if a link is not followed; into: struct stat */
    WEFT__FILE_RENAME,   /* path, other */
    WEFT__FILE_UNLINK,   /* path */
    WEFT__FILE_RMDIR,    /* path */
    WEFT__FILE_MKDIR,    /* path, mode */
    WEFT__FILE_SYMLINK,  /* path: what it points to; other: where it stands */
    WEFT__FILE_LINK,     /* path, other */
    WEFT__FILE_READLINK, /* path, into, bytes: how long it is, and it ends with a NUL; -ERANGE */
    WEFT__FILE_CHMOD,    /* path, mode */
    WEFT__FILE_LIST,     /* fd of a directory, into, bytes: entries as the kernel writes them; 0: no more */
    WEFT__FILE_LOAD,     /* path, bytes: the most there may be; gives `loaded`: how long it is; -EFBIG */
    WEFT__FILE_STORE,    /* path, from, bytes, mode; flags: WEFT__FILE_WHOLE */
    WEFT__FILE_COPY,     /* path, other, mode: how many bytes */
};

/* The flags with which a directory is opened, to LIST it. */
extern const int weft__file_dir_flags;

/* At the place where the file stands, which moves on. */
#define WEFT__FILE_HERE (-1)

enum { WEFT__FILE_WHOLE = 1 }; /* beside it first, then in its place: who reads it finds the old or the new */

struct weft__file_req {
    enum weft__file_op op;
    int fd;
    int flags;
    uint32_t mode;
    const char *path;
    const char *other;
    void *into;
    const void *from;
    size_t bytes;
    int64_t offset;
    char *loaded;         /* given by LOAD, for weft__free */
    _Atomic bool
        stopped; /* asks LOAD, STORE and COPY to stop between two pieces, and whatever waits for somebody else (file_wait.h): -ECANCELED,
                             and nothing is left behind */
};

static inline bool weft__file_is_stopped(const struct weft__file_req *req)
{
    return load_relaxed(&req->stopped); /* relaxed: a request to stop, nothing hangs on it */
}

/* Do it. Blocks: yes. */
int64_t weft__file_do(struct weft__file_req *req);

/* Do it if that can be told to be quick: a read of what is in memory. Blocks: no. Returns -EAGAIN for all else. */
int64_t weft__file_try(struct weft__file_req *req);

#endif
