/* SPDX-License-Identifier: MIT
 *
 * UDP on real runtimes: datagrams come whole, one by one or many at once, from whom they came; what is cut, refused or closed is told; groups,
 * broadcasts, and what the kernel does for whole batches.
 */
#include "storm.h"
#include "town.h"

static weft_udp *socket_at(const char *address, weft_addr *addr)
{
    weft_udp *u;
    int r = weft_udp_bind(address, &u);
    if (r < 0) return NULL;
    ASSERT_OK(weft_udp_local(u, addr));
    return u;
}

static void print_to(const weft_addr *addr, char text[WEFT_ADDR_TEXT])
{
    ASSERT_GE(weft_addr_print(addr, text, WEFT_ADDR_TEXT), 1);
}

/* ---- echo, by both kinds of task ---- */

static int echo(weft_udp *u)
{
    char b[2048];
    weft_addr from;
    ssize_t n;
    while ((n = weft_udp_recv_from(u, b, sizeof b, &from)) > 0)
        if ((n = weft_udp_send_to(u, b, (size_t)n, &from)) < 0) break;
    return (int)n;
}

struct echoing {
    WEFT_FRAME(int);
    weft_udp *u;
    weft_addr from;
    struct weft_udp_recv_from rx;
    struct weft_udp_send_to tx;
    char b[2048];
};
static weft_async(echoing)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_udp_recv_from, f->u, f->b, sizeof f->b, &f->from);
        if (f->rx.ret <= 0) break;
        weft_await(f->tx, weft_udp_send_to, f->u, f->b, (size_t)f->rx.ret, &f->from);
        if (f->tx.ret < 0) break;
    }
    weft_return((int)f->rx.ret);
    weft_end;
}

static void echoes_at(const char *address, bool stackless)
{
    weft_addr a, b, from;
    unsigned char out[1200], in[1200];
    int r = 1;
    weft_udp *server = socket_at(address, &a);
    if (!server) return; /* no IPv6 here */
    weft_udp *client = socket_at(address, &b);
    weft_task *task = stackless ? weft_spawn(echoing, server) : weft_go(echo, server);
    for (uint64_t k = 1; k < 40; k++) {
        size_t len = k * 30;
        town_fill(out, len, k);
        ASSERT_EQ(weft_udp_send_to(client, out, len, &a), len);
        ASSERT_EQ(weft_udp_recv_from(client, in, sizeof in, &from), len);
        town_check(in, len, k);
        ASSERT_EQ(weft_addr_port(&from), weft_addr_port(&a));
    }
    ASSERT_EQ(weft_udp_send_to(client, "", 0, &a), 0); /* an empty one is one, too */
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_close(server);
    weft_close(client);
}

static void echoes(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        echoes_at("127.0.0.1:0", i);
        echoes_at("[::1]:0", i);
    }
}

TEST(udp_echoes)
{
    crew_each(echoes);
}

/* ---- budget ---- */

static _Atomic bool heard;

static void says(void)
{
    store_relaxed(&heard, true); /* relaxed: a flag of the test's */
}

/* What it sends has come by the time that it asks: it never waits. On one worker it sees the flag only if it lets the other run. */
static int talks_to_itself(weft_udp *u, const weft_addr *self)
{
    char b[16];
    weft_addr from;
    store_relaxed(&heard, false);
    ASSERT_OK(weft_detach(weft_go(says)));
    while (!load_relaxed(&heard)) {
        ssize_t n = weft_udp_send_to(u, "again", 5, self);
        if (n > 0) n = weft_udp_recv_from(u, b, sizeof b, &from);
        if (n != 5) return n < 0 ? (int)n : -EIO;
    }
    return 0;
}

TEST(udp_that_never_waits_lets_others_run)
{
    for (int workers = 1; workers >= -1; workers -= 2) {
        struct crew crew;
        weft_addr self;
        int r = 1;
        crew_start(&crew, workers);
        weft_udp *u = socket_at("127.0.0.1:0", &self);
        ASSERT_OK(weft_join(weft_go(talks_to_itself, u, &self), &r));
        ASSERT_OK(r);
        weft_close(u);
        crew_stop(&crew);
    }
}

/* ---- connected ---- */

