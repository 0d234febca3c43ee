/* SPDX-License-Identifier: MIT
 *
 * The waitlist under cancels: a semaphore of tasks and threads that loses no permit and no turn,
 * a broadcast that reaches all who waited, in batches, while they come and go, and a notify whose
 * woken side frees it at once.
 */
#include "base/alloc.h"
#include "base/list.h"
#include "pool.h"
#include "sched/park.h"
#include "sync/waitlist.h"

#define POLLERS    2
#define CANCELLERS 2
#define THREADS    2
#define PERMITS    2

/* ---- a semaphore, strictly first come, first served ---- */

struct sem {
    struct weft__waitlist list;
    uint32_t permits;   /* guarded by list.lock */
    uint32_t turns_out; /* given and neither used nor passed on; guarded by list.lock */
    uint32_t inside;    /* holders of a permit; guarded by list.lock */
};

/* Holds: the lock. A turn for as many as there are permits and no turns for. */
static void sem_give_turns(struct sem *sem, struct weft__wake_chain *chain)
{
    while (sem->turns_out < sem->permits && weft__waitlist_give_turn(&sem->list, chain)) {
        sem->turns_out++;
    }
}

/* True: got a permit. False: waits. */
static bool sem_poll(struct sem *sem, struct weft__waiter *waiter, struct weft_waker waker)
{
    bool got = false;

    weft__waitlist_lock(&sem->list);
    bool turn = weft__waiter_has_turn(&sem->list, waiter);
    if (turn || (weft__waitlist_empty(&sem->list) && sem->turns_out < sem->permits)) {
        (void)weft__waitlist_settle(&sem->list, waiter);
        if (turn) sem->turns_out--;
        ASSERT_GE(sem->permits, 1); /* a turn is a permit that nobody else may take */
        sem->permits--;
        sem->inside++;
        got = true;
    } else if (!weft__waiter_queued(&sem->list, waiter)) {
        weft__waitlist_add(&sem->list, waiter, waker);
    }
    weft__waitlist_unlock(&sem->list);
    return got;
}

static void sem_give_back(struct sem *sem, const struct weft__sched *sched)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&sem->list);
    ASSERT_LE(sem->inside, PERMITS);
    sem->inside--;
    sem->permits++;
    sem_give_turns(sem, &chain);
    weft__waitlist_unlock_push(&sem->list, &chain, sched);
}

/* A wait that is given up: what weft__waitlist_cancel does, with this semaphore's own count. */
static void sem_cancel(struct sem *sem, struct weft__waiter *waiter,
                       const struct weft__sched *sched)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;

    weft__waitlist_lock(&sem->list);
    if (weft__waitlist_settle(&sem->list, waiter)) {
        sem->turns_out--;
        sem_give_turns(sem, &chain);
    }
    weft__waitlist_unlock_push(&sem->list, &chain, sched);
}

/* ---- tasks that take a permit some times, and are cancelled at any moment ---- */

struct guest {
    struct weft_task task;
    struct weft__waiter waiter; /* in the block that is freed at the task's end */
    uint32_t visits;            /* still to come */
    bool inside;
};

struct house {
    struct pool pool;
    struct sem sem;
    struct guest **guests;
    uint32_t guest_count;
    _Atomic uint32_t guests_freed;
    _Atomic uint32_t cancellers;
};

static struct house house;

static void guest_free(struct weft_task *task)
{
    struct guest *g = weft__container_of(task, struct guest, task);

    weft__waiter_check_out(&g->waiter);
    ASSERT(!g->inside);
    fetch_add_relaxed(&house.guests_freed, 1);
    weft__free(g);
}

static enum pool_poll guest_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct guest *g = weft__container_of(task, struct guest, task);

    if (g->inside) {
        g->inside = false;
        sem_give_back(&house.sem, &pool->sched);
        if (g->visits-- == 0) return POOL_READY;
    }
    if (word & WEFT__STATE_CANCELLED) {
        sem_cancel(&house.sem, &g->waiter, &pool->sched);
        return POOL_READY;
    }
    g->inside = sem_poll(&house.sem, &g->waiter, weft__waker_of(task));
    return g->inside ? POOL_YIELD : POOL_PENDING; /* inside: keep it over a turn of the queue */
}

