/* SPDX-License-Identifier: MIT
 *
 * sched - workers and the runtime they make up: the structs that the files of this folder share.
 *
 *     spawn.c    a task's birth                       worker.c   the loop: take, poll, finish
 *     poll.c     one poll, and what follows from it   find.c     what a worker does when it has nothing: inject, steal, sleep
 *     handle.c   cancel, detach, references           join.c     waiting for a task
 *     guest.c    where other threads get blocks       pool.c     tasks in the program's own storage
 *     rt.c       building and joining the parts       stop.c     shutdown: gate and sweeps
 *     options.c  options and environment              main.c     WEFT_MAIN
 *     monitor.c  who watches them: watch.h, trace.h   shard.h    what brings work from outside
 *     fork.c     runtimes do not survive fork         quit.c     nor do threads that end inside a task
 *     signal.c   wakes from signal handlers           keep.c     who looks at the wheels, and when
 *     clock.c    what time it is                      io.c       who turns the driver, and sleeps in it
 *     theft.c    what a theft was worth               place.c    tasks with a place of their own: pinned, local, background
 *     blocking.c threads for code that blocks: job.h
 */
#ifndef WEFT_SCHED_SCHED_H
#define WEFT_SCHED_SCHED_H

#include "base/rand.h"
#include "base/slab.h"
#include "sched/blocking.h"
#include "sched/clock.h"
#include "sched/deaf.h"
#include "sched/guest.h"
#include "sched/held.h"
#include "sched/host.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/io.h"
#include "sched/keep.h"
#include "sched/monitor.h"
#include "sched/overflow.h"
#include "sched/park.h"
#include "sched/runq.h"
#include "sched/search.h"
#include "sched/shard.h"
#include "sched/slot.h"
#include "sched/spent.h"
#include "sched/theft.h"
#include "sched/unread.h"
#include "sys/stack.h"
#include "sys/stack_sizes.h"
#include "sys/thread.h"
#include "task/here.h"
#include "task/join.h"
#include "task/name.h"
#include "task/place.h"
#include "task/state.h"
#include "types.h"

#include <weft/rt.h>

/* Counters of one worker. The owner writes, anybody reads: relaxed on both sides. */
struct weft__counts {
    _Atomic uint64_t spawned;
    _Atomic uint64_t completed;     /* [rt-ended] */
    _Atomic uint64_t polls;         /* also the worker's tick: others see by it whether it moves */
    _Atomic uint64_t steals;        /* visits that brought something */
    _Atomic uint64_t stolen;        /* tasks */
    _Atomic uint64_t parks;
    _Atomic uint64_t wakes;         /* of other workers */
    _Atomic uint64_t spills;
    _Atomic uint64_t inlined;       /* children run inside their joiner's poll */
    _Atomic uint64_t spurious;      /* ends of a sleep that brought nothing */
    _Atomic uint64_t rescued;       /* tasks taken from behind a poll that did not end */
    _Atomic uint64_t gathered;      /* tasks of a crowd that it has taken in (theft.h) */
};

/* How long its polls have been of late: what is left for when it comes by waits for the others of a tick. */
struct weft__gait {
    int64_t since;                  /* when it was last looked at, or it last began; 0: never */
    uint64_t polls;                 /* the poll count at that time */
    int64_t slow_ns;                /* constant: polls that take longer on an average are slow */
    bool slow;
};

struct weft__worker {
    /* -- the owner, and thieves through their own doors -- */
    struct weft__slot next;         /* the task to run next, and its hand */
    struct weft__runq ring;
    struct weft__overflow over;
    struct weft__park park;
    struct weft__inbox inbox;       /* tasks that only this worker polls; its own list is the owner's alone */

    /* -- the monitor writes, thieves look at the first -- */
    WEFT__CACHE_ALIGNED struct weft__leave leave; /* to take what is lone here too */
    struct weft__look seen;         /* at the monitor's last look */
    struct weft__deaf_poll poll;    /* as the monitor has seen it */

