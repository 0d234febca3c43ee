/* SPDX-License-Identifier: MIT
 *
 * spawn - a task's birth and its end: the block, the frame, publication.
 *
 * A worker takes the block from its own slab, without a read-modify-write, and puts the task into its `next` slot. Any other thread passes the gate (so that
 * a runtime that closes knows when the last of them is through), takes the block from its guest slab (guest.h), and pushes to the inject queue.
 * Threads: any. Pairs: [rt-gate].
 */
#include "base/alloc.h"
#include "sched/gate.h"
#include "sched/pool.h"
#include "sched/sched.h"
#include "sync/kin.h"
#include "task/ext.h"
#include "task/fiber.h"

#include <errno.h>

_Static_assert(offsetof(struct weft_task, site) == offsetof(struct weft__block, kept), "a free block still tells whose task it was");

/* For threads that are no workers. */
static struct weft_task *block_from_guest(struct weft_rt *rt, size_t bytes)
{
    struct weft__slab *slab = weft__guest_slab(&rt->guests);
    return slab ? weft__slab_alloc(slab, bytes) : NULL;
}

/* The worker that this thread is, if it is one of the runtime's. */
static struct weft__worker *own_worker(struct weft_rt *rt)
{
    struct weft__worker *w = weft__here()->worker;
    return w && w->rt == rt ? w : NULL;
}

static inline bool is_scoped(const weft_spawn_opts *opts)
{
    return opts && opts->weft__scope;
}

/* With the tail, if it has one. */
static size_t frame_bytes(const struct weft_site *site, const weft_spawn_opts *opts)
{
    return is_scoped(opts) ? weft__tail_at(site) + WEFT__TAIL_BYTES : site->frame_bytes;
}

static size_t block_bytes(const struct weft_site *site, const weft_spawn_opts *opts)
{
    size_t frame = site->frame_bytes <= WEFT__FRAME_MAX ? frame_bytes(site, opts) : sizeof(void *);
    return sizeof(struct weft_task) + frame;
}

/* ---- birth ---- */

static bool frame_box(struct weft_task *task, const weft_spawn_opts *opts)
{
    if (task->site->frame_bytes <= WEFT__FRAME_MAX) return true;
    void **box = (void *)(task + 1);
    *box = weft__alloc_aligned(frame_bytes(task->site, opts), 16);
    return *box != NULL;
}

/* From outside it may be the last block of a runtime that has stopped: nothing is touched behind it. */
static void block_free(struct weft_rt *rt, struct weft__worker *w, struct weft_task *task)
{
    if (w) {
        weft__slab_free(&w->slab, task);
        return;
    }
    bool pooled = weft__slab_pooled(task); /* its pool holds the runtime for all of its blocks */
    weft__slab_free_outside(task);
    if (!pooled) weft__rt_release(rt);
}

/* What few tasks have is kept apart, so that the others do not carry it. */
static bool ext_new(struct weft_rt *rt, struct weft_task *task, const weft_spawn_opts *opts)
{
    struct weft__stacks *stacks = NULL;
    if (!opts || !(opts->name || opts->stack_bytes)) return true; /* the task itself may need one later: task/local.c */
    if (opts->stack_bytes && weft__stack_sizes_get(&rt->stack_sizes, opts->stack_bytes, &stacks) < 0) return false;
    struct weft__ext *ext = weft__ext_new(task);
    if (!ext) return false;
    *ext = (struct weft__ext){.name = opts->name, .stacks = stacks};
    task->ext = ext;
    return true;
}

/* All of the header but the state, which publishes it. `by`: the worker whose plain task it is, until it starts: it has no options, and no place
 * but that worker's queues. While the arguments of the spawn are evaluated a fiber may move to another worker, and this block be anybody's before and
 * after: so the mark is in the block, and not with the worker. It lies where a task that has started says what it waits for. */
