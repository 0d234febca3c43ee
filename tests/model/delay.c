/* SPDX-License-Identifier: MIT
 *
 * Delay queues, proven: an item that is due reaches one who waits, whoever comes, leads, gives up or is told of another deadline at that moment; who has taken
 * the last item, or heard of the end, may free the queue.
 *
 * The clock is a number that one thread moves. A timer stands for itself: it lies with its frame, and fires when the clock has come to it, which whoever moves the
 * clock sees to, by a wake. The wheel's own races are proven by model_wheel: here a timer is armed and taken out under a lock of the test's.
 */
#include "leaf.h"
#include "memory.h"

#define WEFT_TIME_KEEPER_H /* no wheel, no worker */
struct weft__keeper;
struct weft__keeper *weft__keeper_here(void);

#include "flow/delay.c"
#include "flow/delays.c"

#include <string.h>

#define TIMERS 3

static struct delay *queue;
static struct weft__lock clock_lock;
static int64_t now;
static struct {
    struct weft_sleep_until *sleep; /* NULL: none */
    struct weft_waker waker;
} timers[TIMERS];
static bool frees;

enum { HONEST, LEADER_LEAVES_NOBODY, INSERT_TELLS_NOBODY, TURN_IS_KEPT };

/* ---- the clock, and timers ---- */

struct weft__keeper *weft__keeper_here(void)
{
    return (struct weft__keeper *)(void *)&now;
}

weft_time weft_now(void)
{
    model_lock(&clock_lock.word);
    int64_t time = now;
    model_unlock(&clock_lock.word);
    return time;
}

/* Holds: the clock's lock. */
static int timer_of(const struct weft_sleep_until *sleep)
{
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].sleep == sleep) return i;
    return -1;
}

void weft_sleep_until_reset(struct weft_sleep_until *sleep, weft_time at)
{
    model_lock(&clock_lock.word);
    sleep->at = at;
    model_unlock(&clock_lock.word);
}

weft_poll weft_sleep_until_poll(void *frame, weft_cx *cx)
{
    struct weft_sleep_until *sleep = frame;
    model_lock(&clock_lock.word);
    int i = timer_of(sleep);
    bool over = now >= sleep->at;
    if (i < 0 && !over && !cx->why) {
        i = timer_of(NULL);
        model_assert(i >= 0);
        timers[i].sleep = sleep;
        timers[i].waker = cx->waker;
        sleep->weft__at = 1;
    } else if (i >= 0 && (over || cx->why)) {
        timers[i].sleep = NULL;
        sleep->weft__at = 0;
    }
    model_unlock(&clock_lock.word);
    sleep->ret = cx->why;
    return over || cx->why ? WEFT_READY : WEFT_PENDING;
}

weft_poll weft__poll_stop(weft_pollfn *poll, void *frame, weft_cx *cx)
{
    int outer = cx->why;
    if (!outer) cx->why = -ECANCELED;
    weft_poll answer = poll(frame, cx);
    cx->why = outer;
    return answer;
}

/* The clock goes to `to`: claimed under the lock, pushed behind it, as the wheel does. */
static void clock_moves(int64_t to)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    model_lock(&clock_lock.word);
    now = to;
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].sleep && timers[i].sleep->at <= to)
            weft__wake_chain_claim(&chain, timers[i].waker);
    model_unlock(&clock_lock.word);
    weft__wake_chain_push(&chain, &weft__sched);
}

/* ---- who does what ---- */

static weft_delay *face(void)
{
    return (weft_delay *)(void *)queue;
}

static weft_poll takes(struct actor *actor, weft_cx *cx)
{
    struct weft_delay_next *f = (void *)actor->frame;
    static int item[MODEL_THREADS_MAX];
    f->queue = queue;
    f->into = &item[model_self()];
    if (cx->why && f->weft__at && model_mutant == TURN_IS_KEPT) {
        weft__waitlist_lock(&queue->list);
        (void)stop_waiting(f, queue);
        weft__waitlist_unlock(&queue->list);
        timer_off(f, cx);
        given_up++;
        return WEFT_READY;
    }
    if (f->weft__at && queue->leader == f && model_mutant == LEADER_LEAVES_NOBODY) {
        weft__waitlist_lock(&queue->list);
        (void)stop_waiting(f, queue);
        int r = take(queue, now, f->into);
        weft__waitlist_unlock(&queue->list);
        timer_off(f, cx);
        got += r > 0;
        return WEFT_READY;
    }
    if (weft_delay_next_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
    } else {
        got += (unsigned)f->ret;
        if (frees) weft__delay_free(face());
    }
    return WEFT_READY;
}

