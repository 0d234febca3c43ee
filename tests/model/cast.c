/* SPDX-License-Identifier: MIT
 *
 * Broadcast and watch, proven: who listens hears each message once and in order, or is told how many it has missed; it sleeps on
 * none, whoever is cancelled beside it; the end reaches all; who has heard the last may free it; and of two who change a watch
 * neither change is lost.
 */
#include "leaf.h"
#include "memory.h"
#include "sync/chan_cast.c"

enum {
    HONEST,
    SEND_WAKES_ONE,       /* the others sleep on the message */
    LISTENER_QUEUES_LATE, /* it looks and queues under two holds of the lock */
    CLOSE_WAKES_NOBODY,
    UPDATE_LOOKS_AWAY,       /* it sets what it has made of a value that is old by now */
    LATE_ONE_COUNTS_NOTHING, /* it goes on behind what it has missed, and does not say */
};

/* ---- listeners ---- */

enum { LISTENERS = 2, MESSAGES_MAX = 4 };

/* In an actor's frame: it listens until it has accounted for so many, or until the end. */
struct listener {
    struct weft_broadcast_recv rx;
    weft_cursor at;
    uint64_t value;
    uint64_t last;  /* value that it heard */
    uint64_t heard; /* messages */
    uint64_t missed;
    uint64_t want; /* 0: until the end */
    bool begun, frees;
};
_Static_assert(sizeof(struct listener) <= sizeof(((struct actor *)0)->frame), "it fits");

static weft_cast *the_cast;
static bool is_watch;
static uint64_t accounted[LISTENERS]; /* by those who have ended */
static uint64_t last_heard;

static weft_poll queues_late(struct hears *f, weft_cx *cx)
{
    if (f->at) return hears_poll(f, cx, take_next);
    weft__waitlist_lock(&f->cast->list);
    int r = take_next(f->cast, f->cursor, f->into);
    weft__waitlist_unlock(&f->cast->list);
    if (r != -EAGAIN) return answers(f, r);
    weft__waitlist_lock(&f->cast->list);
    weft__waiter_init(&f->waiter);
    weft__waitlist_add(&f->cast->list, &f->waiter, cx->waker);
    f->at = 1;
    weft__waitlist_unlock(&f->cast->list);
    return WEFT_PENDING;
}

static weft_poll poll_once(struct listener *l, weft_cx *cx)
{
    struct hears *f = (void *)&l->rx;
    if (model_mutant == LISTENER_QUEUES_LATE) return queues_late(f, cx);
    return is_watch ? weft_watch_changed_poll(f, cx) : weft_broadcast_recv_poll(f, cx);
}

static void note(struct listener *l)
{
    if (l->rx.ret == 1) {
        model_assert(l->value > l->last); /* in order, and none twice */
        l->last = l->value;
        last_heard = l->value;
        l->heard++;
        if (is_watch) l->missed += l->at.missed;
    }
    if (l->rx.ret == -EOVERFLOW && model_mutant != LATE_ONE_COUNTS_NOTHING)
        l->missed += l->at.missed;
}

static void frees_it(void)
{
    weft__cast_free(the_cast, NULL);
    the_cast = NULL;
}

static weft_poll listens(struct actor *actor, weft_cx *cx)
{
    struct listener *l = (void *)actor->frame;
    unsigned number = actor == actors[0] ? 0 : 1;

    for (;;) {
        if (!l->begun)
            l->rx = (struct weft_broadcast_recv){.cast = the_cast, .at = &l->at, .into = &l->value};
        l->begun = true;
        if (poll_once(l, cx) == WEFT_PENDING) return WEFT_PENDING;
        l->begun = false;
        note(l);
        bool enough = l->want > 0 && l->heard + l->missed >= l->want;
        if (l->rx.ret == -ECANCELED) given_up++;
        if (l->rx.ret == -ECANCELED || l->rx.ret == 0 || enough) break;
    }
    if (l->rx.ret != -ECANCELED) got++;
    accounted[number] = l->heard + l->missed;
    if (l->frees) frees_it();
    return WEFT_READY;
}

static struct listener *listener(unsigned number, uint64_t want, uint32_t references)
{
    actors[number] = actor_new(listens, references);
    struct listener *l = (void *)actors[number]->frame;
    *l = (struct listener){.want = want, .at = {.next = is_watch ? 1 : 0}};
    return l;
}

/* ---- those who send ---- */

static void send_one(uint64_t value)
{
    struct cast *c = cast_of(the_cast);
    if (model_mutant != SEND_WAKES_ONE) {
        model_assert(weft__cast_send(the_cast, &value) == 0);
        return;
    }
    weft__waitlist_lock(&c->list);
    __builtin_memcpy(slot_of(c, c->sent++), &value, 8);
    if (weft__waitlist_empty(&c->list)) {
        weft__waitlist_unlock(&c->list);
    } else {
        weft__waitlist_unlock_wake_first(&c->list, &weft__sched);
    }
}

