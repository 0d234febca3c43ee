/* SPDX-License-Identifier: MIT
 *
 * Operations on streams, given up at every moment: reads, looks, writes, the end of a buffered one, descriptors that travel with bytes, copies and files. Each of a few lines has
 * numbered bytes, and is used by one task after the other, most of which are cancelled. What the line has lost or doubled in the end would show: who was
 * cancelled has taken or written nothing, or exactly what `.done` says.
 */
#include "peer.h"

#include <stdatomic.h>
#include <stdlib.h>

union frames {
    struct weft_read read;
    struct weft_readv readv;
    struct weft_peek peek;
    struct weft_read_exact exact;
    struct weft_unix_recv_fds recv_fds;
    struct weft_write write;
    struct weft_write_all write_all;
    struct weft_writev writev;
    struct weft_writev_all writev_all;
    struct weft_shutdown shutdown;
    struct weft_unix_send_fds send_fds;
    struct weft_sendfile sendfile;
    struct weft_copy copy;
    struct weft_splice splice;
};

#include "give_up.h"

#define BYTES     3000    /* of one write: more than a line holds at times */
#define FILE_SIZE 2000000 /* more than all writes of a round */
#define HELD      20000   /* by a buffer that is to be shut down: many times what a line holds */

/* Ours, and a plain end that the thread outside holds. As many as there are attempts, so that one is always free. */
static struct line {
    weft_stream *stream;
    weft_stream *sink; /* of copies: where to */
    weft_buf *buf;     /* of shutdowns: around the stream */
    int peer;
    int sink_peer;
    uint64_t at;       /* the next byte of ours; whose turn it is has it */
    uint64_t peer_at;  /* the next byte of the peer's: its own */
    atomic_bool taken; /* seq_cst, all: a test */
} lines[LIVE];

static weft_file *file;
static int spare = -1; /* a descriptor to send */

static void world_init(void)
{
}

/* ---- lines ---- */

static void open_pair(weft_stream **stream, int *peer)
{
    int fds[2];
    int small = 4096;
    ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    ASSERT_OK(weft_stream_of_fd(fds[0], stream));
    *peer = fds[1];
}

static void lines_open(void)
{
    for (int i = 0; i < LIVE; i++) {
        lines[i].at = 0;
        lines[i].peer_at = 0;
        lines[i].sink = NULL;
        atomic_store(&lines[i].taken, false);
        open_pair(&lines[i].stream, &lines[i].peer);
    }
}

static struct line *take_line(struct attempt *a)
{
    for (uint32_t i = pool_random(&a->random, LIVE);; i = (i + 1) % LIVE) {
        if (atomic_exchange(&lines[i].taken, true)) continue;
        a->made = &lines[i];
        return &lines[i];
    }
}

static struct line *line_of(struct attempt *a)
{
    return a->made;
}

/* It is over: `moved` bytes of the line are behind us. */
static weft_poll leaves_line(struct attempt *a, ssize_t ret, uint64_t moved)
{
    line_of(a)->at += moved;
    a->ret = ret < 0 ? (int)ret : 0;
    atomic_store(&line_of(a)->taken, false);
    return WEFT_READY;
}

/* ---- reads ---- */

static unsigned char room[LIVE][BYTES]; /* of each line's one */

static unsigned char *room_of(struct attempt *a)
{
    return room[line_of(a) - lines];
}

static void check_read(struct attempt *a, ssize_t n)
{
    if (n > 0) town_check(room_of(a), (size_t)n, line_of(a)->at);
}

static uint64_t bytes_of(ssize_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

static void feed_bytes(uint64_t *random)
{
    unsigned char some[50];
    struct line *l = &lines[pool_random(random, LIVE)];
    size_t len = 1 + pool_random(random, sizeof some - 1);
    town_fill(some, len, l->peer_at);
    ssize_t n = send(l->peer, some, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) l->peer_at += (uint64_t)n;
}

/* What nobody has read is still there, and nothing is missing before it. */
static void even_reads(void)
{
    for (int i = 0; i < LIVE; i++) {
        struct line *l = &lines[i];
        int fd = weft_stream_fd(l->stream);
        ASSERT_OK(close(l->peer));
        ASSERT_OK(fcntl(fd, F_SETFL, 0)); /* to the end, which is there */
        ASSERT_EQ(l->at + peer_drain(fd, l->at), l->peer_at);
        weft_close(l->stream);
    }
}

static void read_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.read = (struct weft_read){.stream = l->stream, .buf = room_of(a), .len = 30};
}
static weft_poll read_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_read_poll(&a->f.read, cx) == WEFT_PENDING) return WEFT_PENDING;
    check_read(a, a->f.read.ret);
    return leaves_line(a, a->f.read.ret, bytes_of(a->f.read.ret));
}

