/* SPDX-License-Identifier: MIT
 *
 * Forms of spawning that answer with an errno, refused: nothing was taken. The arguments of a frame were not even evaluated, those of a
 * plain function are still the caller's, and whoever counts the tasks is as it was: a tracker, a scope and a set are empty, and a
 * limit has its place back.
 */
#include "base/fault.h"
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

typedef WEFT_SET(int) int_set;

/* ---- what is to be spawned: it takes what is offered ------------------------------------------------------ */

static int offers;        /* evaluated */
static _Atomic int taken; /* relaxed: read when those who write have ended */

static int *offer(int *one)
{
    offers++;
    return one;
}

static int takes(int *one)
{
    *one = 0;
    fetch_add_relaxed(&taken, 1);
    return 0;
}

struct takes_too {
    WEFT_FRAME(int);
    int *one;
    char room[3000]; /* so it lies on the heap */
};
static weft_async(takes_too)
{
    weft_begin;
    weft_return(takes(f->one));
    weft_end;
}

/* ---- all forms, refused --------------------------------------------------------------------------------------- */

/* By options that name the runtime, and by the one that was entered. */
struct refusal {
    weft_rt *rt;
    const char *name; /* NULL, or what has to be kept on the heap for a task */
    int why;          /* the answer of each */
};

static void of_a_tracker(const struct refusal *r, int *mine)
{
    weft_tracker tracker = {0};
    ASSERT_EQ(weft_tracker_go_as((.rt = r->rt, .name = r->name), &tracker, takes, mine), r->why);
    ASSERT_EQ(weft_tracker_spawn_as((.rt = r->rt), &tracker, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_tracker_spawn(&tracker, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_tracker_len(&tracker), 0);
    (void)weft_tracker_close(&tracker);
    ASSERT_OK(weft_tracker_wait(&tracker));
    weft_tracker_done(&tracker);
}

/* There is one place in it: what is refused never has it, or the next would be answered -EAGAIN. */
static void of_a_scope(const struct refusal *r, int *mine)
{
    weft_scope s;
    weft_scope_init(&s, .limit = 1);
    ASSERT_EQ(weft_try_spawn_in(&s, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_try_spawn_in(&s, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_go_in_as(&s, (.rt = r->rt, .name = r->name), takes, mine), r->why);
    ASSERT_EQ(weft_spawn_in_as(&s, (.rt = r->rt), takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_scope_count(&s), 0);
    ASSERT_OK(weft_scope_join(&s));
}

static void of_a_set(const struct refusal *r, int *mine)
{
    int_set set = {.limit = 1};
    int got = 0;
    ASSERT_EQ(weft_set_try_spawn(&set, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_set_try_spawn(&set, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_set_go_as((.rt = r->rt, .name = r->name), &set, takes, mine), r->why);
    ASSERT_EQ(weft_set_spawn_as((.rt = r->rt), &set, takes_too, offer(mine)), r->why);
    ASSERT_EQ(weft_set_len(&set), 0);
    ASSERT_EQ(weft_set_join_next(&set, &got), 0);
    weft_set_done(&set);
}

static int all_are_refused(const struct refusal *r)
{
    int mine = 42;
    of_a_tracker(r, &mine);
    of_a_scope(r, &mine);
    of_a_set(r, &mine);
    ASSERT_EQ(mine, 42);
    ASSERT_EQ(offers, 0);
    return 0;
}

/* ---- a runtime that shuts down ---------------------------------------------------------------------------------- */

static _Atomic bool begun; /* relaxed, both: flags */
static _Atomic bool let_go;

static int stubborn(void)
{
    store_relaxed(&begun, true);
    while (!load_relaxed(&let_go))
        (void)weft_yield();
    return 0;
}

static void shuts_down(struct crew *crew)
{
    struct refusal r = {.rt = crew->rt, .why = -ESHUTDOWN};
    store_relaxed(&begun, false);
    store_relaxed(&let_go, false);
    ASSERT_OK(weft_detach(weft_go(stubborn)));
    CREW_UNTIL(load_relaxed(&begun));
    crew_release_driver(crew);
    ASSERT_EQ(weft_rt_stop(crew->rt, 0), -ETIME);
    (void)weft_rt_enter(crew->rt);
    ASSERT_OK(all_are_refused(&r));
    store_relaxed(&let_go, true);
}

/* One task keeps it there; to whoever is outside it is closed. */
TEST(spawn_into_a_runtime_that_shuts_down_is_refused)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        shuts_down(&crew);
        (void)weft_rt_enter(NULL);
        ASSERT_OK(weft_rt_stop(crew.rt, -1));
        ASSERT_EQ(load_relaxed(&taken), 0);
    }
}

/* ---- no memory ------------------------------------------------------------------------------------------------------ */

#if defined(WEFT_FAULTS)

static int without_memory(weft_rt *rt)
{
    struct refusal r = {.rt = rt, .name = "named", .why = -ENOMEM};
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, UINT32_MAX, -ENOMEM);
    int answer = all_are_refused(&r);
    weft__fault_reset();
    return answer;
}

/* The same two tasks, now that there is some. */
static void with_memory(void)
{
    int one = 42;
    int two = 42;
    WEFT_SCOPE(s)
    {
        ASSERT_OK(weft_go_in_as(s, (.name = "named"), takes, &one));
        ASSERT_OK(weft_spawn_in(s, takes_too, &two));
    }
    ASSERT_EQ(one + two, 0);
    ASSERT_EQ(load_relaxed(&taken), 2);
    store_relaxed(&taken, 0);
}

static void no_memory(struct crew *crew)
{
    int got = 1;
    ASSERT_OK(without_memory(crew->rt)); /* from outside, and on a worker */
    ASSERT_OK(weft_join(weft_go(without_memory, crew->rt), &got));
    ASSERT_OK(got);
    ASSERT_EQ(load_relaxed(&taken), 0);
    with_memory();
}

TEST(spawn_without_memory_is_refused_and_takes_nothing)
{
    crew_each(no_memory);
}

#endif
