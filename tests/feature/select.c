/* SPDX-License-Identifier: MIT
 *
 * select, race, all and then on real runtimes: both kinds of task and plain threads, over library operations, users' functions of both kinds,
 * and each other.
 */
#include "bell.h"
#include "box.h"
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/sync.h>

static struct box a;
static struct box b;
static weft_token stop;

static void begin(void)
{
    box_init(&a);
    box_init(&b);
    weft_token_init(&stop, NULL);
}

static void end(uint64_t left_a, uint64_t left_b)
{
    ASSERT_EQ(box_done(&a), left_a);
    ASSERT_EQ(box_done(&b), left_b);
    weft_token_done(&stop);
}

static int join_int(weft_task *t)
{
    int r = 1;
    ASSERT_OK(weft_join(t, &r));
    return r;
}

static bool waited_for(struct box *box)
{
    weft__waitlist_lock(&box->list);
    bool waits = !weft__waitlist_empty(&box->list);
    weft__waitlist_unlock(&box->list);
    return waits;
}

/* ---- users' functions, one of each kind: two things or none ---- */

struct take_two {
    WEFT_FRAME(int);
    struct box_take first;
    struct box_take second;
};
static weft_async(take_two)
{
    weft_begin;
    weft_await(f->first, box_take, &a);
    if (f->first.ret < 0) weft_return(f->first.ret);
    weft_await(f->second, box_take, &b);
    if (f->second.ret < 0) box_put(&a); /* its own clean-up */
    weft_return(f->second.ret);
    weft_end;
}

struct take_two_fiber {
    WEFT_FRAME(int);
};
static weft_fiber(take_two_fiber)
{
    f->ret = weft_run(take_two);
}

/* ---- one select, three forms ---- */

struct selects {
    WEFT_FRAME(int);
    struct box_take take;
    struct weft_token_wait quit;
    struct take_two two;
    struct weft_select sel;
};
static weft_async(selects)
{
    weft_begin;
    weft_await(f->sel, weft_select,
               .arm = {weft_arm(f->take, box_take, &a), weft_arm(f->quit, weft_token_wait, &stop),
                       weft_arm(f->two, take_two)});
    switch (f->sel.ret) {
    case 0:
        weft_return(f->take.ret == 0 && f->quit.ret == -ECANCELED ? 0 : -EINVAL);
    case 1:
        weft_return(f->take.ret == -ECANCELED && f->two.ret == -ECANCELED ? 1 : -EINVAL);
    default:
        weft_return(f->sel.ret);
    }
    weft_end;
}

static int selects_on_fiber(void)
{
    struct box_take take;
    struct weft_token_wait quit;
    struct take_two_fiber two;
    int which = weft_select(weft_arm(take, box_take, &a), weft_arm(quit, weft_token_wait, &stop),
                            weft_arm(two, take_two_fiber));
    switch (which) {
    case 0:
        return take.ret == 0 && quit.ret == -ECANCELED ? 0 : -EINVAL;
    case 1:
        return take.ret == -ECANCELED && two.ret == -ECANCELED ? 1 : -EINVAL;
    default:
        return which;
    }
}

static weft_task *start(int kind)
{
    return kind ? weft_go(selects_on_fiber) : weft_spawn(selects);
}

static void token_ends_it(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        weft_task *t = start(kind);
        CREW_UNTIL(waited_for(&a));
        weft_token_cancel(&stop);
        ASSERT_EQ(join_int(t), 1);
        box_put(&a); /* taken by nobody */
        end(1, 0);
    }
}

TEST(select_is_ended_by_a_token)
{
    crew_each(token_ends_it);
}

/* The take and the function both want one thing of the box; whoever gets it. */
static void a_thing_ends_it(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        box_put(&b);
        weft_task *t = start(kind);
        CREW_UNTIL(waited_for(&a));
        box_put(&a);
        int r = join_int(t);
        ASSERT(r == 0 || r == 2);
        end(0, r == 0);
    }
}

TEST(select_is_ended_by_what_comes)
{
    crew_each(a_thing_ends_it);
}

static void cancelled(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        weft_task *t = start(kind);
        CREW_UNTIL(waited_for(&a));
        weft_cancel(t);
        ASSERT_EQ(join_int(t), -ECANCELED);
        weft_task *dead = start(kind); /* queued or running */
        weft_cancel(dead);
        ASSERT_EQ(join_int(dead), -ECANCELED);
        box_put(&a);
        end(1, 0);
    }
}

TEST(select_is_cancelled)
{
    crew_each(cancelled);
}

static void *selects_on_thread(void *into)
{
    *(int *)into = selects_on_fiber();
    return NULL;
}

TEST(select_on_a_plain_thread)
{
    pthread_t thread;
    int r = -1;
    begin();
    ASSERT_OK(pthread_create(&thread, NULL, selects_on_thread, &r));
    CREW_UNTIL(waited_for(&a));
    weft_token_cancel(&stop);
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(r, 1);
    end(0, 0);
}

/* ---- arms of tasks ---- */

