/* SPDX-License-Identifier: MIT
 *
 * Tasks in the program's own storage: as many as have room, no heap, in the registry like all others, and the memory comes back.
 */
#include "base/alloc.h"
#include "crew.h"
#include "death.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/pool.h>
#include <weft/tracker.h>

#define ROOM 100

/* Waits until it is cancelled. */
struct waits {
    WEFT_FRAME(int);
    int64_t payload[10];
};
static weft_poll waits_poll(void *frame, weft_cx *cx)
{
    struct waits *f = frame;
    f->ret = weft_cx_cancelled(cx);
    return f->ret ? WEFT_READY : WEFT_PENDING;
}

struct adds {
    WEFT_FRAME(int);
    int a;
    int b;
    struct weft_yield pause;
};
static weft_async(adds)
{
    weft_begin;
    weft_await(f->pause, weft_yield);
    weft_return(f->a + f->b);
    weft_end;
}

static int adds_too(int a, int b)
{
    int r = weft_yield();
    return r < 0 ? r : a + b;
}

static char memory[WEFT_POOL_BYTES(ROOM, waits)];
static const weft_pool_opts for_waits = {.frame_bytes = sizeof(struct waits)};

static void pool_start(weft_pool *pool, weft_rt *rt)
{
    weft_pool_opts o = for_waits;
    o.rt = rt;
    ASSERT_OK(weft_pool_init(pool, memory, sizeof(memory), &o));
    ASSERT_GE(weft_pool_capacity(pool), ROOM);
    ASSERT_EQ(weft_pool_used(pool), 0);
}

/* Done, and the memory used for something else at once: whoever still looks at it is found out. */
static void pool_end(weft_pool *pool)
{
    ASSERT_OK(weft_pool_done(pool));
    memset(memory, 0xff, sizeof(memory));
    ASSERT_EQ(weft_pool_done(pool), -EINVAL);
}

/* ---- room ---- */

TEST(pool_bytes_are_enough_wherever_they_begin)
{
    static char plenty[WEFT_POOL_BYTES(1500, waits) + 70000];
    weft_rt *rt;
    weft_pool pool;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    for (size_t count = 1; count <= 1500; count += count < 20 ? 1 : 97) {
        for (size_t skip = 0; skip <= 70000; skip += 9999 + count % 7) {
            weft_pool_opts o = {.rt = rt, .frame_bytes = sizeof(struct waits)};
            ASSERT_OK(weft_pool_init(&pool, plenty + skip, WEFT_POOL_BYTES(count, waits), &o));
            ASSERT_GE(weft_pool_capacity(&pool), count);
            ASSERT_OK(weft_pool_done(&pool));
        }
    }
    ASSERT_LE(load_relaxed(&rt->blocks.chunk_count),
              8); /* places in the directory are used again */
    ASSERT_OK(weft_rt_stop(rt, -1));
}

TEST(pool_refuses_what_cannot_be)
{
    weft_rt *rt;
    weft_pool pool = {{0}};
    ASSERT_EQ(weft_pool_done(NULL), -EINVAL);
    ASSERT_EQ(weft_pool_done(&pool), -EINVAL);
    ASSERT_EQ(weft_pool_init(&pool, memory, sizeof(memory), NULL), -ENXIO);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    weft_pool_opts o = {.rt = rt};
    ASSERT_EQ(weft_pool_init(NULL, memory, sizeof(memory), &o), -EINVAL);
    ASSERT_EQ(weft_pool_init(&pool, NULL, sizeof(memory), &o), -EINVAL);
    ASSERT_EQ(weft_pool_init(&pool, memory, 10, &o), -ENOSPC);
    ASSERT_EQ(weft_pool_init(&pool, memory, 0, &o), -ENOSPC);
    o.frame_bytes = 65329;
    ASSERT_EQ(weft_pool_init(&pool, memory, sizeof(memory), &o), -EINVAL);
    o.frame_bytes = SIZE_MAX;
    ASSERT_EQ(weft_pool_init(&pool, memory, sizeof(memory), &o), -EINVAL);
    ASSERT_EQ(weft_pool_done(&pool), -EINVAL);
    ASSERT_NULL(weft_spawn_as((.pool = &pool), adds, 1, 2));
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- in use ---- */

static void both_kinds(struct crew *crew)
{
    weft_pool pool;
    pool_start(&pool, crew->rt);
    for (int i = 0; i < 300; i++) {
        int got;
        ASSERT_OK(weft_join(weft_spawn_as((.pool = &pool), adds, i, 1), &got));
        ASSERT_EQ(got, i + 1);
        ASSERT_OK(weft_join(weft_go_as((.pool = &pool, .name = "two"), adds_too, i, 2), &got));
        ASSERT_EQ(got, i + 2);
    }
    ASSERT_EQ(weft_pool_used(&pool), 0);
    pool_end(&pool);
}

TEST(pool_runs_both_kinds)
{
    crew_each(both_kinds);
}

static _Atomic uint32_t evaluated;

static int evaluates(int value)
{
    fetch_add_relaxed(&evaluated, 1);
    return value;
}

static void fills_up(struct crew *crew)
{
    weft_pool pool;
    weft_task *task[4 * ROOM];
    pool_start(&pool, crew->rt);
    size_t capacity = weft_pool_capacity(&pool);
    ASSERT_LE(capacity, 4 * ROOM);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < capacity; i++)
            ASSERT(task[i] = weft_spawn_as((.pool = &pool), waits));
        store_relaxed(&evaluated, 0);
        ASSERT_NULL(weft_spawn_as((.pool = &pool), adds, .a = evaluates(1)));
        ASSERT_NULL(weft_go_as((.pool = &pool), adds_too, 1, 1));
        ASSERT_EQ(load_relaxed(&evaluated), 0);
        ASSERT_EQ(weft_pool_used(&pool), capacity);
        ASSERT_EQ(weft_pool_done(&pool), -EBUSY);
        for (size_t i = 0; i < capacity; i++) {
            int got;
            weft_cancel(task[i]);
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, -ECANCELED);
        }
        ASSERT_EQ(weft_pool_used(&pool), 0);
    }
    pool_end(&pool);
}

