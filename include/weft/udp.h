/* SPDX-License-Identifier: MIT
 *
 * udp - datagrams over IPv4 and IPv6: each goes as a whole, or not at all, and nobody says which.
 *
 *     weft_udp *u;
 *     weft_addr from;
 *     r = weft_udp_bind("127.0.0.1:5353", &u);
 *     while ((n = weft_udp_recv_from(u, b, sizeof b, &from)) >= 0)
 *         if ((n = weft_udp_send_to(u, b, (size_t)n, &from)) < 0) break;
 *     weft_close(u);
 *
 *     weft_await(f->rx, weft_udp_recv_from, f->u, f->b, sizeof f->b, &f->from);       stackless: f->rx.ret
 *
 * A datagram is one message, so any number of tasks may send and receive on one socket at once: each gets whole ones.
 * GIVEN UP  A receive that was cancelled, or lost in a select, has received nothing; such a send has sent nothing.
 * CLOSED  weft_close may be called while others wait: they are answered -EBADF. Stop and fork: as of streams (stream.h).
 * A connected socket tells what came back: -ECONNREFUSED, once, of whichever call comes first, when nobody is there.
 */
#ifndef WEFT_UDP_H
#define WEFT_UDP_H

#include <weft/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making ---------------------------------------------------------------------------------------------- */

/* Zero is the default of each. */
typedef struct weft_udp_opts {
    weft_rt *rt;         /* NULL: the current one */
    bool reuse_address;  /* several sockets share the address: each gets what is multicast there */
    bool reuse_port;     /* several share it, and the kernel spreads what comes over them */
    bool v6_only;        /* "[::]:80" is IPv6 alone */
    bool broadcast;      /* may send to broadcast addresses */
    bool merge;          /* datagrams that come close together may be received as one (GRO): only by
                            weft_udp_recv_many, whose messages have .segment */
    unsigned recv_bytes; /* of the kernel's buffers; default: the system's */
    unsigned send_bytes;
} weft_udp_opts;

/* Bind a socket to an address; port 0 is one that is free, "0.0.0.0:0" and "[::]:0" are for who only sends first. Gives a socket.
 * Never waits. Context: anywhere.
 * Returns 0; -EINVAL: no address, or into is NULL; -EADDRINUSE; -EADDRNOTAVAIL; -EACCES; -EOPNOTSUPP: .merge, and the kernel
 * cannot; -EMFILE, -ENFILE, -ENOMEM; -ENXIO: there is no runtime; -ESHUTDOWN; -ECHILD. */
WEFT_API int weft_udp_bind(const char *address, weft_udp **into);

/* The same with options; NULL: none. */
WEFT_API int weft_udp_bind_with(const weft_udp_opts *opts, const char *address, weft_udp **into);

/* From now on there is one peer: it alone is sent to by weft_udp_send and received from. NULL: no longer. Never waits.
 * Returns 0; -EINVAL: no address, or of another family; -ENETUNREACH; -EACCES: a broadcast address without the option;
 * of NULL -EADDRINUSE: the port was a free one (0), and somebody took it in the moment in which the kernel gives it back. */
WEFT_API int weft_udp_connect(weft_udp *udp, const char *address);

/* Its own address, and that of the peer it is connected to. Return 0; -ENOTCONN: to none; -EINVAL. */
WEFT_API int weft_udp_local(const weft_udp *udp, weft_addr *into);
WEFT_API int weft_udp_peer(const weft_udp *udp, weft_addr *into);
WEFT_API int weft_udp_fd(const weft_udp *udp); /* borrowed */

