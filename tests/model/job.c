/* SPDX-License-Identifier: MIT
 *
 * Blocking jobs, proven: whatever gives a job up, starts, finishes or fails it, in whatever order,
 * its frame is touched by nobody once its awaiter has the answer; a job that was withdrawn never
 * runs; one that was left behind is disposed of once; no wake is lost. And: who is idle, about to
 * end, or spinning comes when a job is there, so that none is forgotten.
 *
 * An awaiter is a task with the real state word, polled by a thread of its own; a thread of the pool
 * goes through the steps of blocking.c with the real queue, hand-over and park. A thread that is to be
 * started is one that waits for its turn.
 */
#include "sched/job.c"

#include "awaiter.h"

#define AWAITERS 2
#define THREADS  2

/* ---- the pool ---- */

static struct weft__jobs jobs;
static struct weft__lane lane;

struct thread {
    struct weft__hand hand;
    _Atomic uint32_t started; /* it may begin */
};

static struct thread threads[THREADS];
static _Atomic uint32_t starts;      /* how many were asked for */
static unsigned runs[AWAITERS];      /* by job: plain, under what orders a job's life */
static unsigned disposals[AWAITERS]; /* the same */

struct frame {
    struct weft__job job;
    unsigned index;
};

/* ---- broken twins ---- */

enum {
    HONEST,
    DONE_IS_RELAXED,   /* the result is not published */
    DONE_THEN_CLAIM,   /* the waker is looked for in a frame that may be gone */
    LOOKS_UNLOCKED,    /* the awaiter believes the state without the lock */
    TAKES_BACK_ALWAYS, /* the awaiter leaves, also when its job has begun */
    ENDS_UNASKED,      /* an idle thread ends without a look whether it was called */
    CALLS_NOBODY,      /* a thread that takes a job leaves the next one to itself */
    FORGETS_THE_REST,  /* who spun goes to sleep without a look */
    FAILS_UNTOLD,      /* what is failed is not woken */
};

static struct weft_waker finish_twin(struct weft__job *job, int64_t ret)
{
    struct weft_waker waker;
    switch (model_mutant) {
    case DONE_IS_RELAXED:
        job->lane->running--;
        lane_weigh(&jobs, job->lane);
        plain_write(&job->ret, ret);
        waker = weft__waker_claim(plain_read(&job->waker));
        store_relaxed(&job->state, WEFT__JOB_DONE);
        return waker;
    case DONE_THEN_CLAIM:
        job->lane->running--;
        lane_weigh(&jobs, job->lane);
        plain_write(&job->ret, ret);
        store_release(&job->state, WEFT__JOB_DONE);
        return weft__waker_claim(plain_read(&job->waker));
    default:
        return weft__job_finish(&jobs, job, ret);
    }
}

static enum weft__job_answer poll_twin(struct weft__job *job, bool stop)
{
    if (model_mutant == LOOKS_UNLOCKED)
        return load_acquire(&job->state) == WEFT__JOB_DONE ? WEFT__JOB_READY : WEFT__JOB_WAIT;
    enum weft__job_answer answer = weft__job_poll(&jobs, job, stop);
    if (model_mutant == TAKES_BACK_ALWAYS && stop && answer == WEFT__JOB_WAIT)
        return WEFT__JOB_WITHDRAWN;
    return answer;
}

/* ---- a thread of the pool ---- */

static struct frame *frame_of(struct weft__job *job)
{
    return weft__container_of(job, struct frame, job);
}

static void call(const struct weft__calls *calls)
{
    for (uint32_t i = 0; i < calls->wakes; i++)
        weft__unpark(&calls->wake[i]->park);
    for (uint32_t i = 0; i < calls->starts; i++) {
        uint32_t nth = fetch_add_relaxed(&starts, 1);
        model_assert(nth < THREADS);
        store_release(&threads[nth].started, 1);
    }
}

/* A job that waits for the other: both must have a thread. */
static bool jobs_meet;
static _Atomic uint32_t met;

static void run(struct frame *f)
{
    unsigned index = plain_read(&f->index);
    plain_write(&runs[index], plain_read(&runs[index]) + 1);
    if (!jobs_meet) return;
    fetch_add_relaxed(&met, 1);
    while (load_relaxed(&met) < AWAITERS)
        model_yield();
}

