/* SPDX-License-Identifier: MIT
 *
 * Every wait of lock.h and sync.h is cancelled at every moment of its life (give_up.h), and every permit, turn and lock is accounted
 * for: on 1, 2 and 4 workers and a current-thread runtime, by tasks of both kinds.
 */
#include <weft/weft.h>

union frames {
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
};

#include "give_up.h"

enum { PERMITS = 3, PARTIES = 3 };

/* What is waited for. */
static struct world {
    weft_mutex mutex;
    weft_cond cond;
    weft_rwlock rwlock;
    weft_sem sem;
    weft_notify notify;
    weft_event event;
    weft_wg wg;
    weft_barrier barrier;
    weft_once once;
    weft_cell cell;
    _Atomic uint64_t leaders; /* relaxed: a count */
} w;

static void world_init(void)
{
    w = (struct world){.leaders = 0};
}

/* ---- mutex ---- */

static void lock_make(void)
{
    weft_mutex_init(&w.mutex);
}
static void lock_begin(struct attempt *a)
{
    a->f.lock = (struct weft_lock){.mutex = &w.mutex};
}
static weft_poll lock_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(lock, weft_lock);
}
static void lock_got(struct attempt *a)
{
    (void)a;
    alone_for_a_moment();
    ASSERT_OK(weft_unlock(&w.mutex));
}
static void lock_feed(uint64_t *random)
{
    if (!accounts.outside_has_it && pool_random(random, 2)) {
        accounts.outside_has_it = weft_try_lock(&w.mutex) == 0;
    } else if (accounts.outside_has_it) {
        accounts.outside_has_it = false;
        ASSERT_OK(weft_unlock(&w.mutex));
    }
}
static void lock_last(void)
{
    if (accounts.outside_has_it) ASSERT_OK(weft_unlock(&w.mutex));
    accounts.outside_has_it = false;
}
static void lock_even(void)
{
    lock_last(); /* it was fed until the end */
    ASSERT_EQ(accounts.guarded, read_count(&accounts.ok));
    weft_mutex_done(&w.mutex);
}

/* ---- condition: first the mutex, then the wait, which has the mutex again in all cases ---- */

static void cond_make(void)
{
    weft_mutex_init(&w.mutex);
    weft_cond_init(&w.cond);
}
static weft_poll cond_poll(struct attempt *a, weft_cx *cx)
{
    if (a->stage == 0) {
        if (weft_lock_poll(&a->f.lock, cx) == WEFT_PENDING) return WEFT_PENDING;
        a->ret = a->f.lock.ret;
        if (a->ret < 0) return WEFT_READY;
        a->stage = 1;
        a->f.cond = (struct weft_cond_wait){.cond = &w.cond, .mutex = &w.mutex};
    }
    if (weft_cond_wait_poll(&a->f.cond, cx) == WEFT_PENDING) return WEFT_PENDING;
    a->ret = a->f.cond.ret;
    alone_for_a_moment(); /* cancelled or not */
    ASSERT_OK(weft_unlock(&w.mutex));
    return WEFT_READY;
}
static void cond_feed(uint64_t *random)
{
    if (pool_random(random, 4)) {
        weft_cond_wake_one(&w.cond);
    } else {
        (void)weft_cond_wake_all(&w.cond);
    }
}
static void cond_even(void)
{
    weft_cond_done(&w.cond);
    weft_mutex_done(&w.mutex);
}

/* ---- read-write lock ---- */

static void rw_make(void)
{
    weft_rwlock_init(&w.rwlock);
}
static void read_begin(struct attempt *a)
{
    a->f.read = (struct weft_read_lock){.lock = &w.rwlock};
}
static weft_poll read_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(read, weft_read_lock);
}
static void read_got(struct attempt *a)
{
    (void)a;
    ASSERT_EQ(read_count(&accounts.inside), 0);
    ASSERT_OK(weft_read_unlock(&w.rwlock));
}
static void write_begin(struct attempt *a)
{
    a->f.write = (struct weft_write_lock){.lock = &w.rwlock};
}
static weft_poll write_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(write, weft_write_lock);
}
static void write_got(struct attempt *a)
{
    alone_for_a_moment();
    if (pool_random(&a->random, 2)) {
        ASSERT_OK(weft_downgrade(&w.rwlock));
        ASSERT_OK(weft_read_unlock(&w.rwlock));
    } else {
        ASSERT_OK(weft_write_unlock(&w.rwlock));
    }
}
static void rw_drop(void)
{
    if (accounts.outside_has_it) ASSERT_OK(weft_write_unlock(&w.rwlock));
    accounts.outside_has_it = false;
}
static void rw_feed(uint64_t *random)
{
    if (accounts.outside_has_it) {
        rw_drop();
    } else if (pool_random(random, 2)) {
        accounts.outside_has_it = weft_try_write_lock(&w.rwlock) == 0;
    } else if (weft_try_read_lock(&w.rwlock) == 0) {
        ASSERT_OK(weft_read_unlock(&w.rwlock));
    }
}
static void rw_even(void)
{
    rw_drop();
    weft_rwlock_done(&w.rwlock); /* aborts if a permit is missing */
}

