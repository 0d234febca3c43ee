/* SPDX-License-Identifier: MIT
 *
 * Unix sockets beyond streams: messages come whole and in order, full queues are waited for, packets have an end; descriptors travel, and none is
 * left open, whatever was cut, given up or not read; who the peer is.
 */
#include "storm.h"
#include "town.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void name_of(char into[64], const char *what)
{
    static _Atomic int next;
    int k = (int)fetch_add_relaxed(&next, 1); /* relaxed: a count */
    snprintf(into, 64, "@weft-test-%d-%d-%s", (int)getpid(), k, what);
}

/* ---- messages ---- */

struct numbered {
    WEFT_FRAME(int);
    weft_dgram *d;
    uint32_t count;
    uint32_t i;
    struct weft_dgram_send tx;
};
static weft_async(numbered)
{
    weft_begin;
    for (f->i = 0; f->i < f->count; f->i++) {
        weft_await(f->tx, weft_dgram_send, f->d, &f->i, sizeof f->i);
        if (f->tx.ret < 0) weft_return((int)f->tx.ret);
    }
    weft_return(0);
    weft_end;
}

static int numbers(weft_dgram *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ssize_t n = weft_dgram_send(d, &i, sizeof i);
        if (n < 0) return (int)n;
    }
    return 0;
}

static void reads_numbers(weft_dgram *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t got[2] = {UINT32_MAX, 0};
        ASSERT_EQ(weft_dgram_recv(d, got, sizeof got), sizeof i);
        ASSERT_EQ(got[0], i);
    }
}

/* More than any queue holds: the sender waits, and is woken. */
static void carries(weft_dgram *from, weft_dgram *to, bool stackless)
{
    uint32_t count = (uint32_t)test_scaled(2000);
    int r = 1;
    weft_task *task = stackless ? weft_spawn(numbered, from, count) : weft_go(numbers, from, count);
    reads_numbers(to, count);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
}

static void carries_all(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        char name[64];
        weft_dgram *a, *b;
        ASSERT_OK(weft_dgram_pair(&a, &b));
        carries(a, b, i);
        carries(b, a, i);
        weft_close(a);
        weft_close(b);
        ASSERT_OK(weft_packet_pair(&a, &b));
        carries(a, b, i);
        weft_close(a);
        weft_close(b);
        name_of(name, "carries");
        ASSERT_OK(weft_dgram_bind(name, &b));
        ASSERT_OK(weft_dgram_bind(NULL, &a));
        ASSERT_EQ(weft_dgram_send(a, "x", 1), -ENOTCONN);
        weft_addr at;
        char text[WEFT_ADDR_TEXT];
        ASSERT_OK(weft_dgram_local(b, &at));
        (void)weft_addr_print(&at, text, sizeof text);
        ASSERT_STR(text, name);
        ASSERT_EQ(weft_dgram_local(b, NULL), -EINVAL);
        ASSERT_OK(weft_dgram_connect(a, name));
        carries(a, b, i);
        ASSERT_OK(weft_dgram_connect(a, NULL));
        ASSERT_EQ(weft_dgram_send(a, "x", 1), -ENOTCONN);
        weft_close(a);
        weft_close(b);
    }
}

TEST_WITH(unix_messages_come_in_order, .timeout_s = 180)
{
    crew_each(carries_all);
}

/* ---- to anybody ---- */

struct posting {
    weft_dgram *from;
    weft_addr to;
    uint32_t count;
};

static int posts(struct posting *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        ssize_t n = weft_dgram_send_to(p->from, &i, sizeof i, &p->to);
        if (n < 0) return (int)n;
    }
    return 0;
}

struct posting_on {
    WEFT_FRAME(int);
    struct posting *p;
    uint32_t i;
    struct weft_dgram_send_to tx;
};
static weft_async(posting_on)
{
    weft_begin;
    for (f->i = 0; f->i < f->p->count; f->i++) {
        weft_await(f->tx, weft_dgram_send_to, f->p->from, &f->i, sizeof f->i, &f->p->to);
        if (f->tx.ret < 0) weft_return((int)f->tx.ret);
    }
    weft_return(0);
    weft_end;
}

