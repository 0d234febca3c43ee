/* SPDX-License-Identifier: MIT
 *
 * The search on trial: what the bound means, that the two exhaustive searches agree, what a spinning thread may see, PCT, seeds, and the limits.
 */
#include "base/atomic.h"
#include "trial.h"

#include <errno.h>

#define THREAD(name) static void name(void *arg __attribute__((unused)))

static _Atomic uint32_t x, y, z;
static char lock_a, lock_b;
static unsigned a, b, c;            /* what was read; no memory of the model */

static void start(unsigned count, void (*const *threads)(void *))
{
    store_relaxed(&x, 0);
    store_relaxed(&y, 0);
    store_relaxed(&z, 0);
    a = b = c = 0;
    for (unsigned i = 0; i < count; i++)
        model_thread(threads[i], NULL);
    model_join();
}
#define START(...)                                                                                 \
    start(sizeof((void (*[])(void *)){__VA_ARGS__}) / sizeof(void (*)(void *)),                    \
          (void (*const[])(void *)){__VA_ARGS__})

/* ---- the bound: guarded by a lock, so that only the order of critical sections decides ---- */

static unsigned level;
static bool mistaken;

static unsigned level_set(unsigned to)
{
    model_lock(&lock_a);
    unsigned was = plain_read(&level);
    if (to) plain_write(&level, to);
    model_unlock(&lock_a);
    return was;
}
THREAD(level_rise)
{
    level_set(1);
    level_set(2);
}
THREAD(level_watch)
{
    unsigned first = level_set(0);
    unsigned second = level_set(0);
    mistaken = first == 1 && second == 2;
}
/* The watcher must come between the two steps of the other, which must come between its own: two preemptions, no fewer. */
static void needs_two_preemptions(void)
{
    plain_write(&level, 0);
    START(level_rise, level_watch);
    model_assert(!mistaken);
}

static void bounds(void)
{
    struct model_case one = {.run = needs_two_preemptions, .preemptions = 1};
    struct model_case two = {.run = needs_two_preemptions, .preemptions = 2};
    struct model_case all = {.run = needs_two_preemptions, .unbounded = true};
    struct model_result r = model_run(&one);
    trial(!r.failed && r.exhausted, "preemption bound",
          "found with one preemption, or not exhausted");
    trial(model_run(&two).failed, "preemption bound", "not found with two preemptions");
    trial(model_run(&all).failed, "preemption bound", "not found without a bound");
}

/* To go to sleep is no preemption, even if the sleep may time out: two threads that hand over three times need none. */
static void sleep_at(uint32_t value)
{
    a += model_futex_wait(&x, value, true) == 0;
}
static void step_to(uint32_t value)
{
    store_relaxed(&x, value);
    model_futex_wake(&x, 1);
}
THREAD(ping)
{
    for (uint32_t i = 1; i < 6; i += 2) {
        step_to(i);
        sleep_at(i);
    }
}
THREAD(pong)
{
    for (uint32_t i = 0; i < 6; i += 2) {
        sleep_at(i);
        step_to(i + 2);
    }
}
static void hand_over(void)
{
    START(ping, pong);
    saw(a);
}

/* A thread that makes progress between its yields goes on while another stands between two steps. */
static unsigned rounds;
THREAD(polite)
{
    for (rounds = 0; rounds < 3; cpu_pause()) {
        fetch_add_relaxed(&x, 1);
        rounds++;
    }
}
THREAD(watch_rounds)
{
    (void)load_relaxed(&y);
    a = rounds;
    (void)load_relaxed(&y);
    b = rounds;
}
static void progress_goes_on(void)
{
    rounds = 0;
    START(polite, watch_rounds);
    saw(a * 4 + b);
}

/* Between a store and the wake that follows it others can run. */
THREAD(set_x_wake_z)
{
    store_relaxed(&x, 1);
    model_futex_wake(&z, 1);
}
THREAD(sleep_on_z_after_x)
{
    if (load_relaxed(&x)) saw(model_futex_wait(&z, 0, true) == 0);
}
static void sleep_before_wake(void)
{
    START(set_x_wake_z, sleep_on_z_after_x);
}

static void free_switches(void)
{
    struct model_case few = {.run = hand_over, .preemptions = 1};
    struct model_case going_on = {.run = progress_goes_on};
    struct model_case between = {.run = sleep_before_wake};
    trial_seen.count = 0;
    trial(!model_run(&few).failed && trial_has(&trial_seen, 6), "timed waits",
          "to go to sleep costs a preemption");
    trial_seen.count = 0;
    trial(!model_run(&going_on).failed && trial_has(&trial_seen, 1 * 4 + 3), "yield",
          "a loop that makes progress is held up");
    trial_seen.count = 0;
    trial(!model_run(&between).failed && trial_seen.count == 2, "futex_wake",
          "nobody falls asleep just before it");
}

