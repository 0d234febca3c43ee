/* SPDX-License-Identifier: MIT
 *
 * Scopes as the page writes them: every macro, in both forms, at every level of optimisation.
 */
#include "../face.h"

static int counts(int *at)
{
    int r = weft_yield();
    *at += 1;
    return r;
}

static int fails(int with)
{
    return with;
}

static int stays(void)
{
    return weft_sleep(weft_secs(99));
}

struct counts_too {
    WEFT_FRAME(int);
    int *at;
    struct weft_yield yield;
};
static weft_async(counts_too)
{
    weft_begin;
    weft_await(f->yield, weft_yield);
    *f->at += 1;
    weft_return(f->yield.ret);
    weft_end;
}

static int start_one(weft_scope *s, void *arg)
{
    return weft_go_in(s, counts, (int *)arg);
}

struct stackless {
    WEFT_FRAME(int);
    int n[5];
    int r;
    weft_scope plain;
    weft_scope bounded;
    struct counts_too body;
    struct weft_scope_join end;
    struct weft_scope_room room;
    struct weft_scope_run run;
    struct weft_supervise sup;
};
static weft_async(stackless)
{
    weft_begin;
    CHECK_EQ(weft_spawn_in(&f->plain, counts_too, &f->n[0]), 0);
    CHECK_EQ(weft_go_in(&f->plain, counts, &f->n[1]), 0);
    CHECK_EQ(weft_spawn_in_as(&f->plain, (.name = "third"), counts_too, .at = &f->n[2]), 0);
    weft_await(f->end, weft_scope_join, &f->plain);
    CHECK_EQ(f->end.ret, 0);
    CHECK_EQ(f->n[0] + f->n[1] + f->n[2], 3);
    weft_scope_init(&f->bounded, .error = &f->r, .limit = 1);
    weft_await(f->room, weft_scope_room, &f->bounded);
    CHECK_EQ(weft_try_spawn_in(&f->bounded, counts_too, &f->n[3]), 0);
    CHECK_EQ(weft_try_go_in(&f->bounded, counts, &f->n[4]), -EAGAIN);
    weft_await(f->run, weft_scope_run, &f->bounded, weft_arm(f->body, counts_too, &f->n[4]));
    CHECK_EQ(f->run.ret + f->r, 0);
    CHECK_EQ(f->n[3] + f->n[4], 2);
    weft_await(f->sup, weft_supervise, .start = start_one, .arg = &f->n[0], .restarts = 1,
               .within = weft_secs(1));
    CHECK_EQ(f->sup.ret, 0);
    weft_return(f->n[0]);
    weft_end;
}

static int returns_from_inside(int *n)
{
    WEFT_SCOPE(s)
    {
        CHECK_EQ(weft_go_in(s, counts, n), 0);
        return *n + 7;
    }
    return 0;
}

static int on_fiber(void)
{
    int n[4] = {0};
    int r = 1;
    int rounds = 0;

    WEFT_SCOPE(s) CHECK_EQ(weft_go_in(s, counts, &n[0]), 0);
    CHECK_EQ(n[0], 1);
    WEFT_SCOPE(s, .error = &r, .timeout = weft_secs(60), .limit = 2)
    {
        for (int i = 1; i < 4; i++)
            CHECK_EQ(weft_go_in(s, counts, &n[i]), 0);
        if (weft_scope_reason(s) == 0) continue;
        r = 100;
        break;
    }
    CHECK_EQ(r + n[1] + n[2] + n[3], 3);
    for (; rounds < 3; rounds++) {
        WEFT_SCOPE(outer, .error = &r)
        {
            CHECK_EQ(weft_go_in_as(outer, (.name = "stays"), stays), 0);
            WEFT_SCOPE(inner)
            {
                CHECK_EQ(weft_go_in(inner, stays), 0);
                if (rounds == 0) goto next;
                break;
            }
            CHECK_EQ(weft_scope_count(outer), 1);
            if (rounds == 1) break;
            CHECK_EQ(weft_go_in(outer, fails, -EIO), 0);
        }
        CHECK_EQ(r, rounds == 1 ? -ECANCELED : -EIO);
        continue;
    next:
        CHECK_EQ(r, -ECANCELED);
    }
    r = 0;
    CHECK_EQ(returns_from_inside(&r), 7);
    CHECK_EQ(r, 1);
    CHECK_EQ(weft_supervise(start_one, &r, 2, weft_secs(1)), 0);
    return rounds + r;
}

static int app(void)
{
    int r = 1;
    CHECK_EQ(weft_join(weft_spawn(stackless), &r), 0);
    CHECK_EQ(r, 2);
    CHECK_EQ(weft_join(weft_go(on_fiber), &r), 0);
    CHECK_EQ(r, 5);
    return 0;
}

WEFT_MAIN(app)
