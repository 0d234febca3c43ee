/* SPDX-License-Identifier: MIT
 *
 * Living with signals: the library's threads leave them to the program; a handler may wake a task whatever thread it
 * interrupts, and whatever that was doing.
 *
 * The storms are a game of ping-pong: a handler wakes only if the task has been polled for the last wake. So a single one that
 * is lost ends the game, and the watchdog says so.
 */
#include "crew.h"
#include "stuck.h"
#include "test.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/blocking.h>

/* ---- masks ------------------------------------------------------------------------------------------------------ */

static bool read_small_file(const char *path, char *into, size_t bytes)
{
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t got = fread(into, 1, bytes - 1, file);
    into[got] = '\0';
    fclose(file);
    return got > 0;
}

static uint64_t blocked_by(const char *task)
{
    char path[320];
    char status[4096];
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
    ASSERT(read_small_file(path, status, sizeof(status)));
    const char *line = strstr(status, "SigBlk:");
    ASSERT(line);
    return strtoull(line + strlen("SigBlk:"), NULL, 16);
}

static bool is_named(const char *task, const char *prefix)
{
    char path[320];
    char name[64];
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
    return read_small_file(path, name, sizeof(name)) && strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool should_be_blocked(int sig)
{
    static const int left[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                               SIGTRAP, SIGSYS,               /* a thread's own faults */
                               SIGKILL, SIGSTOP, 32,     33}; /* the kernel's, libc's */
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        if (sig == left[i]) return false;
    return true;
}

/* While it is begun, and while it begins another, libc has a thread block even what it does itself: that is waited out. */
static uint64_t blocked_for_good_by(const char *task)
{
    uint64_t blocked;
    while ((blocked = blocked_by(task)) >> (SIGSEGV - 1) & 1)
        (void)sched_yield();
    return blocked;
}

static void expect_masked(const char *task)
{
    uint64_t blocked = blocked_for_good_by(task);
    for (int sig = 1; sig <= 64; sig++)
        if (sig != 32 && sig != 33) ASSERT_EQ(blocked >> (sig - 1) & 1, should_be_blocked(sig));
}

TEST(signals_are_blocked_in_the_librarys_threads)
{
    weft_rt *rt;
    int found = 0;
    if (getenv("WEFT_TEST_UNDER"))
        TEST_SKIP("Valgrind blocks signals itself, and shows a mask of its own");
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 4, .name = "masked"}, &rt));
    while (found < 4) { /* a thread names itself when it begins */
        DIR *tasks = opendir("/proc/self/task");
        ASSERT(tasks);
        found = 0;
        for (struct dirent *e = readdir(tasks); e; e = readdir(tasks)) {
            if (!isdigit((unsigned char)e->d_name[0]) || !is_named(e->d_name, "masked-")) continue;
            found++;
            expect_masked(e->d_name);
        }
        closedir(tasks);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static int stays(struct stuck *s)
{
    stuck_here(s);
    return 0;
}

static int blocks(struct stuck *s)
{
    return weft_blocking(stays, s);
}

/* All but the test's own, and the kernel's for io_uring, are the library's. Gives how many there are. */
static int others_are_masked(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    ASSERT(tasks);
    for (struct dirent *e = readdir(tasks); e; e = readdir(tasks)) {
        if (!isdigit((unsigned char)e->d_name[0]) || atoi(e->d_name) == gettid()) continue;
        if (is_named(e->d_name, "iou-")) continue;
        found++;
        expect_masked(e->d_name);
    }
    closedir(tasks);
    return found;
}

/* Whoever they are: workers, the monitor, and those of the blocking pool, which a worker starts when there is a job. */
TEST(signals_are_blocked_in_all_other_threads_while_jobs_run)
{
    enum { JOBS = 3, WORKERS = 2 };
    struct stuck s = STUCK_INIT;
    weft_task *task[JOBS];
    weft_rt *rt;
    if (getenv("WEFT_TEST_UNDER"))
        TEST_SKIP("Valgrind blocks signals itself, and shows a mask of its own");
#if defined(WEFT__TSAN)
    TEST_SKIP("TSan has a thread of its own");
#endif
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = WORKERS}, &rt));
    for (int i = 0; i < JOBS; i++)
        task[i] = weft_go_as((.rt = rt), blocks, &s);
    stuck_until(&s, JOBS);
    ASSERT_GE(others_are_masked(), WORKERS + JOBS);
    stuck_open(&s);
    for (int i = 0; i < JOBS; i++)
        ASSERT_OK(weft_join(task[i], (int *)NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- a task that a handler wakes ------------------------------------------------------------------------------------ */

static struct {
    _Atomic uint64_t sent; /* wakes by the handler */
    _Atomic uint64_t seen; /* what `sent` was at the last poll */
    _Atomic uint64_t goal; /* relaxed: constant while it is played */
    _Atomic bool ready;    /* the waker is there; release, acquire */
    weft_waker waker;      /* a reference; constant once ready */
} game;

static bool is_over(void)
{
    return load_relaxed(&game.sent) >= load_relaxed(&game.goal);
}

static void handler(int sig)
{
    (void)sig;
    if (!load_acquire(&game.ready) || is_over()) return;
    if (load_relaxed(&game.seen) != load_relaxed(&game.sent))
        return;                       /* the last one is still on its way */
    fetch_add_relaxed(&game.sent, 1); /* relaxed: the wake publishes it */
    weft_waker_wake_signal(game.waker);
}

/* TSan runs a handler at the thread's next call that it intercepts; a thread asleep in a futex makes none. */
#if defined(WEFT__TSAN)
#define SKIP_IF_LATE() TEST_SKIP("TSan delays handlers, for ever if the thread sleeps")
#else
#define SKIP_IF_LATE() ((void)0)
#endif

static void game_begins(uint64_t goal)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    store_relaxed(&game.sent, 0);
    store_relaxed(&game.seen, 0);
    store_relaxed(&game.goal, goal);
    store_relaxed(&game.ready, false);
    ASSERT_OK(sigaction(SIGUSR1, &act, NULL));
}

struct counts {
    WEFT_FRAME(int);
};
static weft_poll counts_poll(void *frame, weft_cx *cx)
{
    struct counts *f = frame;
    f->ret = 0;
    if (!load_relaxed(&game.ready)) {
        game.waker = weft_waker_ref(weft_cx_waker(cx));
        store_release(&game.ready, true);
    }
    store_relaxed(&game.seen, load_relaxed(&game.sent));
    return is_over() ? WEFT_READY : WEFT_PENDING;
}

static int counts_as_fiber(void)
{
    return weft_run(counts);
}

/* Interrupts the calling thread, and no other, every 50 us of real time. */
static timer_t storm_begins(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec every = {.it_interval.tv_nsec = 50000, .it_value.tv_nsec = 50000};
    event._sigev_un._tid = gettid();
    ASSERT_OK(timer_create(CLOCK_MONOTONIC, &event, &timer));
    ASSERT_OK(timer_settime(timer, 0, &every, NULL));
    return timer;
}

/* Afterwards no handler runs: this is the only thread that it could. */
static void storm_ends(timer_t timer)
{
    ASSERT_OK(timer_delete(timer));
    signal(SIGUSR1, SIG_IGN);
}

#define WAKES test_scaled(3000)

/* ---- it interrupts a plain thread -------------------------------------------------------------------------------------- */

static int answers(int value)
{
    return value;
}

static void be_in_malloc(int i)
{
    void *volatile memory = malloc(16 + (size_t)i * 7 % 5000);
    free(memory);
}

/* In the inject queue, in the lock of guests, asleep. */
static void be_in_spawn(int i)
{
    int got = -1;
    ASSERT_OK(weft_join(weft_go(answers, i), &got));
    ASSERT_EQ(got, i);
}

static void play_while(void (*busy)(int), uint64_t wakes)
{
    for (int kind = 0; kind < 2; kind++) {
        game_begins(wakes);
        weft_task *task = kind ? weft_go(counts_as_fiber) : weft_spawn(counts);
        timer_t storm = storm_begins();
        for (int i = 0; !weft_done(task); i++)
            busy(i);
        storm_ends(storm);
        ASSERT_OK(weft_join(task, NULL));
        weft_waker_unref(game.waker);
    }
}

static void interrupts_malloc(struct crew *crew)
{
    (void)crew;
    play_while(be_in_malloc, WAKES / 40);
}

static void interrupts_spawn(struct crew *crew)
{
    (void)crew;
    play_while(be_in_spawn, WAKES / 8);
}

TEST_WITH(signal_wakes_from_inside_malloc, .timeout_s = 240)
{
    SKIP_IF_LATE();
    crew_each(interrupts_malloc);
}

TEST_WITH(signal_wakes_from_inside_a_spawn, .timeout_s = 240)
{
    SKIP_IF_LATE();
    crew_each(interrupts_spawn);
}

/* ---- it interrupts the thread that waits for the wake --------------------------------------------------------------------- */

/* No runtime: a plain thread's call, whose waker is the thread itself. */
TEST_WITH(signal_wakes_the_call_of_the_thread_it_interrupts, .timeout_s = 240)
{
    SKIP_IF_LATE();
    game_begins(WAKES);
    timer_t storm = storm_begins();
    ASSERT_OK(weft_run(counts));
    storm_ends(storm);
    weft_waker_unref(game.waker);
}

static void interrupts_a_join(struct crew *crew)
{
    (void)crew;
    game_begins(WAKES / 4);
    weft_task *task = weft_go(counts_as_fiber);
    timer_t storm = storm_begins();
    ASSERT_OK(weft_join(task, NULL));
    storm_ends(storm);
    weft_waker_unref(game.waker);
}

TEST_WITH(signal_wakes_from_inside_a_join, .timeout_s = 240)
{
    SKIP_IF_LATE();
    crew_each(interrupts_a_join);
}

/* ---- it interrupts the thread that turns a runtime --------------------------------------------------------------------------- */

static int yields_until_over(void)
{
    while (!is_over())
        (void)weft_yield();
    return 0;
}

/* Uses every queue of the worker: slot, ring, what has overflowed, and its slab. */
static int spawns_until_over(void)
{
    while (!is_over()) {
        weft_task *many[300];
        for (int i = 0; i < 300; i++)
            many[i] = weft_go(answers, i);
        for (int i = 0; i < 300; i++)
            (void)weft_join(many[i], NULL);
    }
    return 0;
}

enum turned { ALONE, BUSY, BY_FD };

static void turn_by_poll(weft_rt *rt)
{
    struct pollfd fd = {.fd = weft_rt_fd(rt), .events = POLLIN};
    int r = poll(&fd, 1, -1);
    ASSERT(r == 1 || (r < 0 && errno == EINTR));
    ASSERT_GE(weft_rt_turn(rt, 0), 0);
}

static void turned_by_this_thread(enum turned how)
{
    weft_rt *rt;
    game_begins(WAKES);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    weft_task *task = weft_spawn(counts);
    if (how == BUSY) {
        for (int i = 0; i < 3; i++)
            ASSERT_OK(weft_detach(weft_go(yields_until_over)));
        ASSERT_OK(weft_detach(weft_go(spawns_until_over)));
    }
    timer_t storm = storm_begins();
    while (!weft_done(task)) {
        if (how == BY_FD) {
            turn_by_poll(rt);
        } else {
            ASSERT_GE(weft_rt_turn(rt, -1), 0);
        }
    }
    storm_ends(storm);
    ASSERT_OK(weft_join(task, NULL));
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_rt_stop(rt, -1));
    weft_waker_unref(game.waker);
}