/* ---- one at a time ---------------------------------------------------------------------------------------
 *
 * weft_udp_send(udp, buf, len), weft_udp_send_to(udp, buf, len, to): send one datagram, waiting while the kernel's buffer is full. Borrows
 * buf and *to. Nothing at all (len 0) is a datagram, too.
 * Returns len; -EMSGSIZE: longer than a datagram can be; -EDESTADDRREQ: there is no peer; -ECONNREFUSED of a connected one; -ENETUNREACH, -EPERM,
 * -EACCES; -ECANCELED, -ETIME; -EBADF: it was closed; -ESHUTDOWN; -ECHILD; -EINVAL; -EDEADLK in a stackless poll (call form).
 *
 * weft_udp_recv(udp, buf, len), weft_udp_recv_from(udp, buf, len, &from): receive one, waiting for it. Borrows buf and from.
 * Returns its bytes, which may be 0; -EMSGSIZE: it was longer than buf, which is full of it, and the rest is lost (from is written); -ECONNREFUSED
 * of a connected one; -EOPNOTSUPP: the socket has .merge; else as above. */
struct weft_udp_send {
    WEFT_FRAME(ssize_t);
    weft_udp *udp;
    const void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_udp_send_to {
    WEFT_FRAME(ssize_t);
    weft_udp *udp;
    const void *buf;
    size_t len;
    const weft_addr *to;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_udp_recv {
    WEFT_FRAME(ssize_t);
    weft_udp *udp;
    void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_udp_recv_from {
    WEFT_FRAME(ssize_t);
    weft_udp *udp;
    void *buf;
    size_t len;
    weft_addr *from;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- many at a time --------------------------------------------------------------------------------------
 *
 * weft_udp_recv_many(udp, msgs, count): receive what is there, up to count and up to WEFT_UDP_MANY, with one system call, waiting until there is
 * something. Of each message .buf and .len are given, and .addr, .got, .segment, .cut are written.
 * weft_udp_send_many(udp, msgs, count): send as many as fit likewise, waiting until one does; to .addr each, or to the peer where its
 * .bytes is 0. A message with .segment goes as several datagrams of so many bytes, cut by the kernel (GSO); the last may be shorter.
 * Borrow msgs and their buffers. Return how many, at least one, unless count is 0; -EOPNOTSUPP: .segment, and the kernel cannot (weft_udp_can); else
 * as one at a time, of the first message. */
#define WEFT_UDP_MANY 64

typedef struct weft_udp_msg {
    void *buf;
    size_t len;
    size_t got; /* received: bytes in buf; sent: those that went */
    unsigned
        segment; /* send: bytes of each datagram, 0: it is one. Received: it is several of so many bytes (.merge), 0: one */
    bool cut;    /* received: it was longer than len, and the rest is lost */
    weft_addr addr; /* from whom, to whom */
} weft_udp_msg;

struct weft_udp_recv_many {
    WEFT_FRAME(int);
    weft_udp *udp;
    weft_udp_msg *msgs;
    unsigned count;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_udp_send_many {
    WEFT_FRAME(int);
    weft_udp *udp;
    weft_udp_msg *msgs;
    unsigned count;
    struct weft_io weft__io WEFT__ZERO;
};

/* What this kernel does. Context: anywhere. Returns 1, 0; -EINVAL. */
enum weft_udp_feature {
    WEFT_UDP_SEGMENTS, /* .segment of weft_udp_send_many */
    WEFT_UDP_MERGES,   /* .merge of weft_udp_bind_with */
};
WEFT_API int weft_udp_can(const weft_udp *udp, enum weft_udp_feature feature);

/* ---- groups and options ---------------------------------------------------------------------------------- */

/* Receive what is sent to a multicast group, "239.1.2.3" or "ff02::1:5", which comes in by an interface ("eth0"; NULL: the system chooses); and
 * no longer. Context: anywhere.
 * Return 0; -EINVAL: no multicast address, or of another family; -ENODEV: no such interface; -EADDRINUSE: it is there already;
 * -EADDRNOTAVAIL: it is not; -ENOBUFS: too many. */
WEFT_API int weft_udp_join(weft_udp *udp, const char *group, const char *interface);
WEFT_API int weft_udp_leave(weft_udp *udp, const char *group, const char *interface);

/* The interface by which multicast datagrams leave; NULL: the system chooses. Returns 0; -ENODEV; -EINVAL. */
WEFT_API int weft_udp_multicast_by(weft_udp *udp, const char *interface);

enum weft_udp_option {
    WEFT_UDP_BROADCAST,     /* 0, 1 */
    WEFT_UDP_TTL,           /* hops of a datagram */
    WEFT_UDP_MULTICAST_TTL, /* of one to a group; 1 by default: it stays in its network */
    WEFT_UDP_MULTICAST_LOOP, /* 0, 1: this machine, too, receives what it sends to groups; 1 by default */
    WEFT_UDP_RECV_BYTES, /* of the kernel's buffer; it answers twice what was asked for */
    WEFT_UDP_SEND_BYTES,
    WEFT_UDP_TOS, /* 0 to 255: the type of service (IPv4), the traffic class (IPv6) */
};

/* Context: anywhere. Return 0; -EINVAL. */
WEFT_API int weft_udp_set(weft_udp *udp, enum weft_udp_option option, int value);
WEFT_API int weft_udp_get(const weft_udp *udp, enum weft_udp_option option, int *into);

/* ---- the rest -------------------------------------------------------------------------------------------- */

WEFT_API weft_pollfn weft_udp_send_poll;
WEFT_API weft_pollfn weft_udp_send_to_poll;
WEFT_API weft_pollfn weft_udp_recv_poll;
WEFT_API weft_pollfn weft_udp_recv_from_poll;
WEFT_API weft_pollfn weft_udp_recv_many_poll;
WEFT_API weft_pollfn weft_udp_send_many_poll;

WEFT_API ssize_t weft__udp_send(weft_udp *udp, const void *buf, size_t len)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__udp_send_to(weft_udp *udp, const void *buf, size_t len, const weft_addr *to)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__udp_recv(weft_udp *udp, void *buf, size_t len)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__udp_recv_from(weft_udp *udp, void *buf, size_t len, weft_addr *from)
    __attribute__((warn_unused_result));
WEFT_API int weft__udp_recv_many(weft_udp *udp, weft_udp_msg *msgs, unsigned count)
    __attribute__((warn_unused_result));
WEFT_API int weft__udp_send_many(weft_udp *udp, weft_udp_msg *msgs, unsigned count)
    __attribute__((warn_unused_result));

#define weft_udp_send(udp, buf, len)                                                               \
    (WEFT__CALL_FORM("weft_udp_send()"), weft__udp_send(udp, buf, len))
#define weft_udp_send_to(udp, buf, len, to)                                                        \
    (WEFT__CALL_FORM("weft_udp_send_to()"), weft__udp_send_to(udp, buf, len, to))
#define weft_udp_recv(udp, buf, len)                                                               \
    (WEFT__CALL_FORM("weft_udp_recv()"), weft__udp_recv(udp, buf, len))
#define weft_udp_recv_from(udp, buf, len, from)                                                    \
    (WEFT__CALL_FORM("weft_udp_recv_from()"), weft__udp_recv_from(udp, buf, len, from))
#define weft_udp_recv_many(udp, msgs, count)                                                       \
    (WEFT__CALL_FORM("weft_udp_recv_many()"), weft__udp_recv_many(udp, msgs, count))
#define weft_udp_send_many(udp, msgs, count)                                                       \
    (WEFT__CALL_FORM("weft_udp_send_many()"), weft__udp_send_many(udp, msgs, count))

#define WEFT__PROBES_weft_udp_send      ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_udp_send_to   ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_udp_recv      ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_udp_recv_from ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_udp_recv_many ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_udp_send_many ~, WEFT__ARM_PROBES

#ifdef __cplusplus
}
static inline void weft__close(weft_udp *udp, const char *caller)
{
    weft__udp_close(udp, caller);
}
#endif

#endif
