/* SPDX-License-Identifier: MIT
 *
 * No wait of lock.h, sync.h, chan.h and cast.h takes anything from the heap, as an allocator sees it that counts: not that of a fiber,
 * not that of a stackless task, and not that of a plain thread which has waited before; nor does a call that need not wait. On every
 * shape of runtime, on a clock that stands, so that whoever is fed does wait.
 */
#include <errno.h>
#include <weft/weft.h>

/* ---- waits ---- */

typedef WEFT_CHAN(int) int_chan;
typedef WEFT_BROADCAST(int) int_cast;

static weft_mutex mutex;
static weft_cond cond;
static weft_rwlock rwlock;
static weft_sem sem;
static weft_notify notify;
static weft_event event;
static weft_wg wg;
static weft_barrier barrier;
static weft_once once;
static weft_cell cell;
static int_chan *chan; /* of one place */
static int_chan *pair; /* of two */
static int_chan *meet; /* of none */
static int_cast *cast;
static int_cast *watch;
static weft_cursor at; /* of the one who listens */
static int one = 1;

struct frames {
    union {
        struct weft_lock lock;
        struct weft_cond_wait cond;
        struct weft_read_lock read;
        struct weft_write_lock write;
        struct weft_sem_acquire sem;
        struct weft_notify_wait notify;
        struct weft_event_wait event;
        struct weft_wg_wait wg;
        struct weft_barrier_wait barrier;
        struct weft_once_enter once;
        struct weft_cell_enter cell;
        struct weft_send send;
        struct weft_recv recv;
        struct weft_recv_many many;
        struct weft_reserve reserve;
        struct weft_reserve_many places;
        struct weft_chan_closed closed;
        struct weft_broadcast_recv hear;
        struct weft_watch_changed see;
    };
    int got;
    int gots[4];
    void *made;
};
#include "frugal.h"

static void nothing(void)
{
}

static weft_future lock_arm(struct frames *w)
{
    return weft_arm(w->lock, weft_lock, &mutex);
}
static int lock_call(void)
{
    return weft_lock(&mutex);
}
static void lock_block(void)
{
    ASSERT_OK(weft_lock(&mutex));
}
static void unlock(void)
{
    ASSERT_OK(weft_unlock(&mutex));
}

static weft_future cond_arm(struct frames *w)
{
    ASSERT_OK(weft_try_lock(&mutex));
    return weft_arm(w->cond, weft_cond_wait, &cond, &mutex);
}
static int cond_call(void)
{
    ASSERT_OK(weft_lock(&mutex));
    return weft_cond_wait(&cond, &mutex);
}
static void cond_feed(void)
{
    weft_cond_wake_one(&cond);
}

static weft_future read_arm(struct frames *w)
{
    return weft_arm(w->read, weft_read_lock, &rwlock);
}
static int read_call(void)
{
    return weft_read_lock(&rwlock);
}
static void read_unlock(void)
{
    ASSERT_OK(weft_read_unlock(&rwlock));
}
static weft_future write_arm(struct frames *w)
{
    return weft_arm(w->write, weft_write_lock, &rwlock);
}
static int write_call(void)
{
    return weft_write_lock(&rwlock);
}
static void write_block(void)
{
    ASSERT_OK(weft_write_lock(&rwlock));
}
static void write_unlock(void)
{
    ASSERT_OK(weft_write_unlock(&rwlock));
}

static weft_future sem_arm(struct frames *w)
{
    return weft_arm(w->sem, weft_sem_acquire, &sem, 2);
}
static int sem_call(void)
{
    return weft_sem_acquire(&sem, 2);
}
static void sem_feed(void)
{
    weft_sem_release(&sem, 2);
}

static weft_future notify_arm(struct frames *w)
{
    return weft_arm(w->notify, weft_notify_wait, &notify);
}
static int notify_call(void)
{
    return weft_notify_wait(&notify);
}
static void notify_feed(void)
{
    weft_notify_one(&notify);
}

static weft_future event_arm(struct frames *w)
{
    return weft_arm(w->event, weft_event_wait, &event);
}
static int event_call(void)
{
    return weft_event_wait(&event);
}
static void event_block(void)
{
    weft_event_reset(&event);
}
static void event_feed(void)
{
    weft_event_set(&event);
}

static weft_future wg_arm(struct frames *w)
{
    return weft_arm(w->wg, weft_wg_wait, &wg);
}
static int wg_call(void)
{
    return weft_wg_wait(&wg);
}
static void wg_block(void)
{
    weft_wg_add(&wg, 1);
}
static void wg_feed(void)
{
    weft_wg_finish(&wg);
}

static weft_future barrier_arm(struct frames *w)
{
    return weft_arm(w->barrier, weft_barrier_wait, &barrier);
}
static int barrier_call(void)
{
    return weft_barrier_wait(&barrier);
}
static void barrier_feed(void)
{
    ASSERT_GE(weft_barrier_wait(&barrier), 0); /* the other party, which need not wait */
}

