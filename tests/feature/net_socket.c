/* SPDX-License-Identifier: MIT
 *
 * What a socket is: its addresses, its options, a descriptor that the program has itself, and descriptors
 * that come with its bytes. Who meets whom by it: net.
 */
#include "town.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses ---- */

static void same(const char *text, const char *printed, int port)
{
    weft_addr addr;
    char out[WEFT_ADDR_TEXT];
    ASSERT_OK(weft_addr_parse(text, &addr));
    ASSERT_EQ(weft_addr_print(&addr, out, sizeof out), (int)strlen(printed));
    ASSERT_STR(out, printed);
    ASSERT_EQ(weft_addr_port(&addr), port);
}

TEST(addr_is_what_it_was)
{
    same("127.0.0.1:80", "127.0.0.1:80", 80);
    same(":5555", "0.0.0.0:5555", 5555);
    same("*:0", "0.0.0.0:0", 0);
    same("[::1]:65535", "[::1]:65535", 65535);
    same("[::]:1", "[::]:1", 1);
    same("[fe80::1%1]:9", "[fe80::1%1]:9", 9);
    static const char *const wrong[] = {"",
                                        ":",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:65536",
                                        "127.0.0.1:1x",
                                        "localhost:80",
                                        "[::1:80",
                                        "::1:80",
                                        "1.2.3:4",
                                        "[]:80",
                                        "[::1%nosuch]:80",
                                        "127.0.0.1:-1",
                                        "127.0.0.1: 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weft_addr addr = {.bytes = 7};
        ASSERT_EQ(weft_addr_parse(wrong[i], &addr), -EINVAL);
        ASSERT_EQ(addr.bytes, 7); /* written on success only */
    }
    ASSERT_EQ(weft_addr_parse(NULL, NULL), -EINVAL);
    weft_addr none = {.bytes = 0};
    char out[4];
    ASSERT_EQ(weft_addr_print(&none, out, sizeof out), 0);
    ASSERT_EQ(weft_addr_port(&none), -1);
}

/* ---- options, addresses of sockets ---- */

static void options(struct crew *crew)
{
    weft_listener *l;
    weft_listener *twin;
    weft_stream *a, *b;
    weft_addr addr;
    weft_addr peer;
    char text[WEFT_ADDR_TEXT];
    int value;
    (void)crew;
    weft_net_opts opts = {.reuse_port = true, .backlog = 5, .keepalive_s = 77, .recv_bytes = 65536};
    ASSERT_OK(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l));
    ASSERT_OK(weft_listener_addr(l, &addr));
    (void)weft_addr_print(&addr, text, sizeof text);
    char same[WEFT_ADDR_TEXT];
    ASSERT_EQ(weft_listener_print(l, same, sizeof same), (int)strlen(text));
    ASSERT_STR(same, text);
    ASSERT_EQ(weft_listener_print(l, same, 4), (int)strlen(text)); /* cut */
    ASSERT_STR(same, "127");
    ASSERT_EQ(weft_listener_print(NULL, same, sizeof same), -EINVAL);
    ASSERT_OK(weft_tcp_listen_with(&opts, text, &twin)); /* shares the port */
    weft_close(twin);
    ASSERT_OK(weft_tcp_connect(text, &a));
    ASSERT_OK(weft_accept(l, &b));
    ASSERT_OK(weft_sock_peer(a, &peer));
    ASSERT_EQ(weft_addr_port(&peer), weft_addr_port(&addr));
    ASSERT_OK(weft_sock_local(a, &addr));
    ASSERT_OK(weft_sock_peer(b, &peer));
    ASSERT_EQ(weft_addr_port(&peer), weft_addr_port(&addr));
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_NODELAY, &value));
    ASSERT_EQ(value, 1);
    ASSERT_OK(weft_sock_get(a, WEFT_SOCK_NODELAY, &value));
    ASSERT_EQ(value, 1);
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_KEEPALIVE_S, &value));
    ASSERT_EQ(value, 77);
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_RECV_BYTES, &value));
    ASSERT_EQ(value, 2 * 65536);
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_LINGER_S, &value));
    ASSERT_EQ(value, -1);
    ASSERT_OK(weft_sock_set(b, WEFT_SOCK_LINGER_S, 3));
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_LINGER_S, &value));
    ASSERT_EQ(value, 3);
    ASSERT_OK(weft_sock_set(b, WEFT_SOCK_LINGER_S, -1));
    ASSERT_OK(weft_sock_set(b, WEFT_SOCK_NODELAY, 0));
    int none = 99;
    /* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the mistake itself */
    ASSERT_EQ(weft_sock_set(b, (enum weft_sock_option)none, 0), -EINVAL);
    ASSERT_EQ(weft_sock_get(b, WEFT_SOCK_NODELAY, NULL), -EINVAL);
    ASSERT_EQ(weft_sock_set(NULL, WEFT_SOCK_NODELAY, 0), -EINVAL);
    weft_close(a);
    weft_close(b);
    weft_close(l);
    opts.backlog = -1;
    ASSERT_EQ(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l), -EINVAL);
    opts = (weft_net_opts){.keepalive_s = 32768}; /* longer than the kernel keeps alive */
    ASSERT_EQ(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l), -EINVAL);
    ASSERT_OK(weft_join(weft_spawn(weft_tcp_connect, text, &a, .opts = &opts), &value));
    ASSERT_EQ(value, -EINVAL);
    ASSERT_OK(weft_pipe(&a, &b));
    ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_NODELAY, 1), -ENOTSOCK);
    weft_close(a);
    weft_close(b);
}

