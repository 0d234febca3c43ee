/* SPDX-License-Identifier: MIT
 *
 * Mistakes with what one task has at a time: it is given back by another, taken once more by who has it,
 * or kept by one that has ended. Each is refused by an error code and one line; debug builds always
 * stop there. What is ended or closed too early, or once too often: sync_misuse_end.
 */
#include "mistake.h"

#include <errno.h>

static weft_mutex mutex = WEFT_MUTEX_INIT;
static weft_rwlock rwlock = WEFT_RWLOCK_INIT;
static weft_cond cond = WEFT_COND_INIT;
static weft_once once = WEFT_ONCE_INIT;
static weft_cell cell = WEFT_CELL_INIT;

/* ---- by another ---------------------------------------------------------------------------------- */

static int takes_mutex(void)
{
    return TAKEN(weft_lock(&mutex));
}

static int drops_mutex(void)
{
    return MISUSED(weft_unlock(&mutex));
}

/* Until it is cancelled. */
static int keeps_mutex(void)
{
    int r = takes_mutex();
    says_it_begins();
    return r < 0 ? r : weft_sleep(WEFT_FOREVER);
}

struct takes_mutex_awaiting {
    WEFT_FRAME(int);
    struct weft_lock lock;
};
static weft_async(takes_mutex_awaiting)
{
    weft_begin;
    AWAITED(taken, f->lock, weft_lock, &mutex);
    weft_return(f->lock.ret);
    weft_end;
}

static int unlocks_anothers(void)
{
    weft_task *holder = weft_go(takes_mutex);
    int r = weft_wait(holder);
    if (r == 0) r = drops_mutex();
    return r;
}

static int unlocks_anothers_awaited(void)
{
    weft_task *holder = weft_spawn(takes_mutex_awaiting);
    int r = weft_wait(holder);
    if (r == 0) r = drops_mutex();
    return r;
}

static int unlocks_a_named_ones(void)
{
    weft_task *holder = weft_go_as((.name = "keeper"), keeps_mutex);
    int r;
    until_it_waits();
    r = drops_mutex();
    weft_cancel(holder);
    return weft_wait(holder) < 0 ? 1 : r;
}

static int unlocks_nobodys(void)
{
    int r = takes_mutex();
    if (r == 0) r = weft_unlock(&mutex);
    return r < 0 ? r : drops_mutex();
}

static int takes_to_write(void)
{
    return TAKEN(weft_write_lock(&rwlock));
}

static int write_unlocks_anothers(void)
{
    int r = weft_wait(weft_go(takes_to_write));
    return r < 0 ? r : MISUSED(weft_write_unlock(&rwlock));
}

static int read_unlocks_a_writers(void)
{
    int r = weft_wait(weft_go(takes_to_write));
    return r < 0 ? r : MISUSED(weft_read_unlock(&rwlock));
}

static int downgrades_anothers(void)
{
    int r = weft_wait(weft_go(takes_to_write));
    return r < 0 ? r : MISUSED(weft_downgrade(&rwlock));
}

static int enters(void)
{
    return TAKEN(weft_once_enter(&once));
}

static int leaves_anothers(void)
{
    int r = weft_wait(weft_go(enters));
    return r < 0 ? r : MISUSED(weft_once_leave(&once, true));
}

static int enters_cell(void)
{
    void *value;
    return TAKEN(weft_cell_enter(&cell, &value));
}

static int leaves_anothers_cell(void)
{
    int r = weft_wait(weft_go(enters_cell));
    return r < 0 ? r : MISUSED(weft_cell_leave(&cell, &cell));
}

static int waits_without_its_mutex(void)
{
    int r = weft_wait(weft_go(takes_mutex));
    return r < 0 ? r : MISUSED(weft_cond_wait(&cond, &mutex));
}

/* ---- once more ----------------------------------------------------------------------------------- */

static int locks_twice(void)
{
    int r = takes_mutex();
    return r < 0 ? r : MISUSED(weft_lock(&mutex));
}

