/* SPDX-License-Identifier: MIT
 *
 * world - what the tasks of a random program share (stress/whole.c), and one thing to do with it, stackless: each kind of lock, channel, queue and job once, and
 * combinators of them. Whatever goes in or out is counted; world_is_accounted_for compares, ends everything, and so finds whoever is left in a list.
 */
#ifndef WEFT_TESTS_WORLD_H
#define WEFT_TESTS_WORLD_H

#include "crew.h"
#include "pool.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

enum { PIPES = 5, WIDE = PIPES - 1, PERMITS = 3, TOKENS = 32 };

typedef WEFT_CHAN(uint64_t) words;
struct wide {
    uint64_t id;
    uint64_t twice;
    char fill[9];
};
typedef WEFT_CHAN(struct wide) wides;
typedef WEFT_BROADCAST(uint64_t) word_cast;
typedef WEFT_WATCH(uint64_t) word_watch;
typedef WEFT_DELAY(uint64_t) word_delay;

/* What came in and what came out: how many, and their sum. */
struct account {
    _Atomic uint64_t in, in_sum, out, out_sum; /* relaxed everywhere: read when all is over */
};

static struct {
    words *pipe[PIPES]; /* capacities 0, 1, 4, and unbounded; the last is of wide messages */
    struct account passed[PIPES];
    word_cast *cast;
    word_watch *watch;
    word_delay *delay;
    struct account delayed;
    weft_mutex mutex;
    int inside;           /* [mutex] */
    uint64_t posted, had; /* [mutex] */
    weft_cond cond;
    weft_rwlock rwlock;
    _Atomic int readers;
    int writers; /* [rwlock] */
    weft_sem sem;
    _Atomic int out; /* permits */
    weft_once once;
    weft_token token[TOKENS]; /* the first is the parent of the rest */
    _Atomic uint64_t ids;
    _Atomic uint64_t jobs_answered, jobs_ran;
    _Atomic int64_t gifts;
    _Atomic uint64_t steps;
    _Atomic bool over;
} of;

/* ---- small things --------------------------------------------------------------------------------------------- */

static void came_in(struct account *a, uint64_t id)
{
    fetch_add_relaxed(&a->in, 1);
    fetch_add_relaxed(&a->in_sum, id);
}

static void went_out(struct account *a, uint64_t id)
{
    fetch_add_relaxed(&a->out, 1);
    fetch_add_relaxed(&a->out_sum, id);
}

static uint64_t new_id(void)
{
    return fetch_add_relaxed(&of.ids, 1) + 1;
}

static struct wide widened(uint64_t id)
{
    return (struct wide){.id = id, .twice = 2 * id};
}

static uint64_t narrowed(const struct wide *wide)
{
    ASSERT_EQ(wide->twice, 2 * wide->id);
    return wide->id;
}

/* A stretch of time, at times none. */
static weft_time span(uint64_t *random)
{
    return pool_random(random, 8) == 0 ? 0 : (weft_time)pool_random(random, 5000);
}

static weft_token *a_token(uint64_t *random)
{
    return &of.token[pool_random(random, TOKENS)];
}

static int64_t works(_Atomic uint64_t *count)
{
    fetch_add_relaxed(count, 1);
    return 1;
}

static int64_t works_with_gift(const uint64_t *gift)
{
    return (int64_t)*gift;
}

static void gift_goes(void *gift, int64_t ret)
{
    (void)ret;
    free(gift);
    fetch_add_relaxed(&of.gifts, -1);
}

static uint64_t *new_gift(void)
{
    uint64_t *gift = malloc(sizeof(*gift));
    ASSERT(gift);
    *gift = 7;
    fetch_add_relaxed(&of.gifts, 1);
    return gift;
}

static void gift_is_answered(uint64_t *gift, int64_t ret)
{
    if (ret != -ECANCELED && ret != -ETIME) gift_goes(gift, ret);
}

/* ---- inside of locks: by who holds them ------------------------------------------------------------------------- */

static void lock_begins(void)
{
    ASSERT_EQ(of.inside++, 0);
}

