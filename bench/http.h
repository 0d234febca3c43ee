/* SPDX-License-Identifier: MIT
 *
 * http - as much of HTTP/1.1 as a server needs that answers "hello" to everybody: the same for all servers of bench/ in C.
 *
 *     struct http_work work = http_take(buf, len);        what lies in the buffer
 *     work.used                                           bytes that are through; the rest is a request that was cut
 *     work.good                                           answers: send work.good * HTTP_ANSWER_BYTES of http_answers
 *     work.last                                           then send work.end, and close
 *
 * All answers are the same, so those of pipelined requests lie behind each other in constant memory: nothing is copied. At most HTTP_BATCH
 * requests are taken at once; whoever gets so many asks again. Of a head these are looked at: the request line, Host, Connection,
 * Content-Length, Transfer-Encoding, and that each line is one. A request with a body is refused, as is one that cannot be understood: nobody
 * knows where the next would begin. A head that was cut is read again from its beginning when more has come; HTTP_HEAD_MAX bounds that.
 * Left out, since no load asks for it: HEAD, kept connections of HTTP/1.0, a close that waits until the peer has read the last answer.
 */
#ifndef WEFT_BENCH_HTTP_H
#define WEFT_BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define HTTP_HEAD_MAX 2048 /* also the size of a connection's buffer */
#define HTTP_BATCH    16

#define HTTP_ANSWER       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
#define HTTP_ANSWER_BYTES (sizeof(HTTP_ANSWER) - 1)

#define HTTP__4(text) text text text text
static const char http_answers[] = HTTP__4(HTTP__4(HTTP_ANSWER)); /* HTTP_BATCH of them */
_Static_assert(sizeof(http_answers) - 1 == HTTP_BATCH * HTTP_ANSWER_BYTES, "one for each");

struct http_work {
    size_t used;
    unsigned good;
    bool last;
    const char *end; /* if it is the last: one more answer */
    size_t end_bytes;
};

/* ---- one request ---- */

/* A line without its end. */
struct http_line {
    const char *at;
    size_t len;
};

struct http_head {
    int status; /* 200, or why it is refused */
    bool host;
    bool close; /* no other request follows */
};

static inline bool http_is(struct http_line line, const char *word, size_t len)
{
    if (line.len != len) return false;
    for (size_t i = 0; i < len; i++)
        if ((line.at[i] | 0x20) != word[i]) return false;
    return true;
}
#define HTTP__IS(line, word) http_is(line, word, sizeof(word) - 1)

static inline struct http_line http_trim(struct http_line line)
{
    while (line.len > 0 && (*line.at == ' ' || *line.at == '\t'))
        line = (struct http_line){line.at + 1, line.len - 1};
    while (line.len > 0 && (line.at[line.len - 1] == ' ' || line.at[line.len - 1] == '\t'))
        line.len--;
    return line;
}

/* Of texts that are short as a rule: a call would cost more. */
static inline const char *http_find(const char *at, const char *end, char what)
{
    while (at < end && *at != what)
        at++;
    return at < end ? at : NULL;
}

/* GET, a target without spaces, the version. */
static inline void http_first_line(struct http_line line, struct http_head *into)
{
    static const char version[] = " HTTP/1.";
    const size_t tail = sizeof(version); /* with its last digit */

    const char *end = line.at + line.len - (line.len < tail ? line.len : tail);
    bool get = end - line.at >= 5 && memcmp(line.at, "GET /", 5) == 0;
    const char *target = get ? line.at + 4 : http_find(line.at, end, ' ');
    if (!get && target) target++;
    if (!target || target == end || *target != '/' || http_find(target, end, ' ') ||
        memcmp(end, version, tail - 1) != 0) {
        into->status = 400;
        return;
    }
    if (!get) into->status = 405;
    if (end[tail - 1] == '1') return;
    if (end[tail - 1] != '0') into->status = 505;
    into->close = into->host = true; /* as it was then */
}

