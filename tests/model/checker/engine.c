/* SPDX-License-Identifier: MIT
 *
 * engine - runs one execution of a test: its threads, and the points at which another may go on.
 *
 * A test's threads are fibers of one real thread. At a scheduling point a thread says what it is about to do, and search.c chooses who goes on. What lies
 * between two points is one step. Points stand before atomic accesses, locks and futex calls, as only these can tell whether another thread was faster:
 *     fences, plain accesses, alloc, free   a matter of one thread's own view; races and frees are found by happens-before, in whatever order they run
 *     thread creation                       a new thread runs up to its first point at once, then its creator goes on: nobody can tell the difference
 *     membarrier                            has a point of its own: it is a fence of every thread, wherever that stands
 *     unlock                                whoever waits for the lock cannot tell when in the last step it was dropped; only model_try_lock can, so a test
 *                                           that uses it gets a point here as well (found out by the first try, which starts the search again)
 */
#include "fiber.h"
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thread model__threads[MODEL_THREADS_MAX];
unsigned model__thread_count;
unsigned model__current;
unsigned model__step;
bool model__tracing;
bool model__hide_setup;
struct model_result model__result;
const struct model_case *model__case;
uint64_t model__seed = 1;
const char *model__replay;
unsigned model__spurious_left;
int model_mutant;

static void *engine_sp;
static enum outcome outcome;
static bool points_at_unlock;

__attribute__((noreturn)) static void end_execution(enum outcome how)
{
    void *dead;
    outcome = how;
    model__switch(&dead,
                  engine_sp); /* the fibers are abandoned: the next execution starts them afresh */
    __builtin_unreachable();
}

static void switch_to(unsigned next)
{
    struct thread *from = self();
    model__current = next;
    model__switch(&from->sp, model__threads[next].sp);
}

/* ---- failing ---- */

__attribute__((noreturn, format(printf, 1, 0))) static void fail(const char *format, va_list args)
{
    vsnprintf(model__result.why, sizeof(model__result.why), format, args);
    model__result.failed = true;
    model__path_text(model__result.path, sizeof(model__result.path));
    if (model__tracing) printf("        T%u: %s\n", model__current, model__result.why);
    end_execution(FAILED);
}

void model__fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(format, args);
}

void model__fail_limit(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    model__result.limit = true;
    fail(format, args);
}

void model_fail_at(const char *what, const char *file, int line)
{
    const char *base = strrchr(file, '/');
    model__fail("assertion: %s (%s:%d, T%u)", what, base ? base + 1 : file, line, model__current);
}

void model__prune(void)
{
    if (model__tracing)
        printf("        (cut short here: forbidden by the seq_cst rules, or seen before)\n");
    end_execution(PRUNED);
}

void model__trace(const struct model_site *at, const char *format, ...)
{
    va_list args;
    const char *base = strrchr(at->file, '/');
    char place[64] = "";
    if (model__hide_setup && model__thread_count == 1) return; /* nothing can go two ways yet */
    if (at->line) snprintf(place, sizeof(place), "%s:%d", base ? base + 1 : at->file, at->line);
    printf("        %3u  %*sT%u  %-22s %s ", model__step, (int)model__current * 2, "",
           model__current, place, at->text);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* ---- who can go on ---- */

static bool all_others_done(unsigned t)
{
    for (unsigned i = 0; i < model__thread_count; i++)
        if (i != t && model__threads[i].state == THREAD_LIVE) return false;
    return true;
}

static bool may_wake_up(const struct thread *t)
{
    if (t->woken || model__spurious_left > 0) return true;
    return t->timed && (!t->timed_out || t->let_through || model__round_worthwhile(t));
}

static bool enabled(unsigned i)
{
    const struct thread *t = &model__threads[i];
    if (t->state != THREAD_LIVE) return false;
    switch (t->op.kind) {
    case OP_LOCK:
        return model__lock_free(t->op.address);
    case OP_JOIN:
        return all_others_done(i);
    case OP_SLEEP:
        return may_wake_up(t);
    case OP_YIELD:
        return t->let_through || model__round_worthwhile(t);
    default:
        return true;
    }
}

static unsigned enabled_mask(void)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < model__thread_count; i++)
        if (enabled(i)) mask |= 1u << i;
    return mask;
}

static bool spins(const struct thread *t)
{
    return t->state == THREAD_LIVE &&
           (t->op.kind == OP_YIELD || (t->op.kind == OP_SLEEP && t->timed));
}