static inline void header_init(struct weft_task *task, const struct weft_site *site, uint32_t place, const struct weft__worker *by)
{
    task->site = site;
    task->scope = 0;
    task->ext = NULL;
    store_relaxed(&task->wait, (uintptr_t)by); /* relaxed, all: the state word's release publishes them */
    store_relaxed(&task->polls, 0);
    store_relaxed(&task->since, 0);
    store_relaxed(&task->place, (uint16_t)place);
}

static uint32_t place_of(struct weft_rt *rt, struct weft__worker *w, const struct weft_site *site, const weft_spawn_opts *opts)
{
    uint32_t boxed = site->frame_bytes > WEFT__FRAME_MAX ? WEFT__PLACE_BOXED : 0;
    return boxed | (opts ? weft__place_at_birth(rt, w, opts) : 0);
}

static struct weft_task *block_new(struct weft_rt *rt, struct weft__worker *w, const struct weft_site *site, const weft_spawn_opts *opts)
{
    size_t bytes = block_bytes(site, opts);
    struct weft_task *task = w ? weft__slab_alloc(&w->slab, bytes) : block_from_guest(rt, bytes);
    if (!task) return NULL;
    header_init(task, site, place_of(rt, w, site, opts), NULL);
    if (!ext_new(rt, task, opts)) goto out_block;
    if (!frame_box(task, opts)) goto out_ext;
    return task;

out_ext:
    weft__ext_free(task);
out_block:
    block_free(rt, w, task);
    return NULL;
}

static struct weft_task *task_new_outside(struct weft_rt *asked, const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft_rt *rt = asked ? asked : weft_rt_current();
    if (!rt || !weft__gate_enter(rt)) return NULL;
    struct weft_task *task = block_new(rt, NULL, site, opts);
    if (!task) weft__gate_leave(rt);
    return task;
}

static struct weft_task *block_from_pool(struct weft_rt *rt, struct weft__worker *w, const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft_task *task = weft__pool_take(opts->pool, site);
    if (!task) return NULL;
    header_init(task, site, place_of(rt, w, site, opts), NULL);
    if (ext_new(rt, task, opts)) return task;
    block_free(rt, w, task);
    return NULL;
}

/* The pool says which runtime it is; no other was asked for. */
static struct weft_task *task_new_in_pool(const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft_rt *rt = weft__pool_rt(opts->pool);
    struct weft__worker *w = own_worker(rt);
    if (!w && !weft__gate_enter(rt)) return NULL;
    struct weft_task *task = block_from_pool(rt, w, site, opts);
    if (!task && !w) weft__gate_leave(rt);
    return task;
}

/* The slab's list has run dry. */
static __attribute__((noinline)) struct weft_task *task_new_dry(struct weft__worker *w, const struct weft_site *site)
{
    struct weft_task *task = weft__slab_alloc(&w->slab, sizeof(*task) + site->frame_bytes);
    if (task) header_init(task, site, 0, w);
    return task;
}

/* With options, a large frame, or from outside. */
static __attribute__((noinline)) struct weft_task *task_new_slow(struct weft__worker *w, const struct weft_site *site, const weft_spawn_opts *opts)
{
    if (opts && !weft__place_is_sound(opts)) return NULL;
    if (opts && opts->pool) return task_new_in_pool(site, opts);
    struct weft_rt *asked = opts ? weft__place_rt(opts) : NULL;
    if (w && (!asked || asked == w->rt)) return block_new(w->rt, w, site, opts);
    return task_new_outside(asked, site, opts);
}

weft_task *weft__task_new(const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft__worker *w = weft__here()->worker;
    if (!w || opts || site->frame_bytes > WEFT__FRAME_MAX) return task_new_slow(w, site, opts);
    struct weft_task *task = weft__slab_alloc_ready(&w->slab, sizeof(*task) + site->frame_bytes);
    if (__builtin_expect(!task, 0)) return task_new_dry(w, site);
    header_init(task, site, 0, w);
    return task;
}

