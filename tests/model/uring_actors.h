/* SPDX-License-Identifier: MIT
 *
 * uring_actors - readers, accepters and closers of sockets on io_uring, and what they do to each other: for model tests in which the ring's lock is nobody's, or lent.
 *
 * The backend, the driver, its slots, operations and a worker's sleep are the real ones; the kernel
 * is ring_kernel.h. Verbs have broken twins, in a table of verbs of this test.
 */
#ifndef MODEL_URING_ACTORS_H
#define MODEL_URING_ACTORS_H

#include "ring_port.h"

enum {
    HONEST,
    LAST_ANSWER_IS_SILENT, /* nothing was brought, so nobody is told */
    ENDS_BEHIND_THE_WAKE,  /* asked, until all are told */
    READS_WHILE_ASKED,     /* nothing is kept, so the socket is asked */
    KEPT_BEFORE_ASKED,     /* looks for what is kept, and then whether more can be */
    LOOKS_TOO_LATE,        /* is anything fetched? Then: what is ready? */
    LETS_GO_BLINDLY,       /* the fd is closed, so the kernel has nothing of it */
    KEEPS_THE_ANSWER,      /* fetched in the sleeper's place, and never delivered */
    GOES_BACK_SILENTLY,    /* the flood is over, the epoll has nothing of it any more, and nobody tries */
    SLEEPS_UNGUARDED,      /* nobody in the ring hears of the epoll */
    TELLS_NO_WORKER,       /* the guard's answer is another's, and the worker sleeps on */
    WATCHES_ITS_SENDS,     /* from now on all is calls, and so is what was handed in, once more */
};

/* ---- broken twins of the verbs ---- */

static struct weft__fdslot slots[2];
static struct weft__uring_slot *unended; /* whose FETCH has ended, and is asked for all the same */

static ssize_t broken_take(struct weft__fdslot *slot, const struct weft__take *what,
                           struct weft__lesson *lesson)
{
    const struct weft__uring_slot *us = slot->more;
    bool kept = load_relaxed(&us->holds); /* relaxed: as the real one */
    bool is_asked = weft__uring_asked(us) & WEFT__URING_FETCH;
    bool call = !kept && !is_asked;
    if (model_mutant == READS_WHILE_ASKED && !kept) return weft__take_direct(slot, what, lesson);
    if (model_mutant == KEPT_BEFORE_ASKED && call) return weft__take_direct(slot, what, lesson);
    if (model_mutant == LOOKS_TOO_LATE && call) {
        lesson->seen = weft__fdslot_look(slot);
        return weft__take_direct(slot, what, lesson);
    }
    return uring_take(slot, what, lesson);
}

static ssize_t twin_take(struct weft__fdslot *slot, const struct weft__take *what,
                         struct weft__lesson *lesson)
{
    return model_mutant == HONEST ? uring_take(slot, what, lesson)
                                  : broken_take(slot, what, lesson);
}

static void pretend(struct weft__uring *u, struct weft__uring_slot *us, bool is_asked)
{
    weft__uring_lock(u);
    weft__uring_set_asked(us, is_asked ? weft__uring_asked(us) | WEFT__URING_FETCH
                                       : weft__uring_asked(us) & ~(uint32_t)WEFT__URING_FETCH);
    weft__uring_unlock(u);
}

static int twin_wait(struct weft__port *p, struct weft__events *into, uint32_t most,
                     int64_t timeout_ns)
{
    struct weft__uring *u = p->own;
    struct weft__uring_slot *us = slots[0].more;
    silenced = false;
    bool was_watched = weft__uring_asked(us) & WEFT__URING_EPOLL;
    if (model_mutant == SLEEPS_UNGUARDED) store_relaxed(&u->epoll_asked, true);
    int r = uring_wait(p, into, most, timeout_ns);
    us = slots[0].more;
    bool back = was_watched && !(weft__uring_asked(us) & WEFT__URING_EPOLL);
    if (model_mutant == GOES_BACK_SILENTLY && back) into->count = 0;
    if (model_mutant == LAST_ANSWER_IS_SILENT && silenced) into->count = 0;
    if (model_mutant == ENDS_BEHIND_THE_WAKE && into->count > 0 &&
        !(weft__uring_asked(us) & WEFT__URING_FETCH)) {
        unended = us;
        pretend(p->own, us, true);
    }
    return r;
}

static uint32_t twin_deliver(struct weft__port *p, const struct weft__events *events, bool own)
{
    if (model_mutant == KEEPS_THE_ANSWER && !own) return 0;
    struct weft__uring_slot *us = unended;
    unended = NULL;
    uint32_t woken = uring_deliver(p, events, own);
    if (us) pretend(p->own, us, false);
    return woken;
}

static bool twin_let_go(struct weft__port *p, struct weft__fdslot *slot)
{
    struct weft__uring_slot *us = slot->more;
    if (uring_let_go(p, slot)) return true;
    if (model_mutant == LETS_GO_BLINDLY) us->left = false;
    return model_mutant == LETS_GO_BLINDLY;
}

