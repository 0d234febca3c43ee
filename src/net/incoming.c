/* SPDX-License-Identifier: MIT
 *
 * incoming - sources over lines and connections (weft/incoming.h): the leaf that reads or accepts, begun anew for each pull.
 *
 *     weft__at == 0    no pull is under way; the leaf may be made anew
 *     else             it waits, and is polled with the same `into`
 * Here and not in flow, which knows neither buffers nor sockets; in net, from where both can be seen.
 * Threads: the poller's; what is shared is what lies beneath.
 * Rejected: lines that are copied for whoever collects them: a slice would need an owner, and whoever wants a copy has weft_map.
 */
#include "flow/source.h"

#include <weft/incoming.h>

static weft_poll lines_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_from_lines *f = weft__container_of(source, struct weft_from_lines, source);
    struct weft_read_line *read = &f->weft__read;

    if (!read->weft__at)
        *read = (struct weft_read_line){.buf = f->weft__buf, .limit = f->weft__limit, .into = into};
    if (weft_read_line_poll(read, cx) == WEFT_PENDING) return WEFT_PENDING;
    source->ret = read->ret;
    return WEFT_READY;
}

/* It answers no look, as reads do not. */
void weft__from_lines_init(struct weft_from_lines *source, weft_buf *buf, size_t limit)
{
    *source = (struct weft_from_lines){.source = {.poll = lines_poll,
                                                  .item_bytes = sizeof(weft_slice),
                                                  .weft__probes = WEFT__SOURCE_LENDS},
                                       .weft__buf = buf,
                                       .weft__limit = limit};
}

static weft_poll accept_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct weft_from_accept *f = weft__container_of(source, struct weft_from_accept, source);
    struct weft_accept *accept = &f->weft__accept;

    if (!accept->weft__at)
        *accept = (struct weft_accept){.listener = f->weft__listener, .into = into};
    if (weft_accept_poll(accept, cx) == WEFT_PENDING) return WEFT_PENDING;
    source->ret = accept->ret < 0 ? accept->ret : 1;
    return WEFT_READY;
}

void weft__from_accept_init(struct weft_from_accept *source, weft_listener *listener)
{
    *source = (struct weft_from_accept){.source = {.poll = accept_poll,
                                                   .item_bytes = sizeof(weft_stream *),
                                                   .weft__probes = WEFT__SOURCE_PROBES},
                                        .weft__listener = listener};
}
