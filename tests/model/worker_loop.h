/* SPDX-License-Identifier: MIT
 *
 * worker_loop - the worker's loop as it is, for model tests: weft__worker_main takes, offers, searches,
 * re-scans, parks, is woken, polls and leaves, with the library's own queues, at a ring of 4; a runtime
 * around it, jobs that it polls, and threads outside.
 *
 *     begin(2, 3);                              two workers and three jobs to come
 *     model_thread(worker_runs, &workers[0]);   ... and who pushes
 *     end();                                    every job was polled once; all rights were given back
 *
 * Work that is left behind shows as a lost wake-up: the poll that comes last stops the runtime, so
 * when it does not come everybody sleeps for ever.
 *
 * With next_has_fds each worker has an fd, and sleeps in its port (io.c): a kernel that reports an edge once, and an event that a waker signals.
 *
 * Rounds of the search: one (spin_us is 0). The clock stands still: a backlog is offered when a
 * case says so, and who was stolen from in vain is shunned from then on. What the loop does for a real thread
 * alone (its stack, its signal stack, its timers) is left out.
 */
#ifndef MODEL_WORKER_LOOP_H
#define MODEL_WORKER_LOOP_H

#define WEFT__RUNQ_CAP       4
#define WEFT__HAND           1
#define WEFT__HAND_LEAST     4
#define WEFT__OVERFLOW_BATCH 2
#define weft__alloc          model_alloc
#define weft__free           model_free

static int signal_event(int fd);
#define MODEL_EVENT_SIGNAL(fd) signal_event(fd)

#include "base/err.h"
#include "../harness/ending.h"
#include "sched/idle.c"
#include "sched/inbox.c"
#include "sched/inject.c"
#include "sched/overflow.c"
#include "sched/park.c"
#include "sched/runq.c"
#include "sched/sched.h"
#include "sched/slot.c"
#include "sched/watch.c"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

#include <string.h>

/* ---- a thread of its own for each: they are one to the compiler ---- */

static struct weft__here heres[MODEL_THREADS_MAX];
#define weft__here() (&heres[model_self()])

/* ---- broken twins: what the loop calls, and gets something else ---- */

enum {
    HONEST,
    INJECT_NOT_SCANNED,     /* a worker on its way to sleep does not look there again */
    INBOX_NOT_SCANNED,      /* nor there */
    RINGS_NOT_SCANNED,      /* nor there */
    OUTSIDER_WITHOUT_FENCE, /* a thread outside looks for sleepers, perhaps before its push */
    OFFER_WITHOUT_FENCE,    /* the look in the loop is a hint */
    INBOX_WITHOUT_FENCE,    /* who pushed there looks without one */
    RIGHT_KEPT,             /* a worker that found something stays a searcher in the idle word */
    FINDER_KEEPS_QUIET,     /* gives the right back, and passes nothing on */
    STOPS_AFTER_THE_WAKE,   /* the stage is stored when all have been unparked */
    WAKER_KEEPS_SILENT,     /* stores the token, and signals nothing to who sleeps in a port */
    GATHERS_BY_A_STORE,     /* who gathers another's ring takes its tasks without a read-modify-write */
};

static bool twin_inject_empty(struct weft__inject *q)
{
    return model_mutant == INJECT_NOT_SCANNED || weft__inject_empty(q);
}

static bool twin_inbox_empty(struct weft__inbox *inbox)
{
    return model_mutant == INBOX_NOT_SCANNED || weft__inbox_empty(inbox);
}

static uint32_t twin_runq_length(struct weft__runq *ring)
{
    return model_mutant == RINGS_NOT_SCANNED ? 0 : weft__runq_length(ring);
}

static bool twin_idle_look(const struct weft__idle *idle)
{
    return model_mutant == OFFER_WITHOUT_FENCE ? weft__idle_hint(idle) : weft__idle_look(idle);
}

static bool twin_idle_look_fenced(const struct weft__idle *idle)
{
    return model_mutant == OFFER_WITHOUT_FENCE ? weft__idle_hint(idle) : weft__idle_look_fenced(idle);
}

