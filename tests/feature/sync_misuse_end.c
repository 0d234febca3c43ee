/* SPDX-License-Identifier: MIT
 *
 * What tasks share, ended while somebody has it or waits for it; given back, counted down or closed once
 * too often. That ends the process with one line that names who and where, in any build. A channel that
 * is closed twice is no mistake: the second is told, also of many who close it at once.
 * Who takes what, and who may give it back: sync_misuse.
 */
#include "mistake.h"

#include <errno.h>
#include <fcntl.h>

static weft_mutex mutex = WEFT_MUTEX_INIT;
static weft_rwlock rwlock = WEFT_RWLOCK_INIT;
static weft_cond cond = WEFT_COND_INIT;
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

/* ---- ended too early ----------------------------------------------------------------------------- */

static int ends_locked(void)
{
    int r = TAKEN(weft_try_lock(&mutex));
    if (r == 0) MISUSED(weft_mutex_done(&mutex));
    return r;
}

static int ends_written(void)
{
    int r = TAKEN(weft_write_lock(&rwlock));
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
    int r = TAKEN(weft_lock(&mutex));
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

#define MANY_PERMITS "a semaphore is given more permits than it can hold"

static const struct mistake mistakes[] = {
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

TEST_WITH(sync_misuse_of_what_ends_is_told, .timeout_s = 240)
{
    ASSERT_OK(weft_chan_new(1, &chan));
    ASSERT_OK(weft_broadcast_new(1, &cast));
    ASSERT_OK(weft_watch_new(&word, &watch));
    mistakes_are_told(mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
    weft_chan_free(chan);
    weft_broadcast_free(cast);
    weft_watch_free(watch);
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
    ASSERT_OK(weft_sem_close(&sem));
    ASSERT_EQ(weft_sem_close(&sem), -EALREADY);
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

/* Closers, and with them one who waits on the side that each kind has: it is answered, and exactly one
 * closer is the first. */
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