/* What a finished job leaves to be done once the lock is dropped, as in blocking.c. */
struct aftermath {
    struct weft_waker claimed;
    struct frame *late;
};

static void settle(struct aftermath *a)
{
    weft__waker_push(a->claimed, &awaiter_sched);
    if (a->late) {
        unsigned index = plain_read(&a->late->index);
        plain_write(&disposals[index], plain_read(&disposals[index]) + 1);
        model_free(a->late);
    }
    *a = (struct aftermath){0};
}

/* The lock is held, before and after. */
static void run_and_finish(struct weft__job *job, struct aftermath *before)
{
    struct weft__calls calls = {0};
    if (model_mutant != CALLS_NOBODY) weft__jobs_call(&jobs, &calls);
    weft__lock_drop(&jobs.lock);
    settle(before);
    call(&calls);
    run(frame_of(job));
    weft__lock_take(&jobs.lock);
    if (plain_read(&job->abandoned)) before->late = frame_of(job);
    before->claimed = finish_twin(job, 42);
}

static bool keeps_for_ever; /* nobody ends for want of work */

/* As sleep_until_called. The lock is held when it returns. */
static bool sleep_until_called(struct thread *t)
{
    bool called = weft__park(&t->hand.park, keeps_for_ever ? WEFT__NEVER : 1);
    weft__lock_take(&jobs.lock);
    if (!called) {
        bool was_idle = weft__jobs_unrest(&jobs, &t->hand);
        if (was_idle || model_mutant == ENDS_UNASKED) return false;
        weft__lock_drop(&jobs.lock);
        while (!weft__park(&t->hand.park, WEFT__NEVER)) {
        }
        weft__lock_take(&jobs.lock);
    }
    jobs.coming--;
    return true;
}

/* As spin, for no time or until there is something. */
static void spin(void)
{
    if (model_choose(2) == 0) return;
    while (load_relaxed(&jobs.ready) == 0 && !load_relaxed(&jobs.closing))
        model_yield();
}

static bool may_spin;

/* As rest. The lock is held when it returns. False: it ends. */
static bool rest(struct thread *t, bool spins)
{
    if (!spins) return sleep_until_called(t);
    spin();
    weft__lock_take(&jobs.lock);
    weft__jobs_spun(&jobs);
    if (model_mutant != FORGETS_THE_REST) return true;
    (void)weft__jobs_rest(&jobs, &t->hand, false);
    weft__lock_drop(&jobs.lock);
    return sleep_until_called(t);
}

/* As work. The lock is held, before and after. */
static void work(struct thread *t)
{
    struct aftermath before = {0};
    bool spun = !may_spin;
    bool stays = true;
    while (stays) {
        struct weft__job *job = weft__job_take(&jobs);
        if (job) {
            run_and_finish(job, &before);
            spun = !may_spin;
            continue;
        }
        if (load_relaxed(&jobs.closing)) break;
        bool spins = weft__jobs_rest(&jobs, &t->hand, !spun);
        weft__lock_drop(&jobs.lock);
        settle(&before);
        stays = rest(t, spins);
        spun = true;
    }
    weft__lock_drop(&jobs.lock);
    settle(&before);
    weft__lock_take(&jobs.lock);
}

static void pool_thread(void *arg)
{
    struct thread *t = arg;
    while (!load_acquire(&t->started) && !load_acquire(&jobs.closing))
        model_yield();
    if (!load_acquire(&t->started)) return; /* nobody wanted it */
    weft__lock_take(&jobs.lock);
    jobs.coming--;
    work(t);
    store_relaxed(&jobs.live, load_relaxed(&jobs.live) - 1);
    weft__lock_drop(&jobs.lock);
}

/* ---- an awaiter ---- */

struct submitter {
    struct awaiter awaiter;
    unsigned index;
    bool owning;
};

static struct submitter submitters[AWAITERS];

static _Atomic uint32_t awaiting; /* that have no answer yet */

/* The last to be answered closes the pool, as stop does when no task is left. */
static void close_pool(void)
{
    weft__lock_take(&jobs.lock);
    store_release(&jobs.closing, true);
    weft__lock_drop(&jobs.lock);
    for (;;) {
        weft__lock_take(&jobs.lock);
        struct weft__link *first = weft__list_pop_front(&jobs.idle);
        if (first) {
            jobs.idle_count--;
            jobs.coming++;
        }
        weft__lock_drop(&jobs.lock);
        if (!first) return;
        weft__unpark(&weft__container_of(first, struct weft__hand, idle)->park);
    }
}

