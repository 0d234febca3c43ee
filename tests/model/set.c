/* SPDX-License-Identifier: MIT
 *
 * Task sets, proven: a member's end reaches who waits for it, once, with its result; whoever has taken a member out may free it, and with the last
 * one the set, although the member's worker, and whoever spawned it, may be on their way out; a cancelled wait passes its turn on; and members that are
 * let go at their very end are waited for.
 */
#define CHILD_BEHIND sizeof(struct weft__member)
#include "children.h"
#include "flow/set_all.c"

static struct weft__set *set;
static bool frees; /* who empties the set frees it */

enum { HONEST, ENDED_AT_THE_WAKE, LET_GO_AT_ITS_END, KEEPS_ITS_TURN, WATCHED_BEFORE_IT_IS_IN };

static struct weft__member *child_member(struct child *child)
{
    return weft__behind_frame(&child->task, sizeof(struct weft__member));
}

/* ---- broken twins ---- */

static void ended_at_the_wake(struct weft__foreign *foreign)
{
    member_ended(foreign);
}

static void nothing(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops early_ops = {.wake = ended_at_the_wake, .free = nothing};

/* As weft__set_add. */
static void adds(void *arg)
{
    struct child *child = arg;
    if (model_mutant == ENDED_AT_THE_WAKE || model_mutant == WATCHED_BEFORE_IT_IS_IN) {
        struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
        bool early = model_mutant == WATCHED_BEFORE_IT_IS_IN;
        weft__member_init(child_member(child), &child->task, set,
                          early ? &weft__set_member_ops : &early_ops);
        if (early) weft__member_watch(child_member(child));
        weft__set_lock(set);
        weft__set_enlist(set, child_member(child), &chain);
        weft__waitlist_unlock_push(&set->list, &chain, &weft__sched);
        if (!early) weft__member_watch(child_member(child));
        return;
    }
    (void)weft__set_add((weft_set *)(void *)set, &child->task, NULL, NULL);
}

/* ---- who waits ---- */

static void empty(void)
{
    if (!frees) return;
    weft__set_done((weft_set *)(void *)set);
    model_free(set);
}

/* Takes one out; and again, if it is to empty the set. */
static weft_poll takes(struct actor *actor, weft_cx *cx)
{
    struct weft_set_join_next *f = (void *)actor->frame;
    f->set = set;
    if (cx->why && f->weft__at && model_mutant == KEEPS_ITS_TURN) {
        (void)weft__waitlist_leave(&set->list, WEFT__LEAF_WAITER(f));
        given_up++;
        return WEFT_READY;
    }
    if (weft_set_join_next_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        return WEFT_READY;
    }
    got += (unsigned)f->ret;
    if (f->ret > 0 && frees) empty();
    return WEFT_READY;
}

static weft_poll joins(struct actor *actor, weft_cx *cx)
{
    struct weft_set_join *f = (void *)actor->frame;
    f->set = set;
    if (weft_set_join_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    got++;
    empty();
    return WEFT_READY;
}

static weft_poll lets_go(struct actor *actor, weft_cx *cx)
{
    struct weft_set_detach *f = (void *)actor->frame;
    f->set = set;
    if (model_mutant == LET_GO_AT_ITS_END) {
        (void)weft__member_let_go(child_member(children[0]));
        (void)weft_detach(&children[0]->task);
        model_free(set);
        return WEFT_READY;
    }
    if (weft_set_detach_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    got++;
    empty();
    return WEFT_READY;
}

static weft_poll reserves(struct actor *actor, weft_cx *cx)
{
    struct weft_set_reserve *f = (void *)actor->frame;
    f->set = set;
    if (weft_set_reserve_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
    } else {
        got++;
        weft__set_permit_drop((weft_set *)(void *)set);
    }
    return WEFT_READY;
}

/* ---- the cases ---- */

static struct actor *new_actor(weft_poll (*body)(struct actor *, weft_cx *), uint32_t references)
{
    struct actor *actor = actor_new(body, references);
    memset(actor->frame, 0, sizeof(actor->frame));
    return actor;
}

static void begin(unsigned count, size_t limit)
{
    actors_begin();
    freed = 0;
    frees = false;
    set = model_alloc(sizeof(weft_set));
    memset((void *)set, 0, sizeof(weft_set));
    set->limit = limit;
    for (unsigned i = 0; i < count; i++) {
        children[i] = child_new(1);
        (void)weft__set_try_reserve((weft_set *)(void *)set);
    }
}

static void end(void)
{
    weft__set_done((weft_set *)(void *)set);
    model_free(set);
}

/* It is added, ends, and is taken out by one who then frees the set, all at once. */
static void added_ended_and_freed(void)
{
    begin(1, 0);
    frees = true;
    actors[0] = new_actor(takes, 0);
    model_thread(adds, children[0]);
    model_thread(child_ends, children[0]);
    model_thread(actor_begin, actors[0]);
    model_join();
    model_assert(got == 1);
    model_assert(freed == 1);
}

static void ended_and_freed(void)
{
    begin(1, 0);
    adds(children[0]);
    frees = true;
    actors[0] = new_actor(takes, 0);
    model_thread(child_ends, children[0]);
    model_thread(actor_begin, actors[0]);
    model_join();
    model_assert(got == 1);
    model_assert(freed == 1);
}

/* One ends; of two that wait one is cancelled: the other is not forgotten. */
static void one_is_cancelled(void)
{
    begin(1, 0);
    adds(children[0]);
    actors[0] = new_actor(takes, 1);
    actors[1] = new_actor(takes, 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(child_ends, children[0]);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got == 1);
    model_assert(freed == 1);
    end();
}

static void joined_and_freed(void)
{
    begin(2, 0);
    adds(children[0]);
    adds(children[1]);
    frees = true;
    actors[0] = new_actor(joins, 0);
    model_thread(child_ends, children[0]);
    model_thread(child_ends, children[1]);
    model_thread(actor_begin, actors[0]);
    model_join();
    model_assert(got == 1);
    model_assert(freed == 2);
}

static void let_go_and_freed(void)
{
    begin(1, 0);
    adds(children[0]);
    frees = true;
    actors[0] = new_actor(lets_go, 0);
    model_thread(child_ends, children[0]);
    model_thread(actor_begin, actors[0]);
    model_join();
    model_assert(freed == 1);
}

static void place_becomes_free(void)
{
    begin(1, 1);
    adds(children[0]);
    actors[0] = new_actor(reserves, 1);
    actors[1] = new_actor(reserves, 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(child_ends, children[0]);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got + given_up == 2);
    model_assert(got >= 1);
    actors[2] = new_actor(takes, 0);
    actor_run(actors[2]);
    end();
}

static const struct model_case cases[] = {
    {.name = "set: ends, is taken out, and the set is freed", .run = ended_and_freed, .unbounded = true, .weaken = true},
    {.name = "set: added, ends, is taken out, all at once", .run = added_ended_and_freed, .preemptions = 3, .weaken = true},
    {.name = "set: of two that wait one is cancelled", .run = one_is_cancelled, .preemptions = 3},
    {.name = "set: two end, a join frees the set", .run = joined_and_freed, .preemptions = 2},
    {.name = "set: let go while it ends", .run = let_go_and_freed, .unbounded = true},
    {.name = "set: a place becomes free, a waiter is cancelled", .run = place_becomes_free, .preemptions = 3},
    {.name = "mutant: the end is told by the wake", .run = ended_and_freed, .mutant = ENDED_AT_THE_WAKE, .must_fail = true},
    {.name = "mutant: let go at its very end", .run = let_go_and_freed, .mutant = LET_GO_AT_ITS_END, .must_fail = true},
    {.name = "mutant: a cancelled one keeps its turn", .run = one_is_cancelled, .mutant = KEEPS_ITS_TURN, .must_fail = true},
    {.name = "mutant: watched before it is in", .run = added_ended_and_freed, .mutant = WATCHED_BEFORE_IT_IS_IN, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE,
                                           {"task/waker.c", "", "proven by model_waker"},
                                           {"task/join.c", "", "proven by model_join"},
                                           {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