static struct iovec parts[LIVE][2];

static void readv_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    struct iovec *iov = parts[l - lines];
    iov[0] = (struct iovec){room_of(a), 7};
    iov[1] = (struct iovec){room_of(a) + 7, 20};
    a->f.readv = (struct weft_readv){.stream = l->stream, .iov = iov, .count = 2};
}
static weft_poll readv_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_readv_poll(&a->f.readv, cx) == WEFT_PENDING) return WEFT_PENDING;
    check_read(a, a->f.readv.ret);
    return leaves_line(a, a->f.readv.ret, bytes_of(a->f.readv.ret));
}

/* A look takes nothing, whatever becomes of it. */
static void peek_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.peek = (struct weft_peek){.stream = l->stream, .buf = room_of(a), .len = 30};
}
static weft_poll peek_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_peek_poll(&a->f.peek, cx) == WEFT_PENDING) return WEFT_PENDING;
    check_read(a, a->f.peek.ret);
    return leaves_line(a, a->f.peek.ret, 0);
}

/* All or nothing it is not: `.done` tells. */
static void exact_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.exact = (struct weft_read_exact){.stream = l->stream, .buf = room_of(a), .len = 100};
}
static weft_poll exact_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_read_exact_poll(&a->f.exact, cx) == WEFT_PENDING) return WEFT_PENDING;
    check_read(a, (ssize_t)a->f.exact.done);
    return leaves_line(a, a->f.exact.ret, a->f.exact.done);
}

/* ---- descriptors that come ---- */

static void feed_fds(uint64_t *random)
{
    struct line *l = &lines[pool_random(random, LIVE)];
    unsigned char byte = town_byte(l->peer_at);
    if (town_send_fd(l->peer, &byte, 1, spare, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) l->peer_at++;
}

static weft_fds taken_fds[LIVE];
static int taken_fd[LIVE][4];

static void recv_fds_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    taken_fds[l - lines] = (weft_fds){.fd = taken_fd[l - lines], .room = 4};
    a->f.recv_fds = (struct weft_unix_recv_fds){
        .stream = l->stream, .buf = room_of(a), .len = 1, .fds = &taken_fds[l - lines]};
}
/* One byte, one descriptor: neither comes alone. */
static weft_poll recv_fds_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_unix_recv_fds_poll(&a->f.recv_fds, cx) == WEFT_PENDING) return WEFT_PENDING;
    const weft_fds *fds = a->f.recv_fds.fds;
    if (a->f.recv_fds.ret > 0) {
        ASSERT_EQ(fds->count, 1);
        ASSERT_OK(close(fds->fd[0]));
    }
    check_read(a, a->f.recv_fds.ret);
    return leaves_line(a, a->f.recv_fds.ret, bytes_of(a->f.recv_fds.ret));
}

static void fds_open(void)
{
    lines_open();
    spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(spare, 0);
}

static void even_fds(void)
{
    even_reads();
    ASSERT_OK(close(spare));
}

/* ---- writes ---- */

static void drain_line(struct line *l, int from)
{
    unsigned char some[2000];
    ssize_t n = recv(from, some, sizeof some, MSG_DONTWAIT);
    if (n <= 0) return;
    town_check(some, (size_t)n, l->peer_at);
    l->peer_at += (uint64_t)n;
}

static void feed_room(uint64_t *random)
{
    struct line *l = &lines[pool_random(random, LIVE)];
    drain_line(l, l->peer);
}

static void even_writes(void)
{
    for (int i = 0; i < LIVE; i++) {
        struct line *l = &lines[i];
        weft_close(l->stream);
        ASSERT_EQ(l->peer_at + peer_drain(l->peer, l->peer_at), l->at);
        ASSERT_OK(close(l->peer));
    }
}