static bool twin_search_end(struct weft__idle *idle, uint32_t worker)
{
    if (model_mutant == RIGHT_KEPT) return false;
    return weft__idle_search_end(idle, worker) && model_mutant != FINDER_KEEPS_QUIET;
}

static uint32_t twin_submit(struct weft__idle *idle)
{
    if (model_mutant != OUTSIDER_WITHOUT_FENCE) return weft__idle_submit(idle);
    return weft__idle_wake_one(idle, WEFT__IDLE_NOBODY);
}

static bool twin_wake(struct weft__idle *idle, uint32_t worker)
{
    if (model_mutant != INBOX_WITHOUT_FENCE) return weft__idle_wake(idle, worker);
    uint64_t word = load_relaxed(word_of(idle, worker));
    while (word & bit_of(worker)) {
        uint64_t next = word - bit_of(worker) + SEARCHER;
        if (cas_acquire(word_of(idle, worker), &word, next)) return true;
    }
    return false;
}

static struct weft_task *twin_runq_steal(struct weft__runq *ring)
{
    if (model_mutant != GATHERS_BY_A_STORE) return weft__runq_steal(ring);
    uint64_t head = load_acquire(&ring->head);
    if (head >= load_acquire(&ring->tail)) return NULL;
    struct weft_task *task = load_relaxed(weft__runq_slot(ring, head));
    store_release(&ring->head, head + 1);
    return task;
}

/* ---- the loop ---- */

#define weft__inject_empty    twin_inject_empty
#define weft__inbox_empty     twin_inbox_empty
#define weft__runq_length     twin_runq_length
#define weft__idle_look       twin_idle_look
#define weft__idle_look_fenced twin_idle_look_fenced
#define weft__idle_search_end twin_search_end
#define weft__runq_steal      twin_runq_steal
#include "sched/theft.c"
#undef weft__runq_steal
#include "sched/find.c"
#undef weft__runq_length
#define weft__idle_submit twin_submit
#define weft__idle_wake   twin_wake
#include "sched/io.c"
#include "sched/place.c"
#include "sched/poll.c"
#include "sched/worker.c"

/* ---- what it calls elsewhere ---- */

#define NOW INT64_C(1000000000)

int64_t weft__clock_now(void)
{
    return NOW;
}

uint64_t weft__rand_below(struct weft__rand *r, uint64_t bound)
{
    (void)r;
    (void)bound;
    return 0;
}

void weft__slab_flush(struct weft__slab *slab)
{
    (void)slab;
}

void weft__slab_share(struct weft__slab *slab)
{
    (void)slab;
}

int weft__overflow_thread_init(struct weft__altstack *a)
{
    (void)a;
    return -ENOMEM;
}

struct weft__thread_stack weft__thread_stack(void)
{
    return (struct weft__thread_stack){0};
}

void weft__worker_inlines_on(struct weft__worker *w, char *lo, size_t bytes)
{
    (void)w;
    (void)lo;
    (void)bytes;
}

bool weft__rt_await_opening(struct weft_rt *rt_)
{
    (void)rt_;
    return true;
}

void weft__rt_begins(struct weft_rt *rt_)
{
    (void)rt_;
}

int weft__thread_set_timer_slack(uint64_t slack_ns)
{
    (void)slack_ns;
    return 0;
}

void weft__quit_watch(void)
{
}

#if defined(WEFT_DEBUG)
void weft__scribble(void)
{
}
#endif

/* No case gets there: a task here has a handle that nobody drops, no joiner and no locals, and all
 * are pushed by workers or by weft__rt_push_outside. */
static void unreached(void)
{
    model_fail_at("not part of the model", __FILE__, __LINE__);
}

