/* SPDX-License-Identifier: MIT
 *
 * Every wait of lock.h, sync.h, chan.h and cast.h as an arm of a select, beside a sleep: as the loser, which has taken nothing, so that
 * the next one who comes gets it; as the winner at once; and as the winner that had to wait. By fibers and stackless tasks, on every
 * shape of runtime, on a clock that stands.
 */
#include "crew.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

typedef WEFT_CHAN(uint64_t) word_chan;
typedef WEFT_BROADCAST(uint64_t) word_cast;

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
static word_chan *chan; /* of two places */
static word_chan *meet;
static word_cast *cast;
static word_cast *watch;
static uint64_t one = 1;

struct waits {
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
        struct weft_reserve_many reserve_many;
        struct weft_chan_closed closed;
        struct weft_broadcast_recv hear;
        struct weft_watch_changed see;
    };
    uint64_t word, words[4];
    weft_cursor at;
    void *made;
};

/* ---- arms: how each begins, what keeps it waiting, what lets it go, what is done with it ---- */

static weft_future lock_arm(struct waits *w)
{
    return weft_arm(w->lock, weft_lock, &mutex);
}
static void lock_block(void)
{
    ASSERT_OK(weft_lock(&mutex));
}
static void lock_feed(void)
{
    ASSERT_OK(weft_unlock(&mutex));
}
static void lock_got(struct waits *w)
{
    ASSERT_OK(w->lock.ret);
    ASSERT_OK(weft_unlock(&mutex));
}

/* The mutex is the caller's before and behind it, whoever wins. */
static weft_future cond_arm(struct waits *w)
{
    ASSERT_OK(weft_try_lock(&mutex));
    return weft_arm(w->cond, weft_cond_wait, &cond, &mutex);
}
static void cond_feed(void)
{
    weft_cond_wake_one(&cond);
}
static void cond_over(struct waits *w)
{
    ASSERT(w->cond.ret == 0 || w->cond.ret == -ECANCELED);
    ASSERT_OK(weft_unlock(&mutex));
}

static weft_future read_arm(struct waits *w)
{
    return weft_arm(w->read, weft_read_lock, &rwlock);
}
static weft_future write_arm(struct waits *w)
{
    return weft_arm(w->write, weft_write_lock, &rwlock);
}
static void rw_block(void)
{
    ASSERT_OK(weft_write_lock(&rwlock));
}
static void rw_feed(void)
{
    ASSERT_OK(weft_write_unlock(&rwlock));
}
static void read_got(struct waits *w)
{
    ASSERT_OK(w->read.ret);
    ASSERT_OK(weft_read_unlock(&rwlock));
}
static void write_got(struct waits *w)
{
    ASSERT_OK(w->write.ret);
    ASSERT_OK(weft_write_unlock(&rwlock));
}

static weft_future sem_arm(struct waits *w)
{
    return weft_arm(w->sem, weft_sem_acquire, &sem, 2);
}
static void sem_feed(void)
{
    weft_sem_release(&sem, 2);
}
static void sem_got(struct waits *w)
{
    ASSERT_OK(w->sem.ret);
    ASSERT_EQ(weft_sem_permits(&sem), 0);
}

static weft_future notify_arm(struct waits *w)
{
    return weft_arm(w->notify, weft_notify_wait, &notify);
}
static void notify_feed(void)
{
    weft_notify_one(&notify);
}

static weft_future event_arm(struct waits *w)
{
    return weft_arm(w->event, weft_event_wait, &event);
}
static void event_block(void)
{
    weft_event_reset(&event);
}
static void event_feed(void)
{
    weft_event_set(&event);
}

static weft_future wg_arm(struct waits *w)
{
    return weft_arm(w->wg, weft_wg_wait, &wg);
}
static void wg_block(void)
{
    weft_wg_add(&wg, 1);
}
static void wg_feed(void)
{
    weft_wg_finish(&wg);
}

