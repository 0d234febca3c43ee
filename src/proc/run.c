/* SPDX-License-Identifier: MIT
 *
 * run - a child process as a function: its input goes in, its output comes out, its end is waited for.
 *
 * All four are polled side by side, so that a child that writes before it has read everything meets a reader, and nobody waits for
 * somebody who waits for him.
 *     STARTS  -> TALKS     [start is READY]
 *     TALKS   -> over      [all four are READY]
 *     TALKS   -> STOPS     [told to stop; or one of them has failed]    the child is killed, its streams are closed
 *     STOPS   -> over      [wait is READY]                              which is not to be stopped
 * One that reads no more than it wants (head) ends its input early: that is no failure.
 */
#include <weft/proc.h>

#include "base/alloc.h"
#include "limits.h"
#include "sync/leaf.h"
#include "task/call.h"
#include "types.h"

#include <errno.h>
#include <string.h>

#define FIRST_BYTES 4096

/* One of its outputs. */
struct collect {
    weft_stream *from; /* NULL: not collected, or at its end */
    char *text;
    size_t used;
    size_t room;
    struct weft_read read;
};

struct run {
    enum { STARTS = 1, TALKS = 3, STOPS = 5 } at; /* odd, as weft__at must be */
    int failure;                                  /* why it stops */
    weft_proc *proc;
    weft_stream *in; /* NULL: none, or all is written */
    struct collect collect[2];
    weft_proc_opts opts;
    bool ended;
    union {
        struct weft_proc_start start;
        struct {
            struct weft_write_all write;
            struct weft_proc_wait wait;
        } talk;
    };
};
_Static_assert(sizeof(struct run) <= sizeof(((struct weft_proc_run *)0)->weft__), "it fits its place");

static struct run *run_of(struct weft_proc_run *f)
{
    return (struct run *)(void *)f->weft__;
}

/* ---- its outputs ------------------------------------------------------------------------------------- */

/* Room for one byte beyond `most`, by which too much is known, and one for the NUL. */
static int room_make(struct collect *c, size_t most)
{
    if (c->used < c->room) return 0;
    size_t end = most < SIZE_MAX - 1 ? most + 1 : most;
    size_t room = c->room ? c->room * 2 : FIRST_BYTES;
    if (room > end) room = end;
    char *text = weft__alloc(room + 1);
    if (!text) return -ENOMEM;
    if (c->used) memcpy(text, c->text, c->used);
    weft__free(c->text);
    c->text = text;
    c->room = room;
    return 0;
}

static void stream_end(weft_stream **stream)
{
    weft__stream_close(*stream, NULL);
    *stream = NULL;
}

/* 1: at its end, or never begun; 0: PENDING; else an error. */
static int collect_poll(struct collect *c, size_t most, weft_cx *cx)
{
    while (c->from) {
        if (!c->read.weft__at) {
            int r = room_make(c, most);
            if (r < 0) return r;
            c->read = (struct weft_read){.stream = c->from, .buf = c->text + c->used, .len = c->room - c->used};
        }
        if (weft_read_poll(&c->read, cx) == WEFT_PENDING) return 0;
        if (c->read.ret < 0) return (int)c->read.ret;
        if (c->read.ret == 0) stream_end(&c->from);
        c->used += (size_t)c->read.ret;
        c->read.weft__at = 0;
        if (c->used > most) return -EMSGSIZE;
    }
    return 1;
}

/* ---- all four ------------------------------------------------------------------------------------------ */

static int input_poll(struct run *run, weft_cx *cx)
{
    if (!run->in) return 1;
    if (weft_write_all_poll(&run->talk.write, cx) == WEFT_PENDING) return 0;
    ssize_t r = run->talk.write.ret;
    stream_end(&run->in);
    return r < 0 && r != -EPIPE && r != -ECONNRESET ? (int)r : 1;
}

static int end_poll(struct run *run, weft_cx *cx)
{
    if (run->ended) return 1;
    if (weft_proc_wait_poll(&run->talk.wait, cx) == WEFT_PENDING) return 0;
    run->ended = run->talk.wait.ret == 0;
    return run->ended ? 1 : run->talk.wait.ret;
}

