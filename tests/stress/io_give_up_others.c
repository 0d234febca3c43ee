/* SPDX-License-Identifier: MIT
 *
 * What is waited for beside the bytes of a stream, given up at every moment: connections, both ways, datagrams of every kind, descriptors of the
 * program's own, urgent data, children, signals, names. Every connection, datagram and token is accounted for: who was cancelled has none.
 */
#include "door.h"

#include <signal.h>
#include <sys/eventfd.h>

union frames {
    struct weft_accept accept;
    struct weft_tcp_connect tcp_connect;
    struct weft_unix_connect unix_connect;
    struct {
        struct weft_udp_recv_from op;
        weft_addr from;
    } udp_recv;
    struct weft_udp_send_to udp_send;
    struct weft_dgram_recv dgram_recv;
    struct weft_dgram_send dgram_send;
    struct weft_dgram_send_to dgram_send_to;
    struct weft_fd_readable readable;
    struct weft_fd_writable writable;
    struct weft_fd_wait wait;
    struct weft_fd_try tries;
    struct weft_proc_wait proc_wait;
    struct weft_signal_wait signal_wait;
    struct weft_resolve resolve;
};

#include "give_up.h"

/* Of the shape whose turn it is. */
static struct {
    struct town_gate gate;
    weft_udp *udp;
    weft_addr to;
    weft_dgram *dgram;
    weft_fd *fd;
    weft_proc *proc;
    weft_signal *signal;
    int peer; /* a plain end */
    char path[100];
} at;

static _Atomic uint64_t taken; /* by who got something; relaxed: a count */

static void world_init(void)
{
    store_relaxed(&taken, 0);
}

/* ---- accept ---- */

static void door_open(void)
{
    town_open(&at.gate);
}

/* Nobody waits for the end of it: a connection that was closed is accepted all the same. */
static void feed_guest(uint64_t *random)
{
    if (accounts.fed > 1000 || pool_random(random, 4) == 0) return;
    int fd = peer_connect(at.gate.address, 0);
    accounts.fed++;
    ASSERT_OK(close(fd));
}

static void accept_begin(struct attempt *a)
{
    a->f.accept =
        (struct weft_accept){.listener = at.gate.listener, .into = (weft_stream **)&a->made};
}
static weft_poll accept_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(accept, weft_accept);
}
static void close_guest(struct attempt *a)
{
    weft_close((weft_stream *)a->made);
}

static void even_door(void)
{
    door_even(at.gate.listener, accounts.fed, read_count(&accounts.ok));
    weft_close(at.gate.listener);
}

/* ---- connect ---- */

static void plain_door_open(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof addr;
    at.peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_GE(at.peer, 0);
    ASSERT_OK(bind(at.peer, (struct sockaddr *)&addr, sizeof addr));
    ASSERT_OK(listen(at.peer, 1000));
    ASSERT_OK(getsockname(at.peer, (struct sockaddr *)&addr, &bytes));
    (void)snprintf(at.gate.address, sizeof at.gate.address, "127.0.0.1:%d", ntohs(addr.sin_port));
}

/* A queue for one: who finds it full pauses, and tries again. */
static void narrow_door_open(void)
{
    at.peer = peer_bind(SOCK_STREAM, "narrow", at.path);
    ASSERT_OK(listen(at.peer, 0));
}

static void
feed_door(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    int fd = accept4(at.peer, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) ASSERT_OK(close(fd));
}

/* That nothing stays open of those who gave up the harness sees. */
static void close_plain_door(void)
{
    ASSERT_OK(close(at.peer));
}

static void tcp_connect_begin(struct attempt *a)
{
    a->f.tcp_connect =
        (struct weft_tcp_connect){.address = at.gate.address, .into = (weft_stream **)&a->made};
}
static weft_poll tcp_connect_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(tcp_connect, weft_tcp_connect);
}

static void unix_connect_begin(struct attempt *a)
{
    a->f.unix_connect =
        (struct weft_unix_connect){.path = at.path, .into = (weft_stream **)&a->made};
}
static weft_poll unix_connect_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(unix_connect, weft_unix_connect);
}

/* ---- UDP ---- */

static void udp_open(void)
{
    ASSERT_OK(weft_udp_bind("127.0.0.1:0", &at.udp));
    ASSERT_OK(weft_udp_local(at.udp, &at.to));
    at.peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_GE(at.peer, 0);
}

