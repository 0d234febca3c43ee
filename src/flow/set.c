/* SPDX-License-Identifier: MIT
 *
 * set - members in, members out; the idea is in flow/set.h.
 */
#include "flow/set.h"

#include "task/call.h"
#include "task/refused.h"

#include <errno.h>

_Static_assert(sizeof(((struct weft_set_reserve *)0)->weft__waiter) == sizeof(struct weft__waiter),
               "a waiter fits its place");

void weft__set_lock(struct weft__set *s)
{
    weft__leaf_lock(&s->list);
    if (__builtin_expect(s->live.next != NULL, 1)) return;
    weft__link_init(&s->live);
    weft__link_init(&s->ended);
    weft__link_init(&s->takers);
    weft__link_init(&s->spawners);
}

/* ---- holds: the lock -------------------------------------------------------------------------- */

/* One that is promised to nobody. */
static bool has_place(const struct weft__set *s)
{
    return s->limit == 0 || s->running + s->promised < s->limit;
}

static size_t length(const struct weft__set *s)
{
    return s->running + s->ended_count;
}

static void give_turn(struct weft__set *s, struct weft__link *queue, struct weft__wake_chain *chain)
{
    struct weft__link *first = weft__list_pop_front(queue);
    if (!first) return;
    weft__list_push_back(&s->list.head, first);
    (void)weft__waitlist_give_turn(&s->list, chain);
}

void weft__set_hand_on(struct weft__set *s, struct weft__wake_chain *chain)
{
    if (s->ended_count > 0) give_turn(s, &s->takers, chain);
    while (length(s) == 0 && !weft__list_empty(&s->takers))
        give_turn(s, &s->takers, chain);
    for (; has_place(s) && !weft__list_empty(&s->spawners); s->promised++)
        give_turn(s, &s->spawners, chain);
}

void weft__set_enlist(struct weft__set *s, struct weft__member *member,
                      struct weft__wake_chain *chain)
{
    member->swept = s->sweep;
    weft__list_push_back(&s->live, &member->link);
    if (s->stopping > 0) weft__member_cancel(member, s->why, chain);
}

struct weft__member *weft__set_take(struct weft__set *s)
{
    struct weft__link *first = weft__list_pop_front(&s->ended);
    if (!first) return NULL;
    s->ended_count--;
    struct weft__member *member = weft__container_of(first, struct weft__member, link);
    weft__set_tell_leaves(s, member);
    return member;
}

bool weft__set_drop(struct weft__set *s, struct weft__member *member)
{
    weft__set_tell_leaves(s, member);
    member->unwanted = true;
    if (!member->ended) return false;
    weft__list_remove(&member->link);
    s->ended_count--;
    return true;
}

/* ---- the end of a member ---------------------------------------------------------------------- */

/* By its worker, or by who spawned it, if it was faster. The set may be gone when the lock is dropped. */
static void member_ended(struct weft__foreign *foreign)
{
    struct weft__member *member = weft__member_of(foreign);
    struct weft__set *s = member->owner;
    struct weft_task *task = member->task;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__set_lock(s);
    bool unwanted = member->unwanted;
    member->ended = true;
    weft__list_remove(&member->link);
    s->running--;
    if (!unwanted) {
        weft__list_push_back(&s->ended, &member->link);
        s->ended_count++;
    }
    weft__set_unlock(s, &chain);
    if (unwanted) (void)weft_detach(task);
}

const struct weft__foreign_ops weft__set_member_ops = WEFT__MEMBER_OPS(member_ended);

