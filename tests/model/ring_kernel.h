/* SPDX-License-Identifier: MIT
 *
 * ring_kernel - the kernel behind a ring, for model tests: a queue of requests that it copies as
 * they are submitted, one of answers that it fills from whichever thread makes bytes or connections
 * come. A lock of its own orders it all; the tail of the answers is an atomic, as in the ring.
 *
 * Whether a request goes on behind an answer is its choice, up to `may_end` times. A file is a
 * count of what was sent to it and of what was received from it; a byte says which one of which
 * file it is. Poll, receive and accept that go on, sends and cancels are known; while a file `is_full`
 * sends find no room, and when it is not any more, whoever polls for that is told. It has a table of so many
 * `places`, and may refuse one. In models of floods it gives an epoll, too, of edges.
 */
#ifndef MODEL_RING_KERNEL_H
#define MODEL_RING_KERNEL_H

#include "base/alloc.h"
#include "sys/epoll.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "sys/ringbuf.h"
#include "sys/socket.h"

#include <string.h>

/* ---- the kernel ---- */

enum {
    EVENT_FD = 3,
    EPOLL_FD = 5,
    FIRST_FD = 10,
    FILES = 2,
    ANSWERS = 64,
    REQUESTS = 16,
    ENTRIES = 8,
    BYTES = 50
};

struct request {
    uint64_t token;
    int fd;
    uint8_t opcode;
    bool lives;
};

static _Atomic uint32_t kernel; /* its lock */
static struct request requests[REQUESTS];
static unsigned sent[FILES];     /* to a file, bytes or connections */
static unsigned received[FILES]; /* of those */
static bool closed[FILES];       /* by the program; the requests have it still */
static unsigned signals;         /* of the port's event */
static unsigned may_end;         /* so many requests may end behind an answer, any that it likes */
static bool is_full;             /* there is no room to send to */
static unsigned sent_out;        /* bytes that were sent by requests */
static _Atomic bool is_lent;     /* the sender's buffer */
static unsigned may_refuse;      /* so many submits may find it without memory, any that it likes */
static unsigned places;          /* of its table, a test's choice */
static int place[FILES];         /* which file's descriptor it was; 0: empty */
static struct weft__ring_done late; /* the answer of one that was taken, which comes behind those that are fetched next */

static struct io_uring_sqe queue[ENTRIES];
static unsigned entry_count;

static struct weft__ring_done answers_room[ANSWERS];
static _Atomic uint32_t posted, reaped; /* how many ever */

static bool given[WEFT__URING_BUFFERS]; /* the kernel's */
static char room[WEFT__URING_BUFFERS * (WEFT__URING_BUFFER_BYTES + WEFT__CACHE_LINE)];
static const struct weft__ringbuf layout = {.memory = room, .bytes = WEFT__URING_BUFFER_BYTES};

#if !defined(FLOODS)
#define FLOODS 0
#endif
static const bool floods = FLOODS; /* at any look there may be more than one brings, or not */

/* What is in the epoll. */
static struct {
    bool is_in;
    bool edge; /* something has come since it was told */
    uint64_t token;
} watched[FILES];

static unsigned robber; /* thread that looks after the port of another */
static bool is_mute;    /* his signals are lost: for a twin */
static bool silenced; /* a last answer that brought nothing was fetched: for a twin */

static void post(uint64_t token, int result, uint32_t flags)
{
    uint32_t n = load_relaxed(&posted); /* relaxed: under the kernel's lock */
    model_assert(n < ANSWERS);
    answers_room[n] = (struct weft__ring_done){token, result, flags};
    store_release(&posted, n + 1);
    (void)weft__futex_wake(&posted, MODEL_THREADS_MAX);
}

static void answer(struct request *request, int result, uint32_t flags)
{
    if (may_end > 0 && model_choose(2)) {
        may_end--;
        request->lives = false;
    }
    post(request->token, result, request->lives ? flags | IORING_CQE_F_MORE : flags);
}