/* No more than fits, so that none is thrown away by the kernel. */
static void feed_udp(uint64_t *random)
{
    uint64_t there = accounts.fed - read_count(&accounts.ok);
    if (there > 50 || pool_random(random, 4) == 0) return;
    const struct sockaddr *to = (const struct sockaddr *)(const void *)at.to.weft__data;
    ASSERT_EQ(sendto(at.peer, &accounts.fed, 8, 0, to, at.to.bytes), 8);
    accounts.fed++;
}

static void udp_recv_begin(struct attempt *a)
{
    a->f.udp_recv.op = (struct weft_udp_recv_from){
        .udp = at.udp, .buf = &a->value, .len = 8, .from = &a->f.udp_recv.from};
}
static weft_poll udp_recv_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(udp_recv.op, weft_udp_recv_from);
}
static void sum_up(struct attempt *a)
{
    ASSERT_EQ(a->ret, 8);
    fetch_add_relaxed(&taken, a->value + 1);
}

/* Each datagram went to one of them, or is still there: their numbers add up. */
static void even_udp(void)
{
    uint64_t number;
    while (recv(weft_udp_fd(at.udp), &number, 8, MSG_DONTWAIT) == 8)
        fetch_add_relaxed(&taken, number + 1);
    ASSERT_EQ(load_relaxed(&taken), accounts.fed * (accounts.fed + 1) / 2);
    weft_close(at.udp);
    ASSERT_OK(close(at.peer));
}

static void udp_sink_open(void)
{
    socklen_t bytes = sizeof at.to.weft__data;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    udp_open();
    ASSERT_OK(bind(at.peer, (struct sockaddr *)&addr, sizeof addr));
    ASSERT_OK(getsockname(at.peer, (struct sockaddr *)(void *)at.to.weft__data, &bytes));
    at.to.bytes = bytes;
}

/* Counts what arrives at the plain end. */
static void feed_sink(uint64_t *random)
{
    char message[16];
    if (pool_random(random, 2)) return;
    while (recv(at.peer, message, sizeof message, MSG_DONTWAIT) > 0)
        accounts.fed++;
}

static void udp_send_begin(struct attempt *a)
{
    a->f.udp_send =
        (struct weft_udp_send_to){.udp = at.udp, .buf = "message!", .len = 8, .to = &at.to};
}
static weft_poll udp_send_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(udp_send, weft_udp_send_to);
}

static void drain_sink(void)
{
    char message[16];
    while (recv(at.peer, message, sizeof message, MSG_DONTWAIT) > 0)
        accounts.fed++;
    ASSERT_EQ(accounts.fed, read_count(&accounts.ok)); /* who was cancelled has sent nothing */
    ASSERT_OK(close(at.peer));
}
static void even_udp_sink(void)
{
    drain_sink();
    weft_close(at.udp);
}

/* ---- datagrams of Unix sockets ---- */

static void packets_open(void)
{
    weft_dgram *other;
    ASSERT_OK(weft_packet_pair(&at.dgram, &other));
    at.peer = dup(weft_dgram_fd(other));
    ASSERT_GE(at.peer, 0);
    weft_close(other);
}

static void feed_packets(uint64_t *random)
{
    if (pool_random(random, 4) == 0) return;
    if (send(at.peer, &accounts.fed, 8, MSG_DONTWAIT | MSG_NOSIGNAL) == 8) accounts.fed++;
}

static void dgram_recv_begin(struct attempt *a)
{
    a->f.dgram_recv = (struct weft_dgram_recv){.dgram = at.dgram, .buf = &a->value, .len = 8};
}
static weft_poll dgram_recv_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(dgram_recv, weft_dgram_recv);
}
static void even_packets(void)
{
    uint64_t number;
    while (recv(weft_dgram_fd(at.dgram), &number, 8, MSG_DONTWAIT) == 8)
        fetch_add_relaxed(&taken, number + 1);
    ASSERT_EQ(load_relaxed(&taken), accounts.fed * (accounts.fed + 1) / 2);
    weft_close(at.dgram);
    ASSERT_OK(close(at.peer));
}

/* Full from the beginning: a send waits until something was received. */
static void full_packets_open(void)
{
    packets_open();
    while (send(weft_dgram_fd(at.dgram), "message!", 8, MSG_DONTWAIT) == 8)
        (void)fetch_add_relaxed(&accounts.ok, 1); /* on the account of those who send */
}
static void
feed_one_from_sink(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    char message[16];
    (void)random;
    if (recv(at.peer, message, sizeof message, MSG_DONTWAIT) > 0) accounts.fed++;
}

