/* SPDX-License-Identifier: MIT
 *
 * The overflow arrays and the `next` slot, proven at a ring of 2: whatever leaves the ring or the slot, by whoever's hand, comes out once and whole, and
 * every array is given back.
 */
#define WEFT__RUNQ_CAP       2
#define WEFT__OVERFLOW_BATCH 2
#define weft__alloc          model_alloc
#define weft__free           model_free
#include "sched/overflow.c"
#include "sched/runq.c"
#include "sched/slot.h"

#include <string.h>

#define TASKS 5

static struct weft__runq ring;
static struct weft__runq thief_ring;
static struct weft__overflow over;
static struct weft__overflow thief_over;
static struct weft__slot slot;
static struct weft_task tasks[TASKS];
static unsigned taken[TASKS];

/* ---- broken twins ---- */

enum { HONEST, TAKE_WITHOUT_LOCK, SLOT_FILLED_BLINDLY, SLOT_TAKEN_BY_STORE };

static struct weft__overflow_array *take_without_lock(void)
{
    if (weft__overflow_count(&over) == 0) return NULL;
    struct weft__overflow_array *array = plain_read(&over.oldest);
    if (array) plain_write(&over.oldest, plain_read(&array->next));
    return array;
}

/* The owner trusts that what it saw in the slot is still there. */
static struct weft_task *slot_put_blindly(struct weft_task *t)
{
    struct weft_task *was = load_relaxed(&slot.task);
    store_release(&slot.task, t);
    return was;
}

static struct weft_task *slot_take_by_store(void)
{
    struct weft_task *t = load_relaxed(&slot.task);
    if (t) store_relaxed(&slot.task, NULL);
    return t;
}

static struct weft_task *slot_put(struct weft_task *t)
{
    return model_mutant == SLOT_FILLED_BLINDLY ? slot_put_blindly(t) : weft__slot_put(&slot, t);
}

static struct weft_task *slot_take(void)
{
    return model_mutant == SLOT_TAKEN_BY_STORE ? slot_take_by_store() : weft__slot_take(&slot);
}

/* ---- the test's own words ---- */

static void got(struct weft_task *t)
{
    if (!t) return;
    size_t i = (size_t)(t - tasks);
    model_assert(i < TASKS);
    model_assert(plain_read(&t->ext) == t);
    model_assert(taken[i] == 0);
    taken[i] = 1;
}

static struct weft_task *fresh(size_t i)
{
    plain_write(&tasks[i].ext, &tasks[i]);
    return &tasks[i];
}

/* As a worker does: the ring, and when it is full, half of it goes out first. */
static void push(size_t i)
{
    struct weft_task *t = fresh(i);
    if (weft__runq_push(&ring, t)) return;
    int moved = weft__overflow_spill(&over, &ring);
    model_assert(moved >= 0);
    bool pushed = weft__runq_push(&ring, t);
    model_assert(pushed);
}

static void begin(void)
{
    memset(taken, 0, sizeof(taken));
    weft__runq_init(&ring);
    weft__runq_init(&thief_ring);
    weft__overflow_init(&over);
    weft__overflow_init(&thief_over);
    weft__slot_init(&slot);
}

static void empty_worker(struct weft__overflow *own, struct weft__runq *q)
{
    struct weft_task *t;
    do {
        while ((t = weft__runq_take_oldest(q))) got(t);
        t = weft__overflow_refill(own, q).run;
        got(t);
    } while (t);
}

static void end(size_t count)
{
    model_join();
    weft__overflow_check(&over);
    empty_worker(&over, &ring);
    empty_worker(&thief_over, &thief_ring);
    got(weft__slot_take(&slot));
    weft__overflow_done(&over);
    weft__overflow_done(&thief_over);
    for (size_t i = 0; i < count; i++) model_assert(taken[i] == 1);
}

static void thief_of_an_array(void *arg)
{
    (void)arg;
    if (model_mutant == TAKE_WITHOUT_LOCK) {
        struct weft__overflow_array *array = take_without_lock();
        if (array) got(weft__overflow_unpack(&thief_over, array, &thief_ring).run);
        return;
    }
    (void)weft__overflow_take_half(&thief_over, &over);
    got(weft__overflow_refill(&thief_over, &thief_ring).run);
}

static void thief_of_the_ring(void *arg)
{
    (void)arg;
    got(weft__runq_steal(&ring));
}

static void thief_of_the_slot(void *arg)
{
    (void)arg;
    got(weft__slot_steal(&slot));
}

/* ---- the cases ---- */

static void spill_against_thieves(void)
{
    begin();
    model_thread(thief_of_an_array, NULL);
    model_thread(thief_of_the_ring, NULL);
    for (size_t i = 0; i < 4; i++) push(i);
    end(4);
}

static void refill_against_a_thief(void)
{
    begin();
    for (size_t i = 0; i < 4; i++) push(i);
    model_thread(thief_of_an_array, NULL);
    got(weft__runq_take_oldest(&ring));
    got(weft__runq_take_oldest(&ring));
    got(weft__overflow_refill(&over, &ring).run);
    end(4);
}

static void slot_against_a_thief(void)
{
    begin();
    model_thread(thief_of_the_slot, NULL);
    got(slot_put(fresh(0)));
    got(slot_put(fresh(1)));
    got(slot_take());
    got(slot_put(fresh(2)));
    end(3);
}

static void slot_against_two_thieves(void)
{
    begin();
    model_thread(thief_of_the_slot, NULL);
    model_thread(thief_of_the_slot, NULL);
    got(slot_put(fresh(0)));
    got(slot_take());
    got(slot_put(fresh(1)));
    end(2);
}

static const struct model_case cases[] = {
    {.name = "overflow: spills against thieves of ring and array", .run = spill_against_thieves, .preemptions = 2},
    {.name = "overflow: refill against a thief", .run = refill_against_a_thief, .unbounded = true},
    {.name = "slot: put and take against a thief", .run = slot_against_a_thief, .unbounded = true, .weaken = true},
    {.name = "slot: put and take against two thieves", .run = slot_against_two_thieves, .unbounded = true, .weaken = true},
    {.name = "mutant: an array is taken without the lock", .run = refill_against_a_thief, .unbounded = true, .mutant = TAKE_WITHOUT_LOCK, .must_fail = true},
    {.name = "mutant: the slot is filled without looking", .run = slot_against_a_thief, .unbounded = true, .mutant = SLOT_FILLED_BLINDLY, .must_fail = true},
    {.name = "mutant: the slot is emptied by a store", .run = slot_against_a_thief, .unbounded = true, .mutant = SLOT_TAKEN_BY_STORE, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