static void end_request(struct request *request, int result)
{
    request->lives = false;
    post(request->token, result, 0);
}

static int free_buffer(void)
{
    for (int i = 0; i < WEFT__URING_BUFFERS; i++)
        if (given[i]) return i;
    return -1;
}

static void receive_one(struct request *request, unsigned file)
{
    int buffer = free_buffer();
    if (buffer < 0) {
        end_request(request, -ENOBUFS);
        return;
    }
    given[buffer] = false;
    *weft__ringbuf_at(&layout, (uint32_t)buffer) = (char)(BYTES * file + received[file]++);
    answer(request, 1, IORING_CQE_F_BUFFER | (uint32_t)buffer << IORING_CQE_BUFFER_SHIFT);
}

/* ---- its epoll ---- */

static uint32_t readiness(unsigned file)
{
    return (sent[file] > received[file] ? (uint32_t)EPOLLIN : 0) | (is_full ? 0 : (uint32_t)EPOLLOUT);
}

static bool has_edges(void)
{
    bool found = false;
    for (unsigned i = 0; i < FILES; i++)
        found |= watched[i].is_in && watched[i].edge && readiness(i);
    return found;
}

/* ---- requests ---- */

/* What a request does with what is there. */
static void serve(struct request *request)
{
    if (request->fd == EPOLL_FD) {
        if (has_edges()) end_request(request, EPOLLIN);
        return;
    }
    if (request->fd == EVENT_FD) {
        if (signals > 0) answer(request, EPOLLIN, 0);
        return;
    }
    unsigned file = (unsigned)request->fd - FIRST_FD;
    if (request->opcode == IORING_OP_POLL_ADD && (request->token & WEFT__URING_POLL_WRITE)) {
        if (!is_full) answer(request, EPOLLOUT, 0);
        return;
    }
    if (request->opcode == IORING_OP_POLL_ADD) {
        if (sent[file] > received[file]) answer(request, EPOLLIN, 0);
        return;
    }
    while (request->lives && sent[file] > received[file]) {
        if (request->opcode == IORING_OP_RECV)
            receive_one(request, file);
        else
            answer(request, 100 + (int)received[file]++, 0);
    }
}

static void cancel(uint64_t token, bool all)
{
    for (unsigned i = 0; i < REQUESTS; i++)
        if (requests[i].lives && (all || requests[i].token == token))
            end_request(&requests[i], -ECANCELED);
}

static void begin_request(const struct io_uring_sqe *sqe)
{
    for (unsigned i = 0; i < REQUESTS; i++) {
        model_assert(!requests[i].lives ||
                     requests[i].token != sqe->user_data); /* it would be there twice */
        if (requests[i].opcode) continue;
        requests[i] = (struct request){sqe->user_data, sqe->fd, sqe->opcode, true};
        serve(&requests[i]);
        return;
    }
    model_assert(false); /* too few of them in this model */
}

static void serve_all(int fd)
{
    for (unsigned i = 0; i < REQUESTS; i++)
        if (requests[i].lives && requests[i].fd == fd) serve(&requests[i]);
}

/* Something came for a file; those who wait for it in requests have it now, or are told. */
static void tell_requests(int fd)
{
    serve_all(fd);
    unsigned file = (unsigned)fd - FIRST_FD;
    if (file >= FILES || !watched[file].is_in) return;
    watched[file].edge = true;
    serve_all(EPOLL_FD);
}

int weft__epoll_open(int *into)
{
    *into = EPOLL_FD;
    return floods ? 0 : -EMFILE;
}

int weft__epoll_add(int epoll, int fd, uint32_t events, uint64_t data)
{
    unsigned file = (unsigned)fd - FIRST_FD;
    (void)events;
    model_lock(&kernel);
    model_assert(epoll == EPOLL_FD && !closed[file] && !watched[file].is_in);
    watched[file].is_in = true;
    watched[file].edge = true;
    watched[file].token = data;
    serve_all(EPOLL_FD);
    model_unlock(&kernel);
    return 0;
}

