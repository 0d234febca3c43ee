/* SPDX-License-Identifier: MIT
 *
 * A lock whose holder has ended: the name that is told is its own, whatever has become of its block. (A debug build keeps a block from being used again for a
 * while, so that these tests are put to the proof in the other builds.) Whoever waits by then is not asked any more: a debug build tells at the holder's end.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* ---- while somebody waits ---- */

#ifdef WEFT_DEBUG
static weft_rwlock rwlock = WEFT_RWLOCK_INIT;
static weft_once once = WEFT_ONCE_INIT;
static weft_cell cell = WEFT_CELL_INIT;
static void *value;
static _Atomic bool waits; /* relaxed: a flag, on one worker */

static int takes_once(int kind)
{
    return kind == 0   ? weft_lock(&mutex)
           : kind == 1 ? weft_write_lock(&rwlock)
           : kind == 2 ? weft_once_enter(&once)
                       : weft_cell_enter(&cell, &value);
}

static int gives_back(int kind)
{
    return kind == 0   ? weft_unlock(&mutex)
           : kind == 1 ? weft_write_unlock(&rwlock)
           : kind == 2 ? weft_once_leave(&once, false)
                       : weft_cell_leave(&cell, NULL);
}

/* Takes it twice, and gives it back once. Somebody waits for it then, in a task that has been polled since. */
static int takes(int kind)
{
    int r = takes_once(kind);
    if (r >= 0) r = gives_back(kind);
    if (r >= 0) r = takes_once(kind);
    while (r >= 0 && !load_relaxed(&waits))
        (void)weft_yield();
    return r;
}

struct takes_awaiting {
    WEFT_FRAME(int);
    int kind;
    struct weft_lock lock;
    struct weft_write_lock write;
    struct weft_once_enter enter;
    struct weft_cell_enter make;
    struct weft_yield yield;
};
static weft_async(takes_awaiting)
{
    weft_begin;
    if (f->kind == 0) weft_await(f->lock, weft_lock, &mutex);
    if (f->kind == 1) weft_await(f->write, weft_write_lock, &rwlock);
    if (f->kind == 2) weft_await(f->enter, weft_once_enter, &once);
    if (f->kind == 3) weft_await(f->make, weft_cell_enter, &cell, &value);
    while (!load_relaxed(&waits))
        weft_await(f->yield, weft_yield);
    weft_return(0);
    weft_end;
}

static int waits_behind_it(int kind)
{
    store_relaxed(&waits, true);
    return kind == 0   ? weft_lock(&mutex)
           : kind == 1 ? weft_read_lock(&rwlock)
           : kind == 2 ? weft_once_enter(&once)
                       : weft_cell_enter(&cell, &value);
}

enum { LOCK_KINDS = 4 };

static void holder_ends_before_them(void *arg)
{
    const int *shape = arg;
    int kind = *shape % LOCK_KINDS;
    struct crew crew;
    int r = 1;
    crew_start(&crew, 1);
    weft_task *holder = *shape < LOCK_KINDS
                            ? weft_go_as((.name = "keeper"), takes, kind)
                            : weft_spawn_as((.name = "keeper"), takes_awaiting, kind);
    weft_task *waiter = weft_go(waits_behind_it, kind);
    if (weft_join(holder, &r) < 0 || r < 0) _exit(2);
    weft_cancel(waiter);
    if (weft_join(waiter, &r) < 0 || r != -ECANCELED) _exit(3);
    _exit(9);
}

#define ENDS "weft: task 'keeper' (spawned at "
#define HAS  " ends and still has a lock that it took at "
#endif

TEST(sync_orphan_is_named_at_its_end)
{
#ifdef WEFT_DEBUG
    for (int shape = 0; shape < 2 * LOCK_KINDS; shape++) {
        struct death d = death_of(holder_ends_before_them, &shape);
        const char *line = strstr(d.said, ENDS);
        const char *has = line ? strstr(line, HAS) : NULL;
        if (d.code != 9 || !has || strstr(has + 1, HAS) || !strstr(has, "sync_orphan.c:"))
            ck_abort_msg("%d: signal %d, code %d, said: %s", shape, d.signal, d.code, d.said);
    }
#else
    TEST_SKIP("only debug builds look for it");
#endif
}

#ifdef WEFT_DEBUG
/* What it gave back it has no more, nor what was made anew meanwhile, nor what is no memory any more. */
static int has_nothing(void)
{
    weft_mutex *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int r = weft_lock(&mutex);
    if (r == 0) r = weft_unlock(&mutex);
    if (r == 0) r = weft_write_lock(&rwlock);
    if (r == 0) r = weft_downgrade(&rwlock);
    if (r == 0) r = weft_read_unlock(&rwlock);
    if (r == 0) r = weft_once_enter(&once) - 1;
    if (r == 0) r = weft_once_leave(&once, true);
    if (r == 0) r = weft_lock(&mutex);
    weft_mutex_init(&mutex);
    if (gone == MAP_FAILED) return -ENOMEM;
    if (r == 0) r = weft_lock(gone);
    (void)munmap(gone, 4096); /* a heap may keep what it was given back as it is */
    return r;
}

static void ends_with_nothing(void *arg)
{
    (void)arg;
    struct crew crew;
    int r = 1;
    crew_start(&crew, 1);
    if (weft_join(weft_go(has_nothing), &r) < 0 || r < 0) _exit(2);
    _exit(9);
}
#endif

TEST(sync_orphan_is_not_who_has_given_it_back)
{
#ifdef WEFT_DEBUG
    struct death d = death_of(ends_with_nothing, NULL);
    if (d.code != 9 || strstr(d.said, "ends and still has"))
        ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
#else
    TEST_SKIP("only debug builds look for it");
#endif
}