static void write_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    town_fill(room_of(a), BYTES, l->at);
    a->f.write = (struct weft_write){.stream = l->stream, .buf = room_of(a), .len = BYTES};
}
static weft_poll write_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_write_poll(&a->f.write, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, a->f.write.ret, bytes_of(a->f.write.ret));
}

static void write_all_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    town_fill(room_of(a), BYTES, l->at);
    a->f.write_all = (struct weft_write_all){.stream = l->stream, .buf = room_of(a), .len = BYTES};
}
static weft_poll write_all_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_write_all_poll(&a->f.write_all, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, a->f.write_all.ret, a->f.write_all.done);
}

static const struct iovec *parts_of(struct attempt *a)
{
    struct iovec *iov = parts[line_of(a) - lines];
    iov[0] = (struct iovec){room_of(a), 100};
    iov[1] = (struct iovec){room_of(a) + 100, BYTES - 100};
    return iov;
}

static void writev_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    town_fill(room_of(a), BYTES, l->at);
    a->f.writev = (struct weft_writev){.stream = l->stream, .iov = parts_of(a), .count = 2};
}
static weft_poll writev_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_writev_poll(&a->f.writev, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, a->f.writev.ret, bytes_of(a->f.writev.ret));
}

static void writev_all_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    town_fill(room_of(a), BYTES, l->at);
    a->f.writev_all = (struct weft_writev_all){.stream = l->stream, .iov = parts_of(a), .count = 2};
}
static weft_poll writev_all_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_writev_all_poll(&a->f.writev_all, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, a->f.writev_all.ret, a->f.writev_all.done);
}

/* ---- the end of a buffered stream ---- */

static void buffers_open(void)
{
    static unsigned char all[HELD];
    town_fill(all, HELD, 0);
    lines_open();
    for (int i = 0; i < LIVE; i++) {
        struct line *l = &lines[i];
        ASSERT_OK(weft_buf_new(l->stream, &(weft_buf_opts){.write_bytes = HELD}, &l->buf));
        ASSERT_EQ(weft_write_all(weft_buf_stream(l->buf), all, HELD - 1), HELD - 1);
    }
}

static void shutdown_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.shutdown = (struct weft_shutdown){.stream = weft_buf_stream(l->buf)};
}
static weft_poll shutdown_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_shutdown_poll(&a->f.shutdown, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, a->f.shutdown.ret, 0);
}

static int shuts(struct line *l)
{
    return weft_shutdown(weft_buf_stream(l->buf));
}

/* The end is behind the last byte, whoever was the one who came so far; where nobody was, here is one. */
static void even_shutdowns(void)
{
    for (int i = 0; i < LIVE; i++) {
        struct line *l = &lines[i];
        int r = 1;
        weft_task *last = weft_go(shuts, l);
        ASSERT_EQ(l->peer_at + peer_drain(l->peer, l->peer_at), HELD - 1);
        ASSERT_OK(weft_join(last, &r));
        ASSERT_OK(r);
        weft_close(l->buf);
        ASSERT_OK(close(l->peer));
    }
}

static void send_fds_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    town_fill(room_of(a), BYTES, l->at);
    a->f.send_fds = (struct weft_unix_send_fds){
        .stream = l->stream, .buf = room_of(a), .len = BYTES, .fds = &spare, .count = 1};
}
static weft_poll send_fds_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_unix_send_fds_poll(&a->f.send_fds, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, a->f.send_fds.ret, bytes_of(a->f.send_fds.ret));
}

static void even_sent_fds(void)
{
    even_writes(); /* a plain receive throws descriptors away */
    ASSERT_OK(close(spare));
}

/* ---- files ---- */

static void file_open(void)
{
    char path[] = "weft-give-up-XXXXXX";
    unsigned char *all = malloc(FILE_SIZE);
    int fd = mkstemp(path);
    ASSERT(fd >= 0 && all != NULL);
    town_fill(all, FILE_SIZE, 0);
    ASSERT_EQ(write(fd, all, FILE_SIZE), FILE_SIZE);
    free(all);
    ASSERT_OK(weft_file_open(path, O_RDONLY, 0, &file));
    ASSERT_OK(unlink(path));
    ASSERT_OK(close(fd));
    lines_open();
}

static void sendfile_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.sendfile = (struct weft_sendfile){
        .file = file, .offset = (int64_t)l->at, .count = BYTES, .to = l->stream};
}
static weft_poll sendfile_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_sendfile_poll(&a->f.sendfile, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, (ssize_t)a->f.sendfile.ret, a->f.sendfile.done);
}