TEST(net_options_and_addresses)
{
    crew_each(options);
}

/* Every option, as the kernel has it: what weft sets the system's own call sees, and what weft tells is that. */
static void every_option(struct crew *crew)
{
    static const struct {
        enum weft_sock_option option;
        int level, name, value, seen; /* seen: what the kernel makes of it */
    } all[] = {
        {WEFT_SOCK_NODELAY, IPPROTO_TCP, TCP_NODELAY, 0, 0},
        {WEFT_SOCK_NODELAY, IPPROTO_TCP, TCP_NODELAY, 1, 1},
        {WEFT_SOCK_KEEPALIVE, SOL_SOCKET, SO_KEEPALIVE, 1, 1},
        {WEFT_SOCK_KEEPALIVE_S, IPPROTO_TCP, TCP_KEEPIDLE, 41, 41},
        {WEFT_SOCK_PROBE_S, IPPROTO_TCP, TCP_KEEPINTVL, 42, 42},
        {WEFT_SOCK_PROBES, IPPROTO_TCP, TCP_KEEPCNT, 43, 43},
        {WEFT_SOCK_REUSE_ADDRESS, SOL_SOCKET, SO_REUSEADDR, 1, 1},
        {WEFT_SOCK_REUSE_PORT, SOL_SOCKET, SO_REUSEPORT, 1, 1},
        {WEFT_SOCK_RECV_BYTES, SOL_SOCKET, SO_RCVBUF, 30000, 60000},
        {WEFT_SOCK_SEND_BYTES, SOL_SOCKET, SO_SNDBUF, 20000, 40000},
        {WEFT_SOCK_TOS, IPPROTO_IP, IP_TOS, 0x20, 0x20},
    };
    weft_stream *pair[2];
    (void)crew;
    town_pair(TOWN_TCP, pair);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int told = -1, seen = -1;
        socklen_t bytes = sizeof seen;
        ASSERT_OK(weft_sock_set(pair[0], all[i].option, all[i].value));
        ASSERT_OK(weft_sock_get(pair[0], all[i].option, &told));
        ASSERT_OK(getsockopt(weft_stream_fd(pair[0]), all[i].level, all[i].name, &seen, &bytes));
        ASSERT_EQ(seen, all[i].seen);
        ASSERT_EQ(told, all[i].seen);
    }
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(net_every_option_is_the_kernels)
{
    crew_each(every_option);
}