/* The queue of one that reads late fills up; nothing is lost, and no clock decides. */
static void posts_to_anybody(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        char mine[64], yours[64];
        weft_addr from;
        weft_dgram *d;
        int r = 1;
        name_of(mine, "mine");
        name_of(yours, "yours");
        struct posting p = {.count = 40};
        ASSERT_OK(weft_addr_of_path(yours, &p.to));
        ASSERT_OK(weft_dgram_bind(mine, &p.from));
        ASSERT_EQ(weft_dgram_send_to(p.from, "x", 1, &p.to), -ECONNREFUSED);
        ASSERT_OK(weft_dgram_bind(yours, &d));
        weft_task *task = i ? weft_spawn(posting_on, &p) : weft_go(posts, &p);
        for (uint32_t k = 0; k < p.count; k++) {
            char text[WEFT_ADDR_TEXT];
            uint32_t got = UINT32_MAX;
            ASSERT_EQ(weft_dgram_recv_from(d, &got, sizeof got, &from), sizeof got);
            ASSERT_EQ(got, k);
            weft_addr_print(&from, text, sizeof text);
            ASSERT_STR(text, mine);
        }
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        weft_close(d);
        weft_close(p.from);
    }
}

TEST(unix_sends_to_anybody)
{
    crew_each(posts_to_anybody);
}

/* Told to stop, or closed, while it waits for the queue of another. */
static void stops_posting(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        char name[64];
        weft_dgram *d;
        int r = 1;
        name_of(name, "full");
        struct posting p = {.count = 1000000};
        ASSERT_OK(weft_addr_of_path(name, &p.to));
        ASSERT_OK(weft_dgram_bind(NULL, &p.from));
        ASSERT_OK(weft_dgram_bind(name, &d));
        weft_task *task = i % 2 ? weft_spawn(posting_on, &p) : weft_go(posts, &p);
        for (int k = 0; k < 50; k++)
            sched_yield();
        if (i / 2) weft_cancel(task);
        weft_close(p.from);
        ASSERT_OK(weft_join(task, &r));
        ASSERT(r == -EBADF || (i / 2 && r == -ECANCELED));
        weft_close(d);
    }
}

TEST(unix_send_to_is_given_up)
{
    crew_each(stops_posting);
}

/* ---- packets ---- */

static int serves(weft_listener *l)
{
    weft_dgram *d;
    char b[100];
    ssize_t n;
    int r = weft_packet_accept(l, &d);
    if (r < 0) return r;
    while ((n = weft_dgram_recv(d, b, sizeof b)) > 0)
        if ((n = weft_dgram_send(d, b, (size_t)n)) < 0) break;
    weft_close(d);
    return (int)n;
}

struct serving {
    WEFT_FRAME(int);
    weft_listener *l;
    weft_dgram *d;
    struct weft_packet_accept accept;
    struct weft_dgram_recv rx;
    struct weft_dgram_send tx;
    char b[100];
};
static weft_async(serving)
{
    weft_begin;
    weft_await(f->accept, weft_packet_accept, f->l, &f->d);
    if (f->accept.ret < 0) weft_return(f->accept.ret);
    for (;;) {
        weft_await(f->rx, weft_dgram_recv, f->d, f->b, sizeof f->b);
        if (f->rx.ret <= 0) break;
        weft_await(f->tx, weft_dgram_send, f->d, f->b, (size_t)f->rx.ret);
    }
    weft_close(f->d);
    weft_return((int)f->rx.ret);
    weft_end;
}