static inline void http_connection(struct http_line value, struct http_head *into)
{
    while (value.len > 0) {
        const char *comma = memchr(value.at, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.at) : value.len;
        if (HTTP__IS(http_trim((struct http_line){value.at, len}), "close")) into->close = true;
        size_t gone = comma ? len + 1 : len;
        value = (struct http_line){value.at + gone, value.len - gone};
    }
}

static inline void http_field(struct http_line line, struct http_head *into)
{
    const char *colon = http_find(line.at, line.at + line.len, ':');
    struct http_line name = {line.at, colon ? (size_t)(colon - line.at) : 0};

    if (name.len == 0 || colon[-1] == ' ' || *line.at == ' ' || *line.at == '\t') {
        into->status = 400;
        return;
    }
    switch (*line.at | 0x20) { /* most begin with none of these */
    case 'h':
        into->host |= HTTP__IS(name, "host");
        break;
    case 't':
        if (HTTP__IS(name, "transfer-encoding")) into->status = 413;
        break;
    case 'c': {
        struct http_line value = {colon + 1, line.len - name.len - 1};
        if (HTTP__IS(name, "connection")) http_connection(value, into);
        if (HTTP__IS(name, "content-length") && !HTTP__IS(http_trim(value), "0"))
            into->status = 413;
        break;
    }
    default:
        break;
    }
}

/* Takes a line out of the rest. False: it was cut. One that does not end as it should makes the head a bad one. */
static inline bool http_next_line(struct http_line *rest, struct http_line *into, int *status)
{
    bool empty = rest->len >= 2 && rest->at[1] == '\n'; /* the last of each head */
    const char *end = empty ? rest->at + 1 : memchr(rest->at, '\n', rest->len);
    if (!end) return false;
    size_t len = (size_t)(end - rest->at);
    *into = (struct http_line){rest->at, len > 0 ? len - 1 : 0};
    if (len == 0 || end[-1] != '\r') *status = 400;
    *rest = (struct http_line){end + 1, rest->len - len - 1};
    return true;
}

/* The bytes of the first request; 0: it was cut. */
static inline size_t http_request(const char *at, size_t len, struct http_head *into)
{
    struct http_line rest = {at, len};
    struct http_line line;

    *into = (struct http_head){.status = 200};
    if (!http_next_line(&rest, &line, &into->status)) return 0;
    http_first_line(line, into);
    while (into->status == 200 ||
           into->status == 405) { /* of a bad one the end is not looked for */
        if (!http_next_line(&rest, &line, &into->status)) return 0;
        if (line.len == 0) break;
        http_field(line, into);
    }
    if (into->status == 200 && !into->host) into->status = 400;
    return (size_t)(rest.at - at);
}

/* ---- all that are there ---- */

#define HTTP__REFUSED(text) "HTTP/1.1 " text "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static inline const char *http_last_answer(int status)
{
    switch (status) {
    case 200:
        return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
               "Connection: close\r\n\r\nhello";
    case 405:
        return HTTP__REFUSED("405 Method Not Allowed\r\nAllow: GET");
    case 413:
        return HTTP__REFUSED("413 Content Too Large");
    case 431:
        return HTTP__REFUSED("431 Request Header Fields Too Large");
    case 505:
        return HTTP__REFUSED("505 HTTP Version Not Supported");
    default:
        return HTTP__REFUSED("400 Bad Request");
    }
}

static inline void http_ends(struct http_work *work, int status)
{
    work->last = true;
    work->end = http_last_answer(status);
    work->end_bytes = strlen(work->end);
}

static inline struct http_work http_take(const char *at, size_t len)
{
    struct http_work work = {.used = 0};
    struct http_head head;

    while (work.used < len && work.good < HTTP_BATCH) {
        size_t bytes = http_request(at + work.used, len - work.used, &head);
        if (bytes == 0) {
            if (len - work.used >= HTTP_HEAD_MAX) http_ends(&work, 431);
            break;
        }
        work.used += bytes;
        if (head.status != 200 || head.close) {
            http_ends(&work, head.status);
            break;
        }
        work.good++;
    }
    return work;
}

#endif