/* clang-format off */
const uint64_t weft__no_stack;
bool weft__spent_waits(const struct weft_task *task) { (void)task; return false; }
struct weft_task *weft__spent_put(struct weft__spent *spent, struct weft_task *task) { (void)spent; unreached(); return task; }
void weft__spent_flush(struct weft__worker *w) { (void)w; }
uint32_t weft__worker_look(struct weft__worker *w) { (void)w; return 0; }
uint32_t weft__wheel_look(struct weft_rt *rt, struct weft__wheel *wheel) { (void)rt; (void)wheel; return 0; }
int64_t weft__worker_next_look(struct weft__worker *w) { (void)w; return WEFT__NEVER; }
void weft__worker_look_hurried(struct weft__worker *w) { (void)w; }
void weft__deaf_seen(struct weft__deaf *deaf, const struct weft_task *task) { (void)deaf; (void)task; unreached(); }
bool weft__kin_fails(struct weft__kin *kin, int failure) { (void)kin; (void)failure; unreached(); return false; }
void weft__kin_wins(struct weft__kin *kin) { (void)kin; unreached(); }
void weft__kin_leave(struct weft__kin *kin, struct weft_task *task) { (void)kin; (void)task; unreached(); }
void weft__kin_unlink(struct weft__kin *kin, struct weft_task *task) { (void)kin; (void)task; unreached(); }
void weft__kin_count_down(struct weft__kin *kin) { (void)kin; unreached(); }
void weft__stack_magazine_flush(struct weft__stack_magazine *magazine) { (void)magazine; }
bool weft__monitor_watches(const struct weft_rt *rt) { (void)rt; return true; }
void weft__monitor_trim(struct weft_rt *rt) { (void)rt; unreached(); }
bool weft__stack_sizes_are_warm(struct weft__stack_sizes *sizes, size_t keep) { (void)sizes; (void)keep; unreached(); return false; }
bool weft__worker_has_due(const struct weft__worker *w) { (void)w; return false; }
bool weft__clock_move_idle(struct weft_rt *rt, int64_t limit) { (void)rt; (void)limit; return false; }
void weft__unread_add(struct weft__unread *unread, const struct weft_site *site, int64_t failure) { (void)unread; (void)site; (void)failure; unreached(); }
void weft__watchers_wake(const struct weft_task *child, const struct weft__sched *sched) { (void)child; (void)sched; unreached(); }
void weft__locals_end(struct weft_task *task) { (void)task; unreached(); }
void weft__orphan_returns(void) { unreached(); __builtin_trap(); }
void weft__overflow_thread_done(struct weft__altstack *a) { (void)a; unreached(); }
void weft__rt_hold(struct weft_rt *rt) { (void)rt; unreached(); }
void weft__rt_release(struct weft_rt *rt) { (void)rt; unreached(); }
void weft__rt_signal(struct weft_rt *rt) { (void)rt; unreached(); }
struct weft_rt *weft__pool_rt(const struct weft_pool *pool) { (void)pool; unreached(); return NULL; }
weft_rt *weft_rt_current(void) { unreached(); return NULL; }
void weft__slab_free_foreign(struct weft__slab *slab, struct weft__block *block,
                             struct weft__slab_chunk *chunk)
{ (void)slab; (void)block; (void)chunk; unreached(); }
void weft__task_strip(struct weft_task *task) { (void)task; unreached(); }
void weft__thread_yield(void) { unreached(); }
/* clang-format on */

/* ---- ports ---- */

#define WORKERS_MAX 2
#define TASKS       5

static _Atomic uint32_t edges[WORKERS_MAX]; /* 1: something that nobody has fetched. The kernel's locks order it all */
static struct weft__port ports[WORKERS_MAX];
static bool next_has_fds; /* the next runtime has an fd in each port */

static int signal_event(int fd)
{
    if (model_mutant == WAKER_KEEPS_SILENT) return 0;
    (void)exchange_acq_rel(&edges[fd], 1);
    (void)weft__futex_wake(&edges[fd], 1);
    return 0;
}

static int port_wait(struct weft__port *port, struct weft__events *into, uint32_t most,
                     int64_t timeout_ns)
{
    into->count = 0;
    (void)most;
    while (exchange_acq_rel(&edges[port->event], 0) == 0) {
        if (timeout_ns == 0) return 0;
        (void)weft__futex_wait(&edges[port->event], 0, WEFT__NEVER);
    }
    return into->count = 1;
}

static uint32_t port_deliver(struct weft__port *port, const struct weft__events *events, bool own)
{
    (void)events;
    if (!own) (void)signal_event(port->event);
    return 0;
}

