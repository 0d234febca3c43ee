/* SPDX-License-Identifier: MIT
 *
 * random_litmus - reads litmus programs, one per line (rc11.py says how they are written), and prints the outcomes that the checker finds.
 *
 * Each program is searched twice: by the bounded search with more preemptions than any execution has, and by sleep sets. The two answers stand on one
 * line each, in no particular order of outcomes; compare.py compares them with what RC11 allows. The bounded search goes through every interleaving, and
 * is cut off in large programs; its line then ends with "more".
 */
#include "model.h"
#include "model_atomic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX  5 /* with the main thread */
#define OPS_MAX      8 /* of one thread */
#define OUTCOMES_MAX 16384
#define TEXT_MAX     192
#define CUT_OFF                                                                                    \
    4000 /* executions of the bounded search; doubled, the comparison takes almost twice as long */

struct op {
    char kind;                      /* L S A X C F atomic, R W plain */
    bool guarded;
    unsigned loc;
    uint64_t expected;
    uint64_t value;
    enum model_order order;
    enum model_order fail_order;
    bool has_read;
    uint64_t read;                  /* what it read in this execution */
};

static struct program {
    unsigned threads;
    unsigned count[THREADS_MAX];
    struct op ops[THREADS_MAX][OPS_MAX];
} program;

static uint32_t memory[3];          /* x, y, z: the checker keeps their histories */
static uint32_t plain[2];           /* p, q */

/* ---- the set of outcomes: a hash table of texts ---- */

static char outcomes[OUTCOMES_MAX][TEXT_MAX];
static unsigned outcome_count;

static void add_outcome(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *at = text; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    unsigned slot = (unsigned)(hash % OUTCOMES_MAX);
    for (; outcomes[slot][0]; slot = (slot + 1) % OUTCOMES_MAX)
        if (strcmp(outcomes[slot], text) == 0) return;
    if (++outcome_count == OUTCOMES_MAX) abort();
    snprintf(outcomes[slot], TEXT_MAX, "%s", text);
}

static void print_outcomes(void)
{
    const char *separator = "";
    for (unsigned i = 0; i < OUTCOMES_MAX; i++) {
        if (!outcomes[i][0]) continue;
        printf("%s%s", separator, outcomes[i]);
        separator = ",";
        outcomes[i][0] = 0;
    }
    printf("\n");
    outcome_count = 0;
}

/* ---- running a program ---- */

static const struct model_site at = {"random_litmus.c", 0, "operation"};

static uint64_t run_atomic(struct op *o)
{
    volatile void *p = &memory[o->loc];
    o->has_read = o->kind != 'S';
    switch (o->kind) {
    case 'L':
        return model_load(&at, p, 4, o->order);
    case 'A':
        return model_rmw(&at, p, 4, MODEL_ADD, o->value, o->order);
    case 'X':
        return model_rmw(&at, p, 4, MODEL_EXCHANGE, o->value, o->order);
    case 'C': {
        uint64_t seen = o->expected;
        model_cas(&at, p, 4, &seen, o->value, o->order, o->fail_order);
        return seen;
    }
    default:
        model_store(&at, p, 4, o->value, o->order);
        return 0;
    }
}

static void run_op(struct op *o)
{
    if (o->kind == 'F') {
        model_fence(&at, o->order);
    } else if (o->kind == 'R' || o->kind == 'W') {
        model_plain(&at, &plain[o->loc], 4, o->kind == 'W');
    } else {
        o->read = run_atomic(o);
    }
}

static void run_thread(void *arg)
{
    unsigned t = (unsigned)(uintptr_t)arg;
    uint64_t last = 0;
    for (unsigned i = 0; i < program.count[t]; i++) {
        struct op *o = &program.ops[t][i];
        if (o->guarded && !last) continue;
        run_op(o);
        if (o->has_read) last = o->read;
    }
}

