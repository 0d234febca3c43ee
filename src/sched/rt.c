/* SPDX-License-Identifier: MIT
 *
 * rt - the runtime: builds and joins the parts. The only file that knows them all.
 *
 * A build that fails halfway ends the threads it has, and gives everything back. Workers wait until all of them are there, so
 * nothing of the program's has run by then: no hook, and no task that one would have spawned.
 *
 * WHAT OUTLIVES A STOP  A handle or a kept waker refers to a task that has ended, and a thread outside may be about to tell a sleeper of a task that has
 * since run. So the blocks, and the structs that their freeing touches, go when the last of these lets go; threads and stacks go with the stop.
 * The count is held.h's. Stop adds the difference: blocks handed out less those that workers freed, known exactly since both have ended.
 */
#include "sched/sched.h"

#include "base/alloc.h"
#include "base/err.h"
#include "driver/files.h"
#include "sched/stop.h"
#include "sys/bias.h"
#include "sys/clock.h"
#include "sys/errno.h"
#include "sys/fd.h"
#include "sys/futex.h"
#include "sys/mem.h"
#include "task/call.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct weft_rt *_Atomic default_rt; /* [rt-default] */

/* ---- memory of tasks ---- */

static void *blocks_map(void *unused, size_t bytes, size_t align)
{
    void *memory;
    (void)unused;
    if (weft__alloc_replaced()) return weft__alloc_sized(bytes, align);
    if (weft__mem_map_aligned(bytes, align < weft__mem_page_bytes() ? weft__mem_page_bytes() : align, &memory) < 0) return NULL;
    if (bytes >= WEFT__SLAB_SPAN_MAX) (void)weft__mem_advise_huge(memory, bytes);
    return memory;
}

static void blocks_unmap(void *unused, void *memory, size_t bytes)
{
    (void)unused;
    if (weft__alloc_replaced()) {
        weft__free_sized(memory, bytes);
        return;
    }
    (void)weft__mem_unmap(memory, bytes);
}

static struct weft__slab *blocks_spare_take(void *rt)
{
    return weft__guests_spare_take(&((struct weft_rt *)rt)->guests);
}

static void blocks_spare_give(void *rt, struct weft__slab *slab)
{
    weft__guests_spare_give(&((struct weft_rt *)rt)->guests, slab);
}

static bool blocks_init(struct weft_rt *rt)
{
    struct weft__slab_source source = {
        .map = blocks_map,
        .unmap = blocks_unmap,
        .ctx = rt,
        .spare_take = blocks_spare_take,
        .spare_give = blocks_spare_give,
    };
    weft__slab_group_init(&rt->blocks, &source);
    if (!weft__slab_group_prepare(&rt->blocks)) return false; /* so that a pool needs no memory later */
    weft__guests_init(&rt->guests, &rt->blocks);
    return true;
}

/* ---- building ---- */

/* A poll that takes longer is slow. Doubled: an answer that is left to be sent with others waits twice as long, for a tick of those who are just not slow
 * (3 ms). Halved: fewer are sent together. */
#define SLOW_POLL_NS INT64_C(50000)

static void worker_init(struct weft__worker *w, struct weft_rt *rt, uint32_t index, bool has_membarrier)
{
    w->rt = rt;
    w->index = index;
    w->number = weft__bias_number_new();
    w->tick_max = rt->opts.tick_max;
    w->gait.slow_ns = SLOW_POLL_NS;
    weft__worker_stretch(w);
    w->budget = rt->opts.budget;
    w->task_hooks = rt->task_hooks;
    w->deals = rt->worker_count == 1 || weft__monitor_watches(rt);
    weft__keeper_init(w);
    weft__shun_init(&w->shun);
    weft__slot_init(&w->next, !has_membarrier);
    weft__runq_init(&w->ring);
    weft__overflow_init(&w->over);
    weft__park_init(&w->park);
    weft__inbox_init(&w->inbox);
    weft__rand_seed(&w->rand, rt->opts.seed + index);
    weft__slab_init(&w->slab, &rt->blocks);
    w->magazine.pool = &rt->stacks;
}