static void connects(struct crew *crew)
{
    weft_addr a, b, c, peer;
    char text[WEFT_ADDR_TEXT], in[100];
    (void)crew;
    weft_udp *one = socket_at("127.0.0.1:0", &a);
    weft_udp *two = socket_at("127.0.0.1:0", &b);
    weft_udp *other = socket_at("127.0.0.1:0", &c);
    ASSERT_EQ(weft_udp_send(one, "x", 1), -EDESTADDRREQ);
    ASSERT_EQ(weft_udp_peer(one, &peer), -ENOTCONN);
    print_to(&b, text);
    ASSERT_OK(weft_udp_connect(one, text));
    ASSERT_OK(weft_udp_peer(one, &peer));
    ASSERT_EQ(weft_addr_port(&peer), weft_addr_port(&b));
    ASSERT_EQ(weft_udp_send_to(other, "stranger", 8, &a), 8); /* not let through */
    ASSERT_EQ(weft_udp_send_to(two, "friend", 6, &a), 6);
    ASSERT_EQ(weft_udp_recv(one, in, sizeof in), 6);
    ASSERT_OK(memcmp(in, "friend", 6));
    ASSERT_EQ(weft_udp_send(one, "hello", 5), 5);
    ASSERT_EQ(weft_udp_recv(two, in, sizeof in), 5);
    weft_close(two);
    ASSERT_EQ(weft_udp_send(one, "hello", 5), 5);
    ASSERT_EQ(weft_udp_recv(one, in, sizeof in), -ECONNREFUSED); /* what came back */
    ASSERT_OK(weft_udp_connect(one, NULL));
    ASSERT_EQ(weft_udp_send_to(other, "stranger", 8, &a), 8);
    ASSERT_EQ(weft_udp_recv(one, in, sizeof in), 8);
    weft_close(one);
    weft_close(other);
}

TEST(udp_connects)
{
    crew_each(connects);
}

/* ---- too long ---- */

static void tells_of_a_cut(struct crew *crew)
{
    weft_addr a, b, from = {.bytes = 0};
    char in[10], more[10];
    static char huge[70000];
    (void)crew;
    weft_udp *one = socket_at("127.0.0.1:0", &a);
    weft_udp *two = socket_at("127.0.0.1:0", &b);
    ASSERT_EQ(weft_udp_send_to(one, "0123456789abc", 13, &b), 13);
    ASSERT_EQ(weft_udp_send_to(one, "next", 4, &b), 4);
    ASSERT_EQ(weft_udp_recv_from(two, in, sizeof in, &from), -EMSGSIZE);
    ASSERT_OK(memcmp(in, "0123456789", 10));
    ASSERT_EQ(weft_addr_port(&from), weft_addr_port(&a));
    ASSERT_EQ(weft_udp_recv(two, in, sizeof in), 4);
    ASSERT_EQ(weft_udp_send_to(one, huge, sizeof huge, &b), -EMSGSIZE);
    ASSERT_EQ(weft_udp_send_to(one, "0123456789abc", 13, &b), 13);
    ASSERT_EQ(weft_udp_send_to(one, "0123456789", 10, &b), 10);
    weft_udp_msg msgs[2] = {{.buf = in, .len = 10}, {.buf = more, .len = 10}};
    ASSERT_EQ(weft_udp_recv_many(two, msgs, 2), 2);
    ASSERT(msgs[0].cut && !msgs[1].cut);
    ASSERT_EQ(msgs[0].got, 10);
    ASSERT_EQ(msgs[1].got, 10);
    weft_close(one);
    weft_close(two);
}

TEST(udp_tells_of_what_was_cut)
{
    crew_each(tells_of_a_cut);
}

/* ---- many ---- */

#define MANY 100

struct pouring {
    WEFT_FRAME(int);
    weft_udp *u;
    weft_udp_msg *msgs;
    unsigned sent;
    struct weft_udp_send_many tx;
};
static weft_async(pouring)
{
    weft_begin;
    while (f->sent < MANY) {
        weft_await(f->tx, weft_udp_send_many, f->u, f->msgs + f->sent, MANY - f->sent);
        if (f->tx.ret < 0) weft_return(f->tx.ret);
        f->sent += (unsigned)f->tx.ret;
    }
    weft_return(0);
    weft_end;
}

