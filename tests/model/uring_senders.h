/* SPDX-License-Identifier: MIT
 *
 * uring_senders - who sends on io_uring, and gives up: for model tests in which the ring's lock is nobody's, or lent.
 *
 * The backend, the driver, its slots and operations are the real ones; the kernel is ring_kernel.h.
 * The unsend has broken twins.
 */
#ifndef MODEL_URING_SENDERS_H
#define MODEL_URING_SENDERS_H

#include "ring_port.h"

enum {
    HONEST,
    KEEPS_IT_ASKED,  /* given up, and handed to the kernel all the same */
    DROPS_ITS_ANSWER, /* given up, though it was sent */
    STAYS_UNREADY,   /* taken back, and the next one waits for an event that does not come */
    LEARNS_TOO_LATE, /* it found no room: so there is none */
};

static struct weft__fdslot room_for_slots[2];
static struct weft__fdslot *slot;
static unsigned wanted;    /* sends */
static unsigned told;      /* bytes, to the sender */
static ssize_t answers[3]; /* of its sends, one after the other */

static ssize_t twin_take(struct weft__fdslot *of, const struct weft__take *what,
                         struct weft__lesson *lesson)
{
    struct weft__uring_slot *us = of->more;
    bool full = weft__uring_is_sending(us) && us->has_sent && us->sent == -EAGAIN;
    store_relaxed(&us->heard, true); /* relaxed: as if it were an answer */
    if (model_mutant != LEARNS_TOO_LATE || !full) return uring_take(of, what, lesson);
    us->has_sent = false;
    set_sending(us, false);
    lesson->bits = weft__ready_bits(WEFT__SIDE_WRITE);
    return -EAGAIN;
}

static ssize_t twin_unsend(struct weft__fdslot *of)
{
    struct weft__uring_slot *us = of->more;
    bool early = us->to_submit & WEFT__URING_SEND;
    if (model_mutant == KEEPS_IT_ASKED && early) return -EAGAIN;
    ssize_t r = weft__uring_unsend(of);
    if (model_mutant == DROPS_ITS_ANSWER) return -EAGAIN;
    if (model_mutant == STAYS_UNREADY && r == -EAGAIN)
        weft__fdslot_clear(of, weft__fdslot_look(of), weft__ready_bits(WEFT__SIDE_WRITE));
    return r;
}

/* ---- the sender ---- */

struct sending {
    union {
        struct weft__op op;
        struct weft_write write; /* by steps (ring_steps.h) */
        struct weft_write_all all;
    };
    struct weft__fdslot *slot;
    unsigned count; /* sends it has behind it */
    unsigned hurried; /* this one has no time to wait; 0: none, for that one has */
};

/* Of one poll. */
struct send_try {
    char byte;
    struct weft__lesson lesson;
};

static ssize_t tries_send(struct weft__fdslot *of, void *arg)
{
    struct send_try *t = arg;
    struct iovec iov = {&t->byte, 1};
    struct weft__take take = {.kind = WEFT__TAKE_SEND_SOON, .iov = &iov, .count = 1, .bytes = 1};
    return weft__driver_take(of, &take, &t->lesson);
}

static const struct weft__op_kind sends = {
    .side = WEFT__SIDE_WRITE,
    .as = WEFT__USE_WRITER,
    .bits = WEFT__READY_WRITE | WEFT__READY_WRITE_END,
    .tries = tries_send,
    .soon = true,
};

static weft_poll sends_by_loop(struct sending *s, weft_cx *cx, ssize_t *n)
{
    static struct send_try t;
    return weft__op_poll(s->slot, &s->op, &sends, &t, NULL, &t.lesson, cx, n);
}

static weft_poll (*send_poll)(struct sending *s, weft_cx *cx, ssize_t *n) = sends_by_loop;

static weft_poll sends_one(struct sending *s, weft_cx *cx)
{
    ssize_t n = 0;
    store_relaxed(&is_lent, true); /* relaxed: the ring's lock orders */
    weft_poll r = send_poll(s, cx, &n);
    if (r == WEFT_PENDING && s->hurried && s->count == s->hurried) {
        weft_cx late = *cx;
        late.why = -ETIME;
        r = send_poll(s, &late, &n);
        model_assert(r == WEFT_READY);
    }
    if (r == WEFT_PENDING) return r;
    store_relaxed(&is_lent, false); /* relaxed: as above */
    if (n > 0) told += (unsigned)n;
    answers[s->count++] = n;
    return WEFT_READY;
}

static weft_poll sender(struct actor *actor, weft_cx *cx)
{
    struct sending *s = (void *)actor->frame;
    while (s->count < wanted)
        if (sends_one(s, cx) == WEFT_PENDING) return WEFT_PENDING;
    one_ends();
    return WEFT_READY;
}

/* On the worker, which then has nothing else to do. */
static void sends_and_works(void *actor)
{
    actor_begin(actor);
    works(NULL);
}

/* ---- a case ---- */

static void begin(unsigned sends_wanted, bool full)
{
    actors_begin();
    kernel_made(0);
    is_full = full;
    verbs = weft__driver_uring;
    verbs.unsend = twin_unsend;
    verbs.take = twin_take;
    port_made(1);
    for (unsigned i = 0; i < 2; i++)
        slot_made(&room_for_slots[i], i);
    wanted = sends_wanted;
    told = 0;
    model_assert(weft__driver_add(&port, FIRST_FD, &slot) == 0);
    slot->shape = WEFT__SHAPE_STREAM;
    port_lends(slot);
    worker = 1;
}

static struct actor *actor_with(weft_poll (*body)(struct actor *, weft_cx *), uint32_t references,
                                unsigned hurried)
{
    struct actor *actor = actor_new(body, references);
    struct sending *s = (void *)actor->frame;
    s->op = (struct weft__op){.as = 0};
    s->slot = slot;
    s->count = 0;
    s->hurried = hurried;
    return actor;
}

static struct actor *actor_of(uint32_t references, unsigned hurried)
{
    return actor_with(sender, references, hurried);
}

/* All is over: what was sent was told, and nothing more is. */
static void finish(bool is_open)
{
    worker = 0;
    if (is_open) weft__driver_close(slot);
    for (unsigned i = 0; i < 4 && load_relaxed(&port.fds) > 0; i++)
        (void)weft__port_turn(&port, WEFT__EVENTS_MAX, true);
    model_assert(load_relaxed(&port.fds) == 0);
    model_assert(told == sent_out);
    weft__driver_stop(&driver);
    for (int i = 0; i < 2; i++)
        weft__free(room_for_slots[i].more);
    port_freed();
}

#define RANDOMISED(text, run_)                                                                     \
    {.name = "send: " text ", randomised", .run = (run_), .pct_depth = 4, .executions_max = 50000}
#define CASE(text, run_, depth)                                                                           \
    {.name = "send: " text, .run = (run_), .preemptions = (depth)},                                      \
        RANDOMISED(text, run_)

#endif
