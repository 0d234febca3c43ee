/* SPDX-License-Identifier: MIT
 *
 * Everything is given up at every moment: tasks of both kinds wait in all shapes of combinators, for things in boxes, for tokens, tasks and time, while
 * threads outside put things in, cancel tokens and cancel tasks at random.
 *
 * What must hold: every task ends (no wake is lost: things keep coming, so whoever still waits is waited for in vain only by a lost one); what was taken
 * out of the boxes is what the tasks were told they got, to the last one, so no loser took anything that it did not tell; the boxes and tokens have no
 * waiter left when they end (they abort otherwise); and a frame is scribbled over as soon as its function is through with it, so that nobody touches it later.
 */
#include "box.h"
#include "crew.h"
#include "pool.h"
#include "test.h"

#include <string.h>

enum { BOXES = 3, TASKS = 24, TOKENS = 6, SHAPES = 16 };

struct world {
    struct box box[BOXES];
    weft_token token[TOKENS]; /* one is the parent of the rest */
    weft_task *victim;        /* a task that somebody may wait for */
    _Atomic uint64_t got;     /* things, as the tasks were told */
    _Atomic uint64_t ended;   /* tasks */
    _Atomic uint64_t rounds;
    uint32_t rounds_max;
};

static struct world *w;

static void got_if(int ret)
{
    if (ret == 0) fetch_add_relaxed(&w->got, 1);
}

/* ---- a user's function, stackless: two things from two boxes, or none ---- */

struct pair {
    WEFT_FRAME(int);
    struct box *one;
    struct box *two;
    struct box_take take;
};
static weft_async(pair)
{
    weft_begin;
    weft_await(f->take, box_take, f->one);
    if (f->take.ret < 0) weft_return(f->take.ret);
    weft_await(f->take, box_take, f->two);
    if (f->take.ret < 0) {
        weft__waitlist_lock(&f->one->list);
        f->one->taken--; /* undone: what is put back was never taken */
        f->one->put--;
        weft__waitlist_unlock(&f->one->list);
        box_put(f->one);
    } else {
        fetch_add_relaxed(&w->got, 2);
    }
    weft_return(f->take.ret);
    weft_end;
}

/* The same as a fiber inside of whoever awaits it, with a region of its own around the second half. */
struct pair_fiber {
    WEFT_FRAME(int);
    struct box *one;
    struct box *two;
    weft_token *token;
};
static weft_fiber(pair_fiber)
{
    f->ret = weft_yield();
    if (f->ret == 0) WEFT_UNTIL(f->token) f->ret = weft_run(pair, f->one, f->two);
}

/* ---- one round: a shape of its own each time ---- */

struct round {
    WEFT_FRAME(int);
    uint64_t random;
    uint32_t shape;
    uint32_t i;
    struct box *x;
    struct box *y;
    weft_token *token;
    struct box_take a;
    struct box_take b;
    struct box_take many[4];
    weft_future arms[4];
    struct weft_token_wait quit;
    struct weft_wait wait;
    struct weft_yield pause;
    struct pair pair;
    struct pair_fiber fiber;
    struct weft_select sel;
    struct weft_select inner;
    struct weft_race race;
    struct weft_all all;
    struct weft_try_all try_all;
    struct weft_then then;
    struct weft_until until;
    struct weft_sleep sleep;
    struct weft_timeout to;
    struct weft_deadline deadline;
    struct weft_shield shield;
};

static struct box *a_box(uint64_t *random)
{
    return &w->box[pool_random(random, BOXES)];
}

/* Up to 60 us; now and then nothing. */
static weft_time a_while(uint64_t *random)
{
    return weft_us(pool_random(random, 60)) - weft_us(3);
}

