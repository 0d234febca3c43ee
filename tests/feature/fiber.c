/* SPDX-License-Identifier: MIT
 *
 * Fibers on real workers: many, on the move, and out of stack.
 */
#include "base/fault.h"
#include "crew.h"
#include "death.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static _Atomic bool over;
static _Atomic uint32_t alive;

/* A stamp on the stack across every suspension. */
static int lives_on(int number)
{
    volatile int stamp[16];
    for (int i = 0; i < 16; i++)
        stamp[i] = number + i;
    fetch_add_relaxed(&alive, 1);
    while (!load_relaxed(&over))
        (void)weft_yield();
    for (int i = 0; i < 16; i++)
        if (stamp[i] != number + i) return -1;
    return number;
}

static void many(struct crew *crew)
{
    int count = (int)test_scaled(10000);
    weft_task **task = calloc((size_t)count, sizeof(*task));
    (void)crew;
    store_relaxed(&over, false);
    store_relaxed(&alive, 0);
    for (int i = 0; i < count; i++)
        task[i] = weft_go(lives_on, i);
    CREW_UNTIL(load_relaxed(&alive) == (uint32_t)count);
    store_relaxed(&over, true);
    for (int i = 0; i < count; i++) {
        int got;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, i);
    }
    free(task);
}

TEST(fiber_ten_thousand_at_once)
{
    crew_each(many);
}

/* A tree is gone through by its depth: few of its fibers have a stack at once, though all are joined in the order of their spawns. */
static _Atomic uint32_t most_alive;

static int64_t node(int64_t leaves) // NOLINT(misc-no-recursion): by way of weft_go
{
    weft_task *child[10];
    int64_t sum = 0;
    uint32_t now = fetch_add_relaxed(&alive, 1) + 1;

    if (now > load_relaxed(&most_alive)) store_relaxed(&most_alive, now); /* one thread polls them all */
    for (int i = 0; i < 10 && leaves > 1; i++)
        child[i] = weft_go(node, leaves / 10);
    for (int i = 0; i < 10 && leaves > 1; i++) {
        int64_t part = 0;
        (void)weft_join(child[i], &part);
        sum += part;
    }
    fetch_sub_relaxed(&alive, 1);
    return leaves > 1 ? sum : 1;
}

static void tree(struct crew *crew)
{
    int64_t leaves = 10000;
    int64_t got = 0;

    if (crew->workers > 1) return;
    store_relaxed(&alive, 0);
    store_relaxed(&most_alive, 0);
    ASSERT_OK(weft_join(weft_go(node, leaves), &got));
    ASSERT_EQ(got, leaves);
    ASSERT_LE(load_relaxed(&most_alive), 100); /* 25, as it is; oldest first 195 */
}

TEST(fiber_trees_are_gone_through_by_their_depth)
{
    crew_each(tree);
}

/* ---- on the move -------------------------------------------------------------------------------------- */

#define WANDERERS 64

/* A wait whose wakes come from a foreign thread: they go through the inject queue, to whoever is
 * there first. */
struct stop_over {
    pthread_mutex_t mutex; /* guards the next two */
    weft_waker waker;      /* a reference, or none */
    bool rung;
};
static struct stop_over stop_overs[WANDERERS];
static _Atomic uint32_t moved;

struct rest {
    WEFT_FRAME(int);
    struct stop_over *at;
};
static weft_poll rest_poll(void *frame, weft_cx *cx)
{
    struct rest *f = frame;
    f->ret = weft_cx_cancelled(cx);
    pthread_mutex_lock(&f->at->mutex);
    bool rung = f->at->rung || f->ret < 0;
    f->at->rung = false;
    if (!rung && f->at->waker.word == 0) f->at->waker = weft_waker_ref(weft_cx_waker(cx));
    pthread_mutex_unlock(&f->at->mutex);
    return rung ? WEFT_READY : WEFT_PENDING;
}

static void *ring_in_turn(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; !load_relaxed(&over); i = (i + 1) % WANDERERS) {
        struct stop_over *at = &stop_overs[i];
        pthread_mutex_lock(&at->mutex);
        weft_waker waker = at->waker;
        at->waker = (weft_waker){0};
        at->rung = waker.word != 0;
        pthread_mutex_unlock(&at->mutex);
        weft_waker_wake(waker);
        weft_waker_unref(waker);
    }
    return NULL;
}

/* Until it has been on two threads, or is told to stop. */
static int wanders(struct stop_over *at)
{
    pid_t first = gettid();
    while (gettid() == first) {
        for (int i = 0; i < 5000; i++)
            cpu_pause();
        if (weft_run(rest, .at = at) < 0) return 0;
    }
    store_relaxed(&moved, 1);
    return 1;
}

