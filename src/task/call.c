/* SPDX-License-Identifier: MIT
 *
 * call - on a fiber, on a thread, and where it must not be; the idea is in call.h.
 */
#include "task/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "sys/futex.h"
#include "sys/thread.h"
#include "task/fiber.h"
#include "task/here.h"
#include "task/name.h"
#include "task/region.h"
#include "task/waker.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

/* Operations of one poll on a plain thread, which has nobody to be fair to: it is there because
 * leaves charge it. Doubled: a loop of ready operations looks at its waker half as often. */
#define THREAD_BUDGET 128

/* Places whose refusal was reported. Doubled: a program full of such mistakes prints twice as many. */
#define PLACES_MAX 64

/* ---- on a plain thread --------------------------------------------------------------------------- */

/* A thread in its own wait. */
struct weft__sleeper {
    struct weft__foreign foreign;
    _Atomic uint32_t rung; /* a futex: 1 since the last sleep's end somebody woke  [call-ring] */
    _Atomic uint32_t gone; /* a futex: 1 the last reference is gone                [call-gone] */
};

static struct weft__sleeper *sleeper_of(struct weft__foreign *foreign)
{
    return weft__container_of(foreign, struct weft__sleeper, foreign);
}

/* Its thread is woken when the reference is given back, and so finds its waker free for its next call, also where it goes before us on this CPU. If that was the last
 * one the thread has gone on. Else it may do so at any moment, and the sleeper be gone; the futex's call allows that, and so does a sleeper of later that lies there. */
static void sleeper_deliver(struct weft__foreign *foreign)
{
    struct weft__sleeper *s = sleeper_of(foreign);
    _Atomic uint32_t *rung = &s->rung;
    bool sleeps = exchange_release(rung, 1) == 0; /* [call-ring] with sleep_until_rung: what was written before the wake */
    bool left = weft__foreign_unref(foreign);
    if (sleeps && !left) (void)weft__futex_wake(rung, 1);
}

static void sleeper_free(struct weft__foreign *foreign)
{
    weft__free(sleeper_of(foreign));
}

static void sleeper_leave(struct weft__foreign *foreign)
{
    struct weft__sleeper *s = sleeper_of(foreign);
    store_release(&s->gone, 1); /* [call-gone] with sleeper_done: nobody touches it any more */
    (void)weft__futex_wake(&s->gone, 1); /* its stack may be gone; the call allows that */
}

static const struct weft__foreign_ops on_heap = {.deliver = sleeper_deliver, .free = sleeper_free};
static const struct weft__foreign_ops on_stack = {.deliver = sleeper_deliver, .free = sleeper_leave};

/* That of this thread's last call, or NULL: there is none, or somebody has its waker still, and frees it. */
static struct weft__sleeper *sleeper_kept(void)
{
    struct weft__here *here = weft__here();
    struct weft__sleeper *s = here->sleeper;

    here->sleeper = NULL; /* in use: what a timer's hook calls meanwhile has its own */
    if (!s || weft__foreign_alone(&s->foreign)) return s;
    weft__foreign_unref(&s->foreign);
    return NULL;
}

/* Gives a sleeper with one reference; `spare` where there is no memory. */
static struct weft__sleeper *sleeper_new(struct weft__sleeper *spare)
{
    struct weft__sleeper *s = sleeper_kept();

    if (!s) s = weft__alloc_aligned(sizeof(*s), _Alignof(max_align_t));
    const struct weft__foreign_ops *ops = s ? &on_heap : &on_stack;
    if (!s) s = spare;
    store_relaxed(&s->rung, 0); /* relaxed, both: not shared yet */
    store_relaxed(&s->gone, 0);
    weft__foreign_init(&s->foreign, ops);
    return s;
}

static void forget_at_exit(struct weft__thread_exit *exit)
{
    (void)exit;
    weft__call_forget();
}

void weft__call_forget(void)
{
    struct weft__here *here = weft__here();
    struct weft__sleeper *s = here->sleeper;

    here->sleeper = NULL;
    if (s) weft__foreign_unref(&s->foreign);
}

/* For the next call, if the thread's end can be told of it. */
static bool sleeper_keep(struct weft__sleeper *s)
{
    static _Thread_local struct weft__thread_exit ending __attribute__((tls_model("initial-exec")));
    struct weft__here *here = weft__here();

    if (here->sleeper) return false;
    if (weft__thread_at_exit(&ending, forget_at_exit) < 0) return false;
    here->sleeper = s;
    return true;
}

/* Takes the owner's reference. */
static void sleeper_done(struct weft__sleeper *s, struct weft__sleeper *spare)
{
    if (s != spare && sleeper_keep(s)) return;
    weft__foreign_unref(&s->foreign);
    if (s != spare) return;
    while (load_acquire(&spare->gone) == 0) { /* [call-gone] with sleeper_leave */
        (void)weft__futex_wait(&spare->gone, 0, WEFT__NEVER);
    }
}

/* Fires the timers that are due, which may ring; answers when the next one is. */
static int64_t look_at_timers(void)
{
    struct weft__keeper *keeper = weft__here()->own_keeper;
    return keeper ? keeper->look(keeper) : WEFT__NEVER;
}