static weft_future once_arm(struct frames *w)
{
    return weft_arm(w->once, weft_once_enter, &once);
}
static int once_call(void)
{
    return weft_once_enter(&once);
}
static void once_block(void)
{
    ASSERT_EQ(weft_once_enter(&once), 1);
}
static void once_leave(void)
{
    ASSERT_OK(weft_once_leave(&once, false));
}

static weft_future cell_arm(struct frames *w)
{
    return weft_arm(w->cell, weft_cell_enter, &cell, &w->made);
}
static int cell_call(void)
{
    void *made;
    return weft_cell_enter(&cell, &made);
}
static void cell_block(void)
{
    ASSERT_EQ(cell_call(), 1);
}
static void cell_leave(void)
{
    ASSERT_OK(weft_cell_leave(&cell, NULL));
}

static weft_future send_arm(struct frames *w)
{
    return weft_arm(w->send, weft_send, weft_on(chan, &one));
}
static int send_call(void)
{
    return weft_send(chan, &one);
}
static void chan_fill(void)
{
    ASSERT_OK(weft_try_send(chan, &one));
}
static void chan_drain(void)
{
    int got;
    ASSERT_EQ(weft_try_recv(chan, &got), 1);
}
static weft_future recv_arm(struct frames *w)
{
    return weft_arm(w->recv, weft_recv, weft_on(chan, &w->got));
}
static int recv_call(void)
{
    int got;
    return weft_recv(chan, &got);
}

static weft_future reserve_arm(struct frames *w)
{
    return weft_arm(w->reserve, weft_reserve, chan);
}
static int reserve_call(void)
{
    return weft_reserve(chan);
}
static void permit_drop(void)
{
    ASSERT_OK(weft_permit_drop(chan));
}

/* Both places at once, of which one has a message in it. */
static weft_future places_arm(struct frames *w)
{
    return weft_arm(w->places, weft_reserve_many, pair, 2);
}
static int places_call(void)
{
    return weft_reserve_many(pair, 2);
}
static void places_drop(void)
{
    ASSERT_OK(weft_permit_drop(pair));
    ASSERT_OK(weft_permit_drop(pair));
}
static void pair_fill(void)
{
    ASSERT_OK(weft_try_send(pair, &one));
}
static void pair_drain(void)
{
    int got;
    ASSERT_EQ(weft_try_recv(pair, &got), 1);
}
static weft_future many_arm(struct frames *w)
{
    return weft_arm(w->many, weft_recv_many, weft_on(pair, w->gots), 4);
}
static int many_call(void)
{
    int gots[4];
    return (int)weft_recv_many(pair, gots, 4);
}

/* At a channel without places the two sides meet: who feeds is the other one. */
static weft_future offer_arm(struct frames *w)
{
    return weft_arm(w->send, weft_send, weft_on(meet, &one));
}
static int offer_call(void)
{
    return weft_send(meet, &one);
}
static void offer_feed(void)
{
    int got;
    ASSERT_EQ(weft_recv(meet, &got), 1);
}
static weft_future fetch_arm(struct frames *w)
{
    return weft_arm(w->recv, weft_recv, weft_on(meet, &w->got));
}
static int fetch_call(void)
{
    int got;
    return weft_recv(meet, &got);
}
static void fetch_feed(void)
{
    ASSERT_OK(weft_send(meet, &one));
}

/* A channel ends once: a round has its own. They are made before, so that none is counted. */
static int_chan *ending[ROUNDS];
static int ending_now;

static weft_future end_arm(struct frames *w)
{
    return weft_arm(w->closed, weft_chan_closed, ending[ending_now]);
}
static int end_call(void)
{
    return weft_chan_closed(ending[ending_now]);
}
static void end_block(void)
{
    ending_now++;
}
static void end_feed(void)
{
    int r = weft_chan_close(ending[ending_now]);
    ASSERT(r == 0 || r == -EALREADY);
}

static weft_future hear_arm(struct frames *w)
{
    return weft_arm(w->hear, weft_broadcast_recv, cast, &at, &w->got);
}
static int hear_call(void)
{
    int got;
    return weft_broadcast_recv(cast, &at, &got);
}
static void hear_block(void)
{
    at = weft_broadcast_now(cast);
}
static void hear_feed(void)
{
    ASSERT_OK(weft_broadcast_send(cast, &one));
}

static weft_future see_arm(struct frames *w)
{
    return weft_arm(w->see, weft_watch_changed, watch, &at, &w->got);
}
static int see_call(void)
{
    int got;
    return weft_watch_changed(watch, &at, &got);
}
static void see_block(void)
{
    at = weft_watch_now(watch);
}
static void see_feed(void)
{
    ASSERT_OK(weft_watch_set(watch, &one));
}

