/* SPDX-License-Identifier: MIT
 *
 * Stopping a runtime: whatever its tasks do, they end or are named; and threads that still spawn.
 */
#include "crew.h"
#include "death.h"
#include "sched/sched.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <weft/blocking.h>
#include <weft/local.h>
#include <weft/time.h>

static _Atomic uint32_t begun;
static _Atomic uint32_t ended;
static _Atomic bool let_go;

static int yields_until_told(void)
{
    int r = 0;
    fetch_add_relaxed(&begun, 1);
    while (r == 0)
        r = weft_yield();
    fetch_add_relaxed(&ended, 1);
    return r;
}

struct yields_until_told_too {
    WEFT_FRAME(int);
    struct weft_yield pause;
};
static weft_async(yields_until_told_too)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    do {
        weft_await(f->pause, weft_yield);
    } while (f->pause.ret == 0);
    fetch_add_relaxed(&ended, 1);
    weft_return(f->pause.ret);
    weft_end;
}

/* Waits for ever: nobody has its waker. */
struct forever {
    WEFT_FRAME(int);
};
static weft_poll forever_poll(void *frame, weft_cx *cx)
{
    struct forever *f = frame;
    if (!f->weft__at) fetch_add_relaxed(&begun, 1);
    f->weft__at = 1;
    f->ret = weft_cx_cancelled(cx);
    if (f->ret == 0) return WEFT_PENDING;
    fetch_add_relaxed(&ended, 1);
    return WEFT_READY;
}

static int waits_in_join(void)
{
    int got = 0;
    fetch_add_relaxed(&begun, 1);
    int r = weft_join(weft_spawn(forever), &got);
    fetch_add_relaxed(&ended, 1);
    return r < 0 ? r : got;
}

static void leaves_tasks_of_all_kinds(struct crew *crew)
{
    uint32_t count = (uint32_t)test_scaled(400);
    (void)crew;
    store_relaxed(&begun, 0);
    store_relaxed(&ended, 0);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(weft_detach(weft_go(yields_until_told)));
        ASSERT_OK(weft_detach(weft_spawn(yields_until_told_too)));
        ASSERT_OK(weft_detach(weft_spawn(forever)));
        ASSERT_OK(weft_detach(weft_go(waits_in_join)));
    }
}

/* Queued, waiting or yielding: what began has unwound when stop returns, and all of it began. */
TEST(rt_stop_ends_tasks_wherever_they_are)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        leaves_tasks_of_all_kinds(&crew);
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&begun), test_scaled(400) * 5);
        ASSERT_EQ(load_relaxed(&ended), load_relaxed(&begun));
    }
}

static void stops_with_tasks(void *unused)
{
    struct crew crew;
    (void)unused;
    crew_start(&crew, 2);
    leaves_tasks_of_all_kinds(&crew);
    crew_stop(&crew);
}

/* A task that hands on the -ECANCELED of its child has not failed, whichever of the two is told first. */
TEST(rt_stop_reports_no_failures)
{
    struct death d = death_of(stops_with_tasks, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, "");
}

static int stops_its_own(void)
{
    return weft_rt_stop(weft_rt_current(), -1);
}

struct stops_its_own_too {
    WEFT_FRAME(int);
};
static weft_async(stops_its_own_too)
{
    weft_begin;
    weft_return(weft_rt_stop(weft_rt_current(), -1));
    weft_end;
}

static void from_inside(struct crew *crew)
{
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(stops_its_own), &got));
    ASSERT_EQ(got, -EDEADLK);
    ASSERT_OK(weft_join(weft_spawn(stops_its_own_too), &got));
    ASSERT_EQ(got, -EDEADLK);
}

TEST(rt_stop_from_inside_is_refused)
{
    crew_each(from_inside);
}

/* ---- from inside a turn of another -------------------------------------------------------------------- */

struct nested {
    weft_rt *outer;  /* that is stopped */
    weft_rt *inner;  /* whose task stops it */
    weft_rt *middle; /* turned in between; NULL: none */
    int by_stop;     /* the inner one is turned by its stop */
    int got;
};

static int stops_the_outer(struct nested *n)
{
    n->got = weft_rt_stop(n->outer, -1);
    return 0;
}

static int turn_until_done(weft_rt *rt, weft_task *task)
{
    int r = 0;
    while (r >= 0 && !weft_done(task))
        r = weft_rt_turn(rt, 0);
    return r < 0 ? r : weft_detach(task);
}