/* ---- readers, accepters ---- */

static struct weft__fdslot *slot;
static unsigned wanted;
static unsigned next_byte[FILES]; /* that is to come */
static unsigned accepted;
static int ended;

struct reading {
    union {
        struct weft__op op;
        struct weft_read read; /* by steps (ring_steps.h) */
        struct weft_read_exact all;
    };
    struct weft__fdslot *slot;
    unsigned file;
    char bytes[8];
};

/* Of one poll. */
struct read_try {
    char *bytes;
    struct weft__lesson lesson;
};

static ssize_t tries_read(struct weft__fdslot *s, void *arg)
{
    struct read_try *t = arg;
    size_t len = sizeof(((struct reading *)NULL)->bytes);
    struct iovec iov = {t->bytes, len};
    struct weft__take take = {.kind = WEFT__TAKE_RECV, .iov = &iov, .count = 1, .bytes = len};
    return weft__driver_take(s, &take, &t->lesson);
}

static ssize_t tries_accept(struct weft__fdslot *s, void *arg)
{
    struct weft__take take = {.kind = WEFT__TAKE_ACCEPT};
    (void)arg;
    return weft__driver_try(s, &take);
}

static const struct weft__op_kind reads_some = {
    .side = WEFT__SIDE_READ,
    .as = WEFT__USE_READER,
    .bits = WEFT__READY_READ | WEFT__READY_READ_END,
    .tries = tries_read,
};

static const struct weft__op_kind accepts_one = {
    .side = WEFT__SIDE_READ,
    .as = WEFT__USE_SHARED,
    .bits = WEFT__READY_READ | WEFT__READY_READ_END,
    .tries = tries_accept,
};

static weft_poll reads_by_loop(struct reading *r, weft_cx *cx, ssize_t *n)
{
    struct read_try t = {.bytes = r->bytes};
    return weft__op_poll(r->slot, &r->op, &reads_some, &t, NULL, &t.lesson, cx, n);
}

static weft_poll (*read_poll)(struct reading *r, weft_cx *cx, ssize_t *n) = reads_by_loop;

static void has_read(const struct reading *r, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++)
        model_assert((unsigned)r->bytes[i] == BYTES * r->file + next_byte[r->file]++);
}

static weft_poll reads(struct actor *actor, weft_cx *cx)
{
    struct reading *r = (void *)actor->frame;
    unsigned file = r->file;
    while (next_byte[file] < wanted) {
        ssize_t n = 0;
        if (read_poll(r, cx, &n) == WEFT_PENDING) return WEFT_PENDING;
        if (n < 0) {
            ended = (int)n;
            break;
        }
        has_read(r, n);
    }
    one_ends();
    return WEFT_READY;
}

static weft_poll accepts(struct actor *actor, weft_cx *cx)
{
    struct reading *r = (void *)actor->frame;
    ssize_t n = 0;
    if (weft__op_poll(r->slot, &r->op, &accepts_one, NULL, NULL, NULL, cx, &n) == WEFT_PENDING)
        return WEFT_PENDING;
    model_assert(n >= 100);
    accepted |= 1U << (n - 100);
    one_ends();
    return WEFT_READY;
}

static struct actor *actor_with(struct weft__fdslot *at,
                                weft_poll (*body)(struct actor *, weft_cx *), uint32_t references)
{
    struct actor *actor = actor_new(body, references);
    struct reading *r = (void *)actor->frame;
    r->slot = at;
    r->file = (unsigned)at->fd - FIRST_FD;
    return actor;
}

static struct actor *actor_at(struct weft__fdslot *at, weft_poll (*body)(struct actor *, weft_cx *))
{
    return actor_with(at, body, 0);
}

/* ---- cases ---- */

static void begin(enum weft__shape shape, uint32_t actor_count, unsigned bytes, unsigned ends)
{
    actors_begin();
    kernel_made(ends);
    memset(next_byte, 0, sizeof(next_byte));
    verbs = weft__driver_uring;
    verbs.take = twin_take;
    verbs.wait = twin_wait;
    verbs.deliver = twin_deliver;
    verbs.let_go = twin_let_go;
    port_made(actor_count);
    for (unsigned i = 0; i < 2; i++)
        slot_made(&slots[i], i);
    unended = NULL;
    is_mute = model_mutant == TELLS_NO_WORKER;
    sees_no_send = model_mutant == WATCHES_ITS_SENDS;
    accepted = 0;
    wanted = bytes;
    ended = 0;
    model_assert(weft__driver_add(&port, FIRST_FD, &slot) == 0);
    slot->shape = shape;
    port_lends(slot);
    store_relaxed(&((struct weft__uring *)port.own)->flood, floods); /* relaxed, both: alone */
    store_relaxed(&weft__uring_more_of(slot)->in_bulk, floods);
}