static int pours(weft_udp *u, weft_udp_msg *msgs)
{
    for (unsigned sent = 0; sent < MANY;) {
        int r = weft_udp_send_many(u, msgs + sent, MANY - sent);
        if (r < 0) return r;
        sent += (unsigned)r;
    }
    return 0;
}

/* From one sender to one receiver on the loopback nothing is lost while the buffer has room, and the order stays. */
static void goes_by_many(bool stackless)
{
    static weft_udp_msg out[MANY], in[16];
    static unsigned char bytes[MANY][64], room[16][64];
    weft_addr a, b;
    int r = 1;
    weft_udp *one = socket_at("127.0.0.1:0", &a);
    weft_udp *two = socket_at("127.0.0.1:0", &b);
    for (unsigned i = 0; i < MANY; i++) {
        town_fill(bytes[i], 64, i);
        out[i] = (weft_udp_msg){.buf = bytes[i], .len = 1 + i % 64, .addr = b};
    }
    weft_task *task = stackless ? weft_spawn(pouring, one, out) : weft_go(pours, one, out);
    for (unsigned at = 0; at < MANY;) {
        for (int i = 0; i < 16; i++)
            in[i] = (weft_udp_msg){.buf = room[i], .len = 64};
        int got = weft_udp_recv_many(two, in, 16);
        ASSERT_GE(got, 1);
        for (int i = 0; i < got; i++, at++) {
            ASSERT_EQ(in[i].got, 1 + at % 64);
            ASSERT_EQ(weft_addr_port(&in[i].addr), weft_addr_port(&a));
            town_check(room[i], in[i].got, at);
        }
    }
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    ASSERT_EQ(weft_udp_recv_many(two, in, 0), 0);
    weft_close(one);
    weft_close(two);
}

static void moves_many(struct crew *crew)
{
    (void)crew;
    goes_by_many(false);
    goes_by_many(true);
}

TEST(udp_moves_many_at_once)
{
    crew_each(moves_many);
}

/* One message of ten segments comes as ten datagrams; or, where they may be merged, as fewer that say how long each is. */
static void cuts_and_merges(struct crew *crew)
{
    weft_addr a, b;
    weft_udp *two;
    static unsigned char out[1000], in[4][2000];
    (void)crew;
    weft_udp *one = socket_at("127.0.0.1:0", &a);
    if (!weft_udp_can(one, WEFT_UDP_SEGMENTS) || !weft_udp_can(one, WEFT_UDP_MERGES)) {
        weft_udp_msg msg = {.buf = out, .len = sizeof out, .segment = 100, .addr = a};
        ASSERT_EQ(weft_udp_send_many(one, &msg, 1), -EOPNOTSUPP);
        weft_close(one);
        return;
    }
    town_fill(out, sizeof out, 0);
    for (int merge = 0; merge < 2; merge++) {
        ASSERT_OK(weft_udp_bind_with(&(weft_udp_opts){.merge = merge}, "127.0.0.1:0", &two));
        ASSERT_OK(weft_udp_local(two, &b));
        weft_udp_msg msg = {.buf = out, .len = sizeof out, .segment = 100, .addr = b};
        ASSERT_EQ(weft_udp_send_many(one, &msg, 1), 1);
        ASSERT_EQ(msg.got, sizeof out);
        if (merge) ASSERT_EQ(weft_udp_recv(two, in[0], sizeof in[0]), -EOPNOTSUPP);
        for (size_t at = 0; at < sizeof out;) {
            weft_udp_msg msgs[4] = {{.buf = in[0], .len = sizeof in[0]},
                                    {.buf = in[1], .len = sizeof in[1]},
                                    {.buf = in[2], .len = sizeof in[2]},
                                    {.buf = in[3], .len = sizeof in[3]}};
            int got = weft_udp_recv_many(two, msgs, 4);
            ASSERT_GE(got, 1);
            for (int i = 0; i < got; i++) {
                if (msgs[i].segment == 0) ASSERT_EQ(msgs[i].got, 100);
                if (msgs[i].segment != 0) ASSERT_EQ(msgs[i].segment, 100);
                ASSERT(merge || msgs[i].segment == 0);
                town_check(in[i], msgs[i].got, at);
                at += msgs[i].got;
            }
        }
        weft_close(two);
    }
    weft_udp_msg silly = {.buf = out, .len = 10, .segment = 100000, .addr = a};
    ASSERT_EQ(weft_udp_send_many(one, &silly, 1), -EINVAL);
    weft_close(one);
}

