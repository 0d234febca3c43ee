/* SPDX-License-Identifier: MIT
 *
 * udp - datagrams: weft/udp.h. A weft_udp is its slot; the operations are those of net/msg.h.
 *     face[0]   struct udp_face, in place
 *
 * WHAT A KERNEL CAN  Segments and merging are options of the socket since Linux 4.18 and 5.0. They are asked for on the socket
 * itself, each time: the answer is one system call, and a kernel may be told so by a filter of another process. A message with segments on a
 * kernel without them is refused, not cut here: who sends so many bytes at once wants to choose between two ways to do it.
 */
#include <weft/udp.h>

#include "net/msg.h"
#include "net/sock.h"
#include "sys/fd.h"
#include "sys/packet.h"
#include "sys/socket.h"
#include "task/call.h"

struct udp_face {
    bool merges; /* constant */
};

_Static_assert(sizeof(struct udp_face) <= sizeof(((struct weft__fdslot *)0)->face), "it fits");
_Static_assert(sizeof(weft_udp_msg) == sizeof(struct weft__packet), "one is the other");
_Static_assert(offsetof(weft_udp_msg, got) == offsetof(struct weft__packet, got), "as above");
_Static_assert(offsetof(weft_udp_msg, segment) == offsetof(struct weft__packet, segment),
               "as above");
_Static_assert(offsetof(weft_udp_msg, cut) == offsetof(struct weft__packet, cut), "as above");
_Static_assert(offsetof(weft_udp_msg, addr) == offsetof(struct weft__packet, addr), "as above");
_Static_assert(WEFT_UDP_MANY == WEFT__PACKETS_MAX, "as above");

static struct weft__fdslot *slot_of(const weft_udp *udp)
{
    return weft__msg_slot_of(udp);
}

static struct udp_face *face_of(const weft_udp *udp)
{
    return (struct udp_face *)(void *)slot_of(udp)->face;
}

/* ---- making ---- */

/* Before the bind. */
static int prepare(int fd, const weft_udp_opts *o)
{
    int r = 0;
    if (o->recv_bytes > 0) r = weft__socket_set(fd, WEFT__SOCKET_RECVBUF, (int)o->recv_bytes);
    if (r == 0 && o->send_bytes > 0)
        r = weft__socket_set(fd, WEFT__SOCKET_SENDBUF, (int)o->send_bytes);
    if (r == 0 && o->reuse_address) r = weft__socket_set(fd, WEFT__SOCKET_REUSEADDR, 1);
    if (r == 0 && o->reuse_port) r = weft__socket_set(fd, WEFT__SOCKET_REUSEPORT, 1);
    if (r == 0 && o->broadcast) r = weft__packet_set(fd, WEFT__PACKET_BROADCAST, 1);
    if (r == 0 && o->merge) r = weft__packet_set(fd, WEFT__PACKET_MERGE, 1);
    if (r == 0)
        (void)weft__socket_set(fd, WEFT__SOCKET_V6ONLY, o->v6_only); /* IPv4 has no such option */
    return r == -ENOPROTOOPT ? -EOPNOTSUPP : r;
}

static int bind_at(const weft_udp_opts *opts, const struct weft__address *addr, weft_udp **into)
{
    struct weft__fdslot *slot;
    int fd = -1;
    int r = weft__packet_open(addr, WEFT__PACKET_DGRAM, &fd);
    if (r < 0) return r;
    r = prepare(fd, opts);
    if (r == 0) r = weft__socket_bind(fd, addr);
    if (r < 0) {
        weft__fd_close(fd);
        return r;
    }
    r = weft__msg_slot(opts->rt, fd, &slot);
    if (r < 0) return r;
    *into = (weft_udp *)(void *)slot;
    face_of(*into)->merges = opts->merge;
    return 0;
}

int weft_udp_bind_with(const weft_udp_opts *opts, const char *address, weft_udp **into)
{
    static const weft_udp_opts none;
    struct weft__address addr;
    if (!address || !into) return -EINVAL;
    int r = weft__address_parse(address, &addr);
    return r < 0 ? r : bind_at(opts ? opts : &none, &addr, into);
}

