/* SPDX-License-Identifier: MIT
 *
 * Fork in a program with sockets of every kind, while tasks wait on all of them: in the child each says that it is the parent's and can be closed, and nothing
 * hangs; the parent goes on, and whoever waited there gets what it waited for.
 */
#include "child.h"
#include "peer.h"
#include "sched/sched.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>

struct estate {
    struct town_gate gate;
    weft_stream *pair[2];
    weft_stream *pipe[2];
    weft_udp *udp[2];
    weft_addr to;
    weft_dgram *dgram[2];
    weft_fd *event;
    weft_proc *proc;
    weft_signal *signal;
};

static void make(struct estate *e)
{
    const char *argv[] = {"cat", NULL};
    weft_stream *to_cat;
    town_open(&e->gate);
    ASSERT_OK(weft_unix_pair(&e->pair[0], &e->pair[1]));
    ASSERT_OK(weft_pipe(&e->pipe[0], &e->pipe[1]));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_udp_bind("127.0.0.1:0", &e->udp[i]));
    ASSERT_OK(weft_udp_local(e->udp[1], &e->to));
    ASSERT_OK(weft_dgram_pair(&e->dgram[0], &e->dgram[1]));
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT_GE(event, 0);
    ASSERT_OK(weft_fd_open(event, &e->event));
    ASSERT_OK(weft_signal_open(SIGUSR1, &e->signal));
    e->proc = NULL;
    int r = weft_proc_start(&(weft_proc_opts){.argv = argv, .to_in = &to_cat}, &e->proc);
    if (r == -ENOSYS) return; /* under Valgrind: it knows no descriptors of processes */
    ASSERT_OK(r);
    weft_close(to_cat); /* with that it ends */
}

static void close_all(struct estate *e)
{
    weft_close(e->gate.listener);
    for (int i = 0; i < 2; i++) {
        weft_close(e->pair[i]);
        weft_close(e->pipe[i]);
        weft_close(e->udp[i]);
        weft_close(e->dgram[i]);
    }
    weft_close(e->event);
    weft_signal_close(e->signal);
    weft_proc_close(e->proc);
}

/* ---- who waits in the parent ---- */

struct guests {
    struct estate *e;
    _Atomic int begun; /* relaxed: progress */
};

static void begins(struct guests *g)
{
    (void)fetch_add_relaxed(&g->begun, 1);
}

static int accepts(struct guests *g)
{
    weft_stream *c;
    begins(g);
    int r = weft_accept(g->e->gate.listener, &c);
    if (r == 0) weft_close(c);
    return r;
}

static int reads(struct guests *g, int which)
{
    char b = 0;
    begins(g);
    ssize_t n = weft_read(which ? g->e->pipe[0] : g->e->pair[1], &b, 1);
    return n == 1 && b == 'p' ? 0 : -EIO;
}

static int receives(struct guests *g, int which)
{
    char b = 0;
    weft_addr from;
    begins(g);
    ssize_t n = which ? weft_dgram_recv(g->e->dgram[1], &b, 1)
                      : weft_udp_recv_from(g->e->udp[1], &b, 1, &from);
    return n == 1 && b == 'p' ? 0 : -EIO;
}

static int watches(struct guests *g)
{
    begins(g);
    return weft_fd_readable(g->e->event);
}

static int hears(struct guests *g)
{
    begins(g);
    int r = weft_signal_wait(g->e->signal);
    return r == 1 ? 0 : -EIO;
}

static int outlives(struct guests *g)
{
    int status = -1;
    begins(g);
    if (!g->e->proc) return 0;
    int r = weft_proc_wait(g->e->proc, &status);
    return r < 0 ? r : status;
}

enum { GUESTS = 8 };

static void invite(struct guests *g, weft_task **task)
{
    task[0] = weft_go(accepts, g);
    task[1] = weft_go(reads, g, 0);
    task[2] = weft_go(reads, g, 1);
    task[3] = weft_go(receives, g, 0);
    task[4] = weft_go(receives, g, 1);
    task[5] = weft_go(watches, g);
    task[6] = weft_go(hears, g);
    task[7] = weft_go(outlives, g);
    CREW_UNTIL(load_relaxed(&g->begun) == GUESTS);
}

