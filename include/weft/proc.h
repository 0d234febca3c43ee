/* SPDX-License-Identifier: MIT
 *
 * proc - child processes.
 *
 *     weft_proc *p;
 *     weft_stream *out;
 *     const char *argv[] = {"grep", "-c", "weft", "README.md", NULL};
 *     r = weft_proc_start(&(weft_proc_opts){.argv = argv, .from_out = &out}, &p);
 *     ... weft_read(out, ...) ... weft_close(out);
 *     r = weft_proc_wait(p, &status);                       as waitpid says it: WIFEXITED(status) ...
 *     weft_proc_close(p);
 *
 *     weft_proc_output all;                                 start it, feed it, collect what it says, wait for it
 *     r = weft_proc_run(&(weft_proc_opts){.argv = argv}, NULL, 0, 1 << 20, &all);
 *
 * A child gets its three streams, nothing of what the library has open, and of the program's own descriptors those that are not close-on-exec; the library's signal mask is not passed on. Its end is seen by a
 * descriptor of its own: there is no handler of SIGCHLD, and no number is ever signalled that has become another's. Linux 5.4 or newer.
 * Whoever else waits for all children (waitpid of -1, SIGCHLD ignored or SA_NOCLDWAIT) takes the end from whom it belongs to: weft_proc_wait, and sometimes weft_proc_start, then
 * answer -ECHILD.
 */
#ifndef WEFT_PROC_H
#define WEFT_PROC_H

#include <weft/stream.h>

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_proc weft_proc;

enum {
    WEFT_PROC_NULL = -1, /* as `in`, `out`, `err`: nothing to read, and what is written is thrown away */
    WEFT_PROC_OUT = -2,  /* as `err`: where `out` goes */
};

typedef struct weft_proc_opts {
    const char *const *argv; /* ends with NULL; the first is the program, looked for in PATH if it has no slash */
    const char *const *env;  /* NAME=value, ends with NULL; NULL: as this process's */
    const char *dir;         /* where it begins; NULL: as this process */
    int in, out, err;        /* descriptors, borrowed for the start; 0: as this process's, or WEFT_PROC_... */
    weft_stream **to_in;     /* not NULL: `in` is a pipe, whose other end is given; likewise the next two */
    weft_stream **from_out;
    weft_stream **from_err;
    bool group;         /* it leads a process group of its own, which weft_proc_kill means */
    bool kill_on_close; /* weft_proc_close kills it if it still runs */
} weft_proc_opts;

/* Start it. Borrows opts. Gives the process, and the streams that were asked for. Told to stop after it began, it answers what happened.
 * Returns 0; -ENOENT, -EACCES, ...: the program or the directory; -EINVAL: no program; -EMFILE, -ENOMEM, -EAGAIN; -ENXIO: there is no runtime; -ECANCELED,
 * -ETIME; -ESHUTDOWN; -ECHILD; -EDEADLK in a stackless poll (call form). On an error nothing runs and nothing was given. */
struct weft_proc_start {
    WEFT_FRAME(int);
    const weft_proc_opts *opts;
    weft_proc **into;
    void *weft__[56] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_proc_start_poll;
WEFT_API int weft__proc_start(const weft_proc_opts *opts, weft_proc **into) __attribute__((warn_unused_result));
#define weft_proc_start(...) (WEFT__CALL_FORM("weft_proc_start()"), weft__proc_start(__VA_ARGS__))

/* Wait for its end. Any number may, again and again. `status` may be NULL. Borrows. Cancel-safe: it takes nothing.
 * Returns 0; -ECHILD: somebody else has waited for it (waitpid(-1) somewhere in the program), or this is the child of a fork; -ECANCELED, -ETIME; -ESHUTDOWN; -EINVAL. */
struct weft_proc_wait {
    WEFT_FRAME(int);
    weft_proc *proc;
    int *status;
    void *weft__[24] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_proc_wait_poll;
WEFT_API int weft__proc_wait(weft_proc *proc, int *status);
#define weft_proc_wait(...) (WEFT__CALL_FORM("weft_proc_wait()"), weft__proc_wait(__VA_ARGS__))

/* Send it a signal, or to its group if it leads one. Never waits. Context: anywhere but in a signal handler.
 * Returns 0; -ESRCH: it has ended; -EINVAL: no such signal; -EPERM. */
WEFT_API int weft_proc_kill(weft_proc *proc, int signal);

/* Its number; -EINVAL for NULL. */
WEFT_API pid_t weft_proc_pid(const weft_proc *proc);

/* Takes it. If it has not ended, it is killed (kill_on_close), or goes on by itself; nothing of it is left behind in either case while the
 * runtime lives. Nobody waits for it. Never waits, never fails. NULL is fine. */
WEFT_API void weft_proc_close(weft_proc *proc);

/* ---- all of it ---- */

typedef struct weft_proc_output {
    int status;
    char *out, *err; /* with a NUL behind; for weft_free. NULL: not collected */
    size_t out_bytes, err_bytes;
} weft_proc_output;

/* Start it, write `bytes` of `input` to it (NULL: as .in says), collect what it writes to both, and wait for its end: all at the same time, so that
 * nobody waits for the other. What `opts` says of out and err is heeded: only what is 0 there is collected. Told to stop, or with an error, it is killed, with
 * its group if it leads one, and waited for.
 * Returns 0; -EMSGSIZE: it said more than `most` bytes on one of them; else as weft_proc_start and weft_read. */
struct weft_proc_run {
    WEFT_FRAME(int);
    const weft_proc_opts *opts;
    const void *input;
    size_t bytes;
    size_t most;
    weft_proc_output *into;
    void *weft__[160] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_proc_run_poll;
WEFT_API int weft__proc_run(const weft_proc_opts *opts, const void *input, size_t bytes, size_t most,
                            weft_proc_output *into) __attribute__((warn_unused_result));
#define weft_proc_run(...) (WEFT__CALL_FORM("weft_proc_run()"), weft__proc_run(__VA_ARGS__))

#ifdef __cplusplus
}
#endif

#endif