static void dgram_send_begin(struct attempt *a)
{
    a->f.dgram_send = (struct weft_dgram_send){.dgram = at.dgram, .buf = "message!", .len = 8};
}
static weft_poll dgram_send_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(dgram_send, weft_dgram_send);
}
static void even_dgram_sink(void)
{
    drain_sink();
    weft_close(at.dgram);
}

/* To somebody whose queue the kernel does not watch: tried again behind a pause. */
static void anybody_open(void)
{
    at.peer = peer_bind(SOCK_DGRAM, "anybody", at.path);
    ASSERT_OK(weft_dgram_bind(NULL, &at.dgram));
    ASSERT_OK(weft_addr_of_path(at.path, &at.to));
}

static void dgram_send_to_begin(struct attempt *a)
{
    a->f.dgram_send_to =
        (struct weft_dgram_send_to){.dgram = at.dgram, .buf = "message!", .len = 8, .to = &at.to};
}
static weft_poll dgram_send_to_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(dgram_send_to, weft_dgram_send_to);
}

/* ---- descriptors of the program's own ---- */

static void tokens_open(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
    ASSERT_GE(fd, 0);
    ASSERT_OK(weft_fd_open(fd, &at.fd));
}

static void feed_token(uint64_t *random)
{
    uint64_t one = 1;
    if (pool_random(random, 4) == 0) return;
    ASSERT_EQ(write(weft_fd_number(at.fd), &one, sizeof one), sizeof one);
    accounts.fed++;
}

static ssize_t take_token(int fd, void *unused)
{
    uint64_t one;
    (void)unused;
    ssize_t n = read(fd, &one, sizeof one);
    return n < 0 ? -errno : n;
}

/* Those who only wait take one behind that, if nobody was faster. */
static void takes_token(struct attempt *a)
{
    (void)a;
    if (take_token(weft_fd_number(at.fd), NULL) > 0) count(&taken, 1);
}
static void took_token(struct attempt *a)
{
    (void)a;
    count(&taken, 1);
}
static void even_tokens(void)
{
    uint64_t left = 0;
    while (take_token(weft_fd_number(at.fd), NULL) > 0)
        left++;
    ASSERT_EQ(load_relaxed(&taken) + left, accounts.fed);
    weft_close(at.fd);
}

static void readable_begin(struct attempt *a)
{
    a->f.readable = (struct weft_fd_readable){.fd = at.fd};
}
static weft_poll readable_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(readable, weft_fd_readable);
}

static void tries_begin(struct attempt *a)
{
    a->f.tries = (struct weft_fd_try){.fd = at.fd, .side = WEFT_FD_READ, .fn = take_token};
}
static weft_poll tries_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(tries, weft_fd_try);
}

static void full_pipe_open(void)
{
    static const char block[65536];
    int ends[2];
    ASSERT_OK(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    at.peer = ends[0];
    while (write(ends[1], block, sizeof block) > 0)
        continue;
    ASSERT_OK(weft_fd_open(ends[1], &at.fd));
}

/* Room for a moment. */
static void feed_pipe(uint64_t *random)
{
    static char block[65536];
    if (pool_random(random, 2)) {
        (void)read(at.peer, block, sizeof block);
    } else {
        (void)write(weft_fd_number(at.fd), block, sizeof block);
    }
}
static void even_pipe(void)
{
    weft_close(at.fd);
    ASSERT_OK(close(at.peer));
}

static void writable_begin(struct attempt *a)
{
    a->f.writable = (struct weft_fd_writable){.fd = at.fd};
}
static weft_poll writable_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(writable, weft_fd_writable);
}

/* ---- urgent data ---- */

static void urgent_open(void)
{
    weft_stream *s;
    int fd;
    town_open(&at.gate);
    at.peer = peer_connect(at.gate.address, 0);
    ASSERT_OK(weft_accept(at.gate.listener, &s));
    fd = dup(weft_stream_fd(s));
    ASSERT_GE(fd, 0);
    weft_close(s);
    weft_close(at.gate.listener);
    ASSERT_OK(weft_fd_open(fd, &at.fd));
}

static void feed_urgent(uint64_t *random)
{
    char b[100];
    int fd = weft_fd_number(at.fd);
    if (pool_random(random, 3) == 0)
        (void)send(at.peer, "!", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT);
    if (pool_random(random, 3) == 0) (void)recv(fd, b, 1, MSG_OOB | MSG_DONTWAIT);
    (void)recv(fd, b, sizeof b, MSG_DONTWAIT);
}

/* The peer goes: whoever is left is told. */
static void end_urgent(void)
{
    ASSERT_OK(shutdown(at.peer, SHUT_WR));
}

