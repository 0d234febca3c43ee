/* SPDX-License-Identifier: MIT
 *
 * A lock whose holder has ended: the name that is told is its own, whatever has become of its block. (A debug build keeps a block from being used again for a
 * while, so that these tests are put to the proof in the other builds.)
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

static weft_mutex mutex = WEFT_MUTEX_INIT;

/* Two with frames of one size, so that the second has the first one's block. */
struct culprit {
    WEFT_FRAME(int);
    struct weft_lock lock;
};
static weft_async(culprit)
{
    weft_begin;
    weft_await(f->lock, weft_lock, &mutex);
    weft_return(f->lock.ret);
    weft_end;
}

struct bystander {
    WEFT_FRAME(int);
    int unused;
    char as_large[sizeof(struct weft_lock) - sizeof(int)];
};
static weft_async(bystander)
{
    weft_begin;
    weft_return(0);
    weft_end;
}
_Static_assert(sizeof(struct bystander) <= sizeof(struct culprit), "one block fits both");

static int waits_in_vain(void)
{
    int r = 0;
    WEFT_TIMEOUT(weft_ms(1)) r = weft_lock(&mutex);
    return r == -ETIME ? 9 : 1;
}

static void begins(struct crew *crew)
{
    int r = 1;
    crew_start(crew, 1);
    if (weft_join(weft_spawn(culprit), &r) < 0 || r < 0) _exit(2);
}

/* A worker that naps shares its free blocks, in chains that go through them. */
static void is_told_behind_a_nap(void *arg)
{
    (void)arg;
    struct crew crew;
    int r = 1;
    begins(&crew);
    (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* for long enough that it naps, mostly */
    if (weft_join(weft_go(waits_in_vain), &r) < 0) _exit(3);
    _exit(r);
}

static int spawns_while_it_waits(void)
{
    int r = 1;
    int seen = 1;
    if (weft_join(weft_spawn(bystander, .unused = (seen = waits_in_vain())), &r) < 0) return 1;
    return seen;
}

/* A task that is being made has its block, and has not begun. */
static void is_told_within_a_spawn(void *arg)
{
    (void)arg;
    struct crew crew;
    int r = 1;
    begins(&crew);
    if (weft_join(weft_go(spawns_while_it_waits), &r) < 0) _exit(3);
    _exit(r);
}

#define HELD  "is still held by "
#define NAMED HELD "task 'culprit' (spawned at "

TEST(sync_orphan_is_named_behind_a_nap)
{
    struct death d = death_of(is_told_behind_a_nap, NULL);
    if (d.code != 9 || !strstr(d.said, NAMED)) ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
}

TEST(sync_orphan_is_not_who_is_being_made)
{
    struct death d = death_of(is_told_within_a_spawn, NULL);
    if (d.code != 9 || !strstr(d.said, HELD) || strstr(d.said, "bystander"))
        ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
}
