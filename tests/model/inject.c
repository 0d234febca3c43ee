/* SPDX-License-Identifier: MIT
 *
 * The inject queue, proven: every task comes out once, whole, in the order of its pusher; and a worker that falls asleep strands none, although a gap or
 * another worker at the head may hide tasks from it.
 */
#include "sched/idle.c"
#include "sched/inject.c"
#include "sched/park.c"

#include <string.h>

#define TASKS 4

static struct weft__inject queue;
static struct weft_task tasks[TASKS];
static unsigned taken[TASKS];
static unsigned taken_count;
static unsigned last_of[2];         /* the last task seen of each pusher: tasks 0, 1 are one's, 2, 3 the other's */

/* ---- broken twins ---- */

enum { HONEST, TAKES_BEFORE_A_GAP, FLAG_OF_ZERO_AND_ONE, HEAD_CLEARED_AFTER };

/* A task without a successor is taken for the last one, and the rest is gone. */
static uint32_t pop_before_gap(struct weft_task **into)
{
    if (!drain_begin(&queue)) return 0;
    uint32_t came = 1;
    struct weft_task *t = load_acquire(&queue.head);
    if (t) store_relaxed(&queue.head, load_acquire(&t->link));
    if (t && !load_relaxed(&t->link)) {
        struct weft_task *last = t;
        (void)cas_acq_rel(&queue.tail, &last, NULL);
    }
    while (!drain_end(&queue, &came)) {
    }
    *into = t;
    return t != NULL;
}

/* The head is cleared after the tail: a pusher in between has stored it already. */
static uint32_t pop_head_after(struct weft_task **into)
{
    uint32_t came = 1;
    if (!drain_begin(&queue)) return 0;
    struct weft_task *t = load_acquire(&queue.head);
    struct weft_task *next = t ? load_acquire(&t->link) : NULL;
    if (t && next) {
        store_relaxed(&queue.head, next);
    } else if (t) {
        struct weft_task *last = t;
        if (cas_acq_rel(&queue.tail, &last, NULL)) {
            store_relaxed(&queue.head, NULL);
        } else {
            t = NULL;
        }
    }
    while (!drain_end(&queue, &came)) {
    }
    *into = t;
    return t != NULL;
}

/* Whoever finds the flag taken goes away, and the holder does not know that somebody came. */
static bool empty_by_plain_flag(void)
{
    uint32_t none = 0;
    if (!load_relaxed(&queue.tail) || !cas_acquire(&queue.draining, &none, 1)) return true;
    bool loose = oldest_is_loose(&queue);
    store_release(&queue.draining, 0);
    return !loose;
}

static uint32_t pop_by_plain_flag(struct weft_task **into)
{
    uint32_t none = 0;
    if (!load_relaxed(&queue.tail) || !cas_acquire(&queue.draining, &none, 1)) return 0;
    uint32_t count = drain(&queue, 1, into);
    store_release(&queue.draining, 0);
    return count;
}

static uint32_t pop(uint32_t max, struct weft_task **into)
{
    if (model_mutant == TAKES_BEFORE_A_GAP) return pop_before_gap(into);
    if (model_mutant == HEAD_CLEARED_AFTER) return pop_head_after(into);
    if (model_mutant == FLAG_OF_ZERO_AND_ONE) return pop_by_plain_flag(into);
    return weft__inject_pop(&queue, max, into);
}

/* ---- the test's own words ---- */

static void got(struct weft_task *t)
{
    size_t i = (size_t)(t - tasks);
    model_assert(i < TASKS);
    model_assert(plain_read(&t->ext) == t);
    model_assert(taken[i] == 0);
    taken[i] = 1;
    taken_count++;
}

static uint32_t pop_and_count(uint32_t max)
{
    struct weft_task *out[TASKS];
    uint32_t count = pop(max, out);
    for (uint32_t i = 0; i < count; i++) got(out[i]);
    return count;
}

