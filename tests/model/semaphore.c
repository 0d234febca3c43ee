/* SPDX-License-Identifier: MIT
 *
 * The semaphore, proven: who takes a permit sees what was done with it; nobody is forgotten, none is lost or made, whoever
 * is cancelled meanwhile, and whatever is forgotten; nobody passes; and who got it may free it.
 */
#include "leaf.h"
#include "sync/semaphore.c"

static weft_sem *sem;
static int guarded;
static bool frees;              /* whoever gets it frees the semaphore */
static bool gives_back;
static bool reads;           /* it looks at what is guarded, and does not change it */
static bool cancelled_frees; /* given up, it takes a permit if there is one, and frees the semaphore */
static bool freed;
static uint64_t wants[3];
static uint64_t forgotten;

enum {
    HONEST,
    KEEPS_WHAT_IT_WAS_GRANTED,
    LEAVES_WITHOUT_A_LOOK,
    PUTS_PAST_THE_LINE,
    FORGETS_WITHOUT_A_LOOK, /* with waiters the word is the lock's */
};

/* One who wanted much leaves, and nobody looks at who is behind it. */
static weft_poll leave_twin(struct weft_sem_acquire *f)
{
    struct weft__sem *s = sem_of(f->sem);
    weft__leaf_lock(&s->list);
    bool granted = weft__waitlist_settle(&s->list, WEFT__LEAF_WAITER(f)) && f->ret == 0;
    if (granted && model_mutant == LEAVES_WITHOUT_A_LOOK)
        (void)fetch_add_release(&s->word, f->permits * PERMIT);
    if (weft__waitlist_empty(&s->list)) (void)fetch_and_relaxed(&s->word, ~WAITERS);
    weft__waitlist_unlock(&s->list);
    return ends(f, -ECANCELED);
}

static unsigned number_of(const struct actor *actor)
{
    for (unsigned i = 0; i < 3; i++)
        if (actors[i] == actor) return i;
    return 0;
}

static weft_poll acquires(struct actor *actor, weft_cx *cx)
{
    struct weft_sem_acquire *f = (void *)actor->frame;
    bool twin = model_mutant == KEEPS_WHAT_IT_WAS_GRANTED || model_mutant == LEAVES_WITHOUT_A_LOOK;
    f->sem = sem;
    f->permits = wants[number_of(actor)];
    weft_poll answer =
        twin && cx->why && f->weft__at ? leave_twin(f) : weft_sem_acquire_poll(f, cx);
    if (answer == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        if (cancelled_frees && weft_sem_try_acquire(sem, 1) == 0) {
            freed = true;
            model_free(sem);
        }
        return WEFT_READY;
    }
    got++;
    if (reads) {
        model_assert(plain_read(&guarded) > 0);
    } else {
        plain_write(&guarded, plain_read(&guarded) + 1);
    }
    if (gives_back) weft_sem_release(sem, f->permits);
    if (frees) model_free(sem);
    return WEFT_READY;
}

static void begin(unsigned count, uint64_t permits, uint32_t references_of_0)
{
    actors_begin();
    sem = model_alloc(sizeof(*sem));
    weft_sem_init(sem, permits);
    plain_write(&guarded, 0);
    frees = false;
    gives_back = true;
    reads = false;
    cancelled_frees = false;
    freed = false;
    forgotten = 0;
    for (unsigned i = 0; i < 3; i++)
        wants[i] = 1;
    for (unsigned i = 0; i < count; i++)
        actors[i] = actor_new(acquires, i == 0 ? references_of_0 : 0);
}

static void end(unsigned count, uint64_t permits)
{
    model_join();
    model_assert(got + given_up == count);
    model_assert(weft_sem_permits(sem) == permits);
    model_assert((load_relaxed(&sem_of(sem)->word) & WAITERS) == 0);
    weft_sem_done(sem);
    model_free(sem);
}

/* The permit comes with something that was written before. */
static void puts_one(void *arg)
{
    (void)arg;
    if (model_mutant == PUTS_PAST_THE_LINE) {
        (void)fetch_add_release(&sem_of(sem)->word, PERMIT); /* whoever waits is not looked at */
        return;
    }
    weft_sem_release(sem, 1);
}

static void puts_and_writes(void *arg)
{
    (void)arg;
    plain_write(&guarded, plain_read(&guarded) + 1);
    weft_sem_release(sem, 1);
}

static uint64_t forget_twin(void)
{
    struct weft__sem *s = sem_of(sem);
    uint64_t word = load_relaxed(&s->word);
    do {
        if (word / PERMIT == 0) return 0;
    } while (!cas_relaxed(&s->word, &word, word - PERMIT));
    return 1;
}

static void forgets_one(void *arg)
{
    (void)arg;
    forgotten = model_mutant == FORGETS_WITHOUT_A_LOOK ? forget_twin() : weft_sem_forget(sem, 1);
}

/* ---- the cases ---- */

/* As a mutex. */
static void two(void)
{
    begin(2, 1, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2, 1);
}

