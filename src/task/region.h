/* SPDX-License-Identifier: MIT
 *
 * region - a stretch of one task with a reason of its own to stop: a deadline, a token, a shield.
 *
 * A region is made of a LEAF: an ordinary waiting future that is READY once the region asks (a sleep
 * for a deadline, a token's wait for a token). To look is to poll the leaf, to begin is to poll it for
 * the first time, to leave is to poll it with a reason to stop, upon which a waiting leaf settles at
 * once. So regions wake, race and end by the rules of all leaves, and this file knows no timer, no
 * token and no lock.
 *
 *     UNBEGUN  nothing is registered; a block that never suspends stays so and costs two stores
 *     BEGUN    the leaf has the task's waker
 *     ASKS     the leaf is over; for as long as the region lasts
 *     UNBEGUN -> ASKS           [look]            before each poll inside: a probe of the leaf
 *     UNBEGUN -> BEGUN | ASKS   [begin]           behind the first poll inside that answers PENDING
 *     BEGUN   -> ASKS           [look]            before each poll inside
 *     BEGUN   -> UNBEGUN        [leave, pause]    the leaf was stopped
 *
 * WHY  Blocks hang together from the inside out. What is polled inside is told the reason of the
 * outermost that asks, up to the nearest shield, whose own deadline still counts:
 *     task (cx->why) | timeout | token | shield | timeout | here
 *     <------------ not heard ------->| <- outermost first
 * NO WAKE IS LOST  A leaf that is BEGUN is looked at before the poll, and has the waker meanwhile: what
 * comes later brings another poll. One that begins behind the poll, and is over at once, has the poll
 * done again.
 * All that lie outside of one that is begun are begun, too, shields or not: their time runs.
 * TOLD  A scope has children beside the one who is inside: it is told what lies further out asks for before each poll
 * inside, also when a shield between the two keeps that poll from hearing it.
 *
 * On a fiber the chain is the fiber's. On a plain thread it is the thread's, and each call has a waker
 * of its own; so what a call begins it pauses before it returns. A stackless function has no chain: a
 * combinator around a child frame holds one region, and derives the child's reason (flow/around.c).
 *
 * Threads: the one that is on the fiber's stack, or polls. Whoever makes a region ask works on its leaf.
 * Rejected: an atomic word that others set (who may still touch a block that is left? the leaf's lock
 * answers that already); a table of functions per kind (a future is one); arming on entry (a timer for
 * each block whose work was ready at once).
 */
#ifndef WEFT_TASK_REGION_H
#define WEFT_TASK_REGION_H

#include "types.h"

/* All of it belongs to whoever is inside. */
struct weft__region {
    struct weft__region *outer; /* the next further out on this fiber or thread; NULL: none */
    struct weft__fiber *fiber;  /* whose block it is; NULL: a thread's, or a combinator's */
    weft_pollfn *poll;          /* its leaf, which knows the probe; NULL: it never asks */
    void *leaf;
    /* What lies further out asks for `why`; NULL: nobody wants to know. */
    void (*told)(struct weft__region *region, int why);
    int why;     /* what it asks with: -ECANCELED or -ETIME */
    bool shield; /* what lies further out is not heard inside */
    bool relays; /* this one, or one further out, has a `told` */
    bool begun;
    bool asks;
};

/* Not entered: for a combinator. `leaf` is a frame that was not polled yet, pinned until settle. */
void weft__region_init(struct weft__region *region, weft_pollfn *poll, void *leaf, int why,
                       bool shield);

/* Does it ask? */
bool weft__region_asks(struct weft__region *region, weft_cx *cx);

/* Begin, if it has not. True: it asks, and did not before. */
bool weft__region_begin(struct weft__region *region, weft_cx *cx);

/* The leaf lets go of the waker. A region that asks goes on asking. */
void weft__region_settle(struct weft__region *region, weft_cx *cx);

/* What a child is told whose parent is told `outer`. */
static inline int weft__region_why(const struct weft__region *region, int outer)
{
    int own = region->asks ? region->why : 0;
    return outer && !region->shield ? outer : own;
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* Enter and leave, in turns like brackets. Pins the region in between. */
void weft__region_enter(struct weft__region *region);
void weft__region_leave(struct weft__region *region);

/* Poll a frame inside of the innermost region and those around it. `cx->why` is the task's own. */
weft_poll weft__regions_poll(struct weft__region *innermost, weft_pollfn *poll, void *frame,
                             weft_cx *cx);

/* Settle all leaves that are begun: the waker goes away. */
void weft__regions_pause(struct weft__region *innermost, weft_cx *cx);

#endif
