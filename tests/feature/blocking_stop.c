/* SPDX-License-Identifier: MIT
 *
 * Blocking jobs that are given up: before they begin, while they run, by a cancel, by the runtime's
 * stop, by a fork. Nothing is torn down under a job that runs, and no argument leaks.
 */
#include "crew.h"
#include "death.h"
#include "stuck.h"

#include <errno.h>
#include <weft/weft.h>

static weft_stats stats_of(weft_rt *rt)
{
    weft_stats s;
    weft_rt_stats(rt, &s);
    return s;
}

static int stays(struct stuck *s)
{
    stuck_here(s);
    return 7;
}

static int stays_away(struct stuck *s)
{
    return weft_blocking(stays, s);
}

struct awaits {
    WEFT_FRAME(int);
    struct stuck *s;
    struct weft_blocking job;
};

static weft_async(awaits)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(stays, f->s));
    weft_return((int)f->job.ret);
    weft_end;
}

/* The same job, asked for by a fiber or by a stackless function. */
static weft_task *asker(bool stackless, struct stuck *s)
{
    return stackless ? weft_spawn(awaits, .s = s) : weft_go(stays_away, s);
}

static int result_of(weft_task *task)
{
    int r = 0;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

/* ---- jobs that borrow ---- */

/* Behind a thread that is busy: the one in front is withdrawn, never runs, and is answered while
 * the thread still is. */
static void withdrawn(int workers, bool stackless)
{
    struct crew crew;
    struct stuck busy = STUCK_INIT;
    struct stuck never = STUCK_INIT;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .blocking_threads = 1});
    weft_task *first = asker(stackless, &busy);
    stuck_until(&busy, 1);
    weft_task *second = asker(stackless, &never);
    CREW_UNTIL(stats_of(crew.rt).blocking_queued == 1);
    weft_cancel(second);
    ASSERT_EQ(result_of(second), -ECANCELED);
    ASSERT_EQ(stats_of(crew.rt).blocking_queued, 0);
    stuck_open(&busy);
    ASSERT_EQ(result_of(first), 7);
    ASSERT_EQ(stuck_came(&never), 0);
    crew_stop(&crew);
}

TEST(blocking_cancelled_before_it_begins_never_runs)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        withdrawn(crew_sizes[i], false);
        withdrawn(crew_sizes[i], true);
    }
}

/* One that has begun is waited for, and its result is the answer. */
static void waited_for(int workers, bool stackless)
{
    struct crew crew;
    struct stuck s = STUCK_INIT;
    crew_start(&crew, workers);
    weft_task *task = asker(stackless, &s);
    stuck_until(&s, 1);
    CREW_UNTIL(stats_of(crew.rt).polls == 1);
    weft_cancel(task);
    CREW_UNTIL(stats_of(crew.rt).polls == 2); /* it has seen the cancel */
    ASSERT(!weft_done(task));
    stuck_open(&s);
    ASSERT_EQ(result_of(task), 7);
    crew_stop(&crew);
}

TEST(blocking_cancelled_while_it_runs_gives_its_result)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        waited_for(crew_sizes[i], false);
        waited_for(crew_sizes[i], true);
    }
}

/* A task that was cancelled before it asks. */
static int asks_late(struct stuck *never)
{
    while (weft_yield() == 0) {
    }
    return weft_blocking(stays, never);
}

static void too_late(struct crew *crew)
{
    struct stuck never = STUCK_INIT;
    weft_task *task = weft_go(asks_late, &never);
    weft_cancel(task);
    ASSERT_EQ(result_of(task), -ECANCELED);
    ASSERT_EQ(stuck_came(&never), 0);
    ASSERT_EQ(stats_of(crew->rt).blocking_threads, 0);
}

TEST(blocking_asked_by_a_cancelled_task_does_nothing)
{
    crew_each(too_late);
}

/* ---- jobs that own their argument ---- */

struct parcel {
    struct stuck stuck;
    int64_t returns;            /* what the function gives */
    _Atomic unsigned disposals; /* relaxed, both: looked at until they are there */
    _Atomic int64_t disposed_with;
};

#define PARCEL_INIT(value) {.stuck = STUCK_INIT, .returns = (value)}

static int64_t carries(struct parcel *p)
{
    stuck_here(&p->stuck);
    return p->returns;
}

static void dispose(void *arg, int64_t ret)
{
    struct parcel *p = arg;
    store_relaxed(&p->disposed_with, ret);
    fetch_add_release(&p->disposals, 1);
}

