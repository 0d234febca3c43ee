/* SPDX-License-Identifier: MIT
 *
 * engine - runs one test again and again, each time along another path of choices.
 *
 * A test's threads are fibers of one real thread. At a scheduling point a thread says what it is about to do and the engine chooses who goes on; a load
 * chooses what it sees, a store where it goes. An execution is the list of its choices, so it can be run again; the search goes through these lists
 * depth first: run, then change the last choice that has an alternative left, and run again from the start.
 *
 * BOUNDED    At most so many preemptions: switches away from a thread that could have gone on. Complete within the bound; most bugs need two or three.
 * UNBOUNDED  All interleavings, thinned by sleep sets: once all that follows from "t first" has been seen, t sleeps in the alternatives until somebody
 *            does something that t's next step depends on (same address, and not both loads). Not combined with the bound: a bounded search with plain
 *            sleep sets would miss executions.
 * PCT        Random priorities, lowered at a few random steps (Burckhardt and others, ASPLOS 2010): a bug that needs d ordering constraints is found
 *            with probability at least 1 / (threads * steps^(d-1)) in each run.
 * A spinning thread (model_yield) goes on only when somebody has written since it looked, or if it had looked at old values; then it sees new ones.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct thread model__threads[MODEL_THREADS_MAX];
unsigned model__thread_count;
unsigned model__current;
unsigned model__step;
uint64_t model__writes;
bool model__tracing;
struct model_result model__result;
const struct model_case *model__case;
uint64_t model__seed;
const char *model__replay;
unsigned model__spurious_left;
int model_mutant;

/* ---- the path of choices ---- */

struct choice {
    bool thread;                    /* who runs, or a number below n */
    uint8_t n;
    uint8_t taken;
    uint8_t can;                    /* mask: threads that could be chosen, in this search */
    uint8_t done;                   /* mask: threads whose alternatives have been gone through */
    uint8_t asleep;                 /* mask: sleep set on arrival */
};

static struct choice path[CHOICES_MAX];
static unsigned path_length;        /* choices known */
static unsigned path_at;            /* choices made in this execution */
static unsigned preemptions;
static int last_node;               /* the last thread choice made; -1: none */

/* The addresses of the step that is running, for sleep sets. */
static struct op footprint[8];
static unsigned footprint_count;

/* ---- fibers ---- */

static void *engine_sp;
enum outcome { COMPLETE, FAILED, PRUNED };
static enum outcome outcome;

#if defined(__x86_64__)
void model__switch(void **save_sp, void *to_sp);
__asm__(".text\n.globl model__switch\n.type model__switch,@function\nmodel__switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n    ret\n"
        ".size model__switch, .-model__switch\n.section .note.GNU-stack,\"\",@progbits\n.text\n");

static void *first_sp(char *stack, void (*entry)(void))
{
    uintptr_t *sp = (uintptr_t *)(((uintptr_t)stack + STACK_BYTES) & ~(uintptr_t)15);
    *--sp = 0;                      /* the entry's return address: it never returns */
    *--sp = (uintptr_t)entry;
    return sp - 6;                  /* six callee-saved registers, whatever they hold */
}
#elif defined(__aarch64__)
void model__switch(void **save_sp, void *to_sp);
__asm__(".text\n.globl model__switch\n.type model__switch,%function\nmodel__switch:\n"
        "    stp x29, x30, [sp, #-160]!\n    stp x19, x20, [sp, #16]\n    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n    stp x25, x26, [sp, #64]\n    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp d14, d15, [sp, #144]\n    ldp d12, d13, [sp, #128]\n    ldp d10, d11, [sp, #112]\n    ldp d8, d9, [sp, #96]\n"
        "    ldp x27, x28, [sp, #80]\n    ldp x25, x26, [sp, #64]\n    ldp x23, x24, [sp, #48]\n"
        "    ldp x21, x22, [sp, #32]\n    ldp x19, x20, [sp, #16]\n    ldp x29, x30, [sp], #160\n    ret\n"
        ".size model__switch, .-model__switch\n");

static void *first_sp(char *stack, void (*entry)(void))
{
    uintptr_t *sp = (uintptr_t *)(((uintptr_t)stack + STACK_BYTES) & ~(uintptr_t)15) - 20;
    memset(sp, 0, 160);
    sp[1] = (uintptr_t)entry;       /* x30 */
    return sp;
}
#else
#error "the model checker's fibers know x86-64 and aarch64"
#endif

