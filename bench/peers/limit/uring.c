/* SPDX-License-Identifier: MIT
 *
 * uring - the bare loop on io_uring: an accept that goes on, a receive that goes on for each connection, into buffers of a ring; a send for
 * each answer; one system call for all that happened since the last.
 *
 * ORDER  A connection has one send under way, so that its answers do not overtake each other. What is received meanwhile waits: of echo the
 * buffers themselves, in a list, out of which they are sent; of HTTP a number, since all answers are the same.
 *     armed      the receive is under way: its answers carry MORE until the last
 *     sending    so many bytes are; 0: none
 * A connection is closed when neither is; what is to end it shuts the socket down, which ends the receive.
 * BUFFERS  The kernel fills them in the order in which they were given back, so there are few: as many as are in use at once, and not as many as
 * connections, which would be another page for each request. If there is none, the receive ends with -ENOBUFS, and goes on when there is.
 */
#include "http.h"
#include "limit.h"
#include "ring.h"
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define SQ_ENTRIES 4096
#define CQ_ENTRIES 32768
#define FILES_MAX  32768 /* connections */
#define BUFS       1024
#define NO_BUF     UINT16_MAX

struct conn {
    bool armed;
    bool ended; /* the peer sends no more, or it is broken: nothing more is read */
    bool broken;
    bool last;      /* HTTP: `end` follows, then it is over */
    bool told_over; /* shut down, or closed */
    bool starved;   /* in that list */
    uint32_t sending;

    /* echo: what is to be sent, in order */
    uint16_t first;
    uint16_t final;
    uint32_t sent; /* of the first */

    /* http */
    uint64_t owed;    /* bytes of answers that are not sent yet */
    uint32_t sent_at; /* in an answer, or in the end */
    const char *end;
    size_t end_bytes;
    size_t in_bytes;
    char *in; /* the beginning of a request that was cut; NULL: there was none yet */
};

enum { DO_ACCEPT, DO_RECV, DO_SEND, DO_NOTHING };

static enum limit_case serving;
static struct ring ring;
static struct conn *conns; /* by the number of the registered socket */
static uint32_t files;
static uint16_t buf_next[BUFS];  /* behind it in its connection's list */
static uint32_t buf_bytes[BUFS]; /* received */
static uint32_t *starved;        /* connections that found no buffer */
static uint32_t starved_count;
static uint32_t bufs_used; /* that the kernel does not have */

/* ---- entries ---- */

static struct io_uring_sqe *entry(uint8_t opcode, uint32_t socket, unsigned what)
{
    struct io_uring_sqe *sqe = ring_sqe(&ring);
    sqe->opcode = opcode;
    sqe->fd = (int)socket;
    sqe->flags = IOSQE_FIXED_FILE;
    sqe->user_data = (uint64_t)socket << 2 | what;
    return sqe;
}

static void arm_accept(int listener)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_ACCEPT, (uint32_t)listener, DO_ACCEPT);
    sqe->flags = 0;
    sqe->ioprio = IORING_ACCEPT_MULTISHOT;
    sqe->file_index = IORING_FILE_INDEX_ALLOC;
}

static void arm_recv(uint32_t at)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_RECV, at, DO_RECV);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->buf_group = 0;
    conns[at].armed = true;
}

static void start_send(uint32_t at, const char *from, size_t bytes)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_SEND, at, DO_SEND);
    sqe->addr = (uint64_t)(uintptr_t)from;
    sqe->len = (uint32_t)bytes;
    sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
    conns[at].sending = (uint32_t)bytes;
}

static void give_buf(uint16_t id)
{
    ring_buf_give(&ring, id);
    bufs_used--;
}

/* ---- ends ---- */

static void close_it(uint32_t at)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_CLOSE, 0, DO_NOTHING);
    sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
    sqe->file_index = at + 1;
    conns[at].told_over = true;
}

static void shut_down(uint32_t at)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_SHUTDOWN, at, DO_NOTHING);
    sqe->len = SHUT_RDWR;
    conns[at].told_over = true;
}

static void drop_bufs(struct conn *c)
{
    for (uint16_t id = c->first; id != NO_BUF; id = buf_next[id])
        give_buf(id);
    c->first = NO_BUF;
}

/* Nothing is to be sent any more: is it over? */
static void end_if_over(uint32_t at)
{
    struct conn *c = &conns[at];

    if (c->sending || !(c->ended || c->broken || c->last)) return;
    if (c->armed) {
        if (!c->told_over) shut_down(at); /* the receive's last answer comes back here */
        return;
    }
    drop_bufs(c);
    free(c->in);
    c->in = NULL;
    close_it(at);
}

/* ---- echo ---- */

static void echo_send(uint32_t at)
{
    struct conn *c = &conns[at];
    if (c->sending || c->first == NO_BUF || c->broken) return;
    start_send(at, ring_buf(&ring, c->first) + c->sent, buf_bytes[c->first] - c->sent);
}

static void echo_received(uint32_t at, uint16_t id, uint32_t bytes)
{
    struct conn *c = &conns[at];

    buf_bytes[id] = bytes;
    buf_next[id] = NO_BUF;
    if (c->first == NO_BUF) {
        c->first = id;
    } else {
        buf_next[c->final] = id;
    }
    c->final = id;
    echo_send(at);
}

static void echo_sent(uint32_t at, uint32_t bytes)
{
    struct conn *c = &conns[at];
    uint16_t id = c->first;

    serve_add(bytes);
    c->sent += bytes;
    if (c->sent == buf_bytes[id]) {
        c->first = buf_next[id];
        c->sent = 0;
        give_buf(id);
    }
    echo_send(at);
}

/* ---- http ---- */

