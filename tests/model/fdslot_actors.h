/* SPDX-License-Identifier: MIT
 *
 * fdslot_actors - a slot, its driver, a reader and the kernel, for model tests of it: with a lock that is nobody's, and with one that is lent.
 *
 * The kernel: a count of bytes, and whoever adds some reports an edge, by the driver's own words.
 */
#ifndef MODEL_FDSLOT_ACTORS_H
#define MODEL_FDSLOT_ACTORS_H

#include "lent.h"
#include "leaf.h"

#include <string.h>

#include "driver/op.c"
#include "driver/slot.c"

#define ROW_BITS 3 /* of the slot's lock */

enum {
    HONEST,
    CLEARS_BLINDLY,      /* whatever came since the try */
    EVENT_WITHOUT_TICK,  /* says what is ready, and not that it is news */
    WAKES_TOO_EARLY,     /* gives turns, then says why */
    QUEUES_BLINDLY,      /* without a look under the lock */
    CLOSES_AT_ONCE,      /* whoever is in a call */
    FORGETS_GENERATIONS, /* an event is an event */
    LOOKS_BEHIND_THE_TRY, /* a lesson is dated by what came since */
};

static const struct weft__driver_ops ops; /* an event comes by itself: nothing is armed */
static struct weft__driver driver = {.ops = &ops};
static struct weft__port port = {.driver = &driver};
static struct weft__fdslot slot;
static _Atomic uint32_t kernel; /* bytes there; its locks order it all */
static int *descriptor;         /* what a call uses: freed when it is closed */
static unsigned in_vain;        /* tries of the reader that found nothing */
static unsigned wanted;
static bool learns; /* the reader's tries say what they have found, and it is cleared where it leaves */
static int ended; /* what the reader was answered at last */

/* ---- the driver ---- */

static void dispose(void)
{
    model_free(descriptor);
    descriptor = NULL;
}

void weft__driver_dispose(struct weft__fdslot *s)
{
    (void)s;
    if (model_mutant != CLOSES_AT_ONCE) dispose();
}

static void twin_clear(uint64_t seen)
{
    uint64_t now = model_mutant == CLEARS_BLINDLY ? load_relaxed(&slot.word) : seen;
    weft__fdslot_clear(&slot, now, WEFT__READY_READ);
}

static void say_ready(void)
{
    store_release(&slot.word, load_relaxed(&slot.word) | WEFT__READY_READ);
}

static void reports(uint32_t generation)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    uint64_t word = load_relaxed(&slot.word);
    if (model_mutant == EVENT_WITHOUT_TICK || model_mutant == WAKES_TOO_EARLY) {
        weft__waitlist_lock(&slot.list);
        if (model_mutant == EVENT_WITHOUT_TICK) say_ready();
        tell(&slot, WEFT__READY_READ, &chain);
        weft__waitlist_unlock_push(&slot.list, &chain, &weft__sched);
        weft__waitlist_lock(&slot.list);
        if (model_mutant == WAKES_TOO_EARLY) say_ready();
        weft__waitlist_unlock(&slot.list);
    } else if (model_mutant == FORGETS_GENERATIONS) {
        weft__fdslot_ready(&slot, weft__fdslot_generation(word), WEFT__READY_READ, &chain);
    } else {
        weft__fdslot_ready(&slot, generation, WEFT__READY_READ, &chain);
    }
    weft__wake_chain_push(&chain, &weft__sched);
}

static void byte_comes(void *arg)
{
    (void)arg;
    (void)fetch_add_acq_rel(&kernel, 1);
    reports(0);
}

/* ---- a reader ---- */

/* Each read is short: the room is for more than ever comes. `arg`: where it says so; NULL: it clears the word itself. */
static ssize_t reads(struct weft__fdslot *s, void *arg)
{
    struct weft__lesson *lesson = arg;
    uint64_t seen = lesson ? lesson->seen : weft__fdslot_look(s);
    (void)plain_read(descriptor);
    uint32_t bytes = exchange_acq_rel(&kernel, 0);
    if (lesson) {
        if (model_mutant == LOOKS_BEHIND_THE_TRY) lesson->seen = weft__fdslot_look(s);
        lesson->bits = WEFT__READY_READ;
    } else {
        twin_clear(seen);
    }
    if (bytes == 0) in_vain++;
    return bytes ? (ssize_t)bytes : -EAGAIN;
}

