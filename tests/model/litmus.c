/* SPDX-License-Identifier: MIT
 *
 * The checker on trial: known litmus tests must show exactly the outcomes that RC11 allows.
 *
 * Each test collects the results of all its executions as a set; the set must equal the expected one. Outcomes are written as digits, one per observed
 * value, e.g. "00 01 10 11" for two loads. Load-buffering cycles are not there: RC11 forbids them.
 */
#include "base/atomic.h"

#include <stdio.h>
#include <string.h>

static _Atomic int x, y;
static int a, b, c, d;

static void start(void (*const *threads)(void *), unsigned count)
{
    store_relaxed(&x, 0);
    store_relaxed(&y, 0);
    a = b = c = d = 9;
    for (unsigned i = 0; i < count; i++) model_thread(threads[i], NULL);
    model_join();
}

/* ---- the set of outcomes ---- */

static char seen[64][8];
static unsigned seen_count;

static void saw(const char *outcome)
{
    for (unsigned i = 0; i < seen_count; i++)
        if (strcmp(seen[i], outcome) == 0) return;
    snprintf(seen[seen_count++], sizeof(seen[0]), "%s", outcome);
}

static void saw2(int p, int q)
{
    char text[8];
    snprintf(text, sizeof(text), "%d%d", p % 10, q % 10);
    saw(text);
}

/* ---- a litmus test: threads as bodies, and what to look at ---- */

#define THREAD(name, body)                                                                                             \
    static void name(void *unused)                                                                                     \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        body;                                                                                                          \
    }
