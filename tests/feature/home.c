/* SPDX-License-Identifier: MIT
 *
 * Tasks that have a home: pinned ones, local sets, and blocks during which a fiber keeps to its thread. Whoever wakes
 * them, and whatever thieves are about, they run on one thread; and that one is woken for them.
 */
#include "handbell.h"
#include "crew.h"
#include "task/place.h"
#include "test.h"

#include <errno.h>
#include <unistd.h>
#include <weft/local.h>

static _Atomic bool over;
static _Atomic uint32_t strays; /* polls on a thread where they should not have been */
static _Atomic uint32_t rounds;

/* A system call, so that no compiler remembers it. */
static __attribute__((noinline)) pid_t thread_now(void)
{
    return gettid();
}

static void note_unless_on(pid_t home)
{
    if (thread_now() != home) fetch_add_relaxed(&strays, 1);
}

static void reset(void)
{
    store_relaxed(&over, false);
    store_relaxed(&strays, 0);
    store_relaxed(&rounds, 0);
}

/* ---- a place with thieves, and somebody who rings ------------------------------------------------------ */

#define BELLS 16

static struct bell bells[BELLS];

static void *rings_in_turn(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !load_relaxed(&over); i++) {
        bell_ring(&bells[i % BELLS]);
        if (i % BELLS == 0) sched_yield();
    }
    for (unsigned i = 0; i < BELLS; i++)
        bell_ring(&bells[i]);
    return NULL;
}

/* Ordinary work that is worth stealing. */
static int noise(void)
{
    while (!load_relaxed(&over)) {
        for (int i = 0; i < 300; i++)
            cpu_pause();
        if (weft_yield() < 0) break;
    }
    return 0;
}

struct street {
    weft_task *noise[4];
    pthread_t ringer;
};

static void street_opens(struct street *s)
{
    reset();
    for (int i = 0; i < BELLS; i++)
        bell_init(&bells[i]);
    for (int i = 0; i < 4; i++)
        s->noise[i] = weft_go(noise);
    ASSERT_OK(pthread_create(&s->ringer, NULL, rings_in_turn, NULL));
}

static void street_closes(struct street *s)
{
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(s->ringer, NULL));
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weft_join(s->noise[i], (int *)NULL));
}

/* ---- pinned -------------------------------------------------------------------------------------------- */

static uint64_t stay_rounds(void)
{
    return test_scaled(16);
}

/* Woken from outside and by itself, in turn. home 0: wherever it is first. */
static int stays(pid_t home, struct bell *bell)
{
    if (home == 0) home = thread_now();
    for (uint64_t i = 0; i < stay_rounds(); i++) {
        note_unless_on(home);
        int r = i % 2 ? weft_yield() : weft_run(bell_wait, .bell = bell);
        if (r < 0) return r;
    }
    note_unless_on(home);
    return 0;
}

struct stays_too {
    WEFT_FRAME(int);
    pid_t home;
    struct bell *bell;
    uint64_t left;
    struct weft_yield pause;
    struct bell_wait wait;
};
static weft_async(stays_too)
{
    weft_begin;
    if (f->home == 0) f->home = thread_now();
    for (f->left = stay_rounds(); f->left > 0; f->left--) {
        note_unless_on(f->home);
        weft_await(f->pause, weft_yield);
        note_unless_on(f->home);
        weft_await(f->wait, bell_wait, .bell = f->bell);
        if (f->wait.ret < 0) weft_return(f->wait.ret);
    }
    weft_return(0);
    weft_end;
}

static void join_all(weft_task **task, int count)
{
    for (int i = 0; i < count; i++) {
        int got = -1;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
    }
}

static void pinned_from_outside(struct crew *crew)
{
    struct street s;
    weft_task *task[BELLS];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < BELLS; i++) {
        task[i] = i % 2 ? weft_go_as((.pinned = true), stays, 0, &bells[i])
                        : weft_spawn_as((.pinned = true), stays_too, .bell = &bells[i]);
    }
    join_all(task, BELLS);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(home_pinned_task_stays_on_one_thread)
{
    crew_each(pinned_from_outside);
}