void *weft__task_frame(weft_task *task)
{
    return weft__frame_of(task);
}

static __attribute__((noinline)) void task_start_outside(struct weft_rt *rt, struct weft_task *task)
{
    fetch_add_relaxed(&rt->spawned_outside, 1); /* relaxed: a count */
    weft__rt_push_outside(rt, task, task);
    weft__gate_leave(rt);
}

/* A fiber that waited in it would come back on another worker, with the task in its hands. */
static void call_spawn_hook(struct weft_rt *rt, struct weft_task *task)
{
    struct weft__fiber *f = weft__here()->fiber;
    bool before = f && f->polling;
    if (f) f->polling = true;
    rt->opts.on_task_spawn(rt, task);
    if (f) f->polling = before;
}

/* From outside, with options, by another worker than it began with, with hooks, or while the runtime closes. */
static __attribute__((noinline)) weft_task *task_start_slow(weft_task *task)
{
    struct weft_rt *rt = weft__rt_of(task);
    struct weft__worker *w = own_worker(rt);

    store_relaxed(&task->wait, 0); /* relaxed: as in header_init */
    weft__state_init(task, task->scope ? 0 : 1);
    if (task->scope) weft__kin_add(weft__kin_of(task), task);
    if (load_relaxed(&rt->stage) != WEFT__OPEN) (void)weft__state_cancel(task); /* relaxed: a worker that misses it is swept once more */
    if (rt->opts.on_task_spawn) call_spawn_hook(rt, task);
    /* The hook or an argument forked, and this is the child. Nobody runs the task, and what its push would take may be held for ever. */
    if (weft__rt_is_lost(rt)) return task;
    if (w) {
        weft__tally(&w->counts.spawned, 1);
        weft__worker_push(w, task);
    } else {
        task_start_outside(rt, task);
    }
    return task;
}

static __attribute__((noinline)) weft_task *push_before_others(struct weft__worker *w, weft_task *task)
{
    weft__worker_push_next(w, task);
    return task;
}

/* Whatever needs a call is the end of a path: so the usual one saves no registers. */
weft_task *weft__task_start(weft_task *task)
{
    struct weft__worker *w = weft__here()->worker;
    if (!w || load_relaxed(&task->wait) != (uintptr_t)w || w->task_hooks) return task_start_slow(task); /* relaxed: not published yet */
    if (__builtin_expect(load_relaxed(&w->rt->stage) != WEFT__OPEN, 0)) return task_start_slow(task); /* relaxed: as there */
    store_relaxed(&task->wait, 0); /* relaxed: as in header_init */
    weft__state_init(task, 1);
    weft__tally(&w->counts.spawned, 1);
    if (!weft__slot_empty(&w->next)) return push_before_others(w, task);
    weft__worker_push_next(w, task);
    return task;
}

/* ---- the same in a scope ---- */

static struct weft_task *scoped(struct weft_task *task, struct weft__kin *kin)
{
    if (task) task->scope = (uintptr_t)kin;
    return task;
}

static struct weft_task *task_new_in_slow(struct weft__kin *kin, struct weft__worker *w,
                                          const struct weft_site *site, const weft_spawn_opts *opts)
{
    weft_spawn_opts with = opts ? *opts : (weft_spawn_opts){.rt = NULL};
    with.weft__scope = kin;
    return scoped(task_new_slow(w, site, &with), kin);
}

struct weft_task *weft__task_new_in(struct weft__kin *kin, const struct weft_site *site,
                                    const weft_spawn_opts *opts)
{
    struct weft__worker *w = weft__here()->worker;
    if (!w || opts || site->frame_bytes > WEFT__FRAME_MAX)
        return task_new_in_slow(kin, w, site, opts);
    struct weft_task *task =
        weft__slab_alloc(&w->slab, sizeof(*task) + weft__tail_at(site) + WEFT__TAIL_BYTES);
    if (__builtin_expect(!task, 0)) return NULL;
    header_init(task, site, 0, w);
    return scoped(task, kin);
}

