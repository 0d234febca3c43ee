/* SPDX-License-Identifier: MIT
 *
 * Sockets on real runtimes: listening, accepting, connecting; addresses and options; Unix sockets by path and by abstract name.
 */
#include "town.h"

#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses ---- */

static void same(const char *text, const char *printed, int port)
{
    weft_addr addr;
    char out[WEFT_ADDR_TEXT];
    ASSERT_OK(weft_addr_parse(text, &addr));
    ASSERT_EQ(weft_addr_print(&addr, out, sizeof out), (int)strlen(printed));
    ASSERT_STR(out, printed);
    ASSERT_EQ(weft_addr_port(&addr), port);
}

TEST(addr_is_what_it_was)
{
    same("127.0.0.1:80", "127.0.0.1:80", 80);
    same(":5555", "0.0.0.0:5555", 5555);
    same("*:0", "0.0.0.0:0", 0);
    same("[::1]:65535", "[::1]:65535", 65535);
    same("[::]:1", "[::]:1", 1);
    same("[fe80::1%1]:9", "[fe80::1%1]:9", 9);
    static const char *const wrong[] = {"",
                                        ":",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:65536",
                                        "127.0.0.1:1x",
                                        "localhost:80",
                                        "[::1:80",
                                        "::1:80",
                                        "1.2.3:4",
                                        "[]:80",
                                        "[::1%nosuch]:80",
                                        "127.0.0.1:-1",
                                        "127.0.0.1: 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weft_addr addr = {.bytes = 7};
        ASSERT_EQ(weft_addr_parse(wrong[i], &addr), -EINVAL);
        ASSERT_EQ(addr.bytes, 7); /* written on success only */
    }
    ASSERT_EQ(weft_addr_parse(NULL, NULL), -EINVAL);
    weft_addr none = {.bytes = 0};
    char out[4];
    ASSERT_EQ(weft_addr_print(&none, out, sizeof out), 0);
    ASSERT_EQ(weft_addr_port(&none), -1);
}

/* ---- accept, connect ---- */

enum { CLIENTS = 20 };

struct meeting {
    struct town_gate gate;
    _Atomic uint32_t greeted;
};

static int greets(weft_stream *c, struct meeting *m)
{
    char b[5];
    ssize_t n = weft_read_exact(c, b, sizeof b);
    if (n == sizeof b && memcmp(b, "hello", 5) == 0) (void)fetch_add_relaxed(&m->greeted, 1);
    if (n > 0) n = weft_write_all(c, "bye", 3);
    weft_close(c);
    return n < 0 ? (int)n : 0;
}

static int serves(struct meeting *m)
{
    weft_stream *c;
    int r;
    for (int i = 0; i < CLIENTS; i++) {
        if ((r = weft_accept(m->gate.listener, &c)) < 0) return r;
        (void)weft_detach(weft_go(greets, c, m));
    }
    return 0;
}

struct serving {
    WEFT_FRAME(int);
    struct meeting *m;
    int i;
    weft_stream *c;
    struct weft_accept accept;
};
static weft_async(serving)
{
    weft_begin;
    for (f->i = 0; f->i < CLIENTS; f->i++) {
        weft_await(f->accept, weft_accept, f->m->gate.listener, &f->c);
        if (f->accept.ret < 0) weft_return(f->accept.ret);
        (void)weft_detach(weft_go(greets, f->c, f->m));
    }
    weft_return(0);
    weft_end;
}

static int calls_on(struct meeting *m)
{
    weft_stream *c;
    char b[3];
    int r = weft_tcp_connect(m->gate.address, &c);
    if (r < 0) return r;
    ssize_t n = weft_write_all(c, "hello", 5);
    if (n > 0) n = weft_read_exact(c, b, sizeof b);
    weft_close(c);
    return n == 3 ? 0 : -EIO;
}

