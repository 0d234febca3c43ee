/* SPDX-License-Identifier: MIT
 *
 * Regions with leaves that are turned by hand: which reason is heard where, when leaves begin, and that each is settled.
 */
#include "task/region.h"

#include "task/here.h"
#include "test.h"

#include <errno.h>
#include <signal.h>

/* ---- a leaf that is over when the test says so ---- */

struct leaf {
    int32_t weft__at;
    int ret;
    bool over;
    bool begun;  /* has the waker */
    bool stops;  /* over as soon as it begins */
    int begins;  /* how often it has */
    int settled; /* how often it was told to stop */
};

static weft_poll leaf_poll(void *arg, weft_cx *cx)
{
    struct leaf *leaf = arg;

    if (cx->why) {
        leaf->settled++;
        leaf->begun = false;
        return WEFT_READY;
    }
    if (leaf->over) {
        leaf->begun = false;
        return WEFT_READY;
    }
    if (cx->probe) return WEFT_PENDING;
    if (!leaf->begun) leaf->begins++;
    leaf->over |= leaf->stops;
    leaf->begun = !leaf->over;
    return leaf->over ? WEFT_READY : WEFT_PENDING;
}

/* ---- what is polled inside ---- */

struct inside {
    int polls;
    int why; /* that it was told last */
    int pendings;
    struct leaf *turns; /* is over from its first poll on */
};

static weft_poll inside_poll(void *arg, weft_cx *cx)
{
    struct inside *in = arg;

    ASSERT(!cx->probe);
    in->polls++;
    in->why = cx->why;
    if (in->turns) in->turns->over = true;
    return in->pendings-- > 0 && !cx->why ? WEFT_PENDING : WEFT_READY;
}

/* A chain on this thread, outermost first. */
#define DEPTH 4
struct chain {
    struct leaf leaf[DEPTH];
    struct weft__region region[DEPTH];
    struct weft_cx cx;
};

static void chain_enter(struct chain *c, int n, int why, bool shield)
{
    weft__region_init(&c->region[n], leaf_poll, &c->leaf[n], why, shield);
    weft__region_enter(&c->region[n]);
}

static void chain_leave(struct chain *c, int count)
{
    weft__here()->cx = &c->cx;
    for (int i = count - 1; i >= 0; i--)
        weft__region_leave(&c->region[i]);
    weft__here()->cx = NULL;
    ASSERT_NULL(weft__here()->regions);
    for (int i = 0; i < count; i++)
        ASSERT(!c->leaf[i].begun);
}

static weft_poll poll_inside(struct chain *c, struct inside *in)
{
    return weft__regions_poll(weft__here()->regions, inside_poll, in, &c->cx);
}

static int told(struct chain *c)
{
    struct inside in = {0};
    ASSERT_EQ(poll_inside(c, &in), WEFT_READY);
    return in.why;
}

/* ---- which reason ---- */

/* Bits 0..3: region n asks; 4: the task does; 5..6: none, or region 1 or 2, is a shield. Regions 0 and 2 are deadlines. */
static int told_by_rule(unsigned bits)
{
    int shield = (int)(bits >> 5) % 3;
    int first = shield == 0 ? 0 : shield;

    if (shield == 0 && (bits & 16)) return -ECANCELED;
    for (int i = first; i < DEPTH; i++)
        if (bits & 1u << i) return i % 2 == 0 ? -ETIME : -ECANCELED;
    return 0;
}

TEST(region_outermost_answers_up_to_the_nearest_shield)
{
    for (unsigned bits = 0; bits < 96; bits++) {
        struct chain c = {.cx = {.why = bits & 16 ? -ECANCELED : 0}};
        int shield = (int)(bits >> 5) % 3;
        for (int i = 0; i < DEPTH; i++)
            chain_enter(&c, i, i % 2 == 0 ? -ETIME : -ECANCELED, i > 0 && i == shield);
        for (int i = 0; i < DEPTH; i++)
            c.leaf[i].over = bits & 1u << i;
        ASSERT_EQ(told(&c), told_by_rule(bits));
        ASSERT_EQ(c.cx.why, bits & 16 ? -ECANCELED : 0); /* as it was */
        chain_leave(&c, DEPTH);
    }
}

TEST(region_two_shields_the_inner_counts)
{
    struct chain c = {.cx = {.why = -ECANCELED}};
    chain_enter(&c, 0, -ETIME, true);
    chain_enter(&c, 1, -ETIME, true);
    ASSERT_EQ(told(&c), 0);
    c.leaf[0].over = true;
    ASSERT_EQ(told(&c), 0);
    c.leaf[1].over = true;
    ASSERT_EQ(told(&c), -ETIME);
    chain_leave(&c, 2);
}

TEST(region_that_never_asks)
{
    struct chain c = {.cx = {.why = -ECANCELED}};
    weft__region_init(&c.region[0], NULL, NULL, 0, true);
    weft__region_enter(&c.region[0]);
    ASSERT_EQ(told(&c), 0);
    struct inside in = {.pendings = 1};
    ASSERT_EQ(poll_inside(&c, &in), WEFT_PENDING);
    weft__region_leave(&c.region[0]);
    ASSERT_NULL(weft__here()->regions);
}