static void lock_ends(void)
{
    ASSERT_EQ(--of.inside, 0);
    ASSERT_OK(weft_unlock(&of.mutex));
}

static void read_begins(void)
{
    fetch_add_relaxed(&of.readers, 1);
    ASSERT_EQ(of.writers, 0);
}

static void read_ends(void)
{
    fetch_add_relaxed(&of.readers, -1);
    ASSERT_OK(weft_read_unlock(&of.rwlock));
}

static void write_begins(void)
{
    ASSERT_EQ(of.writers++, 0);
    ASSERT_EQ(load_relaxed(&of.readers), 0);
}

static void write_ends(bool downgrades)
{
    ASSERT_EQ(--of.writers, 0);
    if (!downgrades) {
        ASSERT_OK(weft_write_unlock(&of.rwlock));
        return;
    }
    ASSERT_OK(weft_downgrade(&of.rwlock));
    read_begins();
    read_ends();
}

static void permits_begin(int count)
{
    ASSERT_LE(fetch_add_relaxed(&of.out, count) + count, PERMITS);
}

static void permits_end(int count)
{
    fetch_add_relaxed(&of.out, -count);
    weft_sem_release(&of.sem, (uint64_t)count);
}

/* ---- one thing to do, stackless ----------------------------------------------------------------------------------- */

enum {
    SEND,
    RECV,
    MANY,
    RESERVE,
    LOCK,
    COND,
    POST,
    READ,
    WRITE,
    SEM,
    ONCE,
    CAST,
    WATCH,
    PUT_OFF,
    DELAYED,
    JOB,
    GIFT,
    SLEEP,
    SELECT,
    NESTED,
    MEET,
    OPS
};

struct op {
    WEFT_FRAME(int);
    uint64_t random;
    int kind;
    uint32_t pipe;
    uint64_t id, got[4];
    struct wide wide, wide_got;
    int count, missing;
    weft_cursor at;
    weft_delay_key key;
    uint64_t *gift;
    struct weft_send send;
    struct weft_recv recv, other;
    struct weft_recv_many many;
    struct weft_reserve_many reserve;
    struct weft_lock lock;
    struct weft_cond_wait cond;
    struct weft_read_lock read;
    struct weft_write_lock write;
    struct weft_sem_acquire sem;
    struct weft_once_enter once;
    struct weft_broadcast_recv cast;
    struct weft_watch_changed watch;
    struct weft_delay_next delay;
    struct weft_blocking job;
    struct weft_sleep sleep, pause;
    struct weft_yield yield;
    struct weft_select select;
    struct weft_all all;
    struct weft_timeout timeout;
    struct weft_shield shield;
};

/* What it waits for comes back in time, whoever has it: to wait for it for so long is to wait for a wake that was lost. */
#define LONG weft_secs(3600)

/* How long to try. */
static weft_time span_for(uint64_t *random, int kind)
{
    bool comes_back = kind == LOCK || kind == READ || kind == WRITE || kind == SEM || kind == ONCE;
    return comes_back && pool_random(random, 2) ? LONG : span(random);
}

static void *message_of(struct op *f)
{
    f->id = new_id();
    f->wide = widened(f->id);
    return f->pipe == WIDE ? (void *)&f->wide : (void *)&f->id;
}

static void *place_of(struct op *f)
{
    return f->pipe == WIDE ? (void *)&f->wide_got : (void *)&f->got[0];
}

static void is_sent(const struct op *f, int ret)
{
    if (ret == 0) came_in(&of.passed[f->pipe], f->id);
}

static void is_received(struct op *f, int ret)
{
    if (ret > 0)
        went_out(&of.passed[f->pipe], f->pipe == WIDE ? narrowed(&f->wide_got) : f->got[0]);
}

/* The places that were reserved are used, or given back. */
static void uses_permits(struct op *f)
{
    for (size_t i = 0; i < f->reserve.count; i++) {
        f->id = new_id();
        if (pool_random(&f->random, 3) == 0) {
            ASSERT_OK(weft_permit_drop(of.pipe[f->pipe]));
        } else {
            ASSERT_OK(weft_permit_send(of.pipe[f->pipe], &f->id));
            came_in(&of.passed[f->pipe], f->id);
        }
    }
}