static weft_async(round)
{
    weft_begin;
    f->shape = pool_random(&f->random, SHAPES);
    f->x = a_box(&f->random);
    f->y = a_box(&f->random);
    f->token = &w->token[pool_random(&f->random, TOKENS)];
    switch (f->shape) {
    case 0:
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->a, box_take, f->x), weft_arm(f->b, box_take, f->y)});
        f->ret = f->sel.ret;
        goto two;
    case 1:
        weft_await(
            f->sel, weft_select,
            .arm = {weft_arm(f->quit, weft_token_wait, f->token), weft_arm(f->a, box_take, f->x)});
        f->ret = f->sel.ret;
        goto one;
    case 2:
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->pair, pair, f->x, f->y), weft_arm(f->a, box_take, f->y)});
        f->ret = f->sel.ret;
        goto one;
    case 3:
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->fiber, pair_fiber, f->x, f->y, f->token),
                           weft_arm(f->a, box_take, f->y),
                           weft_arm(f->wait, weft_wait, w->victim)});
        f->ret = f->sel.ret;
        goto one;
    case 4:
        weft_await(f->all, weft_all,
                   .arm = {weft_arm(f->a, box_take, f->x), weft_arm(f->pair, pair, f->y, f->x)});
        f->ret = f->all.ret;
        goto one;
    case 5:
        weft_await(f->try_all, weft_try_all,
                   .arm = {weft_arm(f->a, box_take, f->x),
                           weft_arm(f->fiber, pair_fiber, f->y, f->x, f->token),
                           weft_arm(f->b, box_take, f->y)});
        f->ret = f->try_all.ret;
        goto two;
    case 6:
        weft_await(f->until, weft_until, f->token, weft_arm(f->pair, pair, f->x, f->y));
        weft_return(f->until.ret);
    case 7:
        weft_await(
            f->sel, weft_select,
            .arm = {weft_arm(f->inner, weft_select,
                             .arm = {weft_arm(f->a, box_take, f->x),
                                     weft_arm(f->quit, weft_token_wait, f->token)}),
                    weft_arm(f->until, weft_until, f->token, weft_arm(f->b, box_take, f->y))});
        f->ret = f->sel.ret;
        goto two;
    case 8:
        weft_await(f->then, weft_then,
                   .arm = {weft_arm(f->a, box_take, f->x), weft_arm(f->b, box_take, f->y)});
        f->ret = f->then.ret;
        goto two;
    case 9:
        for (f->i = 0; f->i < 4; f->i++)
            f->arms[f->i] = weft_arm(f->many[f->i], box_take, f->i % 2 ? f->x : f->y);
        weft_await(f->race, weft_race, f->arms, 4);
        for (f->i = 0; f->i < 4; f->i++)
            got_if(f->many[f->i].ret);
        weft_return(f->race.ret);
    case 10:
        weft_start(f->quit, weft_token_wait, f->token);
        for (f->i = 0; f->i < 3; f->i++) {
            weft_await(
                f->sel, weft_select,
                .arm = {weft_keep(f->quit, weft_token_wait), weft_arm(f->a, box_take, f->x)});
            if (f->a.ret == 0) got_if(0);
            f->a.ret = 1;
            if (f->sel.ret < 0) break;
        }
        weft_await_settled(f->quit, weft_token_wait);
        weft_return(f->sel.ret);
    case 11:
        weft_await(f->to, weft_timeout, a_while(&f->random), weft_arm(f->pair, pair, f->x, f->y));
        weft_return(f->to.ret);
    case 12:
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->sleep, weft_sleep, a_while(&f->random)),
                           weft_arm(f->shield, weft_shield, a_while(&f->random),
                                    weft_arm(f->a, box_take, f->x)),
                           weft_arm(f->b, box_take, f->y)});
        f->ret = f->sel.ret;
        goto two;
    case 13:
        weft_await(f->deadline, weft_deadline, weft_now() + a_while(&f->random),
                   weft_arm(f->to, weft_timeout, a_while(&f->random),
                            weft_arm(f->fiber, pair_fiber, f->x, f->y, f->token)));
        weft_return(f->deadline.ret);
    case 14:
        weft_start(f->sleep, weft_sleep, a_while(&f->random));
        do {
            weft_await(f->sel, weft_select,
                       .arm = {weft_keep(f->sleep, weft_sleep),
                               weft_arm(f->to, weft_timeout, a_while(&f->random),
                                        weft_arm(f->a, box_take, f->x))});
            got_if(f->a.ret);
        } while (f->sel.ret == 1);
        weft_await_settled(f->sleep, weft_sleep);
        weft_return(f->sel.ret);
    default:
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->a, box_take, f->x), weft_otherwise,
                           weft_arm(f->pair, pair, f->y, f->x)});
        weft_await(f->pause, weft_yield);
        f->ret = f->pause.ret;
        goto one;
    }
