/* SPDX-License-Identifier: MIT
 *
 * socket - the calls, each behind its fault point; made again where a signal interrupted them.
 */
#include "sys/socket.h"

#include "sys/answer.h"

#include <errno.h>
#include <netinet/in.h> /* and sys/socket.h, by a name that is not ours */
#include <netinet/tcp.h>
#include <string.h>

#define KIND (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

_Static_assert(sizeof(struct sockaddr_storage) <= WEFT__ADDRESS_BYTES, "every address fits its box");

static const struct sockaddr *sockaddr_of(const struct weft__address *addr)
{
    return (const struct sockaddr *)(const void *)addr->data;
}

int weft__socket_open(const struct weft__address *like, int *into)
{
    int fd = (int)WEFT__ANSWER(WEFT__FAULT_SOCKET, socket(sockaddr_of(like)->sa_family, KIND, 0));
    if (fd < 0) return fd;
    *into = fd;
    return 0;
}

int weft__socket_pair(int into[2])
{
    int pair[2] = {-1, -1};
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKET, socketpair(AF_UNIX, KIND, 0, pair));
    if (r < 0) return r;
    memcpy(into, pair, sizeof(pair));
    return 0;
}

int weft__socket_bind(int fd, const struct weft__address *addr)
{
    return (int)WEFT__ANSWER(WEFT__FAULT_BIND, bind(fd, sockaddr_of(addr), addr->bytes));
}

int weft__socket_listen(int fd, int backlog)
{
    return (int)WEFT__ANSWER(WEFT__FAULT_LISTEN, listen(fd, backlog));
}

int weft__socket_accept(int fd, struct weft__address *from, int *into)
{
    socklen_t bytes = WEFT__ADDRESS_BYTES;
    struct sockaddr *peer = from ? (struct sockaddr *)(void *)from->data : NULL;
    int got = (int)WEFT__ANSWER(WEFT__FAULT_ACCEPT, accept4(fd, peer, from ? &bytes : NULL,
                                                    WEFT__SOCKET_ACCEPT_FLAGS));
    if (got < 0) return got;
    if (from) from->bytes = bytes;
    *into = got;
    return 0;
}

/* Interrupted, it goes on by itself: to call it again would answer -EALREADY. */
int weft__socket_connect(int fd, const struct weft__address *addr)
{
    int r = weft__fault(WEFT__FAULT_CONNECT);
    if (r == 0 && connect(fd, sockaddr_of(addr), addr->bytes) < 0) r = -errno;
    return r == -EINTR ? -EINPROGRESS : r;
}

ssize_t weft__socket_recv(int fd, const struct iovec *iov, int count, bool peek)
{
    int flags = peek ? MSG_PEEK : 0;
    if (count == 1) return weft__socket_recv_one(fd, iov->iov_base, iov->iov_len, flags);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov,
                             .msg_iovlen = (size_t)count};
    return WEFT__ANSWER(WEFT__FAULT_RECV, recvmsg(fd, &message, flags));
}

ssize_t weft__socket_recv_unix(int fd, const struct iovec *iov, int count, bool *cut)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)count};
    ssize_t r = WEFT__ANSWER(WEFT__FAULT_RECV, recvmsg(fd, &message, 0));
    *cut = message.msg_flags & MSG_CTRUNC;
    return r;
}

ssize_t weft__socket_send(int fd, const struct iovec *iov, int count)
{
    if (count == 1) return weft__socket_send_one(fd, iov->iov_base, iov->iov_len);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov,
                             .msg_iovlen = (size_t)count};
    return WEFT__ANSWER(WEFT__FAULT_SEND, sendmsg(fd, &message, MSG_NOSIGNAL));
}

int weft__socket_shutdown(int fd, enum weft__socket_half half)
{
    return (int)WEFT__ANSWER(WEFT__FAULT_SHUTDOWN, shutdown(fd, half == WEFT__HALF_READ ? SHUT_RD : SHUT_WR));
}

int weft__socket_error(int fd)
{
    int error = 0;
    socklen_t bytes = sizeof(error);
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes));
    return r < 0 ? r : -error;
}

bool weft__socket_is_stream(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof(type);
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes));
    return r == 0 && type == SOCK_STREAM;
}

static int about(int fd, int name, int *into)
{
    socklen_t bytes = sizeof(*into);
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, getsockopt(fd, SOL_SOCKET, name, into, &bytes));
}

