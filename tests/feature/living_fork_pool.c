/* SPDX-License-Identifier: MIT
 *
 * Living with fork, with tasks in storage of the program's own: the child's copy of a pool says that it is dead, takes no
 * lock that stayed with the parent, and a fresh pool of a fresh runtime works.
 */
#include "child.h"
#include "crew.h"
#include "sched/pool.h"
#include "sched/sched.h"
#include "tasks.h"
#include "test.h"

#include <errno.h>
#include <weft/pool.h>

#define ROOM 64

static int twice(int a)
{
    int r = weft_yield();
    return r < 0 ? r : 2 * a;
}

static char memory[WEFT_POOL_GO_BYTES(ROOM)];
static char childs_memory[WEFT_POOL_GO_BYTES(ROOM)];

static void fresh_pool_works(void)
{
    weft_rt *rt;
    weft_pool pool;
    if (!DEATH_CHILD_MAY_ALLOCATE) return;
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) == 0);
    weft_pool_opts o = {.rt = rt};
    CHILD_NEEDS(weft_pool_init(&pool, childs_memory, sizeof(childs_memory), &o) == 0);
    for (int i = 0; i < 2 * ROOM; i++) {
        int got = 0;
        CHILD_NEEDS(weft_join(weft_go_as((.pool = &pool), twice, i), &got) == 0 && got == 2 * i);
    }
    CHILD_NEEDS(weft_pool_done(&pool) == 0);
    CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
}

static void dead_pool_says_so(weft_pool *pool, weft_rt *rt)
{
    weft_pool another;
    weft_pool_opts o = {.rt = rt};
    CHILD_NEEDS(weft_go_as((.pool = pool), twice, 1) == NULL);
    CHILD_NEEDS(weft_pool_done(pool) == -ECHILD);
    CHILD_NEEDS(weft_pool_init(&another, childs_memory, sizeof(childs_memory), &o) == -ECHILD);
    CHILD_NEEDS(weft_pool_capacity(pool) >= ROOM);
}

/* ---- what a child finds ------------------------------------------------------------------------------------------- */

struct holder {
    pthread_t thread;
    struct weft__lock *lock;
    _Atomic bool holds; /* relaxed, both: flags */
    _Atomic bool lets_go;
};

/* As a thread does that is in the middle of a spawn. */
static void *holds(void *arg)
{
    struct holder *me = arg;
    weft__lock_take(me->lock);
    store_relaxed(&me->holds, true);
    CREW_UNTIL(load_relaxed(&me->lets_go));
    weft__lock_drop(me->lock);
    return NULL;
}

static void holder_start(struct holder *h)
{
    ASSERT_OK(pthread_create(&h->thread, NULL, holds, h));
    CREW_UNTIL(load_relaxed(&h->holds));
}

static void holder_end(struct holder *h)
{
    store_relaxed(&h->lets_go, true);
    ASSERT_OK(pthread_join(h->thread, NULL));
}

static void forks_with_a_pool(struct crew *crew)
{
    weft_pool pool;
    struct holder holder = {.lock = &((struct weft__pool *)&pool)->lock};
    int got;
    ASSERT_OK(weft_pool_init(&pool, memory, sizeof(memory), NULL));
    weft_task *asleep = weft_spawn_as((.pool = &pool), waits);
    weft_task *ended = weft_go_as((.pool = &pool), twice, 4);
    CREW_UNTIL(weft_done(ended));
    holder_start(&holder);
    pid_t child = fork();
    if (child == 0) {
        CHILD_NEEDS(weft_pool_used(&pool) == 2);
        CHILD_NEEDS(weft_detach(ended) == 0); /* the last reference: its block would go back */
        CHILD_NEEDS(weft_join(asleep, &got) == -ECHILD);
        dead_pool_says_so(&pool, crew->rt);
        fresh_pool_works();
        _exit(7);
    }
    holder_end(&holder);
    ASSERT(ended_by(exit_code_of(child), 7));
    ASSERT_OK(weft_join(ended, &got)); /* and nothing has happened here */
    ASSERT_EQ(got, 8);
    weft_cancel(asleep);
    ASSERT_OK(weft_join(asleep, &got));
    ASSERT_EQ(got, -ECANCELED);
    CREW_UNTIL(weft_pool_done(&pool) == 0);
}

TEST(fork_leaves_dead_pools)
{
    crew_each(forks_with_a_pool);
}

/* ---- while others make and end pools ------------------------------------------------------------------------------- */

struct maker {
    pthread_t thread;
    weft_rt *rt;
    _Atomic bool *quit; /* relaxed: a flag */
    int wrong;
    char memory[WEFT_POOL_GO_BYTES(ROOM)];
};

static void *makes_and_ends(void *arg)
{
    struct maker *me = arg;
    weft_pool_opts o = {.rt = me->rt};
    while (!load_relaxed(me->quit)) {
        weft_pool pool;
        int got = 0;
        me->wrong += weft_pool_init(&pool, me->memory, sizeof(me->memory), &o) != 0;
        int r = weft_join(weft_go_as((.pool = &pool), twice, 3), &got);
        me->wrong += r != 0 || got != 6;
        me->wrong += weft_pool_done(&pool) != 0;
    }
    return NULL;
}

TEST_WITH(fork_beside_threads_that_make_pools, .timeout_s = 240)
{
    static struct maker crowd[3];
    _Atomic bool quit = false;
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    for (int i = 0; i < 3; i++) {
        crowd[i].rt = rt;
        crowd[i].quit = &quit;
        ASSERT_OK(pthread_create(&crowd[i].thread, NULL, makes_and_ends, &crowd[i]));
    }
    for (uint64_t i = 0; i < test_scaled(100); i++) {
        pid_t child = fork();
        if (child == 0) {
            fresh_pool_works();
            raise(
                SIGKILL); /* leak checkers at an exit would object to what the others had in hand */
        }
        ASSERT_EQ(exit_code_of(child), 1000 + SIGKILL);
    }
    store_relaxed(&quit, true);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(pthread_join(crowd[i].thread, NULL));
        ASSERT_OK(crowd[i].wrong);
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}
