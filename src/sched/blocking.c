/* SPDX-License-Identifier: MIT
 *
 * blocking - a thread's life: called, busy, spinning, idle, ended; the idea is in blocking.h.
 */
#include "sched/sched.h"

#include "base/alloc.h"
#include "sched/blocking.h"
#include "sys/clock.h"
#include "sys/fork.h"
#include "task/context.h"
#include "task/orphan.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Jobs that are named. Doubled: a stop that does not come to its end fills twice as many screens. */
#define NAMED_MAX 32

/* What there is to say about a job. */
struct title {
    const char *name; /* NULL: ask the linker */
    void (*fn)(void);
};

struct blocking_hand {
    struct weft__hand hand;
    struct weft__blocking *pool; /* constant */
    struct weft__thread thread;
    struct weft__thread_exit ending; /* it is told when the thread ends */
    struct weft__link all; /* in pool->hands                              [jobs.lock] */
    struct weft__job *job; /* that runs; NULL: none. Written under the lock, read by itself */
    weft_call call;        /* of that job */
    struct title title;    /* of that job                                 [jobs.lock] */
    const _Atomic uint32_t *rung; /* the job waits until this is not 0; NULL: it runs [jobs.lock] */
};

static _Thread_local struct blocking_hand *self; /* NULL: this thread is none of a pool */

/* ---- one job ---- */

