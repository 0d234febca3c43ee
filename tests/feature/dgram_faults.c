/* SPDX-License-Identifier: MIT
 *
 * Sockets of messages while calls fail: each call of each kind in turn. What cannot be made leaves nothing behind, and what fails on its way
 * says so and works again. The harness counts what is open at the end.
 */
#include "base/fault.h"
#include "town.h"

#include <sys/eventfd.h>
#include <unistd.h>

#if defined(WEFT_FAULTS)

static const enum weft__fault_kind kinds[] = {
    WEFT__FAULT_SOCKET, WEFT__FAULT_BIND,    WEFT__FAULT_LISTEN,   WEFT__FAULT_SOCKOPT,
    WEFT__FAULT_ALLOC,  WEFT__FAULT_CONNECT, WEFT__FAULT_ACCEPT,   WEFT__FAULT_EPOLL_CTL,
    WEFT__FAULT_SEND,   WEFT__FAULT_RECV,    WEFT__FAULT_SOCKNAME,
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- what is done ---- */

static int talks_udp(void)
{
    weft_udp_opts opts = {.reuse_address = true, .broadcast = true, .recv_bytes = 50000};
    weft_udp *u;
    weft_addr a, from;
    char text[WEFT_ADDR_TEXT], b[16];
    int r = weft_udp_bind_with(&opts, "127.0.0.1:0", &u);
    if (r < 0) return r;
    r = weft_udp_local(u, &a);
    if (r == 0) r = weft_addr_print(&a, text, sizeof text) < 0 ? -EIO : 0;
    if (r == 0) r = (int)weft_udp_send_to(u, "a", 1, &a);
    if (r == 1) r = (int)weft_udp_recv_from(u, b, sizeof b, &from);
    if (r == 1) r = weft_udp_connect(u, text);
    weft_udp_msg msg = {.buf = b, .len = 1};
    if (r == 0) r = weft_udp_send_many(u, &msg, 1);
    if (r == 1) r = weft_udp_recv_many(u, &msg, 1);
    if (r == 1) r = weft_udp_connect(u, NULL);
    weft_close(u);
    return r;
}

static int talks_dgram(void)
{
    weft_dgram *a, *b;
    char text[8];
    int fd = eventfd(0, EFD_CLOEXEC);
    int room[1];
    weft_fds fds = {.fd = room, .room = 1};
    int r = weft_dgram_pair(&a, &b);
    if (r == 0) {
        r = (int)weft_dgram_send_fds(a, "x", 1, &fd, 1);
        if (r == 1) r = (int)weft_dgram_recv_fds(b, text, sizeof text, &fds);
        if (r == 1) close(room[0]);
        if (r == 1) r = (int)weft_dgram_send(a, "x", 1);
        if (r == 1) r = (int)weft_dgram_recv(b, text, sizeof text);
        weft_close(a);
        weft_close(b);
    }
    close(fd);
    return r < 0 ? r : 0;
}

static int talks_packets(void)
{
    char name[64];
    weft_listener *l;
    weft_dgram *a, *b;
    snprintf(name, sizeof name, "@weft-faults-%d", (int)getpid());
    int r = weft_packet_listen(name, &l);
    if (r < 0) return r;
    r = weft_packet_connect(name, &a);
    if (r == 0) {
        r = weft_packet_accept(l, &b);
        if (r == 0) weft_close(b);
        weft_close(a);
    }
    weft_close(l);
    return r;
}

static int (*const talks[])(void) = {talks_udp, talks_dgram, talks_packets};
#define TALKS (sizeof(talks) / sizeof(talks[0]))

/* ---- and fails ---- */

/* The nth call of a kind fails, for every n that there is. -EPERM is nothing that is waited for or passed over, but by accept; so it
 * has an error of its own. */
static void fails_each(int (*talk)(void), enum weft__fault_kind kind)
{
    int error = kind == WEFT__FAULT_ACCEPT ? -EBADF : kind == WEFT__FAULT_ALLOC ? -ENOMEM : -EPERM;
    for (uint32_t n = 1;; n++) {
        weft__fault_arm(kind, n, 1, error);
        int r = talk();
        bool reached = weft__fault_calls(kind) >= n;
        weft__fault_reset();
        if (!reached) break;
        ASSERT(r <= 0);
    }
}

static void fails_all(struct crew *crew)
{
    (void)crew;
    for (size_t t = 0; t < TALKS; t++)
        for (size_t k = 0; k < KINDS; k++) {
            fails_each(talks[t], kinds[k]);
            ASSERT_OK(talks[t]());
        }
}

TEST_WITH(dgram_faults_leave_nothing_open, .timeout_s = 180)
{
    crew_each(fails_all);
}

/* A fault is what the operation answers. */
static void tells(struct crew *crew)
{
    static const enum weft__fault_kind told[] = {WEFT__FAULT_SOCKET, WEFT__FAULT_SEND,
                                                 WEFT__FAULT_RECV};
    (void)crew;
    for (size_t t = 0; t < 2; t++)
        for (size_t k = 0; k < 3; k++) {
            weft__fault_arm(told[k], 1, 1, -ENOBUFS);
            ASSERT_EQ(talks[t](), -ENOBUFS);
            weft__fault_arm(told[k], 1, 3, -EINTR); /* made again */
            ASSERT_OK(talks[t]());
            weft__fault_reset();
        }
}

TEST(dgram_faults_are_told)
{
    crew_each(tells);
}

/* A kernel without segments and merging. */
TEST(udp_kernel_may_lack_batches)
{
    struct crew crew;
    weft_udp *u;
    weft_addr a;
    crew_start(&crew, 1);
    ASSERT_OK(weft_udp_bind("127.0.0.1:0", &u));
    ASSERT_OK(weft_udp_local(u, &a));
    weft__fault_arm(WEFT__FAULT_SOCKOPT, 1, UINT32_MAX, -ENOPROTOOPT);
    char bytes[] = "0123456789";
    weft_udp_msg msg = {.buf = bytes, .len = 10, .segment = 5, .addr = a};
    ASSERT_EQ(weft_udp_can(u, WEFT_UDP_SEGMENTS), 0);
    ASSERT_EQ(weft_udp_can(u, WEFT_UDP_MERGES), 0);
    ASSERT_EQ(weft_udp_send_many(u, &msg, 1), -EOPNOTSUPP);
    weft_udp *merging;
    ASSERT_EQ(weft_udp_bind_with(&(weft_udp_opts){.merge = true}, "127.0.0.1:0", &merging),
              -EOPNOTSUPP);
    weft__fault_reset();
    weft_close(u);
    crew_stop(&crew);
}

#else
TEST(dgram_faults_leave_nothing_open)
{
    TEST_SKIP("built without WEFT_FAULTS");
}
#endif