two:
    got_if(f->b.ret);
one:
    got_if(f->a.ret);
    weft_end;
}

/* ---- the same in the words of fibers, where those differ ---- */

static int round_on_fiber(uint64_t *random)
{
    struct box_take a = {.ret = 1};
    struct box_take b = {.ret = 1};
    struct pair pair;
    struct pair_fiber fiber;
    struct weft_token_wait quit;
    struct weft_select sel;
    struct weft_sleep sleep;
    struct box *x = a_box(random);
    struct box *y = a_box(random);
    weft_token *token = &w->token[pool_random(random, TOKENS)];
    int r = 0;

    switch (pool_random(random, 11)) {
    case 0:
        r = weft_select(weft_arm(a, box_take, x), weft_arm(b, box_take, y));
        break;
    case 1:
        WEFT_UNTIL(token) r = weft_select(weft_arm(a, box_take, x), weft_arm(pair, pair, y, x));
        break;
    case 2:
        WEFT_UNTIL(token)
        {
            r = weft_run(pair, x, y);
            if (r == 0) WEFT_UNTIL(&w->token[0])
            r = weft_try_all(weft_arm(a, box_take, x), weft_arm(b, box_take, y));
        }
        break;
    case 3:
        r = weft_select_biased(weft_arm(fiber, pair_fiber, x, y, token), weft_arm(a, box_take, y));
        break;
    case 4:
        weft_start(quit, weft_token_wait, token);
        for (int i = 0; i < 3 && r >= 0; i++) {
            a.ret = 1;
            r = weft_select(weft_arm(a, box_take, x), weft_keep(quit, weft_token_wait));
            got_if(a.ret);
        }
        weft_settle(quit, weft_token_wait);
        return r;
    case 5:
        r = weft_all(
            weft_arm(sel, weft_select,
                     .arm = {weft_arm(a, box_take, x), weft_arm(quit, weft_token_wait, token)}),
            weft_arm(b, box_take, y));
        break;
    case 6:
        WEFT_TIMEOUT(a_while(random))
        WEFT_UNTIL(token) r = weft_select(weft_arm(a, box_take, x), weft_arm(pair, pair, y, x));
        break;
    case 7:
        WEFT_TIMEOUT(a_while(random))
        {
            r = weft_run(box_take, x);
            got_if(r);
            WEFT_SHIELD(a_while(random)) r = weft_run(pair, x, y);
            if (r == 0) r = weft_sleep(a_while(random));
        }
        break;
    case 8:
        WEFT_DEADLINE(weft_now() + a_while(random)) WEFT_TIMEOUT(a_while(random))
        {
            r = weft_all(weft_arm(a, box_take, x), weft_arm(fiber, pair_fiber, x, y, token));
        }
        break;
    case 9:
        weft_start(sleep, weft_sleep, a_while(random));
        do {
            r = weft_select(weft_arm(a, box_take, x), weft_keep(sleep, weft_sleep));
            got_if(a.ret);
        } while (r == 0);
        weft_settle(sleep, weft_sleep);
        return r;
    default:
        WEFT_UNTIL(token) r = weft_run(round, .random = pool_seed(*random));
        break;
    }
    got_if(a.ret);
    got_if(b.ret);
    return r;
}