static void connects(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 10; i++) {
        char name[64], b[100];
        weft_listener *l;
        weft_stream *stream;
        weft_dgram *d;
        int r = 1;
        name_of(name, "packets");
        ASSERT_EQ(weft_packet_connect(name, &d), -ECONNREFUSED);
        ASSERT_OK(weft_packet_listen(name, &l));
        ASSERT_EQ(weft_accept(l, &stream), -EOPNOTSUPP);
        weft_task *task = i % 2 ? weft_spawn(serving, l) : weft_go(serves, l);
        ASSERT_OK(weft_packet_connect(name, &d));
        ASSERT_EQ(weft_dgram_send(d, "one", 3), 3); /* two messages stay two */
        ASSERT_EQ(weft_dgram_send(d, "three", 5), 5);
        ASSERT_EQ(weft_dgram_recv(d, b, sizeof b), 3);
        ASSERT_EQ(weft_dgram_recv(d, b, 2), -EMSGSIZE);
        weft_close(d);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, 0); /* the end */
        weft_close(l);
    }
}

TEST(unix_packets_connect_and_end)
{
    crew_each(connects);
}

TEST(unix_packet_accept_wants_packets)
{
    struct crew crew;
    char name[64];
    weft_listener *l;
    weft_dgram *d;
    crew_start(&crew, 1);
    name_of(name, "stream");
    ASSERT_OK(weft_unix_listen(name, &l));
    ASSERT_EQ(weft_packet_accept(l, &d), -EOPNOTSUPP);
    ASSERT_EQ(weft_packet_accept(NULL, &d), -EINVAL);
    ASSERT_EQ(weft_packet_accept(l, NULL), -EINVAL);
    ASSERT_EQ(weft_packet_connect(NULL, &d), -EINVAL);
    weft_close(l);
    crew_stop(&crew);
}

/* A listener's queue that is full is waited for. */
static int comes(const char *name)
{
    weft_dgram *d;
    int r = weft_packet_connect(name, &d);
    if (r == 0) weft_close(d);
    return r;
}

