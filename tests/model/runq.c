/* SPDX-License-Identifier: MIT
 *
 * The ring, proven at capacity 4: every task comes out exactly once, whole, whoever takes it from whichever end.
 *
 * Behind each task lies plain memory that the pusher writes and the taker reads: a take that is not ordered after its push is a race.
 */
#define WEFT__RUNQ_CAP 4
#include "sched/runq.c"

#include <string.h>

#define TASKS 8

static struct weft__runq ring;
static struct weft__runq other;
static struct weft_task tasks[TASKS];
static unsigned taken[TASKS];

/* ---- broken twins ---- */

enum { HONEST, HALF_BY_ONE_CAS, LAST_WITHOUT_CAS, SLOT_AFTER_CAS, THIEF_LOOKS_AT_TAIL_FIRST, MANY_BY_A_STORE };

/* The thief sees that half is three tasks long and moves the head by that many at once. */
static struct weft__haul half_by_one_cas(struct weft__runq *from)
{
    struct weft_task *got[WEFT__RUNQ_CAP];
    struct weft__haul haul = {0};
    uint64_t head = load_acquire(&from->head);
    fence_seq_cst();
    uint64_t tail = load_acquire(&from->tail);
    int64_t half = ((int64_t)(tail - head) + 1) / 2;

    if (half <= 0) return haul;
    for (int64_t i = 0; i < half; i++) got[i] = load_relaxed(&from->slot[(head + (uint64_t)i) & WEFT__RUNQ_MASK]);
    if (!cas_acq_rel(&from->head, &head, head + (uint64_t)half)) return haul;
    for (int64_t i = 1; i < half; i++) (void)weft__runq_push(&other, got[i]);
    return (struct weft__haul){.run = got[0], .count = (uint32_t)half};
}

/* The owner takes the newest without running for it when it is the last. */
static struct weft_task *last_without_cas(struct weft__runq *q)
{
    uint64_t index = load_relaxed(&q->tail) - 1;
    if (load_relaxed(&q->head) == index + 1) return NULL;
    store_release(&q->tail, index);
    fence_seq_cst();
    if ((int64_t)(index - load_relaxed(&q->head)) < 0) {
        store_relaxed(&q->tail, index + 1);
        return NULL;
    }
    return load_relaxed(&q->slot[index & WEFT__RUNQ_MASK]);
}

static struct weft_task *slot_after_cas(struct weft__runq *q)
{
    uint64_t head = load_relaxed(&q->head);
    fence_seq_cst();
    uint64_t tail = load_acquire(&q->tail);
    if ((int64_t)(tail - head) < 1 || !cas_acq_rel(&q->head, &head, head + 1)) return NULL;
    return load_relaxed(&q->slot[head & WEFT__RUNQ_MASK]);
}

static struct weft_task *tail_first(struct weft__runq *q)
{
    uint64_t tail = load_acquire(&q->tail);
    fence_seq_cst();
    uint64_t head = load_acquire(&q->head);
    if ((int64_t)(tail - head) < 1) return NULL;
    struct weft_task *t = load_relaxed(&q->slot[head & WEFT__RUNQ_MASK]);
    return cas_acq_rel(&q->head, &head, head + 1) ? t : NULL;
}

/* The owner trusts that the head has not moved since it looked. */
static uint32_t many_by_a_store(struct weft__runq *q, uint32_t most, struct weft_task **into)
{
    uint64_t head = load_relaxed(&q->head);
    uint64_t length = load_relaxed(&q->tail) - head;
    uint32_t count = length < most ? (uint32_t)length : most;
    for (uint32_t i = 0; i < count; i++) into[i] = load_relaxed(&q->slot[(head + i) & WEFT__RUNQ_MASK]);
    store_relaxed(&q->head, head + count);
    return count;
}

