/* SPDX-License-Identifier: MIT
 *
 * street - tasks that have a home, in a place with thieves: who yields, who makes noise, somebody outside who rings.
 *
 *     struct street s;
 *     street_opens(&s);                                  noise that is worth stealing, and BELLS bells that ring in turn
 *     task[i] = weft_go_as((.pinned = true), stays, &bells[i]);
 *     join_all(task, count);
 *     street_closes(&s);
 *     ASSERT_EQ(load_relaxed(&strays), 0);
 * relaxed everywhere: counts and flags that are looked at again, or behind a join.
 */
#ifndef WEFT_TESTS_STREET_H
#define WEFT_TESTS_STREET_H

#include "bell.h"
#include "crew.h"

#include <unistd.h>

static _Atomic bool over;       /* whoever goes on until then ends */
static _Atomic uint32_t strays; /* polls on a thread where they should not have been */

static inline void street_clear(void)
{
    store_relaxed(&over, false);
    store_relaxed(&strays, 0);
}

/* A system call, so that no compiler remembers it. */
__attribute__((noinline, unused)) static pid_t thread_now(void)
{
    return gettid();
}

static inline void note_unless_on(pid_t home)
{
    if (thread_now() != home) fetch_add_relaxed(&strays, 1);
}

/* ---- who goes on until it is over ---- */

static inline int yields(_Atomic uint32_t *mine)
{
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(mine, 1);
        if (weft_yield() < 0) break;
    }
    return 0;
}

static inline int counts_rings(struct bell *bell, _Atomic uint32_t *count)
{
    while (weft_run(hear, .bell = bell) == 0 && !load_relaxed(&over))
        fetch_add_relaxed(count, 1);
    return 0;
}

/* Ordinary work that is worth stealing. */
static inline int noise(void)
{
    while (!load_relaxed(&over)) {
        for (int i = 0; i < 300; i++)
            cpu_pause();
        if (weft_yield() < 0) break;
    }
    return 0;
}

/* ---- somebody who rings ---- */

#define BELLS 16

static struct bell bells[BELLS];

static inline void *rings_in_turn(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !load_relaxed(&over); i++) {
        bell_ring(&bells[i % BELLS]);
        if (i % BELLS == 0) sched_yield();
    }
    for (unsigned i = 0; i < BELLS; i++)
        bell_ring(&bells[i]);
    return NULL;
}

struct street {
    weft_task *noise[4];
    pthread_t ringer;
};

static inline void street_opens(struct street *s)
{
    street_clear();
    for (int i = 0; i < BELLS; i++)
        bell_init(&bells[i]);
    for (int i = 0; i < 4; i++)
        s->noise[i] = weft_go(noise);
    ASSERT_OK(pthread_create(&s->ringer, NULL, rings_in_turn, NULL));
}

/* Each has ended well. */
static inline void join_all(weft_task **task, int count)
{
    for (int i = 0; i < count; i++) {
        int got = -1;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
    }
}

static inline void street_closes(struct street *s)
{
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(s->ringer, NULL));
    join_all(s->noise, 4);
}

#endif
