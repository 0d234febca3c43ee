/* SPDX-License-Identifier: MIT
 *
 * Sources by hand: polled on no task, around one that does what it is told by the test, also one that does not stop at once, and one that has an item all the
 * same when it is told to.
 */
#include "flow/source.h"

#include "task/waker.h"
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

static void no_wake(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops waker_ops = {.wake = no_wake, .free = no_wake};
static struct weft__foreign waker;

static struct weft_cx a_cx(void)
{
    weft__foreign_init(&waker, &waker_ops);
    return (struct weft_cx){.waker = weft__waker_of_foreign(&waker), .budget = 128};
}

/* ---- merge ---- */

TEST(merge_settles_those_that_lost)
{
    struct puppet a = puppet_of(WAITS, 1);
    struct puppet b = puppet_of(WAITS, 2);
    weft_source *of[] = {&a.source, &b.source};
    int late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    struct weft_cx cx = a_cx();
    int got = 0;

    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_PENDING);
    b.answer = 1;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(got, 2);
    ASSERT(a.told); /* it was not left waiting */
    ASSERT_EQ(cx.why, 0);
}

TEST(merge_keeps_what_comes_from_one_that_lost)
{
    struct puppet a = puppet_of(WAITS, 1);
    struct puppet b = puppet_of(WAITS, 2);
    weft_source *of[] = {&a.source, &b.source};
    int late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    struct weft_cx cx = a_cx();
    int got = 0;

    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_PENDING);
    b.answer = 1;
    a.stopped = 1; /* told to stop, it has an item all the same */
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(got, 2);
    b.answer = WAITS;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(both.source.ret, 1);
    ASSERT_EQ(got, 1);
}

TEST(merge_waits_for_one_that_does_not_stop_at_once)
{
    struct puppet a = puppet_of(WAITS, 1);
    struct puppet b = puppet_of(WAITS, 2);
    weft_source *of[] = {&a.source, &b.source};
    int late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    struct weft_cx cx = a_cx();
    int got = 0;

    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_PENDING);
    cx.why = -ETIME;
    a.stopped = WAITS;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_PENDING);
    ASSERT(a.told && b.told);
    a.stopped = 0;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(both.source.ret, -ETIME);
    cx.why = 0;
    a.answer = 0; /* both end */
    b.answer = 0;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(both.source.ret, 0);
}

TEST(merge_passes_an_error_on_and_goes_on)
{
    struct puppet a = puppet_of(-EIO, 1);
    struct puppet b = puppet_of(0, 2);
    weft_source *of[] = {&a.source, &b.source};
    int late[2];
    struct weft_merge both = weft_merge(of, 2, late);
    struct weft_cx cx = a_cx();
    int got = 0;

    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(both.source.ret, -EIO);
    a.answer = 1;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(got, 1);
    a.answer = 0;
    ASSERT_EQ(both.source.poll(&both.source, &got, &cx), WEFT_READY);
    ASSERT_EQ(both.source.ret, 0);
}

/* ---- chunks, within ---- */

TEST(chunks_keep_what_they_have_when_told_to_stop)
{
    struct puppet a = puppet_of(1, 7);
    struct weft_chunks some = weft_chunks(&a.source, 3, WEFT_FOREVER);
    struct weft_cx cx = a_cx();
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

TEST(sources_of_a_program_see_no_look)
{
    struct puppet a = puppet_of(1, 7);
    struct weft_filter none = weft_filter(&a.source, NULL, NULL);
    struct weft_within quick = weft_within(&a.source, 1);
    struct weft_cx cx = a_cx();
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
