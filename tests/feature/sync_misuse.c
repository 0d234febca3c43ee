/* SPDX-License-Identifier: MIT
 *
 * Mistakes with what tasks share: each is refused by an error code and one line, or ends the process if there is no going on; debug
 * builds always stop there. The line names both sides: who has it and since where, who made the mistake and where.
 *
 * Each mistake is made in a process of its own. Which lines it was, that process leaves in memory that it shares with the test.
 */
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <weft/weft.h>

struct places {
    const char
        *taken; /* where it was taken; text of the program, at the same address in both processes */
    const char *misused; /* where the mistake is */
};
static struct places *places;

#define TAKEN(call)   (places->taken = WEFT__CALLER, (call))
#define MISUSED(call) (places->misused = WEFT__CALLER, (call))
#define AWAITED(place, ...)                                                                        \
    do {                                                                                           \
        places->place = WEFT__CALLER;                                                              \
        weft_await(__VA_ARGS__);                                                                   \
    } while (0)

static weft_mutex mutex = WEFT_MUTEX_INIT;
static weft_rwlock rwlock = WEFT_RWLOCK_INIT;
static weft_cond cond = WEFT_COND_INIT;
static weft_once once = WEFT_ONCE_INIT;
static weft_cell cell = WEFT_CELL_INIT;
static weft_sem sem = WEFT_SEM_INIT(0);
static weft_notify notify = WEFT_NOTIFY_INIT;
static weft_event event = WEFT_EVENT_INIT;
static weft_wg wg = WEFT_WG_INIT(1);
static weft_barrier barrier = WEFT_BARRIER_INIT(2);
typedef WEFT_CHAN(uint64_t) word_chan;
typedef WEFT_BROADCAST(uint64_t) word_cast;
static word_chan *chan;
static word_cast *cast;
static word_cast *watch;

static _Atomic int begun; /* relaxed: a count */

/* On the one worker: whoever has said that it begins has gone to sleep by the time that this one is polled again. */
static void until_it_waits(void)
{
    do {
        (void)weft_yield();
    } while (load_relaxed(&begun) == 0); /* relaxed: a count */
}

static void says_it_begins(void)
{
    fetch_add_relaxed(&begun, 1); /* relaxed: a count */
}

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

/* ---- ended too early ----------------------------------------------------------------------------- */

static int ends_locked(void)
{
    int r = TAKEN(weft_try_lock(&mutex));
    if (r == 0) MISUSED(weft_mutex_done(&mutex));
    return r;
}

static int ends_written(void)
{
    int r = takes_to_write();
    if (r == 0) MISUSED(weft_rwlock_done(&rwlock));
    return r;
}

static int ends_read(void)
{
    int r = weft_try_read_lock(&rwlock);
    if (r == 0) MISUSED(weft_rwlock_done(&rwlock));
    return r;
}

