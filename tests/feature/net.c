/* SPDX-License-Identifier: MIT
 *
 * Sockets on real runtimes, and who meets whom by them: listening, accepting, connecting, by both kinds of
 * task, several at once, in a select; refusals; Unix sockets by path and by abstract name. What a socket
 * is and can be told: net_socket.
 */
#include "town.h"

#include <unistd.h>

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

/* The clients of a meeting, its server, and what both must have come to. */
static void have_met(struct meeting *m, weft_task *server, weft_task **client)
{
    int r = 1;
    for (int i = 0; i < CLIENTS; i++) {
        ASSERT_OK(weft_join(client[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    ASSERT_EQ(load_relaxed(&m->greeted), CLIENTS); /* relaxed: they were joined */
    weft_close(m->gate.listener);
}

static void meets(struct crew *crew)
{
    (void)crew;
    for (int stackless = 0; stackless < 2; stackless++) {
        struct meeting m = {.greeted = 0};
        weft_task *client[CLIENTS];
        town_open(&m.gate);
        weft_task *server = stackless ? weft_spawn(serving, &m) : weft_go(serves, &m);
        for (int i = 0; i < CLIENTS; i++)
            client[i] = i % 2 ? weft_spawn(calling_on, &m) : weft_go(calls_on, &m);
        have_met(&m, server, client);
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
    (void)crew;
    town_open(&m.gate);
    weft_task *server = weft_go(serves, &m);
    for (int i = 0; i < CLIENTS; i++)
        client[i] = weft_go(calls_on_in_a_job, &m);
    have_met(&m, server, client);
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
    ASSERT_EQ(weft_tcp_connect("127.0.0.1:65536", &c), -EPROTONOSUPPORT);
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
