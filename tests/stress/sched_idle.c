/* SPDX-License-Identifier: MIT
 *
 * Idle words and parking under real threads: work that is pushed is run, whoever slept or searched
 * at the time. Nothing but the protocol wakes a worker here, no timer and no monitor, so stranded
 * work is a hang, which the watchdog ends.
 *
 * Work has no content: a queue is two counters, taken from by CAS like a ring.
 */
#include "pool.h"
#include "sched/idle.h"
#include "sched/park.h"

#define WORKERS 4
#define PUSHERS 3

struct counters {
    WEFT__CACHE_ALIGNED _Atomic uint32_t head; /* next to take */
    WEFT__CACHE_ALIGNED _Atomic uint32_t tail; /* next to push */
};

struct worker {
    struct works *works;
    uint32_t index; /* in the idle words */
    struct weft__park park;
    struct weft__park gate; /* of the rendezvous */
    struct counters ring;   /* the worker pushes, all take */
    pthread_t thread;
    uint64_t random;
};

struct works {
    struct weft__idle idle;
    struct worker workers[WORKERS];
    struct worker *by_index[WEFT__WORKERS_MAX];
    struct counters inject; /* all push, all take */
    _Atomic bool stop;
    void (*run)(struct worker *w, bool injected);
    /* what the tests count */
    _Atomic uint64_t injected_done;
    _Atomic uint64_t local_pushed;
    _Atomic uint64_t local_done;
    _Atomic uint32_t arrived;
    struct weft__park pushers[PUSHERS];
};

static bool queue_take(struct counters *q)
{
    for (;;) {
        uint32_t head = load_acquire(&q->head);
        if (head == load_acquire(&q->tail)) return false;
        if (cas_acq_rel(&q->head, &head, head + 1)) return true;
    }
}

static bool queue_visible(struct counters *q)
{
    return load_acquire(&q->head) != load_acquire(&q->tail);
}

static bool work_visible(struct works *s)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        if (queue_visible(&s->workers[i].ring)) return true;
    }
    return queue_visible(&s->inject);
}

static void unpark_index(struct works *s, uint32_t index)
{
    if (index != WEFT__IDLE_NOBODY) weft__unpark(&s->by_index[index]->park);
}

static void inject_push(struct works *s)
{
    fetch_add_release(&s->inject.tail, 1);
    unpark_index(s, weft__idle_submit(&s->idle));
}

/* In the middle of a poll: plain stores, and the hint. */
static void local_push(struct worker *w)
{
    store_release(&w->ring.tail, load_relaxed(&w->ring.tail) + 1);
    if (weft__idle_hint(&w->works->idle)) {
        unpark_index(w->works, weft__idle_wake_one(&w->works->idle, w->index));
    }
}

enum taken { NOTHING, LOCAL, INJECTED };

static enum taken take_any(struct worker *w)
{
    struct works *s = w->works;

    if (queue_take(&w->ring)) return LOCAL;
    if (queue_take(&s->inject)) return INJECTED;
    for (unsigned i = 0; i < WORKERS; i++) {
        if (queue_take(&s->workers[i].ring)) return LOCAL;
    }
    return NOTHING;
}

/* Behind the RMW that took work: tell one more, if there is more. */
static void tell(struct worker *w, bool was_searching)
{
    struct works *s = w->works;
    bool due =
        was_searching ? weft__idle_search_end(&s->idle, w->index) : weft__idle_look(&s->idle);

    if (due && work_visible(s)) unpark_index(s, weft__idle_wake_one(&s->idle, w->index));
}

static void sleep_until_told(struct worker *w, bool was_searching)
{
    struct works *s = w->works;

    weft__idle_sleep(&s->idle, w->index, was_searching);
    if (!work_visible(s) && !load_acquire(&s->stop)) weft__park(&w->park, WEFT__NEVER);
    (void)weft__idle_unsleep(&s->idle, w->index); /* it searches now */
}

static void *worker_run(void *arg)
{
    struct worker *w = arg;
    bool searching = false;

    while (!load_acquire(&w->works->stop)) {
        enum taken taken = take_any(w);
        if (taken != NOTHING) {
            tell(w, searching);
            searching = false;
            w->works->run(w, taken == INJECTED);
        } else if (!searching && weft__idle_search_begin(&w->works->idle, w->index)) {
            searching = true;
        } else {
            sleep_until_told(w, searching);
            searching = true;
        }
    }
    return NULL;
}

static struct works *works_start(void (*run)(struct worker *, bool), const uint32_t *indices,
                                 uint32_t count)
{
    static struct works works;
    struct works *s = &works;

    weft__idle_init(&s->idle, count);
    s->run = run;
    for (unsigned i = 0; i < PUSHERS; i++)
        weft__park_init(&s->pushers[i]);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *w = &s->workers[i];
        w->works = s;
        w->index = indices[i];
        w->random = pool_seed(100 + i);
        s->by_index[w->index] = w;
        weft__park_init(&w->park);
        weft__park_init(&w->gate);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        ASSERT_OK(pthread_create(&s->workers[i].thread, NULL, worker_run, &s->workers[i]));
    }
    return s;
}

static void works_stop(struct works *s)
{
    store_release(&s->stop, true);
    for (unsigned i = 0; i < WORKERS; i++)
        weft__unpark(&s->workers[i].park);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(s->workers[i].thread, NULL);
    ASSERT(!work_visible(s));
}

static const uint32_t one_group[WORKERS] = {0, 1, 2, 3};
static const uint32_t two_groups[WORKERS] = {0, 1, WEFT__IDLE_GROUP_WORKERS,
                                             WEFT__IDLE_GROUP_WORKERS + 1};

