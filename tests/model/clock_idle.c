/* SPDX-License-Identifier: MIT
 *
 * A clock that stands waits for a job, proven: a task begins a job, arms a timer and falls asleep, while others fall asleep beside it; whoever finds all asleep moves the
 * clock, by the library's own look (sched/clock.c). It is not moved before the job has ended and its task has seen that; and if there is nothing but a timer, it is moved.
 *
 * The workers do what a worker's loop does between two polls, with the real idle words; the wheel is one timer under a lock, the job a thread that wakes its task.
 */
static int signal_event(int fd);
#define MODEL_EVENT_SIGNAL(fd) signal_event(fd)

#include "sched/sched.h"

static struct weft__here heres[MODEL_THREADS_MAX];
#define weft__here() (&heres[model_self()])

enum {
    HONEST,
    LOOKS_ONCE,             /* whoever moves it does not look again behind the deadlines */
    RESTS_NOT_COUNTED,      /* who was awake in between, and sleeps again, is not noticed */
    RESTS_WITHOUT_ORDER,    /* who is noticed to have slept may have begun a job that is not seen */
    SLEEPERS_WITHOUT_ORDER, /* who is found asleep may have begun a job that is not seen */
    OUTSIDER_TELLS_NOBODY,  /* a thread outside moves it and goes on */
    PORT_WITHOUT_ORDER,     /* who hears that the kernel has nothing more to tell may not see who was told */
};

#include "sched/idle.c"
#include "sched/park.c"

#define WORKERS 2

static bool looked[MODEL_THREADS_MAX]; /* of LOOKS_ONCE: the thread's own */

static bool twin_all_sleep(const struct weft__idle *idle)
{
    bool *before = &looked[model_self()];
    if (model_mutant == SLEEPERS_WITHOUT_ORDER) return weft__idle_sleeping(idle) == WORKERS;
    if (model_mutant != LOOKS_ONCE) return weft__idle_all_sleep(idle);
    bool all = *before || weft__idle_all_sleep(idle);
    *before = all && !*before;
    return all;
}

#define weft__idle_all_sleep(idle) twin_all_sleep(idle)
#define weft__worker_queued(w)     ((void)(w), 0) /* nothing is ever pushed there: no steps for that */
#define weft__inbox_empty(box)     ((void)(box), true)
#define weft__inject_empty(q)      ((void)(q), true)
#include "sched/clock.c"

#include <string.h>

#define LATER 10 /* when the timer is due */

static struct weft_rt rt;
static struct weft__worker workers[WORKERS];
static struct weft__wheel wheels[WORKERS + 1];
static struct weft__park job;       /* its thread's */
static _Atomic uint32_t inbox;      /* the task, pushed by an RMW */
static struct weft__port port;      /* of the first worker */
static bool job_matters;            /* constant, as the next: no timer comes before it has ended */
static bool timer_wakes;            /* it is the task's that is woken */
static struct weft__lock wheel_lock;
static int64_t deadline; /* WEFT__NEVER: none is armed                       [wheel_lock] */

/* ---- broken twins ---- */

static void rests(struct weft__worker *w)
{
    if (model_mutant == RESTS_NOT_COUNTED || model_mutant == LOOKS_ONCE) return;
    if (model_mutant == RESTS_WITHOUT_ORDER) {
        store_relaxed(&w->rests, load_relaxed(&w->rests) + 1);
    } else {
        weft__worker_rests(w);
    }
}

/* ---- the wheel ---- */

/* For the first worker alone, as into its inbox; or for whoever turns it, who is told in any case. */
static void push_task(void)
{
    fetch_add_acq_rel(&inbox, 1);
    if (weft__idle_wake(&rt.idle, 0) || rt.current_thread) weft__unpark(&workers[0].park);
}

static void arm(int64_t when)
{
    model_lock(&wheel_lock.word);
    plain_write(&deadline, when);
    model_unlock(&wheel_lock.word);
}

int64_t weft__wheel_next(struct weft__wheel *wheel, enum weft__door door)
{
    (void)door;
    if (wheel != &wheels[0]) return WEFT__NEVER;
    model_lock(&wheel_lock.word);
    int64_t next = plain_read(&deadline);
    model_unlock(&wheel_lock.word);
    return next;
}

/* Fires what is due. */
uint32_t weft__wheel_look(struct weft_rt *rt, struct weft__wheel *wheel)
{
    int64_t due = weft__wheel_next(wheel, WEFT__BY_ANY);
    if (due == WEFT__NEVER || due > weft__clock_read(&rt->clock)) return 0;
    model_assert(!plain_read(&job_matters));
    arm(WEFT__NEVER);
    if (plain_read(&timer_wakes)) push_task();
    return 1;
}

/* ---- what it calls elsewhere ---- */