static struct weft_task *steal(struct weft__runq *q)
{
    if (model_mutant == SLOT_AFTER_CAS) return slot_after_cas(q);
    if (model_mutant == THIEF_LOOKS_AT_TAIL_FIRST) return tail_first(q);
    return weft__runq_steal(q);
}

static struct weft_task *take_newest(struct weft__runq *q)
{
    return model_mutant == LAST_WITHOUT_CAS ? last_without_cas(q) : weft__runq_take_newest(q);
}

/* ---- the test's own words ---- */

static void got(struct weft_task *t)
{
    if (!t) return;
    size_t i = (size_t)(t - tasks);
    model_assert(i < TASKS);
    model_assert(plain_read(&t->ext) == &tasks[i]); /* a race here: the take is not ordered after the push */
    taken[i]++;
    model_assert(taken[i] == 1);
}

static void push(size_t i)
{
    plain_write(&tasks[i].ext, &tasks[i]);
    bool pushed = weft__runq_push(&ring, &tasks[i]);
    model_assert(pushed);
}

static void begin(void)
{
    memset(taken, 0, sizeof(taken));
    weft__runq_init(&ring);
    weft__runq_init(&other);
}

/* Nobody else runs: what is left comes out now, and then each of the first `count` tasks has come out once. */
static void drain_and_count(size_t count)
{
    struct weft_task *t;
    model_join();
    weft__runq_check(&ring);
    while ((t = weft__runq_take_oldest(&ring))) got(t);
    while ((t = weft__runq_take_oldest(&other))) got(t);
    for (size_t i = 0; i < count; i++) model_assert(taken[i] == 1);
}

static void thief_of_one(void *arg)
{
    (void)arg;
    got(steal(&ring));
}

static void thief_of_two(void *arg)
{
    (void)arg;
    got(steal(&ring));
    got(steal(&ring));
}

static void thief_of_half(void *arg)
{
    (void)arg;
    got(model_mutant == HALF_BY_ONE_CAS ? half_by_one_cas(&ring).run : weft__runq_steal_half(&ring, &other, true).run);
}

/* ---- the cases ---- */

static void newest_against_one_thief(void)
{
    begin();
    model_thread(thief_of_two, NULL);
    push(0);
    push(1);
    got(take_newest(&ring));
    got(take_newest(&ring));
    drain_and_count(2);
}

static void newest_and_oldest_against_two_thieves(void)
{
    begin();
    push(0);
    push(1);
    push(2);
    model_thread(thief_of_one, NULL);
    model_thread(thief_of_one, NULL);
    got(take_newest(&ring));
    got(weft__runq_take_oldest(&ring));
    drain_and_count(3);
}

static void newest_against_half(void)
{
    begin();
    push(0);
    push(1);
    push(2);
    model_thread(thief_of_half, NULL);
    got(take_newest(&ring));
    got(take_newest(&ring));
    drain_and_count(3);
}

static void push_after_newest_against_two_thieves(void)
{
    begin();
    push(0);
    model_thread(thief_of_one, NULL);
    model_thread(thief_of_one, NULL);
    got(take_newest(&ring));
    push(1);
    push(2);
    drain_and_count(3);
}

/* The head that a thief sees may have been moved by another thief: its fence must stand behind that look, also when it tries again. */
static void newest_against_two_thieves(void)
{
    begin();
    push(0);
    push(1);
    model_thread(thief_of_one, NULL);
    model_thread(thief_of_one, NULL);
    got(take_newest(&ring));
    drain_and_count(2);
}

static void newest_against_one_and_half(void)
{
    begin();
    push(0);
    push(1);
    model_thread(thief_of_half, NULL);
    model_thread(thief_of_one, NULL);
    got(take_newest(&ring));
    drain_and_count(2);
}

/* The ring is full and goes round: a slot is written again as soon as its task was taken. */
static void slots_are_reused(void)
{
    begin();
    for (size_t i = 0; i < 4; i++) push(i);
    model_thread(thief_of_two, NULL);
    plain_write(&tasks[4].ext, &tasks[4]);
    bool pushed = weft__runq_push(&ring, &tasks[4]);
    if (!pushed) got(&tasks[4]);
    got(take_newest(&ring));
    drain_and_count(5);
}