struct calling_on {
    WEFT_FRAME(int);
    struct meeting *m;
    weft_stream *c;
    char b[3];
    union {
        struct weft_tcp_connect connect;
        struct weft_write_all wr;
        struct weft_read_exact rd;
    } op;
};
static weft_async(calling_on)
{
    weft_begin;
    weft_await(f->op.connect, weft_tcp_connect, f->m->gate.address, &f->c);
    if (f->op.connect.ret < 0) weft_return(f->op.connect.ret);
    weft_await(f->op.wr, weft_write_all, f->c, "hello", 5);
    weft_await(f->op.rd, weft_read_exact, f->c, f->b, sizeof f->b);
    weft_close(f->c);
    weft_return(f->op.rd.ret == 3 ? 0 : -EIO);
    weft_end;
}

static void meets(struct crew *crew)
{
    (void)crew;
    for (int stackless = 0; stackless < 2; stackless++) {
        struct meeting m = {.greeted = 0};
        weft_task *client[CLIENTS];
        int r = 1;
        town_open(&m.gate);
        weft_task *server = stackless ? weft_spawn(serving, &m) : weft_go(serves, &m);
        for (int i = 0; i < CLIENTS; i++)
            client[i] = i % 2 ? weft_spawn(calling_on, &m) : weft_go(calls_on, &m);
        for (int i = 0; i < CLIENTS; i++) {
            ASSERT_OK(weft_join(client[i], &r));
            ASSERT_OK(r);
        }
        ASSERT_OK(weft_join(server, &r));
        ASSERT_OK(r);
        ASSERT_EQ(load_relaxed(&m.greeted), CLIENTS);
        weft_close(m.gate.listener);
    }
}

TEST(net_clients_meet_their_server)
{
    crew_each(meets);
}

/* From threads of the pool, which have entered the runtime: a job may use sockets as any thread may. */
static int calls_on_in_a_job(struct meeting *m)
{
    return weft_blocking(calls_on, m);
}