__attribute__((noreturn)) static void end_execution(enum outcome how)
{
    void *dead;
    outcome = how;
    model__switch(&dead, engine_sp); /* the fibers are abandoned: the next execution starts them afresh */
    __builtin_unreachable();
}

static void switch_to(unsigned next)
{
    struct thread *from = self();
    model__current = next;
    model__switch(&from->sp, model__threads[next].sp);
}

/* ---- failing ---- */

static void write_path(char *into, size_t bytes)
{
    size_t used = 0;
    for (unsigned i = 0; i < path_at && used + 8 < bytes; i++) {
        used += (size_t)snprintf(into + used, bytes - used, "%s%u", i ? "." : "", path[i].taken);
    }
    if (path_at == 0) snprintf(into, bytes, ".");
}

void model__fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(model__result.why, sizeof(model__result.why), format, args);
    va_end(args);
    model__result.failed = true;
    write_path(model__result.path, sizeof(model__result.path));
    if (model__tracing) printf("        T%u: %s\n", model__current, model__result.why);
    end_execution(FAILED);
}

void model_fail_at(const char *what, const char *file, int line)
{
    const char *base = strrchr(file, '/');
    model__fail("assertion: %s (%s:%d, T%u)", what, base ? base + 1 : file, line, model__current);
}

void model__prune(void)
{
    if (model__tracing) printf("        (cut short here: forbidden by the seq_cst rules, or seen before)\n");
    end_execution(PRUNED);
}

void model__trace(const struct model_site *at, const char *format, ...)
{
    va_list args;
    const char *base = strrchr(at->file, '/');
    char place[64] = "";
    if (at->line) snprintf(place, sizeof(place), "%s:%d", base ? base + 1 : at->file, at->line);
    printf("        %3u  %*sT%u  %-22s %s ", model__step, (int)model__current * 2, "", model__current, place, at->text);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* ---- randomness: xorshift, seeded per run ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 33) % n);
}

static bool randomised(void)
{
    return model__case->pct_depth && !model__replay;
}

bool model__unbounded(void)
{
    return model__case->unbounded;
}

/* ---- choosing ---- */

static struct choice *choice_new(void)
{
    if (path_length == CHOICES_MAX) model__fail("an execution of over %d choices: a loop without model_yield?", CHOICES_MAX);
    return &path[path_length++];
}

unsigned model__choose(unsigned n)
{
    if (n <= 1) return 0;
    if (path_at == path_length) {
        unsigned taken = 0;
        if (randomised() && random_below(2)) taken = random_below(n);
        *choice_new() = (struct choice){.n = (uint8_t)n, .taken = (uint8_t)taken};
    }
    unsigned taken = path[path_at++].taken;
    return taken < n ? taken : n - 1; /* a path of another program version must not overrun */
}

unsigned model_choose(unsigned n)
{
    return model__choose(n);
}

static bool all_others_done(unsigned t)
{
    for (unsigned i = 0; i < model__thread_count; i++)
        if (i != t && model__threads[i].state == THREAD_LIVE) return false;
    return true;
}

static bool may_spin_on(const struct thread *t)
{
    return t->saw_stale || !t->loaded || model__writes > t->first_load_writes;
}

static bool enabled(unsigned i)
{
    const struct thread *t = &model__threads[i];
    if (t->state != THREAD_LIVE) return false;
    switch (t->op.kind) {
    case OP_LOCK: return model__lock_free(t->op.address);
    case OP_JOIN: return all_others_done(i);
    case OP_SLEEP: return t->woken || t->timed || model__spurious_left > 0;
    case OP_YIELD: return may_spin_on(t);
    default: return true;
    }
}

static unsigned enabled_mask(void)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < model__thread_count; i++)
        if (enabled(i)) mask |= 1u << i;
    return mask;
}

static void fail_stuck(void)
{
    char text[160] = "";
    size_t used = 0;
    bool spins = false;
    for (unsigned i = 0; i < model__thread_count; i++) {
        const struct thread *t = &model__threads[i];
        if (t->state != THREAD_LIVE) continue;
        const char *how = t->op.kind == OP_LOCK    ? "waits for a lock"
                          : t->op.kind == OP_SLEEP ? "sleeps on a futex"
                          : t->op.kind == OP_JOIN  ? "waits in model_join"
                                                   : "spins";
        spins |= t->op.kind == OP_YIELD;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%sT%u %s", used ? ", " : "", i, how);
        if (used >= sizeof(text)) break;
    }
    model__fail("%s: %s", spins ? "livelock or lost wake-up" : "deadlock or lost wake-up", text);
}

