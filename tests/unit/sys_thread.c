/* SPDX-License-Identifier: MIT
 *
 * Threads: what a new one inherits and what not, names, affinity, slack, and a failed start that
 * leaves nothing.
 */
#include "base/fault.h"
#include "death.h"
#include "filter.h"
#include "statm.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What a thread finds when it looks at itself. */
struct found {
    struct weft__thread thread;
    bool ran;
    pid_t tid;
    char name[16];
    sigset_t blocked;
    struct weft__cpus affinity;
    size_t stack_bytes;
};

static void look_around(void *arg)
{
    struct found *f = arg;
    pthread_attr_t attr;
    void *stack;

    f->ran = true;
    f->tid = weft__thread_tid();
    prctl(PR_GET_NAME, f->name);
    pthread_sigmask(SIG_SETMASK, NULL, &f->blocked);
    (void)weft__cpu_affinity_get(0, &f->affinity);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &stack, &f->stack_bytes);
    pthread_attr_destroy(&attr);
}

static int start_and_join(struct found *f, const struct weft__thread_options *o)
{
    memset(f, 0, sizeof(*f));
    int r = weft__thread_start(&f->thread, o, look_around, f);
    if (r == 0) weft__thread_join(&f->thread);
    return r;
}

TEST(thread_runs_and_is_joined)
{
    struct found f;
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){0}));
    ASSERT(f.ran);
    ASSERT_NE(f.tid, weft__thread_tid());
    ASSERT_EQ(weft__thread_tid_of(&f.thread), f.tid);
    ASSERT_EQ(weft__thread_tid(), getpid());
}

TEST(thread_name_is_set_and_cut)
{
    struct found f;
    char before[16];

    prctl(PR_GET_NAME, before);
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){.name = "weft-worker-0"}));
    ASSERT_STR(f.name, "weft-worker-0");
    ASSERT_OK(start_and_join(
        &f, &(struct weft__thread_options){.name = "a name much longer than it may be"}));
    ASSERT_STR(f.name, "a name much lon");
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){0}));
    ASSERT_STR(f.name, before);
}

TEST(thread_set_name_names_the_caller)
{
    char name[16];
    weft__thread_set_name("renamed, and cut to fit");
    prctl(PR_GET_NAME, name);
    ASSERT_STR(name, "renamed, and cu");
}

/* All signals are blocked in it but those it may bring upon itself; the starter's mask is as
 * before, also after a failure. */
TEST(thread_has_signals_blocked)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    struct found f;
    sigset_t before;
    sigset_t after;

    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){0}));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < 32; s++)
        ASSERT_EQ(sigismember(&after, s), s == SIGUSR2);

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        ASSERT(!sigismember(&f.blocked, own[i]));
    static const int foreign[] = {SIGINT,  SIGTERM, SIGHUP,  SIGCHLD, SIGPIPE,
                                  SIGUSR1, SIGALRM, SIGPROF, SIGWINCH};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        ASSERT(sigismember(&f.blocked, foreign[i]));
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        ASSERT(sigismember(&f.blocked, s));
}

TEST(thread_stack_is_as_large_as_asked)
{
    struct found f;
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){.stack_bytes = 3 * 1024 * 1024}));
    ASSERT_GE(f.stack_bytes, 3 * 1024 * 1024);
    if (test_scaled(20) == 20) ASSERT_LE(f.stack_bytes, 3 * 1024 * 1024); /* sanitizers add to it */
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){.stack_bytes = 1}));
    ASSERT(f.ran);
}

static uint32_t first_of(const struct weft__cpus *set)
{
    for (uint32_t i = 0; i < WEFT__CPUS_MAX; i++)
        if (weft__cpus_has(set, i)) return i;
    ASSERT(!set);
    return 0;
}

/* Of the first thread it is read from a file, which may not be there. */
static void asks_without_proc(void *unused)
{
    (void)unused;
    if (!filter_denies(SYS_openat, ENOENT)) _exit(3);
    errno = 1234;
    struct weft__thread_stack s = weft__thread_stack();
    _exit(errno != 1234 ? 4 : s.bytes != 0 ? 5 : 0);
}

TEST(thread_stack_leaves_errno)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind would not follow");
    struct death d = death_of(asks_without_proc, NULL);
    if (d.code == 3) TEST_SKIP("there are no filters here");
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
}

TEST(thread_starts_on_its_cpus)
{
    struct weft__cpus all;
    struct weft__cpus one = {0};
    struct found f;

    ASSERT_OK(weft__cpu_affinity_get(0, &all));
    weft__cpus_add(&one, first_of(&all));
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){.affinity = &one}));
    ASSERT(f.ran);
    ASSERT_EQ(memcmp(&f.affinity, &one, sizeof(one)), 0);
    ASSERT_OK(weft__cpu_affinity_get(0, &f.affinity));
    ASSERT_EQ(memcmp(&f.affinity, &all, sizeof(all)), 0); /* ours did not change */
}