/* The creation of a thread is an event, elsewhere than x: what is seq_cst before it is before what is seq_cst in the thread. */
THREAD(store_y_read_x_sc)
{
    store_seq_cst(&y, 1);
    a = load_seq_cst(&x);
}
THREAD(read_y_sc)
{
    b = load_seq_cst(&y);
}
static void creation_orders(void)
{
    store_relaxed(&x, 0);
    store_relaxed(&y, 0);
    model_thread(store_y_read_x_sc, NULL);
    store_seq_cst(&x, 1);
    model_thread(read_y_sc, NULL);
    model_join();
    saw(a * 2 + b);
}
static void creation(void)
{
    struct model_case order = {.run = creation_orders, .unbounded = true};
    trial_seen.count = 0;
    trial(!model_run(&order).failed && trial_same(&trial_seen, &(struct trial_set){3, {1, 2, 3}}),
          "creation", "is no event of the order");
}

/* ---- the two searches agree ---- */

THREAD(count_up)
{
    uint32_t old = load_relaxed(&x);
    while (!cas_relaxed(&x, &old, old + 1))
        a++;
}
THREAD(store_x_load_y)
{
    store_relaxed(&x, 1);
    a = load_relaxed(&y);
}
THREAD(store_y_load_x)
{
    store_relaxed(&y, 1);
    b = load_relaxed(&x);
}
THREAD(relay)
{
    if (load_acquire(&x)) store_release(&z, 1 + load_relaxed(&y));
}
THREAD(append_1)
{
    model_lock(&lock_a);
    a = a * 4 + 1;
    model_unlock(&lock_a);
    model_lock(&lock_b);
    b = b * 4 + 1;
    model_unlock(&lock_b);
}
THREAD(append_2)
{
    model_lock(&lock_b);
    b = b * 4 + 2;
    model_unlock(&lock_b);
    model_lock(&lock_a);
    a = a * 4 + 2;
    model_unlock(&lock_a);
}
THREAD(append_both)
{
    model_lock(&lock_a);
    model_lock(&lock_b);
    a = a * 4 + 3;
    b = b * 4 + 3;
    model_unlock(&lock_b);
    model_unlock(&lock_a);
}
THREAD(append_both_crosswise)
{
    model_lock(&lock_b);
    model_lock(&lock_a);
    model_unlock(&lock_a);
    model_unlock(&lock_b);
}
THREAD(sleeper)
{
    int r = model_futex_wait(&x, 0, false);
    a = a * 4 + (r == 0) + 1;
}
THREAD(timed_sleeper)
{
    int r = model_futex_wait(&x, 0, true);
    b = b * 4 + (r == 0 ? 1 : r == -EAGAIN ? 2 : 3);
}
THREAD(waker)
{
    store_relaxed(&x, 1);
    c = (unsigned)model_futex_wake(&x, 1);
    model_futex_wake(&x, 8);
}
THREAD(weak_waker)
{
    store_relaxed(&x, 1);
    c = (unsigned)model_futex_wake(&x, 1);
}
THREAD(spinner)
{
    do {
        if ((a = load_relaxed(&x))) return;
        cpu_pause();
    } while (true);
}
THREAD(raise_x)
{
    store_relaxed(&y, 1);
    store_relaxed(&x, 1);
    b = load_relaxed(&y);
    store_relaxed(&x, 2);
}
THREAD(chooser)
{
    unsigned n = model_choose(3);
    if (n == 0) store_relaxed(&x, 1);
    if (n == 1) a = load_relaxed(&y);
    if (n == 2) store_relaxed(&y, 2);
    b = b * 4 + n + 1;
}
THREAD(tryer)
{
    if (model_try_lock(&lock_a)) {
        a = a * 2 + load_relaxed(&x) + 1;
        store_relaxed(&x, 1);
        model_unlock(&lock_a);
    } else {
        b++;
    }
}
THREAD(creator)
{
    store_relaxed(&x, 1);
    model_thread(store_y_load_x, NULL);
    a = load_relaxed(&y);
}
THREAD(fenced_x)
{
    store_relaxed(&x, 1);
    fence_seq_cst();
    a = load_relaxed(&y);
    c = load_seq_cst(&z);
}
THREAD(fenced_y)
{
    store_relaxed(&y, 1);
    fence_seq_cst();
    b = load_relaxed(&x);
    store_seq_cst(&z, 1);
}

