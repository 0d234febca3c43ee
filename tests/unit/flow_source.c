/* SPDX-License-Identifier: MIT
 *
 * Sources by hand: polled on no task, around one that does what it is told by the test, also one that does not stop at once, and one that has an item all the
 * same when it is told to.
 */
#include "flow/source.h"

#include "counted.h"
#include "test.h"

#include <errno.h>

/* Answers what it is set to; PENDING until then. Told to stop it answers `stopped`, if that is set, else why. */
struct puppet {
    weft_source source;
    int answer; /* WAITS: PENDING */
    int item;
    int stopped;
    int polls;
    bool told;
};
#define WAITS 999

static weft_poll puppet_poll(weft_source *source, void *into, weft_cx *cx)
{
    struct puppet *p = weft__container_of(source, struct puppet, source);
    int answer = p->answer;

    p->polls++;
    if (weft_cx_cancelled(cx) && answer == WAITS) {
        p->told = true;
        answer = p->stopped ? p->stopped : weft_cx_cancelled(cx);
    }
    if (answer == WAITS) return WEFT_PENDING;
    source->ret = answer;
    if (answer > 0) *(int *)into = p->item;
    return WEFT_READY;
}

static struct puppet puppet_of(int answer, int item)
{
    return (struct puppet){
        .source = {.poll = puppet_poll, .item_bytes = sizeof(int)}, .answer = answer, .item = item};
}

static struct counted waker; /* nobody counts */

/* ---- merge ---- */

/* Two puppets, whose items are 1 and 2, and what merges them. */
struct merged {
    struct puppet a, b;
    weft_source *of[2];
    int late[2];
    struct weft_merge both;
    struct weft_cx cx;
    int got; /* the last item */
};

static void merged_init(struct merged *m, int a_answers, int b_answers)
{
    *m = (struct merged){.a = puppet_of(a_answers, 1), .b = puppet_of(b_answers, 2)};
    m->of[0] = &m->a.source;
    m->of[1] = &m->b.source;
    m->both = weft_merge(m->of, 2, m->late);
    m->cx = cx_of(&waker);
}

static weft_poll merged_poll(struct merged *m)
{
    return m->both.source.poll(&m->both.source, &m->got, &m->cx);
}

TEST(merge_settles_those_that_lost)
{
    struct merged m;
    merged_init(&m, WAITS, WAITS);
    ASSERT_EQ(merged_poll(&m), WEFT_PENDING);
    m.b.answer = 1;
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.got, 2);
    ASSERT(m.a.told); /* it was not left waiting */
    ASSERT_EQ(m.cx.why, 0);
}

TEST(merge_keeps_what_comes_from_one_that_lost)
{
    struct merged m;
    merged_init(&m, WAITS, WAITS);
    ASSERT_EQ(merged_poll(&m), WEFT_PENDING);
    m.b.answer = 1;
    m.a.stopped = 1; /* told to stop, it has an item all the same */
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.got, 2);
    m.b.answer = WAITS;
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.both.source.ret, 1);
    ASSERT_EQ(m.got, 1);
}

/* An error is an answer: one that comes from a loser, and is not what it was told to stop with, is that of the next pull, or of this one, if there is no winner. */
TEST(merge_keeps_an_error_of_one_that_lost)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        struct merged m;
        merged_init(&m, WAITS, WAITS);
        ASSERT_EQ(merged_poll(&m), WEFT_PENDING);
        m.a.stopped = -EIO;
        if (stopped) {
            m.cx.why = -ETIME;
        } else {
            m.b.answer = 1;
            ASSERT_EQ(merged_poll(&m), WEFT_READY);
            ASSERT_EQ(m.both.source.ret, 1);
            ASSERT_EQ(m.got, 2);
            m.b.answer = WAITS;
        }
        ASSERT_EQ(merged_poll(&m), WEFT_READY);
        ASSERT_EQ(m.both.source.ret, -EIO);
        m.cx.why = 0;
        m.a.answer = 1; /* and it goes on */
        ASSERT_EQ(merged_poll(&m), WEFT_READY);
        ASSERT_EQ(m.both.source.ret, 1);
        ASSERT_EQ(m.got, 1);
    }
}

