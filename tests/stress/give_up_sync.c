/* SPDX-License-Identifier: MIT
 *
 * Every wait of sync and of channels is given up at every moment of its life (trial.h): by a cancel of the
 * task, by a deadline, by a token, and by several of them at the same instant; also of a select with an arm
 * that is kept, and of a biased one. What it waits for comes at the end of its life. Then everything is
 * accounted for: who had it says so, and else it is there for the next one.
 */
#include "test.h"

#include <string.h>
#include <weft/weft.h>

#define LIFE INT64_C(8)

typedef WEFT_CHAN(uint64_t) word_chan;
typedef WEFT_BROADCAST(uint64_t) word_cast;
typedef WEFT_WATCH(uint64_t) word_watch;

enum {
    SEM,
    READ,
    WRITE,
    EVENT,
    GROUP,
    NOTIFY,
    COND,
    ONCE,
    CELL,
    MANY,
    RESERVE,
    CLOSED,
    HEARD,
    WATCHED,
    BARRIER,
    KEPT,
    BIASED,
    SHAPES
};

static struct {
    weft_sem sem;
    weft_rwlock lock;
    weft_event event;
    weft_wg group;
    weft_notify notify;
    weft_mutex mutex;
    weft_cond cond;
    weft_once once;
    weft_cell cell;
    weft_barrier barrier;
    word_chan *chan; /* of one place */
    word_cast *cast;
    word_watch *watch;
    weft_task *other; /* who comes to the barrier */
} of;

/* ---- what is given up ---- */

struct attempt {
    WEFT_FRAME(int);
    int shape;
    weft_cursor at;
    uint64_t word[2];
    void *place;
    bool locked;
    struct weft_sem_acquire sem;
    struct weft_read_lock read;
    struct weft_write_lock write;
    struct weft_event_wait event;
    struct weft_wg_wait group;
    struct weft_notify_wait notify, again;
    struct weft_lock lock;
    struct weft_cond_wait cond;
    struct weft_once_enter once;
    struct weft_cell_enter cell;
    struct weft_recv_many many;
    struct weft_reserve reserve;
    struct weft_chan_closed closed;
    struct weft_broadcast_recv heard;
    struct weft_watch_changed changed;
    struct weft_barrier_wait barrier;
    struct weft_sleep sleep, step;
    struct weft_select sel;
};
static weft_async(attempt)
{
    weft_begin;
    switch (f->shape) {
    case SEM:
        weft_await(f->sem, weft_sem_acquire, &of.sem, 1);
        weft_return(f->sem.ret);
    case READ:
        weft_await(f->read, weft_read_lock, &of.lock);
        if (f->read.ret == 0) ASSERT_OK(weft_read_unlock(&of.lock));
        weft_return(f->read.ret);
    case WRITE:
        weft_await(f->write, weft_write_lock, &of.lock);
        if (f->write.ret == 0) ASSERT_OK(weft_write_unlock(&of.lock));
        weft_return(f->write.ret);
    case EVENT:
        weft_await(f->event, weft_event_wait, &of.event);
        weft_return(f->event.ret);
    case GROUP:
        weft_await(f->group, weft_wg_wait, &of.group);
        weft_return(f->group.ret);
    case NOTIFY:
        weft_await(f->notify, weft_notify_wait, &of.notify);
        weft_return(f->notify.ret);
    case COND:
        weft_await(f->lock, weft_lock, &of.mutex);
        if (f->lock.ret < 0) weft_return(f->lock.ret);
        weft_await(f->cond, weft_cond_wait, &of.cond, &of.mutex);
        ASSERT_OK(weft_unlock(&of.mutex)); /* whatever it answers */
        weft_return(f->cond.ret);
    case ONCE:
        weft_await(f->once, weft_once_enter, &of.once);
        weft_return(f->once.ret);
    case CELL:
        weft_await(f->cell, weft_cell_enter, &of.cell, &f->place);
        weft_return(f->cell.ret);
    case MANY:
        weft_await(f->many, weft_recv_many, of.chan, f->word, 2);
        weft_return(f->many.ret == 1 ? 0 : (int)f->many.ret);
    case RESERVE:
        weft_await(f->reserve, weft_reserve, of.chan);
        if (f->reserve.ret == 0) ASSERT_OK(weft_permit_drop(of.chan));
        weft_return(f->reserve.ret);
    case CLOSED:
        weft_await(f->closed, weft_chan_closed, of.chan);
        weft_return(f->closed.ret);
    case HEARD:
        f->at = weft_broadcast_now(of.cast);
        weft_await(f->heard, weft_broadcast_recv, of.cast, &f->at, f->word);
        weft_return(f->heard.ret == 1 ? 0 : f->heard.ret);
    case WATCHED:
        weft_await(f->changed, weft_watch_changed, of.watch, &f->at,
                   f->word); /* the first is news */
        if (f->changed.ret < 0) weft_return(f->changed.ret);
        weft_await(f->changed, weft_watch_changed, of.watch, &f->at, f->word);
        weft_return(f->changed.ret == 1 ? 0 : f->changed.ret);
    case BARRIER:
        weft_await(f->barrier, weft_barrier_wait, &of.barrier);
        weft_return(f->barrier.ret < 0 ? f->barrier.ret : 0);
    case KEPT:
        weft_start(f->sleep, weft_sleep, LIFE);
        do {
            weft_await(f->sel, weft_select,
                       .arm = {weft_keep(f->sleep, weft_sleep), weft_arm(f->step, weft_sleep, 3)});
        } while (f->sel.ret == 1);
        f->ret = f->sel.ret;
        weft_await_settled(f->sleep, weft_sleep);
        weft_return(f->ret);
    default: /* BIASED */
        weft_await(f->sel, weft_select,
                   .arm = {weft_arm(f->notify, weft_notify_wait, &of.notify),
                           weft_arm(f->event, weft_event_wait, &of.event),
                           weft_arm(f->sem, weft_sem_acquire, &of.sem, 1)},
                   .biased = true);
        weft_return(f->sel.ret == 2 ? 0 : f->sel.ret);
    }
    weft_end;
}