static weft_future barrier_arm(struct waits *w)
{
    return weft_arm(w->barrier, weft_barrier_wait, &barrier);
}
static void barrier_feed(void)
{
    ASSERT_GE(weft_barrier_wait(&barrier), 0); /* the other party */
}

static weft_future once_arm(struct waits *w)
{
    return weft_arm(w->once, weft_once_enter, &once);
}
static void once_block(void)
{
    ASSERT_EQ(weft_once_enter(&once), 1);
}
static void once_feed(void)
{
    ASSERT_OK(weft_once_leave(&once, false));
}
static void once_got(struct waits *w)
{
    ASSERT_EQ(w->once.ret, 1);
    ASSERT_OK(weft_once_leave(&once, false));
}

static weft_future cell_arm(struct waits *w)
{
    return weft_arm(w->cell, weft_cell_enter, &cell, &w->made);
}
static void cell_block(void)
{
    void *made;
    ASSERT_EQ(weft_cell_enter(&cell, &made), 1);
}
static void cell_feed(void)
{
    ASSERT_OK(weft_cell_leave(&cell, NULL));
}
static void cell_got(struct waits *w)
{
    ASSERT_EQ(w->cell.ret, 1);
    ASSERT_OK(weft_cell_leave(&cell, NULL));
}

static weft_future send_arm(struct waits *w)
{
    return weft_arm(w->send, weft_send, weft_on(chan, &one));
}
static void chan_fill(void)
{
    ASSERT_OK(weft_try_send(chan, &one));
    ASSERT_OK(weft_try_send(chan, &one));
}
static void chan_drain(void)
{
    uint64_t word;
    ASSERT_EQ(weft_try_recv(chan, &word), 1);
    ASSERT_EQ(weft_try_recv(chan, &word), 1);
}
static void send_got(struct waits *w)
{
    uint64_t word;
    ASSERT_OK(w->send.ret);
    ASSERT_EQ(weft_chan_len(chan), 1);
    ASSERT_EQ(weft_try_recv(chan, &word), 1);
}
static weft_future reserve_arm(struct waits *w)
{
    return weft_arm(w->reserve, weft_reserve, chan);
}
static void reserve_got(struct waits *w)
{
    ASSERT_OK(w->reserve.ret);
    ASSERT_OK(weft_permit_drop(chan));
}
static weft_future reserve_many_arm(struct waits *w)
{
    return weft_arm(w->reserve_many, weft_reserve_many, chan, 2);
}
static void reserve_many_got(struct waits *w)
{
    ASSERT_OK(w->reserve_many.ret);
    ASSERT_OK(weft_permit_drop(chan));
    ASSERT_OK(weft_permit_drop(chan));
}
static weft_future recv_arm(struct waits *w)
{
    return weft_arm(w->recv, weft_recv, weft_on(chan, &w->word));
}
static void chan_feed(void)
{
    ASSERT_OK(weft_send(chan, &one));
}
static void recv_got(struct waits *w)
{
    ASSERT_EQ(w->recv.ret, 1);
    ASSERT_EQ(w->word, 1);
}
static weft_future many_arm(struct waits *w)
{
    return weft_arm(w->many, weft_recv_many, weft_on(chan, w->words), 4);
}
static void many_got(struct waits *w)
{
    ASSERT_EQ(w->many.ret, 1);
    ASSERT_EQ(w->words[0], 1);
}
static weft_future meet_send_arm(struct waits *w)
{
    return weft_arm(w->send, weft_send, weft_on(meet, &one));
}
static void meet_receives(void)
{
    uint64_t word;
    ASSERT_EQ(weft_recv(meet, &word), 1);
}
static void meet_send_got(struct waits *w)
{
    ASSERT_OK(w->send.ret);
}
static weft_future meet_recv_arm(struct waits *w)
{
    return weft_arm(w->recv, weft_recv, weft_on(meet, &w->word));
}
static void meet_sends(void)
{
    ASSERT_OK(weft_send(meet, &one));
}
static weft_future closed_arm(struct waits *w)
{
    return weft_arm(w->closed, weft_chan_closed, chan);
}
static void closed_block(void)
{
    weft_chan_free(chan);
    ASSERT_OK(weft_chan_new(2, &chan));
}
static void closed_feed(void)
{
    ASSERT_OK(weft_chan_close(chan));
}

