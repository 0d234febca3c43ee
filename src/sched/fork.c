/* SPDX-License-Identifier: MIT
 *
 * fork - runtimes do not survive it: in the child they are dead, nothing hangs, and a fresh one works.
 *
 * fork copies one thread. The child has the memory of every runtime and none of their threads, so whoever waited for one of
 * their tasks would wait for ever. Three handlers of pthread_atfork see to it:
 *     before   freeze the process's own locks: no other thread is in the middle of what they guard
 *     parent   thaw them
 *     child    thaw them; mark every runtime LOST; the thread that forked is a plain one from now on (task/orphan.h)
 * A lost runtime answers -ECHILD, spawns nothing, and is neither the default nor entered. Handles may be dropped, wakers used:
 * that changes numbers in memory which nobody looks at. The memory stays until the child execs or ends.
 * Locks of a runtime are not frozen: only that runtime takes them, and it is lost.
 *
 * Nothing is asked on the way of a spawn or a wake: a spawn from outside looks at the stage anyway, a worker does not exist
 * in the child, and a join looks at one byte that never changes in a process that is no child.
 * The handlers are registered before main, since until then a fork copies locks that are held, by a thread that builds the first runtime or runs a fiber
 * without one. If there was no memory then, the first runtime does it, before it takes any lock; two that do so at once register them
 * twice, and then they do their work once for each fork all the same (`frozen`).
 * Threads: any. Guarded by a lock of rank rt, which is among those that are frozen.
 * Rejected: comparing getpid() (a syscall on each call since glibc forgets it), a runtime that starts its threads anew in the
 * child (its tasks stood in the middle of things that are half the parent's: sockets, locks, buffers).
 */
#include "sched/pool.h"
#include "sched/sched.h"

#include "sys/bias.h"
#include "sys/fork.h"
#include "sys/lock.h"
#include "sys/segv.h"
#include "sys/signals.h"
#include "sys/stackdir.h"
#include "task/fiberdir.h"
#include "task/orphan.h"
#include "task/watchers.h"

#include <errno.h>

/* On a line of its own: joins read it, and nothing that others write may lie beside it. */
WEFT__CACHE_ALIGNED bool weft__forked;

static WEFT__CACHE_ALIGNED struct {
    struct weft__lock lock; /* rank rt; guards the rest, and `alive` of every runtime */
    struct weft__link alive; /* all that were built and not stopped; in a child also the lost ones */
} all = {.lock = WEFT__LOCK_INIT(WEFT__RANK_RT), .alive = WEFT__LIST_INIT(all.alive)};

static _Atomic bool watching;      /* the handlers are there */
static _Thread_local int frozen; /* how many of our handlers this thread's fork has passed */

/* ---- the locks of the process ---- */

typedef struct weft__lock *lock_getter(void);

static struct weft__lock *list_lock(void)
{
    return &all.lock;
}

/* Every static lock of the library, the outermost first, but for those of the watchers, which the child makes anew. One that is missing here may be held for
 * ever in a child. */
static lock_getter *const locks[] = {
    list_lock,           weft__pool_lock, weft__guest_lock,   weft__fiberdir_lock,
    weft__stackdir_lock, weft__segv_lock, weft__signals_lock,
};
#define LOCKS (sizeof(locks) / sizeof(locks[0]))

static void freeze(void)
{
    if (frozen++ > 0) return;
    for (size_t i = 0; i < LOCKS; i++)
        weft__lock_freeze(locks[i]());
}

static void thaw_all(void)
{
    for (size_t i = LOCKS; i-- > 0;)
        weft__lock_thaw(locks[i]());
}

static void thaw(void)
{
    if (--frozen == 0) thaw_all();
}

/* ---- the child ---- */

static void begin_child(void)
{
    if (--frozen > 0) return;
    thaw_all(); /* first: there is one thread, so nobody comes in between */
    for (struct weft__link *link = all.alive.next; link != &all.alive; link = link->next)
        weft__rt_lose(weft__container_of(link, struct weft_rt, alive));
    if (!weft__list_empty(&all.alive)) weft__forked = true;
    weft__signals_forget();
    weft__watchers_forget(); /* before anybody waits: its locks may be held by threads that are not here */
    weft__orphan_here();
    weft__bias_forget(); /* behind it: this thread has no number any more */
}

/* ---- the list ---- */

int weft__fork_ready(void)
{
    if (load_relaxed(&watching)) return 0; /* relaxed, both: who misses it registers once more */
    int r = weft__fork_watch(freeze, thaw, begin_child);
    if (r == 0) store_relaxed(&watching, true);
    return r;
}

__attribute__((constructor)) static void be_ready_early(void)
{
    (void)weft__fork_ready(); /* else weft_rt_new tries again */
}

void weft__fork_enlist(struct weft_rt *rt)
{
    weft__link_init(&rt->alive);
    weft__lock_take(&all.lock);
    weft__list_push_back(&all.alive, &rt->alive);
    weft__lock_drop(&all.lock);
}

void weft__fork_delist(struct weft_rt *rt)
{
    weft__lock_take(&all.lock);
    weft__list_remove(&rt->alive);
    weft__lock_drop(&all.lock);
}

/* ---- stopping ---- */

/* holds: the lock. By its address alone. */
static bool is_listed(const struct weft_rt *rt)
{
    for (const struct weft__link *link = all.alive.next; link != &all.alive; link = link->next)
        if (link == &rt->alive) return true;
    return false;
}

/* holds: the lock */
static int may_stop(const struct weft_rt *rt)
{
    if (!is_listed(rt)) return -EINVAL;
    if (weft__rt_is_lost(rt)) return -ECHILD;
    return rt->stopping ? -EBUSY : 0;
}

int weft__fork_stops(struct weft_rt *rt)
{
    weft__lock_take(&all.lock);
    int r = may_stop(rt);
    if (r == 0) rt->stopping = true;
    weft__lock_drop(&all.lock);
    return r;
}

void weft__fork_stops_not(struct weft_rt *rt)
{
    weft__lock_take(&all.lock);
    rt->stopping = false;
    weft__lock_drop(&all.lock);
}
