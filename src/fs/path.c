/* SPDX-License-Identifier: MIT
 *
 * path - what is done with files by their names.
 */
#include "base/alloc.h"
#include "fs/op.h"

WEFT__FS_OPERATION(weft_fs_stat, f->path && f->into, NULL, .op = WEFT__FILE_STAT, .path = f->path,
                   .flags = f->link_itself, .into = f->into)

int weft__fs_stat(const char *path, bool link_itself, struct stat *into)
{
    return WEFT__RUN_FRAME(weft_fs_stat, .path = path, .link_itself = link_itself, .into = into);
}

WEFT__FS_OPERATION(weft_fs_readlink, f->path && f->into, NULL, .op = WEFT__FILE_READLINK, .path = f->path,
                   .into = f->into, .bytes = f->bytes)

ssize_t weft__fs_readlink(const char *path, char *into, size_t bytes)
{
    return WEFT__RUN_FRAME(weft_fs_readlink, .path = path, .into = into, .bytes = bytes);
}

WEFT__FS_OPERATION(weft_fs_unlink, f->path, NULL, .op = WEFT__FILE_UNLINK, .path = f->path)

int weft__fs_unlink(const char *path)
{
    return WEFT__RUN_FRAME(weft_fs_unlink, .path = path);
}

WEFT__FS_OPERATION(weft_fs_rmdir, f->path, NULL, .op = WEFT__FILE_RMDIR, .path = f->path)

int weft__fs_rmdir(const char *path)
{
    return WEFT__RUN_FRAME(weft_fs_rmdir, .path = path);
}

WEFT__FS_OPERATION(weft_fs_mkdir, f->path, NULL, .op = WEFT__FILE_MKDIR, .path = f->path, .mode = f->mode)

int weft__fs_mkdir(const char *path, mode_t mode)
{
    return WEFT__RUN_FRAME(weft_fs_mkdir, .path = path, .mode = mode);
}

WEFT__FS_OPERATION(weft_fs_chmod, f->path, NULL, .op = WEFT__FILE_CHMOD, .path = f->path, .mode = f->mode)

int weft__fs_chmod(const char *path, mode_t mode)
{
    return WEFT__RUN_FRAME(weft_fs_chmod, .path = path, .mode = mode);
}

WEFT__FS_OPERATION(weft_fs_rename, f->path && f->to, NULL, .op = WEFT__FILE_RENAME, .path = f->path, .other = f->to)

int weft__fs_rename(const char *path, const char *to)
{
    return WEFT__RUN_FRAME(weft_fs_rename, .path = path, .to = to);
}

WEFT__FS_OPERATION(weft_fs_link, f->path && f->to, NULL, .op = WEFT__FILE_LINK, .path = f->path, .other = f->to)

int weft__fs_link(const char *path, const char *to)
{
    return WEFT__RUN_FRAME(weft_fs_link, .path = path, .to = to);
}

WEFT__FS_OPERATION(weft_fs_symlink, f->path && f->to, NULL, .op = WEFT__FILE_SYMLINK, .path = f->path, .other = f->to)

int weft__fs_symlink(const char *path, const char *to)
{
    return WEFT__RUN_FRAME(weft_fs_symlink, .path = path, .to = to);
}

WEFT__FS_OPERATION(weft_fs_copy, f->from && f->to, NULL, .op = WEFT__FILE_COPY, .path = f->from, .other = f->to)

int64_t weft__fs_copy(const char *from, const char *to)
{
    return WEFT__RUN_FRAME(weft_fs_copy, .from = from, .to = to);
}

WEFT__FS_OPERATION(weft_fs_store, f->path && (f->from || !f->bytes), NULL, .op = WEFT__FILE_STORE, .path = f->path,
                   .from = f->from, .bytes = f->bytes, .mode = f->mode, .flags = f->whole ? WEFT__FILE_WHOLE : 0)

int weft__fs_store(const char *path, const void *from, size_t bytes, mode_t mode, bool whole)
{
    return WEFT__RUN_FRAME(weft_fs_store, .path = path, .from = from, .bytes = bytes, .mode = mode,
                           .whole = whole);
}

/* ---- load: gives memory ---------------------------------------------------------------------------------- */

static weft_poll load_ends(struct weft_fs_load *f, int64_t answer)
{
    f->weft__at = 0;
    f->ret = answer < 0 ? (int)answer : 0;
    if (answer < 0) return WEFT_READY;
    *f->into = weft__fs_req(&f->weft__op)->loaded;
    if (f->bytes) *f->bytes = (size_t)answer;
    return WEFT_READY;
}

weft_poll weft_fs_load_poll(void *frame, weft_cx *cx)
{
    struct weft_fs_load *f = frame;
    int64_t answer;

    if (!f->weft__at) {
        if (!f->path || !f->into) return load_ends(f, -EINVAL);
        weft__fs_begin(&f->weft__op, NULL,
                       &(struct weft__file_req){.op = WEFT__FILE_LOAD, .path = f->path, .bytes = f->most});
        f->weft__at = WEFT__FS_BEGUN;
    }
    if (weft__fs_poll(&f->weft__op, "weft_fs_load", cx, &answer) == WEFT_PENDING) return WEFT_PENDING;
    return load_ends(f, answer);
}

int weft__fs_load(const char *path, size_t most, char **into, size_t *bytes)
{
    return WEFT__RUN_FRAME(weft_fs_load, .path = path, .most = most, .into = into, .bytes = bytes);
}