static void move_once(int workers)
{
    struct crew crew;
    weft_task *task[WANDERERS];
    pthread_t ringer;
    crew_start(&crew, workers);
    store_relaxed(&over, false);
    store_relaxed(&moved, 0);
    for (int i = 0; i < WANDERERS; i++) {
        stop_overs[i] = (struct stop_over){.rung = false};
        pthread_mutex_init(&stop_overs[i].mutex, NULL);
        task[i] = weft_go(wanders, &stop_overs[i]);
    }
    ASSERT_OK(pthread_create(&ringer, NULL, ring_in_turn, NULL));
    CREW_UNTIL(load_relaxed(&moved));
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(ringer, NULL));
    for (int i = 0; i < WANDERERS; i++) {
        weft_cancel(task[i]);
        ASSERT_OK(weft_join(task[i], (int *)NULL));
        weft_waker_unref(stop_overs[i].waker);
    }
    crew_stop(&crew);
}

TEST(fiber_moves_between_workers)
{
    move_once(2);
    move_once(4);
}

/* ---- errno ---------------------------------------------------------------------------------------------- */

#define OURS 1234 /* no error of the kernel's */

static int numbered(int number)
{
    return number;
}

struct needs_no_stack {
    WEFT_FRAME(int);
};
static weft_async(needs_no_stack)
{
    weft_begin;
    weft_return(1);
    weft_end;
}

#if defined(WEFT_FAULTS)

/* Until one fails: those before it had room in what was mapped before. */
static void spawns_without_mappings(void)
{
    static weft_task *task[20000];
    int count = 0;
    weft__fault_arm(WEFT__FAULT_MMAP, 1, UINT32_MAX, -ENOMEM);
    for (; count < 20000; count++) {
        errno = OURS;
        task[count] = weft_spawn(needs_no_stack);
        ASSERT_EQ(errno, OURS);
        if (!task[count]) break;
    }
    weft__fault_reset();
    ASSERT_LE(count, 19999);
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_detach(task[i]));
}

#else

static void spawns_without_mappings(void)
{
    ASSERT_OK(weft_detach(weft_spawn(needs_no_stack)));
}

#endif

static int fails_with_its_answer(void)
{
    weft_task *none = NULL;
    int64_t wide;
    spawns_without_mappings();
    weft_task *task = weft_go(numbered, 1);
    errno = OURS;
    ASSERT_NULL(weft_go_as((.stack_bytes = SIZE_MAX), numbered, 1));
    ASSERT_EQ(weft_join(none, (int *)NULL), -ECHILD);
    ASSERT_EQ(weft_join(task, &wide), -EINVAL);
    ASSERT_EQ(weft_rt_turn(NULL, 0), -EINVAL);
    ASSERT_EQ(weft_rt_new(NULL, NULL), -EINVAL);
    ASSERT_EQ(errno, OURS);
    return 1;
}

static void leaves_errno(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_EQ(fails_with_its_answer(), 1); /* on a thread */
    ASSERT_OK(weft_join(weft_go(fails_with_its_answer), &got));
    ASSERT_EQ(got, 1);
}

/* Errors are answers; errno is the thread's, and not set. */
TEST(fiber_errno_is_left_alone)
{
    crew_each(leaves_errno);
}

/* ---- out of stack ---------------------------------------------------------------------------------------- */

__attribute__((noinline)) static int digs(int depth)
{
    volatile char spoil[512];
    spoil[0] = (char)depth;
    return depth < 0 ? 0 : digs(depth + 1) + spoil[0];
}

static void digs_on_a_worker(void *workers)
{
    struct crew crew;
    int got;
    crew_start(&crew, *(int *)workers);
    (void)weft_join(weft_go(digs, 1), &got);
}

static void digs_by_a_name(void *workers)
{
    struct crew crew;
    int got;
    crew_start(&crew, *(int *)workers);
    (void)weft_join(weft_go_as((.name = "miner"), digs, 1), &got);
}

TEST(fiber_overflow_names_the_task)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(digs_on_a_worker, &workers);
        ASSERT_EQ(d.signal, SIGSEGV);
        ASSERT(strstr(d.said, "fiber 'digs'"));
        ASSERT(strstr(d.said, "overflowed its stack of 256 KiB"));
        d = death_of(digs_by_a_name, &workers);
        ASSERT(strstr(d.said, "fiber 'miner' (spawned at "));
    }
}

/* Called by a thread that has no runtime: the fiber is the thread's own. */
struct mine {
    WEFT_FRAME(int);
};
static weft_fiber(mine)
{
    f->ret = digs(1);
}

static void digs_on_a_plain_thread(void *unused)
{
    (void)unused;
    (void)weft_run(mine);
}

TEST(fiber_overflow_on_a_plain_thread_is_told)
{
    struct death d = death_of(digs_on_a_plain_thread, NULL);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT(strstr(d.said, "a fiber of a plain thread overflowed its stack of 256 KiB"));
}
