/* SPDX-License-Identifier: MIT
 *
 * keyed - a task set whose members are found by their keys: a hash table under the set's own lock.
 *
 * A member has behind its frame how it hangs in the table, its hash and its key, and then what a member of any set has. The table is a number of lists,
 * a power of two; the first one lies in the set, so that a small one has no memory of its own, and one that cannot grow is slow, and never wrong.
 *     in the table  <=>  spawned, and neither taken out, let go, nor replaced        two in the table have different keys
 *
 * A SPAWN refuses a key that is there or on its way. Between the look and the member the program makes the task, with no lock held; so the key hangs in a list
 * meanwhile, on the stack of who makes it. Who replaces needs no such claim: what is there when its member comes, goes; and so does who was on its way then, as soon
 * as it comes: it would else push out the one that replaced it.
 * REPLACED  The old one leaves the table and is cancelled. If it runs, it becomes unwanted: its handle is dropped when it ends (flow/set.c); if it has ended, at
 * once.
 *
 * Threads: any. LOCK ORDER: the set's. Rejected: open addressing (members move in the table, and one without memory is no table); a tree (bytes have no order
 * that anybody asks for).
 */
#include "base/alloc.h"
#include "flow/set.h"
#include "task/call.h"
#include "task/refused.h"

#include <weft/keyed.h>

#include <errno.h>
#include <string.h>

/* Members for each list, on average, beyond which the table is doubled. */
#define LOAD_MAX 2

struct keyed {
    struct weft__set set;
    char rest_of_the_set[sizeof(weft_set) - sizeof(struct weft__set)];
    struct weft__link *lists; /* NULL: `first` is all there is         [set's lock, as all] */
    struct weft__link first;
    struct weft__link pending; /* keys on their way: struct place */
    size_t list_count;         /* a power of two; 0: not used so far */
    size_t count;              /* in the table */
    size_t key_bytes;          /* 0: not used so far */
};
_Static_assert(offsetof(struct keyed, lists) == offsetof(weft_keyed, weft__table), "it is a set");
_Static_assert(sizeof(struct keyed) <= offsetof(weft_keyed, weft_key), "it fits its place");

struct found {
    struct weft__link link; /* in its list; itself: in none    [set's lock] */
    uint64_t hash;
    size_t key_bytes;
    size_t spare[2];
    char key[];
};
_Static_assert(offsetof(struct found, key) == 48, "sites make room for it");

struct place {
    struct weft__link link; /* in `pending`, unless it replaces */
    const void *key;
    bool replaces;
};
_Static_assert(sizeof(struct place) == sizeof(struct weft__keyed_place), "a place fits its own");

static struct keyed *keyed_of(const weft_keyed *keyed)
{
    return (struct keyed *)(uintptr_t)keyed;
}

/* It lies in front of the member. */
static struct found *found_of(const struct keyed *k, struct weft__member *member)
{
    size_t bytes = WEFT__KEYED_BYTES(k->key_bytes);
    return weft__behind_frame(member->task, bytes);
}

static struct weft__member *member_of(struct found *found)
{
    char *end = (char *)found + WEFT__KEYED_BYTES(found->key_bytes);
    return (struct weft__member *)(void *)(end - sizeof(struct weft__member));
}

/* FNV-1a, and a last step that mixes the high bits down: lists are chosen by the low ones. */
static uint64_t hash_of(const void *key, size_t bytes)
{
    const unsigned char *at = key;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* ---- holds: the lock -------------------------------------------------------------------------- */

static void leaves(struct weft__set *set, struct weft__member *member)
{
    struct keyed *k = weft__container_of(set, struct keyed, set);
    weft__list_remove(&found_of(k, member)->link);
    k->count--;
}

static void keyed_lock(struct keyed *k)
{
    weft__set_lock(&k->set);
    if (__builtin_expect(k->list_count > 0, 1)) return;
    weft__link_init(&k->first);
    weft__link_init(&k->pending);
    k->list_count = 1;
    k->set.leaves = leaves;
}

static struct weft__link *list_for(struct keyed *k, uint64_t hash)
{
    return k->lists ? &k->lists[hash & (k->list_count - 1)] : &k->first;
}

static struct found *find(struct keyed *k, const void *key, uint64_t hash)
{
    weft__list_each (it, list_for(k, hash)) {
        struct found *found = weft__container_of(it, struct found, link);
        if (found->hash == hash && memcmp(found->key, key, k->key_bytes) == 0) return found;
    }
    return NULL;
}

static bool is_pending(struct keyed *k, const void *key)
{
    weft__list_each (it, &k->pending) {
        const struct place *place = weft__container_of(it, struct place, link);
        if (memcmp(place->key, key, k->key_bytes) == 0) return true;
    }
    return false;
}

/* Takes a block of twice as many lists; gives back the old one, to be freed. */
static struct weft__link *rehash(struct keyed *k, struct weft__link *lists, size_t count)
{
    struct weft__link *old = k->lists;
    struct weft__link *from = old ? old : &k->first;
    size_t old_count = k->list_count;

    for (size_t i = 0; i < count; i++)
        weft__link_init(&lists[i]);
    k->lists = lists;
    k->list_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct weft__link *it; (it = weft__list_pop_front(&from[i]));) {
            struct found *found = weft__container_of(it, struct found, link);
            weft__list_push_back(list_for(k, found->hash), it);
        }
    }
    return old;
}

