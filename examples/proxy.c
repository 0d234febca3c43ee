/* SPDX-License-Identifier: MIT
 *
 * proxy - a TCP proxy: bytes go both ways at once, and so does each end of them.
 *
 *     ./proxy 127.0.0.1:8080 127.0.0.1:80          where to listen (port 0: one that is free), and where to connect to
 *
 * Two fibers for each connection, one for each way. When one side has said its last word, the other side hears the end, and may go on
 * talking (half-close: how `nc -N`, HTTP/1.0 and databases end a request). An error on either side ends both: block and fibers are one
 * thing. What one side does not read the other one cannot send: the buffer is all there is in between.
 */
#include <weft/weft.h>

#include <stdio.h>

#define BUFFER_BYTES 65536 /* a quarter of a fiber's stack */

/* One way, until its end, which is passed on. */
static int pump(weft_stream *from, weft_stream *to)
{
    char buffer[BUFFER_BYTES];
    ssize_t n;
    while ((n = weft_read(from, buffer, sizeof buffer)) > 0)
        if ((n = weft_write_all(to, buffer, (size_t)n)) < 0) break;
    return n < 0 ? (int)n : weft_shutdown(to);
}

static int both_ways(weft_stream *a, weft_stream *b)
{
    int error = 0;
    WEFT_SCOPE(s, .error = &error)
    {
        int r = weft_go_in(s, pump, a, b);
        if (r == 0) r = pump(b, a); /* the other way by this fiber */
        if (r < 0) weft_scope_fail(s, r);
    }
    return error;
}

static int client(weft_stream *c, const char *upstream)
{
    weft_stream *u;
    int r = weft_tcp_connect(upstream, &u);
    if (r < 0) {
        (void)fprintf(stderr, "proxy: %s: error %d\n", upstream, -r);
    } else {
        (void)both_ways(
            c, u); /* who is gone is no failure of ours; the other side hears it by the close */
        weft_close(u);
    }
    weft_close(c);
    return 0;
}

static int app(int argc, char **argv)
{
    weft_listener *l;
    weft_addr at;
    char where[WEFT_ADDR_TEXT];
    if (argc != 3 || weft_addr_parse(argv[2], &at) < 0) {
        (void)fprintf(stderr, "usage: %s LISTEN CONNECT\n", argv[0]);
        return -EINVAL;
    }
    int r = weft_tcp_listen(argv[1], &l);
    if (r < 0) return r;
    if (weft_listener_print(l, where, sizeof where) > 0) printf("listening at %s\n", where);
    (void)fflush(stdout);
    WEFT_SCOPE(clients)
    {
        weft_stream *c;
        while ((r = weft_accept(l, &c)) >= 0)
            if (weft_go_in(clients, client, c, argv[2]) < 0) weft_close(c);
    } /* waits for the clients, who were told what app was told */
    weft_close(l);
    return r == -ECANCELED ? 0 : r;
}

WEFT_MAIN(app)
