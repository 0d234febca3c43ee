/* SPDX-License-Identifier: MIT
 *
 * net - TCP and Unix stream sockets: listeners give streams, so does connect (stream.h).
 *
 *     weft_listener *l;
 *     weft_stream *c;
 *     r = weft_tcp_listen("127.0.0.1:5555", &l);
 *     while ((r = weft_accept(l, &c)) >= 0) ...          each c is yours: weft_close(c)
 *     weft_close(l);
 *
 *     r = weft_tcp_connect("[::1]:5555", &c);
 *     r = weft_unix_connect("/run/app.sock", &c);        "@name": an abstract socket, which is no file
 *
 * Addresses are numbers: "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80"; ":80" and "*:80" are all addresses of the machine (IPv4), "[::]:80" is both
 * kinds. Port 0 is one that is free. weft_tcp_connect takes names, too: "example.org:https" (dns.h).
 */
#ifndef WEFT_NET_H
#define WEFT_NET_H

#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- addresses ----------------------------------------------------------------------------------------------------------- */

typedef struct weft_addr {
    uint32_t bytes; /* 0: none */
    uint32_t weft__spare;
    uint64_t weft__data[16]; /* a sockaddr */
} weft_addr;

#define WEFT_ADDR_TEXT 448 /* the longest text of one, with its end */

/* Of an internet address as above. Context: anywhere. Returns 0; -EINVAL: it is none. */
WEFT_API int weft_addr_parse(const char *text, weft_addr *into);

/* As text, cut at `bytes`. Returns the whole length. */
WEFT_API int weft_addr_print(const weft_addr *addr, char *into, size_t bytes);

/* Its port; -1: it has none. */
WEFT_API int weft_addr_port(const weft_addr *addr);

/* ---- listening ----------------------------------------------------------------------------------------------------------- */

/* Zero is the default of each. */
typedef struct weft_net_opts {
    weft_rt *rt; /* NULL: the current one */
    int backlog; /* connections that wait to be accepted; default: as many as the system allows */
    bool
        reuse_port; /* several listeners share the address, and the kernel spreads connections over them */
    bool fresh_port;     /* an address that was just in use is refused (SO_REUSEADDR is off) */
    bool v6_only;        /* "[::]:80" is IPv6 alone */
    bool nagle;          /* small writes wait for each other (TCP_NODELAY is off) */
    int keepalive_s; /* TCP: probes after so many seconds of silence, up to 32,767; default: none */
    unsigned recv_bytes; /* of the kernel's buffers; default: the system's */
    unsigned send_bytes;
} weft_net_opts;

/* Listen. Gives a listener. Never waits. Context: anywhere.
 * Returns 0; -EINVAL: no address, or into is NULL; -EADDRINUSE; -EADDRNOTAVAIL; -EACCES; -EMFILE, -ENFILE, -ENOMEM; -ENXIO: there is no runtime;
 * -ESHUTDOWN; -ECHILD. A path that exists is -EADDRINUSE, also if nobody listens there any more: unlink it before. With the driver io_uring so is, for a
 * moment, the address of a listener that was just closed: the kernel has it until the worker that waited there comes by. */
WEFT_API int weft_tcp_listen(const char *address, weft_listener **into);
WEFT_API int weft_unix_listen(const char *path, weft_listener **into);

/* The same with options; NULL: none. Those that say nothing to this kind of socket are passed over. */
WEFT_API int weft_tcp_listen_with(const weft_net_opts *opts, const char *address,
                                  weft_listener **into);
WEFT_API int weft_unix_listen_with(const weft_net_opts *opts, const char *path,
                                   weft_listener **into);

/* A listener of a socket that the program has, which listens already: of a service manager. Takes fd if it succeeds. One of packets is for
 * weft_packet_accept (unix.h). Returns as above; -ENOTSOCK; -EOPNOTSUPP: a socket of datagrams; -EINVAL, too, if it does not listen. */
WEFT_API int weft_listener_of_fd(const weft_net_opts *opts, int fd, weft_listener **into);

/* Its own address. Returns 0; -EINVAL. */
WEFT_API int weft_listener_addr(const weft_listener *listener, weft_addr *into);
/* The same as text, cut at `bytes`: weft_addr_print of it. Returns the whole length; -EINVAL. */
WEFT_API int weft_listener_print(const weft_listener *listener, char *into, size_t bytes);
/* Its descriptor, borrowed. Not to accept by: with the driver io_uring connections may have been accepted ahead, and only weft_accept has those. */
WEFT_API int weft_listener_fd(const weft_listener *listener);

/* weft_accept(listener, &stream): wait for the next connection. Gives a stream. Any number may accept at once. Cancel-safe: given up, it has taken none.
 * A connection that ended before it was accepted is passed over. A process without descriptors waits: it tries again now and then, from 5 ms
 * to 100 ms apart, and says so once on stderr; the connections wait in the kernel's queue.
 * Returns 0; -ECANCELED, -ETIME; -EBADF: the listener was closed; -ESHUTDOWN; -ECHILD; -EINVAL; -ENOMEM; -EDEADLK in a stackless poll (call form). */
