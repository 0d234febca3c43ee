/* SPDX-License-Identifier: MIT
 *
 * Events and wait groups, proven: who waits is let through, sees what was done before, and may free the whole.
 */
#include "leaf.h"
#include "sync/event.c"

static weft_event *event;
static weft_wg *group;
static int written[2];
static bool frees;

enum { HONEST, LAST_COUNTS_WITHOUT_THE_LOCK, SETS_WITHOUT_THE_LOCK };

static void listened(int ret, void *of)
{
    if (ret < 0) {
        given_up++;
        return;
    }
    got++;
    model_assert(plain_read(&written[0]) == 1);
    if (of == group) model_assert(plain_read(&written[1]) == 1);
    if (frees) model_free(of);
}

static weft_poll waits_event(struct actor *actor, weft_cx *cx)
{
    struct weft_event_wait *f = (void *)actor->frame;
    f->event = event;
    if (weft_event_wait_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    listened(f->ret, event);
    return WEFT_READY;
}

static weft_poll waits_group(struct actor *actor, weft_cx *cx)
{
    struct weft_wg_wait *f = (void *)actor->frame;
    f->wg = group;
    if (weft_wg_wait_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    listened(f->ret, group);
    return WEFT_READY;
}

static void begin(void)
{
    actors_begin();
    plain_write(&written[0], 0);
    plain_write(&written[1], 0);
}

static void begin_event(uint32_t references)
{
    begin();
    event = model_alloc(sizeof(*event));
    weft_event_init(event);
    actors[0] = actor_new(waits_event, references);
}

static void begin_group(uint64_t count)
{
    begin();
    group = model_alloc(sizeof(*group));
    weft_wg_init(group, count);
    actors[0] = actor_new(waits_group, 0);
}

static void sets(void *arg)
{
    (void)arg;
    plain_write(&written[0], 1);
    if (model_mutant == SETS_WITHOUT_THE_LOCK) {
        store_release(&event_of(event)->is_set, 1);
        (void)weft__waitlist_wake_all(&event_of(event)->list, &weft__sched);
    } else {
        weft_event_set(event);
    }
}

static void looks(void *arg)
{
    (void)arg;
    if (weft_event_is_set(event)) model_assert(plain_read(&written[0]) == 1);
}

static void finish(int *place)
{
    plain_write(place, 1);
    if (model_mutant == LAST_COUNTS_WITHOUT_THE_LOCK) {
        if (fetch_sub_acq_rel(&wg_of(group)->count, 1) == 1)
            (void)weft__waitlist_wake_all(&wg_of(group)->list, &weft__sched);
    } else {
        weft_wg_finish(group);
    }
}

static void finishes_0(void *arg)
{
    (void)arg;
    finish(&written[0]);
}

static void finishes_1(void *arg)
{
    (void)arg;
    finish(&written[1]);
}

/* ---- the cases ---- */

static void set_and_freed(void)
{
    begin_event(0);
    frees = true;
    model_thread(actor_begin, actors[0]);
    model_thread(sets, NULL);
    model_join();
    model_assert(got == 1);
}

static void set_and_looked_at(void)
{
    begin_event(1);
    frees = false;
    actor_run(actors[0]);
    model_thread(sets, NULL);
    model_thread(looks, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got + given_up == 1);
    weft_event_done(event);
    model_free(event);
}

static void all_finish(void)
{
    begin_group(2);
    frees = true;
    model_thread(actor_begin, actors[0]);
    model_thread(finishes_0, NULL);
    model_thread(finishes_1, NULL);
    model_join();
    model_assert(got == 1);
}

static const struct model_case cases[] = {
    {.name = "event: set, and freed by who waits", .run = set_and_freed, .unbounded = true, .weaken = true},
    {.name = "event: set, looked at, a waiter cancelled", .run = set_and_looked_at, .preemptions = 3, .weaken = true},
    {.name = "wait group: two finish, who waits frees it", .run = all_finish, .preemptions = 3, .weaken = true},
    {.name = "mutant: set without the lock", .run = set_and_freed, .unbounded = true, .mutant = SETS_WITHOUT_THE_LOCK, .must_fail = true},
    {.name = "mutant: the last one counts without the lock", .run = all_finish, .mutant = LAST_COUNTS_WITHOUT_THE_LOCK, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
