/* SPDX-License-Identifier: MIT
 *
 * rt - a runtime: workers that run tasks.
 */
#ifndef WEFT_RT_H
#define WEFT_RT_H

#include <weft/task.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What fds are waited for with (docs/DRIVER.md). AUTO: epoll today. IO_URING: that, if it works here; else epoll, and weft_rt_driver says why. */
typedef enum weft_driver {
    WEFT_DRIVER_AUTO,
    WEFT_DRIVER_EPOLL,
    WEFT_DRIVER_IO_URING,
} weft_driver;

/* How operations on files are done that may block (file.h). AUTO: by io_uring where the kernel has it and allows it, else by the pool. IO_URING: by that,
 * and no runtime is built without. POOL: by threads of the blocking pool. Whatever a ring cannot do goes to the pool. */
typedef enum weft_files_way {
    WEFT_FILES_AUTO,
    WEFT_FILES_POOL,
    WEFT_FILES_IO_URING,
} weft_files_way;

/* All that a runtime can be told. Zero means the default. The environment variable of the comment has the last word, over the program's too; docs/OPTIONS.md is a table of all. */
typedef struct weft_rt_opts {
    int workers;                               /* WEFT_WORKERS: threads; default: usable CPUs. -1: current-thread, whatever the variable says */
    const char *name;                          /* WEFT_NAME: of threads, in front of a number; 1 to 9 bytes; default "weft" */
    size_t thread_stack_bytes;                 /* WEFT_THREAD_STACK: of worker threads; default: the system's */
    size_t stack_bytes;                        /* WEFT_STACK: of fibers; default 256 KiB */
    bool pin_threads;                          /* WEFT_PIN: each worker on a CPU of its own */
    unsigned tick_max;                         /* WEFT_TICK: polls between looks at the inject queue; default 61 */
    unsigned budget;                           /* WEFT_BUDGET: operations per poll; default 128 */
    unsigned spin_us;                          /* WEFT_SPIN: longest search before a worker sleeps; default 20 */
    uint64_t seed;                             /* WEFT_SEED: of all randomness; default: from the clock */
    bool make_default;                         /* the process's default runtime, for threads that entered none; no variable: the program knows which of its own it means */
    /* Once all threads are there: a build that fails calls nobody. It may spawn; what waits is refused with -EDEADLK, here as in all that a worker calls. */
    void (*on_thread_start)(weft_rt *, unsigned worker);
    void (*on_thread_stop)(weft_rt *, unsigned worker); /* a plain thread by then: it spawns nothing here */
    int monitor_us;                            /* WEFT_MONITOR: between two looks for polls that do not end; default 5000. -1: nobody looks */
    unsigned schedtrace_ms;                    /* WEFT_SCHEDTRACE: between two lines about the scheduler on stderr; default: none */
    /* A worker thread is about to sleep; has woken, or did not sleep after all. In pairs, no lock held. They may wake tasks, and
     * neither block nor spawn. Not called by weft_rt_turn. */
    void (*on_thread_park)(weft_rt *, unsigned worker);
    void (*on_thread_unpark)(weft_rt *, unsigned worker);
    /* For each task, once, with no lock held: by its spawner before it can run, and by its worker when its result stands,
     * before a joiner knows. They look (weft_task_id, weft_task_name) and keep nothing; they neither wait nor spawn. */
    void (*on_task_spawn)(weft_rt *, const weft_task *);
    void (*on_task_end)(weft_rt *, const weft_task *);
    bool paused;                               /* WEFT_PAUSED: its clock stands from the beginning (time.h); for tests */
    unsigned blocking_threads;                 /* WEFT_BLOCKING_THREADS: of jobs that name no lane (blocking.h); default 512 */
    weft_driver driver;                        /* WEFT_DRIVER: auto, epoll or io_uring; default auto */
    unsigned blocking_keep_ms;                 /* WEFT_BLOCKING_KEEP: how long such a thread waits for its next job; default 10,000 */
    weft_files_way files;                      /* WEFT_FILES: auto, pool or io_uring; default auto */
} weft_rt_opts;

/* In the child of a fork the runtimes of its parent are dead: nothing can be spawned there, and what returns an int answers -ECHILD. A fresh
 * one works (docs/LIVING_WITH_C.md). */

/* Build and start. `opts` may be NULL. Returns 0; -EINVAL with one line on stderr for a bad option or variable; -ENOMEM, -EAGAIN; with WEFT_FILES_IO_URING
 * and a line on stderr, what weft_rt_files would answer. */
WEFT_API int weft_rt_new(const weft_rt_opts *opts, weft_rt **into);

/* Stop: tasks are cancelled and waited for, up to `timeout_ns` (negative: as long as it takes); then threads end and memory is given back.
 * Blocking jobs that have not begun end with -ECANCELED, those that run are waited for, up to the same time, and named like tasks (blocking.h).
 * Failures that nobody read were reported once for each place that spawns; how many more there were is told here, on stderr.
 * Threads that have entered it leave it before; one that sleeps in it meanwhile is not waited for: it sleeps on to its end, and has then left it.
 * Handles, references and kept wakers of its tasks stay good: the tasks have ended, and the memory of those goes with the last of them.
 * The calling thread has left it by then, if it had entered it.
 * Returns 0; -ETIME: some did not stop; their names went to stderr, the runtime is still there, and stop may be called again; -EDEADLK from one of its tasks or blocking jobs,
 * also from inside a turn of another runtime that such a task makes; -EBUSY: its tasks have ended, but another thread is inside weft_rt_turn: call stop again; or another
 * thread stops it; -EINVAL, with a line on stderr: there is no such runtime, or no more; -ECHILD in the child of a fork. */