/* 1: all are over; 0: PENDING; else the first failure. */
static int talk_poll(struct weft_proc_run *f, weft_cx *cx)
{
    struct run *run = run_of(f);
    int said[] = {
        input_poll(run, cx),
        collect_poll(&run->collect[0], f->most, cx),
        collect_poll(&run->collect[1], f->most, cx),
        end_poll(run, cx),
    };
    int all = 1;
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        if (said[i] < 0) return said[i];
        all &= said[i];
    }
    return all;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static void run_begins(struct weft_proc_run *f)
{
    struct run *run = run_of(f);
    *run = (struct run){.at = STARTS, .opts = *f->opts};
    if (f->input) run->opts.to_in = &run->in;
    if (!run->opts.out && !run->opts.from_out) run->opts.from_out = &run->collect[0].from;
    if (!run->opts.err && !run->opts.from_err) run->opts.from_err = &run->collect[1].from;
    run->opts.kill_on_close = true;
    run->start = (struct weft_proc_start){.opts = &run->opts, .into = &run->proc};
}

static void talk_begins(struct weft_proc_run *f)
{
    struct run *run = run_of(f);
    run->at = TALKS;
    run->talk.write = (struct weft_write_all){.stream = run->in, .buf = f->input, .len = f->bytes};
    run->talk.wait = (struct weft_proc_wait){.proc = run->proc, .status = &f->into->status};
}

/* Operations that are under way are told to stop: they settle at once. So does one that has not begun, since there was no budget left when it was first polled: here is some. */
static void settle(weft_pollfn *poll, void *frame, weft_cx *cx)
{
    uint32_t budget = cx->budget;
    if (budget == 0) cx->budget = 1;
    weft_poll over = weft__poll_stop(poll, frame, cx);
    cx->budget = budget;
    weft_assert(over == WEFT_READY);
}

static void stop_begins(struct run *run, int why, weft_cx *cx)
{
    run->at = STOPS;
    run->failure = why;
    if (run->in && run->talk.write.weft__at) settle(weft_write_all_poll, &run->talk.write, cx);
    for (int i = 0; i < 2; i++) {
        struct collect *c = &run->collect[i];
        if (c->from && c->read.weft__at) settle(weft_read_poll, &c->read, cx);
        stream_end(&c->from);
    }
    stream_end(&run->in);
    (void)weft_proc_kill(run->proc, 9);
}

/* It was killed, and will end: that is waited for, whatever is asked from outside. */
static int stop_poll(struct run *run, weft_cx *cx)
{
    int why = cx->why;
    cx->why = 0;
    int r = end_poll(run, cx);
    cx->why = why;
    return r;
}

static weft_poll run_ends(struct weft_proc_run *f, int r)
{
    struct run *run = run_of(f);
    weft_proc_output *into = f->into;

    weft_proc_close(run->proc);
    for (int i = 0; i < 2 && r < 0; i++)
        weft__free(run->collect[i].text);
    if (r == 0) {
        into->out = run->collect[0].text;
        into->out_bytes = run->collect[0].used;
        into->err = run->collect[1].text;
        into->err_bytes = run->collect[1].used;
    }
    f->weft__at = 0;
    f->ret = r;
    return WEFT_READY;
}

weft_poll weft_proc_run_poll(void *frame, weft_cx *cx)
{
    struct weft_proc_run *f = frame;
    struct run *run = run_of(f);

    if (!f->weft__at) {
        f->ret = -EINVAL;
        if (!f->opts || !f->into) return WEFT_READY;
        run_begins(f);
        f->weft__at = STARTS;
    }
    if (run->at == STARTS) {
        if (weft_proc_start_poll(&run->start, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (run->start.ret < 0) return run_ends(f, run->start.ret);
        talk_begins(f);
    }
    if (run->at == TALKS) {
        int r = talk_poll(f, cx);
        if (r == 0) return WEFT_PENDING;
        if (r > 0) return run_ends(f, 0);
        stop_begins(run, r, cx);
    }
    return stop_poll(run, cx) == 0 ? WEFT_PENDING : run_ends(f, run->failure);
}

int weft__proc_run(const weft_proc_opts *opts, const void *input, size_t bytes, size_t most, weft_proc_output *into)
{
    struct weft_proc_run f = {.opts = opts, .input = input, .bytes = bytes, .most = most, .into = into};
    int r = weft__run_from(weft_proc_run_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