/* ---- when leaves begin ---- */

TEST(region_begins_at_the_first_suspension)
{
    struct chain c = {.cx = {.why = 0}};
    struct inside in = {.pendings = 2};

    chain_enter(&c, 0, -ETIME, false);
    chain_enter(&c, 1, -ECANCELED, true);
    ASSERT_EQ(told(&c), 0);
    ASSERT_EQ(c.leaf[0].begins + c.leaf[1].begins, 0); /* nothing had to wait */
    ASSERT_EQ(poll_inside(&c, &in), WEFT_PENDING);
    ASSERT_EQ(c.leaf[0].begins, 1); /* its time runs, shield or not */
    ASSERT_EQ(c.leaf[1].begins, 1);
    ASSERT_EQ(poll_inside(&c, &in), WEFT_PENDING);
    chain_enter(&c, 2, -ETIME, false);
    ASSERT_EQ(poll_inside(&c, &in), WEFT_READY);
    ASSERT_EQ(c.leaf[0].begins, 1);
    ASSERT_EQ(c.leaf[2].begins, 0);
    chain_leave(&c, 3);
    ASSERT_EQ(c.leaf[0].settled, 1);
    ASSERT_EQ(c.leaf[1].settled, 1);
    ASSERT_EQ(c.leaf[2].settled, 0); /* it never began */
}

TEST(region_that_asks_as_it_begins_has_the_poll_done_again)
{
    struct chain c = {.cx = {.why = 0}};
    struct inside in = {.pendings = 5};

    chain_enter(&c, 0, -ETIME, false);
    chain_enter(&c, 1, -ECANCELED, false);
    c.leaf[0].stops = true;
    ASSERT_EQ(poll_inside(&c, &in), WEFT_READY);
    ASSERT_EQ(in.polls, 2);
    ASSERT_EQ(in.why, -ETIME);
    chain_leave(&c, 2);
    ASSERT_EQ(c.leaf[0].settled, 0); /* it was over */
    ASSERT_EQ(c.leaf[1].settled, 1);
}

TEST(region_that_asks_beyond_a_shield_changes_nothing)
{
    struct chain c = {.cx = {.why = 0}};
    struct inside in = {.pendings = 5};

    chain_enter(&c, 0, -ETIME, false);
    chain_enter(&c, 1, -ETIME, true);
    c.leaf[0].stops = true;
    ASSERT_EQ(poll_inside(&c, &in), WEFT_PENDING);
    ASSERT_EQ(in.polls, 1);
    weft__here()->cx = &c.cx;
    weft__region_leave(&c.region[1]);
    ASSERT_EQ(told(&c), -ETIME); /* it is heard as soon as the shield is left */
    chain_leave(&c, 1);
}

/* The token is cancelled by what runs inside: the poll that does so has not heard, the next one does. */
TEST(region_is_looked_at_before_each_poll)
{
    struct chain c = {.cx = {.why = 0}};
    struct inside in = {.turns = &c.leaf[0]};

    chain_enter(&c, 0, -ECANCELED, false);
    ASSERT_EQ(poll_inside(&c, &in), WEFT_READY);
    ASSERT_EQ(in.why, 0);
    ASSERT_EQ(told(&c), -ECANCELED);
    ASSERT_EQ(told(&c), -ECANCELED); /* and it stays */
    chain_leave(&c, 1);
    ASSERT_EQ(c.leaf[0].begins, 0);
}

TEST(region_pause_lets_go_of_the_waker)
{
    struct chain c = {.cx = {.why = 0}};
    struct inside in = {.pendings = 2};

    chain_enter(&c, 0, -ETIME, false);
    ASSERT_EQ(poll_inside(&c, &in), WEFT_PENDING);
    weft__regions_pause(weft__here()->regions, &c.cx);
    ASSERT(!c.leaf[0].begun);
    ASSERT_EQ(poll_inside(&c, &in), WEFT_PENDING);
    ASSERT_EQ(c.leaf[0].begins, 2);
    c.leaf[0].over = true;
    ASSERT_EQ(told(&c), -ETIME);
    weft__regions_pause(weft__here()->regions, &c.cx);
    ASSERT_EQ(told(&c), -ETIME); /* what asks goes on asking */
    chain_leave(&c, 1);
    ASSERT_EQ(c.leaf[0].settled, 1);
}

static weft_poll deaf_poll(void *arg, weft_cx *cx)
{
    (void)arg;
    (void)cx;
    return WEFT_PENDING;
}

TEST_WITH(region_leaf_that_does_not_settle, .signal = SIGABRT)
{
    struct weft__region region;
    struct weft_cx cx = {.why = 0};
    weft__region_init(&region, deaf_poll, NULL, -ETIME, false);
    (void)weft__region_begin(&region, &cx);
    weft__region_settle(&region, &cx);
}

TEST_WITH(region_left_out_of_order, .signal = SIGABRT)
{
    struct chain c = {.cx = {.why = 0}};
    chain_enter(&c, 0, -ETIME, false);
    chain_enter(&c, 1, -ETIME, false);
    weft__region_leave(&c.region[0]);
}
