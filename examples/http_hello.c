/* SPDX-License-Identifier: MIT
 *
 * http_hello - a small HTTP/1.1 server: kept connections, pipelined requests, limits, a clean end by ^C.
 *
 *     ./http_hello                           listens at 127.0.0.1:8080; or "[::]:80"; port 0 is one that is free
 *     curl http://127.0.0.1:8080/hello/you
 *
 * A fiber for each connection, all in one scope, which has a limit: with so many connections the next ones wait in the kernel's queue. Requests
 * are answered in order; what is answered is written when no other whole request has arrived yet, so pipelined ones share a system call.
 * Limits: the head of a request, the time that a client may be silent, the time that it may take to read. There are no bodies here:
 * a request with one is refused, and the connection ended, as is one that cannot be understood: nobody knows where the next would begin.
 */
#define _GNU_SOURCE /* memmem */
#include <weft/weft.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CLIENTS    1000
#define HEAD_BYTES 8192
#define PATIENCE   weft_secs(30)

/* ---- requests: views into the buffer ---- */

struct text {
    const char *at;
    size_t len;
};

struct request {
    struct text method, path;
    bool last; /* the client wants no other answer on this connection */
};

static bool is(struct text t, const char *word)
{
    return t.len == strlen(word) && strncasecmp(t.at, word, t.len) == 0;
}

/* What stands before `mark`, which is taken out with it; all of it, if there is none. */
static struct text cut(struct text *rest, const char *mark)
{
    const char *end = memmem(rest->at, rest->len, mark, strlen(mark));
    struct text first = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    size_t gone = end ? first.len + strlen(mark) : rest->len;
    *rest = (struct text){rest->at + gone, rest->len - gone};
    return first;
}

static struct text trim(struct text t)
{
    while (t.len > 0 && (*t.at == ' ' || *t.at == '\t'))
        t = (struct text){t.at + 1, t.len - 1};
    while (t.len > 0 && (t.at[t.len - 1] == ' ' || t.at[t.len - 1] == '\t'))
        t.len--;
    return t;
}

/* Returns the status that it earns: 200, or why it is refused. */
static int parse(struct text head, struct request *into)
{
    struct text line = cut(&head, "\r\n");
    into->method = cut(&line, " ");
    into->path = cut(&line, " ");
    if (into->method.len == 0 || into->path.len == 0 || into->path.at[0] != '/') return 400;
    if (!is(line, "HTTP/1.1") && !is(line, "HTTP/1.0")) return 505;
    bool old = is(line, "HTTP/1.0"), host = old, body = false;
    into->last = old;
    while (head.len > 0) {
        line = cut(&head, "\r\n");
        struct text name = cut(&line, ":"), value = trim(line);
        host |= is(name, "Host");
        body |= is(name, "Transfer-Encoding") || (is(name, "Content-Length") && !is(value, "0"));
        if (!is(name, "Connection")) continue;
        while (value.len > 0) {
            struct text word = trim(cut(&value, ","));
            if (is(word, "close")) into->last = true;
            if (is(word, "keep-alive")) into->last = false;
        }
    }
    if (!host) return 400;
    if (!is(into->method, "GET") && !is(into->method, "HEAD")) return 405;
    return body ? 413 : 200;
}

/* ---- answers ---- */

/* clang-format off */
static const char *reason(int status)
{
    switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}
/* clang-format on */

/* What a page says. Returns its status. */
static int page(struct text path, char body[256])
{
    static const char hello[] = "/hello/";
    path = cut(&path, "?");
    if (is(path, "/")) {
        (void)snprintf(body, 256, "hello, world\n");
        return 200;
    }
    if (path.len > strlen(hello) && memcmp(path.at, hello, strlen(hello)) == 0) {
        (void)snprintf(body, 256, "hello, %.*s\n", (int)(path.len - strlen(hello)),
                       path.at + strlen(hello));
        return 200;
    }
    return 404;
}

#define ANSWER_BYTES 512 /* the longest answer: a head, and a body of up to 256 */