/* The thread is looked at right before the spawn, and nothing is awaited between. */
static int pins_children(void)
{
    weft_task *task[BELLS];
    for (int i = 0; i < BELLS; i++) {
        task[i] = i % 2 ? weft_go_as((.pinned = true), stays, thread_now(), &bells[i])
                        : weft_spawn_as((.pinned = true), stays_too, thread_now(), &bells[i]);
        (void)weft_yield();
    }
    for (int i = 0; i < BELLS; i++)
        if (weft_join(task[i], (int *)NULL) < 0) return -1;
    return 0;
}

static void pinned_by_a_task(struct crew *crew)
{
    struct street s;
    int got = -1;
    (void)crew;
    street_opens(&s);
    ASSERT_OK(weft_join(weft_go(pins_children), &got));
    ASSERT_EQ(got, 0);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(home_pinned_by_a_task_is_where_it_was_spawned)
{
    crew_each(pinned_by_a_task);
}

/* A backlog on one worker, worth stealing, while the others have nothing at all. */
static int yields_at_home(const weft_local *home)
{
    for (uint64_t i = 0; i < test_scaled(1000); i++) {
        if (!weft_local_is_here(home)) fetch_add_relaxed(&strays, 1);
        for (int spin = 0; spin < 100; spin++)
            cpu_pause();
        if (weft_yield() < 0) break;
    }
    return 0;
}

static void beside_idle_thieves(struct crew *crew)
{
    weft_local home = weft_local_at(crew->rt, 0);
    weft_task *task[BELLS];
    reset();
    for (int i = 0; i < BELLS; i++)
        task[i] = weft_go_as((.local = &home), yields_at_home, &home);
    join_all(task, BELLS);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(home_idle_thieves_get_nothing)
{
    crew_each(beside_idle_thieves);
}

static pid_t tells_thread(void)
{
    return thread_now();
}

static void in_turn(struct crew *crew)
{
    int count = crew->workers > 0 ? crew->workers : 1;
    weft_task *task[8] = {NULL};
    pid_t at[8] = {0};
    for (int i = 0; i < 2 * count; i++)
        task[i] = weft_go_as((.pinned = true), tells_thread);
    for (int i = 0; i < 2 * count; i++)
        ASSERT_OK(weft_join(task[i], &at[i]));
    for (int i = 0; i < count; i++) {
        ASSERT_EQ(at[i], at[count + i]);
        for (int j = 0; j < i; j++)
            ASSERT_NE(at[i], at[j]);
    }
}

TEST(home_from_outside_each_worker_in_turn)
{
    crew_each(in_turn);
}

/* ---- sleeping homes ---------------------------------------------------------------------------------------- */

static int counts_rings(struct bell *bell)
{
    while (weft_run(bell_wait, .bell = bell) == 0 && !load_relaxed(&over))
        fetch_add_relaxed(&rounds, 1);
    return 0;
}

/* All workers sleep between two rings, or are about to: each must reach the one that it is for. */
static void woken_asleep(struct crew *crew)
{
    int count = crew->workers > 0 ? crew->workers : 1;
    weft_task *task[4] = {NULL};
    reset();
    for (int i = 0; i < count; i++) {
        bell_init(&bells[i]);
        task[i] = weft_go_as((.pinned = true), counts_rings, &bells[i]);
    }
    for (uint32_t i = 0; i < test_scaled(400); i++) {
        uint32_t before = load_relaxed(&rounds);
        bell_ring(&bells[i % (uint32_t)count]);
        CREW_UNTIL(load_relaxed(&rounds) != before);
    }
    store_relaxed(&over, true);
    for (int i = 0; i < count; i++)
        bell_ring(&bells[i]);
    join_all(task, count);
}

TEST(home_sleeping_worker_is_woken_for_its_own)
{
    crew_each(woken_asleep);
}

/* A chain through all workers: each wakes the next, which has nothing else to do and falls asleep. */
static int passes_on(int self, int count)
{
    while (weft_run(bell_wait, .bell = &bells[self]) == 0) {
        bool last = fetch_add_relaxed(&rounds, 1) >= (uint32_t)test_scaled(5000);
        bell_ring(&bells[(self + 1) % count]);
        if (last) return 0;
    }
    return -1;
}

static void woken_by_each_other(struct crew *crew)
{
    int count = crew->workers > 0 ? 2 * crew->workers : 2;
    weft_task *task[8] = {NULL};
    (void)crew;
    reset();
    for (int i = 0; i < count; i++) {
        bell_init(&bells[i]);
        task[i] = weft_go_as((.pinned = true), passes_on, i, count);
    }
    bell_ring(&bells[0]);
    join_all(task, count);
}

TEST(home_pinned_tasks_wake_each_other)
{
    crew_each(woken_by_each_other);
}

/* ---- fair both ways ------------------------------------------------------------------------------------------ */

static int yields(_Atomic uint32_t *mine)
{
    while (!load_relaxed(&over)) {
        fetch_add_relaxed(mine, 1);
        if (weft_yield() < 0) break;
    }
    return 0;
}

static int answers_one(void)
{
    return 1;
}

/* Those of the ring, those of the inbox and those from outside: all of them get on. */
static void both_ways(struct crew *crew)
{
    enum { COUNT = 32 };
    weft_task *task[COUNT];
    _Atomic uint32_t each[COUNT] = {0};
    (void)crew;
    reset();
    for (int i = 0; i < COUNT; i++)
        task[i] = weft_go_as((.pinned = i % 4 == 0), yields, &each[i]);
    for (int i = 0; i < COUNT; i++)
        CREW_UNTIL(load_relaxed(&each[i]) > 200);
    for (int i = 0; i < 20; i++) {
        int got;
        ASSERT_OK(weft_join(weft_go(answers_one), &got));
        ASSERT_OK(weft_join(weft_go_as((.pinned = true), answers_one), &got));
    }
    store_relaxed(&over, true);
    join_all(task, COUNT);
}

TEST(home_pinned_and_others_starve_nobody)
{
    crew_each(both_ways);
}

/* ---- what contradicts itself --------------------------------------------------------------------------------- */

static void contradictions(struct crew *crew)
{
    weft_local nowhere = weft_local_here(); /* a plain thread */
    weft_local home = weft_local_at(NULL, 0);
    weft_rt *other;
    ASSERT_NULL(nowhere.rt);
    ASSERT_NULL(weft_go_as((.local = &nowhere), answers_one));
    ASSERT_NULL(weft_go_as((.pinned = true, .background = true), answers_one));
    ASSERT_NULL(weft_go_as((.local = &home, .background = true), answers_one));
    ASSERT_NULL(weft_local_at(crew->rt, 1000).rt);
    ASSERT(!weft_local_is_here(&home));
    ASSERT(!weft_local_is_here(NULL));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1}, &other));
    ASSERT_NULL(weft_go_as((.rt = other, .local = &home), answers_one));
    ASSERT_OK(weft_rt_stop(other, -1));
}