/* What each waits for comes, from the parent. */
static void feed(struct estate *e)
{
    uint64_t one = 1;
    int client = peer_connect(e->gate.address, 0);
    ASSERT_EQ(weft_write(e->pair[0], "p", 1), 1);
    ASSERT_EQ(weft_write(e->pipe[1], "p", 1), 1);
    ASSERT_EQ(weft_udp_send_to(e->udp[0], "p", 1, &e->to), 1);
    ASSERT_EQ(weft_dgram_send(e->dgram[0], "p", 1), 1);
    ASSERT_EQ(write(weft_fd_number(e->event), &one, sizeof one), sizeof one);
    ASSERT_OK(raise(SIGUSR1));
    ASSERT_OK(close(client));
}

/* ---- in the child ---- */

static void all_are_the_parents(struct estate *e)
{
    char b[4];
    int fd;
    weft_stream *c;
    weft_addr from;
    weft_fds fds = {.fd = &fd, .room = 1};
    weft_udp_msg msg = {.buf = b, .len = sizeof b};
    struct iovec iov = {b, sizeof b};
    CHILD_NEEDS(weft_accept(e->gate.listener, &c) == -ECHILD);
    for (int i = 0; i < 2; i++) {
        CHILD_NEEDS(weft_read(e->pair[i], b, 1) == -ECHILD);
        CHILD_NEEDS(weft_readv(e->pair[i], &iov, 1) == -ECHILD);
        CHILD_NEEDS(weft_read_exact(e->pair[i], b, 2) == -ECHILD);
        CHILD_NEEDS(weft_peek(e->pair[i], b, 1) == -ECHILD);
        CHILD_NEEDS(weft_write(e->pair[i], "c", 1) == -ECHILD);
        CHILD_NEEDS(weft_write_all(e->pair[i], "c", 1) == -ECHILD);
        CHILD_NEEDS(weft_shutdown(e->pair[i]) == -ECHILD);
        CHILD_NEEDS(weft_unix_recv_fds(e->pair[i], b, 1, &fds) == -ECHILD);
        CHILD_NEEDS(weft_unix_send_fds(e->pair[i], "c", 1, (int[]){2}, 1) == -ECHILD);
        CHILD_NEEDS(weft_udp_recv(e->udp[i], b, 1) == -ECHILD);
        CHILD_NEEDS(weft_udp_recv_from(e->udp[i], b, 1, &from) == -ECHILD);
        CHILD_NEEDS(weft_udp_recv_many(e->udp[i], &msg, 1) == -ECHILD);
        CHILD_NEEDS(weft_udp_send_to(e->udp[i], "c", 1, &e->to) == -ECHILD);
        CHILD_NEEDS(weft_dgram_recv(e->dgram[i], b, 1) == -ECHILD);
        CHILD_NEEDS(weft_dgram_send(e->dgram[i], "c", 1) == -ECHILD);
        CHILD_NEEDS(weft_dgram_send_fds(e->dgram[i], "c", 1, (int[]){2}, 1) == -ECHILD);
    }
    CHILD_NEEDS(weft_read(e->pipe[0], b, 1) == -ECHILD);
    CHILD_NEEDS(weft_write(e->pipe[1], "c", 1) == -ECHILD);
    CHILD_NEEDS(weft_fd_readable(e->event) == -ECHILD);
    CHILD_NEEDS(weft_fd_writable(e->event) == -ECHILD);
    CHILD_NEEDS(weft_fd_take(e->event) == -ECHILD);
    CHILD_NEEDS(weft_signal_wait(e->signal) == -ECHILD);
    if (e->proc) CHILD_NEEDS(weft_proc_wait(e->proc, NULL) == -ECHILD);
}

