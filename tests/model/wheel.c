/* SPDX-License-Identifier: MIT
 *
 * The timer wheel against its owners: a timer that fires while its task gives it up on another worker ends the task once and touches nothing that is
 * gone; a task that is polled for another reason misses nothing; and no timer gets a time that was read before it was armed, whoever drives the wheel.
 *
 * Each sleeping task is one block: header and timer. A claimed task is polled on the spot by whoever pushes it.
 */
#include "time/wheel.c"
#include "../harness/ending.h"
#include "task/join.c"
#include "task/state.c"
#include "task/waker.c"

struct sleeping {
    struct weft_task task;
    struct weft__timer timer;
    int polls;  /* the poller's: two at once would race */
    int reason; /* written before the cancel, or the wake, that brings a poll */
};

static struct weft__wheel wheel; /* as large as the real one; only what is atomic is watched */
static struct sleeping *sleepers[2];
static unsigned slept;
static unsigned given_up;
static bool relative;
static _Atomic int64_t now_; /* the world's clock: who reads it later never reads less */

/* ---- broken twins ---- */

enum {
    HONEST,
    BARE_POINTER,
    SETTLES_WITHOUT_LOCK,
    ALWAYS_GRANTED,
    READS_BEFORE_IT_GATHERS,
    READS_BEFORE_IT_ARMS,
    TRUSTS_WHAT_IT_SEES
};

static void run(struct sleeping *s);

static void push(void *unused, struct weft_task *task)
{
    (void)unused;
    run((struct sleeping *)(void *)task);
}

static void push_chain(void *unused, struct weft_task *first, struct weft_task *last,
                       uint32_t count)
{
    (void)unused;
    (void)last;
    for (struct weft_task *t = first; count-- > 0;) {
        struct weft_task *next = load_relaxed(&t->link);
        run((struct sleeping *)(void *)t);
        t = next;
    }
}

static const struct weft__sched_ops ops = {.push = push, .push_chain = push_chain};
static const struct weft__sched sched = {.ops = &ops};

/* The driver takes the task's address out under the lock and claims it after. */
static void expire_bare(void)
{
    struct weft_task *task = NULL;
    bool favoured = weft__bias_enter(&wheel.lock, WEFT__BY_ANY);
    struct weft__timer *timer = &sleepers[0]->timer;
    uintptr_t word = wheel.live ? load_relaxed(&timer->word)
                                : 0; /* relaxed, as below: under the lock, or broken on purpose */
    if (word & WEFT__TIMER_ARMED) {
        task = (struct weft_task *)(word & ~WEFT__WAKER_BITS);
        weft__wheel_take_out(&wheel, timer);
        store_relaxed(&timer->word, (uintptr_t)task | WEFT__TIMER_FIRED);
    }
    weft__bias_leave(&wheel.lock, favoured);
    if (task && weft__state_claim(task) == WEFT__STATE_ENQUEUE)
        run((struct sleeping *)(void *)task);
}

/* The mark of a granted claim, also where it was not. */
static void expire_always_granted(void)
{
    struct weft_task *granted = NULL;
    bool favoured = weft__bias_enter(&wheel.lock, WEFT__BY_ANY);
    struct weft__timer *timer = &sleepers[0]->timer;
    if (wheel.live && (load_relaxed(&timer->word) & WEFT__TIMER_ARMED)) {
        struct weft_task *task = &sleepers[0]->task;
        weft__wheel_take_out(&wheel, timer);
        if (weft__waker_claim_task(task)) granted = task;
        store_relaxed(&timer->word, (uintptr_t)task | WEFT__TIMER_FIRED | WEFT__TIMER_GRANTED);
    }
    weft__bias_leave(&wheel.lock, favoured);
    if (granted) push(NULL, granted);
}

/* ---- the leaf, as time/sleep.c has it ---- */

static void leaf_begins(struct sleeping *s)
{
    weft__timer_init(&s->timer);
    if (relative) {
        weft__wheel_arm_after(&wheel, &s->timer, 10, weft__waker_of(&s->task));
    } else {
        weft__wheel_arm_at(&wheel, &s->timer, 10, weft__waker_of(&s->task));
    }
}

static bool leaf_fired(struct sleeping *s)
{
    if (weft__timer_take_granted(&s->timer)) return true;
    if (model_mutant == TRUSTS_WHAT_IT_SEES)
        return load_relaxed(&s->timer.word) & WEFT__TIMER_FIRED;
    return weft__wheel_fired(&wheel, &s->timer, WEFT__BY_ANY);
}

/* True: it had fired all the same. */
static bool leaf_gives_up(struct sleeping *s)
{
    if (weft__timer_take_granted(&s->timer)) return true;
    if (model_mutant == SETTLES_WITHOUT_LOCK &&
        !(load_relaxed(&s->timer.word) & WEFT__TIMER_ARMED)) {
        store_relaxed(&s->timer.word, 0);
        return true;
    }
    return weft__wheel_cancel(&wheel, &s->timer, WEFT__BY_ANY);
}

