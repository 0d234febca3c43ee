/* SPDX-License-Identifier: MIT
 *
 * op - the way of a request; the idea is in op.h.
 */
#include "fs/op.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "sync/leaf.h"
#include "sys/fd.h"

#include <weft/rt.h>

#include <errno.h>
#include <string.h>

static struct weft__fs_state *state_of(struct weft__fs_op *op)
{
    return (struct weft__fs_state *)(void *)op;
}

/* ---- files in use ---------------------------------------------------------------------------------- */

void weft__file_drop(struct weft_file *file)
{
    if (!file || fetch_sub_acq_rel(&file->users, 1) > 1) return; /* [file-users] with the last: all others are through */
    weft__fd_close(file->fd);
    weft__free(file);
}

static void file_use(struct weft_file *file)
{
    fetch_add_relaxed(&file->users, 1); /* relaxed: whoever uses it has it already */
}

/* ---- given requests -------------------------------------------------------------------------------- */

static void given_free(struct weft__fs_given *given)
{
    weft__free(given->room);
    weft__free(given);
}

/* Given up: what it opened, perhaps, nobody will use. */
static void given_dispose(void *arg, int64_t ret)
{
    if (ret >= 0) weft__fd_close((int)ret);
    given_free(arg);
}

int weft__fs_give(struct weft__fs_op *op, const struct weft__file_req *req, void *room)
{
    size_t bytes = strlen(req->path) + 1;
    struct weft__fs_given *given = room ? weft__alloc(sizeof(*given) + bytes) : NULL;
    if (!given) {
        weft__free(room);
        return -ENOMEM;
    }
    *state_of(op) = (struct weft__fs_state){.given = given};
    memcpy(given->path, req->path, bytes);
    given->room = room;
    given->req = *req;
    given->req.path = given->path;
    return 0;
}

void *weft__fs_room(struct weft__fs_op *op)
{
    struct weft__fs_given *given = state_of(op)->given;
    void *room = given->room;
    weft__free(given);
    return room;
}

/* ---- on its way -------------------------------------------------------------------------------------- */

void weft__fs_begin(struct weft__fs_op *op, struct weft_file *file, const struct weft__file_req *req)
{
    struct weft__fs_state *s = state_of(op);
    *s = (struct weft__fs_state){.file = file, .req = *req};
    if (!file) return;
    file_use(file);
    s->req.fd = file->fd;
}

static struct weft__file_req *req_of(struct weft__fs_state *s)
{
    return s->given ? &s->given->req : &s->req;
}

const struct weft__file_req *weft__fs_req(struct weft__fs_op *op)
{
    return &state_of(op)->req;
}

/* By a thread of the pool. */
static int64_t do_it(struct weft__file_req *req)
{
    return weft__file_do(req);
}

static weft_poll ends(struct weft__fs_state *s, int64_t ret, int64_t *into)
{
    bool gone = ret == -ECANCELED || ret == -ETIME; /* the pool disposed of it */
    if (s->given && ret < 0 && !gone) given_free(s->given);
    weft__file_drop(s->file);
    *into = ret;
    return WEFT_READY;
}

/* -EAGAIN: it was not to be had in the poll. */
static int64_t tried(struct weft__fs_state *s, weft_cx *cx)
{
    if (s->given || cx->why || s->req.op != WEFT__FILE_READ) return -EAGAIN;
    return weft__file_try(&s->req);
}

static void job_write(struct weft__fs_state *s, const char *name)
{
    _Static_assert(offsetof(struct weft__fs_given, req) == 0, "the request is what is given");
    s->job = (struct weft_blocking){.name = name, .dispose = s->given ? given_dispose : NULL};
    s->job.call = (weft_call){(void (*)(void))do_it, {(uintptr_t)req_of(s)}, sizeof(int64_t), 1};
}

weft_poll weft__fs_poll(struct weft__fs_op *op, const char *name, weft_cx *cx, int64_t *ret)
{
    struct weft__fs_state *s = state_of(op);

    if (!s->job.call.fn) {
        if (!cx->why && !weft__leaf_may(cx)) return WEFT_PENDING;
        int64_t n = tried(s, cx);
        if (n != -EAGAIN) return ends(s, n, ret);
        job_write(s, name);
    }
    if (cx->why && s->job.weft__at && !s->given)
        store_relaxed(&s->req.stopped, true); /* relaxed: a request to stop */
    if (weft_blocking_poll(&s->job, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (s->job.ret != -ENXIO || weft_rt_current()) return ends(s, s->job.ret, ret);
    return ends(s, weft__file_do(req_of(s)), ret); /* no runtime: a plain thread, which may block */
}