int weft__socket_listens(int fd, bool *packets)
{
    int type = 0;
    int listens = 0;
    int r = about(fd, SO_TYPE, &type);
    if (r == 0) r = about(fd, SO_ACCEPTCONN, &listens);
    if (r < 0) return r;
    if (type != SOCK_STREAM && type != SOCK_SEQPACKET) return -EOPNOTSUPP;
    *packets = type == SOCK_SEQPACKET;
    return listens ? 0 : -EINVAL;
}

/* ---- options ---- */

static const struct {
    int level;
    int name;
} options[] = {
    [WEFT__SOCKET_NODELAY] = {IPPROTO_TCP, TCP_NODELAY},
    [WEFT__SOCKET_KEEPALIVE] = {SOL_SOCKET, SO_KEEPALIVE},
    [WEFT__SOCKET_KEEPIDLE] = {IPPROTO_TCP, TCP_KEEPIDLE},
    [WEFT__SOCKET_KEEPINTVL] = {IPPROTO_TCP, TCP_KEEPINTVL},
    [WEFT__SOCKET_KEEPCNT] = {IPPROTO_TCP, TCP_KEEPCNT},
    [WEFT__SOCKET_LINGER] = {SOL_SOCKET, SO_LINGER},
    [WEFT__SOCKET_REUSEADDR] = {SOL_SOCKET, SO_REUSEADDR},
    [WEFT__SOCKET_REUSEPORT] = {SOL_SOCKET, SO_REUSEPORT},
    [WEFT__SOCKET_RECVBUF] = {SOL_SOCKET, SO_RCVBUF},
    [WEFT__SOCKET_SENDBUF] = {SOL_SOCKET, SO_SNDBUF},
    [WEFT__SOCKET_V6ONLY] = {IPPROTO_IPV6, IPV6_V6ONLY},
};

/* Of IPv6 it has another name. */
static bool is_v6(int fd)
{
    int family = 0;
    return about(fd, SO_DOMAIN, &family) == 0 && family == AF_INET6;
}

/* A socket of IPv6 may speak to IPv4, too, and those packets go by IPv4's option: it gets both. */
static int set_tos(int fd, int value)
{
    if (value < 0 || value > 255) return -EINVAL;
    int r = 0;
    if (is_v6(fd))
        r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT,
                              setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof(value)));
    if (r < 0) return r;
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT,
                             setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof(value)));
}

static int get_tos(int fd, int *into)
{
    int value = 0;
    socklen_t bytes = sizeof(value);
    bool v6 = is_v6(fd);
    int r = (int)WEFT__ANSWER(
        WEFT__FAULT_SOCKOPT,
        getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &value, &bytes));
    if (r == 0) *into = value;
    return r;
}

int weft__socket_set(int fd, enum weft__socket_option option, int value)
{
    if (option == WEFT__SOCKET_TOS) return set_tos(fd, value);
    struct linger linger = {.l_onoff = value >= 0, .l_linger = value < 0 ? 0 : value};
    bool lingers = option == WEFT__SOCKET_LINGER;
    const void *from = lingers ? (const void *)&linger : &value;
    socklen_t bytes = lingers ? sizeof(linger) : sizeof(value);
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT,
                     setsockopt(fd, options[option].level, options[option].name, from, bytes));
}

int weft__socket_get(int fd, enum weft__socket_option option, int *into)
{
    if (option == WEFT__SOCKET_TOS) return get_tos(fd, into);
    struct linger linger = {0};
    int value = 0;
    bool lingers = option == WEFT__SOCKET_LINGER;
    socklen_t bytes = lingers ? sizeof(linger) : sizeof(value);
    void *to = lingers ? (void *)&linger : &value;
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT,
                      getsockopt(fd, options[option].level, options[option].name, to, &bytes));
    if (r < 0) return r;
    *into = !lingers ? value : linger.l_onoff ? linger.l_linger : -1;
    return 0;
}

/* ---- addresses ---- */

int weft__socket_local(int fd, struct weft__address *into)
{
    struct weft__address got = {.bytes = 0};
    socklen_t bytes = sizeof(got.data);
    struct sockaddr *to = (struct sockaddr *)(void *)got.data;
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKNAME, getsockname(fd, to, &bytes));
    if (r < 0) return r;
    got.bytes = bytes;
    *into = got;
    return 0;
}

int weft__socket_peer(int fd, struct weft__address *into)
{
    struct weft__address got = {.bytes = 0};
    socklen_t bytes = sizeof(got.data);
    struct sockaddr *to = (struct sockaddr *)(void *)got.data;
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKNAME, getpeername(fd, to, &bytes));
    if (r < 0) return r;
    got.bytes = bytes;
    *into = got;
    return 0;
}
