/* SPDX-License-Identifier: MIT
 *
 * The overflow arrays, proven at a ring of 2: whatever leaves the ring, by whoever's hand, comes out once and whole, and every array is given back.
 */
#define WEFT__RUNQ_CAP       2
#define WEFT__OVERFLOW_BATCH 2
#define weft__alloc          model_alloc
#define weft__free           model_free
#include "sched/overflow.c"
#include "sched/runq.c"

#include <string.h>

#define TASKS 5
#include "once.h"

static struct weft__runq ring;
static struct weft__runq thief_ring;
static struct weft__overflow over;
static struct weft__overflow thief_over;

/* ---- broken twins ---- */

enum { HONEST, TAKE_WITHOUT_LOCK };

static struct weft__overflow_array *take_without_lock(void)
{
    if (weft__overflow_count(&over) == 0) return NULL;
    struct weft__overflow_array *array = plain_read(&over.oldest);
    if (array) plain_write(&over.oldest, plain_read(&array->next));
    return array;
}

/* ---- the test's own words ---- */

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

static const struct model_case cases[] = {
    {.name = "overflow: spills against thieves of ring and array", .run = spill_against_thieves, .preemptions = 2},
    {.name = "overflow: refill against a thief", .run = refill_against_a_thief, .unbounded = true},
    {.name = "mutant: an array is taken without the lock", .run = refill_against_a_thief, .unbounded = true, .mutant = TAKE_WITHOUT_LOCK, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
