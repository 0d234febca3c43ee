/* SPDX-License-Identifier: MIT
 *
 * file_ring - which operation, and where its arguments go.
 */
#include "sys/file_ring.h"

#include "base/assert.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* What read(2) and write(2) move at most; an entry has 32 bits for it. */
#define MOST_BYTES UINT32_C(0x7ffff000)

int weft__file_opcode(const struct weft__file_req *req)
{
    switch (req->op) {
    case WEFT__FILE_OPEN:
        return IORING_OP_OPENAT;
    case WEFT__FILE_READ:
        return req->offset < 0 ? -1 : IORING_OP_READ;
    case WEFT__FILE_WRITE:
        return req->offset < 0 ? -1 : IORING_OP_WRITE;
    case WEFT__FILE_SYNC:
        return IORING_OP_FSYNC;
    case WEFT__FILE_TRUNCATE:
        return req->offset < 0 ? -1 : (int)WEFT__RING_OP_FTRUNCATE;
    case WEFT__FILE_STAT:
        return IORING_OP_STATX;
    case WEFT__FILE_RENAME:
        return IORING_OP_RENAMEAT;
    case WEFT__FILE_UNLINK:
    case WEFT__FILE_RMDIR:
        return IORING_OP_UNLINKAT;
    case WEFT__FILE_MKDIR:
        return IORING_OP_MKDIRAT;
    case WEFT__FILE_SYMLINK:
        return IORING_OP_SYMLINKAT;
    case WEFT__FILE_LINK:
        return IORING_OP_LINKAT;
    case WEFT__FILE_TEMP:
    case WEFT__FILE_READLINK:
    case WEFT__FILE_CHMOD:
    case WEFT__FILE_LIST:
    case WEFT__FILE_LOAD:
    case WEFT__FILE_STORE:
    case WEFT__FILE_COPY:
        break;
    }
    return -1;
}

size_t weft__file_room_bytes(const struct weft__file_req *req)
{
    return req->op == WEFT__FILE_STAT ? sizeof(struct statx) : 0;
}

/* ---- arguments ------------------------------------------------------------------------------------- */

static void fill_piece(struct io_uring_sqe *sqe, const struct weft__file_req *req, const void *at)
{
    sqe->fd = req->fd;
    sqe->addr = (uintptr_t)at;
    sqe->len = req->bytes < MOST_BYTES ? (uint32_t)req->bytes : MOST_BYTES;
    sqe->off = (uint64_t)req->offset;
}

/* As stat(2): no automounts. */
static void fill_stat(struct io_uring_sqe *sqe, const struct weft__file_req *req, void *room)
{
    sqe->fd = req->path ? AT_FDCWD : req->fd;
    sqe->addr = (uintptr_t)(req->path ? req->path : "");
    sqe->addr2 = (uintptr_t)room;
    sqe->len = STATX_BASIC_STATS;
    sqe->statx_flags = AT_NO_AUTOMOUNT;
    if (!req->path) sqe->statx_flags |= AT_EMPTY_PATH;
    if (req->path && req->flags) sqe->statx_flags |= AT_SYMLINK_NOFOLLOW;
}

/* By names, from where the process stands. `len` is the second name's directory, a mode, or nothing. */
static void fill_names(struct io_uring_sqe *sqe, const struct weft__file_req *req, uint32_t len)
{
    sqe->fd = AT_FDCWD;
    sqe->addr = (uintptr_t)req->path;
    sqe->addr2 = (uintptr_t)req->other;
    sqe->len = len;
}

void weft__file_fill(const struct weft__file_req *req, void *room, struct io_uring_sqe *sqe)
{
    int opcode = weft__file_opcode(req);

    weft_assert(opcode >= 0);
    sqe->opcode = (uint8_t)opcode;
    switch (req->op) {
    case WEFT__FILE_READ:
        fill_piece(sqe, req, req->into);
        break;
    case WEFT__FILE_WRITE:
        fill_piece(sqe, req, req->from);
        if (req->bytes > WEFT__FILE_INLINE_BYTES) sqe->flags = IOSQE_ASYNC;
        break;
    case WEFT__FILE_SYNC:
        sqe->fd = req->fd;
        sqe->fsync_flags = req->flags ? IORING_FSYNC_DATASYNC : 0;
        break;
    case WEFT__FILE_TRUNCATE:
        sqe->fd = req->fd;
        sqe->off = (uint64_t)req->offset;
        break;
    case WEFT__FILE_STAT:
        fill_stat(sqe, req, room);
        break;
    case WEFT__FILE_OPEN:
        fill_names(sqe, req, req->mode);
        sqe->open_flags = (uint32_t)req->flags | O_CLOEXEC;
        sqe->flags = IOSQE_ASYNC;
        break;
    case WEFT__FILE_MKDIR:
        fill_names(sqe, req, req->mode);
        break;
    case WEFT__FILE_UNLINK:
    case WEFT__FILE_RMDIR:
        fill_names(sqe, req, 0);
        sqe->unlink_flags = req->op == WEFT__FILE_RMDIR ? AT_REMOVEDIR : 0;
        break;
    case WEFT__FILE_SYMLINK:
        fill_names(sqe, req, 0);
        break;
    default: /* two names */
        fill_names(sqe, req, (uint32_t)AT_FDCWD);
        break;
    }
}

/* ---- answers ----------------------------------------------------------------------------------------- */

/* A system call that a signal interrupts answers -ERESTARTSYS or one of its kin inside the kernel, which makes another call or -EINTR of it on the way out. Some
 * operations of a ring let it out as it is; no header for programs has these numbers. */
int64_t weft__file_answer(int32_t result)
{
    enum { RESTARTS_FIRST = -516, RESTARTS_LAST = -512 };
    return result >= RESTARTS_FIRST && result <= RESTARTS_LAST ? -EINTR : result;
}

static struct timespec time_of(const struct statx_timestamp *t)
{
    return (struct timespec){t->tv_sec, t->tv_nsec};
}

void weft__file_take(const struct weft__file_req *req, const void *room)
{
    const struct statx *from = room;
    struct stat *into = req->into;

    if (req->op != WEFT__FILE_STAT) return;
    memset(into, 0, sizeof(*into));
    into->st_dev = makedev(from->stx_dev_major, from->stx_dev_minor);
    into->st_ino = from->stx_ino;
    into->st_nlink = from->stx_nlink;
    into->st_mode = from->stx_mode;
    into->st_uid = from->stx_uid;
    into->st_gid = from->stx_gid;
    into->st_rdev = makedev(from->stx_rdev_major, from->stx_rdev_minor);
    into->st_size = (off_t)from->stx_size;
    into->st_blksize = (blksize_t)from->stx_blksize;
    into->st_blocks = (blkcnt_t)from->stx_blocks;
    into->st_atim = time_of(&from->stx_atime);
    into->st_mtim = time_of(&from->stx_mtime);
    into->st_ctim = time_of(&from->stx_ctime);
}

bool weft__file_seeks(int fd)
{
    return lseek(fd, 0, SEEK_CUR) >= 0;
}

/* -EAGAIN: a file that was opened not to wait, of a filesystem that cannot be asked not to. -EOPNOTSUPP: the operation is known, and not
 * for this file. */
bool weft__file_is_unanswered(int64_t answer)
{
    return answer == -EAGAIN || answer == -EOPNOTSUPP;
}
