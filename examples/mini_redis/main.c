/* SPDX-License-Identifier: MIT
 *
 * mini_redis - a server that redis-cli and redis-benchmark talk to: strings that expire, counters, channels.
 *
 *     ./mini_redis                                 listens at 127.0.0.1:6379; or elsewhere; port 0 is one that is free
 *     redis-cli set greeting hello EX 10
 *     redis-benchmark -t ping,set,get,incr -P 16
 *
 * A fiber for each client: it reads what is there, runs the commands in order, and writes the answers of all of them at once. While it is
 * subscribed to something it waits for two things, its commands and its inbox, in a select. resp has the protocol, store the keys, pubsub the channels.
 */
#include "pubsub.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_BYTES    16384
#define IN_MOST     (2 * RESP_BULK) /* a command that is longer is refused */
#define OUT_ENOUGH  65536           /* answers are written at the latest when there are so many */
#define SLOW_READER weft_secs(60)   /* a client that reads nothing for so long is given up */

struct client {
    weft_stream *stream;
    char *in;
    size_t in_bytes, in_cap;
    struct out out;
    struct inbox inbox;
    bool over; /* it said QUIT, or nonsense */
    int argc;  /* the command that is run */
    struct slice argv[RESP_ARGS];
};

/* ---- commands: each answers to c->out, and returns 0 or more; or -EINVAL: no number; or why it was not done ---- */

static int ok(struct client *c)
{
    out_line(&c->out, "+OK");
    return 0;
}

static int none(struct client *c)
{
    out_line(&c->out, "*0");
    return 0;
}

static int ping(struct client *c)
{
    struct slice text = c->argc > 1 ? c->argv[1] : (struct slice){"", 0};
    if (c->inbox.subscriptions > 0) {
        out_line(&c->out, "*2\r\n$4\r\npong");
        out_bulk(&c->out, text);
    } else if (c->argc > 1) {
        out_bulk(&c->out, text);
    } else {
        out_line(&c->out, "+PONG");
    }
    return 0;
}

static int echo(struct client *c)
{
    out_bulk(&c->out, c->argv[1]);
    return 0;
}

static int quit(struct client *c)
{
    c->over = true;
    return ok(c);
}

/* What benchmarks ask for before they begin: everything is set to nothing. */
static int config(struct client *c)
{
    if (c->argc < 3 || !slice_is(c->argv[1], "get")) return none(c);
    out_line(&c->out, "*2");
    out_bulk(&c->out, c->argv[2]);
    out_bulk(&c->out, (struct slice){"", 0});
    return 0;
}

static int get(struct client *c)
{
    return store_get(c->argv[1], &c->out);
}

/* SET key value [EX s | PX ms] [NX | XX] */
static int set(struct client *c)
{
    weft_time expires = WEFT_FOREVER;
    enum store_when when = ALWAYS;
    for (int i = 3; i < c->argc; i++) {
        bool secs = slice_is(c->argv[i], "ex"), ms = slice_is(c->argv[i], "px");
        int64_t n = 0;
        if ((secs || ms) && i + 1 < c->argc && expires == WEFT_FOREVER) {
            if (!slice_number(c->argv[++i], &n)) return -EINVAL;
            if (n <= 0) {
                out_line(&c->out, "-ERR invalid expire time in 'set' command");
                return 0;
            }
            expires = weft_later(weft_now(), secs ? weft_secs(n) : weft_ms(n));
        } else if (slice_is(c->argv[i], "nx") && when == ALWAYS) {
            when = IF_NEW;
        } else if (slice_is(c->argv[i], "xx") && when == ALWAYS) {
            when = IF_THERE;
        } else {
            out_line(&c->out, "-ERR syntax error");
            return 0;
        }
    }
    int r = store_set(c->argv[1], c->argv[2], expires, when);
    if (r == 0) out_nil(&c->out);
    return r > 0 ? ok(c) : r;
}

static int del(struct client *c)
{
    int r = 0;
    int64_t count = 0;
    for (int i = 1; i < c->argc && r >= 0; i++)
        if ((r = store_delete(c->argv[i])) > 0) count++;
    if (r >= 0) out_int(&c->out, count);
    return r;
}

static int exists(struct client *c)
{
    weft_time expires;
    int r = 0;
    int64_t count = 0;
    for (int i = 1; i < c->argc && r >= 0; i++)
        if ((r = store_expires(c->argv[i], &expires)) > 0) count++;
    if (r >= 0) out_int(&c->out, count);
    return r;
}

static int add(struct client *c, int64_t by)
{
    int64_t n;
    int r = store_add(c->argv[1], by, &n);
    if (r >= 0) out_int(&c->out, n);
    return r;
}