static void shard_init(struct weft_rt *rt, uint32_t index)
{
    weft__shard_init(&rt->shards[index], index);
    rt->shards[index].port = &rt->driver->ports[index];
    rt->workers[index].shard = &rt->shards[index];
}

static int parts_init(struct weft_rt *rt)
{
    struct weft__stacks_options stacks = {.stack_bytes = rt->opts.stack_bytes};
    int r = weft__stacks_init(&rt->stacks, &stacks);
    if (r < 0) return r;
    weft__stack_sizes_init(&rt->stack_sizes, &rt->stacks);
    if (!blocks_init(rt)) {
        weft__stacks_done(&rt->stacks);
        return -ENOMEM;
    }
    weft__idle_init(&rt->idle, rt->worker_count);
    weft__inject_init(&rt->inject);
    weft__inject_init(&rt->background);
    weft__watch_init(&rt->monitor.watch);
    weft__trace_init(&rt->monitor.trace, rt->opts.schedtrace_ms, weft__clock_now());
    weft__blocking_init(&rt->blocking, rt);
    store_relaxed(&rt->stage, WEFT__OPEN); /* relaxed, both: not shared yet */
    store_relaxed(&rt->held, WEFT__HELD_OPEN);
    /* a worker alone has no thieves */
    bool has_membarrier = rt->worker_count == 1 || weft__membarrier() == 0;
    for (uint32_t i = 0; i < rt->worker_count; i++) worker_init(&rt->workers[i], rt, i, has_membarrier);
    for (uint32_t i = 0; i < rt->worker_count; i++) shard_init(rt, i);
    return 0;
}

static int thread_start(struct weft_rt *rt, uint32_t index)
{
    char name[WEFT__THREAD_NAME_BYTES];
    struct weft__cpus cpu = {0};
    snprintf(name, sizeof(name), "%.9s-%u", rt->name, index);
    struct weft__thread_options o = {.name = name, .stack_bytes = rt->opts.thread_stack_bytes};
    if (rt->opts.pin_threads) {
        struct weft__cpus all;
        uint32_t seen = 0;
        if (weft__cpu_affinity_get(0, &all) == 0) {
            uint32_t nth = index % weft__cpus_count(&all);
            for (uint32_t c = 0; c < WEFT__CPUS_MAX; c++) {
                if (weft__cpus_has(&all, c) && seen++ == nth) weft__cpus_add(&cpu, c);
            }
            o.affinity = &cpu;
        }
    }
    return weft__thread_start(&rt->workers[index].thread, &o, weft__worker_main, &rt->workers[index]);
}

static void threads_join(struct weft_rt *rt, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) weft__thread_join(&rt->workers[i].thread);
}

static void threads_stop(struct weft_rt *rt)
{
    store_release(&rt->stage, WEFT__STOPPED); /* [rt-stage] with the workers' loops: all that was done before */
    for (uint32_t i = 0; i < rt->worker_count; i++) weft__unpark(&rt->workers[i].park);
    threads_join(rt, rt->worker_count);
}

/* OPEN or ABANDONED: the workers have waited for it. */
static void threads_tell(struct weft_rt *rt, enum weft__stage stage)
{
    store_release(&rt->stage, stage); /* [rt-stage] with await_opening: the runtime is whole */
    (void)weft__futex_wake(&rt->stage, INT_MAX);
}

bool weft__rt_await_opening(struct weft_rt *rt)
{
    uint32_t stage;
    while ((stage = load_acquire(&rt->stage)) == WEFT__BUILDING) /* [rt-stage] with threads_tell */
        (void)weft__futex_wait(&rt->stage, WEFT__BUILDING, WEFT__NEVER);
    return stage != WEFT__ABANDONED;
}

void weft__rt_begins(struct weft_rt *rt)
{
    fetch_add_release(&rt->begun, 1); /* [rt-begun] with stop: what the hook spawned is counted */
}