static void free_task(struct sleeping *s)
{
    weft__state_free(&s->task);
    model_free(s);
}

/* True: it is over. */
static bool poll_once(struct sleeping *s)
{
    uint64_t word = weft__state_begin_poll(&s->task);
    if (plain_read(&s->polls) == 0) {
        leaf_begins(s);
        plain_write(&s->polls, 1);
        return false;
    }
    plain_write(&s->polls, plain_read(&s->polls) + 1);
    if (word & WEFT__STATE_CANCELLED) {
        model_assert(plain_read(&s->reason) == 1);
        if (leaf_gives_up(s)) {
            slept++;
        } else {
            given_up++;
        }
        return true;
    }
    bool fired = leaf_fired(s);
    slept += fired;
    return fired;
}

/* The caller holds the right to poll it. */
static void run(struct sleeping *s)
{
    do {
        if (!poll_once(s)) continue;
        if (ending_alone(&s->task) == WEFT__STATE_FREE) free_task(s);
        return;
    } while (weft__state_end_poll(&s->task) == WEFT__STATE_REQUEUE);
}

/* ---- the threads ---- */

static int64_t read_clock(void)
{
    return load_relaxed(&now_); /* relaxed: as a clock, it orders nothing */
}

/* Whoever drives the wheel. */
static void drive(void *arg)
{
    struct weft__reading reading;
    (void)arg;
    if (model_mutant == BARE_POINTER) {
        expire_bare();
        return;
    }
    if (model_mutant == ALWAYS_GRANTED) {
        expire_always_granted();
        return;
    }
    int64_t early = read_clock();
    (void)weft__wheel_gather(&wheel, &reading, WEFT__BY_ANY);
    int64_t now = model_mutant == READS_BEFORE_IT_GATHERS ? early : read_clock();
    (void)weft__wheel_expire(&wheel, &reading, now, 1, &sched, WEFT__BY_ANY);
}

static void begin_0(void *arg)
{
    (void)arg;
    run(sleepers[0]);
}

static void wake_0(void *arg)
{
    (void)arg;
    struct sleeping *s = sleepers[0];
    if (weft__state_claim(&s->task) == WEFT__STATE_ENQUEUE) run(s);
    if (weft__state_unref(&s->task) == WEFT__STATE_FREE) free_task(s);
}

static void cancel_0(void *arg)
{
    (void)arg;
    struct sleeping *s = sleepers[0];
    plain_write(&s->reason, 1);
    if (weft__state_cancel(&s->task) == WEFT__STATE_ENQUEUE) run(s);
    if (weft__state_unref(&s->task) == WEFT__STATE_FREE) free_task(s);
}

/* The owner: it arms at a time that it knows, then drives like the other one. */
static void arm_and_drive(void *arg)
{
    struct weft__timer *timer = &sleepers[0]->timer;
    (void)arg;
    int64_t armed_at = read_clock();
    weft__timer_init(timer);
    weft__wheel_arm_after(&wheel, timer, 10, weft__waker_of(&sleepers[0]->task));
    drive(NULL);
    bool favoured = weft__bias_enter(&wheel.lock, WEFT__BY_ANY);
    if (timer->when != 10)
        model_assert(timer->when >= armed_at + 10); /* stamped, and not too early */
    weft__bias_leave(&wheel.lock, favoured);
}

/* The same without a turn. */
static void arm_and_stamp(void *arg)
{
    struct weft__timer *timer = &sleepers[0]->timer;
    (void)arg;
    int64_t early = read_clock();
    int64_t armed_at = read_clock();
    weft__timer_init(timer);
    weft__wheel_arm_after(&wheel, timer, 10, weft__waker_of(&sleepers[0]->task));
    int64_t now = model_mutant == READS_BEFORE_IT_ARMS ? early : read_clock();
    model_assert(weft__wheel_stamp(&wheel, now));
    bool favoured = weft__bias_enter(&wheel.lock, WEFT__BY_ANY);
    if (timer->when != 10) model_assert(timer->when >= armed_at + 10); /* else another reads the clock for it */
    weft__bias_leave(&wheel.lock, favoured);
}

static void tick(void *arg)
{
    (void)arg;
    store_relaxed(&now_, 5); /* time passes */
}

static void begin(int64_t now, unsigned count, uint32_t references_of_0)
{
    weft__wheel_init(&wheel, 0);
    store_relaxed(&now_, now);
    slept = 0;
    given_up = 0;
    relative = false;
    for (unsigned i = 0; i < count; i++) {
        sleepers[i] = model_alloc(sizeof(*sleepers[i]));
        weft__state_init(&sleepers[i]->task, i == 0 ? references_of_0 : 0);
        plain_write(&sleepers[i]->polls, 0);
        plain_write(&sleepers[i]->reason, 0);
    }
}

/* What is left in the wheel fires now. */
static void end(unsigned tasks)
{
    model_join();
    for (int i = 0; i < 3; i++)
        (void)weft__wheel_expire(&wheel, NULL, 100, 1, &sched, WEFT__BY_ANY);
    model_assert(slept + given_up == tasks);
    weft__wheel_done(&wheel);
}

