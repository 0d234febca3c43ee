/* SPDX-License-Identifier: MIT
 *
 * Messages, given up at every moment: connections of packets, both ways, datagrams with a sender, descriptors that travel with a message, and UDP to a peer, one
 * and several at a time. Beside io_give_up_others.c, which has the plain forms. Who was cancelled has taken nothing and sent nothing.
 */
#include "door.h"

union frames {
    struct weft_packet_accept accept;
    struct weft_packet_connect connect;
    struct {
        struct weft_dgram_recv_from op;
        weft_addr from;
    } recv_from;
    struct weft_dgram_send_fds send_fds;
    struct weft_udp_send udp_send;
    struct {
        struct weft_udp_send_many op;
        weft_udp_msg msgs[3];
    } send_many;
};

#include "give_up.h"

/* Of the shape whose turn it is. */
static struct {
    weft_listener *listener;
    weft_dgram *dgram;
    weft_udp *udp;
    int peer;  /* a plain end */
    int spare; /* a descriptor to send */
    char path[100];
    char peer_path[100];
} at;

static _Atomic uint64_t moved; /* messages, or a sum of what they say; relaxed: a count */
static uint64_t fds_came;      /* to the plain end: the thread outside */

static void world_init(void)
{
    store_relaxed(&moved, 0);
    fds_came = 0;
}

static void close_peer(void)
{
    ASSERT_OK(close(at.peer));
}

static void close_packet(struct attempt *a)
{
    weft_close((weft_dgram *)a->made);
}

/* ---- connections of packets ---- */

static void packets_listen(void)
{
    struct sockaddr_un addr;
    (void)peer_name("packets", at.path, &addr);
    ASSERT_OK(weft_packet_listen(at.path, &at.listener));
}

/* As many as the queue takes; one that was closed is accepted all the same. */
static void feed_guest(uint64_t *random)
{
    struct sockaddr_un addr;
    if (pool_random(random, 4) == 0) return;
    socklen_t bytes = peer_name("packets", at.path, &addr);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_GE(fd, 0);
    if (connect(fd, (struct sockaddr *)&addr, bytes) == 0) accounts.fed++;
    ASSERT_OK(close(fd));
}

static void accept_begin(struct attempt *a)
{
    a->f.accept =
        (struct weft_packet_accept){.listener = at.listener, .into = (weft_dgram **)&a->made};
}
static weft_poll accept_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(accept, weft_packet_accept);
}
static void even_accept(void)
{
    door_even(at.listener, accounts.fed, read_count(&accounts.ok));
    weft_close(at.listener);
}