static int turns_the_inner(struct nested *n)
{
    weft_task *task = weft_go_as((.rt = n->inner), stops_the_outer, n);
    if (!n->by_stop) return turn_until_done(n->inner, task);
    return weft_detach(task) < 0 ? -1 : weft_rt_stop(n->inner, -1);
}

static int turns_the_middle(struct nested *n)
{
    if (!n->middle) return turns_the_inner(n);
    return turn_until_done(n->middle, weft_go_as((.rt = n->middle), turns_the_inner, n));
}

static weft_rt *to_be_turned(void)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    return rt;
}

static void from_a_turn_inside(struct crew *crew)
{
    for (int way = 0; way < 4; way++) {
        struct nested n = {.outer = crew->rt, .inner = to_be_turned(), .by_stop = way & 1};
        int r;
        if (way & 2) n.middle = to_be_turned();
        ASSERT_OK(weft_join(weft_go(turns_the_middle, &n), &r));
        ASSERT_OK(r);
        ASSERT_EQ(n.got, -EDEADLK);
        if (!n.by_stop) ASSERT_OK(weft_rt_stop(n.inner, -1));
        ASSERT_OK(weft_rt_stop(n.middle, -1));
    }
}

/* A task of the outer runtime waits for the stop, and the stop for it, however many turns are in between. */
TEST(rt_stop_from_inside_a_nested_turn_is_refused)
{
    crew_each(from_a_turn_inside);
}

/* Out of the turn, its worker has nobody around it any more. */
TEST(rt_stop_after_a_nested_turn_is_not_refused)
{
    struct nested n = {.outer = to_be_turned(), .inner = to_be_turned()};
    ASSERT_OK(turn_until_done(n.outer, weft_go_as((.rt = n.outer), turns_the_inner, &n)));
    ASSERT_EQ(n.got, -EDEADLK);
    ASSERT_OK(turns_the_inner(&n));
    ASSERT_OK(n.got);
    ASSERT_OK(weft_rt_stop(n.inner, -1));
}

static unsigned lines_of(const char *text)
{
    unsigned count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static int stubborn(void)
{
    fetch_add_relaxed(&begun, 1);
    while (!load_relaxed(&let_go))
        (void)weft_yield();
    return 0;
}

/* Whatever is said meanwhile goes nowhere. */
static int stderr_away(void)
{
    int kept = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    if (kept < 0 || nowhere < 0) _exit(9);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    return kept;
}

/* Stops time out, however short they are, until the polite one has ended: the stubborn one lets it
 * through. Only then is it certain who is named. */
static void stop_often(void *workers)
{
    struct crew crew;
    store_relaxed(&begun, 0);
    crew_start(&crew, *(int *)workers);
    weft_task *polite = weft_go(yields_until_told);
    if (weft_detach(weft_go(stubborn)) < 0) _exit(2);
    CREW_UNTIL(load_relaxed(&begun) == 2);
    crew_release_driver(&crew);
    int kept = stderr_away();
    do {
        if (weft_rt_stop(crew.rt, 1000 * 1000) != -ETIME) _exit(3);
    } while (!weft_done(polite));
    if (kept < 0 || dup2(kept, STDERR_FILENO) < 0) _exit(9);
    if (weft_rt_stop(crew.rt, 0) != -ETIME) _exit(4);
    weft_task *late = weft_go(stubborn);
    if (late) _exit(5);
    store_relaxed(&let_go, true);
    if (weft_rt_stop(crew.rt, -1) != 0) _exit(6);
    _exit(weft_detach(polite));
}

TEST(rt_stop_names_who_does_not_stop_and_may_be_repeated)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int workers = crew_sizes[i];
        struct death d = death_of(stop_often, &workers);
        ASSERT_EQ(d.signal, 0);
        ASSERT_EQ(d.code, 0);
        ASSERT_EQ(lines_of(d.said), 1);
        ASSERT(strstr(d.said, "task 'stubborn'"));
    }
}

static void leaves_a_hundred(void *unused)
{
    struct crew crew;
    (void)unused;
    store_relaxed(&begun, 0);
    crew_start(&crew, 2);
    for (int i = 0; i < 100; i++)
        if (weft_detach(weft_go(stubborn)) < 0) _exit(2);
    if (weft_rt_stop(crew.rt, 0) != -ETIME) _exit(3);
    store_relaxed(&let_go, true);
    _exit(weft_rt_stop(crew.rt, -1) == 0 ? 0 : 4);
}

