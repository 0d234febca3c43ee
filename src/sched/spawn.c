/* SPDX-License-Identifier: MIT
 *
 * spawn - a task's birth and its end: the block, the frame, publication.
 *
 * A worker takes the block from its own slab, without a read-modify-write, and puts the task into its `next` slot. Any other thread passes the gate (so that
 * a runtime that closes knows when the last of them is through) and pushes to the inject queue.
 * Threads: any. Pairs: [rt-gate].
 */
#include "base/alloc.h"
#include "sched/sched.h"

#include <errno.h>

/* ---- blocks of threads that are no workers: one guest slab for all of them, under a lock ---- */

/* Spawning from outside is an exchange on the inject queue and perhaps a wake; a lock that is held for a few instructions does not show beside it. */
static struct weft__lock guest_lock = WEFT__LOCK_INIT(WEFT__RANK_SLAB);

static struct weft_task *block_from_guest(struct weft_rt *rt, size_t bytes)
{
    weft__lock_take(&guest_lock);
    struct weft_task *task = weft__slab_alloc(&rt->workers[rt->worker_count].slab, bytes);
    weft__lock_drop(&guest_lock);
    return task;
}

/* The worker that this thread is, if it is one of the runtime's. */
static struct weft__worker *own_worker(struct weft_rt *rt)
{
    struct weft__worker *w = weft__here()->worker;
    return w && w->rt == rt ? w : NULL;
}

static size_t block_bytes(const struct weft_site *site)
{
    size_t frame = site->frame_bytes <= WEFT__FRAME_MAX ? site->frame_bytes : sizeof(void *);
    return sizeof(struct weft_task) + frame;
}

/* ---- birth ---- */

static bool frame_box(struct weft_task *task)
{
    if (task->site->frame_bytes <= WEFT__FRAME_MAX) return true;
    void **box = (void *)(task + 1);
    *box = weft__alloc_aligned(task->site->frame_bytes, 16);
    return *box != NULL;
}

/* From outside it may be the last block of a runtime that has stopped: nothing is touched behind it. */
static void block_free(struct weft_rt *rt, struct weft__worker *w, struct weft_task *task)
{
    if (w) {
        weft__slab_free(&w->slab, task);
        return;
    }
    weft__slab_free_outside(task);
    weft__rt_release(rt);
}

/* What few tasks have is kept apart, so that the others do not carry it. */
static bool ext_new(struct weft_task *task, const weft_spawn_opts *opts)
{
    if (!opts || !opts->name) return true;
    struct weft__ext *ext = weft__alloc(sizeof(*ext));
    if (!ext) return false;
    ext->name = opts->name;
    task->ext = ext;
    return true;
}

static struct weft_task *block_new(struct weft_rt *rt, struct weft__worker *w, const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft_task *task = w ? weft__slab_alloc(&w->slab, block_bytes(site)) : block_from_guest(rt, block_bytes(site));
    if (!task) return NULL;
    task->site = site;
    task->scope = 0;
    task->ext = NULL;
    store_relaxed(&task->wait, 0); /* relaxed, all: the state word's release publishes them */
    store_relaxed(&task->polls, 0);
    store_relaxed(&task->since, 0);
    if (!ext_new(task, opts)) goto out_block;
    if (!frame_box(task)) goto out_ext;
    return task;

out_ext:
    weft__free(task->ext);
out_block:
    block_free(rt, w, task);
    return NULL;
}

/* From outside: be seen by a runtime that closes, or see that it does. */
static bool gate_enter(struct weft_rt *rt)
{
    fetch_add_acq_rel(&rt->gate, 1); /* [rt-gate] with stop: it waits for us, or we see that it closes */
    fence_seq_cst();                 /* [rt-gate] with stop: store buffering, our count against its stage */
    if (load_relaxed(&rt->stage) == WEFT__OPEN) return true; /* relaxed: ordered by the fence */
    fetch_sub_release(&rt->gate, 1); /* [rt-gate] with stop */
    return false;
}

static void gate_leave(struct weft_rt *rt)
{
    fetch_sub_release(&rt->gate, 1); /* [rt-gate] with stop: the task is in the registry */
}

static struct weft_task *task_new_outside(const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft_rt *rt = opts && opts->rt ? opts->rt : weft_rt_current();
    if (!rt || !gate_enter(rt)) return NULL;
    struct weft_task *task = block_new(rt, NULL, site, opts);
    if (!task) gate_leave(rt);
    return task;
}

weft_task *weft__task_new(const struct weft_site *site, const weft_spawn_opts *opts)
{
    struct weft__worker *w = weft__here()->worker;
    if (w && (!opts || !opts->rt || opts->rt == w->rt)) return block_new(w->rt, w, site, opts);
    return task_new_outside(site, opts);
}

void *weft__task_frame(weft_task *task)
{
    return weft__frame_of(task);
}

weft_task *weft__task_start(weft_task *task)
{
    struct weft_rt *rt = weft__rt_of(task);
    struct weft__worker *w = own_worker(rt);

    weft__join_init(task, false);
    weft__state_init(task, 1);
    if (load_relaxed(&rt->stage) != WEFT__OPEN) (void)weft__state_cancel(task); /* relaxed: a worker that misses it is swept once more */
    if (w) {
        weft__tally(&w->counts.spawned, 1);
        weft__worker_push(w, task);
    } else {
        fetch_add_relaxed(&rt->spawned_outside, 1); /* relaxed: a count */
        weft__rt_push_outside(rt, task, task);
        gate_leave(rt);
    }
    return task;
}

/* ---- end ---- */

void weft__task_strip(struct weft_task *task)
{
    if (task->site->frame_bytes > WEFT__FRAME_MAX) weft__free(weft__frame_of(task));
    weft__free(task->ext);
}

/* Debug builds let a block wait before it is free (spent.h). */
#if defined(WEFT_DEBUG)
static void block_free_now(struct weft_rt *rt, struct weft__worker *w, struct weft_task *task)
{
    weft__state_free(task);
    block_free(rt, w, task);
}

static void task_free_outside(struct weft_rt *rt, struct weft_task *task)
{
    weft__lock_take(&guest_lock);
    task = weft__spent_put(&rt->workers[rt->worker_count].spent, task);
    weft__lock_drop(&guest_lock);
    if (task) block_free_now(rt, NULL, task);
}

void weft__spent_flush(struct weft__worker *w)
{
    for (struct weft_task *task; (task = weft__spent_close(&w->spent));) block_free_now(w->rt, w, task);
}

void weft__spent_flush_outside(struct weft_rt *rt)
{
    for (;;) {
        weft__lock_take(&guest_lock);
        struct weft_task *task = weft__spent_close(&rt->workers[rt->worker_count].spent);
        weft__lock_drop(&guest_lock);
        if (!task) return;
        block_free_now(rt, NULL, task);
    }
}
#else
static void task_free_outside(struct weft_rt *rt, struct weft_task *task)
{
    weft__state_free(task);
    block_free(rt, NULL, task);
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

void weft__task_free(struct weft_task *task)
{
    struct weft_rt *rt = weft__rt_of(task);
    struct weft__worker *w = own_worker(rt);

    if (w) {
        weft__task_free_on(w, task);
        return;
    }
    weft__task_strip(task);
    task_free_outside(rt, task);
}