TEST(home_contradicting_options_are_refused)
{
    crew_each(contradictions);
}

/* ---- local sets ------------------------------------------------------------------------------------------------ */

/* Shared without lock or atomics: only for tasks of one set. */
struct shared {
    weft_local home;
    pid_t thread;
    uint64_t sum;
    bool inside; /* between two awaits: nobody else may be */
    int unfinished;
};

static int adds(struct shared *s, int times)
{
    for (int i = 0; i < times; i++) {
        if (s->inside) return -EBUSY;
        s->inside = true;
        uint64_t before = s->sum;
        note_unless_on(s->thread);
        if (!weft_local_is_here(&s->home)) fetch_add_relaxed(&strays, 1);
        s->sum = before + 1;
        s->inside = false;
        if (weft_yield() < 0) break;
    }
    s->unfinished--;
    return 0;
}

struct adds_too {
    WEFT_FRAME(int);
    struct shared *s;
    int times;
    struct weft_yield pause;
};
static weft_async(adds_too)
{
    weft_begin;
    for (; f->times > 0; f->times--) {
        note_unless_on(f->s->thread);
        f->s->sum++;
        weft_await(f->pause, weft_yield);
    }
    f->s->unfinished--;
    weft_return(0);
    weft_end;
}

/* Each generation spawns the next, two at a time. */
static int nests(struct shared *s, int depth)
{
    note_unless_on(s->thread);
    s->sum++;
    if (depth > 0) {
        weft_task *a = weft_go_as((.local = &s->home), nests, s, depth - 1);
        weft_task *b = weft_go_as((.local = &s->home), nests, s, depth - 1);
        if (weft_join(a, (int *)NULL) < 0 || weft_join(b, (int *)NULL) < 0) return -1;
    }
    note_unless_on(s->thread);
    return 0;
}

