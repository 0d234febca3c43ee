/* SPDX-License-Identifier: MIT
 *
 * order - the seq_cst part of RC11: the relation psc over seq_cst events must have no cycle.
 *
 * seq_cst fences and accesses are nodes (at most 64, so sets are masks); edges are added as the execution grows; an edge that closes a cycle means that
 * the execution is one that RC11 forbids, and it is cut short. In RC11's words (Lahav, Vafeiadis, Kang, Hur, Dreyer, PLDI 2017), with eco for
 * rf, mo, fr and what follows from them:
 *     psc_F     a fence is before a fence that it happens before, or if    fence hb a eco b hb fence
 *     psc_base  a fence or access is before another by                      (access, or fence hb?)  scb  (access, or hb? fence)
 *     scb       sb, or sb to another location hb sb from another location, or hb at one location, or mo, or fr
 * Each fence keeps, per location, the last access before it (its thread's view) and the first access after it that anybody made so far: then "a eco b" is
 * one comparison of codes (internal.h). Nothing here depends on the order in which the checker happened to run the events: a fence is no scheduling
 * point.
 *
 * EXACT  Edges are drawn from a fence to every access that it happens before, and from an access to every fence that it happens before, though RC11 has
 *        them only for some of the ways to happen before. Such an edge closes no cycle that RC11 does not have: psc_base leaves an access a by scb only,
 *        so for   fence hb a, a scb n   it has   fence (hb scb) n   as well, and the same mirrored for   n scb a, a hb fence.
 *        tests/model/oracle compares all this with the axioms, on random programs.
 * sb to another location  means also a fence, a plain access, a lock, the start or end of a thread: all but an access of the same address.
 */
#include "internal.h"

#include <string.h>

#define NO_CODE UINT32_MAX

struct event {
    bool fence;
    const struct loc *loc;          /* of an access */
    code lowest;                    /* of an access: its read, or its write if it reads nothing */
    code write;                     /* of an access: 0 if it writes nothing */
    unsigned locs;
    struct known before[LOCS_MAX];  /* of a fence: the last access and the last write before it */
    unsigned after_locs;
    code after[LOCS_MAX];           /* the first access after it, NO_CODE if none */
};

static struct event events[SC_MAX];
static uint64_t reach[SC_MAX];      /* what comes after each event */
static unsigned event_count;
static uint64_t fences;
static uint64_t accesses;

#define EACH_BIT(i, mask)                                                                          \
    for (uint64_t rest_ = (mask); rest_ && (i = (unsigned)__builtin_ctzll(rest_), 1);              \
         rest_ &= rest_ - 1)

void model__order_reset(void)
{
    event_count = 0;
    fences = 0;
    accesses = 0;
}

static void edge(unsigned from, unsigned to)
{
    uint64_t gain = reach[to] | 1ull << to;
    if (from == to || reach[to] >> from & 1) model__prune();
    if (!(gain & ~reach[from])) return;
    for (unsigned i = 0; i < event_count; i++)
        if (i == from || reach[i] >> from & 1) reach[i] |= gain;
}

static unsigned event_new(bool fence)
{
    if (event_count == SC_MAX)
        model__fail_limit("too many seq_cst events in one execution (SC_MAX)");
    unsigned e = event_count++;
    reach[e] = 0;
    events[e].fence = fence;
    if (fence) {
        fences |= 1ull << e;
    } else {
        accesses |= 1ull << e;
    }
    return e;
}

static code before_seen(const struct event *f, const struct loc *l)
{
    return l->index < f->locs ? f->before[l->index].seen : 0;
}

static code before_wrote(const struct event *f, const struct loc *l)
{
    return l->index < f->locs ? f->before[l->index].wrote : 0;
}

static code after(const struct event *f, const struct loc *l)
{
    return l->index < f->after_locs ? f->after[l->index] : NO_CODE;
}

/* ---- "another location", for scb: which own accesses had been left for another location, and when ---- */

static uint64_t own_elsewhere(const struct thread *t, const struct loc *l)
{
    uint64_t mask = 0;
    unsigned i;
    EACH_BIT(i, t->own_sc) if (events[i].loc != l) mask |= 1ull << i;
    return mask;
}

