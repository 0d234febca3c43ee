/* SPDX-License-Identifier: MIT
 *
 * tasks - small tasks that many tests spawn: one that answers, of both kinds, one that waits, a tree that forks and joins;
 * and how a call form ends that is made inside a poll.
 */
#ifndef WEFT_TESTS_TASKS_H
#define WEFT_TESTS_TASKS_H

#include "death.h"
#include "test.h"

#include <weft/fiber.h>
#include <weft/task.h>

static inline int answers(int value)
{
    return value;
}

struct answers_too {
    WEFT_FRAME(int);
    int value;
};
__attribute__((unused)) static weft_async(answers_too)
{
    weft_begin;
    weft_return(f->value);
    weft_end;
}

/* Waits until it is cancelled. */
struct waits {
    WEFT_FRAME(int);
};
__attribute__((unused)) static weft_poll waits_poll(void *frame, weft_cx *cx)
{
    struct waits *f = frame;
    f->ret = weft_cx_cancelled(cx);
    return f->ret ? WEFT_READY : WEFT_PENDING;
}

/* A tree: spawns two, joins both; its result is the number of leaves, of 2^(depth + 1) - 1 tasks. */
struct forks {
    WEFT_FRAME(int);
    int depth;
    int i;
    int part[2];
    weft_task *kid[2];
    struct weft_join join;
};
__attribute__((unused)) static weft_async(forks)
{
    weft_begin;
    if (f->depth == 0) weft_return(1);
    for (f->i = 0; f->i < 2; f->i++)
        f->kid[f->i] = weft_spawn(forks, f->depth - 1);
    for (f->i = 0; f->i < 2; f->i++)
        weft_await(f->join, weft_join, f->kid[f->i], &f->part[f->i]);
    weft_return(f->part[0] + f->part[1]);
    weft_end;
}

/* A call form inside the poll of the task that is named: refused, and told. Debug builds stop there. */
static inline void expect_refused_in_a_poll(const struct death *d, const char *name)
{
    ASSERT(strstr(d->said, name));
    ASSERT(strstr(d->said, "waits inside a poll"));
#ifdef WEFT_DEBUG
    ASSERT_EQ(d->signal, SIGABRT);
#else
    ASSERT_EQ(d->signal, 0);
    ASSERT_EQ(d->code, 0);
#endif
}

#endif