TEST(udp_cuts_and_merges)
{
    crew_each(cuts_and_merges);
}

/* ---- groups, broadcasts, options ---- */

static void joins_groups(struct crew *crew)
{
    weft_addr a, to;
    char text[64], in[10];
    weft_udp *u, *second;
    (void)crew;
    weft_udp_opts opts = {.reuse_address = true};
    ASSERT_OK(weft_udp_bind_with(&opts, "0.0.0.0:0", &u));
    ASSERT_OK(weft_udp_local(u, &a));
    snprintf(text, sizeof text, "0.0.0.0:%d", weft_addr_port(&a));
    ASSERT_OK(weft_udp_bind_with(&opts, text, &second));
    ASSERT_EQ(weft_udp_join(u, "127.0.0.1", "lo"), -EINVAL); /* no group */
    ASSERT_EQ(weft_udp_join(u, "nonsense", "lo"), -EINVAL);
    ASSERT_EQ(weft_udp_join(u, "ff02::7:7", "lo"), -EINVAL); /* of the other family */
    ASSERT_EQ(weft_udp_join(u, "239.7.7.7", "no-such-if"), -ENODEV);
    ASSERT_EQ(weft_udp_leave(u, "239.7.7.7", "lo"), -EADDRNOTAVAIL);
    ASSERT_OK(weft_udp_join(u, "239.7.7.7", "lo"));
    ASSERT_EQ(weft_udp_join(u, "239.7.7.7", "lo"), -EADDRINUSE);
    ASSERT_OK(weft_udp_join(second, "239.7.7.7", "lo"));
    ASSERT_OK(weft_udp_multicast_by(u, "lo"));
    ASSERT_EQ(weft_udp_multicast_by(u, "no-such-if"), -ENODEV);
    snprintf(text, sizeof text, "239.7.7.7:%d", weft_addr_port(&a));
    ASSERT_OK(weft_addr_parse(text, &to));
    ASSERT_EQ(weft_udp_send_to(u, "all", 3, &to), 3);
    ASSERT_EQ(weft_udp_recv(u, in, sizeof in), 3); /* both, since the sender's loop is on */
    ASSERT_EQ(weft_udp_recv(second, in, sizeof in), 3);
    ASSERT_OK(weft_udp_leave(u, "239.7.7.7", "lo"));
    ASSERT_OK(weft_udp_set(u, WEFT_UDP_MULTICAST_LOOP, 0));
    weft_close(u);
    weft_close(second);
}

TEST(udp_joins_groups)
{
    crew_each(joins_groups);
}

/* The same of IPv6, where the interface is part of the address. */
static void joins_groups_v6(struct crew *crew)
{
    weft_addr a, to;
    char text[64], in[10];
    weft_udp *u;
    (void)crew;
    int r = weft_udp_bind_with(&(weft_udp_opts){.v6_only = true}, "[::]:0", &u);
    if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT) TEST_SKIP("no IPv6 here");
    ASSERT_OK(r);
    ASSERT_OK(weft_udp_local(u, &a));
    ASSERT_EQ(weft_udp_join(u, "::1", "lo"), -EINVAL);       /* no group */
    ASSERT_EQ(weft_udp_join(u, "239.7.7.7", "lo"), -EINVAL); /* of the other family */
    ASSERT_EQ(weft_udp_join(u, "ff02::7:7", "no-such-if"), -ENODEV);
    ASSERT_EQ(weft_udp_leave(u, "ff02::7:7", "lo"), -EADDRNOTAVAIL);
    ASSERT_OK(weft_udp_join(u, "ff02::7:7", "lo"));
    ASSERT_EQ(weft_udp_join(u, "ff02::7:7", "lo"), -EADDRINUSE);
    ASSERT_OK(weft_udp_multicast_by(u, "lo"));
    snprintf(text, sizeof text, "[ff02::7:7%%lo]:%d", weft_addr_port(&a));
    ASSERT_OK(weft_addr_parse(text, &to));
    ssize_t sent = weft_udp_send_to(u, "all", 3, &to);
    if (sent == 3) ASSERT_EQ(weft_udp_recv(u, in, sizeof in), 3);
    if (sent != 3) ASSERT_EQ(sent, -ENETUNREACH); /* lo has no such route everywhere */
    ASSERT_OK(weft_udp_leave(u, "ff02::7:7", "lo"));
    weft_close(u);
}