static void meets_jobs(struct crew *crew)
{
    struct meeting m = {.greeted = 0};
    weft_task *client[CLIENTS];
    int r = 1;
    (void)crew;
    town_open(&m.gate);
    weft_task *server = weft_go(serves, &m);
    for (int i = 0; i < CLIENTS; i++)
        client[i] = weft_go(calls_on_in_a_job, &m);
    for (int i = 0; i < CLIENTS; i++) {
        ASSERT_OK(weft_join(client[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    ASSERT_EQ(load_relaxed(&m.greeted), CLIENTS);
    weft_close(m.gate.listener);
}

TEST(net_blocking_jobs_meet_a_server)
{
    crew_each(meets_jobs);
}

/* Several accept at once: each connection goes to one. */
static int accepts_some(weft_listener *l)
{
    weft_stream *c;
    int count = 0;
    int r;
    while ((r = weft_accept(l, &c)) == 0) {
        count++;
        weft_close(c);
    }
    return r == -EBADF ? count : r;
}

static void several_accept(struct crew *crew)
{
    struct town_gate gate;
    weft_task *acceptor[4];
    int sum = 0;
    (void)crew;
    town_open(&gate);
    for (int i = 0; i < 4; i++)
        acceptor[i] = weft_go(accepts_some, gate.listener);
    for (int i = 0; i < 30; i++) {
        weft_stream *c;
        char b[1];
        ASSERT_OK(weft_tcp_connect(gate.address, &c));
        ASSERT_EQ(weft_read(c, b, 1), 0); /* it was accepted, and closed */
        weft_close(c);
    }
    weft_close(gate.listener);
    for (int i = 0; i < 4; i++) {
        int r = -1;
        ASSERT_OK(weft_join(acceptor[i], &r));
        ASSERT_GE(r, 0);
        sum += r;
    }
    ASSERT_EQ(sum, 30);
}

TEST(net_several_accept_at_once)
{
    crew_each(several_accept);
}

/* An accept that loses in a select has taken no connection, and leaves the listener as it was. */
static int selects(struct town_gate *gate, int count)
{
    for (int got = 0; got < count;) {
        struct weft_accept accept;
        struct weft_yield once;
        weft_stream *c;
        int which = weft_select(weft_arm(accept, weft_accept, gate->listener, &c),
                                weft_arm(once, weft_yield));
        if (which < 0) return which;
        if (accept.ret < 0) continue; /* it lost */
        got++;
        weft_close(c);
    }
    return 0;
}

static void accepts_in_a_select(struct crew *crew)
{
    struct town_gate gate;
    int r = 1;
    (void)crew;
    town_open(&gate);
    weft_task *task = weft_go(selects, &gate, 20);
    for (int i = 0; i < 20; i++) {
        weft_stream *c;
        char b;
        ASSERT_OK(weft_tcp_connect(gate.address, &c));
        ASSERT_EQ(weft_read(c, &b, 1), 0);
        weft_close(c);
    }
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_close(gate.listener);
}

TEST(net_accepts_in_a_select)
{
    crew_each(accepts_in_a_select);
}

static void refused(struct crew *crew)
{
    struct town_gate gate;
    weft_stream *c;
    weft_listener *l;
    (void)crew;
    town_open(&gate);
    ASSERT_EQ(weft_tcp_listen(gate.address, &l), -EADDRINUSE);
    weft_close(gate.listener);
    ASSERT_EQ(weft_tcp_connect(gate.address, &c), -ECONNREFUSED);
    ASSERT_EQ(weft_tcp_connect("nowhere", &c), -EINVAL);
    ASSERT_EQ(weft_tcp_connect(gate.address, NULL), -EINVAL);
    ASSERT_EQ(weft_unix_connect("/nonexistent/socket", &c), -ENOENT);
    ASSERT_EQ(weft_unix_connect("", &c), -EINVAL);
    ASSERT_EQ(weft_tcp_listen("127.0.0.1:x", &l), -EINVAL);
    ASSERT_EQ(weft_tcp_listen("1.2.3.4:80", &l), -EADDRNOTAVAIL);
    ASSERT_EQ(weft_accept(NULL, &c), -EINVAL);
    ASSERT_OK(weft_tcp_listen(gate.address, &l)); /* at once again, though it was in use */
    weft_close(l);
    weft_close((weft_listener *)NULL);
}

TEST(net_refusals_are_errors)
{
    crew_each(refused);
}

/* ---- options, addresses of sockets ---- */

static void options(struct crew *crew)
{
    weft_listener *l;
    weft_listener *twin;
    weft_stream *a, *b;
    weft_addr addr;
    weft_addr peer;
    char text[WEFT_ADDR_TEXT];
    int value;
    (void)crew;
    weft_net_opts opts = {.reuse_port = true, .backlog = 5, .keepalive_s = 77, .recv_bytes = 65536};
    ASSERT_OK(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l));
    ASSERT_OK(weft_listener_addr(l, &addr));
    (void)weft_addr_print(&addr, text, sizeof text);
    char same[WEFT_ADDR_TEXT];
    ASSERT_EQ(weft_listener_print(l, same, sizeof same), (int)strlen(text));
    ASSERT_STR(same, text);
    ASSERT_EQ(weft_listener_print(l, same, 4), (int)strlen(text)); /* cut */
    ASSERT_STR(same, "127");
    ASSERT_EQ(weft_listener_print(NULL, same, sizeof same), -EINVAL);
    ASSERT_OK(weft_tcp_listen_with(&opts, text, &twin)); /* shares the port */
    weft_close(twin);
    ASSERT_OK(weft_tcp_connect(text, &a));
    ASSERT_OK(weft_accept(l, &b));
    ASSERT_OK(weft_sock_peer(a, &peer));
    ASSERT_EQ(weft_addr_port(&peer), weft_addr_port(&addr));
    ASSERT_OK(weft_sock_local(a, &addr));
    ASSERT_OK(weft_sock_peer(b, &peer));
    ASSERT_EQ(weft_addr_port(&peer), weft_addr_port(&addr));
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_NODELAY, &value));
    ASSERT_EQ(value, 1);
    ASSERT_OK(weft_sock_get(a, WEFT_SOCK_NODELAY, &value));
    ASSERT_EQ(value, 1);
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_KEEPALIVE_S, &value));
    ASSERT_EQ(value, 77);
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_RECV_BYTES, &value));
    ASSERT_EQ(value, 2 * 65536);
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_LINGER_S, &value));
    ASSERT_EQ(value, -1);
    ASSERT_OK(weft_sock_set(b, WEFT_SOCK_LINGER_S, 3));
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_LINGER_S, &value));
    ASSERT_EQ(value, 3);
    ASSERT_OK(weft_sock_set(b, WEFT_SOCK_LINGER_S, -1));
    ASSERT_OK(weft_sock_set(b, WEFT_SOCK_NODELAY, 0));
    int none = 99;
    /* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the mistake itself */
    ASSERT_EQ(weft_sock_set(b, (enum weft_sock_option)none, 0), -EINVAL);
    ASSERT_EQ(weft_sock_get(b, WEFT_SOCK_NODELAY, NULL), -EINVAL);
    ASSERT_EQ(weft_sock_set(NULL, WEFT_SOCK_NODELAY, 0), -EINVAL);
    weft_close(a);
    weft_close(b);
    weft_close(l);
    opts.backlog = -1;
    ASSERT_EQ(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l), -EINVAL);
    ASSERT_OK(weft_pipe(&a, &b));
    ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_NODELAY, 1), -ENOTSOCK);
    weft_close(a);
    weft_close(b);
}

