/* SPDX-License-Identifier: MIT
 *
 * File operations on a ring, proven: whoever fetches the answer, and whenever who awaits it gives it up, its frame is touched by nobody
 * once its awaiter has the answer; a buffer is not given back before the kernel is through with it; one that was left behind is disposed of
 * once; no wake is lost, and the kernel is asked to cancel it at most once.
 *
 * An awaiter is a task with the real state word, polled by a thread of its own. The kernel is a thread that answers what was asked, when it
 * likes, and writes to the buffer until then. Two threads fetch, as any may: under the lock, with the real hand-over.
 */
#include "driver/fileop.c"

#include "awaiter.h"

#define FETCHERS 2

struct frame {
    struct weft__fileop op;
    unsigned buffer; /* the kernel writes here until it answers */
};

/* ---- the kernel ---- */

static struct weft__lock lock;         /* the ring's */
static struct frame *_Atomic asked;    /* the request; the kernel takes it */
static _Atomic uint32_t cancel_asked;  /* how often */
static struct frame *_Atomic answered; /* the answer, until it is fetched */
static _Atomic uint32_t fetched;       /* it was */
static unsigned disposals;

void weft__files_cancel(struct weft__fileop *op)
{
    (void)op;
    fetch_add_relaxed(&cancel_asked, 1);
}

/* Works in the buffer, and answers; told to cancel, perhaps without having done anything. */
static void kernel(void *unused)
{
    struct frame *f;
    (void)unused;
    while (!(f = load_acquire(&asked)))
        model_yield();
    if (load_relaxed(&cancel_asked) == 0) plain_write(&f->buffer, 7);
    store_release(&answered, f);
}

/* ---- broken twins ---- */

enum {
    HONEST,
    DONE_IS_RELAXED, /* the answer is not published */
    DONE_THEN_CLAIM, /* the waker is looked for in a frame that may be gone */
    LOOKS_UNLOCKED,  /* the awaiter believes the state without the lock */
    LEAVES_A_BORROWER, /* who borrows goes home once it has asked for the cancel */
    ABANDONS_UNLOCKED, /* who owns says so without the lock */
    FETCHES_UNLOCKED,  /* two fetch the same answer */
};

static void finish_twin(struct weft__fileop *op, int64_t ret, struct weft__wake_chain *chain)
{
    struct weft_waker waker;
    switch (model_mutant) {
    case DONE_IS_RELAXED:
        plain_write(&op->ret, ret);
        weft__wake_chain_claim(chain, plain_read(&op->waker));
        store_relaxed(&op->state, WEFT__FILEOP_DONE);
        return;
    case DONE_THEN_CLAIM:
        plain_write(&op->ret, ret);
        store_release(&op->state, WEFT__FILEOP_DONE);
        waker = plain_read(&op->waker);
        weft__wake_chain_claim(chain, waker);
        return;
    default:
        weft__fileop_finish(op, ret, chain);
    }
}

static enum weft__fileop_answer poll_twin(struct weft__fileop *op, bool stop)
{
    enum weft__fileop_answer answer;
    switch (model_mutant) {
    case LOOKS_UNLOCKED:
        return weft__fileop_is_done(op) ? WEFT__FILEOP_READY : WEFT__FILEOP_WAIT;
    case ABANDONS_UNLOCKED:
        if (weft__fileop_is_done(op)) return WEFT__FILEOP_READY;
        return stop ? give_up(op) : weft__fileop_poll(op, &lock, false);
    default:
        answer = weft__fileop_poll(op, &lock, stop);
        if (model_mutant == LEAVES_A_BORROWER && stop && answer == WEFT__FILEOP_WAIT)
            return WEFT__FILEOP_READY;
        return answer;
    }
}

/* ---- who fetches ---- */

static void dispose(struct weft__fileop *op, int64_t ret)
{
    model_assert(ret == 42);
    plain_write(&disposals, plain_read(&disposals) + 1);
    model_free(weft__container_of(op, struct frame, op));
}

/* As fetch and settle in files.c. */
static void fetch_once(void)
{
    struct weft__wake_chain woken = WEFT__WAKE_CHAIN_INIT;
    struct weft__fileop *late = NULL;

    if (model_mutant != FETCHES_UNLOCKED) weft__lock_take(&lock);
    struct frame *f = load_acquire(&answered);
    if (f) {
        store_relaxed(&answered, NULL);
        if (plain_read(&f->op.abandoned)) {
            late = &f->op;
        } else {
            finish_twin(&f->op, 42, &woken);
        }
        store_relaxed(&fetched, 1);
    }
    if (model_mutant != FETCHES_UNLOCKED) weft__lock_drop(&lock);
    weft__wake_chain_push(&woken, &awaiter_sched);
    if (late) late->dispose(late, 42);
}

