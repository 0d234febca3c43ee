/* SPDX-License-Identifier: MIT
 *
 * A look at a channel, proven: beside a sender and a receiver, without a lock, its length is never below zero, nor above the capacity; and who sees it closed sees what its
 * closer did before.
 */
#define WEFT__CHAN_LOOKS 1 /* and then by the lock */
#include "memory.h"
#include "../harness/ending.h"
#include "sync/waitlist.c"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

#include "sync/chan.c"
#include "sync/chan_recv.c"
#include "sync/chan_send.c"

enum {
    HONEST,
    LOOKS_AT_THE_HEAD_ONCE, /* a tail that is newer than it by more than the ring holds */
    LOOKS_AT_THE_TAIL_FIRST,
};

/* ---- what the channel stands on ---- */

int weft_cx_cancelled(weft_cx *cx)
{
    return cx->why;
}

const struct weft__sched weft__sched; /* nobody waits, so nobody is pushed */

/* ---- threads ---- */

enum { CAPACITY = 1, COUNT = 3 };

static weft_chan *chan;
static int before; /* what its closer wrote */

static void sends(void *unused)
{
    (void)unused;
    for (uint64_t value = 1; value <= COUNT; value++)
        (void)weft__try_send(chan, &value);
}

/* As weft_try_recv, without what comes when it finds nothing: that takes both locks. */
static void receives(void *unused)
{
    uint64_t value;
    (void)unused;
    for (unsigned i = 0; i < COUNT; i++) {
        weft__chan_lock_recv(weft__chan_of(chan));
        (void)take_one(weft__chan_of(chan), &value);
    }
}

static size_t len(void)
{
    struct weft__chan *c = weft__chan_of(chan);

    if (model_mutant == LOOKS_AT_THE_HEAD_ONCE) {
        uint64_t head = load_acquire(&c->head);
        return (size_t)(load_acquire(&c->tail) - head);
    }
    if (model_mutant == LOOKS_AT_THE_TAIL_FIRST) {
        uint64_t tail = load_acquire(&c->tail);
        return (size_t)(tail - load_acquire(&c->head));
    }
    return weft__chan_len(chan);
}

static void looks(void *unused)
{
    (void)unused;
    model_assert(len() <= CAPACITY);
}

static void closes(void *unused)
{
    (void)unused;
    plain_write(&before, 1);
    (void)weft__chan_close(chan);
}

static void looks_whether_closed(void *unused)
{
    (void)unused;
    if (weft__chan_is_closed(chan)) model_assert(plain_read(&before) == 1);
}

/* ---- cases ---- */

static void begin(void)
{
    plain_write(&before, 0);
    model_assert(weft_chan_new_sized(WEFT_CHAN_BOUNDED, 8, CAPACITY, &chan) == 0);
}

static void end(void)
{
    model_join();
    weft__chan_free(chan, NULL);
}

static void length(void)
{
    begin();
    model_thread(sends, NULL);
    model_thread(receives, NULL);
    model_thread(looks, NULL);
    end();
}

static void closed(void)
{
    begin();
    model_thread(closes, NULL);
    model_thread(looks_whether_closed, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "chan: its length beside both sides", .run = length, .preemptions = 3, .weaken = true},
    {.name = "chan: is it closed?", .run = closed, .unbounded = true, .weaken = true},
    {.name = "mutant: looks at the head once",
     .run = length,
     .mutant = LOOKS_AT_THE_HEAD_ONCE,
     .must_fail = true},
    {.name = "mutant: looks at the tail first",
     .run = length,
     .mutant = LOOKS_AT_THE_TAIL_FIRST,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