TEST(net_options_and_addresses)
{
    crew_each(options);
}

/* Of both families; a Unix socket has none. */
static void has_a_tos(struct crew *crew)
{
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:0"};
    weft_stream *a, *b;
    int value = 0;
    (void)crew;
    for (int i = 0; i < 2; i++) {
        weft_listener *l;
        char text[WEFT_ADDR_TEXT];
        int r = weft_tcp_listen(addresses[i], &l);
        if (i == 1 && (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)) continue; /* no IPv6 here */
        ASSERT_OK(r);
        (void)weft_listener_print(l, text, sizeof text);
        ASSERT_OK(weft_tcp_connect(text, &a));
        ASSERT_OK(weft_sock_get(a, WEFT_SOCK_TOS, &value));
        ASSERT_EQ(value, 0);
        ASSERT_OK(weft_sock_set(a, WEFT_SOCK_TOS, 0x10));
        ASSERT_OK(weft_sock_get(a, WEFT_SOCK_TOS, &value));
        ASSERT_EQ(value, 0x10);
        ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_TOS, 256), -EINVAL);
        ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_TOS, -1), -EINVAL);
        weft_close(a);
        weft_close(l);
    }
    ASSERT_OK(weft_unix_pair(&a, &b));
    ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_TOS, 0x10), -EOPNOTSUPP);
    ASSERT_EQ(weft_sock_get(a, WEFT_SOCK_TOS, &value), -EOPNOTSUPP);
    weft_close(a);
    weft_close(b);
}

TEST(net_sockets_have_a_type_of_service)
{
    crew_each(has_a_tos);
}

/* ---- Unix ---- */

static void unix_by(const char *path)
{
    weft_listener *l, *again;
    weft_stream *a, *b;
    weft_addr addr;
    char text[WEFT_ADDR_TEXT];
    char c;
    ASSERT_OK(weft_unix_listen(path, &l));
    ASSERT_EQ(weft_unix_listen(path, &again), -EADDRINUSE);
    ASSERT_OK(weft_listener_addr(l, &addr));
    (void)weft_addr_print(&addr, text, sizeof text);
    ASSERT_STR(text, path);
    ASSERT_EQ(weft_addr_port(&addr), -1);
    ASSERT_OK(weft_unix_connect(path, &a));
    ASSERT_OK(weft_accept(l, &b));
    ASSERT_OK(weft_sock_peer(b, &addr));
    (void)weft_addr_print(&addr, text, sizeof text);
    ASSERT_STR(text, "unnamed");
    ASSERT_EQ(weft_write_all(a, "u", 1), 1);
    ASSERT_EQ(weft_read(b, &c, 1), 1);
    ASSERT_EQ(c, 'u');
    weft_close(a);
    weft_close(b);
    weft_close(l);
}