static uint64_t
    heard; /* messages of the broadcast, values of the watch, that were waited for so far */
static uint64_t seen;

static weft_future hear_arm(struct waits *w)
{
    w->at = (weft_cursor){.next = heard};
    return weft_arm(w->hear, weft_broadcast_recv, cast, &w->at, &w->word);
}
static void hear_feed(void)
{
    ASSERT_OK(weft_broadcast_send(cast, &one));
}
static void hear_got(struct waits *w)
{
    ASSERT_EQ(w->hear.ret, 1);
    heard = w->at.next;
}
static weft_future see_arm(struct waits *w)
{
    w->at = (weft_cursor){.next = seen};
    return weft_arm(w->see, weft_watch_changed, watch, &w->at, &w->word);
}
static void see_feed(void)
{
    ASSERT_OK(weft_watch_set(watch, &one));
}
static void see_got(struct waits *w)
{
    ASSERT_EQ(w->see.ret, 1);
    seen = w->at.next;
}
static void see_block(void)
{
    seen = weft_watch_now(watch).next;
}

static void nothing(void)
{
}
static void nothing_got(struct waits *w)
{
    (void)w;
}

struct row {
    const char *name;
    weft_future (*arm)(struct waits *w);
    void (*block)(void);           /* by another: now it has to wait */
    void (*feed)(void);            /* by the same: now it has not */
    void (*got)(struct waits *w);  /* it has won */
    void (*lost)(struct waits *w); /* it has not */
    bool forgets;                  /* what comes while nobody waits is gone */
};

