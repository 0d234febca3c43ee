/* SPDX-License-Identifier: MIT
 *
 * join - the transitions of the join word; the drawing and the reasons are in join.h.
 */
#include "task/join.h"

#include "task/watch.h"

#define JOIN_NONE     WEFT__JOIN_NONE
#define JOIN_DETACHED WEFT__JOIN_DETACHED
#define JOIN_TAKEN    WEFT__JOIN_TAKEN

void weft__join_init(struct weft_task *child, bool detached)
{
    store_relaxed(&child->join, detached ? JOIN_DETACHED : JOIN_NONE); /* relaxed: not shared yet */
}

/* The word is TAKEN: what the joiner may do. */
static enum weft__join after_taken(const struct weft_task *child)
{
    return weft__state_is_complete(child) ? WEFT__JOIN_READY : WEFT__JOIN_YIELD;
}

/* The joiner is kept with the watchers, unless they have left meanwhile. */
static enum weft__join join_poll_watched(struct weft_task *child, struct weft_waker joiner)
{
    if (weft__watch_set_joiner(child, joiner)) return WEFT__JOIN_PENDING;
    return weft__join_poll(child, joiner);
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
    if (weft__join_watched(was)) return join_poll_watched(child, joiner);
    weft_assert(was == JOIN_TAKEN); /* one joiner at a time, and none of a detached child */
    return after_taken(child);
}

enum weft__join weft__join_withdraw(struct weft_task *child, struct weft_waker joiner)
{
    uintptr_t was = joiner.word;

    /* relaxed: all that it says to the completer is "nobody", with which no memory comes */
    if (cas_relaxed(&child->join, &was, JOIN_NONE)) return WEFT__JOIN_LEFT;
    if (was == JOIN_NONE) return WEFT__JOIN_LEFT; /* it never waited */
    if (weft__join_watched(was)) {
        if (weft__watch_drop_joiner(child, joiner)) return WEFT__JOIN_LEFT;
        return weft__join_withdraw(child, joiner); /* the watchers have left meanwhile */
    }
    weft_assert(was == JOIN_TAKEN);
    return after_taken(child);
}

bool weft__join_let_go(struct weft_task *child)
{
    uintptr_t was = JOIN_NONE;

    /* DETACHED carries nothing; TAKEN does: [join-result] with complete, the result. WAITER stays:
     * somebody with another reference joins. */
    if (cas_acquire(&child->join, &was, JOIN_DETACHED)) return false;
    if (weft__join_watched(was)) return !weft__watch_let_go(child) && weft__join_let_go(child);
    weft_assert(was != JOIN_DETACHED); /* a handle is dropped once */
    return was == JOIN_TAKEN;
}

enum weft__state_next weft__join_detach(struct weft_task *child)
{
    (void)weft__join_let_go(child);
    return weft__state_unref(child);
}

/* The word is DETACHED or WATCHED, or changes. Gives what it was before TAKEN; `done` has what the watchers
 * had to say. */
static uintptr_t take_slow(struct weft_task *child, uintptr_t was, struct weft__join_done *done)
{
    for (;;) { /* lock-free: a failed CAS means that somebody came or left */
        /* relaxed: zero references are final, so nobody can come to watch */
        if (was == JOIN_DETACHED && weft__state_references(child) == 0) return was;
        if (weft__join_watched(was)) {
            if (weft__watch_take(child, done)) return JOIN_NONE;
            was = load_relaxed(&child->join); /* relaxed: a guess, the CAS decides */
        } else if (cas_acq_rel(&child->join, &was, JOIN_TAKEN)) { /* [join], [join-result], as below */
            return was;
        }
    }
}

struct weft__join_done weft__join_complete(struct weft_task *child)
{
    struct weft__join_done done = {.joiner = weft__waker_none()};
    /* relaxed: a guess, the CAS decides */
    uintptr_t was = load_relaxed(&child->join);

    /* [join] with join_poll: the waker; [join-result] with let_go: the result */
    if ((was & WEFT__JOIN_WATCHED) || !cas_acq_rel(&child->join, &was, JOIN_TAKEN))
        was = take_slow(child, was, &done);
    weft_assert(was != JOIN_TAKEN); /* a task ends once */
    if (was == JOIN_DETACHED) {
        done.unread = true;
    } else if (was != JOIN_NONE) {
        done.joiner = weft__waker_claim((struct weft_waker){was});
    }
    done.free = weft__state_complete(child) == WEFT__STATE_FREE;
    return done;
}