static void unix_sockets(struct crew *crew)
{
    char path[100];
    weft_listener *l;
    (void)snprintf(path, sizeof path, "@weft-test-%d-%d", (int)getpid(), crew->workers);
    unix_by(path);
    unix_by(path); /* an abstract name ends with its sockets */
    (void)snprintf(path, sizeof path, "weft-test-%d-%d.sock", (int)getpid(), crew->workers);
    unix_by(path);
    ASSERT_EQ(weft_unix_listen(path, &l), -EADDRINUSE); /* a file does not */
    ASSERT_OK(unlink(path));
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ASSERT_EQ(weft_unix_listen(longer, &l), -ENAMETOOLONG);
    ASSERT_EQ(weft_unix_listen("@", &l), -EINVAL);
}

TEST(net_unix_sockets)
{
    crew_each(unix_sockets);
}

/* The listener's queue is full: connect waits until somebody is accepted. */
static int connects_unix(const char *path, weft_stream **into)
{
    return weft_unix_connect(path, into);
}

static void unix_queue(struct crew *crew)
{
    enum { COUNT = 6 };
    char path[100];
    weft_listener *l;
    weft_stream *c[COUNT];
    weft_task *task[COUNT];
    (void)snprintf(path, sizeof path, "@weft-queue-%d-%d", (int)getpid(), crew->workers);
    ASSERT_OK(weft_unix_listen_with(&(weft_net_opts){.backlog = 1}, path, &l));
    for (int i = 0; i < COUNT; i++)
        task[i] = weft_go(connects_unix, path, &c[i]);
    for (int i = 0; i < COUNT; i++) {
        weft_stream *s;
        ASSERT_OK(weft_accept(l, &s));
        weft_close(s);
    }
    for (int i = 0; i < COUNT; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
        weft_close(c[i]);
    }
    weft_close(l);
}

TEST(net_unix_connect_waits_for_room)
{
    crew_each(unix_queue);
}

/* ---- descriptors of the program's own ---- */

static void of_fds(struct crew *crew)
{
    struct town_gate gate;
    weft_listener *l;
    weft_stream *a, *b, *s;
    char c;
    (void)crew;
    town_open(&gate);
    ASSERT_OK(weft_listener_of_fd(NULL, dup(weft_listener_fd(gate.listener)), &l));
    weft_close(gate.listener);
    ASSERT_OK(weft_tcp_connect(gate.address, &a));
    ASSERT_OK(weft_accept(l, &b));
    ASSERT_OK(weft_stream_of_fd(dup(weft_stream_fd(b)), &s));
    weft_close(b); /* the connection goes on: the other descriptor holds it */
    ASSERT_EQ(weft_write_all(a, "x", 1), 1);
    ASSERT_EQ(weft_read(s, &c, 1), 1);
    ASSERT_OK(weft_shutdown(s)); /* it knows that it is a socket */
    ASSERT_EQ(weft_read(a, &c, 1), 0);
    weft_close(a);
    weft_close(s);
    weft_close(l);
    int fds[2];
    ASSERT_OK(pipe(fds));
    ASSERT_OK(weft_stream_of_fd(fds[0], &a));
    ASSERT_OK(weft_stream_of_fd(fds[1], &b));
    ASSERT_EQ(weft_write_all(b, "y", 1), 1);
    ASSERT_EQ(weft_read(a, &c, 1), 1);
    ASSERT_EQ(weft_shutdown(b), -EOPNOTSUPP);
    weft_close(a);
    weft_close(b);
    ASSERT_EQ(weft_listener_of_fd(NULL, 0, NULL), -EINVAL);
}

