/* SPDX-License-Identifier: MIT
 *
 * unix - Unix sockets beyond streams (net.h): messages, descriptors, and who the peer is.
 *
 *     weft_dgram *d;                                      a socket of messages; each comes whole, in order, once
 *     r = weft_dgram_bind("/run/log.sock", &d);           datagrams: from anybody. "@name": abstract, no file
 *     r = weft_packet_connect("/run/app.sock", &d);       seqpacket: a connection, with an end
 *     n = weft_dgram_recv(d, b, sizeof b);
 *
 *     int mine[4];
 *     weft_fds fds = {.fd = mine, .room = 4};
 *     n = weft_dgram_recv_fds(d, b, sizeof b, &fds);      fds.count descriptors are ours now, to be closed
 *
 * Any number of tasks may send and receive on one weft_dgram at once. GIVEN UP, CLOSED, stop and fork: as of UDP (udp.h). Unlike UDP it
 * loses nothing: who sends to a queue that is full waits.
 */
#ifndef WEFT_UNIX_H
#define WEFT_UNIX_H

#include <weft/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making ---------------------------------------------------------------------------------------------- */

/* A datagram socket at a path, "@name", or nowhere (NULL): then it sends, and nobody can answer it. Gives a socket. Never waits.
 * Context: anywhere. Returns as weft_unix_listen. */
WEFT_API int weft_dgram_bind(const char *path, weft_dgram **into);

/* From now on weft_dgram_send sends there; NULL: nowhere. Returns 0; -ENOENT, -EACCES; -ECONNREFUSED: nobody is there; -EPROTOTYPE: it takes no
 * datagrams; -EINVAL. */
WEFT_API int weft_dgram_connect(weft_dgram *dgram, const char *path);

/* Two that are connected to each other, by datagrams or by packets, on the current runtime. Return as weft_pipe. */
WEFT_API int weft_dgram_pair(weft_dgram **a, weft_dgram **b);
WEFT_API int weft_packet_pair(weft_dgram **a, weft_dgram **b);

/* Listen for connections of packets, which weft_packet_accept takes (weft_accept answers -EOPNOTSUPP). As weft_unix_listen. */
WEFT_API int weft_packet_listen(const char *path, weft_listener **into);

/* The address of one, to send to; of a path or "@name". Returns 0; -EINVAL; -ENAMETOOLONG. */
WEFT_API int weft_addr_of_path(const char *path, weft_addr *into);

/* Its own address. Returns 0; -EINVAL. */
WEFT_API int weft_dgram_local(const weft_dgram *dgram, weft_addr *into);
WEFT_API int weft_dgram_fd(const weft_dgram *dgram); /* borrowed */

/* weft_packet_accept(listener, &dgram): as weft_accept; -EOPNOTSUPP: a listener of streams.
 * weft_packet_connect(path, &dgram): as weft_unix_connect. */
struct weft_packet_accept {
    WEFT_FRAME(int);
    weft_listener *listener;
    weft_dgram **into;
    weft_stream *weft__stream WEFT__ZERO;
    struct weft_accept weft__accept WEFT__ZERO;
};
struct weft_packet_connect {
    WEFT_FRAME(int);
    const char *path;
    weft_dgram **into;
    int weft__fd WEFT__ZERO;
    int weft__tries WEFT__ZERO;
    void *weft__pause[6] WEFT__ZERO;
};

/* ---- messages --------------------------------------------------------------------------------------------
 *
 * weft_dgram_send(dgram, buf, len): send one message to the peer, waiting while its queue is full. Borrows buf.
 * weft_dgram_send_to(dgram, buf, len, to): of datagrams, to anybody. The kernel does not say when the queue of somebody else has room, so a full one is tried again,
 * from 1 ms to 64 ms apart; a close is seen then.
 * Return len; -EMSGSIZE: longer than the kernel takes; -ENOTCONN: there is no peer; -ECONNREFUSED, -ENOENT: nobody is there; -EPIPE: the peer of a
 * connection is gone; -ECANCELED, -ETIME; -EBADF: it was closed; -ESHUTDOWN; -ECHILD; -EINVAL; -EDEADLK in a stackless poll (call form).
 *
 * weft_dgram_recv(dgram, buf, len), weft_dgram_recv_from(dgram, buf, len, &from): receive one. Descriptors that came with it are closed.
 * Return its bytes; 0: the end of a connection, or an empty message; -EMSGSIZE: it was longer than buf, which is full of it, and the rest is lost;
 * -ECONNRESET: the peer left without reading all; else as above. */