/* All of them, or none: a hook of the first would spawn tasks, for one that is never there perhaps. */
static int threads_start(struct weft_rt *rt)
{
    int r = 0;
    uint32_t count = 0;
    store_relaxed(&rt->stage, WEFT__BUILDING); /* relaxed: not shared yet */
    while (r == 0 && count < rt->worker_count) {
        r = thread_start(rt, count);
        if (r == 0) count++;
    }
    if (r == 0) r = weft__monitor_start(rt);
    threads_tell(rt, r == 0 ? WEFT__OPEN : WEFT__ABANDONED);
    if (r < 0) threads_join(rt, count);
    return r;
}

/* ---- giving back ---- */

static void memory_done(struct weft_rt *rt)
{
    int fd = load_relaxed(&rt->event_fd); /* relaxed: nobody else is there */
    weft__host_close(&rt->host);
    if (fd >= 0) weft__fd_close(fd);      /* not before: a push from outside may be about to signal it */
    weft__io_done(rt);
    weft__slab_group_done(&rt->blocks, false);
    weft__wheels_free(rt);
    weft__free(rt->shards);
    weft__guests_done(&rt->guests);
    weft__free(rt->workers);
    weft__free(rt);
}

void weft__rt_hold(struct weft_rt *rt)
{
    weft__held_one_more(&rt->held);
}

static void held_change(struct weft_rt *rt, int64_t change)
{
    if (weft__held_change(&rt->held, change)) memory_done(rt);
}

void weft__rt_release(struct weft_rt *rt)
{
    held_change(rt, -1);
}

/* Blocks that were handed out and not freed by a worker: freed from outside, or still to be. */
static int64_t blocks_outside(const struct weft_rt *rt)
{
    uint64_t count = weft__guests_out(&rt->guests);
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        const struct weft__slab *slab = &rt->workers[i].slab;
        count += load_relaxed(&slab->allocated) - load_relaxed(&slab->freed); /* relaxed, both: who wrote them has been waited for */
    }
    return (int64_t)count;
}

/* No thread, no task, and nobody inside a spawn. */
static void parts_done(struct weft_rt *rt)
{
    for (uint32_t i = 0; i < rt->worker_count; i++)
        weft__bias_number_free(rt->workers[i].number);
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        weft__overflow_done(&rt->workers[i].over);
        weft__stack_magazine_flush(&rt->workers[i].magazine);
    }
    weft__stack_sizes_done(&rt->stack_sizes);
    weft__stacks_done(&rt->stacks);
    weft__guests_close(&rt->guests);
    held_change(rt, blocks_outside(rt) - WEFT__HELD_OPEN);
}

/* Its threads have ended, and with them everybody who could use it but by a handle. */
static void dismantle(struct weft_rt *rt)
{
    weft__fork_delist(rt);
    weft__spent_flush_outside(rt);
    weft__unread_done(&rt->unread);
    weft__clock_run_out(rt); /* one that stands has nobody else to move it for its sleepers */
    weft__io_stop(rt);
    parts_done(rt);
}

static int files_check(const struct weft_rt *rt)
{
    int r = rt->opts.files == WEFT_FILES_IO_URING ? weft__files_why_not(rt->driver) : 0;
    if (r < 0) fprintf(stderr, "weft: WEFT_FILES=io_uring: there is none here: %s\n", weft__err_name(r));
    return r;
}

int weft_rt_new(const weft_rt_opts *opts, weft_rt **into)
{
    int before =
        weft__errno_save(); /* the program's: what is not there, and what the kernel does not know, is no error */
    int r = weft__rt_build(opts, false, into);
    weft__errno_restore(before);
    return r;
}

