/* SPDX-License-Identifier: MIT
 *
 * Living with fork: in the child the parent's runtimes are dead and say so, nothing hangs, a fresh runtime works; a child
 * that goes back into a task of the parent's ends with a message.
 */
#include "child.h"
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <weft/scope.h>
#include <weft/time.h>
#include <weft/tracker.h>

/* ---- what a child may do ----------------------------------------------------------------------------------- */

static int twice(int a)
{
    int r = weft_yield();
    return r < 0 ? r : 2 * a;
}

struct thrice {
    WEFT_FRAME(int);
    int a;
    struct weft_yield pause;
};
static weft_async(thrice)
{
    weft_begin;
    weft_await(f->pause, weft_yield);
    weft_return(f->pause.ret < 0 ? f->pause.ret : 3 * f->a);
    weft_end;
}

/* A fiber by number: it goes through the directory of fibers. */
struct summed {
    WEFT_FRAME(int);
    int a, b;
};
static weft_fiber(summed)
{
    f->ret = weft_yield() < 0 ? -1 : f->a + f->b;
}

static void fresh_workers_work(int workers)
{
    weft_rt *rt;
    if (!DEATH_CHILD_MAY_ALLOCATE) return;
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = workers, .make_default = true}, &rt) == 0);
    CHILD_NEEDS(weft_rt_current() == rt);
    for (int i = 0; i < 20; i++) {
        int got = 0;
        CHILD_NEEDS(weft_join(weft_go(twice, i), &got) == 0 && got == 2 * i);
        CHILD_NEEDS(weft_join(weft_spawn(thrice, .a = i), &got) == 0 && got == 3 * i);
        CHILD_NEEDS(weft_join(weft_spawn(summed, .a = i, .b = 1), &got) == 0 && got == i + 1);
        CHILD_NEEDS(weft_run(thrice, .a = i) == 3 * i);
        weft_task *watched = weft_go(twice, i);
        CHILD_NEEDS(weft_wait(watched) == 0);
        CHILD_NEEDS(weft_join(watched, &got) == 0 && got == 2 * i);
    }
    CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
}

static void fresh_turned_works(void)
{
    weft_rt *rt;
    int got = 0;
    if (!DEATH_CHILD_MAY_ALLOCATE) return;
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt) == 0);
    weft_task *task = weft_go_as((.rt = rt), twice, 21);
    while (!weft_done(task))
        CHILD_NEEDS(weft_rt_turn(rt, 0) >= 0);
    CHILD_NEEDS(weft_join(task, &got) == 0 && got == 42);
    CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
}

static void dead_runtime_says_so(weft_rt *rt, int workers)
{
    CHILD_NEEDS(weft_rt_current() == NULL);
    CHILD_NEEDS(weft_self() == NULL);
    CHILD_NEEDS(weft_go(twice, 1) == NULL);
    CHILD_NEEDS(weft_go_as((.rt = rt), twice, 1) == NULL);
    CHILD_NEEDS(weft_spawn_as((.rt = rt), thrice, .a = 1) == NULL);
    CHILD_NEEDS(weft_rt_turn(rt, -1) == (workers < 0 ? -ECHILD : -EINVAL));
    CHILD_NEEDS(weft_rt_fd(rt) == (workers < 0 ? -ECHILD : -EINVAL));
    CHILD_NEEDS(weft_rt_stop(rt, -1) == -ECHILD);
    weft_tracker tracker = {0};
    CHILD_NEEDS(weft_tracker_go_as((.rt = rt), &tracker, twice, 1) == -ECHILD);
    weft_scope scope = {0};
    CHILD_NEEDS(weft_go_in_as(&scope, (.rt = rt), twice, 1) == -ECHILD);
    (void)weft_rt_enter(rt);
    CHILD_NEEDS(weft_go(twice, 1) == NULL);
    (void)weft_rt_enter(NULL);
}

/* ---- from a plain thread -------------------------------------------------------------------------------------- */

/* Waits until it is cancelled. */
struct forever {
    WEFT_FRAME(int);
    weft_waker *into;
};
static weft_poll forever_poll(void *frame, weft_cx *cx)
{
    struct forever *f = frame;
    if ((f->ret = weft_cx_cancelled(cx)) < 0) return WEFT_READY;
    _Atomic uintptr_t *word = (_Atomic uintptr_t *)&f->into->word;
    if (load_relaxed(word) == 0) store_release(word, weft_waker_ref(weft_cx_waker(cx)).word);
    return WEFT_PENDING;
}

static int waits_forever(weft_waker *into)
{
    return weft_run(forever, .into = into);
}