    /* -- the owner writes, others look -- */
    WEFT__CACHE_ALIGNED struct weft__counts counts;
    struct weft__shun shun;         /* they write here as well */
    _Atomic uint32_t rests;         /* times that it went to sleep, or was left by who turned it  [clock-rest] */

    /* -- the owner alone -- */
    WEFT__CACHE_ALIGNED struct weft_rt *rt; /* constant */
    struct weft__here *here;        /* this thread's record; constant while it runs */
    struct weft__shard *shard;      /* that it drives; constant; NULL: the record for threads outside */
    struct weft__keeper keeper;     /* constant: where its polls arm timers */
    uint32_t index;                 /* constant */
    uint8_t number;                 /* constant: by which locks can belong to it (sys/bias.h) */
    uint32_t tick_max;              /* constant: as in the options */
    uint32_t budget;                /* constant: as in the options */
    struct weft__stretch stretch;         /* until it looks elsewhere again */
    uint32_t tick;                  /* polls since the last look at inject and overflow, up to this stretch */
    uint32_t background_tick;       /* the same of the background queue; below WEFT__BACKGROUND_TICKS / 2 */
    uint32_t round;                 /* polls since the overflow arrays were brought round, up to the last tick */
    uint32_t next_streak;           /* times in a row that `next` went before the ring */
    uint32_t dive;                  /* takes from the ring that are of its newest: fibers wait for their children (join.c) */
    uint32_t dived;                 /* ticks since the ring's oldest last had to be taken */
    bool oldest_due;                /* it has to be, at the next take from the ring that would be of its newest */
    uint32_t inline_ticks;          /* fairness ticks that passed inside of joins since the loop's own last one */
    bool deals;                     /* constant: it may have a hand: the monitor sees when it is stuck, or nobody else could take it */
    bool task_hooks;                /* constant: on_task_spawn or on_task_end is there; on a line that every spawn and end has loaded */
    char *stack_lo;                 /* where an inlined child may begin: from here on, */
    size_t stack_room;              /* for so many bytes; 0: nowhere */
    bool searching;                 /* holds a searching right of the idle word */
    struct weft__search search;     /* how long it searches */
    struct weft__theft theft;       /* its last one, and whom it meets */
    struct weft__gait gait;
    int64_t backlog_since;          /* since when it has had more than it runs; 0: has not */
    uint64_t backlog_polls;         /* the poll count at that time */
    uint32_t offer_in;              /* takes until it looks whether to offer */
    uint32_t offer_pushes;          /* the same of pushes, of which one poll may make many */
    struct weft__rand rand;
    struct weft__slab slab;
    struct weft__stack_magazine magazine; /* of the runtime's usual stacks */
    struct weft__thread thread;
    struct weft__worker *outer;     /* current-thread: the worker inside of whose poll this turn is; NULL: of none */
#if defined(WEFT_DEBUG)
    struct weft__spent spent;       /* blocks that wait to be freed */
#endif
};