struct locks_twice_awaiting {
    WEFT_FRAME(int);
    struct weft_lock lock;
};
static weft_async(locks_twice_awaiting)
{
    weft_begin;
    AWAITED(taken, f->lock, weft_lock, &mutex);
    if (f->lock.ret < 0) weft_return(f->lock.ret);
    AWAITED(misused, f->lock, weft_lock, &mutex);
    weft_return(f->lock.ret);
    weft_end;
}

static int locks_twice_stackless(void)
{
    int r = 1;
    return weft_join(weft_spawn(locks_twice_awaiting), &r) < 0 ? 1 : r;
}

static int writes_twice(void)
{
    int r = takes_to_write();
    return r < 0 ? r : MISUSED(weft_write_lock(&rwlock));
}

static int reads_what_it_writes(void)
{
    int r = TAKEN(weft_try_write_lock(&rwlock));
    return r < 0 ? r : MISUSED(weft_read_lock(&rwlock));
}

#ifdef WEFT_DEBUG /* others do not know who reads */
static int writes_what_it_reads(void)
{
    int r = TAKEN(weft_read_lock(&rwlock));
    return r < 0 ? r : MISUSED(weft_write_lock(&rwlock));
}

static int writes_what_it_tried_to_read(void)
{
    int r = TAKEN(weft_try_read_lock(&rwlock));
    return r < 0 ? r : MISUSED(weft_write_lock(&rwlock));
}

static int writes_what_it_downgraded(void)
{
    int r = weft_write_lock(&rwlock);
    if (r == 0) r = TAKEN(weft_downgrade(&rwlock));
    return r < 0 ? r : MISUSED(weft_write_lock(&rwlock));
}

static int waits_to_write(void)
{
    says_it_begins();
    return weft_write_lock(&rwlock);
}

static int reads_twice_around_a_writer(void)
{
    int r = TAKEN(weft_read_lock(&rwlock));
    (void)weft_detach(weft_go(waits_to_write));
    until_it_waits();
    return r < 0 ? r : MISUSED(weft_read_lock(&rwlock));
}

struct reads_twice_awaiting {
    WEFT_FRAME(int);
    struct weft_read_lock first;
    struct weft_yield yield;
    struct weft_read_lock again;
};
static weft_async(reads_twice_awaiting)
{
    weft_begin;
    AWAITED(taken, f->first, weft_read_lock, &rwlock);
    if (f->first.ret < 0) weft_return(f->first.ret);
    (void)weft_detach(weft_go(waits_to_write));
    while (load_relaxed(&begun) == 0) /* relaxed: a count; as until_it_waits */
        weft_await(f->yield, weft_yield);
    AWAITED(misused, f->again, weft_read_lock, &rwlock);
    weft_return(f->again.ret);
    weft_end;
}

static int reads_twice_stackless(void)
{
    int r = 1;
    return weft_join(weft_spawn(reads_twice_awaiting), &r) < 0 ? 1 : r;
}

struct writes_what_it_reads_awaiting {
    WEFT_FRAME(int);
    struct weft_read_lock reads;
    struct weft_write_lock writes;
};
static weft_async(writes_what_it_reads_awaiting)
{
    weft_begin;
    AWAITED(taken, f->reads, weft_read_lock, &rwlock);
    if (f->reads.ret < 0) weft_return(f->reads.ret);
    AWAITED(misused, f->writes, weft_write_lock, &rwlock);
    weft_return(f->writes.ret);
    weft_end;
}

static int writes_what_it_reads_stackless(void)
{
    int r = 1;
    return weft_join(weft_spawn(writes_what_it_reads_awaiting), &r) < 0 ? 1 : r;
}
#endif

static int enters_twice(void)
{
    int r = enters();
    return r < 0 ? r : MISUSED(weft_once_enter(&once));
}

/* ---- all of them --------------------------------------------------------------------------------- */

#define READ  "a read-write lock is locked to write while it is read"
#define AGAIN "a read-write lock is read once more while a writer waits"

