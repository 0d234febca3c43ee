/* SPDX-License-Identifier: MIT
 *
 * frugal - waits that take nothing from the heap: who waits in rounds, of each kind, and an allocator that counts meanwhile.
 *
 *     struct frames { union { ... }; };                  the frames of the file's waits
 *     #include "frugal.h"
 *     static const struct row rows[] = {...};
 *     each_counted(...) -> rounds_of(&rows[i], &fiber);  on a clock that stands, so that whoever is fed does wait
 *     calls(&rows[i], "thread");                         who need not wait
 */
#ifndef WEFT_TESTS_FRUGAL_H
#define WEFT_TESTS_FRUGAL_H

#include "crew.h"
#include "still.h"
#include "test.h"

#include <stdlib.h>
#include <weft/weft.h>

/* ---- an allocator that counts ---- */

static _Atomic uint64_t allocs; /* relaxed everywhere: a count, read when nothing moves it */
static _Thread_local bool
    stands_by; /* the test's thread, which joins when it gets to it: not counted */

static void *count_alloc(void *ctx, size_t bytes, size_t align)
{
    void *memory = NULL;
    (void)ctx;
    if (!stands_by) fetch_add_relaxed(&allocs, 1);
    return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void count_free(void *ctx, void *memory, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(memory);
}

static const weft_allocator counted = {.alloc = count_alloc, .free = count_free};

/* ---- a wait: how it is armed and called, what is given back behind it, what keeps it waiting, what lets it go ---- */

enum free { NEVER, UNLESS_BLOCKED, WHEN_FED };

struct row {
    const char *name;
    weft_future (*arm)(struct frames *w);
    int (*call)(void);
    void (*after)(void); /* by who has waited: gives back what it got */
    void (*block)(void); /* by another: now it has to wait */
    void (*feed)(void);  /* by the same: now it has not */
    enum free is_free;   /* when it need not wait */
};

/* ---- who waits, of each kind ---- */

enum { WARM_UP = 4, ROUNDS = 20 };

static weft_sem turn;      /* a round begins */
static _Atomic int served; /* relaxed: one at a time, a sleep apart */

static int waits(const struct row *row)
{
    for (int i = 0; i < ROUNDS; i++) {
        ASSERT_OK(weft_sem_acquire(&turn, 1));
        ASSERT_GE(row->call(), 0);
        row->after();
        fetch_add_relaxed(&served, 1);
    }
    return 0;
}

/* An int, or a count. */
static int answer_of(const weft_future *of)
{
    const void *ret = (const char *)of->frame + of->ret_at;
    return of->ret_bytes == sizeof(int) ? *(const int *)ret : (int)*(const ssize_t *)ret;
}

struct armed {
    WEFT_FRAME(int);
    weft_future of;
};
static weft_poll armed_poll(void *frame, weft_cx *cx)
{
    struct armed *f = frame;
    if (f->of.poll(f->of.frame, cx) == WEFT_PENDING) return WEFT_PENDING;
    f->ret = answer_of(&f->of);
    return WEFT_READY;
}

struct waits_stackless {
    WEFT_FRAME(int);
    const struct row *row;
    int i;
    struct frames frames;
    struct weft_sem_acquire turn;
    struct armed armed;
};
static weft_async(waits_stackless)
{
    weft_begin;
    for (f->i = 0; f->i < ROUNDS; f->i++) {
        weft_await(f->turn, weft_sem_acquire, &turn, 1);
        weft_await(f->armed, armed, f->row->arm(&f->frames));
        ASSERT_GE(f->armed.ret, 0);
        f->row->after();
        fetch_add_relaxed(&served, 1);
    }
    weft_return(0);
    weft_end;
}

static int waits_on_a_thread(const struct row *row)
{
    return weft_blocking(waits, row);
}

struct kind {
    const char *name;
    weft_task *(*start)(const struct row *row);
};

static weft_task *start_fiber(const struct row *row)
{
    return weft_go(waits, row);
}
static weft_task *start_stackless(const struct row *row)
{
    return weft_spawn(waits_stackless, row);
}
static weft_task *start_thread(const struct row *row)
{
    return weft_go(waits_on_a_thread, row);
}

static const struct kind fiber = {"fiber", start_fiber};
static const struct kind stackless = {"stackless task", start_stackless};
static const struct kind thread = {"thread", start_thread};

/* ---- the rounds ---- */

static void expect_since(uint64_t most, uint64_t before, const struct row *row, const char *what)
{
    uint64_t more = load_relaxed(&allocs) - before; /* relaxed: as above */
    if (more > most) ck_abort_msg("%s on a %s: %d allocations", row->name, what, (int)more);
}

/* A sleep is over when all others wait. */
static void one_round(const struct row *row, int i)
{
    row->block();
    weft_sem_release(&turn, 1);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_EQ(load_relaxed(&served), i); /* relaxed: as above; it waits */
    row->feed();
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_EQ(load_relaxed(&served), i + 1);
}

static void rounds_of(const struct row *row, const struct kind *kind)
{
    uint64_t before = 0;
    int r = 1;

    weft_sem_init(&turn, 0);
    store_relaxed(&served, 0);
    weft_task *task = kind->start(row);
    for (int i = 0; i < ROUNDS; i++) {
        if (i == WARM_UP) before = load_relaxed(&allocs);
        one_round(row, i);
    }
    /* Who wakes a thread may be held up between its two last steps, and has that one's waker then while it waits again: it makes another. Not each time. */
    expect_since(kind == &thread, before, row, kind->name);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_sem_done(&turn);
}

static void each_counted(int (*body)(void))
{
    ASSERT_OK(weft_set_allocator(&counted));
    stands_by = true;
    each_paused(body);
}

/* ---- who need not wait ---- */

static void calls(const struct row *row, const char *where)
{
    uint64_t before = 0;

    if (row->is_free == WHEN_FED) row->block();
    for (int i = 0; i < ROUNDS; i++) {
        if (i == WARM_UP) before = load_relaxed(&allocs);
        if (row->is_free == WHEN_FED) row->feed();
        ASSERT_GE(row->call(), 0);
        row->after();
    }
    expect_since(0, before, row, where);
}

#endif