static void two_thieves_of_half(void)
{
    begin();
    for (size_t i = 0; i < 4; i++) push(i);
    model_thread(thief_of_half, NULL);
    model_thread(thief_of_one, NULL);
    got(take_newest(&ring));
    drain_and_count(4);
}

static void take_many(uint32_t most)
{
    struct weft_task *many[WEFT__RUNQ_CAP];
    uint32_t count = model_mutant == MANY_BY_A_STORE ? many_by_a_store(&ring, most, many) : weft__runq_take_many(&ring, most, many);
    model_assert(count <= most);
    for (uint32_t i = 0; i < count; i++) got(many[i]);
}

static void many_against_a_thief(void)
{
    begin();
    for (size_t i = 0; i < 3; i++) push(i);
    model_thread(thief_of_two, NULL);
    take_many(2);
    push(3);
    push(4);
    got(take_newest(&ring));
    drain_and_count(5);
}

/* The ring is full; what is pushed behind goes to the slots that were taken. */
static void many_of_a_full_ring(void)
{
    begin();
    for (size_t i = 0; i < 4; i++) push(i);
    model_thread(thief_of_one, NULL);
    model_thread(thief_of_half, NULL);
    take_many(2);
    push(4);
    drain_and_count(5);
}

static const struct model_case cases[] = {
    {.name = "runq: many at once against a thief of two", .run = many_against_a_thief, .unbounded = true, .weaken = true},
    {.name = "runq: many of a full ring against thieves of one and of half", .run = many_of_a_full_ring, .preemptions = 2},
    {.name = "mutant: many by a store", .run = many_against_a_thief, .unbounded = true, .mutant = MANY_BY_A_STORE, .must_fail = true},
    {.name = "runq: newest against a thief of two", .run = newest_against_one_thief, .unbounded = true, .weaken = true},
    {.name = "runq: both ends against two thieves", .run = newest_and_oldest_against_two_thieves, .unbounded = true, .weaken = true},
    {.name = "runq: newest against a thief of half", .run = newest_against_half, .unbounded = true, .weaken = true},
    {.name = "runq: push after newest, two thieves", .run = push_after_newest_against_two_thieves, .unbounded = true, .weaken = true},
    {.name = "runq: newest against two thieves", .run = newest_against_two_thieves, .unbounded = true, .weaken = true},
    {.name = "runq: newest against thieves of one and of half", .run = newest_against_one_and_half, .unbounded = true, .weaken = true},
    {.name = "runq: slots are reused", .run = slots_are_reused, .unbounded = true, .weaken = true},
    {.name = "runq: a thief of half and a thief of one", .run = two_thieves_of_half, .unbounded = true, .weaken = true},
    {.name = "mutant: half by one CAS", .run = newest_against_half, .unbounded = true, .mutant = HALF_BY_ONE_CAS, .must_fail = true},
    {.name = "mutant: the last one without a CAS", .run = newest_against_one_thief, .unbounded = true, .mutant = LAST_WITHOUT_CAS, .must_fail = true},
    {.name = "mutant: slot read after the CAS", .run = slots_are_reused, .unbounded = true, .mutant = SLOT_AFTER_CAS, .must_fail = true},
    {.name = "mutant: thief looks at the tail first", .run = newest_against_one_thief, .unbounded = true, .mutant = THIEF_LOOKS_AT_TAIL_FIRST,
     .must_fail = true},
};

static const struct model_spare spare[] = {
    {"sched/runq.h", "load_acquire(&q->head)", "holds back a thief's read of the slot from behind its own CAS: load buffering, which RC11 has not and machines have"},
    {"sched/runq.c", "cas_release(&q->head", "the other end of the same pair"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