/* ---- all workers at once: each unit waits until as many run as there are workers ----
 *
 * The pushes come faster than the searchers, so most find one and tell nobody: the last searcher
 * that finds work must wake one more, each time, or the workers at the gate wait for ever. */

static void meet(struct worker *w, bool injected)
{
    struct works *s = w->works;

    (void)injected;
    if (fetch_add_acq_rel(&s->arrived, 1) + 1 < WORKERS) {
        weft__park(&w->gate, WEFT__NEVER);
        return;
    }
    store_relaxed(&s->arrived, 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        if (&s->workers[i] != w) weft__unpark(&s->workers[i].gate);
    }
    weft__unpark(&s->pushers[0]);
}

static void rendezvous(const uint32_t *indices, uint32_t count)
{
    struct works *s = works_start(meet, indices, count);
    uint64_t rounds = test_scaled(4000);

    for (uint64_t r = 0; r < rounds; r++) {
        for (unsigned i = 0; i < WORKERS; i++)
            inject_push(s);
        weft__park(&s->pushers[0], WEFT__NEVER);
    }
    works_stop(s);
}

TEST_WITH(idle_wakes_as_many_as_there_is_work_for, .timeout_s = 120)
{
    rendezvous(one_group, WORKERS);
}

TEST_WITH(idle_wakes_as_many_as_there_is_work_for_in_two_groups, .timeout_s = 120)
{
    rendezvous(two_groups, WEFT__IDLE_GROUP_WORKERS + 2);
}

/* ---- several threads push a little and wait for it, workers push for each other ---- */

static void scatter(struct worker *w, bool injected)
{
    struct works *s = w->works;

    if (!injected) {
        fetch_add_acq_rel(&s->local_done, 1);
    } else {
        uint32_t more = pool_random(&w->random, 4);
        fetch_add_relaxed(&s->local_pushed, more);
        for (uint32_t i = 0; i < more; i++)
            local_push(w);
        fetch_add_acq_rel(&s->injected_done, 1);
    }
    for (unsigned i = 0; i < PUSHERS; i++)
        weft__unpark(&s->pushers[i]);
}

struct pusher {
    struct works *works;
    unsigned index;
    uint64_t rounds;
    _Atomic uint64_t *pushed; /* by all pushers */
};

/* Waits until all that had been pushed, by whomever, is done: then all go to sleep, or nearly. */
static void *pusher_run(void *arg)
{
    struct pusher *p = arg;
    struct works *s = p->works;
    uint64_t random = pool_seed(p->index);

    for (uint64_t r = 0; r < p->rounds; r++) {
        for (uint32_t n = 1 + pool_random(&random, 3); n > 0; n--) {
            fetch_add_relaxed(p->pushed, 1);
            inject_push(s);
        }
        uint64_t until = load_relaxed(p->pushed);
        while (load_acquire(&s->injected_done) < until)
            weft__park(&s->pushers[p->index], WEFT__NEVER);
    }
    return NULL;
}

static void scattered(const uint32_t *indices, uint32_t count)
{
    struct works *s = works_start(scatter, indices, count);
    struct pusher pushers[PUSHERS];
    pthread_t threads[PUSHERS];
    _Atomic uint64_t pushed = 0;

    for (unsigned i = 0; i < PUSHERS; i++) {
        pushers[i] = (struct pusher){s, i, test_scaled(4000), &pushed};
        ASSERT_OK(pthread_create(&threads[i], NULL, pusher_run, &pushers[i]));
    }
    for (unsigned i = 0; i < PUSHERS; i++)
        pthread_join(threads[i], NULL);
    while (load_acquire(&s->local_done) < load_relaxed(&s->local_pushed)) {
        weft__park(&s->pushers[0], WEFT__NEVER);
    }
    works_stop(s);
    ASSERT_EQ(load_relaxed(&s->injected_done), load_relaxed(&pushed));
}

TEST_WITH(idle_strands_no_work_of_threads_outside, .timeout_s = 120)
{
    scattered(one_group, WORKERS);
}

TEST_WITH(idle_strands_no_work_of_threads_outside_in_two_groups, .timeout_s = 120)
{
    scattered(two_groups, WEFT__IDLE_GROUP_WORKERS + 2);
}

/* ---- park alone: two threads hand one token back and forth, with deadlines that pass ---- */

struct pair {
    struct weft__park here;
    struct weft__park there;
    uint64_t value; /* plain: the tokens order it */
    uint64_t rounds;
};

/* Impatient: first with a deadline that has passed, so that the token may come while it gives up.
 * */
static void take_token(struct weft__park *park, bool impatient)
{
    if (impatient && weft__park(park, 1)) return;
    ASSERT(weft__park(park, WEFT__NEVER));
}

static void *pair_run(void *arg)
{
    struct pair *p = arg;
    for (uint64_t i = 0; i < p->rounds; i++) {
        take_token(&p->there, i % 2);
        ASSERT_EQ(p->value, 2 * i + 1);
        p->value++;
        weft__unpark(&p->here);
    }
    return NULL;
}

TEST_WITH(park_hands_over_what_was_written_before, .timeout_s = 120)
{
    struct pair p = {.value = 0, .rounds = test_scaled(10000)};
    pthread_t other;

    weft__park_init(&p.here);
    weft__park_init(&p.there);
    ASSERT_OK(pthread_create(&other, NULL, pair_run, &p));
    for (uint64_t i = 0; i < p.rounds; i++) {
        p.value++;
        weft__unpark(&p.there);
        take_token(&p.here, i % 3 == 0);
        ASSERT_EQ(p.value, 2 * i + 2);
    }
    pthread_join(other, NULL);
}
