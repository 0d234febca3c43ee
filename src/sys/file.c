/* SPDX-License-Identifier: MIT
 *
 * file - one function for each request.
 */
#include "sys/file.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/file_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of what is copied, loaded or stored between two looks at whether to stop. */
#define PIECE_BYTES ((size_t)1 << 20)

const int weft__file_dir_flags = O_RDONLY | O_DIRECTORY;

/* The expression's answer as ours; again while signals interrupt it. */
#define ANSWER(call)                                                                               \
    ({                                                                                             \
        int64_t answer_;                                                                           \
        do                                                                                         \
            answer_ = (call);                                                                      \
        while (answer_ < 0 && errno == EINTR);                                                     \
        answer_ < 0 ? -(int64_t)errno : answer_;                                                   \
    })

/* ---- one call each ------------------------------------------------------------------------------- */

static int64_t read_at(const struct weft__file_req *req, int fd, void *into, size_t bytes,
                       int64_t offset)
{
    if (offset == WEFT__FILE_HERE) return weft__file_wait_read(req, fd, into, bytes);
    int64_t r = weft__fault(WEFT__FAULT_READ);
    return r < 0 ? r : ANSWER(pread(fd, into, bytes, offset));
}

static int64_t write_at(const struct weft__file_req *req, int fd, const void *from, size_t bytes,
                        int64_t offset)
{
    if (offset == WEFT__FILE_HERE) return weft__file_wait_write(req, fd, from, bytes);
    int64_t r = weft__fault(WEFT__FAULT_WRITE);
    return r < 0 ? r : ANSWER(pwrite(fd, from, bytes, offset));
}

/* A filesystem without nameless files gives one whose name goes at once. */
static int64_t temp_in(const struct weft__file_req *req)
{
    char name[4096];
    const char *dir = req->path;
    int64_t r = weft__file_wait_open(req, dir, O_TMPFILE | O_RDWR, 0600);
    if (r != -EOPNOTSUPP && r != -EISDIR && r != -EINVAL) return r;
    int n = snprintf(name, sizeof(name), "%s/.weft-XXXXXX", dir);
    if (n < 0 || (size_t)n >= sizeof(name)) return -ENAMETOOLONG;
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) return -errno;
    (void)unlink(name);
    return fd;
}

static int64_t stat_of(const struct weft__file_req *req)
{
    struct stat *into = req->into;
    if (!req->path) return ANSWER(fstat(req->fd, into));
    return ANSWER(fstatat(AT_FDCWD, req->path, into, req->flags ? AT_SYMLINK_NOFOLLOW : 0));
}

static int64_t link_text(const struct weft__file_req *req)
{
    char *into = req->into;
    if (req->bytes == 0) return -ERANGE;
    int64_t n = ANSWER(readlink(req->path, into, req->bytes));
    if (n < 0) return n;
    if ((size_t)n == req->bytes) return -ERANGE;
    into[n] = 0;
    return n;
}

/* ---- several ------------------------------------------------------------------------------------- */

/* What a piece of a longer work answers before it begins. */
static size_t piece_of(size_t bytes)
{
    return bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
}

static int64_t write_whole(const struct weft__file_req *req, int fd, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        if (weft__file_is_stopped(req)) return -ECANCELED;
        int64_t n = write_at(req, fd, from + done, piece_of(bytes - done), WEFT__FILE_HERE);
        if (n < 0) return n;
        done += (size_t)n;
    }
    return 0;
}

/* Room for a byte more than it says, so that the end is found without growing. Sizes of /proc are 0. */
static int64_t first_room(int fd, size_t most)
{
    struct stat about;
    if (fstat(fd, &about) < 0) return -errno;
    if (S_ISDIR(about.st_mode)) return -EISDIR; /* what a read would say; its size is no number of bytes */
    size_t size = about.st_size > 0 ? (size_t)about.st_size : 0;
    if (size > most) return -EFBIG;
    return (int64_t)(size < 4096 ? 4096 : size + 1);
}

static char *larger(char *text, size_t used, size_t room)
{
    char *grown = weft__alloc(room + 1); /* zeroed: what is loaded ends with a NUL */
    if (grown && used) memcpy(grown, text, used);
    weft__free(text);
    return grown;
}

