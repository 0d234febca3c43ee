/* SPDX-License-Identifier: MIT
 *
 * turn - a current-thread runtime: its one worker runs inside of weft_rt_turn, on whichever thread calls that, one at a time.
 *
 * A HOST that sleeps in a poll(2) of its own watches the runtime's fd: an epoll in which lie an event for what is pushed, the port, and a timer for the wheel's
 * next deadline (host.h). What is pushed signals the event once until the next turn; a turn that leaves work behind signals it, too.
 * Threads: weft__rt_signal any; the rest by who turns.
 */
#include "sched/sched.h"

#include "sys/clock.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "task/overflow.h"

#include <errno.h>

/* Polls of one turn. Doubled: a foreign loop waits twice as long for its own events. */
#define TURN_POLLS_MAX 256

/* The fd is for a host that sleeps in poll(2). Signalled once until the next turn: a push costs a syscall only if the host may be asleep. */
void weft__rt_signal(struct weft_rt *rt)
{
    int fd = load_acquire(&rt->event_fd); /* [rt-fd] with fd: it is open */
    if (fd < 0 || exchange_acq_rel(&rt->event_signalled, true)) return; /* [rt-fd] with turn: what was pushed before */
    (void)weft__event_signal(fd);
}

int weft_rt_fd(weft_rt *rt)
{
    if (!rt || !rt->current_thread) return -EINVAL;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    if (rt->host.epoll >= 0) return rt->host.epoll;
    int fd;
    int r = weft__event_open(&fd);
    if (r < 0) return r;
    r = weft__host_open(&rt->host, fd);
    if (r < 0) {
        weft__fd_close(fd);
        return r;
    }
    (void)weft__host_nest(&rt->host, rt->shards[0].port); /* the turn that follows tries again */
    store_release(&rt->event_fd, fd); /* [rt-fd] with signal */
    weft__rt_signal(rt);              /* what is queued already */
    return rt->host.epoll;
}

static void turn_begins(struct weft_rt *rt)
{
    int fd = load_relaxed(&rt->event_fd); /* relaxed: opened by this thread */
    if (fd < 0) return;
    (void)weft__event_drain(fd);
    (void)exchange_acq_rel(&rt->event_signalled, false); /* [rt-fd] with signal: what was pushed is seen by this turn, or signals anew */
}

static void turn_ends(struct weft__worker *w)
{
    bool more = weft__worker_queued(w) > 0;
    if (more || weft__worker_keeps_waiting(w)) weft__rt_signal(w->rt);
    struct weft__trace *trace = &w->rt->monitor.trace;
    if (trace->next_at != WEFT__NEVER) weft__trace_line(trace, w->rt, 0, weft__clock_now()); /* there is no monitor */
    if (w->rt->host.epoll < 0) return;
    int64_t timers = weft__worker_next_look(w);
    int64_t port = weft__io_next_look(w->shard->port);
    weft__host_set(&w->rt->host, port < timers ? port : timers);
    /* not in it, what comes to an fd tells no host: so it comes back at once, until it is */
    if (!weft__host_nest(&w->rt->host, w->shard->port)) weft__rt_signal(w->rt);
}

static int turn(struct weft__worker *w)
{
    uint64_t count = 0;
    struct weft_task *task = NULL;
    weft__shard_turn(w->shard, w->index);
    (void)weft__worker_look(w);
    (void)weft__io_turn(w, w->shard->port);
    do {
        count += weft__worker_run(w, task, TURN_POLLS_MAX - count);
        if (count == TURN_POLLS_MAX) break;
        task = weft__worker_take_inject(w);
        if (!task) task = weft__worker_take_background(w);
    } while (task);
    return (int)count;
}

/* Until something is there, the timeout, or a timer. If the clock stands, its timers come without a wait. */
static void turn_sleep(struct weft__worker *w, int64_t timeout_ns, struct weft__events *events)
{
    int64_t until = weft__clock_later(weft__clock_now(), timeout_ns);
    if (weft__clock_move_idle(w->rt, weft__clock_later(weft__clock_read(&w->rt->clock), timeout_ns))) return;
    int64_t look = weft__worker_next_look(w);
    (void)weft__io_park(w, look < until ? look : until, events);
}

static void turn_wait(struct weft__worker *w, int64_t timeout_ns)
{
    struct weft__events events;
    events.count = 0;
    weft__idle_sleep(&w->rt->idle, w->index, false);
    if (!weft__worker_sees_work(w) && weft__inbox_empty(&w->inbox))
        turn_sleep(w, timeout_ns, &events);
    (void)weft__idle_unsleep(&w->rt->idle, w->index);
    (void)weft__idle_search_end(&w->rt->idle, w->index);
    weft__io_deliver(w, &events);
}

int weft_rt_turn(weft_rt *rt, int64_t timeout_ns)
{
    if (!rt || !rt->current_thread) return -EINVAL;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    if (exchange_acquire(&rt->turning, true)) return -EBUSY; /* [rt-turn] with the end of the last turn */
    struct weft__worker *w = &rt->workers[0];
    struct weft__here *here = weft__here();
    struct weft__here before = *here;

    if (!here->stack_lo) { /* reads /proc: once a thread. In its own record: another thread may have the same address for it later */
        struct weft__thread_stack stack = weft__thread_stack();
        here->stack_lo = stack.lo;
        here->stack_bytes = stack.bytes;
        here->draws = rt->opts.seed;
        weft__quit_watch();
        weft__overflow_thread_watch();
    }
    weft__worker_inlines_on(w, here->stack_lo, here->fiber ? 0 : here->stack_bytes); /* nothing is inlined on a stack whose end we do not know */
    w->here = here;
    w->outer = before.worker;
    here->worker = w;
    here->number = w->number;
    here->keeper = &w->keeper;
    here->stacks = &rt->stacks;
    here->magazine = &w->magazine;
    here->task = NULL;
    here->cx = NULL;
    here->fiber = NULL; /* a fiber of another runtime may turn this one: its stack is just a stack here */
    turn_begins(rt);
    int count = turn(w);
    if (count == 0 && timeout_ns != 0) {
        turn_wait(w, timeout_ns);
        count = turn(w);
    }
    turn_ends(w);
    here->worker = before.worker;
    here->number = before.number;
    here->keeper = before.keeper;
    here->stacks = before.stacks;
    here->magazine = before.magazine;
    here->task = before.task;
    here->cx = before.cx;
    here->fiber = before.fiber;
    weft__worker_rests(w);
    store_release(&rt->turning, false); /* [rt-turn] with the next turn: the worker as it was left */
    return count;
}