/* Cancels every third guest, wakes others for no reason, and lets go of all. */
static void *canceller_run(void *arg)
{
    uint64_t random = pool_seed(200 + fetch_add_relaxed(&house.cancellers, 1));

    (void)arg;
    for (uint32_t i = 0; i < house.guest_count; i++) {
        struct weft_task *task = &house.guests[i]->task;
        if (pool_random(&random, 3) == 0) pool_cancel(&house.pool, task);
        if (pool_random(&random, 3) == 0) pool_wake(&house.pool, task);
        pool_unref(&house.pool, task);
    }
    return NULL;
}

/* ---- threads that wait beside them, by foreign wakers ---- */

struct visitor {
    struct weft__foreign foreign;
    struct weft__park park;
};

static void visitor_wake(struct weft__foreign *foreign)
{
    weft__unpark(&weft__container_of(foreign, struct visitor, foreign)->park);
}

static void visitor_free(struct weft__foreign *foreign)
{
    weft__free(weft__container_of(foreign, struct visitor, foreign));
}

static const struct weft__foreign_ops visitor_ops = {.wake = visitor_wake, .free = visitor_free};

/* On the heap and counted: a wake may be on its way to one that has already gone. */
static void *visitor_run(void *arg)
{
    uint64_t visits = *(uint64_t *)arg;
    struct visitor *v = weft__alloc_aligned(sizeof(*v), 16);

    weft__foreign_init(&v->foreign, &visitor_ops);
    weft__park_init(&v->park);
    for (uint64_t i = 0; i < visits; i++) {
        struct weft__waiter waiter; /* on this stack */
        weft__waiter_init(&waiter);
        while (!sem_poll(&house.sem, &waiter, weft__waker_of_foreign(&v->foreign))) {
            weft__park(&v->park, WEFT__NEVER);
        }
        weft__waiter_check_out(&waiter);
        sem_give_back(&house.sem, &house.pool.sched);
    }
    weft__foreign_unref(&v->foreign);
    return NULL;
}

static struct guest *guest_new(uint32_t visits)
{
    struct guest *g = weft__alloc(sizeof(*g));

    g->visits = visits;
    weft__waiter_init(&g->waiter);
    weft__state_init(&g->task, CANCELLERS);
    weft__join_init(&g->task, false);
    return g;
}

TEST_WITH(waitlist_semaphore_loses_no_turn_to_cancels, .timeout_s = 120)
{
    uint64_t random = pool_seed(7);
    uint64_t visits = test_scaled(5000);
    pthread_t threads[CANCELLERS + THREADS];

    house.guest_count = (uint32_t)test_scaled(20000);
    house.guests = malloc(house.guest_count * sizeof(*house.guests));
    house.pool.poll = guest_poll;
    house.pool.free = guest_free;
    weft__waitlist_init(&house.sem.list);
    house.sem.permits = PERMITS;
    for (uint32_t i = 0; i < house.guest_count; i++)
        house.guests[i] = guest_new(pool_random(&random, 3));
    pool_start(&house.pool, POLLERS);
    for (unsigned i = 0; i < CANCELLERS + THREADS; i++) {
        bool canceller = i < CANCELLERS;
        ASSERT_OK(
            pthread_create(&threads[i], NULL, canceller ? canceller_run : visitor_run, &visits));
    }
    for (uint32_t i = 0; i < house.guest_count; i++)
        pool_push(&house.pool, &house.guests[i]->task);
    for (unsigned i = 0; i < CANCELLERS + THREADS; i++)
        pthread_join(threads[i], NULL);
    /* the queue is empty: each guest has ended, or waits for a turn that never came */
    pool_stop(&house.pool);
    ASSERT_EQ(load_relaxed(&house.guests_freed), house.guest_count);
    ASSERT_EQ(house.sem.permits, PERMITS);
    ASSERT_EQ(house.sem.turns_out, 0);
    ASSERT_EQ(house.sem.inside, 0);
    weft__waitlist_done(&house.sem.list);
    free(house.guests);
}

