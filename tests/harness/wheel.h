/* SPDX-License-Identifier: MIT
 *
 * wheel - a timer wheel with tasks that each own a timer, and a clock that stands where a test says.
 */
#ifndef WEFT_TESTS_HARNESS_WHEEL_H
#define WEFT_TESTS_HARNESS_WHEEL_H

#include "task/state.h"
#include "test.h"
#include "time/wheel.h"

#include <string.h>

#define MANY  512
#define GRAIN (INT64_C(1) << WEFT__WHEEL_GRAIN_BITS)
#define HOUR  (INT64_C(3600) * 1000000000)
#define START INT64_C(123456789012345)

/* A wheel, and idle tasks that each own a timer. */
struct fixture {
    struct weft__wheel wheel;
    struct weft_task tasks[MANY];
    struct weft__timer timers[MANY];
    unsigned pushed[MANY];
    unsigned order[MANY * 4]; /* which task was pushed as the nth */
    unsigned count;
    struct weft__sched sched;
};

static struct fixture fixture;

/* The task runs at once, and is idle again. */
static inline void fixture_push(void *sched, struct weft_task *task)
{
    struct fixture *f = sched;
    unsigned index = (unsigned)(task - f->tasks);

    f->pushed[index]++;
    if (f->count < MANY * 4) f->order[f->count] = index;
    f->count++;
    (void)weft__state_begin_poll(task);
    (void)weft__state_end_poll(task);
}

static inline void fixture_push_chain(void *sched, struct weft_task *first, struct weft_task *last,
                               uint32_t count)
{
    (void)last;
    (void)count;
    for (struct weft_task *next; first; first = next) {
        next = load_relaxed(&first->link);
        fixture_push(sched, first);
    }
}

static const struct weft__sched_ops fixture_ops = {.push = fixture_push,
                                                   .push_chain = fixture_push_chain};

static inline struct fixture *fixture_at(int64_t now)
{
    struct fixture *f = &fixture;

    memset(f, 0, sizeof(*f));
    f->sched = (struct weft__sched){&fixture_ops, f};
    weft__wheel_init(&f->wheel, now);
    for (unsigned i = 0; i < MANY; i++) {
        weft__state_init(&f->tasks[i], 0);
        (void)weft__state_end_poll(&f->tasks[i]);
        weft__timer_init(&f->timers[i]);
    }
    return f;
}

static inline void arm_at(struct fixture *f, unsigned i, int64_t when)
{
    weft__wheel_arm_at(&f->wheel, &f->timers[i], when, weft__waker_of(&f->tasks[i]));
}

static inline void arm_after(struct fixture *f, unsigned i, int64_t ns)
{
    weft__wheel_arm_after(&f->wheel, &f->timers[i], ns, weft__waker_of(&f->tasks[i]));
}

/* As a driver does it, with a clock that stands at `now`. */
static inline uint32_t turn(struct fixture *f, int64_t now, uint32_t max)
{
    struct weft__reading reading;

    (void)weft__wheel_gather(&f->wheel, &reading, WEFT__BY_ANY);
    uint32_t fired = weft__wheel_expire(&f->wheel, &reading, now, max, &f->sched, WEFT__BY_ANY);
    weft__wheel_check(&f->wheel);
    return fired;
}

static inline uint32_t turn_all(struct fixture *f, int64_t now)
{
    uint32_t fired = 0;
    do {
        fired += turn(f, now, MANY);
    } while (weft__wheel_due(&f->wheel, now));
    return fired;
}

#endif
