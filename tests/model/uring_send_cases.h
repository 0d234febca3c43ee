/* SPDX-License-Identifier: MIT
 *
 * uring_send_cases - one who sends on io_uring, and what is done to it: for model tests in which the ring's lock is nobody's, or lent.
 */
#ifndef MODEL_URING_SEND_CASES_H
#define MODEL_URING_SEND_CASES_H

#include "uring_senders.h"

/* The other side reads, so that there is room, and then there is none: so often. */
static void drains(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++) {
        model_lock(&kernel);
        is_full = true;
        model_unlock(&kernel);
        model_lock(&kernel);
        is_full = false;
        tell_requests(FIRST_FD);
        model_unlock(&kernel);
    }
}

static void closes(void *arg)
{
    weft__driver_close(arg);
}

static void one_send(void)
{
    begin(1, false);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(robs, NULL);
    model_join();
    model_assert(answers[0] == 1);
    finish(true);
}

static void given_up_send(void)
{
    begin(1, false);
    actors[0] = actor_of(1, 0);
    model_thread(sends_and_works, actors[0]);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(answers[0] == 1 || answers[0] < 0);
    finish(true);
}

static void given_up_robbed(void)
{
    begin(1, false);
    actors[0] = actor_of(1, 0);
    model_thread(sends_and_works, actors[0]);
    model_thread(actor_cancel, actors[0]);
    model_thread(robs, NULL);
    model_join();
    finish(true);
}

static void closed_send(void)
{
    begin(1, false);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(closes, slot);
    model_join();
    model_assert(answers[0] == 1 || answers[0] == -EBADF);
    finish(false);
}

/* The first finds no room and waits for it, so that a request for room is there, which has answered and does not answer again; another has no
 * time; the next one goes through all the same. */
static void another_send(void)
{
    begin(3, true);
    model_thread(sends_and_works, actor_of(0, 1));
    model_thread(drains, (void *)1);
    model_join();
    model_assert(answers[0] == 1 && answers[2] == 1);
    finish(true);
}

/* There is room, and none, and room again, while it is under way: each time it is told. */
static void full_send(void)
{
    begin(1, true);
    model_thread(sends_and_works, actor_of(0, 0));
    model_thread(drains, (void *)2);
    model_join();
    model_assert(answers[0] == 1);
    finish(true);
}

#endif
