/* SPDX-License-Identifier: MIT
 *
 * thread - pthread_create with the signal mask around it, and a beginning that sets up what only
 * the thread itself can.
 */
#include "sys/thread.h"

#include "base/fault.h"
#include "sys/futex.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_YET, RUNNING, GIVEN_UP };

static void report_begun(struct weft__thread *t, uint32_t how)
{
    store_release(&t->begun, how); /* [thread-begun] with start: publishes begin_error */
    (void)weft__futex_wake(&t->begun, 1);
}

/* Move to the CPUs that were asked for and tell the starter, who waits. False: the thread ends. */
static bool settle_down(struct weft__thread *t)
{
    int r = weft__cpu_affinity_set(0, t->affinity);
    plain_write(&t->begin_error, r);
    report_begun(t, r < 0 ? GIVEN_UP : RUNNING);
    return r == 0;
}

static void *begin(void *arg)
{
    struct weft__thread *t = arg;

    store_relaxed(&t->tid, weft__thread_tid()); /* relaxed: a number, nothing hangs on it */
    if (t->name[0]) weft__thread_set_name(t->name);
    if (t->affinity && !settle_down(t)) return NULL;
    t->run(t->arg);
    return NULL;
}

static void mask_of_library_threads(sigset_t *into)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

    sigfillset(into);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(into, own[i]);
}

static size_t at_least_minimum(size_t stack_bytes)
{
    long minimum = sysconf(_SC_THREAD_STACK_MIN); /* depends on the CPU's registers */
    if (minimum < PTHREAD_STACK_MIN) minimum = PTHREAD_STACK_MIN;
    return stack_bytes < (size_t)minimum ? (size_t)minimum : stack_bytes;
}

/* The thread inherits the mask at its birth, so there is no moment at which a signal could reach
 * it. */
static int create(struct weft__thread *t, size_t stack_bytes)
{
    pthread_attr_t attr;
    sigset_t blocked;
    sigset_t before;

    int r = weft__fault(WEFT__FAULT_THREAD);
    if (r < 0) return r;
    r = -pthread_attr_init(&attr);
    if (r < 0) return r;
    if (stack_bytes) r = -pthread_attr_setstacksize(&attr, at_least_minimum(stack_bytes));
    if (r == 0) {
        mask_of_library_threads(&blocked);
        pthread_sigmask(SIG_SETMASK, &blocked, &before);
        r = -pthread_create(&t->id, &attr, begin, t);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attr);
    return r;
}

/* Wait until the thread has moved, or has given up and ended. */
static int await_begun(struct weft__thread *t)
{
    while (load_acquire(&t->begun) == NOT_YET) { /* [thread-begun] with report_begun */
        (void)weft__futex_wait(&t->begun, NOT_YET, WEFT__NEVER);
    }
    int r = plain_read(&t->begin_error);
    t->affinity = NULL;
    if (r < 0) weft__thread_join(t);
    return r;
}

int weft__thread_start(struct weft__thread *t, const struct weft__thread_options *o,
                       void (*run)(void *), void *arg)
{
    memset(t, 0, sizeof(*t));
    t->run = run;
    t->arg = arg;
    t->affinity = o->affinity;
    if (o->name) strncat(t->name, o->name, sizeof(t->name) - 1);

    int r = create(t, o->stack_bytes);
    if (r < 0) return r;
    return o->affinity ? await_begun(t) : 0;
}

void weft__thread_join(struct weft__thread *t)
{
    int r = pthread_join(t->id, NULL);
    weft_assert(r == 0); /* started, not yet joined, not ourselves */
}

/* ---- the end of any thread ---- */

static pthread_key_t exit_key; /* its value: the thread's list */
static int exit_key_error;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

/* A further exit may be asked for by what runs here: then the key has a value again, and this is called again. On the thread's own stack, also if
 * a fiber called pthread_exit: nothing here may need the stack to be as a sanitizer believes (sched/quit.c). */
static void run_exits(void *list)
{
    struct weft__thread_exit *first = list;
    while (first) {
        struct weft__thread_exit *exit = first;
        void (*run)(struct weft__thread_exit *) = exit->run;
        first = exit->next;
        exit->run = NULL;
        run(exit);
    }
}

static void make_exit_key(void)
{
    exit_key_error = -pthread_key_create(&exit_key, run_exits);
}

int weft__thread_at_exit(struct weft__thread_exit *exit, void (*run)(struct weft__thread_exit *))
{
    if (exit->run) return 0;
    int r = weft__fault(WEFT__FAULT_THREAD_KEY);
    if (r < 0) return r;
    pthread_once(&exit_key_once, make_exit_key);
    if (exit_key_error < 0) return exit_key_error;
    struct weft__thread_exit *last = pthread_getspecific(exit_key);
    while (last && last->next)
        last = last->next;
    exit->next = NULL;
    if (last) {
        last->next = exit;
    } else {
        r = -pthread_setspecific(exit_key, exit);
    }
    if (r == 0) exit->run = run;
    return r;
}

pid_t weft__thread_tid_of(const struct weft__thread *t)
{
    return load_relaxed(&t->tid); /* relaxed: a number */
}

pid_t weft__thread_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

void weft__thread_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name, 0, 0, 0); /* fails for a bad pointer alone; the kernel cuts */
}

int weft__thread_set_timer_slack(uint64_t slack_ns)
{
    weft_assert(slack_ns > 0); /* 0 would mean the default */
    int r = weft__fault(WEFT__FAULT_SLACK);
    if (r < 0) return r;
    return prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns, 0, 0, 0) < 0 ? -errno : 0;
}

void weft__thread_yield(void)
{
    (void)sched_yield();
}

/* The first thread's is looked for in /proc, which may be closed to us: that is not for the caller's errno. */
static int attributes_of_this(pthread_attr_t *into)
{
    int before = errno;
    int r = pthread_getattr_np(pthread_self(), into);
    errno = before;
    return r;
}

struct weft__thread_stack weft__thread_stack(void)
{
    pthread_attr_t attr;
    void *lo = NULL;
    size_t bytes = 0;
    if (attributes_of_this(&attr) != 0) return (struct weft__thread_stack){0};
    if (pthread_attr_getstack(&attr, &lo, &bytes) != 0) bytes = 0;
    pthread_attr_destroy(&attr);
    return (struct weft__thread_stack){.lo = lo, .bytes = bytes};
}