/* CPUs that are not there: the thread ends before it runs anything, and start has joined it. */
TEST(thread_on_no_cpu_does_not_start)
{
    struct weft__cpus none = {0};
    struct weft__cpus absent = {0};
    struct found f;

    weft__cpus_add(&absent, WEFT__CPUS_MAX - 1);
    ASSERT_EQ(start_and_join(&f, &(struct weft__thread_options){.affinity = &none}), -EINVAL);
    ASSERT(!f.ran);
    ASSERT_EQ(start_and_join(&f, &(struct weft__thread_options){.affinity = &absent}), -EINVAL);
    ASSERT(!f.ran);
}

/* A thread that gave up is joined: its stack of 64 MiB is gone, or used for the next, and not one
 * of forty stays. */
TEST(thread_that_did_not_start_leaves_no_stack)
{
    struct weft__cpus none = {0};
    struct weft__thread_options o = {.affinity = &none, .stack_bytes = 64 << 20};
    struct found f;

    ASSERT_EQ(start_and_join(&f, &o),
              -EINVAL); /* what the C library keeps, it keeps from here on */
    size_t before = statm().total_bytes;
    for (int i = 0; i < 40; i++)
        ASSERT_EQ(start_and_join(&f, &o), -EINVAL);
    ASSERT_LE(statm().total_bytes, before + 4 * o.stack_bytes);
}

TEST(thread_timer_slack_is_set)
{
    ASSERT_OK(weft__thread_set_timer_slack(1));
    ASSERT_EQ(prctl(PR_GET_TIMERSLACK), 1);
    ASSERT_OK(weft__thread_set_timer_slack(50000));
    ASSERT_EQ(prctl(PR_GET_TIMERSLACK), 50000);
}

TEST(thread_yield_returns)
{
    for (int i = 0; i < 1000; i++)
        weft__thread_yield();
}

/* More address space than there is: the C library's error comes through. */
TEST(thread_with_a_hopeless_stack_does_not_start)
{
    struct found f;
    int r = start_and_join(&f, &(struct weft__thread_options){.stack_bytes = (size_t)1 << 60});
    ASSERT(r == -EAGAIN || r == -ENOMEM || r == -EINVAL);
    ASSERT(!f.ran);
}

#if defined(WEFT_FAULTS)
TEST(thread_fails_when_told)
{
    struct found f;
    struct weft__cpus all;

    ASSERT_OK(weft__cpu_affinity_get(0, &all));
    weft__fault_arm(WEFT__FAULT_THREAD, 1, 1, -EAGAIN);
    ASSERT_EQ(start_and_join(&f, &(struct weft__thread_options){.name = "x"}), -EAGAIN);
    ASSERT(!f.ran);
    weft__fault_arm(WEFT__FAULT_AFFINITY, 1, 1, -EPERM);
    ASSERT_EQ(start_and_join(&f, &(struct weft__thread_options){.affinity = &all}), -EPERM);
    ASSERT(!f.ran);
    weft__fault_arm(WEFT__FAULT_SLACK, 1, 1, -EINVAL);
    ASSERT_EQ(weft__thread_set_timer_slack(1), -EINVAL);
    weft__fault_arm(WEFT__FAULT_FUTEX_WAIT, 1, 2, -EINTR); /* the wait for the beginning bears it */
    ASSERT_OK(start_and_join(&f, &(struct weft__thread_options){.affinity = &all}));
    ASSERT(f.ran);
}
#endif

/* ---- the end of a thread --------------------------------------------------------------------- */

struct farewell {
    struct weft__thread_exit exit;
    int calls;
    int again;
    int first; /* which of them it was */
};
static struct farewell farewells[2];
static int farewells_said;

static void says_farewell(struct weft__thread_exit *exit)
{
    struct farewell *f = (struct farewell *)exit;
    if (f->calls++ == 0) f->first = ++farewells_said;
    if (f->again-- > 0) ASSERT_OK(weft__thread_at_exit(exit, says_farewell));
}

static void *asks_twice(void *how)
{
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weft__thread_at_exit(&farewells[i].exit, says_farewell));
        ASSERT_OK(weft__thread_at_exit(&farewells[i].exit, says_farewell));
    }
    if (how) pthread_exit(NULL);
    return NULL;
}

/* Once each, however often it is asked for and however the end comes, in the order of asking; and once more for what is asked
 * for meanwhile. */
TEST(thread_at_exit_runs_once_per_request)
{
    for (int how = 0; how < 2; how++) {
        pthread_t thread;
        memset(farewells, 0, sizeof(farewells));
        farewells_said = 0;
        farewells[1].again = 1;
        ASSERT_OK(pthread_create(&thread, NULL, asks_twice, how ? farewells : NULL));
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_EQ(farewells[0].calls, 1);
        ASSERT_EQ(farewells[1].calls, 2);
        ASSERT_EQ(farewells[0].first, 1);
        ASSERT_EQ(farewells[1].first, 2);
    }
}

#if defined(WEFT_FAULTS)
TEST(thread_at_exit_that_fails_is_not_called)
{
    weft__fault_arm(WEFT__FAULT_THREAD_KEY, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__thread_at_exit(&farewells[0].exit, says_farewell), -ENOMEM);
    ASSERT(!farewells[0].exit.run);
}
#endif
