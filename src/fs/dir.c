/* SPDX-License-Identifier: MIT
 *
 * dir - the entries of a directory, fetched by the page.
 *
 * The kernel fills a page with entries by one call, which may block; those are then handed out without another.
 * One task at a time: no lock.
 */
#include "base/alloc.h"
#include "fs/op.h"
#include "limits.h"
#include "sys/fd.h"

#include <string.h>

struct weft_dir {
    int fd; /* constant */
    size_t at;
    size_t end;
    char page[WEFT__DIR_PAGE_BYTES] __attribute__((aligned(8)));
};

/* As the kernel writes it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* ---- open, close --------------------------------------------------------------------------------------------- */

weft_poll weft_dir_open_poll(void *frame, weft_cx *cx)
{
    struct weft_dir_open *f = frame;
    const struct weft__file_req req = {.op = WEFT__FILE_OPEN, .path = f->path, .flags = weft__file_dir_flags};
    int64_t fd;

    if (!f->weft__at) {
        f->ret = f->path && f->into ? 0 : -EINVAL;
        if (f->ret == 0) f->ret = weft__fs_give(&f->weft__op, &req, weft__alloc(sizeof(struct weft_dir)));
        if (f->ret < 0) return WEFT_READY;
        f->weft__at = WEFT__FS_BEGUN;
    }
    if (weft__fs_poll(&f->weft__op, "weft_dir_open", cx, &fd) == WEFT_PENDING) return WEFT_PENDING;
    f->weft__at = 0;
    f->ret = fd < 0 ? (int)fd : 0;
    if (fd < 0) return WEFT_READY;
    struct weft_dir *dir = weft__fs_room(&f->weft__op);
    dir->fd = (int)fd;
    *f->into = dir;
    return WEFT_READY;
}

int weft__dir_open(const char *path, weft_dir **into)
{
    return WEFT__RUN_FRAME(weft_dir_open, .path = path, .into = into);
}

void weft_dir_close(weft_dir *dir)
{
    if (!dir) return;
    weft__fd_close(dir->fd);
    weft__free(dir);
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static bool is_itself_or_parent(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* From the page. False: it is empty. */
static bool take_entry(struct weft_dir *dir, weft_dirent *into)
{
    while (dir->at < dir->end) {
        const struct entry *e = (const void *)(dir->page + dir->at); /* the kernel aligns them */
        dir->at += e->bytes;
        if (is_itself_or_parent(e->name)) continue;
        *into = (weft_dirent){e->name, e->inode, e->type};
        return true;
    }
    return false;
}

static weft_poll next_ends(struct weft_dir_next *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

weft_poll weft_dir_next_poll(void *frame, weft_cx *cx)
{
    struct weft_dir_next *f = frame;
    struct weft_dir *dir = f->dir;
    int64_t bytes;

    if (!dir || !f->into) return next_ends(f, -EINVAL);
    for (;;) {
        if (!f->weft__at) {
            if (cx->why)
                return weft__told_yields(cx) ? WEFT_PENDING : next_ends(f, weft_cx_cancelled(cx));
            if (take_entry(dir, f->into)) return next_ends(f, 1);
            weft__fs_begin(&f->weft__op, NULL,
                           &(struct weft__file_req){
                               .op = WEFT__FILE_LIST, .fd = dir->fd, .into = dir->page, .bytes = sizeof(dir->page)});
            f->weft__at = WEFT__FS_BEGUN;
        }
        if (weft__fs_poll(&f->weft__op, "weft_dir_next", cx, &bytes) == WEFT_PENDING) return WEFT_PENDING;
        if (bytes <= 0) return next_ends(f, (int)bytes);
        dir->at = 0;
        dir->end = (size_t)bytes;
        f->weft__at = 0;
    }
}

int weft__dir_next(weft_dir *dir, weft_dirent *into)
{
    return WEFT__RUN_FRAME(weft_dir_next, .dir = dir, .into = into);
}