TEST(udp_joins_groups_of_the_other_family)
{
    crew_each(joins_groups_v6);
}

static void broadcasts(struct crew *crew)
{
    weft_addr a, to;
    char text[64], in[10];
    (void)crew;
    weft_udp *u = socket_at("0.0.0.0:0", &a);
    snprintf(text, sizeof text, "127.255.255.255:%d", weft_addr_port(&a));
    ASSERT_OK(weft_addr_parse(text, &to));
    ASSERT_EQ(weft_udp_send_to(u, "all", 3, &to), -EACCES);
    ASSERT_OK(weft_udp_set(u, WEFT_UDP_BROADCAST, 1));
    ASSERT_EQ(weft_udp_send_to(u, "all", 3, &to), 3);
    ASSERT_EQ(weft_udp_recv(u, in, sizeof in), 3);
    weft_close(u);
}

TEST(udp_broadcasts_if_it_may)
{
    crew_each(broadcasts);
}

static void has_options(struct crew *crew)
{
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:0"};
    (void)crew;
    for (int i = 0; i < 2; i++) {
        weft_addr a;
        int value = 0;
        weft_udp *u = socket_at(addresses[i], &a);
        if (!u) continue;
        ASSERT_OK(weft_udp_set(u, WEFT_UDP_TTL, 7));
        ASSERT_OK(weft_udp_get(u, WEFT_UDP_TTL, &value));
        ASSERT_EQ(value, 7);
        ASSERT_OK(weft_udp_set(u, WEFT_UDP_MULTICAST_TTL, 3));
        ASSERT_OK(weft_udp_get(u, WEFT_UDP_MULTICAST_TTL, &value));
        ASSERT_EQ(value, 3);
        ASSERT_OK(weft_udp_set(u, WEFT_UDP_RECV_BYTES, 20000));
        ASSERT_OK(weft_udp_get(u, WEFT_UDP_RECV_BYTES, &value));
        ASSERT_EQ(value, 40000);
        ASSERT_OK(weft_udp_set(u, WEFT_UDP_SEND_BYTES, 10000));
        ASSERT_OK(weft_udp_get(u, WEFT_UDP_SEND_BYTES, &value));
        ASSERT_EQ(value, 20000);
        ASSERT_OK(weft_udp_set(u, WEFT_UDP_TOS, 0x10));
        ASSERT_OK(weft_udp_get(u, WEFT_UDP_TOS, &value));
        ASSERT_EQ(value, 0x10);
        ASSERT_EQ(weft_udp_set(u, WEFT_UDP_TOS, 256), -EINVAL);
        ASSERT_EQ(weft_udp_get(u, WEFT_UDP_TTL, NULL), -EINVAL);
        ASSERT_EQ(weft_udp_can(NULL, WEFT_UDP_MERGES), -EINVAL);
        weft_close(u);
    }
}

TEST(udp_has_options)
{
    crew_each(has_options);
}

/* ---- ends, misuse ---- */

static int waits(weft_udp *u)
{
    char b[10];
    return (int)weft_udp_recv(u, b, sizeof b);
}

static void ends_by_close(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 20; i++) {
        weft_addr a;
        weft_task *task[4];
        weft_udp *u = socket_at("127.0.0.1:0", &a);
        for (int k = 0; k < 4; k++)
            task[k] = k % 2 ? weft_spawn(echoing, u) : weft_go(waits, u);
        for (int k = 0; k < i; k++)
            sched_yield();
        weft_close(u);
        for (int k = 0; k < 4; k++) {
            int r = 1;
            ASSERT_OK(weft_join(task[k], &r));
            ASSERT_EQ(r, -EBADF);
        }
    }
}

TEST(udp_close_ends_who_waits)
{
    crew_each(ends_by_close);
}