int weft__epoll_del(int epoll, int fd)
{
    unsigned file = (unsigned)fd - FIRST_FD;
    model_lock(&kernel);
    model_assert(epoll == EPOLL_FD && watched[file].is_in);
    watched[file].is_in = false;
    model_unlock(&kernel);
    return 0;
}

int weft__epoll_wait(int epoll, struct epoll_event *into, int max, int64_t timeout_ns)
{
    int n = 0;
    model_assert(epoll == EPOLL_FD && timeout_ns == 0);
    model_lock(&kernel);
    for (unsigned i = 0; i < FILES && n < max; i++) {
        if (!watched[i].is_in || !watched[i].edge) continue;
        watched[i].edge = false;
        if (readiness(i)) into[n++] = (struct epoll_event){.events = readiness(i), .data.u64 = watched[i].token};
    }
    model_unlock(&kernel);
    return n;
}

int weft__fd_ready(int fd, int for_what)
{
    (void)for_what;
    model_assert(fd == EPOLL_FD);
    return has_edges();
}

__attribute__((unused)) static void comes(void *fd)
{
    model_lock(&kernel);
    sent[(intptr_t)fd - FIRST_FD]++;
    tell_requests((int)(intptr_t)fd);
    model_unlock(&kernel);
}

static int signal_event(int fd)
{
    model_assert(fd == EVENT_FD);
    if (is_mute && model_self() == robber) return 0;
    model_lock(&kernel);
    signals++;
    tell_requests(fd);
    model_unlock(&kernel);
    return 0;
}

/* By a system call: all that is there, into the first buffer. */
int weft__socket_accept(int fd, struct weft__address *from, int *into)
{
    (void)from;
    unsigned file = (unsigned)fd - FIRST_FD;
    model_lock(&kernel);
    model_assert(!closed[file]);
    bool there = sent[file] > received[file];
    if (there) *into = 100 + (int)received[file]++;
    model_unlock(&kernel);
    return there ? 0 : -EAGAIN;
}

ssize_t weft__socket_recv(int fd, const struct iovec *iov, int count, bool peek)
{
    unsigned file = (unsigned)fd - FIRST_FD;
    ssize_t n = 0;
    (void)count, (void)peek;
    model_lock(&kernel);
    model_assert(!closed[file]);
    while (sent[file] > received[file])
        ((char *)iov->iov_base)[n++] = (char)(BYTES * file + received[file]++);
    model_unlock(&kernel);
    return n > 0 ? n : -EAGAIN;
}

void weft__fd_close(int fd)
{
    model_lock(&kernel);
    if (fd >= FIRST_FD && fd < FIRST_FD + FILES) closed[fd - FIRST_FD] = true;
    model_unlock(&kernel);
}

/* There are no files here. */
void weft__files_close(struct weft__port *port)
{
    (void)port;
}

/* ---- the ring ---- */

int weft__ring_open_wide(struct weft__ring *ring, uint32_t entries, uint32_t places)
{
    (void)entries, (void)places;
    *ring = (struct weft__ring){.fd = 4, .coop = true, .features = IORING_FEAT_EXT_ARG};
    return 0;
}

void weft__ring_close(struct weft__ring *ring)
{
    ring->fd = -1;
}

int weft__ring_table_open(const struct weft__ring *ring, uint32_t most)
{
    (void)ring, (void)most;
    return (int)places;
}

void weft__ring_table_close(const struct weft__ring *ring)
{
    (void)ring;
    memset(place, 0, sizeof(place));
}

int weft__ring_probe(const struct weft__ring *ring, uint8_t opcode)
{
    (void)ring, (void)opcode;
    return 0;
}

struct io_uring_sqe *weft__ring_sqe(struct weft__ring *ring)
{
    (void)ring;
    if (entry_count == ENTRIES) return NULL;
    memset(&queue[entry_count], 0, sizeof(queue[0]));
    return &queue[entry_count++];
}