/* What a listener was told goes for those who come in by it. */
static void told_to_listen(struct crew *crew)
{
    weft_listener *l, *v4;
    weft_stream *a, *b;
    char text[WEFT_ADDR_TEXT];
    int value = -1;
    socklen_t bytes = sizeof value;
    (void)crew;
    weft_net_opts opts = {.nagle = true, .fresh_port = true};
    ASSERT_OK(weft_tcp_listen_with(&opts, "127.0.0.1:0", &l));
    ASSERT_OK(getsockopt(weft_listener_fd(l), SOL_SOCKET, SO_REUSEADDR, &value, &bytes));
    ASSERT_EQ(value, 0);
    (void)weft_listener_print(l, text, sizeof text);
    ASSERT_OK(weft_tcp_connect(text, &a));
    ASSERT_OK(weft_accept(l, &b));
    ASSERT_OK(weft_sock_get(b, WEFT_SOCK_NODELAY, &value));
    ASSERT_EQ(value, 0);
    weft_close(a);
    weft_close(b);
    weft_close(l);

    opts = (weft_net_opts){.v6_only = true};
    int r = weft_tcp_listen_with(&opts, "[::]:0", &l);
    if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT) return; /* no IPv6 here */
    ASSERT_OK(r);
    weft_addr addr;
    ASSERT_OK(weft_listener_addr(l, &addr));
    /* where nobody else is: on the common address a connection that has just ended may keep that port for a minute */
    unsigned pid = (unsigned)getpid();
    (void)snprintf(text, sizeof text, "127.251.%u.%u:%d", pid >> 7 & 255, 1 + (pid & 127),
                   weft_addr_port(&addr));
    ASSERT_EQ(weft_tcp_connect(text, &a), -ECONNREFUSED);
    ASSERT_OK(weft_tcp_listen(text, &v4)); /* the other family's port is free */
    weft_close(v4);
    weft_close(l);
}

TEST(net_listeners_do_as_they_are_told)
{
    crew_each(told_to_listen);
}

/* Of both families; a Unix socket has none. */
static void has_a_tos(struct crew *crew)
{
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:0"};
    weft_stream *a, *b;
    int value = 0;
    (void)crew;
    for (int i = 0; i < 2; i++) {
        weft_listener *l;
        char text[WEFT_ADDR_TEXT];
        int r = weft_tcp_listen(addresses[i], &l);
        if (i == 1 && (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)) continue; /* no IPv6 here */
        ASSERT_OK(r);
        (void)weft_listener_print(l, text, sizeof text);
        ASSERT_OK(weft_tcp_connect(text, &a));
        ASSERT_OK(weft_sock_get(a, WEFT_SOCK_TOS, &value));
        ASSERT_EQ(value, 0);
        ASSERT_OK(weft_sock_set(a, WEFT_SOCK_TOS, 0x10));
        ASSERT_OK(weft_sock_get(a, WEFT_SOCK_TOS, &value));
        ASSERT_EQ(value, 0x10);
        ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_TOS, 256), -EINVAL);
        ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_TOS, -1), -EINVAL);
        weft_close(a);
        weft_close(l);
    }
    ASSERT_OK(weft_unix_pair(&a, &b));
    ASSERT_EQ(weft_sock_set(a, WEFT_SOCK_TOS, 0x10), -EOPNOTSUPP);
    ASSERT_EQ(weft_sock_get(a, WEFT_SOCK_TOS, &value), -EOPNOTSUPP);
    weft_close(a);
    weft_close(b);
}

TEST(net_sockets_have_a_type_of_service)
{
    crew_each(has_a_tos);
}

/* ---- descriptors of the program's own ---- */

static void of_fds(struct crew *crew)
{
    struct town_gate gate;
    weft_listener *l;
    weft_stream *a, *b, *s;
    char c;
    (void)crew;
    town_open(&gate);
    ASSERT_OK(weft_listener_of_fd(NULL, dup(weft_listener_fd(gate.listener)), &l));
    weft_close(gate.listener);
    ASSERT_OK(weft_tcp_connect(gate.address, &a));
    ASSERT_OK(weft_accept(l, &b));
    ASSERT_OK(weft_stream_of_fd(dup(weft_stream_fd(b)), &s));
    weft_close(b); /* the connection goes on: the other descriptor holds it */
    ASSERT_EQ(weft_write_all(a, "x", 1), 1);
    ASSERT_EQ(weft_read(s, &c, 1), 1);
    ASSERT_OK(weft_shutdown(s)); /* it knows that it is a socket */
    ASSERT_EQ(weft_read(a, &c, 1), 0);
    weft_close(a);
    weft_close(s);
    weft_close(l);
    int fds[2];
    ASSERT_OK(pipe(fds));
    ASSERT_OK(weft_stream_of_fd(fds[0], &a));
    ASSERT_OK(weft_stream_of_fd(fds[1], &b));
    ASSERT_EQ(weft_write_all(b, "y", 1), 1);
    ASSERT_EQ(weft_read(a, &c, 1), 1);
    ASSERT_EQ(weft_shutdown(b), -EOPNOTSUPP);
    weft_close(a);
    weft_close(b);
    ASSERT_EQ(weft_listener_of_fd(NULL, 0, NULL), -EINVAL);
    ASSERT_EQ(weft_listener_of_fd(&(weft_net_opts){.keepalive_s = -1}, 0, &l), -EINVAL);
}