static void inserts_at(int64_t when)
{
    int item = 1;
    if (model_mutant == INSERT_TELLS_NOBODY) {
        weft__waitlist_lock(&queue->list);
        (void)make_room(queue);
        (void)weft__delays_insert(&queue->items, &item, when);
        weft__waitlist_unlock(&queue->list);
        return;
    }
    (void)weft__delay_insert_at(face(), &item, when, NULL);
}

static void inserts_early(void *arg)
{
    (void)arg;
    inserts_at(1);
}

static void moves_to_two(void *arg)
{
    (void)arg;
    clock_moves(2);
}

static void closes(void *arg)
{
    (void)arg;
    (void)weft__delay_close(face());
}

/* ---- the cases ---- */

static void begin(void)
{
    actors_begin();
    weft__lock_init(&clock_lock, WEFT__RANK_NONE);
    now = 0;
    frees = false;
    memset(timers, 0, sizeof(timers));
    weft_delay *made = NULL;
    (void)weft_delay_new_sized(sizeof(int), &made);
    queue = delay_of(made);
}

static struct actor *taker(uint32_t references)
{
    struct actor *actor = actor_new(takes, references);
    memset(actor->frame, 0, sizeof(actor->frame));
    return actor;
}

static void end(void)
{
    for (int i = 0; i < TIMERS; i++)
        model_assert(!timers[i].sleep);
    weft__delay_free(face());
}

/* One waits for a later item; an earlier one comes while the clock moves. */
static void earlier_one_comes(void)
{
    begin();
    inserts_at(9);
    actors[0] = taker(0);
    actor_run(actors[0]);
    model_thread(inserts_early, NULL);
    model_thread(moves_to_two, NULL);
    model_join();
    model_assert(got == 1);
    end();
}

/* Two wait; the leader is cancelled while its time comes: the other takes the item. */
static void leader_is_cancelled(void)
{
    begin();
    inserts_at(1);
    actors[0] = taker(1);
    actors[1] = taker(0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(moves_to_two, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got == 1);
    closes(NULL); /* who waits on hears of the end */
    end();
}

/* Two items, two who wait, and the time of both comes: nobody waits on. */
static void two_are_due(void)
{
    begin();
    inserts_at(1);
    inserts_at(2);
    actors[0] = taker(0);
    actors[1] = taker(0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    model_thread(moves_to_two, NULL);
    model_join();
    model_assert(got == 2);
    end();
}

/* Who takes the only item frees the queue, whoever put it in. */
static void taken_and_freed(void)
{
    begin();
    frees = true;
    clock_moves(2);
    actors[0] = taker(0);
    model_thread(actor_begin, actors[0]);
    model_thread(inserts_early, NULL);
    model_join();
    model_assert(got == 1);
}

static void closed_and_freed(void)
{
    begin();
    frees = true;
    actors[0] = taker(0);
    model_thread(actor_begin, actors[0]);
    model_thread(closes, NULL);
    model_join();
    model_assert(got == 0 && given_up == 0);
}

static const struct model_case cases[] = {
    {.name = "delay: an earlier item comes",
     .run = earlier_one_comes,
     .preemptions = 3,
     .weaken = true},
    {.name = "delay: the leader is cancelled", .run = leader_is_cancelled, .preemptions = 3},
    {.name = "delay: two are due", .run = two_are_due, .preemptions = 2},
    {.name = "delay: taken, and the queue freed", .run = taken_and_freed, .preemptions = 3},
    {.name = "delay: closed, and the queue freed", .run = closed_and_freed, .preemptions = 3},
    {.name = "mutant: the leader leaves nobody behind",
     .run = two_are_due,
     .mutant = LEADER_LEAVES_NOBODY,
     .must_fail = true},
    {.name = "mutant: an insert tells nobody",
     .run = earlier_one_comes,
     .mutant = INSERT_TELLS_NOBODY,
     .must_fail = true},
    {.name = "mutant: a cancelled leader keeps its turn",
     .run = leader_is_cancelled,
     .mutant = TURN_IS_KEPT,
     .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