static void notes_delayed(uint64_t *random, uint64_t *id, weft_delay_key *key)
{
    *id = new_id();
    ASSERT_OK(weft_delay_insert(of.delay, id, span(random), key));
    came_in(&of.delayed, *id);
    if (pool_random(random, 2)) (void)weft_delay_reset(of.delay, *key, span(random));
    if (pool_random(random, 3) == 0 && weft_delay_remove(of.delay, *key, id) == 0)
        went_out(&of.delayed, *id);
}

/* Whatever each arm says has happened; who lost and says so has taken nothing. */
static void settles_select(struct op *f, int won)
{
    is_sent(f, f->send.ret); /* 0 or 1: of who meets, others decide whether it is sent */
    if (f->recv.ret > 0) {
        ASSERT_EQ(won, 1);
        went_out(&of.passed[1], f->got[1]);
    }
    if (f->other.ret > 0) {
        ASSERT_EQ(won, 2);
        went_out(&of.passed[0], f->got[2]);
    }
    if (f->sem.ret == 0) {
        ASSERT_EQ(won, 3);
        permits_begin(1);
        permits_end(1);
    }
    if (f->lock.ret == 0) {
        ASSERT_EQ(won, 4);
        lock_begins();
        lock_ends();
    }
}

static weft_async(op)
{
    weft_begin;
    f->pipe = pool_random(&f->random, PIPES);
    switch (f->kind) {
    case SEND:
        weft_await(f->send, weft_send, of.pipe[f->pipe], message_of(f));
        is_sent(f, f->send.ret);
        weft_return(f->send.ret);
    case RECV:
        weft_await(f->recv, weft_recv, of.pipe[f->pipe], place_of(f));
        is_received(f, f->recv.ret);
        weft_return(f->recv.ret < 0 ? f->recv.ret : 0);
    case MANY:
        f->pipe %= WIDE;
        weft_await(f->many, weft_recv_many, of.pipe[f->pipe], f->got, 4);
        for (ssize_t i = 0; i < f->many.ret; i++)
            went_out(&of.passed[f->pipe], f->got[i]);
        weft_return(0);
    case RESERVE:
        f->pipe = 1 + f->pipe % 2;
        weft_await(f->reserve, weft_reserve_many, of.pipe[f->pipe],
                   f->pipe == 1 ? 1 : 1 + pool_random(&f->random, 4));
        if (f->reserve.ret < 0) weft_return(f->reserve.ret);
        weft_await(f->yield, weft_yield);
        uses_permits(f);
        weft_return(0);
    case LOCK:
        weft_await(f->lock, weft_lock, &of.mutex);
        if (f->lock.ret < 0) weft_return(f->lock.ret);
        lock_begins();
        weft_await(f->pause, weft_sleep, span(&f->random));
        lock_ends();
        weft_return(0);
    case COND:
        weft_await(f->lock, weft_lock, &of.mutex);
        if (f->lock.ret < 0) weft_return(f->lock.ret);
        for (f->count = 0; of.posted == of.had && f->count < 2; f->count++) {
            weft_await(f->cond, weft_cond_wait, &of.cond, &of.mutex);
            if (f->cond.ret < 0) break;
        }
        lock_begins();
        if (of.posted > of.had) of.had++;
        lock_ends();
        weft_return(0);
    case POST:
        weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->lock, weft_lock, &of.mutex));
        ASSERT_OK(f->lock.ret);
        lock_begins();
        of.posted++;
        if (pool_random(&f->random, 2)) {
            weft_cond_wake_one(&of.cond);
        } else {
            (void)weft_cond_wake_all(&of.cond);
        }
        lock_ends();
        weft_return(0);
    case READ:
        weft_await(f->read, weft_read_lock, &of.rwlock);
        if (f->read.ret < 0) weft_return(f->read.ret);
        read_begins();
        weft_await(f->pause, weft_sleep, span(&f->random));
        read_ends();
        weft_return(0);
    case WRITE:
        weft_await(f->write, weft_write_lock, &of.rwlock);
        if (f->write.ret < 0) weft_return(f->write.ret);
        write_begins();
        weft_await(f->yield, weft_yield);
        write_ends(pool_random(&f->random, 2));
        weft_return(0);
    case SEM:
        f->count = 1 + (int)pool_random(&f->random, PERMITS);
        weft_await(f->sem, weft_sem_acquire, &of.sem, (uint64_t)f->count);
        if (f->sem.ret < 0) weft_return(f->sem.ret);
        permits_begin(f->count);
        weft_await(f->pause, weft_sleep, span(&f->random));
        permits_end(f->count);
        weft_return(0);
    case ONCE:
        weft_await(f->once, weft_once_enter, &of.once);
        if (f->once.ret <= 0) weft_return(f->once.ret);
        weft_await(f->yield, weft_yield);
        ASSERT_OK(weft_once_leave(&of.once, false));
        weft_return(0);
    case CAST:
        f->id = new_id();
        f->at = weft_broadcast_now(of.cast);
        if (pool_random(&f->random, 2)) ASSERT_OK(weft_broadcast_send(of.cast, &f->id));
        weft_await(f->cast, weft_broadcast_recv, of.cast, &f->at, &f->got[0]);
        ASSERT(f->cast.ret < 0 || f->got[0] > 0);
        weft_return(f->cast.ret < 0 ? f->cast.ret : 0);
    case WATCH:
        f->id = new_id();
        if (pool_random(&f->random, 2)) ASSERT_OK(weft_watch_set(of.watch, &f->id));
        for (f->count = 0; f->count < 2; f->count++) {
            weft_await(f->watch, weft_watch_changed, of.watch, &f->at, &f->got[0]);
            if (f->watch.ret < 0) break;
        }
        weft_return(0);
    case PUT_OFF:
        notes_delayed(&f->random, &f->id, &f->key);
        weft_return(0);
    case DELAYED:
        weft_await(f->delay, weft_delay_next, of.delay, &f->id);
        if (f->delay.ret > 0) went_out(&of.delayed, f->id);
        weft_return(f->delay.ret < 0 ? f->delay.ret : 0);
    case JOB:
        weft_await(f->job, weft_blocking, weft_bind(works, &of.jobs_ran));
        if (f->job.ret == 1) fetch_add_relaxed(&of.jobs_answered, 1);
        weft_return(0);
    case GIFT:
        f->gift = new_gift();
        weft_await(f->job, weft_blocking, weft_bind(works_with_gift, f->gift),
                   .dispose = gift_goes);
        gift_is_answered(f->gift, f->job.ret);
        weft_return(0);
    case SLEEP:
        weft_await(f->sleep, weft_sleep, span(&f->random));
        weft_return(f->sleep.ret);
    case SELECT:
    case MEET:
        f->pipe = f->kind == MEET ? 0 : f->pipe;
        f->send.ret = f->recv.ret = f->other.ret = f->sem.ret = f->lock.ret = -EAGAIN;
        f->missing = (int)pool_random(&f->random, 64);
        weft_await(
            f->select, weft_select,
            .arm = {weft_when(!(f->missing & 1),
                              weft_arm(f->send, weft_send, of.pipe[f->pipe], message_of(f))),
                    weft_when(!(f->missing & 2),
                              weft_arm(f->recv, weft_recv, of.pipe[1], &f->got[1])),
                    weft_when(!(f->missing & 4),
                              weft_arm(f->other, weft_recv, of.pipe[0], &f->got[2])),
                    weft_when(!(f->missing & 8), weft_arm(f->sem, weft_sem_acquire, &of.sem, 1)),
                    weft_when(!(f->missing & 16), weft_arm(f->lock, weft_lock, &of.mutex)),
                    weft_arm(f->sleep, weft_sleep, span(&f->random))},
            .biased = f->missing & 32);
        settles_select(f, f->select.ret);
        weft_return(f->select.ret < 0 ? f->select.ret : 0);
    default: /* NESTED: all inside of a select inside of a timeout */
        f->send.ret = f->recv.ret = f->other.ret = f->sem.ret = f->lock.ret = -EAGAIN;
        weft_await(
            f->timeout, weft_timeout, span(&f->random),
            weft_arm(f->select, weft_select,
                     .arm = {weft_arm(f->all, weft_all,
                                      .arm = {weft_arm(f->send, weft_send, of.pipe[f->pipe],
                                                       message_of(f)),
                                              weft_arm(f->pause, weft_sleep, span(&f->random))}),
                             weft_arm(f->recv, weft_recv, of.pipe[1], &f->got[1]),
                             weft_arm(f->sleep, weft_sleep, span(&f->random))}));
        is_sent(f, f->send.ret);
        if (f->recv.ret > 0) went_out(&of.passed[1], f->got[1]);
        weft_return(f->timeout.ret);
    }
    weft_end;
}

