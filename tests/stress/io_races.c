/* SPDX-License-Identifier: MIT
 *
 * Closes beside operations of every kind, at any moment, while threads that know nothing of the runtime open and close descriptors as fast as they can: each number is
 * somebody else's at once. Every byte carries the name of who sent it. An operation is answered with its own bytes or -EBADF, and nobody, neither here nor among the
 * strangers, ever finds a byte of another's. Seeded.
 */
#include "peer.h"
#include "slot.h"
#include "storm.h"

#include "driver/driver.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define LANES     4 /* two fibers, two threads */
#define STRANGERS 2

/* ---- strangers ---- */

struct stranger {
    pthread_t thread;
    _Atomic bool *over; /* relaxed: a flag */
    uint64_t seed;
    unsigned char tag;
};

static void only(const unsigned char *bytes, ssize_t count, unsigned char tag)
{
    ssize_t right = 0;
    while (right < count && bytes[right] == tag)
        right++;
    ASSERT_EQ(right, count);
}

/* What goes in comes out, and nothing else. */
static void talk_to_itself(int in, int out, unsigned char tag, uint64_t *random)
{
    unsigned char b[64];
    int more = -1;
    memset(b, tag, sizeof b);
    ASSERT_EQ(write(in, b, 32), 32);
    for (uint32_t k = pool_random(random, 4); k > 0; k--)
        sched_yield();
    ASSERT_EQ(read(out, b, sizeof b), 32);
    only(b, 32, tag);
    ASSERT_OK(ioctl(out, FIONREAD, &more));
    ASSERT_EQ(more, 0);
}