static void forget_reads(void)
{
    for (unsigned t = 0; t < program.threads; t++)
        for (unsigned i = 0; i < program.count[t]; i++)
            program.ops[t][i].has_read = false;
}

static void note_outcome(void)
{
    char text[TEXT_MAX];
    size_t used = 0;
    for (unsigned t = 0; t < program.threads; t++) {
        for (unsigned i = 0; i < program.count[t]; i++) {
            const struct op *o = &program.ops[t][i];
            if (o->has_read) {
                used +=
                    (size_t)snprintf(text + used, sizeof(text) - used, "%u ", (unsigned)o->read);
            } else {
                used += (size_t)snprintf(text + used, sizeof(text) - used, "- ");
            }
        }
    }
    snprintf(text + used, sizeof(text) - used, "%u %u %u", memory[0], memory[1], memory[2]);
    add_outcome(text);
}

static void run_program(void)
{
    memset(memory, 0, sizeof(memory));
    forget_reads();
    for (unsigned i = 0; i < 3; i++)
        model_store(&at, &memory[i], 4, 0, MODEL_relaxed);
    run_thread((void *)0);
    for (unsigned t = 1; t < program.threads; t++)
        model_thread(run_thread, (void *)(uintptr_t)t);
    model_join();
    note_outcome();
}

static void search(bool unbounded)
{
    struct model_case c = {
        .name = "random", .run = run_program, .preemptions = 100, .unbounded = unbounded};
    if (!unbounded) c.executions_max = CUT_OFF;
    struct model_result r = model_run(&c);
    if (!r.failed) {
        if (!r.exhausted) add_outcome("more");
        print_outcomes();
        return;
    }
    memset(outcomes, 0, sizeof(outcomes));
    outcome_count = 0;
    printf("%s\n", strncmp(r.why, "data race", 9) == 0 ? "race" : r.why);
}

/* ---- reading a program ---- */

static enum model_order order_of(const char *word)
{
    static const char *const names[] = {"rlx", "acq", "rel", "acq_rel", "sc"};
    for (unsigned i = 0; word && i < 5; i++)
        if (strcmp(word, names[i]) == 0) return (enum model_order)i;
    fprintf(stderr, "random_litmus: no such order: %s\n", word ? word : "(none)");
    exit(2);
}

static unsigned location_of(const char *word)
{
    const char *found = word ? strchr("xyzpq", word[0]) : NULL;
    if (!found) exit(2);
    unsigned loc = (unsigned)(found - "xyzpq");
    return loc < 3 ? loc : loc - 3;
}

static char *next_word(void)
{
    return strtok(NULL, " \t\n");
}

static uint64_t next_number(void)
{
    char *word = next_word();
    return word ? strtoull(word, NULL, 10) : 0;
}

static struct op parse_op(const char *word)
{
    struct op o = {0};
    if (word[0] == '?') {
        o.guarded = true;
        word = next_word();
    }
    o.kind = word[0];
    if (o.kind != 'F') o.loc = location_of(next_word());
    if (o.kind == 'R' || o.kind == 'W') return o;
    if (o.kind == 'C') o.expected = next_number();
    if (o.kind != 'F' && o.kind != 'L') o.value = next_number();
    o.order = order_of(next_word());
    if (o.kind == 'C') o.fail_order = order_of(next_word());
    return o;
}

static void parse(char *line)
{
    memset(&program, 0, sizeof(program));
    program.threads = 1;
    for (char *word = strtok(line, " \t\n"); word; word = next_word()) {
        unsigned t = program.threads - 1;
        if (word[0] == ';') continue;
        if (word[0] == '|') {
            if (++program.threads > THREADS_MAX) exit(2);
            continue;
        }
        if (program.count[t] == OPS_MAX) exit(2);
        program.ops[t][program.count[t]++] = parse_op(word);
    }
}

int main(void)
{
    char line[1024];
    while (fgets(line, sizeof(line), stdin)) {
        parse(line);
        search(false);
        search(true);
        fflush(stdout);
    }
    return 0;
}