/* ---- its beginning and its end -------------------------------------------------------------------------------------- */

static void world_begins(void)
{
    memset(&of, 0, sizeof(of));
    ASSERT_OK(weft_chan_new(0, &of.pipe[0]));
    ASSERT_OK(weft_chan_new(1, &of.pipe[1]));
    ASSERT_OK(weft_chan_new(4, &of.pipe[2]));
    ASSERT_OK(weft_chan_unbounded(&of.pipe[3]));
    ASSERT_OK(weft_chan_new(2, (wides **)(void *)&of.pipe[WIDE]));
    ASSERT_OK(weft_broadcast_new(2, &of.cast));
    ASSERT_OK(weft_watch_new(&(uint64_t){1}, &of.watch));
    ASSERT_OK(weft_delay_new(&of.delay));
    weft_rwlock_init(&of.rwlock);
    weft_sem_init(&of.sem, PERMITS);
    for (int i = 0; i < TOKENS; i++)
        weft_token_init(&of.token[i], i ? &of.token[0] : NULL);
}

static void is_balanced(const struct account *a)
{
    ASSERT_EQ(load_relaxed(&a->in), load_relaxed(&a->out));
    ASSERT_EQ(load_relaxed(&a->in_sum), load_relaxed(&a->out_sum));
}