TEST(udp_says_what_is_wrong)
{
    struct crew crew;
    weft_addr a;
    weft_udp *u, *same;
    char text[WEFT_ADDR_TEXT], b[4];
    ASSERT_EQ(weft_udp_bind("127.0.0.1:0", &u), -ENXIO);
    crew_start(&crew, 1);
    ASSERT_EQ(weft_udp_bind("nowhere", &u), -EINVAL);
    ASSERT_EQ(weft_udp_bind(NULL, &u), -EINVAL);
    ASSERT_EQ(weft_udp_bind("127.0.0.1:0", NULL), -EINVAL);
    ASSERT_EQ(weft_udp_bind("192.0.2.1:0", &u), -EADDRNOTAVAIL);
    u = socket_at("127.0.0.1:0", &a);
    print_to(&a, text);
    ASSERT_EQ(weft_udp_bind(text, &same), -EADDRINUSE);
    ASSERT_EQ(weft_udp_recv(NULL, b, 4), -EINVAL);
    ASSERT_EQ(weft_udp_recv(u, NULL, 4), -EINVAL);
    ASSERT_EQ(weft_udp_recv_from(u, b, 4, NULL), -EINVAL);
    ASSERT_EQ(weft_udp_send_to(u, b, 4, NULL), -EINVAL);
    ASSERT_EQ(weft_udp_send_to(u, b, 4, &(weft_addr){.bytes = 0}), -EINVAL);
    ASSERT_EQ(weft_udp_send_many(u, NULL, 4), -EINVAL);
    ASSERT_EQ(weft_udp_recv_many(NULL, NULL, 0), -EINVAL);
    ASSERT_EQ(weft_udp_connect(u, "[::1]:80"), -EINVAL);
    weft_close((weft_udp *)NULL);
    weft_close(u);
    crew_stop(&crew);
}

/* ---- given up ---- */

struct swarm {
    weft_udp *from;
    weft_udp *to;
    weft_addr addr;
    uint32_t count;
    uint32_t sent;
};

static int takes_one(struct swarm *swarm)
{
    char b[8];
    ssize_t n = weft_udp_recv(swarm->to, b, sizeof b);
    return n == 8 ? 0 : (int)n;
}

struct taking {
    WEFT_FRAME(int);
    struct swarm *swarm;
    struct weft_udp_recv_many rx;
    weft_udp_msg msg;
    char b[8];
};
static weft_async(taking)
{
    weft_begin;
    f->msg = (weft_udp_msg){.buf = f->b, .len = sizeof f->b};
    weft_await(f->rx, weft_udp_recv_many, f->swarm->to, &f->msg, 1);
    weft_return(f->rx.ret == 1 ? 0 : f->rx.ret);
    weft_end;
}

static weft_task *starts(void *of, uint32_t i, bool stackless)
{
    struct swarm *swarm = of;
    if (i % 3 == 0) {
        ASSERT_EQ(weft_udp_send_to(swarm->from, "datagram", 8, &swarm->addr), 8);
        swarm->sent++;
    }
    return stackless ? weft_spawn(taking, swarm) : weft_go(takes_one, swarm);
}

static void finishes(void *of)
{
    struct swarm *swarm = of;
    for (; swarm->sent < swarm->count; swarm->sent++)
        ASSERT_EQ(weft_udp_send_to(swarm->from, "datagram", 8, &swarm->addr), 8);
}

/* Every datagram was received by one, or is still there: those who gave up have taken none. */
static void gives_up(struct crew *crew)
{
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(10); round++) {
        struct swarm swarm = {.count = 100};
        weft_addr a;
        uint32_t left = 0;
        swarm.from = socket_at("127.0.0.1:0", &a);
        swarm.to = socket_at("127.0.0.1:0", &swarm.addr);
        struct storm_sum sum = storm(starts, &swarm, swarm.count, finishes);
        ASSERT_EQ(sum.other, 0);
        ASSERT_EQ(weft_udp_send_to(swarm.from, "end", 3, &swarm.addr), 3);
        char b[8];
        while (weft_udp_recv(swarm.to, b, sizeof b) == 8)
            left++;
        ASSERT_EQ(sum.got + left, swarm.count);
        weft_close(swarm.from);
        weft_close(swarm.to);
    }
}

TEST_WITH(udp_given_up_takes_nothing, .timeout_s = 180)
{
    crew_each(gives_up);
}