TEST(rt_stop_names_some_of_many)
{
    struct death d = death_of(leaves_a_hundred, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(lines_of(d.said), 33);
    ASSERT(strstr(d.said, "weft: 68 more tasks do not stop\n"));
}

/* ---- threads that spawn meanwhile ------------------------------------------------------------------ */

static int answers(int value)
{
    return value;
}

struct spawner {
    pthread_t thread;
    weft_rt *rt;
};

/* Threads that spawn while the runtime closes are served or refused, and nothing stays. */
static void *spawn_until_refused(void *arg)
{
    struct spawner *me = arg;
    for (;;) {
        weft_task *task = weft_go_as((.rt = me->rt), answers, 1);
        if (!task) break;
        ASSERT_OK(weft_detach(task));
        fetch_add_relaxed(&begun, 1);
    }
    return NULL;
}

/* Whoever uses a runtime has to know that it is there: the last stop comes when the threads have left. */
TEST(rt_stop_while_threads_spawn)
{
    for (uint64_t round = 0; round < test_scaled(40); round++) {
        struct spawner s[3];
        weft_rt *rt;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1 + (int)(round % 3)}, &rt));
        store_relaxed(&begun, 0);
        store_relaxed(&let_go, false);
        weft_task *keeper = weft_go_as((.rt = rt), stubborn);
        for (int i = 0; i < 3; i++) {
            s[i] = (struct spawner){.rt = rt};
            ASSERT_OK(pthread_create(&s[i].thread, NULL, spawn_until_refused, &s[i]));
        }
        CREW_UNTIL(load_relaxed(&begun) > 100);
        ASSERT_EQ(weft_rt_stop(rt, 0), -ETIME);
        for (int i = 0; i < 3; i++)
            ASSERT_OK(pthread_join(s[i].thread, NULL));
        store_relaxed(&let_go, true);
        ASSERT_OK(weft_rt_stop(rt, -1));
        ASSERT_OK(weft_detach(keeper));
    }
}

/* ---- a thread that is inside a turn -------------------------------------------------------------------- */

static void *turns_once(void *rt)
{
    ASSERT_GE(weft_rt_turn(rt, -1), 0);
    return NULL;
}

/* Nothing is left to run, but the memory cannot go under the turner: it is sent home, and stop says so. */
TEST(rt_stop_beside_a_turn_sends_it_home_and_is_refused)
{
    for (uint64_t round = 0; round < test_scaled(40); round++) {
        weft_rt *rt;
        pthread_t turner;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
        ASSERT_OK(pthread_create(&turner, NULL, turns_once, rt));
        CREW_UNTIL(load_relaxed(&rt->turning)); /* relaxed: it stays, for want of anything to run */
        ASSERT_EQ(weft_rt_stop(rt, -1), -EBUSY);
        ASSERT_OK(pthread_join(turner, NULL));
        ASSERT_OK(weft_rt_stop(rt, -1));
    }
}

/* ---- hooks that are not over yet ------------------------------------------------------------------------ */

/* Of the last worker, and late: spawns for itself, and for the first one. */
static void spawns_when_it_closes(weft_rt *rt, unsigned worker)
{
    weft_local first = weft_local_at(rt, 0);
    if (worker + 1 != weft_rt_workers(rt)) return;
    CREW_UNTIL(load_acquire(&rt->stage) != WEFT__OPEN);
    for (int i = 0; i < 20; i++) /* a stop that did not wait would be over by now */
        sched_yield();
    ASSERT_OK(weft_detach(weft_spawn(forever)));
    ASSERT_OK(weft_detach(weft_spawn_as((.local = &first), forever)));
}

/* Such a hook spawns on no task's behalf: what it spawns is ended, like all the rest. */
TEST(rt_stop_waits_for_on_thread_start)
{
    static const int sizes[] = {1, 2, 4};
    for (uint64_t i = 0; i < 3 * test_scaled(20); i++) {
        weft_rt *rt;
        store_relaxed(&begun, 0);
        store_relaxed(&ended, 0);
        weft_rt_opts o = {.workers = sizes[i % 3], .on_thread_start = spawns_when_it_closes};
        ASSERT_OK(weft_rt_new(&o, &rt));
        ASSERT_OK(weft_rt_stop(rt, -1));
        ASSERT_EQ(load_relaxed(&begun), 2);
        ASSERT_EQ(load_relaxed(&ended), 2);
    }
}

static void returns_when_told(weft_rt *rt, unsigned worker)
{
    (void)rt;
    (void)worker;
    CREW_UNTIL(load_relaxed(&let_go));
}