#define OBSERVED(name, ...)                                                                        \
    static void name(void)                                                                         \
    {                                                                                              \
        START(__VA_ARGS__);                                                                        \
        saw(a | b << 6 | c << 12 | load_relaxed(&x) << 16 | load_relaxed(&z) << 20);               \
    }
OBSERVED(agree_cas, count_up, count_up)
OBSERVED(agree_store_buffer, store_x_load_y, store_y_load_x)
OBSERVED(agree_relay, store_x_load_y, store_y_load_x, relay)
OBSERVED(agree_locks, append_1, append_2, append_both)
OBSERVED(agree_deadlock, append_both, append_both_crosswise)
OBSERVED(agree_futex, sleeper, sleeper, waker)
OBSERVED(agree_futex_timed, sleeper, timed_sleeper, waker)
OBSERVED(agree_lost_wake_up, sleeper, sleeper, weak_waker)
OBSERVED(agree_spin, spinner, raise_x)
OBSERVED(agree_two_spinners, spinner, spinner, raise_x)
OBSERVED(agree_choose, chooser, chooser)
OBSERVED(agree_try_lock, tryer, tryer)
OBSERVED(agree_nested, creator, store_x_load_y)
OBSERVED(agree_fences, fenced_x, fenced_y)

static const struct agreement {
    const char *name;
    void (*run)(void);
    unsigned spurious;
} agreements[] = {
    {"CAS loops", agree_cas, 0},
    {"store buffering", agree_store_buffer, 0},
    {"three threads", agree_relay, 0},
    {"locks", agree_locks, 0},
    {"deadlock", agree_deadlock, 0},
    {"futex", agree_futex, 0},
    {"futex, spurious", agree_futex, 1},
    {"futex, timed", agree_futex_timed, 0},
    {"futex, one wake for two", agree_lost_wake_up, 0},
    {"spin", agree_spin, 0},
    {"two spinners", agree_two_spinners, 0},
    {"choose", agree_choose, 0},
    {"try_lock", agree_try_lock, 0},
    {"a thread that creates one", agree_nested, 0},
    {"seq_cst fences and accesses", agree_fences, 0},
};

static void agree(const struct agreement *g)
{
    struct model_case plain = {.run = g->run, .preemptions = 1000, .spurious = g->spurious};
    struct model_case thinned = {.run = g->run, .unbounded = true, .spurious = g->spurious};
    trial_seen.count = 0;
    struct model_result r = model_run(&plain);
    struct trial_set all = trial_seen;
    trial_seen.count = 0;
    struct model_result s = model_run(&thinned);
    trial(r.failed == s.failed && r.exhausted == s.exhausted, g->name,
          "one search fails, the other does not");
    if (r.failed) return;
    trial(all.count > 1 && trial_same(&all, &trial_seen), g->name,
          "the searches see different outcomes");
    trial(s.executions <= r.executions, g->name, "sleep sets save nothing");
}

/* ---- spinning ---- */

static void spin_sees(void)
{
    START(spinner, raise_x);
    saw(a);
}

/* Both wait for the other, so at least one of them has spun; still the data may be seen old. */
THREAD(ask_and_take)
{
    store_relaxed(&z, 1);
    while (!load_relaxed(&x))
        cpu_pause();
    a = load_relaxed(&y);
}
THREAD(give_when_asked)
{
    while (!load_relaxed(&z))
        cpu_pause();
    store_relaxed(&y, 1);
    store_relaxed(&x, 1);
}
static void old_data_after_spin(void)
{
    START(ask_and_take, give_when_asked);
    saw(a);
}

/* A value that is no longer the newest when the loop goes on can still be seen. */
static bool over, late;
THREAD(raise_twice)
{
    store_relaxed(&x, 1);
    store_relaxed(&x, 2);
    over = true;
}
THREAD(spin_and_note)
{
    while (!(a = load_relaxed(&x))) {
        cpu_pause();
        late = over;
    }
}
static void old_value_after_spin(void)
{
    over = late = false;
    START(spin_and_note, raise_twice);
    saw(a + (late ? 4 : 0));
}

static void spins(void)
{
    struct model_case passed = {.run = old_value_after_spin};
    struct model_case values = {.run = spin_sees};
    struct model_case data = {.run = old_data_after_spin, .preemptions = 1};
    trial_seen.count = 0;
    trial(!model_run(&values).failed && trial_same(&trial_seen, &(struct trial_set){2, {1, 2}}),
          "spin", "does not see both values");
    trial_seen.count = 0;
    trial(!model_run(&data).failed && trial_same(&trial_seen, &(struct trial_set){2, {0, 1}}),
          "spin", "old data is never seen after it");
    trial_seen.count = 0;
    trial(!model_run(&passed).failed && trial_has(&trial_seen, 5), "spin",
          "only the newest value is seen after a yield");
}