static void urgent_begin(struct attempt *a)
{
    a->f.wait = (struct weft_fd_wait){.fd = at.fd, .side = WEFT_FD_URGENT};
}
static weft_poll urgent_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(wait, weft_fd_wait);
}

/* ---- children, signals, names ---- */

static void child_open(void)
{
    const char *argv[] = {"sleep", "1000", NULL};
    ASSERT_OK(weft_proc_start(&(weft_proc_opts){.argv = argv}, &at.proc));
}
static void end_child(void)
{
    ASSERT_OK(weft_proc_kill(at.proc, SIGKILL));
}
static void even_child(void)
{
    int status = 0;
    ASSERT_OK(weft_proc_wait(at.proc, &status)); /* and once more: no wait has taken its end */
    ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    weft_proc_close(at.proc);
}

static void proc_begin(struct attempt *a)
{
    a->f.proc_wait = (struct weft_proc_wait){.proc = at.proc};
}
static weft_poll proc_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(proc_wait, weft_proc_wait);
}

static void signal_open(void)
{
    ASSERT_OK(weft_signal_open(SIGUSR1, &at.signal));
}
static void feed_signal(uint64_t *random)
{
    if (pool_random(random, 4) == 0) return;
    ASSERT_OK(raise(SIGUSR1));
    accounts.fed++;
}
/* Several may be one; but none is two, and the last is not lost by who gave up. */
static void even_signal(void)
{
    ASSERT_LE(read_count(&accounts.ok), accounts.fed);
    ASSERT_OK(raise(SIGUSR1));
    ASSERT_EQ(weft_signal_wait(at.signal), 1);
    weft_signal_close(at.signal);
}

static void signal_begin(struct attempt *a)
{
    a->f.signal_wait = (struct weft_signal_wait){.signal = at.signal};
}
static weft_poll signal_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(signal_wait, weft_signal_wait);
}

/* The answer comes from a thread, to somebody or nobody. Memory that stays the harness sees. */
static void no_open(void)
{
}
static void resolve_begin(struct attempt *a)
{
    a->f.resolve = (struct weft_resolve){
        .host = "localhost", .service = "80", .into = (weft_addr_list **)&a->made};
}
static weft_poll resolve_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(resolve, weft_resolve);
}
static void free_list(struct attempt *a)
{
    weft_free(a->made);
}
static void
feed_patience(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    sched_yield();
}

/* ---- all of them ---- */

static const struct shape shapes[] = {
    {"accept", door_open, accept_begin, accept_poll, close_guest, feed_guest, NULL, even_door},
    {"tcp connect", plain_door_open, tcp_connect_begin, tcp_connect_poll, close_guest, feed_door,
     NULL, close_plain_door},
    {"unix connect", narrow_door_open, unix_connect_begin, unix_connect_poll, close_guest,
     feed_door, NULL, close_plain_door},
    {"udp recv", udp_open, udp_recv_begin, udp_recv_poll, sum_up, feed_udp, NULL, even_udp},
    {"udp send", udp_sink_open, udp_send_begin, udp_send_poll, nothing, feed_sink, NULL,
     even_udp_sink},
    {"dgram recv", packets_open, dgram_recv_begin, dgram_recv_poll, sum_up, feed_packets, NULL,
     even_packets},
    {"dgram send", full_packets_open, dgram_send_begin, dgram_send_poll, nothing,
     feed_one_from_sink, NULL, even_dgram_sink},
    {"dgram send to", anybody_open, dgram_send_to_begin, dgram_send_to_poll, nothing,
     feed_one_from_sink, NULL, even_dgram_sink},
    {"readable", tokens_open, readable_begin, readable_poll, takes_token, feed_token, NULL,
     even_tokens},
    {"try", tokens_open, tries_begin, tries_poll, took_token, feed_token, NULL, even_tokens},
    {"writable", full_pipe_open, writable_begin, writable_poll, nothing, feed_pipe, NULL,
     even_pipe},
    {"urgent", urgent_open, urgent_begin, urgent_poll, nothing, feed_urgent, end_urgent, even_pipe},
    {"child", child_open, proc_begin, proc_poll, nothing, feed_patience, end_child, even_child},
    {"signal", signal_open, signal_begin, signal_poll, nothing, feed_signal, NULL, even_signal},
    {"name", no_open, resolve_begin, resolve_poll, free_list, feed_patience, NULL, no_open},
};

static void give_up(struct crew *crew)
{
    give_up_rounds(shapes, sizeof shapes / sizeof shapes[0], crew, 6);
}

TEST_WITH(io_others_given_up_at_every_moment, .timeout_s = 300)
{
    crew_each(give_up);
}
