/* SPDX-License-Identifier: MIT
 *
 * standin - the functions behind the public macros, on one thread and with no regard for speed.
 *
 * The programs of tests/face are about what the macros make of a program. Linked with this file they need nothing of
 * the scheduler, so what they find is the macros' fault. The rules are the contract's (weft/task.h, fiber.h): a spawned
 * task always starts, a join waits even when it is cancelled, a call in a stackless poll answers -EDEADLK.
 *
 * A queue of tasks that were woken; whoever waits on the plain thread polls from it. Fibers are ucontexts.
 */
#include "task/frame.h"
#include "types.h"

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10, FIBERS_MAX = 1024 };

struct fiber {
    ucontext_t self;
    ucontext_t poller;
    void (*body)(void *);
    void *frame;
    struct fiber *outer; /* on whose stack the poll was made */
    bool over;
    char *stack;
};

/* A task: what is ours, then the library's header with the frame behind it, as the macros have it. */
struct task {
    struct task *next;
    const char *name;
    weft_waker joiner;
    uint64_t id;
    int refs;
    bool queued, done, cancelled;
    struct weft_task head;
    char frame[];
};

static struct task *queue_head, **queue_tail = &queue_head;
static struct task *running;   /* whose poll runs */
static struct fiber *on_fiber; /* on whose stack we are */
static weft_cx *current_cx;
static bool thread_woken;
static struct fiber *fibers[FIBERS_MAX];
static uint64_t task_count;
enum { THREAD_WAKER = 1 };

static void die(const char *why)
{
    fprintf(stderr, "standin: %s\n", why);
    abort();
}

static struct task *mine(const weft_task *t)
{
    return t ? (void *)((char *)(uintptr_t)t - offsetof(struct task, head)) : NULL;
}

/* ---- wake and turn -------------------------------------------------------------------------------------------------- */

int weft_cx_cancelled(weft_cx *cx)
{
    return cx->why;
}

weft_waker weft_cx_waker(weft_cx *cx)
{
    return cx->waker;
}

void weft_waker_wake(weft_waker waker)
{
    if (waker.word == THREAD_WAKER) {
        thread_woken = true;
        return;
    }
    struct task *t = mine((weft_task *)waker.word);
    if (!t || t->queued || t->done) return;
    t->queued = true;
    t->next = NULL;
    *queue_tail = t;
    queue_tail = &t->next;
}

weft_waker weft_waker_ref(weft_waker waker)
{
    if (waker.word > THREAD_WAKER) mine((weft_task *)waker.word)->refs++;
    return waker;
}

static void unref(struct task *t)
{
    if (--t->refs == 0) free(t);
}

void weft_waker_unref(weft_waker waker)
{
    if (waker.word > THREAD_WAKER) unref(mine((weft_task *)waker.word));
}

static void poll_task(struct task *t)
{
    struct task *outer = running;
    struct fiber *outer_fiber = on_fiber;
    weft_cx *outer_cx = current_cx;
    weft_cx cx = {.waker = {(uintptr_t)&t->head}, .why = t->cancelled ? -ECANCELED : 0};

    running = t, on_fiber = NULL, current_cx = &cx;
    weft__scribble();
    weft_poll answer = t->head.site->poll(t->frame, &cx);
    running = outer, on_fiber = outer_fiber, current_cx = outer_cx;
    if (answer == WEFT_PENDING) return;
    t->done = true;
    weft_waker_wake(t->joiner);
    unref(t);
}

static bool turn(void)
{
    struct task *t = queue_head;

    if (!t) return false;
    queue_head = t->next;
    if (!queue_head) queue_tail = &queue_head;
    t->queued = false;
    poll_task(t);
    return true;
}

static void suspend(void)
{
    struct fiber *self = on_fiber;
    struct task *task = running;

    swapcontext(&self->self, &self->poller);
    on_fiber = self, running = task; /* current_cx is the new poll's */
}

int weft__run(weft_pollfn *poll, void *frame)
{
    weft_cx cx = {.waker = {THREAD_WAKER}};

    if (running && !on_fiber) return -EDEADLK;
    for (;;) {
        struct fiber *self = on_fiber;
        weft_cx *used = self ? current_cx : &cx;
        on_fiber = NULL;
        thread_woken = self ? thread_woken : false;
        weft_poll answer = poll(frame, used);
        on_fiber = self;
        if (answer == WEFT_READY) return 0;
        if (self)
            suspend();
        else if (!turn() && !thread_woken)
            die("nothing will ever wake this thread");
    }
}

/* ---- tasks ----------------------------------------------------------------------------------------------------------- */

weft_task *weft__task_new(const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct task *t = calloc(1, sizeof *t + site->frame_bytes);

    if (!t) return NULL;
    t->head.site = site;
    t->name = opts && opts->name ? opts->name : site->name;
    t->id = ++task_count;
    t->refs = 2; /* the handle's, and one until it is complete */
    return &t->head;
}

void *weft__task_frame(weft_task *task)
{
    return mine(task)->frame;
}

weft_task *weft__task_start(weft_task *task)
{
    weft_waker_wake((weft_waker){(uintptr_t)task});
    return task;
}

weft_poll weft_join_poll(void *frame, weft_cx *cx)
{
    struct weft_join *f = frame;
    struct task *t = mine(f->task);

    if (!t) {
        f->ret = -ECHILD;
        return WEFT_READY;
    }
    if (!t->done) {
        if (cx->why) weft_cancel(f->task);
        t->joiner = cx->waker;
        return WEFT_PENDING;
    }
    const struct weft_site *site = t->head.site;
    f->ret = f->into && f->bytes != site->ret_bytes ? -EINVAL : 0;
    if (f->into && f->ret == 0) memcpy(f->into, t->frame + site->ret_at, site->ret_bytes);
    unref(t);
    return WEFT_READY;
}

