/* SPDX-License-Identifier: MIT
 *
 * filestream - files as streams; the idea is in filestream.h.
 */
#include "io/filestream.h"

#include "base/alloc.h"
#include "io/piece.h"

struct file_stream {
    weft_stream face;
    weft_file *file;
    _Atomic uint32_t references; /* the stream, and operations under way  [filestream-ref] */
    _Atomic bool closed;
    struct weft__seat reads; /* guards `read` */
    struct weft__seat writes;
    struct weft_file_read read;
    struct weft_file_write write;
};

static struct file_stream *file_of(weft_stream *stream)
{
    return (struct file_stream *)(void *)stream;
}

static void unref(struct file_stream *f)
{
    /* [filestream-ref] with unref: each holder's last touch */
    if (fetch_sub_acq_rel(&f->references, 1) > 1) return;
    weft_file_close(f->file);
    weft__free(f);
}

/* ---- one piece ---- */

enum piece { PIECE_GOES_ON, PIECE_BEGINS, PIECE_REFUSED };

/* A word of the operation's room says that it has begun. */
static enum piece piece_of(const struct file_stream *f, struct weft_io *io)
{
    if (io->weft__io[0]) return PIECE_GOES_ON;
    if (load_relaxed(&f->closed))
        return PIECE_REFUSED; /* relaxed: one that misses it was in time */
    io->weft__io[0] = io;
    return PIECE_BEGINS;
}

static weft_poll refused(ssize_t *got)
{
    *got = -EBADF;
    return WEFT_READY;
}

static weft_poll read_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                          weft_cx *cx, ssize_t *got)
{
    struct file_stream *f = file_of(stream);
    enum piece is = piece_of(f, io);
    if (is == PIECE_REFUSED) return refused(got);
    if (is == PIECE_BEGINS)
        f->read = (struct weft_file_read){.file = f->file,
                                          .into = piece->iov_base,
                                          .bytes = piece->iov_len,
                                          .offset = WEFT_FILE_HERE};
    weft_poll answer = weft_file_read_poll(&f->read, cx);
    *got = f->read.ret;
    return answer;
}

static weft_poll write_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                           weft_cx *cx, ssize_t *got)
{
    struct file_stream *f = file_of(stream);
    enum piece is = piece_of(f, io);
    if (is == PIECE_REFUSED) return refused(got);
    if (is == PIECE_BEGINS)
        f->write = (struct weft_file_write){.file = f->file,
                                            .from = piece->iov_base,
                                            .bytes = piece->iov_len,
                                            .offset = WEFT_FILE_HERE};
    weft_poll answer = weft_file_write_poll(&f->write, cx);
    *got = f->write.ret;
    return answer;
}

/* ---- operations ---- */

/* One that is under way holds a reference from its first poll to its last; one that does not come to sit, for that poll. A look brings nothing: what a
 * file has is not known without a thread that may wait for it. */
static weft_poll polls(const struct weft__pieces *p, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct file_stream *f = file_of(p->stream);
    if (cx->probe) return WEFT_PENDING;
    if (!weft__seat_is_mine(p->seat, p->io))
        (void)fetch_add_relaxed(&f->references, 1); /* relaxed: the stream holds one */
    weft_poll answer = weft__pieces_poll(p, cx, ret, done);
    if (answer == WEFT_READY || !weft__seat_is_mine(p->seat, p->io)) unref(f);
    return answer;
}

static weft_poll file_read(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__pieces p = {stream, io, iov, count, flags, &file_of(stream)->reads, read_one};
    return polls(&p, cx, ret, done);
}

static weft_poll file_write(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__pieces p = {stream, io, iov, count, flags, &file_of(stream)->writes, write_one};
    return polls(&p, cx, ret, done);
}

static void file_close(weft_stream *stream)
{
    struct file_stream *f = file_of(stream);
    store_relaxed(&f->closed, true); /* relaxed: piece_of */
    unref(f);
}

static int file_fd(weft_stream *stream)
{
    return weft_file_fd(file_of(stream)->file);
}

static const weft_stream_ops tables[] = {
    [WEFT__FILESTREAM_BOTH] = {"file", file_read, file_write, weft__piece_cannot_shut, file_close,
                               file_fd},
    [WEFT__FILESTREAM_READER] = {"file", file_read, weft__piece_cannot, weft__piece_cannot_shut,
                                 file_close, file_fd},
    [WEFT__FILESTREAM_WRITER] = {"file", weft__piece_cannot, file_write, weft__piece_cannot_shut,
                                 file_close, file_fd},
};

/* The file is still to be put into it. */
static struct file_stream *stream_new(enum weft__filestream_way way)
{
    struct file_stream *f = weft__alloc(sizeof(*f));
    if (!f) return NULL;
    f->face.ops = &tables[way];
    store_relaxed(&f->references, 1); /* relaxed: not shared yet */
    return f;
}

int weft__filestream_of_fd(int fd, enum weft__filestream_way way, weft_stream **into)
{
    struct file_stream *f = stream_new(way);
    if (!f) return -ENOMEM;
    int r = weft_file_of(fd, &f->file);
    if (r < 0) {
        weft__free(f);
        return r;
    }
    *into = &f->face;
    return 0;
}

int weft_stream_of_file(weft_file *file, weft_stream **into)
{
    if (!file || !into) return -EINVAL;
    struct file_stream *f = stream_new(WEFT__FILESTREAM_BOTH);
    if (!f) return -ENOMEM;
    f->file = file;
    *into = &f->face;
    return 0;
}
