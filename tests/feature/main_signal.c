/* SPDX-License-Identifier: MIT
 *
 * WEFT_MAIN and signals: the first cancels app, the second kills, and the shell sees why. And its runtime: the default of all threads.
 *
 * Each test forks a program that is nothing but weft__main, which is what WEFT_MAIN makes of app, and
 * signals it. A program says by a byte how far it has come, so that no time decides.
 */
#include "base/atomic.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

/* TSan keeps a signal back while its thread is asleep in weft. */
#if defined(WEFT__TSAN)
#define SKIP_IF_LATE() TEST_SKIP("TSan delays handlers, for ever if the thread sleeps")
#else
#define SKIP_IF_LATE() ((void)0)
#endif

/* ---- a program ---- */

static int say_fd;  /* the program's: bytes for the test */
static int hear_fd; /* the program's: bytes from the test */

static void say(char what)
{
    if (write(say_fd, &what, 1) != 1) _exit(99);
}

static void hear(void)
{
    char what;
    if (read(hear_fd, &what, 1) != 1) _exit(99);
}

struct program {
    pid_t pid;
    int hears; /* what it says */
    int tells;
    char said[8192]; /* on stderr and stdout */
    int out;
};

static void program_begins(struct program *p, int (*app)(void), const char *workers,
                           const char *stop_ms, void (*before)(void))
{
    int up[2];
    int down[2];
    int out[2];
    ASSERT_OK(pipe(up));
    ASSERT_OK(pipe(down));
    ASSERT_OK(pipe(out));
    p->pid = fork();
    ASSERT(p->pid >= 0);
    if (p->pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        setenv("WEFT_WORKERS", workers, 1);
        setenv("WEFT_STOP", stop_ms, 1);
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        close(up[0]);
        close(down[1]);
        say_fd = up[1];
        hear_fd = down[0];
        if (before) before();
        exit(weft__main((int (*)(int, char **))(void (*)(void))app, 0, NULL));
    }
    close(up[1]);
    close(down[0]);
    close(out[1]);
    p->hears = up[0];
    p->tells = down[1];
    p->out = out[0];
}

static void await_said(struct program *p, char what)
{
    char got = 0;
    ASSERT_EQ(read(p->hears, &got, 1), 1);
    ASSERT_EQ(got, what);
}

static void tell(struct program *p)
{
    ASSERT_EQ(write(p->tells, "x", 1), 1);
}

/* What the program printed, up to and with a line that contains `text`. */
static void await_printed(struct program *p, const char *text)
{
    size_t used = strlen(p->said);
    while (!strstr(p->said, text)) {
        ssize_t got = read(p->out, p->said + used, sizeof(p->said) - 1 - used);
        ASSERT(got > 0);
        used += (size_t)got;
        p->said[used] = 0;
    }
}

/* Its end, as waitpid has it. */
static int program_ends(struct program *p)
{
    int status = 0;
    size_t used = strlen(p->said);
    ssize_t got;
    while ((got = read(p->out, p->said + used, sizeof(p->said) - 1 - used)) > 0)
        used += (size_t)got;
    ASSERT_EQ(waitpid(p->pid, &status, 0), p->pid);
    close(p->hears);
    close(p->tells);
    close(p->out);
    return status;
}

