/* SPDX-License-Identifier: MIT
 *
 * file - open files: each operation writes its request, the rest is op.h.
 */
#include "base/alloc.h"
#include "fs/op.h"

/* ---- files ------------------------------------------------------------------------------------------- */

static void file_init(struct weft_file *file, int fd)
{
    file->fd = fd;
    store_relaxed(&file->users, 1); /* relaxed: not shared yet */
}

int weft_file_of(int fd, weft_file **into)
{
    if (!into) return -EINVAL;
    if (fd < 0) return -EBADF;
    struct weft_file *file = weft__alloc(sizeof(*file));
    if (!file) return -ENOMEM;
    file_init(file, fd);
    *into = file;
    return 0;
}

void weft_file_close(weft_file *file)
{
    weft__file_drop(file);
}

int weft_file_fd(const weft_file *file)
{
    return file ? file->fd : -EINVAL;
}

/* ---- open -------------------------------------------------------------------------------------------- */

static weft_poll opened(struct weft__fs_op *op, int64_t fd, weft_file **into, int *ret)
{
    *ret = fd < 0 ? (int)fd : 0;
    if (fd < 0) return WEFT_READY;
    struct weft_file *file = weft__fs_room(op);
    file_init(file, (int)fd);
    *into = file;
    return WEFT_READY;
}

static weft_poll open_poll(struct weft__fs_op *op, int32_t *at, const struct weft__file_req *req, const char *name,
                           weft_cx *cx, weft_file **into, int *ret)
{
    int64_t fd;

    if (!*at) {
        *ret = req->path && into ? 0 : -EINVAL;
        if (*ret == 0) *ret = weft__fs_give(op, req, weft__alloc(sizeof(struct weft_file)));
        if (*ret < 0) return WEFT_READY;
        *at = WEFT__FS_BEGUN;
    }
    if (weft__fs_poll(op, name, cx, &fd) == WEFT_PENDING) return WEFT_PENDING;
    *at = 0;
    return opened(op, fd, into, ret);
}

weft_poll weft_file_open_poll(void *frame, weft_cx *cx)
{
    struct weft_file_open *f = frame;
    const struct weft__file_req req = {.op = WEFT__FILE_OPEN, .path = f->path, .flags = f->flags, .mode = f->mode};
    return open_poll(&f->weft__op, &f->weft__at, &req, "weft_file_open", cx, f->into, &f->ret);
}

int weft__file_open(const char *path, int flags, mode_t mode, weft_file **into)
{
    return WEFT__RUN_FRAME(weft_file_open, .path = path, .flags = flags, .mode = mode,
                           .into = into);
}

weft_poll weft_file_temp_poll(void *frame, weft_cx *cx)
{
    struct weft_file_temp *f = frame;
    const struct weft__file_req req = {.op = WEFT__FILE_TEMP, .path = f->dir ? f->dir : "/tmp"};
    return open_poll(&f->weft__op, &f->weft__at, &req, "weft_file_temp", cx, f->into, &f->ret);
}

int weft__file_temp(const char *dir, weft_file **into)
{
    return WEFT__RUN_FRAME(weft_file_temp, .dir = dir, .into = into);
}

/* ---- what is done with them ------------------------------------------------------------------------------ */

static bool piece_is_sound(const weft_file *file, const void *at, size_t bytes, int64_t offset)
{
    return file && (at || !bytes) && (offset >= 0 || offset == WEFT_FILE_HERE);
}

WEFT__FS_OPERATION(weft_file_read, piece_is_sound(f->file, f->into, f->bytes, f->offset), f->file,
                   .op = WEFT__FILE_READ, .into = f->into, .bytes = f->bytes, .offset = f->offset)

ssize_t weft__file_read(weft_file *file, void *into, size_t bytes, int64_t offset)
{
    return WEFT__RUN_FRAME(weft_file_read, .file = file, .into = into, .bytes = bytes,
                           .offset = offset);
}

WEFT__FS_OPERATION(weft_file_write, piece_is_sound(f->file, f->from, f->bytes, f->offset), f->file,
                   .op = WEFT__FILE_WRITE, .from = f->from, .bytes = f->bytes, .offset = f->offset)

ssize_t weft__file_write(weft_file *file, const void *from, size_t bytes, int64_t offset)
{
    return WEFT__RUN_FRAME(weft_file_write, .file = file, .from = from, .bytes = bytes,
                           .offset = offset);
}

WEFT__FS_OPERATION(weft_file_sync, f->file, f->file, .op = WEFT__FILE_SYNC, .flags = f->data_only)

int weft__file_sync(weft_file *file, bool data_only)
{
    return WEFT__RUN_FRAME(weft_file_sync, .file = file, .data_only = data_only);
}

WEFT__FS_OPERATION(weft_file_truncate, f->file, f->file, .op = WEFT__FILE_TRUNCATE, .offset = f->bytes)

int weft__file_truncate(weft_file *file, int64_t bytes)
{
    return WEFT__RUN_FRAME(weft_file_truncate, .file = file, .bytes = bytes);
}

WEFT__FS_OPERATION(weft_file_stat, f->file && f->into, f->file, .op = WEFT__FILE_STAT, .into = f->into)

int weft__file_stat(weft_file *file, struct stat *into)
{
    return WEFT__RUN_FRAME(weft_file_stat, .file = file, .into = into);
}