static const struct row rows[] = {
    {"lock", lock_arm, lock_call, unlock, lock_block, unlock, UNLESS_BLOCKED},
    {"cond", cond_arm, cond_call, unlock, nothing, cond_feed, NEVER},
    {"read lock", read_arm, read_call, read_unlock, write_block, write_unlock, UNLESS_BLOCKED},
    {"write lock", write_arm, write_call, write_unlock, write_block, write_unlock, UNLESS_BLOCKED},
    {"semaphore", sem_arm, sem_call, nothing, nothing, sem_feed, WHEN_FED},
    {"notify", notify_arm, notify_call, nothing, nothing, notify_feed, WHEN_FED},
    {"event", event_arm, event_call, nothing, event_block, event_feed, WHEN_FED},
    {"wait group", wg_arm, wg_call, nothing, wg_block, wg_feed, UNLESS_BLOCKED},
    {"barrier", barrier_arm, barrier_call, nothing, nothing, barrier_feed, NEVER},
    {"once", once_arm, once_call, once_leave, once_block, once_leave, UNLESS_BLOCKED},
    {"cell", cell_arm, cell_call, cell_leave, cell_block, cell_leave, UNLESS_BLOCKED},
    {"send", send_arm, send_call, chan_drain, chan_fill, chan_drain, UNLESS_BLOCKED},
    {"receive", recv_arm, recv_call, nothing, nothing, chan_fill, WHEN_FED},
    {"reserve", reserve_arm, reserve_call, permit_drop, chan_fill, chan_drain, UNLESS_BLOCKED},
    {"reserve two", places_arm, places_call, places_drop, pair_fill, pair_drain, UNLESS_BLOCKED},
    {"receive many", many_arm, many_call, nothing, nothing, pair_fill, WHEN_FED},
    {"send at capacity 0", offer_arm, offer_call, nothing, nothing, offer_feed, NEVER},
    {"receive at capacity 0", fetch_arm, fetch_call, nothing, nothing, fetch_feed, NEVER},
    {"end of a channel", end_arm, end_call, nothing, end_block, end_feed, WHEN_FED},
    {"broadcast", hear_arm, hear_call, nothing, hear_block, hear_feed, WHEN_FED},
    {"watch", see_arm, see_call, nothing, see_block, see_feed, WHEN_FED},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- who waits ---- */

static void objects_new(void)
{
    weft_mutex_init(&mutex);
    weft_cond_init(&cond);
    weft_rwlock_init(&rwlock);
    weft_sem_init(&sem, 0);
    weft_notify_init(&notify);
    weft_event_init(&event);
    weft_wg_init(&wg, 0);
    weft_barrier_init(&barrier, 2);
    once = (weft_once)WEFT_ONCE_INIT;
    cell = (weft_cell)WEFT_CELL_INIT;
    ASSERT_OK(weft_chan_new(1, &chan));
    ASSERT_OK(weft_chan_new(2, &pair));
    ASSERT_OK(weft_chan_new(0, &meet));
    for (int i = 0; i < ROUNDS; i++)
        ASSERT_OK(weft_chan_new(1, &ending[i]));
    ending_now = -1;
    ASSERT_OK(weft_broadcast_new(2, &cast));
    ASSERT_OK(weft_watch_new(&one, &watch));
}

static void objects_done(void)
{
    weft_watch_free(watch);
    weft_broadcast_free(cast);
    for (int i = 0; i < ROUNDS; i++)
        weft_chan_free(ending[i]);
    weft_chan_free(meet);
    weft_chan_free(pair);
    weft_chan_free(chan);
    weft_barrier_done(&barrier);
    weft_wg_done(&wg);
    weft_event_done(&event);
    weft_notify_done(&notify);
    weft_sem_done(&sem);
    weft_rwlock_done(&rwlock);
    weft_cond_done(&cond);
    weft_mutex_done(&mutex);
}

static void all_rows_of(const struct kind *kind)
{
    objects_new();
    for (int i = 0; i < ROWS; i++)
        rounds_of(&rows[i], kind);
    objects_done();
}

static int of_tasks(void)
{
    all_rows_of(&fiber);
    all_rows_of(&stackless);
    return 0;
}

TEST(sync_memory_of_a_task_that_waits)
{
    each_counted(of_tasks);
}

/* A thread of the blocking pool, which waits as any other does; and the clock knows when it does. */
static int of_threads(void)
{
    all_rows_of(&thread);
    return 0;
}

TEST(sync_memory_of_a_thread_that_waits)
{
    each_counted(of_threads);
}

/* ---- who need not wait ---- */

static void all_calls(const char *where)
{
    objects_new();
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].is_free != NEVER) calls(&rows[i], where);
    }
    objects_done();
}

static int calls_on_a_fiber(void)
{
    all_calls("fiber");
    return 0;
}

TEST(sync_memory_of_a_task_that_need_not_wait)
{
    each_counted(calls_on_a_fiber);
}

TEST(sync_memory_of_a_thread_that_need_not_wait)
{
    ASSERT_OK(weft_set_allocator(&counted));
    all_calls("thread");
}