static void push(size_t i)
{
    plain_write(&tasks[i].ext, &tasks[i]);
    weft__inject_push(&queue, &tasks[i]);
}

static void begin(void)
{
    memset(taken, 0, sizeof(taken));
    memset(last_of, 0, sizeof(last_of));
    taken_count = 0;
    weft__inject_init(&queue);
}

static void drain_and_count(unsigned count)
{
    model_join();
    (void)weft__inject_check(&queue);
    while (pop_and_count(1) > 0) {
    }
    model_assert(taken_count == count);
}

static void push_0_1(void *arg)
{
    (void)arg;
    push(0);
    push(1);
}

static void push_2(void *arg)
{
    (void)arg;
    push(2);
}

static void push_chain(void *arg)
{
    (void)arg;
    for (size_t i = 2; i < 4; i++) plain_write(&tasks[i].ext, &tasks[i]);
    store_relaxed(&tasks[2].link, &tasks[3]);
    weft__inject_push_chain(&queue, &tasks[2], &tasks[3]);
}

static void pop_one(void *arg)
{
    (void)arg;
    (void)pop_and_count(1);
}

static void pop_two(void *arg)
{
    (void)arg;
    (void)pop_and_count(2);
}

/* ---- out as in ---- */

static void two_pushers_one_drainer(void)
{
    begin();
    model_thread(push_0_1, NULL);
    model_thread(push_2, NULL);
    (void)pop_and_count(2);
    drain_and_count(3);
}

static void a_pusher_and_two_drainers(void)
{
    begin();
    push(2);
    model_thread(push_0_1, NULL);
    model_thread(pop_two, NULL);
    model_thread(pop_one, NULL);
    drain_and_count(3);
}

static void chain_against_push(void)
{
    begin();
    model_thread(push_chain, NULL);
    model_thread(push_0_1, NULL);
    (void)pop_and_count(4);
    drain_and_count(4);
}

/* One pusher's tasks come out in its order, whoever takes them. */
static void in_order(void)
{
    struct weft_task *out[TASKS];
    uint32_t count = 0;
    begin();
    model_thread(push_0_1, NULL);
    for (int i = 0; i < 2; i++) count += pop(1, out + count);
    if (count > 0) model_assert(out[0] == &tasks[0]);
    if (count > 1) model_assert(out[1] == &tasks[1]);
    for (uint32_t i = 0; i < count; i++) got(out[i]);
    drain_and_count(2);
}

/* ---- may one sleep? ---- */

static bool first_may_sleep;
static bool second_may_sleep;

static void ask_first(void *arg)
{
    (void)arg;
    first_may_sleep = weft__inject_empty(&queue);
}

static void push_and_ask(void *arg)
{
    (void)arg;
    push(0);
    second_may_sleep = weft__inject_empty(&queue);
}

/* Whoever finds another at the head trusts it to look again: of two who ask, one of whom has seen a push, not both may sleep. */
static void one_of_two_stays_awake(void)
{
    begin();
    model_thread(ask_first, NULL);
    model_thread(push_and_ask, NULL);
    model_join();
    model_assert(!(first_may_sleep && second_may_sleep));
    drain_and_count(1);
}

/* ---- asleep ---- */

static struct weft__idle idle;
static struct weft__park parks[2];
static _Atomic unsigned consumed;
static _Atomic bool stop;
static unsigned goal;

static bool may_sleep(void)
{
    return model_mutant == FLAG_OF_ZERO_AND_ONE ? empty_by_plain_flag() : weft__inject_empty(&queue);
}

static void consume(uint32_t count)
{
    if (count == 0 || fetch_add_acq_rel(&consumed, count) + count < goal) return;
    store_release(&stop, true);
    for (uint32_t i = 0; i < 2; i++) weft__unpark(&parks[i]);
}

