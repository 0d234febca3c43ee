/* SPDX-License-Identifier: MIT
 *
 * idle - the transitions of the idle words; the rule and the recipes are in idle.h.
 */
#include "sched/idle.h"

#include "base/assert.h"

#define SEARCHER (UINT64_C(1) << WEFT__IDLE_GROUP_WORKERS)

_Static_assert(WEFT__IDLE_GROUP_WORKERS < (1 << (64 - WEFT__IDLE_GROUP_WORKERS)),
               "all of a group can search at once");

static uint64_t searchers_of(uint64_t word)
{
    return word / SEARCHER;
}

static uint64_t sleepers_of(uint64_t word)
{
    return word % SEARCHER;
}

static uint64_t bit_of(uint32_t worker)
{
    return UINT64_C(1) << worker % WEFT__IDLE_GROUP_WORKERS;
}

static _Atomic uint64_t *word_of(struct weft__idle *idle, uint32_t worker)
{
    weft_assert(worker < idle->worker_count);
    return &idle->group[worker / WEFT__IDLE_GROUP_WORKERS].word;
}

void weft__idle_init(struct weft__idle *idle, uint32_t worker_count)
{
    weft_assert(worker_count > 0);
    weft_assert(worker_count <= WEFT__WORKERS_MAX);
    /* relaxed: not shared yet */
    for (uint32_t i = 0; i < WEFT__IDLE_GROUPS_MAX; i++)
        store_relaxed(&idle->group[i].word, 0);
    idle->group_count = (worker_count + WEFT__IDLE_GROUP_WORKERS - 1) / WEFT__IDLE_GROUP_WORKERS;
    idle->worker_count = worker_count;
}

uint32_t weft__idle_searching(const struct weft__idle *idle)
{
    uint64_t sum = 0;
    /* relaxed: a look */
    for (uint32_t i = 0; i < idle->group_count; i++)
        sum += searchers_of(load_relaxed(&idle->group[i].word));
    return (uint32_t)sum;
}

uint32_t weft__idle_sleeping(const struct weft__idle *idle)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < idle->group_count; i++) {
        /* relaxed: a look */
        sum += (uint32_t)__builtin_popcountll(sleepers_of(load_relaxed(&idle->group[i].word)));
    }
    return sum;
}

bool weft__idle_all_sleep(const struct weft__idle *idle)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < idle->group_count; i++) {
        /* [idle-own] with sleep: what it did before */
        sum += (uint32_t)__builtin_popcountll(sleepers_of(load_acquire(&idle->group[i].word)));
    }
    return sum == idle->worker_count;
}

bool weft__idle_search_begin(struct weft__idle *idle, uint32_t worker)
{
    _Atomic uint64_t *own = word_of(idle, worker);

    if (weft__idle_searching(idle) > 0) return false;
    /* relaxed, both: a promise begins without a fence; its end has one */
    uint64_t word = load_relaxed(own);
    do {
        /* a sleeper does not begin to search, it is woken or unsleeps */
        weft_assert(!(word & bit_of(worker)));
        if (searchers_of(word) > 0) return false;
    } while (!cas_relaxed(own, &word, word + SEARCHER));
    return true;
}

bool weft__idle_search_end(struct weft__idle *idle, uint32_t worker)
{
    /* relaxed: the fence below orders it */
    uint64_t was = fetch_sub_relaxed(word_of(idle, worker), SEARCHER);

    weft_assert(searchers_of(was) > 0);
    /* [idle-sb] with submit: who saw us searching has pushed before what the caller looks at now */
    mb_after_rmw();
    return searchers_of(was) == 1;
}

void weft__idle_sleep(struct weft__idle *idle, uint32_t worker, bool was_searching)
{
    /* one addition: the bit on, the count down */
    uint64_t change = bit_of(worker) - (was_searching ? SEARCHER : 0);
    /* [idle-own] with wake_one: what it reads of us */
    uint64_t was = fetch_add_release(word_of(idle, worker), change);

    weft_assert(!(was & bit_of(worker)));
    if (was_searching) weft_assert(searchers_of(was) > 0);
    fence_seq_cst(); /* [idle-sb] with submit and look: the re-scan is not older than the bit */
}

bool weft__idle_unsleep(struct weft__idle *idle, uint32_t worker)
{
    _Atomic uint64_t *own = word_of(idle, worker);
    /* relaxed, both: a waker's unpark brings what it has to say, we have nothing for anyone */
    uint64_t word = load_relaxed(own);

    while (word & bit_of(worker)) {
        if (cas_relaxed(own, &word, word - bit_of(worker) + SEARCHER)) return true;
    }
    return false;
}

/* Answers a worker; NOBODY without sleepers, or with a searcher. */
static uint32_t take_sleeper(struct weft__idle *idle, uint32_t group)
{
    _Atomic uint64_t *of = &idle->group[group].word;
    uint64_t word = load_relaxed(of); /* relaxed: the caller's fence makes it a look that counts */

    while (sleepers_of(word) && !searchers_of(word)) {
        /* always the lowest: few workers stay warm, the others asleep */
        uint32_t first = (uint32_t)__builtin_ctzll(word);
        uint64_t next = word - bit_of(first) + SEARCHER;
        /* [idle-own] with sleep: what it wrote about itself */
        if (cas_acquire(of, &word, next)) return group * WEFT__IDLE_GROUP_WORKERS + first;
    }
    return WEFT__IDLE_NOBODY;
}

uint32_t weft__idle_wake_one(struct weft__idle *idle, uint32_t from)
{
    uint32_t start = from == WEFT__IDLE_NOBODY ? 0 : from / WEFT__IDLE_GROUP_WORKERS;

    weft_assert(start < idle->group_count);
    for (uint32_t i = 0; i < idle->group_count && weft__idle_hint(idle); i++) {
        uint32_t worker = take_sleeper(idle, (start + i) % idle->group_count);
        if (worker != WEFT__IDLE_NOBODY) return worker;
    }
    return WEFT__IDLE_NOBODY;
}

bool weft__idle_hint(const struct weft__idle *idle)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < idle->group_count; i++) {
        /* relaxed: a hint, or behind its caller's fence */
        uint64_t word = load_relaxed(&idle->group[i].word);
        if (searchers_of(word)) return false;
        seen |= word;
    }
    return seen != 0;
}

bool weft__idle_look(const struct weft__idle *idle)
{
    /* [idle-sb] with sleep and search_end: the look is not older than what this worker pushed */
    mb_after_rmw();
    return weft__idle_hint(idle);
}

bool weft__idle_look_fenced(const struct weft__idle *idle)
{
    fence_seq_cst(); /* [idle-sb] with sleep and search_end: as in look */
    return weft__idle_hint(idle);
}

uint32_t weft__idle_submit(struct weft__idle *idle)
{
    fence_seq_cst(); /* [idle-sb] with sleep and search_end: the look is not older than the push */
    return weft__idle_wake_one(idle, WEFT__IDLE_NOBODY);
}

bool weft__idle_wake(struct weft__idle *idle, uint32_t worker)
{
    _Atomic uint64_t *of = word_of(idle, worker);

    fence_seq_cst(); /* [idle-sb] with sleep: the look is not older than the push */
    uint64_t word = load_relaxed(of); /* relaxed: behind the fence, and the CAS decides */
    while (word & bit_of(worker)) {
        /* [idle-own] with sleep: what it wrote about itself */
        if (cas_acquire(of, &word, word - bit_of(worker) + SEARCHER)) return true;
    }
    return false;
}