TEST(pool_that_is_full_answers_null)
{
    crew_each(fills_up);
}

static int spawns_from_inside(weft_pool *pool, int count)
{
    for (int i = 0; i < count; i++) {
        int got = 0;
        weft_task *task = weft_spawn_as((.pool = pool), adds, i, i);
        if (!task) {
            if (weft_yield() < 0) return -ECANCELED;
            continue;
        }
        int r = weft_join(task, &got);
        if (r < 0 || got != 2 * i) return -1;
    }
    return 0;
}

struct spawner {
    pthread_t thread;
    weft_pool *pool;
};

static void *spawns_from_outside(void *arg)
{
    ASSERT_OK(spawns_from_inside(((struct spawner *)arg)->pool, (int)test_scaled(2000)));
    return NULL;
}

static void from_everywhere(struct crew *crew)
{
    weft_pool pool;
    struct spawner s[2];
    weft_task *task[8];
    pool_start(&pool, crew->rt);
    for (int i = 0; i < 2; i++) {
        s[i].pool = &pool;
        ASSERT_OK(pthread_create(&s[i].thread, NULL, spawns_from_outside, &s[i]));
    }
    for (int i = 0; i < 8; i++)
        task[i] = weft_go(spawns_from_inside, &pool, (int)test_scaled(2000));
    for (int i = 0; i < 8; i++) {
        int got;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_OK(got);
    }
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pthread_join(s[i].thread, NULL));
    pool_end(&pool);
}

TEST(pool_serves_workers_and_threads_at_once)
{
    crew_each(from_everywhere);
}

/* ---- large frames, options ---- */

struct large {
    WEFT_FRAME(int);
    unsigned char fill;
    struct weft_yield pause;
    unsigned char room[60000];
};
static weft_async(large)
{
    weft_begin;
    memset(f->room, f->fill, sizeof(f->room));
    weft_await(f->pause, weft_yield);
    for (size_t i = 0; i < sizeof(f->room); i++)
        if (f->room[i] != f->fill) weft_return(-1);
    weft_return(f->fill);
    weft_end;
}

static void large_frames(struct crew *crew)
{
    static char ground[WEFT_POOL_BYTES(3, large)];
    weft_pool pool;
    weft_task *task[3];
    weft_pool_opts o = {.rt = crew->rt, .frame_bytes = sizeof(struct large)};
    ASSERT_OK(weft_pool_init(&pool, ground, sizeof(ground), &o));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            ASSERT(task[i] = weft_spawn_as((.pool = &pool, .name = "large"), large,
                                           .fill = (unsigned char)(i + 7)));
        ASSERT_STR(weft_task_name(task[1]), "large");
        for (int i = 0; i < 3; i++) {
            int got;
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, i + 7);
        }
    }
    ASSERT_OK(weft_pool_done(&pool));
}

TEST(pool_holds_frames_that_otherwise_are_boxed)
{
    crew_each(large_frames);
}

