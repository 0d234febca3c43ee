/* SPDX-License-Identifier: MIT
 *
 * thread - the library's threads: started with a name, a stack and a mask of signals, joined by
 * whoever started them.
 *
 * Signals belong to the program: a library thread has all of them blocked, except those that a
 * thread brings upon itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS). Blocked, these
 * would kill the process without asking the handler that reports a stack overflow.
 * Threads: start and join by any, once each, in this order. The struct is the starter's and is
 * pinned from start to join.
 * Rejected: detached threads (nobody could wait for them at exit), pthread attributes for affinity
 * (one libc only).
 */
#ifndef WEFT_SYS_THREAD_H
#define WEFT_SYS_THREAD_H

#include "base/atomic.h"
#include "sys/cpu.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WEFT__THREAD_NAME_BYTES 16 /* the kernel's; with the NUL */

struct weft__thread {
    pthread_t id;        /* starter's, from start to join */
    void (*run)(void *); /* written before the thread exists, as the next four */
    void *arg;
    const struct weft__cpus *affinity; /* borrowed until start returns */
    char name[WEFT__THREAD_NAME_BYTES];
    _Atomic int32_t tid;    /* the kernel's number; 0 until the thread has begun */
    _Atomic uint32_t begun; /* 0 not yet, 1 running, 2 given up; a futex  [thread-begun] */
    int begin_error;        /* why it gave up; written before begun */
};

struct weft__thread_options {
    const char *name;                  /* cut to 15 bytes; NULL: keep the starter's */
    size_t stack_bytes;                /* 0: the system's default; raised to its minimum */
    const struct weft__cpus *affinity; /* NULL: the starter's */
};

/* Start a thread that calls run(arg) and ends when that returns. Borrows: *o for the call. Pins:
 * *t until weft__thread_join.
 * Blocks: until the new thread has moved to its CPUs, if an affinity is asked for; else no.
 * Context: any thread.
 * Returns 0; -EAGAIN at a limit of threads; -ENOMEM; -EINVAL if none of the CPUs may be used.
 * After an error there is no thread and nothing to undo. */
int weft__thread_start(struct weft__thread *t, const struct weft__thread_options *o,
                       void (*run)(void *), void *arg);

/* Wait until it has ended; what it did then happened before. Blocks: yes, also through signals.
 * Context: any thread but itself. */
void weft__thread_join(struct weft__thread *t);

/* What a thread does when it ends, whoever started it. Lies in the thread's own memory, zeroed. */
struct weft__thread_exit {
    struct weft__thread_exit *next; /* the thread's own list */
    void (*run)(struct weft__thread_exit *); /* NULL: not in it */
};

/* Have run(exit) called when the calling thread ends, in whichever way: return, pthread_exit, pthread_cancel. By the thread itself, on its own
 * stack, before its thread-locals go, behind those that were asked for earlier; once, even if it is asked for again meanwhile. Not
 * for the thread that leaves main or calls exit: the process ends with it.
 * Pins *exit until then. Blocks: no. Returns 0; -ENOMEM, -EAGAIN: it will not be called. */
int weft__thread_at_exit(struct weft__thread_exit *exit, void (*run)(struct weft__thread_exit *));

/* The number of a started thread, for /proc/self/task; 0 while it has not begun. Blocks: no. */
pid_t weft__thread_tid_of(const struct weft__thread *t);

/* The calling thread's number. A syscall each time: a remembered one would be wrong after fork. */
pid_t weft__thread_tid(void);

/* Name the calling thread; cut to 15 bytes. Blocks: no. Cannot fail. */
void weft__thread_set_name(const char *name);

/* By how much the kernel may delay this thread's timed waits to batch them; at least 1, the
 * system's default is 50,000. Blocks: no.
 * Returns 0; -EINVAL where there is no such thing (a simulated kernel). Real-time threads have
 * none and ignore it. */
int weft__thread_set_timer_slack(uint64_t slack_ns);

struct weft__thread_stack {
    char *lo;     /* lowest address */
    size_t bytes; /* 0: it cannot be told */
};

/* The calling thread's own stack, whichever it stands on. Blocks: no. */
struct weft__thread_stack weft__thread_stack(void);

/* Let another thread run that wants this CPU. */
void weft__thread_yield(void);

#endif
