/* SPDX-License-Identifier: MIT
 *
 * buf - a stream with a buffer on each side: few system calls for many small reads and writes, and reads that need to look
 * ahead: lines, pieces up to a delimiter, whatever a program recognises itself.
 *
 *     weft_buf *b;
 *     weft_slice line;
 *     r = weft_buf_new(conn, NULL, &b);                          takes conn
 *     while ((r = weft_read_line(b, 1000, &line)) > 0)           1 and a line, then 0 at the end, or an errno
 *         n = weft_write_all(weft_buf_stream(b), line.data, line.len);
 *     r = weft_flush(b);
 *     weft_close(b);                                             and conn with it
 *
 * It is a stream itself, weft_buf_stream(b), so all of stream.h works on it; large pieces go past the buffer without a copy.
 *
 * GIVEN UP  A read that is cancelled at any moment loses nothing: what has come lies in the buffer, and is what the next read
 * finds. That is why these are reads of a buffer, and not of a bare stream. Likewise a write or a flush that is given
 * up: what the buffer has taken stays in it, in order, and goes out by the next flush.
 * Bytes that were given by address (weft_read_until, weft_read_line, weft_buf_fill) lie in the buffer: borrowed until the next
 * read of it.
 * One reads and one writes at a time; a second one is answered -EBUSY.
 */
#ifndef WEFT_BUF_H
#define WEFT_BUF_H

#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes somewhere; no NUL follows. */
typedef struct weft_slice {
    const char *data;
    size_t len;
} weft_slice;

/* Zero is the default of each. */
typedef struct weft_buf_opts {
    size_t read_bytes;  /* default: 8 KiB */
    size_t write_bytes; /* default: 8 KiB */
    void *
        read_room; /* the caller's memory, of read_bytes, pinned until the close; it never grows. NULL: its own */
    void *write_room; /* likewise */
    bool keep;        /* borrows the stream: it stays open */
} weft_buf_opts;

#define WEFT_BUF_BYTES  8192
#define WEFT_LINE_LIMIT 65536

/* Gives a buffered stream, for weft_close. Takes the stream if it succeeds, unless .keep. Context: anywhere.
 * Returns 0; -ENOMEM; -EINVAL: NULL, or room without a size. */
WEFT_API int weft_buf_new(weft_stream *stream, const weft_buf_opts *opts, weft_buf **into)
    __attribute__((warn_unused_result));

/* The buffer as a stream, borrowed: weft_read, weft_read_exact, weft_peek and all writes go by the buffer; weft_shutdown flushes
 * first. weft_close of either is the end of both, with nothing under way; what was not flushed is gone. */
WEFT_API weft_stream *weft_buf_stream(weft_buf *buf);

/* ---- looking ahead ---------------------------------------------------------------------------------------------------------
 *
 * weft_buf_fill(buf, want, &data): wait until the buffer holds `want` bytes (0: one). Gives an address, and consumes nothing.
 * Returns how many there are, perhaps more than wanted; fewer: the end came before (0: at once); -EMSGSIZE: so much does not fit the
 * caller's room; -ENOMEM; else as weft_read. */
struct weft_buf_fill {
    WEFT_FRAME(ssize_t);
    weft_buf *buf;
    size_t want;
    const char **into;
    struct weft_io weft__io WEFT__ZERO;
};

/* The first `bytes` of what is there were used. Never waits. Returns 0; -EINVAL: so many are not there; -EBUSY: another reads. */
WEFT_API int weft_buf_consume(weft_buf *buf, size_t bytes);

/* ---- pieces --------------------------------------------------------------------------------------------------------------
 *
 * weft_read_until(buf, delim, limit, &data): the bytes up to and with the next `delim`, of which there are `limit` at most (0:
 * WEFT_LINE_LIMIT). Gives their address. Returns how many; at the end what is left, without a delimiter; 0: nothing is;
 * -EMSGSIZE: there is no delimiter among the first `limit`, or in as much as the caller's room holds: nothing is consumed;
 * -ENOMEM; else as weft_read.
 *
 * weft_read_line(buf, limit, &line): the next line, of `limit` bytes at most (0: WEFT_LINE_LIMIT), without the LF or CRLF that ends it.
 * The last one may be without. Returns 1; 0 at the end; else as weft_read_until. */
struct weft_read_until {
    WEFT_FRAME(ssize_t);
    weft_buf *buf;
    int delim;
    size_t limit;
    const char **into;
    size_t weft__seen WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_read_line {
    WEFT_FRAME(int);
    weft_buf *buf;
    size_t limit;
    weft_slice *into;
    size_t weft__seen WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- out -----------------------------------------------------------------------------------------------------------------
 *
 * weft_flush(buf): write what the buffer holds. Returns 0; else as weft_write, and what was not written stays. */
struct weft_flush {
    WEFT_FRAME(int);
    weft_buf *buf;
    struct weft_io weft__io WEFT__ZERO;
};

WEFT_API weft_pollfn weft_buf_fill_poll;
WEFT_API weft_pollfn weft_read_until_poll;
WEFT_API weft_pollfn weft_read_line_poll;
WEFT_API weft_pollfn weft_flush_poll;

WEFT_API ssize_t weft__buf_fill(weft_buf *buf, size_t want, const char **into)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__read_until(weft_buf *buf, int delim, size_t limit, const char **into)
    __attribute__((warn_unused_result));
WEFT_API int weft__read_line(weft_buf *buf, size_t limit, weft_slice *into)
    __attribute__((warn_unused_result));
WEFT_API int weft__flush(weft_buf *buf) __attribute__((warn_unused_result));

#define weft_buf_fill(buf, want, into)                                                             \
    (WEFT__CALL_FORM("weft_buf_fill()"), weft__buf_fill(buf, want, into))
#define weft_read_until(buf, delim, limit, into)                                                   \
    (WEFT__CALL_FORM("weft_read_until()"), weft__read_until(buf, delim, limit, into))
#define weft_read_line(buf, limit, into)                                                           \
    (WEFT__CALL_FORM("weft_read_line()"), weft__read_line(buf, limit, into))
#define weft_flush(buf) (WEFT__CALL_FORM("weft_flush()"), weft__flush(buf))

#ifdef __cplusplus
}
#endif

#endif