#define TEST2(name, body1, body2, observe)                                                                             \
    THREAD(name##_1, body1)                                                                                            \
    THREAD(name##_2, body2)                                                                                            \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        start((void (*const[])(void *)){name##_1, name##_2}, 2);                                                       \
        observe;                                                                                                       \
    }
#define TEST3(name, body1, body2, body3, observe)                                                                      \
    THREAD(name##_1, body1)                                                                                            \
    THREAD(name##_2, body2)                                                                                            \
    THREAD(name##_3, body3)                                                                                            \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        start((void (*const[])(void *)){name##_1, name##_2, name##_3}, 3);                                             \
        observe;                                                                                                       \
    }
#define TEST4(name, body1, body2, body3, body4, observe)                                                               \
    THREAD(name##_1, body1)                                                                                            \
    THREAD(name##_2, body2)                                                                                            \
    THREAD(name##_3, body3)                                                                                            \
    THREAD(name##_4, body4)                                                                                            \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        start((void (*const[])(void *)){name##_1, name##_2, name##_3, name##_4}, 4);                                   \
        observe;                                                                                                       \
    }

/* Message passing: y is the flag, x the message; a = flag seen, b = message seen. */
TEST2(mp_relaxed, store_relaxed(&x, 1); store_relaxed(&y, 1), a = load_relaxed(&y); b = load_relaxed(&x), saw2(a, b))
TEST2(mp_release_acquire, store_relaxed(&x, 1); store_release(&y, 1), a = load_acquire(&y); b = load_relaxed(&x), saw2(a, b))
TEST2(mp_release_relaxed, store_relaxed(&x, 1); store_release(&y, 1), a = load_relaxed(&y); b = load_relaxed(&x), saw2(a, b))
TEST2(mp_fences, store_relaxed(&x, 1); fence_release(); store_relaxed(&y, 1), a = load_relaxed(&y); fence_acquire(); b = load_relaxed(&x), saw2(a, b))
TEST2(mp_acquire_fence_only, store_relaxed(&x, 1); store_relaxed(&y, 1), a = load_relaxed(&y); fence_acquire(); b = load_relaxed(&x), saw2(a, b))
TEST3(mp_release_sequence, store_relaxed(&x, 1); store_release(&y, 1), fetch_add_relaxed(&y, 1), a = load_acquire(&y); b = load_relaxed(&x), saw2(a, b))

/* Store buffering. */
TEST2(sb_relaxed, store_relaxed(&x, 1); a = load_relaxed(&y), store_relaxed(&y, 1); b = load_relaxed(&x), saw2(a, b))
TEST2(sb_release_acquire, store_release(&x, 1); a = load_acquire(&y), store_release(&y, 1); b = load_acquire(&x), saw2(a, b))
TEST2(sb_fences, store_relaxed(&x, 1); fence_seq_cst(); a = load_relaxed(&y), store_relaxed(&y, 1); fence_seq_cst(); b = load_relaxed(&x), saw2(a, b))
TEST2(sb_one_fence, store_relaxed(&x, 1); fence_seq_cst(); a = load_relaxed(&y), store_relaxed(&y, 1); b = load_relaxed(&x), saw2(a, b))
TEST2(sb_membarrier, store_relaxed(&x, 1); model_membarrier();
      a = load_relaxed(&y), store_relaxed(&y, 1); b = load_relaxed(&x), saw2(a, b))
TEST2(sb_seq_cst, store_seq_cst(&x, 1); a = load_seq_cst(&y), store_seq_cst(&y, 1); b = load_seq_cst(&x), saw2(a, b))
TEST2(sb_seq_cst_stores, store_seq_cst(&x, 1); a = load_relaxed(&y), store_seq_cst(&y, 1); b = load_relaxed(&x), saw2(a, b))
TEST2(sb_fence_against_seq_cst, store_relaxed(&x, 1); fence_seq_cst(); a = load_relaxed(&y), store_seq_cst(&y, 1); b = load_seq_cst(&x), saw2(a, b))
TEST2(sb_rmw, exchange_acq_rel(&x, 1); a = load_acquire(&y), exchange_acq_rel(&y, 1); b = load_acquire(&x), saw2(a, b))

/* Load buffering: the cycle 11 is forbidden by RC11 at every order. */
TEST2(lb_relaxed, a = load_relaxed(&x); store_relaxed(&y, 1), b = load_relaxed(&y); store_relaxed(&x, 1), saw2(a, b))

/* Independent reads of independent writes: 1010 means that the readers disagree. */
TEST4(iriw_acquire, store_release(&x, 1), store_release(&y, 1), a = load_acquire(&x); b = load_acquire(&y), c = load_acquire(&y); d = load_acquire(&x),
      if (a == 1 && b == 0 && c == 1 && d == 0) saw("split"); else saw("other"))
TEST4(iriw_seq_cst, store_seq_cst(&x, 1), store_seq_cst(&y, 1), a = load_seq_cst(&x); b = load_seq_cst(&y), c = load_seq_cst(&y); d = load_seq_cst(&x),
      if (a == 1 && b == 0 && c == 1 && d == 0) saw("split"); else saw("other"))
TEST4(iriw_fences, store_relaxed(&x, 1), store_relaxed(&y, 1), a = load_relaxed(&x); fence_seq_cst(); b = load_relaxed(&y),
      c = load_relaxed(&y); fence_seq_cst(); d = load_relaxed(&x), if (a == 1 && b == 0 && c == 1 && d == 0) saw("split"); else saw("other"))

/* Coherence. */
TEST2(corr, store_relaxed(&x, 1); store_relaxed(&x, 2), a = load_relaxed(&x); b = load_relaxed(&x), saw2(a, b))
TEST4(corr_two_writers, store_relaxed(&x, 1), store_relaxed(&x, 2), a = load_relaxed(&x); b = load_relaxed(&x), c = load_relaxed(&x); d = load_relaxed(&x),
      if (a == 1 && b == 2 && c == 2 && d == 1) saw("split"); else saw("other"))
TEST2(cowr, store_relaxed(&x, 1); a = load_relaxed(&x), store_relaxed(&x, 2); b = load_relaxed(&x), saw2(a, b))
/* The own write comes after what was read: reading 2 and then writing 1 leaves 1. */
TEST2(corw, a = load_relaxed(&x); store_relaxed(&x, 1), store_relaxed(&x, 2), saw2(a, load_relaxed(&x)))
/* Two writes each, crosswise: both first writes may come last, unless they release. */
TEST2(two_plus_two_w, store_relaxed(&x, 1); store_relaxed(&y, 2), store_relaxed(&y, 1); store_relaxed(&x, 2), saw2(load_relaxed(&x), load_relaxed(&y)))
TEST2(two_plus_two_w_fences, store_relaxed(&x, 1); fence_seq_cst(); store_relaxed(&y, 2), store_relaxed(&y, 1); fence_seq_cst(); store_relaxed(&x, 2),
      saw2(load_relaxed(&x), load_relaxed(&y)))

/* RMWs lose nothing. */
TEST3(counter, fetch_add_relaxed(&x, 1), fetch_add_relaxed(&x, 1), fetch_add_relaxed(&x, 1), saw2(load_relaxed(&x), 0))
static void cas_once(int *into)
{
    int zero = 0;
    *into = cas_relaxed(&x, &zero, 1);
}
TEST2(cas_one_winner, cas_once(&a), cas_once(&b), saw2(a, b))

/* Write-to-read causality. */
TEST3(wrc_acquire, store_relaxed(&x, 1), if (load_acquire(&x)) store_release(&y, 1), a = load_acquire(&y); b = load_relaxed(&x), saw2(a, b))
TEST3(wrc_relaxed, store_relaxed(&x, 1), if (load_relaxed(&x)) store_relaxed(&y, 1), a = load_relaxed(&y); b = load_relaxed(&x), saw2(a, b))
/* A chain of relaxed accesses around a seq_cst fence on each end is no ordering between the fences: 10 is allowed. */
static _Atomic int z;
TEST3(relaxed_relay, store_relaxed(&x, 1); fence_seq_cst(); store_relaxed(&y, 1), if (load_relaxed(&y)) store_relaxed(&z, 1),
      a = load_relaxed(&z); fence_seq_cst(); b = load_relaxed(&x), saw2(a, b); store_relaxed(&z, 0))
/* An old value may be read by a seq_cst load even though its thread knows, relaxed, that the seq_cst store was made: 10 is allowed. */
TEST2(seq_cst_read_after_relaxed_hint, store_seq_cst(&x, 1); store_relaxed(&y, 1), a = load_relaxed(&y); b = load_seq_cst(&x), saw2(a, b))

struct litmus {
    const char *name;
    void (*run)(void);
    const char *outcomes;           /* all that are allowed, in any order */
};

static const struct litmus litmus[] = {
    {"MP relaxed", mp_relaxed, "00 01 10 11"},
    {"MP release/acquire", mp_release_acquire, "00 01 11"},
    {"MP release/relaxed", mp_release_relaxed, "00 01 10 11"},
    {"MP release fence/acquire fence", mp_fences, "00 01 11"},
    {"MP acquire fence alone", mp_acquire_fence_only, "00 01 10 11"},
    {"MP through an RMW (release sequence)", mp_release_sequence, "00 01 10 11 21"},
    {"SB relaxed", sb_relaxed, "00 01 10 11"},
    {"SB release/acquire", sb_release_acquire, "00 01 10 11"},
    {"SB with seq_cst fences", sb_fences, "01 10 11"},
    {"SB with one seq_cst fence", sb_one_fence, "00 01 10 11"},
    {"SB with a membarrier, which is the other's fence as well", sb_membarrier, "01 10 11"},
    {"SB seq_cst", sb_seq_cst, "01 10 11"},
    {"SB seq_cst stores, relaxed loads", sb_seq_cst_stores, "00 01 10 11"},
    {"SB fence against seq_cst accesses", sb_fence_against_seq_cst, "01 10 11"},
    {"SB with acq_rel RMWs (no fence in C11)", sb_rmw, "00 01 10 11"},
    {"LB relaxed", lb_relaxed, "00 01 10"},
    {"IRIW acquire", iriw_acquire, "split other"},
    {"IRIW seq_cst", iriw_seq_cst, "other"},
    {"IRIW seq_cst fences", iriw_fences, "other"},
    {"CoRR", corr, "00 01 02 11 12 22"},
    {"CoRR, two writers", corr_two_writers, "other"},
    {"CoWR", cowr, "12 11 22"},
    {"CoRW", corw, "01 21 02"},
    {"2+2W relaxed", two_plus_two_w, "11 12 21 22"},
    {"2+2W seq_cst fences", two_plus_two_w_fences, "12 21 22"},
    {"three increments", counter, "30"},
    {"CAS has one winner", cas_one_winner, "01 10"},
    {"WRC acquire", wrc_acquire, "00 01 11"},
    {"WRC relaxed", wrc_relaxed, "00 01 10 11"},
    {"relaxed relay between seq_cst fences", relaxed_relay, "00 01 10 11"},
    {"seq_cst load after a relaxed hint", seq_cst_read_after_relaxed_hint, "00 01 10 11"},
};

static unsigned words(const char *text)
{
    unsigned count = 0;
    for (; *text; text++) count += text[0] != ' ' && (text[1] == ' ' || !text[1]);
    return count;
}

static bool check(const struct litmus *l, bool unbounded)
{
    struct model_case c = {.name = l->name, .run = l->run, .preemptions = 20, .unbounded = unbounded};
    seen_count = 0;
    struct model_result r = model_run(&c);
    bool ok = !r.failed && r.exhausted && seen_count == words(l->outcomes);
    for (unsigned i = 0; i < seen_count; i++) ok = ok && strstr(l->outcomes, seen[i]);
    printf("%-6s %-42s %-17s %7llu executions, %6llu cut:", ok ? "ok" : "FAILED", l->name, unbounded ? "sleep sets" : "all interleavings",
           (unsigned long long)r.executions, (unsigned long long)r.pruned);
    for (unsigned i = 0; i < seen_count; i++) printf(" %s", seen[i]);
    if (!ok) printf("   (allowed: %s) %s", l->outcomes, r.why);
    printf("\n");
    return ok;
}

int main(void)
{
    unsigned failed = 0;
    for (size_t i = 0; i < MODEL_COUNT(litmus); i++) {
        failed += !check(&litmus[i], false);
        failed += !check(&litmus[i], true);
    }
    printf("%zu litmus tests, each searched twice, %u failed\n", MODEL_COUNT(litmus), failed);
    return failed ? 1 : 0;
}
