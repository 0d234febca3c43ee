/* SPDX-License-Identifier: MIT
 *
 * stdio - standard input, output and error as streams (weft/stdio.h), of three kinds:
 *
 *     OPENED ANEW   a stream on a descriptor like any other (fdstream.h)
 *     SHARED        another number of the same open file, in a slot; each try is a call that does not wait
 *     FILE          the kernel has no readiness for it: a stream over an open file (filestream.h)
 * Rejected: to make the descriptors non-blocking (whoever shares them finds -EAGAIN, also when this program has ended); a thread that sits in
 * read(2) (it cannot be called back, so the runtime's stop would wait for the next key).
 *
 * Threads: any.
 */
#include <weft/stdio.h>

#include "driver/op.h"
#include "io/fdstream.h"
#include "io/filestream.h"
#include "io/list.h"
#include "io/piece.h"
#include "sys/fd.h"
#include "sys/stdio.h"

/* ---- shared ---- */

static void shared_close(weft_stream *stream)
{
    weft__driver_close(weft__fdstream_slot(stream));
}

static int shared_fd(weft_stream *stream)
{
    return weft__fdstream_slot(stream)->fd;
}

#define IN  (WEFT__READY_READ | WEFT__READY_READ_END)
#define OUT (WEFT__READY_WRITE | WEFT__READY_WRITE_END)

/* What of a list is to be moved. */
struct shared_move {
    struct weft__list_rest list;
    const size_t *done;
};

static ssize_t try_side(struct weft__fdslot *slot, void *arg, uint64_t bits)
{
    const struct shared_move *m = arg;
    struct weft__list_rest rest = m->list;
    struct iovec piece = {.iov_base = NULL, .iov_len = 0};
    uint64_t seen = weft__fdslot_look(slot);
    (void)weft__list_piece(&rest, *m->done, &piece);
    ssize_t r =
        bits == IN ? weft__stdio_read(slot->fd, &piece) : weft__stdio_write(slot->fd, &piece);
    if (r == -EAGAIN) weft__fdslot_clear(slot, seen, bits);
    return r;
}

static ssize_t try_in(struct weft__fdslot *slot, void *arg)
{
    return try_side(slot, arg, IN);
}

static ssize_t try_out(struct weft__fdslot *slot, void *arg)
{
    return try_side(slot, arg, OUT);
}

static const struct weft__op_kind ins = {
    .side = WEFT__SIDE_READ, .as = WEFT__USE_READER, .bits = IN, .tries = try_in};
static const struct weft__op_kind outs = {
    .side = WEFT__SIDE_WRITE, .as = WEFT__USE_WRITER, .bits = OUT, .tries = try_out};

static weft_poll shared(weft_stream *stream, struct weft_io *io, const struct weft__op_kind *kind,
                        const struct weft__list_rest *list, bool all, weft_cx *cx, ssize_t *ret,
                        size_t *done)
{
    size_t none = 0;
    struct shared_move m = {.list = *list, .done = all ? done : &none};
    struct weft__op_all goal = {.want = weft__list_bytes(list->iov, list->count), .done = done};
    *ret = 0;
    if (goal.want == 0) return WEFT_READY;
    return weft__op_poll(weft__fdstream_slot(stream), weft__op_of(io), kind, &m, all ? &goal : NULL,
                         NULL, cx, ret);
}

static weft_poll shared_read(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                             int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__list_rest list = {.iov = iov, .count = count};
    *ret = -EOPNOTSUPP;
    if (flags & WEFT_IO_PEEK) return WEFT_READY;
    return shared(stream, io, &ins, &list, flags & WEFT_IO_ALL, cx, ret, done);
}

static weft_poll shared_write(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                              int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__list_rest list = {.iov = iov, .count = count};
    return shared(stream, io, &outs, &list, flags & WEFT_IO_ALL, cx, ret, done);
}

static const weft_stream_ops shared_tables[2] = {
    {"stdio", shared_read, weft__piece_cannot, weft__piece_cannot_shut, shared_close, shared_fd},
    {"stdio", weft__piece_cannot, shared_write, weft__piece_cannot_shut, shared_close, shared_fd},
};

/* ---- which ---- */

static int open_anew(struct weft__port *port, int number, bool writes, weft_stream **into)
{
    int fd = weft__stdio_reopen(number, writes);
    if (fd < 0) return fd;
    int r =
        weft__fdstream_new(port, fd, writes ? WEFT__FDSTREAM_WRITER : WEFT__FDSTREAM_READER, into);
    if (r < 0) weft__fd_close(fd);
    return r;
}

static int open_shared(struct weft__port *port, int number, bool writes, weft_stream **into)
{
    struct weft__fdslot *slot;
    int fd = weft__stdio_dup(number);
    if (fd < 0) return fd;
    int r = weft__driver_add(port, fd, &slot);
    if (r == 0) {
        *into = (weft_stream *)(void *)slot->face;
        (*into)->ops = &shared_tables[writes];
        return 0;
    }
    if (r == -EPERM)
        r = weft__filestream_of_fd(fd, writes ? WEFT__FILESTREAM_WRITER : WEFT__FILESTREAM_READER,
                                   into);
    if (r < 0) weft__fd_close(fd);
    return r;
}

static int open_standard(int number, bool writes, weft_stream **into)
{
    struct weft__port *port;
    if (!into) return -EINVAL;
    int r = weft__driver_here(NULL, false, &port);
    if (r < 0) return r;
    r = open_anew(port, number, writes, into);
    return r == 0 || r == -EBADF ? r : open_shared(port, number, writes, into);
}

int weft_stdin(weft_stream **into)
{
    return open_standard(0, false, into);
}

int weft_stdout(weft_stream **into)
{
    return open_standard(1, true, into);
}

int weft_stderr(weft_stream **into)
{
    return open_standard(2, true, into);
}
