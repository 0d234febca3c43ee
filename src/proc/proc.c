/* SPDX-License-Identifier: MIT
 *
 * proc - a child from its start to its end.
 *
 * STARTING may block, for as long as the disk takes that has the program: it is a job of the blocking pool, between two parts that
 * do not. Before it, the pipes are made; behind it, this side's ends and the child's own descriptor become the runtime's.
 * THE END is seen by whoever waits, and asked for without taking it: so any number may wait, and nobody has to be first. The child
 * itself is taken when the process is closed; if it has not ended then, a task of its own stays for it.
 *
 * Threads: any; a weft_proc has no state of its own that changes.
 * Rejected: a handler of SIGCHLD and waitpid for each number (who owns the handler, and what of the program's own children?); a list of
 * orphans that is looked at by the next start (a zombie until then).
 */
#include <weft/proc.h>

#include "base/alloc.h"
#include "sync/leaf.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "task/call.h"

#include <weft/blocking.h>
#include <weft/fd.h>

#include <errno.h>

struct weft_proc {
    struct weft__process process; /* constant, as all; its fd is `end`'s */
    weft_fd *end;                 /* readable once it has ended */
    bool group;
    bool kill_on_close;
};

/* ---- start: before and behind ------------------------------------------------------------------------- */

enum { KILL = 9 };

/* What a start has in hand. */
struct start {
    struct weft__process_req req; /* its fds are the child's ends */
    struct weft__process process;
    struct weft_blocking job;
    int owned[3]; /* of req.fds: to be closed behind the start; -1: none */
    int ours[3];  /* the other ends; -1: none */
    bool begun;
};
_Static_assert(sizeof(struct start) <= sizeof(((struct weft_proc_start *)0)->weft__), "it fits its place");

static struct start *start_of(struct weft_proc_start *f)
{
    return (struct start *)(void *)f->weft__;
}

static weft_stream **asked(const weft_proc_opts *opts, int i)
{
    return i == 0 ? opts->to_in : i == 1 ? opts->from_out : opts->from_err;
}

static void ends_close(int fds[3])
{
    for (int i = 0; i < 3; i++) {
        weft__fd_close(fds[i]);
        fds[i] = -1;
    }
}

static int pipe_make(struct start *s, int i)
{
    int ours = i == 0 ? 1 : 0; /* it reads its input, which we write */
    int ends[2];
    int r = weft__process_pipe(ours, ends);
    if (r < 0) return r;
    s->ours[i] = ends[ours];
    s->owned[i] = ends[!ours];
    s->req.fds[i] = s->owned[i];
    return 0;
}

/* One of its three: a pipe, nothing, another's, or as here. */
static int fd_make(struct start *s, const weft_proc_opts *opts, int i)
{
    int given = i == 0 ? opts->in : i == 1 ? opts->out : opts->err;
    if (asked(opts, i)) return pipe_make(s, i);
    if (given == WEFT_PROC_NULL) {
        s->owned[i] = weft__process_null(i > 0);
        s->req.fds[i] = s->owned[i];
        return s->owned[i] < 0 ? s->owned[i] : 0;
    }
    if (given == WEFT_PROC_OUT && i == 2) {
        s->req.fds[2] = s->req.fds[1] >= 0 ? s->req.fds[1] : 1;
        return 0;
    }
    if (given < 0) return -EINVAL;
    s->req.fds[i] = given > 0 ? given : -1;
    return 0;
}

static int prepare(struct start *s, const weft_proc_opts *opts)
{
    *s = (struct start){.owned = {-1, -1, -1}, .ours = {-1, -1, -1}};
    s->req = (struct weft__process_req){
        .path = opts->argv[0],
        .argv = opts->argv,
        .env = opts->env,
        .dir = opts->dir,
        .fds = {-1, -1, -1},
        .group = opts->group,
    };
    int r = 0;
    for (int i = 0; i < 3 && r == 0; i++)
        r = fd_make(s, opts, i);
    if (r < 0) {
        ends_close(s->owned);
        ends_close(s->ours);
    }
    return r;
}

static int process_kill(const struct weft__process *process, bool group, int signal)
{
    return group ? weft__process_signal_group(process, signal) : weft__process_signal(process, signal);
}

/* It runs, but cannot be ours. Killed, it ends soon. */
static void undo(struct start *s)
{
    int status;
    (void)process_kill(&s->process, s->req.group, KILL);
    (void)weft__process_wait(&s->process, &status);
    weft__fd_close(s->process.fd);
}

/* The streams that were asked for, or none. */
static int streams_make(struct start *s, weft_stream *into[3])
{
    for (int i = 0; i < 3; i++) {
        into[i] = NULL;
        if (s->ours[i] < 0) continue;
        int r = weft_stream_of_fd(s->ours[i], &into[i]);
        if (r == 0) {
            s->ours[i] = -1; /* it is the stream's */
            continue;
        }
        for (int k = 0; k < i; k++)
            weft__stream_close(into[k], NULL);
        return r;
    }
    return 0;
}

static int proc_new(struct start *s, const weft_proc_opts *opts, weft_proc **into)
{
    weft_fd *end;
    struct weft_proc *proc = weft__alloc(sizeof(*proc));
    if (!proc) return -ENOMEM;
    int r = weft_fd_open(s->process.fd, &end);
    if (r < 0) {
        weft__free(proc);
        return r;
    }
    *proc = (struct weft_proc){.process = s->process, .end = end, .group = opts->group, .kill_on_close = opts->kill_on_close};
    *into = proc;
    return 0;
}