struct weft_rt {
    struct weft__slab_group blocks; /* the memory of its tasks, and their registry */
    struct weft__idle idle;
    struct weft__inject inject;
    struct weft__inject background;
    struct weft__stacks stacks;     /* of fibers that ask for no size */
    struct weft__stack_sizes stack_sizes;
    struct weft__guests guests;     /* where threads that are no workers get their blocks */
    struct weft__unread unread;     /* failures that nobody reads */
    struct weft__deaf deaf;         /* tasks that do not listen */
#if defined(WEFT_DEBUG)
    struct weft__lock spent_lock;   /* rank slab; guards what follows */
    struct weft__spent spent;       /* blocks freed from outside that wait */
#endif
    struct weft_rt_opts opts;       /* constant: all defaults filled in */
    char name[WEFT__NAME_MAX + 1];  /* constant */
    uint32_t worker_count;          /* constant */
    bool current_thread;            /* constant: run by weft_rt_turn */
    bool task_hooks;                /* constant: as in the workers */
    _Atomic uint32_t stage;         /* enum weft__stage; read at every spawn: apart from what threads outside write. A futex while it is BUILDING */
    struct weft__worker *workers;   /* worker_count of them */
    WEFT__CACHE_ALIGNED _Atomic uint32_t gate; /* threads outside that are inside a spawn  [rt-gate] */
    _Atomic uint64_t spawned_outside;
    _Atomic uint32_t next_home;     /* the worker, modulo their number, of the next pinned task from outside */
    _Atomic int64_t held;           /* what keeps this memory beyond stop, and WEFT__HELD_OPEN before  [rt-held] */
    _Atomic bool turning;           /* a thread is in weft_rt_turn */
    _Atomic int event_fd;           /* current-thread, once asked for: readable while there is work; else -1  [rt-fd] */
    _Atomic bool event_signalled;   /* it is readable, or about to be */
    char driver_why[96];            /* why it is another than was asked for; empty: it is not */
    struct weft__host host;         /* with that event in it; by the thread that turns */
    struct weft__shard *shards;     /* as many */
    _Atomic uint32_t begun;         /* workers whose on_thread_start is over: from then on only tasks spawn there  [rt-begun] */
    struct weft__wheel *wheels;     /* one for each shard, and the last for threads outside; constant */
    struct weft__driver *driver; /* what turns kernel events into wakes; constant until the stop */
    struct weft__clock clock;
    struct weft__monitor monitor;
    struct weft__blocking blocking;
    struct weft__link alive;        /* in the list of all runtimes that fork goes through (fork.c) */
    bool stopping;                  /* a thread is in weft_rt_stop; guarded by that list's lock */
};

enum weft__stage {
    WEFT__OPEN,
    WEFT__CLOSING,                  /* tasks are born cancelled; threads outside cannot spawn */
    WEFT__STOPPED,                  /* no task lives: workers leave their loops */
    WEFT__LOST,                     /* in the child of a fork: the threads stayed with the parent */
    WEFT__BUILDING,                 /* not all threads are there: those that are wait */
    WEFT__ABANDONED,                /* nor will they be: the others leave, without their hooks */
};

/* relaxed: one writer, and readers want a number. */
static inline void weft__tally(_Atomic uint64_t *counter, uint64_t n)
{
    own_add(counter, n);
}

/* By its owner, when it polls nothing more: behind that it sleeps, or is left. */
static inline void weft__worker_rests(struct weft__worker *w)
{
    /* relaxed: our own; [clock-rest] with rests_so_far: what its tasks hold */
    store_release(&w->rests, load_relaxed(&w->rests) + 1);
}

/* The runtime that a task belongs to: its block says so. */
static inline struct weft_rt *weft__rt_of(const struct weft_task *task)
{
    return weft__container_of(weft__slab_chunk_of(task)->group, struct weft_rt, blocks);
}

/* Anyone: about how many tasks wait at a worker, beside the one that it polls. */
static inline uint64_t weft__worker_queued(struct weft__worker *w)
{
    return !weft__slot_empty(&w->next) + weft__slot_hand(&w->next) + weft__runq_length(&w->ring) + weft__overflow_count(&w->over);
}

/* Anyone: the same of those that a thief with leave could get. */
static inline uint64_t weft__worker_within_reach(struct weft__worker *w)
{
    return weft__slot_within_reach(&w->next) + weft__runq_length(&w->ring) + weft__overflow_count(&w->over);
}

/* Does anything of it lie outside of the block? */
static inline bool weft__has_extras(const struct weft_task *task)
{
    return task->ext || task->site->frame_bytes > WEFT__FRAME_MAX;
}

/* ---- spawn.c ---- */
void weft__task_free(struct weft_task *task);                       /* a complete task without references */
void weft__spent_flush(struct weft__worker *w);                     /* debug builds: frees what waits; by the owner */
void weft__spent_flush_outside(struct weft_rt *rt);                 /* the same for what threads outside have freed */