static int forever(void)
{
    int r;
    while ((r = weft_yield()) == 0)
        ;
    return r;
}

static int seven(void)
{
    return 7;
}

/* A wait that loses leaves the task alone; a join that loses ends it, and has its result. */
static int wait_and_join_lose(void)
{
    weft_task *t = weft_go(forever);
    weft_task *s = weft_go(seven);
    struct weft_wait w;
    struct weft_wait w2;
    struct weft_join j;
    struct weft_yield y;
    int r = 0;

    int which = weft_select(weft_arm(w, weft_wait, t), weft_arm(w2, weft_wait, s));
    if (which != 1 || w.ret != -ECANCELED || w2.ret != 0 || weft_done(t)) return -EINVAL;
    if (weft_join(s, &r) != 0 || r != 7) return -EBADE;
    which = weft_select_biased(weft_arm(j, weft_join, t, &r), weft_arm(y, weft_yield));
    if (which != 1 || j.ret != 0 || r != -ECANCELED) return -EILSEQ;
    return 0;
}

static void arms_of_tasks(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(join_int(weft_go(wait_and_join_lose)), 0);
}

TEST(select_of_a_wait_and_of_a_join)
{
    crew_each(arms_of_tasks);
}

/* An arm that never began took nothing: of a join, the handle is still there. */
static int join_never_begins(void)
{
    weft_task *s = weft_go(seven);
    struct weft_join j;
    struct weft_token_wait w;
    int r = 0;
    int which =
        weft_select_biased(weft_arm(w, weft_token_wait, &stop), weft_arm(j, weft_join, s, &r));
    if (which != 0 || j.ret != -ECANCELED) return -EINVAL;
    return weft_join(s, &r) == 0 ? r : -EBADE;
}

static void unbegun(struct crew *crew)
{
    (void)crew;
    begin();
    weft_token_cancel(&stop);
    ASSERT_EQ(join_int(weft_go(join_never_begins)), 7);
    end(0, 0);
}

TEST(select_leaves_what_never_began_to_its_owner)
{
    crew_each(unbegun);
}

/* ---- a loop with a kept arm ---- */

struct loops {
    WEFT_FRAME(int);
    int got;
    struct box_take take;
    struct weft_token_wait quit;
    struct weft_select sel;
};
static weft_async(loops)
{
    weft_begin;
    weft_start(f->quit, weft_token_wait, &stop);
    for (;;) {
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->take, box_take, &a), weft_keep(f->quit, weft_token_wait)});
        if (f->sel.ret != 0) break;
        f->got++;
    }
    weft_await_settled(f->quit, weft_token_wait);
    weft_return(f->sel.ret == 1 ? f->got : f->sel.ret);
    weft_end;
}

static int loops_on_fiber(void)
{
    struct box_take take;
    struct weft_token_wait quit;
    int got = 0;
    int which;

    weft_start(quit, weft_token_wait, &stop);
    while ((which = weft_select(weft_arm(take, box_take, &a), weft_keep(quit, weft_token_wait))) ==
           0)
        got++;
    weft_settle(quit, weft_token_wait);
    return which == 1 ? got : which;
}

static bool box_is_empty(struct box *box)
{
    weft__waitlist_lock(&box->list);
    bool empty = box->held == 0;
    weft__waitlist_unlock(&box->list);
    return empty;
}

static void loop(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        for (int by_cancel = 0; by_cancel < 2; by_cancel++) {
            begin();
            weft_task *t = kind ? weft_go(loops_on_fiber) : weft_spawn(loops);
            for (int i = 0; i < 100; i++)
                box_put(&a);
            CREW_UNTIL(box_is_empty(&a) && waited_for(&a));
            if (by_cancel) {
                weft_cancel(t);
            } else {
                weft_token_cancel(&stop);
            }
            ASSERT_EQ(join_int(t), by_cancel ? -ECANCELED : 100);
            end(0, 0);
        }
    }
}

TEST(select_loop_with_an_arm_that_is_kept)
{
    crew_each(loop);
}

static void *loops_on_thread(void *into)
{
    *(int *)into = loops_on_fiber();
    return NULL;
}

TEST(select_loop_on_a_plain_thread)
{
    pthread_t thread;
    int r = -1;
    begin();
    ASSERT_OK(pthread_create(&thread, NULL, loops_on_thread, &r));
    for (int i = 0; i < 100; i++)
        box_put(&a);
    CREW_UNTIL(box_is_empty(&a) && waited_for(&a));
    weft_token_cancel(&stop);
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(r, 100);
    end(0, 0);
}

/* ---- all, then ---- */

struct both {
    WEFT_FRAME(int);
    struct box_take first;
    struct take_two_fiber two;
    struct weft_all all;
    struct take_two next;
    struct weft_then then;
};
static weft_async(both)
{
    weft_begin;
    weft_await(f->all, weft_all,
               .arm = {weft_arm(f->first, box_take, &a), weft_arm(f->two, take_two_fiber)});
    if (f->all.ret < 0 || f->first.ret < 0 || f->two.ret < 0)
        weft_return(f->all.ret ? f->all.ret : -EINVAL);
    weft_await(f->then, weft_then,
               .arm = {weft_arm(f->first, box_take, &b), weft_arm(f->next, take_two)});
    weft_return(f->then.ret);
    weft_end;
}