int64_t weft__call_now(const weft_call *call)
{
    typedef int64_t six(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    const uint64_t *a = call->arg;
    /* As in weft_go: callees do not see what they do not ask for, and leave the rest of the
     * register as they like. */
    int64_t ret = ((six *)call->fn)(a[0], a[1], a[2], a[3], a[4], a[5]);

    switch (call->ret_bytes) {
    case 1:
        return (int8_t)ret;
    case 2:
        return (int16_t)ret;
    case 4:
        return (int32_t)ret;
    default:
        return ret;
    }
}

bool weft__blocking_is_here(const struct weft_lane *lane)
{
    return self && self->job && self->job->lane == &lane->lane;
}

bool weft__blocking_is_thread_of(const struct weft__blocking *pool)
{
    return self && self->pool == pool;
}

/* "resize (/bin/server+0x1234)", or what can be told of it. */
static void print_title(const struct title *t)
{
    Dl_info info;
    const void *at = (const void *)(uintptr_t)t->fn;

    if (t->name) {
        fprintf(stderr, "'%s'", t->name);
    } else if (!dladdr(at, &info) || !info.dli_fname) {
        fprintf(stderr, "at %p", at);
    } else if (info.dli_sname) {
        fprintf(stderr, "'%s'", info.dli_sname);
    } else {
        fprintf(stderr, "at %s+0x%zx", info.dli_fname,
                (size_t)((const char *)at - (const char *)info.dli_fbase));
    }
}

static void fork_child_returns(const struct blocking_hand *h)
{
    flockfile(stderr);
    fputs("weft: the child of a fork went back into blocking job ", stderr);
    print_title(&h->title);
    fputs(", whose runtime stayed with the parent: end it by exit, _exit or exec\n", stderr);
    funlockfile(stderr);
    weft__process_end(WEFT__ORPHAN_CODE);
}

static int64_t run_job(struct blocking_hand *h)
{
    struct weft_rt *rt = h->pool->rt;
    int64_t ret = weft__call_now(&h->call);

    if (__builtin_expect(weft__forked && weft__rt_is_lost(rt), 0)) fork_child_returns(h);
    weft__here()->entered = rt; /* whatever the job has entered */
    return ret;
}

/* pthread_exit in a job: whoever awaits it would wait for ever. */
WEFT__UNSANITIZED static void thread_ended(struct weft__thread_exit *unused)
{
    (void)unused;
    if (!self || !self->job) return;
    fputs("weft: a thread ended inside blocking job ", stderr);
    print_title(&self->title);
    fputs(
        ": pthread_exit and pthread_cancel end a thread of the pool, not a job; return from it instead\n",
        stderr);
    abort();
}

/* ---- a job that waits ---- */

static void hand_waits(const _Atomic uint32_t *rung)
{
    struct weft__blocking *pool = self->pool;

    if (weft__forked && weft__rt_is_lost(pool->rt)) return; /* the lock may be held for ever */
    weft__lock_take(&pool->jobs.lock);
    self->rung = rung;
    weft__lock_drop(&pool->jobs.lock);
    if (rung) weft__clock_nudge(pool->rt); /* it may be all that the clock had to wait for */
}

/* Holds: jobs.lock. Jobs that wait: inside of themselves, or for their turn behind others of their lane. */
static uint32_t count_waiting(struct weft__blocking *pool)
{
    uint32_t count = 0;

    weft__list_each (link, &pool->hands) {
        const struct blocking_hand *h = weft__container_of(link, struct blocking_hand, all);
        /* relaxed: who rings is awake, or it is the caller */
        if (h->job && h->rung && load_relaxed(h->rung) == 0) count++;
    }
    weft__list_each (link, &pool->jobs.lanes) {
        const struct weft__lane *lane = weft__container_of(link, struct weft__lane, all);
        count += lane->queued - lane->may;
    }
    return count;
}

/* A job holds the clock before it is queued, and until it is out of the queue and off its thread: so under the lock all that are counted are among the holds. */
bool weft__blocking_holds(struct weft__blocking *pool, const _Atomic uint32_t *holds)
{
    weft__lock_take(&pool->jobs.lock);
    /* the number is ordered by the lock, as said; [clock-holds] with release */
    bool some_go_on = load_acquire(holds) > count_waiting(pool);
    weft__lock_drop(&pool->jobs.lock);
    return some_go_on;
}

/* ---- what follows from a job ---- */

/* Done once the lock is dropped. */
struct aftermath {
    struct weft_waker claimed;  /* or none */
    struct weft__own_job *late; /* abandoned; NULL: none */
    struct weft_lane *lane; /* that its owner has freed, and this was its last job; NULL: none */
    int64_t ret;
};

/* Holds: jobs.lock. */
static struct aftermath finish(struct blocking_hand *h, int64_t ret)
{
    struct weft__job *job = h->job;
    struct weft_lane *lane = weft__container_of(job->lane, struct weft_lane, lane);
    bool abandoned = job->abandoned;
    struct aftermath a = {.claimed = weft__job_finish(&h->pool->jobs, job, ret), .ret = ret};

    if (abandoned) a.late = weft__container_of(job, struct weft__own_job, job);
    if (lane->freed && lane->lane.running == 0 && lane->lane.queued == 0) {
        weft__lane_done(&lane->lane);
        a.lane = lane;
    }
    h->job = NULL;
    return a;
}

static void settle(const struct aftermath *a)
{
    weft__waker_push(a->claimed, &weft__sched);
    if (a->late) {
        a->late->dispose((void *)(uintptr_t)a->late->call.arg[0], a->ret);
        weft__free(a->late);
        weft__clock_release(&self->pool->rt->clock); /* its frame has left that to us */
        weft__clock_nudge(self->pool->rt);
    }
    weft__free(a->lane);
}

/* ---- waiting ---- */

static bool worth_a_look(const struct weft__jobs *jobs)
{
    return load_relaxed(&jobs->ready) > 0 ||
           load_relaxed(&jobs->closing); /* relaxed: hints; the lock follows */
}

/* `sched_yield` now and then: the one we wait for may need this very CPU. */
static void spin(const struct weft__blocking *pool)
{
    int64_t until = weft__clock_now() + pool->spin_ns;
    for (unsigned round = 1; !worth_a_look(&pool->jobs); round++) {
        for (int i = 0; i < 4 && !worth_a_look(&pool->jobs); i++)
            cpu_pause();
        if (round % 16 == 0) weft__thread_yield();
        if (round % 4 == 0 && weft__clock_now() >= until) return;
    }
}

/* False: nobody has called it for long enough. Holds: jobs.lock when it returns. */
static bool sleep_until_called(struct blocking_hand *h)
{
    struct weft__jobs *jobs = &h->pool->jobs;
    bool called = weft__park(&h->hand.park, weft__clock_now() + h->pool->keep_ns);

    weft__lock_take(&jobs->lock);
    if (!called) {
        if (weft__jobs_unrest(jobs, &h->hand)) return false;
        weft__lock_drop(&jobs->lock);
        while (
            !weft__park(&h->hand.park, WEFT__NEVER)) { /* it touches us: we must not end before */
        }
        weft__lock_take(&jobs->lock);
    }
    jobs->coming--;
    return true;
}

/* Holds: jobs.lock when it returns. False: its time is over. */
static bool rest(struct blocking_hand *h, bool spins)
{
    if (!spins) return sleep_until_called(h);
    spin(h->pool);
    weft__lock_take(&h->pool->jobs.lock);
    weft__jobs_spun(&h->pool->jobs);
    return true;
}

/* ---- the loop ---- */

/* Holds: jobs.lock. */
static void take(struct blocking_hand *h)
{
    h->job = weft__job_take(&h->pool->jobs);
    if (!h->job) return;
    h->call = *h->job->call;
    h->title = (struct title){h->job->name, h->call.fn};
}

/* Holds: jobs.lock, before and after. */
static void work(struct blocking_hand *h)
{
    struct weft__jobs *jobs = &h->pool->jobs;
    struct aftermath before = {0};
    bool may_spin = false;
    bool stays = true;

    while (stays) {
        struct weft__calls calls = {0};
        bool spins = false;
        take(h);
        if (!h->job && load_relaxed(&jobs->closing)) break; /* relaxed: written under the lock */
        if (h->job) {
            weft__jobs_call(jobs, &calls);
        } else {
            spins = weft__jobs_rest(jobs, &h->hand, may_spin);
        }
        weft__lock_drop(&jobs->lock);
        settle(&before);
        before = (struct aftermath){0};
        if (h->job) {
            (void)weft__blocking_call(
                h->pool, &calls); /* who does not come was counted as such; this one is there */
            int64_t ret = run_job(h);
            weft__lock_take(&jobs->lock);
            before = finish(h, ret);
            may_spin = true;
        } else {
            stays = rest(h, spins);
            may_spin = false;
        }
    }
    if (weft__waker_is_none(before.claimed) && !before.late && !before.lane) return;
    weft__lock_drop(&jobs->lock);
    settle(&before);
    weft__lock_take(&jobs->lock);
}

static void hand_free(struct blocking_hand *h)
{
    if (!h) return;
    weft__thread_join(&h->thread);
    weft__free(h);
}

/* One less. Holds: jobs.lock. Whoever waits for all to end sleeps on the number. */
static void count_down(struct weft__jobs *jobs)
{
    store_relaxed(&jobs->live,
                  load_relaxed(&jobs->live) - 1); /* relaxed, both: written under the lock */
}

static void thread_main(void *arg)
{
    struct blocking_hand *h = arg;
    struct weft__blocking *pool = h->pool;
    struct weft__jobs *jobs = &pool->jobs;

    self = h;
    weft__here()->entered = pool->rt;
    weft__here()->waits = hand_waits;
    (void)weft__thread_at_exit(&h->ending, thread_ended); /* without memory for it nobody is told */
    weft__lock_take(&jobs->lock);
    weft__list_push_back(&pool->hands, &h->all);
    jobs->coming--;
    work(h);
    weft__list_remove(&h->all);
    struct blocking_hand *before = pool->ended;
    pool->ended = h;
    count_down(jobs);
    weft__lock_drop(&jobs->lock);
    (void)weft__futex_wake(&jobs->live, 1); /* the pool is there until we are joined */
    hand_free(before);
}

/* ---- starting ---- */

static int start_thread(struct weft__blocking *pool)
{
    char name[WEFT__THREAD_NAME_BYTES];
    struct blocking_hand *h = weft__alloc(sizeof(*h));
    if (!h) return -ENOMEM;

    weft__lock_take(&pool->jobs.lock);
    uint32_t number = pool->started_count++;
    weft__lock_drop(&pool->jobs.lock);
    snprintf(name, sizeof(name), "%.9s-b%u", pool->rt->name, number % 10000);
    weft__link_init(&h->hand.idle);
    weft__link_init(&h->all);
    weft__park_init(&h->hand.park);
    h->pool = pool;
    struct weft__thread_options o = {.name = name,
                                     .stack_bytes = pool->rt->opts.thread_stack_bytes};
    int r = weft__thread_start(&h->thread, &o, thread_main, h);
    if (r < 0) weft__free(h);
    return r;
}

/* A thread that was counted does not come. If none is there at all, nobody would ever take what
 * is queued. */
static void did_not_start(struct weft__blocking *pool, int error)
{
    struct weft__jobs *jobs = &pool->jobs;
    struct weft__wake_chain failed = WEFT__WAKE_CHAIN_INIT;

    weft__lock_take(&jobs->lock);
    jobs->coming--;
    count_down(jobs);
    if (load_relaxed(&jobs->live) == 0)
        failed = weft__jobs_fail_all(jobs, error); /* relaxed: under the lock */
    weft__lock_drop(&jobs->lock);
    weft__wake_chain_push(&failed, &weft__sched);
}

bool weft__blocking_call(struct weft__blocking *pool, const struct weft__calls *calls)
{
    bool all_come = true;
    for (uint32_t i = 0; i < calls->wakes; i++)
        weft__unpark(&calls->wake[i]->park);
    for (uint32_t i = 0; i < calls->starts; i++) {
        int r = start_thread(pool);
        if (r == 0) continue;
        did_not_start(pool, r);
        all_come = false;
    }
    return all_come;
}

/* ---- the pool ---- */

void weft__blocking_init(struct weft__blocking *pool, struct weft_rt *rt)
{
    weft__jobs_init(&pool->jobs);
    pool->rt = rt;
    pool->keep_ns = rt->opts.blocking_keep_ms * WEFT__NS_PER_MS;
    pool->spin_ns = rt->opts.spin_us * INT64_C(1000);
    pool->common.rt = rt;
    weft__link_init(&pool->hands);
    weft__lane_init(&pool->jobs, &pool->common.lane, rt->opts.blocking_threads);
    pool->names = (struct weft_lane){.rt = rt, .name = "names"};
    weft__lane_init(&pool->jobs, &pool->names.lane, WEFT__NAMES_THREADS);
}

void weft__blocking_name_running(struct weft__blocking *pool)
{
    struct { /* copies: nothing is printed under the lock */
        struct title title;
        struct weft_lane lane;
    } busy[NAMED_MAX];
    uint32_t count = 0;
    uint32_t named = 0;

    weft__lock_take(&pool->jobs.lock);
    weft__list_each (link, &pool->hands) {
        const struct blocking_hand *h = weft__container_of(link, struct blocking_hand, all);
        if (!h->job || count++ >= NAMED_MAX) continue;
        busy[named].title = h->title;
        busy[named++].lane = *weft__container_of(h->job->lane, struct weft_lane, lane);
    }
    weft__lock_drop(&pool->jobs.lock);
    flockfile(stderr);
    for (uint32_t i = 0; i < named; i++) {
        fputs("weft: blocking job ", stderr);
        print_title(&busy[i].title);
        if (busy[i].lane.name[0]) fprintf(stderr, " of lane '%s'", busy[i].lane.name);
        fputs(" does not end\n", stderr);
    }
    if (count > named) fprintf(stderr, "weft: %u more blocking jobs do not end\n", count - named);
    funlockfile(stderr);
}

/* One by one: each may be gone once it was called. */
static void call_all_idle(struct weft__jobs *jobs)
{
    for (;;) {
        weft__lock_take(&jobs->lock);
        struct weft__link *first = weft__list_pop_front(&jobs->idle);
        if (first) {
            jobs->idle_count--;
            jobs->coming++;
        }
        weft__lock_drop(&jobs->lock);
        if (!first) return;
        weft__unpark(&weft__container_of(first, struct weft__hand, idle)->park);
    }
}

static void lanes_free(struct weft__blocking *pool)
{
    weft__list_each_safe (link, after, &pool->jobs.lanes) {
        struct weft_lane *lane = weft__container_of(
            weft__container_of(link, struct weft__lane, all), struct weft_lane, lane);
        weft__lane_done(&lane->lane);
        if (lane != &pool->common && lane != &pool->names) weft__free(lane);
    }
}

int weft__blocking_stop(struct weft__blocking *pool, int64_t until_ns)
{
    struct weft__jobs *jobs = &pool->jobs;
    uint32_t left;

    weft__lock_take(&jobs->lock);
    store_relaxed(&jobs->closing, true); /* relaxed: who acts on it looks again under the lock */
    struct weft__wake_chain cancelled = weft__jobs_fail_all(jobs, -ECANCELED);
    weft__lock_drop(&jobs->lock);
    weft__wake_chain_push(&cancelled, &weft__sched);
    call_all_idle(jobs);
    while ((left = load_relaxed(&jobs->live)) > 0) { /* relaxed: the join below orders */
        if (weft__clock_now() >= until_ns) {
            weft__blocking_name_running(pool);
            return -ETIME;
        }
        (void)weft__futex_wait(&jobs->live, left, until_ns);
    }
    weft__lock_take(&jobs->lock); /* behind the last one's drop */
    struct blocking_hand *last = pool->ended;
    pool->ended = NULL;
    weft__lock_drop(&jobs->lock);
    hand_free(last);
    lanes_free(pool);
    return 0;
}

void weft__blocking_stats(struct weft__blocking *pool, weft_stats *into)
{
    struct weft__jobs *jobs = &pool->jobs;

    weft__lock_take(&jobs->lock);
    into->blocking_threads = load_relaxed(&jobs->live); /* relaxed: under the lock */
    into->blocking_idle = jobs->idle_count + jobs->spinning;
    into->blocking_jobs = jobs->done_count;
    weft__list_each (link, &jobs->lanes)
        into->blocking_queued += weft__container_of(link, struct weft__lane, all)->queued;
    weft__lock_drop(&jobs->lock);
}
