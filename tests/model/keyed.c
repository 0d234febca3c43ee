/* SPDX-License-Identifier: MIT
 *
 * Keyed task sets, proven: of two spawns of one key one is refused; who is replaced while it ends, or is taken out, is let go once, and nobody
 * hears of it; and who was on its way when another replaced it does not push that one out.
 */
#define CHILD_BEHIND WEFT__KEYED_BYTES(8)
#include "memory.h"

#include <weft/keyed.h>

#include "children.h"
#include "flow/keyed.c"

static weft_keyed *set;
static const uint64_t the_key = 7;
static int answers[2]; /* of the spawns, by child */

enum {
    HONEST,
    ENTERS_WITHOUT_A_CLAIM,  /* nobody else sees that the key is on its way */
    REPLACES_BY_AN_OLD_LOOK, /* whether the old one has ended was seen before, under another hold of the lock */
    LATE_ONE_REPLACES,       /* it was on its way when another replaced it, and replaces that one */
};

/* ---- broken twins ---- */

static int enter(struct weft__keyed_place *place, bool replaces)
{
    int r = weft__keyed_enter(set, place, &the_key, sizeof(the_key), replaces);
    struct place *p = (struct place *)(void *)place;
    if (r == 0 && !replaces && model_mutant == ENTERS_WITHOUT_A_CLAIM) forget_place(keyed_of(set), p);
    if (r == 0 && model_mutant == LATE_ONE_REPLACES) p->replaces = true;
    return r;
}

static int add_by_an_old_look(weft_task *task)
{
    struct keyed *k = keyed_of(set);
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    struct found *found = found_init(k, task, &the_key);

    weft__member_init(member_of(found), task, &k->set, &weft__set_member_ops);
    keyed_lock(k);
    struct found *old = find(k, &the_key, found->hash);
    bool had_ended = old && member_of(old)->ended;
    weft__waitlist_unlock(&k->set.list);
    keyed_lock(k);
    struct weft_task *gone = old ? member_of(old)->task : NULL;
    (void)put_in(k, found, true, &chain);
    weft__set_unlock(&k->set, &chain);
    weft__member_watch(member_of(found));
    if (had_ended) (void)weft_detach(gone);
    return 0;
}

/* ---- the threads ---- */

/* As the macros do. */
static int spawn(unsigned number, bool replaces)
{
    struct weft__keyed_place place;
    int r = enter(&place, replaces);
    if (r < 0) return r;
    children[number] = child_new((int)number + 1);
    if (replaces && model_mutant == REPLACES_BY_AN_OLD_LOOK)
        return add_by_an_old_look(&children[number]->task);
    return weft__keyed_add(set, &place, &children[number]->task, NULL);
}

static void spawns(void *answer)
{
    unsigned number = (unsigned)((int *)answer - answers);
    answers[number] = spawn(number, false);
}

static void replaces_it(void *unused)
{
    (void)unused;
    answers[1] = spawn(1, true);
}

/* ---- the cases ---- */

static void begin(void)
{
    actors_begin();
    freed = 0;
    answers[0] = answers[1] = 0;
    set = model_alloc(sizeof(*set));
    memset(set, 0, sizeof(*set));
}

/* What comes out next: a child's number and 1; 0: nobody is left. */
static int next(void)
{
    uint64_t key = 0;
    int result = 0;
    int r = weft__keyed_try_join_next(set, &key, &result, sizeof(result));
    model_assert(r >= 0); /* nobody runs any more */
    if (r > 0) model_assert(key == the_key);
    return result;
}

static void end(unsigned count)
{
    model_assert(next() == 0);
    model_assert(freed == count);
    weft__keyed_done(set);
    model_free(set);
}

static void two_spawns(void)
{
    begin();
    model_thread(spawns, &answers[0]);
    model_thread(spawns, &answers[1]);
    model_join();
    unsigned there = answers[0] == 0 ? 0 : 1;
    model_assert(answers[there] == 0);
    model_assert(answers[1 - there] == -EEXIST);
    child_ends(children[there]);
    model_assert(next() == (int)there + 1);
    end(1);
}

static void replaced_at_its_end(void)
{
    begin();
    spawns(&answers[0]);
    model_thread(child_ends, children[0]);
    model_thread(replaces_it, NULL);
    model_join();
    model_assert(answers[0] == 0 && answers[1] == 0);
    child_ends(children[1]);
    model_assert(next() == 2); /* of the old one nobody hears */
    end(2);
}

static weft_poll takes(struct actor *actor, weft_cx *cx)
{
    struct weft_keyed_join_next *f = (void *)actor->frame;
    f->keyed = set;
    if (weft_keyed_join_next_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    model_assert(f->ret == 1);
    got++;
    return WEFT_READY;
}

/* The old one ends, and is taken out, unless it is replaced before: then it is the new one that comes. */
static void replaced_or_taken(void)
{
    begin();
    spawns(&answers[0]);
    actors[0] = actor_new(takes, 0);
    memset(actors[0]->frame, 0, sizeof(actors[0]->frame));
    model_thread(child_ends, children[0]);
    model_thread(replaces_it, NULL);
    model_thread(actor_begin, actors[0]);
    model_join();
    unsigned before = got;
    child_ends(children[1]);
    model_assert(got == 1);
    model_assert(next() == (before == 1 ? 2 : 0));
    end(2);
}

/* Both are in, or the first is refused; what comes out is the one that replaced it. */
static void replaced_on_its_way(void)
{
    begin();
    model_thread(spawns, &answers[0]);
    model_thread(replaces_it, NULL);
    model_join();
    model_assert(answers[1] == 0);
    model_assert(answers[0] == 0 || answers[0] == -EEXIST);
    if (answers[0] == 0) child_ends(children[0]);
    child_ends(children[1]);
    model_assert(next() == 2);
    end(answers[0] == 0 ? 2 : 1);
}

static const struct model_case cases[] = {
    {.name = "keyed: two spawns of one key", .run = two_spawns, .unbounded = true},
    {.name = "keyed: replaced while it ends", .run = replaced_at_its_end, .unbounded = true},
    {.name = "keyed: replaced or taken out", .run = replaced_or_taken, .preemptions = 3},
    {.name = "keyed: replaced on its way", .run = replaced_on_its_way, .unbounded = true},
    {.name = "mutant: it enters without a claim", .run = two_spawns, .mutant = ENTERS_WITHOUT_A_CLAIM, .must_fail = true},
    {.name = "mutant: replaced by an old look", .run = replaced_at_its_end, .mutant = REPLACES_BY_AN_OLD_LOOK, .must_fail = true},
    {.name = "mutant: one that comes late replaces", .run = replaced_on_its_way, .mutant = LATE_ONE_REPLACES, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
