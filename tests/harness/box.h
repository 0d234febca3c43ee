/* SPDX-License-Identifier: MIT
 *
 * box - a primitive on the wait list, as the library's own will be: things are put in and taken out, first come, first served.
 *
 *     weft_await(f->take, box_take, &box);      0: one was taken; -ECANCELED, -ETIME: none was
 *     box_put(&box);                            anywhere, any thread
 * It knows the probe. It counts both sides, so that a test can compare what was taken with what its tasks were told.
 */
#ifndef WEFT_TESTS_BOX_H
#define WEFT_TESTS_BOX_H

#include "sync/waitlist.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

struct box {
    struct weft__waitlist list;
    uint64_t held; /* things in it        [lock, as all] */
    uint64_t put;
    uint64_t taken;
};

static inline void box_init(struct box *box)
{
    *box = (struct box){.held = 0};
    weft__waitlist_init(&box->list);
}

/* Nobody waits, and nothing got lost. Gives how many are left. */
static inline uint64_t box_done(struct box *box)
{
    weft__waitlist_done(&box->list);
    ASSERT_EQ(box->put, box->taken + box->held);
    return box->held;
}

static inline void box_put(struct box *box)
{
    weft__waitlist_lock(&box->list);
    box->held++;
    box->put++;
    if (weft__waitlist_empty(&box->list)) {
        weft__waitlist_unlock(&box->list);
    } else {
        weft__waitlist_unlock_wake_first(&box->list, &weft__sched);
    }
}

struct box_take {
    WEFT_FRAME(int);
    struct box *box;
    struct weft__waiter waiter;
};
#define WEFT__PROBES_box_take ~, WEFT__ARM_PROBES

/* holds: the lock, which goes. */
static inline weft_poll box_take_ends(struct box_take *f, int ret)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    bool had_turn = f->weft__at && weft__waitlist_settle(&f->box->list, &f->waiter);

    if (had_turn && ret < 0) (void)weft__waitlist_give_turn(&f->box->list, &chain);
    weft__waitlist_unlock_push(&f->box->list, &chain, &weft__sched);
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

/* holds: the lock. Nobody is overtaken: a newcomer waits behind those who do. */
static inline bool box_may_take(struct box_take *f)
{
    if (f->box->held == 0) return false;
    if (f->weft__at) return weft__waiter_has_turn(&f->box->list, &f->waiter);
    return weft__waitlist_empty(&f->box->list);
}

__attribute__((unused)) static weft_poll box_take_poll(void *frame, weft_cx *cx)
{
    struct box_take *f = frame;
    int why = weft_cx_cancelled(cx);

    if (why && !f->weft__at) {
        f->ret = why;
        return WEFT_READY;
    }
    weft__waitlist_lock(&f->box->list);
    if (!f->weft__at) weft__waiter_init(&f->waiter);
    if (why) return box_take_ends(f, why);
    if (box_may_take(f)) {
        f->box->held--;
        f->box->taken++;
        return box_take_ends(f, 0);
    }
    if (!cx->probe && !(f->weft__at && weft__waiter_queued(&f->box->list, &f->waiter))) {
        bool again = f->weft__at;
        f->weft__at = 1;
        if (again) {
            weft__waitlist_add_first(&f->box->list, &f->waiter,
                                     cx->waker); /* somebody was faster */
        } else {
            weft__waitlist_add(&f->box->list, &f->waiter, cx->waker);
        }
    }
    weft__waitlist_unlock(&f->box->list);
    return WEFT_PENDING;
}

#endif
