/* SPDX-License-Identifier: MIT
 *
 * A plain thread that waits, proven: whoever wakes it, and however many do, its next poll sees
 * what was written before; and its waker, on the heap or on its stack, is given back behind the
 * last deliverer's last touch, once. What the thread keeps for its next call nobody else touches.
 *
 * The wakers here hold a reference each, as whoever keeps a waker does. A thread without memory
 * goes through the steps of run_on_thread with a block that the checker watches in place of the
 * frame.
 */
#include "base/alloc.h"
#include "sys/thread.h"
#include "task/here.h"

#include <stddef.h>

static bool no_memory;
#define weft__alloc_aligned(bytes, alignment) (no_memory ? NULL : model_alloc(bytes))
#define weft__free                            model_free

static struct weft__here here_of_the_sleeper; /* the only thread that asks */
#define weft__here() (&here_of_the_sleeper)

#define weft__thread_at_exit(exit, run) ((void)(exit), (void)(run), 0)

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wstring-conversion" /* weft_dassert(!"what cannot be") is fine */
#endif
#include "task/waker.h"

enum { KEEPS_ANYWAY = 100 }; /* a broken twin: its waker is used again while a deliverer has it */
#define weft__foreign_alone(foreign) (model_mutant == KEEPS_ANYWAY || (weft__foreign_alone)(foreign))
#include "task/call.c"
#undef weft__foreign_alone
#include "task/region.c"
#include "task/state.c"
#include "task/waker.c"

int weft__fiber_wait(struct weft__fiber *f, weft_pollfn *poll, void *frame)
{
    (void)f;
    (void)poll;
    (void)frame;
    model_fail_at("nobody is a fiber here", __FILE__, __LINE__);
    return 0;
}

/* Of each of up to two calls, one after the other. */
static _Atomic uintptr_t kept[2];    /* the waker, for those who will use it */
static _Atomic unsigned messages[2]; /* relaxed: the wake has to carry them */
static unsigned letter[2];           /* plain: the same */
static unsigned wakers;
static unsigned calls, woken_for_all;

/* ---- broken twins ---- */

enum {
    HONEST,
    RINGS_RELAXED,    /* the ring publishes nothing */
    WAKES_THEN_RINGS, /* the futex is woken before its word has changed */
    SLEEPS_ON_A_RING, /* the ring is cleared by who goes to sleep, without a look */
    GONE_RELAXED,     /* the last touch is not before it */
    GONE_TOO_EARLY,   /* said by who wakes, before it gives its reference back */
    DOES_NOT_WAIT,    /* the stack is left while a deliverer is on it */
};

static void ring_relaxed(struct weft__foreign *foreign)
{
    struct weft__sleeper *s = sleeper_of(foreign);
    if (exchange_relaxed(&s->rung, 1) == 0) (void)weft__futex_wake(&s->rung, 1);
    weft__foreign_unref(foreign);
}

static void wake_then_ring(struct weft__foreign *foreign)
{
    struct weft__sleeper *s = sleeper_of(foreign);
    (void)weft__futex_wake(&s->rung, 1);
    (void)exchange_release(&s->rung, 1);
    weft__foreign_unref(foreign);
}

static void go_and_ring(struct weft__foreign *foreign)
{
    sleeper_leave(foreign);
    sleeper_deliver(foreign);
}

static void go_relaxed(struct weft__foreign *foreign)
{
    struct weft__sleeper *s = sleeper_of(foreign);
    store_relaxed(&s->gone, 1);
    (void)weft__futex_wake(&s->gone, 1);
}

static void nothing(struct weft__foreign *foreign)
{
    (void)foreign;
}

static struct weft__foreign_ops twin;

static void break_it(struct weft__foreign *foreign)
{
    twin = *foreign->ops;
    switch (model_mutant) {
    case RINGS_RELAXED:
        twin.deliver = ring_relaxed;
        break;
    case WAKES_THEN_RINGS:
        twin.deliver = wake_then_ring;
        break;
    case GONE_RELAXED:
        twin.free = go_relaxed;
        break;
    case GONE_TOO_EARLY:
        twin.deliver = go_and_ring;
        twin.free = nothing;
        break;
    default:
        break;
    }
    if (model_mutant != HONEST && model_mutant != KEEPS_ANYWAY) foreign->ops = &twin;
}

static void sleep_twin(struct weft__sleeper *s)
{
    if (model_mutant != SLEEPS_ON_A_RING) {
        sleep_until_rung(s);
        return;
    }
    do {
        store_relaxed(&s->rung, 0);
        (void)weft__futex_wait(&s->rung, 0, WEFT__NEVER);
    } while (exchange_acquire(&s->rung, 0) == 0);
}

static void done_twin(struct weft__sleeper *s, struct weft__sleeper *spare)
{
    if (model_mutant == DOES_NOT_WAIT) {
        weft__foreign_unref(&s->foreign);
    } else {
        sleeper_done(s, spare);
    }
}

/* ---- the thread ---- */

struct visit {
    unsigned call;
    bool given;
};