/* Whoever was told that this thread waits reads `rung`: it is taken when they know better. */
static void sleep_until_rung(struct weft__sleeper *s)
{
    const struct weft__here *here = weft__here();

    if (here->waits) here->waits(&s->rung);
    for (;;) {
        int64_t until = look_at_timers();
        if (load_relaxed(&s->rung) != 0) break; /* relaxed: the exchange below acquires */
        (void)weft__futex_wait(&s->rung, 0, until);
    }
    if (here->waits) here->waits(NULL);
    (void)exchange_acquire(&s->rung, 0); /* [call-ring] with sleeper_wake */
}

/* One poll, with a fresh budget. A poll that yields has nobody to let pass: it is polled again. */
static weft_poll poll_on_thread(struct weft__sleeper *s, weft_pollfn *poll, void *frame, bool *yielded)
{
    struct weft__here *here = weft__here();
    struct weft_cx cx = {
        .waker = weft__waker_of_foreign(&s->foreign),
        .why = 0,
        .budget = THREAD_BUDGET,
        .yielded = false,
    };
    here->cx = &cx;
    weft_poll answer = weft__regions_poll(here->regions, poll, frame, &cx);
    if (answer == WEFT_READY) weft__regions_pause(here->regions, &cx); /* the waker ends with this call */
    here->cx = NULL;
    *yielded = cx.yielded;
    return answer;
}

/* Apart, as what it needs would lie on the stack of each fiber that waits, and in the cache with it. */
static __attribute__((noinline)) void run_on_thread(weft_pollfn *poll, void *frame)
{
    struct weft__sleeper spare;
    struct weft__sleeper *s = sleeper_new(&spare);
    bool yielded;

    while (poll_on_thread(s, poll, frame, &yielded) == WEFT_PENDING) {
        if (!yielded) sleep_until_rung(s);
    }
    struct weft__keeper *keeper = weft__here()->own_keeper;
    if (keeper) keeper->done(keeper);
    sleeper_done(s, &spare);
}

/* ---- inside a poll ------------------------------------------------------------------------------- */

/* Also in a worker's hook, which is no poll: who would bring the end of the wait, its timers, its fds and what it has queued, is this very thread. */
static bool inside_a_poll(const struct weft__here *here)
{
    if (here->fiber) return here->fiber->polling;
    return here->cx || here->task || here->worker;
}

/* True for the first caller from a place. A full table keeps silent: it has said enough. */
static bool first_report_of(const void *caller)
{
    static _Atomic uintptr_t places[PLACES_MAX];

    for (unsigned i = 0; i < PLACES_MAX; i++) {
        uintptr_t seen = load_relaxed(&places[i]); /* relaxed, both: a set of numbers */
        if (seen == 0 && cas_relaxed(&places[i], &seen, (uintptr_t)caller)) return true;
        if (seen == (uintptr_t)caller) return false;
    }
    return false;
}

/* The caller as "helper (/bin/server+0x1234)": the offset is what addr2line wants. */
static void print_caller(const void *caller)
{
    Dl_info info;

    if (!dladdr(caller, &info) || !info.dli_fname) {
        fprintf(stderr, "%p", caller);
        return;
    }
    size_t offset = (size_t)((const char *)caller - (const char *)info.dli_fbase);
    if (info.dli_sname) fprintf(stderr, "%s ", info.dli_sname);
    fprintf(stderr, "(%s+0x%zx)", info.dli_fname, offset);
}

static void print_waiter(const struct weft__here *here)
{
    const struct weft_site *site = here->task ? here->task->site : NULL;

    if (site) {
        fprintf(stderr, "weft: task '%s' (spawned at %s:%u)", weft__name_of(here->task), site->file,
                site->line);
    } else {
        fputs(here->worker ? "weft: a worker" : "weft: a thread", stderr);
    }
}

static void report(const struct weft__here *here, const void *caller)
{
    bool in_hook = !here->fiber && !here->cx && !here->task;

    flockfile(stderr); /* one line, whoever else prints */
    print_waiter(here);
    fputs(in_hook ? " waits inside a hook, called from " : " waits inside a poll, called from ",
          stderr);
    print_caller(caller);
    fputs(in_hook ? ": refused with EDEADLK, spawn a task for it\n"
                  : ": refused with EDEADLK, await it instead\n",
          stderr);
    funlockfile(stderr);
}

__attribute__((cold, noinline)) static int refuse(const struct weft__here *here, const void *caller)
{
    if (first_report_of(caller)) report(here, caller);
    weft_dassert(!"a call form inside a stackless poll, or a worker's hook");
    return -EDEADLK;
}

bool weft__run_is_refused(void)
{
    return inside_a_poll(weft__here());
}

/* ---- the door ------------------------------------------------------------------------------------ */

int weft__run_from(weft_pollfn *poll, void *frame, const void *caller)
{
    const struct weft__here *here = weft__here();

    if (__builtin_expect(inside_a_poll(here), 0)) return refuse(here, caller);
    struct weft__fiber *f = here->fiber;
    if (!f) {
        run_on_thread(poll, frame);
        return 0;
    }
    f->polling = true;
    weft_poll answer = weft__fiber_poll_inside(f, poll, frame, here->cx);
    f->polling = false;
    return answer == WEFT_READY ? 0 : weft__fiber_wait(f, poll, frame);
}

int weft__run(weft_pollfn *poll, void *frame)
{
    return weft__run_from(poll, frame, __builtin_return_address(0));
}