static void stop_beside_a_hook(void *unused)
{
    weft_rt *rt;
    weft_rt_opts o = {.workers = 2, .name = "slow", .on_thread_start = returns_when_told};
    (void)unused;
    store_relaxed(&let_go, false);
    if (weft_rt_new(&o, &rt) < 0) _exit(2);
    if (weft_rt_stop(rt, 0) != -ETIME) _exit(3);
    store_relaxed(&let_go, true);
    _exit(weft_rt_stop(rt, -1) == 0 ? 0 : 4);
}

TEST(rt_stop_names_a_hook_that_does_not_return)
{
    struct death d = death_of(stop_beside_a_hook, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, "weft: on_thread_start of 'slow' does not return\n");
}

/* ---- the longest time there is ------------------------------------------------------------------------------ */

/* So much later than now is more than a number holds. */
static void stop_takes_its_time(int workers)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = workers}, &rt));
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_detach(weft_go_as((.rt = rt), waits_in_join)));
    ASSERT_OK(weft_rt_stop(rt, INT64_MAX));
}

TEST(rt_stop_with_the_longest_time_waits)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        stop_takes_its_time(crew_sizes[i]);
}

/* ---- who stops it ------------------------------------------------------------------------------------------- */

static int stops_from_within(weft_rt *rt)
{
    return weft_rt_stop(rt, -1);
}

/* A job is waited for by the stop: its own would never come to an end. */
static void stopped_by_a_job(struct crew *crew)
{
    ASSERT_EQ(weft_blocking(stops_from_within, crew->rt), -EDEADLK);
    int got = 0;
    ASSERT_OK(weft_join(weft_go(stops_from_within, crew->rt), &got));
    ASSERT_EQ(got, -EDEADLK);
}

TEST(rt_stop_by_a_job_of_its_own_is_refused)
{
    crew_each(stopped_by_a_job);
}

/* Else its next spawn would go to what is no more. */
TEST(rt_stop_leaves_the_runtime_that_the_thread_has_entered)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        weft_rt *rt;
        weft_rt *other;
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = crew_sizes[i]}, &rt));
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &other));
        (void)weft_rt_enter(rt);
        ASSERT_OK(weft_rt_stop(other, -1));
        ASSERT_PTR(weft_rt_current(), rt);
        ASSERT_OK(weft_rt_stop(rt, -1));
        ASSERT_NULL(weft_rt_current());
        ASSERT_NULL(weft_spawn(forever));
        ASSERT_OK(weft_sleep(1));
    }
}

static void stop_twice(void *unused)
{
    weft_rt *rt;
    (void)unused;
    if (weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt) < 0 || weft_rt_stop(rt, -1) < 0) _exit(2);
    _exit(weft_rt_stop(rt, -1) == -EINVAL ? 0 : 3);
}

TEST(rt_stop_twice_is_told)
{
    struct death d = death_of(stop_twice, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, "weft: weft_rt_stop: there is no such runtime; was it stopped before?\n");
}

struct crowd {
    weft_rt *rt;
    pthread_barrier_t meet;
    _Atomic uint32_t stopped;
    _Atomic uint32_t refused;
};

static void *stops_with_others(void *arg)
{
    struct crowd *c = arg;
    (void)pthread_barrier_wait(&c->meet);
    int r = weft_rt_stop(c->rt, -1);
    fetch_add_relaxed(&c->stopped, r == 0);
    fetch_add_relaxed(&c->refused, r == -EBUSY || r == -EINVAL);
    return NULL;
}

static void crowd_stops(void *unused)
{
    static const int sizes[] = {1, 2, -1};
    (void)unused;
    for (uint64_t round = 0; round < test_scaled(60); round++) {
        struct crowd c = {.rt = NULL};
        pthread_t thread[3];
        if (weft_rt_new(&(weft_rt_opts){.workers = sizes[round % 3]}, &c.rt) < 0) _exit(2);
        for (int i = 0; i < 10; i++)
            if (weft_detach(weft_spawn_as((.rt = c.rt), forever)) < 0) _exit(3);
        pthread_barrier_init(&c.meet, NULL, 3);
        for (int i = 0; i < 3; i++)
            if (pthread_create(&thread[i], NULL, stops_with_others, &c)) _exit(4);
        for (int i = 0; i < 3; i++)
            pthread_join(thread[i], NULL);
        pthread_barrier_destroy(&c.meet);
        if (load_relaxed(&c.stopped) != 1 || load_relaxed(&c.refused) != 2) _exit(5);
    }
}

/* In a process of its own: who comes late is told on stderr. */
TEST(rt_stop_by_several_at_once_is_done_by_one)
{
    struct death d = death_of(crowd_stops, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
}
