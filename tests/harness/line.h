/* SPDX-License-Identifier: MIT
 *
 * line - a connection whose one end is the runtime's, and the other in the test's hand; what is said there, and comes back.
 *
 *     struct line l = line_by_tcp();
 *     ASSERT_OK(joined(weft_go(task_that_calls_echoes, &l)));
 *     line_end(&l);
 */
#ifndef WEFT_TESTS_LINE_H
#define WEFT_TESTS_LINE_H

#include "lent.h"
#include "on_uring.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

struct line {
    weft_stream *ours;
    int theirs;
};

static inline struct line line_of(const int fds[2])
{
    struct line l = {.theirs = fds[1]};
    ASSERT_OK(weft_stream_of_fd(fds[0], &l.ours));
    return l;
}

/* What comes is fetched ahead. */
static inline struct line line_by_tcp(void)
{
    int fds[2];
    connect_plain(fds);
    return line_of(fds);
}

/* What comes is polled. No port of an address is used up. */
static inline struct line line_by_pair(void)
{
    int fds[2];
    ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    return line_of(fds);
}

static inline void line_end(struct line *l)
{
    weft_close(l->ours);
    ASSERT_OK(close(l->theirs));
}

/* What was said comes back: 0, or why not. */
static inline int echoes(const struct line *l, unsigned round)
{
    uint32_t word = round, heard = 0;
    if (write(l->theirs, &word, sizeof word) != sizeof word) return -EIO;
    if (weft_read_exact(l->ours, &heard, sizeof heard) != sizeof heard) return -EBADMSG;
    if (weft_write_all(l->ours, &heard, sizeof heard) != sizeof heard) return -EPIPE;
    if (recv(l->theirs, &word, sizeof word, MSG_WAITALL) != sizeof word) return -ENODATA;
    return word == round ? 0 : -EILSEQ;
}

#endif