static const char *const kinds[] = {"1", "2", "-1"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- the first signal ---- */

/* Waits until it is told to stop. */
static int until_cancelled(void)
{
    int r = 0;
    say('r');
    while (r == 0)
        r = weft_yield();
    return r;
}

static int ends_clean(void)
{
    int r = until_cancelled();
    fputs("unwound\n", stderr);
    return r == -ECANCELED ? 0 : 1;
}

static void clean_exit(int signal, const char *workers)
{
    struct program p = {0};
    program_begins(&p, ends_clean, workers, "10000", NULL);
    await_said(&p, 'r');
    ASSERT_OK(kill(p.pid, signal));
    int status = program_ends(&p);
    ASSERT(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
    ASSERT_STR(p.said, "unwound\n");
}

TEST(main_signal_cancels_app_which_ends_clean)
{
    SKIP_IF_LATE();
    for (size_t i = 0; i < KINDS; i++) {
        clean_exit(SIGINT, kinds[i]);
        clean_exit(SIGTERM, kinds[i]);
    }
}

/* One that is asleep for good, in a join of a task that is asleep as well. */
static int joins_a_sleeper(void)
{
    int r = 0;
    weft_task *t = weft_go(until_cancelled);
    int joined = weft_join(t, &r);
    return joined < 0 ? joined : r;
}

static void said_at_exit(void)
{
    fputs("at exit\n", stdout); /* a buffer that is not flushed yet */
}

static void register_at_exit(void)
{
    setvbuf(stdout, NULL, _IOFBF, 4096);
}

static int registers_and_joins(void)
{
    atexit(said_at_exit);
    return joins_a_sleeper();
}

static void dies_by(int signal, const char *workers)
{
    struct program p = {0};
    program_begins(&p, registers_and_joins, workers, "10000", register_at_exit);
    await_said(&p, 'r');
    ASSERT_OK(kill(p.pid, signal));
    int status = program_ends(&p);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), signal);
    ASSERT_STR(p.said, "at exit\n"); /* and no word about ECANCELED */
}

TEST(main_signal_that_app_passes_on_is_what_the_process_dies_by)
{
    SKIP_IF_LATE();
    for (size_t i = 0; i < KINDS; i++) {
        dies_by(SIGINT, kinds[i]);
        dies_by(SIGTERM, kinds[i]);
    }
}

/* ---- the second ---- */

static int never_listens(void)
{
    say('r');
    while (weft_yield() == 0) {
    }
    say('c'); /* cancelled, and takes no notice */
    while (weft_yield() != 0) {
    }
    return 0;
}

static void second_kills(int first, int second, const char *workers)
{
    struct program p = {0};
    program_begins(&p, never_listens, workers, "600000", NULL);
    await_said(&p, 'r');
    ASSERT_OK(kill(p.pid, first));
    await_said(&p, 'c');
    ASSERT_OK(kill(p.pid, second));
    int status = program_ends(&p);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), second);
    ASSERT_STR(p.said, "");
}

TEST(main_second_signal_kills)
{
    SKIP_IF_LATE();
    for (size_t i = 0; i < KINDS; i++) {
        second_kills(SIGINT, SIGINT, kinds[i]);
        second_kills(SIGTERM, SIGTERM, kinds[i]);
        second_kills(SIGINT, SIGTERM, kinds[i]);
    }
}

/* ---- what does not stop ---- */

static int hears(void)
{
    say('j');
    hear();
    return 5;
}

static int waits_for_a_job(void)
{
    return weft_blocking(hears);
}

static void named_and_waited_for(const char *workers)
{
    struct program p = {0};
    program_begins(&p, waits_for_a_job, workers, "1", NULL);
    await_said(&p, 'j');
    ASSERT_OK(kill(p.pid, SIGTERM));
    await_printed(&p, "weft: app has not stopped within 1 ms of SIGTERM; a second signal kills\n");
    await_printed(&p, "weft: blocking job 'hears' does not end\n");
    tell(&p);
    int status = program_ends(&p);
    ASSERT(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 5); /* what happened, happened */
}

TEST(main_app_that_does_not_stop_is_named_and_waited_for)
{
    SKIP_IF_LATE();
    for (size_t i = 0; i < KINDS; i++)
        named_and_waited_for(kinds[i]);
}

static void deaf(void)
{
    say('d');
    for (;;)
        (void)weft_yield();
}

static int leaves_one_behind(void)
{
    return weft_detach(weft_go(deaf));
}