/* One waits, in a task of this name; then it is ended. */
#define ENDED_UNDER(name, wait, ...)                                                               \
    static int waits_on_##name(void)                                                               \
    {                                                                                              \
        says_it_begins();                                                                          \
        return (int)(wait);                                                                        \
    }                                                                                              \
    static int ends_##name(void)                                                                   \
    {                                                                                              \
        weft_task *task = weft_go(waits_on_##name);                                                \
        until_it_waits();                                                                          \
        MISUSED(__VA_ARGS__);                                                                      \
        return weft_detach(task);                                                                  \
    }

static uint64_t word;
static weft_cursor nowhere = {UINT64_C(1) << 60, 0};

static int waits_for_cond(void)
{
    int r = weft_lock(&mutex);
    return r < 0 ? r : weft_cond_wait(&cond, &mutex);
}

ENDED_UNDER(sem, weft_sem_acquire(&sem, 1), weft_sem_done(&sem))
ENDED_UNDER(notify, weft_notify_wait(&notify), weft_notify_done(&notify))
ENDED_UNDER(event, weft_event_wait(&event), weft_event_done(&event))
ENDED_UNDER(wg, weft_wg_wait(&wg), weft_wg_done(&wg))
ENDED_UNDER(barrier, weft_barrier_wait(&barrier), weft_barrier_done(&barrier))
ENDED_UNDER(cond, waits_for_cond(), weft_cond_done(&cond))
ENDED_UNDER(receiver, weft_recv(chan, &word), weft_chan_free(chan))
ENDED_UNDER(cast, weft_broadcast_recv(cast, &nowhere, &word), weft_broadcast_free(cast))
ENDED_UNDER(watch, weft_watch_changed(watch, &nowhere, &word), weft_watch_free(watch))

static int fills_and_waits(void)
{
    int r = weft_send(chan, &word);
    return r < 0 ? r : weft_send(chan, &word);
}
ENDED_UNDER(sender, fills_and_waits(), weft_chan_free(chan))

ENDED_UNDER(mutex, weft_lock(&mutex), weft_mutex_done(&mutex))
static int ends_mutex_under(void)
{
    int r = takes_mutex();
    return r < 0 ? r : ends_mutex();
}

/* ---- once too often ------------------------------------------------------------------------------ */

static int releases_too_many(void)
{
    weft_sem_release(&sem, 1);
    MISUSED(weft_sem_release(&sem, WEFT_SEM_MAX));
    return 0;
}

static int releases_more_than_can_be_counted(void)
{
    weft_sem_release(&sem, 1);
    MISUSED(weft_sem_release(&sem, UINT64_MAX));
    return 0;
}

static int wants_much(void)
{
    says_it_begins();
    return weft_sem_acquire(&sem, WEFT_SEM_MAX);
}

static int releases_too_many_while_one_waits(void)
{
    weft_task *task = weft_go(wants_much);
    until_it_waits();
    weft_sem_release(&sem, 1);
    MISUSED(weft_sem_release(&sem, WEFT_SEM_MAX));
    return weft_detach(task);
}

static int finishes_too_many(void)
{
    weft_wg_finish(&wg);
    MISUSED(weft_wg_finish(&wg));
    return 0;
}

static int leaves_too_often(void)
{
    static weft_tracker tracker;
    weft_tracker_enter(&tracker);
    weft_tracker_leave(&tracker);
    MISUSED(weft_tracker_leave(&tracker));
    return 0;
}

static int ends_counting(void)
{
    static weft_tracker tracker;
    weft_tracker_enter(&tracker);
    MISUSED(weft_tracker_done(&tracker));
    return 0;
}

static int closes_stream_twice(void)
{
    weft_stream *ends[2];
    int r = weft_pipe(&ends[0], &ends[1]);
    if (r < 0) return r;
    weft_close(ends[0]);
    weft_close(ends[1]);
    MISUSED(weft_close(ends[0]));
    return 0;
}

/* Another was about to have its place, and could not be watched: it is still closed, and the other's descriptor is its own. */
static int closes_twice_behind_a_refusal(void)
{
    weft_stream *ends[2];
    weft_stream *none;
    int r = weft_pipe(&ends[0], &ends[1]);
    if (r < 0) return r;
    weft_close(ends[0]);
    weft_close(ends[1]);
    int file = open("/", O_RDONLY | O_CLOEXEC);
    r = weft_stream_of_fd(file, &none);
    if (r != -EPERM) return r;
    MISUSED(weft_close(ends[1]));
    return fcntl(file, F_GETFD) < 0 ? -EBADF : 0;
}

/* The place is where the buffer is closed: what it stands on is closed by it. */
static int closes_beneath_a_buffer(void)
{
    weft_stream *ends[2];
    weft_buf *buf;
    int r = weft_pipe(&ends[0], &ends[1]);
    if (r < 0) return r;
    r = weft_buf_new(ends[0], NULL, &buf);
    if (r < 0) return r;
    weft_close(ends[0]);
    MISUSED(weft_close(buf));
    return 0;
}

static int closes_listener_twice(void)
{
    weft_listener *listener;
    int r = weft_tcp_listen("127.0.0.1:0", &listener);
    if (r < 0) return r;
    weft_close(listener);
    MISUSED(weft_close(listener));
    return 0;
}

/* ---- all of them --------------------------------------------------------------------------------- */

struct mistake {
    int (*make)(void); /* by a fiber */
    int error;         /* what a release build answers; 0: it dies in any build */
    const char *what;  /* what the line begins with */
    const char *who;   /* and whom it names beside the culprit; NULL: nobody */
    bool since;        /* it says since where it was held */
};

#define RIVAL        "rival"
#define READ         "a read-write lock is locked to write while it is read"
#define MANY_PERMITS "a semaphore is given more permits than it can hold"
#define BY    " by task 'culprit' (spawned at "

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
#endif
    {enters_twice, -EDEADLK, "a once is entered once more" BY, "held by task 'culprit'", true},
    {ends_locked, 0, "a mutex that is locked is ended" BY, "held by task 'culprit'", true},
    {ends_written, 0, "a read-write lock that somebody has is ended" BY, "held by task 'culprit'",
     true},
    {ends_read, 0, "a read-write lock that somebody has is ended" BY, NULL, false},
    {ends_sem, 0, "a semaphore is ended at ", "while task 'waits_on_sem' (spawned at ", false},
    {ends_notify, 0, "a notify is ended at ", "while task 'waits_on_notify'", false},
    {ends_event, 0, "an event is ended at ", "while task 'waits_on_event'", false},
    {ends_wg, 0, "a wait group is ended at ", "while task 'waits_on_wg'", false},
    {ends_barrier, 0, "a barrier is ended at ", "while task 'waits_on_barrier'", false},
    {ends_cond, 0, "a condition is ended at ", "while task 'waits_on_cond'", false},
    {ends_receiver, 0, "a channel is ended at ", "while task 'waits_on_receiver'", false},
    {ends_sender, 0, "a channel is ended at ", "while task 'waits_on_sender'", false},
    {ends_cast, 0, "a broadcast or watch is ended at ", "while task 'waits_on_cast'", false},
    {ends_watch, 0, "a broadcast or watch is ended at ", "while task 'waits_on_watch'", false},
    {releases_too_many, 0, MANY_PERMITS BY, NULL, false},
    {releases_more_than_can_be_counted, 0, MANY_PERMITS BY, NULL, false},
    {releases_too_many_while_one_waits, 0, MANY_PERMITS BY, NULL, false},
    {finishes_too_many, 0, "a wait group is finished once more than was added" BY, NULL, false},
    {leaves_too_often, 0, "a tracker is left once more than it was entered" BY, NULL, false},
    {ends_counting, 0, "a tracker that still counts is ended" BY, NULL, false},
    {closes_stream_twice, 0, "a stream is closed once more" BY, NULL, false},
    {closes_twice_behind_a_refusal, 0, "a stream is closed once more" BY, NULL, false},
    {closes_beneath_a_buffer, 0, "a stream is closed once more" BY, NULL, false},
    {closes_listener_twice, 0, "a listener is closed once more" BY, NULL, false},
    {ends_mutex_under, 0, "a mutex is ended at ", "while task 'waits_on_mutex'", false},
};

