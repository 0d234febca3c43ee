/* SPDX-License-Identifier: MIT
 *
 * main - what WEFT_MAIN does: a runtime, app as a fiber in it, and an end that the shell understands.
 *
 *     SIGINT, SIGTERM     app is cancelled, unwinds, and returns what it likes
 *     a second one        kills the process, as if nobody had caught it
 *     app has returned    the runtime is stopped, for WEFT_STOP milliseconds at most
 * What does not stop within these is named on stderr: app is waited for even so (nothing runs on
 * without its stack, and the second signal is there), other tasks are not, since the process ends.
 * An app that returns -ECANCELED because of a signal lets the process die by that signal, so that a
 * shell sees why; handlers of atexit have run by then.
 *
 * Threads: the main thread waits, on a futex or by turning the runtime if that is a current-thread
 * one. The handler runs there, since library threads have all signals blocked; it would be right on
 * any thread. It does what a handler may: counts, cancels, pushes, wakes (signal.c).
 * Pairs: [main-app], [main-bell].
 */
#include "sched/sched.h"

#include "base/err.h"
#include "sys/clock.h"
#include "sys/stopsig.h"
#include "task/waker.h"

#include <weft/fiber.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct weft_site app_site = {
    .poll = weft__go_poll,
    .name = "app",
    .file = "WEFT_MAIN",
    .frame_bytes = sizeof(struct weft__go_frame),
    .ret_at = offsetof(struct weft__go_frame, ret),
    .ret_bytes = sizeof(int),
    .ret_signed = 1,
    .kind = WEFT__FIBER,
};

static struct weft_task
    *_Atomic app_task;            /* the handler's reference; NULL: not there      [main-app] */
static _Atomic uint32_t handlers; /* that look at it                               [main-app] */
static _Atomic uint32_t signals;  /* so many came                                  [main-app] */
static _Atomic int first_signal;  /* relaxed: a number                                        */
static _Atomic uint32_t bell;     /* a futex: changes when there is something new  [main-bell] */

/* ---- what the main thread sleeps on ---- */

static void ring(void)
{
    fetch_add_release(&bell, 1); /* [main-bell] with wait_for_app: what was written before */
    (void)weft__futex_wake(&bell, 1);
}

static void foreign_rings(struct weft__foreign *unused)
{
    (void)unused;
    ring();
}

static void foreign_stays(struct weft__foreign *unused)
{
    (void)unused; /* it is static: a late wake finds it */
}

static const struct weft__foreign_ops bell_ops = {.wake = foreign_rings, .free = foreign_stays};
static struct weft__foreign main_thread;

/* ---- the handler ---- */

/* Each side writes one place and reads the other's, so that the signal is seen by who publishes the
 * task, or the task by the handler; and the task by nobody once it is taken back and no handler is
 * inside. */
static void cancel_app(void)
{
    fetch_add_seq_cst(&handlers, 1); /* [main-app] with app_take_back: we are inside */
    struct weft_task *task =
        load_seq_cst(&app_task); /* [main-app] with app_publish, app_take_back */
    if (task) weft__task_cancel_signal(task);
    fetch_sub_seq_cst(&handlers, 1); /* [main-app] with app_take_back: our last touch */
}

static void heard(int signal)
{
    if (fetch_add_seq_cst(&signals, 1) > 0) { /* [main-app] with app_publish */
        weft__stopsig_die(signal);
        return;
    }
    store_relaxed(&first_signal, signal); /* relaxed: this thread's, or behind the ring */
    cancel_app();
    ring();
}

static void app_publish(struct weft_task *task)
{
    store_seq_cst(&app_task, weft_ref(task));          /* [main-app] with cancel_app */
    if (load_seq_cst(&signals) > 0) weft_cancel(task); /* [main-app] with heard: it came before */
}

static void app_take_back(void)
{
    struct weft_task *task = exchange_seq_cst(&app_task, NULL); /* [main-app] with cancel_app */
    while (load_seq_cst(&handlers) > 0)                         /* [main-app] with cancel_app */
        weft__thread_yield();
    weft_unref(task);
}

/* ---- waiting for app ---- */

static weft_poll poll_app(struct weft_wait *f)
{
    struct weft_cx cx = {.waker = weft__waker_of_foreign(&main_thread), .budget = WEFT__UNBUDGETED};
    return weft_wait_poll(f, &cx);
}

