/* SPDX-License-Identifier: MIT
 *
 * Handles used twice: debug builds stop there and name the task, whoever did it, on a worker or
 * outside, whether others still refer to the task or not.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#ifdef WEFT_DEBUG

static int brief(int value)
{
    return value;
}

/* ---- what is done wrong; the handle has been joined before -------------------------------------------- */

static void join_it(weft_task *task)
{
    int got;
    (void)weft_join(task, &got);
}

static void detach_it(weft_task *task)
{
    (void)weft_detach(task);
}

static void cancel_it(weft_task *task)
{
    weft_cancel(task);
}

static void wait_it(weft_task *task)
{
    (void)weft_wait(task);
}

static void look_at_it(weft_task *task)
{
    (void)weft_done(task);
}

static void name_it(weft_task *task)
{
    (void)weft_task_name(task);
}

static void ask_its_id(weft_task *task)
{
    (void)weft_task_id(task);
}

static void ref_it(weft_task *task)
{
    (void)weft_ref(task);
}

static void unref_it(weft_task *task)
{
    weft_unref(task);
}

struct join_again {
    WEFT_FRAME(int);
    weft_task *task;
    int got;
    struct weft_join join;
};
static weft_async(join_again)
{
    weft_begin;
    weft_await(f->join, weft_join, f->task, &f->got);
    weft_end;
}

static void await_it(weft_task *task)
{
    (void)weft_join(weft_spawn(join_again, task), NULL);
}

struct mistake {
    void (*make)(weft_task *task);
    const char *name;
};

static const struct mistake mistakes[] = {
    {join_it, "weft_join"},       {detach_it, "weft_detach"}, {cancel_it, "weft_cancel"},
    {wait_it, "weft_wait"},       {look_at_it, "weft_done"},  {name_it, "weft_task_name"},
    {ask_its_id, "weft_task_id"}, {ref_it, "weft_ref"},       {unref_it, "weft_unref"},
    {await_it, "weft_join"},
};

/* ---- where it is done -------------------------------------------------------------------------------------- */

struct scene {
    const struct mistake *mistake;
    bool detached;  /* the handle was spent by detach */
    bool on_worker; /* by a fiber */
    bool referred;  /* somebody still has a reference */
    int others;     /* tasks that end between */
};

static void play(const struct scene *s)
{
    int got;
    weft_task *task = weft_go(brief, 1);
    weft_task *shared = s->referred ? weft_ref(task) : NULL;
    if (weft_wait(task) < 0) _exit(2);
    if ((s->detached ? weft_detach(task) : weft_join(task, &got)) < 0) _exit(3);
    for (int i = 0; i < s->others; i++)
        if (weft_join(weft_go(brief, i), &got) < 0) _exit(4);
    s->mistake->make(task);
    weft_unref(shared);
}

static void play_on_a_fiber(const struct scene *s)
{
    play(s);
}

static void run_scene(void *arg)
{
    const struct scene *s = arg;
    struct crew crew;
    crew_start(&crew, 1);
    if (s->on_worker) {
        (void)weft_join(weft_go(play_on_a_fiber, s), NULL);
    } else {
        play(s);
    }
    _exit(9); /* nobody noticed */
}

static void expect_caught(struct scene s)
{
    struct death d = death_of(run_scene, &s);
    char told[128];
    (void)snprintf(told, sizeof(told), "weft: %s: the handle of task 'brief' (spawned at ",
                   s.mistake->name);
    if (d.signal != SIGABRT || !strstr(d.said, told))
        ck_abort_msg("%s: signal %d, code %d, said: %s", s.mistake->name, d.signal, d.code, d.said);
}

TEST_WITH(misuse_of_a_spent_handle_is_named, .timeout_s = 120)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        for (unsigned how = 0; how < 4; how++) {
            expect_caught(
                (struct scene){.mistake = &mistakes[i], .on_worker = how & 1, .detached = how & 2});
        }
    }
}

/* Others still refer to the task, so it is there: a second spender is caught all the same. */
TEST(misuse_of_a_spent_handle_while_others_have_references)
{
    for (unsigned how = 0; how < 4; how++) {
        for (int i = 0; i < 2; i++) {
            expect_caught((struct scene){.mistake = &mistakes[i],
                                         .referred = true,
                                         .on_worker = how & 1,
                                         .detached = how & 2});
        }
    }
}

TEST(misuse_is_named_after_others_have_come_and_gone)
{
    expect_caught((struct scene){.mistake = &mistakes[0], .others = 100});
    expect_caught((struct scene){.mistake = &mistakes[1], .others = 100, .on_worker = true});
}

/* Its block has been given back: told without a name, or by another task's. */
TEST(misuse_long_after_finds_a_block_that_is_free)
{
    struct scene s = {.mistake = &mistakes[2], .others = 1000};
    struct death d = death_of(run_scene, &s);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "weft_cancel: the handle"));
    ASSERT(strstr(d.said, "was spent before"));
}

/* What is right stays so: one join, with watchers and references, of every size of frame. */
struct big {
    WEFT_FRAME(int);
    char much[5000];
};
static weft_async(big)
{
    weft_begin;
    f->much[0] = 1;
    weft_return(5);
    weft_end;
}

static void proper(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 1000; i++) {
        int got = 0;
        weft_task *task = i % 2 ? weft_spawn_as((.name = "big"), big) : weft_go(brief, 5);
        weft_task *shared = weft_ref(task);
        ASSERT_OK(weft_wait(shared));
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, 5);
        ASSERT(weft_done(shared));
        weft_cancel(shared);
        weft_unref(shared);
    }
}

TEST(misuse_is_not_what_is_right)
{
    crew_each(proper);
}

#else

TEST(misuse_is_caught_in_debug_builds)
{
    TEST_SKIP("not a debug build");
}

#endif