static int64_t load_open(struct weft__file_req *req, int fd)
{
    size_t used = 0;
    int64_t n = first_room(fd, req->bytes);
    if (n < 0) return n;
    size_t room = (size_t)n;
    char *text = larger(NULL, 0, room);

    while (text) {
        n = weft__file_is_stopped(req) ? -ECANCELED
                            : read_at(req, fd, text + used, piece_of(room - used), WEFT__FILE_HERE);
        if (n > 0) used += (size_t)n;
        if (used > req->bytes) n = -EFBIG;
        if (n <= 0) break;
        if (used < room) continue;
        room *= 2;
        text = larger(text, used, room);
    }
    if (!text) return -ENOMEM;
    if (n < 0) {
        weft__free(text);
        return n;
    }
    req->loaded = text;
    return (int64_t)used;
}

static int64_t load(struct weft__file_req *req)
{
    int64_t fd = weft__file_wait_open(req, req->path, O_RDONLY, 0);
    if (fd < 0) return fd;
    int64_t n = load_open(req, (int)fd);
    weft__fd_close((int)fd);
    return n;
}

static int64_t store_in_place(const struct weft__file_req *req)
{
    int64_t fd = weft__file_wait_open(req, req->path, O_WRONLY | O_CREAT | O_TRUNC, req->mode);
    if (fd < 0) return fd;
    int64_t r = write_whole(req, (int)fd, req->from, req->bytes);
    weft__fd_close((int)fd);
    return r;
}

/* A name beside the other that nobody has; opened. */
static int64_t open_beside(const char *path, uint32_t mode, char *name, size_t bytes)
{
    int n = snprintf(name, bytes, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= bytes) return -ENAMETOOLONG;
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) return -errno;
    if (fchmod(fd, (mode_t)mode) == 0) return fd;
    int r = -errno;
    weft__fd_close(fd);
    (void)unlink(name);
    return r;
}

static int64_t store_whole(const struct weft__file_req *req)
{
    char name[4096];
    int64_t fd = open_beside(req->path, req->mode, name, sizeof(name));
    if (fd < 0) return fd;
    int64_t r = write_whole(req, (int)fd, req->from, req->bytes);
    if (r == 0) r = ANSWER(fsync((int)fd));
    weft__fd_close((int)fd);
    if (r == 0) r = ANSWER(rename(name, req->path));
    if (r < 0) (void)unlink(name);
    return r;
}

/* By the kernel where it can, else by hand. */
static int64_t copy_piece(const struct weft__file_req *req, int from, int to, char **buffer)
{
    int64_t n = *buffer ? -EXDEV : ANSWER(copy_file_range(from, NULL, to, NULL, PIECE_BYTES, 0));
    if (n != -EXDEV && n != -EINVAL && n != -EOPNOTSUPP && n != -ENOSYS && n != -EPERM) return n;
    if (!*buffer) *buffer = weft__alloc(PIECE_BYTES);
    if (!*buffer) return -ENOMEM;
    n = read_at(req, from, *buffer, PIECE_BYTES, WEFT__FILE_HERE);
    for (int64_t done = 0; done < n;) {
        int64_t w = write_at(req, to, *buffer + done, (size_t)(n - done), WEFT__FILE_HERE);
        if (w < 0) return w;
        done += w;
    }
    return n;
}

/* Files of /proc answer 0 to the kernel's own copy: so the first 0 is tried once more by hand. */
static int64_t copy_open(const struct weft__file_req *req, int from, int to)
{
    char *buffer = NULL;
    int64_t all = 0;
    int64_t n;

    for (;;) {
        n = weft__file_is_stopped(req) ? -ECANCELED : copy_piece(req, from, to, &buffer);
        if (n == 0 && all == 0 && !buffer) {
            buffer = weft__alloc(PIECE_BYTES);
            if (buffer) continue;
            n = -ENOMEM;
        }
        if (n <= 0) break;
        all += n;
    }
    weft__free(buffer);
    return n < 0 ? n : all;
}

