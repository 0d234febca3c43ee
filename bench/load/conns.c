/* SPDX-License-Identifier: MIT
 *
 * conns - the connections of a load, on one epoll; what they do is in load.h.
 *
 * A connection keeps no bytes: what it has sent is an offset in the endless row of its requests, what it has received one in that of the answers,
 * and the text at an offset can be made at any time. Both ends are registered once, edge-triggered.
 *     requested      requests that were asked for; requested * request_bytes >= sent
 *     answered       answers that were whole;      answered <= requested <= answered + depth
 * A send that is cut, by the plan or by a full socket, goes on: the plan's in the next turn of the loop (`unfinished`), the socket's by its event.
 * The clock is read once for each answer: its end is the beginning of the request that follows.
 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RAMP_MOST  64    /* far less than any listener's queue */
#define EVENTS     256   /* of one wait */
#define BUF_BYTES  65536 /* of one send or receive */
#define PATIENCE_S 10    /* without any answer at all */
#define RESETS_ABOVE                                                                               \
    1000 /* connections: so many would hold ports for a minute, so they are reset */

struct conn {
    int fd;
    bool greeted;    /* has had its first answer */
    bool unfinished; /* in that list */
    struct conn *next_unfinished;
    uint64_t requested;
    uint64_t answered;
    uint64_t sent;        /* bytes */
    size_t in_at;         /* in the answer that is being received */
    uint64_t *started_ns; /* of request k: [k % depth] */
};

enum phase { RAMP, WARM, COUNT, DRAIN };

static struct {
    const struct load_plan *plan;
    struct load_result *result;
    enum phase phase;
    uint64_t phase_ends_ns; /* WARM, COUNT */
    uint64_t began_ns;      /* COUNT */
    uint64_t heard_ns;      /* the last answer */
    int epoll;
    struct conn *conns;
    unsigned opened;
    unsigned greeted;
    uint64_t asked;   /* since the ramp */
    uint64_t waiting; /* requests under way */
    struct conn *unfinished;
    char *text; /* one message of the script, stamped */
    char out[BUF_BYTES];
    char in[BUF_BYTES];
} load;

/* ---- failing ---- */

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double cpu_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static unsigned number_of(const struct conn *c)
{
    return (unsigned)(c - load.conns);
}

/* ---- the script ---- */

static void stamp(char *text, const struct conn *c, uint64_t which)
{
    uint64_t value = (uint64_t)number_of(c) << 40 | which;
    if (load.plan->script.stamped) memcpy(text, &value, sizeof(value));
}

/* Writes the requests of c from an offset on. Returns how many bytes. */
static size_t write_requests(const struct conn *c, uint64_t from, uint64_t to, size_t most)
{
    const struct load_script *s = &load.plan->script;
    uint64_t which = from / s->request_bytes;
    size_t skip = from % s->request_bytes;
    size_t bytes = 0;

    for (; from + bytes < to && bytes < most; which++, skip = 0) {
        size_t len = s->request_bytes - skip;
        if (len > most - bytes) len = most - bytes;
        memcpy(load.text, s->request, s->request_bytes);
        stamp(load.text, c, which);
        memcpy(load.out + bytes, load.text + skip, len);
        bytes += len;
    }
    return bytes;
}

/* ---- sending ---- */

static void later(struct conn *c)
{
    if (c->unfinished) return;
    c->unfinished = true;
    c->next_unfinished = load.unfinished;
    load.unfinished = c;
}

/* Sends what was requested and is not sent yet. */
static void flush(struct conn *c)
{
    uint64_t to = c->requested * load.plan->script.request_bytes;
    size_t most = load.plan->cut_bytes ? load.plan->cut_bytes : BUF_BYTES;

    while (c->sent < to) {
        size_t bytes = write_requests(c, c->sent, to, most);
        ssize_t n = send(c->fd, load.out, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) fail("connection %u: send: %s", number_of(c), strerror(errno));
        c->sent += (uint64_t)n;
        if (load.plan->cut_bytes && c->sent < to) {
            later(c);
            return;
        }
    }
}

