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

static struct weft__fdslot *slot_of(const weft_dgram *dgram)
{
    return (struct weft__fdslot *)(uintptr_t)dgram;
}

/* ---- the calls ---- */

static ssize_t call_dgram_send(int fd, void *of)
{
    struct weft_dgram_send_fds *f = of;
    return weft__packet_send_fds(fd, f->buf, f->len, f->fds, f->count);
}

static ssize_t call_dgram_recv(int fd, void *of)
{
    struct weft_dgram_recv_fds *f = of;
    return weft__packet_recv_fds(fd, f->buf, f->len, inside(f->fds));
}

static ssize_t call_unix_send(int fd, void *of)
{
    struct weft_unix_send_fds *f = of;
    return weft__packet_send_fds(fd, f->buf, f->len, f->fds, f->count);
}

static ssize_t call_unix_recv(int fd, void *of)
{
    struct weft_unix_recv_fds *f = of;
    return weft__packet_recv_fds(fd, f->buf, f->len, inside(f->fds));
}

static const struct weft__msg_kind dgram_sends =
    WEFT__MSG_KIND(WRITE, WEFT__USE_SHARED, call_dgram_send);
static const struct weft__msg_kind dgram_recvs =
    WEFT__MSG_KIND(READ, WEFT__USE_SHARED, call_dgram_recv);
static const struct weft__msg_kind unix_sends =
    WEFT__MSG_KIND(WRITE, WEFT__USE_WRITER, call_unix_send);
static const struct weft__msg_kind unix_recvs =
    WEFT__MSG_KIND(READ, WEFT__USE_READER, call_unix_recv);

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

/* ---- messages ---- */

weft_poll weft_dgram_send_fds_poll(void *frame, weft_cx *cx)
{
    struct weft_dgram_send_fds *f = frame;
    bool sound = sends_soundly(f->buf, f->len, f->fds, f->count);
    return weft__msg_poll(slot_of(f->dgram), sound, &dgram_sends, f, &f->weft__io, &f->weft__at, cx,
                          &f->ret);
}

weft_poll weft_dgram_recv_fds_poll(void *frame, weft_cx *cx)
{
    struct weft_dgram_recv_fds *f = frame;
    bool sound = (f->buf || !f->len) && has_room(f->fds);
    return weft__msg_poll(slot_of(f->dgram), sound, &dgram_recvs, f, &f->weft__io, &f->weft__at, cx,
                          &f->ret);
}

ssize_t weft__dgram_send_fds(weft_dgram *dgram, const void *buf, size_t len, const int *fds,
                             unsigned count)
{
    struct weft_dgram_send_fds f = {
        .dgram = dgram, .buf = buf, .len = len, .fds = fds, .count = count};
    int r = weft__run_from(weft_dgram_send_fds_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

ssize_t weft__dgram_recv_fds(weft_dgram *dgram, void *buf, size_t len, weft_fds *fds)
{
    struct weft_dgram_recv_fds f = {.dgram = dgram, .buf = buf, .len = len, .fds = fds};
    int r = weft__run_from(weft_dgram_recv_fds_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- streams ---- */

/* 0, and its slot; -EINVAL; -EOPNOTSUPP: it is another kind of stream. */
static int stream_slot(weft_stream *stream, struct weft__fdslot **into)
{
    if (!stream) return -EINVAL;
    if (!weft__fdstream_is(stream, WEFT__FDSTREAM_UNIX)) return -EOPNOTSUPP;
    *into = weft__fdstream_slot(stream);
    return 0;
}

weft_poll weft_unix_send_fds_poll(void *frame, weft_cx *cx)
{
    struct weft_unix_send_fds *f = frame;
    struct weft__fdslot *slot;
    bool sound = f->len > 0 && sends_soundly(f->buf, f->len, f->fds, f->count);
    int r = stream_slot(f->stream, &slot);
    if (r < 0) {
        f->ret = r;
        return WEFT_READY;
    }
    return weft__msg_poll(slot, sound, &unix_sends, f, &f->weft__io, &f->weft__at, cx, &f->ret);
}

weft_poll weft_unix_recv_fds_poll(void *frame, weft_cx *cx)
{
    struct weft_unix_recv_fds *f = frame;
    struct weft__fdslot *slot;
    bool sound = f->len > 0 && f->buf && has_room(f->fds);
    int r = stream_slot(f->stream, &slot);
    if (r < 0) {
        f->ret = r;
        return WEFT_READY;
    }
    return weft__msg_poll(slot, sound, &unix_recvs, f, &f->weft__io, &f->weft__at, cx, &f->ret);
}

ssize_t weft__unix_send_fds(weft_stream *stream, const void *buf, size_t len, const int *fds,
                            unsigned count)
{
    struct weft_unix_send_fds f = {
        .stream = stream, .buf = buf, .len = len, .fds = fds, .count = count};
    int r = weft__run_from(weft_unix_send_fds_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

ssize_t weft__unix_recv_fds(weft_stream *stream, void *buf, size_t len, weft_fds *fds)
{
    struct weft_unix_recv_fds f = {.stream = stream, .buf = buf, .len = len, .fds = fds};
    int r = weft__run_from(weft_unix_recv_fds_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- who the peer is ---- */

int weft_dgram_creds(const weft_dgram *dgram, weft_creds *into)
{
    if (!dgram || !into) return -EINVAL;
    return weft__packet_creds(slot_of(dgram)->fd, &into->pid, &into->uid, &into->gid);
}

int weft_unix_creds(weft_stream *stream, weft_creds *into)
{
    struct weft__fdslot *slot;
    int r = stream_slot(stream, &slot);
    if (r < 0) return r;
    return into ? weft__packet_creds(slot->fd, &into->pid, &into->uid, &into->gid) : -EINVAL;
}
