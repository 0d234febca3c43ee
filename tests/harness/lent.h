/* SPDX-License-Identifier: MIT
 *
 * lent - a TCP connection whose slot's lock is lent to the worker of the task that has made it: what tests of the short ways (io/direct.h) begin with.
 *
 *     static int acts(bool alone)
 *     {
 *         struct desk d = desk_open(alone);
 *         ... until_waits(&d, WEFT__SIDE_READ); says(&d, 'x'); ...
 *         stays_lent(&d);
 *         desk_close(&d);
 *         return 0;
 *     }
 *     acts_on(crew, acts);
 */
#ifndef WEFT_TESTS_LENT_H
#define WEFT_TESTS_LENT_H

#include "driver/driver.h"
#include "io/fdstream.h"
#include "peer.h"
#include "slot.h"
#include "sys/membarrier.h"
#include "town.h"

#include <netinet/tcp.h>

/* Of an actor, which is pinned: the stream lives in its worker's port. */
struct desk {
    weft_stream *stream;
    int peer;   /* the other end, which blocks */
    bool alone; /* nobody else comes: once it is lent, it stays so */
};

static inline bool is_lent(const struct desk *d)
{
    return weft__bias_is_given(&slot_of(d->stream)->list.lock);
}

static inline void stays_lent(const struct desk *d)
{
    ASSERT(is_lent(d) || !d->alone);
}

/* Both block. Of a small buffer a little is held by the one that does not read. */
static inline void connect_plain(int into[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int one = 1, small = 4096;
    int gate = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(gate, 0);
    ASSERT_OK(setsockopt(gate, SOL_SOCKET, SO_RCVBUF, &small, sizeof small)); /* its heirs' */
    ASSERT_OK(bind(gate, (struct sockaddr *)&at, bytes));
    ASSERT_OK(listen(gate, 1));
    ASSERT_OK(getsockname(gate, (struct sockaddr *)&at, &bytes));
    into[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(into[0], 0);
    ASSERT_OK(connect(into[0], (struct sockaddr *)&at, bytes));
    into[1] = accept4(gate, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_GE(into[1], 0);
    ASSERT_OK(setsockopt(into[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    ASSERT_OK(close(gate));
}

static inline void says(const struct desk *d, char what)
{
    ASSERT_EQ(send(d->peer, &what, 1, MSG_NOSIGNAL), 1);
}

/* Read and wait, until the lock is lent to this worker. */
static inline void gets_lent(const struct desk *d)
{
    char room[8];
    for (int i = 0; i < 2000 && !is_lent(d); i++) {
        says(d, 'w');
        ASSERT_EQ(weft_read(d->stream, room, sizeof room), 1);
    }
    stays_lent(d);
}

static inline struct desk desk_open(bool alone)
{
    int ends[2];
    struct desk d = {.alone = alone};
    connect_plain(ends);
    ASSERT_OK(weft_stream_of_fd(ends[0], &d.stream));
    ASSERT_EQ(weft__fdstream_is_direct(d.stream), !town_is_on_uring());
    d.peer = ends[1];
    gets_lent(&d);
    return d;
}

static inline void desk_close(struct desk *d)
{
    weft_close(d->stream);
    if (d->peer >= 0) ASSERT_OK(close(d->peer));
}

/* It is this worker that looks, so the lock stays lent. */
static inline void until_waits(const struct desk *d, enum weft__side side)
{
    while (!slot_is_awaited(d->stream, side))
        ASSERT_OK(weft_yield());
    stays_lent(d);
}

static inline int joined(weft_task *task)
{
    int r = INT32_MIN;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static inline bool is_alone(const struct crew *crew)
{
    return (crew->workers == 1 || crew->workers < 0) && weft__membarrier() == 0;
}

/* The actor is pinned, so that what it spawns pinned is with it. Its worker is alone with the stream where there is no other one. */
static inline void acts_on(const struct crew *crew, int (*acts)(bool alone))
{
    bool alone = is_alone(crew);
    ASSERT_OK(joined(weft_go_as((.pinned = true), acts, alone)));
}

#endif
