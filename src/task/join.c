/* SPDX-License-Identifier: MIT
 *
 * join - the transitions of the join word; the drawing and the reasons are in join.h.
 */
#include "task/join.h"

/* No address, with or without a waker's tag, is as small as these. */
#define JOIN_NONE     ((uintptr_t)0)
#define JOIN_DETACHED ((uintptr_t)2)
#define JOIN_TAKEN    ((uintptr_t)4)

void weft__join_init(struct weft_task *child, bool detached)
{
    store_relaxed(&child->join, detached ? JOIN_DETACHED : JOIN_NONE); /* relaxed: not shared yet */
}

/* The word is TAKEN: what the joiner may do. */
static enum weft__join after_taken(const struct weft_task *child)
{
    return weft__state_is_complete(child) ? WEFT__JOIN_READY : WEFT__JOIN_YIELD;
}

enum weft__join weft__join_poll(struct weft_task *child, struct weft_waker joiner)
{
    uintptr_t was = JOIN_NONE;

    weft_assert(!weft__waker_is_none(joiner));
    if (weft__state_is_complete(child)) return WEFT__JOIN_READY;
    /* [join] with complete: the waker */
    if (cas_release(&child->join, &was, joiner.word)) return WEFT__JOIN_PENDING;

    /* Our own word from an earlier poll, perhaps an old value: then the completer's claim comes
     * after this poll's begin_poll (else that one's acquire would have shown us TAKEN), so it
     * leaves NOTIFIED for the end of this poll, and there is another one. */
    if (was == joiner.word) return WEFT__JOIN_PENDING;
    weft_assert(was == JOIN_TAKEN); /* one joiner at a time, and none of a detached child */
    return after_taken(child);
}

enum weft__join weft__join_withdraw(struct weft_task *child, struct weft_waker joiner)
{
    uintptr_t was = joiner.word;

    /* relaxed: all that it says to the completer is "nobody", with which no memory comes */
    if (cas_relaxed(&child->join, &was, JOIN_NONE)) return WEFT__JOIN_LEFT;
    if (was == JOIN_NONE) return WEFT__JOIN_LEFT; /* it never waited */
    weft_assert(was == JOIN_TAKEN);
    return after_taken(child);
}

enum weft__state_next weft__join_detach(struct weft_task *child)
{
    uintptr_t was = JOIN_NONE;

    /* relaxed: DETACHED carries nothing. WAITER stays (somebody with another reference watches),
     * and so does TAKEN: the state word decides. */
    (void)cas_relaxed(&child->join, &was, JOIN_DETACHED);
    weft_assert(was != JOIN_DETACHED); /* a handle is dropped once */
    return weft__state_unref(child);
}

struct weft__join_done weft__join_complete(struct weft_task *child)
{
    struct weft__join_done done = {.joiner = weft__waker_none(), .unread = false, .free = false};
    /* relaxed: DETACHED is final, and any other value is only a reason to exchange */
    uintptr_t was = load_relaxed(&child->join);

    /* [join] with join_poll: the waker */
    if (was != JOIN_DETACHED) was = exchange_acquire(&child->join, JOIN_TAKEN);
    weft_assert(was != JOIN_TAKEN); /* a task ends once */
    done.unread = was == JOIN_DETACHED;
    if (was != JOIN_DETACHED && was != JOIN_NONE)
        done.joiner = weft__waker_claim((struct weft_waker){was});
    done.free = weft__state_complete(child) == WEFT__STATE_FREE;
    return done;
}
