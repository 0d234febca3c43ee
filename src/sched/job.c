/* SPDX-License-Identifier: MIT
 *
 * job - queues, turns and hand-over; the idea is in job.h.
 */
#include "sched/job.h"

#include <errno.h>

/* ---- lanes ---- */

void weft__jobs_init(struct weft__jobs *jobs)
{
    weft__lock_init(&jobs->lock, WEFT__RANK_BLOCKING);
    jobs->coming = 0;
    jobs->idle_count = 0;
    jobs->spinning = false;
    jobs->done_count = 0;
    weft__link_init(&jobs->lanes);
    weft__link_init(&jobs->turn);
    weft__link_init(&jobs->idle);
    store_relaxed(&jobs->live, 0); /* relaxed, all: not shared yet */
    store_relaxed(&jobs->ready, 0);
    store_relaxed(&jobs->closing, false);
}

void weft__lane_init(struct weft__jobs *jobs, struct weft__lane *lane, uint32_t bound)
{
    weft__link_init(&lane->all);
    weft__link_init(&lane->turn);
    weft__link_init(&lane->queue);
    lane->bound = bound;
    lane->queued = 0;
    lane->running = 0;
    lane->may = 0;
    weft__lock_take(&jobs->lock);
    weft__list_push_back(&jobs->lanes, &lane->all);
    weft__lock_drop(&jobs->lock);
}

void weft__lane_done(struct weft__lane *lane)
{
    weft_assert(lane->queued == 0);
    weft_assert(lane->running == 0);
    weft__list_remove(&lane->all);
}

/* After each change of `queued` or `running`. A lane that goes on having jobs goes behind the
 * others only when it was taken from. */
static void lane_weigh(struct weft__jobs *jobs, struct weft__lane *lane)
{
    uint32_t room = lane->bound - lane->running;
    uint32_t may = lane->queued < room ? lane->queued : room;
    uint32_t ready = load_relaxed(&jobs->ready); /* relaxed: written under the lock that we hold */

    weft__lock_assert_held(&jobs->lock);
    weft_dassert(lane->running <= lane->bound);
    weft_dassert(ready >= lane->may);
    if (may == 0 && weft__link_linked(&lane->turn)) weft__list_remove(&lane->turn);
    if (may > 0 && !weft__link_linked(&lane->turn)) weft__list_push_back(&jobs->turn, &lane->turn);
    /* relaxed: who spins takes the lock before it believes it */
    if (may != lane->may) store_relaxed(&jobs->ready, ready - lane->may + may);
    lane->may = may;
}

static void lane_unlink(struct weft__jobs *jobs, struct weft__job *job)
{
    weft__list_remove(&job->link);
    job->lane->queued--;
    lane_weigh(jobs, job->lane);
}

/* ---- who comes ---- */

static void call_one(struct weft__jobs *jobs, struct weft__calls *calls)
{
    struct weft__link *first = weft__list_pop_front(&jobs->idle);
    jobs->coming++;
    if (first) {
        jobs->idle_count--;
        calls->wake[calls->wakes++] = weft__container_of(first, struct weft__hand, idle);
    } else {
        store_relaxed(&jobs->live,
                      load_relaxed(&jobs->live) + 1); /* relaxed, both: written under the lock */
        calls->starts++;
    }
}

/* relaxed: written under the lock that we hold */
static bool wants_more(const struct weft__jobs *jobs)
{
    return load_relaxed(&jobs->ready) > jobs->coming;
}

void weft__jobs_call(struct weft__jobs *jobs, struct weft__calls *calls)
{
    weft__lock_assert_held(&jobs->lock);
    while (wants_more(jobs) && calls->wakes + calls->starts < WEFT__CALLS_MAX)
        call_one(jobs, calls);
}

bool weft__jobs_rest(struct weft__jobs *jobs, struct weft__hand *hand, bool may_spin)
{
    weft__lock_assert_held(&jobs->lock);
    if (may_spin && !jobs->spinning) {
        jobs->spinning = true;
        jobs->coming++;
        return true;
    }
    weft__list_push_front(&jobs->idle, &hand->idle);
    jobs->idle_count++;
    return false;
}

void weft__jobs_spun(struct weft__jobs *jobs)
{
    weft__lock_assert_held(&jobs->lock);
    weft_assert(jobs->spinning);
    jobs->spinning = false;
    jobs->coming--;
}

bool weft__jobs_unrest(struct weft__jobs *jobs, struct weft__hand *hand)
{
    weft__lock_assert_held(&jobs->lock);
    if (!weft__link_linked(&hand->idle)) return false;
    weft__list_remove(&hand->idle);
    jobs->idle_count--;
    return true;
}

