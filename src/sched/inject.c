/* SPDX-License-Identifier: MIT
 *
 * inject - push by exchange, pop under the flag.
 */
#include "sched/inject.h"

#include "base/assert.h"

#include <stddef.h>

void weft__inject_init(struct weft__inject *q)
{
    store_relaxed(&q->tail, NULL); /* relaxed, all three: not shared yet */
    store_relaxed(&q->head, NULL);
    store_relaxed(&q->draining, 0);
}

void weft__inject_push_chain(struct weft__inject *q, struct weft_task *first,
                             struct weft_task *last)
{
    store_relaxed(&last->link, NULL); /* relaxed: the exchange orders it */
    /* [inject-tail] Release, with the next push: its store to last->link comes after ours. Acquire, with
     * the push before: the same from the other end; and with pop's CAS to NULL: it is done with head. */
    struct weft_task *before = exchange_acq_rel(&q->tail, last);
    /* `before` cannot be taken, so it is alive, until its link is stored.
     * [inject-link] with pop: publishes the chain and its tasks */
    store_release(before ? &before->link : &q->head, first);
}

void weft__inject_push(struct weft__inject *q, struct weft_task *t)
{
    weft__inject_push_chain(q, t, t);
}

/* Come to the head: true if nobody else is there. If not, whoever is there will look again. */
static bool drain_begin(struct weft__inject *q)
{
    /* [inject-flag] acquire, with drain_end: the head as it was left. Release, with drain_end: whoever
     * is there looks again, and sees what this thread could have seen. */
    return fetch_add_acq_rel(&q->draining, 1) == 0;
}

/* Leave the head, unless somebody has come since `came`: then stay, and look again. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the CAS writes to it, which clang-tidy does not see */
static bool drain_end(struct weft__inject *q, uint32_t *came)
{
    return cas_acq_rel(&q->draining, came, 0); /* [inject-flag] with drain_begin: see there */
}

/* holds: the flag. Take t, whose link was NULL, if it is the last one: true, and the queue is empty. */
static bool detach_last(struct weft__inject *q, struct weft_task *t)
{
    struct weft_task *last = t;

    if (load_relaxed(&q->tail) != t) return false; /* relaxed: a look that saves the CAS at a gap */
    store_relaxed(&q->head, NULL);                 /* relaxed: the CAS orders it */
    /* [inject-tail] with push: whoever finds NULL stores the head after us */
    if (cas_release(&q->tail, &last, NULL)) return true;
    store_relaxed(&q->head, t); /* relaxed: no pusher stores the head while t is queued */
    return false;
}

/* holds: the flag. The successor of t, or NULL if t is before a gap; t itself if it was the last one and
 * is detached now. */
static struct weft_task *step_over(struct weft__inject *q, struct weft_task *t)
{
    struct weft_task *next = load_acquire(&t->link); /* [inject-link] with push: the successor */

    if (next) return next;
    if (detach_last(q, t)) return t;
    return load_acquire(&t->link); /* [inject-link] with push: the gap may be closed by now */
}

/* holds: the flag. */
static uint32_t drain(struct weft__inject *q, uint32_t max, struct weft_task **into)
{
    uint32_t count = 0;
    struct weft_task *t = load_acquire(&q->head); /* [inject-link] with push: the first task */

    while (t && count < max) {
        struct weft_task *next = step_over(q, t);
        if (!next) break;
        into[count++] = t;
        if (next == t) return count; /* empty: the head is the next pusher's */
        t = next;
    }
    /* relaxed: the flag orders it, and pushers store the head of an empty queue only */
    if (count > 0) store_relaxed(&q->head, t);
    return count;
}

uint32_t weft__inject_pop(struct weft__inject *q, uint32_t max, struct weft_task **into)
{
    uint32_t count = 0;
    uint32_t came = 1;

    if (weft__inject_idle(q) || !drain_begin(q)) return 0;
    do {
        count += drain(q, max - count, into + count);
    } while (!drain_end(q, &came));
    return count;
}

/* holds: the flag. */
static bool oldest_is_loose(struct weft__inject *q)
{
    struct weft_task *t = load_acquire(&q->head); /* [inject-link] with push: its link is set up */

    if (!t) return false;
    /* relaxed, both: nothing behind them is looked at */
    return load_relaxed(&t->link) || load_relaxed(&q->tail) == t;
}

bool weft__inject_empty(struct weft__inject *q)
{
    bool loose;
    uint32_t came = 1;

    if (weft__inject_idle(q) || !drain_begin(q)) return true;
    do {
        loose = oldest_is_loose(q);
    } while (!drain_end(q, &came));
    return !loose;
}

uint64_t weft__inject_check(struct weft__inject *q)
{
    uint64_t count = 0;
    struct weft_task *last = NULL;

    for (struct weft_task *t = load_relaxed(&q->head); t;) { /* relaxed: nobody is at work */
        last = t;
        count++;
        t = load_relaxed(&t->link); /* relaxed: the same */
    }
    weft_assert(load_relaxed(&q->tail) == last); /* relaxed: nobody is at work */
    weft_assert(!load_relaxed(&q->draining));    /* relaxed: the same */
    return count;
}