static void *is_a_stranger(void *arg)
{
    struct stranger *s = arg;
    uint64_t random = s->seed;
    while (!load_relaxed(s->over)) {
        int fds[2];
        bool pipes = pool_random(&random, 2);
        ASSERT_OK(pipes ? pipe2(fds, O_CLOEXEC)
                        : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
        talk_to_itself(fds[1], fds[0], s->tag, &random);
        if (!pipes) talk_to_itself(fds[0], fds[1], s->tag, &random);
        ASSERT_OK(close(fds[0]));
        ASSERT_OK(close(fds[1]));
    }
    return NULL;
}

/* ---- an operation, and what it is on ---- */

enum what {
    READ,
    PEEK,
    READ_EXACT,
    RECV_FDS,
    WRITE_ALL,
    PIPE_READ,
    PIPE_WRITE,
    TCP_READ,
    TCP_WRITE,
    RECV,
    SEND,
    READABLE,
    TRIES,
    WHATS
};

#define MUCH    600000 /* more than fits: it waits */
#define MESSAGE 100

struct race {
    enum what what;
    unsigned char tag;
    int peer; /* the other end, plain */
    struct weft__fdslot *slot;
    uint32_t as; /* of its users: who is inside */
    weft_stream *stream;
    weft_dgram *dgram;
    weft_fd *fd;
    ssize_t got;
    _Atomic bool over; /* relaxed: a look */
    ino_t file;        /* that our descriptor is */
    uint64_t random;   /* the operation's own */
    unsigned char buf[64];
};

static unsigned char much[LANES + 1][MUCH]; /* of each tag */

static ino_t file_of(int fd)
{
    struct stat about;
    return fstat(fd, &about) < 0 ? 0 : about.st_ino;
}

/* The number is ours for as long as the call lasts, and this one takes its time. */
static ssize_t read_it(int fd, void *arg)
{
    struct race *r = arg;
    storm_linger(&r->random);
    ASSERT_EQ(file_of(fd), r->file);
    ssize_t n = read(fd, r->buf, sizeof r->buf);
    if (n < 0) n = -errno;
    storm_linger(&r->random);
    ASSERT_EQ(file_of(fd), r->file);
    return n;
}

struct racing {
    WEFT_FRAME(int);
    struct race *r;
    int none;
    weft_fds fds;
    union {
        struct weft_read rd;
        struct weft_peek peek;
        struct weft_read_exact all;
        struct weft_unix_recv_fds with_fds;
        struct weft_write_all wr;
        struct weft_dgram_recv recv;
        struct weft_dgram_send send;
        struct weft_fd_readable wait;
        struct weft_fd_try tries;
    } op;
};
static weft_async(racing)
{
    struct race *r = f->r;
    weft_begin;
    switch (r->what) {
    case READ:
    case PIPE_READ:
    case TCP_READ:
        weft_await(f->op.rd, weft_read, f->r->stream, f->r->buf, sizeof f->r->buf);
        f->r->got = f->op.rd.ret;
        break;
    case PEEK:
        weft_await(f->op.peek, weft_peek, f->r->stream, f->r->buf, sizeof f->r->buf);
        f->r->got = f->op.peek.ret;
        break;
    case READ_EXACT:
        weft_await(f->op.all, weft_read_exact, f->r->stream, f->r->buf, sizeof f->r->buf);
        f->r->got = f->op.all.ret;
        break;
    case RECV_FDS:
        f->fds = (weft_fds){.fd = &f->none, .room = 1};
        weft_await(f->op.with_fds, weft_unix_recv_fds, f->r->stream, f->r->buf, sizeof f->r->buf,
                   &f->fds);
        f->r->got = f->op.with_fds.ret;
        break;
    case WRITE_ALL:
    case PIPE_WRITE:
    case TCP_WRITE:
        weft_await(f->op.wr, weft_write_all, f->r->stream, much[f->r->tag], MUCH);
        f->r->got = f->op.wr.ret;
        break;
    case RECV:
        weft_await(f->op.recv, weft_dgram_recv, f->r->dgram, f->r->buf, sizeof f->r->buf);
        f->r->got = f->op.recv.ret;
        break;
    case SEND:
        weft_await(f->op.send, weft_dgram_send, f->r->dgram, much[f->r->tag], MESSAGE);
        f->r->got = f->op.send.ret;
        break;
    case READABLE:
        weft_await(f->op.wait, weft_fd_readable, f->r->fd);
        f->r->got = f->op.wait.ret;
        break;
    default:
        weft_await(f->op.tries, weft_fd_try, f->r->fd, WEFT_FD_READ, read_it, f->r);
        f->r->got = f->op.tries.ret;
        break;
    }
    store_relaxed(&f->r->over, true);
    weft_return(0);
    weft_end;
}

static int races_on_a_fiber(struct race *r)
{
    return weft_run(racing, .r = r);
}

/* ---- making it ---- */

static bool writes(enum what what)
{
    return what == WRITE_ALL || what == PIPE_WRITE || what == TCP_WRITE || what == SEND;
}

/* A connected pair by way of a listener that lives for a moment. */
static void tcp_pair(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(l, 0);
    ASSERT_OK(bind(l, (struct sockaddr *)&at, sizeof at));
    ASSERT_OK(listen(l, 1));
    ASSERT_OK(getsockname(l, (struct sockaddr *)&at, &bytes));
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fds[0], 0);
    ASSERT_OK(connect(fds[0], (struct sockaddr *)&at, bytes));
    fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_GE(fds[1], 0);
    ASSERT_OK(close(l));
}

/* [0]: the peer's; [1]: ours. */
static void open_pair(enum what what, int fds[2])
{
    int swap;
    if (what == TCP_READ || what == TCP_WRITE) {
        tcp_pair(fds);
    } else if (what == PIPE_READ || what == PIPE_WRITE) {
        ASSERT_OK(pipe2(fds, O_CLOEXEC)); /* [0] reads */
        swap = fds[0];
        if (what == PIPE_READ) {
            fds[0] = fds[1];
            fds[1] = swap;
        }
    } else {
        ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    }
}