#define LOCALS 32

static int makes_a_set(struct bell *bell)
{
    weft_task *task[LOCALS];
    struct shared s = {.home = weft_local_here(), .thread = thread_now(), .unfinished = LOCALS};
    int times = (int)test_scaled(40);
    int got = -1;

    for (int i = 0; i < LOCALS; i++) {
        task[i] = i % 2 ? weft_go_as((.local = &s.home), adds, &s, times)
                        : weft_spawn_as((.local = &s.home), adds_too, &s, times);
    }
    for (int i = 0; i < 10;
         i++) { /* it is pinned itself by now: woken from outside, it comes back here */
        if (weft_run(bell_wait, .bell = bell) < 0) return -1;
        note_unless_on(s.thread);
    }
    for (int i = 0; i < LOCALS; i++) {
        if (weft_join(task[i], &got) < 0 || got < 0) return -1;
    }
    if (s.unfinished != 0 || s.sum != (uint64_t)times * LOCALS) return -2;
    s.sum = 0;
    if (weft_join(weft_go_as((.local = &s.home), nests, &s, 8), &got) < 0) return -1;
    return s.sum == 511 ? 0 : -3;
}

static void local_sets(struct crew *crew)
{
    struct street s;
    weft_task *task[8];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < 8; i++) /* several sets, of which some share a worker */
        task[i] = weft_go(makes_a_set, &bells[i]);
    join_all(task, 8);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(local_set_shares_without_locks)
{
    crew_each(local_sets);
}

/* A child of a set spawned without .local is a task like any other: no harm, and it can join one that is local. */
static int joins_a_local(weft_task *local)
{
    int got = -1;
    int r = weft_join(local, &got);
    return r < 0 ? r : got;
}

static int local_joined_elsewhere(void)
{
    weft_local here = weft_local_here();
    for (uint64_t i = 0; i < test_scaled(300); i++) {
        int got = -1;
        weft_task *local = weft_go_as((.local = &here), answers_one);
        if (weft_join(weft_go(joins_a_local, local), &got) < 0 || got != 1) return -1;
    }
    return 0;
}

static void joined_elsewhere(struct crew *crew)
{
    int got = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(local_joined_elsewhere), &got));
    ASSERT_EQ(got, 0);
}

TEST(local_task_is_joined_from_elsewhere)
{
    crew_each(joined_elsewhere);
}

/* From a thread outside, onto each worker by its number; the worker sleeps between two of them. */
static void spawned_from_outside(struct crew *crew)
{
    unsigned count = crew->workers > 0 ? (unsigned)crew->workers : 1;
    pid_t at[4] = {0};
    for (unsigned i = 0; i < test_scaled(3000); i++) {
        weft_local home = weft_local_at(crew->rt, i % count);
        pid_t got;
        ASSERT_OK(weft_join(weft_go_as((.local = &home), tells_thread), &got));
        if (i < count) at[i] = got;
        ASSERT_EQ(got, at[i % count]);
    }
    for (unsigned i = 1; i < count; i++)
        ASSERT_NE(at[i], at[0]);
}

TEST(local_spawn_from_outside_wakes_its_worker)
{
    crew_each(spawned_from_outside);
}

static int waits_for_ever(struct bell *bell)
{
    pid_t home = thread_now();
    int r = weft_run(bell_wait, .bell = bell);
    note_unless_on(home); /* it is cancelled, and unwinds at home */
    return r;
}

