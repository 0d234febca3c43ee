/* SPDX-License-Identifier: MIT
 *
 * nameserver - a DNS server for tests, on the loopback, by UDP and TCP: it does what the first label of a name says.
 *
 *     "four", "six", "both"         an IPv4 address, an IPv6 address, one of each
 *     "alias"                       another name for an IPv4 address
 *     "none", "empty"               no such name; a name without addresses
 *     "fail", "refused", "notimp", "format"    the server says that it cannot
 *     "never"                       no answer
 *     "second"                      an answer to every second question of a type
 *     "held"                        an answer once nameserver_open was called; questions are kept until then
 *     "junk"                        an answer to another question, then one to this
 *     "cut"                         by UDP: cut off; by TCP: NAMESERVER_MANY addresses
 *     "hangup"                      by UDP: cut off; by TCP: no answer, the connection ends
 * A plain thread; the test sees counts, relaxed everywhere: looked at again, or behind a join.
 */
#ifndef WEFT_TESTS_NAMESERVER_H
#define WEFT_TESTS_NAMESERVER_H

#include "base/atomic.h"
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMESERVER_MANY 40
#define NAMESERVER_HELD 256

struct nameserver_question {
    unsigned char bytes[512];
    size_t length; /* of the question, with its header */
    char label[64];
    int type; /* 1: A, 28: AAAA */
};

struct nameserver {
    pthread_t thread;
    int udp;
    int tcp;
    int bell; /* an eventfd: stop, or look at `open` */
    int port;
    char address[32];       /* "127.0.0.1:port" */
    _Atomic uint32_t asked; /* questions by UDP */
    _Atomic uint32_t by_tcp;
    _Atomic bool open;
    _Atomic bool quit;
    unsigned seconds[2]; /* questions for "second", by type */
    struct {
        struct nameserver_question q;
        struct sockaddr_in from;
    } held[NAMESERVER_HELD];
    _Atomic uint32_t held_count;
};

/* ---- messages ---- */

static inline bool nameserver_parse(struct nameserver_question *q)
{
    size_t at = 12;
    if (q->length < 17) return false;
    while (at < q->length && q->bytes[at])
        at += q->bytes[at] + 1u;
    if (at + 5 > q->length || q->bytes[12] > 63) return false;
    memcpy(q->label, &q->bytes[13], q->bytes[12]);
    q->label[q->bytes[12]] = '\0';
    q->type = q->bytes[at + 1] << 8 | q->bytes[at + 2];
    q->length = at + 5;
    return true;
}

struct nameserver_reply {
    unsigned char bytes[2048];
    size_t length;
    int answers;
};

static inline void nameserver_begin(struct nameserver_reply *r, const struct nameserver_question *q,
                                    int rcode, bool cut)
{
    memcpy(r->bytes, q->bytes, q->length);
    r->length = q->length;
    r->answers = 0;
    r->bytes[2] = (unsigned char)(0x81 | (cut ? 2 : 0)); /* an answer; recursion was wanted */
    r->bytes[3] = (unsigned char)(0x80 | rcode);
    memset(&r->bytes[6], 0, 6); /* nothing behind the question yet */
}

static inline void nameserver_record(struct nameserver_reply *r, int name_at, int type,
                                     const void *data, size_t bytes)
{
    unsigned char head[12] = {(unsigned char)(0xc0 | name_at >> 8),
                              (unsigned char)name_at,
                              0,
                              (unsigned char)type,
                              0,
                              1,
                              0,
                              0,
                              0,
                              60,
                              0,
                              (unsigned char)bytes};
    memcpy(&r->bytes[r->length], head, sizeof head);
    memcpy(&r->bytes[r->length + sizeof head], data, bytes);
    r->length += sizeof head + bytes;
    r->answers++;
    r->bytes[7] = (unsigned char)r->answers;
}