/* Without a signal, too: when app has returned, the process ends. */
TEST(main_tasks_that_do_not_stop_are_named_and_left)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct program p = {0};
        program_begins(&p, leaves_one_behind, kinds[i], "1", NULL);
        int status = program_ends(&p);
        ASSERT(WIFEXITED(status));
        ASSERT_EQ(WEXITSTATUS(status), 0);
        ASSERT(strstr(p.said, "weft: task 'deaf' (spawned at "));
        ASSERT(strstr(p.said, ") does not stop\n"));
    }
}

/* ---- who was there before ---- */

static void ignore_int(void)
{
    signal(SIGINT, SIG_IGN);
}

static void ignored_or_handled(void (*before)(void), const char *printed)
{
    struct program p = {0};
    program_begins(&p, ends_clean, "2", "10000", before);
    await_said(&p, 'r');
    ASSERT_OK(kill(p.pid, SIGINT));
    if (*printed) await_printed(&p, printed);
    ASSERT_OK(kill(p.pid, SIGTERM)); /* not the second: the first was not ours */
    int status = program_ends(&p);
    ASSERT(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
    ASSERT(strstr(p.said, "unwound\n"));
}

static void own_handler(int signal)
{
    (void)signal;
    ssize_t n = write(STDERR_FILENO, "mine\n", 5);
    (void)n;
}

static void handle_int(void)
{
    signal(SIGINT, own_handler);
}

TEST(main_signal_that_is_ignored_stays_ignored)
{
    SKIP_IF_LATE();
    ignored_or_handled(ignore_int, "");
}

TEST(main_handler_that_was_there_before_stays)
{
    SKIP_IF_LATE();
    ignored_or_handled(handle_int, "mine\n");
}

/* ---- a thread of app's ---- */

static _Atomic bool thread_is_over;

static int one(int value)
{
    return value;
}

/* It has entered nothing. 0, or the number of what it found wrong. */
static int found_wrong(const weft_rt *apps)
{
    int got = 0;
    if (!weft_rt_current() || weft_rt_current() != apps) return 1;
    if (weft_join(weft_go(one, 1), &got) != 0) return 2;
    return got == 1 ? 0 : 3;
}

static void *finds_the_runtime(void *apps)
{
    int wrong = found_wrong(apps);
    store_release(&thread_is_over, true);
    return (void *)(intptr_t)wrong;
}

/* A runtime of one thread runs the thread's task only if app lets it. */
static int starts_a_thread(void)
{
    pthread_t thread;
    void *wrong;
    if (pthread_create(&thread, NULL, finds_the_runtime, weft_rt_current()) != 0) return 4;
    while (!load_acquire(&thread_is_over))
        (void)weft_yield();
    if (pthread_join(thread, &wrong) != 0) return 5;
    return (int)(intptr_t)wrong;
}

TEST(main_runtime_is_the_default_of_all_threads)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct program p = {0};
        program_begins(&p, starts_a_thread, kinds[i], "10000", NULL);
        int status = program_ends(&p);
        ASSERT(WIFEXITED(status));
        ASSERT_EQ(WEXITSTATUS(status), 0);
        ASSERT_STR(p.said, "");
    }
}

/* ---- a child ---- */

/* A child that app has forked and that goes its own way dies by its first signal. */
static int forks(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, NULL); /* a worker's mask is full */
        for (;;)
            pause();
    }
    if (child < 0 || kill(child, SIGTERM) != 0) return 1;
    if (waitpid(child, &status, 0) != child) return 2;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 3;
}

TEST(main_signal_kills_a_forked_child)
{
    SKIP_IF_LATE();
    for (size_t i = 0; i < KINDS; i++) {
        struct program p = {0};
        program_begins(&p, forks, kinds[i], "10000", NULL);
        int status = program_ends(&p);
        ASSERT(WIFEXITED(status));
        ASSERT_EQ(WEXITSTATUS(status), 0);
    }
}