static void at_location(const struct loc *l)
{
    struct thread *t = self();
    t->now.departed |= own_elsewhere(t, l);
    if (l != t->last_loc) t->departed_other = t->departed_last;
    t->last_loc = l;
    t->departed_last = t->now.departed;
}

void model__order_elsewhere(void)
{
    if (accesses) at_location(NULL); /* before the first seq_cst access nobody departs from one */
}

void model__order_plain(const struct loc *l)
{
    if (accesses) at_location(l);
}

/* ---- fences ---- */

static bool fence_precedes_by_eco(const struct event *f, const struct view *v)
{
    unsigned locs = f->after_locs < v->locs ? f->after_locs : v->locs;
    for (unsigned i = 0; i < locs; i++)
        if (f->after[i] < v->loc[i].seen) return true;
    return false;
}

void model__order_fence(void)
{
    struct view *now = &self()->now;
    unsigned e = event_new(true);
    struct event *f = &events[e];
    unsigned i;

    model__order_elsewhere();
    f->locs = now->locs;
    f->after_locs = 0;
    memcpy(f->before, now->loc, now->locs * sizeof(now->loc[0]));
    EACH_BIT(i, now->sc) edge(i, e);
    EACH_BIT(i, fences & ~(1ull << e)) if (fence_precedes_by_eco(&events[i], now)) edge(i, e);
    EACH_BIT(i, accesses) if (events[i].lowest < before_wrote(f, events[i].loc)) edge(i, e);
    now->sc |= 1ull << e;
}

unsigned model__order_newest(void)
{
    return event_count - 1;
}

void model__order_before(unsigned fence, unsigned other)
{
    edge(fence, other);
}

/* ---- accesses ---- */

/* The access comes after fence f: f is before every fence and every seq_cst write that the access is eco-before. */
static void access_after_fence(unsigned fence, const struct loc *l, code lowest)
{
    struct event *f = &events[fence];
    unsigned i;

    if (lowest >= after(f, l)) return;
    for (; f->after_locs <= l->index; f->after_locs++)
        f->after[f->after_locs] = NO_CODE;
    f->after[l->index] = lowest;
    EACH_BIT(i, fences) if (before_seen(&events[i], l) > lowest) edge(fence, i);
    EACH_BIT(i, accesses) if (events[i].loc == l && events[i].write > lowest) edge(fence, i);
}

static void seq_cst_access(const struct loc *l, code lowest, code write, uint64_t departed)
{
    struct thread *t = self();
    unsigned e = event_new(false);
    unsigned i;

    events[e].loc = l;
    events[e].lowest = lowest;
    events[e].write = write;
    EACH_BIT(i, t->own_sc) edge(i, e);
    EACH_BIT(i, t->now.sc)
    if (events[i].fence || events[i].loc == l || departed >> i & 1) edge(i, e);
    EACH_BIT(i, accesses & ~(1ull << e))
    {
        if (events[i].loc != l) continue;
        if (events[i].lowest < write) edge(i, e);
        if (lowest < events[i].write) edge(e, i);
    }
    EACH_BIT(i, fences)
    {
        if (after(&events[i], l) < write) edge(i, e);
        if (lowest < before_wrote(&events[i], l)) edge(e, i);
    }
    t->own_sc |= 1ull << e;
    t->now.sc |= 1ull << e;
}

void model__order_access(struct loc *l, bool reads, uint32_t read_key, bool writes,
                         uint32_t write_key, bool seq_cst)
{
    struct thread *t = self();
    uint64_t known_fences = t->now.sc & fences;
    if (!known_fences && !seq_cst && !accesses) return;

    code write = writes ? 2 * write_key : 0;
    code lowest = reads ? 2 * read_key + 1 : write;
    uint64_t departed = t->last_loc != l ? t->departed_last : t->departed_other;
    unsigned i;

    EACH_BIT(i, known_fences) access_after_fence(i, l, lowest);
    if (seq_cst) seq_cst_access(l, lowest, write, departed);
    at_location(l);
}