/* What does not take connections is no listener: an accept would try for ever. The descriptor stays the program's. */
static void not_listening(struct crew *crew)
{
    static const struct {
        int family, type, answer;
    } kinds[] = {
        {AF_INET, SOCK_DGRAM, -EOPNOTSUPP}, {AF_UNIX, SOCK_DGRAM, -EOPNOTSUPP},
        {AF_INET, SOCK_STREAM, -EINVAL},    {AF_UNIX, SOCK_STREAM, -EINVAL},
        {AF_UNIX, SOCK_SEQPACKET, -EINVAL},
    };
    weft_listener *l;
    int fds[2];
    (void)crew;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int fd = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, 0);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(weft_listener_of_fd(NULL, fd, &l), kinds[i].answer);
        ASSERT_OK(close(fd));
    }
    ASSERT_OK(pipe(fds));
    ASSERT_EQ(weft_listener_of_fd(NULL, fds[0], &l), -ENOTSOCK);
    ASSERT_OK(close(fds[0]));
    ASSERT_OK(close(fds[1]));
    ASSERT_EQ(weft_listener_of_fd(NULL, -1, &l), -EBADF);
}

TEST(net_a_listener_is_a_socket_that_listens)
{
    crew_each(not_listening);
}

/* A listener of packets that the program has is one: it gives no streams. */
static void packets_of_fd(struct crew *crew)
{
    char path[100];
    weft_listener *made, *l;
    weft_stream *s;
    weft_dgram *a, *b;
    char c[4];
    (void)snprintf(path, sizeof path, "@weft-packets-%d-%d", (int)getpid(), crew->workers);
    ASSERT_OK(weft_packet_listen(path, &made));
    ASSERT_OK(weft_listener_of_fd(NULL, dup(weft_listener_fd(made)), &l));
    weft_close(made);
    ASSERT_OK(weft_packet_connect(path, &a));
    ASSERT_EQ(weft_accept(l, &s), -EOPNOTSUPP);
    ASSERT_OK(weft_packet_accept(l, &b));
    ASSERT_EQ(weft_dgram_send(a, "ab", 2), 2);
    ASSERT_EQ(weft_dgram_send(a, "c", 1), 1);
    ASSERT_EQ(weft_dgram_recv(b, c, sizeof c), 2);
    weft_close(a);
    weft_close(b);
    weft_close(l);
}

TEST(net_packets_of_a_descriptor_of_the_program)
{
    crew_each(packets_of_fd);
}

TEST(net_of_descriptors_of_the_program)
{
    crew_each(of_fds);
}

/* ---- descriptors in a message: a short read is not the end of what is there ---- */

static void send_fd(int sock, const char *text, int fd)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    ASSERT_EQ(sendmsg(sock, &message, 0), (ssize_t)strlen(text));
}

static void fds_in_messages(struct crew *crew)
{
    weft_stream *pair[2];
    char b[100];
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    for (int i = 0; i < 5; i++) {
        send_fd(weft_stream_fd(pair[0]), "abc", 0);
        ASSERT_EQ(weft_write_all(pair[0], "defg", 4), 4);
        ASSERT_EQ(weft_read_exact(pair[1], b, 7), 7);
        ASSERT_EQ(memcmp(b, "abcdefg", 7), 0);
    }
    for (int i = 0; i < 5; i++) { /* a read with more room than there is */
        send_fd(weft_stream_fd(pair[0]), "abc", 0);
        ASSERT_EQ(weft_write_all(pair[0], "defg", 4), 4);
        ssize_t got = 0;
        while (got < 7) {
            ssize_t n = weft_read(pair[1], b + got, sizeof b - (size_t)got);
            ASSERT_GE(n, 1);
            got += n;
        }
        ASSERT_EQ(memcmp(b, "abcdefg", 7), 0);
    }
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(net_descriptors_in_a_message)
{
    crew_each(fds_in_messages);
}