void weft_cancel(weft_task *task)
{
    if (!task || mine(task)->cancelled) return;
    mine(task)->cancelled = true;
    weft_waker_wake((weft_waker){(uintptr_t)task});
}

int weft_detach(weft_task *task)
{
    if (!task) return -ECHILD;
    unref(mine(task));
    return 0;
}

bool weft_done(const weft_task *task)
{
    return mine(task)->done;
}

weft_task *weft_ref(weft_task *task)
{
    mine(task)->refs++;
    return task;
}

void weft_unref(weft_task *task)
{
    if (task) unref(mine(task));
}

uint64_t weft_task_id(const weft_task *task)
{
    return mine(task)->id;
}

const char *weft_task_name(const weft_task *task)
{
    return mine(task)->name;
}

weft_task *weft_self(void)
{
    return running ? &running->head : NULL;
}

weft_poll weft_yield_poll(void *frame, weft_cx *cx)
{
    struct weft_yield *f = frame;

    if ((f->ret = cx->why) < 0 || f->weft__at) return WEFT_READY;
    f->weft__at = 1;
    weft_waker_wake(cx->waker);
    return WEFT_PENDING;
}

int weft__yield(void)
{
    struct weft_yield f = {.ret = 0};
    int r = weft__run(weft_yield_poll, &f);
    return r < 0 ? r : f.ret;
}

/* ---- fibers ---------------------------------------------------------------------------------------------------------- */

static void fiber_main(unsigned high, unsigned low)
{
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);

    fiber->body(fiber->frame);
    fiber->over = true;
    swapcontext(&fiber->self, &fiber->poller);
}

static struct fiber *fiber_new(void (*body)(void *), void *frame)
{
    struct fiber *fiber = calloc(1, sizeof *fiber);

    if (!fiber || !(fiber->stack = malloc(STACK_BYTES))) die("no memory");
    fiber->body = body;
    fiber->frame = frame;
    getcontext(&fiber->self);
    fiber->self.uc_stack.ss_sp = fiber->stack;
    fiber->self.uc_stack.ss_size = STACK_BYTES;
    uintptr_t word = (uintptr_t)fiber;
    makecontext(&fiber->self, (void (*)(void))fiber_main, 2, (unsigned)(word >> 32),
                (unsigned)word);
    return fiber;
}

/* Returns whether the body is over; then the fiber is gone. */
static bool fiber_resume(struct fiber *fiber, weft_cx *cx)
{
    fiber->outer = on_fiber;
    weft_cx *outer_cx = current_cx;
    on_fiber = fiber, current_cx = cx;
    swapcontext(&fiber->poller, &fiber->self);
    on_fiber = fiber->outer, current_cx = outer_cx;
    if (!fiber->over) return false;
    free(fiber->stack);
    free(fiber);
    return true;
}

weft_poll weft__fiber_poll(void (*body)(void *), void *frame, weft_cx *cx)
{
    int32_t *at = frame;
    int32_t slot = *at / 2;

    if (*at == 0) {
        for (slot = 0; fibers[slot];)
            if (++slot == FIBERS_MAX) die("too many fibers");
        fibers[slot] = fiber_new(body, frame);
        *at = slot * 2 + 1;
    }
    if (!fiber_resume(fibers[slot], cx)) return WEFT_PENDING;
    fibers[slot] = NULL;
    return WEFT_READY;
}

/* Any function of words is called as one of six: the registers are the same, and the callee looks at its own. */
__attribute__((no_sanitize("undefined"))) static void make_call(void *frame)
{
    struct weft__go_frame *f = frame;
    const uint64_t *a = f->call.arg;

    f->ret = ((uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))f->call.fn)(
        a[0], a[1], a[2], a[3], a[4], a[5]);
}

weft_poll weft__go_poll(void *frame, weft_cx *cx)
{
    struct weft__go_frame *f = frame;

    if (!f->weft__fiber) f->weft__fiber = fiber_new(make_call, frame);
    return fiber_resume(f->weft__fiber, cx) ? WEFT_READY : WEFT_PENDING;
}

weft_task *weft__go(const struct weft_site *site, const weft_call *call,
                    const weft_spawn_opts *opts)
{
    weft_task *task = weft__task_new(site, opts);

    if (!task) return NULL;
    ((struct weft__go_frame *)weft__task_frame(task))->call = *call;
    return weft__task_start(task);
}

/* ---- main ------------------------------------------------------------------------------------------------------------ */

int weft__main(int (*app)(int, char **), int argc, char **argv)
{
    int r = 0;
    weft_task *t = weft_go_as((.name = "app"), app, argc, argv);
    int joined = weft__join(t, &r, sizeof r);

    while (turn())
        continue;
    if (joined < 0) r = joined;
    if (r < 0) fprintf(stderr, "standin: app: %s\n", strerror(-r));
    return r < 0;
}

/* ---- local.h, as on a plain thread: no worker to name, none to leave, no task to have values --------------------------------------- */

weft_local weft_local_here(void)
{
    return (weft_local){0};
}

bool weft_local_is_here(const weft_local *local)
{
    (void)local;
    return false;
}

struct weft__pin weft__pin_enter(void)
{
    return (struct weft__pin){.once = true};
}

void weft__pin_leave(struct weft__pin *pin)
{
    (void)pin;
}

void *weft__task_local(struct weft__task_key *key)
{
    (void)key;
    return NULL;
}