/* One that is full: who sends there waits. */
static void fill(int fd, unsigned char tag)
{
    while (send(fd, much[tag], MESSAGE, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        continue;
    ASSERT_EQ(errno, EAGAIN);
}

static void make_dgrams(struct race *r)
{
    weft_dgram *other;
    ASSERT_OK(weft_packet_pair(&other, &r->dgram));
    r->peer = dup(weft_dgram_fd(other));
    ASSERT_GE(r->peer, 0);
    weft_close(other);
    r->slot = (struct weft__fdslot *)(void *)r->dgram;
    r->as = WEFT__USE_READER - 1;
    if (r->what == SEND) fill(weft_dgram_fd(r->dgram), r->tag);
}

static void make(struct race *r, enum what what, unsigned char tag, uint64_t *random)
{
    int fds[2];
    *r =
        (struct race){.what = what, .tag = tag, .got = -1, .random = pool_random(random, 1000) + 1};
    if (what == RECV || what == SEND) {
        make_dgrams(r);
        return;
    }
    open_pair(what, fds);
    r->peer = fds[0];
    if (what == READABLE || what == TRIES) {
        r->file = file_of(fds[1]);
        ASSERT_OK(fcntl(fds[1], F_SETFL, O_NONBLOCK));
        ASSERT_OK(weft_fd_open(fds[1], &r->fd));
        r->slot = (struct weft__fdslot *)(void *)r->fd;
        r->as = WEFT__USE_READER - 1;
    } else {
        ASSERT_OK(weft_stream_of_fd(fds[1], &r->stream));
        r->slot = slot_of(r->stream);
        r->as = writes(what) ? WEFT__USE_WRITER : WEFT__USE_READER;
    }
}

static void close_it(struct race *r)
{
    if (r->stream) weft_close(r->stream);
    if (r->dgram) weft_close(r->dgram);
    if (r->fd) weft_close(r->fd);
}

/* ---- one race ---- */

/* The peer does what it waits for, or some of it. */
static void help(struct race *r)
{
    unsigned char some[2 * MESSAGE];
    if (!writes(r->what)) {
        ASSERT_EQ(write(r->peer, much[r->tag], 8), 8);
        return;
    }
    ssize_t n = read(r->peer, some,
                     sizeof some); /* never in vain: it has begun, and goes on until it waits */
    ASSERT_GE(n, 1);
    only(some, n, r->tag);
}

static void let_go_on(uint64_t *random)
{
    for (uint32_t k = pool_random(random, 300); k > 0; k--)
        cpu_pause();
    for (uint32_t k = pool_random(random, 3); k > 0; k--)
        (void)weft_yield();
}

/* Everything that reached the peer is ours. */
static void check_peer(struct race *r)
{
    static const size_t room = 65536;
    unsigned char *buf = malloc(room);
    ssize_t n;
    ASSERT(buf != NULL);
    struct pollfd end = {.fd = r->peer, .events = POLLIN};
    while ((n = read(r->peer, buf, room)) > 0 || (n < 0 && errno == EAGAIN)) {
        if (n > 0) only(buf, n, r->tag);
        else (void)poll(&end, 1, -1); /* on a ring the end comes when the kernel has let go */
    }
    ASSERT(n == 0 || errno == ECONNRESET);
    free(buf);
}

static void check_answer(const struct race *r)
{
    bool bytes = !writes(r->what) && r->what != READABLE;
    if (r->got == -EBADF) return;
    if (r->what == READABLE) ASSERT_EQ(r->got, 0);
    if (r->what == WRITE_ALL || r->what == TCP_WRITE || r->what == PIPE_WRITE)
        ASSERT_EQ(r->got, MUCH);
    if (r->what == SEND) ASSERT_EQ(r->got, MESSAGE);
    if (!bytes) return;
    ASSERT_GE(r->got, 1);
    only(r->buf, r->got, r->tag);
}

static int one_race(unsigned char tag, uint64_t *random)
{
    struct race r;
    int answer = 1;
    make(&r, (enum what)pool_random(random, WHATS), tag, random);
    uint32_t when = pool_random(random, 3); /* never, before, or while it waits */
    if (when == 1 && !writes(r.what)) help(&r);
    weft_task *task =
        pool_random(random, 2) ? weft_spawn(racing, &r) : weft_go(races_on_a_fiber, &r);
    while (!(load_relaxed(&r.slot->users) & r.as) && !load_relaxed(&r.over))
        (void)weft_yield(); /* relaxed: a look. What is closed must have begun, or be over */
    let_go_on(random);
    if (when == 2) {
        help(&r);
        let_go_on(random);
    }
    close_it(&r);
    if (weft_join(task, &answer) < 0 || answer < 0) return -EIO;
    check_answer(&r);
    if (r.what != PIPE_READ) check_peer(&r); /* of that one the peer only writes */
    ASSERT_OK(close(r.peer));
    return 0;
}

/* ---- doors: a listener that is closed under who accepts and who connects ---- */

#define GUESTS 3

struct door {
    struct town_gate gate;
    unsigned char tag;
    _Atomic uint32_t begun; /* accepts; relaxed: a look */
};

/* One, who is one of ours, or nobody. It says when its accept is under way: only what has begun may be closed upon. */
struct lets_in {
    WEFT_FRAME(int);
    struct door *d;
    bool begun, came;
    weft_stream *c;
    unsigned char b;
    struct weft_accept accept;
    struct weft_read rd;
};

static weft_poll accepts_one(struct lets_in *f, weft_cx *cx)
{
    if (!f->begun) f->accept = (struct weft_accept){.listener = f->d->gate.listener, .into = &f->c};
    weft_poll answer = weft_accept_poll(&f->accept, cx);
    if (!f->begun) (void)fetch_add_relaxed(&f->d->begun, 1);
    f->begun = true;
    return answer;
}

static weft_poll hears_one(struct lets_in *f, weft_cx *cx)
{
    if (!f->came) f->rd = (struct weft_read){.stream = f->c, .buf = &f->b, .len = 1};
    f->came = true;
    if (weft_read_poll(&f->rd, cx) == WEFT_PENDING) return WEFT_PENDING;
    weft_close(f->c);
    ASSERT_EQ(f->rd.ret, 1);
    ASSERT_EQ(f->b, f->d->tag);
    return WEFT_READY;
}

static weft_poll lets_in_poll(void *frame, weft_cx *cx)
{
    struct lets_in *f = frame;
    if (!f->came && accepts_one(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    f->ret = f->accept.ret == -EBADF ? 0 : f->accept.ret;
    return f->accept.ret < 0 ? WEFT_READY : hears_one(f, cx);
}

static int lets_in_on_a_fiber(struct door *d)
{
    return weft_run(lets_in, .d = d);
}

/* Each lane has an address of its own: a port that is free again may be another's at once. */
static int visits(struct door *d)
{
    weft_stream *c;
    int r = weft_tcp_connect(d->gate.address, &c);
    if (r == 0) {
        unsigned char b;
        ssize_t n = weft_write(c, &d->tag, 1);
        if (n == 1) n = weft_read(c, &b, 1); /* to the end: nobody answers */
        weft_close(c);
        ASSERT(n == 0 || n == -ECONNRESET || n == -EPIPE);
    }
    return r == -ECONNREFUSED || r == -ECONNRESET ? 0 : r;
}

static int one_door(unsigned char tag, uint64_t *random)
{
    struct door d = {.tag = tag};
    weft_task *task[2 * GUESTS];
    int sum = 0;
    town_open_alone(&d.gate, tag);
    for (int i = 0; i < GUESTS; i++)
        task[i] = i % 2 ? weft_spawn(lets_in, &d) : weft_go(lets_in_on_a_fiber, &d);
    while (load_relaxed(&d.begun) < GUESTS)
        (void)weft_yield();
    for (int i = 0; i < GUESTS; i++)
        task[GUESTS + i] = weft_go(visits, &d);
    let_go_on(random);
    weft_close(d.gate.listener);
    for (int i = 0; i < 2 * GUESTS; i++) {
        int r = -1;
        sum += weft_join(task[i], &r) < 0 ? -EIO : r;
    }
    return sum;
}

/* ---- a descriptor that is taken back while one who waited for it leaves ---- */

static int waits(weft_fd *w, _Atomic bool *over)
{
    int r = weft_fd_readable(w);
    store_relaxed(over, true); /* relaxed: a look */
    return r;
}

static int one_take(unsigned char tag, uint64_t *random)
{
    struct race r;
    weft_task *task;
    int fd;
    int answer = 1;
    make(&r, READABLE, tag, random);
    task = weft_go(waits, r.fd, &r.over);
    while (!(load_relaxed(&r.slot->users) & r.as) && !load_relaxed(&r.over))
        (void)weft_yield(); /* relaxed: a look */
    let_go_on(random);
    help(&r);
    while ((fd = weft_fd_take(r.fd)) == -EBUSY)
        (void)weft_yield();
    ASSERT_GE(fd, 0);
    ASSERT_EQ(read(fd, r.buf, sizeof r.buf), 8); /* it is ours, and so are they */
    only(r.buf, 8, tag);
    ASSERT_OK(close(fd));
    ASSERT_OK(close(r.peer));
    return weft_join(task, &answer) < 0 ? -EIO : answer;
}

/* ---- lanes ---- */

struct lane {
    int (*round)(unsigned char tag, uint64_t *random);
    weft_rt *rt;
    uint32_t rounds;
    uint64_t seed;
    unsigned char tag;
};

static int runs_lane(struct lane *lane)
{
    uint64_t random = lane->seed;
    for (uint32_t i = 0; i < lane->rounds; i++) {
        int r = lane->round(lane->tag, &random);
        if (r < 0) return r;
    }
    return 0;
}

static void *runs_lane_outside(void *arg)
{
    struct lane *lane = arg;
    (void)weft_rt_enter(lane->rt);
    int r = runs_lane(lane);
    (void)weft_rt_enter(NULL);
    return (void *)(intptr_t)r;
}

/* ---- all of them ---- */

static void start_strangers(struct stranger *s, _Atomic bool *over)
{
    for (uint32_t i = 0; i < STRANGERS; i++) {
        s[i] = (struct stranger){
            .over = over, .seed = pool_seed(100 + i), .tag = (unsigned char)(200 + i)};
        ASSERT_OK(pthread_create(&s[i].thread, NULL, is_a_stranger, &s[i]));
    }
}

static void stop_strangers(struct stranger *s, _Atomic bool *over)
{
    store_relaxed(over, true);
    for (uint32_t i = 0; i < STRANGERS; i++)
        ASSERT_OK(pthread_join(s[i].thread, NULL));
}

static void run_lanes(struct crew *crew, int (*round)(unsigned char tag, uint64_t *random),
                      uint32_t rounds)
{
    struct stranger stranger[STRANGERS];
    struct lane lane[LANES];
    weft_task *task[LANES / 2];
    pthread_t thread[LANES / 2];
    _Atomic bool over = false;
    start_strangers(stranger, &over);
    for (uint32_t i = 0; i < LANES; i++) {
        unsigned char tag = (unsigned char)(i + 1);
        lane[i] = (struct lane){
            .round = round, .rt = crew->rt, .rounds = rounds, .seed = pool_seed(i), .tag = tag};
        memset(much[tag], tag, MUCH);
        if (i % 2) {
            ASSERT_OK(pthread_create(&thread[i / 2], NULL, runs_lane_outside, &lane[i]));
        } else {
            task[i / 2] = weft_go(runs_lane, &lane[i]);
        }
    }
    for (int i = 0; i < LANES / 2; i++) {
        void *answer;
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
        ASSERT_OK(pthread_join(thread[i], &answer));
        ASSERT_EQ((intptr_t)answer, 0);
    }
    stop_strangers(stranger, &over);
}

static void closes(struct crew *crew)
{
    run_lanes(crew, one_race, (uint32_t)test_scaled(50));
}

TEST_WITH(races_of_closes_and_operations, .timeout_s = 300)
{
    crew_each(closes);
}

static void doors(struct crew *crew)
{
    run_lanes(crew, one_door, (uint32_t)test_scaled(25));
}

TEST_WITH(races_of_a_listener_and_its_guests, .timeout_s = 300)
{
    crew_each(doors);
}

static void takes(struct crew *crew)
{
    run_lanes(crew, one_take, (uint32_t)test_scaled(40));
}

TEST_WITH(races_of_a_descriptor_that_is_taken_back, .timeout_s = 300)
{
    crew_each(takes);
}