static weft_rt *stopped_at_exit;

static void stop_at_exit(void)
{
    int r = weft_rt_stop(stopped_at_exit, -1);
    if (r != -ECHILD) _exit(CHILD_WRONG);
}

static void forks_from_a_thread(struct crew *crew)
{
    weft_waker kept[2] = {{0}, {0}};
    weft_task *asleep[2] = {weft_go(waits_forever, &kept[0]),
                            weft_spawn(forever, .into = &kept[1])};
    weft_task *done = weft_go(twice, 4);
    int got;

    CREW_UNTIL(weft_done(done));
    for (int i = 0; i < 2; i++) { /* so that both wakers are there */
        weft_task *shared = weft_ref(asleep[i]);
        CREW_UNTIL(load_acquire((_Atomic uintptr_t *)&kept[i].word) != 0);
        weft_unref(shared);
    }
    pid_t child = fork();
    if (child == 0) {
        dead_runtime_says_so(crew->rt, crew->workers);
        weft_cancel(asleep[0]);
        weft_waker_wake(kept[0]);
        weft_waker_wake_signal(kept[1]);
        weft_waker_unref(kept[1]);
        CHILD_NEEDS(weft_wait(done) == -ECHILD);
        CHILD_NEEDS(weft_wait(asleep[0]) == -ECHILD);
        CHILD_NEEDS(weft_join(done, &got) == -ECHILD);
        CHILD_NEEDS(weft_join(asleep[0], &got) == -ECHILD);
        CHILD_NEEDS(weft_detach(asleep[1]) == 0);
        fresh_workers_work(2);
        fresh_turned_works();
        dead_runtime_says_so(crew->rt, crew->workers);
        stopped_at_exit = crew->rt;
        atexit(stop_at_exit);
        exit(7);
    }
    ASSERT(ended_by(exit_code_of(child), 7));
    ASSERT_OK(weft_join(done, &got)); /* and nothing has happened here */
    ASSERT_EQ(got, 8);
    for (int i = 0; i < 2; i++) {
        ASSERT(!weft_done(asleep[i]));
        weft_cancel(asleep[i]);
        ASSERT_OK(weft_join(asleep[i], &got));
        ASSERT_EQ(got, -ECANCELED);
        weft_waker_unref(kept[i]);
    }
}

TEST_WITH(fork_from_a_thread_leaves_dead_runtimes, .timeout_s = 120)
{
    crew_each(forks_from_a_thread);
}

/* The event descriptor is the parent's too: a child that wakes must not be heard there. */
TEST(fork_child_does_not_signal_the_parents_fd)
{
    weft_rt *rt;
    weft_waker kept = {0};
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    weft_task *task = weft_spawn_as((.rt = rt), forever, .into = &kept);
    while (weft_rt_turn(rt, 0) > 0) {
    }
    struct pollfd fd = {.fd = weft_rt_fd(rt), .events = POLLIN};
    ASSERT_GE(fd.fd, 0);
    ASSERT_GE(weft_rt_turn(rt, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        weft_waker_wake(kept);
        weft_cancel(task);
        _exit(0);
    }
    ASSERT(ended_by(exit_code_of(child), 0));
    ASSERT_EQ(poll(&fd, 1, 0), 0);
    weft_cancel(task);
    ASSERT_EQ(poll(&fd, 1, 0), 1);
    ASSERT_OK(weft_detach(task));
    ASSERT_OK(weft_rt_stop(rt, -1));
    weft_waker_unref(kept);
}

/* ---- from inside a task ---------------------------------------------------------------------------------------- */

static int forks_in_a_task(weft_rt *rt, int workers)
{
    pid_t child = fork();
    if (child == 0) {
        dead_runtime_says_so(rt, workers);
        fresh_workers_work(1);
        fresh_turned_works();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            fresh_workers_work(1);
            exit(5);
        }
        CHILD_NEEDS(ended_by(exit_code_of(grandchild), 5));
        exit(6);
    }
    return exit_code_of(child);
}

struct forks_stackless {
    WEFT_FRAME(int);
    weft_rt *rt;
    int workers;
};
static weft_poll forks_stackless_poll(void *frame, weft_cx *cx)
{
    struct forks_stackless *f = frame;
    (void)cx;
    f->ret = forks_in_a_task(f->rt, f->workers);
    return WEFT_READY;
}

static void forks_inside(struct crew *crew)
{
    int got;
    ASSERT_OK(weft_join(weft_go(forks_in_a_task, crew->rt, crew->workers), &got));
    ASSERT(ended_by(got, 6));
    ASSERT_OK(weft_join(weft_spawn(forks_stackless, crew->rt, crew->workers), &got));
    ASSERT(ended_by(got, 6));
}

