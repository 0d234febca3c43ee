/* SPDX-License-Identifier: MIT
 *
 * The servers: echo, and an HTTP that answers "hello", a task for each connection, stackless and as fibers. They serve until a signal, and
 * then tell what a request has cost (serve.h).
 *
 * One task accepts and spawns, one waits for the signal; the main thread waits for that one. The clients that are still there end with the runtime.
 */
#include "http.h"
#include "root.h"
#include "serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int r, const char *what)
{
    if (r >= 0) return;
    fprintf(stderr, "weft_bench: %s: %s\n", what, strerror(-r));
    exit(1);
}

/* ---- echo --------------------------------------------------------------------------------------- */

/* One at a time: with thousands of connections each line of a frame is a miss of the cache. */
union move {
    struct weft_read read;
    struct weft_write_all write;
};

struct echo_client {
    WEFT_FRAME(int);
    weft_stream *stream;
    union move move;
    char buf[SERVE_BUF_BYTES];
};

static weft_async(echo_client)
{
    ssize_t n;
    weft_begin;
    for (;;) {
        weft_await(f->move.read, weft_read, f->stream, f->buf, sizeof(f->buf));
        n = f->move.read.ret;
        if (n <= 0) break;
        weft_await(f->move.write, weft_write_all, f->stream, f->buf, (size_t)n);
        if (f->move.write.ret < 0) break;
        serve_add((uint64_t)f->move.write.ret);
    }
    weft_close(f->stream);
    weft_end;
}

static int echo_fiber_client(weft_stream *stream)
{
    char buf[SERVE_BUF_BYTES];
    ssize_t n;

    while ((n = weft_read(stream, buf, sizeof(buf))) > 0) {
        if (weft_write_all(stream, buf, (size_t)n) < 0) break;
        serve_add((uint64_t)n);
    }
    weft_close(stream);
    return 0;
}

/* ---- http --------------------------------------------------------------------------------------- */

/* What was taken goes; what was cut stays, at the front. */
static void consume(char *buf, size_t *bytes, size_t used)
{
    *bytes -= used;
    if (*bytes > 0) memmove(buf, buf + used, *bytes);
}

struct http_client {
    WEFT_FRAME(int);
    weft_stream *stream;
    union move move;
    struct http_work work;
    size_t bytes; /* in the buffer */
    char buf[HTTP_HEAD_MAX];
};

static weft_async(http_client)
{
    weft_begin;
    for (f->bytes = 0; !f->work.last;) {
        weft_await(f->move.read, weft_read, f->stream, f->buf + f->bytes,
                   sizeof(f->buf) - f->bytes);
        if (f->move.read.ret <= 0) goto out;
        f->bytes += (size_t)f->move.read.ret;
        do {
            f->work = http_take(f->buf, f->bytes);
            consume(f->buf, &f->bytes, f->work.used);
            if (f->work.good > 0) {
                weft_await(f->move.write, weft_write_all, f->stream, http_answers,
                           f->work.good * HTTP_ANSWER_BYTES);
                if (f->move.write.ret < 0) goto out;
                serve_add(f->work.good);
            }
        } while (f->work.good == HTTP_BATCH && f->bytes > 0);
    }
    weft_await(f->move.write, weft_write_all, f->stream, f->work.end, f->work.end_bytes);
    serve_add(1);
out:
    weft_close(f->stream);
    f->ret = 0; /* a client that is gone is no failure */
    weft_end;
}

/* Answer what is in the buffer. Returns whether the connection goes on. */
static bool http_answer(weft_stream *stream, char *buf, size_t *bytes)
{
    struct http_work work;
    do {
        work = http_take(buf, *bytes);
        consume(buf, bytes, work.used);
        if (work.good > 0) {
            if (weft_write_all(stream, http_answers, work.good * HTTP_ANSWER_BYTES) < 0)
                return false;
            serve_add(work.good);
        }
    } while (work.good == HTTP_BATCH && *bytes > 0);
    if (!work.last) return true;
    if (weft_write_all(stream, work.end, work.end_bytes) >= 0) serve_add(1);
    return false;
}

static int http_fiber_client(weft_stream *stream)
{
    char buf[HTTP_HEAD_MAX];
    size_t bytes = 0;
    ssize_t n;

    while ((n = weft_read(stream, buf + bytes, sizeof(buf) - bytes)) > 0) {
        bytes += (size_t)n;
        if (!http_answer(stream, buf, &bytes)) break;
    }
    weft_close(stream);
    return 0;
}

/* ---- accepting ---------------------------------------------------------------------------------- */

/* Starts the client of a connection; gives it, or NULL. */
typedef weft_task *start_client(weft_stream *stream);

static weft_task *start_echo(weft_stream *stream)
{
    return weft_spawn(echo_client, .stream = stream);
}

static weft_task *start_echo_fiber(weft_stream *stream)
{
    return weft_go(echo_fiber_client, stream);
}

static weft_task *start_http(weft_stream *stream)
{
    return weft_spawn(http_client, .stream = stream);
}

static weft_task *start_http_fiber(weft_stream *stream)
{
    return weft_go(http_fiber_client, stream);
}

static int accepts(weft_listener *listener, start_client *start)
{
    weft_stream *stream;

    while (weft_accept(listener, &stream) >= 0) {
        weft_task *client = start(stream);
        if (client) {
            (void)weft_detach(client);
        } else {
            weft_close(stream);
        }
    }
    weft_close(listener);
    return 0;
}

/* ---- the server --------------------------------------------------------------------------------- */

static int64_t until_told(weft_signal *term, weft_signal *interrupt)
{
    struct weft_signal_wait one;
    struct weft_signal_wait other;
    int which = weft_select(weft_arm(one, weft_signal_wait, term),
                            weft_arm(other, weft_signal_wait, interrupt));
    return which < 0 ? which : 0;
}

static weft_listener *listen_at(uint16_t port)
{
    weft_listener *listener;
    char address[32];

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    require(weft_tcp_listen(address, &listener), address);
    return listener;
}

static void tell_address(const weft_listener *listener)
{
    weft_addr at;
    require(weft_listener_addr(listener, &at), "the listener's address");
    serve_listens((unsigned)weft_addr_port(&at));
}

static double serve_with(struct bench *b, uint64_t request_bytes, start_client *start)
{
    weft_signal *term;
    weft_signal *interrupt;
    uint16_t port = serve_port(b->n);

    serve_begin(b->name, request_bytes, b->workers > 1);
    (void)root_rt(b);
    weft_listener *listener = listen_at(port);
    require(weft_signal_open(SIGTERM, &term), "SIGTERM");
    require(weft_signal_open(SIGINT, &interrupt), "SIGINT");
    weft_task *root = weft_go(until_told, term, interrupt);
    require(weft_detach(weft_go(accepts, listener, start)), "no task that accepts");
    tell_address(listener);
    require((int)root_wait(b, root), "the signal");
    serve_report();
    weft_signal_close(term);
    weft_signal_close(interrupt);
    return 0;
}

BENCH(echo, .n = SERVE_PORT, .serves = true, .end = root_end)
{
    return serve_with(b, SERVE_ECHO_BYTES, start_echo);
}

BENCH(echo_fiber, .n = SERVE_PORT, .serves = true, .end = root_end)
{
    return serve_with(b, SERVE_ECHO_BYTES, start_echo_fiber);
}

BENCH(http, .n = SERVE_PORT, .serves = true, .end = root_end)
{
    return serve_with(b, 0, start_http);
}

BENCH(http_fiber, .n = SERVE_PORT, .serves = true, .end = root_end)
{
    return serve_with(b, 0, start_http_fiber);
}
