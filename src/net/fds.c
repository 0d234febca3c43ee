/* SPDX-License-Identifier: MIT
 *
 * fds - descriptors that travel in messages, and who sent them: weft/unix.h.
 *
 * A descriptor that was received exists from the system call on; it is counted in the caller's list in the same poll that is READY, or closed there.
 * Streams and messages go the same way. But on a stream it is the one reader or writer who does it, since bytes have an order.
 */
#include <weft/unix.h>

#include "io/fdstream.h"
#include "net/msg.h"
#include "sys/packet.h"
#include "task/call.h"

_Static_assert(sizeof(weft_fds) == sizeof(struct weft__packet_fds), "one is the other");
_Static_assert(offsetof(weft_fds, count) == offsetof(struct weft__packet_fds, count), "as above");
_Static_assert(offsetof(weft_fds, cut) == offsetof(struct weft__packet_fds, cut), "as above");
_Static_assert(WEFT_FDS_MAX == WEFT__PACKET_FDS, "as above");

static struct weft__packet_fds *inside(weft_fds *fds)
{
    return (struct weft__packet_fds *)(void *)fds;
}

/* ---- what makes sense ---- */

static bool sends_soundly(const void *buf, size_t len, const int *fds, unsigned count)
{
    return (buf || !len) && (fds || !count) && count <= WEFT_FDS_MAX;
}

static bool has_room(weft_fds *fds)
{
    if (!fds || (!fds->fd && fds->room > 0)) return false;
    fds->count = 0;
    fds->cut = false;
    return true;
}

/* Is it another kind of stream? Then its slot is none either. */
static bool is_other(weft_stream *stream)
{
    return stream && !weft__fdstream_is(stream, WEFT__FDSTREAM_UNIX);
}

static struct weft__fdslot *stream_slot(weft_stream *stream)
{
    return stream && !is_other(stream) ? weft__fdstream_slot(stream) : NULL;
}

static int may_move(weft_stream *stream, bool sound)
{
    return is_other(stream) ? -EOPNOTSUPP : weft__msg_if(sound);
}

/* ---- operations ---- */

WEFT__MSG_OPERATION(weft_dgram_send_fds, WRITE, SHARED, weft__msg_slot_of(f->dgram),
                    weft__msg_if(sends_soundly(f->buf, f->len, f->fds, f->count)),
                    weft__packet_send_fds(fd, f->buf, f->len, f->fds, f->count))

WEFT__MSG_OPERATION(weft_dgram_recv_fds, READ, SHARED, weft__msg_slot_of(f->dgram),
                    weft__msg_if((f->buf || !f->len) && has_room(f->fds)),
                    weft__packet_recv_fds(fd, f->buf, f->len, inside(f->fds)))

WEFT__MSG_OPERATION(weft_unix_send_fds, WRITE, WRITER, stream_slot(f->stream),
                    may_move(f->stream,
                             f->len > 0 && sends_soundly(f->buf, f->len, f->fds, f->count)),
                    weft__packet_send_fds(fd, f->buf, f->len, f->fds, f->count))

WEFT__MSG_OPERATION(weft_unix_recv_fds, READ, READER, stream_slot(f->stream),
                    may_move(f->stream, f->len > 0 && f->buf && has_room(f->fds)),
                    weft__packet_recv_fds(fd, f->buf, f->len, inside(f->fds)))

ssize_t weft__dgram_send_fds(weft_dgram *dgram, const void *buf, size_t len, const int *fds,
                             unsigned count)
{
    return WEFT__RUN_FRAME(weft_dgram_send_fds, .dgram = dgram, .buf = buf, .len = len, .fds = fds,
                           .count = count);
}

ssize_t weft__dgram_recv_fds(weft_dgram *dgram, void *buf, size_t len, weft_fds *fds)
{
    return WEFT__RUN_FRAME(weft_dgram_recv_fds, .dgram = dgram, .buf = buf, .len = len, .fds = fds);
}

ssize_t weft__unix_send_fds(weft_stream *stream, const void *buf, size_t len, const int *fds,
                            unsigned count)
{
    return WEFT__RUN_FRAME(weft_unix_send_fds, .stream = stream, .buf = buf, .len = len, .fds = fds,
                           .count = count);
}

ssize_t weft__unix_recv_fds(weft_stream *stream, void *buf, size_t len, weft_fds *fds)
{
    return WEFT__RUN_FRAME(weft_unix_recv_fds, .stream = stream, .buf = buf, .len = len,
                           .fds = fds);
}

/* ---- who the peer is ---- */

static int creds_of(const struct weft__fdslot *slot, weft_creds *into)
{
    if (!slot || !into) return -EINVAL;
    return weft__packet_creds(slot->fd, &into->pid, &into->uid, &into->gid);
}

int weft_dgram_creds(const weft_dgram *dgram, weft_creds *into)
{
    return creds_of(weft__msg_slot_of(dgram), into);
}

int weft_unix_creds(weft_stream *stream, weft_creds *into)
{
    return is_other(stream) ? -EOPNOTSUPP : creds_of(stream_slot(stream), into);
}
