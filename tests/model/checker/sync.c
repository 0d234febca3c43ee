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
    bool dead;                      /* its memory was freed */
    unsigned holder;
    uint32_t touched[MODEL_THREADS_MAX]; /* clock of each thread's last call */
    struct view view;               /* what the last holder knew */
} locks[LOCKS_MAX];
static unsigned lock_count;

/* A futex wait may not see less than what those saw who came to wake: the kernel's bucket lock orders the two. */
static struct futex {
    const volatile void *word;
    uint32_t least_key;
} futexes[LOCKS_MAX];
static unsigned futex_count;

uint64_t model__drops;

void model__sync_reset(void)
{
    lock_count = 0;
    futex_count = 0;
    model__drops = 0;
}

/* ---- locks ---- */

static struct lock *lock_at(const volatile void *address)
{
    for (unsigned i = 0; i < lock_count; i++)
        if (locks[i].address == address) return &locks[i];
    if (lock_count == LOCKS_MAX) model__fail_limit("too many locks in one execution (LOCKS_MAX)");
    model__check_not_freed(address, 1);
    struct lock *l = &locks[lock_count++];
    memset(l, 0, offsetof(struct lock, view) + offsetof(struct view, loc));
    l->address = address;
    return l;
}

bool model__lock_free(const volatile void *address)
{
    return !lock_at(address)->held;
}

/* A lock is memory like any other: it may have been freed, and who frees it must come after all who used it. */
static void touch_lock(struct lock *l)
{
    if (l->dead) model__fail("use after free: a lock");
    l->touched[model__current] = self()->now.clock[model__current];
}

void model__free_locks(const char *memory, size_t bytes)
{
    for (unsigned i = 0; i < lock_count; i++) {
        struct lock *l = &locks[i];
        if ((uintptr_t)l->address - (uintptr_t)memory >= bytes) continue;
        for (unsigned t = 0; t < model__thread_count; t++) {
            if (model__ordered(l->touched[t], t)) continue;
            model__fail("use after free: a lock is freed while its use by T%u is not ordered before", t);
        }
        if (l->held) model__fail("a lock is freed while it is held");
        l->dead = true;
    }
}

void model__check_no_lock_held(void)
{
    if (self()->locks_held) model__fail("T%u ended while it held a lock", model__current);
}

static void enter(struct lock *l)
{
    l->held = true;
    l->holder = model__current;
    self()->locks_held++;
    model__view_join(&self()->now, &l->view);
    model__view_join(&self()->acquirable, &l->view);
    model__order_elsewhere();
}

static void trace_lock(const struct model_site *at, const volatile void *address, const char *how)
{
    const char *name = model__name_of(address);
    if (name) {
        model__trace(at, "[%s] %s", name, how);
    } else {
        model__trace(at, "%p %s", (const void *)address, how);
    }
}

void model_lock(const volatile void *address)
{
    static const struct model_site at = {"", 0, "lock"};
    struct lock *l = lock_at(address);
    if (l->held && l->holder == model__current) model__fail("a thread takes a lock that it holds");
    model__point(OP_LOCK, address);
    touch_lock(l);
    if (model__tracing) trace_lock(&at, address, "");
    enter(l);
    model__tick();
}

bool model_try_lock(const volatile void *address)
{
    static const struct model_site at = {"", 0, "try_lock"};
    struct thread *t = self();
    model__want_points_at_unlock();
    struct lock *l = lock_at(address);
    model__point(OP_WRITE, address);
    touch_lock(l);
    bool got = !l->held;
    if (model__tracing) trace_lock(&at, address, got ? "-> taken" : "-> busy");
    if (got) {
        enter(l);
    } else if (!t->found_busy) {
        t->found_busy = true;
        t->found_busy_drops = model__drops;
    }
    model__tick();
    return got;
}