int weft__rt_build(const weft_rt_opts *opts, bool as_told, weft_rt **into)
{
    if (!into) return -EINVAL;
    int r = weft__fork_ready();
    if (r < 0) return r;
    struct weft_rt *rt = weft__alloc_aligned(sizeof(*rt), WEFT__CACHE_LINE);
    if (!rt) return -ENOMEM;
    if (opts) rt->opts = *opts;
    store_relaxed(&rt->event_fd, -1); /* relaxed: not shared yet */
    weft__host_init(&rt->host);
    weft__unread_init(&rt->unread);
    weft__deaf_init(&rt->deaf);
#if defined(WEFT_DEBUG)
    weft__lock_init(&rt->spent_lock, WEFT__RANK_SLAB);
#endif
    r = weft__options_fill(&rt->opts);
    if (r < 0) goto out_free;
    if (as_told) {
        rt->opts.workers = opts->workers;
        rt->opts.paused = opts->paused;
    }
    snprintf(rt->name, sizeof(rt->name), "%s", rt->opts.name ? rt->opts.name : "weft");
    rt->current_thread = rt->opts.workers < 0;
    rt->task_hooks = rt->opts.on_task_spawn || rt->opts.on_task_end;
    rt->worker_count = rt->current_thread ? 1 : (uint32_t)rt->opts.workers;
    r = -ENOMEM;
    rt->workers = weft__alloc_aligned(rt->worker_count * sizeof(struct weft__worker), WEFT__CACHE_LINE);
    if (!rt->workers) goto out_free;
    rt->shards = weft__alloc_aligned(rt->worker_count * sizeof(struct weft__shard), WEFT__CACHE_LINE);
    if (!rt->shards) goto out_workers;
    weft__clock_init(&rt->clock, rt->opts.paused);
    r = weft__wheels_new(rt);
    if (r < 0) goto out_shards;
    r = weft__io_new(rt);
    if (r < 0) goto out_wheels;
    r = files_check(rt);
    if (r == 0) r = parts_init(rt);
    if (r < 0) goto out_io;
    weft__fork_enlist(rt); /* before its threads: a hook of theirs may fork */
    if (!rt->current_thread) r = threads_start(rt);
    if (r < 0) goto out_parts;
    if (rt->opts.make_default) store_release(&default_rt, rt); /* [rt-default] with current: the runtime is built */
    *into = rt;
    return 0;

out_parts:
    dismantle(rt);
    return r;
out_io:
    weft__io_stop(rt);
    weft__io_done(rt);
out_wheels:
    weft__wheels_free(rt);
out_shards:
    weft__free(rt->shards);
out_workers:
    weft__free(rt->workers);
out_free:
    weft__free(rt);
    return r;
}

/* Only its memory is here, as it was at the moment of the fork. It stays: handles refer to it, and this thread may stand on one of its stacks. Its fds are the
 * parent's too, who would hear what is written to them. */
void weft__rt_lose(struct weft_rt *rt)
{
    struct weft_rt *expected = rt;
    store_relaxed(&rt->stage, WEFT__LOST); /* relaxed, all: this process has one thread */
    store_relaxed(&rt->event_fd, -1);
    weft__host_init(&rt->host);
    for (uint32_t i = 0; i < rt->worker_count; i++)
        weft__park_init(&rt->workers[i].park); /* who slept in its port would be told by an event */
    if (rt->driver) weft__driver_lose(rt->driver);
    (void)cas_relaxed(&default_rt, &expected, NULL);
}

/* ---- entering ---- */

weft_rt *weft_rt_enter(weft_rt *rt)
{
    struct weft__here *here = weft__here();
    weft_rt *before = here->entered;
    here->entered = rt;
    return before;
}

weft_rt *weft_rt_current(void)
{
    struct weft__here *here = weft__here();
    if (here->worker) return here->worker->rt;
    if (here->entered) return here->entered;
    return load_acquire(&default_rt); /* [rt-default] with new */
}

unsigned weft_rt_workers(const weft_rt *rt)
{
    return !rt || rt->current_thread ? 0 : rt->worker_count;
}

/* ---- stopping ---- */