static void drain(int pipe)
{
    struct wide got = {0};
    while (weft__try_recv(weft_chan_of(of.pipe[pipe]), &got) == 1)
        went_out(&of.passed[pipe], pipe == WIDE ? narrowed(&got) : got.id);
    is_balanced(&of.passed[pipe]);
    ASSERT_EQ(weft_chan_len(of.pipe[pipe]), 0);
    if (pipe == 1 || pipe == 2) { /* all places are free: no permit was lost */
        for (int i = 0; i < (pipe == 1 ? 1 : 4); i++)
            ASSERT_OK(weft_try_send(of.pipe[pipe], &got.id));
        ASSERT_EQ(weft_try_send(of.pipe[pipe], &got.id), -EAGAIN);
    }
    weft_chan_free(of.pipe[pipe]);
}

/* Nobody uses anything any more. */
static void world_is_accounted_for(void)
{
    uint64_t id;

    for (int i = 0; i < PIPES; i++)
        drain(i);
    while (weft_delay_len(of.delay) > 0) {
        if (weft_delay_try_next(of.delay, &id) == 1) went_out(&of.delayed, id);
    }
    is_balanced(&of.delayed);
    weft_delay_free(of.delay);
    weft_broadcast_free(of.cast);
    weft_watch_free(of.watch);
    ASSERT_EQ(of.inside, 0);
    ASSERT_EQ(of.writers, 0);
    ASSERT_EQ(load_relaxed(&of.readers), 0);
    ASSERT_EQ(load_relaxed(&of.out), 0);
    ASSERT_EQ(weft_sem_permits(&of.sem), PERMITS);
    ASSERT_EQ(load_relaxed(&of.jobs_ran), load_relaxed(&of.jobs_answered));
    ASSERT_EQ(load_relaxed(&of.gifts), 0);
    weft_mutex_done(&of.mutex);
    weft_cond_done(&of.cond);
    weft_rwlock_done(&of.rwlock);
    weft_sem_done(&of.sem);
    for (int i = TOKENS; i-- > 0;)
        weft_token_done(&of.token[i]);
}

#endif
