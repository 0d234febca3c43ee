/* SPDX-License-Identifier: MIT
 *
 * op - the way of a request; the idea is in op.h.
 */
#include "fs/op.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "driver/files.h"
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

static void given_dispose_of_ring(struct weft__fileop *op, int64_t ret)
{
    given_dispose(weft__container_of(op, struct weft__fs_given, ring), ret);
}

/* What is not set here is written when its way is known. */
static struct weft__fs_state *state_init(struct weft__fs_op *op, struct weft_file *file,
                                         struct weft__fs_given *given)
{
    struct weft__fs_state *s = state_of(op);
    s->file = file;
    s->given = given;
    s->way = WEFT__FS_NO_WAY;
    s->told = 0;
    return s;
}

int weft__fs_give(struct weft__fs_op *op, const struct weft__file_req *req, void *room)
{
    size_t bytes = strlen(req->path) + 1;
    struct weft__fs_given *given = room ? weft__alloc(sizeof(*given) + bytes) : NULL;
    if (!given) {
        weft__free(room);
        return -ENOMEM;
    }
    (void)state_init(op, NULL, given);
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
    struct weft__fs_state *s = state_init(op, file, NULL);
    s->req = *req;
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

/* `gone`: an owning request was disposed of already. */
static weft_poll ends(struct weft__fs_state *s, int64_t ret, bool gone, int64_t *into)
{
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

/* ---- by ring --------------------------------------------------------------------------------------------- */

static struct weft__fileop *ring_op(struct weft__fs_state *s)
{
    return s->given ? &s->given->ring : &s->ring;
}

/* A ring looks at no offset where there is nothing to seek in: pread(2) and pwrite(2) do, and refuse it. */
static bool offset_matters(struct weft__fs_state *s)
{
    if (s->given || (s->req.op != WEFT__FILE_READ && s->req.op != WEFT__FILE_WRITE)) return false;
    uint8_t seeks = load_relaxed(&s->file->seeks); /* relaxed, both: a fact, whoever finds it out */
    if (seeks == WEFT__SEEKS_UNKNOWN) {
        seeks = weft__file_seeks(s->file->fd) ? WEFT__SEEKS : WEFT__SEEKS_NOT;
        store_relaxed(&s->file->seeks, seeks);
    }
    return seeks == WEFT__SEEKS_NOT;
}

static bool ring_begins(struct weft__fs_state *s, struct weft__files *files, struct weft_waker waker)
{
    struct weft__fileop *op = ring_op(s);
    const struct weft__file_req *req = req_of(s);
    size_t bytes = weft__file_room_bytes(req);

    op->req = req;
    op->dispose = s->given ? given_dispose_of_ring : NULL;
    op->room = bytes ? weft__alloc(bytes) : NULL;
    if (bytes && !op->room) return false;
    if (weft__files_begin(files, op, waker)) return true;
    weft__free(op->room);
    return false;
}

/* False: it goes the other way. A thread that is no worker has no ring. */
static bool takes_ring(struct weft__fs_state *s, weft_cx *cx)
{
    struct weft__port *port = weft__driver_mine();
    if (!port || port->lost || cx->why) return false;
    struct weft__files *files = weft__port_files(port);
    if (!files || !weft__files_know(files, req_of(s)) || offset_matters(s)) return false;
    return ring_begins(s, files, cx->waker);
}

/* It is DONE. What it answers, told to stop or not; -EAGAIN: nothing has happened, and the pool may know more. */
static int64_t ring_answer(struct weft__fs_state *s)
{
    struct weft__fileop *op = ring_op(s);
    int64_t ret = plain_read(&op->ret);

    if (ret >= 0) weft__file_take(req_of(s), op->room);
    weft__free(op->room);
    bool unanswered = weft__file_is_unanswered(ret);
    if (!s->told) return unanswered ? -EAGAIN : ret;
    return unanswered || ret == -ECANCELED || ret == -EINTR ? s->told : ret;
}

/* READY with -EAGAIN: it goes to the pool, and has not ended. */
static weft_poll ring_poll(struct weft__fs_state *s, weft_cx *cx, int64_t *into)
{
    struct weft__fileop *op = ring_op(s);
    struct weft__files *files = op->files;
    int why = weft_cx_cancelled(cx);

    if (files->port->lost) return ends(s, -ECHILD, true, into); /* the parent's ring writes to what is the parent's */
    switch (weft__fileop_poll(op, &files->lock, why < 0)) {
    case WEFT__FILEOP_WAIT:
        if (why) s->told = why;
        return WEFT_PENDING;
    case WEFT__FILEOP_LEFT:
        return ends(s, why, true, into);
    case WEFT__FILEOP_READY:
        break;
    }
    *into = ring_answer(s);
    return *into == -EAGAIN ? WEFT_READY : ends(s, *into, false, into);
}

/* ---- by the pool ----------------------------------------------------------------------------------------- */

static void job_write(struct weft__fs_state *s, const char *name)
{
    _Static_assert(offsetof(struct weft__fs_given, req) == 0, "the request is what is given");
    s->way = WEFT__FS_BY_POOL;
    s->job = (struct weft_blocking){.name = name, .dispose = s->given ? given_dispose : NULL};
    s->job.call = (weft_call){(void (*)(void))do_it, {(uintptr_t)req_of(s)}, sizeof(int64_t), 1};
}

static weft_poll pool_poll(struct weft__fs_state *s, weft_cx *cx, int64_t *into)
{
    if (cx->why && s->job.weft__at) {
        s->told = cx->why;
        store_relaxed(&req_of(s)->stopped, true); /* relaxed: a request to stop */
    }
    if (weft_blocking_poll(&s->job, cx) == WEFT_PENDING) return WEFT_PENDING;
    int64_t ret = s->job.ret;
    if (ret == -ECANCELED && s->told)
        ret = s->told; /* it stopped in between: what for, it does not know */
    /* no runtime: a plain thread, which may block */
    if (ret == -ENXIO && !weft_rt_current()) return ends(s, weft__file_do(req_of(s)), false, into);
    return ends(s, ret, ret == -ECANCELED || ret == -ETIME, into); /* of those two the pool disposed */
}

/* ---- which --------------------------------------------------------------------------------------------------- */

weft_poll weft__fs_poll(struct weft__fs_op *op, const char *name, weft_cx *cx, int64_t *ret)
{
    struct weft__fs_state *s = state_of(op);

    if (s->way == WEFT__FS_NO_WAY) {
        if (!cx->why && !weft__leaf_may(cx)) return WEFT_PENDING;
        int64_t n = tried(s, cx);
        if (n != -EAGAIN) return ends(s, n, false, ret);
        if (takes_ring(s, cx)) {
            s->way = WEFT__FS_BY_RING;
            if (!weft__fileop_is_done(ring_op(s))) return WEFT_PENDING;
        } else {
            job_write(s, name);
        }
    }
    if (s->way == WEFT__FS_BY_RING) {
        weft_poll polled = ring_poll(s, cx, ret);
        if (polled == WEFT_PENDING || *ret != -EAGAIN) return polled;
        job_write(s, name);
    }
    return pool_poll(s, cx, ret);
}