static inline void nameserver_address(struct nameserver_reply *r, int name_at, int type, int last)
{
    unsigned char four[4] = {192, 0, 2, (unsigned char)last};
    unsigned char six[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = (unsigned char)last};
    nameserver_record(r, name_at, type, type == 1 ? four : six, type == 1 ? 4 : 16);
}

static inline bool nameserver_is(const struct nameserver_question *q, const char *label)
{
    return strcmp(q->label, label) == 0;
}

static inline int nameserver_rcode(const struct nameserver_question *q)
{
    static const struct {
        const char *label;
        int rcode;
    } codes[] = {{"format", 1}, {"fail", 2}, {"none", 3}, {"notimp", 4}, {"refused", 5}};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (nameserver_is(q, codes[i].label)) return codes[i].rcode;
    return 0;
}

static inline bool nameserver_has(const struct nameserver_question *q)
{
    if (nameserver_is(q, "empty") || nameserver_rcode(q)) return false;
    if (nameserver_is(q, "six")) return q->type == 28;
    if (nameserver_is(q, "both")) return q->type == 1 || q->type == 28;
    return q->type == 1;
}

static inline void nameserver_answer(struct nameserver_reply *r,
                                     const struct nameserver_question *q, bool udp)
{
    bool cuts = nameserver_is(q, "cut") || nameserver_is(q, "hangup");
    bool cut = udp && cuts && q->type == 1;
    nameserver_begin(r, q, nameserver_rcode(q), cut);
    if (cut || !nameserver_has(q)) return;
    if (nameserver_is(q, "alias")) {
        static const unsigned char other[] = {4, 'r', 'e', 'a', 'l', 4, 't', 'e', 's', 't', 0};
        int real_at = (int)r->length + 12;
        nameserver_record(r, 12, 5, other, sizeof other);
        nameserver_address(r, real_at, q->type, 1);
        return;
    }
    int many = nameserver_is(q, "cut") ? NAMESERVER_MANY : 1;
    for (int i = 1; i <= many; i++)
        nameserver_address(r, 12, q->type, i);
}

/* ---- by UDP ---- */

static inline void nameserver_send(struct nameserver *s, const struct nameserver_question *q,
                                   const struct sockaddr_in *to)
{
    struct nameserver_reply r;
    nameserver_answer(&r, q, true);
    if (nameserver_is(q, "junk")) {
        unsigned char right = r.bytes[0];
        r.bytes[0] = (unsigned char)~right; /* of another question */
        (void)sendto(s->udp, r.bytes, r.length, 0, (const struct sockaddr *)to, sizeof *to);
        r.bytes[0] = right;
    }
    (void)sendto(s->udp, r.bytes, r.length, 0, (const struct sockaddr *)to, sizeof *to);
}

static inline void nameserver_hold(struct nameserver *s, const struct nameserver_question *q,
                                   const struct sockaddr_in *from)
{
    uint32_t at = load_relaxed(&s->held_count);
    if (at == NAMESERVER_HELD) return;
    s->held[at].q = *q;
    s->held[at].from = *from;
    store_relaxed(&s->held_count, at + 1);
}

static inline void nameserver_let_go(struct nameserver *s)
{
    for (uint32_t i = 0; i < load_relaxed(&s->held_count); i++)
        nameserver_send(s, &s->held[i].q, &s->held[i].from);
    store_relaxed(&s->held_count, 0);
}

static inline void nameserver_by_udp(struct nameserver *s)
{
    struct nameserver_question q;
    struct sockaddr_in from;
    socklen_t bytes = sizeof from;
    ssize_t got =
        recvfrom(s->udp, q.bytes, sizeof q.bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &bytes);
    if (got < 0) return;
    q.length = (size_t)got;
    if (!nameserver_parse(&q)) return;
    fetch_add_relaxed(&s->asked, 1);
    if (nameserver_is(&q, "never")) return;
    if (nameserver_is(&q, "second") && ++s->seconds[q.type == 28] % 2) return;
    if (nameserver_is(&q, "held") && !load_relaxed(&s->open)) {
        nameserver_hold(s, &q, &from);
        return;
    }
    nameserver_send(s, &q, &from);
}