/* What does not take connections is no listener: an accept would try for ever. The descriptor stays the program's. */
static void not_listening(struct crew *crew)
{
    static const struct {
        int family, type, answer;
    } kinds[] = {
        {AF_INET, SOCK_DGRAM, -EOPNOTSUPP}, {AF_UNIX, SOCK_DGRAM, -EOPNOTSUPP},
        {AF_INET, SOCK_STREAM, -EINVAL},    {AF_UNIX, SOCK_STREAM, -EINVAL},
        {AF_UNIX, SOCK_SEQPACKET, -EINVAL},
    };
    weft_listener *l;
    int fds[2];
    (void)crew;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int fd = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, 0);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(weft_listener_of_fd(NULL, fd, &l), kinds[i].answer);
        ASSERT_OK(close(fd));
    }
    ASSERT_OK(pipe(fds));
    ASSERT_EQ(weft_listener_of_fd(NULL, fds[0], &l), -ENOTSOCK);
    ASSERT_OK(close(fds[0]));
    ASSERT_OK(close(fds[1]));
    ASSERT_EQ(weft_listener_of_fd(NULL, -1, &l), -EBADF);
}

TEST(net_a_listener_is_a_socket_that_listens)
{
    crew_each(not_listening);
}

/* A listener of packets that the program has is one: it gives no streams. */
static void packets_of_fd(struct crew *crew)
{
    char path[100];
    weft_listener *made, *l;
    weft_stream *s;
    weft_dgram *a, *b;
    char c[4];
    (void)snprintf(path, sizeof path, "@weft-packets-%d-%d", (int)getpid(), crew->workers);
    ASSERT_OK(weft_packet_listen(path, &made));
    ASSERT_OK(weft_listener_of_fd(NULL, dup(weft_listener_fd(made)), &l));
    weft_close(made);
    ASSERT_OK(weft_packet_connect(path, &a));
    ASSERT_EQ(weft_accept(l, &s), -EOPNOTSUPP);
    ASSERT_OK(weft_packet_accept(l, &b));
    ASSERT_EQ(weft_dgram_send(a, "ab", 2), 2);
    ASSERT_EQ(weft_dgram_send(a, "c", 1), 1);
    ASSERT_EQ(weft_dgram_recv(b, c, sizeof c), 2);
    weft_close(a);
    weft_close(b);
    weft_close(l);
}

TEST(net_packets_of_a_descriptor_of_the_program)
{
    crew_each(packets_of_fd);
}

TEST(net_of_descriptors_of_the_program)
{
    crew_each(of_fds);
}

/* ---- descriptors in a message: a short read is not the end of what is there ---- */

static void fds_in_messages(struct crew *crew)
{
    weft_stream *pair[2];
    char b[100];
    (void)crew;
    town_pair(TOWN_UNIX, pair);
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(town_send_fd(weft_stream_fd(pair[0]), "abc", 3, 0, 0), 3);
        ASSERT_EQ(weft_write_all(pair[0], "defg", 4), 4);
        ASSERT_EQ(weft_read_exact(pair[1], b, 7), 7);
        ASSERT_EQ(memcmp(b, "abcdefg", 7), 0);
    }
    for (int i = 0; i < 5; i++) { /* a read with more room than there is */
        ASSERT_EQ(town_send_fd(weft_stream_fd(pair[0]), "abc", 3, 0, 0), 3);
        ASSERT_EQ(weft_write_all(pair[0], "defg", 4), 4);
        ssize_t got = 0;
        while (got < 7) {
            ssize_t n = weft_read(pair[1], b + got, sizeof b - (size_t)got);
            ASSERT_GE(n, 1);
            got += n;
        }
        ASSERT_EQ(memcmp(b, "abcdefg", 7), 0);
    }
    weft_close(pair[0]);
    weft_close(pair[1]);
}

TEST(net_descriptors_in_a_message)
{
    crew_each(fds_in_messages);
}