static void worker_loop(uint32_t id)
{
    bool searching = false;
    while (!load_acquire(&stop)) {
        uint32_t count = pop_and_count(1);
        if (count > 0) {
            if (searching && weft__idle_search_end(&idle, id) && !may_sleep()) {
                uint32_t next = weft__idle_wake_one(&idle, id);
                if (next != WEFT__IDLE_NOBODY) weft__unpark(&parks[next]);
            }
            searching = false;
            consume(count);
            continue;
        }
        weft__idle_sleep(&idle, id, searching);
        if (may_sleep() && !load_relaxed(&stop)) (void)weft__park(&parks[id], WEFT__NEVER);
        (void)weft__idle_unsleep(&idle, id);
        searching = true;
    }
}

static void worker_0(void *arg)
{
    (void)arg;
    worker_loop(0);
}

static void worker_1(void *arg)
{
    (void)arg;
    worker_loop(1);
}

static void submit(size_t i)
{
    push(i);
    uint32_t worker = weft__idle_submit(&idle);
    if (worker != WEFT__IDLE_NOBODY) weft__unpark(&parks[worker]);
}

static void submit_0(void *arg)
{
    (void)arg;
    submit(0);
}

static void submit_2(void *arg)
{
    (void)arg;
    submit(2);
}

static void begin_asleep(unsigned items)
{
    begin();
    goal = items;
    weft__idle_init(&idle, 2);
    for (int i = 0; i < 2; i++) weft__park_init(&parks[i]);
    store_relaxed(&consumed, 0);
    store_relaxed(&stop, false);
}

static void one_sleeper_two_pushers(void)
{
    begin_asleep(2);
    model_thread(worker_0, NULL);
    model_thread(submit_0, NULL);
    model_thread(submit_2, NULL);
    model_join();
    model_assert(taken_count == 2);
}

static void two_sleepers_two_pushers(void)
{
    begin_asleep(2);
    model_thread(worker_0, NULL);
    model_thread(worker_1, NULL);
    model_thread(submit_0, NULL);
    model_thread(submit_2, NULL);
    model_join();
    model_assert(taken_count == 2);
}

static const struct model_case cases[] = {
    {.name = "inject: two pushers, one drainer", .run = two_pushers_one_drainer, .unbounded = true, .weaken = true},
    {.name = "inject: in the order of the pusher", .run = in_order, .unbounded = true, .weaken = true},
    {.name = "inject: a pusher, two drainers", .run = a_pusher_and_two_drainers, .preemptions = 2, .weaken = true},
    {.name = "inject: a chain against pushes", .run = chain_against_push, .preemptions = 3, .weaken = true},
    {.name = "inject: of two who ask, one stays awake", .run = one_of_two_stays_awake, .unbounded = true, .weaken = true},
    {.name = "inject: one sleeper, two pushers", .run = one_sleeper_two_pushers, .preemptions = 1},
    {.name = "inject: one sleeper, two pushers, randomised", .run = one_sleeper_two_pushers, .pct_depth = 4, .executions_max = 200000},
    {.name = "inject: two sleepers, two pushers, randomised", .run = two_sleepers_two_pushers, .pct_depth = 5, .executions_max = 200000},
    {.name = "mutant: takes the task before a gap", .run = two_pushers_one_drainer, .preemptions = 3, .mutant = TAKES_BEFORE_A_GAP, .must_fail = true},
    {.name = "mutant: head cleared after the tail", .run = two_pushers_one_drainer, .preemptions = 3, .mutant = HEAD_CLEARED_AFTER, .must_fail = true},
    {.name = "mutant: a flag that does not count who came", .run = two_sleepers_two_pushers, .pct_depth = 5, .executions_max = 2000000,
     .mutant = FLAG_OF_ZERO_AND_ONE, .must_fail = true},
};

static const struct model_spare spare[] = {
    {"sched/inject.c", "load_acquire(&q->head)", "in oldest_is_loose: without it an old link may make the answer a wrong 'not empty', which costs one more look"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
