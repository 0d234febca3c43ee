/* SPDX-License-Identifier: MIT
 *
 * Await chains are walked from outside: three functions deep, one of them boxed, down to a leaf that waits.
 */
#include "face.h"

#include <stdatomic.h>

/* A leaf that is opened from outside. */
static struct {
    atomic_bool reached, open;
    weft_waker waker;
} gate;

struct gate {
    WEFT_FRAME(int);
};

static weft_poll gate_poll(void *frame, weft_cx *cx)
{
    struct gate *f = frame;

    if (atomic_load(&gate.open)) return f->ret = 5, WEFT_READY;
    if (!atomic_load(&gate.reached)) gate.waker = weft_waker_ref(weft_cx_waker(cx));
    atomic_store(&gate.reached, true);
    return WEFT_PENDING;
}

struct inner {
    WEFT_FRAME(int);
    int pad;
    struct gate gate;
};

static int inner_line;
static weft_async(inner)
{
    weft_begin;
    inner_line = __LINE__ + 1;
    weft_await(f->gate, gate);
    weft_return(f->gate.ret);
    weft_end;
}

struct middle {
    WEFT_FRAME(int);
    struct inner *inner;
    struct countdown before;
};

static int middle_line;
static weft_async(middle)
{
    weft_begin;
    weft_await(f->before, countdown, 2);
    middle_line = __LINE__ + 1;
    weft_await_boxed(f->inner, inner);
    weft_return(weft_unbox(f->inner) + 1);
    weft_end;
}

struct outer {
    WEFT_FRAME(int);
    char name[20];
    struct {
        struct middle middle;
    } deep;
};

static int outer_line;
static weft_async(outer)
{
    weft_begin;
    outer_line = __LINE__ + 1;
    weft_await(f->deep.middle, middle);
    weft_return(f->deep.middle.ret + 1);
    weft_end;
}

struct step {
    const char *callee;
    int line;
};

static int walk(weft_pollfn *poll, const void *frame, struct step *into, int max)
{
    int count = 0;

    for (const struct weft__await *at; count < max && (at = weft__await_of(poll, frame));
         poll = at->poll) {
        CHECK(strstr(at->file, "chain.c"));
        into[count++] = (struct step){at->callee, (int)at->line};
        frame = weft__await_child(at, frame);
        if (!frame) break;
    }
    return count;
}

static void check_chain(const void *frame)
{
    struct step step[8];
    const struct {
        const char *callee;
        int line;
    } should[] = {{"middle", outer_line}, {"inner", middle_line}, {"gate", inner_line}};

    CHECK_EQ(walk(outer_poll, frame, step, 8), 3);
    for (int i = 0; i < 3; i++) {
        CHECK(strcmp(step[i].callee, should[i].callee) == 0);
        CHECK_EQ(step[i].line, should[i].line);
    }
}

/* A child picked at run time is named all the same; only its place is not known. */
struct pick {
    WEFT_FRAME(int);
    int i;
    struct inner kid[2];
};

static weft_async(pick)
{
    weft_begin;
    weft_await(f->kid[f->i], inner);
    weft_end;
}

static void check_pick(weft_task *t)
{
    const struct weft__await *at = weft__await_of(pick_poll, weft__task_frame(t));

    CHECK(at && strcmp(at->callee, "inner") == 0 && at->poll == inner_poll);
    CHECK(!weft__await_child(at, weft__task_frame(t)));
}

/* A walk ends at a fiber: what that keeps in its frame is odd, and no distance to a record. Several at once, so that
 * it is not odd by chance. */
enum { FIBERS = 4 };
static atomic_int arrived;

struct lingers {
    WEFT_FRAME(int);
};

static weft_fiber(lingers)
{
    atomic_fetch_add(&arrived, 1);
    while (!atomic_load(&gate.open) && f->ret == 0)
        f->ret = weft_yield();
}

struct awaits_fiber {
    WEFT_FRAME(int);
    struct lingers fiber;
};

static weft_async(awaits_fiber)
{
    weft_begin;
    weft_await(f->fiber, lingers);
    weft_return(f->fiber.ret);
    weft_end;
}

static void check_fibers(void)
{
    weft_task *t[FIBERS];
    int r = -1;

    for (int i = 0; i < FIBERS; i++)
        t[i] = weft_spawn(awaits_fiber);
    while (atomic_load(&arrived) < FIBERS)
        CHECK_EQ(weft_yield(), 0);
    for (int i = 0; i < FIBERS; i++) {
        const void *frame = weft__task_frame(t[i]);
        const struct weft__await *at = weft__await_of(awaits_fiber_poll, frame);
        CHECK(at && strcmp(at->callee, "lingers") == 0);
        CHECK(!weft__await_of(at->poll, weft__await_child(at, frame)));
    }
    atomic_store(&gate.open, true);
    for (int i = 0; i < FIBERS; i++)
        CHECK(weft_join(t[i], &r) == 0 && r == 0);
}

static void open_gate(void)
{
    atomic_store(&gate.open, true);
    weft_waker_wake(gate.waker);
    weft_waker_unref(gate.waker);
}

static void wait_for_gate(void)
{
    while (!atomic_load(&gate.reached))
        CHECK_EQ(weft_yield(), 0);
}

static int app(void)
{
    int sum = 0;
    weft_task *t = weft_spawn(outer, .name = "outer");

    wait_for_gate();
    check_chain(weft__task_frame(t));
    open_gate();
    CHECK_EQ(weft_join(t, &sum), 0);
    CHECK_EQ(sum, 7);

    atomic_store(&gate.open, false), atomic_store(&gate.reached, false);
    t = weft_spawn(pick, 1);
    wait_for_gate();
    check_pick(t);
    open_gate();
    CHECK_EQ(weft_join(t, &sum), 0);

    atomic_store(&gate.open, false);
    check_fibers();
    CHECK_EQ(sizeof(struct weft_yield), 8); /* four bytes and the result */
    return 0;
}

WEFT_MAIN(app)