static int both_on_fiber(void)
{
    struct box_take first;
    struct take_two_fiber two;
    struct take_two next;
    int r = weft_try_all(weft_arm(first, box_take, &a), weft_arm(two, take_two_fiber));
    if (r < 0) return r;
    return weft_then(weft_arm(first, box_take, &b), weft_arm(next, take_two));
}

static void all_then(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 2; kind++) {
        begin();
        weft_task *t = kind ? weft_go(both_on_fiber) : weft_spawn(both);
        for (int i = 0; i < 3; i++) {
            box_put(&a);
            box_put(&b);
        }
        ASSERT_EQ(join_int(t), 0);
        end(0, 0);
        begin();
        t = kind ? weft_go(both_on_fiber) : weft_spawn(both);
        box_put(&a);
        CREW_UNTIL(waited_for(&a) || waited_for(&b));
        weft_cancel(t);
        ASSERT_EQ(join_int(t), -ECANCELED);
        uint64_t left = a.held;
        ASSERT(left <= 1); /* the first may have it */
        end(left, 0);
    }
}

TEST(all_and_then)
{
    crew_each(all_then);
}

/* ---- a race of tasks, by array ---- */

static int race_of_tasks(void)
{
    enum { RUNNERS = 30 };
    struct weft_wait wait[RUNNERS];
    weft_future arm[RUNNERS];
    weft_task *task[RUNNERS];
    int r = 0;

    for (int i = 0; i < RUNNERS; i++) {
        task[i] = i == 17 ? weft_go(seven) : weft_go(forever);
        arm[i] = weft_arm(wait[i], weft_wait, task[i]);
    }
    int which = weft_race(arm, RUNNERS);
    for (int i = 0; i < RUNNERS; i++) {
        weft_cancel(task[i]);
        if (weft_join(task[i], &r) != 0 || r != (i == 17 ? 7 : -ECANCELED)) return -EINVAL;
    }
    return which;
}

static void race(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(join_int(weft_go(race_of_tasks)), 17);
}

TEST(race_finds_the_one_that_ends)
{
    crew_each(race);
}

/* ---- an arm on the poll's own stack ---- */

struct forgets {
    WEFT_FRAME(int);
    struct weft_select sel;
};
static weft_async(forgets)
{
    struct box_take take = {.ret = 0}; /* gone at the first suspension */
    weft_begin;
    weft_await(f->sel, weft_select, .arm = {weft_arm(take, box_take, &a)});
    weft_return(take.ret);
    weft_end;
}

static void runs_forgets(void *arg)
{
    struct crew crew;
    (void)arg;
    begin();
    crew_start(&crew, 1);
    (void)join_int(weft_spawn(forgets));
}

TEST(select_refuses_an_arm_on_the_stack)
{
    struct death d = death_of(runs_forgets, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "lies on the stack"));
}

/* ---- inside a stackless poll it is refused ---- */

struct helper {
    WEFT_FRAME(int);
};
static int calls_select(void)
{
    struct weft_yield y;
    return weft_select(weft_arm(y, weft_yield));
}
static weft_async(helper)
{
    weft_begin;
    weft_return(calls_select());
    weft_end;
}

static void refused(struct crew *crew)
{
    (void)crew;
#ifndef WEFT_DEBUG
    ASSERT_EQ(join_int(weft_spawn(helper)), -EDEADLK);
#else
    (void)helper_poll;
#endif
}

TEST(select_inside_a_poll_is_refused)
{
    crew_each(refused);
}

/* ---- what is drawn ---- */

enum { DRAWS = 64 };

static weft_event rung = WEFT_EVENT_INIT;

/* Who wins among four that are all ready. */
static int draws(char winners[DRAWS])
{
    weft_event_set(&rung);
    for (int i = 0; i < DRAWS; i++) {
        struct weft_event_wait w[4];
        winners[i] = (char)weft_select(
            weft_arm(w[0], weft_event_wait, &rung), weft_arm(w[1], weft_event_wait, &rung),
            weft_arm(w[2], weft_event_wait, &rung), weft_arm(w[3], weft_event_wait, &rung));
    }
    return 0;
}

static void draw_with(int workers, uint64_t seed, char winners[DRAWS])
{
    struct crew crew;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .seed = seed});
    ASSERT_EQ(join_int(weft_go(draws, winners)), 0);
    crew_stop(&crew);
}

/* On one worker, or none, a seed says who is first. */
TEST(select_draws_by_the_seed)
{
    for (int workers = 1; workers >= -1; workers -= 2) {
        char first[DRAWS], again[DRAWS], other[DRAWS];
        draw_with(workers, 42, first);
        draw_with(workers, 42, again);
        draw_with(workers, 43, other);
        ASSERT_OK(memcmp(first, again, DRAWS));
        ASSERT_NE(memcmp(first, other, DRAWS), 0);
    }
}