struct weft_dgram_send {
    WEFT_FRAME(ssize_t);
    weft_dgram *dgram;
    const void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_dgram_send_to {
    WEFT_FRAME(ssize_t);
    weft_dgram *dgram;
    const void *buf;
    size_t len;
    const weft_addr *to;
    int weft__tries WEFT__ZERO;
    void *weft__pause[6] WEFT__ZERO;
};
struct weft_dgram_recv {
    WEFT_FRAME(ssize_t);
    weft_dgram *dgram;
    void *buf;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_dgram_recv_from {
    WEFT_FRAME(ssize_t);
    weft_dgram *dgram;
    void *buf;
    size_t len;
    weft_addr *from;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- descriptors -----------------------------------------------------------------------------------------
 *
 * weft_dgram_send_fds(dgram, buf, len, fds, count), weft_unix_send_fds(stream, ...): send bytes with descriptors. Borrows both: the receiver gets descriptors
 * of its own, of the same open files, also if these are closed at once. Of a stream, the bytes are those that fit, at least one, and the
 * descriptors come with the first of them.
 * Return how many bytes; -EINVAL: no bytes on a stream, or more than WEFT_FDS_MAX descriptors; -EBADF: one is not open, or the socket was closed; -ETOOMANYREFS: too
 * many are on their way; -EOPNOTSUPP: no Unix stream; else as weft_dgram_send and weft_write.
 *
 * weft_dgram_recv_fds(dgram, buf, len, &fds), weft_unix_recv_fds(stream, ...): receive bytes, and the descriptors that come with them into fds->fd, close-on-exec. Gives
 * fds->count of them. More than fds->room, or than the process may have open, are closed, and fds->cut is true.
 * Return as weft_dgram_recv and weft_read. Below zero, also for a message that was cut: no descriptor was given, those that came are closed.
 * weft_read of a stream closes descriptors that it comes across. */
#define WEFT_FDS_MAX 253

typedef struct weft_fds {
    int *fd;
    unsigned room;
    unsigned count; /* written */
    bool cut;       /* written */
} weft_fds;

struct weft_dgram_send_fds {
    WEFT_FRAME(ssize_t);
    weft_dgram *dgram;
    const void *buf;
    size_t len;
    const int *fds;
    unsigned count;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_unix_send_fds {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    const void *buf;
    size_t len;
    const int *fds;
    unsigned count;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_dgram_recv_fds {
    WEFT_FRAME(ssize_t);
    weft_dgram *dgram;
    void *buf;
    size_t len;
    weft_fds *fds;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_unix_recv_fds {
    WEFT_FRAME(ssize_t);
    weft_stream *stream;
    void *buf;
    size_t len;
    weft_fds *fds;
    struct weft_io weft__io WEFT__ZERO;
};

/* ---- who the peer is ------------------------------------------------------------------------------------- */

typedef struct weft_creds {
    pid_t pid; /* when it connected, listened or made the pair; 0: not in this PID namespace */
    uid_t uid;
    gid_t gid;
} weft_creds;

/* Of the process at the other end of a connection or a pair, as the kernel saw it. Context: anywhere.
 * Return 0; -ENOTCONN: there is none; -EOPNOTSUPP: no Unix stream; -EINVAL. */
WEFT_API int weft_unix_creds(weft_stream *stream, weft_creds *into);
WEFT_API int weft_dgram_creds(const weft_dgram *dgram, weft_creds *into);

/* ---- the rest -------------------------------------------------------------------------------------------- */

WEFT_API weft_pollfn weft_packet_accept_poll;
WEFT_API weft_pollfn weft_packet_connect_poll;
WEFT_API weft_pollfn weft_dgram_send_poll;
WEFT_API weft_pollfn weft_dgram_send_to_poll;
WEFT_API weft_pollfn weft_dgram_recv_poll;
WEFT_API weft_pollfn weft_dgram_recv_from_poll;
WEFT_API weft_pollfn weft_dgram_send_fds_poll;
WEFT_API weft_pollfn weft_dgram_recv_fds_poll;
WEFT_API weft_pollfn weft_unix_send_fds_poll;
WEFT_API weft_pollfn weft_unix_recv_fds_poll;

WEFT_API int weft__packet_accept(weft_listener *listener, weft_dgram **into)
    __attribute__((warn_unused_result));
WEFT_API int weft__packet_connect(const char *path, weft_dgram **into)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__dgram_send(weft_dgram *dgram, const void *buf, size_t len)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__dgram_send_to(weft_dgram *dgram, const void *buf, size_t len,
                                     const weft_addr *to) __attribute__((warn_unused_result));
WEFT_API ssize_t weft__dgram_recv(weft_dgram *dgram, void *buf, size_t len)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__dgram_recv_from(weft_dgram *dgram, void *buf, size_t len, weft_addr *from)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__dgram_send_fds(weft_dgram *dgram, const void *buf, size_t len,
                                      const int *fds, unsigned count)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__dgram_recv_fds(weft_dgram *dgram, void *buf, size_t len, weft_fds *fds)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__unix_send_fds(weft_stream *stream, const void *buf, size_t len,
                                     const int *fds, unsigned count)
    __attribute__((warn_unused_result));
WEFT_API ssize_t weft__unix_recv_fds(weft_stream *stream, void *buf, size_t len, weft_fds *fds)
    __attribute__((warn_unused_result));

#define weft_packet_accept(listener, into)                                                         \
    (WEFT__CALL_FORM("weft_packet_accept()"), weft__packet_accept(listener, into))
#define weft_packet_connect(path, into)                                                            \
    (WEFT__CALL_FORM("weft_packet_connect()"), weft__packet_connect(path, into))
#define weft_dgram_send(dgram, buf, len)                                                           \
    (WEFT__CALL_FORM("weft_dgram_send()"), weft__dgram_send(dgram, buf, len))
#define weft_dgram_send_to(dgram, buf, len, to)                                                    \
    (WEFT__CALL_FORM("weft_dgram_send_to()"), weft__dgram_send_to(dgram, buf, len, to))
#define weft_dgram_recv(dgram, buf, len)                                                           \
    (WEFT__CALL_FORM("weft_dgram_recv()"), weft__dgram_recv(dgram, buf, len))
#define weft_dgram_recv_from(dgram, buf, len, from)                                                \
    (WEFT__CALL_FORM("weft_dgram_recv_from()"), weft__dgram_recv_from(dgram, buf, len, from))
#define weft_dgram_send_fds(dgram, buf, len, fds, count)                                           \
    (WEFT__CALL_FORM("weft_dgram_send_fds()"), weft__dgram_send_fds(dgram, buf, len, fds, count))
#define weft_dgram_recv_fds(dgram, buf, len, fds)                                                  \
    (WEFT__CALL_FORM("weft_dgram_recv_fds()"), weft__dgram_recv_fds(dgram, buf, len, fds))
#define weft_unix_send_fds(stream, buf, len, fds, count)                                           \
    (WEFT__CALL_FORM("weft_unix_send_fds()"), weft__unix_send_fds(stream, buf, len, fds, count))
#define weft_unix_recv_fds(stream, buf, len, fds)                                                  \
    (WEFT__CALL_FORM("weft_unix_recv_fds()"), weft__unix_recv_fds(stream, buf, len, fds))

#define WEFT__PROBES_weft_dgram_send      ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_dgram_recv      ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_dgram_recv_from ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_dgram_send_fds  ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_dgram_recv_fds  ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_unix_send_fds   ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_unix_recv_fds   ~, WEFT__ARM_PROBES

#ifdef __cplusplus
}
static inline void weft__close(weft_dgram *dgram, const char *caller)
{
    weft__dgram_close(dgram, caller);
}
#endif

#endif