/* ---- semaphore ---- */

static void sem_make(void)
{
    weft_sem_init(&w.sem, PERMITS);
}
static void sem_begin(struct attempt *a)
{
    a->value = 1 + pool_random(&a->random, PERMITS);
    a->f.sem = (struct weft_sem_acquire){.sem = &w.sem, .permits = a->value};
}
static weft_poll sem_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(sem, weft_sem_acquire);
}
static void sem_got(struct attempt *a)
{
    weft_sem_release(&w.sem, a->value);
}
static void sem_drop(void)
{
    if (accounts.outside_has_it) weft_sem_release(&w.sem, 2);
    accounts.outside_has_it = false;
}
static void sem_feed(uint64_t *random)
{
    if (accounts.outside_has_it) {
        sem_drop();
    } else if (pool_random(random, 2)) {
        accounts.outside_has_it = weft_sem_try_acquire(&w.sem, 2) == 0;
    }
}
static void sem_even(void)
{
    sem_drop();
    ASSERT_EQ(weft_sem_permits(&w.sem), PERMITS);
    weft_sem_done(&w.sem);
}

/* ---- notify, event, wait group ---- */

static void notify_make(void)
{
    weft_notify_init(&w.notify);
}
static void notify_begin(struct attempt *a)
{
    a->f.notify = (struct weft_notify_wait){.notify = &w.notify};
}
static weft_poll notify_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(notify, weft_notify_wait);
}
/* One ring at a time: if it goes to nobody, nobody hears another. */
static void
notify_feed(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    if (read_count(&accounts.ok) < accounts.fed) return;
    accounts.fed++;
    weft_notify_one(&w.notify);
}
static void notify_even(void)
{
    if (read_count(&accounts.ok) < accounts.fed)
        ASSERT_OK(weft_notify_wait(&w.notify)); /* it was kept */
    weft_notify_done(&w.notify);
}

static void event_make(void)
{
    weft_event_init(&w.event);
}
static void event_begin(struct attempt *a)
{
    a->f.event = (struct weft_event_wait){.event = &w.event};
}
static weft_poll event_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(event, weft_event_wait);
}
static void event_feed(uint64_t *random)
{
    if (pool_random(random, 2)) {
        weft_event_set(&w.event);
    } else {
        weft_event_reset(&w.event);
    }
}
static void event_last(void)
{
    weft_event_set(&w.event);
}
static void event_even(void)
{
    weft_event_done(&w.event);
}

static void wg_make(void)
{
    weft_wg_init(&w.wg, 1);
}
static void wg_begin(struct attempt *a)
{
    a->f.wg = (struct weft_wg_wait){.wg = &w.wg};
}
static weft_poll wg_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(wg, weft_wg_wait);
}
static void wg_feed(uint64_t *random)
{
    if (weft_wg_count(&w.wg) == 0) {
        weft_wg_add(&w.wg, 1 + pool_random(random, 2));
    } else {
        weft_wg_finish(&w.wg);
    }
}
static void wg_even(void)
{
    while (weft_wg_count(&w.wg) > 0)
        weft_wg_finish(&w.wg);
    weft_wg_done(&w.wg);
}

/* ---- barrier: each round has its leader, and is full ---- */

