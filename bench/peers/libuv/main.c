/* SPDX-License-Identifier: MIT
 *
 * uv_bench CASE [WORKERS] [PORT] - echo and http on libuv, as its experts would write them: one loop, one buffer for all that is read, answers by
 * uv_try_write, and a request to write only for what the socket would not take; reading rests until that has gone.
 *
 * A loop has one thread, whatever WORKERS says; anything above 1 is refused.
 */
#include "http.h"
#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { EXIT_USAGE = 2, EXIT_NO_CASE = 3 };

struct conn {
    uv_tcp_t tcp; /* first: a handle is its connection */
    bool last;    /* closed when all is written */
    size_t in_bytes;
    char *in; /* the beginning of a request that was cut; NULL: there was none yet */
};

/* The rest of an answer, which lies behind it. */
struct rest {
    uv_write_t write;
    struct conn *conn;
    char bytes[];
};

static char shared_buf[SERVE_BUF_BYTES];
static uv_read_cb on_read; /* the case */

static void require(int r, const char *what)
{
    if (r >= 0) return;
    fprintf(stderr, "uv_bench: %s: %s\n", what, uv_strerror(r));
    exit(1);
}

/* ---- connections ---- */

static void conn_free(uv_handle_t *handle)
{
    struct conn *c = (struct conn *)handle;
    free(c->in);
    free(c);
}

static void conn_close(struct conn *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->tcp)) uv_close((uv_handle_t *)&c->tcp, conn_free);
}

/* Behind what was cut before, or into the buffer of all. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *into)
{
    struct conn *c = (struct conn *)handle;
    (void)suggested;
    *into = c->in_bytes ? uv_buf_init(c->in + c->in_bytes, (unsigned)(HTTP_HEAD_MAX - c->in_bytes))
                        : uv_buf_init(shared_buf, sizeof(shared_buf));
}

/* ---- writing ---- */

static void on_rest(uv_write_t *write, int status)
{
    struct rest *rest = (struct rest *)write;
    struct conn *c = rest->conn;
    free(rest);
    if (uv_is_closing((uv_handle_t *)&c->tcp)) return;
    if (status < 0 || (c->last && uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp) == 0)) {
        conn_close(c);
    } else if (!c->last) {
        (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read); /* twice is once */
    }
}

static int put_rest(struct conn *c, const char *at, size_t bytes)
{
    struct rest *rest = malloc(sizeof(*rest) + bytes);
    if (!rest) return UV_ENOMEM;
    memcpy(rest->bytes, at, bytes);
    rest->conn = c;
    uv_buf_t buf = uv_buf_init(rest->bytes, (unsigned)bytes);
    (void)uv_read_stop((uv_stream_t *)&c->tcp);
    int r = uv_write(&rest->write, (uv_stream_t *)&c->tcp, &buf, 1, on_rest);
    if (r < 0) free(rest);
    return r;
}

/* False: the connection is broken. */
static bool put(struct conn *c, const char *at, size_t bytes)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)at, (unsigned)bytes);
    int n = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
    if (n == (int)bytes) return true;
    if (n < 0 && n != UV_EAGAIN) return false;
    size_t done = n < 0 ? 0 : (size_t)n;
    return put_rest(c, at + done, bytes - done) >= 0;
}

/* ---- what came ---- */

static void on_echo(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = (struct conn *)stream;
    if (n == 0) return; /* nothing after all */
    if (n < 0 || !put(c, buf->base, (size_t)n)) {
        conn_close(c);
        return;
    }
    serve_add((uint64_t)n);
}

static bool keep_beginning(struct conn *c, const char *at, size_t bytes)
{
    if (!c->in) c->in = malloc(HTTP_HEAD_MAX);
    if (!c->in) return false;
    if (bytes > 0) memmove(c->in, at, bytes);
    c->in_bytes = bytes;
    return true;
}

/* False: the connection is over. */
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
    if ((bytes > 0 || c->in_bytes > 0) && !keep_beginning(c, at, bytes)) return false;
    if (!work.last) return true;
    c->last = true;
    return put(c, work.end, work.end_bytes) &&
           uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp) > 0;
}

static void on_http(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = (struct conn *)stream;
    (void)buf;
    if (n == 0) return;
    bool cut = c->in && c->in_bytes > 0;
    if (n < 0 || !answer(c, cut ? c->in : shared_buf, c->in_bytes + (size_t)n)) conn_close(c);
}

/* ---- the server ---- */

static void on_connection(uv_stream_t *listener, int status)
{
    if (status < 0) return;
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) return;
    require(uv_tcp_init(listener->loop, &c->tcp), "uv_tcp_init");
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0) {
        conn_close(c);
        return;
    }
    (void)uv_tcp_nodelay(&c->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

static void on_stop(uv_signal_t *handle, int number)
{
    (void)number;
    uv_stop(handle->loop);
}

static void stop_by(uv_loop_t *loop, uv_signal_t *handle, int number)
{
    require(uv_signal_init(loop, handle), "uv_signal_init");
    require(uv_signal_start(handle, on_stop, number), "uv_signal_start");
}

static void serve(uint16_t port)
{
    static uv_signal_t term;
    static uv_signal_t interrupt;
    static uv_tcp_t listener;
    uv_loop_t *loop = uv_default_loop();

    stop_by(loop, &term, SIGTERM);
    stop_by(loop, &interrupt, SIGINT);
    require(uv_tcp_init(loop, &listener), "uv_tcp_init");
    require(uv_tcp_open(&listener, serve_listen(port)), "uv_tcp_open");
    require(uv_listen((uv_stream_t *)&listener, SOMAXCONN, on_connection), "uv_listen");
    (void)uv_run(loop, UV_RUN_DEFAULT);
    serve_report();
}

__attribute__((noreturn)) static void usage(const char *what, const char *text)
{
    fprintf(stderr,
            "uv_bench: %s%s\nusage: uv_bench echo|http [WORKERS] [PORT]; uv_bench --servers\n",
            what, text);
    exit(EXIT_USAGE);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') usage("no number: ", text);
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) usage("a case is needed", "");
    if (strcmp(argv[1], "--list") == 0) return 0; /* none that ends by itself */
    if (strcmp(argv[1], "--servers") == 0) {
        puts("echo\nhttp");
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts(uv_version_string());
        return 0;
    }
    bool echo = strcmp(argv[1], "echo") == 0;
    if (!echo && strcmp(argv[1], "http") != 0) {
        fprintf(stderr, "uv_bench: there is no case %s\n", argv[1]);
        return EXIT_NO_CASE;
    }
    if (argc > 2 && number(argv[2]) > 1) usage("there is one thread, not ", argv[2]);
    uint16_t port = serve_port(argc > 3 ? number(argv[3]) : SERVE_PORT);
    on_read = echo ? on_echo : on_http;
    serve_begin(argv[1], echo ? SERVE_ECHO_BYTES : 0, false);
    serve(port);
    return 0;
}
