/* SPDX-License-Identifier: MIT
 *
 * splice - from descriptor to descriptor through a pipe in the kernel; else a copy (weft/copy.h).
 *
 *     BEGINS -> TAKES    there is a pipe, and both have descriptors
 *     BEGINS -> COPIES   else
 *     TAKES  -> GIVES    into the pipe, which was empty: so "would block" means the source
 *     GIVES  -> TAKES    out of it, until it is empty: so "would block" means the target
 *     TAKES, GIVES -> COPIES   the kernel cannot (-EINVAL); what lies in the pipe goes first
 * Threads: the poller's.
 */
#include "sys/splice.h"
#include "driver/op.h"
#include "io/fdstream.h"
#include "io/pump.h"
#include "limits.h"
#include "sync/leaf.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "task/call.h"

enum { BEGINS, TAKES, GIVES, COPIES };

/* ---- one try ---- */

static ssize_t try_side(struct weft__fdslot *slot, int from, int to, size_t bytes, uint64_t bits)
{
    uint64_t seen = weft__fdslot_look(slot);
    ssize_t r = weft__splice(from, to, bytes);
    if (r == -EAGAIN) weft__fdslot_clear(slot, seen, bits);
    return r;
}

#define READS  (WEFT__READY_READ | WEFT__READY_READ_END)
#define WRITES (WEFT__READY_WRITE | WEFT__READY_WRITE_END)

/* The driver has fetched ahead: that comes first. */
static ssize_t try_kept(struct weft__fdslot *slot, int to)
{
    char room[1024];
    struct iovec piece = {.iov_base = room, .iov_len = sizeof(room)};
    struct weft__take take = {.kind = WEFT__TAKE_RECV, .iov = &piece, .count = 1, .bytes = sizeof(room)};
    ssize_t n = weft__driver_try(slot, &take);
    if (n <= 0) return n;
    piece.iov_len = (size_t)n;
    return weft__pipe_write(to, &piece, 1); /* it is empty: all goes in */
}

static ssize_t try_take(struct weft__fdslot *slot, void *arg)
{
    struct weft_splice *f = arg;
    if (!weft__driver_direct(slot)) return try_kept(slot, f->weft__pipe[1]);
    return try_side(slot, slot->fd, f->weft__pipe[1], WEFT__SPLICE_BYTES, READS);
}

static ssize_t try_give(struct weft__fdslot *slot, void *arg)
{
    struct weft_splice *f = arg;
    return try_side(slot, f->weft__pipe[0], slot->fd, f->weft__held, WRITES);
}

static const struct weft__op_kind takes = {
    .side = WEFT__SIDE_READ, .as = WEFT__USE_READER, .bits = READS, .tries = try_take};
static const struct weft__op_kind gives = {
    .side = WEFT__SIDE_WRITE, .as = WEFT__USE_WRITER, .bits = WRITES, .tries = try_give};

/* ---- steps ---- */

static void begin(struct weft_splice *f)
{
    bool fds = weft__fdstream_has_slot(f->from) && weft__fdstream_has_slot(f->to);
    f->weft__step = fds && weft__pipe_open(f->weft__pipe) == 0 ? TAKES : COPIES;
}

static void close_pipe(struct weft_splice *f)
{
    weft__fd_close(f->weft__pipe[0]);
    weft__fd_close(f->weft__pipe[1]);
}

/* The pump begins with what the pipe holds. */
static int take_back(struct weft_splice *f)
{
    struct weft__pump *p = &f->weft__pump;
    int r = weft__pump_room(p, f->weft__held);
    if (r < 0) return r;
    struct iovec room = {.iov_base = p->room, .iov_len = f->weft__held};
    ssize_t n = weft__pipe_read(f->weft__pipe[0], &room, 1);
    if (n < 0) return (int)n;
    p->data = p->room;
    p->len = (size_t)n;
    p->step = WEFT__PUMP_WRITES;
    return 0;
}

static int turn_to_copy(struct weft_splice *f)
{
    int r = f->weft__held ? take_back(f) : 0;
    if (r < 0) return r;
    close_pipe(f);
    f->weft__step = COPIES;
    return 0;
}

/* READY: *n is what the call answered. */
static weft_poll step(struct weft_splice *f, weft_cx *cx, ssize_t *n)
{
    bool in = f->weft__step == TAKES;
    struct weft__fdslot *slot = weft__fdstream_slot(in ? f->from : f->to);
    struct weft__op *op = weft__op_of(in ? &f->weft__pump.reads : &f->weft__pump.writes);
    return weft__op_poll(slot, op, in ? &takes : &gives, f, NULL, NULL, cx, n);
}

static void stepped(struct weft_splice *f, size_t bytes)
{
    if (f->weft__step == TAKES) {
        f->weft__held = bytes;
        f->weft__step = GIVES;
        return;
    }
    f->weft__held -= bytes;
    f->done += bytes;
    if (f->weft__held == 0) f->weft__step = TAKES;
}

/* READY: *ret is 0 at the end, or why not; or it is a copy now. */
static weft_poll splices(struct weft_splice *f, weft_cx *cx, int *ret)
{
    ssize_t n = 0;
    for (;;) {
        if (step(f, cx, &n) == WEFT_PENDING) return WEFT_PENDING;
        if (n == -EINVAL) {
            *ret = turn_to_copy(f);
            break;
        }
        *ret = n < 0 ? (int)n : 0;
        if (n <= 0) break;
        stepped(f, (size_t)n);
    }
    if (f->weft__step != COPIES) close_pipe(f);
    return WEFT_READY;
}

static weft_poll splice_or_copy(struct weft_splice *f, weft_cx *cx, int *ret)
{
    if (f->weft__step == BEGINS) begin(f);
    if (f->weft__step != COPIES) {
        if (splices(f, cx, ret) == WEFT_PENDING) return WEFT_PENDING;
        if (f->weft__step != COPIES) return WEFT_READY;
    }
    return weft__pump_poll(&f->weft__pump, f->from, f->to, cx, &f->done, ret);
}

weft_poll weft_splice_poll(void *frame, weft_cx *cx)
{
    struct weft_splice *f = frame;
    int r = -EINVAL;
    f->weft__at = 0;
    if (f->from && f->to && splice_or_copy(f, cx, &r) == WEFT_PENDING) {
        f->weft__at = WEFT__LEAF_WAITS;
        return WEFT_PENDING;
    }
    f->ret = r < 0 ? r : (int64_t)f->done;
    return WEFT_READY;
}

int64_t weft__splice_streams(weft_stream *from, weft_stream *to)
{
    struct weft_splice f = {.from = from, .to = to};
    int r = weft__run_from(weft_splice_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