/* A queue for one: who finds it full pauses, and tries again. */
static void narrow_door_open(void)
{
    at.peer = peer_bind(SOCK_SEQPACKET, "narrow-packets", at.path);
    ASSERT_OK(listen(at.peer, 0));
}
static void
feed_door(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    int fd = accept4(at.peer, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    accounts.fed++;
    ASSERT_OK(close(fd));
}

static void connect_begin(struct attempt *a)
{
    a->f.connect = (struct weft_packet_connect){.path = at.path, .into = (weft_dgram **)&a->made};
}
static weft_poll connect_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(connect, weft_packet_connect);
}
/* Who was told that it is connected came to the door, and nobody else did. */
static void even_connect(void)
{
    int fd;
    while ((fd = accept4(at.peer, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        accounts.fed++;
        ASSERT_OK(close(fd));
    }
    ASSERT_EQ(accounts.fed, read_count(&accounts.ok));
    close_peer();
}

/* ---- datagrams, and whose they are ---- */

static void letters_open(void)
{
    struct sockaddr_un addr;
    socklen_t bytes = peer_name("letters", at.path, &addr);
    ASSERT_OK(weft_dgram_bind(at.path, &at.dgram));
    at.peer = peer_bind(SOCK_DGRAM, "writer", at.peer_path);
    ASSERT_OK(connect(at.peer, (struct sockaddr *)&addr, bytes));
}
static void feed_letter(uint64_t *random)
{
    if (pool_random(random, 4) == 0) return;
    if (send(at.peer, &accounts.fed, 8, MSG_DONTWAIT | MSG_NOSIGNAL) == 8) accounts.fed++;
}

static void recv_from_begin(struct attempt *a)
{
    a->f.recv_from.op = (struct weft_dgram_recv_from){
        .dgram = at.dgram, .buf = &a->value, .len = 8, .from = &a->f.recv_from.from};
}
static weft_poll recv_from_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(recv_from.op, weft_dgram_recv_from);
}
static void letter_got(struct attempt *a)
{
    char from[WEFT_ADDR_TEXT];
    ASSERT_EQ(a->ret, 8);
    (void)weft_addr_print(&a->f.recv_from.from, from, sizeof from);
    ASSERT_STR(from, at.peer_path);
    fetch_add_relaxed(&moved, a->value + 1);
}
static void even_letters(void)
{
    uint64_t number;
    while (recv(weft_dgram_fd(at.dgram), &number, 8, MSG_DONTWAIT) == 8)
        fetch_add_relaxed(&moved, number + 1);
    ASSERT_EQ(load_relaxed(&moved), accounts.fed * (accounts.fed + 1) / 2);
    weft_close(at.dgram);
    close_peer();
}

/* ---- descriptors that go ---- */

/* Full from the beginning, of messages without a descriptor: a send waits until something was received. */
static void parcels_open(void)
{
    weft_dgram *other;
    int small = 4096;
    ASSERT_OK(weft_packet_pair(&at.dgram, &other));
    at.peer = dup(weft_dgram_fd(other));
    ASSERT_GE(at.peer, 0);
    weft_close(other);
    at.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(at.spare, 0);
    ASSERT_OK(setsockopt(weft_dgram_fd(at.dgram), SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    while (send(weft_dgram_fd(at.dgram), "message!", 8, MSG_DONTWAIT) == 8)
        (void)fetch_add_relaxed(&moved, 1); /* what comes without */
}

/* One message, and its descriptor, if it has one. False: there is none. */
static bool parcel_take(void)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    char text[16];
    struct iovec iov = {text, sizeof text};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    if (recvmsg(at.peer, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 8) return false;
    accounts.fed++;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (!c) return true;
    int fd;
    ASSERT_EQ(c->cmsg_type, SCM_RIGHTS);
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    ASSERT_OK(close(fd));
    fds_came++;
    return true;
}
static void
feed_parcel(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    (void)parcel_take();
}

static void send_fds_begin(struct attempt *a)
{
    a->f.send_fds = (struct weft_dgram_send_fds){
        .dgram = at.dgram, .buf = "message!", .len = 8, .fds = &at.spare, .count = 1};
}
static weft_poll send_fds_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(send_fds, weft_dgram_send_fds);
}
static void even_parcels(void)
{
    while (parcel_take())
        continue;
    ASSERT_EQ(fds_came, read_count(&accounts.ok)); /* who was cancelled has sent nothing */
    ASSERT_EQ(accounts.fed, read_count(&accounts.ok) + load_relaxed(&moved));
    weft_close(at.dgram);
    ASSERT_OK(close(at.spare));
    close_peer();
}

/* ---- UDP to a peer ---- */

static void peer_open(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof addr;
    char text[40];
    at.peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_GE(at.peer, 0);
    ASSERT_OK(bind(at.peer, (struct sockaddr *)&addr, sizeof addr));
    ASSERT_OK(getsockname(at.peer, (struct sockaddr *)&addr, &bytes));
    (void)snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(addr.sin_port));
    ASSERT_OK(weft_udp_bind("127.0.0.1:0", &at.udp));
    ASSERT_OK(weft_udp_connect(at.udp, text));
}

/* Often enough, so that none is thrown away by the kernel. */
static void
feed_sink(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    char message[16];
    (void)random;
    while (recv(at.peer, message, sizeof message, MSG_DONTWAIT) == 8)
        accounts.fed++;
}

static void udp_send_begin(struct attempt *a)
{
    a->f.udp_send = (struct weft_udp_send){.udp = at.udp, .buf = "message!", .len = 8};
}
static weft_poll udp_send_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(udp_send, weft_udp_send);
}
static void sent_one(struct attempt *a)
{
    ASSERT_EQ(a->ret, 8);
    fetch_add_relaxed(&moved, 1);
}

static void send_many_begin(struct attempt *a)
{
    static char text[] = "message!";
    for (int i = 0; i < 3; i++)
        a->f.send_many.msgs[i] = (weft_udp_msg){.buf = text, .len = 8};
    a->f.send_many.op =
        (struct weft_udp_send_many){.udp = at.udp, .msgs = a->f.send_many.msgs, .count = 3};
}
static weft_poll send_many_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(send_many.op, weft_udp_send_many);
}
static void sent_many(struct attempt *a)
{
    ASSERT(a->ret >= 1 && a->ret <= 3);
    fetch_add_relaxed(&moved, (uint64_t)a->ret);
}

static void even_sink(void)
{
    feed_sink(NULL);
    ASSERT_EQ(accounts.fed, load_relaxed(&moved));
    weft_close(at.udp);
    close_peer();
}

/* ---- all of them ---- */

static const struct shape shapes[] = {
    {"packet accept", packets_listen, accept_begin, accept_poll, close_packet, feed_guest, NULL,
     even_accept},
    {"packet connect", narrow_door_open, connect_begin, connect_poll, close_packet, feed_door, NULL,
     even_connect},
    {"dgram recv from", letters_open, recv_from_begin, recv_from_poll, letter_got, feed_letter,
     NULL, even_letters},
    {"dgram fds go", parcels_open, send_fds_begin, send_fds_poll, nothing, feed_parcel, NULL,
     even_parcels},
    {"udp send", peer_open, udp_send_begin, udp_send_poll, sent_one, feed_sink, NULL, even_sink},
    {"udp send many", peer_open, send_many_begin, send_many_poll, sent_many, feed_sink, NULL,
     even_sink},
};

static void give_up(struct crew *crew)
{
    give_up_rounds(shapes, sizeof shapes / sizeof shapes[0], crew, 6);
}

TEST_WITH(io_messages_given_up_at_every_moment, .timeout_s = 300)
{
    crew_each(give_up);
}