#include "trial.h"

/* ---- what comes at the end of its life, and where it is then ---- */

static void keeps_from_it(int shape)
{
    if (shape == READ || shape == WRITE) ASSERT_OK(weft_write_lock(&of.lock));
    if (shape == GROUP) weft_wg_add(&of.group, 1);
    if (shape == ONCE) ASSERT_EQ(weft_once_enter(&of.once), 1);
    if (shape == CELL) ASSERT_EQ(weft_cell_enter(&of.cell, &(void *){NULL}), 1);
    if (shape == RESERVE) ASSERT_OK(weft_try_send(of.chan, &(uint64_t){1}));
}

/* The other of two comes to the barrier; alone, it is told to stop. */
static int comes_to_the_barrier(void)
{
    int r = weft_barrier_wait(&of.barrier);
    return r < 0 ? r : 0;
}

static void lets_have_it(int shape)
{
    uint64_t word = 1;
    if (shape == SEM || shape == BIASED) weft_sem_release(&of.sem, 1);
    if (shape == READ || shape == WRITE) ASSERT_OK(weft_write_unlock(&of.lock));
    if (shape == EVENT) weft_event_set(&of.event);
    if (shape == GROUP) weft_wg_finish(&of.group);
    if (shape == NOTIFY) weft_notify_one(&of.notify);
    if (shape == COND) weft_cond_wake_one(&of.cond);
    if (shape == ONCE) ASSERT_OK(weft_once_leave(&of.once, true));
    if (shape == CELL) ASSERT_OK(weft_cell_leave(&of.cell, &of));
    if (shape == MANY) ASSERT_OK(weft_try_send(of.chan, &word));
    if (shape == RESERVE) ASSERT_EQ(weft_try_recv(of.chan, &word), 1);
    if (shape == CLOSED) ASSERT_OK(weft_chan_close(of.chan));
    if (shape == HEARD) ASSERT_OK(weft_broadcast_send(of.cast, &word));
    if (shape == BARRIER) of.other = weft_go(comes_to_the_barrier);
    if (shape == WATCHED) ASSERT_OK(weft_watch_set(of.watch, &word));
}

static void barrier_is_accounted_for(int r)
{
    int got = 1;
    if (r < 0) weft_cancel(of.other);
    ASSERT_OK(weft_join(of.other, &got));
    ASSERT_EQ(got, r < 0 ? -ECANCELED : 0);
}

static void is_accounted_for(int shape, int r)
{
    struct weft_notify_wait wait;
    bool had_it = r == 0;
    uint64_t word;

    if (shape == BARRIER) barrier_is_accounted_for(r);
    if (shape == SEM || shape == BIASED) {
        ASSERT_EQ(weft_sem_permits(&of.sem), !had_it);
        if (!had_it) ASSERT_OK(weft_sem_try_acquire(&of.sem, 1));
    }
    ASSERT_OK(weft_try_write_lock(&of.lock)); /* nobody reads, nobody writes */
    ASSERT_OK(weft_write_unlock(&of.lock));
    ASSERT_OK(weft_try_lock(&of.mutex));
    ASSERT_OK(weft_unlock(&of.mutex));
    ASSERT_EQ(weft_wg_count(&of.group), 0);
    bool stored = shape == NOTIFY && !had_it;
    ASSERT_EQ(weft_select(weft_arm(wait, weft_notify_wait, &of.notify), weft_otherwise), !stored);
    ASSERT_EQ(weft_chan_len(of.chan), shape == MANY && !had_it);
    if (weft_chan_len(of.chan) > 0) ASSERT_EQ(weft_try_recv(of.chan, &word), 1);
}

static void made_anew(void)
{
    of.sem = (weft_sem)WEFT_SEM_INIT(0);
    of.lock = (weft_rwlock)WEFT_RWLOCK_INIT;
    of.barrier = (weft_barrier)WEFT_BARRIER_INIT(2);
    ASSERT_OK(weft_chan_new(1, &of.chan));
    ASSERT_OK(weft_broadcast_new(4, &of.cast));
    ASSERT_OK(weft_watch_new(&(uint64_t){0}, &of.watch));
}

/* Whoever is left there aborts. */
static void ended(void)
{
    weft_sem_done(&of.sem);
    weft_rwlock_done(&of.lock);
    weft_event_done(&of.event);
    weft_wg_done(&of.group);
    weft_notify_done(&of.notify);
    weft_cond_done(&of.cond);
    weft_mutex_done(&of.mutex);
    weft_barrier_done(&of.barrier);
    weft_chan_free(of.chan);
    weft_broadcast_free(of.cast);
    weft_watch_free(of.watch);
    memset(&of, 0, sizeof(of));
}

static int gives_up(struct trial *t)
{
    made_anew();
    keeps_from_it(t->shape);
    int r = trial_run(t, lets_have_it);
    is_accounted_for(t->shape, r);
    ended();
    return r;
}

TEST_WITH(give_up_sync_at_every_moment, .timeout_s = 300)
{
    static const struct trials all = {
        .gives_up = gives_up, .shape_count = SHAPES, .count = 600, /* of some 2700 that there are */
    };
    trials_on_each(&all);
}
