/* SPDX-License-Identifier: MIT
 *
 * Floods: servers of words on thousands of connections, fibers and tasks with small frames and large, and this thread as all of their peers.
 */
#ifndef WEFT_TEST_FLOODED_H
#define WEFT_TEST_FLOODED_H

#include "crew.h"
#include "driver/uring.h"
#include "line.h"
#include "slot.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

enum {
    SOME = WEFT__URING_BUFFERS + WEFT__URING_BUFFERS / 8,
    MOST = 2 * WEFT__URING_BUFFERS,
    KINDS = 3,
    LARGE = 1500, /* of a frame that has a box of its own */
};

struct flood {
    unsigned count;
    struct line lines[MOST];
    weft_task *tasks[MOST];
    _Atomic uint32_t served; /* relaxed: progress */
    bool seen;               /* by the ring */
};

static struct flood *flood; /* that is under way */

/* A peer that leaves takes its connection along, so that ten thousand of them are not kept by the kernel for a minute. */
static inline int end_of(ssize_t last)
{
    return last == 0 || last == -ECONNRESET ? 0 : -EIO;
}

static inline int serves(weft_stream *stream)
{
    uint32_t word;
    ssize_t n;
    while ((n = weft_read_exact(stream, &word, sizeof word)) == sizeof word) {
        if (weft_write_all(stream, &word, sizeof word) < 0) return -EPIPE;
        (void)fetch_add_relaxed(&flood->served, 1);
    }
    if (n == -ECANCELED) return -ECANCELED; /* the stream is the test's again */
    weft_close(stream);
    return end_of(n);
}

#define SERVES(name, room_bytes)                                                                   \
    struct name {                                                                                  \
        WEFT_FRAME(int);                                                                           \
        weft_stream *stream;                                                                       \
        struct weft_read_exact rd;                                                                 \
        struct weft_write_all wr;                                                                  \
        char room[room_bytes];                                                                     \
    };                                                                                             \
    static weft_async(name)                                                                        \
    {                                                                                              \
        weft_begin;                                                                                \
        for (;;) {                                                                                 \
            weft_await(f->rd, weft_read_exact, f->stream, f->room, sizeof(uint32_t));              \
            if (f->rd.ret != sizeof(uint32_t)) break;                                              \
            weft_await(f->wr, weft_write_all, f->stream, f->room, sizeof(uint32_t));               \
            if (f->wr.ret < 0) weft_return(-EPIPE);                                                \
            (void)fetch_add_relaxed(&flood->served, 1);                                            \
        }                                                                                          \
        if (f->rd.ret == -ECANCELED) weft_return(-ECANCELED);                                      \
        weft_close(f->stream);                                                                     \
        weft_return(end_of(f->rd.ret));                                                            \
        weft_end;                                                                                  \
    }

SERVES(serving_small, 8)
SERVES(serving_large, LARGE)

static inline weft_task *serve(weft_stream *stream, unsigned kind)
{
    switch (kind) {
    case 0: return weft_go(serves, stream);
    case 1: return weft_spawn(serving_small, .stream = stream);
    default: return weft_spawn(serving_large, .stream = stream);
    }
}

static inline void needs_descriptors(void)
{
    struct rlimit limit;
    ASSERT_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    ASSERT_OK(setrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 2 * MOST + 100)
        TEST_SKIP("%d connections need more descriptors than the %lu here", MOST,
                  (unsigned long)limit.rlim_max);
}

/* All by one gate: a port for each would be looked for among thousands. */
static inline int gate_open(struct sockaddr_in *at)
{
    socklen_t bytes = sizeof(*at);
    int gate = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ASSERT_GE(gate, 0);
    ASSERT_OK(bind(gate, (struct sockaddr *)at, bytes));
    ASSERT_OK(listen(gate, 1));
    ASSERT_OK(getsockname(gate, (struct sockaddr *)at, &bytes));
    return gate;
}

static inline struct line line_through(int gate, const struct sockaddr_in *at)
{
    const struct linger at_once = {.l_onoff = 1};
    int one = 1;
    int ends[2] = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    ASSERT_GE(ends[0], 0);
    ASSERT_OK(connect(ends[0], (const struct sockaddr *)at, sizeof(*at)));
    ends[1] = accept4(gate, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_GE(ends[1], 0);
    ASSERT_OK(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    ASSERT_OK(setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    return line_of(ends);
}

static inline void flood_begins(unsigned count)
{
    struct sockaddr_in at;
    needs_descriptors();
    int gate = gate_open(&at);
    flood = calloc(1, sizeof(*flood));
    ASSERT(flood);
    flood->count = count;
    for (unsigned i = 0; i < count; i++) {
        flood->lines[i] = line_through(gate, &at);
        flood->tasks[i] = serve(flood->lines[i].ours, i % KINDS);
        ASSERT(flood->tasks[i]);
    }
    ASSERT_OK(close(gate));
}

/* All peers leave, and so do the servers from `first` on. `turned`: the runtime, if it is this thread that turns it. */
static inline void flood_ends_from(unsigned first, weft_rt *turned)
{
    for (unsigned i = 0; i < flood->count; i++)
        ASSERT_OK(close(flood->lines[i].theirs));
    for (unsigned i = first; i < flood->count; i++) {
        while (turned && !weft_done(flood->tasks[i]))
            ASSERT_GE(weft_rt_turn(turned, -1), 0);
        ASSERT_OK(joined(flood->tasks[i]));
    }
    free(flood);
}

static inline void flood_ends(weft_rt *turned)
{
    flood_ends_from(0, turned);
}

static inline uint32_t word_of(unsigned round, unsigned i)
{
    return round * MOST + i;
}

static inline void all_say(unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word = word_of(round, i);
        ASSERT_EQ(send(flood->lines[i].theirs, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
    }
}

static inline void all_hear(unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word;
        ASSERT_EQ(recv(flood->lines[i].theirs, &word, sizeof word, MSG_WAITALL), sizeof word);
        ASSERT_EQ(word, word_of(round, i));
    }
}

/* ---- on the ring ---- */

static inline struct weft__uring *ring_here(void)
{
    return slot_of(flood->lines[0].ours)->port->own;
}

static inline unsigned count_fetching(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < flood->count; i++) {
        struct weft__uring_slot *us = weft__uring_more_of(slot_of(flood->lines[i].ours));
        count += (weft__uring_asked(us) & WEFT__URING_FETCH) != 0;
    }
    return count;
}

#endif