/* It is complete: the join does not wait, whoever polls it. */
int weft__member_join(struct weft__member *member, void *into)
{
    struct weft_cx cx = {.budget = WEFT__UNBUDGETED, .among = true};
    struct weft_join join = {
        .task = member->task, .into = into, .bytes = member->task->site->ret_bytes};
    weft_poll answer = weft_join_poll(&join, &cx);

    weft_assert(answer == WEFT_READY);
    return join.ret < 0 ? join.ret : 1;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* Holds: the lock. It waited: it is out of the queue now. False: it still waits. */
static bool stop_waiting(struct weft__set_wait *w, int why, bool *had_turn)
{
    struct weft__set *s = w->set;

    if (!why && weft__waiter_queued(&s->list, w->waiter)) return false;
    *had_turn = weft__waitlist_settle(&s->list, w->waiter);
    if (*had_turn && w->queue == &s->spawners) s->promised--; /* it takes the place, or gives it up */
    *w->at = 0;
    return true;
}

/* Holds: the lock. One that had its turn goes to the front. */
static void queue_up(struct weft__set_wait *w, struct weft_waker waker, bool had_turn)
{
    struct weft__link *before = had_turn ? w->queue->next : w->queue;

    weft__waiter_init(w->waiter);
    weft__waitlist_add_before(&w->set->list, before, w->waiter, waker);
    *w->at = WEFT__LEAF_WAITS;
}

int weft__set_wait_poll(struct weft__set_wait *w, weft_cx *cx)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    bool waited = *w->at != 0;
    bool had_turn = false;

    if (!waited && cx->why) return weft__told_yields(cx) ? -EAGAIN : weft_cx_cancelled(cx);
    if (!waited && !weft__leaf_may(cx)) return -EAGAIN;
    int why = weft_cx_cancelled(cx);
    weft__set_lock(w->set);
    if (waited && !stop_waiting(w, why, &had_turn)) {
        weft__waitlist_unlock(&w->set->list);
        return -EAGAIN;
    }
    int r = why ? why : w->look(w, had_turn);
    if (r == -EAGAIN && !cx->probe) queue_up(w, cx->waker, had_turn);
    if (r == -EAGAIN) {
        weft__waitlist_unlock(&w->set->list);
    } else {
        weft__set_unlock(w->set, &chain);
    }
    return r;
}

int weft__set_wait_try(struct weft__set_wait *w)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__set_lock(w->set);
    int r = w->look(w, false);
    if (r == -EAGAIN) {
        weft__waitlist_unlock(&w->set->list); /* nothing has changed */
    } else {
        weft__set_unlock(w->set, &chain);
    }
    return r;
}

#define WAIT_OF(f, s, q, its_look)                                                                 \
    {.set = (s),                                                                                   \
     .queue = &(s)->q,                                                                             \
     .at = &(f)->weft__at,                                                                         \
     .waiter = WEFT__LEAF_WAITER(f),                                                               \
     .look = (its_look)}

/* ---- places ----------------------------------------------------------------------------------- */

/* First come, first served: nobody passes while one waits. */
static int look_place(struct weft__set_wait *w, bool has_turn)
{
    struct weft__set *s = w->set;
    if (!has_place(s)) return -EAGAIN;
    if (!has_turn && !weft__list_empty(&s->spawners)) return -EAGAIN;
    s->running++;
    return 0;
}

weft_poll weft_set_reserve_poll(void *frame, weft_cx *cx)
{
    struct weft_set_reserve *f = frame;
    struct weft__set *s = f->set;
    int r = -EINVAL;

    if (s) {
        struct weft__set_wait wait = WAIT_OF(f, s, spawners, look_place);
        r = weft__set_wait_poll(&wait, cx);
        if (r == -EAGAIN) return WEFT_PENDING;
    }
    f->ret = r;
    return WEFT_READY;
}