/* ---- by who awaits ---- */

int weft__job_submit(struct weft__jobs *jobs, struct weft__job *job, struct weft__calls *calls)
{
    weft__link_init(&job->link);
    plain_write(&job->abandoned, false);
    store_relaxed(&job->state, WEFT__JOB_QUEUED); /* relaxed: published by the lock */
    weft__lock_take(&jobs->lock);
    if (load_relaxed(&jobs->closing)) { /* relaxed: written under the lock */
        weft__lock_drop(&jobs->lock);
        return -ESHUTDOWN;
    }
    weft__list_push_back(&job->lane->queue, &job->link);
    job->lane->queued++;
    lane_weigh(jobs, job->lane);
    if (jobs->coming == 0 && wants_more(jobs)) call_one(jobs, calls);
    weft__lock_drop(&jobs->lock);
    return 0;
}

static enum weft__job_answer give_up(struct weft__jobs *jobs, struct weft__job *job)
{
    if (load_relaxed(&job->state) == WEFT__JOB_QUEUED) { /* relaxed: under the lock */
        lane_unlink(jobs, job);
        return WEFT__JOB_WITHDRAWN;
    }
    if (!plain_read(&job->owning)) return WEFT__JOB_WAIT;
    plain_write(&job->abandoned, true);
    return WEFT__JOB_LEFT;
}

enum weft__job_answer weft__job_poll(struct weft__jobs *jobs, struct weft__job *job, bool stop)
{
    enum weft__job_answer answer = WEFT__JOB_WAIT;

    if (load_acquire(&job->state) == WEFT__JOB_DONE)
        return WEFT__JOB_READY; /* [job-done] with finish: the result */
    /* It is polled before it is done. Under the lock: then a finish that we miss claims the waker
     * after this, and another poll follows. */
    weft__lock_take(&jobs->lock);
    if (load_relaxed(&job->state) == WEFT__JOB_DONE) { /* relaxed: under the lock */
        answer = WEFT__JOB_READY;
    } else if (stop) {
        answer = give_up(jobs, job);
    }
    weft__lock_drop(&jobs->lock);
    return answer;
}

/* ---- by threads of the pool ---- */

struct weft__job *weft__job_take(struct weft__jobs *jobs)
{
    weft__lock_assert_held(&jobs->lock);
    struct weft__link *turn = weft__list_pop_front(&jobs->turn);
    if (!turn) return NULL;
    struct weft__lane *lane = weft__container_of(turn, struct weft__lane, turn);
    struct weft__job *job =
        weft__container_of(weft__list_first(&lane->queue), struct weft__job, link);

    lane->running++;
    lane_unlink(jobs, job); /* if there is more, the lane is behind the others now */
    store_relaxed(&job->state, WEFT__JOB_RUNNING); /* relaxed: under the lock */
    return job;
}

struct weft_waker weft__job_finish(struct weft__jobs *jobs, struct weft__job *job, int64_t ret)
{
    struct weft__lane *lane = plain_read(&job->lane);

    weft__lock_assert_held(&jobs->lock);
    weft_assert(load_relaxed(&job->state) == WEFT__JOB_RUNNING); /* relaxed: under the lock */
    lane->running--;
    jobs->done_count++;
    lane_weigh(jobs, lane);
    if (plain_read(&job->abandoned)) return weft__waker_none();
    plain_write(&job->ret, ret);
    struct weft_waker claimed = weft__waker_claim(plain_read(&job->waker));
    store_release(
        &job->state,
        WEFT__JOB_DONE); /* [job-done] with poll: the result; and the last touch of the job */
    return claimed;
}

static void fail_lane(struct weft__jobs *jobs, struct weft__lane *lane, int64_t error,
                      struct weft__wake_chain *chain)
{
    for (struct weft__link *link; (link = weft__list_first(&lane->queue));) {
        struct weft__job *job = weft__container_of(link, struct weft__job, link);
        lane_unlink(jobs, job);
        plain_write(&job->ret, error);
        weft__wake_chain_claim(chain, plain_read(&job->waker));
        store_release(&job->state, WEFT__JOB_DONE); /* [job-done] with poll, as in finish */
    }
}

struct weft__wake_chain weft__jobs_fail_all(struct weft__jobs *jobs, int64_t error)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    weft__lock_assert_held(&jobs->lock);
    weft__list_each (link, &jobs->lanes)
        fail_lane(jobs, weft__container_of(link, struct weft__lane, all), error, &chain);
    return chain;
}