static void waits_for_a_queue(struct crew *crew)
{
    char name[64];
    weft_listener *l;
    weft_task *task[20];
    (void)crew;
    name_of(name, "queue");
    ASSERT_OK(weft_packet_listen(name, &l));
    ASSERT_OK(listen(weft_listener_fd(l), 1)); /* a shorter one */
    for (int i = 0; i < 20; i++)
        task[i] = weft_go(comes, name);
    for (int i = 0; i < 20; i++) {
        weft_dgram *d;
        ASSERT_OK(weft_packet_accept(l, &d));
        weft_close(d);
    }
    for (int i = 0; i < 20; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    weft_close(l);
}

TEST(unix_packet_connect_waits_for_a_queue)
{
    crew_each(waits_for_a_queue);
}

/* ---- descriptors ---- */

enum way { BY_DGRAM, BY_PACKET, BY_STREAM, WAYS };

struct road {
    enum way way;
    weft_dgram *dgram[2];
    weft_stream *stream[2];
};

static void road_open(struct road *road, enum way way)
{
    *road = (struct road){.way = way};
    if (way == BY_DGRAM) ASSERT_OK(weft_dgram_pair(&road->dgram[0], &road->dgram[1]));
    if (way == BY_PACKET) ASSERT_OK(weft_packet_pair(&road->dgram[0], &road->dgram[1]));
    if (way == BY_STREAM) ASSERT_OK(weft_unix_pair(&road->stream[0], &road->stream[1]));
}

static void road_close(struct road *road)
{
    for (int i = 0; i < 2; i++) {
        weft_close(road->dgram[i]);
        weft_close(road->stream[i]);
    }
}

static ssize_t road_send(struct road *road, const void *buf, size_t len, const int *fds, unsigned n)
{
    return road->way == BY_STREAM ? weft_unix_send_fds(road->stream[0], buf, len, fds, n)
                                  : weft_dgram_send_fds(road->dgram[0], buf, len, fds, n);
}

static ssize_t road_recv(struct road *road, void *buf, size_t len, weft_fds *fds)
{
    return road->way == BY_STREAM ? weft_unix_recv_fds(road->stream[1], buf, len, fds)
                                  : weft_dgram_recv_fds(road->dgram[1], buf, len, fds);
}

static int event_of(unsigned value)
{
    int fd = eventfd(value, EFD_NONBLOCK);
    ASSERT_GE(fd, 0);
    return fd;
}

static void send_events(struct road *road, unsigned count)
{
    int fds[WEFT_FDS_MAX] = {0};
    for (unsigned i = 0; i < count; i++)
        fds[i] = event_of(100 + i);
    ASSERT_EQ(road_send(road, "bytes", 5, fds, count), 5);
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

static void check_events(weft_fds *fds, unsigned count)
{
    ASSERT_EQ(fds->count, count);
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0;
        ASSERT(fcntl(fds->fd[i], F_GETFD) & FD_CLOEXEC);
        ASSERT_EQ(read(fds->fd[i], &value, sizeof value), sizeof value);
        ASSERT_EQ(value, 100 + i);
        close(fds->fd[i]);
    }
}

/* All come, close-on-exec; those without room are closed; of a message that is cut, all; of one that is read as bytes, all. The harness
 * counts what is open at the end. */
static void passes_fds(struct crew *crew)
{
    (void)crew;
    for (int way = 0; way < WAYS; way++) {
        int room[WEFT_FDS_MAX];
        char b[10];
        struct road road;
        weft_fds fds = {.fd = room, .room = WEFT_FDS_MAX};
        road_open(&road, (enum way)way);
        send_events(&road, 3);
        ASSERT_EQ(road_recv(&road, b, sizeof b, &fds), 5);
        ASSERT(!fds.cut);
        check_events(&fds, 3);
        send_events(&road, WEFT_FDS_MAX);
        ASSERT_EQ(road_recv(&road, b, sizeof b, &fds), 5);
        check_events(&fds, WEFT_FDS_MAX);
        fds.room = 2;
        send_events(&road, 5);
        ASSERT_EQ(road_recv(&road, b, sizeof b, &fds), 5);
        ASSERT(fds.cut);
        check_events(&fds, 2);
        send_events(&road, 0);
        ASSERT_EQ(road_recv(&road, b, sizeof b, &fds), 5);
        ASSERT_EQ(fds.count, 0);
        send_events(&road, 2);
        if (way == BY_STREAM) {
            ASSERT_EQ(weft_read(road.stream[1], b, sizeof b), 5);
        } else {
            ASSERT_EQ(weft_dgram_recv(road.dgram[1], b, sizeof b), 5);
            send_events(&road, 2);
            ASSERT_EQ(road_recv(&road, b, 3, &fds), -EMSGSIZE);
            ASSERT_EQ(fds.count, 0);
        }
        send_events(&road, 2); /* and these nobody reads */
        road_close(&road);
    }
}

TEST(unix_passes_descriptors)
{
    crew_each(passes_fds);
}

TEST(unix_descriptors_say_what_is_wrong)
{
    struct crew crew;
    struct road road;
    weft_stream *pipe[2];
    char b[4];
    int none[2] = {-1, -1};
    weft_fds fds = {.fd = NULL, .room = 1};
    crew_start(&crew, 1);
    road_open(&road, BY_STREAM);
    ASSERT_OK(weft_pipe(&pipe[0], &pipe[1]));
    ASSERT_EQ(road_send(&road, "x", 1, none, 2), -EBADF);
    ASSERT_EQ(road_send(&road, "x", 1, none, WEFT_FDS_MAX + 1), -EINVAL);
    ASSERT_EQ(road_send(&road, "x", 0, none, 0), -EINVAL);
    ASSERT_EQ(road_send(&road, "x", 1, NULL, 1), -EINVAL);
    ASSERT_EQ(road_recv(&road, b, 4, &fds), -EINVAL);
    ASSERT_EQ(road_recv(&road, b, 4, NULL), -EINVAL);
    ASSERT_EQ(weft_unix_send_fds(pipe[1], "x", 1, none, 0), -EOPNOTSUPP);
    ASSERT_EQ(weft_unix_send_fds(NULL, "x", 1, none, 0), -EINVAL);
    weft_close(pipe[0]);
    weft_close(pipe[1]);
    road_close(&road);
    crew_stop(&crew);
}

/* ---- given up ---- */

struct swarm {
    struct road road;
    uint32_t count;
    uint32_t sent;
};

static void swarm_send(struct swarm *swarm)
{
    int fds[2] = {event_of(1), event_of(2)};
    ASSERT_EQ(weft_dgram_send_fds(swarm->road.dgram[0], "bytes", 5, fds, 2), 5);
    close(fds[0]);
    close(fds[1]);
    swarm->sent++;
}

static int takes_one(struct swarm *swarm)
{
    char b[8];
    int room[2];
    weft_fds fds = {.fd = room, .room = 2};
    ssize_t n = weft_dgram_recv_fds(swarm->road.dgram[1], b, sizeof b, &fds);
    for (unsigned i = 0; i < fds.count; i++)
        close(room[i]);
    return n == 5 && fds.count == 2 ? 0 : n == 5 ? -EIO : (int)n;
}

struct taking {
    WEFT_FRAME(int);
    struct swarm *swarm;
    struct weft_dgram_recv_fds rx;
    weft_fds fds;
    int room[1];
    char b[8];
};
static weft_async(taking)
{
    weft_begin;
    f->fds = (weft_fds){.fd = f->room, .room = 1};
    weft_await(f->rx, weft_dgram_recv_fds, f->swarm->road.dgram[1], f->b, sizeof f->b, &f->fds);
    if (f->fds.count) close(f->room[0]);
    weft_return(f->rx.ret == 5 ? (f->fds.cut ? 0 : -EIO) : (int)f->rx.ret);
    weft_end;
}

static weft_task *starts(void *of, uint32_t i, bool stackless)
{
    struct swarm *swarm = of;
    if (i % 3 == 0) swarm_send(swarm);
    return stackless ? weft_spawn(taking, swarm) : weft_go(takes_one, swarm);
}

static void finishes(void *of)
{
    struct swarm *swarm = of;
    while (swarm->sent < swarm->count)
        swarm_send(swarm);
}

/* Every message was received by one, or is still there; and no descriptor is open that nobody has. */
static void gives_up(struct crew *crew)
{
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(10); round++) {
        struct swarm swarm = {.count = 60};
        uint32_t left = 0;
        char b[8];
        road_open(&swarm.road, round % 2 ? BY_DGRAM : BY_PACKET);
        struct storm_sum sum = storm(starts, &swarm, swarm.count, finishes);
        ASSERT_EQ(sum.other, 0);
        ASSERT_EQ(weft_dgram_send(swarm.road.dgram[0], "end", 3), 3);
        while (weft_dgram_recv(swarm.road.dgram[1], b, sizeof b) == 5)
            left++;
        ASSERT_EQ(sum.got + left, swarm.count);
        road_close(&swarm.road);
    }
}