/* ---- a broadcast to more than two batches, while some leave and come back ---- */

#define LISTENERS (2 * WEFT__WAKE_BATCH + WEFT__WAKE_BATCH / 2)

struct listener {
    struct weft_task task;
    struct weft__waiter waiter;
    uint32_t heard; /* the newest number seen, under the lock */
    uint64_t random;
};

struct radio {
    struct pool pool;
    struct weft__waitlist list;
    uint32_t said;    /* guarded by list.lock */
    uint32_t to_hear; /* listeners that have not heard `said`; guarded by list.lock */
    uint32_t last;
    struct listener listeners[LISTENERS];
    struct weft__park all_heard;
};

static struct radio radio;

/* Holds: the lock. True: it was the last. */
static bool hear(struct listener *l)
{
    if (l->heard == radio.said) return false;
    l->heard = radio.said;
    return --radio.to_hear == 0;
}

/* Hears what there is, and waits for more; now and then it gives its wait up and begins anew. */
static enum pool_poll listener_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct listener *l = weft__container_of(task, struct listener, task);

    (void)pool;
    (void)word;
    if (pool_random(&l->random, 4) == 0) (void)weft__waitlist_leave(&radio.list, &l->waiter);
    weft__waitlist_lock(&radio.list);
    bool last_one = hear(l);
    bool over = l->heard == radio.last;
    if (over) {
        (void)weft__waitlist_settle(&radio.list, &l->waiter);
    } else if (!weft__waiter_queued(&radio.list, &l->waiter)) {
        weft__waitlist_add(&radio.list, &l->waiter, weft__waker_of(task));
    }
    weft__waitlist_unlock(&radio.list);
    if (over) weft__waiter_check_out(&l->waiter);
    if (last_one) weft__unpark(&radio.all_heard);
    return over ? POOL_READY : POOL_PENDING;
}

static void listener_free(struct weft_task *task)
{
    weft__state_free(task);
}

static void *nudge_listeners(void *arg)
{
    uint64_t random = pool_seed(300);
    uint64_t count = test_scaled(20000);

    (void)arg;
    for (uint64_t i = 0; i < count; i++) {
        pool_wake(&radio.pool, &radio.listeners[pool_random(&random, LISTENERS)].task);
    }
    return NULL;
}

TEST_WITH(waitlist_broadcast_reaches_all_who_waited, .timeout_s = 120)
{
    pthread_t nudger;

    radio.pool.poll = listener_poll;
    radio.pool.free = listener_free;
    radio.last = (uint32_t)test_scaled(400);
    weft__waitlist_init(&radio.list);
    weft__park_init(&radio.all_heard);
    pool_start(&radio.pool, POLLERS);
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct listener *l = &radio.listeners[i];
        l->random = pool_seed(400 + i);
        weft__waiter_init(&l->waiter);
        weft__state_init(&l->task, 1);
        weft__join_init(&l->task, false);
        pool_push(&radio.pool, &l->task);
    }
    ASSERT_OK(pthread_create(&nudger, NULL, nudge_listeners, NULL));
    for (uint32_t i = 1; i <= radio.last; i++) {
        weft__waitlist_lock(&radio.list);
        radio.said = i;
        radio.to_hear = LISTENERS;
        (void)weft__waitlist_unlock_wake_all(&radio.list, &radio.pool.sched);
        weft__park(&radio.all_heard, WEFT__NEVER); /* one that is not woken never hears it */
    }
    pthread_join(nudger, NULL);
    pool_stop(&radio.pool);
    weft__waitlist_done(&radio.list);
    for (unsigned i = 0; i < LISTENERS; i++)
        ASSERT(weft__state_is_complete(&radio.listeners[i].task));
}

/* ---- a notify each, which its waiter frees as soon as it is told --------------------------------- */