static bool may_ask(void)
{
    if (load.phase == RAMP || load.phase == DRAIN) return false;
    return !load.plan->requests || load.asked < load.plan->requests;
}

static void request_one(struct conn *c, uint64_t at_ns)
{
    c->started_ns[c->requested++ % load.plan->depth] = at_ns;
    load.waiting++;
}

/* As many as may be under way. */
static void ask(struct conn *c, uint64_t at_ns)
{
    while (c->requested - c->answered < load.plan->depth && may_ask()) {
        load.asked++;
        request_one(c, at_ns);
    }
    flush(c);
}

/* ---- receiving ---- */

static void compare(const struct conn *c, const char *got, size_t len)
{
    const struct load_script *s = &load.plan->script;

    memcpy(load.text, s->answer, s->answer_bytes);
    stamp(load.text, c, c->answered);
    if (memcmp(got, load.text + c->in_at, len) == 0) return;
    size_t i = 0;
    while (got[i] == load.text[c->in_at + i])
        i++;
    fail("connection %u, answer %llu: byte %zu is 0x%02x instead of 0x%02x", number_of(c),
         (unsigned long long)c->answered, c->in_at + i, (unsigned char)got[i],
         (unsigned char)load.text[c->in_at + i]);
}

static void answered(struct conn *c, uint64_t at_ns)
{
    if (load.phase == COUNT) {
        load.result->requests++;
        hist_add(&load.result->times, at_ns - c->started_ns[c->answered % load.plan->depth]);
    }
    c->answered++;
    c->in_at = 0;
    load.waiting--;
    load.heard_ns = at_ns;
    if (c->greeted) return;
    c->greeted = true;
    load.greeted++;
}

/* Bytes that came: whole answers, and parts of them. */
static void takes(struct conn *c, const char *got, size_t len, uint64_t at_ns)
{
    size_t bytes = load.plan->script.answer_bytes;

    while (len > 0) {
        size_t part = len < bytes - c->in_at ? len : bytes - c->in_at;
        if (c->answered == c->requested) fail("connection %u: an answer too many", number_of(c));
        compare(c, got, part);
        c->in_at += part;
        got += part;
        len -= part;
        if (c->in_at == bytes) answered(c, at_ns);
    }
}

/* Less than was asked for is all: it needs no second call. */
static void receive(struct conn *c)
{
    ssize_t n;
    do {
        n = recv(c->fd, load.in, sizeof(load.in), 0);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) fail("connection %u: recv: %s", number_of(c), strerror(errno));
        if (n == 0) fail("connection %u: the server has closed it", number_of(c));
        uint64_t at_ns = now_ns();
        takes(c, load.in, (size_t)n, at_ns);
        ask(c, at_ns);
    } while (n == (ssize_t)sizeof(load.in));
}

/* ---- the ramp ---- */

static void open_one(struct conn *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(load.plan->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) fail("socket: %s", strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(c->fd, (struct sockaddr *)&at, sizeof(at)) < 0 && errno != EINPROGRESS)
        fail("connect: %s", strerror(errno));
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) < 0)
        fail("epoll_ctl: %s", strerror(errno));
    request_one(c, now_ns()); /* the greeting: sent when the socket says that it can be written */
}

static void open_more(void)
{
    while (load.opened < load.plan->conns && load.opened - load.greeted < RAMP_MOST)
        open_one(&load.conns[load.opened++]);
}

/* ---- phases ---- */

static void tell_server(int number)
{
    if (load.plan->server && kill(load.plan->server, number) < 0)
        fail("the server, process %d: %s", (int)load.plan->server, strerror(errno));
}

static void start_all(void)
{
    for (unsigned i = 0; i < load.opened; i++)
        ask(&load.conns[i], now_ns());
}

static uint64_t after(uint64_t at_ns, double seconds)
{
    return at_ns + (uint64_t)(seconds * 1e9);
}