int weft_udp_bind(const char *address, weft_udp **into)
{
    return weft_udp_bind_with(NULL, address, into);
}

void weft__udp_close(weft_udp *udp, const char *caller)
{
    weft__driver_closes("a UDP socket", caller);
    if (udp) weft__driver_close(slot_of(udp));
}

int weft_udp_connect(weft_udp *udp, const char *address)
{
    struct weft__address addr;
    if (!udp) return -EINVAL;
    if (!address) return weft__packet_disconnect(slot_of(udp)->fd);
    int r = weft__address_parse(address, &addr);
    if (r == 0) r = weft__socket_connect(slot_of(udp)->fd, &addr);
    return r == -EAFNOSUPPORT ? -EINVAL : r;
}

int weft_udp_local(const weft_udp *udp, weft_addr *into)
{
    if (!udp || !into) return -EINVAL;
    return weft__socket_local(slot_of(udp)->fd, weft__addr_inside(into));
}

int weft_udp_peer(const weft_udp *udp, weft_addr *into)
{
    if (!udp || !into) return -EINVAL;
    return weft__socket_peer(slot_of(udp)->fd, weft__addr_inside(into));
}

int weft_udp_fd(const weft_udp *udp)
{
    return udp ? slot_of(udp)->fd : -EINVAL;
}

/* ---- one at a time ---- */

static bool has_target(const weft_addr *to)
{
    return to && to->bytes > 0;
}

/* Merged, it could not be told where one ends. */
static int may_recv(const weft_udp *udp, bool sound)
{
    return udp && face_of(udp)->merges ? -EOPNOTSUPP : weft__msg_if(sound);
}

WEFT__MSG_OPERATION(weft_udp_send, WRITE, SHARED, slot_of(f->udp), weft__msg_if(f->buf || !f->len),
                    weft__packet_send(fd, f->buf, f->len, NULL))

WEFT__MSG_OPERATION(weft_udp_send_to, WRITE, SHARED, slot_of(f->udp),
                    weft__msg_if(has_target(f->to) && (f->buf || !f->len)),
                    weft__packet_send(fd, f->buf, f->len, weft__addr_within(f->to)))

WEFT__MSG_OPERATION(weft_udp_recv, READ, SHARED, slot_of(f->udp),
                    may_recv(f->udp, f->buf || !f->len),
                    weft__packet_recv(fd, f->buf, f->len, NULL))

WEFT__MSG_OPERATION(weft_udp_recv_from, READ, SHARED, slot_of(f->udp),
                    may_recv(f->udp, f->from && (f->buf || !f->len)),
                    weft__packet_recv(fd, f->buf, f->len, weft__addr_inside(f->from)))

ssize_t weft__udp_send(weft_udp *udp, const void *buf, size_t len)
{
    return WEFT__RUN_FRAME(weft_udp_send, .udp = udp, .buf = buf, .len = len);
}

ssize_t weft__udp_send_to(weft_udp *udp, const void *buf, size_t len, const weft_addr *to)
{
    return WEFT__RUN_FRAME(weft_udp_send_to, .udp = udp, .buf = buf, .len = len, .to = to);
}

ssize_t weft__udp_recv(weft_udp *udp, void *buf, size_t len)
{
    return WEFT__RUN_FRAME(weft_udp_recv, .udp = udp, .buf = buf, .len = len);
}

ssize_t weft__udp_recv_from(weft_udp *udp, void *buf, size_t len, weft_addr *from)
{
    return WEFT__RUN_FRAME(weft_udp_recv_from, .udp = udp, .buf = buf, .len = len, .from = from);
}

/* ---- many at a time ---- */

static struct weft__packet *packets_of(weft_udp_msg *msgs)
{
    return (struct weft__packet *)(void *)msgs;
}

static unsigned most(unsigned count)
{
    return count < WEFT__PACKETS_MAX ? count : WEFT__PACKETS_MAX;
}

/* A kernel without segments takes their length for something it does not know, and passes it over: the datagram would go as one. So it is
 * asked first, where there are any. */
