/* SPDX-License-Identifier: MIT
 *
 * Scopes where something is wrong: not joined, in a helper of a stackless body, around children that do not listen, in a runtime that shuts down,
 * in the child of a fork, without memory.
 */
#include "base/fault.h"
#include "child.h"
#include "crew.h"
#include "death.h"
#include "sched/sched.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic bool gate; /* relaxed, all: flags and counts */
static _Atomic uint32_t begun;

static int stays(void)
{
    fetch_add_relaxed(&begun, 1);
    return weft_sleep(weft_secs(3600));
}

/* ---- not joined ---- */

struct forgets {
    WEFT_FRAME(int);
    weft_scope s;
};
static weft_async(forgets)
{
    weft_begin;
    weft_scope_init(&f->s, .limit = 3);
    weft_return(weft_go_in(&f->s, answers, 0));
    weft_end;
}

static void runs_it(void *unused)
{
    struct crew crew;
    (void)unused;
    crew_start(&crew, 2);
    (void)weft_join(weft_spawn(forgets), NULL);
    crew_stop(&crew);
}

TEST(scope_that_is_not_joined_is_named)
{
#ifdef WEFT_DEBUG
    struct death d = death_of(runs_it, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "task 'forgets' (spawned at "));
    ASSERT(strstr(d.said, "ends with a scope in its memory that was not joined ("));
    ASSERT(strstr(d.said, "scope_misuse.c:"));
#else
    (void)runs_it;
    TEST_SKIP("only debug builds look for it");
#endif
}

/* ---- in a poll ---- */

static int helper_of_a_body(void)
{
    int r = 0;
    bool ran = false;
    WEFT_SCOPE(s, .error = &r)
    {
        ran = s != NULL;
    }
    return ran ? 1 : r;
}

struct calls_a_helper {
    WEFT_FRAME(int);
};
static weft_async(calls_a_helper)
{
    weft_begin;
    weft_return(helper_of_a_body());
    weft_end;
}

static void scope_in_a_poll(void *unused)
{
    struct crew crew;
    int r = 0;
    (void)unused;
    crew_start(&crew, 1);
    ASSERT_OK(weft_join(weft_spawn(calls_a_helper), &r));
    crew_stop(&crew);
    _exit(r == -EDEADLK ? 0 : 1);
}

TEST(scope_block_in_a_poll_is_refused)
{
    struct death d = death_of(scope_in_a_poll, NULL);
    expect_refused_in_a_poll(&d, "task 'calls_a_helper'");
}

/* ---- children that do not listen ---- */

static int deaf(void)
{
    while (!load_relaxed(&gate))
        (void)weft_sleep(weft_secs(3600));
    return 0;
}

static bool somebody_was_named(struct weft_rt *rt)
{
    weft__lock_take(&rt->deaf.lock);
    bool named = rt->deaf.named_count > 0;
    weft__lock_drop(&rt->deaf.lock);
    return named;
}

static void around_a_deaf_one(void *unused)
{
    struct crew crew;
    (void)unused;
    store_relaxed(&gate, false);
    crew_start(&crew, 2);
    crew.rt->deaf.after_ns = weft_ms(5);
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in_as(s, (.name = "stubborn"), deaf));
        weft_scope_cancel(s);
        while (!somebody_was_named(crew.rt))
            sched_yield();
        store_relaxed(&gate, true);
    }
    crew_stop(&crew);
}

