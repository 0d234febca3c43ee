/* SPDX-License-Identifier: MIT
 *
 * resp - see resp.h.
 */
#include "resp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_BYTES 4096 /* a command without arrays, at most */

bool slice_is(struct slice s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

uint32_t slice_hash(struct slice s)
{
    uint32_t h = 0x811c9dc5; /* FNV-1a */
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.at[i]) * 0x01000193;
    return h;
}

bool slice_number(struct slice s, int64_t *into)
{
    char text[24], *end;
    if (s.len == 0 || s.len >= sizeof text || s.at[0] == ' ') return false;
    memcpy(text, s.at, s.len);
    text[s.len] = 0;
    errno = 0;
    *into = strtoll(text, &end, 10);
    return errno == 0 && *end == 0;
}

/* ---- in ---- */

/* "*3\r\n", "$5\r\n": a mark and a number. Returns as resp_parse. */
static ssize_t header(const char *at, size_t len, char mark, int64_t most, int64_t *into)
{
    if (len == 0) return 0;
    if (*at != mark) return -EPROTO;
    const char *end = memchr(at, '\n', len);
    if (!end) return len > 32 ? -EPROTO : 0;
    if (end[-1] != '\r' || !slice_number((struct slice){at + 1, (size_t)(end - at) - 2}, into))
        return -EPROTO;
    return *into < 0 || *into > most ? -EPROTO : end + 1 - at;
}

static ssize_t parse_array(const char *buf, size_t len, struct slice argv[RESP_ARGS], int *argc)
{
    int64_t count, bytes;
    ssize_t n = header(buf, len, '*', RESP_ARGS, &count);
    if (n <= 0) return n;
    size_t at = (size_t)n;
    for (int i = 0; i < count; i++) {
        if ((n = header(buf + at, len - at, '$', RESP_BULK, &bytes)) <= 0) return n;
        at += (size_t)n;
        if (len - at < (size_t)bytes + 2) return 0;
        argv[i] = (struct slice){buf + at, (size_t)bytes};
        at += (size_t)bytes + 2;
        if (memcmp(buf + at - 2, "\r\n", 2) != 0) return -EPROTO;
    }
    *argc = (int)count;
    return (ssize_t)at;
}

static ssize_t parse_line(const char *buf, size_t len, struct slice argv[RESP_ARGS], int *argc)
{
    const char *end = memchr(buf, '\n', len);
    if (!end) return len > LINE_BYTES ? -EPROTO : 0;
    int count = 0;
    for (const char *at = buf; at < end;) {
        size_t word = strcspn(at, " \t\r\n"), gap = strspn(at + word, " \t\r");
        if (word + gap == 0 || count == RESP_ARGS) return -EPROTO; /* a NUL; too many */
        if (word > 0) argv[count++] = (struct slice){at, word};
        at += word + gap;
    }
    *argc = count;
    return end + 1 - buf;
}

ssize_t resp_parse(const char *buf, size_t len, struct slice argv[RESP_ARGS], int *argc)
{
    if (len == 0) return 0;
    return *buf == '*' ? parse_array(buf, len, argv, argc) : parse_line(buf, len, argv, argc);
}

/* ---- out ---- */

void out_raw(struct out *o, const void *bytes, size_t len)
{
    if (o->cap - o->len < len) {
        size_t cap = 2 * o->cap + len + 256;
        char *at = realloc(o->at, cap);
        if (!at) {
            o->failed = true;
            return;
        }
        o->at = at;
        o->cap = cap;
    }
    memcpy(o->at + o->len, bytes, len);
    o->len += len;
}

void out_line(struct out *o, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len >= (int)sizeof text) len = (int)sizeof text - 1; /* cut */
    out_raw(o, text, (size_t)len);
    out_raw(o, "\r\n", 2);
}

void out_bulk(struct out *o, struct slice s)
{
    out_line(o, "$%zu", s.len);
    out_raw(o, s.at, s.len);
    out_raw(o, "\r\n", 2);
}

void out_nil(struct out *o)
{
    out_line(o, "$-1");
}

void out_int(struct out *o, int64_t n)
{
    out_line(o, ":%" PRId64, n);
}