static ssize_t send_many(int fd, weft_udp_msg *msgs, unsigned count)
{
    int none;
    for (unsigned i = 0; i < count; i++) {
        if (msgs[i].segment == 0) continue;
        if (msgs[i].segment > UINT16_MAX) return -EINVAL;
        if (weft__packet_get(fd, WEFT__PACKET_SEGMENT, &none) < 0) return -EOPNOTSUPP;
        break;
    }
    return weft__packet_send_many(fd, packets_of(msgs), count);
}

static int may_move(const weft_udp *udp, const weft_udp_msg *msgs, unsigned count)
{
    return udp && count == 0 ? WEFT__MSG_NOTHING : weft__msg_if(msgs);
}

WEFT__MSG_OPERATION(weft_udp_recv_many, READ, SHARED, slot_of(f->udp),
                    may_move(f->udp, f->msgs, f->count),
                    weft__packet_recv_many(fd, packets_of(f->msgs), most(f->count)))

WEFT__MSG_OPERATION(weft_udp_send_many, WRITE, SHARED, slot_of(f->udp),
                    may_move(f->udp, f->msgs, f->count), send_many(fd, f->msgs, most(f->count)))

int weft__udp_recv_many(weft_udp *udp, weft_udp_msg *msgs, unsigned count)
{
    return WEFT__RUN_FRAME(weft_udp_recv_many, .udp = udp, .msgs = msgs, .count = count);
}

int weft__udp_send_many(weft_udp *udp, weft_udp_msg *msgs, unsigned count)
{
    return WEFT__RUN_FRAME(weft_udp_send_many, .udp = udp, .msgs = msgs, .count = count);
}

/* ---- groups and options ---- */

int weft_udp_can(const weft_udp *udp, enum weft_udp_feature feature)
{
    int value;
    bool segments = feature == WEFT_UDP_SEGMENTS;
    if (!udp || (!segments && feature != WEFT_UDP_MERGES)) return -EINVAL;
    int r = weft__packet_get(slot_of(udp)->fd, segments ? WEFT__PACKET_SEGMENT : WEFT__PACKET_MERGE,
                             &value);
    return r == 0;
}

int weft_udp_join(weft_udp *udp, const char *group, const char *interface)
{
    if (!udp || !group) return -EINVAL;
    return weft__packet_group(slot_of(udp)->fd, true, group, interface);
}

int weft_udp_leave(weft_udp *udp, const char *group, const char *interface)
{
    if (!udp || !group) return -EINVAL;
    return weft__packet_group(slot_of(udp)->fd, false, group, interface);
}

int weft_udp_multicast_by(weft_udp *udp, const char *interface)
{
    return udp ? weft__packet_group_by(slot_of(udp)->fd, interface) : -EINVAL;
}

static const enum weft__packet_option options[] = {
    [WEFT_UDP_BROADCAST] = WEFT__PACKET_BROADCAST,
    [WEFT_UDP_TTL] = WEFT__PACKET_TTL,
    [WEFT_UDP_MULTICAST_TTL] = WEFT__PACKET_GROUP_TTL,
    [WEFT_UDP_MULTICAST_LOOP] = WEFT__PACKET_GROUP_LOOP,
};

/* Those of all sockets. */
static bool is_common(enum weft_udp_option option)
{
    return option >= WEFT_UDP_RECV_BYTES;
}

static enum weft__socket_option common_of(enum weft_udp_option option)
{
    static const enum weft__socket_option common[] = {WEFT__SOCKET_RECVBUF, WEFT__SOCKET_SENDBUF,
                                                      WEFT__SOCKET_TOS};
    return common[option - WEFT_UDP_RECV_BYTES];
}

int weft_udp_set(weft_udp *udp, enum weft_udp_option option, int value)
{
    if (!udp || (unsigned)option > WEFT_UDP_TOS) return -EINVAL;
    int fd = slot_of(udp)->fd;
    return is_common(option) ? weft__socket_set(fd, common_of(option), value)
                             : weft__packet_set(fd, options[option], value);
}

int weft_udp_get(const weft_udp *udp, enum weft_udp_option option, int *into)
{
    if (!udp || !into || (unsigned)option > WEFT_UDP_TOS) return -EINVAL;
    int fd = slot_of(udp)->fd;
    return is_common(option) ? weft__socket_get(fd, common_of(option), into)
                             : weft__packet_get(fd, options[option], into);
}