static unsigned disposals_of(struct parcel *p)
{
    return load_acquire(&p->disposals);
}

static int64_t gives_away(struct parcel *p)
{
    return weft_blocking_as((.dispose = dispose), carries, p);
}

struct gives {
    WEFT_FRAME(int64_t);
    struct parcel *p;
    struct weft_blocking job;
};

static weft_async(gives)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(carries, f->p), .dispose = dispose);
    weft_return(f->job.ret);
    weft_end;
}

static weft_task *giver(bool stackless, struct parcel *p)
{
    return stackless ? weft_spawn(gives, .p = p) : weft_go(gives_away, p);
}

static int64_t long_result_of(weft_task *task)
{
    int64_t r = 0;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static void given_up_while_it_runs(struct crew *crew, bool stackless)
{
    struct parcel p = PARCEL_INIT(42);
    (void)crew;
    weft_task *task = giver(stackless, &p);
    stuck_until(&p.stuck, 1);
    weft_cancel(task);
    ASSERT_EQ(long_result_of(task), -ECANCELED); /* at once: the job is still in it */
    ASSERT_EQ(disposals_of(&p), 0);
    stuck_open(&p.stuck);
    CREW_UNTIL(disposals_of(&p) == 1);
    ASSERT_EQ(load_relaxed(&p.disposed_with), 42);
}

static void not_given_up(struct crew *crew, bool stackless)
{
    struct parcel p = PARCEL_INIT(-ENOENT);
    (void)crew;
    weft_task *task = giver(stackless, &p);
    stuck_until(&p.stuck, 1);
    stuck_open(&p.stuck);
    ASSERT_EQ(long_result_of(task), -ENOENT);
    ASSERT_EQ(disposals_of(&p), 0);
}

/* These two answers mean that the argument is gone, whoever gives them. */
static void says_so_itself(struct crew *crew, int64_t answer)
{
    struct parcel p = PARCEL_INIT(answer);
    (void)crew;
    stuck_open(&p.stuck);
    ASSERT_EQ(gives_away(&p), answer);
    ASSERT_EQ(disposals_of(&p), 1);
    ASSERT_EQ(load_relaxed(&p.disposed_with), answer);
}

static void owned(struct crew *crew)
{
    given_up_while_it_runs(crew, false);
    given_up_while_it_runs(crew, true);
    not_given_up(crew, false);
    not_given_up(crew, true);
    says_so_itself(crew, -ECANCELED);
    says_so_itself(crew, -ETIME);
}

TEST(blocking_job_that_owns_is_left_at_once_and_disposed_of)
{
    crew_each(owned);
}

static void owned_and_withdrawn(int workers, bool stackless)
{
    struct crew crew;
    struct stuck busy = STUCK_INIT;
    struct parcel p = PARCEL_INIT(1);
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .blocking_threads = 1});
    weft_task *first = asker(stackless, &busy);
    stuck_until(&busy, 1);
    weft_task *second = giver(stackless, &p);
    CREW_UNTIL(stats_of(crew.rt).blocking_queued == 1);
    weft_cancel(second);
    ASSERT_EQ(long_result_of(second), -ECANCELED);
    ASSERT_EQ(disposals_of(&p), 1);
    ASSERT_EQ(load_relaxed(&p.disposed_with), -ECANCELED);
    ASSERT_EQ(stuck_came(&p.stuck), 0);
    stuck_open(&busy);
    ASSERT_EQ(result_of(first), 7);
    crew_stop(&crew);
}

TEST(blocking_job_that_owns_and_never_runs_is_disposed_of)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        owned_and_withdrawn(crew_sizes[i], false);
        owned_and_withdrawn(crew_sizes[i], true);
    }
}

/* ---- a crowd ---- */

/* Some are cancelled, at any moment of their lives: each parcel is either answered for or
 * disposed of, each once. */
static int64_t passes(struct parcel *p)
{
    return p->returns;
}

static int64_t gives_many(struct parcel *p)
{
    return weft_blocking_as((.dispose = dispose), passes, p);
}

static int64_t borrows_many(struct parcel *p)
{
    return weft_blocking(passes, p);
}

#define CROWD 64