/* Lets the lock go while it asks for memory. Without any the table stays as it is. */
static void grow(struct keyed *k)
{
    size_t count = k->list_count * 2;
    if (k->count < k->list_count * LOAD_MAX) return;

    weft__waitlist_unlock(&k->set.list);
    struct weft__link *lists = weft__alloc(count * sizeof(*lists));
    keyed_lock(k);
    if (!lists) return;
    if (k->list_count < count) lists = rehash(k, lists, count);
    weft__waitlist_unlock(&k->set.list);
    weft__free(lists);
    keyed_lock(k);
}

/* The one with this key leaves the table, and nobody will hear of it. Gives its handle, if it has ended. */
static struct weft_task *drop_old(struct keyed *k, struct found *found,
                                  struct weft__wake_chain *chain)
{
    struct weft__member *member = member_of(found);

    weft__member_cancel(member, -ECANCELED, chain);
    return weft__set_drop(&k->set, member) ? member->task : NULL;
}

/* ---- in --------------------------------------------------------------------------------------- */

int weft__keyed_enter(weft_keyed *keyed, struct weft__keyed_place *place, const void *key,
                      size_t bytes, bool replaces)
{
    struct keyed *k = keyed_of(keyed);
    struct place *p = (struct place *)(void *)place;
    if (!keyed || !key || bytes == 0) return -EINVAL;

    int r = weft__set_try_reserve((weft_set *)(void *)keyed);
    if (r < 0) return r;
    weft__link_init(&p->link);
    p->key = key;
    p->replaces = replaces;
    keyed_lock(k);
    if (k->key_bytes == 0) k->key_bytes = bytes;
    bool fits = k->key_bytes == bytes;
    bool there = fits && !replaces && (find(k, key, hash_of(key, bytes)) || is_pending(k, key));
    if (fits && !there && !replaces) weft__list_push_back(&k->pending, &p->link);
    weft__waitlist_unlock(&k->set.list);
    if (fits && !there) return 0;
    weft__set_permit_drop((weft_set *)(void *)keyed);
    return fits ? -EEXIST : -EINVAL;
}

static void forget_place(struct keyed *k, struct place *place)
{
    weft__set_lock(&k->set);
    if (weft__link_linked(&place->link)) weft__list_remove(&place->link);
    weft__waitlist_unlock(&k->set.list);
}

static struct found *found_init(struct keyed *k, struct weft_task *task, const void *key)
{
    struct found *found = weft__behind_frame(task, WEFT__KEYED_BYTES(k->key_bytes));

    weft__link_init(&found->link);
    found->hash = hash_of(key, k->key_bytes);
    found->key_bytes = k->key_bytes;
    memcpy(found->key, key, k->key_bytes);
    return found;
}

/* Holds: the lock. It was replaced while it was on its way: it is in the set until it ends, and never in the table. */
static void put_aside(struct keyed *k, struct weft__member *member, struct weft__wake_chain *chain)
{
    member->unwanted = true;
    weft__set_enlist(&k->set, member, chain);
    weft__member_cancel(member, -ECANCELED, chain);
}

/* Holds: the lock. Gives the handle of one that was replaced, and had ended. */
static struct weft_task *put_in(struct keyed *k, struct found *found, bool replaces,
                                struct weft__wake_chain *chain)
{
    struct found *old = find(k, found->key, found->hash);
    if (old && !replaces) {
        put_aside(k, member_of(found), chain);
        return NULL;
    }
    struct weft_task *gone = old ? drop_old(k, old, chain) : NULL;

