/* SPDX-License-Identifier: MIT
 *
 * epoll - the bare loop: every connection registered once, edge-triggered, for both directions; a request is one recv, one send, and its share of
 * an epoll_wait.
 *
 * One buffer for all: what it holds is answered before the next connection has its turn. Only what is cut lives longer, in memory of the
 * connection's own: the beginning of a request, or the rest of an answer that the socket would not take.
 * SHORT IS ALL  A recv that gives less than was asked for has emptied the socket, unless the peer has ended (EPOLLRDHUP): then the end is still
 * to be read. While an answer's rest waits nothing is read; when it has gone, reading goes on without an event, which may have come before.
 */
#include "http.h"
#include "limit.h"
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS    512
#define ENDS      (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
#define BUF_BYTES SERVE_BUF_BYTES

struct conn {
    int fd;
    bool last;        /* to be closed when the rest is sent */
    size_t in_bytes;  /* of `in` */
    char *in;         /* the beginning of a request that was cut; NULL: there was none yet */
    size_t out_bytes; /* of `out` that are still to be sent */
    size_t out_at;
    size_t out_capacity;
    char *out; /* the rest of an answer; NULL: there was none yet */
};

static enum limit_case serving;
static char shared_buf[BUF_BYTES];

/* ---- connections ---- */

static void conn_close(struct conn *c)
{
    close(c->fd); /* which takes it out of the epoll */
    free(c->in);
    free(c->out);
    free(c);
}

static void conn_open(int epoll, int fd)
{
    struct conn *c = calloc(1, sizeof(*c));
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};

    if (!c) limit_give_up("a connection");
    c->fd = fd;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) limit_give_up("epoll_ctl");
} // NOLINT(clang-analyzer-unix.Malloc): the epoll has it

static void accept_all(int epoll, int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        conn_open(epoll, fd);
}

/* ---- sending ---- */

static void keep_rest(struct conn *c, const char *at, size_t bytes)
{
    if (c->out_bytes + bytes > c->out_capacity) {
        c->out_capacity = c->out_bytes + bytes;
        char *out = realloc(c->out, c->out_capacity);
        if (!out) limit_give_up("the rest of an answer");
        c->out = out;
    }
    memcpy(c->out + c->out_bytes, at, bytes);
    c->out_bytes += bytes;
}

/* False: the connection is broken. */
static bool put(struct conn *c, const char *at, size_t bytes)
{
    if (c->out_bytes == 0) {
        ssize_t n = send(c->fd, at, bytes, MSG_NOSIGNAL);
        if (n == (ssize_t)bytes) return true;
        if (n < 0 && errno != EAGAIN) return false;
        if (n < 0) n = 0;
        at += n;
        bytes -= (size_t)n;
    }
    keep_rest(c, at, bytes);
    return true;
}

static bool put_rest(struct conn *c)
{
    while (c->out_bytes > 0) {
        ssize_t n = send(c->fd, c->out + c->out_at, c->out_bytes, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN;
        c->out_at += (size_t)n;
        c->out_bytes -= (size_t)n;
    }
    c->out_at = 0;
    return true;
}

/* ---- what came: false, the connection is over ---- */

static bool echo(struct conn *c, size_t bytes)
{
    if (!put(c, shared_buf, bytes)) return false;
    serve_add(bytes);
    return true;
}

/* What was cut stays in memory of the connection's own. */
static void keep_beginning(struct conn *c, const char *at, size_t bytes)
{
    if (!c->in) c->in = malloc(HTTP_HEAD_MAX);
    if (!c->in) limit_give_up("the beginning of a request");
    if (bytes > 0) memmove(c->in, at, bytes);
    c->in_bytes = bytes;
}

static bool answer(struct conn *c, const char *at, size_t bytes)
{
    struct http_work work;
    do {
        work = http_take(at, bytes);
        if (work.good > 0 && !put(c, http_answers, work.good * HTTP_ANSWER_BYTES)) return false;
        serve_add(work.good + work.last);
        at += work.used;
        bytes -= work.used;
    } while (work.good == HTTP_BATCH && bytes > 0);
    if (bytes > 0 || c->in_bytes > 0) keep_beginning(c, at, bytes);
    c->last = work.last;
    return !work.last || put(c, work.end, work.end_bytes);
}

/* Reads behind what was cut before. Returns what recv does. */
static ssize_t take(struct conn *c, size_t *room)
{
    char *at = c->in_bytes ? c->in + c->in_bytes : shared_buf;
    *room = c->in_bytes ? HTTP_HEAD_MAX - c->in_bytes : BUF_BYTES;
    return recv(c->fd, at, *room, 0);
}

static bool handle(struct conn *c, size_t bytes)
{
    if (serving == LIMIT_ECHO) return echo(c, bytes);
    return c->in_bytes ? answer(c, c->in, c->in_bytes + bytes) : answer(c, shared_buf, bytes);
}

/* False: it is over. */
static bool read_all(struct conn *c, uint32_t events)
{
    for (;;) {
        size_t room;
        ssize_t n = take(c, &room);
        if (n < 0) return errno == EAGAIN;
        if (n == 0 || !handle(c, (size_t)n)) return false;
        if (c->out_bytes > 0) return true;
        if (c->last) return false;
        if ((size_t)n < room && !(events & ENDS)) return true;
    }
}

static bool on_event(struct conn *c, uint32_t events)
{
    if (c->out_bytes > 0) {
        if (!put_rest(c)) return false;
        if (c->out_bytes > 0) return true;
        if (c->last) return false;
        events |= EPOLLIN; /* its event may have come meanwhile */
    }
    return !(events & (EPOLLIN | ENDS)) || read_all(c, events);
}

/* ---- the loop ---- */

void limit_epoll(int listener, enum limit_case which)
{
    struct epoll_event events[EVENTS];
    struct epoll_event first = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    serving = which;
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &first) < 0) limit_give_up("epoll");
    while (!serve_is_stopped()) {
        int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (!c) {
                accept_all(epoll, listener);
            } else if (!on_event(c, events[i].events)) {
                conn_close(c);
            }
        }
    }
}