static void even_files(void)
{
    even_writes();
    weft_file_close(file);
}

/* ---- copies ---- */

static void copies_open(void)
{
    lines_open();
    for (int i = 0; i < LIVE; i++)
        open_pair(&lines[i].sink, &lines[i].sink_peer);
}

/* In at one end, and room at the other; and when all have begun, the end. What a copy has read when it is given up is lost: so what arrives is counted. */
static void feed_copies(uint64_t *random)
{
    unsigned char some[3000] = {0};
    struct line *l = &lines[pool_random(random, LIVE)];
    size_t len = 1 + pool_random(random, sizeof some - 1);
    if (++accounts.fed > STEPS) {
        ASSERT_OK(shutdown(l->peer, SHUT_WR));
    } else {
        (void)send(l->peer, some, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    ssize_t n = recv(l->sink_peer, some, sizeof some, MSG_DONTWAIT);
    if (n > 0) l->peer_at += (uint64_t)n;
}

static void even_copies(void)
{
    for (int i = 0; i < LIVE; i++) {
        struct line *l = &lines[i];
        unsigned char some[3000];
        ssize_t n;
        weft_close(l->stream);
        weft_close(l->sink);
        while ((n = recv(l->sink_peer, some, sizeof some, 0)) > 0)
            l->peer_at += (uint64_t)n;
        ASSERT_EQ(n, 0);
        ASSERT_EQ(l->peer_at, l->at);
        ASSERT_OK(close(l->peer));
        ASSERT_OK(close(l->sink_peer));
    }
}

static void copy_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.copy = (struct weft_copy){.from = l->stream, .to = l->sink};
}
static weft_poll copy_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_copy_poll(&a->f.copy, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, (ssize_t)a->f.copy.ret, a->f.copy.done);
}

static void splice_begin(struct attempt *a)
{
    struct line *l = take_line(a);
    a->f.splice = (struct weft_splice){.from = l->stream, .to = l->sink};
}
static weft_poll splice_poll(struct attempt *a, weft_cx *cx)
{
    if (weft_splice_poll(&a->f.splice, cx) == WEFT_PENDING) return WEFT_PENDING;
    return leaves_line(a, (ssize_t)a->f.splice.ret, a->f.splice.done);
}

/* ---- all of them ---- */

static const struct shape shapes[] = {
    {"read", lines_open, read_begin, read_poll, nothing, feed_bytes, NULL, even_reads},
    {"readv", lines_open, readv_begin, readv_poll, nothing, feed_bytes, NULL, even_reads},
    {"peek", lines_open, peek_begin, peek_poll, nothing, feed_bytes, NULL, even_reads},
    {"read exact", lines_open, exact_begin, exact_poll, nothing, feed_bytes, NULL, even_reads},
    {"fds come", fds_open, recv_fds_begin, recv_fds_poll, nothing, feed_fds, NULL, even_fds},
    {"write", lines_open, write_begin, write_poll, nothing, feed_room, NULL, even_writes},
    {"write all", lines_open, write_all_begin, write_all_poll, nothing, feed_room, NULL,
     even_writes},
    {"writev", lines_open, writev_begin, writev_poll, nothing, feed_room, NULL, even_writes},
    {"writev all", lines_open, writev_all_begin, writev_all_poll, nothing, feed_room, NULL,
     even_writes},
    {"shutdown", buffers_open, shutdown_begin, shutdown_poll, nothing, feed_room, NULL,
     even_shutdowns},
    {"fds go", fds_open, send_fds_begin, send_fds_poll, nothing, feed_room, NULL, even_sent_fds},
    {"sendfile", file_open, sendfile_begin, sendfile_poll, nothing, feed_room, NULL, even_files},
    {"copy", copies_open, copy_begin, copy_poll, nothing, feed_copies, NULL, even_copies},
    {"splice", copies_open, splice_begin, splice_poll, nothing, feed_copies, NULL, even_copies},
};

static void give_up(struct crew *crew)
{
    give_up_rounds(shapes, sizeof shapes / sizeof shapes[0], crew, 6);
}

TEST_WITH(io_streams_given_up_at_every_moment, .timeout_s = 300)
{
    crew_each(give_up);
}