static int incr(struct client *c)
{
    return add(c, 1);
}

static int decr(struct client *c)
{
    return add(c, -1);
}

static int incrby(struct client *c)
{
    int64_t by;
    return slice_number(c->argv[2], &by) ? add(c, by) : -EINVAL;
}

/* EXPIRE and PEXPIRE, TTL and PTTL: with a P it is milliseconds. */
static bool in_ms(const struct client *c)
{
    return (c->argv[0].at[0] | 32) == 'p';
}

static int expire(struct client *c)
{
    int64_t n;
    if (!slice_number(c->argv[2], &n)) return -EINVAL;
    int r = store_expire(c->argv[1], weft_later(weft_now(), in_ms(c) ? weft_ms(n) : weft_secs(n)));
    if (r >= 0) out_int(&c->out, r);
    return r;
}

static int ttl(struct client *c)
{
    weft_time expires, now = weft_now();
    int r = store_expires(c->argv[1], &expires);
    if (r < 0) return r;
    if (r == 0 || expires == WEFT_FOREVER) {
        out_int(&c->out, r == 0 ? -2 : -1);
    } else {
        int64_t ms = expires > now ? (expires - now) / weft_ms(1) : 0;
        out_int(&c->out, in_ms(c) ? ms : (ms + 500) / 1000);
    }
    return r;
}

static int dbsize(struct client *c)
{
    int64_t count = store_sweep(weft_now());
    if (count >= 0) out_int(&c->out, count);
    return count < 0 ? (int)count : 0;
}

static int flushall(struct client *c)
{
    int64_t left = store_sweep(WEFT_FOREVER);
    return left < 0 ? (int)left : ok(c);
}

static int do_subscribe(struct client *c)
{
    int r = 0;
    for (int i = 1; i < c->argc && r == 0; i++)
        r = subscribe(&c->inbox, c->argv[i], &c->out);
    return r;
}

static int do_unsubscribe(struct client *c)
{
    int r = 0;
    for (int i = 1; i < c->argc && r == 0; i++)
        r = unsubscribe(&c->inbox, &c->argv[i], &c->out);
    if (c->argc == 1) /* from all; at least one answer */
        do {
            r = unsubscribe(&c->inbox, NULL, &c->out);
        } while (r == 0 && c->inbox.subscriptions > 0);
    return r;
}

static int do_publish(struct client *c)
{
    return publish(c->argv[1], c->argv[2], &c->out);
}

static const struct command {
    const char *name;
    int args; /* with the name; below zero: so many or more */
    bool when_subscribed;
    int (*run)(struct client *c);
} commands[] = {
    {"get", 2, false, get},
    {"set", -3, false, set},
    {"del", -2, false, del},
    {"exists", -2, false, exists},
    {"incr", 2, false, incr},
    {"decr", 2, false, decr},
    {"incrby", 3, false, incrby},
    {"expire", 3, false, expire},
    {"pexpire", 3, false, expire},
    {"ttl", 2, false, ttl},
    {"pttl", 2, false, ttl},
    {"publish", 3, false, do_publish},
    {"subscribe", -2, true, do_subscribe},
    {"unsubscribe", -1, true, do_unsubscribe},
    {"ping", -1, true, ping},
    {"echo", 2, false, echo},
    {"quit", -1, true, quit},
    {"dbsize", 1, false, dbsize},
    {"flushall", -1, false, flushall},
    {"select", 2, false, ok},
    {"client", -2, false, ok},
    {"config", -2, false, config},
    {"command", -1, false, none},
};

static const struct command *find_command(struct slice name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (slice_is(name, commands[i].name)) return &commands[i];
    return NULL;
}

/* Returns 0; or why the client is over. */
static int run(struct client *c)
{
    const struct command *command = find_command(c->argv[0]);
    if (!command) {
        out_line(&c->out, "-ERR unknown command '%.*s'", (int)(c->argv[0].len & 127),
                 c->argv[0].at);
        return 0;
    }
    if (command->args < 0 ? c->argc < -command->args : c->argc != command->args) {
        out_line(&c->out, "-ERR wrong number of arguments for '%s' command", command->name);
        return 0;
    }
    if (c->inbox.subscriptions > 0 && !command->when_subscribed) {
        out_line(&c->out, "-ERR Can't execute '%s': only (UN)SUBSCRIBE, PING and QUIT here",
                 command->name);
        return 0;
    }
    int r = command->run(c);
    if (r == -EINVAL) out_line(&c->out, "-ERR value is not an integer or out of range");
    if (r == -ENOMEM) out_line(&c->out, "-OOM out of memory");
    return r == -EINVAL || r == -ENOMEM || r > 0 ? 0 : r;
}

