/* SPDX-License-Identifier: MIT
 *
 * fifo - FIFOs opened as streams, when their other side is there (weft/stream.h).
 *
 * Opened without blocking, a FIFO to be written is refused while nobody reads; one to be read is open at once, and then looked at until a writer has come. In both
 * cases who blocks on the other side goes on as soon as we have opened ours. That the other side comes is told to nobody but a thread that blocks in open(2): epoll sees
 * bytes and ends, inotify an open that has succeeded. So it is tried again behind a pause, which is why this lies beside the Unix sockets.
 * Rejected: open(2) by a thread of the pool, which cannot be called back: given up, it would sit there until somebody comes; a ring's open alone, which can, but which
 * not every thread and kernel has; to open it O_RDWR and so be one's own other side: others would take us for it.
 *
 * Threads: the poller's. The path is looked up on the spot, as that of weft_unix_connect.
 */
#include "io/fdstream.h"
#include "net/pause.h"
#include "sync/leaf.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "task/call.h"

#include <weft/file.h>
#include <weft/stream.h>

static struct weft_sleep *pause_of(struct weft_fifo_open *f)
{
    return WEFT__PAUSE_OF(f);
}

static void close_one(int *place)
{
    if (*place > 0) weft__fd_close(*place - 1);
    *place = 0;
}

static weft_poll ends(struct weft_fifo_open *f, int ret)
{
    close_one(&f->weft__scratch[0]);
    close_one(&f->weft__scratch[1]);
    if (ret < 0) close_one(&f->weft__fd);
    f->weft__fd = 0;
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* The other side is there. */
static weft_poll opened(struct weft_fifo_open *f)
{
    struct weft__port *port = NULL;
    enum weft__fdstream_kind kind = WEFT__FDSTREAM_FILE;
    if ((f->flags & O_ACCMODE) == O_RDONLY) kind = WEFT__FDSTREAM_READER;
    if ((f->flags & O_ACCMODE) == O_WRONLY) kind = WEFT__FDSTREAM_WRITER;
    int r = weft__driver_here(NULL, false, &port);
    if (r == 0) r = weft__fdstream_new(port, f->weft__fd - 1, kind, f->into);
    return ends(f, r);
}

/* Returns 0; -EAGAIN: nobody reads yet; else why not. */
static int opens(struct weft_fifo_open *f)
{
    struct weft__port *port = NULL;
    int fd = -1;
    if (f->weft__fd > 0) return 0;
    int r = weft__driver_here(NULL, false, &port);
    if (r == 0) r = weft__pipe_open_fifo(f->path, f->flags, &fd);
    if (r == 0) f->weft__fd = fd + 1;
    return r;
}

/* Returns as opens. */
static int has_scratch(struct weft_fifo_open *f)
{
    int scratch[2] = {-1, -1};
    if (f->weft__scratch[0] > 0) return 0;
    int r = weft__pipe_open(scratch);
    if (r < 0) return r;
    f->weft__scratch[0] = scratch[0] + 1;
    f->weft__scratch[1] = scratch[1] + 1;
    return 0;
}

/* Of one that is open. Returns 0; -EAGAIN: nobody writes yet; else why not. */
static int is_joined(struct weft_fifo_open *f)
{
    if ((f->flags & O_ACCMODE) != O_RDONLY) return 0;
    int r = has_scratch(f);
    if (r < 0) return r;
    const int scratch[2] = {f->weft__scratch[0] - 1, f->weft__scratch[1] - 1};
    return weft__pipe_is_joined(f->weft__fd - 1, scratch);
}

static weft_poll tries(struct weft_fifo_open *f)
{
    int r = opens(f);
    if (r == 0) r = is_joined(f);
    if (r == 0) return opened(f);
    if (r != -EAGAIN) return ends(f, r);
    weft__pause_begin(pause_of(f), &f->weft__tries);
    f->weft__at = WEFT__LEAF_WAITS;
    return WEFT_PENDING;
}

weft_poll weft_fifo_open_poll(void *frame, weft_cx *cx)
{
    struct weft_fifo_open *f = frame;
    if (!f->weft__at) {
        if (cx->why) return weft__told_yields(cx) ? WEFT_PENDING : ends(f, weft_cx_cancelled(cx));
        if (!f->path || !f->into) return ends(f, -EINVAL);
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
        if (tries(f) == WEFT_READY) return WEFT_READY;
    }
    for (;;) {
        if (weft_sleep_poll(pause_of(f), cx) == WEFT_PENDING) return WEFT_PENDING;
        if (pause_of(f)->ret < 0) return ends(f, pause_of(f)->ret);
        if (tries(f) == WEFT_READY) return WEFT_READY;
    }
}

int weft__fifo_open(const char *path, int flags, weft_stream **into)
{
    struct weft_fifo_open f = {.path = path, .flags = flags, .into = into};
    int r = weft__run_from(weft_fifo_open_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