struct notify {
    struct weft__waitlist list;
    bool told; /* while nobody waited; guarded by list.lock */
};

struct told {
    struct weft_task task;
    struct weft__waiter waiter;
    struct notify *notify;
};

struct tellers {
    struct pool pool;
    struct told **all;
    uint32_t count;
    _Atomic uint32_t granted; /* turns taken without the lock */
    _Atomic uint32_t freed;
};

static struct tellers tellers;

static bool told_by_lock(struct told *t)
{
    struct notify *n = t->notify;

    weft__waitlist_lock(&n->list);
    bool got = n->told || weft__waiter_has_turn(&n->list, &t->waiter);
    if (got) {
        (void)weft__waitlist_settle(&n->list, &t->waiter);
    } else if (!weft__waiter_queued(&n->list, &t->waiter)) {
        weft__waitlist_add(&n->list, &t->waiter, weft__waker_of(&t->task));
    }
    weft__waitlist_unlock(&n->list);
    return got;
}

static enum pool_poll told_poll(struct pool *pool, struct weft_task *task, uint64_t word)
{
    struct told *t = weft__container_of(task, struct told, task);
    bool granted = weft__waiter_take_granted(&t->waiter);

    (void)pool;
    (void)word;
    if (!granted && !told_by_lock(t)) return POOL_PENDING;
    if (granted) fetch_add_relaxed(&tellers.granted, 1);
    weft__free(t->notify); /* its teller may still be in the middle of a push */
    return POOL_READY;
}

static void told_free(struct weft_task *task)
{
    struct told *t = weft__container_of(task, struct told, task);

    weft__waiter_check_out(&t->waiter);
    fetch_add_relaxed(&tellers.freed, 1);
    weft__free(t);
}

/* Also wakes some for no reason, around the same time: those turns are not granted. */
static void *tell_all(void *arg)
{
    uint64_t random = pool_seed(500);

    (void)arg;
    for (uint32_t i = 0; i < tellers.count; i++) {
        struct notify *n = tellers.all[i]->notify;
        struct weft_task *task = &tellers.all[i]->task;
        if (i > 0 && pool_random(&random, 2) == 0) pool_wake(&tellers.pool, task);
        weft__waitlist_lock(&n->list);
        if (weft__waitlist_empty(&n->list)) {
            n->told = true;
            weft__waitlist_unlock(&n->list);
        } else {
            weft__waitlist_unlock_wake_first(&n->list, &tellers.pool.sched);
        }
        pool_unref(&tellers.pool, task);
    }
    return NULL;
}

static struct told *told_new(void)
{
    struct told *t = weft__alloc(sizeof(*t));

    t->notify = weft__alloc(sizeof(*t->notify));
    weft__waitlist_init(&t->notify->list);
    t->notify->told = false;
    weft__waiter_init(&t->waiter);
    weft__state_init(&t->task, 1);
    return t;
}

TEST_WITH(waitlist_notified_side_frees_the_list, .timeout_s = 120)
{
    pthread_t teller;

    tellers.count = (uint32_t)test_scaled(50000);
    tellers.all = malloc(tellers.count * sizeof(struct told *));
    tellers.pool.poll = told_poll;
    tellers.pool.free = told_free;
    for (uint32_t i = 0; i < tellers.count; i++)
        tellers.all[i] = told_new();
    for (uint32_t i = 0; i < tellers.count; i += 2)
        pool_run_one(&tellers.pool,
                     &tellers.all[i]->task); /* half of them wait before all begins */
    pool_start(&tellers.pool, POLLERS);
    for (uint32_t i = 1; i < tellers.count; i += 2)
        pool_push(&tellers.pool, &tellers.all[i]->task);
    ASSERT_OK(pthread_create(&teller, NULL, tell_all, NULL));
    pthread_join(teller, NULL);
    pool_stop(&tellers.pool);
    ASSERT_EQ(load_relaxed(&tellers.freed), tellers.count);
    ASSERT_GE(load_relaxed(&tellers.granted), 1); /* the first, which nobody else woke */
    free(tellers.all);
}