static const struct row rows[] = {
    {"lock", lock_arm, lock_block, lock_feed, lock_got, nothing_got, false},
    {"cond", cond_arm, nothing, cond_feed, cond_over, cond_over, true},
    {"read lock", read_arm, rw_block, rw_feed, read_got, nothing_got, false},
    {"write lock", write_arm, rw_block, rw_feed, write_got, nothing_got, false},
    {"semaphore", sem_arm, nothing, sem_feed, sem_got, nothing_got, false},
    {"notify", notify_arm, nothing, notify_feed, nothing_got, nothing_got, false},
    {"event", event_arm, event_block, event_feed, nothing_got, nothing_got, false},
    {"wait group", wg_arm, wg_block, wg_feed, nothing_got, nothing_got, false},
    {"barrier", barrier_arm, nothing, barrier_feed, nothing_got, nothing_got, false},
    {"once", once_arm, once_block, once_feed, once_got, nothing_got, false},
    {"cell", cell_arm, cell_block, cell_feed, cell_got, nothing_got, false},
    {"send", send_arm, chan_fill, chan_drain, send_got, nothing_got, false},
    {"reserve", reserve_arm, chan_fill, chan_drain, reserve_got, nothing_got, false},
    {"reserve many", reserve_many_arm, chan_fill, chan_drain, reserve_many_got, nothing_got, false},
    {"receive", recv_arm, nothing, chan_feed, recv_got, nothing_got, false},
    {"receive many", many_arm, nothing, chan_feed, many_got, nothing_got, false},
    {"send to meet", meet_send_arm, nothing, meet_receives, meet_send_got, nothing_got, false},
    {"receive to meet", meet_recv_arm, nothing, meet_sends, recv_got, nothing_got, false},
    {"broadcast", hear_arm, nothing, hear_feed, hear_got, nothing_got, false},
    {"watch", see_arm, see_block, see_feed, see_got, nothing_got, false},
    {"end", closed_arm, closed_block, closed_feed, nothing_got, nothing_got, false},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- one select, by either kind of task; what it answers is which arm has won ---- */

static int on_a_fiber(const struct row *row, int64_t limit)
{
    struct waits w = {.word = 0};
    struct weft_sleep sleep;
    int which = weft_select_biased(row->arm(&w), weft_arm(sleep, weft_sleep, limit));
    if (which == 0) row->got(&w);
    if (which == 1) row->lost(&w);
    return which;
}

struct stackless {
    WEFT_FRAME(int);
    const struct row *row;
    int64_t limit;
    struct waits w;
    struct weft_sleep sleep;
    weft_future arms[2];
    struct weft_race race;
};
static weft_async(stackless)
{
    weft_begin;
    f->arms[0] = f->row->arm(&f->w);
    f->arms[1] = weft_arm(f->sleep, weft_sleep, f->limit);
    weft_await(f->race, weft_race, f->arms, 2, .biased = true);
    if (f->race.ret == 0) f->row->got(&f->w);
    if (f->race.ret == 1) f->row->lost(&f->w);
    weft_return(f->race.ret);
    weft_end;
}

static int selects(const struct row *row, int64_t limit, bool fiber)
{
    int which = -1;
    weft_task *task = fiber ? weft_go(on_a_fiber, row, limit) : weft_spawn(stackless, row, limit);
    ASSERT_OK(weft_join(task, &which));
    return which;
}

/* ---- the trials ---- */

static int feeds(const struct row *row)
{
    row->block();
    int r = weft_sleep(weft_ms(3));
    row->feed();
    return r;
}

/* It comes at 1 ms and leaves at 2; at 3 what it waited for is there, and the next one has it at 4, without a wait. */
static void loses_then_wins(const struct row *row, bool fiber)
{
    weft_time start = weft_now();
    weft_task *feeder = weft_go(feeds, row);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_EQ(selects(row, weft_ms(1), fiber), 1);
    ASSERT_OK(weft_sleep_until(start + weft_ms(4)));
    if (!row->forgets) {
        ASSERT_EQ(selects(row, weft_ms(1), fiber), 0);
        ASSERT_EQ(weft_now(), start + weft_ms(4));
    }
    ASSERT_OK(weft_join(feeder, NULL));
}

static void waits_and_wins(const struct row *row, bool fiber)
{
    weft_time start = weft_now();
    weft_task *feeder = weft_go(feeds, row);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_EQ(selects(row, weft_ms(9), fiber), 0);
    ASSERT_EQ(weft_now(), start + weft_ms(3));
    ASSERT_OK(weft_join(feeder, NULL));
}

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
    heard = 0;
    ASSERT_OK(weft_chan_new(2, &chan));
    ASSERT_OK(weft_chan_new(0, &meet));
    ASSERT_OK(weft_broadcast_new(2, &cast));
    ASSERT_OK(weft_watch_new(&one, &watch));
}

static void objects_done(void) /* nobody is left on any of them, or it aborts */
{
    weft_mutex_done(&mutex);
    weft_cond_done(&cond);
    weft_rwlock_done(&rwlock);
    weft_sem_done(&sem);
    weft_notify_done(&notify);
    weft_event_done(&event);
    weft_wg_done(&wg);
    weft_barrier_done(&barrier);
    weft_chan_free(chan);
    weft_chan_free(meet);
    weft_broadcast_free(cast);
    weft_watch_free(watch);
}

static int all_rows(void)
{
    objects_new();
    for (int i = 0; i < ROWS; i++) {
        for (int fiber = 0; fiber < 2; fiber++) {
            loses_then_wins(&rows[i], fiber);
            waits_and_wins(&rows[i], fiber);
        }
    }
    objects_done();
    return 0;
}

TEST(select_over_every_wait)
{
    each_paused(all_rows);
}