static void crowd(int workers, unsigned threads)
{
    struct crew crew;
    uint64_t dice = test_seed() | 1;
    uint64_t rounds = test_scaled(20);
    static struct parcel parcels[CROWD];
    weft_task *tasks[CROWD];
    crew_start_with(
        &crew,
        &(weft_rt_opts){.workers = workers, .blocking_threads = threads, .blocking_keep_ms = 1});
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < CROWD; i++) {
            parcels[i] = (struct parcel){.returns = i};
            tasks[i] =
                i % 2 ? weft_go(gives_many, &parcels[i]) : weft_go(borrows_many, &parcels[i]);
        }
        for (unsigned i = 0; i < CROWD; i++) {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            if (dice % 3 == 0) weft_cancel(tasks[i]);
        }
        for (unsigned i = 0; i < CROWD; i++) {
            int64_t r = long_result_of(tasks[i]);
            ASSERT(r == i || r == -ECANCELED);
            if (i % 2) CREW_UNTIL(disposals_of(&parcels[i]) == (r == -ECANCELED));
        }
    }
    crew_stop(&crew);
}

TEST(blocking_each_argument_is_answered_for_once)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        crowd(crew_sizes[i], 1);
        crowd(crew_sizes[i], 3);
    }
}

/* ---- stop ---- */

struct outsider {
    weft_rt *rt;
    struct stuck *s;
    pthread_t thread;
    int answer;
};

static void *ask_from_outside(void *arg)
{
    struct outsider *o = arg;
    o->answer = weft_blocking_as((.rt = o->rt), stays, o->s);
    return NULL;
}

static void ask(struct outsider *o, weft_rt *rt, struct stuck *s)
{
    o->rt = rt;
    o->s = s;
    ASSERT_OK(pthread_create(&o->thread, NULL, ask_from_outside, o));
}

static void *open_later(void *arg)
{
    struct outsider *o = arg;
    ASSERT_OK(pthread_join(o->thread, NULL)); /* it was queued, and the stop has cancelled it */
    stuck_open(o->s);
    return NULL;
}

/* What is queued is cancelled, what runs is waited for; plain threads get both answers. */
static void stop_settles(int workers)
{
    struct crew crew;
    struct stuck s = STUCK_INIT;
    struct outsider runs;
    struct outsider waits;
    pthread_t opener;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .blocking_threads = 1});
    ask(&runs, crew.rt, &s);
    stuck_until(&s, 1);
    ask(&waits, crew.rt, &s);
    CREW_UNTIL(stats_of(crew.rt).blocking_queued == 1);
    ASSERT_OK(pthread_create(&opener, NULL, open_later, &waits));
    crew_stop(&crew);
    ASSERT_OK(pthread_join(opener, NULL));
    ASSERT_OK(pthread_join(runs.thread, NULL));
    ASSERT_EQ(waits.answer, -ECANCELED);
    ASSERT_EQ(runs.answer, 7);
    ASSERT_EQ(stuck_came(&s), 1);
}

TEST(blocking_stop_cancels_what_is_queued_and_waits_for_what_runs)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        stop_settles(crew_sizes[i]);
}

/* Threads that go on asking while the runtime stops: each is answered, and the last answer is that it
 * is over. */
static int one(void)
{
    return 1;
}

static _Atomic unsigned heard; /* relaxed, all: a count */

static void *asks_until_refused(void *arg)
{
    struct outsider *o = arg;
    do {
        o->answer = weft_blocking_as((.rt = o->rt), one);
        if (o->answer == 1) fetch_add_relaxed(&heard, 1);
    } while (o->answer == 1 || o->answer == -ECANCELED);
    return NULL;
}

#define ASKERS 4

static void stop_races(int workers, unsigned threads)
{
    struct crew crew;
    struct outsider askers[ASKERS];
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .blocking_threads = threads});
    weft_task *keeps_the_memory = weft_go(one);
    store_relaxed(&heard, 0);
    for (unsigned i = 0; i < ASKERS; i++) {
        askers[i] = (struct outsider){.rt = crew.rt};
        ASSERT_OK(pthread_create(&askers[i].thread, NULL, asks_until_refused, &askers[i]));
    }
    CREW_UNTIL(load_relaxed(&heard) > 3);
    crew_stop(&crew);
    for (unsigned i = 0; i < ASKERS; i++) {
        ASSERT_OK(pthread_join(askers[i].thread, NULL));
        ASSERT_EQ(askers[i].answer, -ESHUTDOWN);
    }
    ASSERT_EQ(result_of(keeps_the_memory), 1);
}

TEST(blocking_asked_while_the_runtime_stops_is_answered)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        stop_races(crew_sizes[i], 1);
        stop_races(crew_sizes[i], 3);
    }
}

/* Tasks that wait for jobs are cancelled by the stop, which waits for the jobs through them. */
static void *open_when_closing(void *arg)
{
    struct outsider *o = arg;
    CREW_UNTIL(weft_blocking_as((.rt = o->rt), stays, &(struct stuck){.open = true}) == -ESHUTDOWN);
    stuck_open(o->s);
    return NULL;
}