int weft__task_why_not(const weft_spawn_opts *opts)
{
    if (opts && !weft__place_is_sound(opts)) return -EINVAL;
    struct weft__worker *w = weft__here()->worker;
    struct weft_rt *rt = opts && opts->pool ? weft__pool_rt(opts->pool)
                         : opts             ? weft__place_rt(opts)
                                            : NULL;
    if (!rt) rt = w ? w->rt : weft_rt_current();
    if (!rt) return -ENXIO;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    bool shut = !own_worker(rt) &&
                load_relaxed(&rt->stage) != WEFT__OPEN; /* relaxed: what refused it has seen it */
    return shut ? -ESHUTDOWN : -ENOMEM;
}

void weft__task_start_in(struct weft_task *task)
{
    struct weft__worker *w = weft__here()->worker;
    bool plain = w && load_relaxed(&task->wait) == (uintptr_t)w &&
                 !w->task_hooks;                               /* relaxed: not published yet */
    if (!plain || load_relaxed(&w->rt->stage) != WEFT__OPEN) { /* relaxed: as in task_start_slow */
        (void)task_start_slow(task);
        return;
    }
    store_relaxed(&task->wait, 0); /* relaxed: as in header_init */
    weft__state_init(task, 0);
    weft__kin_add(weft__kin_of(task), task);
    weft__tally(&w->counts.spawned, 1);
    weft__worker_push_next(w, task);
}

/* ---- end ---- */

void weft__task_strip(struct weft_task *task)
{
    if (weft__slab_pooled(task)) return; /* all of it lies in the block */
    if (task->site->frame_bytes > WEFT__FRAME_MAX) weft__free(weft__frame_of(task));
    weft__free(task->ext);
}

/* Debug builds let a block wait before it is free (spent.h). */
#if defined(WEFT_DEBUG)
/* NULL: it waits. Else the one that is to be freed now. */
static struct weft_task *wait_outside(struct weft_rt *rt, struct weft_task *task)
{
    if (!weft__spent_waits(task) || weft__rt_is_lost(rt)) return task; /* lost: the lock may be held for ever */
    weft__lock_take(&rt->spent_lock);
    task = weft__spent_put(&rt->spent, task);
    weft__lock_drop(&rt->spent_lock);
    return task;
}

void weft__spent_flush(struct weft__worker *w)
{
    for (struct weft_task *task; (task = weft__spent_close(&w->spent));) {
        weft__state_free(task);
        block_free(w->rt, w, task);
    }
}

void weft__spent_flush_outside(struct weft_rt *rt)
{
    for (;;) {
        weft__lock_take(&rt->spent_lock);
        struct weft_task *task = weft__spent_close(&rt->spent);
        weft__lock_drop(&rt->spent_lock);
        if (!task) return;
        weft__state_free(task);
        block_free(rt, NULL, task);
    }
}
#else
static struct weft_task *wait_outside(struct weft_rt *rt, struct weft_task *task)
{
    (void)rt;
    return task;
}

void weft__spent_flush(struct weft__worker *w)
{
    (void)w;
}

void weft__spent_flush_outside(struct weft_rt *rt)
{
    (void)rt;
}
#endif

static __attribute__((noinline)) void task_free_outside(struct weft_rt *rt, struct weft_task *task)
{
    if (weft__rt_is_lost(rt)) return; /* in the child of a fork: its locks may be held for ever, and its memory stays */
    weft__task_strip(task);
    task = wait_outside(rt, task);
    if (!task) return;
    weft__state_free(task);
    block_free(rt, NULL, task);
}

void weft__task_free(struct weft_task *task)
{
    struct weft_rt *rt = weft__rt_of(task);
    struct weft__worker *w = own_worker(rt);

    if (w) {
        weft__task_free_on(w, task);
    } else {
        task_free_outside(rt, task);
    }
}