struct weft_accept {
    WEFT_FRAME(int);
    weft_listener *listener;
    weft_stream **into;
    struct weft_io weft__io WEFT__ZERO;
    void *weft__pause[6] WEFT__ZERO; /* a sleep, while there are no descriptors */
};
WEFT_API weft_pollfn weft_accept_poll;
__attribute__((warn_unused_result)) WEFT__CALLED(int, weft__accept, weft_accept,
                                                 (weft_listener *listener, weft_stream **into),
                                                 weft__f.listener = listener, weft__f.into = into)
#define weft_accept(listener, into) (WEFT__CALL_FORM("weft_accept()"), weft__accept(listener, into))
#define WEFT__PROBES_weft_accept    ~, WEFT__ARM_PROBES

/* ---- connecting ------------------------------------------------------------------------------------------------------------
 *
 * weft_tcp_connect(address, &stream), weft_unix_connect(path, &stream): connect. Gives a stream. Borrows the text. Given up, there is no connection.
 * A TCP address may be a name, "host:port" or "host:service": it is asked for, and of its addresses whichever answers first is taken (weft_tcp_connect_any); then
 * also what weft_resolve returns.
 * Returns 0; -ECONNREFUSED; -ETIMEDOUT; -ENETUNREACH, -EHOSTUNREACH; -ENOENT, -EACCES of a path; -ECANCELED, -ETIME; -EINVAL: no address; -EMFILE, -ENFILE,
 * -ENOMEM; -ENXIO: there is no runtime; -ESHUTDOWN; -ECHILD; -EDEADLK in a stackless poll (call form). A Unix listener whose queue is full is waited
 * for. Awaited, they take .opts, too. */
struct weft_tcp_connect {
    WEFT_FRAME(int);
    const char *address;
    weft_stream **into;
    const weft_net_opts *opts WEFT__ZERO;
    weft_stream *weft__stream WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
    const weft_addr *weft__to WEFT__ZERO; /* instead of the text */
    void *weft__race WEFT__ZERO;          /* by name */
};
struct weft_unix_connect {
    WEFT_FRAME(int);
    const char *path;
    weft_stream **into;
    const weft_net_opts *opts WEFT__ZERO;
    int weft__fd WEFT__ZERO;
    int weft__tries WEFT__ZERO;
    void *weft__pause[6] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_tcp_connect_poll;
WEFT_API weft_pollfn weft_unix_connect_poll;
WEFT_API int weft__tcp_connect(const char *address, weft_stream **into)
    __attribute__((warn_unused_result));
WEFT_API int weft__unix_connect(const char *path, weft_stream **into)
    __attribute__((warn_unused_result));
#define weft_tcp_connect(address, into)                                                            \
    (WEFT__CALL_FORM("weft_tcp_connect()"), weft__tcp_connect(address, into))
#define weft_unix_connect(path, into)                                                              \
    (WEFT__CALL_FORM("weft_unix_connect()"), weft__unix_connect(path, into))

/* Two Unix streams, connected to each other, on the current runtime. Context: anywhere. Returns as weft_pipe. */
WEFT_API int weft_unix_pair(weft_stream **a, weft_stream **b);

/* ---- what sockets know ------------------------------------------------------------------------------------------------------ */

enum weft_sock_option {
    WEFT_SOCK_NODELAY,     /* TCP: 0, 1. Small writes go at once; on by default here */
    WEFT_SOCK_KEEPALIVE,   /* 0, 1 */
    WEFT_SOCK_KEEPALIVE_S, /* TCP: seconds of silence until the first probe */
    WEFT_SOCK_PROBE_S,     /* TCP: seconds between two probes */
    WEFT_SOCK_PROBES,      /* TCP: probes until the peer is given up */
    WEFT_SOCK_LINGER_S, /* seconds; 0: a close resets the connection; -1: off. A close that lingers blocks its thread */
    WEFT_SOCK_REUSE_ADDRESS, /* 0, 1 */
    WEFT_SOCK_REUSE_PORT,    /* 0, 1 */
    WEFT_SOCK_RECV_BYTES,    /* of the kernel's buffer; it answers twice what was asked for */
    WEFT_SOCK_SEND_BYTES,
    WEFT_SOCK_TOS, /* 0 to 255: the type of service (IPv4), the traffic class (IPv6); of TCP the kernel keeps the lowest two bits, ECN */
};

/* Context: anywhere. Return 0; -ENOTSOCK, -EOPNOTSUPP, -ENOPROTOOPT: it has no such option; -EINVAL. */
WEFT_API int weft_sock_set(weft_stream *stream, enum weft_sock_option option, int value);
WEFT_API int weft_sock_get(weft_stream *stream, enum weft_sock_option option, int *into);

/* Its own address, and its peer's. Context: anywhere. Return 0; -ENOTSOCK, -EOPNOTSUPP: it is no socket; -ENOTCONN: the peer is gone; -EINVAL. */
WEFT_API int weft_sock_local(weft_stream *stream, weft_addr *into);
WEFT_API int weft_sock_peer(weft_stream *stream, weft_addr *into);

#ifdef __cplusplus
}
#endif

#endif