TEST(scope_of_a_deaf_child_is_named)
{
    struct death d = death_of(around_a_deaf_one, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    const char *line = strstr(d.said, "weft: task 'stubborn' (spawned at ");
    ASSERT(line);
    ASSERT(strstr(line, ", in the scope of " __FILE__ ":"));
    ASSERT(strstr(line, "was told to stop, and goes on"));
}

/* One that lies in a frame and began as zero is named by its first child. */
struct owner_of_a_deaf_one {
    WEFT_FRAME(int);
    weft_scope scope;
    struct weft_scope_join join;
};
static weft_async(owner_of_a_deaf_one)
{
    weft_begin;
    ASSERT_OK(weft_go_in_as(&f->scope, (.name = "stubborn"), deaf));
    weft_scope_cancel(&f->scope);
    weft_await(f->join, weft_scope_join, &f->scope);
    weft_return(0);
    weft_end;
}

static void around_a_frame_of_a_deaf_one(void *unused)
{
    struct crew crew;
    (void)unused;
    store_relaxed(&gate, false);
    crew_start(&crew, 2);
    crew.rt->deaf.after_ns = weft_ms(5);
    weft_task *owner = weft_spawn(owner_of_a_deaf_one);
    while (!somebody_was_named(crew.rt))
        sched_yield();
    store_relaxed(&gate, true);
    ASSERT_OK(weft_join(owner, NULL));
    crew_stop(&crew);
}

TEST(scope_in_a_frame_of_a_deaf_child_is_named)
{
    struct death d = death_of(around_a_frame_of_a_deaf_one, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    const char *line = strstr(d.said, "weft: task 'stubborn' (spawned at ");
    ASSERT(line);
    ASSERT(strstr(line, ", in the scope of " __FILE__ ":"));
}

/* One that does not come back from its poll hears nothing, and is seen by the monitor. */
static int spins(void)
{
    while (!load_relaxed(&gate))
        sched_yield();
    return 0;
}

struct spins_stackless {
    WEFT_FRAME(int);
};
static weft_async(spins_stackless)
{
    weft_begin;
    weft_return(spins());
    weft_end;
}

static void around_one_in_its_poll(void *stackless)
{
    struct crew crew;
    store_relaxed(&gate, false);
    crew_start(&crew, 2);
    crew.rt->deaf.after_ns = weft_ms(5);
    WEFT_SCOPE(s)
    {
        for (int i = 0; i < 2; i++) { /* both of the same place, which is named once */
            if (stackless) {
                ASSERT_OK(weft_spawn_in_as(s, (.name = "spinner"), spins_stackless));
            } else {
                ASSERT_OK(weft_go_in_as(s, (.name = "spinner"), spins));
            }
        }
        weft_scope_cancel(s);
        while (!somebody_was_named(crew.rt))
            sched_yield();
        store_relaxed(&gate, true);
    }
    crew_stop(&crew);
}

TEST(scope_of_a_child_that_stays_in_its_poll_is_named)
{
    for (int stackless = 0; stackless < 2; stackless++) {
        struct death d = death_of(around_one_in_its_poll, stackless ? &gate : NULL);
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        const char *line = strstr(d.said, "weft: task 'spinner' (spawned at ");
        ASSERT(line);
        ASSERT(strstr(line, "scope_misuse.c:"));
        ASSERT(strstr(line, ", in the scope of "));
        ASSERT(strstr(line, "was told to stop, and goes on: for "));
        ASSERT(strstr(line, " ms it has not come back from its poll\n"));
        ASSERT(!strstr(line + 1, "weft: task 'spinner'")); /* once */
    }
}

/* A poll that lasts is nobody's business, unless it was told to stop and lasts on. */
static void around_one_that_was_not_told(void *unused)
{
    struct crew crew;
    (void)unused;
    store_relaxed(&gate, false);
    crew_start(&crew, 2);
    crew.rt->deaf.after_ns = weft_ms(1);
    weft_task *task = weft_go(spins);
    weft_task *told = weft_go_as((.name = "told"), spins);
    weft_cancel(told);
    while (!somebody_was_named(crew.rt)) /* the monitor has looked at both as often */
        sched_yield();
    store_relaxed(&gate, true);
    ASSERT_OK(weft_join(task, NULL));
    ASSERT_OK(weft_join(told, NULL));
    crew_stop(&crew);
}

TEST(scope_less_poll_that_lasts_is_named_only_if_it_was_told)
{
    struct death d = death_of(around_one_that_was_not_told, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "weft: task 'told' (spawned at "));
    ASSERT(!strstr(d.said, "weft: task 'spins'"));
    ASSERT(!strstr(d.said, ", in the scope of "));
}

/* A child that cannot be stopped for a while costs nothing: its scope's end sleeps. It is in a blocking job, or behind a shield. */
static _Atomic bool let_go;
static weft_event let_through;

static int blocks(void)
{
    fetch_add_relaxed(&begun, 1);
    while (!load_relaxed(&let_go))
        sched_yield();
    return 0;
}

static int in_a_job(void)
{
    return weft_blocking(blocks);
}

static int behind_a_shield(void)
{
    int r = -1;
    fetch_add_relaxed(&begun, 1);
    WEFT_SHIELD(WEFT_FOREVER) r = weft_event_wait(&let_through);
    return r;
}

struct in_a_job_too {
    WEFT_FRAME(int);
    struct weft_blocking job;
};
static weft_async(in_a_job_too)
{
    weft_begin;
    weft_await(f->job, weft_blocking, weft_bind(blocks));
    weft_return((int)f->job.ret);
    weft_end;
}

struct behind_a_shield_too {
    WEFT_FRAME(int);
    struct weft_event_wait wait;
    struct weft_shield shield;
};
static weft_async(behind_a_shield_too)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    weft_await(f->shield, weft_shield, WEFT_FOREVER,
               weft_arm(f->wait, weft_event_wait, &let_through));
    weft_return(f->wait.ret);
    weft_end;
}

