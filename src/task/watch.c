/* SPDX-License-Identifier: MIT
 *
 * watch - rings of watchers and the buckets that lock them; the drawing and the reasons are in
 * watch.h.
 */
#include "task/watch.h"

#include "base/assert.h"
#include "sys/lock.h"

/* Beside WEFT__JOIN_WATCHED: the handle was dropped. */
#define LET_GO ((uintptr_t)4)
#define TAGS   (WEFT__JOIN_WATCHED | LET_GO)

_Static_assert(_Alignof(struct weft__watcher) > TAGS, "the tags lie below a watcher's address");

struct bucket {
    WEFT__CACHE_ALIGNED struct weft__lock lock;
    struct weft__link
        over; /* watchers of tasks that have ended, to be woken; zero: not used yet [lock] */
};

static struct bucket buckets[WEFT__WATCH_BUCKETS] = {
    [0 ... WEFT__WATCH_BUCKETS - 1] = {.lock = WEFT__LOCK_INIT(WEFT__RANK_WAITLIST)}};

/* ---- the bucket of a child ------------------------------------------------------------------------ */

static struct bucket *bucket_of(const struct weft_task *child)
{
    /* Blocks lie at multiples of 16; the product's upper bits depend on all of the address. */
    uint32_t mixed = (uint32_t)((uintptr_t)child >> 4) * UINT32_C(0x9e3779b1);
    return &buckets[(mixed >> 16) % WEFT__WATCH_BUCKETS];
}

static struct bucket *bucket_lock(const struct weft_task *child)
{
    struct bucket *b = bucket_of(child);
    weft__lock_take(&b->lock);
    if (!b->over.next) weft__link_init(&b->over);
    return b;
}

/* ---- the word ------------------------------------------------------------------------------------- */

static struct weft__watcher *first_of(uintptr_t word)
{
    return (struct weft__watcher *)(word & ~TAGS);
}

static uintptr_t word_of(struct weft__watcher *first, uintptr_t let_go)
{
    return (uintptr_t)first | WEFT__JOIN_WATCHED | let_go;
}

/* Under the bucket's lock. WATCHED is what it says; any other value may be old. */
static uintptr_t look(const struct weft_task *child)
{
    return load_relaxed(
        &child->join); /* relaxed: the lock orders WATCHED, a CAS decides the rest */
}

/* From WATCHED, under the bucket's lock: nobody else writes it. */
static void set_word(struct weft_task *child, uintptr_t word)
{
    /* [join] with complete: the joiner, if the word is one again */
    store_release(&child->join, word);
}

/* ---- watchers ------------------------------------------------------------------------------------- */

static struct weft__watcher *watcher_of(struct weft__link *link)
{
    return weft__container_of(link, struct weft__watcher, link);
}

/* The watcher alone in its ring, with what the word said besides. */
static uintptr_t ring_new(struct weft__watcher *watcher, uintptr_t word)
{
    bool joined = word != WEFT__JOIN_NONE && word != WEFT__JOIN_DETACHED;
    plain_write(&watcher->joiner, joined ? word : 0);
    return word_of(watcher, word == WEFT__JOIN_DETACHED ? LET_GO : 0);
}

/* The completer has taken the word, and no wake is coming any more. */
static enum weft__join ready_or_yield(const struct weft_task *child)
{
    return weft__state_is_complete(child) ? WEFT__JOIN_READY : WEFT__JOIN_YIELD;
}

enum weft__join weft__watch_add(struct weft_task *child, struct weft__watcher *watcher,
                                struct weft_waker waker)
{
    weft_assert(!weft__waker_is_none(waker));
    if (weft__state_is_complete(child)) return WEFT__JOIN_READY;

    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    weft__link_init(&watcher->link);
    plain_write(&watcher->joiner, 0);
    for (;;) { /* lock-free but for the lock: joiner, owner and completer step without it */
        if (word == WEFT__JOIN_TAKEN) break;
        if (weft__join_watched(word)) {
            weft__list_push_back(&first_of(word)->link, &watcher->link);
            break;
        }
        /* [join] with join_poll: the joiner that the word names moves into the ring */
        if (cas_acquire(&child->join, &word, ring_new(watcher, word))) break;
    }
    if (word != WEFT__JOIN_TAKEN) plain_write(&watcher->waker, waker.word);
    weft__lock_drop(&b->lock);
    return word != WEFT__JOIN_TAKEN ? WEFT__JOIN_PENDING : ready_or_yield(child);
}

enum weft__join weft__watch_again(struct weft_task *child, struct weft__watcher *watcher)
{
    struct bucket *b = bucket_lock(child);
    bool linked = plain_read(&watcher->waker) != 0;
    weft__lock_drop(&b->lock);
    return linked ? WEFT__JOIN_PENDING : ready_or_yield(child);
}