/* ---- choices ---- */

static void choose_of_300(void)
{
    saw(model_choose(300) / 10);
}
static void choose_of_none(void)
{
    model_choose(0);
}
static void choices(void)
{
    struct model_case many = {.run = choose_of_300};
    struct model_case none = {.run = choose_of_none};
    trial_seen.count = 0;
    struct model_result r = model_run(&many);
    trial(r.executions == 300 && trial_seen.count == 30, "model_choose(300)", "not all were tried");
    r = model_run(&none);
    trial(r.failed && strstr(r.why, "model_choose(0)"), "model_choose(0)", "not refused");
}

/* ---- PCT ---- */

static void randomised(void)
{
    struct model_case pct = {.run = needs_two_preemptions, .pct_depth = 3, .seed = 7};
    struct model_result first = model_run(&pct);
    struct model_result second = model_run(&pct);
    trial(first.failed, "PCT", "a bug of depth 3 is not found");
    trial(first.executions == second.executions && strcmp(first.path, second.path) == 0, "PCT",
          "one seed, two results");
    struct model_result again = model_replay(&pct, first.path);
    trial(again.failed && again.executions == 1 && strcmp(again.why, first.why) == 0, "PCT",
          "the path leads elsewhere");
    unsigned differ = 0;
    for (pct.seed = 8; pct.seed < 16; pct.seed++)
        differ += model_run(&pct).executions != first.executions;
    trial(differ > 0, "PCT", "all seeds are one");
}

/* ---- a path of thousands of choices ---- */

static void fails_late(void)
{
    for (unsigned i = 0; i < 3000; i++)
        model_choose(2 + i % 7);
    model_assert(model_choose(12) < 11);
}
static void long_paths(void)
{
    struct model_case late = {.run = fails_late};
    struct model_result r = model_run(&late);
    struct model_result again = model_replay(&late, r.path);
    trial(r.failed && again.failed && strcmp(again.why, r.why) == 0, "long path",
          "does not replay");
    trial(model_replay(&late, "9").failed, "path", "one of another program is accepted");
}

/* ---- limits ---- */

static void too_many_locations(void)
{
    static _Atomic uint32_t many[200];
    for (unsigned i = 0; i < 200; i++)
        store_relaxed(&many[i], 0);
}
static void too_many_stores(void)
{
    for (unsigned i = 0; i < 200; i++)
        store_relaxed(&x, i);
}
static void too_many_threads(void)
{
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++)
        model_thread(store_x_load_y, NULL);
}
static void too_many_seq_cst(void)
{
    for (unsigned i = 0; i < 100; i++)
        fence_seq_cst();
}
static void too_many_blocks(void)
{
    for (unsigned i = 0; i < 200; i++)
        model_free(model_alloc(8));
}
static void too_many_locks(void)
{
    static char many[100];
    for (unsigned i = 0; i < 100; i++) {
        model_lock(&many[i]);
        model_unlock(&many[i]);
    }
}
static void too_many_steps(void)
{
    for (;;)
        (void)load_relaxed(&x);
}
static void too_many_choices(void)
{
    for (;;)
        model_choose(2);
}

static void limits(void)
{
    static const struct {
        void (*run)(void);
        const char *why;
    } limit[] = {
        {too_many_locations, "LOCS_MAX"},        {too_many_stores, "STORES_MAX"},
        {too_many_threads, "MODEL_THREADS_MAX"}, {too_many_seq_cst, "SC_MAX"},
        {too_many_blocks, "BLOCKS_MAX"},         {too_many_locks, "LOCKS_MAX"},
        {too_many_steps, "5000 steps"},          {too_many_choices, "choices"},
    };
    for (size_t i = 0; i < MODEL_COUNT(limit); i++) {
        struct model_case over = {.run = limit[i].run};
        struct model_result r = model_run(&over);
        trial(r.failed && r.limit && strstr(r.why, limit[i].why), limit[i].why,
              r.failed ? r.why : "not reported");
    }
}

int main(void)
{
    bounds();
    free_switches();
    creation();
    for (size_t i = 0; i < MODEL_COUNT(agreements); i++)
        agree(&agreements[i]);
    spins();
    choices();
    randomised();
    long_paths();
    limits();
    return trial_end("selftest_search");
}
