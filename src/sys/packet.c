/* SPDX-License-Identifier: MIT
 *
 * packet - the calls, each behind its fault point; made again where a signal interrupted them.
 */
#include "sys/packet.h"

#include "base/assert.h"
#include "sys/answer.h"
#include "sys/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#define FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

static struct sockaddr *sockaddr_of(struct weft__address *addr)
{
    return (struct sockaddr *)(void *)addr->data;
}

static const struct sockaddr *sockaddr_in(const struct weft__address *addr)
{
    return addr ? (const struct sockaddr *)(const void *)addr->data : NULL;
}

static int type_of(enum weft__packet_kind kind)
{
    return FLAGS | (kind == WEFT__PACKET_SEQ ? SOCK_SEQPACKET : SOCK_DGRAM);
}

static int open_family(int family, enum weft__packet_kind kind, int *into)
{
    int fd = (int)WEFT__ANSWER(WEFT__FAULT_SOCKET, socket(family, type_of(kind), 0));
    if (fd < 0) return fd;
    *into = fd;
    return 0;
}

int weft__packet_open(const struct weft__address *like, enum weft__packet_kind kind, int *into)
{
    return open_family(sockaddr_in(like)->sa_family, kind, into);
}

int weft__packet_open_unix(enum weft__packet_kind kind, int *into)
{
    return open_family(AF_UNIX, kind, into);
}

int weft__packet_pair(enum weft__packet_kind kind, int into[2])
{
    int pair[2] = {-1, -1};
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKET, socketpair(AF_UNIX, type_of(kind), 0, pair));
    if (r < 0) return r;
    memcpy(into, pair, sizeof(pair));
    return 0;
}

static int local_of(int fd, struct sockaddr_storage *into, socklen_t *bytes)
{
    struct sockaddr *to = (struct sockaddr *)(void *)into;
    *bytes = sizeof(*into);
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKNAME, getsockname(fd, to, bytes));
}

/* The port of either family lies in the same place. */
static in_port_t *port_of(struct sockaddr_storage *addr)
{
    return &((struct sockaddr_in *)(void *)addr)->sin_port;
}

/* A port that the kernel chose goes with the peer. It is asked for again; the address is what the kernel left. */
static int keep_port(int fd, struct sockaddr_storage *before)
{
    struct sockaddr_storage now = {.ss_family = AF_UNSPEC};
    socklen_t bytes = 0;
    int r = local_of(fd, &now, &bytes);
    if (r < 0 || now.ss_family == AF_UNIX || *port_of(&now) == *port_of(before)) return r;
    *port_of(&now) = *port_of(before);
    return (int)WEFT__ANSWER(WEFT__FAULT_BIND, bind(fd, (struct sockaddr *)(void *)&now, bytes));
}

int weft__packet_disconnect(int fd)
{
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    struct sockaddr_storage before = {.ss_family = AF_UNSPEC};
    socklen_t bytes = 0;
    int r = local_of(fd, &before, &bytes);
    if (r == 0) r = (int)WEFT__ANSWER(WEFT__FAULT_CONNECT, connect(fd, &nobody, sizeof(nobody)));
    return r < 0 ? r : keep_port(fd, &before);
}

/* ---- one message ---- */

ssize_t weft__packet_send(int fd, const void *buf, size_t len, const struct weft__address *to)
{
    return WEFT__ANSWER(WEFT__FAULT_SEND,
                sendto(fd, buf, len, MSG_NOSIGNAL, sockaddr_in(to), to ? to->bytes : 0));
}

/* MSG_TRUNC: the kernel answers how long it was, whatever fits. */
ssize_t weft__packet_recv(int fd, void *buf, size_t len, struct weft__address *from)
{
    socklen_t bytes = WEFT__ADDRESS_BYTES;
    struct sockaddr *peer = from ? sockaddr_of(from) : NULL;
    ssize_t r =
        WEFT__ANSWER(WEFT__FAULT_RECV, recvfrom(fd, buf, len, MSG_TRUNC, peer, from ? &bytes : NULL));
    if (r < 0) return r;
    if (from) from->bytes = bytes;
    return (size_t)r > len ? -EMSGSIZE : r;
}

/* ---- many ---- */

/* What one call needs beside the messages. A control holds one number: a segment's length. */
struct many {
    struct mmsghdr header[WEFT__PACKETS_MAX];
    struct iovec iov[WEFT__PACKETS_MAX];
    _Alignas(struct cmsghdr) unsigned char control[WEFT__PACKETS_MAX][CMSG_SPACE(sizeof(int))];
};

static void write_header(struct many *m, unsigned i, struct weft__packet *p)
{
    m->iov[i] = (struct iovec){.iov_base = p->buf, .iov_len = p->len};
    m->header[i] = (struct mmsghdr){
        .msg_hdr = {.msg_iov = &m->iov[i], .msg_iovlen = 1, .msg_name = p->addr.data}};
}

