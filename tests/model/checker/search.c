/* SPDX-License-Identifier: MIT
 *
 * search - goes through the choices of a test: who runs, what a load sees, where a store goes, what model_choose answers.
 *
 * An execution is the list of its choices, so it can be run again. The search goes through these lists depth first: run, change the last choice that has
 * an alternative left, run again from the start. Three ways to choose who runs:
 *
 * BOUNDED    At most so many preemptions: switches away from a thread that could have gone on. Complete within the bound; most bugs need two or three.
 *            Where only one thread can be chosen there is no choice to remember.
 * UNBOUNDED  All interleavings, thinned by sleep sets: once all that follows from "t first" has been seen, t sleeps in the alternatives until somebody
 *            does something that t's next step depends on (same address, and not both loads). Not combined with the bound: a bounded search with plain
 *            sleep sets would miss executions, as the order that it skips may be the one that needs fewer preemptions.
 * PCT        Random priorities, lowered at a few random steps (Burckhardt and others, ASPLOS 2010): a bug that needs d ordering constraints is found
 *            with probability at least 1 / (threads * steps^(d-1)) in each run, if it needs no rare choice of what is read.
 *
 * A test must do the same whenever it is given the same choices. One that does not (a static left over from the last execution, an address that decides
 * something) would have the search skip what it never saw: choices that do not fit are reported.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MODEL_THREADS_MAX <= 8, "sets of threads are bytes");

struct choice {
    bool thread;                    /* who runs; else a number below n */
    uint16_t n;
    uint16_t taken;
    uint8_t can;                    /* set of threads that could be chosen, in this search */
    uint8_t done;                   /* set of threads whose alternatives have been gone through */
    uint8_t asleep;                 /* sleep set on arrival */
};

static struct choice path[CHOICES_MAX];
static unsigned path_length;        /* choices known */
static unsigned path_at;            /* choices made in this execution */
static unsigned preemptions;
static int last_node;               /* the last thread choice made; -1: none */
static bool replaying;

static struct op step;              /* what the step that is running does, for sleep sets */

void model__search_reset(void)
{
    path_at = 0;
    preemptions = 0;
    last_node = -1;
    step = (struct op){0};
}

/* ---- a path as text: "0.2.1x5", choice after choice, x for repeats ---- */

void model__path_text(char *into, size_t bytes)
{
    size_t used = 0;
    if (path_at == 0) snprintf(into, bytes, ".");
    for (unsigned i = 0; i < path_at;) {
        unsigned same = 1;
        while (i + same < path_at && path[i + same].taken == path[i].taken)
            same++;
        if (used + 16 > bytes) {
            snprintf(into, bytes, "(longer than %zu characters)", bytes);
            return;
        }
        used += (size_t)snprintf(into + used, bytes - used, "%s%u", i ? "." : "", path[i].taken);
        if (same > 2) {
            used += (size_t)snprintf(into + used, bytes - used, "x%u", same);
        } else {
            same = 1;
        }
        i += same;
    }
}

static void load_path(const char *text)
{
    path_length = 0;
    for (const char *at = text; *at;) {
        char *end;
        unsigned long taken = strtoul(at, &end, 10);
        unsigned long same = end == at ? 0 : 1;
        if (*end == 'x') same = strtoul(end + 1, &end, 10);
        for (; same > 0 && path_length < CHOICES_MAX; same--)
            path[path_length++] = (struct choice){.taken = (uint16_t)taken};
        at = *end ? end + 1 : end;
    }
}

/* ---- randomness: splitmix64, seeded per execution ---- */

static uint64_t random_state;