static const struct weft__driver_ops port_ops = {.wait = port_wait, .deliver = port_deliver};
static struct weft__driver driver = {.ops = &port_ops, .port_count = WORKERS_MAX, .ports = ports};

uint32_t weft__port_turn(struct weft__port *port, uint32_t most, bool own)
{
    struct weft__events events;
    return port_wait(port, &events, most, 0) > 0 ? port_deliver(port, &events, own) : 0;
}

static void port_init(uint32_t index, bool has_fds)
{
    ports[index].driver = &driver;
    ports[index].index = index;
    ports[index].event = (int)index;
    store_relaxed(&ports[index].fds, has_fds);
    store_relaxed(&ports[index].open, has_fds);
    store_relaxed(&edges[index], 0);
}

/* clang-format off */
int weft__driver_uring_probe(void) { unreached(); return 0; }
int weft__driver_open(struct weft__driver *driver) { (void)driver; unreached(); return 0; }
const char *weft__err_name(int error) { (void)error; unreached(); return ""; }
const char *weft__err_text(int error) { (void)error; unreached(); return ""; }
int weft__driver_new(const struct weft__driver_ops *ops, uint32_t port_count, struct weft__driver **into) { (void)ops; (void)port_count; (void)into; unreached(); return 0; }
void weft__driver_stop(struct weft__driver *d) { (void)d; unreached(); }
void weft__driver_let_go(struct weft__driver *d) { (void)d; unreached(); }
void weft__clock_nudge(struct weft_rt *rt) { (void)rt; unreached(); }
/* clang-format on */

/* ---- a runtime ---- */

static struct weft_rt rt;
static struct weft__worker workers[WORKERS_MAX];
static struct weft__shard shards[WORKERS_MAX];
static unsigned done_before_stop; /* written before the stage, read by who has seen it */

static void worker_init(uint32_t index)
{
    struct weft__worker *w = &workers[index];
    memset(w, 0, sizeof(*w));
    w->rt = &rt;
    w->index = index;
    w->tick_max = 100;
    weft__shun_init(&w->shun);
    w->shard = &shards[index];
    w->deals = true;
    weft__slot_init(&w->next, false);
    weft__runq_init(&w->ring);
    weft__overflow_init(&w->over);
    weft__park_init(&w->park);
    weft__inbox_init(&w->inbox);
    weft__shard_init(&shards[index], index);
    shards[index].port = &ports[index];
}

/* As rt.c does. */
static void stop(void)
{
    bool too_late = model_mutant == STOPS_AFTER_THE_WAKE;
    plain_write(&done_before_stop, 1);
    if (!too_late) store_release(&rt.stage, WEFT__STOPPED);
    for (uint32_t i = 0; i < rt.worker_count; i++)
        weft__unpark(&workers[i].park);
    if (too_late) store_release(&rt.stage, WEFT__STOPPED);
}

/* ---- tasks ---- */

struct job {
    struct weft_task task;
    unsigned until; /* the frame: how many must have begun before this one's poll ends */
    bool spawns;    /* it pushes all others behind it */
    bool meets;     /* it is in a crowd */
};

static struct job jobs[TASKS];
static unsigned polled[TASKS];
static _Atomic unsigned begun;
static unsigned goal;

static void spawn_others(void)
{
    struct weft__worker *w = weft__here()->worker;
    for (unsigned i = 1; i < goal; i++)
        weft__worker_push_back(w, &jobs[i].task);
    w->backlog_since = NOW - SHARE_AFTER_NS; /* this has lasted long enough for an offer */
    w->offer_in = 0;
}

/* As weft__here_meets, so often that it is a crowd. */
static void meet(void)
{
    weft__here()->met += CROWD_MEETINGS;
    weft__here()->met_at |= 1;
}

static weft_poll job_poll(void *frame, struct weft_cx *cx)
{
    (void)cx;
    struct job *job = weft__container_of(frame, struct job, until);
    unsigned until = plain_read(&job->until);
    model_assert(polled[job - jobs]++ == 0);
    if (job->meets) meet();
    if (fetch_add_acq_rel(&begun, 1) + 1 == goal) stop();
    while (load_acquire(&begun) < until)
        model_yield(); /* a long poll */
    if (job->spawns) spawn_others();
    return WEFT_READY;
}