/* clang-format off */
static void unreached(void) { model_fail_at("not part of the model", __FILE__, __LINE__); }
int64_t weft__clock_now(void) { return 0; }
bool weft__io_is_watched(const struct weft_rt *rt) { (void)rt; return model_mutant == PORT_WITHOUT_ORDER ? !weft__port_idle(&port) : weft__port_is_watched(&port); }
bool weft__blocking_holds(struct weft__blocking *pool, const _Atomic uint32_t *holds) { (void)pool; return load_acquire(holds) > 0; }
void weft__rt_unpark(struct weft_rt *rt, uint32_t worker) { if (worker != WEFT__IDLE_NOBODY) weft__unpark(&rt->workers[worker].park); }
void weft__rt_signal(struct weft_rt *rt) { (void)rt; unreached(); }
static int signal_event(int fd) { (void)fd; unreached(); return 0; }
weft_rt *weft_rt_current(void) { unreached(); return NULL; }
void weft__thread_yield(void) { unreached(); }
/* clang-format on */

/* ---- the task, and its job ---- */

/* The first poll. The timer is armed before the job begins, or the other way round: it sleeps behind both. */
static void begin_job(void)
{
    arm(LATER);
    weft__clock_hold(&rt.clock);
    weft__unpark(&job);
}

/* The second: the job has ended. */
static void see_its_end(void)
{
    model_assert(weft__clock_read(&rt.clock) == 0);
    weft__clock_release(&rt.clock);
    arm(WEFT__NEVER);
}

static void job_runs(void *pushes_first)
{
    if (pushes_first) push_task();
    (void)weft__park(&job, WEFT__NEVER);
    push_task();
}

/* The same of what the kernel is asked for, and whose end the worker is told in its sleep: it counts that out, and polls the task. */
static void ask_the_kernel(void)
{
    arm(LATER);
    fetch_add_relaxed(&port.fds, 1);
}

static void see_what_it_told(void)
{
    if (weft__port_count_down(&port, 1)) weft__clock_nudge(&rt);
    model_assert(weft__clock_read(&rt.clock) == 0);
    arm(WEFT__NEVER);
}

static void kernel_tells(void *unused)
{
    (void)unused;
    fetch_add_acq_rel(&inbox, 1);
    weft__unpark(&workers[0].park);
}

/* ---- workers ---- */

static bool work_is_there(void)
{
    return load_relaxed(&inbox) > 0;
}

static void fall_asleep(struct weft__worker *w)
{
    rests(w);
    weft__idle_sleep(&rt.idle, w->index, w->searching);
    w->searching = false;
    if (!work_is_there()) (void)weft__clock_move_idle(&rt, WEFT__NEVER);
}

/* As sleep_until_woken, until there is work; then takes it. */
static void sleep_until_work(struct weft__worker *w)
{
    do {
        fall_asleep(w);
        if (!work_is_there()) (void)weft__park(&w->park, WEFT__NEVER);
        (void)weft__idle_unsleep(&rt.idle, w->index);
        (void)weft__idle_search_end(&rt.idle, w->index);
    } while (!work_is_there());
    fetch_sub_acquire(&inbox, 1);
}

static void polls_at_once(void *worker)
{
    begin_job();
    sleep_until_work(worker);
    see_its_end();
}

static void polls_when_woken(void *worker)
{
    sleep_until_work(worker);
    begin_job();
    sleep_until_work(worker);
    see_its_end();
}

static void polls_by_the_kernel(void *worker)
{
    ask_the_kernel();
    sleep_until_work(worker);
    see_what_it_told();
}

/* A turn of a current-thread runtime, as weft_rt_turn. */
static void turn(struct weft__worker *w, void (*polls)(void))
{
    model_assert(!exchange_acquire(&rt.turning, true));
    weft__here()->worker = w;
    polls();
    weft__here()->worker = NULL;
    rests(w);
    store_release(&rt.turning, false);
}

/* Whoever turns it does something else in between. */
static void turns_twice(void *worker)
{
    turn(worker, begin_job);
    while (!work_is_there())
        (void)weft__park(&workers[0].park, WEFT__NEVER);
    fetch_sub_acquire(&inbox, 1);
    turn(worker, see_its_end);
}

/* It has nothing to do, and nobody wakes it. */
static void only_sleeps(void *worker)
{
    fall_asleep(worker);
}

static void only_arms(void *worker)
{
    arm(LATER);
    fall_asleep(worker);
}

/* Twice: its timer wakes it. */
static void sleeps_by_timers(void *worker)
{
    for (int64_t when = LATER; when <= 2 * LATER; when += LATER) {
        arm(when);
        sleep_until_work(worker);
        model_assert(weft__clock_read(&rt.clock) == when);
    }
}

/* A thread that slept on the clock as well, and is over. */
static void looks_once(void *unused)
{
    (void)unused;
    if (model_mutant == OUTSIDER_TELLS_NOBODY) {
        (void)weft__clock_move_idle(&rt, WEFT__NEVER);
    } else {
        (void)weft__clock_move_outside(&rt);
    }
}