/* Nothing is opened on the parent's runtime. */
static void nothing_is_opened(weft_rt *rt)
{
    weft_net_opts opts = {.rt = rt};
    weft_udp_opts udp_opts = {.rt = rt};
    weft_resolve_opts resolve_opts = {.rt = rt};
    const char *argv[] = {"true", NULL};
    weft_listener *l;
    weft_udp *u;
    weft_dgram *d;
    weft_proc *p;
    weft_addr_list *list;
    weft_stream *a, *b;
    CHILD_NEEDS(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l) == -ECHILD);
    CHILD_NEEDS(weft_udp_bind_with(&udp_opts, "127.0.0.1:0", &u) == -ECHILD);
    CHILD_NEEDS(weft_tcp_listen("127.0.0.1:0", &l) == -ENXIO);
    CHILD_NEEDS(weft_tcp_connect("127.0.0.1:1", &a) == -ENXIO);
    CHILD_NEEDS(weft_unix_pair(&a, &b) == -ENXIO);
    CHILD_NEEDS(weft_pipe(&a, &b) == -ENXIO);
    CHILD_NEEDS(weft_unix_connect("@weft-nobody", &a) == -ENXIO);
    CHILD_NEEDS(weft_dgram_bind(NULL, &d) == -ENXIO);
    CHILD_NEEDS(weft_packet_listen("@weft-nobody", &l) == -ENXIO);
    CHILD_NEEDS(weft_fifo_open("/dev/null", O_RDONLY, &a) == -ENXIO);
    CHILD_NEEDS(weft_stdin(&a) == -ENXIO);
    CHILD_NEEDS(weft_proc_start(&(weft_proc_opts){.argv = argv}, &p) == -ENXIO);
    if (!DEATH_CHILD_MAY_ALLOCATE) return; /* a query has memory of its own */
    CHILD_NEEDS(weft_resolve("127.0.0.1", "1", &resolve_opts, &list) == 0); /* asks nobody */
    weft_free(list);
    CHILD_NEEDS(weft_resolve("localhost", "1", &resolve_opts, &list) == -ECHILD);
}

static void child_of(struct estate *e, weft_rt *rt)
{
    int numbers[] = {weft_listener_fd(e->gate.listener), weft_stream_fd(e->pair[0]),
                     weft_stream_fd(e->pipe[1]),         weft_udp_fd(e->udp[0]),
                     weft_dgram_fd(e->dgram[1]),         weft_fd_number(e->event)};
    all_are_the_parents(e);
    nothing_is_opened(rt);
    close_all(e);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        CHILD_NEEDS(fcntl(numbers[i], F_GETFD) < 0); /* the child's own are closed */
    _exit(7);
}

static int forks_in_a_task(struct estate *e, weft_rt *rt)
{
    pid_t child = fork();
    if (child == 0) child_of(e, rt);
    return exit_code_of(child);
}

struct forks_stackless {
    WEFT_FRAME(int);
    struct estate *e;
    weft_rt *rt;
};
static weft_poll forks_stackless_poll(void *frame, weft_cx *cx)
{
    struct forks_stackless *f = frame;
    (void)cx;
    f->ret = forks_in_a_task(f->e, f->rt);
    return WEFT_READY;
}

static int fork_somewhere(struct estate *e, weft_rt *rt, int where)
{
    int code = -1;
    if (where == 0) return forks_in_a_task(e, rt);
    ASSERT_OK(weft_join(
        where == 1 ? weft_go(forks_in_a_task, e, rt) : weft_spawn(forks_stackless, e, rt), &code));
    return code;
}

static void forked(struct crew *crew)
{
    for (int where = 0; where < 3; where++) {
        struct estate e;
        struct guests guests = {.e = &e};
        weft_task *task[GUESTS];
        make(&e);
        invite(&guests, task);
        ASSERT(ended_by(fork_somewhere(&e, crew->rt, where), 7));
        feed(&e);
        for (int i = 0; i < GUESTS; i++) {
            int r = 1;
            ASSERT_OK(weft_join(task[i], &r));
            ASSERT_OK(r);
        }
        close_all(&e);
    }
}