/* What is there stays as it is until both are known: a file is no copy of itself, and a directory cannot be read. */
static int64_t copy_begins(int to, const struct stat *from, const struct stat *about)
{
    if (from->st_dev == about->st_dev && from->st_ino == about->st_ino) return -EINVAL;
    return S_ISREG(about->st_mode) ? ANSWER(ftruncate(to, 0)) : 0;
}

static int64_t copy_to(const struct weft__file_req *req, int from, const struct stat *like)
{
    struct stat about = {0};
    int64_t to = weft__file_wait_open(req, req->other, O_WRONLY | O_CREAT, like->st_mode & 0777);
    if (to < 0) return to;
    int64_t n = ANSWER(fstat((int)to, &about));
    if (n == 0) n = copy_begins((int)to, like, &about);
    bool begun = n == 0;
    if (begun) n = copy_open(req, from, (int)to);
    weft__fd_close((int)to);
    if (n < 0 && begun && S_ISREG(about.st_mode)) (void)unlink(req->other); /* and no device */
    return n;
}

static int64_t copy(const struct weft__file_req *req)
{
    struct stat about;
    int64_t from = weft__file_wait_open(req, req->path, O_RDONLY, 0);
    if (from < 0) return from;
    int64_t n = ANSWER(fstat((int)from, &about));
    if (n == 0 && S_ISDIR(about.st_mode)) n = -EISDIR;
    if (n == 0) n = copy_to(req, (int)from, &about);
    weft__fd_close((int)from);
    return n;
}

/* ---- which ----------------------------------------------------------------------------------------- */

int64_t weft__file_do(struct weft__file_req *req)
{
    int64_t r = weft__fault(WEFT__FAULT_FILE);
    if (r < 0) return r;
    switch (req->op) {
    case WEFT__FILE_OPEN:
        return weft__file_wait_open(req, req->path, req->flags, req->mode);
    case WEFT__FILE_TEMP:
        return temp_in(req);
    case WEFT__FILE_READ:
        return read_at(req, req->fd, req->into, req->bytes, req->offset);
    case WEFT__FILE_WRITE:
        return write_at(req, req->fd, req->from, req->bytes, req->offset);
    case WEFT__FILE_SYNC:
        return ANSWER(req->flags ? fdatasync(req->fd) : fsync(req->fd));
    case WEFT__FILE_TRUNCATE:
        return ANSWER(ftruncate(req->fd, req->offset));
    case WEFT__FILE_STAT:
        return stat_of(req);
    case WEFT__FILE_RENAME:
        return ANSWER(rename(req->path, req->other));
    case WEFT__FILE_UNLINK:
        return ANSWER(unlink(req->path));
    case WEFT__FILE_RMDIR:
        return ANSWER(rmdir(req->path));
    case WEFT__FILE_MKDIR:
        return ANSWER(mkdir(req->path, (mode_t)req->mode));
    case WEFT__FILE_SYMLINK:
        return ANSWER(symlink(req->path, req->other));
    case WEFT__FILE_LINK:
        return ANSWER(link(req->path, req->other));
    case WEFT__FILE_READLINK:
        return link_text(req);
    case WEFT__FILE_CHMOD:
        return ANSWER(chmod(req->path, (mode_t)req->mode));
    case WEFT__FILE_LIST:
        return ANSWER(syscall(SYS_getdents64, req->fd, req->into, req->bytes));
    case WEFT__FILE_LOAD:
        return load(req);
    case WEFT__FILE_STORE:
        return req->flags & WEFT__FILE_WHOLE ? store_whole(req) : store_in_place(req);
    case WEFT__FILE_COPY:
        return copy(req);
    }
    return -EINVAL;
}

/* Some files do not know the question (pipes, old filesystems): then it cannot be told. */
int64_t weft__file_try(struct weft__file_req *req)
{
    if (req->op != WEFT__FILE_READ) return -EAGAIN;
    int64_t r = weft__fault(WEFT__FAULT_READ);
    if (r < 0) return r;
    struct iovec piece = {req->into, req->bytes};
    ssize_t n = preadv2(req->fd, &piece, 1, req->offset, RWF_NOWAIT);
    if (n >= 0) return n;
    return errno == EINTR || errno == EOPNOTSUPP || errno == ENOSYS ? -EAGAIN : -errno;
}