int weft__set_reserve(weft_set *set)
{
    struct weft_set_reserve f = {.set = set};
    int r = weft__run_from(weft_set_reserve_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__set_try_reserve(weft_set *set)
{
    if (!set) return -EINVAL;
    struct weft__set_wait wait = {.set = weft__set_of(set), .look = look_place};
    return weft__set_wait_try(&wait);
}

void weft__set_permit_drop(weft_set *set)
{
    struct weft__set *s = weft__set_of(set);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__set_lock(s);
    weft_assert(s->running > 0); /* a place was reserved */
    s->running--;
    weft__set_unlock(s, &chain);
}

int weft__set_add(weft_set *set, weft_task *task, const weft_spawn_opts *opts, weft_task **ref)
{
    struct weft__set *s = weft__set_of(set);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    if (!task) {
        int why = weft__spawn_refused(opts);
        weft__set_permit_drop(set);
        return why;
    }
    struct weft__member *member = weft__behind_frame(task, sizeof(*member));
    weft__member_init(member, task, s, &weft__set_member_ops);
    if (ref) *ref = weft_ref(task); /* before it can be taken out */
    weft__set_lock(s);
    weft_assert(s->running > 0); /* a place was reserved */
    weft__set_enlist(s, member, &chain);
    weft__waitlist_unlock_push(&s->list, &chain, &weft__sched);
    weft__member_watch(member);
    return 0;
}

/* ---- the next --------------------------------------------------------------------------------- */

int weft__set_look_next(struct weft__set_wait *w, bool has_turn)
{
    struct weft__set *s = w->set;
    struct weft__link *first = weft__list_first(&s->ended);

    (void)
        has_turn; /* who comes while one lies there may be faster than the one that was woken for it */
    if (!first) return length(s) > 0 ? -EAGAIN : 0;
    struct weft__member *member = weft__container_of(first, struct weft__member, link);
    if (w->sized && member->task->site->ret_bytes != w->bytes) return -EINVAL;
    w->member = weft__set_take(s);
    return 1;
}

weft_poll weft_set_join_next_poll(void *frame, weft_cx *cx)
{
    struct weft_set_join_next *f = frame;
    struct weft__set *s = f->set;
    int r = -EINVAL;

    if (s) {
        struct weft__set_wait wait = WAIT_OF(f, s, takers, weft__set_look_next);
        wait.sized = f->into != NULL;
        wait.bytes = f->bytes;
        r = weft__set_wait_poll(&wait, cx);
        if (r == -EAGAIN) return WEFT_PENDING;
        if (r > 0) r = weft__member_join(wait.member, f->into);
    }
    f->ret = r;
    return WEFT_READY;
}

int weft__set_join_next(weft_set *set, void *into, size_t bytes)
{
    struct weft_set_join_next f = {.set = set, .into = into, .bytes = bytes};
    int r = weft__run_from(weft_set_join_next_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__set_try_join_next(weft_set *set, void *into, size_t bytes)
{
    if (!set) return -EINVAL;
    struct weft__set_wait wait = {.set = weft__set_of(set),
                                  .look = weft__set_look_next,
                                  .sized = into != NULL,
                                  .bytes = bytes};
    int r = weft__set_wait_try(&wait);
    return r > 0 ? weft__member_join(wait.member, into) : r;
}

weft_poll weft_set_next_poll(void *frame, weft_cx *cx)
{
    struct weft_set_next *f = frame;
    struct weft__set *s = f->set;
    int r = -EINVAL;

    if (s && f->into) {
        struct weft__set_wait wait = WAIT_OF(f, s, takers, weft__set_look_next);
        r = weft__set_wait_poll(&wait, cx);
        if (r == -EAGAIN) return WEFT_PENDING;
        if (r > 0) *f->into = wait.member->task;
    }
    f->ret = r;
    return WEFT_READY;
}

int weft__set_next(weft_set *set, weft_task **into)
{
    struct weft_set_next f = {.set = set, .into = into};
    int r = weft__run_from(weft_set_next_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- looking, ending -------------------------------------------------------------------------- */

size_t weft__set_len(weft_set *set)
{
    struct weft__set *s = weft__set_of(set);
    weft__set_lock(s);
    size_t count = length(s);
    weft__waitlist_unlock(&s->list);
    return count;
}

size_t weft__set_running(weft_set *set)
{
    struct weft__set *s = weft__set_of(set);
    weft__set_lock(s);
    size_t count = s->running;
    weft__waitlist_unlock(&s->list);
    return count;
}

void weft__set_done(weft_set *set)
{
    if (!set) return;
    struct weft__set *s = weft__set_of(set);
    weft__set_lock(s);
    size_t members_left_in_the_set = length(s);
    bool somebody_waits_for_a_member = !weft__list_empty(&s->takers);
    bool somebody_waits_for_a_place = !weft__list_empty(&s->spawners);
    weft__waitlist_unlock(&s->list);
    weft_assert(members_left_in_the_set == 0);
    weft_assert(!somebody_waits_for_a_member);
    weft_assert(!somebody_waits_for_a_place);
    weft__waitlist_done(&s->list);
}
