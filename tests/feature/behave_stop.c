/* SPDX-License-Identifier: MIT
 *
 * Shutdown as a program meets it: with tasks that are queued, wait, yield, ignore the cancel for a
 * while or spawn on; with handles and wakers that are used meanwhile and afterwards; of several
 * runtimes at once.
 */
#include "bell.h"
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>

/* relaxed everywhere: counts and flags that are looked at again, or behind a join or a stop. */
static _Atomic uint64_t born;
static _Atomic uint64_t ended;
static _Atomic bool let_go;

static void clear(void)
{
    store_relaxed(&born, 0);
    store_relaxed(&ended, 0);
    store_relaxed(&let_go, false);
}

struct answers_too {
    WEFT_FRAME(int);
    int value;
};
static weft_async(answers_too)
{
    weft_begin;
    weft_return(f->value);
    weft_end;
}

/* ---- those that spawn on --------------------------------------------------------------------------- */

/* A link spawns the next and ends: at every moment one of the chain lives, and never the same one for
 * long. The last waits for a ring from outside, whatever it is told. */
struct link {
    WEFT_FRAME(int);
    uint32_t left;
    struct bell *bell;
    struct hear hear;
};
static weft_async(link)
{
    weft_begin;
    fetch_add_relaxed(&born, 1);
    if (f->left == 0) weft_await(f->hear, hear, .bell = f->bell, .deaf = true);
    if (f->left > 0 && weft_detach(weft_spawn(link, .left = f->left - 1, .bell = f->bell)) < 0)
        weft_return(-ENOMEM);
    fetch_add_relaxed(&ended, 1);
    weft_return(0);
    weft_end;
}

/* Not at once: a stop that has not seen the last link would be over by then. */
static void *rings_late(void *arg)
{
    struct bell *bell = arg;
    CREW_UNTIL(bell_awaited(bell));
    for (int i = 0; i < 200; i++)
        sched_yield();
    bell_ring(bell);
    return NULL;
}

/* Stop comes back when the chain has ended and not before, however its links dodge the sweeps. Many
 * handles of tasks that have ended make a sweep long enough for that. */
static void chain_is_waited_for(int workers)
{
    enum { HELD = 20000 };
    uint32_t links = (uint32_t)test_scaled(100000);
    static weft_task *held[HELD];
    uint32_t held_count = (uint32_t)test_scaled(HELD);
    struct crew crew;
    struct bell bell;
    pthread_t ringer;
    clear();
    bell_init(&bell);
    crew_start(&crew, workers);
    for (uint32_t i = 0; i < held_count; i++)
        held[i] = weft_spawn(answers_too, .value = 1);
    for (uint32_t i = 0; i < held_count; i++)
        CREW_UNTIL(weft_done(held[i]));
    ASSERT_OK(pthread_create(&ringer, NULL, rings_late, &bell));
    ASSERT_OK(weft_detach(weft_spawn(link, .left = links, .bell = &bell)));
    CREW_UNTIL(load_relaxed(&born) > 0);
    crew_stop(&crew);
    ASSERT_EQ(load_relaxed(&ended), links + 1);
    ASSERT_OK(pthread_join(ringer, NULL));
    bell_done(&bell);
    for (uint32_t i = 0; i < held_count; i++)
        ASSERT_OK(weft_detach(held[i]));
}

TEST(stop_waits_for_a_chain_of_spawns_that_dodges_the_sweeps)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        chain_is_waited_for(crew_sizes[i]);
}