uint32_t weft__ring_unsubmitted(const struct weft__ring *ring)
{
    (void)ring;
    return entry_count;
}

const struct io_uring_sqe *weft__ring_withdraw(struct weft__ring *ring)
{
    (void)ring;
    return entry_count ? &queue[--entry_count] : NULL;
}

static void cancel_submitted(const struct io_uring_sqe *sqe)
{
    bool all = sqe->cancel_flags & IORING_ASYNC_CANCEL_ANY;
    uint32_t before = load_relaxed(&posted); /* relaxed: under the kernel's lock */
    cancel(sqe->addr, all);
    post(sqe->user_data, load_relaxed(&posted) == before ? -ENOENT : 0, 0); /* relaxed: likewise */
}

/* Of the slot with this index. */
static int fd_of_slot(uint32_t index);

static void update_submitted(const struct io_uring_sqe *sqe)
{
    int fd = *(const int *)(uintptr_t)sqe->addr;
    bool refused = fd >= 0 && model_choose(2);
    model_assert(sqe->off < places);
    model_assert(fd < 0 || !place[sqe->off]); /* it would be lost */
    if (!refused) place[sqe->off] = fd < 0 ? 0 : fd;
    if (!late.data && model_choose(2))
        late = (struct weft__ring_done){.data = sqe->user_data, .result = refused ? -ENOMEM : 1};
    else
        post(sqe->user_data, refused ? -ENOMEM : 1, 0);
}

static void post_late(void)
{
    if (late.data) post(late.data, late.result, 0);
    late.data = 0;
}

/* By whom a place keeps open. */
__attribute__((unused)) static bool has_place(int fd)
{
    bool found = false;
    model_lock(&kernel);
    for (unsigned i = 0; i < FILES; i++)
        found |= place[i] == fd;
    model_unlock(&kernel);
    return found;
}

/* Done on the spot, or not at all. */
static void send_submitted(const struct io_uring_sqe *sqe)
{
    int fd = sqe->flags & IOSQE_FIXED_FILE ? place[sqe->fd] : sqe->fd;
    model_assert(load_relaxed(&is_lent)); /* relaxed: the ring's lock orders */
    model_assert(fd == fd_of_slot((uint32_t)(sqe->user_data >> 8)));
    model_assert(!closed[(unsigned)fd - FIRST_FD]); /* its number may be another's */
    if (!is_full) sent_out += sqe->len;
    post(sqe->user_data, is_full ? -EAGAIN : (int)sqe->len, 0);
}

int weft__ring_submit(struct weft__ring *ring)
{
    (void)ring;
    int taken = (int)entry_count;
    model_lock(&kernel);
    post_late();
    if (may_refuse > 0 && taken > 0 && model_choose(2)) {
        may_refuse--;
        model_unlock(&kernel);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < entry_count; i++) {
        if (queue[i].opcode == IORING_OP_ASYNC_CANCEL)
            cancel_submitted(&queue[i]);
        else if (queue[i].opcode == IORING_OP_SEND)
            send_submitted(&queue[i]);
        else if (queue[i].opcode == IORING_OP_FILES_UPDATE)
            update_submitted(&queue[i]);
        else
            begin_request(&queue[i]);
    }
    entry_count = 0;
    model_unlock(&kernel);
    return taken;
}

bool weft__ring_due(const struct weft__ring *ring)
{
    (void)ring;
    return load_acquire(&posted) != load_relaxed(&reaped); /* as the real one */
}

bool weft__ring_has(const struct weft__ring *ring)
{
    return weft__ring_due(ring);
}

uint32_t weft__ring_left(const struct weft__ring *ring)
{
    (void)ring;
    uint32_t left = load_acquire(&posted) - load_relaxed(&reaped); /* as the real one */
    return floods && model_choose(2) ? left + 2 * WEFT__URING_BUFFERS : left;
}