static void write_segment(struct msghdr *header, unsigned char *control, unsigned segment)
{
    uint16_t bytes = (uint16_t)segment;
    header->msg_control = control;
    header->msg_controllen = CMSG_SPACE(sizeof(bytes));
    memset(control, 0, header->msg_controllen); /* what lies between the parts goes to the kernel, too */
    struct cmsghdr *c = CMSG_FIRSTHDR(header);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(bytes))};
    memcpy(CMSG_DATA(c), &bytes, sizeof(bytes));
}

static unsigned read_segment(struct msghdr *header)
{
    int bytes = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
            memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
    return (unsigned)bytes;
}

static void read_header(struct many *m, unsigned i, struct weft__packet *p)
{
    struct msghdr *header = &m->header[i].msg_hdr;
    p->got = m->header[i].msg_len;
    p->cut = header->msg_flags & MSG_TRUNC;
    p->segment = read_segment(header);
    p->addr.bytes = header->msg_namelen;
    if (p->segment >= p->got) p->segment = 0; /* one alone: it was not merged */
}

int weft__packet_recv_many(int fd, struct weft__packet *list, unsigned count)
{
    struct many m;
    weft_assert(count <= WEFT__PACKETS_MAX);
    for (unsigned i = 0; i < count; i++) {
        write_header(&m, i, &list[i]);
        m.header[i].msg_hdr.msg_namelen = sizeof(list[i].addr.data);
        m.header[i].msg_hdr.msg_control = m.control[i];
        m.header[i].msg_hdr.msg_controllen = sizeof(m.control[i]);
    }
    int r = (int)WEFT__ANSWER(WEFT__FAULT_RECV, recvmmsg(fd, m.header, count, 0, NULL));
    weft_assert(r <= (int)count);
    for (int i = 0; i < r; i++)
        read_header(&m, (unsigned)i, &list[i]);
    return r;
}

int weft__packet_send_many(int fd, struct weft__packet *list, unsigned count)
{
    struct many m;
    weft_assert(count <= WEFT__PACKETS_MAX);
    for (unsigned i = 0; i < count; i++) {
        struct weft__packet *p = &list[i];
        write_header(&m, i, p);
        m.header[i].msg_hdr.msg_namelen = p->addr.bytes;
        if (p->addr.bytes == 0) m.header[i].msg_hdr.msg_name = NULL;
        if (p->segment > 0) write_segment(&m.header[i].msg_hdr, m.control[i], p->segment);
    }
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SEND, sendmmsg(fd, m.header, count, MSG_NOSIGNAL));
    weft_assert(r <= (int)count);
    for (int i = 0; i < r; i++)
        list[i].got = m.header[i].msg_len;
    return r;
}

/* ---- descriptors ---- */

#define FDS_CONTROL (CMSG_SPACE(sizeof(int) * WEFT__PACKET_FDS) + CMSG_SPACE(64))

ssize_t weft__packet_send_fds(int fd, const void *buf, size_t len, const int *fds, unsigned count)
{
    _Alignas(struct cmsghdr) unsigned char control[FDS_CONTROL];
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    weft_assert(count <= WEFT__PACKET_FDS);
    if (count > 0) {
        memset(control, 0, sizeof(control));
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS,
                              .cmsg_len = CMSG_LEN(sizeof(int) * count)};
        memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    }
    return WEFT__ANSWER(WEFT__FAULT_SEND, sendmsg(fd, &header, MSG_NOSIGNAL));
}

static void take_fd(struct weft__packet_fds *into, int fd)
{
    if (into->count < into->room) {
        into->fd[into->count++] = fd;
    } else {
        into->cut = true;
        weft__fd_close(fd);
    }
}

/* Of newer kernels than the headers: with SO_PASSPIDFD each message brings a descriptor of its sender's process. */
#define WITH_PIDFD 4

/* Whoever has asked the socket for it cannot be given it here, and nobody else closes it. */
static void drop_pidfd(const struct cmsghdr *c)
{
    int fd;
    if (c->cmsg_len < CMSG_LEN(sizeof(fd))) return;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    weft__fd_close(fd); /* below 0: it was gone */
}

static void take_fds(struct msghdr *header, struct weft__packet_fds *into)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == WITH_PIDFD) drop_pidfd(c);
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            take_fd(into, fd);
        }
    }
}

static void drop_fds(struct weft__packet_fds *into)
{
    while (into->count > 0)
        weft__fd_close(into->fd[--into->count]);
}

ssize_t weft__packet_recv_fds(int fd, void *buf, size_t len, struct weft__packet_fds *into)
{
    _Alignas(struct cmsghdr) unsigned char control[FDS_CONTROL] = {0};
    struct iovec iov = {.iov_base = buf, .iov_len = len};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    into->count = 0;
    into->cut = false;
    ssize_t r = WEFT__ANSWER(WEFT__FAULT_RECV, recvmsg(fd, &header, MSG_CMSG_CLOEXEC));
    if (r < 0) return r;
    take_fds(&header, into);
    if (header.msg_flags & MSG_CTRUNC) into->cut = true;
    if (!(header.msg_flags & MSG_TRUNC)) return r;
    drop_fds(into);
    return -EMSGSIZE;
}