static int adopt(struct start *s, const weft_proc_opts *opts, weft_proc **into)
{
    weft_stream *streams[3];
    int r = streams_make(s, streams);
    if (r == 0) {
        r = proc_new(s, opts, into);
        for (int i = 0; i < 3; i++) {
            if (r < 0) weft__stream_close(streams[i], NULL);
            if (r == 0 && streams[i]) *asked(opts, i) = streams[i];
        }
    }
    if (r < 0) undo(s);
    return r;
}

/* ---- start ----------------------------------------------------------------------------------------------- */

static int64_t do_start(struct start *s)
{
    return weft__process_start(&s->req, &s->process);
}

static weft_poll start_ends(struct weft_proc_start *f, int r)
{
    f->weft__at = 0;
    f->ret = r;
    return WEFT_READY;
}

static int start_begins(struct weft_proc_start *f)
{
    struct start *s = start_of(f);
    if (!f->opts || !f->into || !f->opts->argv || !f->opts->argv[0]) return -EINVAL;
    int r = prepare(s, f->opts);
    if (r < 0) return r;
    s->job = (struct weft_blocking){.name = "weft_proc_start"};
    s->job.call = (weft_call){(void (*)(void))do_start, {(uintptr_t)s}, sizeof(int64_t), 1};
    f->weft__at = WEFT__LEAF_WAITS;
    return 0;
}

weft_poll weft_proc_start_poll(void *frame, weft_cx *cx)
{
    struct weft_proc_start *f = frame;
    struct start *s = start_of(f);

    if (!f->weft__at) {
        int r = start_begins(f);
        if (r < 0) return start_ends(f, r);
    }
    if (weft_blocking_poll(&s->job, cx) == WEFT_PENDING) return WEFT_PENDING;
    int r = (int)s->job.ret;
    ends_close(s->owned);
    if (r == 0) r = adopt(s, f->opts, f->into);
    ends_close(s->ours);
    return start_ends(f, r);
}

int weft__proc_start(const weft_proc_opts *opts, weft_proc **into)
{
    struct weft_proc_start f = {.opts = opts, .into = into};
    int r = weft__run_from(weft_proc_start_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- wait ------------------------------------------------------------------------------------------------- */

struct waiting {
    struct weft_fd_try try;
    int status;
};
_Static_assert(sizeof(struct waiting) <= sizeof(((struct weft_proc_wait *)0)->weft__), "it fits its place");

static ssize_t ask(int fd, void *arg)
{
    const struct weft__process process = {.fd = fd};
    int r = weft__process_ended(&process, true, arg);
    return r == 0 ? -EAGAIN : r;
}

weft_poll weft_proc_wait_poll(void *frame, weft_cx *cx)
{
    struct weft_proc_wait *f = frame;
    struct waiting *w = (struct waiting *)(void *)f->weft__;

    f->ret = -EINVAL;
    if (!f->proc) return WEFT_READY;
    if (!f->weft__at) w->try = (struct weft_fd_try){.fd = f->proc->end, .side = WEFT_FD_READ, .fn = ask, .arg = &w->status};
    f->weft__at = WEFT__LEAF_WAITS;
    if (weft_fd_try_poll(&w->try, cx) == WEFT_PENDING) return WEFT_PENDING;
    f->weft__at = 0;
    f->ret = w->try.ret < 0 ? (int)w->try.ret : 0;
    if (f->ret == 0 && f->status) *f->status = w->status;
    return WEFT_READY;
}

int weft__proc_wait(weft_proc *proc, int *status)
{
    struct weft_proc_wait f = {.proc = proc, .status = status};
    int r = weft__run_from(weft_proc_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- signals, and the end ------------------------------------------------------------------------------------ */

int weft_proc_kill(weft_proc *proc, int signal)
{
    int status;
    if (!proc) return -EINVAL;
    if (!proc->group && weft__process_ended(&proc->process, true, &status) != 0) return -ESRCH;
    return process_kill(&proc->process, proc->group, signal);
}

pid_t weft_proc_pid(const weft_proc *proc)
{
    return proc ? (pid_t)proc->process.pid : -EINVAL;
}

static void bury(struct weft_proc *proc)
{
    weft__fd_object_close(proc->end, NULL);
    weft__free(proc);
}

/* Stays for one that has not ended. When the runtime stops it is left to run, and to whoever inherits it. */
struct stays {
    WEFT_FRAME(int);
    weft_proc *proc;
    struct weft_fd_readable ended;
    int status;
};
static weft_async(stays)
{
    weft_begin;
    weft_await(f->ended, weft_fd_readable, f->proc->end);
    (void)weft__process_ended(&f->proc->process, false, &f->status);
    bury(f->proc);
    weft_return(0);
    weft_end;
}

void weft_proc_close(weft_proc *proc)
{
    int status;
    if (!proc) return;
    if (proc->kill_on_close) (void)process_kill(&proc->process, proc->group, KILL);
    if (weft__process_ended(&proc->process, false, &status) != 0) {
        bury(proc);
        return;
    }
    weft_task *task = weft_spawn(stays, .proc = proc);
    if (task) {
        (void)weft_detach(task);
        return;
    }
    if (proc->kill_on_close) (void)weft__process_wait(&proc->process, &status); /* it ends soon */
    bury(proc);
}
