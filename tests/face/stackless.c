/* SPDX-License-Identifier: MIT
 *
 * Stackless functions: awaits one after the other, in loops, in a switch, on one line; spawned by name and in order.
 */
#include "face.h"

/* The page's delayed_sum, with a countdown for the sleep. */
struct delayed_sum {
    WEFT_FRAME(int);
    int a, b;
    struct countdown sleep;
};

static weft_async(delayed_sum)
{
    weft_begin;
    weft_await(f->sleep, countdown, .left = 3);
    if (f->sleep.ret < 0) weft_return(f->sleep.ret);
    weft_return(f->a + f->b);
    weft_end;
}

/* A loop around a switch around awaits; `break` leaves the user's switch. */
struct twisted {
    WEFT_FRAME(long);
    int rounds;
    int i;
    struct countdown one;
    struct delayed_sum sum;
};

static weft_async(twisted)
{
    weft_begin;
    for (f->i = 0; f->i < f->rounds; f->i++) {
        switch (f->i % 3) {
        case 0:
            weft_await(f->one, countdown, 2);
            f->ret += 1;
            break;
        case 1:
            weft_await(f->sum, delayed_sum, f->i, .b = 100);
            f->ret += f->sum.ret;
            __attribute__((fallthrough));
        default:
            if (f->i > 4)
                weft_await(f->one, countdown);
            else
                f->ret += 10000;
        }
    }
    weft_end;
}

/* clang-format off */
struct line { WEFT_FRAME(int); struct countdown a, b; };
static weft_async(line) { weft_begin; weft_await(f->a, countdown, 1); f->ret++; weft_await(f->b, countdown, 2); f->ret++; weft_await(f->a, countdown); weft_return(f->ret + 1); weft_end; }
/* clang-format on */

/* Children that are picked at run time, and one in memory that its owner keeps elsewhere. */
struct many {
    WEFT_FRAME(int);
    struct countdown *elsewhere;
    struct countdown kid[4];
    int i;
};

static weft_async(many)
{
    int fresh = 7; /* made anew at each poll */
    weft_begin;
    for (f->i = 0; f->i < 4; f->i++) {
        weft_await(f->kid[f->i], countdown, f->i);
        f->ret += fresh;
    }
    weft_await(*f->elsewhere, countdown, 2);
    weft_return(f->ret + f->elsewhere->left);
    weft_end;
}

/* No await at all, and no result worth naming. */
struct nothing {
    WEFT_FRAME(char);
};

static weft_async(nothing)
{
    weft_begin;
    weft_end;
}

/* Results that are no integers; the storage class is the author's. */
struct pair {
    double x;
    const char *word;
};
struct paired {
    WEFT_FRAME(struct pair);
    double x;
    struct weft_yield pause;
};

weft_pollfn paired_poll;
weft_async(paired)
{
    weft_begin;
    weft_await(f->pause, weft_yield);
    weft_return((struct pair){f->x * 2, "two"});
    weft_end;
}

/* Spawns and joins others from inside. */
struct parent {
    WEFT_FRAME(int);
    weft_task *kid;
    struct weft_join join;
    int sum;
    short narrow;
    int wrong;
};

static weft_async(parent)
{
    weft_begin;
    f->kid = weft_spawn(delayed_sum, 20, 22);
    weft_await(f->join, weft_join, f->kid, &f->sum);
    CHECK_EQ(f->join.ret, 0);
    weft_await(f->join, weft_join, weft_spawn(delayed_sum, 1, 2), &f->narrow);
    f->wrong = f->join.ret;
    weft_await(f->join, weft_join, weft_spawn(delayed_sum, 1, 2), NULL);
    CHECK_EQ(f->join.ret, 0);
    weft_await(f->join, weft_join, NULL, &f->sum);
    CHECK_EQ(f->join.ret, -ECHILD);
    weft_return(f->sum);
    weft_end;
}