static void barrier_make(void)
{
    weft_barrier_init(&w.barrier, PARTIES);
}
static void barrier_begin(struct attempt *a)
{
    a->f.barrier = (struct weft_barrier_wait){.barrier = &w.barrier};
}
static weft_poll barrier_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(barrier, weft_barrier_wait);
}
static void barrier_got(struct attempt *a)
{
    if (a->ret == 1) count(&w.leaders, 1);
}
static void barrier_even(void)
{
    ASSERT_EQ(read_count(&accounts.ok), PARTIES * read_count(&w.leaders));
    weft_barrier_done(&w.barrier);
}

/* ---- once, cell: it never succeeds, so each tries ---- */

static void once_make(void)
{
    w.once = (weft_once)WEFT_ONCE_INIT;
}
static void once_begin(struct attempt *a)
{
    a->f.once = (struct weft_once_enter){.once = &w.once};
}
static weft_poll once_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(once, weft_once_enter);
}
static void once_got(struct attempt *a)
{
    ASSERT_EQ(a->ret, 1);
    alone_for_a_moment();
    ASSERT_OK(weft_once_leave(&w.once, false));
}
static void once_drop(void)
{
    if (accounts.outside_has_it) ASSERT_OK(weft_once_leave(&w.once, false));
    accounts.outside_has_it = false;
}
static void once_feed(uint64_t *random)
{
    if (accounts.outside_has_it) {
        once_drop();
    } else if (pool_random(random, 2)) {
        ASSERT_EQ(weft_once_enter(&w.once),
                  1); /* it waits for those who are at it, and soon over */
        accounts.outside_has_it = true;
    }
}
static void once_even(void)
{
    ASSERT_EQ(accounts.guarded, read_count(&accounts.ok));
    ASSERT(!weft_once_is_done(&w.once));
}

static void cell_make(void)
{
    w.cell = (weft_cell)WEFT_CELL_INIT;
}
static void cell_begin(struct attempt *a)
{
    a->f.cell = (struct weft_cell_enter){.cell = &w.cell, .into = &a->made};
}
static weft_poll cell_poll(struct attempt *a, weft_cx *cx)
{
    POLLED(cell, weft_cell_enter);
}
static void cell_got(struct attempt *a)
{
    ASSERT_EQ(a->ret, 1);
    alone_for_a_moment();
    ASSERT_OK(weft_cell_leave(&w.cell, NULL));
}
static void cell_drop(void)
{
    if (accounts.outside_has_it) ASSERT_OK(weft_cell_leave(&w.cell, NULL));
    accounts.outside_has_it = false;
}
static void cell_feed(uint64_t *random)
{
    void *value;
    if (accounts.outside_has_it) {
        cell_drop();
    } else if (pool_random(random, 2)) {
        ASSERT_EQ(weft_cell_enter(&w.cell, &value), 1);
        accounts.outside_has_it = true;
    }
}
static void cell_even(void)
{
    ASSERT_EQ(accounts.guarded, read_count(&accounts.ok));
    ASSERT_NULL(weft_cell_get(&w.cell));
}

/* ---- all of them ---- */

static const struct shape shapes[] = {
    {"lock", lock_make, lock_begin, lock_poll, lock_got, lock_feed, lock_last, lock_even},
    {"cond", cond_make, lock_begin, cond_poll, nothing, cond_feed, NULL, cond_even},
    {"read lock", rw_make, read_begin, read_poll, read_got, rw_feed, rw_drop, rw_even},
    {"write lock", rw_make, write_begin, write_poll, write_got, rw_feed, rw_drop, rw_even},
    {"semaphore", sem_make, sem_begin, sem_poll, sem_got, sem_feed, sem_drop, sem_even},
    {"notify", notify_make, notify_begin, notify_poll, nothing, notify_feed, NULL, notify_even},
    {"event", event_make, event_begin, event_poll, nothing, event_feed, event_last, event_even},
    {"wait group", wg_make, wg_begin, wg_poll, nothing, wg_feed, NULL, wg_even},
    {"barrier", barrier_make, barrier_begin, barrier_poll, barrier_got, nothing_fed, NULL,
     barrier_even},
    {"once", once_make, once_begin, once_poll, once_got, once_feed, once_drop, once_even},
    {"cell", cell_make, cell_begin, cell_poll, cell_got, cell_feed, cell_drop, cell_even},
};

static void all_shapes(struct crew *crew)
{
    give_up_all(shapes, sizeof(shapes) / sizeof(shapes[0]), crew);
}

TEST_WITH(sync_give_up_at_every_moment, .timeout_s = 300)
{
    crew_each(all_shapes);
}
