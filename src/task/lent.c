/* SPDX-License-Identifier: MIT
 *
 * lent - a table of scopes that were not joined; the idea is in lent.h.
 */
#include "task/lent.h"

#if defined(WEFT_DEBUG)
#include "sys/lock.h"
#include "task/name.h"

#include <stdio.h>
#include <stdlib.h>

/* A power of two. Doubled: whoever gives up a stack looks at twice as many. */
#define GROUPS UINT32_C(64)

/* Scopes of a group. Doubled: 16 KiB more in debug builds; halved: programs with thousands of scopes go without more of them. */
#define EACH UINT32_C(32)

/* Bytes of memory whose scopes are in one group; most frames lie in two of them. */
#define SPAN 1024

struct group {
    struct weft__lock lock;
    uint32_t count;
    const struct weft__lent *at[EACH];
};

static struct group groups[GROUPS];
static _Atomic uint32_t listed; /* relaxed: whoever has lent something has counted it */

static struct group *group_of(uintptr_t address)
{
    return &groups[(address / SPAN) % GROUPS];
}

void weft__lent_add(struct weft__lent *lent)
{
    struct group *g = group_of((uintptr_t)lent);

    if (lent->mark == lent) return;
    lent->mark = lent;
    weft__lock_take(&g->lock);
    if (g->count < EACH) {
        g->at[g->count++] = lent;
        fetch_add_relaxed(&listed, 1);
    }
    weft__lock_drop(&g->lock);
}

/* Holds: the lock. */
static void take_out(struct group *g, uint32_t i)
{
    g->at[i] = g->at[--g->count];
    fetch_sub_relaxed(&listed, 1);
}

void weft__lent_remove(struct weft__lent *lent)
{
    struct group *g = group_of((uintptr_t)lent);

    if (lent->mark != lent) return;
    lent->mark = NULL;
    weft__lock_take(&g->lock);
    for (uint32_t i = g->count; i-- > 0;)
        if (g->at[i] == lent) take_out(g, i);
    weft__lock_drop(&g->lock);
}

_Noreturn static void complain(const struct weft__lent *lent, const struct weft_task *task)
{
    flockfile(stderr); /* one line, whoever else prints */
    if (task) {
        const struct weft_site *site = task->site;
        fprintf(stderr, "weft: task '%s' (spawned at %s:%u)", weft__name_of(task), site->file,
                site->line);
    } else {
        fputs("weft: a fiber", stderr);
    }
    fputs(" ends with a scope in its memory that was not joined", stderr);
    if (lent->file) fprintf(stderr, " (%s:%u)", lent->file, lent->line);
    fputs(": its children would write to what comes next\n", stderr);
    funlockfile(stderr);
    abort();
}

/* What is in the caller's memory, and has no mark, was on the heap before: nobody has joined it there. */
static void check_group(struct group *g, uintptr_t lo, size_t bytes, const struct weft_task *task)
{
    weft__lock_take(&g->lock);
    for (uint32_t i = g->count; i-- > 0;) {
        const struct weft__lent *lent = g->at[i];
        if ((uintptr_t)lent - lo >= bytes) continue;
        if (lent->mark == lent) complain(lent, task);
        take_out(g, i);
    }
    weft__lock_drop(&g->lock);
}

void weft__lent_check(const void *lo, size_t bytes, const struct weft_task *task)
{
    uintptr_t at = (uintptr_t)lo;
    size_t count = (at + bytes) / SPAN - at / SPAN + 1;

    if (load_relaxed(&listed) == 0) return; /* relaxed: our own would be in it */
    for (size_t i = 0; i < count && i < GROUPS; i++)
        check_group(group_of(at + i * SPAN), at, bytes, task);
}

void weft__lent_forget(void)
{
    for (uint32_t i = 0; i < GROUPS; i++) {
        weft__lock_init(&groups[i].lock, WEFT__RANK_NONE);
        groups[i].count = 0;
    }
    store_relaxed(&listed, 0); /* relaxed: there is one thread */
}
#endif