enum child { JOB, JOB_TOO, SHIELD, SHIELD_TOO, CHILDREN };

static int start_child(weft_scope *s, int child)
{
    switch (child) {
    case JOB:
        return weft_go_in(s, in_a_job);
    case JOB_TOO:
        return weft_spawn_in(s, in_a_job_too);
    case SHIELD:
        return weft_go_in(s, behind_a_shield);
    default:
        return weft_spawn_in(s, behind_a_shield_too);
    }
}

static int owner_of_it(int child)
{
    WEFT_SCOPE(s)
    {
        ASSERT_OK(start_child(s, child));
        while (load_relaxed(&begun) == 0)
            (void)weft_sleep(weft_us(100));
        break;
    }
    return 0;
}

struct owner_of_it_too {
    WEFT_FRAME(int);
    int child;
    weft_scope scope;
    struct weft_sleep nap;
    struct weft_scope_join join;
};
static weft_async(owner_of_it_too)
{
    weft_begin;
    ASSERT_OK(start_child(&f->scope, f->child));
    while (load_relaxed(&begun) == 0)
        weft_await(f->nap, weft_sleep, weft_us(100));
    weft_scope_cancel(&f->scope);
    weft_await(f->join, weft_scope_join, &f->scope);
    weft_return(f->join.ret);
    weft_end;
}

static uint64_t polls_of(struct crew *crew)
{
    weft_stats stats;
    weft_rt_stats(crew->rt, &stats);
    return stats.polls;
}

static void waits_for(struct crew *crew, int child, bool stackless)
{
    int r = -1;
    store_relaxed(&begun, 0);
    store_relaxed(&let_go, false);
    weft_event_init(&let_through);
    weft_task *t = stackless ? weft_spawn(owner_of_it_too, child) : weft_go(owner_of_it, child);
    CREW_UNTIL(load_relaxed(&begun) == 1);
    weft_cancel(t);
    uint64_t before = polls_of(crew);
    for (int i = 0; i < 2000; i++)
        sched_yield();
    ASSERT_LE(polls_of(crew) - before, 50); /* the cancel, and its last turns; it does not spin */
    ASSERT(!weft_done(t));
    store_relaxed(&let_go, true);
    weft_event_set(&let_through);
    ASSERT_OK(weft_join(t, &r));
    ASSERT_EQ(r, 0);
    weft_event_done(&let_through);
}

static void waits_asleep(struct crew *crew)
{
    for (int child = 0; child < CHILDREN; child++) {
        waits_for(crew, child, false);
        waits_for(crew, child, true);
    }
}

