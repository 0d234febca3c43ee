/* SPDX-License-Identifier: MIT
 *
 * The calls of message sockets: nothing blocks, all is close-on-exec, what is cut is told, a port outlives its peer.
 */
#include "sys/fd.h"
#include "sys/packet.h"
#include "sys/socket.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h> /* and sys/socket.h, by a name that is not ours */
#include <string.h>
#include <unistd.h>

static int udp_at(const char *text, struct weft__address *addr)
{
    int fd;
    ASSERT_OK(weft__address_parse(text, addr));
    ASSERT_OK(weft__packet_open(addr, WEFT__PACKET_DGRAM, &fd));
    ASSERT_OK(weft__socket_bind(fd, addr));
    ASSERT_OK(weft__socket_local(fd, addr));
    return fd;
}

TEST(packet_sockets_never_block)
{
    int fds[2];
    char b[4];
    ASSERT_OK(weft__packet_pair(WEFT__PACKET_SEQ, fds));
    for (int i = 0; i < 2; i++) {
        ASSERT(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        ASSERT(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
        ASSERT_EQ(weft__packet_recv(fds[i], b, sizeof b, NULL), -EAGAIN);
    }
    ASSERT_EQ(weft__packet_send(fds[0], "abcdef", 6, NULL), 6);
    ASSERT_EQ(weft__packet_recv(fds[1], b, sizeof b, NULL), -EMSGSIZE);
    weft__fd_close(fds[0]);
    ASSERT_EQ(weft__packet_recv(fds[1], b, sizeof b, NULL), 0);
    ASSERT_EQ(weft__packet_send(fds[1], "x", 1, NULL), -EPIPE); /* and no signal */
    weft__fd_close(fds[1]);
}

TEST(packet_many_moves_what_is_there)
{
    struct weft__address addr;
    struct weft__packet out[3] = {0}, in[5] = {0};
    char room[5][8], bytes[] = "01234567";
    int fd = udp_at("127.0.0.1:0", &addr);
    for (int i = 0; i < 3; i++)
        out[i] = (struct weft__packet){.buf = bytes, .len = (size_t)i, .addr = addr};
    for (int i = 0; i < 5; i++)
        in[i] = (struct weft__packet){.buf = room[i], .len = 1};
    ASSERT_EQ(weft__packet_recv_many(fd, in, 5), -EAGAIN);
    ASSERT_EQ(weft__packet_send_many(fd, out, 3), 3);
    ASSERT_EQ(weft__packet_recv_many(fd, in, 5), 3);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(in[i].cut, i > 1);
        ASSERT_EQ(in[i].got, i > 1 ? 1 : i);
        ASSERT_EQ(weft__address_port(&in[i].addr), weft__address_port(&addr));
    }
    weft__fd_close(fd);
}

TEST(packet_disconnect_keeps_the_port)
{
    struct weft__address one, other, after;
    int a = udp_at("127.0.0.1:0", &one);
    int b = udp_at("127.0.0.1:0", &other);
    ASSERT_OK(weft__socket_connect(a, &other));
    ASSERT_OK(weft__packet_disconnect(a));
    ASSERT_OK(weft__socket_local(a, &after));
    ASSERT_EQ(weft__address_port(&after), weft__address_port(&one));
    ASSERT_EQ(weft__socket_peer(a, &after), -ENOTCONN);
    weft__fd_close(a);
    weft__fd_close(b);
}

/* Those beyond the room are closed: the harness counts. */
TEST(packet_fds_beyond_the_room_are_closed)
{
    int fds[2], pass[2], room[1];
    char b[4];
    struct weft__packet_fds into = {.fd = room, .room = 1};
    ASSERT_OK(weft__packet_pair(WEFT__PACKET_DGRAM, fds));
    ASSERT_OK(weft__packet_pair(WEFT__PACKET_DGRAM, pass));
    ASSERT_EQ(weft__packet_recv_fds(fds[1], b, sizeof b, &into), -EAGAIN);
    ASSERT_EQ(weft__packet_send_fds(fds[0], "x", 1, pass, 2), 1);
    ASSERT_EQ(weft__packet_recv_fds(fds[1], b, sizeof b, &into), 1);
    ASSERT_EQ(into.count, 1);
    ASSERT(into.cut);
    ASSERT(fcntl(room[0], F_GETFD) & FD_CLOEXEC);
    weft__fd_close(room[0]);
    ASSERT_EQ(weft__packet_send_fds(fds[0], "xxxxx", 5, pass, 1), 5);
    ASSERT_EQ(weft__packet_recv_fds(fds[1], b, sizeof b, &into), -EMSGSIZE);
    ASSERT_EQ(into.count, 0);
    for (int i = 0; i < 2; i++) {
        weft__fd_close(fds[i]);
        weft__fd_close(pass[i]);
    }
}

/* The harness finds what stays open. */
TEST(packet_pidfds_are_not_left_open)
{
    enum { PASS_PIDFD = 76 }; /* of newer headers: SO_PASSPIDFD */
    int fds[2];
    int one = 1;
    char b[4];
    ASSERT_OK(weft__packet_pair(WEFT__PACKET_SEQ, fds));
    if (setsockopt(fds[1], SOL_SOCKET, PASS_PIDFD, &one, sizeof(one)) == 0) {
        struct weft__packet_fds none = {.room = 0};
        ASSERT_EQ(weft__packet_send(fds[0], "abc", 3, NULL), 3);
        ASSERT_EQ(weft__packet_recv_fds(fds[1], b, sizeof b, &none), 3);
        ASSERT_EQ(none.count, 0);
        ASSERT(!none.cut);
    }
    weft__fd_close(fds[0]);
    weft__fd_close(fds[1]);
}

TEST(packet_options_are_of_either_family)
{
    static const char *const texts[] = {"127.0.0.1:0", "[::1]:0"};
    for (int i = 0; i < 2; i++) {
        struct weft__address addr;
        int fd;
        int value = 0;
        ASSERT_OK(weft__address_parse(texts[i], &addr));
        if (weft__packet_open(&addr, WEFT__PACKET_DGRAM, &fd) < 0) continue; /* no IPv6 here */
        ASSERT_OK(weft__packet_set(fd, WEFT__PACKET_TTL, 9));
        ASSERT_OK(weft__packet_get(fd, WEFT__PACKET_TTL, &value));
        ASSERT_EQ(value, 9);
        ASSERT_OK(weft__packet_group_by(fd, "lo"));
        ASSERT_EQ(weft__packet_group_by(fd, "no-such-if"), -ENODEV);
        ASSERT_EQ(weft__packet_group(fd, true, "no address", NULL), -EINVAL);
        weft__fd_close(fd);
    }
}

TEST(packet_creds_of_nobody)
{
    pid_t pid;
    uid_t uid;
    gid_t gid;
    int fd;
    ASSERT_OK(weft__packet_open_unix(WEFT__PACKET_SEQ, &fd));
    ASSERT_EQ(weft__packet_creds(fd, &pid, &uid, &gid), -ENOTCONN);
    weft__fd_close(fd);
}