__attribute__((noinline)) static int uses_a_megabyte(void)
{
    volatile char spoil[1 << 20];
    for (size_t i = 0; i < sizeof(spoil); i += 4096)
        spoil[i] = 1;
    return spoil[8192];
}

static void with_options(struct crew *crew)
{
    weft_pool pool;
    int got;
    pool_start(&pool, crew->rt);
    weft_task *task =
        weft_go_as((.pool = &pool, .stack_bytes = 4 << 20, .name = "digger"), uses_a_megabyte);
    ASSERT_STR(weft_task_name(task), "digger");
    ASSERT_OK(weft_join(task, &got));
    ASSERT_EQ(got, 1);
    ASSERT_NULL(weft_go_as((.pool = &pool, .stack_bytes = SIZE_MAX), uses_a_megabyte));
    ASSERT_EQ(weft_pool_used(&pool), 0);
    pool_end(&pool);
}

TEST(pool_tasks_have_names_and_stack_sizes)
{
    crew_each(with_options);
}

static void spawns_too_large(void *unused)
{
    weft_rt *rt;
    weft_pool pool;
    (void)unused;
    if (weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) < 0) _exit(2);
    if (weft_pool_init(&pool, memory, sizeof(memory), &(weft_pool_opts){.rt = rt}) < 0) _exit(3);
    for (int i = 0; i < 3; i++)
        if (weft_spawn_as((.pool = &pool), large, .fill = 1)) _exit(4);
    _exit(weft_pool_done(&pool) == 0 && weft_rt_stop(rt, -1) == 0 ? 0 : 5);
}

TEST(pool_says_once_that_a_frame_is_too_large)
{
    struct death d = death_of(spawns_too_large, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(d.signal, 0);
    ASSERT(strstr(d.said, "weft: 'large' (spawned at "));
    ASSERT(strstr(d.said, "its pool's blocks hold 128: see frame_bytes\n"));
    ASSERT_PTR(strchr(d.said, '\n'), strrchr(d.said, '\n'));
}

/* ---- runtimes ---- */

TEST(pool_belongs_to_one_runtime)
{
    weft_rt *mine;
    weft_rt *other;
    weft_pool pool;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &mine));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .make_default = true}, &other));
    pool_start(&pool, mine);
    ASSERT_NULL(weft_spawn_as((.pool = &pool, .rt = other), adds, 1, 2));
    weft_tracker tracker = {0}; /* which says why */
    ASSERT_EQ(weft_tracker_spawn_as((.pool = &pool, .rt = other), &tracker, adds, 1, 2), -EINVAL);
    weft_pool none = {0};
    ASSERT_EQ(weft_tracker_spawn_as((.pool = &none), &tracker, adds, 1, 2), -EINVAL);
    ASSERT_OK(weft_join(weft_spawn_as((.pool = &pool, .rt = mine), adds, 1, 2), &got));
    ASSERT_EQ(got, 3);
    ASSERT_OK(weft_join(weft_go_as((.rt = other), spawns_from_inside, &pool, 10),
                        &got)); /* a worker of another runtime is a thread outside */
    ASSERT_OK(got);
    pool_end(&pool);
    ASSERT_OK(weft_rt_stop(mine, -1));
    ASSERT_OK(weft_rt_stop(other, -1));
}

/* Found by the sweep of a stop, joined after it; then the pool, and with it the last of the runtime, goes. */
TEST(pool_tasks_are_swept_and_outlive_the_runtime)
{
    for (size_t n = 0; n < CREW_SIZES; n++) {
        struct crew crew;
        weft_pool pool;
        weft_task *task[ROOM];
        crew_start(&crew, crew_sizes[n]);
        pool_start(&pool, crew.rt);
        for (int i = 0; i < ROOM; i++)
            ASSERT(task[i] = weft_spawn_as((.pool = &pool), waits));
        ASSERT_OK(weft_detach(task[0]));
        crew_stop(&crew);
        ASSERT_EQ(weft_pool_used(&pool), ROOM - 1);
        ASSERT_EQ(weft_pool_done(&pool), -EBUSY);
        ASSERT_NULL(weft_spawn_as((.pool = &pool), waits));
        for (int i = 1; i < ROOM; i++) {
            int got;
            ASSERT(weft_done(task[i]));
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, -ECANCELED);
        }
        pool_end(&pool);
    }
}