/* ---- options ---- */

struct option {
    int level;
    int name;
};

static const struct option v4[] = {
    [WEFT__PACKET_BROADCAST] = {SOL_SOCKET, SO_BROADCAST},
    [WEFT__PACKET_TTL] = {IPPROTO_IP, IP_TTL},
    [WEFT__PACKET_GROUP_TTL] = {IPPROTO_IP, IP_MULTICAST_TTL},
    [WEFT__PACKET_GROUP_LOOP] = {IPPROTO_IP, IP_MULTICAST_LOOP},
    [WEFT__PACKET_MERGE] = {SOL_UDP, UDP_GRO},
    [WEFT__PACKET_SEGMENT] = {SOL_UDP, UDP_SEGMENT},
};
static const struct option v6[] = {
    [WEFT__PACKET_BROADCAST] = {SOL_SOCKET, SO_BROADCAST},
    [WEFT__PACKET_TTL] = {IPPROTO_IPV6, IPV6_UNICAST_HOPS},
    [WEFT__PACKET_GROUP_TTL] = {IPPROTO_IPV6, IPV6_MULTICAST_HOPS},
    [WEFT__PACKET_GROUP_LOOP] = {IPPROTO_IPV6, IPV6_MULTICAST_LOOP},
    [WEFT__PACKET_MERGE] = {SOL_UDP, UDP_GRO},
    [WEFT__PACKET_SEGMENT] = {SOL_UDP, UDP_SEGMENT},
};

static int family_of(int fd)
{
    int family = 0;
    socklen_t bytes = sizeof(family);
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes));
    return r < 0 ? r : family;
}

int weft__packet_set(int fd, enum weft__packet_option option, int value)
{
    int family = family_of(fd);
    if (family < 0) return family;
    const struct option *o = family == AF_INET6 ? &v6[option] : &v4[option];
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, setsockopt(fd, o->level, o->name, &value, sizeof(value)));
}

int weft__packet_get(int fd, enum weft__packet_option option, int *into)
{
    int value = 0;
    socklen_t bytes = sizeof(value);
    int family = family_of(fd);
    if (family < 0) return family;
    const struct option *o = family == AF_INET6 ? &v6[option] : &v4[option];
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, getsockopt(fd, o->level, o->name, &value, &bytes));
    if (r == 0) *into = value;
    return r;
}

/* 0: the system chooses. Below: there is none of that name. */
static int index_of(const char *interface)
{
    unsigned index = interface ? if_nametoindex(interface) : 0;
    return interface && index == 0 ? -ENODEV : (int)index;
}

/* Returns the level at which groups of that family are joined; -EINVAL: no address. */
static int parse_group(const char *text, struct sockaddr_storage *into)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        memcpy(into, &in, sizeof(in));
        return IPPROTO_IP;
    }
    if (inet_pton(AF_INET6, text, &in6.sin6_addr) != 1) return -EINVAL;
    memcpy(into, &in6, sizeof(in6));
    return IPPROTO_IPV6;
}

int weft__packet_group(int fd, bool join, const char *group, const char *interface)
{
    struct group_req req = {.gr_interface = 0};
    int level = parse_group(group, &req.gr_group);
    int index = index_of(interface);
    if (level < 0 || index < 0) return level < 0 ? level : index;
    /* the kernel takes an IPv4 group on a socket of IPv6, which need not hear anything of it */
    int family = family_of(fd);
    if (family != req.gr_group.ss_family) return family < 0 ? family : -EINVAL;
    req.gr_interface = (uint32_t)index;
    int name = join ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP;
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, setsockopt(fd, level, name, &req, sizeof(req)));
}

int weft__packet_group_by(int fd, const char *interface)
{
    int family = family_of(fd);
    int index = index_of(interface);
    struct ip_mreqn req = {.imr_ifindex = index};
    if (family < 0 || index < 0) return family < 0 ? family : index;
    bool six = family == AF_INET6;
    const void *from = six ? (const void *)&index : &req;
    socklen_t bytes = six ? sizeof(index) : sizeof(req);
    int level = six ? IPPROTO_IPV6 : IPPROTO_IP;
    int name = six ? IPV6_MULTICAST_IF : IP_MULTICAST_IF;
    return (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, setsockopt(fd, level, name, from, bytes));
}

int weft__packet_creds(int fd, pid_t *pid, uid_t *uid, gid_t *gid)
{
    struct ucred peer = {0};
    socklen_t bytes = sizeof(peer);
    int r = (int)WEFT__ANSWER(WEFT__FAULT_SOCKOPT, getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes));
    if (r < 0) return r;
    if (peer.uid == (uid_t)-1) return -ENOTCONN; /* what the kernel says of nobody */
    *pid = peer.pid;
    *uid = peer.uid;
    *gid = peer.gid;
    return 0;
}