/* ---- the cases ---- */

static void fire_against_cancel(void)
{
    begin(10, 1, 1);
    run(sleepers[0]); /* armed */
    model_thread(drive, NULL);
    model_thread(cancel_0, NULL);
    end(1);
}

static void fire_against_arming(void)
{
    begin(10, 1, 0);
    model_thread(begin_0, NULL);
    model_thread(drive, NULL);
    end(1);
}

/* The task is polled for another reason while its timer fires: it must not miss it, nor end twice. */
static void fire_against_wake(void)
{
    begin(10, 1, 1);
    run(sleepers[0]);
    model_thread(drive, NULL);
    model_thread(wake_0, NULL);
    end(1);
}

/* Two drive one wheel: each timer is fired by one of them. */
static void two_drive(void)
{
    begin(10, 2, 0);
    run(sleepers[0]);
    run(sleepers[1]);
    model_thread(drive, NULL);
    model_thread(drive, NULL);
    end(2);
}

static void two_drive_and_a_cancel(void)
{
    begin(10, 1, 1);
    run(sleepers[0]);
    model_thread(drive, NULL);
    model_thread(drive, NULL);
    model_thread(cancel_0, NULL);
    end(1);
}

/* Fresh, and gathered by a reading: it can be given up at any moment of that. */
static void stamp_against_cancel(void)
{
    begin(0, 1, 1);
    relative = true;
    run(sleepers[0]);
    model_thread(drive, NULL);
    model_thread(cancel_0, NULL);
    end(1);
}

/* The owner arms while another drives, and time passes: the deadline is not early by either's clock. */
static void never_early(void)
{
    begin(1, 1, 0);
    model_thread(arm_and_drive, NULL);
    model_thread(drive, NULL);
    model_thread(tick, NULL);
    model_join();
    (void)weft__wheel_cancel(&wheel, &sleepers[0]->timer, WEFT__BY_ANY);
    weft__wheel_done(&wheel);
    model_free(sleepers[0]);
}

static void never_early_by_owner(void)
{
    begin(1, 1, 0);
    model_thread(arm_and_stamp, NULL);
    model_thread(drive, NULL);
    model_thread(tick, NULL);
    model_join();
    (void)weft__wheel_cancel(&wheel, &sleepers[0]->timer, WEFT__BY_ANY);
    weft__wheel_done(&wheel);
    model_free(sleepers[0]);
}

static const struct model_case cases[] = {
    {.name = "fire against cancel", .run = fire_against_cancel, .preemptions = 4, .weaken = true},
    {.name = "fire against arming", .run = fire_against_arming, .preemptions = 4, .weaken = true},
    {.name = "fire against another wake",
     .run = fire_against_wake,
     .preemptions = 4,
     .weaken = true},
    {.name = "two drive", .run = two_drive, .preemptions = 3},
    {.name = "two drive, one cancels",
     .run = two_drive_and_a_cancel,
     .preemptions = 3,
     .weaken = true},
    {.name = "stamp against cancel", .run = stamp_against_cancel, .preemptions = 4, .weaken = true},
    {.name = "no time read before", .run = never_early, .preemptions = 4, .weaken = true},
    {.name = "no time read before, by the owner", .run = never_early_by_owner, .preemptions = 4},
    {.name = "mutant: claims after the lock",
     .run = fire_against_cancel,
     .preemptions = 3,
     .mutant = BARE_POINTER,
     .must_fail = true},
    {.name = "mutant: settles without the lock",
     .run = fire_against_cancel,
     .preemptions = 3,
     .mutant = SETTLES_WITHOUT_LOCK,
     .must_fail = true},
    {.name = "mutant: marks each claim as granted",
     .run = fire_against_cancel,
     .preemptions = 3,
     .mutant = ALWAYS_GRANTED,
     .must_fail = true},
    {.name = "mutant: reads before it gathers",
     .run = never_early,
     .preemptions = 3,
     .mutant = READS_BEFORE_IT_GATHERS,
     .must_fail = true},
    {.name = "mutant: reads before it arms",
     .run = never_early_by_owner,
     .preemptions = 3,
     .mutant = READS_BEFORE_IT_ARMS,
     .must_fail = true},
    {.name = "mutant: trusts a mark without the lock",
     .run = fire_against_wake,
     .preemptions = 4,
     .mutant = TRUSTS_WHAT_IT_SEES,
     .must_fail = true},
};

/* What a firing says is said under the wheel's lock. Who says something by the state word alone is model_state's. */
static const struct model_spare spare[] = {
    {"task/state.h", "store_release(&task->state, word)",
     "for those who walk the registry without having met a queue: model_slab has that store"},
    {"task/state.h", "cas_acq_rel(&task->state, weft__state_claimed(word))",
     "its release: the lock brings the news that the timer has fired"},
    {"task/state.h", "fetch_and_acquire(&task->state, ~0x0004UL)", "the other end of that"},
    {"task/state.c", "cas_acq_rel(&task->state, cancelled(word, flags))",
     "its acquire: that the poll before had ended, the lock says too"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
