/* SPDX-License-Identifier: MIT
 *
 * More connections than fit: ten thousand that live at once, from a process of their own; and hundreds that knock at the same moment at a door with a queue
 * for a few. All are accounted for, and nothing is left: no descriptor (the harness looks), no task.
 */
#include "child.h"
#include "peer.h"

#include <sys/prctl.h>

/* ---- ten thousand ---- */

#define MESSAGE 8

struct crowd {
    uint32_t count;
    pid_t client;
    int to_client; /* the address goes there */
};

/* As many descriptors as are needed, or -1. */
static int allow_fds(uint32_t needed)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -1;
    if (limit.rlim_cur >= needed) return 0;
    if (limit.rlim_max < needed) return -1;
    limit.rlim_cur = needed;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

static void name_of(uint32_t i, uint32_t round, unsigned char *into)
{
    uint32_t name[2] = {i, round ^ 0x5eed0000U ^ i};
    memcpy(into, name, MESSAGE);
}

static int connect_plainly(const weft_addr *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHILD_NEEDS(fd >= 0);
    CHILD_NEEDS(connect(fd, (const struct sockaddr *)(const void *)addr->weft__data, addr->bytes) ==
                0);
    return fd;
}

/* All connect, then all speak, then all listen, twice; then half of them reset, and the others close. */
static void client_process(uint32_t count, int from_server)
{
    char address[WEFT_ADDR_TEXT] = "";
    weft_addr addr;
    int *fd = calloc(count, sizeof(int));
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHILD_NEEDS(fd != NULL && read(from_server, address, sizeof address - 1) > 0);
    CHILD_NEEDS(weft_addr_parse(address, &addr) == 0);
    for (uint32_t i = 0; i < count; i++)
        fd[i] = connect_plainly(&addr);
    for (uint32_t round = 0; round < 2; round++) {
        unsigned char out[MESSAGE], in[MESSAGE];
        for (uint32_t i = 0; i < count; i++) {
            name_of(i, round, out);
            CHILD_NEEDS(send(fd[i], out, MESSAGE, MSG_NOSIGNAL) == MESSAGE);
        }
        for (uint32_t i = 0; i < count; i++) {
            name_of(i, round, out);
            CHILD_NEEDS(recv(fd[i], in, MESSAGE, MSG_WAITALL) == MESSAGE);
            CHILD_NEEDS(memcmp(in, out, MESSAGE) == 0);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        if (i % 2) CHILD_NEEDS(setsockopt(fd[i], SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
        CHILD_NEEDS(close(fd[i]) == 0);
    }
    free(fd);
    _exit(7);
}

/* Before there is a runtime: the client's process has one thread. */
static void gather(struct crowd *crowd, uint32_t count)
{
    int ends[2];
    if (allow_fds(count + 200) < 0)
        TEST_SKIP("%u descriptors are not allowed here (ulimit -Hn)", count + 200);
    ASSERT_OK(pipe(ends));
    crowd->count = count;
    crowd->client = fork();
    if (crowd->client == 0) {
        (void)close(ends[1]);
        client_process(count, ends[0]);
    }
    ASSERT_OK(close(ends[0]));
    crowd->to_client = ends[1];
}

static _Atomic uint32_t alive, most; /* connections; relaxed: counts, read behind the joins */

static void comes(void)
{
    uint32_t now = fetch_add_relaxed(&alive, 1) + 1;
    uint32_t seen = load_relaxed(&most);
    while (seen < now && !cas_relaxed(&most, &seen, now))
        continue;
}

static int leaves(ssize_t n)
{
    (void)fetch_sub_relaxed(&alive, 1);
    return n == -ECONNRESET ? 0 : (int)n;
}

static int echoes(weft_stream *c)
{
    char b[64];
    ssize_t n;
    comes();
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if ((n = weft_write_all(c, b, (size_t)n)) < 0) break;
    weft_close(c);
    return leaves(n);
}

struct echoing {
    WEFT_FRAME(int);
    weft_stream *c;
    char b[64];
    struct weft_read rd;
    struct weft_write_all wr;
};
static weft_async(echoing)
{
    weft_begin;
    comes();
    do {
        weft_await(f->rd, weft_read, f->c, f->b, sizeof(f->b));
        if (f->rd.ret <= 0) break;
        weft_await(f->wr, weft_write_all, f->c, f->b, (size_t)f->rd.ret);
    } while (f->wr.ret > 0);
    weft_close(f->c);
    weft_return(leaves(f->rd.ret));
    weft_end;
}

static int serves(weft_listener *l, uint32_t count)
{
    int r = 0;
    int failed = 0;
    WEFT_SCOPE(clients, .error = &failed)
    {
        for (uint32_t i = 0; i < count && r == 0; i++) {
            weft_stream *c;
            r = weft_accept(l, &c);
            if (r == 0)
                r = i % 2 ? weft_spawn_in(clients, echoing, c) : weft_go_in(clients, echoes, c);
        }
    }
    return r < 0 ? r : failed;
}

static void serve_crowd(int workers, uint32_t count)
{
    struct crowd crowd;
    struct crew crew;
    struct town_gate gate;
    weft_stats stats;
    int r = 1;
    store_relaxed(&alive, 0);
    store_relaxed(&most, 0);
    gather(&crowd, count);
    crew_start(&crew, workers);
    town_open(&gate);
    weft_task *server = weft_go(serves, gate.listener, count);
    size_t length = strlen(gate.address);
    ASSERT_EQ(write(crowd.to_client, gate.address, length), (ssize_t)length);
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    ASSERT(ended_by(exit_code_of(crowd.client), 7));
    ASSERT_EQ(load_relaxed(&alive), 0);
    ASSERT_EQ(load_relaxed(&most), count); /* all at once */
    weft_rt_stats(crew.rt, &stats);
    ASSERT_EQ(stats.spawned, stats.completed);
    ASSERT_GE(stats.spawned, count);
    ASSERT_OK(close(crowd.to_client));
    weft_close(gate.listener);
    crew_stop(&crew);
}

TEST_WITH(many_connections_at_once, .timeout_s = 300)
{
    serve_crowd(2, (uint32_t)test_scaled(10000));
}

TEST_WITH(many_connections_on_any_runtime, .timeout_s = 300)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        serve_crowd(crew_sizes[i], (uint32_t)test_scaled(1000));
}

/* ---- a flood ---- */

#define FLOOD 300

struct flood {
    char address[WEFT_ADDR_TEXT];
    bool tcp;
    weft_time patience;
    _Atomic uint32_t begun; /* relaxed, all: progress and counts */
    _Atomic uint32_t greeted;
    _Atomic uint32_t given_up;
};

static int counted(struct flood *f, int r, ssize_t n, char b)
{
    if (r == 0 && n == 1 && b == '!') {
        (void)fetch_add_relaxed(&f->greeted, 1);
        return 0;
    }
    if (r == 0) r = (int)n;
    if (r != -ETIME) return r < 0 ? r : -EIO;
    (void)fetch_add_relaxed(&f->given_up, 1);
    return 0;
}

static int knocks(struct flood *f)
{
    weft_stream *c;
    ssize_t n = 0;
    int r = 0;
    char b = 0;
    (void)fetch_add_relaxed(&f->begun, 1);
    WEFT_TIMEOUT(f->patience)
    {
        r = f->tcp ? weft_tcp_connect(f->address, &c) : weft_unix_connect(f->address, &c);
        if (r == 0) {
            n = weft_read(c, &b, 1);
            weft_close(c);
        }
    }
    return counted(f, r, n, b);
}

struct knocking_once {
    WEFT_FRAME(int);
    struct flood *of;
    weft_stream *c;
    char b;
    union {
        struct weft_tcp_connect tcp;
        struct weft_unix_connect path;
        struct weft_read rd;
    } op;
};
static weft_async(knocking_once)
{
    weft_begin;
    if (f->of->tcp) {
        weft_await(f->op.tcp, weft_tcp_connect, f->of->address, &f->c);
        f->ret = f->op.tcp.ret;
    } else {
        weft_await(f->op.path, weft_unix_connect, f->of->address, &f->c);
        f->ret = f->op.path.ret;
    }
    if (f->ret < 0) weft_return(f->ret);
    weft_await(f->op.rd, weft_read, f->c, &f->b, 1);
    weft_close(f->c);
    weft_return((int)f->op.rd.ret);
    weft_end;
}

struct knocking {
    WEFT_FRAME(int);
    struct flood *of;
    struct knocking_once once;
    struct weft_timeout limit;
};
static weft_async(knocking)
{
    weft_begin;
    (void)fetch_add_relaxed(&f->of->begun, 1);
    weft_await(f->limit, weft_timeout, f->of->patience, weft_arm(f->once, knocking_once, f->of));
    weft_return(counted(f->of, f->once.ret < 0 ? f->once.ret : 0, f->once.ret, f->once.b));
    weft_end;
}

/* Until it is cancelled. A guest who has given up meanwhile is no error. */
static int greets(weft_listener *l)
{
    for (;;) {
        weft_stream *c;
        int r = weft_accept(l, &c);
        if (r < 0) return r == -ECANCELED ? 0 : r;
        ssize_t n = weft_write(c, "!", 1);
        weft_close(c);
        if (n < 0 && n != -EPIPE && n != -ECONNRESET && n != -ECANCELED) return (int)n;
    }
}

static void meet_one_more(struct flood *f)
{
    weft_stream *c;
    char b = 0;
    ASSERT_OK(f->tcp ? weft_tcp_connect(f->address, &c) : weft_unix_connect(f->address, &c));
    ASSERT_EQ(weft_read(c, &b, 1), 1);
    ASSERT_EQ(b, '!');
    weft_close(c);
}

/* All of them knock before the first is let in. Each is greeted, or has had enough; and behind them the server is as good as new. */
static void flooded(struct flood *f, weft_listener *l)
{
    weft_task *task[FLOOD];
    uint32_t count = (uint32_t)test_scaled(FLOOD);
    int r = 1;
    ASSERT_GE(weft_listener_print(l, f->address, sizeof f->address), 1);
    for (uint32_t i = 0; i < count; i++)
        task[i] = i % 2 ? weft_spawn(knocking, f) : weft_go(knocks, f);
    CREW_UNTIL(load_relaxed(&f->begun) == count);
    weft_task *server = weft_go(greets, l);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_EQ(load_relaxed(&f->greeted) + load_relaxed(&f->given_up), count);
    meet_one_more(f);
    weft_cancel(server);
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    weft_close(l);
}

/* TCP throws away what does not fit; who knocked tries again a second later, if his patience lasts. */
static void flood_tcp(int backlog, weft_time patience)
{
    struct flood f = {.tcp = true, .patience = patience};
    weft_listener *l;
    ASSERT_OK(weft_tcp_listen_with(&(weft_net_opts){.backlog = backlog}, "127.0.0.1:0", &l));
    flooded(&f, l);
}

static void flood_tcp_briefly(struct crew *crew)
{
    flood_tcp(crew->workers % 2 ? 8 : 1, weft_ms(200));
}

TEST_WITH(many_knock_at_once_and_some_give_up, .timeout_s = 300)
{
    crew_each(flood_tcp_briefly);
}

TEST_WITH(many_knock_again_a_second_later, .timeout_s = 300)
{
    struct crew crew;
    crew_start(&crew, 2);
    flood_tcp(8, weft_ms(1200));
    crew_stop(&crew);
}

/* A Unix listener's queue is waited for: nobody is turned away. */
static void flood_unix(struct crew *crew)
{
    char path[100];
    struct flood f = {.patience = WEFT_FOREVER};
    weft_listener *l;
    (void)snprintf(path, sizeof path, "@weft-flood-%d-%d", (int)getpid(), crew->workers);
    ASSERT_OK(weft_unix_listen_with(&(weft_net_opts){.backlog = 1}, path, &l));
    flooded(&f, l);
    ASSERT_EQ(load_relaxed(&f.given_up), 0);
}

TEST_WITH(many_knock_at_once_and_all_are_let_in, .timeout_s = 300)
{
    crew_each(flood_unix);
}