TEST(merge_waits_for_one_that_does_not_stop_at_once)
{
    struct merged m;
    merged_init(&m, WAITS, WAITS);
    ASSERT_EQ(merged_poll(&m), WEFT_PENDING);
    m.cx.why = -ETIME;
    m.a.stopped = WAITS;
    ASSERT_EQ(merged_poll(&m), WEFT_PENDING);
    ASSERT(m.a.told && m.b.told);
    m.a.stopped = 0;
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.both.source.ret, -ETIME);
    m.cx.why = 0;
    m.a.answer = 0; /* both end */
    m.b.answer = 0;
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.both.source.ret, 0);
}

TEST(merge_passes_an_error_on_and_goes_on)
{
    struct merged m;
    merged_init(&m, -EIO, 0);
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.both.source.ret, -EIO);
    m.a.answer = 1;
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.got, 1);
    m.a.answer = 0;
    ASSERT_EQ(merged_poll(&m), WEFT_READY);
    ASSERT_EQ(m.both.source.ret, 0);
}

/* ---- chunks, within ---- */

TEST(chunks_keep_what_they_have_when_told_to_stop)
{
    struct puppet a = puppet_of(1, 7);
    struct weft_chunks some = weft_chunks(&a.source, 3, WEFT_FOREVER);
    struct weft_cx cx = cx_of(&waker);
    int batch[3];

    ASSERT_EQ(some.source.poll(&some.source, batch, &cx), WEFT_READY);
    ASSERT_EQ(some.source.ret, 3);
    a.answer = WAITS;
    ASSERT_EQ(some.source.poll(&some.source, batch, &cx), WEFT_PENDING);
    cx.why = -ECANCELED;
    ASSERT_EQ(some.source.poll(&some.source, batch, &cx), WEFT_READY);
    ASSERT_EQ(some.source.ret, -ECANCELED); /* it had none */
    cx.why = 0;
    ASSERT_EQ(some.source.poll(&some.source, batch, &cx), WEFT_PENDING);
    a.stopped = 1;
    cx.why = -ECANCELED; /* an item comes all the same, then no more */
    a.item = 8;
    ASSERT_EQ(a.told, true);
    a.answer = WAITS;
    struct weft_take one = weft_take(&a.source, 1);
    ASSERT_EQ(one.source.poll(&one.source, batch, &cx), WEFT_READY);
    ASSERT_EQ(one.source.ret, 1);
    ASSERT_EQ(one.source.poll(&one.source, batch, &cx), WEFT_READY);
    ASSERT_EQ(one.source.ret, 0);
}

static int passes(void *ctx, void *item)
{
    (void)ctx, (void)item;
    return 1;
}
static int copies(void *ctx, const void *in, void *into)
{
    (void)ctx;
    *(int *)into = *(const int *)in;
    return 1;
}

/* A chunk is several items: what has room for one, or looks at one, refuses them; what only passes them on does not. */
TEST(chunks_pass_only_where_there_is_room_for_them)
{
    struct puppet a = puppet_of(1, 7);
    struct weft_chunks some = weft_chunks(&a.source, 3, WEFT_FOREVER);
    struct weft_cx cx = cx_of(&waker);
    int in, late[1], batch[8] = {0};
    weft_source *of[1] = {&some.source};
    struct weft_filter filter = weft_filter(&some.source, passes, NULL);
    struct weft_map map = weft_map(&some.source, copies, NULL, &in, int);
    struct weft_merge merge = weft_merge(of, 1, late);
    struct weft_chunks twice = weft_chunks(&some.source, 2, WEFT_FOREVER);
    weft_source *refuse[] = {&filter.source, &map.source, &merge.source, &twice.source};

    for (size_t i = 0; i < sizeof(refuse) / sizeof(refuse[0]); i++) {
        ASSERT_EQ(refuse[i]->poll(refuse[i], batch, &cx), WEFT_READY);
        ASSERT_EQ(refuse[i]->ret, -EINVAL);
    }
    ASSERT_EQ(a.polls, 0);

    struct weft_take take = weft_take(&some.source, 1);
    struct weft_within within = weft_within(&take.source, WEFT_FOREVER);
    struct weft_throttle throttle = weft_throttle(&within.source, 0);
    ASSERT_EQ(throttle.source.poll(&throttle.source, batch, &cx), WEFT_READY);
    ASSERT_EQ(throttle.source.ret, 3);
    for (int i = 0; i < 8; i++)
        ASSERT_EQ(batch[i], i < 3 ? 7 : 0);
    twice = weft_chunks(&throttle.source, 2, WEFT_FOREVER); /* it is passed on that they are several */
    ASSERT_EQ(twice.source.poll(&twice.source, batch, &cx), WEFT_READY);
    ASSERT_EQ(twice.source.ret, -EINVAL);
}

