/* SPDX-License-Identifier: MIT
 *
 * sync - locks and futexes as the checker's own primitives, and yield.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

#define LOCKS_MAX 32

static struct lock {
    const volatile void *address;
    bool held;
    unsigned holder;
    struct view view;               /* what the last holder knew */
} locks[LOCKS_MAX];
static unsigned lock_count;

/* A futex wait may not see less than what those saw who came to wake: the kernel's bucket lock orders the two. */
static struct futex {
    const volatile void *word;
    uint32_t least_key;
} futexes[LOCKS_MAX];
static unsigned futex_count;

void model__sync_reset(void)
{
    lock_count = 0;
    futex_count = 0;
}

/* ---- locks ---- */

static struct lock *lock_at(const volatile void *address)
{
    for (unsigned i = 0; i < lock_count; i++)
        if (locks[i].address == address) return &locks[i];
    if (lock_count == LOCKS_MAX) model__fail("too many locks in one execution (LOCKS_MAX)");
    struct lock *l = &locks[lock_count++];
    memset(l, 0, offsetof(struct lock, view));
    memset(&l->view, 0, offsetof(struct view, seen));
    l->address = address;
    return l;
}

bool model__lock_free(const volatile void *address)
{
    return !lock_at(address)->held;
}

static void enter(struct lock *l)
{
    l->held = true;
    l->holder = model__current;
    model__view_join(&self()->now, &l->view);
    model__view_join(&self()->acquirable, &l->view);
    model__order_elsewhere();
    model__tick();
}

/* The lock's word is memory like any other: it may have been freed. */
static void check_lock_memory(const volatile void *address)
{
    model__touch_loc(model__loc(address, 4, false));
}

void model_lock(const volatile void *address)
{
    static const struct model_site at = {"", 0, "lock"};
    struct lock *l = lock_at(address);
    if (l->held && l->holder == model__current) model__fail("a thread takes a lock that it holds");
    model__point(OP_LOCK, address);
    check_lock_memory(address);
    if (model__tracing) model__trace(&at, "%s", "");
    enter(l);
}

bool model_try_lock(const volatile void *address)
{
    static const struct model_site at = {"", 0, "try_lock"};
    struct lock *l = lock_at(address);
    model__point(OP_WRITE, address);
    check_lock_memory(address);
    bool got = !l->held;
    if (model__tracing) model__trace(&at, got ? "-> taken" : "-> busy");
    if (got) {
        enter(l);
    } else {
        model__tick();
    }
    return got;
}

void model_unlock(const volatile void *address)
{
    static const struct model_site at = {"", 0, "unlock"};
    struct lock *l = lock_at(address);
    if (!l->held || l->holder != model__current) model__fail("a thread drops a lock that it does not hold");
    /* Nothing that others may do between the last step and this one depends on it, so it needs no scheduling point of its own; but sleep sets want one
     * location per step. */
    if (model__unbounded()) model__point(OP_UNLOCK, address);
    check_lock_memory(address);
    if (model__tracing) model__trace(&at, "%s", "");
    model__order_elsewhere();
    model__view_copy(&l->view, &self()->now);
    l->held = false;
    model__writes++;
    model__tick();
}

/* ---- futexes ---- */

static struct futex *futex_at(const volatile void *word)
{
    for (unsigned i = 0; i < futex_count; i++)
        if (futexes[i].word == word) return &futexes[i];
    if (futex_count == LOCKS_MAX) model__fail("too many futexes in one execution (LOCKS_MAX)");
    futexes[futex_count] = (struct futex){.word = word};
    return &futexes[futex_count++];
}

int model_futex_wait(const volatile void *word, uint32_t expected, bool timed)
{
    static const struct model_site look = {"", 0, "futex_wait looks"};
    static const struct model_site back = {"", 0, "futex_wait returns"};
    struct thread *t = self();

    model__point(OP_WRITE, word);
    struct loc *l = model__loc(word, 4, false);
    uint32_t value = (uint32_t)model__read(l, futex_at(word)->least_key, &look);
    model__tick();
    if (value != expected) return -EAGAIN;
    t->sleeps_on = word;
    t->woken = false;
    t->timed = timed;
    model__point(OP_SLEEP, word);
    bool woken = t->woken;
    t->sleeps_on = NULL;
    if (!woken && !timed) model__spurious_left--;
    if (model__tracing) model__trace(&back, woken ? "woken" : timed ? "timed out" : "for no reason");
    model__tick();
    return woken ? 0 : timed ? -ETIMEDOUT : 0;
}

/* Any of the sleepers: the kernel's queue is first in, first out only among equals. */
static bool wake_any(const volatile void *word)
{
    struct thread *sleepers[MODEL_THREADS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < model__thread_count; i++) {
        struct thread *t = &model__threads[i];
        if (t->state == THREAD_LIVE && t->sleeps_on == word && !t->woken) sleepers[count++] = t;
    }
    if (count == 0) return false;
    sleepers[model__choose(count)]->woken = true;
    return true;
}

int model_futex_wake(const volatile void *word, int count)
{
    static const struct model_site at = {"", 0, "futex_wake"};
    int woken = 0;

    model__point(OP_WRITE, word);
    struct futex *f = futex_at(word);
    struct loc *l = model__loc_if_known(word); /* its memory may be gone: the kernel does not care */
    if (l && !l->dead) {
        uint32_t key = model__seen(&self()->now, l) >> 1;
        if (key > f->least_key) f->least_key = key;
    }
    while (woken < count && wake_any(word)) woken++;
    if (model__tracing) model__trace(&at, "-> %d", woken);
    model__writes++;
    model__tick();
    return woken;
}

/* ---- yield ---- */

void model_yield(void)
{
    struct thread *t = self();
    t->yielded = true;
    model__point(OP_YIELD, NULL);
    t->yielded = false;
    t->saw_stale = false;
    t->loaded = false;
    model__freshen(t);
}