static int (*mistake_made)(void);

static int culprit(void)
{
    return mistake_made();
}

static void objects_new(void)
{
    if (weft_chan_new(1, &chan) < 0 || weft_broadcast_new(1, &cast) < 0 ||
        weft_watch_new(&word, &watch) < 0)
        _exit(3);
}

static void make_it(void *arg)
{
    const struct mistake *mistake = arg;
    struct crew crew;
    int r = 1;

    objects_new();
    crew_start(&crew, 1);
    mistake_made = mistake->make;
    const char *name = strstr(mistake->what, RIVAL) ? RIVAL : NULL; /* else the function's */
    (void)weft_join(weft_go_as((.name = name), culprit), &r);
    _exit(mistake->error && r == mistake->error ? 9 : 4);
}

static bool ended_as_it_must(const struct death *d, const struct mistake *mistake)
{
#ifdef WEFT_DEBUG
    (void)mistake;
    return d->signal == SIGABRT;
#else
    return mistake->error ? d->signal == 0 && d->code == 9 : d->signal == SIGABRT;
#endif
}

static bool names(const char *said, const char *words, const char *place)
{
    char text[512];
    snprintf(text, sizeof(text), "%s%s", words, place);
    return strstr(said, text);
}

/* What the two places are, and that both are in the line. */
static bool said_all(const struct death *d, const struct mistake *mistake)
{
    if (!strstr(d->said, mistake->what)) return false;
    if (mistake->who && !strstr(d->said, mistake->who)) return false;
    if (mistake->since && !names(d->said, ", since ", places->taken) &&
        !names(d->said, "was last at ", places->taken))
        return false;
    return names(d->said, " at ", places->misused);
}