static const struct mistake mistakes[] = {
    {unlocks_anothers, -EPERM, "a mutex is unlocked" BY, "held by task 'takes_mutex' (spawned",
     true},
    {unlocks_anothers_awaited, -EPERM, "a mutex is unlocked" BY,
     "held by task 'takes_mutex_awaiting'", true},
    {unlocks_a_named_ones, -EPERM, "a mutex is unlocked by task '" RIVAL "' (spawned at ",
     "held by task 'keeper' (spawned at ", true},
    {unlocks_nobodys, -EPERM, "a mutex is unlocked" BY, "held by nobody, and was last at ", true},
    {write_unlocks_anothers, -EPERM, "a read-write lock is unlocked" BY,
     "held by task 'takes_to_write'", true},
    {read_unlocks_a_writers, -EPERM, "a read-write lock that nobody reads is unlocked" BY,
     "held by task 'takes_to_write'", true},
    {downgrades_anothers, -EPERM, "a read-write lock is unlocked" BY,
     "held by task 'takes_to_write'", true},
    {leaves_anothers, -EPERM, "a once is left" BY, "held by task 'enters'", true},
    {leaves_anothers_cell, -EPERM, "a once is left" BY, "held by task 'enters_cell'", true},
    {waits_without_its_mutex, -EPERM, "a condition is waited for without its mutex" BY,
     "held by task 'takes_mutex'", true},
    {locks_twice, -EDEADLK, "a mutex is locked once more" BY, "held by task 'culprit'", true},
    {locks_twice_stackless, -EDEADLK, "a mutex is locked once more by task 'locks_twice_awaiting'",
     "held by task 'locks_twice_awaiting'", true},
    {writes_twice, -EDEADLK, "a read-write lock is locked once more" BY, "held by task 'culprit'",
     true},
    {reads_what_it_writes, -EDEADLK, "a read-write lock is locked once more" BY,
     "held by task 'culprit'", true},
#ifdef WEFT_DEBUG
    {writes_what_it_reads, -EDEADLK, READ BY, "held by task 'culprit'", true},
    {writes_what_it_tried_to_read, -EDEADLK, READ BY, "held by task 'culprit'", true},
    {writes_what_it_downgraded, -EDEADLK, READ BY, "held by task 'culprit'", true},
    {writes_what_it_reads_stackless, -EDEADLK, READ " by task 'writes_what_it_reads_awaiting'",
     "held by task 'writes_what_it_reads_awaiting'", true},
    {reads_twice_around_a_writer, -EDEADLK, AGAIN BY, "held by task 'culprit'", true},
    {reads_twice_stackless, -EDEADLK, AGAIN " by task 'reads_twice_awaiting'", "held by task 'reads_twice_awaiting'", true},
#endif
    {enters_twice, -EDEADLK, "a once is entered once more" BY, "held by task 'culprit'", true},
};