/* The first poll gives its waker away; those that follow were woken, and look. */
static weft_poll poll(void *frame, struct weft_cx *cx)
{
    struct visit *f = frame;
    if (!f->given) {
        struct weft__foreign *foreign = weft__waker_foreign(cx->waker);
        break_it(foreign);
        for (unsigned i = 0; i < wakers; i++)
            weft__foreign_ref(foreign);
        f->given = true;
        store_release(&kept[f->call], cx->waker.word);
        return WEFT_PENDING;
    }
    if (wakers == 1) model_assert(plain_read(&letter[f->call]) == 1);
    if (load_relaxed(&messages[f->call]) < wakers) return WEFT_PENDING;
    woken_for_all++;
    return WEFT_READY;
}

static void waits_on_heap(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < calls; i++) {
        struct visit f = {.call = i};
        int r = weft__run_from(poll, &f, NULL);
        model_assert(r == 0);
    }
    weft__call_forget();
}

/* As run_on_thread. */
static void waits_on_stack(void *arg)
{
    (void)arg;
    struct visit f = {.call = 0};
    bool yielded;
    struct weft__sleeper *spare = model_alloc(sizeof(*spare));
    struct weft__sleeper *s = sleeper_new(spare);

    model_assert(s == spare);
    while (poll_on_thread(s, poll, &f, &yielded) == WEFT_PENDING)
        sleep_twin(s);
    done_twin(s, spare);
    model_free(spare); /* the next call's frame is written over it */
}

static void waker_thread(void *arg)
{
    unsigned call = (unsigned)(uintptr_t)arg;
    while (load_acquire(&kept[call]) == 0)
        model_yield();
    struct weft_waker waker = {load_relaxed(&kept[call])};
    if (wakers == 1) plain_write(&letter[call], 1);
    fetch_add_relaxed(&messages[call], 1);
    weft__waker_wake(waker, NULL);
    weft__foreign_unref(weft__waker_foreign(waker));
}

static void begin(unsigned count, bool memory)
{
    no_memory = !memory;
    here_of_the_sleeper = (struct weft__here){0};
    for (unsigned i = 0; i < 2; i++) {
        store_relaxed(&kept[i], 0);
        store_relaxed(&messages[i], 0);
        plain_write(&letter[i], 0);
    }
    wakers = count;
    calls = 1;
    woken_for_all = 0;
}

static void end(void)
{
    for (unsigned i = 0; i < calls * wakers; i++)
        model_thread(waker_thread, (void *)(uintptr_t)(i / wakers));
    model_join();
    model_assert(woken_for_all == calls);
}

/* ---- the cases ---- */

static void heap_one(void)
{
    begin(1, true);
    model_thread(waits_on_heap, NULL);
    end();
}

static void heap_two(void)
{
    begin(2, true);
    model_thread(waits_on_heap, NULL);
    end();
}

/* The second call has the first one's waker, or another if somebody is still at that. */
static void heap_again(void)
{
    begin(1, true);
    calls = 2;
    model_thread(waits_on_heap, NULL);
    end();
}

static void stack_one(void)
{
    begin(1, false);
    model_thread(waits_on_stack, NULL);
    end();
}

static void stack_two(void)
{
    begin(2, false);
    model_thread(waits_on_stack, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "call: on the heap, one wake", .run = heap_one, .unbounded = true, .weaken = true},
    {.name = "call: on the stack, one wake", .run = stack_one, .unbounded = true, .weaken = true},
    {.name = "call: on the stack, woken for no reason",
     .run = stack_one,
     .preemptions = 3,
     .spurious = 2},
    {.name = "call: on the heap, two wakes", .run = heap_two, .preemptions = 3, .weaken = true},
    {.name = "call: twice on the heap, a wake each", .run = heap_again, .preemptions = 3, .weaken = true},
    {.name = "call: on the stack, two wakes", .run = stack_two, .preemptions = 3},
    {.name = "mutant: the ring publishes nothing",
     .run = stack_one,
     .mutant = RINGS_RELAXED,
     .must_fail = true,
     .why = "race"},
    {.name = "mutant: the futex is woken before the ring",
     .run = stack_one,
     .mutant = WAKES_THEN_RINGS,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: sleeps on a ring",
     .run = stack_one,
     .mutant = SLEEPS_ON_A_RING,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: kept while a deliverer has it",
     .run = heap_again,
     .mutant = KEEPS_ANYWAY,
     .must_fail = true},
    {.name = "mutant: gone is relaxed",
     .run = stack_one,
     .mutant = GONE_RELAXED,
     .must_fail = true,
     .why = "use after free"},
    {.name = "mutant: gone before the last touch",
     .run = stack_one,
     .mutant = GONE_TOO_EARLY,
     .must_fail = true,
     .why = "use after free"},
    {.name = "mutant: the stack is left at once",
     .run = stack_one,
     .mutant = DOES_NOT_WAIT,
     .must_fail = true,
     .why = "use after free"},
};

static const struct model_spare spare[] = {
    {"task/waker.c", "", "waker has a model test of its own"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