/* The same with the arguments by name, in any order, and some of them left out. */
struct names {
    WEFT_FRAME(int);
    struct weft_join join;
    int sum;
    short narrow;
};
static weft_async(names)
{
    weft_begin;
    weft_await(f->join, weft_join, .task = weft_spawn(delayed_sum, 2, 3), .into = &f->sum,
               .bytes = sizeof(f->sum));
    CHECK(f->join.ret == 0 && f->sum == 5);
    weft_await(f->join, weft_join, .into = &f->narrow, .bytes = sizeof(f->narrow),
               .task = weft_spawn(delayed_sum, 1, 2));
    CHECK_EQ(f->join.ret, -EINVAL);
    weft_await(f->join, weft_join, .task = weft_spawn(delayed_sum, 1, 2));
    CHECK_EQ(f->join.ret, 0);
    weft_await(f->join, weft_join, weft_spawn(delayed_sum, 1, 2));
    CHECK_EQ(f->join.ret, 0);
    weft_await(f->join, weft_join, weft_spawn(delayed_sum, 4, 2), &f->sum, sizeof(f->sum));
    CHECK(f->join.ret == 0 && f->sum == 6);
    weft_await(f->join, weft_join, .task = weft_spawn(delayed_sum, 1, 2), .into = &f->sum,
               .ret = 0);
    CHECK_EQ(f->join.ret, -EINVAL); /* left out, it fits no result */
    weft_await(f->join, weft_join);
    CHECK_EQ(f->join.ret, -ECHILD);
    weft_return(f->sum);
    weft_end;
}

static void check_joins(void)
{
    int sum = 0;
    long wide = -1;

    CHECK_EQ(weft_join(weft_spawn(delayed_sum, .a = 3, .b = 4), &sum), 0);
    CHECK_EQ(sum, 7);
    CHECK_EQ(weft_join(weft_spawn(delayed_sum, 5, 6), &sum), 0);
    CHECK_EQ(sum, 11);
    CHECK_EQ(weft_join(weft_spawn_as((.name = "db", .pinned = true), delayed_sum, .b = 9), &sum),
             0);
    CHECK_EQ(sum, 9);
    CHECK_EQ(weft_join(weft_spawn(delayed_sum, 1, 1), &wide), -EINVAL);
    CHECK_EQ(wide, -1);
    CHECK_EQ(weft_join(weft_spawn(delayed_sum, 1, 1), NULL), 0);
    CHECK_EQ(weft_join(NULL, &sum), -ECHILD);
    CHECK_EQ(weft_detach(NULL), -ECHILD);
    CHECK_EQ(weft_detach(weft_spawn(nothing)), 0);
}

static void check_cancel(void)
{
    int sum = 0;
    weft_task *t = weft_spawn(delayed_sum, 1, 1);

    weft_cancel(t);
    CHECK_EQ(weft_join(t, &sum), 0);
    CHECK_EQ(sum, -ECANCELED);
}

static int app(void)
{
    struct countdown heap = {.left = 0};
    struct pair pair;

    check_joins();
    check_cancel();
    CHECK_EQ(weft_run(delayed_sum, .a = 1, .b = 2), 3);
    CHECK_EQ(weft_run(delayed_sum, weft_run(delayed_sum, 1, 2), weft_run(delayed_sum, 3, 4)), 10);
    CHECK_EQ(weft_run(twisted, 7), 1 + 101 + 10000 + 10000 + 1 + 104 + 10000 + 1);
    CHECK_EQ(weft_run(line), 3);
    CHECK_EQ(weft_run(many, &heap), 4 * 7 - 1);
    CHECK_EQ(weft_run(nothing), 0);
    CHECK_EQ(weft_run(parent), 42);
    CHECK_EQ(weft_run(names), 6);
    pair = weft_run(paired, 1.5);
    CHECK(pair.x == 3.0 && strcmp(pair.word, "two") == 0);
    CHECK_EQ(weft_join(weft_spawn(paired, .x = 4), &pair), 0);
    CHECK(pair.x == 8.0);
    CHECK_EQ(weft_yield(), 0);
    return 0;
}

WEFT_MAIN(app)