/* Is what `a` will do affected by what was done in the step that just ended? */
static bool dependent(const struct op *a)
{
    if (a->kind == OP_YIELD || a->kind == OP_JOIN) return true;
    for (unsigned i = 0; i < footprint_count; i++) {
        if (footprint[i].kind == OP_YIELD) return true;
        if (footprint[i].address != a->address) continue;
        if (a->kind != OP_LOAD || footprint[i].kind != OP_LOAD) return true;
    }
    return footprint_count > 4;
}

static unsigned sleep_set_here(void)
{
    unsigned mask = 0;
    if (!model__case->unbounded || last_node < 0) return 0;
    unsigned before = path[last_node].asleep | path[last_node].done;
    for (unsigned i = 0; i < model__thread_count; i++)
        if (before >> i & 1 && !dependent(&model__threads[i].op)) mask |= 1u << i;
    return mask;
}

static unsigned lowest_of(unsigned mask)
{
    return (unsigned)__builtin_ctz(mask);
}

/* The running thread first: going on costs nothing. */
static unsigned preferred(unsigned mask)
{
    return mask >> model__current & 1 ? model__current : lowest_of(mask);
}

static unsigned candidates_of(unsigned can)
{
    bool current_goes_on = can >> model__current & 1 && model__threads[model__current].op.kind != OP_YIELD;
    unsigned bound = model__case->preemptions ? model__case->preemptions : 3;

    if (model__case->unbounded || model__case->pct_depth) return can;
    return current_goes_on && preemptions >= bound ? 1u << model__current : can;
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

static unsigned pick_new(unsigned can)
{
    unsigned asleep = sleep_set_here();
    unsigned free = can & ~asleep;
    if (!free) model__prune();
    unsigned taken = model__case->pct_depth ? pick_by_priority(can) : preferred(free);
    *choice_new() = (struct choice){.thread = true, .taken = (uint8_t)taken, .can = (uint8_t)can, .asleep = (uint8_t)asleep};
    return taken;
}

static unsigned pick(void)
{
    unsigned enabled_now = enabled_mask();
    unsigned can = candidates_of(enabled_now);

    if (!can) fail_stuck();
    if (++model__step > STEPS_MAX) model__fail("an execution of over %d steps: a loop without model_yield?", STEPS_MAX);
    bool only_one = !(can & (can - 1));
    if (only_one && !model__case->unbounded && !model__case->pct_depth) return lowest_of(can);
    unsigned next = path_at < path_length ? path[path_at].taken : pick_new(can);
    last_node = (int)path_at++;
    if (!(enabled_now >> next & 1)) model__fail("the path to replay does not fit this program");
    if (next != model__current && enabled_now >> model__current & 1 && self()->op.kind != OP_YIELD && self()->state == THREAD_LIVE) {
        preemptions++;
    }
    return next;
}

static void schedule(void)
{
    unsigned next = pick();
    footprint_count = 0;
    if (next != model__current) switch_to(next);
}

void model__touch(enum op_kind kind, const volatile void *address)
{
    if (footprint_count < 8) footprint[footprint_count++] = (struct op){kind, address};
}

void model__point(enum op_kind kind, const volatile void *address)
{
    struct thread *t = self();
    t->op = (struct op){kind, address};
    if (t->starting) {
        t->starting = false;
        switch_to(t->starter); /* back to the thread that called model_thread; it goes on */
    } else {
        schedule();
    }
    t->op.kind = OP_NONE;
    model__touch(kind, address);
}

/* ---- threads ---- */

static void entry(void)
{
    struct thread *t = self();
    t->run(t->arg);
    t->state = THREAD_DONE;
    model__writes++;
    if (t == &model__threads[0]) {
        if (!all_others_done(0)) model__fail("the test ended while its threads run: model_join is missing");
        model__plain_end();
        end_execution(COMPLETE);
    }
    if (t->starting) switch_to(t->starter); /* it had nothing to do that others could see */
    schedule();
    __builtin_unreachable();
}

static void *stack_new(void)
{
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) abort();
    return stack;
}

static struct thread *thread_new(void (*run)(void *), void *arg)
{
    struct thread *t = &model__threads[model__thread_count];
    char *stack = t->stack ? t->stack : stack_new();
    const struct view nothing = {0};

