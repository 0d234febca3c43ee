/* SPDX-License-Identifier: MIT
 *
 * peer - the other side of a connection, in the test's hand: plain sockets that block, and know of no runtime.
 *
 *     int fd = peer_connect(gate.address, 0);
 *     peer_send(fd, from, bytes);             bytes of town_byte, numbered
 *     peer_reset(fd);                         a close that resets
 * What a peer finds wrong is asserted by its own thread.
 */
#ifndef WEFT_TESTS_PEER_H
#define WEFT_TESTS_PEER_H

#include "town.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* `recv_bytes`: of its kernel's buffer; 0: as it is. Blocks until the connection is there. */
static inline int peer_connect(const char *address, int recv_bytes)
{
    weft_addr addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    if (recv_bytes > 0)
        ASSERT_OK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &recv_bytes, sizeof recv_bytes));
    ASSERT_OK(weft_addr_parse(address, &addr));
    ASSERT_OK(connect(fd, (const struct sockaddr *)(const void *)addr.weft__data, addr.bytes));
    return fd;
}

/* A Unix name of this process's own, without a file: as weft has it, into `path`, and as the system has. */
static inline socklen_t peer_name(const char *what, char path[100], struct sockaddr_un *into)
{
    *into = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(path, 100, "@weft-%s-%d", what, (int)getpid());
    size_t length = strlen(path);
    memcpy(into->sun_path + 1, path + 1, length - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* A socket of that name, which does not block. */
static inline int peer_bind(int type, const char *what, char path[100])
{
    struct sockaddr_un addr;
    socklen_t bytes = peer_name(what, path, &addr);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_GE(fd, 0);
    ASSERT_OK(bind(fd, (struct sockaddr *)&addr, bytes));
    return fd;
}

static inline void peer_send(int fd, uint64_t from, size_t bytes)
{
    unsigned char buf[4096];
    while (bytes > 0) {
        size_t some = bytes < sizeof buf ? bytes : sizeof buf;
        town_fill(buf, some, from);
        ssize_t n = send(fd, buf, some, MSG_NOSIGNAL);
        ASSERT_GE(n, 1);
        from += (uint64_t)n;
        bytes -= (size_t)n;
    }
}

/* Exactly so many, and the right ones. */
static inline void peer_recv(int fd, uint64_t from, size_t bytes)
{
    unsigned char buf[4096];
    while (bytes > 0) {
        ssize_t n = recv(fd, buf, bytes < sizeof buf ? bytes : sizeof buf, 0);
        ASSERT_GE(n, 1);
        town_check(buf, (size_t)n, from);
        from += (uint64_t)n;
        bytes -= (size_t)n;
    }
}

/* To the end. Returns how many there were. */
static inline uint64_t peer_drain(int fd, uint64_t from)
{
    unsigned char buf[65536];
    uint64_t at = from;
    ssize_t n;
    while ((n = recv(fd, buf, sizeof buf, 0)) > 0) {
        town_check(buf, (size_t)n, at);
        at += (uint64_t)n;
    }
    ASSERT_EQ(n, 0);
    return at - from;
}

/* As much as anybody takes without reading: until nothing goes any more, and still nothing a while later. */
static inline uint64_t peer_stuff(int fd, uint64_t from, uint64_t most)
{
    unsigned char buf[4096];
    uint64_t at = from;
    for (int full = 0; full < 100 && at - from < most;) {
        town_fill(buf, sizeof buf, at);
        ssize_t n = send(fd, buf, sizeof buf, MSG_NOSIGNAL | MSG_DONTWAIT);
        ASSERT(n > 0 || errno == EAGAIN);
        full = n > 0 ? 0 : full + 1;
        if (n > 0) {
            at += (uint64_t)n;
        } else {
            sched_yield();
        }
    }
    return at - from;
}

static inline void peer_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    ASSERT_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    ASSERT_OK(close(fd));
}

#endif