static int64_t expected_error; /* of a job that was failed; 0: none is */

static void has_answer(struct submitter *a, struct frame *f, enum weft__job_answer answer)
{
    if (answer == WEFT__JOB_READY) {
        int64_t ret = plain_read(&f->job.ret);
        model_assert(ret == 42 || (expected_error != 0 && ret == expected_error));
        model_assert(plain_read(&runs[a->index]) == (ret == 42));
    }
    if (answer == WEFT__JOB_WITHDRAWN) model_assert(plain_read(&runs[a->index]) == 0);
    if (answer != WEFT__JOB_LEFT) model_free(f);
    if (fetch_sub_acq_rel(&awaiting, 1) == 1) close_pool();
}

static void submitter_thread(void *arg)
{
    struct submitter *a = arg;
    struct frame *f = model_alloc(sizeof(*f));
    struct weft__calls calls = {0};

    plain_write(&f->index, a->index);
    plain_write(&f->job.lane, &lane);
    plain_write(&f->job.waker, weft__waker_of(&a->awaiter.task));
    plain_write(&f->job.owning, a->owning);
    uint64_t word = awaiter_first_poll(&a->awaiter);
    int r = weft__job_submit(&jobs, &f->job, &calls);
    model_assert(r == 0);
    call(&calls);
    for (;;) { /* each round is a poll; the first goes on behind the submit, for one answer more */
        enum weft__job_answer answer = poll_twin(&f->job, word & WEFT__STATE_CANCELLED);
        if (answer != WEFT__JOB_WAIT) {
            has_answer(a, f, answer);
            return;
        }
        word = awaiter_next_poll(&a->awaiter);
    }
}

/* ---- the cases ---- */

static void begin(unsigned awaiter_count, uint32_t bound)
{
    weft__jobs_init(&jobs);
    weft__lane_init(&jobs, &lane, bound);
    store_relaxed(&starts, 0);
    store_relaxed(&met, 0);
    store_relaxed(&awaiting, awaiter_count);
    jobs_meet = false;
    may_spin = false;
    keeps_for_ever = true;
    expected_error = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        store_relaxed(&threads[i].started, 0);
        weft__link_init(&threads[i].hand.idle);
        weft__park_init(&threads[i].hand.park);
    }
    for (unsigned i = 0; i < AWAITERS; i++) {
        plain_write(&runs[i], 0);
        plain_write(&disposals[i], 0);
        submitters[i].index = i;
        submitters[i].owning = false;
        awaiter_init(&submitters[i].awaiter);
    }
}

static void end(void)
{
    model_join();
    for (unsigned i = 0; i < AWAITERS; i++) {
        model_assert(plain_read(&runs[i]) <= 1);
        model_assert(plain_read(&disposals[i]) <= 1);
    }
    model_assert(load_relaxed(&jobs.live) == 0);
    model_assert(load_relaxed(&jobs.ready) == 0);
    model_assert(jobs.coming == 0);
}

/* One job, one thread that is started for it. */
static void one_job(void)
{
    begin(1, 1);
    model_thread(submitter_thread, &submitters[0]);
    model_thread(pool_thread, &threads[0]);
    end();
}

/* Given up at any moment. */
static void one_given_up(void)
{
    begin(1, 1);
    model_thread(awaiter_cancel, &submitters[0].awaiter);
    model_thread(submitter_thread, &submitters[0]);
    model_thread(pool_thread, &threads[0]);
    end();
}

static void owner_given_up(void)
{
    begin(1, 1);
    submitters[0].owning = true;
    model_thread(awaiter_cancel, &submitters[0].awaiter);
    model_thread(submitter_thread, &submitters[0]);
    model_thread(pool_thread, &threads[0]);
    end();
}

/* Two, one of them given up, for one thread. */
static void two_for_one(void)
{
    begin(2, 1);
    model_thread(awaiter_cancel, &submitters[0].awaiter);
    model_thread(submitter_thread, &submitters[0]);
    model_thread(submitter_thread, &submitters[1]);
    model_thread(pool_thread, &threads[0]);
    end();
}

