/* SPDX-License-Identifier: MIT
 *
 * linked - a table of tasks and their linked waiters; the idea is in linked.h.
 */
#include "task/linked.h"

#if defined(WEFT_DEBUG)
#include "sys/lock.h"
#include "task/name.h"

#include <stdio.h>
#include <stdlib.h>

/* A power of two. Doubled: 200 KiB more in debug builds. */
#define GROUPS UINT32_C(256)

/* Tasks of a group. Doubled: 200 KiB more, and a search twice as long; halved: of 8,000 tasks that wait at once some are not counted. */
#define EACH UINT32_C(48)

struct entry {
    const struct weft_task *task;
    uint32_t waiters; /* 0: it is kept for the next wait of the same task, until somebody wants the place */
};

struct group {
    struct weft__lock lock;
    struct entry at[EACH];
};

static struct group groups[GROUPS];

static struct group *group_of(const struct weft_task *task)
{
    return &groups[((uint64_t)(uintptr_t)task * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
}

_Static_assert(GROUPS == 1 << (64 - 56), "the hash has as many values as there are groups");

/* Holds: the lock. Its entry, or one that is free, or NULL. */
static struct entry *find(struct group *g, const struct weft_task *task)
{
    struct entry *free = NULL;
    for (uint32_t i = 0; i < EACH; i++) {
        if (g->at[i].task == task) return &g->at[i];
        if (g->at[i].waiters == 0) free = &g->at[i];
    }
    return free;
}

void weft__linked_add(struct weft_task *task)
{
    if (!task) return;
    struct group *g = group_of(task);
    weft__lock_take(&g->lock);
    struct entry *e = find(g, task);
    if (e) {
        e->waiters = e->task == task ? e->waiters + 1 : 1;
        e->task = task;
    }
    weft__lock_drop(&g->lock);
}

/* Of one that was not counted, for want of room, nothing is taken away: then there may be less than there are, never more. */
void weft__linked_remove(struct weft_task *task)
{
    if (!task) return;
    struct group *g = group_of(task);
    weft__lock_take(&g->lock);
    struct entry *e = find(g, task);
    if (e && e->task == task && e->waiters > 0) e->waiters--;
    weft__lock_drop(&g->lock);
}

_Noreturn static void complain(const struct weft_task *task, uint32_t waiters)
{
    fprintf(stderr,
            "weft: task '%s' (spawned at %s:%u) ends while %u of its waits %s not over: a future that was polled has to be polled until it is "
            "READY\n",
            weft__name_of(task), task->site->file, task->site->line, waiters, waiters == 1 ? "is" : "are");
    abort();
}

void weft__linked_check(const struct weft_task *task)
{
    struct group *g = group_of(task);
    weft__lock_take(&g->lock);
    struct entry *e = find(g, task);
    uint32_t waiters = e && e->task == task ? e->waiters : 0;
    weft__lock_drop(&g->lock);
    if (waiters > 0) complain(task, waiters);
}

void weft__linked_forget(void)
{
    for (uint32_t i = 0; i < GROUPS; i++) {
        weft__lock_init(&groups[i].lock, WEFT__RANK_NONE);
        for (uint32_t k = 0; k < EACH; k++)
            groups[i].at[k] = (struct entry){.task = NULL};
    }
}
#endif