TEST_WITH(signal_wakes_a_runtime_asleep_in_its_turn, .timeout_s = 240)
{
    SKIP_IF_LATE();
    turned_by_this_thread(ALONE);
}

TEST_WITH(signal_wakes_from_the_middle_of_a_turn, .timeout_s = 240)
{
    SKIP_IF_LATE();
    turned_by_this_thread(BUSY);
}

TEST_WITH(signal_wakes_a_runtime_in_a_foreign_loop, .timeout_s = 240)
{
    SKIP_IF_LATE();
    turned_by_this_thread(BY_FD);
}

/* ---- it interrupts whom it likes, without waiting for anybody ------------------------------------------------------------------ */

static void *kills(void *target)
{
    while (!is_over()) {
        for (int i = 0; i < 20; i++)
            ASSERT_OK(pthread_kill(*(pthread_t *)target, SIGUSR1));
        sched_yield();
    }
    return NULL;
}

/* Signals of four threads at once, as fast as they come. */
TEST_WITH(signal_storm_from_other_threads, .timeout_s = 240)
{
    pthread_t self = pthread_self();
    pthread_t crowd[4];
    weft_rt *rt;
    SKIP_IF_LATE();
    game_begins(WAKES);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    weft_task *task = weft_spawn_as((.rt = rt), counts);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_create(&crowd[i], NULL, kills, &self));
    while (!weft_done(task))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_join(crowd[i], NULL));
    signal(SIGUSR1, SIG_IGN);
    ASSERT_OK(weft_join(task, NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
    weft_waker_unref(game.waker);
}

/* ---- small print ------------------------------------------------------------------------------------------------------------- */

TEST(signal_wake_leaves_errno_alone)
{
    weft_rt *rt;
    game_begins(1);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    weft_task *task = weft_spawn_as((.rt = rt), counts);
    ASSERT_GE(weft_rt_fd(rt), 0);
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    errno = 1234;
    weft_waker_wake_signal(game.waker);
    weft_waker_wake_signal((weft_waker){0});
    ASSERT_EQ(errno, 1234);
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    store_relaxed(&game.sent, 1);
    weft_waker_wake_signal(game.waker);
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    ASSERT(weft_done(task));
    weft_waker_wake_signal(game.waker); /* long over: the reference keeps it good */
    ASSERT_OK(weft_join(task, NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
    weft_waker_wake_signal(game.waker);
    weft_waker_unref(game.waker);
}