void weft__task_strip(struct weft_task *task);                      /* gives back what lies outside of the block */

static inline void *weft__frame_of(struct weft_task *task)
{
    void *frame = task + 1;
    return task->site->frame_bytes <= WEFT__FRAME_MAX ? frame : *(void **)frame;
}

/* The same by a worker of its runtime. */
static inline void weft__task_free_on(struct weft__worker *w, struct weft_task *task)
{
    if (__builtin_expect(weft__has_extras(task), 0)) weft__task_strip(task);
#if defined(WEFT_DEBUG)
    if (weft__spent_waits(task)) task = weft__spent_put(&w->spent, task);
    if (!task) return;
#endif
    weft__state_free(task);
    weft__slab_free(&w->slab, task);
}

/* ---- worker.c ---- */
void weft__worker_push(struct weft__worker *w, struct weft_task *task);      /* woken or spawned here: runs next */
void weft__worker_push_back(struct weft__worker *w, struct weft_task *task); /* behind the others */
void weft__worker_push_behind(struct weft__worker *w, struct weft_task *before); /* it was in the slot; it goes to the ring, and may be offered */
/* Polls `task`, unless it is NULL, and what the worker has, up to `most` in all. Returns how many. */
uint64_t weft__worker_run(struct weft__worker *w, struct weft_task *task, uint64_t most);
#define WEFT__ALL UINT64_MAX
void weft__worker_stretch(struct weft__worker *w);                  /* begins another, with the tick as it is */
int64_t weft__task_failure(struct weft_task *task);                 /* of one whose result stands: below zero, or 0 */
struct weft_task *weft__worker_take(struct weft__worker *w);        /* its own next task, or NULL */
void weft__worker_main(void *arg);                                  /* a worker's thread */
void weft__rt_unpark(struct weft_rt *rt, uint32_t worker);
void weft__rt_push_outside(struct weft_rt *rt, struct weft_task *first, struct weft_task *last); /* several: none of them is placed */
void weft__rt_signal(struct weft_rt *rt);                           /* current-thread: its fd becomes readable */

/* ---- handle.c ---- */
void weft__handle_drop(struct weft_task *task);                     /* takes a handle that has been marked as spent */
void weft__handle_cancel_for(struct weft_task *task, int why);      /* -ECANCELED, -ETIME */

/* ---- join.c ---- */
void weft__worker_inlines_on(struct weft__worker *w, char *lo, size_t bytes); /* the stack on which joins may run children; 0 bytes: none */

/* ---- place.c ---- */

/* A placed task, to its place. `w`: this thread's worker, if it is one of the runtime's, else NULL. `tell`: it was woken or spawned, and somebody idle may
 * take it; a task that is only requeued by its poller wakes nobody. */
void weft__place_push(struct weft_rt *rt, struct weft__worker *w, struct weft_task *task, bool tell);

struct weft_rt *weft__place_rt(const weft_spawn_opts *opts);        /* the runtime that the options name; NULL: none */
bool weft__place_is_sound(const weft_spawn_opts *opts);
uint32_t weft__place_at_birth(struct weft_rt *rt, const struct weft__worker *w, const weft_spawn_opts *opts);
struct weft_task *weft__worker_take_background(struct weft__worker *w);
bool weft__worker_keeps_waiting(struct weft__worker *w);            /* somebody who is not in its ring; a hint */

/* Polls of a worker between two looks at the background queue, whatever else it has. Doubled: its tasks wait twice as long beside busy workers. */
#define WEFT__BACKGROUND_TICKS 32

/* A task with no place of its own: runs next. */
static inline void weft__worker_push_next(struct weft__worker *w, struct weft_task *task)
{
    struct weft_task *before = weft__slot_put(&w->next, task);
    if (before) weft__worker_push_behind(w, before);
}

/* Takes from the newest end after a fiber began to wait for a child. Doubled: what lies in the ring waits twice as long behind the last of such joins; halved: a
 * node with more children than this is gone through by its breadth. */