TEST(scope_waits_asleep_for_who_cannot_be_stopped)
{
    crew_each(waits_asleep);
}

/* ---- a runtime that shuts down ---- */

static int refused = 1;

static int owner_until_the_stop(void)
{
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in(s, stays));
        ASSERT_EQ(weft_sleep(weft_secs(3600)), -ECANCELED);
        refused = weft_go_in(s, stays); /* born cancelled, and starts */
    }
    return -ECANCELED;
}

TEST(scope_in_a_runtime_that_shuts_down)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        store_relaxed(&begun, 0);
        refused = 1;
        crew_start(&crew, crew_sizes[i]);
        weft_task *t = weft_go(owner_until_the_stop);
        CREW_UNTIL(load_relaxed(&begun) == 1);
        crew_release_driver(&crew);
        weft_rt *rt = weft_rt_enter(NULL);
        (void)rt;
        ASSERT_OK(weft_rt_stop(crew.rt, -1));
        ASSERT_EQ(refused, 0);
        ASSERT_EQ(load_relaxed(&begun), 2);
        ASSERT_OK(weft_detach(t));
    }
}

/* ---- fork ---- */

static int answers_in_the_child(weft_scope *s)
{
    CHILD_NEEDS(weft_go_in(s, stays) == -ECHILD);
    CHILD_NEEDS(!weft_scope_cancel(s));
    CHILD_NEEDS(!weft_scope_fail(s, -EIO));
    CHILD_NEEDS(weft_scope_join(s) == -ECHILD);
    CHILD_NEEDS(weft_scope_room(s) == -ECHILD);
    return 0;
}

/* Children of the parent's scope, in whose block it forks: the child leaves the block, and waits for nobody. */
static void forks_inside(struct crew *crew)
{
    pid_t pid = 0;
    (void)crew;
    store_relaxed(&begun, 0);
    WEFT_SCOPE(s)
    {
        for (int i = 0; i < 4; i++)
            ASSERT_OK(weft_go_in(s, stays));
        CREW_UNTIL(load_relaxed(&begun) == 4);
        pid = fork();
        ASSERT(pid >= 0);
        if (pid == 0) {
            (void)answers_in_the_child(s);
            break;
        }
        weft_scope_cancel(s);
    }
    if (pid == 0) {
        WEFT_SCOPE(s) CHILD_NEEDS(weft_go_in(s, stays) == -ENXIO); /* another one, here */
        _exit(0);
    }
    ASSERT(ended_by(exit_code_of(pid), 0));
}

TEST(scope_in_the_child_of_a_fork)
{
    struct crew crew;
    crew_start(&crew, 2);
    forks_inside(&crew);
    crew_stop(&crew);
}

#ifdef WEFT_FAULTS
/* ---- without memory ---- */

static int spawns_without_memory(uint32_t nth)
{
    int done = 0;
    WEFT_SCOPE(s, .limit = 4)
    {
        for (int i = 0; i < 3; i++) {
            weft__fault_arm(WEFT__FAULT_ALLOC, nth, 1, -ENOMEM);
            int r = weft_go_in_as(s, (.name = "fed"), answers, 0);
            weft__fault_reset();
            ASSERT(r == 0 || r == -ENOMEM);
            done += r == 0;
        }
        ASSERT_LE(weft_scope_count(s), (size_t)done); /* a spawn that failed has no place */
    }
    return done;
}

/* This thread waits without memory, too: a join that has to wait would take the fault for itself. */
static int spawned_without_memory(uint32_t nth)
{
    int done = -1;
    weft_task *task = weft_go(spawns_without_memory, nth);
    CREW_UNTIL(weft_done(task));
    ASSERT_OK(weft_join(task, &done));
    return done;
}

TEST(scope_without_memory)
{
    struct crew crew;
    crew_start(&crew, 1);
    ASSERT_EQ(spawned_without_memory(1), 0); /* none of them got what its options need */
    ASSERT_EQ(spawned_without_memory(100), 3);
    crew_stop(&crew);
}
#endif
