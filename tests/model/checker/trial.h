/* SPDX-License-Identifier: MIT
 *
 * trial - what the checker's own tests share: run a small test, and say what the checker must make of it.
 */
#ifndef MODEL_TRIAL_H
#define MODEL_TRIAL_H

#include "model.h"

#include <stdio.h>
#include <string.h>

static unsigned trial_count;
static unsigned trial_failed;

static inline bool trial(bool ok, const char *name, const char *what)
{
    trial_count++;
    if (ok) return true;
    trial_failed++;
    printf("FAILED   %s: %s\n", name, what);
    return false;
}

static inline int trial_end(const char *program)
{
    printf("%s: %u checks, %u failed\n", program, trial_count, trial_failed);
    return trial_failed ? 1 : 0;
}

/* ---- the set of outcomes of all executions ---- */

#define TRIAL_OUTCOMES_MAX 64

struct trial_set {
    unsigned count;
    unsigned value[TRIAL_OUTCOMES_MAX];
};

static struct trial_set trial_seen;

static inline void saw(unsigned value)
{
    for (unsigned i = 0; i < trial_seen.count; i++)
        if (trial_seen.value[i] == value) return;
    if (trial_seen.count < TRIAL_OUTCOMES_MAX) trial_seen.value[trial_seen.count++] = value;
}

static inline bool trial_has(const struct trial_set *s, unsigned value)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->value[i] == value) return true;
    return false;
}

static inline bool trial_same(const struct trial_set *a, const struct trial_set *b)
{
    if (a->count != b->count) return false;
    for (unsigned i = 0; i < a->count; i++)
        if (!trial_has(b, a->value[i])) return false;
    return true;
}

#endif
