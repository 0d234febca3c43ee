/* SPDX-License-Identifier: MIT
 *
 * op - a request about files (sys/file.h) on its way: tried on the spot, else asked of the kernel, else done by a thread that may block.
 *
 *     poll, first        told to stop: its reason, and nothing was begun
 *                        a read of what is in memory: READY, in the poll
 *                        what the ring of this worker can do goes there (driver/files.h); it may be READY in the same poll
 *                        else the request is a job of the blocking pool (weft/blocking.h), which wakes the task
 *     poll, told to stop   by ring: the kernel is asked to cancel it, and its answer waited for: it has not happened, or has
 *                        by pool: queued, it never runs. Running, it is waited for; one that goes by pieces stops between two, and what waits for somebody
 *                        else (a FIFO's other side, bytes of a pipe) stops waiting (sys/file_wait.h)
 *     the ring's answer is none of the file's (-EAGAIN, -EOPNOTSUPP): it goes to the pool after all
 * A plain thread without a runtime does it by itself: it may block. One that has entered a runtime uses the pool: nobody may be there to
 * turn the ring.
 *
 * BORROWING requests lie in the frame, which waits for them. OWNING ones are given up at once: they lie on the heap with all
 * that they point at, and what comes of them is disposed of (an fd is closed).
 *
 * Threads: the task that polls; the request is the kernel's, or the pool's, while it is under way.
 */
#ifndef WEFT_FS_OP_H
#define WEFT_FS_OP_H

#include "driver/fileop.h"
#include "sys/file.h"
#include "task/call.h"
#include "types.h"

#include <weft/blocking.h>
#include <weft/file.h>

#include <errno.h>

struct weft_file {
    int fd;                 /* constant */
    _Atomic uint32_t users; /* its owner, and the operations under way [file-users] */
    _Atomic uint8_t seeks;  /* enum weft__file_seeking: asked for once */
};

enum weft__file_seeking { WEFT__SEEKS_UNKNOWN, WEFT__SEEKS, WEFT__SEEKS_NOT };

enum weft__fs_way { WEFT__FS_NO_WAY, WEFT__FS_BY_RING, WEFT__FS_BY_POOL };

struct weft__fs_state {
    struct weft__file_req req;
    struct weft_file *file; /* used meanwhile; NULL: none */
    struct weft__fs_given *given; /* an owning request; NULL: it borrows, and `req` is it */
    enum weft__fs_way way;        /* on which it is */
    int told;                     /* why it was told to stop, having begun; 0: it was not */
    union {                       /* written when it takes that way */
        struct weft_blocking job;
        struct weft__fileop ring; /* of a request that borrows */
    };
};
_Static_assert(sizeof(struct weft__fs_state) <= sizeof(struct weft__fs_op), "it fits its place");

/* An owning request: opens something. */
struct weft__fs_given {
    struct weft__file_req req; /* its path is behind it */
    void *room;                /* for what will be made of the fd: there is no error left when it is open */
    struct weft__fileop ring;
    char path[];
};

/* Begin a request that borrows, of `file` if it is not NULL. */
void weft__fs_begin(struct weft__fs_op *op, struct weft_file *file, const struct weft__file_req *req);

/* Begin one that is given what it needs: opens `path`. Takes `room` (NULL: there was no memory). Returns 0; -ENOMEM. */
int weft__fs_give(struct weft__fs_op *op, const struct weft__file_req *req, void *room);

/* Both are polled to their end by this. READY: *ret. */
weft_poll weft__fs_poll(struct weft__fs_op *op, const char *name, weft_cx *cx, int64_t *ret);

/* Of a given one that is READY with an fd: its room back. */
void *weft__fs_room(struct weft__fs_op *op);

/* Of one that borrows, READY. */
const struct weft__file_req *weft__fs_req(struct weft__fs_op *op);

/* The last user of a file closes it. */
void weft__file_drop(struct weft_file *file);

/* ---- operations --------------------------------------------------------------------------------------
 *
 *     WEFT__FS_OPERATION(weft_fs_mkdir, f->path, NULL, .op = WEFT__FILE_MKDIR, .path = f->path, .mode = f->mode)
 *     int weft__fs_mkdir(const char *path, mode_t mode) { return WEFT__RUN_FRAME(weft_fs_mkdir, .path = path, .mode = mode); }
 * A frame begins when its weft__at is 0; `sound`: its arguments make sense. Over, it can begin anew. */
enum { WEFT__FS_BEGUN = 1 }; /* odd, as it must be */

#define WEFT__FS_OPERATION(name, sound, file, ...)                                                 \
    weft_poll name##_poll(void *frame, weft_cx *cx)                                                \
    {                                                                                              \
        struct name *f = frame;                                                                    \
        int64_t answer = -EINVAL;                                                                  \
        if (!f->weft__at && (sound)) {                                                             \
            weft__fs_begin(&f->weft__op, file, &(struct weft__file_req){__VA_ARGS__});             \
            f->weft__at = WEFT__FS_BEGUN;                                                          \
        }                                                                                          \
        if (f->weft__at && weft__fs_poll(&f->weft__op, #name, cx, &answer) == WEFT_PENDING)        \
            return WEFT_PENDING;                                                                   \
        f->weft__at = 0;                                                                           \
        f->ret = (__typeof__(f->ret))answer;                                                       \
        return WEFT_READY;                                                                         \
    }

#endif
