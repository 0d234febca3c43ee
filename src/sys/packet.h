/* SPDX-License-Identifier: MIT
 *
 * packet - the calls that sockets of messages are made of: UDP, Unix datagrams and seqpackets; and descriptors in messages.
 *
 * As in socket.h: everything is close-on-exec and does not block, a call that a signal interrupted is made again, and nothing raises
 * SIGPIPE. A message that was longer than its room is -EMSGSIZE: its rest is lost, and whoever took the count for all of it would not know.
 * Threads: any. Blocks: never.
 */
#ifndef WEFT_SYS_PACKET_H
#define WEFT_SYS_PACKET_H

#include "sys/address.h"

#include <stdbool.h>
#include <sys/types.h>

enum weft__packet_kind { WEFT__PACKET_DGRAM, WEFT__PACKET_SEQ };

/* A socket of the address's family. Returns 0; -EMFILE; -ENFILE; -ENOMEM; -EAFNOSUPPORT. */
int weft__packet_open(const struct weft__address *like, enum weft__packet_kind kind, int *into);
int weft__packet_open_unix(enum weft__packet_kind kind, int *into);

/* Two (AF_UNIX) that are connected to each other. */
int weft__packet_pair(enum weft__packet_kind kind, int into[2]);

/* No peer any more; its own address stays. Returns 0; -EADDRINUSE: its port was one of the kernel's, and is another's now. */
int weft__packet_disconnect(int fd);

/* ---- one message ---- */

/* `to` may be NULL: the peer. Returns len; -EAGAIN; -EMSGSIZE ... */
ssize_t weft__packet_send(int fd, const void *buf, size_t len, const struct weft__address *to);

/* `from` may be NULL. Returns its bytes; -EMSGSIZE: it was cut, and from is written; -EAGAIN ... */
ssize_t weft__packet_recv(int fd, void *buf, size_t len, struct weft__address *from);

/* ---- many ---- */

#define WEFT__PACKETS_MAX 64 /* one call takes; its lists lie on the stack, 7 KiB */

struct weft__packet {
    void *buf;
    size_t len;
    size_t got;
    unsigned segment; /* UDP_SEGMENT of one that is sent; UDP_GRO of one that came; 0: none */
    bool cut;
    struct weft__address addr;
};

/* Return how many, at least one; -EAGAIN; else of the first. */
int weft__packet_recv_many(int fd, struct weft__packet *list, unsigned count);
int weft__packet_send_many(int fd, struct weft__packet *list, unsigned count);

/* ---- descriptors ---- */

#define WEFT__PACKET_FDS 253 /* SCM_MAX_FD: the kernel takes no more in a message */

struct weft__packet_fds {
    int *fd;
    unsigned room;
    unsigned count;
    bool cut;
};

/* Returns how many bytes; -EAGAIN; -EBADF; -ETOOMANYREFS; -EPIPE ... */
ssize_t weft__packet_send_fds(int fd, const void *buf, size_t len, const int *fds, unsigned count);

/* Those that do not fit are closed, and on any error all are. Returns as recv, or of a stream as weft__socket_recv. */
ssize_t weft__packet_recv_fds(int fd, void *buf, size_t len, struct weft__packet_fds *into);

/* ---- options ---- */

enum weft__packet_option {
    WEFT__PACKET_BROADCAST,
    WEFT__PACKET_TTL,
    WEFT__PACKET_GROUP_TTL,
    WEFT__PACKET_GROUP_LOOP,
    WEFT__PACKET_MERGE,   /* UDP_GRO */
    WEFT__PACKET_SEGMENT, /* UDP_SEGMENT */
};

/* Of either family. Returns 0; -ENOPROTOOPT: the kernel has none; -EINVAL. */
int weft__packet_set(int fd, enum weft__packet_option option, int value);
int weft__packet_get(int fd, enum weft__packet_option option, int *into);

/* Join or leave a group, by an interface; NULL: any. Returns 0; -EINVAL; -ENODEV; -EADDRINUSE; -EADDRNOTAVAIL; -ENOBUFS. */
int weft__packet_group(int fd, bool join, const char *group, const char *interface);

/* Where multicast leaves. Returns 0; -ENODEV. */
int weft__packet_group_by(int fd, const char *interface);

/* Who is at the other end. Returns 0; -ENOTCONN; -ENOPROTOOPT. */
int weft__packet_creds(int fd, pid_t *pid, uid_t *uid, gid_t *gid);

#endif