static void begin_warm(uint64_t at_ns)
{
    load.phase = WARM;
    load.phase_ends_ns = after(at_ns, load.plan->warm_s);
}

static void begin_count(uint64_t at_ns)
{
    load.phase = COUNT;
    load.began_ns = at_ns;
    load.phase_ends_ns = load.plan->requests ? UINT64_MAX : after(at_ns, load.plan->count_s);
    load.result->cpu_us = cpu_us();
    tell_server(SIGUSR1);
}

static void begin_drain(uint64_t at_ns)
{
    load.result->seconds = (double)(at_ns - load.began_ns) / 1e9;
    load.result->cpu_us = cpu_us() - load.result->cpu_us;
    tell_server(SIGUSR2);
    load.phase = DRAIN;
}

static bool ramp_is_over(void)
{
    return load.phase == RAMP && load.greeted == load.plan->conns;
}

static bool count_is_over(uint64_t at_ns)
{
    bool all = load.plan->requests && load.asked == load.plan->requests && load.waiting == 0;
    return load.phase == COUNT && (all || at_ns >= load.phase_ends_ns);
}

static void change_phase(uint64_t at_ns)
{
    if (ramp_is_over()) {
        begin_warm(at_ns);
        if (load.plan->requests) begin_count(at_ns); /* all of them count */
        start_all();
    } else if (load.phase == WARM && at_ns >= load.phase_ends_ns) {
        begin_count(at_ns);
    } else if (count_is_over(at_ns)) {
        begin_drain(at_ns);
    }
}

/* ---- the loop ---- */

static void on_event(const struct epoll_event *event)
{
    struct conn *c = event->data.ptr;
    if (event->events & EPOLLOUT) flush(c);
    if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c);
}

static void finish_some(void)
{
    struct conn *c = load.unfinished;
    load.unfinished = NULL;
    while (c) {
        struct conn *next = c->next_unfinished;
        c->unfinished = false;
        flush(c);
        c = next;
    }
}

static int wait_ms(uint64_t at_ns)
{
    if (load.unfinished) return 0;
    if (load.phase != WARM && load.phase != COUNT) return 100;
    uint64_t left = load.phase_ends_ns > at_ns ? load.phase_ends_ns - at_ns : 0;
    return left > 100000000 ? 100 : (int)(left / 1000000) + 1;
}

static void turn(void)
{
    struct epoll_event events[EVENTS];
    uint64_t at_ns = now_ns();

    if (at_ns - load.heard_ns > PATIENCE_S * UINT64_C(1000000000))
        fail("no answer for %d seconds; %llu are waited for", PATIENCE_S,
             (unsigned long long)load.waiting);
    int n = epoll_wait(load.epoll, events, EVENTS, wait_ms(at_ns));
    for (int i = 0; i < n; i++)
        on_event(&events[i]);
    finish_some();
    if (load.phase == RAMP) open_more();
    change_phase(now_ns());
}

static void close_all(void)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    for (unsigned i = 0; i < load.opened; i++) {
        int fd = load.conns[i].fd;
        if (load.opened > RESETS_ABOVE)
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
    }
}

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) fail("no memory");
    return memory;
}

void load_run(const struct load_plan *plan, struct load_result *into)
{
    size_t text = plan->script.request_bytes;
    if (plan->script.answer_bytes > text) text = plan->script.answer_bytes;
    load.plan = plan;
    load.result = into;
    load.text = zeroed(text, 1);
    load.conns = zeroed(plan->conns, sizeof(struct conn));
    uint64_t *started = zeroed((size_t)plan->conns * plan->depth, sizeof(*started));
    for (unsigned i = 0; i < plan->conns; i++)
        load.conns[i].started_ns = started + (size_t)i * plan->depth;
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load.epoll < 0) fail("epoll_create1: %s", strerror(errno));
    load.heard_ns = now_ns();
    open_more();
    while (load.phase != DRAIN || load.waiting > 0)
        turn();
    close_all();
    close(load.epoll);
    free(started);
    free(load.conns);
    free(load.text);
}