static void sends(void *count)
{
    for (uint64_t value = 1; value <= (uintptr_t)count; value++)
        send_one(value + (is_watch ? 1 : 0));
}

static void closes(void *unused)
{
    (void)unused;
    if (model_mutant == CLOSE_WAKES_NOBODY) {
        weft__waitlist_lock(&cast_of(the_cast)->list);
        cast_of(the_cast)->closed = true;
        weft__waitlist_unlock(&cast_of(the_cast)->list);
    } else {
        (void)weft__cast_close(the_cast);
    }
}

static void adds_one(void *unused)
{
    weft_cursor seen = {0, 0};
    uint64_t value = 0;
    (void)unused;
    if (model_mutant == UPDATE_LOOKS_AWAY) {
        (void)weft__watch_get(the_cast, &value);
        value++;
        (void)weft__cast_send(the_cast, &value);
        return;
    }
    int r;
    while ((r = weft__watch_update(the_cast, &seen, &value)) == -EAGAIN)
        value++;
    model_assert(r == 0);
}

/* ---- cases ---- */

static void begin(bool watch, size_t capacity)
{
    uint64_t first = 1;
    actors_begin();
    is_watch = watch;
    last_heard = 0;
    accounted[0] = accounted[1] = 0;
    if (watch) {
        model_assert(weft_watch_new_sized(8, &first, &the_cast) == 0);
    } else {
        model_assert(weft_broadcast_new_sized(8, capacity, &the_cast) == 0);
    }
}

static void end(unsigned count)
{
    model_join();
    model_assert(got + given_up == count);
    if (the_cast) weft__cast_free(the_cast, NULL);
}

/* Room for both, or for one of them: heard and missed together are all. */
static void hears_all_of(size_t capacity)
{
    begin(false, capacity);
    (void)listener(0, 2, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(sends, (void *)2);
    end(1);
    model_assert(accounted[0] == 2 && last_heard == 2);
}
static void hears_all(void)
{
    hears_all_of(2);
}
static void hears_or_misses(void)
{
    hears_all_of(1);
}

/* Two wait, one is cancelled: the other hears it. */
static void cancelled_beside(void)
{
    begin(false, 2);
    (void)listener(0, 1, 1);
    (void)listener(1, 1, 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(actor_cancel, actors[0]);
    model_thread(sends, (void *)1);
    end(2);
    model_assert(accounted[1] == 1);
}

static void end_reaches_all(void)
{
    begin(false, 2);
    (void)listener(0, 0, 0);
    (void)listener(1, 0, 0);
    actor_run(actors[0]);
    model_thread(actor_begin, actors[1]);
    model_thread(closes, NULL);
    end(2);
}

static void freed_by_who_heard(void)
{
    begin(false, 1);
    listener(0, 1, 0)->frees = true;
    model_thread(actor_begin, actors[0]);
    model_thread(sends, (void *)1);
    end(1);
}

/* The latest is seen, however many were set before. */
static void watch_shows_latest(void)
{
    begin(true, 1);
    (void)listener(0, 2, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(sends, (void *)2);
    end(1);
    model_assert(last_heard == 3 && accounted[0] == 2);
}

static void both_change(void)
{
    uint64_t value = 0;
    begin(true, 1);
    model_thread(adds_one, NULL);
    model_thread(adds_one, NULL);
    model_join();
    model_assert(weft__watch_get(the_cast, &value) == 1);
    model_assert(value == 3);
    end(0);
}

static const struct model_case cases[] = {
    {.name = "cast: all is heard", .run = hears_all, .unbounded = true},
    {.name = "cast: heard and missed are all", .run = hears_or_misses, .unbounded = true},
    {.name = "cast: one is cancelled beside another", .run = cancelled_beside, .unbounded = true},
    {.name = "cast: the end reaches all", .run = end_reaches_all, .unbounded = true},
    {.name = "cast: freed by who heard", .run = freed_by_who_heard, .unbounded = true},
    {.name = "watch: the latest is seen", .run = watch_shows_latest, .unbounded = true},
    {.name = "watch: of two changes none is lost", .run = both_change, .unbounded = true},
    {.name = "mutant: a send wakes one",
     .run = cancelled_beside,
     .unbounded = true,
     .mutant = SEND_WAKES_ONE,
     .must_fail = true},
    {.name = "mutant: a listener looks, lets go and queues",
     .run = hears_all,
     .unbounded = true,
     .mutant = LISTENER_QUEUES_LATE,
     .must_fail = true},
    {.name = "mutant: a close wakes nobody",
     .run = end_reaches_all,
     .unbounded = true,
     .mutant = CLOSE_WAKES_NOBODY,
     .must_fail = true},
    {.name = "mutant: a change of an old value",
     .run = both_change,
     .unbounded = true,
     .mutant = UPDATE_LOOKS_AWAY,
     .must_fail = true},
    {.name = "mutant: what is missed is not told",
     .run = hears_or_misses,
     .unbounded = true,
     .mutant = LATE_ONE_COUNTS_NOTHING,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