/* Nobody can go on. Of those that spin, the one that has been let through least often may do so once more. */
static unsigned let_one_through(void)
{
    struct thread *least = NULL;
    for (unsigned i = 0; i < model__thread_count; i++) {
        struct thread *t = &model__threads[i];
        if (spins(t) && (!least || t->let_through_count < least->let_through_count)) least = t;
    }
    if (!least || least->let_through_count == SPINS_MAX) return 0;
    least->let_through = true;
    least->let_through_count++;
    return 1u << (least - model__threads);
}

static void fail_stuck(void)
{
    char text[160] = "";
    size_t used = 0;
    bool livelock = false;
    for (unsigned i = 0; i < model__thread_count; i++) {
        const struct thread *t = &model__threads[i];
        if (t->state != THREAD_LIVE) continue;
        const char *how = t->op.kind == OP_LOCK    ? "waits for a lock"
                          : t->op.kind == OP_SLEEP ? "sleeps on a futex"
                          : t->op.kind == OP_JOIN  ? "waits in model_join"
                                                   : "spins";
        livelock |= spins(t);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%sT%u %s", used ? ", " : "", i,
                                 how);
        if (used >= sizeof(text)) break;
    }
    model__fail("%s: %s", livelock ? "livelock or lost wake-up" : "deadlock or lost wake-up", text);
}

/* ---- scheduling points ---- */

static void schedule(void)
{
    unsigned can = enabled_mask();
    if (!can) can = let_one_through();
    if (!can) fail_stuck();
    if (++model__step > STEPS_MAX)
        model__fail_limit("an execution of over %d steps: an endless loop?", STEPS_MAX);
    unsigned next = model__pick(can);
    if (next != model__current) switch_to(next);
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
    model__step_is(kind, address);
}

bool model__point_at_unlock(void)
{
    return points_at_unlock || model__case->unbounded;
}

void model__want_points_at_unlock(void)
{
    if (model__point_at_unlock()) return;
    points_at_unlock = true;
    end_execution(AGAIN);
}

/* ---- threads ---- */

static void entry(void)
{
    struct thread *t = self();
    t->run(t->arg);
    model__check_no_lock_held();
    t->state = THREAD_DONE;
    model__order_elsewhere();
    if (t == &model__threads[0]) {
        if (!all_others_done(0))
            model__fail("the test ended while its threads run: model_join is missing");
        model__plain_end();
        end_execution(COMPLETE);
    }
    if (t->starting) switch_to(t->starter); /* it had nothing to do that others could see */
    schedule();
    __builtin_unreachable();
}

static struct thread *thread_new(void (*run)(void *), void *arg)
{
    struct thread *t = &model__threads[model__thread_count];
    char *stack = t->stack ? t->stack : model__stack_new();
    const struct view nothing = {0};

    memset(t, 0, offsetof(struct thread, now));
    model__view_copy(&t->now, &nothing);
    model__view_copy(&t->acquirable, &nothing);
    model__view_copy(&t->released, &nothing);
    t->stack = stack;
    t->run = run;
    t->arg = arg;
    t->state = THREAD_LIVE;
    t->sp = model__stack_start(stack, entry);
    t->priority = model__priority_new();
    model__thread_count++;
    return t;
}

void model_thread(void (*run)(void *), void *arg)
{
    if (model__thread_count == MODEL_THREADS_MAX)
        model__fail_limit("too many threads (MODEL_THREADS_MAX)");
    struct thread *parent = self();
    struct thread *t = thread_new(run, arg);
    model__order_elsewhere();
    model__view_copy(&t->now, &parent->now);
    t->now.clock[model__thread_count - 1] = 1;
    t->departed_last = t->now.departed; /* its start is an event, and none of a location */
    t->departed_other = t->now.departed;
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
    model__order_elsewhere();
    model__tick();
}

unsigned model_self(void)
{
    return model__current;
}

/* ---- one execution ---- */

static void run_test(void *unused)
{
    (void)unused;
    model__case->run();
}

void model__run_reset(void)
{
    points_at_unlock = false;
}

enum outcome model__execute(void)
{
    model__memory_reset();
    model__order_reset();
    model__plain_reset();
    model__sync_reset();
    model__search_reset();
    model__step = 0;
    model__thread_count = 0;
    model__current = 0;
    model__spurious_left = model__case->spurious;
    model_mutant = model__case->mutant;
    thread_new(run_test, NULL)->now.clock[0] = 1;
    model__switch(&engine_sp, model__threads[0].sp);
    return outcome;
}
