/* SPDX-License-Identifier: MIT
 *
 * holds - a table of locks that tasks have; the idea is in holds.h.
 */
#include "task/holds.h"

#if defined(WEFT_DEBUG)
#include "base/atomic.h"
#include "sys/peek.h"
#include "task/here.h"
#include "task/name.h"
#include "task/state.h"

#include <stdio.h>

/* A power of two. Doubled: 48 KiB more in debug builds. */
#define GROUPS UINT32_C(128)

/* Locks of a group. Doubled: 48 KiB more, and a search twice as long; halved: of 2,000 locks that are held at once some are not noted. */
#define EACH UINT32_C(24)

/* Both words are written one after the other, by anybody: one who reads them may have a pair that never was. relaxed, all: what is read here is a guess, and is looked at before
 * anything is said. */
struct entry {
    const struct weft_task *_Atomic task; /* NULL: free */
    const _Atomic uintptr_t *_Atomic word;
};

/* What a lock says, as sync/holder.h has it. */
struct said {
    uintptr_t who;
    const char *at;
};

static struct entry groups[GROUPS][EACH];

static struct entry *group_of(const struct weft_task *task)
{
    return groups[((uint64_t)(uintptr_t)task * UINT64_C(0x9e3779b97f4a7c15)) >> 57];
}

_Static_assert(GROUPS == 1 << (64 - 57), "the hash has as many values as there are groups");

void weft__holds_add(const _Atomic uintptr_t *word)
{
    const struct weft_task *task = weft__here()->task;
    if (!task) return;
    struct entry *group = group_of(task);
    for (uint32_t i = 0; i < EACH; i++) {
        if (load_relaxed(&group[i].task)) continue;
        store_relaxed(&group[i].task, task);
        store_relaxed(&group[i].word, word);
        return;
    }
}

void weft__holds_remove(const _Atomic uintptr_t *word)
{
    const struct weft_task *task = weft__here()->task;
    if (!task) return;
    struct entry *group = group_of(task);
    for (uint32_t i = 0; i < EACH; i++)
        if (load_relaxed(&group[i].task) == task && load_relaxed(&group[i].word) == word)
            store_relaxed(&group[i].task, NULL);
}

static bool says(const _Atomic uintptr_t *word, const struct weft_task *task, struct said *said)
{
    if (weft__peek((const void *)word, said, sizeof(*said)) < 0) return false;
    if ((said->who & (((uintptr_t)1 << 48) - 1)) != (uintptr_t)task) return false;
    return said->who >> 48 == (uint16_t)weft__state_generation(task);
}

static void tell(const struct weft_task *task, const struct said *said)
{
    flockfile(stderr); /* one line, whoever else prints */
    fprintf(stderr, "weft: task '%s' (spawned at %s:%u) ends and still has a lock",
            weft__name_of(task), task->site->file, task->site->line);
    if (said->at) fprintf(stderr, " that it took at %s", said->at);
    fputs(": whoever waits for it waits for ever\n", stderr);
    funlockfile(stderr);
}

void weft__holds_check(const struct weft_task *task)
{
    struct entry *group = group_of(task);
    struct said said;

    for (uint32_t i = 0; i < EACH; i++) {
        if (load_relaxed(&group[i].task) != task) continue;
        if (says(load_relaxed(&group[i].word), task, &said)) tell(task, &said);
        store_relaxed(&group[i].task, NULL);
    }
}

void weft__holds_forget(void)
{
    for (uint32_t i = 0; i < GROUPS * EACH; i++)
        store_relaxed(&groups[i / EACH][i % EACH].task, NULL);
}
#endif