WEFT_API int weft_rt_stop(weft_rt *rt, int64_t timeout_ns);

/* The runtime of spawns on this thread from now on; NULL: none. Gives back what it was before. */
WEFT_API weft_rt *weft_rt_enter(weft_rt *rt);

/* The current one: of the running task, else the one entered, else the process's default; NULL: none. */
WEFT_API weft_rt *weft_rt_current(void);

/* What its fds are waited for with: "epoll" or "io_uring". `why` may be NULL: set to the reason why it is not what was asked for, or to NULL. Both belong to the runtime. Of NULL: "none". */
WEFT_API const char *weft_rt_driver(const weft_rt *rt, const char **why);

/* Current-thread runtimes: run what is ready, waiting up to `timeout_ns` if there is nothing, or until a timer is due or an fd has something. If its clock
 * stands (time.h), it does not wait for timers but moves the clock to them, by `timeout_ns` at most; unless it has an fd: then it waits for that.
 * Returns how many polls were made; -EBUSY if it is being turned; -EINVAL for a runtime with workers; -ECHILD in the child of a fork. */
WEFT_API int weft_rt_turn(weft_rt *rt, int64_t timeout_ns);

/* An fd that is readable while there is something to run, a timer is due, or something has come to an fd of the runtime's: for a foreign loop around weft_rt_turn. Borrowed. -EINVAL with workers; -ECHILD
 * in the child of a fork. */
WEFT_API int weft_rt_fd(weft_rt *rt);

/* Its threads that run tasks; 0 of a current-thread runtime, and of NULL. */
WEFT_API unsigned weft_rt_workers(const weft_rt *rt);

/* Counters, summed over the workers; each right for itself. Of NULL: all zero. Of a worker: 0; -EINVAL for NULL, or if there is no such worker. */
typedef struct weft_stats {
    uint64_t spawned, completed, polls, steals, stolen, parks, wakes, spills, inlined;
    uint64_t spurious;                         /* times that a worker woke, found nothing, and slept again */
    uint64_t rescued;                          /* tasks taken from behind a poll that did not end */
    uint64_t unread_failures; /* tasks that failed while nobody was to read it; of the runtime, not of a worker */
    /* Of the runtime, not of a worker: threads of the blocking pool now, those of them that have nothing to do, jobs that wait, jobs that have run. */
    uint64_t blocking_threads, blocking_idle, blocking_queued, blocking_jobs;
    /* Of the runtime: file operations that io_uring has done, and those of them whose answer came when nobody waited for it any more. */
    uint64_t file_ring, file_late;
} weft_stats;
WEFT_API void weft_rt_stats(const weft_rt *rt, weft_stats *into);
WEFT_API int weft_rt_worker_stats(const weft_rt *rt, unsigned worker, weft_stats *into);

/* By which way do operations on files go? Returns 0: by io_uring; else by the pool, and why: -ENOTSUP: the runtime was told to (WEFT_FILES=pool); -ENOSYS: the
 * kernel has no io_uring, or one before 5.15; -EPERM: it is forbidden (seccomp, sysctl kernel.io_uring_disabled); -ENOMEM, -EMFILE, -ENFILE: there was no
 * room for it when it was first wanted. Asks the kernel if nobody has yet. -ECHILD in the child of a fork. */
WEFT_API int weft_rt_files(const weft_rt *rt);

/* What WEFT_MAIN does: a runtime of all cores, app as a fiber, its result as exit code: 0 and above as it is, or 1 for an
 * error, which is named. An app(void) is called with two arguments that it does not look at.
 *
 * SIGINT and SIGTERM cancel app: its awaits answer -ECANCELED, it unwinds, and returns what it likes, 0 for a clean exit. If it
 * returns -ECANCELED, the process dies by that signal, behind the handlers of atexit: to a shell that is 130 or 143. A second
 * signal kills at once. An app that has not returned 10 s after the signal is named on stderr, with the blocking jobs that run, and
 * waited for. When app has returned, other tasks are cancelled and waited for as long, then named and left: the process ends.
 * WEFT_STOP in the environment says how many milliseconds that is.
 * A signal that is ignored stays ignored, and a handler that was there before main stays in charge, or one that app
 * installs: then nothing of this happens for that signal. */
WEFT_API int weft__main(int (*app)(int, char **), int argc, char **argv);

/* WEFT_MAIN(app): the program's main, where app is `int app(void)` or `int app(int argc, char **argv)`. */
#ifdef __cplusplus
}
static inline int weft__main_of(int (*app)(int, char **), int argc, char **argv)
{
    return weft__main(app, argc, argv);
}
static inline int weft__main_of(int (*app)(void), int argc, char **argv)
{
    return weft__main((int (*)(int, char **))(void (*)(void))app, argc, argv);
}
#define WEFT_MAIN(app)                                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return weft__main_of(app, argc, argv);                                                     \
    }
#else
#define WEFT_MAIN(app)                                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        (void)_Generic(&(app), int (*)(void): 0, int (*)(int, char **): 0);                        \
        return weft__main((int (*)(int, char **))(void (*)(void))(app), argc, argv);               \
    }
#endif

#endif