static const struct weft_site job_site = {
    .poll = job_poll,
    .name = "job",
    .file = __FILE__,
    .frame_bytes = sizeof(unsigned),
};

static struct weft_task *job_new(unsigned index, unsigned until)
{
    struct job *job = &jobs[index];
    plain_write(&job->until, until);
    job->task.site = &job_site;
    weft__state_init(&job->task, 1);
    return &job->task;
}

static void begin(uint32_t worker_count, unsigned tasks)
{
    memset(&rt, 0, sizeof(rt));
    memset(jobs, 0, sizeof(jobs));
    memset(polled, 0, sizeof(polled));
    memset(heres, 0, sizeof(heres));
    goal = tasks;
    rt.worker_count = worker_count;
    rt.workers = workers;
    rt.shards = shards;
    weft__idle_init(&rt.idle, worker_count);
    weft__inject_init(&rt.inject);
    weft__inject_init(&rt.background);
    weft__watch_init(&rt.monitor.watch);
    store_relaxed(&rt.stage, WEFT__OPEN);
    store_relaxed(&begun, 0);
    plain_write(&done_before_stop, 0);
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        port_init(i, next_has_fds);
    next_has_fds = false;
    for (uint32_t i = 0; i < worker_count; i++)
        worker_init(i);
}

static void worker_runs(void *arg)
{
    weft__worker_main(arg);
    model_assert(plain_read(&done_before_stop) == 1);
}

static void end(void)
{
    model_join();
    for (unsigned i = 0; i < goal; i++) {
        model_assert(polled[i] == 1);
        model_assert(ending_detach(&jobs[i].task) == WEFT__STATE_FREE); /* it has ended */
    }
    if (model_mutant == RIGHT_KEPT) return;            /* to be seen by what follows from it */
    model_assert(weft__idle_searching(&rt.idle) == 0); /* every right was given back */
    model_assert(weft__idle_sleeping(&rt.idle) == 0);
}

/* ---- who pushes ---- */

static void push(unsigned index, unsigned until)
{
    struct weft_task *task = job_new(index, until);
    weft__rt_push_outside(&rt, task, task);
}

static void push_home_of(uint32_t worker, unsigned index, unsigned until)
{
    struct weft_task *task = job_new(index, until);
    store_relaxed(&task->place, (uint16_t)weft__place_home(worker));
    weft__rt_push_outside(&rt, task, task);
}

static void outsider_pushes_one(void *arg)
{
    (void)arg;
    push(0, 0);
}

static void outsider_pushes_pinned(void *arg)
{
    (void)arg;
    push_home_of(0, 0, 0);
}

static void outsider_stops(void *arg)
{
    (void)arg;
    stop();
}

/* ---- cases that go with a futex and with a port ---- */

__attribute__((unused)) static void one_from_outside(void)
{
    begin(1, 1);
    model_thread(worker_runs, &workers[0]);
    model_thread(outsider_pushes_one, NULL);
    end();
}

__attribute__((unused)) static void two_workers_one_from_outside(void)
{
    begin(2, 1);
    model_thread(worker_runs, &workers[0]);
    model_thread(worker_runs, &workers[1]);
    model_thread(outsider_pushes_one, NULL);
    end();
}

__attribute__((unused)) static void pinned_from_outside(void)
{
    begin(1, 1);
    model_thread(worker_runs, &workers[0]);
    model_thread(outsider_pushes_pinned, NULL);
    end();
}

__attribute__((unused)) static void stopped(void)
{
    begin(1, 0);
    model_thread(worker_runs, &workers[0]);
    model_thread(outsider_stops, NULL);
    end();
}

__attribute__((unused)) static void two_stopped(void)
{
    begin(2, 0);
    model_thread(worker_runs, &workers[0]);
    model_thread(worker_runs, &workers[1]);
    model_thread(outsider_stops, NULL);
    end();
}

/* Two workers make too many executions to go through: these are drawn at random. */
#define AT_RANDOM .pct_depth = 4, .executions_max = 50000

#endif