TEST_WITH(sync_misuse_names_both_places, .timeout_s = 240)
{
    places = mmap(NULL, sizeof(*places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(places != MAP_FAILED);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct death d = death_of(make_it, (void *)(uintptr_t)&mistakes[i]);
        if (!ended_as_it_must(&d, &mistakes[i]) || !said_all(&d, &mistakes[i]))
            ck_abort_msg("%zu (%s): signal %d, code %d, taken at %s, misused at %s, said: %s", i,
                         mistakes[i].what, d.signal, d.code, places->taken, places->misused,
                         d.said);
    }
    munmap(places, sizeof(*places));
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

/* One takes it and ends; then another waits, for a while. */
struct orphan {
    int (*takes)(void);
    int (*waits)(void);
    const char *what;
};

static const struct orphan orphans[] = {
    {takes_mutex, mutex_in_time, "weft: mutex 0x"},
    {takes_to_write, read_in_time, "weft: read-write lock 0x"},
    {enters, once_in_time, "weft: once 0x"},
    {enters_cell, cell_in_time, "weft: once 0x"},
#ifdef WEFT_DEBUG
    {takes_to_read, write_in_time, "weft: read-write lock 0x"},
#endif
};

static void outlives_its_holder(void *arg)
{
    const struct orphan *orphan = arg;
    int (*takes)(void) = orphan->takes;
    int (*waits)(void) = orphan->waits;
    struct crew crew;
    int r = 1;
    crew_start(&crew, 1);
    if (weft_join(weft_go(takes), NULL) < 0) _exit(3);
    if (weft_join(weft_go(waits), &r) < 0) _exit(4);
    _exit(r == -ETIME ? 9 : 5);
}

TEST(sync_misuse_a_lock_of_one_that_has_ended_is_reported)
{
    places = mmap(NULL, sizeof(*places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(places != MAP_FAILED);
    for (size_t i = 0; i < sizeof(orphans) / sizeof(orphans[0]); i++) {
        struct death d = death_of(outlives_its_holder, (void *)(uintptr_t)&orphans[i]);
        if (d.code != 9 || !strstr(d.said, orphans[i].what) ||
            !names(d.said, ", which has ended, since ", places->taken))
            ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
#ifdef WEFT_DEBUG /* the block is not used again so soon */
        ASSERT(strstr(d.said, "task 'takes' (spawned at "));
#endif
    }
    munmap(places, sizeof(*places));
}

/* ---- what is no mistake but refused --------------------------------------------------------------- */

TEST(sync_misuse_closed_twice_and_sent_to_once_closed)
{
    word_chan *chans[4];
    ASSERT_OK(weft_chan_new(1, &chans[0]));
    ASSERT_OK(weft_chan_new(0, &chans[1]));
    ASSERT_OK(weft_chan_unbounded(&chans[2]));
    ASSERT_OK(weft_chan_oneshot(&chans[3]));
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(weft_chan_close(chans[i]));
        ASSERT_EQ(weft_chan_close(chans[i]), -EALREADY);
        ASSERT_EQ(weft_send(chans[i], &word), -EPIPE);
        ASSERT_EQ(weft_try_send(chans[i], &word), -EPIPE);
        weft_chan_free(chans[i]);
    }
    ASSERT_OK(weft_broadcast_new(1, &cast));
    ASSERT_OK(weft_broadcast_close(cast));
    ASSERT_EQ(weft_broadcast_close(cast), -EALREADY);
    ASSERT_EQ(weft_broadcast_send(cast, &word), -EPIPE);
    weft_broadcast_free(cast);
    ASSERT_OK(weft_watch_new(&word, &watch));
    ASSERT_OK(weft_watch_close(watch));
    ASSERT_EQ(weft_watch_close(watch), -EALREADY);
    ASSERT_EQ(weft_watch_set(watch, &word), -EPIPE);
    weft_watch_free(watch);
    weft_sem_close(&sem);
    weft_sem_close(&sem);
    ASSERT_EQ(weft_sem_acquire(&sem, 1), -EPIPE);
}

/* Its one message has closed it: whoever closes it behind that comes second. */
TEST(sync_misuse_a_oneshot_is_closed_by_its_message)
{
    word_chan *one;
    uint64_t got = 0;
    ASSERT_OK(weft_chan_oneshot(&one));
    ASSERT_OK(weft_send(one, &word));
    ASSERT_EQ(weft_chan_close(one), -EALREADY);
    ASSERT_EQ(weft_send(one, &word), -EPIPE);
    ASSERT_EQ(weft_recv(one, &got), 1);
    ASSERT_EQ(weft_chan_close(one), -EALREADY);
    weft_chan_free(one);
}

enum { CLOSERS = 8 };
static _Atomic bool all_go; /* relaxed: looked at again */

static int closes_chan(void)
{
    while (!load_relaxed(&all_go))
        (void)weft_yield();
    return weft_chan_close(chan);
}

static int closes_cast(void)
{
    while (!load_relaxed(&all_go))
        (void)weft_yield();
    return weft_broadcast_close(cast);
}

static int receives(void)
{
    uint64_t got;
    return (int)weft_recv(chan, &got);
}

static int sends_two(void)
{
    int r = weft_send(chan, &word);
    return r < 0 ? r : weft_send(chan, &word);
}

static void one_of_them_closes(int (*closes)(void))
{
    weft_task *task[CLOSERS];
    int first = 0;
    store_relaxed(&all_go, false);
    for (int i = 0; i < CLOSERS; i++)
        task[i] = weft_go(closes);
    store_relaxed(&all_go, true);
    for (int i = 0; i < CLOSERS; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT(r == 0 || r == -EALREADY);
        first += r == 0;
    }
    ASSERT_EQ(first, 1);
}

/* Closers, and with them one who waits on the side that each kind has: it is answered, and exactly one closer is the first. */
static void closers_race(struct crew *crew)
{
    (void)crew;
    for (int kind = 0; kind < 4; kind++) {
        int r = 1;
        if (kind == 0) ASSERT_OK(weft_chan_new(1, &chan));
        if (kind == 1) ASSERT_OK(weft_chan_new(0, &chan));
        if (kind == 2) ASSERT_OK(weft_chan_unbounded(&chan));
        if (kind == 3) ASSERT_OK(weft_chan_oneshot(&chan));
        bool sends = kind < 2;
        weft_task *waits = sends ? weft_go(sends_two) : weft_go(receives);
        one_of_them_closes(closes_chan);
        ASSERT_OK(weft_join(waits, &r));
        ASSERT_EQ(r, sends ? -EPIPE : 0);
        weft_chan_free(chan);
    }
    ASSERT_OK(weft_broadcast_new(1, &cast));
    one_of_them_closes(closes_cast);
    weft_broadcast_free(cast);
}

TEST(sync_misuse_of_several_who_close_one_is_first)
{
    crew_each(closers_race);
}