TEST_WITH(fork_inside_a_task_makes_a_plain_thread, .timeout_s = 120)
{
    crew_each(forks_inside);
}

/* ---- a child that goes back -------------------------------------------------------------------------------------- */

/* Forks; the child's stderr goes to `out`. In the parent: how the child ended. */
static int fork_into(int out, bool *is_child)
{
    pid_t child = fork();
    *is_child = child == 0;
    if (child == 0) {
        dup2(out, STDERR_FILENO);
        return 0;
    }
    return exit_code_of(child);
}

static int goes_back_by_return(int out)
{
    bool is_child;
    return fork_into(out, &is_child);
}

static int goes_back_by_yield(int out)
{
    bool is_child;
    int code = fork_into(out, &is_child);
    if (is_child)
        return weft_yield() + 1; /* a plain thread's yield returns; its function's end does not */
    return code;
}

struct goes_back {
    WEFT_FRAME(int);
    int out;
    bool pending;
    bool is_child;
};
static weft_poll goes_back_poll(void *frame, weft_cx *cx)
{
    struct goes_back *f = frame;
    (void)cx;
    f->ret = fork_into(f->out, &f->is_child);
    return f->pending && f->is_child ? WEFT_PENDING : WEFT_READY;
}

/* The fiber polls what forks, and would be suspended by it. */
static int goes_back_beneath(int out)
{
    return weft_run(goes_back, .out = out, .pending = true);
}

static weft_task *who_goes_back(int way, int out)
{
    switch (way) {
    case 0:
        return weft_go(goes_back_by_return, out);
    case 1:
        return weft_go_as((.name = "goes_back_named"), goes_back_by_yield, out);
    case 2:
        return weft_go(goes_back_beneath, out);
    case 3:
        return weft_spawn(goes_back, .out = out);
    default:
        return weft_spawn(goes_back, .out = out, .pending = true);
    }
}

static void goes_back_and_ends(struct crew *crew)
{
    (void)crew;
    for (int way = 0; way < 5; way++) {
        int got;
        int ends[2];
        char said[512] = "";
        ASSERT_OK(pipe(ends));
        ASSERT_OK(weft_join(who_goes_back(way, ends[1]), &got));
        ASSERT(ended_by(got, 70));
        close(ends[1]);
        ASSERT_GE(read(ends[0], said, sizeof(said) - 1), 1);
        close(ends[0]);
        ASSERT(strstr(said, "the child of a fork went back into task 'goes_back"));
        if (way == 1) ASSERT(strstr(said, "'goes_back_named'"));
        ASSERT(strstr(said, "living_fork.c"));
    }
}

TEST(fork_child_that_goes_back_into_a_task_ends_with_a_message)
{
    crew_each(goes_back_and_ends);
}

static void fork_in_hook(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    (void)fork();
}

static void hook_that_forks(void *unused)
{
    weft_rt *rt;
    (void)unused;
    if (weft_rt_new(&(weft_rt_opts){.workers = 1, .on_thread_start = fork_in_hook}, &rt) < 0)
        _exit(1);
    _exit(weft_rt_stop(rt, -1) < 0);
}

TEST(fork_in_a_threads_hook_does_not_begin_a_second_worker)
{
    struct death d = death_of(hook_that_forks, NULL); /* which listens until both have ended */
    ASSERT_OK(d.signal);
    ASSERT_OK(d.code);
    ASSERT(strstr(d.said, "went back into a worker's hook"));
}

/* What a plain thread polls without a runtime is its own, in the child too. */
TEST(fork_inside_a_plain_threads_poll_goes_on)
{
    int ends[2];
    ASSERT_OK(pipe(ends));
    pid_t before = getpid();
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    int code = weft_run(goes_back, .out = ends[1]);
    if (getpid() != before) _exit(code == 0 ? 3 : CHILD_WRONG);
    ASSERT(ended_by(code, 3));
    ASSERT_OK(weft_rt_stop(rt, -1));
    close(ends[0]);
    close(ends[1]);
}

/* ---- while others hold the locks ------------------------------------------------------------------------------------ */

struct hammer {
    pthread_t thread;
    weft_rt *rt;
    _Atomic bool *quit; /* relaxed: a flag */
    int wrong;
};