static void begin(bool with_job)
{
    memset(&rt, 0, sizeof(rt));
    memset(workers, 0, sizeof(workers));
    memset(heres, 0, sizeof(heres));
    memset(looked, 0, sizeof(looked));
    memset(&port, 0, sizeof(port));
    rt.workers = workers;
    rt.wheels = wheels;
    rt.worker_count = WORKERS;
    weft__idle_init(&rt.idle, WORKERS);
    weft__clock_init(&rt.clock, true);
    weft__park_init(&job);
    weft__lock_init(&wheel_lock, WEFT__RANK_NONE);
    plain_write(&deadline, WEFT__NEVER);
    plain_write(&job_matters, with_job);
    plain_write(&timer_wakes, false);
    store_relaxed(&inbox, 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].rt = &rt;
        workers[i].index = i;
        weft__park_init(&workers[i].park);
    }
}

static void beside_one_who_falls_asleep(void)
{
    begin(true);
    model_thread(polls_at_once, &workers[0]);
    model_thread(only_sleeps, &workers[1]);
    model_thread(job_runs, NULL);
    model_join();
    model_assert(weft__clock_read(&rt.clock) == 0);
}

static void told_by_the_kernel(void)
{
    begin(true);
    model_thread(polls_by_the_kernel, &workers[0]);
    model_thread(only_sleeps, &workers[1]);
    model_thread(kernel_tells, NULL);
    model_join();
    model_assert(weft__clock_read(&rt.clock) == 0);
}

static void woken_from_outside(void)
{
    begin(true);
    model_thread(polls_when_woken, &workers[0]);
    model_thread(only_sleeps, &workers[1]);
    model_thread(job_runs, &job);
    model_join();
    model_assert(weft__clock_read(&rt.clock) == 0);
}

/* Nothing holds it: whoever falls asleep last moves it, though the other may have fallen asleep while it was looked at. */
static void nothing_but_a_timer(void)
{
    begin(false);
    model_thread(only_arms, &workers[0]);
    model_thread(only_sleeps, &workers[1]);
    model_join();
    model_assert(weft__clock_read(&rt.clock) == LATER);
}

static void begin_with_one(bool with_job)
{
    begin(with_job);
    rt.worker_count = 1;
    rt.idle.worker_count = 1;
}

/* A thread outside looks between two turns, of which the first has begun a job. */
static void begun_in_a_turn(void)
{
    begin_with_one(true);
    rt.current_thread = true;
    model_thread(turns_twice, &workers[0]);
    model_thread(looks_once, NULL);
    model_thread(job_runs, NULL);
    model_join();
    model_assert(weft__clock_read(&rt.clock) == 0);
}

/* Whoever moves it, the task that it wakes sleeps again, and is not forgotten. */
static void moved_from_outside(void)
{
    begin_with_one(false);
    plain_write(&timer_wakes, true);
    model_thread(sleeps_by_timers, &workers[0]);
    model_thread(looks_once, NULL);
    model_join();
}

static const struct model_case cases[] = {
    {.name = "clock: a job is begun beside one who falls asleep", .run = beside_one_who_falls_asleep, .preemptions = 2},
    {.name = "clock: a job is begun by one who is woken", .run = woken_from_outside, .preemptions = 2},
    {.name = "clock: the kernel has something to tell", .run = told_by_the_kernel, .preemptions = 2},
    {.name = "clock: a job is begun in a turn beside a thread outside", .run = begun_in_a_turn, .preemptions = 2},
    {.name = "clock: it is moved to the one timer", .run = nothing_but_a_timer},
    {.name = "clock: a thread outside moves it, and goes on", .run = moved_from_outside, .preemptions = 2},
    {.name = "mutant: it is not looked again behind the deadlines", .run = beside_one_who_falls_asleep, .preemptions = 2, .mutant = LOOKS_ONCE, .must_fail = true},
    {.name = "mutant: nobody notices who slept, worked and sleeps again", .run = woken_from_outside, .preemptions = 3, .mutant = RESTS_NOT_COUNTED, .must_fail = true},
    {.name = "mutant: nobody notices a turn", .run = begun_in_a_turn, .preemptions = 2, .mutant = RESTS_NOT_COUNTED, .must_fail = true},
    {.name = "mutant: a rest is counted before what was done", .run = woken_from_outside, .preemptions = 3, .mutant = RESTS_WITHOUT_ORDER, .must_fail = true},
    {.name = "mutant: a sleeper's job is not seen with it", .run = beside_one_who_falls_asleep, .preemptions = 2, .mutant = SLEEPERS_WITHOUT_ORDER, .must_fail = true},
    {.name = "mutant: whom the kernel has told is not seen awake", .run = told_by_the_kernel, .preemptions = 2, .mutant = PORT_WITHOUT_ORDER, .must_fail = true},
    {.name = "mutant: a thread outside moves it, and tells nobody", .run = moved_from_outside, .preemptions = 2, .mutant = OUTSIDER_TELLS_NOBODY, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