TEST_WITH(sync_misuse_names_both_places, .timeout_s = 240)
{
    mistakes_are_told(mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
}

/* ---- a holder that has ended --------------------------------------------------------------------- */

#define IN_TIME(name, ...)                                                                         \
    static int name##_in_time(void)                                                                \
    {                                                                                              \
        int r = 0;                                                                                 \
        WEFT_TIMEOUT(weft_ms(1)) r = (__VA_ARGS__);                                                \
        return r;                                                                                  \
    }

static void *value;
IN_TIME(mutex, weft_lock(&mutex))
IN_TIME(read, weft_read_lock(&rwlock))
IN_TIME(once, weft_once_enter(&once))
IN_TIME(cell, weft_cell_enter(&cell, &value))

#ifdef WEFT_DEBUG
static int takes_to_read(void)
{
    return TAKEN(weft_read_lock(&rwlock));
}
IN_TIME(write, weft_write_lock(&rwlock))
#endif

struct takes_to_write_awaiting {
    WEFT_FRAME(int);
    struct weft_write_lock lock;
};
static weft_async(takes_to_write_awaiting)
{
    weft_begin;
    AWAITED(taken, f->lock, weft_write_lock, &rwlock);
    weft_return(f->lock.ret);
    weft_end;
}

static weft_task *mutex_stackless(void)
{
    return weft_spawn(takes_mutex_awaiting);
}

static weft_task *write_stackless(void)
{
    return weft_spawn(takes_to_write_awaiting);
}

/* One takes it and ends; then another waits, for a while. */
struct orphan {
    int (*takes)(void); /* by a fiber */
    int (*waits)(void);
    const char *what;
    weft_task *(*starts)(void); /* or by what this starts */
    const char *name;           /* and its name */
};

static const struct orphan orphans[] = {
    {takes_mutex, mutex_in_time, "weft: mutex 0x", NULL, "takes"},
    {takes_to_write, read_in_time, "weft: read-write lock 0x", NULL, "takes"},
    {enters, once_in_time, "weft: once 0x", NULL, "takes"},
    {enters_cell, cell_in_time, "weft: once 0x", NULL, "takes"},
    {NULL, mutex_in_time, "weft: mutex 0x", mutex_stackless, "takes_mutex_awaiting"},
    {NULL, read_in_time, "weft: read-write lock 0x", write_stackless, "takes_to_write_awaiting"},
#ifdef WEFT_DEBUG
    {takes_to_read, write_in_time, "weft: read-write lock 0x", NULL, "takes"},
#endif
};

static weft_task *start_of(const struct orphan *orphan)
{
    int (*takes)(void) = orphan->takes;
    return takes ? weft_go(takes) : orphan->starts();
}

static int passes_by(void)
{
    return 0;
}

/* What held it is somebody else's block by then, and that one has ended as well: it is not taken for the holder. */
static void outlives_many(void *arg)
{
    const struct orphan *orphan = arg;
    int (*waits)(void) = orphan->waits;
    struct crew crew;
    int r = 1;
    crew_start(&crew, 1);
    if (weft_join(start_of(orphan), NULL) < 0) _exit(3);
    for (int i = 0; i < 20000; i++) /* more than a debug build keeps from being used again */
        if (weft_join(weft_go(passes_by), NULL) < 0) _exit(6);
    if (weft_join(weft_go(waits), &r) < 0) _exit(4);
    _exit(r == -ETIME ? 9 : 5);
}

TEST(sync_misuse_a_lock_of_one_that_ended_long_ago_is_not_anothers)
{
    places_map();
    for (size_t i = 0; i < sizeof(orphans) / sizeof(orphans[0]); i++) {
        struct death d = death_of(outlives_many, (void *)(uintptr_t)&orphans[i]);
        if (d.code != 9 || !strstr(d.said, orphans[i].what) || strstr(d.said, "passes_by") ||
            !names(d.said, "which has ended, since ", places->taken))
            ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
    }
    places_unmap();
}

static void outlives_its_holder(void *arg)
{
    const struct orphan *orphan = arg;
    int (*waits)(void) = orphan->waits;
    struct crew crew;
    int r = 1;
    crew_start(&crew, 1);
    if (weft_join(start_of(orphan), NULL) < 0) _exit(3);
    if (weft_join(weft_go(waits), &r) < 0) _exit(4);
    _exit(r == -ETIME ? 9 : 5);
}

TEST(sync_misuse_a_lock_of_one_that_has_ended_is_reported)
{
    places_map();
    for (size_t i = 0; i < sizeof(orphans) / sizeof(orphans[0]); i++) {
        struct death d = death_of(outlives_its_holder, (void *)(uintptr_t)&orphans[i]);
        if (d.code != 9 || !strstr(d.said, orphans[i].what) ||
            !names(d.said, ", which has ended, since ", places->taken))
            ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
#ifdef WEFT_DEBUG /* the block is not used again so soon */
        char holder[64];
        snprintf(holder, sizeof(holder), "task '%s' (spawned at ", orphans[i].name);
        ASSERT(strstr(d.said, holder));
#endif
    }
    places_unmap();
}