/* An id of a pool that is gone finds nothing in the next one in the same place. */
TEST(pool_ids_do_not_come_back)
{
    weft_rt *rt;
    weft_pool pool;
    uint64_t ids[30];
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    for (int i = 0; i < 30; i++) {
        pool_start(&pool, rt);
        weft_task *task = weft_spawn_as((.pool = &pool), waits);
        ids[i] = weft_task_id(task);
        ASSERT_PTR(weft__slab_find(&rt->blocks, ids[i]), task);
        for (int old = 0; old < i; old++)
            ASSERT_NULL(weft__slab_find(&rt->blocks, ids[old]));
        weft_cancel(task);
        ASSERT_OK(weft_join(task, (int *)NULL));
        pool_end(&pool);
        ASSERT_NULL(weft__slab_find(&rt->blocks, ids[i]));
    }
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- somebody looks while it goes ---- */

static _Atomic bool over;
static _Atomic uint64_t seen;

static int count_live(void *ctx, void *block, uint64_t state)
{
    (void)ctx;
    (void)block;
    ASSERT((state & WEFT__SLAB_FLAGS) !=
           WEFT__SLAB_FLAGS); /* what the program writes into its memory */
    fetch_add_relaxed(&seen, 1);
    return 0;
}

static void *walks(void *rt)
{
    while (!load_relaxed(&over))
        ASSERT_OK(weft__slab_walk(&((weft_rt *)rt)->blocks, count_live, NULL));
    return NULL;
}

TEST(pool_goes_while_others_look)
{
    weft_rt *rt;
    weft_pool pool;
    pthread_t walker;
    int got;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt));
    ASSERT_OK(pthread_create(&walker, NULL, walks, rt));
    for (uint64_t i = 0; i < test_scaled(300) || load_relaxed(&seen) == 0; i++) {
        pool_start(&pool, rt);
        ASSERT_OK(weft_join(weft_spawn_as((.pool = &pool), adds, 4, 5), &got));
        ASSERT_EQ(got, 9);
        pool_end(&pool);
    }
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(walker, NULL));
    ASSERT_OK(weft_rt_stop(rt, -1));
}

/* ---- no heap ---- */

static _Atomic uint64_t allocations;

static void *counted_alloc(void *ctx, size_t bytes, size_t align)
{
    void *got = NULL;
    (void)ctx;
    fetch_add_relaxed(&allocations, 1);
    return posix_memalign(&got, align, bytes) == 0 ? got : NULL;
}

static void counted_free(void *ctx, void *block, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(block);
}

static const weft_allocator counted = {counted_alloc, counted_free, NULL};

static _Atomic uint32_t leaves;

/* Root and children, joined inline, waited for and detached: all in the pool. (A plain thread that joins takes a little for its own wait.) */
struct tree {
    WEFT_FRAME(int);
    weft_pool *pool;
    int depth;
    int part[2];
    int i;
    struct weft_join join;
};
static weft_async(tree)
{
    weft_begin;
    if (f->depth == 0) fetch_add_relaxed(&leaves, 1);
    if (f->depth == 0) weft_return(1);
    for (f->i = 0; f->i < 2; f->i++) {
        weft_await(f->join, weft_join,
                   weft_spawn_as((.pool = f->pool, .name = "twig"), tree, f->pool, f->depth - 1),
                   &f->part[f->i]);
        if (f->join.ret < 0) weft_return(f->join.ret);
    }
    weft_return(f->part[0] + f->part[1]);
    weft_end;
}

TEST(pool_on_a_current_thread_runtime_needs_no_memory)
{
    static char ground[WEFT_POOL_BYTES(64, tree)];
    weft_rt *rt;
    weft_pool pool;
    ASSERT_OK(weft_set_allocator(&counted));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    uint64_t before = load_relaxed(&allocations);
    ASSERT(before > 0);
    weft_pool_opts o = {.rt = rt, .frame_bytes = sizeof(struct tree)};
    ASSERT_OK(weft_pool_init(&pool, ground, sizeof(ground), &o));
    for (int round = 0; round < 20; round++) {
        weft_task *root = weft_spawn_as((.pool = &pool), tree, &pool, 5);
        ASSERT_OK(weft_detach(weft_spawn_as((.pool = &pool), adds, 1, 1)));
        while (!weft_done(root))
            ASSERT_GE(weft_rt_turn(rt, 0), 0);
        ASSERT_OK(weft_detach(root));
        ASSERT_EQ(load_relaxed(&leaves), 32 * (round + 1));
        while (weft_pool_used(&pool))
            ASSERT_GE(weft_rt_turn(rt, 0), 0);
    }
    ASSERT_EQ(load_relaxed(&allocations), before);
    ASSERT_OK(weft_pool_done(&pool));
    ASSERT_OK(weft_rt_stop(rt, -1));
}