TEST_WITH(io_everything_in_the_child_of_a_fork, .timeout_s = 120)
{
    crew_each(forked);
}

/* ---- traffic that goes on ---- */

static int echoes(weft_stream *c)
{
    char b[100];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if ((n = weft_write_all(c, b, (size_t)n)) < 0) break;
    return (int)n;
}

static int asks(weft_stream *c, _Atomic bool *over)
{
    unsigned char out[64], in[64];
    for (uint64_t i = 0; !load_relaxed(over); i++) { /* relaxed: a flag */
        town_fill(out, sizeof out, i);
        if (weft_write_all(c, out, sizeof out) != sizeof out) return -EIO;
        if (weft_read_exact(c, in, sizeof in) != sizeof in) return -EIO;
        town_check(in, sizeof in, i);
    }
    return weft_shutdown(c);
}

/* Children come and go, and close what they have of it, at any moment of a conversation. */
static void forked_in_traffic(struct crew *crew)
{
    weft_stream *pair[2];
    _Atomic bool over = false;
    int r = 1;
    (void)crew;
    town_pair(TOWN_TCP, pair);
    weft_task *server = weft_go(echoes, pair[1]);
    weft_task *client = weft_go(asks, pair[0], &over);
    for (uint64_t i = 0; i < test_scaled(20); i++) {
        pid_t child = fork();
        if (child == 0) {
            CHILD_NEEDS(weft_write(pair[i % 2], "c", 1) == -ECHILD);
            weft_close(pair[0]);
            weft_close(pair[1]);
            _exit(7);
        }
        ASSERT(ended_by(exit_code_of(child), 7));
    }
    store_relaxed(&over, true);
    ASSERT_OK(weft_join(client, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST_WITH(io_goes_on_while_children_close_it, .timeout_s = 120)
{
    crew_each(forked_in_traffic);
}

/* ---- events of workers ---- */

/* Waits until it is cancelled. */
struct forever {
    WEFT_FRAME(int);
};
static weft_poll forever_poll(void *frame, weft_cx *cx)
{
    struct forever *f = frame;
    f->ret = weft_cx_cancelled(cx);
    return f->ret < 0 ? WEFT_READY : WEFT_PENDING;
}

/* Under the number of each event of the parent's there is something of the child's own: how many bytes are written to it? */
static ssize_t bytes_for_events(weft_task *task)
{
    int ends[2];
    char bytes[256];
    CHILD_NEEDS(pipe2(ends, O_NONBLOCK) == 0);
    for (int fd = 3; fd < 256; fd++) {
        char path[64];
        char what[64] = "";
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, what, sizeof(what) - 1) > 0 && strstr(what, "eventfd"))
            dup2(ends[1], fd);
    }
    weft_cancel(task);
    return read(ends[0], bytes, sizeof(bytes));
}

/* A worker that sleeps where its fds are is told by an event, whose number may be anybody's in the child. */
static void woken_in_the_child(int workers)
{
    struct crew crew;
    weft_stream *pair[2];
    crew_start(&crew, workers);
    ASSERT_OK(weft_unix_pair(&pair[0], &pair[1]));
    weft_task *task = weft_spawn(forever);
    for (uint64_t i = 0; i < test_scaled(20); i++) {
        CREW_UNTIL(weft__idle_sleeping(&crew.rt->idle) ==
                   weft_rt_workers(crew.rt)); /* or is about to */
        usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            CHILD_NEEDS(bytes_for_events(task) < 0);
            _exit(7);
        }
        ASSERT(ended_by(exit_code_of(child), 7));
    }
    weft_cancel(task);
    ASSERT_OK(weft_join(task, (int *)NULL));
    weft_close(pair[0]);
    weft_close(pair[1]);
    crew_stop(&crew);
}

TEST_WITH(io_child_writes_to_no_event, .timeout_s = 120)
{
    woken_in_the_child(1);
    woken_in_the_child(2);
}
