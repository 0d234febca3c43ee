/* SPDX-License-Identifier: MIT
 *
 * echo - an echo server with everything a real one needs: clients at the same time, back-pressure, a clean end by ^C.
 *
 *     ./echo                      listens at 127.0.0.1:5555
 *     ./echo "[::]:7"             or elsewhere; port 0 is one that is free
 *     printf hello | nc -N 127.0.0.1 5555
 */
#include <weft/weft.h>

#include <stdio.h>

static int client(weft_stream *c)
{
    char b[4096];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if ((n = weft_write_all(c, b, (size_t)n)) < 0) break;
    weft_close(c); /* to release never waits and never fails */
    return n == -ECONNRESET || n == -EPIPE
               ? 0
               : (int)n; /* a client that is gone is no failure of ours */
}

static int app(int argc, char **argv)
{
    weft_listener *l;
    char where[WEFT_ADDR_TEXT];
    int r = weft_tcp_listen(argc > 1 ? argv[1] : "127.0.0.1:5555", &l);
    if (r < 0) return r;

    if (weft_listener_print(l, where, sizeof where) > 0) printf("listening at %s\n", where);
    (void)fflush(stdout);
    WEFT_SCOPE(clients)
    {
        weft_stream *c;
        while ((r = weft_accept(l, &c)) >= 0)
            if (weft_go_in(clients, client, c) < 0)
                weft_close(c); /* a spawn that fails took nothing */
    } /* waits for the clients, who were told what app was told */
    weft_close(l);
    return r == -ECANCELED ? 0 : r; /* SIGINT: clean exit */
}

WEFT_MAIN(app)