void model_unlock(const volatile void *address)
{
    static const struct model_site at = {"", 0, "unlock"};
    struct lock *l = lock_at(address);
    if (!l->held || l->holder != model__current)
        model__fail("a thread drops a lock that it does not hold");
    if (model__point_at_unlock()) model__point(OP_UNLOCK, address);
    touch_lock(l);
    if (model__tracing) trace_lock(&at, address, "");
    model__order_elsewhere();
    model__view_copy(&l->view, &self()->now);
    l->held = false;
    self()->locks_held--;
    model__drops++;
    model__tick();
}

/* ---- futexes ---- */

static struct futex *futex_at(const volatile void *word)
{
    for (unsigned i = 0; i < futex_count; i++)
        if (futexes[i].word == word) return &futexes[i];
    if (futex_count == LOCKS_MAX)
        model__fail_limit("too many futexes in one execution (LOCKS_MAX)");
    futexes[futex_count] = (struct futex){.word = word};
    return &futexes[futex_count++];
}

/* A new round, as after a yield: a loop around a timed wait must end as well. */
static void timed_out(struct thread *t)
{
    t->timed_out = true;
    if (!t->let_through) t->let_through_count = 0;
    t->let_through = false;
    model__round_new(t);
}

static int sleep_on(const volatile void *word, bool timed)
{
    static const struct model_site back = {"", 0, "futex_wait returns"};
    struct thread *t = self();
    t->sleeps_on = word;
    t->woken = false;
    t->timed = timed;
    model__point(OP_SLEEP, word);
    bool woken = t->woken;
    t->sleeps_on = NULL;
    t->timed = false;
    if (model__tracing)
        model__trace(&back, woken ? "woken" : timed ? "timed out" : "for no reason");
    model__tick();
    if (woken) return 0;
    if (timed) {
        timed_out(t);
        return -ETIMEDOUT;
    }
    model__spurious_left--;
    return 0;
}

int model_futex_wait(const volatile void *word, uint32_t expected, bool timed)
{
    static const struct model_site look = {"", 0, "futex_wait looks"};

    model__point(OP_WRITE, word);
    struct loc *l = model__loc(word, 4, false);
    uint32_t value = (uint32_t)model__read(l, futex_at(word)->least_key, MODEL_relaxed, &look);
    return value == expected ? sleep_on(word, timed) : -EAGAIN;
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
    struct loc *l = model__loc_if_known(word); /* may be gone: the kernel does not care */
    if (l && !l->dead) {
        uint32_t key = model__seen(&self()->now, l) >> 1;
        if (key > f->least_key) f->least_key = key;
    }
    while (woken < count && wake_any(word))
        woken++;
    if (model__tracing) model__trace(&at, "-> %d", woken);
    model__tick();
    return woken;
}

/* ---- yield ---- */

/* A fence of the thread that is current, which happens behind all that is in `before`. */
static void fence_behind(const struct view *before)
{
    struct thread *t = self();
    model__view_join(&t->now, before);
    model__view_copy(&t->released, &t->now);
    model__order_elsewhere();
    model__tick();
}

/* The fences of the others are made in their name: each has done what it did up to its next scheduling point, and nothing of what comes behind that. */
void model_membarrier(void)
{
    static const struct model_site at = {"", 0, "membarrier"};
    static struct view before, after; /* too large for the stack of a thread */

    model__point(OP_BARRIER, NULL);
    if (model__tracing) model__trace(&at, "%s", "");
    unsigned caller = model__current;
    model__view_join(&self()->now, &self()->acquirable);
    model__view_copy(&before, &self()->now);
    model__view_copy(&after, &self()->now);
    model__tick();
    for (unsigned i = 0; i < model__thread_count; i++) {
        if (i == caller) continue;
        model__current = i;
        model__view_join(&self()->now, &self()->acquirable);
        model__view_join(&after, &self()->now);
        fence_behind(&before);
    }
    model__current = caller;
    fence_behind(&after);
}

void model_yield(void)
{
    struct thread *t = self();
    model__point(OP_YIELD, NULL);
    if (!t->let_through) t->let_through_count = 0;
    t->let_through = false;
    model__round_new(t);
}