static void cancelled_from_elsewhere(struct crew *crew)
{
    (void)crew;
    reset();
    for (unsigned i = 0; i < test_scaled(300); i++) {
        struct bell bell;
        int got = 0;
        bell_init(&bell);
        weft_task *t = weft_go_as((.pinned = true), waits_for_ever, &bell);
        weft_cancel(t);
        ASSERT_OK(weft_join(t, &got));
        ASSERT_EQ(got, -ECANCELED);
    }
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(local_task_is_cancelled_from_elsewhere)
{
    crew_each(cancelled_from_elsewhere);
}

/* ---- stop --------------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t ended;

static int waits_then_counts(struct bell *bell)
{
    int r = weft_run(bell_wait, .bell = bell);
    fetch_add_relaxed(&ended, 1);
    return r;
}

static int yields_then_counts(void)
{
    while (weft_yield() == 0) {
    }
    fetch_add_relaxed(&ended, 1);
    return 0;
}

static void stop_with_all_kinds(int workers)
{
    struct crew crew;
    struct bell unrung[BELLS];
    pthread_t ringer;
    crew_start(&crew, workers);
    reset();
    store_relaxed(&ended, 0);
    weft_local home = weft_local_at(crew.rt, 0);
    for (int i = 0; i < BELLS; i++) {
        bell_init(&unrung[i]);
        bell_init(&bells[i]);
        ASSERT_OK(weft_detach(weft_go_as((.pinned = true), waits_then_counts, &unrung[i])));
        ASSERT_OK(weft_detach(weft_go_as((.pinned = true), yields_then_counts)));
        ASSERT_OK(weft_detach(weft_go_as((.background = true), yields_then_counts)));
        ASSERT_OK(weft_detach(weft_go_as((.local = &home), waits_then_counts, &bells[i])));
    }
    ASSERT_OK(pthread_create(&ringer, NULL, rings_in_turn, NULL)); /* wakes of theirs, meanwhile */
    crew_stop(&crew);
    ASSERT_EQ(load_relaxed(&ended), 4 * BELLS);
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(ringer, NULL));
}

TEST(home_stop_ends_them_all)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        for (unsigned n = 0; n < test_scaled(10); n++)
            stop_with_all_kinds(crew_sizes[i]);
}

/* ---- pin blocks ---------------------------------------------------------------------------------------------------- */

static uint64_t place_now(void)
{
    return weft__place_look(weft_self()) & (WEFT__PLACE | WEFT__PLACE_PIN_BLOCK);
}

static int stays_in_block(struct bell *bell)
{
    WEFT_PINNED
    {
        pid_t home = thread_now();
        for (int i = 0; i < 3; i++) {
            int r = weft_run(bell_wait, .bell = bell);
            if (r < 0) return r;
            WEFT_PINNED
            {
                note_unless_on(home);
                (void)weft_yield();
            }
            note_unless_on(home);
            if (!place_now()) return -1;
        }
    }
    return place_now() ? -2 : 0;
}

/* In blocks it stays; between them it moves, if there is where to: that the test waits for. */
static int stays_and_moves(struct bell *bell, bool *has_moved)
{
    pid_t first = thread_now();
    for (uint64_t i = 0; i < test_scaled(3) || (has_moved && !*has_moved && !load_relaxed(&over));
         i++) {
        int r = stays_in_block(bell);
        if (r < 0) return r;
        for (int spin = 0; spin < 5000; spin++)
            cpu_pause();
        if ((r = weft_run(bell_wait, .bell = bell)) < 0) return r;
        if (has_moved && thread_now() != first) *has_moved = true;
    }
    return 0;
}

static void pin_blocks(struct crew *crew)
{
    struct street s;
    weft_task *task[BELLS];
    bool moved[BELLS] = {false};
    street_opens(&s);
    for (int i = 0; i < BELLS; i++)
        task[i] =
            weft_go(stays_and_moves, &bells[i], crew->workers > 1 && i == 0 ? &moved[i] : NULL);
    join_all(task, BELLS);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
    ASSERT_EQ(moved[0], crew->workers > 1);
}

