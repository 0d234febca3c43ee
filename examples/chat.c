/* SPDX-License-Identifier: MIT
 *
 * chat - a room: who connects says a name, then lines, which everybody hears.
 *
 *     ./chat                       listens at 127.0.0.1:7777; or elsewhere; port 0 is one that is free
 *     nc 127.0.0.1 7777            the first line is your name
 *
 * Two fibers for each client: the block reads what it says, its child writes what the room says. The room is a broadcast that keeps the last
 * lines. Who says something never waits, so a client that does not read holds up nobody: it finds that lines are gone, and
 * is told how many.
 */
#include <weft/weft.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 24
#define LINE_BYTES 256
#define KEPT       128         /* lines; who is further behind misses some */
#define SEND_BYTES (32 * 1024) /* in the kernel for each client: old news is not worth more */

struct line {
    int len;
    char text[LINE_BYTES];
};
typedef WEFT_BROADCAST(struct line) room_cast;
static room_cast *room;

static void say(const char *format, const char *who, const char *what)
{
    struct line l;
    l.len = snprintf(l.text, sizeof l.text, format, who, what);
    if (l.len >= (int)sizeof l.text) { /* cut */
        l.len = sizeof l.text - 1;
        l.text[l.len - 1] = '\n';
    }
    (void)weft_broadcast_send(room, &l);
}

/* ---- what the room says ---- */

static int hear(weft_stream *c, weft_cursor *at)
{
    struct line l;
    int r;
    while ((r = weft_broadcast_recv(room, at, &l)) != 0) {
        if (r == -EOVERFLOW) {
            l.len = snprintf(l.text, sizeof l.text, "* you missed %" PRIu64 " lines\n", at->missed);
        } else if (r < 0) {
            return r;
        }
        ssize_t n = weft_write_all(c, l.text, (size_t)l.len);
        if (n < 0) return 0; /* it is gone: its reader hears that, too */
    }
    return 0;
}

/* ---- what a client says ---- */

struct reader {
    weft_stream *stream;
    size_t used; /* the line that was given out last */
    size_t len;
    char buffer[LINE_BYTES];
};

/* The next line, without its end; one that is too long comes in pieces. Returns above 0; 0 at the end; or an errno. */
static int next_line(struct reader *in, char **into)
{
    in->len -= in->used;
    memmove(in->buffer, in->buffer + in->used, in->len);
    in->used = 0;
    for (;;) {
        char *end = memchr(in->buffer, '\n', in->len);
        if (!end && in->len == sizeof in->buffer - 1) end = in->buffer + in->len;
        if (end) {
            in->used = (size_t)(end - in->buffer) + (end < in->buffer + in->len);
            *end = 0;
            if (end > in->buffer && end[-1] == '\r') end[-1] = 0;
            *into = in->buffer;
            return 1;
        }
        ssize_t n = weft_read(in->stream, in->buffer + in->len, sizeof in->buffer - 1 - in->len);
        if (n <= 0) return (int)n;
        in->len += (size_t)n;
    }
}

static void talk(struct reader *in, const char *name)
{
    char *text;
    weft_cursor at = weft_broadcast_now(room); /* it hears its own coming */
    say("* %s is here%s\n", name, "");
    WEFT_SCOPE(s)
    {
        if (weft_go_in(s, hear, in->stream, &at) < 0) break;
        while (next_line(in, &text) > 0)
            if (*text) say("<%s> %s\n", name, text);
        break; /* it is gone: there is nobody to hear any more */
    }
    say("* %s has left%s\n", name, "");
}

static int client(weft_stream *c)
{
    static const char hello[] = "* your name?\n";
    struct reader in = {.stream = c};
    char name[NAME_BYTES], *text;
    if (weft_write_all(c, hello, strlen(hello)) > 0 && next_line(&in, &text) > 0 && *text) {
        (void)snprintf(name, sizeof name, "%.*s", NAME_BYTES - 1, text);
        talk(&in, name);
    }
    weft_close(c);
    return 0; /* a client that is gone is no failure of ours */
}

static int serve(const char *where)
{
    weft_listener *l;
    char text[WEFT_ADDR_TEXT];
    int r = weft_tcp_listen_with(&(weft_net_opts){.send_bytes = SEND_BYTES}, where, &l);
    if (r < 0) return r;
    if (weft_listener_print(l, text, sizeof text) > 0) printf("listening at %s\n", text);
    (void)fflush(stdout);
    WEFT_SCOPE(clients)
    {
        weft_stream *c;
        while ((r = weft_accept(l, &c)) >= 0)
            if (weft_go_in(clients, client, c) < 0) weft_close(c);
    } /* waits for the clients, who were told what app was told */
    weft_close(l);
    return r == -ECANCELED ? 0 : r;
}

static int app(int argc, char **argv)
{
    int r = weft_broadcast_new(KEPT, &room);
    if (r < 0) return r;
    r = serve(argc > 1 ? argv[1] : "127.0.0.1:7777");
    weft_broadcast_free(room);
    return r;
}

WEFT_MAIN(app)