/* Returns how many bytes it is. */
static size_t answer(int status, const struct request *q, char into[ANSWER_BYTES])
{
    char body[256];
    if (status == 200) status = page(q->path, body);
    if (status != 200) (void)snprintf(body, sizeof body, "%d %s\n", status, reason(status));
    int len =
        snprintf(into, ANSWER_BYTES,
                 "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s%s\r\n%s",
                 status, reason(status), strlen(body), status == 405 ? "Allow: GET, HEAD\r\n" : "",
                 q->last ? "Connection: close\r\n" : "", is(q->method, "HEAD") ? "" : body);
    return (size_t)len;
}

/* ---- a connection ---- */

struct conn {
    weft_stream *stream;
    char in[HEAD_BYTES];
    size_t in_bytes;
    char out[8 * ANSWER_BYTES];
    size_t out_bytes;
};

static int flush(struct conn *c)
{
    ssize_t n = 0;
    WEFT_TIMEOUT(PATIENCE) n = weft_write_all(c->stream, c->out, c->out_bytes);
    c->out_bytes = 0;
    return n < 0 ? (int)n : 0;
}

/* Answer one that has a whole head, or is hopeless. Returns whether it was the last one. */
static bool serve_one(struct conn *c, struct text head, int status)
{
    struct request q = {.last = false};
    if (status == 200) status = parse(head, &q);
    if (status != 200) q.last = true;
    c->out_bytes += answer(status, &q, c->out + c->out_bytes);
    return q.last;
}

/* Answer the whole requests that are there. Returns above 0 when the connection is over; or an errno. */
static int serve_all(struct conn *c)
{
    struct text rest = {c->in, c->in_bytes};
    bool last = false;
    int r = 0;
    while (!last && r == 0 && rest.len > 0) {
        const char *end = memmem(rest.at, rest.len, "\r\n\r\n", 4);
        if (!end && (rest.at != c->in || rest.len < sizeof c->in)) break; /* more is to come */
        last = serve_one(c, end ? cut(&rest, "\r\n\r\n") : rest, end ? 200 : 431);
        if (c->out_bytes + ANSWER_BYTES > sizeof c->out) r = flush(c);
    }
    memmove(c->in, rest.at, rest.len);
    c->in_bytes = rest.len;
    if (r == 0) r = flush(c);
    return r < 0 ? r : last;
}

/* The client may still be sending: a close now would throw away what it has not read yet. */
static void end(struct conn *c)
{
    WEFT_TIMEOUT(weft_secs(1))
    if (weft_shutdown(c->stream) == 0)
        while (weft_read(c->stream, c->in, sizeof c->in) > 0)
            continue;
}

static int client(weft_stream *stream)
{
    struct conn c = {.stream = stream};
    int r = 0;
    while (r == 0) {
        ssize_t n = 0;
        WEFT_TIMEOUT(PATIENCE) n = weft_read(stream, c.in + c.in_bytes, sizeof c.in - c.in_bytes);
        if (n <= 0) break; /* the end, or it is gone, or silent for too long, or we are to stop */
        c.in_bytes += (size_t)n;
        r = serve_all(&c);
    }
    if (r > 0) end(&c);
    weft_close(stream);
    return 0; /* a client that is gone is no failure of ours */
}

static int app(int argc, char **argv)
{
    weft_listener *l;
    char where[WEFT_ADDR_TEXT];
    int r = weft_tcp_listen(argc > 1 ? argv[1] : "127.0.0.1:8080", &l);
    if (r < 0) return r;
    if (weft_listener_print(l, where, sizeof where) > 0) printf("listening at %s\n", where);
    (void)fflush(stdout);
    WEFT_SCOPE(clients, .limit = CLIENTS)
    {
        weft_stream *c;
        while ((r = weft_accept(l, &c)) >= 0)
            if (weft_go_in(clients, client, c) < 0) weft_close(c); /* waits if there are many */
    } /* the end of the block cancels them, as app was, and waits */
    weft_close(l);
    return r == -ECANCELED ? 0 : r;
}

WEFT_MAIN(app)
