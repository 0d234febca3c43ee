/* SPDX-License-Identifier: MIT
 *
 * The parser of the servers (http.h): requests in all pieces, one behind the other, and those that are refused.
 */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>

static int failures;

static void check(bool right, const char *what, const char *text)
{
    if (right) return;
    printf("FAILED: %s: %s\n", what, text);
    failures++;
}

/* In memory of just that size, so that a byte read too many is found by who looks for such. */
static struct http_work take(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    if (!copy) exit(1);
    memcpy(copy, text, len);
    struct http_work work = http_take(copy, len);
    free(copy);
    return work;
}

static const char *good[] = {
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n",
    "GET /a/b?c=d HTTP/1.1\r\nhOST:x\r\nUser-Agent: curl\r\nAccept: */*\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\nContent-Type: a\r\nTE: b\r\n\r\n",
};

/* Cut anywhere, it is not there yet; whole, it is one; with another behind it, it is two. */
static void test_good(const char *text)
{
    size_t len = strlen(text);
    char two[512];

    for (size_t cut = 0; cut < len; cut++) {
        struct http_work part = take(text, cut);
        check(part.used == 0 && part.good == 0 && !part.last, "cut", text);
    }
    struct http_work work = take(text, len);
    check(work.used == len && work.good == 1 && !work.last, "whole", text);
    int both = snprintf(two, sizeof(two), "%s%s", text, text);
    for (size_t cut = len; cut <= (size_t)both; cut++) {
        work = take(two, cut);
        unsigned whole = cut == (size_t)both ? 2 : 1;
        check(work.used == whole * len && work.good == whole && !work.last, "two", text);
    }
}

static void test_batch(void)
{
    const size_t len = strlen(good[0]);
    char *many = malloc(len * (HTTP_BATCH + 3));
    if (!many) exit(1);
    for (size_t i = 0; i < HTTP_BATCH + 3; i++)
        memcpy(many + i * len, good[0], len);
    struct http_work work = take(many, len * (HTTP_BATCH + 3));
    check(work.good == HTTP_BATCH && work.used == HTTP_BATCH * len, "so many at once", "16");
    work = take(many, len * HTTP_BATCH);
    check(work.good == HTTP_BATCH && work.used == HTTP_BATCH * len, "as many as fit", "16");
    free(many);
}

static void test_last(const char *text, const char *status)
{
    struct http_work work = take(text, strlen(text));
    check(work.good == 0 && work.last, "the last", text);
    if (!work.last) return;
    check(strncmp(work.end + strlen("HTTP/1.1 "), status, 3) == 0, status, text);
    check(strstr(work.end, "\r\nConnection: close\r\n") != NULL, "says so", text);
    check(work.end_bytes == strlen(work.end), "its bytes", text);
}

static void test_too_long(void)
{
    char text[HTTP_HEAD_MAX + 1];
    int len = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: x\r\nX: %02000d", 0);
    check(!take(text, (size_t)len).last, "long, but not too long", "2000");
    memset(text + len, '0', sizeof(text) - (size_t)len);
    struct http_work work = take(text, HTTP_HEAD_MAX);
    check(work.last && strstr(work.end, " 431 ") != NULL, "too long", "431");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        test_good(good[i]);
    test_batch();
    test_too_long();
    test_last("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200");
    test_last("GET / HTTP/1.1\r\nHost: x\r\nConnection: x, Close\r\n\r\n", "200");
    test_last("GET / HTTP/1.0\r\n\r\n", "200");
    test_last("GET / HTTP/1.1\r\n\r\n", "400");
    test_last("GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400");
    test_last("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "400");
    test_last("GET / HTTP/1.1\nHost: x\r\n\r\n", "400");
    test_last("GET / HTTP/1.1\r\nnonsense\r\n\r\n", "400");
    test_last("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "400");
    test_last("GET /\r\n\r\n", "400");
    test_last("\r\n\r\n", "400");
    test_last("\n", "400");
    test_last("POST / HTTP/1.1\r\nHost: x\r\n\r\n", "405");
    test_last("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", "413");
    test_last("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "413");
    test_last("GET / HTTP/1.2\r\nHost: x\r\n\r\n", "505");
    return failures > 0;
}
