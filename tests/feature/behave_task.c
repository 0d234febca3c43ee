/* SPDX-License-Identifier: MIT
 *
 * Tasks and their handles in every order of events: when it is cancelled, how its handle is spent,
 * when references go; cancels that meet a poll; names; who is polled, and how often.
 */
#include "bell.h"
#include "crew.h"
#include "test.h"

#include <errno.h>

/* relaxed everywhere: counts and flags that are looked at again, or behind a join. */
static _Atomic uint32_t begun;
static _Atomic bool cancelled;

static void clear(void)
{
    store_relaxed(&begun, 0);
    store_relaxed(&cancelled, false);
}

/* ---- every order of events ----------------------------------------------------------------------------- */

enum cancel_when { NEVER, AT_ONCE, ONCE_IT_WAITS, ONCE_ENDED, ONCE_JOINED, CANCEL_WHENS };
enum spend { DETACH_AT_ONCE, DETACH_ONCE_IT_WAITS, DETACH_ONCE_ENDED, JOIN, SPENDS };
enum reference { NONE, DROP_AT_ONCE, DROP_ONCE_ENDED, DROP_LAST, REFERENCES };

struct order {
    enum cancel_when cancel;
    enum spend spend;
    enum reference reference;
    bool fiber;
    /* -- as it goes -- */
    struct bell bell;
    weft_task *task;
    bool told;    /* cancelled before it could end by itself */
    bool spent;   /* the handle */
    bool dropped; /* the reference, or there was none */
    _Atomic uint32_t begun;
    _Atomic uint32_t ended;
};

static int waits_once(struct order *o)
{
    fetch_add_relaxed(&o->begun, 1);
    int r = weft_run(hear, .bell = &o->bell);
    fetch_add_release(&o->ended, 1);
    return r < 0 ? r : 7;
}

struct waits_once_too {
    WEFT_FRAME(int);
    struct order *order;
    struct hear hear;
};
static weft_async(waits_once_too)
{
    weft_begin;
    fetch_add_relaxed(&f->order->begun, 1);
    weft_await(f->hear, hear, .bell = &f->order->bell);
    fetch_add_release(&f->order->ended, 1);
    weft_return(f->hear.ret < 0 ? f->hear.ret : 7);
    weft_end;
}

/* A spent handle is no longer used, unless a reference keeps the task. */
static bool may_use(const struct order *o)
{
    return !o->spent || !o->dropped;
}

static void drop_reference(struct order *o)
{
    if (!o->dropped) weft_unref(o->task);
    o->dropped = true;
}

static void detach(struct order *o)
{
    ASSERT_OK(weft_detach(o->task));
    o->spent = true;
}

static void begins(struct order *o)
{
    bell_init(&o->bell);
    o->task = o->fiber ? weft_go(waits_once, o) : weft_spawn(waits_once_too, .order = o);
    o->dropped = o->reference == NONE;
    if (o->reference != NONE) ASSERT_PTR(weft_ref(o->task), o->task);
    if (o->reference == DROP_AT_ONCE) drop_reference(o);
    if (o->cancel == AT_ONCE) weft_cancel(o->task);
    o->told = o->cancel == AT_ONCE;
    if (o->spend == DETACH_AT_ONCE) detach(o);
}

static void waits(struct order *o)
{
    if (!o->told) CREW_UNTIL(bell_awaited(&o->bell));
    if (o->cancel == ONCE_IT_WAITS && may_use(o)) {
        weft_cancel(o->task);
        o->told = true;
    }
    if (o->spend == DETACH_ONCE_IT_WAITS) detach(o);
    if (!o->told) bell_ring(&o->bell);
}

static void has_ended(struct order *o)
{
    int got = 0;
    CREW_UNTIL(load_acquire(&o->ended) == 1);
    if (o->cancel == ONCE_ENDED && may_use(o)) weft_cancel(o->task);
    if (o->reference == DROP_ONCE_ENDED) drop_reference(o);
    if (o->spend == DETACH_ONCE_ENDED) detach(o);
    if (o->spend == JOIN) {
        ASSERT_OK(weft_join(o->task, &got));
        ASSERT_EQ(got, o->told ? -ECANCELED : 7);
        o->spent = true;
    }
}

static void is_over(struct order *o)
{
    if (o->cancel == ONCE_JOINED && may_use(o)) weft_cancel(o->task);
    if (!o->dropped) CREW_UNTIL(weft_done(o->task));
    drop_reference(o);
    ASSERT_EQ(load_relaxed(&o->begun), 1);
    bell_done(&o->bell);
}

static uint32_t make_orders(struct order *into)
{
    uint32_t count = 0;
    for (int cancel = 0; cancel < CANCEL_WHENS; cancel++)
        for (int spend = 0; spend < SPENDS; spend++)
            for (int reference = 0; reference < REFERENCES; reference++)
                for (int fiber = 0; fiber < 2; fiber++)
                    into[count++] = (struct order){.cancel = (enum cancel_when)cancel,
                                                   .spend = (enum spend)spend,
                                                   .reference = (enum reference)reference,
                                                   .fiber = fiber};
    return count;
}

/* All of them side by side, step by step: a thread that waits for each step of each task in turn
 * spends its time waiting for the processor. */