/* ---- by TCP: one question, one answer; clients here ask one after the other ---- */

static inline bool nameserver_take(int fd, unsigned char *into, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = recv(fd, into + done, bytes - done, 0);
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static inline bool nameserver_serve(struct nameserver *s, int fd)
{
    unsigned char length[2];
    struct nameserver_question q;
    struct nameserver_reply r;
    if (!nameserver_take(fd, length, 2)) return false;
    q.length = (size_t)(length[0] << 8 | length[1]);
    if (q.length > sizeof q.bytes || !nameserver_take(fd, q.bytes, q.length)) return false;
    if (!nameserver_parse(&q)) return false;
    fetch_add_relaxed(&s->by_tcp, 1);
    if (nameserver_is(&q, "hangup") || nameserver_is(&q, "never")) return false;
    nameserver_answer(&r, &q, false);
    length[0] = (unsigned char)(r.length >> 8);
    length[1] = (unsigned char)r.length;
    struct iovec iov[2] = {{length, 2}, {r.bytes, r.length}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL) > 0;
}

static inline void nameserver_by_tcp(struct nameserver *s)
{
    struct timeval soon = {.tv_usec =
                               200000}; /* a client that is given up leaves, or says nothing */
    int fd = accept4(s->tcp, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    while (nameserver_serve(s, fd))
        continue;
    close(fd);
}

/* ---- the thread ---- */

static inline void *nameserver_run(void *arg)
{
    struct nameserver *s = arg;
    while (!load_relaxed(&s->quit)) {
        struct pollfd fds[3] = {{s->udp, POLLIN, 0}, {s->tcp, POLLIN, 0}, {s->bell, POLLIN, 0}};
        uint64_t rings;
        if (poll(fds, 3, -1) < 0) continue;
        if (fds[2].revents && read(s->bell, &rings, sizeof rings) > 0 && load_relaxed(&s->open))
            nameserver_let_go(s);
        if (fds[0].revents) nameserver_by_udp(s);
        if (fds[1].revents) nameserver_by_tcp(s);
    }
    return NULL;
}

static inline void nameserver_ring(struct nameserver *s)
{
    uint64_t one = 1;
    ASSERT_EQ(write(s->bell, &one, sizeof one), (int)sizeof one);
}

/* "held" is answered from now on. */
static inline void nameserver_open(struct nameserver *s)
{
    store_relaxed(&s->open, true);
    nameserver_ring(s);
}

/* Both sockets on one port: one that is free for UDP may be taken for TCP, then the next is tried. */
static inline void nameserver_bind(struct nameserver *s)
{
    for (;;) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof at;
        s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ASSERT(s->udp >= 0 && s->tcp >= 0);
        ASSERT_OK(bind(s->udp, (struct sockaddr *)&at, sizeof at));
        ASSERT_OK(getsockname(s->udp, (struct sockaddr *)&at, &bytes));
        s->port = ntohs(at.sin_port);
        if (bind(s->tcp, (struct sockaddr *)&at, sizeof at) == 0 && listen(s->tcp, 64) == 0) return;
        close(s->udp);
        close(s->tcp);
    }
}

static inline void nameserver_start(struct nameserver *s)
{
    memset(s, 0, sizeof *s);
    nameserver_bind(s);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", s->port);
    s->bell = eventfd(0, EFD_CLOEXEC);
    ASSERT(s->bell >= 0);
    ASSERT_OK(pthread_create(&s->thread, NULL, nameserver_run, s));
}

static inline void nameserver_stop(struct nameserver *s)
{
    store_relaxed(&s->quit, true);
    nameserver_ring(s);
    ASSERT_OK(pthread_join(s->thread, NULL));
    close(s->udp);
    close(s->tcp);
    close(s->bell);
}

#endif
