/* SPDX-License-Identifier: MIT
 *
 * town - what tests of sockets share: connected pairs of every kind, listeners on a free port, bytes that can be checked.
 */
#ifndef WEFT_TESTS_TOWN_H
#define WEFT_TESTS_TOWN_H

#include "crew.h"
#include "pool.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

/* A TCP listener on a free port of the loopback; its address as text. */
struct town_gate {
    weft_listener *listener;
    char address[WEFT_ADDR_TEXT];
};

static inline void town_open(struct town_gate *gate)
{
    ASSERT_OK(weft_tcp_listen("127.0.0.1:0", &gate->listener));
    ASSERT_GE(weft_listener_print(gate->listener, gate->address, sizeof(gate->address)), 1);
}

/* Which driver the tests were asked to run on; it is there, or they would not run (test.c). */
static inline bool town_is_on_uring(void)
{
    const char *driver = getenv("WEFT_DRIVER");
    return driver && strcmp(driver, "io_uring") == 0;
}

/* The same at an address that no other process uses, nor a gate of this one with another number: for tests that knock at a door which is closed by then. On the common one the
 * port may be somebody else's at once, who lets them in. */
static inline void town_open_alone(struct town_gate *gate, unsigned which)
{
    unsigned pid = (unsigned)getpid();
    (void)snprintf(gate->address, sizeof(gate->address), "127.%u.%u.%u:0", 1 + which % 250,
                   pid >> 7 & 255, 1 + (pid & 127));
    ASSERT_OK(weft_tcp_listen(gate->address, &gate->listener));
    ASSERT_GE(weft_listener_print(gate->listener, gate->address, sizeof(gate->address)), 1);
}

enum town_kind { TOWN_TCP, TOWN_UNIX, TOWN_PIPE, TOWN_MEMORY, TOWN_KINDS };

/* Bytes that go into [0] come out of [1]; all but the pipe go the other way round, too. Called by a fiber or a thread. */
static inline void town_pair(enum town_kind kind, weft_stream *into[2])
{
    struct town_gate gate;
    if (kind == TOWN_UNIX) {
        ASSERT_OK(weft_unix_pair(&into[0], &into[1]));
    } else if (kind == TOWN_MEMORY) {
        ASSERT_OK(weft_duplex(1000, &into[0], &into[1]));
    } else if (kind == TOWN_PIPE) {
        ASSERT_OK(weft_pipe(&into[1], &into[0]));
    } else {
        town_open(&gate);
        ASSERT_OK(weft_tcp_connect(gate.address, &into[0]));
        ASSERT_OK(weft_accept(gate.listener, &into[1]));
        weft_close(gate.listener);
    }
}

/* Bytes with a descriptor beside them, by the system's own call. Returns what it does. */
static inline ssize_t town_send_fd(int sock, const void *bytes, size_t len, int fd, int flags)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct iovec iov = {(void *)(uintptr_t)bytes, len};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(sock, &message, flags);
}

/* The byte at a place of an endless stream: what is lost, doubled or swapped shows. */
static inline unsigned char town_byte(uint64_t at)
{
    return (unsigned char)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static inline void town_fill(unsigned char *buf, size_t len, uint64_t from)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = town_byte(from + i);
}

static inline void town_check(const unsigned char *buf, size_t len, uint64_t from)
{
    size_t right = 0;
    while (right < len && buf[right] == town_byte(from + right))
        right++;
    ASSERT_EQ(right, len); /* one assertion: each is a system call of Check's */
}

#endif