static int drops(void *ctx, void *item)
{
    int *count = ctx;
    (void)item;
    (*count)++;
    return 0;
}

static int maps_to_nothing(void *ctx, const void *in, void *into)
{
    (void)in;
    return drops(ctx, into);
}

/* One that always has an item is asked as often as the budget allows; then others run, and it hears that it is to stop. */
TEST(source_that_always_has_an_item_lets_others_run)
{
    struct puppet a = puppet_of(1, 7);
    struct weft_cx cx = cx_of(&waker);
    int dropped = 0, got = 0, in = 0;
    struct weft_filter filter = weft_filter(&a.source, drops, &dropped);
    struct weft_map map = weft_map(&a.source, maps_to_nothing, &dropped, &in, int);
    struct weft_pull pull = {
        .from = &a.source, .into = &got, .bytes = sizeof(int), .kind = WEFT__PULL_SOURCE};
    weft_source *around[] = {&filter.source, &map.source};

    for (int i = 0; i < 2; i++) {
        for (int polls = 1; polls <= 3; polls++) {
            cx.budget = 10;
            cx.yielded = false;
            ASSERT_EQ(around[i]->poll(around[i], &got, &cx), WEFT_PENDING);
            ASSERT_EQ(dropped, 10 * polls);
            ASSERT(cx.yielded);
        }
        a.answer = WAITS; /* and would wait */
        cx.budget = 10;
        cx.why = -ECANCELED;
        ASSERT_EQ(around[i]->poll(around[i], &got, &cx), WEFT_READY);
        ASSERT_EQ(around[i]->ret, -ECANCELED);
        cx.why = 0;
        a.answer = 1;
        dropped = 0;
    }
    cx.budget = 2;
    cx.yielded = false;
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(weft_pull_poll(&pull, &cx), WEFT_READY);
        ASSERT_EQ(pull.ret, 1);
    }
    ASSERT_EQ(weft_pull_poll(&pull, &cx), WEFT_PENDING);
    ASSERT(cx.yielded);
}

TEST(sources_of_a_program_see_no_look)
{
    struct puppet a = puppet_of(1, 7);
    struct weft_filter none = weft_filter(&a.source, NULL, NULL);
    struct weft_within quick = weft_within(&a.source, 1);
    struct weft_cx cx = cx_of(&waker);
    struct weft_pull pull = {
        .from = &quick.source, .into = &(int){0}, .bytes = sizeof(int), .kind = WEFT__PULL_SOURCE};

    cx.probe = true;
    ASSERT_EQ(weft_pull_poll(&pull, &cx), WEFT_PENDING);
    ASSERT_EQ(a.polls, 0);
    ASSERT_EQ(pull.weft__at, 0);
    cx.probe = false;
    ASSERT_EQ(weft_pull_poll(&pull, &cx), WEFT_READY);
    ASSERT_EQ(pull.ret, 1);
    pull.bytes = 2;
    ASSERT_EQ(weft_pull_poll(&pull, &cx), WEFT_READY);
    ASSERT_EQ(pull.ret, -EINVAL);
    int got;
    ASSERT_EQ(none.source.poll(&none.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(none.source.ret, -EINVAL);
}