static void all_orders(struct crew *crew)
{
    static struct order order[CANCEL_WHENS * (int)SPENDS * (int)REFERENCES * 2];
    static void (*const steps[])(struct order *) = {begins, waits, has_ended, is_over};
    uint32_t count = make_orders(order);
    (void)crew;
    for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++)
        for (uint32_t i = 0; i < count; i++)
            steps[step](&order[i]);
}

TEST(task_events_in_every_order)
{
    crew_each(all_orders);
}

/* ---- a cancel that meets a poll --------------------------------------------------------------------------- */

/* In its poll until it has been cancelled; then ends, or waits for another poll. */
struct busy {
    WEFT_FRAME(int);
    bool ends;
    int polls;
};
static weft_poll busy_poll(void *frame, weft_cx *cx)
{
    struct busy *f = frame;
    f->polls++;
    if (f->polls > 1) {
        f->ret = weft_cx_cancelled(cx);
        return WEFT_READY;
    }
    store_relaxed(&begun, 1);
    while (!load_relaxed(&cancelled))
        sched_yield();
    f->ret = 7;
    return f->ends ? WEFT_READY : WEFT_PENDING;
}

/* What it has to say in that very poll counts; else it is polled once more, and told. */
static void in_the_middle(struct crew *crew)
{
    (void)crew;
    for (int ends = 0; ends < 2; ends++) {
        int got = 0;
        clear();
        weft_task *task = weft_spawn(busy, .ends = ends);
        CREW_UNTIL(load_relaxed(&begun));
        weft_cancel(task);
        weft_cancel(task);
        store_relaxed(&cancelled, true);
        ASSERT_OK(weft_join(task, &got));
        ASSERT_EQ(got, ends ? 7 : -ECANCELED);
    }
}

TEST(task_cancelled_in_the_middle_of_a_poll)
{
    crew_each(in_the_middle);
}

/* A wake that comes in the middle of a poll brings one more, and several bring the same one. */
static void woken_in_the_middle(struct crew *crew)
{
    int got = 1;
    (void)crew;
    clear();
    weft_task *task = weft_spawn(busy, .ends = false);
    weft_task *ref = weft_ref(task);
    CREW_UNTIL(load_relaxed(&begun));
    weft_cancel(ref);
    for (int i = 0; i < 100; i++)
        weft_cancel(ref);
    store_relaxed(&cancelled, true);
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, -ECANCELED);
    weft_unref(ref);
}

TEST(task_cancelled_a_hundred_times_is_polled_once_for_it)
{
    crew_each(woken_in_the_middle);
}

/* Nobody holds it any more when the cancel is to be heard. Two of three wait by then. */
static void then_let_go(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(500);
    struct order *order = calloc(count, sizeof(*order));
    (void)crew;
    for (uint32_t i = 0; i < count; i++) {
        order[i] = (struct order){.cancel = i % 3 ? ONCE_IT_WAITS : AT_ONCE,
                                  .spend = i % 3 ? DETACH_ONCE_IT_WAITS : DETACH_AT_ONCE,
                                  .fiber = i % 2};
        begins(&order[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        waits(&order[i]);
    for (uint32_t i = 0; i < count; i++) {
        has_ended(&order[i]);
        is_over(&order[i]);
    }
    free(order);
}

TEST(task_cancelled_and_let_go_still_unwinds)
{
    crew_each(then_let_go);
}

/* ---- how often it is polled ---------------------------------------------------------------------------------- */

/* Once at first, and once for each reason: on a runtime that the test turns, no poll is unseen. */
TEST(task_is_not_polled_without_a_reason)
{
    struct bell bell;
    weft_rt *rt;
    int got;
    bell_init(&bell);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    weft_task *task = weft_spawn_as((.rt = rt), hear, .bell = &bell);
    ASSERT_EQ(load_relaxed(&bell.polls), 0); /* not before somebody turns */
    ASSERT_EQ(weft_rt_turn(rt, 0), 1);
    ASSERT_EQ(load_relaxed(&bell.polls), 1);
    for (int i = 0; i < 10; i++)
        ASSERT_EQ(weft_rt_turn(rt, 0), 0);
    for (int i = 0; i < 5; i++)
        bell_nudge(&bell); /* five wakes before it runs are one */
    ASSERT_EQ(weft_rt_turn(rt, 0), 1);
    ASSERT_EQ(load_relaxed(&bell.polls), 2);
    bell_ring(&bell);
    ASSERT_EQ(weft_rt_turn(rt, 0), 1);
    ASSERT_EQ(load_relaxed(&bell.polls), 3);
    ASSERT(weft_done(task));
    ASSERT_OK(weft_join(task, &got));
    ASSERT_OK(got);
    ASSERT_OK(weft_rt_stop(rt, -1));
    bell_done(&bell);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int answers(int value)
{
    return value;
}

static void named(struct crew *crew)
{
    (void)crew;
    weft_task *plain = weft_go(answers, 1);
    weft_task *own = weft_go_as((.name = "db"), answers, 2);
    ASSERT_STR(weft_task_name(plain), "answers");
    ASSERT_STR(weft_task_name(own), "db");
    CREW_UNTIL(weft_done(own));
    ASSERT_STR(weft_task_name(own), "db"); /* as long as there is a handle */
    ASSERT_OK(weft_join(plain, (int *)NULL));
    ASSERT_OK(weft_join(own, (int *)NULL));
    ASSERT_STR(weft_task_name(NULL), "none");
    ASSERT_EQ(weft_task_id(NULL), 0);
}

TEST(task_names_are_the_functions_or_their_own)
{
    crew_each(named);
}
