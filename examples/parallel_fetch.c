/* SPDX-License-Identifier: MIT
 *
 * parallel_fetch - many pages by HTTP: so many at once, each tried again if it fails, all of it under one deadline.
 *
 *     ./parallel_fetch [-j LIMIT] [-r TRIES] [-t SECONDS] 127.0.0.1:8080 /hello/a /hello/b
 *
 * Tries have a time of their own, and pauses in between that grow; a page that is not there (404) is not tried again. The deadline is the scope's: what
 * is not there by then is told as such, and what was fetched is kept. Addresses are numbers. Prints a line for each page, in order.
 */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 65536

struct job {
    const char *host; /* the same for all */
    const char *path;
    int tries_most;
    int tries;  /* so many were made */
    int result; /* the status of the answer, or an errno */
    char page[PAGE_BYTES];
    size_t page_bytes;
};

/* ---- one try ---- */

/* Read the whole answer: the server ends the connection behind it. */
static int read_all(weft_stream *s, struct job *j)
{
    ssize_t n = 1;
    j->page_bytes = 0;
    while (n > 0 && j->page_bytes < PAGE_BYTES - 1) {
        n = weft_read(s, j->page + j->page_bytes, PAGE_BYTES - 1 - j->page_bytes);
        if (n > 0) j->page_bytes += (size_t)n;
    }
    j->page[j->page_bytes] = 0;
    return n > 0 ? -EMSGSIZE : (int)n;
}

/* Returns the status; -EPROTO: it is no answer, or was cut off. Leaves the body alone in the page. */
static int understand(struct job *j)
{
    char *body = strstr(j->page, "\r\n\r\n"), *length = strstr(j->page, "\r\nContent-Length: ");
    int status = strncmp(j->page, "HTTP/1.", 7) == 0 ? atoi(j->page + 9) : 0;
    if (!body || status < 100) return -EPROTO;
    size_t left = j->page_bytes - (size_t)(body + 4 - j->page);
    if (length && length < body && strtoul(length + 18, NULL, 10) != left) return -EPROTO;
    memmove(j->page, body + 4, left + 1);
    j->page_bytes = left;
    return status;
}

static int fetch_once(struct job *j)
{
    char request[512];
    weft_stream *s;
    int len =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", j->path, j->host);
    if (len >= (int)sizeof request) return -ENAMETOOLONG;
    int r = weft_tcp_connect(j->host, &s);
    if (r < 0) return r;
    ssize_t n = weft_write_all(s, request, (size_t)len);
    r = n < 0 ? (int)n : read_all(s, j);
    weft_close(s);
    return r < 0 ? r : understand(j);
}

/* ---- a page ---- */

static int fetch(struct job *j)
{
    weft_time pause = weft_ms(50);
    for (;;) {
        j->tries++;
        WEFT_TIMEOUT(weft_secs(10)) j->result = fetch_once(j);
        bool again = j->result < 0 || j->result >= 500;
        if (!again || j->tries >= j->tries_most) return 0;
        int r = weft_sleep(pause); /* told to stop, or at the deadline, it is not tried again */
        if (r < 0) return j->result = r, 0;
        pause *= 2;
    }
}

static bool tell(const struct job *j)
{
    if (j->tries == 0) {
        printf("not begun: %s\n", j->path);
    } else if (j->result < 0) {
        printf("error %d after %d tries: %s\n", -j->result, j->tries, j->path);
    } else {
        printf("%d, %zu bytes: %s\n", j->result, j->page_bytes, j->path);
    }
    return j->result == 200;
}

static int app(int argc, char **argv)
{
    int limit = 8, tries = 3, r = 0;
    double seconds = 60;
    for (int c; (c = getopt(argc, argv, "j:r:t:")) != -1;) {
        if (c == 'j') limit = atoi(optarg);
        if (c == 'r') tries = atoi(optarg);
        if (c == 't') seconds = atof(optarg);
    }
    int count = argc - optind - 1;
    if (count < 1 || limit < 1 || tries < 1 || !(seconds > 0)) {
        (void)fprintf(stderr, "usage: %s [-j LIMIT] [-r TRIES] [-t SECONDS] ADDRESS PATH...\n",
                      argv[0]);
        return 2;
    }
    struct job *jobs = calloc((size_t)count, sizeof *jobs);
    if (!jobs) return -ENOMEM;
    WEFT_SCOPE(s, .limit = (uint32_t)limit, .timeout = (weft_time)(seconds * 1e9))
    {
        for (int i = 0; i < count && r == 0; i++) {
            jobs[i].host = argv[optind];
            jobs[i].path = argv[optind + 1 + i];
            jobs[i].tries_most = tries;
            r = weft_go_in(s, fetch, &jobs[i]); /* waits for room */
        }
    } /* waits for those under way; at the deadline they are told -ETIME */
    bool well = true;
    for (int i = 0; i < count; i++) {
        jobs[i].path = argv[optind + 1 + i];
        well &= tell(&jobs[i]);
    }
    free(jobs);
    return r < 0 && r != -ETIME ? r : !well;
}

WEFT_MAIN(app)