TEST(pin_block_keeps_the_thread_and_lets_go)
{
    crew_each(pin_blocks);
}

static int leaves_by_return(void)
{
    WEFT_PINNED
    {
        WEFT_PINNED return place_now() ? 1 : 0;
    }
    return 0;
}

static int leaves_in_all_ways(void)
{
    if (place_now()) return -1;
    WEFT_PINNED break;
    if (place_now()) return -2;
    WEFT_PINNED
    {
        if (place_now()) continue;
        return -3;
    }
    if (place_now()) return -4;
    if (leaves_by_return() != 1 || place_now()) return -5;
    WEFT_PINNED goto out;
    return -6;
out:
    return place_now() ? -7 : 0;
}

static uint64_t place_after_local_here(void)
{
    WEFT_PINNED(void) weft_local_here();
    return place_now();
}

static void ways_out(struct crew *crew)
{
    int got = -1;
    uint64_t place = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(leaves_in_all_ways), &got));
    ASSERT_EQ(got, 0);
    ASSERT_OK(weft_join(weft_go(place_after_local_here), &place));
    ASSERT(place & WEFT__PLACE); /* for life */
    ASSERT(!(place & WEFT__PLACE_PIN_BLOCK));
    WEFT_PINNED got = 5; /* a plain thread */
    ASSERT_EQ(got, 5);
}

TEST(pin_block_is_left_by_every_way_out)
{
    crew_each(ways_out);
}

static uint64_t place_around_block(void)
{
    WEFT_PINNED
    {
        if ((place_now() & WEFT__PLACE) == WEFT__PLACE_BACKGROUND) return 0;
        (void)weft_yield();
    }
    return place_now();
}

static void block_in_background(struct crew *crew)
{
    uint64_t place = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_go_as((.background = true), place_around_block), &place));
    ASSERT_EQ(place, WEFT__PLACE_BACKGROUND);
    ASSERT_OK(weft_join(weft_go_as((.pinned = true), place_around_block), &place));
    ASSERT(place != 0);
    ASSERT(!(place & WEFT__PLACE_PIN_BLOCK));
}

TEST(pin_block_gives_the_place_back)
{
    crew_each(block_in_background);
}

/* Two fibers of one task, in blocks that overlap and do not nest: whichever leaves first, the other one stays. */
struct half {
    WEFT_FRAME(int);
    struct bell *bell;
    int waits;
};
static weft_fiber(half)
{
    pid_t home = 0;
    f->ret = 0;
    WEFT_PINNED
    {
        home = thread_now();
        for (int i = 0; i < f->waits; i++) {
            if ((f->ret = weft_run(bell_wait, .bell = f->bell)) < 0) break;
            note_unless_on(home);
        }
    }
}

struct both {
    WEFT_FRAME(int);
    struct half a, b;
    bool a_done, b_done;
};
static weft_poll both_poll(void *frame, weft_cx *cx)
{
    struct both *f = frame;
    if (!f->a_done) f->a_done = half_poll(&f->a, cx) == WEFT_READY;
    if (!f->b_done) f->b_done = half_poll(&f->b, cx) == WEFT_READY;
    f->ret = f->a.ret < 0 ? f->a.ret : f->b.ret;
    return f->a_done && f->b_done ? WEFT_READY : WEFT_PENDING;
}

static void overlapping(struct crew *crew)
{
    struct street s;
    weft_task *task[BELLS / 2];
    (void)crew;
    street_opens(&s);
    for (int i = 0; i < BELLS / 2; i++)
        task[i] = weft_spawn(both, .a = {.bell = &bells[2 * i], .waits = 3},
                             .b = {.bell = &bells[2 * i + 1], .waits = 8});
    join_all(task, BELLS / 2);
    street_closes(&s);
    ASSERT_EQ(load_relaxed(&strays), 0);
}

TEST(pin_blocks_of_two_fibers_may_overlap)
{
    crew_each(overlapping);
}