static void stop_waits_for_tasks(int workers)
{
    struct crew crew;
    struct stuck s = STUCK_INIT;
    weft_task *tasks[8];
    crew_start(&crew, workers);
    struct outsider o = {.rt = crew.rt, .s = &s};
    for (unsigned i = 0; i < 8; i++)
        tasks[i] = asker(i % 2, &s);
    stuck_until(&s, 8);
    ASSERT_OK(pthread_create(&o.thread, NULL, open_when_closing, &o));
    crew_release_driver(&crew);
    crew.workers = 0; /* no driver any more */
    crew_stop(&crew);
    ASSERT_OK(pthread_join(o.thread, NULL));
    for (unsigned i = 0; i < 8; i++)
        ASSERT_EQ(result_of(tasks[i]), 7);
}

TEST(blocking_stop_waits_for_tasks_that_wait_for_jobs)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        stop_waits_for_tasks(crew_sizes[i]);
}

static int64_t leaves_a_log(struct parcel *p, weft_lane *lane)
{
    return weft_blocking_as((.lane = lane, .dispose = dispose, .name = "log"), carries, p);
}

/* What does not end within the bound is named, the runtime stays, and stop may be called again. */
static void stop_in_vain(void *arg)
{
    struct crew crew;
    struct parcel p = PARCEL_INIT(1);
    struct stuck s = STUCK_INIT;
    struct outsider o;
    crew_start(&crew, *(int *)arg);
    weft_lane *lane;
    ASSERT_OK(weft_lane_new(crew.rt, "slow", 1, &lane));
    weft_task *task = weft_go(leaves_a_log, &p, lane);
    stuck_until(&p.stuck, 1);
    weft_cancel(task);
    ASSERT_EQ(long_result_of(task), -ECANCELED);
    ask(&o, crew.rt, &s);
    stuck_until(&s, 1);
    crew_release_driver(&crew);
    ASSERT_EQ(weft_rt_stop(crew.rt, 0), -ETIME);
    ASSERT_EQ(weft_rt_stop(crew.rt, 1000000), -ETIME);
    stuck_open(&p.stuck);
    stuck_open(&s);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(crew.rt, -1));
    ASSERT_OK(pthread_join(o.thread, NULL));
    ASSERT_EQ(o.answer, 7);
    ASSERT_EQ(disposals_of(&p), 1);
}

TEST(blocking_stop_names_what_does_not_end)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(stop_in_vain, &workers);
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        ASSERT(strstr(d.said, "weft: blocking job 'log' of lane 'slow' does not end\n"));
        ASSERT(strstr(d.said, "weft: blocking job 'stays' does not end\n"));
    }
}

/* ---- the rest of C ---- */

static int quits(void)
{
    pthread_exit(NULL);
}

static void quit_in_a_job(void *unused)
{
    struct crew crew;
    (void)unused;
    crew_start(&crew, 1);
    (void)weft_blocking(quits);
}

TEST(blocking_job_that_ends_its_thread_ends_the_process_by_name)
{
    struct death d = death_of(quit_in_a_job, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "a thread ended inside blocking job 'quits'"));
}

/* In the child of a job that forks, the runtime is not there; and it must not come back. */
static int add(int a, int b)
{
    return a + b;
}

static int forks(weft_rt *rt, bool comes_back)
{
    int status = 0;
    weft_lane *lane;
    pid_t child = fork();
    ASSERT(child >= 0);
    if (child > 0) {
        ASSERT_EQ(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    bool right = weft_blocking(add, 1, 2) == -ENXIO;
    right = right && weft_blocking_as((.rt = rt), add, 1, 2) == -ECHILD;
    right = right && weft_lane_new(rt, "lost", 1, &lane) == -ECHILD;
    if (!right) _exit(1);
    if (comes_back) return 0;
    _exit(3);
}

static void fork_in_jobs(void *arg)
{
    struct crew crew;
    crew_start(&crew, *(int *)arg);
    ASSERT_EQ(weft_blocking(forks, crew.rt, false), 3);
    ASSERT_EQ(weft_blocking(forks, crew.rt, true), 70);
    ASSERT_EQ(weft_blocking(add, 1, 2), 3);
    crew_stop(&crew);
}

TEST(blocking_job_that_forks)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(fork_in_jobs, &workers);
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        ASSERT(strstr(d.said, "the child of a fork went back into blocking job 'forks'"));
    }
}
