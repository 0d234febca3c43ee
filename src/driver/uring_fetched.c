/* SPDX-License-Identifier: MIT
 *
 * uring_fetched - what a FETCH has brought, from its answer until it is taken; the idea is in uring.h.
 */
#include "driver/uring.h"

#include "base/alloc.h"
#include "sys/fd.h"
#include "sys/socket.h"

#include <string.h>

static void note(struct weft__uring_slot *us)
{
    store_relaxed(&us->holds, us->count || us->fds_count || us->error); /* relaxed: see there */
}

/* ---- bytes ---- */

static void keep_buffer(struct weft__uring *u, struct weft__uring_slot *us, uint32_t number,
                        uint32_t bytes)
{
    u->bytes[number] = bytes;
    if (us->count++ == 0)
        us->first = number;
    else
        u->chain[us->last] = number;
    us->last = number;
    us->unread += bytes;
}

/* The first one is empty. */
static void next_buffer(struct weft__uring *u, struct weft__uring_slot *us)
{
    uint32_t number = us->first;
    us->first = u->chain[number];
    us->count--;
    us->offset = 0;
    weft__ringbuf_give(&u->buffers, number);
}

/* Where in the buffers: a peek goes on without taking. */
struct place {
    uint32_t number;
    uint32_t left; /* buffers from here on */
    uint32_t offset;
};

static size_t copy_one(struct weft__uring *u, struct place *at, const struct iovec *to)
{
    size_t done = 0;
    while (done < to->iov_len && at->left > 0) {
        size_t n = u->bytes[at->number] - at->offset;
        if (n > to->iov_len - done) n = to->iov_len - done;
        memcpy((char *)to->iov_base + done, weft__ringbuf_at(&u->buffers, at->number) + at->offset,
               n);
        done += n;
        at->offset += (uint32_t)n;
        if (at->offset < u->bytes[at->number]) break;
        at->number = u->chain[at->number];
        at->offset = 0;
        at->left--;
    }
    return done;
}

static ssize_t give_bytes(struct weft__uring *u, struct weft__uring_slot *us,
                          const struct weft__take *what)
{
    struct place at = {us->first, us->count, us->offset};
    size_t done = 0;
    for (int i = 0; i < what->count; i++)
        done += copy_one(u, &at, &what->iov[i]);
    if (what->kind == WEFT__TAKE_PEEK) return (ssize_t)done;
    while (us->count > at.left)
        next_buffer(u, us);
    us->offset = at.offset;
    us->unread -= (uint32_t)done;
    return (ssize_t)done;
}

/* ---- connections ---- */

static bool more_room(struct weft__uring_slot *us)
{
    uint32_t room = us->fds_room ? 2 * us->fds_room : WEFT__URING_UNACCEPTED;
    int *fds = weft__alloc(room * sizeof(int));
    if (!fds) return false;
    for (uint32_t i = 0; i < us->fds_count; i++)
        fds[i] = us->fds[(us->fds_first + i) % us->fds_room];
    weft__free(us->fds);
    us->fds = fds;
    us->fds_first = 0;
    us->fds_room = room;
    return true;
}

/* Without memory for the number of it, a connection is of no use: its peer is told so. */
static void keep_connection(struct weft__uring_slot *us, int fd)
{
    if (us->fds_count == us->fds_room && !more_room(us)) {
        weft__fd_close(fd);
        return;
    }
    us->fds[(us->fds_first + us->fds_count++) % us->fds_room] = fd;
}

static int take_connection(struct weft__uring_slot *us)
{
    int fd = us->fds[us->fds_first];
    us->fds_first = (us->fds_first + 1) % us->fds_room;
    us->fds_count--;
    return fd;
}

/* ---- both ---- */

/* What says that it ended, and nothing of the socket: a try by a call will tell. An accept that fails has taken nothing either. */
static bool is_an_error_of(const struct weft__uring_slot *us, int result)
{
    if (result >= 0 || us->slot->shape == WEFT__SHAPE_LISTENER) return false;
    return result != -ECANCELED && result != -ENOBUFS && result != -EINVAL && result != -EAGAIN &&
           result != -EINTR && result != -ENOMEM;
}

/* The kernel does not know the request: it is asked for in a simpler way, or not at all. */
static void refused(struct weft__uring *u, const struct weft__uring_slot *us)
{
    bool stream = us->slot->shape == WEFT__SHAPE_STREAM;
    if (!stream)
        store_relaxed(&u->no_fetch_listener, true); /* relaxed, both: hints */
    else if (!us->capped)
        store_relaxed(&u->no_fetch_stream, true);
    u->no_cap |= us->capped;
}

void weft__uring_keep(struct weft__uring *u, struct weft__uring_slot *us,
                      const struct weft__ring_done *done)
{
    bool stream = us->slot->shape == WEFT__SHAPE_STREAM;
    if (done->flags & IORING_CQE_F_BUFFER) {
        uint32_t number = done->flags >> IORING_CQE_BUFFER_SHIFT;
        if (done->result > 0 && !us->closed)
            keep_buffer(u, us, number, (uint32_t)done->result);
        else
            weft__ringbuf_give(&u->buffers, number);
    } else if (done->result >= 0 && !stream) {
        if (us->closed)
            weft__fd_close(done->result);
        else
            keep_connection(us, done->result);
    }
    if (is_an_error_of(us, done->result)) us->error = done->result;
    if (done->result == -EINVAL) refused(u, us);
    if (done->result == -ENOBUFS)
        store_relaxed(&us->in_bulk, true); /* relaxed: a hint: read by calls for now */
    note(us);
}

bool weft__uring_is_full(const struct weft__uring_slot *us)
{
    return us->unread >= WEFT__URING_UNREAD || us->count >= WEFT__URING_UNREAD_BUFFERS ||
           us->fds_count >= WEFT__URING_UNACCEPTED;
}

void weft__uring_drop(struct weft__uring *u, struct weft__uring_slot *us)
{
    while (us->count > 0)
        next_buffer(u, us);
    while (us->fds_count > 0)
        weft__fd_close(take_connection(us));
    weft__free(us->fds);
    us->fds = NULL;
    us->fds_room = 0;
    us->unread = 0;
    us->error = 0;
    store_relaxed(
        &us->holds,
        true); /* relaxed: who is still about to read finds that it is closed, and not what comes behind what was dropped */
}

static ssize_t give_error(struct weft__uring_slot *us, const struct weft__take *what)
{
    int error = us->error;
    if (error == 0) return -EAGAIN;
    if (what->kind != WEFT__TAKE_PEEK) us->error = 0;
    return error;
}

/* The peer's address is asked for: the kernel has one place for all answers of an accept that goes on. */
static ssize_t give_connection(struct weft__uring_slot *us, const struct weft__take *what)
{
    int fd = take_connection(us);
    if (what->from && weft__socket_peer(fd, what->from) < 0)
        *what->from = (struct weft__address){0}; /* it has gone already */
    return fd;
}

ssize_t weft__uring_give(struct weft__uring *u, struct weft__uring_slot *us,
                         const struct weft__take *what)
{
    if (us->closed) return -EAGAIN;
    ssize_t r = us->count       ? give_bytes(u, us, what)
                : us->fds_count ? give_connection(us, what)
                                : give_error(us, what);
    note(us);
    return r;
}