static const struct weft__op_kind reading = {
    .side = WEFT__SIDE_READ,
    .as = WEFT__USE_READER,
    .bits = WEFT__READY_READ,
    .tries = reads,
};

static weft_poll twin_poll(struct weft__op *op, weft_cx *cx, ssize_t *ret)
{
    struct weft__lesson lesson = {0, 0};
    if (model_mutant == QUEUES_BLINDLY && !op->as) {
        (void)weft__op_begins(&slot, op, &reading, cx);
        if (reads(&slot, NULL) != -EAGAIN) model_assert(false); /* the case begins without a byte */
        weft__waitlist_lock(&slot.list);
        weft__waitlist_add_new(&slot.list, &op->waiter, cx->waker);
        weft__waitlist_unlock(&slot.list);
        op->waits = true;
        return WEFT_PENDING;
    }
    if (!learns) return weft__op_poll(&slot, op, &reading, NULL, NULL, NULL, cx, ret);
    return weft__op_poll_as(&slot, op, &reading, &lesson, NULL, &lesson, cx, ret);
}

/* Until it has all, is told to stop, or there is nothing to read from any more. */
static weft_poll drinks(struct actor *actor, weft_cx *cx)
{
    struct weft__op *op = (void *)actor->frame;
    while (got < wanted) {
        ssize_t ret = 0;
        if (twin_poll(op, cx, &ret) == WEFT_PENDING) return WEFT_PENDING;
        if (ret < 0) {
            ended = (int)ret;
            given_up++;
            return WEFT_READY;
        }
        got += (unsigned)ret;
    }
    return WEFT_READY;
}

static weft_poll (*drinker)(struct actor *actor, weft_cx *cx) = drinks;

/* ---- cases ---- */

static void begin(unsigned bytes, uint32_t references)
{
    actors_begin();
    memset(&slot, 0, sizeof(slot));
    weft__fdslot_init(&slot, &port, 0, ROW_BITS);
    store_relaxed(&slot.word, 0);
    store_relaxed(&slot.users, 0);
    store_relaxed(&kernel, 0);
    learns = false;
    weft__fdslot_open(&slot, 1);
    descriptor = model_alloc(sizeof(*descriptor));
    wanted = bytes;
    in_vain = 0;
    ended = 0;
    actors[0] = actor_new(drinker, references);
    lends(&slot.list);
}

static void finish(void)
{
    if (descriptor) dispose();
}

/* Two bytes, each with its edge, and a reader that tries, clears and waits in between. */
static void two_bytes(void)
{
    begin(2, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(byte_comes, NULL);
    model_thread(byte_comes, NULL);
    model_join();
    model_assert(got == 2);
    finish();
}

static void one_byte(void)
{
    begin(1, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(byte_comes, NULL);
    model_join();
    model_assert(got == 1);
    finish();
}

/* The same, of a reader that says at its end what it has found. */
__attribute__((unused)) static void two_bytes_learnt(void)
{
    begin(2, 0);
    learns = true;
    model_thread(actor_begin, actors[0]);
    model_thread(byte_comes, NULL);
    model_thread(byte_comes, NULL);
    model_join();
    model_assert(got == 2);
    finish();
}

/* Given up at any moment: what it has not got is still there. */
static void stopped_reader(void)
{
    begin(1, 1);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_cancel, actors[0]);
    model_thread(byte_comes, NULL);
    model_join();
    model_assert(got + load_relaxed(&kernel) == 1);
    model_assert(got + given_up == 1);
    finish();
}

static void closes(void *arg)
{
    (void)arg;
    bool open = weft__fdslot_close(&slot);
    model_assert(open);
    if (model_mutant == CLOSES_AT_ONCE) dispose();
    weft__driver_leave(&slot, WEFT__USE_SHARED);
}

/* Closed while it reads or waits: it is answered, and the descriptor is closed once, behind its last call. */
static void closed_reader(void)
{
    begin(2, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(closes, NULL);
    model_join();
    model_assert(given_up == 1);
    model_assert(ended == -EBADF);
    model_assert(model_mutant == CLOSES_AT_ONCE || !descriptor);
    finish();
}

static void closed_beside_an_event(void)
{
    begin(2, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(closes, NULL);
    model_thread(byte_comes, NULL);
    model_join();
    model_assert(given_up == 1);
    model_assert(ended == -EBADF);
    finish();
}

/* The slot is closed and opened again for another, while an event of the first is on its way. */
__attribute__((unused)) static void stale_event(void *arg)
{
    (void)arg;
    reports(0);
}

#endif
