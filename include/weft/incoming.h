/* SPDX-License-Identifier: MIT
 *
 * incoming - sources over what comes from outside: the lines of a stream, the connections of a listener (source.h).
 *
 *     struct weft_from_accept guests = weft_from_accept(listener);
 *     while ((r = weft_pull(&guests.source, &conn)) > 0) ...       each conn is yours: weft_close(conn)
 *
 *     struct weft_from_lines lines = weft_from_lines(buf, 1000);
 *     struct weft_filter said = weft_filter(&lines.source, is_no_comment, NULL);
 *     while ((r = weft_pull(&said.source, &line)) > 0) ...         a weft_slice, borrowed until the next pull
 *
 * Both keep what sources promise: a pull that is given up has taken nothing, and between two pulls nothing is registered. What they stand over is borrowed as long
 * as they are used.
 */
#ifndef WEFT_INCOMING_H
#define WEFT_INCOMING_H

#include <weft/buf.h>
#include <weft/net.h>
#include <weft/source.h>

#ifdef __cplusplus
extern "C" {
#endif

/* weft_from_lines(buf, limit): items are of type weft_slice, one for each weft_read_line(buf, limit, ...), whose answers are the pull's: 1 and a line, 0 at the end,
 * -EMSGSIZE for one that is longer, which stays where it is.
 * A line lies in the buffer: it is borrowed until the next pull, or any other read of the buffer. So weft_chunks of them is refused, -EINVAL; what weft_map has made
 * of a line, by a copy, may be collected. */
struct weft_from_lines {
    weft_source source;
    weft_buf *weft__buf;
    size_t weft__limit;
    struct weft_read_line weft__read;
};
WEFT_API void weft__from_lines_init(struct weft_from_lines *source, weft_buf *buf, size_t limit);
#define weft_from_lines(buf, limit) weft__from_lines(buf, limit)

/* weft_from_accept(listener): items are of type weft_stream *, given to whoever pulls, or to the filter that drops one; any number of sources may stand over one listener.
 * Answers as weft_accept, but 1 instead of 0: there is no end, and -EBADF if the listener is closed meanwhile. */
struct weft_from_accept {
    weft_source source;
    weft_listener *weft__listener;
    struct weft_accept weft__accept;
};
WEFT_API void weft__from_accept_init(struct weft_from_accept *source, weft_listener *listener);
#define weft_from_accept(listener) weft__from_accept(listener)

#ifdef __cplusplus
}
#endif

static inline struct weft_from_lines weft__from_lines(weft_buf *buf, size_t limit)
{
    struct weft_from_lines source;
    weft__from_lines_init(&source, buf, limit);
    return source;
}
static inline struct weft_from_accept weft__from_accept(weft_listener *listener)
{
    struct weft_from_accept source;
    weft__from_accept_init(&source, listener);
    return source;
}

#endif