    memset(t, 0, offsetof(struct thread, now));
    model__view_copy(&t->now, &nothing);
    model__view_copy(&t->acquirable, &nothing);
    model__view_copy(&t->released, &nothing);
    t->fresh_locs = 0;
    memset(&t->yielded, 0, sizeof(*t) - offsetof(struct thread, yielded));
    t->stack = stack;
    t->run = run;
    t->arg = arg;
    t->state = THREAD_LIVE;
    t->sp = first_sp(stack, entry);
    if (randomised()) t->priority = (int)random_below(1000) + 1;
    model__thread_count++;
    return t;
}

void model_thread(void (*run)(void *), void *arg)
{
    if (model__thread_count == MODEL_THREADS_MAX) model__fail("too many threads (MODEL_THREADS_MAX)");
    struct thread *parent = self();
    struct thread *t = thread_new(run, arg);
    model__view_copy(&t->now, &parent->now);
    t->now.clock[model__thread_count - 1] = 1;
    model__tick();
    t->starting = true;
    t->starter = model__current;
    switch_to(model__thread_count - 1);
}

void model_join(void)
{
    model__point(OP_JOIN, NULL);
    for (unsigned i = 0; i < model__thread_count; i++)
        if (i != model__current) model__view_join(&self()->now, &model__threads[i].now);
    model__freshen(self());
}

unsigned model_self(void)
{
    return model__current;
}

void model_name(const volatile void *address, const char *name)
{
    struct loc *l = model__loc_if_known(address);
    if (l) l->name = name;
}

/* ---- the search ---- */

static void run_test(void *unused)
{
    (void)unused;
    model__case->run();
}

static void execute(void)
{
    model__memory_reset();
    model__order_reset();
    model__plain_reset();
    model__sync_reset();
    path_at = 0;
    preemptions = 0;
    last_node = -1;
    footprint_count = 0;
    model__step = 0;
    model__writes = 0;
    model__thread_count = 0;
    model__current = 0;
    model__spurious_left = model__case->spurious;
    model_mutant = model__case->mutant;
    thread_new(run_test, NULL)->now.clock[0] = 1;
    model__switch(&engine_sp, model__threads[0].sp);
    model__result.steps += model__step;
    if (outcome == PRUNED) {
        model__result.pruned++;
    } else {
        model__result.executions++;
    }
}

/* Change the last choice that has an alternative; false: there is none left. */
static bool advance(void)
{
    path_length = path_at;
    while (path_length > 0) {
        struct choice *c = &path[path_length - 1];
        if (!c->thread) {
            if (c->taken + 1 < c->n) {
                c->taken++;
                return true;
            }
        } else {
            c->done |= (uint8_t)(1u << c->taken);
            unsigned left = c->can & ~(unsigned)c->done & ~(unsigned)c->asleep;
            if (left) {
                c->taken = (uint8_t)lowest_of(left);
                return true;
            }
        }
        path_length--;
    }
    return false;
}

static void prepare_random(uint64_t run, unsigned longest)
{
    random_state = (model__seed + run) * 0x9E3779B97F4A7C15u | 1;
    path_length = 0;
    for (unsigned i = 0; i < 16; i++) pct_change_at[i] = 1 + random_below(longest);
}

static void load_path(const char *text)
{
    path_length = 0;
    for (const char *at = text; *at;) {
        char *end;
        unsigned long taken = strtoul(at, &end, 10);
        if (end != at) path[path_length++] = (struct choice){.taken = (uint8_t)taken, .n = 255, .can = 255};
        at = *end ? end + 1 : end;
        if (path_length == CHOICES_MAX) break;
    }
}

struct model_result model_run(const struct model_case *c)
{
    uint64_t limit = c->executions_max ? c->executions_max : c->pct_depth ? 20000 : UINT64_MAX;
    unsigned longest = 50;

    model__case = c;
    memset(&model__result, 0, sizeof(model__result));
    path_length = 0;
    if (model__replay) load_path(model__replay);
    for (uint64_t run = 0; run < limit; run++) {
        if (randomised()) prepare_random(run, longest);
        execute();
        if (model__step > longest) longest = model__step;
        if (outcome == FAILED || model__replay) break;
        if (!c->pct_depth && !advance()) {
            model__result.exhausted = true;
            break;
        }
    }
    model__plain_reset();
    return model__result;
}
