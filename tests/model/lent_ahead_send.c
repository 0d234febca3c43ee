/* SPDX-License-Identifier: MIT
 *
 * Writes by steps (io/direct.h) that are handed in together, while the slot's lock, and the ring's, are lent to who writes, to another, or to nobody: what uring_send.c proves of
 * the loop holds of the steps, and of whoever goes over from the one to the other.
 */
#define WEFT_MODEL_REAL_BIAS
#include "uring_send_cases.h"

#include "ring_steps.h"

static const char bytes[2];

static weft_poll writes_by_steps(struct sending *s, size_t len, weft_cx *cx, ssize_t *n)
{
    struct weft_write *f = &s->write;
    if (!f->stream) {
        *f = (struct weft_write){
            .stream = weft__fdstream_of(slot, WEFT__FDSTREAM_TCP), .buf = bytes, .len = len};
    }
    weft_poll answer = weft_write_poll(f, cx);
    if (answer == WEFT_READY) *n = f->ret;
    return answer;
}

static weft_poll sends_by_steps(struct sending *s, weft_cx *cx, ssize_t *n)
{
    return writes_by_steps(s, 1, cx, n);
}

/* Writes of two bytes, of which a call sends one. */
static weft_poll sends_two(struct actor *actor, weft_cx *cx)
{
    struct sending *s = (void *)actor->frame;
    store_relaxed(&is_lent, true); /* relaxed: the ring's lock orders */
    for (; s->count < wanted; s->count++) {
        ssize_t n = 0;
        if (writes_by_steps(s, 2, cx, &n) == WEFT_PENDING) return WEFT_PENDING;
        answers[s->count] = n;
        told += (unsigned)n;
    }
    store_relaxed(&is_lent, false); /* relaxed: as above */
    one_ends();
    return WEFT_READY;
}

/* One of all. */
static weft_poll sends_all(struct actor *actor, weft_cx *cx)
{
    struct sending *s = (void *)actor->frame;
    struct weft_write_all *f = &s->all;
    store_relaxed(&is_lent, true); /* relaxed: the ring's lock orders */
    if (!f->stream) {
        *f = (struct weft_write_all){
            .stream = weft__fdstream_of(slot, WEFT__FDSTREAM_TCP), .buf = bytes, .len = 2};
    }
    if (weft_write_all_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    store_relaxed(&is_lent, false); /* relaxed: as above */
    answers[0] = f->ret;
    told += (unsigned)f->done;
    one_ends();
    return WEFT_READY;
}

/* ---- cases ---- */

/* By another than the worker, as long as nobody wakes it: by calls, which tell that there is no room left. */
static void sent_elsewhere(weft_poll (*body)(struct actor *, weft_cx *))
{
    begin(2, false);
    model_thread(works, NULL);
    model_thread(actor_begin, actor_with(body, 0, 0));
    model_join();
    model_assert(answers[0] > 0);
    finish(true);
}

static void short_sends(void)
{
    sent_elsewhere(sends_two);
}

static void send_of_all(void)
{
    sent_elsewhere(sends_all);
    model_assert(answers[0] == 2);
}

static void stops(void *arg)
{
    (void)arg;
    worker = 0;
    weft__driver_stop(&driver);
}

/* What was noted is not handed in any more: it is sent by a call, or it was. */
static void stopped_send(void)
{
    begin(2, false);
    model_thread(actor_begin, actor_of(0, 0));
    model_thread(stops, NULL);
    model_join();
    model_assert(answers[0] == 1 && answers[1] == 1);
    finish(true);
}

static const struct model_case cases[] = {
    CASE("ahead: one", one_send, 1),
    CASE("ahead: given up", given_up_send, 1),
    RANDOMISED("ahead: given up while another looks after the port", given_up_robbed),
    CASE("ahead: closed", closed_send, 1),
    CASE("ahead: no room", full_send, 1),
    CASE("ahead: taken back, then another", another_send, 1),
    CASE("ahead: by calls, each of them short", short_sends, 1),
    CASE("ahead: all by one, a call and a request", send_of_all, 1),
    CASE("ahead: its runtime stops", stopped_send, 1),
    MUTANT("ahead: taken back without a barrier", one_send, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("ahead: the same by who gives up", given_up_send, TAKES_BACK_WITHOUT_BARRIER),
    MUTANT("ahead: enters a lock that is not its own", closed_send, ENTERS_UNLENT),
    MUTANT("ahead: a lesson of a later look", one_send, LOOKS_BEHIND),
    MUTANT("ahead: waits behind a try, and has asked for nothing", full_send, WAITS_UNARMED),
    MUTANT("ahead: waits at once, and has asked for nothing", short_sends, BEGINS_UNARMED),
    MUTANT("ahead: waits without a look", another_send, WAITS_BLINDLY),
    MUTANT("ahead: the last one leaves it to nobody", closed_send, DISPOSES_NOT),
    MUTANT("ahead: given up and not taken back", given_up_send, KEEPS_IT_ASKED),
    MUTANT("ahead: its answer is dropped", given_up_send, DROPS_ITS_ANSWER),
    MUTANT("ahead: taken back and not ready", another_send, STAYS_UNREADY),
    {.name = "mutant: ahead: learns what was the case before it looked",
     .run = full_send,
     .pct_depth = 7,
     .executions_max = 1000000,
     .mutant = LEARNS_TOO_LATE,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    send_poll = sends_by_steps;
    return steps_main(argc, argv, cases, MODEL_COUNT(cases));
}