/* What the word says without its only watcher. */
static uintptr_t word_without(uintptr_t word)
{
    uintptr_t joiner = plain_read(&first_of(word)->joiner);
    if (joiner) return joiner;
    return word & LET_GO ? WEFT__JOIN_DETACHED : WEFT__JOIN_NONE;
}

/* Holds: the bucket's lock. The first watcher leaves its ring, which `word` names. */
static void first_leaves(struct weft_task *child, uintptr_t word)
{
    struct weft__watcher *first = first_of(word);

    if (!weft__link_linked(&first->link)) {
        set_word(child, word_without(word));
        return;
    }
    struct weft__watcher *next = watcher_of(first->link.next);
    plain_write(&next->joiner, plain_read(&first->joiner));
    weft__list_remove(&first->link);
    set_word(child, word_of(next, word & LET_GO));
}

void weft__watch_leave(struct weft_task *child, struct weft__watcher *watcher)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);

    if (plain_read(&watcher->waker) != 0) {
        plain_write(&watcher->waker, 0);
        if (weft__join_watched(word) && first_of(word) == watcher) {
            first_leaves(child, word);
        } else {
            weft__list_remove(&watcher->link); /* out of the ring, or of `over` */
        }
    }
    weft__lock_drop(&b->lock);
}

/* ---- the joiner and the owner ----------------------------------------------------------------------- */

bool weft__watch_set_joiner(struct weft_task *child, struct weft_waker joiner)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    bool watched = weft__join_watched(word);

    if (watched) {
        uintptr_t before = plain_read(&first_of(word)->joiner);
        weft_assert(before == 0 || before == joiner.word); /* one joiner at a time */
        plain_write(&first_of(word)->joiner, joiner.word);
    }
    weft__lock_drop(&b->lock);
    return watched;
}

bool weft__watch_drop_joiner(struct weft_task *child, struct weft_waker joiner)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    bool watched = weft__join_watched(word);

    if (watched) {
        uintptr_t before = plain_read(&first_of(word)->joiner);
        weft_assert(before == 0 || before == joiner.word); /* one joiner at a time */
        plain_write(&first_of(word)->joiner, 0);
    }
    weft__lock_drop(&b->lock);
    return watched;
}

bool weft__watch_let_go(struct weft_task *child)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    bool watched = weft__join_watched(word);

    if (watched) {
        weft_assert(!(word & LET_GO)); /* a handle is dropped once */
        set_word(child, word | LET_GO);
    }
    weft__lock_drop(&b->lock);
    return watched;
}

/* ---- the end ---------------------------------------------------------------------------------------- */

/* Holds: the bucket's lock. A ring has no head, a list has one. */
static void ring_to_over(struct bucket *b, struct weft__watcher *first)
{
    struct weft__link *begin = &first->link;
    struct weft__link *end = begin->prev;

    begin->prev = b->over.prev;
    end->next = &b->over;
    b->over.prev->next = begin;
    b->over.prev = end;
}

bool weft__watch_take(struct weft_task *child, struct weft__join_done *done)
{
    struct bucket *b = bucket_lock(child);
    uintptr_t word = look(child);
    bool watched = weft__join_watched(word);

    if (watched) {
        struct weft__watcher *first = first_of(word);
        uintptr_t joiner = plain_read(&first->joiner);
        store_release(&child->join, WEFT__JOIN_TAKEN); /* [join-result] with let_go: the result */
        if (joiner) done->joiner = weft__waker_claim((struct weft_waker){joiner});
        done->unread = word & LET_GO;
        done->watched = true;
        ring_to_over(b, first);
    }
    weft__lock_drop(&b->lock);
    return watched;
}

/* Holds: the bucket's lock. At most one batch; they may be those of another child as well. Returns
 * whether some are left. */
static bool claim_batch(struct bucket *b, struct weft__wake_chain *chain)
{
    for (uint32_t i = 0; i < WEFT__WAKE_BATCH; i++) {
        struct weft__link *link = weft__list_pop_front(&b->over);
        if (!link) return false;
        struct weft__watcher *watcher = watcher_of(link);
        struct weft_waker waker = {plain_read(&watcher->waker)};
        plain_write(&watcher->waker, 0);
        weft__wake_chain_claim(chain, waker);
    }
    return !weft__list_empty(&b->over);
}

void weft__watch_wake(const struct weft_task *child, const struct weft__sched *sched)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    bool more = true;

    while (more) {
        struct bucket *b = bucket_lock(child);
        more = claim_batch(b, &chain);
        weft__lock_drop(&b->lock);
        weft__wake_chain_push(&chain, sched);
    }
}
