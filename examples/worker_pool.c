/* SPDX-License-Identifier: MIT
 *
 * worker_pool - a few workers, many jobs, and backpressure: who makes jobs faster than they are done has to wait.
 *
 * The channel holds four jobs. The producer makes a job only once there is a place for it (weft_reserve), so never more than four wait,
 * however slow the workers are. How often it had to wait for one is counted. Each job carries the channel for its answer, a oneshot.
 */
#include <stdio.h>
#include <weft/weft.h>

#define JOBS    40
#define WORKERS 3
#define PLACES  4

typedef WEFT_CHAN(int) answer_chan;

struct job {
    int number;
    answer_chan *answer;
};
typedef WEFT_CHAN(struct job) job_chan;

static int work(job_chan *jobs)
{
    struct job job;
    int r, done = 0;

    while ((r = weft_recv(jobs, &job)) > 0) {
        int result = job.number * 2;
        if ((r = weft_sleep(weft_us(200))) < 0) result = r;
        (void)weft_send(job.answer, &result); /* a oneshot has room; whoever receives frees it */
        if (r < 0) break;
        done++;
    }
    return r < 0 ? r : done;
}

/* A place for one job. */
static int find_place(job_chan *jobs, int *waited)
{
    int r = 0;
    WEFT_TIMEOUT(0) r = weft_reserve(jobs); /* a place that is there does not need any time */
    if (r != -ETIME) return r;
    ++*waited;
    return weft_reserve(jobs);
}

/* Gives the answers' channels in order. */
static int make_jobs(job_chan *jobs, answer_chan **answers)
{
    int r = 0, waited = 0;

    for (int i = 0; i < JOBS; i++) {
        if ((r = find_place(jobs, &waited)) < 0) return r; /* first: nothing is made in vain */
        if ((r = weft_chan_oneshot(&answers[i])) < 0) {
            weft_permit_drop(jobs);
            return r;
        }
        struct job job = {i, answers[i]};
        weft_permit_send(jobs, &job);
    }
    printf("the producer waited for the workers %d times\n", waited);
    return r;
}

static int app(void)
{
    answer_chan *answers[JOBS] = {NULL};
    weft_task *worker[WORKERS];
    job_chan *jobs;
    int sum = 0, done = 0;

    int r = weft_chan_new(PLACES, &jobs);
    if (r < 0) return r;
    for (int i = 0; i < WORKERS; i++)
        worker[i] = weft_go(work, jobs);
    r = make_jobs(jobs, answers);
    weft_chan_close(jobs);
    for (int i = 0; i < WORKERS; i++) {
        int one = 0, joined = weft_join(worker[i], &one);
        if (joined == 0 && one > 0) done += one;
    }
    for (int i = 0; i < JOBS; i++) {
        int answer = 0;
        if (answers[i] && weft_try_recv(answers[i], &answer) > 0) sum += answer;
        weft_chan_free(answers[i]);
    }
    printf("%d jobs done, sum %d\n", done, sum);
    weft_chan_free(jobs);
    return r;
}

WEFT_MAIN(app)
