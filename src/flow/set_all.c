/* SPDX-License-Identifier: MIT
 *
 * set_all - what is done to all members of a set at once: cancelled, waited for, let go. The idea is in flow/set.h.
 *
 *     BEGUN      the members were cancelled (stop), or let go (detach), if that is what it does
 *     STOPS      it counts in `stopping`
 * A join takes out whoever has ended, at most DROPS_MAX a poll, and waits among the takers for more; it is over when the set is empty.
 */
#include "flow/set.h"

#include "task/call.h"

#include <errno.h>

/* Members that a join takes out in one poll. Doubled: a poll may last twice as long, some 20 us. */
#define DROPS_MAX 256

enum { BEGUN = 1, STOPS = 2 };

/* What the three frames are. */
struct all {
    int32_t at;
    int ret;
    void *set;
    void *weft__waiter[3];
    int32_t flags;
    int32_t why;     /* it was told to stop */
    int32_t failure; /* the first of a member */
    int32_t spare;
};
_Static_assert(sizeof(struct all) == sizeof(struct weft_set_join), "as said");
_Static_assert(sizeof(struct all) == sizeof(struct weft_set_stop), "as said");
_Static_assert(sizeof(struct all) == sizeof(struct weft_set_detach), "as said");

/* ---- sweeps ----------------------------------------------------------------------------------- */

/* Holds: the lock. The next that this sweep has not seen, out of the list; NULL: it has seen all. */
static struct weft__member *next_unseen(struct weft__set *s, uint64_t sweep)
{
    struct weft__link *first = weft__list_first(&s->live);
    if (!first) return NULL;
    struct weft__member *member = weft__container_of(first, struct weft__member, link);
    if (member->swept >= sweep) return NULL;
    weft__list_remove(first);
    member->swept = sweep;
    return member;
}

/* Holds: the lock. One batch. False: that was the last. */
static bool cancel_some(struct weft__set *s, uint64_t sweep, int why,
                        struct weft__wake_chain *chain)
{
    for (uint32_t n = 0; n < WEFT__WAKE_BATCH; n++) {
        struct weft__member *member = next_unseen(s, sweep);
        if (!member) return false;
        weft__list_push_back(&s->live, &member->link);
        weft__member_cancel(member, why, chain);
    }
    return true;
}

/* Holds: the lock, and drops it. */
static void unlock_cancel(struct weft__set *s, int why)
{
    uint64_t sweep = ++s->sweep;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    while (cancel_some(s, sweep, why, &chain)) {
        weft__waitlist_unlock_push(&s->list, &chain, &weft__sched);
        weft__set_lock(s);
    }
    weft__waitlist_unlock_push(&s->list, &chain, &weft__sched);
}

void weft__set_cancel(weft_set *set)
{
    if (!set) return;
    struct weft__set *s = weft__set_of(set);
    weft__set_lock(s);
    unlock_cancel(s, -ECANCELED);
}

/* Holds: the lock. One batch: those that are not at their end are the caller's. False: that was the last. */
static bool let_some_go(struct weft__set *s, uint64_t sweep, struct weft__link *gone)
{
    for (uint32_t n = 0; n < WEFT__WAKE_BATCH; n++) {
        struct weft__member *member = next_unseen(s, sweep);
        if (!member) return false;
        if (weft__member_let_go(member)) {
            s->running--;
            if (!member->unwanted) weft__set_tell_leaves(s, member);
            weft__list_push_back(gone, &member->link);
        } else {
            weft__list_push_back(&s->live, &member->link);
        }
    }
    return true;
}

static void detach_each(struct weft__link *gone)
{
    for (struct weft__link *it; (it = weft__list_pop_front(gone));)
        (void)weft_detach(weft__container_of(it, struct weft__member, link)->task);
}

static void let_all_go(struct weft__set *s)
{
    struct weft__link gone = WEFT__LIST_INIT(gone);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    bool more = true;

    weft__set_lock(s);
    uint64_t sweep = ++s->sweep;
    while (more) {
        more = let_some_go(s, sweep, &gone);
        weft__set_unlock(s, &chain);
        detach_each(&gone);
        if (more) weft__set_lock(s);
    }
}

/* ---- until all have ended --------------------------------------------------------------------- */

/* Takes a member that is out of the set. The first failure is told by the join, all others by the runtime. */
static void drop_member(struct all *f, struct weft__member *member, bool tells)
{
    int failure = tells && !f->failure ? weft__member_failure(member) : 0;

    if (failure) {
        f->failure = failure;
        (void)weft__member_join(member, NULL);
    } else {
        (void)weft_detach(member->task);
    }
}

