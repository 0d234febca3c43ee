/* SPDX-License-Identifier: MIT
 *
 * What is closed while a task is about to use it: the task has called weft_read, say, but its budget was used up, and it let others run first. It is
 * answered -EBADF as all who wait are, and never gets what came to another one in the same place.
 */
#include "town.h"

#include <sys/eventfd.h>
#include <unistd.h>

enum { STEPS = 200 }; /* of them, some use up a poll's budget exactly: 128, two for each step */

typedef WEFT_CHAN(uint64_t) word_chan;

enum kind { TCP, UNIX, PIPE, MEMORY, LISTENER, DATAGRAMS, EVENT, KINDS };

union thing {
    weft_stream *stream;
    weft_listener *listener;
    weft_udp *udp;
    weft_fd *fd;
};

static word_chan *chan;
static enum kind kind;
static union thing used;   /* what is closed */
static union thing beside; /* its peer, if it has one */
static _Atomic bool begun; /* relaxed: on one thread */

static void make(union thing *one, union thing *other)
{
    weft_stream *pair[2];
    if (kind <= MEMORY) {
        town_pair((enum town_kind[]){TOWN_TCP, TOWN_UNIX, TOWN_PIPE, TOWN_MEMORY}[kind], pair);
        one->stream = pair[1];
        other->stream = pair[0];
    } else if (kind == LISTENER) {
        ASSERT_OK(weft_tcp_listen("127.0.0.1:0", &one->listener));
    } else if (kind == DATAGRAMS) {
        ASSERT_OK(weft_udp_bind("127.0.0.1:0", &one->udp));
    } else {
        ASSERT_OK(weft_fd_open(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), &one->fd));
    }
}

static void end(union thing *one, union thing *other)
{
    if (kind <= MEMORY) {
        weft_close(one->stream);
        weft_close(other->stream);
    } else if (kind == LISTENER) {
        weft_close(one->listener);
    } else if (kind == DATAGRAMS) {
        weft_close(one->udp);
    } else {
        weft_close(one->fd);
    }
}

/* Something comes to a fresh one. */
static void bring(union thing *one, union thing *other)
{
    weft_addr addr;
    uint64_t word = 1;
    weft_udp *from;
    if (kind <= MEMORY) {
        ASSERT_EQ(weft_write(other->stream, "x", 1), 1);
    } else if (kind == DATAGRAMS) {
        ASSERT_OK(weft_udp_local(one->udp, &addr));
        ASSERT_OK(weft_udp_bind("127.0.0.1:0", &from));
        ASSERT_EQ(weft_udp_send_to(from, "x", 1, &addr), 1);
        weft_close(from);
    } else if (kind == EVENT) {
        ASSERT_EQ(write(weft_fd_number(one->fd), &word, sizeof word), sizeof word);
    }
}

static ssize_t uses(unsigned steps)
{
    char byte;
    weft_stream *stream;
    weft_addr from;
    for (uint64_t i = 0; i < steps; i++) {
        if (weft_send(chan, &i) < 0 || weft_recv(chan, &i) != 1) return 1;
    }
    store_relaxed(&begun, true);
    switch (kind) {
    case LISTENER: return weft_accept(used.listener, &stream);
    case DATAGRAMS: return weft_udp_recv_from(used.udp, &byte, 1, &from);
    case EVENT: return weft_fd_readable(used.fd);
    default: return weft_read(used.stream, &byte, 1);
    }
}

static void closed_under(unsigned steps)
{
    ssize_t r = 1;
    union thing fresh = {NULL};
    union thing its_peer = {NULL};
    make(&used, &beside);
    store_relaxed(&begun, false);
    weft_task *task = weft_go(uses, steps);
    while (!load_relaxed(&begun))
        (void)weft_yield();
    end(&used, &beside);
    make(&fresh, &its_peer); /* in the same place, most of the time */
    bring(&fresh, &its_peer);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_EQ(r, -EBADF);
    end(&fresh, &its_peer);
}

static int closes_all(void)
{
    ASSERT_OK(weft_chan_new(1, &chan));
    for (kind = TCP; kind < KINDS; kind++) {
        for (unsigned steps = 0; steps < STEPS; steps++)
            closed_under(steps);
    }
    weft_chan_free(chan);
    return 0;
}

/* One thread: who is about to use it has let others run, and nobody else is under way. */
TEST(io_closed_before_its_user_began)
{
    static const int sizes[] = {1, -1};
    for (size_t i = 0; i < 2; i++) {
        struct crew crew;
        int r = 1;
        crew_start(&crew, sizes[i]);
        ASSERT_OK(weft_join(weft_go(closes_all), &r));
        ASSERT_OK(r);
        crew_stop(&crew);
    }
}