static void name_app(const struct weft_rt *rt, int64_t stop_ms)
{
    fprintf(stderr, "weft: app has not stopped within %lld ms of %s; a second signal kills\n",
            (long long)stop_ms,
            weft__stopsig_name(load_relaxed(&first_signal))); /* relaxed: a number */
    weft__blocking_name_running((struct weft__blocking *)(uintptr_t)&rt->blocking);
}

/* Until the bell has rung since it was `seen`, or until the time; or for no reason. */
static void rest(struct weft_rt *rt, uint32_t seen, int64_t until)
{
    if (!rt->current_thread) {
#if defined(WEFT__TSAN)
        /* ThreadSanitizer keeps a signal back until the thread calls something of libc that it intercepts: the
         * clock is such a call, a futex is not. So it is asked now and then, or ^C would never be heard. */
        int64_t soon = weft__clock_now() + 50 * WEFT__NS_PER_MS;
        until = until < soon ? until : soon;
#endif
        (void)weft__futex_wait(&bell, seen, until);
        return;
    }
    int64_t left = until == WEFT__NEVER ? -1 : until - weft__clock_now();
    (void)weft_rt_turn(rt, until == WEFT__NEVER || left > 0 ? left : 0);
}

static void wait_for_app(struct weft_rt *rt, struct weft_task *task, int64_t stop_ms)
{
    struct weft_wait f = {.task = task};
    int64_t until = WEFT__NEVER;
    bool counted = false;

    for (;;) {
        uint32_t seen = load_acquire(&bell); /* [main-bell] with ring */
        if (poll_app(&f) == WEFT_READY) return;
        if (!counted && load_relaxed(&signals) > 0) { /* relaxed: the bell brought it */
            counted = true;
            until = weft__clock_now() + stop_ms * WEFT__NS_PER_MS;
        }
        if (until != WEFT__NEVER && weft__clock_now() >= until) {
            name_app(rt, stop_ms);
            until = WEFT__NEVER;
        }
        rest(rt, seen, until);
    }
}

static int run_app(struct weft_rt *rt, const weft_call *call, int64_t stop_ms)
{
    int result = 0;
    weft_task *task = weft__go(&app_site, call, &(weft_spawn_opts){.rt = rt});
    if (!task) return -ENOMEM;
    app_publish(task);
    wait_for_app(rt, task, stop_ms);
    app_take_back();
    int r = weft__join(task, &result, sizeof(result));
    return r < 0 ? r : result;
}

/* ---- the end ---- */

static _Atomic int dies_by; /* a signal; 0: it ends as others do. Relaxed: one thread */

/* Registered first, so that what the program has registered runs before it. */
static void die_at_exit(void)
{
    int signal = load_relaxed(&dies_by); /* relaxed: see there */
    if (signal == 0) return;
    (void)fflush(NULL);
    weft__stopsig_die(signal);
}

/* 128 and the signal is what a shell would say, and the code where the signal does not kill. */
static int exit_code(int r)
{
    int signal = load_relaxed(&first_signal); /* relaxed: a number */
    if (r >= 0) return r;
    if (r == -ECANCELED && signal != 0) {
        store_relaxed(&dies_by, signal); /* relaxed: read by this thread, at exit */
        return 128 + signal;
    }
    fprintf(stderr, "weft: app ended with %s: %s\n", weft__err_name(r), weft__err_text(r));
    return 1;
}

static int no_runtime(int r)
{
    fprintf(stderr, "weft: no runtime: %s\n", weft__err_name(r));
    return 1;
}

int weft__main(int (*app)(int, char **), int argc, char **argv)
{
    weft_rt *rt = NULL;
    int64_t stop_ms = 0;
    int r = weft__options_stop_ms(&stop_ms);
    if (r == 0) r = weft_rt_new(&(weft_rt_opts){.make_default = true}, &rt);
    if (r < 0 || !rt) return no_runtime(r);
    weft__foreign_init(&main_thread, &bell_ops);
    (void)atexit(die_at_exit); /* without it the code says it */
    weft__stopsig_catch(heard);
    weft_call call = {.fn = (void (*)(void))app,
                      .arg = {(uint64_t)argc, (uint64_t)(uintptr_t)argv},
                      .ret_bytes = sizeof(int),
                      .ret_signed = 1};
    int code = exit_code(run_app(rt, &call, stop_ms));
    (void)weft_rt_stop(
        rt,
        stop_ms * WEFT__NS_PER_MS); /* what does not stop was named, and ends with the process */
    return code;
}