/* Two that wait for each other: the thread that takes the first calls one for the second. */
static void two_meet(void)
{
    begin(2, 2);
    jobs_meet = true;
    model_thread(submitter_thread, &submitters[0]);
    model_thread(submitter_thread, &submitters[1]);
    model_thread(pool_thread, &threads[0]);
    model_thread(pool_thread, &threads[1]);
    end();
}

/* The thread is idle, and about to end. */
static void idle_thread(void)
{
    jobs.idle_count = 0;
    store_relaxed(&threads[0].started, 1);
    store_relaxed(&starts, 1);
    store_relaxed(&jobs.live, 1);
    jobs.coming = 1;
}

static void one_for_who_ends(void)
{
    begin(1, 1);
    keeps_for_ever = false;
    idle_thread();
    model_thread(submitter_thread, &submitters[0]);
    model_thread(pool_thread, &threads[0]);
    model_thread(pool_thread, &threads[1]);
    end();
}

/* The thread has run a job, and spins. */
static void one_for_who_spins(void)
{
    begin(1, 1);
    may_spin = true;
    idle_thread();
    model_thread(submitter_thread, &submitters[0]);
    model_thread(pool_thread, &threads[0]);
    end();
}

/* No thread can be started: whoever waits is told. */
static void fails(void *arg)
{
    (void)arg;
    while (load_relaxed(&starts) == 0 && load_relaxed(&awaiting) > 0)
        model_yield();
    weft__lock_take(&jobs.lock);
    struct weft__wake_chain failed = weft__jobs_fail_all(&jobs, -7);
    if (jobs.coming > 0) jobs.coming--;
    store_relaxed(&jobs.live, 0);
    weft__lock_drop(&jobs.lock);
    if (model_mutant != FAILS_UNTOLD) weft__wake_chain_push(&failed, &awaiter_sched);
}

static void failed_and_given_up(void)
{
    begin(1, 1);
    expected_error = -7;
    model_thread(awaiter_cancel, &submitters[0].awaiter);
    model_thread(submitter_thread, &submitters[0]);
    model_thread(fails, NULL);
    end();
}

static void failed(void)
{
    begin(1, 1);
    expected_error = -7;
    model_thread(submitter_thread, &submitters[0]);
    model_thread(fails, NULL);
    end();
}

static const struct model_case cases[] = {
    {.name = "job: one", .run = one_job, .preemptions = 3, .weaken = true},
    {.name = "job: given up at any moment", .run = one_given_up, .preemptions = 2},
    {.name = "job: an owning one, given up", .run = owner_given_up, .preemptions = 2},
    {.name = "job: two for one thread, one given up",
     .run = two_for_one,
     .pct_depth = 3,
     .executions_max = 20000},
    {.name = "job: two that wait for each other",
     .run = two_meet,
     .pct_depth = 3,
     .executions_max = 20000},
    {.name = "job: for a thread that is about to end", .run = one_for_who_ends, .preemptions = 1},
    {.name = "job: for a thread that spins", .run = one_for_who_spins, .preemptions = 2},
    {.name = "job: no thread can be started", .run = failed, .preemptions = 3, .weaken = true},
    {.name = "job: no thread, and given up", .run = failed_and_given_up, .preemptions = 2},
    {.name = "mutant: done is relaxed",
     .run = one_job,
     .mutant = DONE_IS_RELAXED,
     .must_fail = true},
    {.name = "mutant: done, then the claim",
     .run = one_job,
     .mutant = DONE_THEN_CLAIM,
     .must_fail = true,
     .why = "use after free"},
    {.name = "mutant: the awaiter looks without the lock",
     .run = one_given_up,
     .mutant = LOOKS_UNLOCKED,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: a job that has begun is taken back",
     .run = one_given_up,
     .mutant = TAKES_BACK_ALWAYS,
     .must_fail = true},
    {.name = "mutant: ends without a look whether it was called",
     .run = one_for_who_ends,
     .mutant = ENDS_UNASKED,
     .must_fail = true},
    {.name = "mutant: takes a job and calls nobody for the next",
     .run = two_meet,
     .preemptions = 1,
     .mutant = CALLS_NOBODY,
     .must_fail = true},
    {.name = "mutant: sleeps behind its spin without a look",
     .run = one_for_who_spins,
     .mutant = FORGETS_THE_REST,
     .must_fail = true},
    {.name = "mutant: what fails is not told",
     .run = failed,
     .mutant = FAILS_UNTOLD,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), awaiter_spare);
}