    weft__list_push_back(list_for(k, found->hash), &found->link);
    k->count++;
    weft__set_enlist(&k->set, member_of(found), chain);
    return gone;
}

int weft__keyed_add(weft_keyed *keyed, struct weft__keyed_place *place, weft_task *task,
                    const weft_spawn_opts *opts)
{
    struct keyed *k = keyed_of(keyed);
    struct place *p = (struct place *)(void *)place;
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    if (!task) {
        int why = weft__spawn_refused(opts);
        forget_place(k, p);
        weft__set_permit_drop((weft_set *)(void *)keyed);
        return why;
    }
    struct found *found = found_init(k, task, p->key);
    struct weft__member *member = member_of(found);
    weft__member_init(member, task, &k->set, &weft__set_member_ops);
    keyed_lock(k);
    grow(k);
    if (weft__link_linked(&p->link)) weft__list_remove(&p->link);
    struct weft_task *gone = put_in(k, found, p->replaces, &chain);
    weft__set_unlock(&k->set, &chain);
    weft__member_watch(member);
    if (gone) (void)weft_detach(gone);
    return 0;
}

/* ---- one of them ------------------------------------------------------------------------------ */

int weft__keyed_cancel(weft_keyed *keyed, const void *key, size_t bytes)
{
    struct keyed *k = keyed_of(keyed);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    if (!keyed || !key) return -EINVAL;

    keyed_lock(k);
    struct found *found = k->key_bytes == bytes ? find(k, key, hash_of(key, bytes)) : NULL;
    if (found) weft__member_cancel(member_of(found), -ECANCELED, &chain);
    weft__waitlist_unlock_push(&k->set.list, &chain, &weft__sched);
    return found ? 0 : -ENOENT;
}

bool weft__keyed_contains(weft_keyed *keyed, const void *key, size_t bytes)
{
    struct keyed *k = keyed_of(keyed);
    if (!keyed || !key) return false;

    keyed_lock(k);
    bool there = k->key_bytes == bytes && find(k, key, hash_of(key, bytes));
    weft__waitlist_unlock(&k->set.list);
    return there;
}

/* ---- out -------------------------------------------------------------------------------------- */

/* Takes a member that is out. */
static int give(struct keyed *k, struct weft__member *member, void *key, void *into)
{
    if (key) memcpy(key, found_of(k, member)->key, k->key_bytes);
    return weft__member_join(member, into);
}

weft_poll weft_keyed_join_next_poll(void *frame, weft_cx *cx)
{
    struct weft_keyed_join_next *f = frame;
    struct keyed *k = keyed_of(f->keyed);
    int r = -EINVAL;

    if (k) {
        struct weft__set_wait wait = {.set = &k->set,
                                      .queue = &k->set.takers,
                                      .at = &f->weft__at,
                                      .waiter = WEFT__LEAF_WAITER(f),
                                      .look = weft__set_look_next,
                                      .bytes = f->bytes,
                                      .sized = f->into != NULL};
        r = weft__set_wait_poll(&wait, cx);
        if (r == -EAGAIN) return WEFT_PENDING;
        if (r > 0) r = give(k, wait.member, f->key, f->into);
    }
    f->ret = r;
    return WEFT_READY;
}

int weft__keyed_join_next(weft_keyed *keyed, void *key, void *into, size_t bytes)
{
    struct weft_keyed_join_next f = {.keyed = keyed, .key = key, .into = into, .bytes = bytes};
    int r = weft__run_from(weft_keyed_join_next_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__keyed_try_join_next(weft_keyed *keyed, void *key, void *into, size_t bytes)
{
    struct keyed *k = keyed_of(keyed);
    if (!keyed) return -EINVAL;
    struct weft__set_wait wait = {
        .set = &k->set, .look = weft__set_look_next, .bytes = bytes, .sized = into != NULL};
    int r = weft__set_wait_try(&wait);
    return r > 0 ? give(k, wait.member, key, into) : r;
}

void weft__keyed_done(weft_keyed *keyed)
{
    if (!keyed) return;
    struct keyed *k = keyed_of(keyed);
    weft__set_done((weft_set *)(void *)keyed);
    weft__free(k->lists);
    k->lists = NULL;
    k->list_count = 0;
}