/* ---- tasks ---- */

struct lives {
    WEFT_FRAME(int);
    uint64_t random;
    uint32_t n;
    struct weft_yield pause;
    struct round round;
};
static weft_async(lives)
{
    weft_begin;
    for (f->n = 0; f->n < w->rounds_max; f->n++) {
        weft_await(f->round, round, .random = pool_seed(f->random + f->n));
        memset(&f->round, 0xa5, sizeof f->round);
        fetch_add_relaxed(&w->rounds, 1);
        weft_await(f->pause, weft_yield);
        if (f->pause.ret < 0) break;
    }
    fetch_add_release(&w->ended, 1); /* release: the test's own flag */
    weft_return(0);
    weft_end;
}

__attribute__((noinline)) static void scribble(void)
{
    char dead[4096];
    memset(dead, 0xa5, sizeof dead);
    __asm__ volatile("" : : "r"(dead) : "memory");
}

static int lives_on_fiber(uint64_t random)
{
    for (uint32_t n = 0; n < w->rounds_max; n++) {
        (void)round_on_fiber(&random);
        scribble();
        fetch_add_relaxed(&w->rounds, 1);
        if (weft_yield() < 0) break;
    }
    fetch_add_release(&w->ended, 1);
    return 0;
}

static int victim(void)
{
    int r;
    while ((r = weft_yield()) == 0)
        ;
    return r;
}

/* ---- the world, and who disturbs it ---- */

static void world_begin(struct world *world, uint32_t rounds_max)
{
    memset(world, 0, sizeof *world);
    w = world;
    w->rounds_max = rounds_max;
    for (int i = 0; i < BOXES; i++)
        box_init(&w->box[i]);
    for (int i = 0; i < TOKENS; i++)
        weft_token_init(&w->token[i], i ? &w->token[0] : NULL);
    w->victim = weft_go(victim);
}

static void world_end(void)
{
    uint64_t taken = 0;
    int r = 0;

    weft_cancel(w->victim);
    ASSERT_OK(weft_join(w->victim, &r));
    for (int i = 0; i < BOXES; i++) {
        taken += w->box[i].taken;
        (void)box_done(&w->box[i]);
    }
    for (int i = TOKENS - 1; i >= 0; i--)
        weft_token_done(&w->token[i]);
    ASSERT_EQ(taken, load_relaxed(&w->got));
}

/* One in four hundred disturbs tokens or tasks: most rounds should come to their end. */
static void disturb(uint64_t *random, weft_task **task)
{
    uint32_t what = pool_random(random, 4000);

    if (what < 6) {
        weft_token_cancel(&w->token[1 + pool_random(random, TOKENS - 1)]);
    } else if (what < 10) {
        weft_cancel(task[pool_random(random, TASKS)]);
    } else if (what == 10) {
        weft_token_cancel(&w->token[0]);
    } else if (what < 1000) {
        sched_yield();
    } else {
        box_put(a_box(random));
    }
}

static void every_moment(struct crew *crew)
{
    static struct world world;
    weft_task *task[TASKS];
    uint64_t random = pool_seed((uint64_t)crew->workers + 77);

    world_begin(&world, (uint32_t)test_scaled(80));
    for (int i = 0; i < TASKS; i++) {
        uint64_t seed = pool_seed((uint64_t)i);
        task[i] = i % 2 ? weft_go(lives_on_fiber, seed) : weft_spawn(lives, .random = seed);
    }
    while (load_acquire(&w->ended) < TASKS) /* acquire: as above */
        disturb(&random, task);
    for (int i = 0; i < TASKS; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(r, 0);
    }
    world_end();
}

TEST_WITH(flow_is_given_up_at_every_moment, .timeout_s = 300)
{
    crew_each(every_moment);
}
