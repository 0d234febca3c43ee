/* SPDX-License-Identifier: MIT
 *
 * unread - failures that nobody reads: one line for the first of a place, a number for the rest.
 *
 * A server whose clients all fail the same way should say so, once. The place is the spawn site,
 * which is constant and the program's own, so the numbers are kept here: a record for each site that
 * had a failure, with its text copied (the site's code may be unloaded), up to
 * WEFT__UNREAD_SITES_MAX of them; failures of further sites are counted together. When the runtime
 * stops it says how many more there were of each.
 * A result that is joined is read. One whose handle was dropped is not, whether before the end or
 * after it: owner and completer agree at the state word on who reports it (task/join.h).
 *
 * Threads: any; one lock, taken only for failures. A handle that is dropped after its runtime has
 * stopped is reported at once: nobody will come to tell the number.
 */
#ifndef WEFT_SCHED_UNREAD_H
#define WEFT_SCHED_UNREAD_H

#include "sys/lock.h"
#include "types.h"

struct weft__unread_site;

struct weft__unread {
    struct weft__lock lock;          /* guards all but `total` */
    struct weft__unread_site *sites; /* the newest first */
    uint32_t site_count;             /* at most WEFT__UNREAD_SITES_MAX */
    bool closed;                     /* the numbers have been told */
    uint64_t elsewhere;              /* of sites without a record */
    _Atomic uint64_t total;          /* all that were reported or counted */
};

void weft__unread_init(struct weft__unread *unread);

/* A task of this site ended with `failure`, below zero, and nobody will read it. Holds: no lock. */
void weft__unread_add(struct weft__unread *unread, const struct weft_site *site, int64_t failure);

/* Tell the numbers and give the records back. */
void weft__unread_done(struct weft__unread *unread);

#endif