/* Takes, over and over, every lock of the process: of guests, of stacks, of fibers by number, of the list of runtimes. */
static void *hammers(void *arg)
{
    struct hammer *me = arg;
    while (!load_relaxed(me->quit)) {
        int got = 0;
        weft_rt *another;
        int r = weft_join(weft_spawn_as((.rt = me->rt), summed, .a = 1, .b = 2), &got);
        me->wrong += r != 0 || got != 3;
        me->wrong +=
            weft_run(summed, .a = 2, .b = 3) != 5; /* a stack of its own, mapped and unmapped */
        r = weft_rt_new(&(weft_rt_opts){.workers = -1}, &another);
        me->wrong += r != 0 || weft_rt_stop(another, -1) != 0;
    }
    return NULL;
}

/* Ends by SIGKILL: what the others' threads had in hand is lost here, which leak checkers at an exit would object to. */
static void child_of_many(void)
{
    fresh_workers_work(1);
    raise(SIGKILL);
}

TEST_WITH(fork_beside_threads_that_hold_locks, .timeout_s = 240)
{
    struct hammer crowd[3];
    _Atomic bool quit = false;
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    for (int i = 0; i < 3; i++) {
        crowd[i] = (struct hammer){.rt = rt, .quit = &quit};
        ASSERT_OK(pthread_create(&crowd[i].thread, NULL, hammers, &crowd[i]));
    }
    for (uint64_t i = 0; i < test_scaled(100); i++) {
        pid_t child = fork();
        if (child == 0) child_of_many();
        ASSERT_EQ(exit_code_of(child), 1000 + SIGKILL);
    }
    store_relaxed(&quit, true);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(pthread_join(crowd[i].thread, NULL));
        ASSERT_OK(crowd[i].wrong);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- while others wait ---------------------------------------------------------------------------------------- */

/* Watches a task, and forks in the middle of the poll that has linked the watcher. */
struct forks_at_once {
    WEFT_FRAME(int);
    weft_task *task;
    struct weft_wait wait;
    bool began;
    pid_t child;
};
static weft_poll forks_at_once_poll(void *frame, weft_cx *cx)
{
    struct forks_at_once *f = frame;
    if (!f->began) {
        f->began = true;
        f->wait = (struct weft_wait){.task = f->task};
        if (weft_wait_poll(&f->wait, cx) == WEFT_READY) return WEFT_READY;
        f->child = fork();
        if (f->child > 0) weft_cancel(f->task);
    }
    weft_poll r = weft_wait_poll(&f->wait, cx);
    f->ret = f->wait.ret;
    return r;
}

/* The forking thread's own watcher is linked at that moment, beside those of others. */
static void forks_while_it_watches(struct crew *crew)
{
    weft_waker kept = {0};
    weft_task *task = weft_spawn(forever, .into = &kept);
    weft_task *shared = weft_ref(task);
    (void)crew;
    struct forks_at_once f = {.task = task};
    weft__run(forks_at_once_poll, &f);
    if (f.child == 0) {
        CHILD_NEEDS(f.ret == -ECHILD);
        fresh_workers_work(1);
        _exit(0);
    }
    ASSERT_EQ(f.ret, 0);
    ASSERT_EQ(exit_code_of(f.child), 0);
    weft_unref(shared);
    ASSERT_OK(weft_join(task, (int *)NULL));
    weft_waker_unref(kept); /* none, if it was cancelled before its first poll */
}

TEST(living_fork_while_the_thread_watches)
{
    static const int sizes[] = {1, 2};
    for (int i = 0; i < 2; i++) {
        struct crew crew;
        crew_start(&crew, sizes[i]);
        forks_while_it_watches(&crew);
        crew_stop(&crew);
    }
}

/* ---- a clock that nobody moves ------------------------------------------------------------------------------------- */

static int sleeps_in_the_child(weft_rt *rt)
{
    pid_t child = fork();
    if (child == 0) {
        (void)weft_rt_enter(rt); /* it is dead, but that is no reason to sleep for ever */
        weft_time before = weft_now();
        CHILD_NEEDS(weft_sleep(weft_ms(1)) == 0);
        CHILD_NEEDS(weft_now() > before);
        _exit(7);
    }
    return exit_code_of(child);
}

TEST(fork_child_sleeps_although_the_parents_clock_stands)
{
    static const int sizes[] = {1, -1};
    for (int i = 0; i < 2; i++) {
        struct crew crew;
        int got = 0;
        if (!DEATH_CHILD_MAY_ALLOCATE) return;
        crew_start_with(&crew, &(weft_rt_opts){.workers = sizes[i], .paused = true});
        ASSERT_OK(weft_join(weft_go(sleeps_in_the_child, crew.rt), &got));
        ASSERT(ended_by(got, 7));
        crew_stop(&crew);
    }
}
