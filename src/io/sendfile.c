/* SPDX-License-Identifier: MIT
 *
 * sendfile - a file into a stream (weft/copy.h).
 *
 *     LOOKS -> SENDS    its next piece is in the system's memory, and `to` has a descriptor: sendfile(2), which then does not wait for a disk
 *     LOOKS -> READS    else it is read by a thread that may block, into room of the pump's
 *     SENDS -> LOOKS    so many went
 *     READS -> WRITES -> LOOKS
 * A piece counts as being in memory if its first and its last byte are. If what lies between is not, the kernel waits for it in the poll, which is
 * bounded by the piece.
 * Threads: the poller's.
 */
#include "driver/op.h"
#include "io/fdstream.h"
#include "io/pump.h"
#include "limits.h"
#include "sync/leaf.h"
#include "sys/file.h"
#include "sys/splice.h"
#include "task/call.h"

enum { LOOKS, SENDS, READS, WRITES };

/* ---- how much, and whether it is there ---- */

static size_t piece_of(const struct weft_sendfile *f)
{
    uint64_t left = f->count < 0 ? UINT64_MAX : (uint64_t)f->count - f->done;
    return left < WEFT__SPLICE_BYTES ? (size_t)left : WEFT__SPLICE_BYTES;
}

static int64_t place_of(const struct weft_sendfile *f)
{
    return f->offset + (int64_t)f->done;
}

static bool is_resident(int fd, int64_t at)
{
    char byte;
    struct weft__file_req req = {
        .op = WEFT__FILE_READ, .fd = fd, .into = &byte, .bytes = 1, .offset = at};
    return weft__file_try(&req) >= 0;
}

static int look(const struct weft_sendfile *f)
{
    int fd = weft_file_fd(f->file);
    int64_t at = place_of(f);
    if (f->weft__plain || !weft__fdstream_has_slot(f->to)) return READS;
    return is_resident(fd, at) && is_resident(fd, at + (int64_t)piece_of(f) - 1) ? SENDS : READS;
}

/* ---- sends ---- */

#define OUT (WEFT__READY_WRITE | WEFT__READY_WRITE_END)

static ssize_t try_send(struct weft__fdslot *slot, void *arg)
{
    struct weft_sendfile *f = arg;
    uint64_t seen = weft__fdslot_look(slot);
    ssize_t r = weft__sendfile_at(weft_file_fd(f->file), place_of(f), slot->fd, piece_of(f));
    if (r == -EAGAIN) weft__fdslot_clear(slot, seen, OUT);
    return r;
}

static const struct weft__op_kind sends = {
    .side = WEFT__SIDE_WRITE, .as = WEFT__USE_WRITER, .bits = OUT, .tries = try_send};

/* READY: *n went, 0 at the end of the file; or why not. */
static weft_poll send_piece(struct weft_sendfile *f, weft_cx *cx, ssize_t *n)
{
    struct weft__op *op = weft__op_of(&f->weft__pump.writes);
    if (weft__op_poll(weft__fdstream_slot(f->to), op, &sends, f, NULL, NULL, cx, n) == WEFT_PENDING)
        return WEFT_PENDING;
    f->weft__pump.writes = (struct weft_io){{0}};
    f->weft__step = LOOKS;
    if (*n > 0) f->done += (uint64_t)*n;
    if (*n == -EINVAL || *n == -ENOSYS) { /* not of this file, or not to this stream */
        f->weft__plain = true;
        *n = 1;
    }
    return WEFT_READY;
}

/* ---- reads ---- */

static int begin_read(struct weft_sendfile *f)
{
    size_t bytes = piece_of(f);
    int r = weft__pump_room(&f->weft__pump, bytes);
    if (r < 0) return r;
    f->weft__read = (struct weft_file_read){
        .file = f->file, .into = f->weft__pump.room, .bytes = bytes, .offset = place_of(f)};
    return 0;
}

static weft_poll read_piece(struct weft_sendfile *f, weft_cx *cx, ssize_t *n)
{
    struct weft__pump *p = &f->weft__pump;
    if (weft_file_read_poll(&f->weft__read, cx) == WEFT_PENDING) return WEFT_PENDING;
    *n = f->weft__read.ret;
    if (*n <= 0) return WEFT_READY;
    p->data = p->room;
    p->len = (size_t)*n;
    p->step = WEFT__PUMP_WRITES;
    f->weft__step = WRITES;
    return WEFT_READY;
}

static weft_poll write_piece(struct weft_sendfile *f, weft_cx *cx, ssize_t *n)
{
    int r = 0;
    if (weft__pump_piece(&f->weft__pump, f->to, cx, &f->done, &r) == WEFT_PENDING)
        return WEFT_PENDING;
    f->weft__step = LOOKS;
    *n = r < 0 ? r : 1;
    return WEFT_READY;
}

/* ---- steps ---- */

static int decide(struct weft_sendfile *f)
{
    int how = look(f);
    int r = how == READS ? begin_read(f) : 0;
    if (r == 0) f->weft__step = how;
    return r;
}

/* READY: *n is above 0 if it goes on. */
static weft_poll step(struct weft_sendfile *f, weft_cx *cx, ssize_t *n)
{
    if (f->weft__step == SENDS) return send_piece(f, cx, n);
    if (f->weft__step == READS) return read_piece(f, cx, n);
    if (f->weft__step == WRITES) return write_piece(f, cx, n);
    *n = piece_of(f) == 0 ? 0 : decide(f);
    if (*n == 0 && piece_of(f) > 0) *n = 1;
    return WEFT_READY;
}

weft_poll weft_sendfile_poll(void *frame, weft_cx *cx)
{
    struct weft_sendfile *f = frame;
    ssize_t n = -EINVAL;
    f->weft__at = 0;
    if (f->file && f->to && f->offset >= 0 && f->count >= -1) do {
            if (step(f, cx, &n) == WEFT_PENDING) {
                f->weft__at = WEFT__LEAF_WAITS;
                return WEFT_PENDING;
            }
        } while (n > 0);
    weft__pump_drop(&f->weft__pump);
    f->ret = n < 0 ? n : (int64_t)f->done;
    return WEFT_READY;
}

int64_t weft__sendfile(weft_file *file, int64_t offset, int64_t count, weft_stream *to)
{
    struct weft_sendfile f = {.file = file, .offset = offset, .count = count, .to = to};
    int r = weft__run_from(weft_sendfile_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