uint32_t weft__ring_reap(struct weft__ring *ring, struct weft__ring_done *into, uint32_t max)
{
    uint32_t n = 0;
    uint32_t head = load_relaxed(&reaped); /* relaxed: under the ring's lock */
    uint32_t tail = load_acquire(&posted);
    (void)ring;
    for (; n < max && head + n < tail; n++) {
        into[n] = answers_room[head + n];
        if (into[n].result == -ECANCELED || into[n].result == -ENOBUFS) silenced = true;
    }
    store_release(&reaped, head + n);
    return n;
}

int weft__ring_wait(const struct weft__ring *ring, int64_t timeout_ns)
{
    (void)ring;
    model_lock(&kernel);
    post_late();
    model_unlock(&kernel);
    uint32_t seen = load_acquire(&posted);
    if (seen == load_relaxed(&reaped))
        (void)weft__futex_wait(&posted, seen, timeout_ns); /* relaxed: his own, or newer */
    return 0;
}

int weft__ringbuf_open(struct weft__ringbuf *bufs, const struct weft__ring *ring, uint32_t count,
                       uint32_t bytes)
{
    (void)ring;
    *bufs = (struct weft__ringbuf){.memory = room, .count = count, .bytes = bytes};
    return 0;
}

void weft__ringbuf_stop(struct weft__ringbuf *bufs, const struct weft__ring *ring)
{
    (void)bufs, (void)ring;
}

void weft__ringbuf_close(struct weft__ringbuf *bufs)
{
    (void)bufs;
}

void weft__ringbuf_give(struct weft__ringbuf *bufs, uint32_t number)
{
    (void)bufs;
    model_lock(&kernel);
    model_assert(!given[number]); /* it would be there twice */
    given[number] = true;
    model_unlock(&kernel);
}

/* ---- the rest of the system ---- */

int weft__event_open(int *into)
{
    *into = EVENT_FD;
    return 0;
}

int weft__fd_has_readiness(int fd)
{
    (void)fd;
    return 0;
}

void *weft__alloc(size_t bytes)
{
    return model_alloc(bytes);
}

void *weft__alloc_aligned(size_t bytes, size_t align)
{
    (void)align;
    return model_alloc(bytes);
}

void weft__free(void *memory)
{
    if (memory) model_free(memory);
}

int weft__socket_peer(int fd, struct weft__address *into)
{
    (void)fd, (void)into;
    return 0;
}

static ssize_t nobody_calls(int fd, const struct iovec *iov, int count)
{
    (void)fd, (void)iov, (void)count;
    model_assert(false);
    return -ENOSYS;
}

ssize_t weft__socket_recv_unix(int fd, const struct iovec *iov, int count, bool *cut)
{
    *cut = false;
    return nobody_calls(fd, iov, count);
}

ssize_t weft__socket_send(int fd, const struct iovec *iov, int count)
{
    (void)iov, (void)count;
    model_lock(&kernel);
    model_assert(!closed[(unsigned)fd - FIRST_FD]);
    bool full = is_full;
    if (!full) sent_out++; /* one byte */
    if (!full) tell_requests(fd); /* and there is room for another */
    model_unlock(&kernel);
    return full ? -EAGAIN : 1;
}

ssize_t weft__pipe_read(int fd, const struct iovec *iov, int count)
{
    return nobody_calls(fd, iov, count);
}

ssize_t weft__pipe_write(int fd, const struct iovec *iov, int count)
{
    return nobody_calls(fd, iov, count);
}

static void kernel_made(unsigned ends)
{
    memset(requests, 0, sizeof(requests));
    memset(sent, 0, sizeof(sent));
    memset(received, 0, sizeof(received));
    memset(closed, 0, sizeof(closed));
    memset(place, 0, sizeof(place));
    late.data = 0;
    memset(given, true, sizeof(given));
    store_relaxed(&posted, 0);
    store_relaxed(&reaped, 0);
    entry_count = 0;
    signals = 0;
    may_end = ends;
    memset(watched, 0, sizeof(watched));
    is_full = false;
    sent_out = 0;
    store_relaxed(&is_lent, false);
    may_refuse = 0;
}

#endif
