/* SPDX-License-Identifier: MIT
 *
 * A lent bell: the lock of a notify is lent to the worker that is alone with it, and taken back by tasks that are stolen and by threads. No ring is lost by that, on 1, 2 and 4
 * workers and a current-thread runtime, by tasks of both kinds; those who are told in batches by the owner are all told; who gives up leaves the list. A bell that outlives its owner
 * is the next one's who bears that number, in this process or in the child of a fork.
 */
#include "child.h"
#include "crew.h"
#include "sync/waitlist.h"
#include "sys/membarrier.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <weft/weft.h>

/* The list is the first that a notify has. */
static struct weft__waitlist *list_of(weft_notify *bell)
{
    return (struct weft__waitlist *)(void *)bell;
}

/* How many wait. */
static unsigned length_of(weft_notify *bell)
{
    unsigned count = 0;
    weft__waitlist_lock(list_of(bell));
    weft__list_each(at, &list_of(bell)->head) count++;
    weft__waitlist_unlock(list_of(bell));
    return count;
}

static bool is_lent(weft_notify *bell)
{
    return weft__bias_is_given(&list_of(bell)->lock);
}

/* ---- two that ring for each other ---- */

static struct game {
    weft_notify there;
    weft_notify back;
    int rounds;
    _Atomic bool over;
} game;

static int fiber_serves(void)
{
    for (int i = 0; i < game.rounds; i++) {
        weft_notify_one(&game.there);
        ASSERT_OK(weft_notify_wait(&game.back));
    }
    return 0;
}

struct returns {
    WEFT_FRAME(int);
    int i;
    struct weft_notify_wait wait;
};
static weft_async(returns)
{
    weft_begin;
    for (f->i = 0; f->i < game.rounds; f->i++) {
        weft_await(f->wait, weft_notify_wait, &game.there);
        ASSERT_OK(f->wait.ret);
        weft_notify_one(&game.back);
    }
    weft_return(0);
    weft_end;
}

/* No worker: whoever has a bell loses it. */
static void *comes_in(void *unused)
{
    (void)unused;
    while (!load_relaxed(&game.over)) { /* relaxed: it is joined */
        ASSERT_LE(length_of(&game.there) + length_of(&game.back), 2);
        for (int i = 0; i < 50; i++)
            sched_yield();
    }
    return NULL;
}

static void play(int rounds)
{
    int r;
    game.rounds = rounds;
    weft_task *second = weft_spawn(returns);
    weft_task *first = weft_go(fiber_serves);
    ASSERT_OK(weft_join(first, &r));
    ASSERT_OK(weft_join(second, &r));
}

static void bells_made(void)
{
    weft_notify_init(&game.there);
    weft_notify_init(&game.back);
}

static void disturbed(struct crew *crew)
{
    pthread_t thread;
    (void)crew;
    bells_made();
    store_relaxed(&game.over, false); /* relaxed, both: it is joined */
    ASSERT_OK(pthread_create(&thread, NULL, comes_in, NULL));
    for (int i = 0; i < 4; i++)
        play((int)test_scaled(20000));
    store_relaxed(&game.over, true);
    ASSERT_OK(pthread_join(thread, NULL));
}

TEST(notify_lent_loses_no_ring)
{
    crew_each(disturbed);
}

/* Alone, a worker is lent both, and a thread takes them back: so the test above is about something. */
static void alone(struct crew *crew)
{
    (void)crew;
    bells_made();
    play(4 << WEFT__BIAS_LENT_BITS);
    ASSERT(is_lent(&game.there));
    ASSERT(is_lent(&game.back));
    ASSERT_EQ(list_of(&game.there)->lock.bits, WEFT__BIAS_LENT_BITS);
    ASSERT_EQ(weft_notify_waiters(&game.there), 0);
    weft_notify_one(&game.back);
    ASSERT(!is_lent(&game.there));
    ASSERT(!is_lent(&game.back));
    ASSERT_EQ(list_of(&game.there)->lock.bits, WEFT__BIAS_LENT_BITS + 1);
    ASSERT_OK(weft_notify_wait(&game.back)); /* what the thread left there */
}

TEST(notify_lent_to_a_worker_that_is_alone)
{
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    crew_each_of(alone, 1, -1);
}

/* ---- owners that are gone ---- */

static bool nobody_took_it_back(weft_notify *of)
{
    return is_lent(of) && list_of(of)->lock.bits == WEFT__BIAS_LENT_BITS;
}

