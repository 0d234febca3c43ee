/* SPDX-License-Identifier: MIT
 *
 * direct_steps - the steps of io/direct.h, as io/stream.c puts them together, on broken twins of what they stand on: for model tests that have a slot by now, and say what a system call
 * of one buffer does.
 */
#ifndef MODEL_DIRECT_STEPS_H
#define MODEL_DIRECT_STEPS_H

#include "driver/op.h"
#include "driver/take.h"
#include "io/fdstream.h"
#include "task/context.h"

enum {
    ENTERS_UNLENT = TAKES_BACK_WITHOUT_BARRIER + 1, /* whoever's the lock is */
    WAITS_BLINDLY,  /* at once, without a look under the lock */
    LOOKS_BEHIND,   /* clears whatever came since the look before the try */
    BEGINS_UNARMED, /* waits at once, and has asked for nothing */
    WAITS_UNARMED,  /* the same behind a try */
    DISPOSES_NOT,   /* the last user does not see that it is */
};

static bool twin_try_loan(struct weft__waitlist *list, uint8_t me)
{
    if (model_mutant != ENTERS_UNLENT) return weft__waitlist_try_loan(list, me);
    store_relaxed(weft__bias_mark_of(me, WEFT__BIAS_INNER), &list->lock);
    return true;
}

static int twin_begin(struct weft__fdslot *s, uint32_t as, enum weft__side side, uint64_t bits,
                      struct weft__waiter *waiter, struct weft_waker waker)
{
    if (model_mutant != WAITS_BLINDLY)
        return weft__fdslot_begin_held(s, as, side, bits, waiter, waker);
    int r = weft__fdslot_enter_held(s, as);
    if (r < 0) return r;
    weft__waitlist_add_new_at(&s->list, weft__fdslot_queue(s, side), waiter, waker);
    return 1;
}

/* By the loan: nothing has come since. */
static void twin_clear_held(struct weft__fdslot *s, uint64_t seen, uint64_t bits)
{
    model_assert(load_relaxed(&s->word) == seen);
    weft__fdslot_clear_held(s, seen, bits);
}

static uint64_t twin_seen(const struct weft__fdslot *s, uint64_t seen)
{
    return model_mutant == LOOKS_BEHIND ? load_relaxed(&s->word) : seen;
}

#undef WEFT__JUMPS_BACK /* it changes no order */
#define WEFT__JUMPS_BACK                     __attribute__((noinline))
#define weft__waitlist_try_loan(list, me)    twin_try_loan(list, me)
#define weft__fdslot_begin_held(...)         twin_begin(__VA_ARGS__)
#define weft__fdslot_clear_held(s, ...)      twin_clear_held(s, __VA_ARGS__)
#define weft__fdslot_clear(s, seen, bits)    weft__fdslot_clear(s, twin_seen(s, seen), bits)
#define weft__fdslot_wait(s, side, bits, lesson, waiter, waker)                                    \
    weft__fdslot_wait(                                                                             \
        s, side, bits,                                                                             \
        &(struct weft__lesson){.seen = twin_seen(s, (lesson)->seen), .bits = (lesson)->bits},      \
        waiter, waker)
#define weft__fdslot_finish(s, as, seen, bits)                                                     \
    (weft__fdslot_finish(s, as, twin_seen(s, seen), bits) && model_mutant != DISPOSES_NOT)

#define weft__driver_arm(...)                                                                      \
    (model_mutant == WAITS_UNARMED ? (void)0 : weft__driver_arm(__VA_ARGS__))
#include "io/direct.h"
#undef weft__driver_arm
#define weft__driver_arm(...)                                                                      \
    (model_mutant == BEGINS_UNARMED ? (void)0 : weft__driver_arm(__VA_ARGS__))
#include "io/stream.c"

#endif
