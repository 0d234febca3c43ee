/* SPDX-License-Identifier: MIT
 *
 * ahead_cases - reads and writes by steps (io/direct.h) of what io_uring fetches ahead, while the slot's lock, and the ring's, are lent to who reads, to another, or to nobody: for model tests in
 * which there are floods, and in which there are none.
 */
#ifndef MODEL_AHEAD_CASES_H
#define MODEL_AHEAD_CASES_H

#define WEFT_MODEL_REAL_BIAS
#include "uring_actors.h"

#include "ring_steps.h"

static weft_poll reads_by_steps(struct reading *r, weft_cx *cx, ssize_t *n)
{
    struct weft_read *f = &r->read;
    if (!f->stream) {
        *f = (struct weft_read){.stream = weft__fdstream_of(r->slot, WEFT__FDSTREAM_TCP),
                                .buf = r->bytes,
                                .len = sizeof(r->bytes)};
    }
    weft_poll answer = weft_read_poll(f, cx);
    if (answer == WEFT_READY) *n = f->ret;
    return answer;
}

/* Everything by one read. */
static weft_poll reads_all(struct actor *actor, weft_cx *cx)
{
    struct reading *r = (void *)actor->frame;
    struct weft_read_exact *f = &r->all;
    if (!f->stream) {
        *f = (struct weft_read_exact){.stream = weft__fdstream_of(r->slot, WEFT__FDSTREAM_TCP),
                                      .buf = r->bytes,
                                      .len = wanted};
    }
    if (weft_read_exact_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    has_read(r, f->ret);
    one_ends();
    return WEFT_READY;
}

/* ---- cases ---- */

/* What came first was read by a call, perhaps, or in a request that ended behind it. */
static void reads_two(weft_poll (*body)(struct actor *, weft_cx *))
{
    begin(WEFT__SHAPE_STREAM, 1, 2, 1);
    worker = 1;
    model_thread(works, NULL);
    model_thread(actor_begin, actor_at(slot, body));
    model_thread(two_come, (void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 2);
    worker = 0;
    finish(true);
}

static void two_bytes(void)
{
    reads_two(reads);
}

static void two_bytes_at_once(void)
{
    reads_two(reads_all);
}

/* What is still to come is another reader's. */
static void reads_the_rest(void)
{
    worker = 0;
    store_relaxed(&to_end, 1); /* relaxed: nobody else is there */
    actor_begin(actor_at(slot, reads));
    for (unsigned i = 0; i < 4 && load_relaxed(&to_end) > 0; i++)
        (void)weft__port_turn(&port, WEFT__EVENTS_MAX, true);
    model_assert(next_byte[0] == wanted);
}

/* Given up at any moment: what it has not got is still there, and the next one's. */
static void given_up_reader(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 2, 1);
    worker = 1;
    actors[0] = actor_with(slot, reads, 1);
    actor_begin(actors[0]);
    model_thread(works, NULL);
    model_thread(actor_cancel, actors[0]);
    model_thread(two_come, (void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 2 || ended == -ECANCELED);
    reads_the_rest();
    finish(true);
}

/* Closed while it tries, and finds something: whoever leaves last disposes of the slot. The worker is neither of the two whose the locks may be. */
static void closed_with_a_byte(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 1, 0);
    worker = 3;
    comes((void *)(intptr_t)FIRST_FD);
    model_thread(actor_begin, actor_at(slot, reads));
    model_thread(closes, slot);
    model_thread(works, NULL);
    model_join();
    model_assert(next_byte[0] == 1 || ended == -EBADF);
    worker = 0;
    finish(false);
}

/* Both at once, or one by a call, and one handed in. */
static weft_poll writes_two(struct actor *actor, weft_cx *cx)
{
    static const char two[2];
    struct weft_write_all *f = (void *)actor->frame;
    store_relaxed(&is_lent, true); /* relaxed: the ring's lock orders */
    if (!f->stream) {
        *f = (struct weft_write_all){
            .stream = weft__fdstream_of(slot, WEFT__FDSTREAM_TCP), .buf = two, .len = 2};
    }
    if (weft_write_all_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    store_relaxed(&is_lent, false); /* relaxed: as above */
    model_assert(f->ret == 2);
    one_ends();
    return WEFT_READY;
}

/* Read and written by two: what comes for one of them is news to the other's lesson. */
static void read_and_written(void)
{
    begin(WEFT__SHAPE_STREAM, 2, 2, 1);
    worker = 1;
    actor_begin(actor_at(slot, reads));
    comes((void *)(intptr_t)FIRST_FD);
    model_thread(works, NULL);
    model_thread(actor_begin, actor_new(writes_two, 0));
    comes((void *)(intptr_t)FIRST_FD);
    model_join();
    model_assert(next_byte[0] == 2);
    model_assert(sent_out == 2);
    worker = 0;
    finish(true);
}

static void stops(void *arg)
{
    (void)arg;
    weft__driver_stop(&driver);
}

/* Nothing is brought any more: what is there is read, and then it is told. */
static void stopped_reader(void)
{
    begin(WEFT__SHAPE_STREAM, 1, 2, 1);
    comes((void *)(intptr_t)FIRST_FD);
    model_thread(actor_begin, actor_at(slot, reads));
    model_thread(stops, NULL);
    model_join();
    model_assert(next_byte[0] == 1);
    model_assert(ended == -ESHUTDOWN);
    finish(true);
}

#endif
