/* SPDX-License-Identifier: MIT
 *
 * testkit - what weft/test.h promises: a current-thread runtime with a clock that stands, turned until
 * the test is over, or nothing is left that could end it.
 */
#include "sched/sched.h"

#include "base/err.h"

#include <weft/fiber.h>
#include <weft/test.h>

#include <errno.h>
#include <stdio.h>

/* Of all runs: the same order each time. */
#define TEST_SEED 1

/* For what a test that waits for nothing has left behind, and may not stop either: of the system's clock. Doubled: such a test lasts a second longer. */
#define STUCK_NS INT64_C(1000000000)

static const struct weft_site test_site = {
    .poll = weft__go_poll,
    .name = "test",
    .file = "weft_test_run",
    .frame_bytes = sizeof(struct weft__go_frame),
    .ret_at = offsetof(struct weft__go_frame, ret),
    .ret_bytes = sizeof(int),
    .ret_signed = 1,
    .kind = WEFT__FIBER,
};

/* Nobody moves the clock meanwhile: a job that sleeps does so itself, and between its timer and its ring it would look like nothing at all. */
static bool nothing_is_left(struct weft_rt *rt)
{
    if (weft__clock_is_held(rt)) return false; /* a job's end is seen by a later turn */
    if (weft__io_is_watched(rt)) return false; /* the kernel may bring something */
    for (uint32_t i = 0; i <= rt->worker_count; i++)
        if (!weft__wheel_idle(&rt->wheels[i])) return false;
    return weft__inject_empty(&rt->inject) && weft__inject_empty(&rt->background);
}

/* Nothing ran in a turn that did not wait: can anything still come? */
static bool is_over(struct weft_rt *rt)
{
    if (!weft__clock_keep_still(&rt->clock)) return false;
    bool over = nothing_is_left(rt);
    weft__clock_let_move(&rt->clock);
    return over;
}

/* Returns 0; -EDEADLK. */
static int turn_until_done(struct weft_rt *rt, const weft_task *task)
{
    while (!weft_done(task)) {
        int count = weft_rt_turn(rt, 0);
        if (count == 0 && !weft_done(task)) {
            if (is_over(rt)) return -EDEADLK;
            count = weft_rt_turn(rt, -1);
        }
        if (count < 0) return count;
    }
    return 0;
}

static int run_in(struct weft_rt *rt, int (*test)(void))
{
    weft_call call = {.fn = (void (*)(void))test, .ret_bytes = sizeof(int), .ret_signed = 1};
    weft_task *task = weft__go(&test_site, &call, &(weft_spawn_opts){.rt = rt});
    int result = 0;

    if (!task) return -ENOMEM;
    int r = turn_until_done(rt, task);
    if (r == -EDEADLK) {
        fputs("weft: the test waits, and nothing is left that could end the wait\n", stderr);
        weft_cancel(task);
        (void)turn_until_done(rt, task);
    }
    if (!weft_done(task)) { /* it does not stop: the end of the runtime names it */
        (void)weft_detach(task);
        return r;
    }
    int joined = weft__join(task, &result, sizeof(result));
    if (r == 0) r = joined;
    return r < 0 ? r : result;
}

int weft_test_run(int (*test)(void))
{
    weft_rt *rt;

    if (!test) return -EINVAL;
    if (weft__here()->worker || weft__here()->cx) return -EBUSY;
    int r = weft__rt_build(&(weft_rt_opts){.workers = -1, .paused = true, .seed = TEST_SEED}, true,
                           &rt);
    if (r < 0) return r;
    weft_rt *before = weft_rt_enter(rt);
    r = run_in(rt, test);
    (void)weft_rt_enter(before);
    int stopped = weft_rt_stop(rt, r == -EDEADLK ? STUCK_NS : -1);
    return r < 0 ? r : stopped < 0 ? stopped : r;
}

int weft__test_main(int (*test)(void), const char *name)
{
    int r = weft_test_run(test);
    if (r < 0)
        fprintf(stderr, "weft: %s ended with %s: %s\n", name, weft__err_name(r), weft__err_text(r));
    return r < 0 ? 1 : r;
}