/* Nobody may be inside a turn, or begin one, while the memory goes. One who waits in it is sent home. */
static bool stop_turning(struct weft_rt *rt)
{
    if (!exchange_acquire(&rt->turning, true)) return true; /* [rt-turn] with the end of the last turn */
    weft__unpark(&rt->workers[0].park);
    return false;
}

/* Tasks, jobs and file operations end, and nobody turns it any more. */
static int stop_what_runs(struct weft_rt *rt, int64_t timeout_ns)
{
    int64_t until = weft__clock_later(weft__clock_now(), timeout_ns);
    int r = weft__stop_tasks(rt, timeout_ns);
    if (r < 0) weft__blocking_name_running(&rt->blocking); /* a task may wait for one of its jobs */
    if (r == 0) r = weft__blocking_stop(&rt->blocking, until);
    if (r == 0) r = weft__files_settle(rt->driver, until);
    if (r < 0) return r;
    return rt->current_thread && !stop_turning(rt) ? -EBUSY : 0;
}

int weft_rt_stop(weft_rt *rt, int64_t timeout_ns)
{
    if (!rt) return 0;
    int r = weft__stop_begins(rt);
    if (r < 0) return r;
    r = stop_what_runs(rt, timeout_ns);
    if (r < 0) {
        weft__fork_stops_not(rt);
        return r;
    }
    struct weft__here *here = weft__here();
    if (here->entered == rt) here->entered = NULL; /* whoever stops it has left it */
    struct weft_rt *expected = rt;
    (void)cas_relaxed(&default_rt, &expected, NULL); /* relaxed: whoever still uses it is wrong in any order */
    weft__monitor_stop(rt);
    if (rt->current_thread) {
        weft__spent_flush(&rt->workers[0]);
        store_release(
            &rt->stage,
            WEFT__STOPPED); /* [rt-stage] with the clock: threads outside that sleep on it */
    } else {
        threads_stop(rt);
    }
    dismantle(rt);
    weft__call_forget(); /* for whoever counts memory: a thread that goes on keeps it anew */
    return 0;
}

/* ---- statistics ---- */

static void add_counts(const struct weft__worker *w, weft_stats *s)
{
    s->spawned += load_relaxed(&w->counts.spawned); /* relaxed, all: counts */
    s->completed += load_relaxed(&w->counts.completed);
    s->polls += load_relaxed(&w->counts.polls);
    s->steals += load_relaxed(&w->counts.steals);
    s->stolen += load_relaxed(&w->counts.stolen);
    s->parks += load_relaxed(&w->counts.parks);
    s->wakes += load_relaxed(&w->counts.wakes);
    s->spills += load_relaxed(&w->counts.spills);
    s->inlined += load_relaxed(&w->counts.inlined);
    s->spurious += load_relaxed(&w->counts.spurious);
    s->rescued += load_relaxed(&w->counts.rescued);
}

void weft_rt_stats(const weft_rt *rt, weft_stats *into)
{
    if (!into) return;
    memset(into, 0, sizeof(*into));
    if (!rt) return;
    for (uint32_t i = 0; i < rt->worker_count; i++) add_counts(&rt->workers[i], into);
    into->spawned += load_relaxed(&rt->spawned_outside); /* relaxed, both: counts */
    into->unread_failures = load_relaxed(&rt->unread.total);
    weft__files_count(rt->driver, &into->file_ring, &into->file_late);
    /* In the child of a fork its lock may be held for ever. The cast: it is taken. */
    if (!weft__rt_is_lost(rt)) weft__blocking_stats((struct weft__blocking *)(uintptr_t)&rt->blocking, into);
}

int weft_rt_files(const weft_rt *rt)
{
    if (!rt) return -EINVAL;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    return weft__files_why_not(rt->driver);
}

int weft_rt_worker_stats(const weft_rt *rt, unsigned worker, weft_stats *into)
{
    if (!rt || !into || worker >= rt->worker_count) return -EINVAL;
    memset(into, 0, sizeof(*into));
    add_counts(&rt->workers[worker], into);
    return 0;
}