/* Permits that come while somebody queues, one from each of two. */
static void two_puts(void)
{
    begin(1, 0, 0);
    wants[0] = 2;
    model_thread(actor_begin, actors[0]);
    model_thread(puts_one, NULL);
    model_thread(puts_one, NULL);
    end(1, 2);
}

/* The taker sees what was written before the permit came, also if others were granted in between. */
static void published(void)
{
    begin(1, 0, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(puts_and_writes, NULL);
    end(1, 1);
}

static void reads_it(void *arg)
{
    (void)arg;
    if (weft_sem_try_acquire(sem, 1) == 0) model_assert(plain_read(&guarded) > 0);
}

static void puts_two(void *arg)
{
    (void)arg;
    plain_write(&guarded, 1);
    weft_sem_release(sem, 2);
}

/* Two permits come, one for who waits, and who takes the other sees what was written before them. */
static void rest_is_published(void)
{
    begin(1, 0, 0);
    reads = true;
    actor_run(actors[0]);
    model_thread(puts_two, NULL);
    model_thread(reads_it, NULL);
    model_join();
    model_assert(got == 1);
    model_assert(weft_sem_permits(sem) <= 2);
    weft_sem_done(sem);
    model_free(sem);
}

/* One who waited is cancelled, and frees the semaphore once it has the permit all the same. */
static void cancelled_one_frees(void)
{
    begin(1, 0, 1);
    gives_back = false;
    cancelled_frees = true;
    actor_run(actors[0]);
    model_thread(puts_one, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    if (freed) return;
    weft_sem_done(sem);
    model_free(sem);
}

static void taker_frees(void)
{
    begin(1, 0, 0);
    gives_back = false;
    frees = true;
    model_thread(actor_begin, actors[0]);
    model_thread(puts_one, NULL);
    model_join();
    model_assert(got == 1);
}

/* The first wants two, and one is there; behind it one wants one: if the first is cancelled, the second gets it. */
static void first_is_cancelled(void)
{
    begin(2, 0, 1);
    wants[0] = 2;
    actor_run(actors[0]);
    actor_run(actors[1]);
    weft_sem_release(sem, 1);
    model_assert(got == 0); /* nobody passes */
    model_thread(puts_one, NULL);
    model_thread(actor_cancel, actors[0]);
    end(2, 2);
}

static void granted_is_cancelled(void)
{
    begin(2, 0, 1);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(puts_one, NULL);
    model_thread(actor_cancel, actors[0]);
    end(2, 1);
}

static void closes(void *arg)
{
    (void)arg;
    weft_sem_close(sem);
}

static void closed_against_put(void)
{
    begin(2, 0, 0);
    actor_run(actors[0]);
    model_thread(closes, NULL);
    model_thread(puts_one, NULL);
    model_thread(actor_begin, actors[1]);
    end(2, 1);
}

/* One is there, one comes, one is forgotten, and somebody wants two: there are as many as came and were not forgotten. */
static void forgotten_against_put(void)
{
    begin(1, 1, 0);
    wants[0] = 2;
    model_thread(actor_begin, actors[0]);
    model_thread(puts_one, NULL);
    model_thread(forgets_one, NULL);
    model_join();
    model_assert(weft_sem_permits(sem) + forgotten == 2);
    uint64_t lacks = got == 0 ? forgotten : 0;
    if (lacks > 0) weft_sem_release(sem, lacks);
    end(1, 2 - forgotten + lacks);
}

static const struct model_case cases[] = {
    {.name = "semaphore: two take one permit", .run = two, .preemptions = 3, .weaken = true},
    {.name = "semaphore: two permits for one", .run = two_puts, .preemptions = 3, .weaken = true},
    {.name = "semaphore: a permit publishes", .run = published, .unbounded = true, .weaken = true},
    {.name = "semaphore: what is left publishes", .run = rest_is_published, .preemptions = 3, .weaken = true},
    {.name = "semaphore: one who gave up frees it", .run = cancelled_one_frees, .preemptions = 4},
    {.name = "semaphore: the taker frees it", .run = taker_frees, .unbounded = true},
    {.name = "semaphore: the first is cancelled", .run = first_is_cancelled, .preemptions = 4},
    {.name = "semaphore: one who was granted is cancelled", .run = granted_is_cancelled, .preemptions = 4},
    {.name = "semaphore: closed, a permit, a newcomer", .run = closed_against_put, .preemptions = 3},
    {.name = "semaphore: one is forgotten, one comes", .run = forgotten_against_put, .preemptions = 4},
    {.name = "mutant: a cancelled waiter keeps its permits", .run = granted_is_cancelled, .mutant = KEEPS_WHAT_IT_WAS_GRANTED, .must_fail = true},
    {.name = "mutant: it leaves without a look at the next", .run = granted_is_cancelled, .mutant = LEAVES_WITHOUT_A_LOOK, .must_fail = true},
    {.name = "mutant: a permit that does not look who waits", .run = two_puts, .mutant = PUTS_PAST_THE_LINE, .must_fail = true},
    {.name = "mutant: forgotten without a look who waits", .run = forgotten_against_put, .mutant = FORGETS_WITHOUT_A_LOOK, .must_fail = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