#define WEFT__DIVE 64

/* ---- find.c ---- */
void weft__worker_judge_gait(struct weft__worker *w);               /* have its polls been slow? */
struct weft_task *weft__worker_find(struct weft__worker *w);        /* has nothing: search, sleep; NULL: the runtime has stopped */
struct weft_task *weft__worker_take_inject(struct weft__worker *w);
bool weft__worker_sees_work(struct weft__worker *w);                /* anywhere in the runtime */
void weft__worker_offer_slow(struct weft__worker *w, bool behind_rmw);

/* It has more than it runs: wake a sleeper, if that is worth it. The look for sleepers that counts is in here, now and then; the worker is awake and comes
 * back, so what it misses is shared later, not lost. `behind_rmw`: of this thread, such as takes a task from the ring; else the look brings a fence. */
static inline void weft__worker_offer(struct weft__worker *w, bool behind_rmw)
{
    if (w->offer_in > 0) {
        w->offer_in--;
    } else {
        weft__worker_offer_slow(w, behind_rmw);
    }
}

/* Pushes between two such looks. Doubled: what a task spawns without end is offered later, by as many; halved: it looks at the clock twice as often. */
#define WEFT__OFFER_PUSHES 32

/* The same behind a push, within a poll: the hint of idle.h. */
static inline void weft__worker_offer_pushed(struct weft__worker *w)
{
    if (w->offer_pushes++ < WEFT__OFFER_PUSHES) return;
    w->offer_pushes = 0;
    weft__worker_offer_slow(w, true);
}

/* ---- rt.c ---- */

/* weft_rt_new. `as_told`: with as many workers, and a clock that stands or not, as the options say, whatever the environment does; they are then said, not left to the default. */
int weft__rt_build(const weft_rt_opts *opts, bool as_told, weft_rt **into);
void weft__rt_hold(struct weft_rt *rt);                             /* by a thread outside, before it gives away what keeps the runtime alive */
void weft__rt_release(struct weft_rt *rt);                          /* the last touch; also for each block that is freed from outside */

bool weft__rt_await_opening(struct weft_rt *rt);                    /* by its workers, first of all; false: it will not be */
void weft__rt_begins(struct weft_rt *rt);                           /* by each of them, when its hook is over */
void weft__rt_lose(struct weft_rt *rt);                             /* in the child of a fork: it is dead here */

/* ---- fork.c ---- */
extern bool weft__forked __attribute__((visibility("hidden")));     /* this process is the child of one that had runtimes */
int weft__fork_ready(void);                                         /* before the first runtime, if it was not possible before main; later calls do nothing. 0; -ENOMEM */
void weft__fork_enlist(struct weft_rt *rt);
void weft__fork_delist(struct weft_rt *rt);

/* One thread at a time stops a runtime, which may be gone: 0: this one does; -EBUSY: another; -ECHILD: it is lost; -EINVAL: it is not there. */
int weft__fork_stops(struct weft_rt *rt);
void weft__fork_stops_not(struct weft_rt *rt); /* it is still there, and may be stopped again */

static inline bool weft__rt_is_lost(const struct weft_rt *rt)
{
    return load_relaxed(&rt->stage) == WEFT__LOST; /* relaxed: written when the process had one thread */
}

/* It belongs to a runtime that stayed with the parent. */
static inline bool weft__task_is_lost(const struct weft_task *task)
{
    return __builtin_expect(weft__forked, 0) && weft__rt_is_lost(weft__rt_of(task));
}

/* ---- quit.c ---- */
void weft__quit_watch(void);                                        /* from now on this thread must not end inside a task */

/* ---- options.c ---- */
int weft__options_fill(struct weft_rt_opts *opts);
int weft__options_stop_ms(int64_t *into);                           /* how long WEFT_MAIN waits for what it has cancelled */

/* ---- signal.c ---- */
void weft__task_cancel_signal(struct weft_task *task);              /* weft_cancel for signal handlers; the caller holds a reference */

#endif