/* ---- a client ---- */

static int flush(struct client *c)
{
    ssize_t n = 0;
    if (c->out.failed) return -ENOMEM;
    WEFT_TIMEOUT(SLOW_READER) n = weft_write_all(c->stream, c->out.at, c->out.len);
    c->out.len = 0;
    return n < 0 ? (int)n : 0;
}

/* Run the whole commands that are there. */
static int run_all(struct client *c)
{
    size_t at = 0;
    ssize_t n;
    int r = 0;
    while (r == 0 && !c->over &&
           (n = resp_parse(c->in + at, c->in_bytes - at, c->argv, &c->argc)) != 0) {
        if (n < 0) {
            out_line(&c->out, "-ERR Protocol error");
            c->over = true;
            break;
        }
        at += (size_t)n;
        if (c->argc > 0) r = run(c);
        if (r == 0 && c->out.len >= OUT_ENOUGH) r = flush(c);
    }
    memmove(c->in, c->in + at, c->in_bytes - at);
    c->in_bytes -= at;
    return r;
}

static int make_room(struct client *c)
{
    if (c->in_bytes < c->in_cap) return 0;
    if (c->in_cap >= IN_MOST) return -EMSGSIZE;
    char *in = realloc(c->in, c->in_cap ? 2 * c->in_cap : IN_BYTES);
    if (!in) return -ENOMEM;
    c->in = in;
    c->in_cap = c->in_cap ? 2 * c->in_cap : IN_BYTES;
    return 0;
}

static void forward(struct client *c, struct message *msg)
{
    out_raw(&c->out, msg->text.at, msg->text.len);
    message_unref(msg);
}

/* Wait for commands, and for messages if it listens to any. Returns above 0; 0: it is gone, or too slow; or an errno. */
static int hear(struct client *c)
{
    struct weft_recv rx = {.ret = 0};
    struct weft_read rd;
    struct message *msg;
    size_t room = c->in_cap - c->in_bytes;
    if (c->inbox.subscriptions == 0) {
        rd.ret = weft_read(c->stream, c->in + c->in_bytes, room);
    } else {
        int which = weft_select(weft_arm(rd, weft_read, c->stream, c->in + c->in_bytes, room),
                                weft_arm(rx, weft_recv, c->inbox.messages, &msg));
        if (which < 0) return which;
        if (rx.ret > 0)
            forward(c, msg); /* also if the other was first: what has happened is not lost */
        if (rd.ret == -ECANCELED && which == 1) return rx.ret;
    }
    if (rd.ret > 0) c->in_bytes += (size_t)rd.ret;
    return (int)rd.ret;
}

static int client(weft_stream *stream)
{
    struct client c = {.stream = stream};
    int r = 1;
    while (r > 0 && !c.over) {
        if ((r = make_room(&c)) < 0 || (r = hear(&c)) <= 0) break;
        if ((r = run_all(&c)) < 0 || (r = flush(&c)) < 0) break;
        r = 1;
    }
    inbox_done(&c.inbox);
    weft_close(stream);
    free(c.in);
    free(c.out.at);
    return r == -ENOMEM ? r : 0; /* a client that is gone is no failure of ours */
}

/* ---- the server ---- */

/* Free what nobody asks for any more. */
static int sweep_now_and_then(void)
{
    weft_interval every = weft_interval_of(weft_secs(1));
    int r;
    while ((r = weft_tick(&every)) >= 0 && store_sweep(weft_now()) >= 0)
        continue;
    return r == -ECANCELED ? 0 : r;
}

static int serve(weft_listener *l)
{
    int r = 0;
    WEFT_SCOPE(s)
    {
        weft_stream *c;
        if ((r = weft_go_in(s, sweep_now_and_then)) < 0) break;
        while ((r = weft_accept(l, &c)) >= 0)
            if (weft_go_in(s, client, c) < 0) weft_close(c);
    } /* waits for the clients, who were told what app was told */
    return r;
}

static int app(int argc, char **argv)
{
    weft_listener *l;
    char where[WEFT_ADDR_TEXT];
    int r = weft_tcp_listen(argc > 1 ? argv[1] : "127.0.0.1:6379", &l);
    if (r < 0) return r;
    if (weft_listener_print(l, where, sizeof where) > 0) printf("listening at %s\n", where);
    (void)fflush(stdout);
    r = serve(l);
    weft_close(l);
    WEFT_SHIELD(weft_secs(1))(void) store_sweep(WEFT_FOREVER);
    return r == -ECANCELED ? 0 : r;
}

WEFT_MAIN(app)