static uint64_t random_next(void)
{
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static unsigned random_below(unsigned n)
{
    return (unsigned)(random_next() % n);
}

static bool randomised(void)
{
    return model__case->pct_depth && !replaying;
}

/* ---- numbers ---- */

static struct choice *choice_new(void)
{
    if (path_length == CHOICES_MAX)
        model__fail_limit("an execution of over %d choices: an endless loop?", CHOICES_MAX);
    return &path[path_length++];
}

static void fail_unlike(void)
{
    if (replaying) model__fail("the path to replay does not fit this program");
    model__fail("the test is not the same each time: it must set up all that it uses");
}

unsigned model__choose(unsigned n)
{
    if (n <= 1) return 0;
    if (path_at == path_length) {
        /* Every other choice of a randomised run is the first, which is the newest store: all old would be too unlike real runs. */
        unsigned taken = randomised() && random_below(2) ? random_below(n) : 0;
        *choice_new() = (struct choice){.n = (uint16_t)n, .taken = (uint16_t)taken};
    } else if (replaying ? path[path_at].taken >= n
                         : path[path_at].thread || path[path_at].n != n) {
        fail_unlike();
    }
    return path[path_at++].taken;
}

unsigned model_choose(unsigned n)
{
    if (n == 0 || n > UINT16_MAX) model__fail("model_choose(%u): one of 1 to %u", n, UINT16_MAX);
    return model__choose(n);
}

/* ---- sleep sets ---- */

void model__step_is(enum op_kind kind, const volatile void *address)
{
    step = (struct op){kind, address};
}

/* Does the order of t's pending step and the one just done matter? Who looks at all that it has seen (yield, a wait that may time out) depends on
 * every write. */
static bool dependent(const struct thread *t)
{
    const struct op *next = &t->op;
    if (next->kind == OP_BARRIER || step.kind == OP_BARRIER)
        return true; /* it falls between two steps of each thread */
    if (next->kind == OP_YIELD || next->kind == OP_JOIN || (next->kind == OP_SLEEP && t->timed))
        return true;
    if (step.kind == OP_YIELD || step.kind == OP_SLEEP) return next->kind != OP_LOAD;
    return step.address == next->address && !(step.kind == OP_LOAD && next->kind == OP_LOAD);
}

static unsigned sleep_set_here(void)
{
    unsigned mask = 0;
    if (!model__case->unbounded || last_node < 0) return 0;
    unsigned before = path[last_node].asleep | path[last_node].done;
    for (unsigned i = 0; i < model__thread_count; i++)
        if (before >> i & 1 && !dependent(&model__threads[i])) mask |= 1u << i;
    return mask;
}

/* ---- who runs ---- */

static unsigned lowest_of(unsigned mask)
{
    return (unsigned)__builtin_ctz(mask);
}

/* The running thread first: going on costs nothing. */
static unsigned preferred(unsigned mask)
{
    return mask >> model__current & 1 ? model__current : lowest_of(mask);
}

static unsigned preemption_bound(void)
{
    return model__case->preemptions ? model__case->preemptions : MODEL_PREEMPTIONS;
}

/* A thread that yields or goes to sleep gives way of its own accord: to leave it is no preemption, even if its wait could time out at once. */
static bool goes_on(unsigned enabled)
{
    const struct thread *t = self();
    return enabled >> model__current & 1 && t->op.kind != OP_YIELD &&
           (t->op.kind != OP_SLEEP || t->woken);
}

static uint64_t pct_change_at[16];

static unsigned pick_by_priority(unsigned can)
{
    struct thread *t = self();
    for (unsigned i = 0; i + 1 < model__case->pct_depth && i < 16; i++)
        if (pct_change_at[i] == model__step) t->priority = -(int)i - 1;
    if (t->op.kind == OP_YIELD) t->priority = -1000 - (int)model__step;
    unsigned best = lowest_of(can);
    for (unsigned i = 0; i < model__thread_count; i++)
        if (can >> i & 1 && model__threads[i].priority > model__threads[best].priority) best = i;
    return best;
}

int model__priority_new(void)
{
    return randomised() ? (int)random_below(1 << 20) + 1 : 0;
}

static unsigned pick_new(unsigned can)
{
    unsigned asleep = sleep_set_here();
    unsigned awake = can & ~asleep;
    if (!awake) model__prune();
    unsigned taken = model__case->pct_depth ? pick_by_priority(can) : preferred(awake);
    *choice_new() = (struct choice){
        .thread = true, .taken = (uint16_t)taken, .can = (uint8_t)can, .asleep = (uint8_t)asleep};
    return taken;
}

static unsigned pick_known(unsigned can)
{
    const struct choice *c = &path[path_at];
    if (!replaying && (!c->thread || c->can != can)) fail_unlike();
    if (c->taken >= MODEL_THREADS_MAX || !(can >> c->taken & 1)) fail_unlike();
    return c->taken;
}

unsigned model__pick(unsigned enabled)
{
    bool every_step = model__case->unbounded || model__case->pct_depth;
    bool could_go_on = goes_on(enabled);
    unsigned can = could_go_on && !every_step && preemptions >= preemption_bound()
                       ? 1u << model__current
                       : enabled;
    unsigned next = lowest_of(can);

    if (every_step || can & (can - 1)) {
        next = path_at < path_length ? pick_known(can) : pick_new(can);
        last_node = (int)path_at++;
    }
    if (could_go_on && next != model__current) preemptions++;
    return next;
}

/* ---- the next path ---- */

/* Change the last choice that has an alternative; false: there is none left. */
static bool advance(void)
{
    path_length = path_at;
    for (; path_length > 0; path_length--) {
        struct choice *c = &path[path_length - 1];
        if (!c->thread) {
            if (c->taken + 1 == c->n) continue;
            c->taken++;
            return true;
        }
        c->done |= (uint8_t)(1u << c->taken);
        unsigned left = c->can & ~(unsigned)c->done & ~(unsigned)c->asleep;
        if (!left) continue;
        c->taken = (uint16_t)lowest_of(left);
        return true;
    }
    return false;
}

static void prepare_random(uint64_t run, unsigned longest)
{
    random_state = model__case->seed ? model__case->seed : model__seed;
    random_state = random_next() + run; /* mixed: neighbouring seeds must not share their runs */
    path_length = 0;
    for (unsigned i = 0; i < 16; i++)
        pct_change_at[i] = 1 + random_below(longest);
}

static void count_execution(enum outcome how)
{
    model__result.steps += model__step;
    if (how == PRUNED) {
        model__result.pruned++;
    } else {
        model__result.executions++;
    }
}

static void explore(uint64_t limit)
{
    unsigned longest = 0;           /* execution so far: where PCT may lower a priority */
    for (uint64_t run = 0; run < limit; run++) {
        if (randomised()) prepare_random(run, longest ? longest : 50);
        enum outcome how = model__execute();
        if (how == AGAIN) {
            if (!replaying) path_length = 0;
            run--;
            continue;
        }
        count_execution(how);
        if (model__step > longest) longest = model__step;
        if (how == FAILED || replaying) break;
        if (!model__case->pct_depth && !advance()) {
            model__result.exhausted = true;
            break;
        }
    }
}

static struct model_result run(const struct model_case *c, const char *replay)
{
    uint64_t limit = c->executions_max ? c->executions_max : c->pct_depth ? 20000 : UINT64_MAX;

    model__case = c;
    memset(&model__result, 0, sizeof(model__result));
    path_length = 0;
    replaying = replay != NULL;
    if (replay) load_path(replay);
    model__run_reset();
    explore(limit);
    model__plain_reset();
    return model__result;
}

struct model_result model_run(const struct model_case *c)
{
    return run(c, model__replay);
}

struct model_result model_replay(const struct model_case *c, const char *along)
{
    return run(c, along);
}