/* Holds: the lock. Takes out up to DROPS_MAX. */
static void take_some(struct weft__set *s, struct weft__link *out)
{
    for (uint32_t n = 0; n < DROPS_MAX; n++) {
        struct weft__member *member = weft__set_take(s);
        if (!member) return;
        weft__list_push_back(out, &member->link);
    }
}

/* What `look` of a join knows. */
struct drain {
    struct weft__set_wait wait;
    struct weft__link out;
};

/* 0: nobody is left; -EINPROGRESS: more have ended than one poll takes out. */
static int look_all(struct weft__set_wait *wait, bool has_turn)
{
    struct drain *d = weft__container_of(wait, struct drain, wait);
    struct weft__set *s = wait->set;

    (void)has_turn;
    take_some(s, &d->out);
    if (s->ended_count > 0) return -EINPROGRESS;
    return s->running == 0 ? 0 : -EAGAIN;
}

/* Holds: the lock. It is told to stop, or to stop them: so are the members, from now on. */
static void begin_stopping(struct all *f, struct weft__set *s, int why)
{
    f->flags |= STOPS;
    s->stopping++;
    s->why = why;
}

static void stop_members(struct all *f, struct weft__set *s, int why)
{
    if (f->flags & STOPS) return;
    weft__set_lock(s);
    begin_stopping(f, s, why);
    unlock_cancel(s, why);
}

static weft_poll over(struct all *f, struct weft__set *s)
{
    if (f->flags & STOPS) {
        weft__set_lock(s);
        s->stopping--;
        weft__waitlist_unlock(&s->list);
    }
    f->flags = 0;
    f->ret = f->failure ? f->failure : f->why;
    return WEFT_READY;
}

/* Waits among the takers, without a reason to stop. */
static weft_poll drain(struct all *f, struct weft__set *s, weft_cx *cx, bool tells)
{
    struct drain d = {.wait = {.set = s,
                               .queue = &s->takers,
                               .at = &f->at,
                               .waiter = WEFT__LEAF_WAITER(f),
                               .look = look_all},
                      .out = WEFT__LIST_INIT(d.out)};
    int why = cx->why;

    cx->why = 0;
    int r = weft__set_wait_poll(&d.wait, cx);
    cx->why = why;
    for (struct weft__link *it; (it = weft__list_pop_front(&d.out));)
        drop_member(f, weft__container_of(it, struct weft__member, link), tells);
    if (r == 0) return over(f, s);
    if (r == -EINPROGRESS) cx->yielded = true;
    return WEFT_PENDING;
}

static weft_poll refuse(struct all *f, int why)
{
    f->ret = why;
    return WEFT_READY;
}

/* Nothing is taken out. */
static weft_poll probe(struct all *f, struct weft__set *s)
{
    return weft__set_len((weft_set *)(void *)s) == 0 ? over(f, s) : WEFT_PENDING;
}

weft_poll weft_set_join_poll(void *frame, weft_cx *cx)
{
    struct all *f = frame;
    struct weft__set *s = f->set;

    if (!s) return refuse(f, -EINVAL);
    if (cx->probe) return probe(f, s);
    if (cx->why) {
        f->why = cx->why; /* what it costs is asked for below: twice may be more than there is */
        stop_members(f, s, f->why);
    }
    return drain(f, s, cx, true);
}

weft_poll weft_set_stop_poll(void *frame, weft_cx *cx)
{
    struct all *f = frame;
    struct weft__set *s = f->set;

    if (!s) return refuse(f, -EINVAL);
    if (cx->probe) return probe(f, s);
    if (cx->why) f->why = cx->why; /* as above */
    stop_members(f, s, f->why ? f->why : -ECANCELED);
    return drain(f, s, cx, true);
}

weft_poll weft_set_detach_poll(void *frame, weft_cx *cx)
{
    struct all *f = frame;
    struct weft__set *s = f->set;

    if (!s) return refuse(f, -EINVAL);
    if (!(f->flags & BEGUN)) let_all_go(s);
    f->flags |= BEGUN;
    return drain(f, s, cx, false);
}

/* ---- call forms ------------------------------------------------------------------------------- */

int weft__set_join(weft_set *set)
{
    struct weft_set_join f = {.set = set};
    int r = weft__run_from(weft_set_join_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__set_stop(weft_set *set)
{
    struct weft_set_stop f = {.set = set};
    int r = weft__run_from(weft_set_stop_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__set_detach(weft_set *set)
{
    struct weft_set_detach f = {.set = set};
    int r = weft__run_from(weft_set_detach_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
