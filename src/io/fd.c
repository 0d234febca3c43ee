/* SPDX-License-Identifier: MIT
 *
 * fd - waits for any descriptor: weft/fd.h. A weft_fd is its slot.
 *
 * The waits are like poll(2): they do not trust what the slot remembers, since they do not see what the program reads, and ask the kernel. What
 * it denies is cleared, as behind a try (driver/slot.h), and then the wait is a wait like any other.
 */
#include <weft/fd.h>

#include "driver/op.h"
#include "sync/leaf.h"
#include "sys/fd.h"
#include "task/call.h"

static struct weft__fdslot *slot_of(weft_fd *w)
{
    return (struct weft__fdslot *)(void *)w;
}

int weft_fd_open(int fd, weft_fd **into)
{
    struct weft__port *port = NULL;
    struct weft__fdslot *slot = NULL;
    if (!into) return -EINVAL;
    int r = weft__driver_here(NULL, false, &port);
    if (r == 0) r = weft__driver_add(port, fd, &slot);
    if (r == 0) *into = (weft_fd *)(void *)slot;
    return r;
}

int weft_fd_take(weft_fd *w)
{
    return w ? weft__driver_release(slot_of(w)) : -EINVAL;
}

int weft_fd_number(const weft_fd *w)
{
    return w ? ((const struct weft__fdslot *)(const void *)w)->fd : -EINVAL;
}

void weft__fd_object_close(weft_fd *w, const char *caller)
{
    weft__driver_closes("a descriptor that is watched", caller);
    if (w) weft__driver_close(slot_of(w));
}

/* ---- sides ---- */

/* One try of a side: the program's function, or a look. */
struct trying {
    weft_fd_fn *fn; /* NULL: a look */
    void *arg;
};

static ssize_t look(struct weft__fdslot *slot, int for_what)
{
    int r = weft__fd_ready(slot->fd, for_what);
    return r == 0 ? -EAGAIN : r < 0 ? r : 0;
}

static ssize_t try_side(struct weft__fdslot *slot, struct trying *t, int for_what, uint64_t bits)
{
    uint64_t seen = weft__fdslot_look(slot);
    ssize_t r = t->fn ? t->fn(slot->fd, t->arg) : look(slot, for_what);
    if (r == -EAGAIN && !weft__driver_is_lost(slot)) weft__fdslot_clear(slot, seen, bits);
    return r;
}

#define READS  (WEFT__READY_READ | WEFT__READY_READ_END)
#define WRITES (WEFT__READY_WRITE | WEFT__READY_WRITE_END)
#define URGENT (WEFT__READY_URGENT | WEFT__READY_READ_END) /* behind the end nothing urgent comes */

static ssize_t try_read(struct weft__fdslot *slot, void *arg)
{
    return try_side(slot, arg, WEFT__FD_IN, READS);
}

static ssize_t try_write(struct weft__fdslot *slot, void *arg)
{
    return try_side(slot, arg, WEFT__FD_OUT, WRITES);
}

/* Not among what a fresh slot is taken to be ready for; so a look comes first, and what is there already is an event. */
static ssize_t try_urgent(struct weft__fdslot *slot, void *arg)
{
    return try_side(slot, arg, WEFT__FD_PRI, URGENT);
}

static const struct weft__op_kind kinds[] = {
    [WEFT_FD_READ] = {
        .side = WEFT__SIDE_READ, .as = WEFT__USE_SHARED, .bits = READS, .tries = try_read},
    [WEFT_FD_WRITE] = {
        .side = WEFT__SIDE_WRITE, .as = WEFT__USE_SHARED, .bits = WRITES, .tries = try_write},
    [WEFT_FD_URGENT] = {
        .side = WEFT__SIDE_READ, .as = WEFT__USE_SHARED, .bits = URGENT, .tries = try_urgent},
};

static weft_poll poll_side(weft_fd *w, enum weft_fd_side side, struct trying *t, struct weft_io *io,
                           int32_t *at, weft_cx *cx, ssize_t *ret)
{
    bool known = side == WEFT_FD_READ || side == WEFT_FD_WRITE || side == WEFT_FD_URGENT;
    if (!w || !known) {
        *ret = -EINVAL;
        return WEFT_READY;
    }
    weft_poll answer =
        weft__op_poll(slot_of(w), weft__op_of(io), &kinds[side], t, NULL, NULL, cx, ret);
    *at = answer == WEFT_PENDING ? WEFT__LEAF_WAITS : 0;
    return answer;
}

/* ---- waits ---- */

static weft_poll poll_wait(weft_fd *w, enum weft_fd_side side, struct weft_io *io, int32_t *at,
                           weft_cx *cx, int *ret)
{
    struct trying t = {.fn = NULL};
    ssize_t got = 0;
    weft_poll answer = poll_side(w, side, &t, io, at, cx, &got);
    if (answer == WEFT_READY) *ret = (int)got;
    return answer;
}

weft_poll weft_fd_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_fd_wait *f = frame;
    return poll_wait(f->fd, f->side, &f->weft__io, &f->weft__at, cx, &f->ret);
}

weft_poll weft_fd_readable_poll(void *frame, weft_cx *cx)
{
    struct weft_fd_readable *f = frame;
    return poll_wait(f->fd, WEFT_FD_READ, &f->weft__io, &f->weft__at, cx, &f->ret);
}

weft_poll weft_fd_writable_poll(void *frame, weft_cx *cx)
{
    struct weft_fd_writable *f = frame;
    return poll_wait(f->fd, WEFT_FD_WRITE, &f->weft__io, &f->weft__at, cx, &f->ret);
}

int weft__fd_wait(weft_fd *w, enum weft_fd_side side)
{
    struct weft_fd_wait f = {.fd = w, .side = side};
    int r = weft__run_from(weft_fd_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- tries ---- */

weft_poll weft_fd_try_poll(void *frame, weft_cx *cx)
{
    struct weft_fd_try *f = frame;
    struct trying t = {.fn = f->fn, .arg = f->arg};
    if (!f->fn) {
        f->ret = -EINVAL;
        return WEFT_READY;
    }
    return poll_side(f->fd, f->side, &t, &f->weft__io, &f->weft__at, cx, &f->ret);
}

ssize_t weft__fd_try(weft_fd *w, enum weft_fd_side side, weft_fd_fn *fn, void *arg)
{
    struct weft_fd_try f = {.fd = w, .side = side, .fn = fn, .arg = arg};
    int r = weft__run_from(weft_fd_try_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
