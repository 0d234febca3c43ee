/* SPDX-License-Identifier: MIT
 *
 * round - when a spinning thread may go on, and what it then sees.
 *
 * A round is what a thread does between two yields (or time-outs). It goes on with the next round only if that could differ from the last:
 *     a location that it looked at has another value since, or had one that it did not see
 *     it has itself left something changed
 *     a lock that it found busy was dropped, or it has looked at nothing at all
 * In the next round a location that has got another value is seen no older than the first such store. So every value can be seen in a loop, a loop that
 * spins ends, and one that nobody will end is found: if nobody else can run, spinning threads are let through SPINS_MAX more times (a bounded spin gives
 * up), then it counts as endless.
 *
 * What is left out: executions in which a round sees the same again. They differ from those that are run by nothing but the number of rounds.
 * Rejected: "the newest values after a yield", as it hides what a loop may see of old data; "any write lets it go on", as a test-and-set lock then spins
 * for ever on its own writes.
 */
#include "internal.h"

#include <string.h>

static bool looked_at(const struct thread *t, unsigned loc)
{
    return t->looked[loc / 64] >> loc % 64 & 1;
}

static bool wrote_to(const struct thread *t, unsigned loc)
{
    return t->wrote[loc / 64] >> loc % 64 & 1;
}

void model__note_look(const struct loc *l, const struct store *s)
{
    struct thread *t = self();
    struct look *look = &t->look[l->index];
    if (!looked_at(t, l->index)) {
        look->first_key = s->key;
        look->first_value = s->value;
    }
    t->looked[l->index / 64] |= 1ull << l->index % 64;
    look->last_key = s->key;
    look->last_value = s->value;
}

/* Before the store is made. */
void model__note_write(const struct loc *l)
{
    struct thread *t = self();
    if (wrote_to(t, l->index)) return;
    t->wrote[l->index / 64] |= 1ull << l->index % 64;
    t->look[l->index].before = l->mo[l->count - 1]->value;
}

/* The first store by somebody else, after `key`, of another value than `seen`; NULL: none. Stores of the same value are no news: two threads that exchange
 * 1 for 1 would keep each other going. */
static const struct store *news(const struct thread *t, const struct loc *l, uint32_t key,
                                uint64_t seen)
{
    for (unsigned i = model__first_from(l, key + 1); i < l->count; i++)
        if (l->mo[i]->value != seen && &model__threads[l->mo[i]->thread] != t) return l->mo[i];
    return NULL;
}

/* What the next round must see at least. Since the last look; or, if that was the newest, since the first: the round saw two values, the next one will
 * see the same twice. */
static const struct store *news_of_round(const struct thread *t, const struct loc *l)
{
    const struct look *look = &t->look[l->index];
    const struct store *s = news(t, l, look->last_key, look->last_value);
    return s ? s : news(t, l, look->first_key, look->first_value);
}

bool model__round_worthwhile(const struct thread *t)
{
    bool looked = t->found_busy;
    if (t->found_busy && model__drops != t->found_busy_drops) return true;
    for (unsigned i = 0; i < model__loc_count; i++) {
        const struct loc *l = &model__locs[i];
        if (!looked_at(t, i)) continue;
        looked = true;
        if (news_of_round(t, l)) return true;
        if (wrote_to(t, i) && l->mo[l->count - 1]->value != t->look[i].before) return true;
    }
    return !looked;
}

static void least_grow(struct thread *t, unsigned locs)
{
    for (; t->least_locs < locs; t->least_locs++)
        t->least[t->least_locs] = 0;
}

void model__round_new(struct thread *t)
{
    least_grow(t, model__loc_count);
    for (unsigned i = 0; i < model__loc_count; i++) {
        const struct loc *l = &model__locs[i];
        if (!looked_at(t, i)) continue;
        const struct store *next = news_of_round(t, l);
        if (next && next->key > t->least[i]) t->least[i] = next->key;
    }
    memset(t->looked, 0, sizeof(t->looked));
    memset(t->wrote, 0, sizeof(t->wrote));
    t->found_busy = false;
}
