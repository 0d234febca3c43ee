/* SPDX-License-Identifier: MIT
 *
 * signal - a count that goes up, and a descriptor that says when to look (sys/signals.h).
 *
 * Nothing is ever read from the descriptor: it is reported anew with each signal, and what counts is the count. One that was taken is
 * remembered as the count at that time: of two who look at the same moment one has it.
 */
#include <weft/signal.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "sys/fd.h"
#include "sys/signals.h"
#include "task/call.h"
#include "task/orphan.h"

#include <errno.h>

struct weft_signal {
    int number;            /* constant, as the next */
    uint32_t forks;        /* of weft__forks, when it was opened */
    weft_fd *event;        /* constant */
    _Atomic uint32_t seen; /* the count when one was last taken */
};

int weft_signal_open(int number, weft_signal **into)
{
    int fd;
    if (!into) return -EINVAL;
    struct weft_signal *s = weft__alloc(sizeof(*s));
    if (!s) return -ENOMEM;
    int r = weft__signals_open(number, &fd);
    if (r < 0) goto out_memory;
    s->number = number;
    s->forks = weft__forks;
    store_relaxed(&s->seen, weft__signals_count(number)); /* relaxed: not shared yet */
    r = weft_fd_open(fd, &s->event);
    if (r < 0) goto out_signal;
    *into = s;
    return 0;

out_signal:
    weft__fd_close(fd);
    weft__signals_close(number);
out_memory:
    weft__free(s);
    return r;
}

void weft_signal_close(weft_signal *s)
{
    if (!s) return;
    if (s->forks == weft__forks)
        weft__signals_close(s->number); /* else it was the parent who listened */
    weft__fd_object_close(s->event, NULL);
    weft__free(s);
}

static ssize_t look(int fd, void *arg)
{
    struct weft_signal *s = arg;
    uint32_t seen = load_relaxed(&s->seen); /* relaxed, both: who takes it, not what came before */
    (void)fd;
    for (;;) {
        uint32_t count = weft__signals_count(s->number);
        if ((int32_t)(count - seen) <= 0) return -EAGAIN; /* another was faster, perhaps */
        if (cas_relaxed(&s->seen, &seen, count)) return 1;
    }
}

weft_poll weft_signal_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_signal_wait *f = frame;

    f->ret = -EINVAL;
    if (!f->signal) return WEFT_READY;
    if (!f->weft__at)
        f->weft__try = (struct weft_fd_try){.fd = f->signal->event, .side = WEFT_FD_READ, .fn = look, .arg = f->signal};
    weft_poll answer = weft_fd_try_poll(&f->weft__try, cx);
    f->weft__at = f->weft__try.weft__at;
    if (answer == WEFT_READY) f->ret = (int)f->weft__try.ret;
    return answer;
}

int weft__signal_wait(weft_signal *signal)
{
    struct weft_signal_wait f = {.signal = signal};
    int r = weft__run_from(weft_signal_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