/* One after another, more than there are numbers: each has the first one's, and with it the bells. */
TEST(notify_lent_to_whoever_bears_the_number)
{
    struct crew crew;
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    bells_made();
    for (int i = 0; i < WEFT__BIAS_NUMBERS + 2; i++) {
        crew_start(&crew, i % 2 ? 1 : -1);
        play(i == 0 ? 4 << WEFT__BIAS_LENT_BITS : 1);
        crew_stop(&crew);
        ASSERT(nobody_took_it_back(&game.there));
        ASSERT(nobody_took_it_back(&game.back));
    }
}

/* As the worker of a fresh runtime, with the number that the parent's has; and as a thread, who takes them back. */
static void plays_in_the_child(void)
{
    weft_rt *rt;
    int r;
    if (DEATH_CHILD_MAY_ALLOCATE) {
        CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = 1, .make_default = true}, &rt) == 0);
        game.rounds = 10;
        weft_task *second = weft_spawn(returns);
        weft_task *first = weft_go(fiber_serves);
        CHILD_NEEDS(weft_join(first, &r) == 0 && weft_join(second, &r) == 0);
        CHILD_NEEDS(nobody_took_it_back(&game.there) && nobody_took_it_back(&game.back));
        CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
    }
    weft_notify_one(&game.there);
    CHILD_NEEDS(!is_lent(&game.there));
    CHILD_NEEDS(weft_notify_wait(&game.there) == 0);
}

static void forks(struct crew *crew)
{
    (void)crew;
    bells_made();
    play(4 << WEFT__BIAS_LENT_BITS);
    pid_t child = fork();
    if (child == 0) {
        plays_in_the_child();
        _exit(7);
    }
    ASSERT(ended_by(exit_code_of(child), 7));
    play(10);
    ASSERT(nobody_took_it_back(&game.there));
}

TEST(notify_lent_is_the_childs_behind_a_fork)
{
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    crew_each_of(forks, 1, -1);
}

/* ---- many that wait ---- */

enum { CROWD = 3 * WEFT__WAKE_BATCH + 1 };

static weft_notify bell;

static int listens(void)
{
    return weft_notify_wait(&bell);
}

/* The worker has the bell to itself: one that waits where a ring is kept takes it at once. */
static void becomes_owner(void)
{
    weft_notify_init(&bell);
    for (int i = 0; i < 2 << WEFT__BIAS_LENT_BITS; i++) {
        weft_notify_one(&bell);
        ASSERT_OK(weft_notify_wait(&bell));
    }
}

static void gather(weft_task *crowd[CROWD])
{
    for (int i = 0; i < CROWD; i++)
        crowd[i] = weft_go(listens);
}

static void all_end(weft_task *crowd[CROWD], int with)
{
    int r;
    for (int i = 0; i < CROWD; i++) {
        ASSERT_OK(weft_join(crowd[i], &r));
        ASSERT_EQ(r, with);
    }
}

static int owner_tells_all(void)
{
    weft_task *crowd[CROWD];
    becomes_owner();
    ASSERT(is_lent(&bell) || weft__membarrier() < 0);
    gather(crowd);
    uint32_t told = 0;
    while (told < CROWD) { /* those who come later are told later */
        ASSERT_OK(weft_yield());
        told += weft_notify_waiters(&bell);
    }
    all_end(crowd, 0);
    return 0;
}

static void tells_all(struct crew *crew)
{
    int r;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(owner_tells_all), &r));
}

TEST(notify_lent_tells_all_in_batches)
{
    crew_each_of(tells_all, 1, -1);
}

static int owner_leaves_them(void)
{
    weft_task *crowd[CROWD];
    becomes_owner();
    gather(crowd);
    while (length_of(&bell) < CROWD)
        ASSERT_OK(weft_yield());
    for (int i = 0; i < CROWD; i++)
        weft_cancel(crowd[i]);
    all_end(crowd, -ECANCELED);
    ASSERT_EQ(length_of(&bell), 0);
    weft_notify_done(&bell);
    return 0;
}

/* A bell that is lent is left by those who give up, on whatever worker. */
static void given_up(struct crew *crew)
{
    int r;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(owner_leaves_them), &r));
}

TEST(notify_lent_is_left_by_who_gives_up)
{
    crew_each(given_up);
}