/* The answers are all alike: where one is depends on how much of it is sent. */
static void http_send(uint32_t at)
{
    struct conn *c = &conns[at];
    if (c->sending || c->broken) return;
    if (c->owed > 0) {
        size_t most = sizeof(http_answers) - 1 - c->sent_at;
        start_send(at, http_answers + c->sent_at, c->owed < most ? (size_t)c->owed : most);
    } else if (c->end) {
        start_send(at, c->end + c->sent_at, c->end_bytes - c->sent_at);
    }
}

static void http_sent(uint32_t at, uint32_t bytes)
{
    struct conn *c = &conns[at];

    if (c->owed > 0) {
        c->owed -= bytes;
        c->sent_at = (c->sent_at + bytes) % HTTP_ANSWER_BYTES;
    } else {
        c->sent_at += bytes;
        if (c->sent_at == c->end_bytes) c->end = NULL;
    }
    http_send(at);
}

/* Returns how many bytes are through. */
static size_t http_requests(struct conn *c, const char *from, size_t bytes)
{
    struct http_work work;
    size_t used = 0;

    do {
        work = http_take(from + used, bytes - used);
        used += work.used;
        c->owed += work.good * HTTP_ANSWER_BYTES;
        serve_add(work.good + work.last);
    } while (work.good == HTTP_BATCH && used < bytes);
    if (work.last) {
        c->last = true;
        c->end = work.end;
        c->end_bytes = work.end_bytes;
    }
    return used;
}

static void http_keep(struct conn *c, const char *from, size_t bytes)
{
    if (!c->in) c->in = malloc((size_t)HTTP_HEAD_MAX + SERVE_BUF_BYTES);
    if (!c->in) limit_give_up("the beginning of a request");
    memcpy(c->in + c->in_bytes, from, bytes);
    c->in_bytes += bytes;
}

static void http_received(uint32_t at, uint16_t id, uint32_t bytes)
{
    struct conn *c = &conns[at];
    const char *from = ring_buf(&ring, id);

    if (c->last) { /* nothing more is answered */
    } else if (c->in_bytes > 0) {
        http_keep(c, from, bytes);
        size_t used = http_requests(c, c->in, c->in_bytes);
        c->in_bytes -= used;
        memmove(c->in, c->in + used, c->in_bytes);
    } else {
        size_t used = http_requests(c, from, bytes);
        if (used < bytes) http_keep(c, from + used, bytes - used);
    }
    give_buf(id);
    http_send(at);
}

/* ---- answers ---- */

static void accepted(const struct io_uring_cqe *cqe, int listener)
{
    if (cqe->res >= 0) {
        conns[cqe->res] = (struct conn){.first = NO_BUF};
        arm_recv((uint32_t)cqe->res);
    }
    if (!(cqe->flags & IORING_CQE_F_MORE) && !serve_is_stopped()) arm_accept(listener);
}

static void starve(uint32_t at)
{
    starved[starved_count++] = at;
    conns[at].starved = true;
}

static void received(const struct io_uring_cqe *cqe, uint32_t at)
{
    struct conn *c = &conns[at];

    c->armed = cqe->flags & IORING_CQE_F_MORE;
    if (cqe->res > 0) {
        uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
        bufs_used++;
        if (serving == LIMIT_ECHO) {
            echo_received(at, id, (uint32_t)cqe->res);
        } else {
            http_received(at, id, (uint32_t)cqe->res);
        }
        if (!c->armed && !c->last) arm_recv(at);
    } else if (cqe->res == -ENOBUFS) {
        starve(at);
        return;
    } else {
        c->ended = true;
        if (cqe->res < 0) c->broken = true;
    }
    end_if_over(at);
}

static void sent(const struct io_uring_cqe *cqe, uint32_t at)
{
    struct conn *c = &conns[at];

    c->sending = 0;
    if (cqe->res <= 0) {
        c->broken = true;
    } else if (serving == LIMIT_ECHO) {
        echo_sent(at, (uint32_t)cqe->res);
    } else {
        http_sent(at, (uint32_t)cqe->res);
    }
    end_if_over(at);
}

/* Some may have been closed since, and their numbers be others' by now. */
static void feed_starved(void)
{
    if (bufs_used == BUFS) return; /* a send will give one back */
    for (uint32_t i = 0; i < starved_count; i++) {
        struct conn *c = &conns[starved[i]];
        if (c->starved && !c->told_over) arm_recv(starved[i]);
        c->starved = false;
    }
    starved_count = 0;
}

static void handle(const struct io_uring_cqe *cqe, int listener)
{
    uint32_t at = (uint32_t)(cqe->user_data >> 2);
    switch (cqe->user_data & 3) {
    case DO_ACCEPT:
        accepted(cqe, listener);
        break;
    case DO_RECV:
        received(cqe, at);
        break;
    case DO_SEND:
        sent(cqe, at);
        break;
    default:
        break;
    }
}

static void begin(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) limit_give_up("getrlimit");
    files = limit.rlim_cur < FILES_MAX ? (uint32_t)limit.rlim_cur : FILES_MAX;
    conns = calloc(files, sizeof(*conns));
    starved = calloc(files, sizeof(*starved));
    if (!conns || !starved) limit_give_up("connections");
    ring_open(&ring, SQ_ENTRIES, CQ_ENTRIES, files);
    ring_open_bufs(&ring, BUFS, SERVE_BUF_BYTES);
}

void limit_uring(int listener, enum limit_case which)
{
    const struct io_uring_cqe *cqe;

    serving = which;
    begin();
    arm_accept(listener);
    while (!serve_is_stopped()) {
        (void)ring_enter(&ring, 1);
        while ((cqe = ring_peek(&ring))) {
            handle(cqe, listener);
            ring_seen(&ring);
        }
        if (starved_count > 0) feed_starved();
    }
    free(conns);
    free(starved);
}