TEST_WITH(unix_given_up_takes_nothing, .timeout_s = 180)
{
    crew_each(gives_up);
}

/* ---- who the peer is ---- */

TEST(unix_knows_its_peer)
{
    struct crew crew;
    weft_stream *s[2], *pipe[2];
    weft_dgram *d[2], *alone;
    weft_creds creds = {0};
    crew_start(&crew, 2);
    ASSERT_OK(weft_unix_pair(&s[0], &s[1]));
    ASSERT_OK(weft_packet_pair(&d[0], &d[1]));
    ASSERT_OK(weft_dgram_bind(NULL, &alone));
    ASSERT_OK(weft_pipe(&pipe[0], &pipe[1]));
    ASSERT_OK(weft_unix_creds(s[0], &creds));
    ASSERT_EQ(creds.pid, getpid());
    ASSERT_EQ(creds.uid, geteuid());
    ASSERT_EQ(creds.gid, getegid());
    creds.pid = 0;
    ASSERT_OK(weft_dgram_creds(d[1], &creds));
    ASSERT_EQ(creds.pid, getpid());
    ASSERT_EQ(weft_dgram_creds(alone, &creds), -ENOTCONN);
    ASSERT_EQ(weft_unix_creds(pipe[0], &creds), -EOPNOTSUPP);
    ASSERT_EQ(weft_unix_creds(NULL, &creds), -EINVAL);
    for (int i = 0; i < 2; i++) {
        weft_close(s[i]);
        weft_close(d[i]);
        weft_close(pipe[i]);
    }
    weft_close(alone);
    crew_stop(&crew);
}