/* All requests end, all slots and buffers come back. */
static void finish(bool is_open)
{
    if (is_open) weft__driver_close(slot);
    for (unsigned i = 0; i < 4 && load_relaxed(&port.fds) > 0; i++)
        (void)weft__port_turn(&port, WEFT__EVENTS_MAX, true);
    model_assert(load_relaxed(&port.fds) == 0);
    weft__driver_stop(&driver);
    for (unsigned i = 0; i < FILES; i++) {
        weft__free(slots[i].more);
    }
    for (unsigned i = 0; i < REQUESTS; i++)
        model_assert(!requests[i].lives);
    for (unsigned i = 0; i < WEFT__URING_BUFFERS; i++)
        model_assert(given[i]);
    port_freed();
}

/* One byte, a reader anywhere between its first try and its sleep, a request that may end by its
 * answer. */
static void one_byte(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 1, 2);
    worker = 1;
    model_thread(works, NULL);
    model_thread(actor_begin, actor_at(slot, reads));
    model_thread(comes, (void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 1);
    worker = 0;
    finish(true);
}

static void three_come(void *fd)
{
    for (int i = 0; i < 3; i++)
        comes(fd);
}

/* It waits already, in a request. */
static void three_bytes(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 3, 2);
    worker = 1;
    actor_begin(actor_at(slot, reads));
    model_thread(works, NULL);
    model_thread(three_come, (void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 3);
    worker = 0;
    finish(true);
}

static void two_come(void *fd)
{
    for (int i = 0; i < 2; i++)
        comes(fd);
}

/* Somebody else's event, as an error would be: both sides are to try. */
static void stirs_reader(void *arg)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    (void)arg;
    weft__fdslot_ready(slot, 0, WEFT__READY_READ, &chain);
    weft__wake_chain_push(&chain, &weft__sched);
}

/* It tries while it is fetched for. */
static void stirred(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 2, 1);
    worker = 1;
    actor_begin(actor_at(slot, reads));
    model_thread(works, NULL);
    model_thread(stirs_reader, NULL);
    model_thread(two_come, (void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 2);
    worker = 0;
    finish(true);
}

static void robbed(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 2, 2);
    worker = 1;
    actor_begin(actor_at(slot, reads));
    model_thread(works, NULL);
    model_thread(robs, NULL);
    comes((void *)(intptr_t)FIRST_FD);
    comes((void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 2);
    worker = 0;
    finish(true);
}

/* Each has one, whoever fetches it. */
__attribute__((unused)) static void two_accepters(void)
{
    begin(WEFT__SHAPE_LISTENER, 2, 0, 0);
    worker = 1;
    for (int i = 0; i < 2; i++)
        actors[i] = actor_at(slot, accepts);
    model_thread(works, NULL);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    comes((void *)(intptr_t)FIRST_FD);
    comes((void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(accepted == 3);
    worker = 0;
    finish(true);
}

static void closes(void *arg)
{
    weft__driver_close(arg);
}

/* Closed while it waits in a request, and bytes come: it is answered, and nothing is left. */
static void closed_reader(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 2, 0);
    worker = 1;
    actor_begin(actor_at(slot, reads));
    model_thread(works, NULL);
    model_thread(closes, slot);
    comes((void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(ended == -EBADF);
    worker = 0;
    finish(false);
}

/* The thread that asked has ended, or there are no buffers: nothing was brought. */
static void ends_it(void *arg)
{
    (void)arg;
    model_lock(&kernel);
    cancel(0, true);
    model_unlock(&kernel);
    comes((void *)(intptr_t)FIRST_FD);
}

static void ended_request(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 1, 0);
    actor_begin(actor_at(slot, reads));
    worker = 1;
    model_thread(works, NULL);
    model_thread(ends_it, NULL);
    model_join();
    model_assert(next_byte[0] == 1);
    worker = 0;
    finish(true);
}

/* Its slot is perhaps another connection's, before the worker has seen what came for the first. */
static void reopens(void *arg)
{
    weft__driver_close(arg);
    model_assert(weft__driver_add(&port, FIRST_FD + 1, &slot) == 0);
    slot->shape = WEFT__SHAPE_STREAM;
    actor_begin(actor_at(slot, reads));
    comes((void *)(intptr_t)(FIRST_FD + 1));
}

static void reopened(void)
{
    begin(WEFT__SHAPE_STREAM, 2, 1, 0);
    wanted = 2;
    actor_begin(actor_at(slot, reads));
    wanted = 1;
    comes((void *)(intptr_t)FIRST_FD);
    worker = 1;
    model_thread(works, NULL);
    model_thread(reopens, slot);
    model_join();
    model_assert(next_byte[1] == 1);
    worker = 0;
    finish(true);
}

#define RANDOMISED(text, run_)                                                                     \
    {.name = "uring: " text ", randomised", .run = (run_), .pct_depth = 4, .executions_max = 100000}
#define CASE(text, run_)                                                                           \
    {.name = "uring: " text, .run = (run_), .preemptions = 1},                                     \
        {.name = "uring: " text ", randomised",                                                    \
         .run = (run_),                                                                            \
         .pct_depth = 4,                                                                           \
         .executions_max = 20000}

#endif