static void fetcher(void *unused)
{
    (void)unused;
    while (!load_relaxed(&fetched)) { /* woken by the ring's fd, or by nothing in particular */
        if (load_relaxed(&answered)) fetch_once();
        model_yield();
    }
}

/* ---- who awaits ---- */

static struct awaiter awaiter;
static bool owning; /* the frame is disposed of by who comes late */

/* As weft__files_begin, whose look on the spot found nothing. */
static void begin_op(struct frame *f)
{
    weft__link_init(&f->op.link);
    plain_write(&f->buffer, 0);
    plain_write(&f->op.dispose, owning ? dispose : NULL);
    plain_write(&f->op.stopping, false);
    plain_write(&f->op.abandoned, false);
    store_relaxed(&f->op.state, WEFT__FILEOP_ASKED);
    weft__lock_take(&lock);
    store_release(&asked, f);
    plain_write(&f->op.waker, weft__waker_of(&awaiter.task));
    weft__lock_drop(&lock);
}

static void has_answer(struct frame *f, enum weft__fileop_answer answer)
{
    if (answer == WEFT__FILEOP_LEFT) return;
    model_assert(plain_read(&f->op.ret) == 42);
    unsigned written = plain_read(&f->buffer);
    model_assert(written == 7 || (written == 0 && load_relaxed(&cancel_asked) > 0));
    model_free(f);
}

static void awaiter_thread(void *unused)
{
    struct frame *f = model_alloc(sizeof(*f));
    uint64_t word = awaiter_first_poll(&awaiter);
    (void)unused;

    begin_op(f);
    for (;;) { /* each round is a poll; the first goes on behind the beginning, for one answer more */
        enum weft__fileop_answer answer = poll_twin(&f->op, word & WEFT__STATE_CANCELLED);
        if (answer != WEFT__FILEOP_WAIT) {
            has_answer(f, answer);
            return;
        }
        word = awaiter_next_poll(&awaiter);
    }
}

/* ---- the cases ---- */

static void begin(bool owns)
{
    weft__lock_init(&lock, WEFT__RANK_DRIVER);
    store_relaxed(&asked, NULL);
    store_relaxed(&answered, NULL);
    store_relaxed(&cancel_asked, 0);
    store_relaxed(&fetched, 0);
    plain_write(&disposals, 0);
    owning = owns;
    awaiter_init(&awaiter);
}

/* Who fetches comes right behind the answer; for the cases with somebody more. */
static void kernel_and_fetcher(void *unused)
{
    kernel(unused);
    fetch_once();
}

/* 0: nobody but who comes with the answer. */
static void end(unsigned fetchers)
{
    model_thread(awaiter_thread, NULL);
    model_thread(fetchers ? kernel : kernel_and_fetcher, NULL);
    for (unsigned i = 0; i < fetchers; i++)
        model_thread(fetcher, NULL);
    model_join();
    model_assert(load_relaxed(&cancel_asked) <= 1);
    model_assert(plain_read(&disposals) <= 1);
}

static void answered_once(void)
{
    begin(false);
    end(1);
}

static void given_up(void)
{
    begin(false);
    model_thread(awaiter_cancel, &awaiter);
    end(0);
}

static void owner_given_up(void)
{
    begin(true);
    model_thread(awaiter_cancel, &awaiter);
    end(0);
}

static void two_fetch(void)
{
    begin(false);
    end(FETCHERS);
}

static const struct model_case cases[] = {
    {.name = "fileop: answered", .run = answered_once, .preemptions = 2, .weaken = true},
    {.name = "fileop: given up at any moment", .run = given_up, .preemptions = 2},
    {.name = "fileop: an owning one, given up", .run = owner_given_up, .preemptions = 2},
    {.name = "fileop: two that fetch", .run = two_fetch, .preemptions = 1},
    {.name = "mutant: done is relaxed",
     .run = answered_once,
     .mutant = DONE_IS_RELAXED,
     .must_fail = true},
    {.name = "mutant: done, then the claim",
     .run = answered_once,
     .mutant = DONE_THEN_CLAIM,
     .must_fail = true,
     .why = "use after free"},
    {.name = "mutant: the awaiter looks without the lock",
     .run = answered_once,
     .mutant = LOOKS_UNLOCKED,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: who borrows does not wait for the kernel",
     .run = given_up,
     .mutant = LEAVES_A_BORROWER,
     .must_fail = true},
    {.name = "mutant: left behind without the lock",
     .run = owner_given_up,
     .mutant = ABANDONS_UNLOCKED,
     .must_fail = true},
    {.name = "mutant: two fetch without the lock",
     .run = two_fetch,
     .mutant = FETCHES_UNLOCKED,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), awaiter_spare);
}
