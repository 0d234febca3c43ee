/* SPDX-License-Identifier: MIT
 *
 * socket - the calls that sockets are made of.
 *
 * Every socket here is close-on-exec and does not block: what would wait answers -EAGAIN, and whoever
 * called waits for it in the driver. A call that a signal interrupted is made again. Nothing here raises
 * SIGPIPE: a write to a peer that is gone answers -EPIPE.
 *
 * An address is the kernel's, in a box that the floors above can carry without knowing what is in it
 * (address.h makes and prints them).
 * Threads: any. Blocks: never, but for a close that lingers.
 */
#ifndef WEFT_SYS_SOCKET_H
#define WEFT_SYS_SOCKET_H

#include "sys/address.h"
#include "sys/answer.h"
#include "sys/call.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

/* A stream socket of the address's family. Returns 0; -EMFILE; -ENFILE; -ENOMEM; -EAFNOSUPPORT. */
int weft__socket_open(const struct weft__address *like, int *into);

/* Two stream sockets (AF_UNIX) that are connected to each other. Returns as open. */
int weft__socket_pair(int into[2]);

/* Returns 0; -EADDRINUSE; -EADDRNOTAVAIL; -EACCES; -EINVAL; of a path also what the file system says. */
int weft__socket_bind(int fd, const struct weft__address *addr);

/* Returns 0; -EADDRINUSE. */
int weft__socket_listen(int fd, int backlog);

/* Of every connection that is taken. */
#define WEFT__SOCKET_ACCEPT_FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

/* Take the next connection. `from` may be NULL. Returns 0; -EAGAIN: there is none; what accept(2) answers. */
int weft__socket_accept(int fd, struct weft__address *from, int *into);

/* Returns 0: it is connected; -EINPROGRESS: it will be writable when that is decided, and error says how;
 * -EAGAIN of AF_UNIX: the listener's queue is full, nothing was begun; else why not. */
int weft__socket_connect(int fd, const struct weft__address *addr);

/* Receive, or with `peek` look at what would be. Returns how much; 0 at the end; -EAGAIN; -ECONNRESET ... */
ssize_t weft__socket_recv(int fd, const struct iovec *iov, int count, bool peek);

/* The same of a Unix socket. *cut: descriptors came with it, which were closed, and it ends behind them: there may be more. */
ssize_t weft__socket_recv_unix(int fd, const struct iovec *iov, int count, bool *cut);

/* Returns how much was sent; -EAGAIN; -EPIPE; -ECONNRESET ... */
ssize_t weft__socket_send(int fd, const struct iovec *iov, int count);

/* Both of one buffer: that needs no message around it, and is what a request makes. */
static inline ssize_t weft__socket_recv_one(int fd, void *into, size_t bytes, int flags)
{
#if defined(WEFT__CALL_BY_LIBC)
    return WEFT__ANSWER(WEFT__FAULT_RECV, recv(fd, into, bytes, flags));
#else
    return WEFT__CALL(WEFT__FAULT_RECV,
                      weft__call6(SYS_recvfrom, fd, (long)into, (long)bytes, flags, 0, 0));
#endif
}

static inline ssize_t weft__socket_send_one(int fd, const void *from, size_t bytes)
{
#if defined(WEFT__CALL_BY_LIBC)
    return WEFT__ANSWER(WEFT__FAULT_SEND, send(fd, from, bytes, MSG_NOSIGNAL));
#else
    return WEFT__CALL(WEFT__FAULT_SEND,
                      weft__call6(SYS_sendto, fd, (long)from, (long)bytes, MSG_NOSIGNAL, 0, 0));
#endif
}

enum weft__socket_half { WEFT__HALF_READ, WEFT__HALF_WRITE };

/* Returns 0; -ENOTCONN. */
int weft__socket_shutdown(int fd, enum weft__socket_half half);

/* Bytes, and no messages that have ends? */
bool weft__socket_is_stream(int fd);

/* Does it take connections? *packets: they are messages in order (SOCK_SEQPACKET), no bytes.
 * Returns 0; -EINVAL: it does not listen; -EOPNOTSUPP: its kind never does; -ENOTSOCK; -EBADF. */
int weft__socket_listens(int fd, bool *packets);

/* The error that the socket has kept, taken out of it. Returns 0: none; or it. */
int weft__socket_error(int fd);

enum weft__socket_option {
    WEFT__SOCKET_NODELAY,   /* TCP: 0, 1 */
    WEFT__SOCKET_KEEPALIVE, /* 0, 1 */
    WEFT__SOCKET_KEEPIDLE,  /* TCP: seconds until the first probe */
    WEFT__SOCKET_KEEPINTVL, /* TCP: seconds between two probes */
    WEFT__SOCKET_KEEPCNT,   /* TCP: probes until it is given up */
    WEFT__SOCKET_LINGER,    /* seconds; 0: a close resets; -1: off */
    WEFT__SOCKET_REUSEADDR, /* 0, 1 */
    WEFT__SOCKET_REUSEPORT, /* 0, 1 */
    WEFT__SOCKET_RECVBUF,   /* bytes */
    WEFT__SOCKET_SENDBUF,   /* bytes */
    WEFT__SOCKET_V6ONLY,    /* 0, 1 */
    WEFT__SOCKET_TOS,       /* 0 to 255, of either family */
};

/* Returns 0; -ENOTSOCK; -EOPNOTSUPP; -ENOPROTOOPT: this socket has no such option; -EINVAL. */
int weft__socket_set(int fd, enum weft__socket_option option, int value);
int weft__socket_get(int fd, enum weft__socket_option option, int *into);

/* Its own address, and its peer's. Returns 0; -ENOTSOCK; -ENOTCONN. */
int weft__socket_local(int fd, struct weft__address *into);
int weft__socket_peer(int fd, struct weft__address *into);

#endif
