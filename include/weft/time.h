/* SPDX-License-Identifier: MIT
 *
 * time - sleeping, intervals, and the clock.
 *
 * A weft_time is a number of nanoseconds: a duration, or a point on the clock that weft_now reads. That is the
 * runtime's clock in its tasks and on threads that have entered it (weft_rt_enter), and the system's monotonic clock
 * anywhere else; the two are the same until somebody pauses a runtime's. They stand still while the machine is
 * suspended, and have nothing to do with the time of day.
 *
 * Nothing here is ever early. A sleep counts from the end of the poll that began it, so it is late by at most the rest
 * of that poll, and by what the scheduler and the kernel need.
 */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include <weft/rt.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t weft_time;

#define WEFT_FOREVER INT64_MAX /* as a duration or a deadline: it does not come */

/* Durations of a number of units. What does not fit is WEFT_FOREVER, or as far below zero. */
static inline weft_time weft__units(int64_t count, int64_t unit)
{
    int64_t ns;
    if (!__builtin_mul_overflow(count, unit, &ns)) return ns;
    return count < 0 ? INT64_MIN : INT64_MAX;
}
static inline weft_time weft_ns(int64_t count)
{
    return count;
}
static inline weft_time weft_us(int64_t count)
{
    return weft__units(count, 1000);
}
static inline weft_time weft_ms(int64_t count)
{
    return weft__units(count, 1000000);
}
static inline weft_time weft_secs(int64_t count)
{
    return weft__units(count, 1000000000);
}
static inline weft_time weft_mins(int64_t count)
{
    return weft__units(count, 60 * INT64_C(1000000000));
}

/* What time it is here. Context: anywhere but in a signal handler. 25 ns. */
WEFT_API weft_time weft_now(void);

/* A time later by a duration; WEFT_FOREVER if that is beyond the end of time. */
static inline weft_time weft_later(weft_time from, weft_time by)
{
    int64_t when;
    if (!__builtin_add_overflow(from, by, &when)) return when;
    return by < 0 ? INT64_MIN : INT64_MAX;
}

/* ---- sleep ------------------------------------------------------------------------------------------------------------
 *
 *     weft_sleep(weft_ms(5));                             fibers and threads
 *     weft_await(f->sleep, weft_sleep, weft_ms(5));       stackless
 *
 * Let so much time pass; nothing, if it is zero or less. Cancel-safe: gives up at once.
 * Returns 0; -ECANCELED, -ETIME: told to stop before it was over; -ENOMEM: a plain thread that runs a stackless function
 * with sleeps in it had no memory for its timers; -EDEADLK in a stackless poll (call form). */
struct weft_sleep {
    WEFT_FRAME(int);
    weft_time ns;                    /* once begun, the time of its end */
    void *weft__timer[3] WEFT__ZERO; /* in a wheel while it sleeps */
};
WEFT_API weft_pollfn weft_sleep_poll;
WEFT__CALLED(int, weft__sleep, weft_sleep, (weft_time ns), weft__f.ns = ns)
#define WEFT__PROBES_weft_sleep ~, WEFT__ARM_PROBES
#define WEFT__KEEPS_weft_sleep  ~, 1
#define weft_sleep(ns) (WEFT__CALL_FORM("weft_sleep()"), weft__sleep(ns))

/* weft_sleep_until(at): the same until a point in time; what is past is over at once. */
struct weft_sleep_until {
    WEFT_FRAME(int);
    weft_time at;
    void *weft__timer[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_sleep_until_poll;
WEFT__CALLED(int, weft__sleep_until, weft_sleep_until, (weft_time at), weft__f.at = at)
#define WEFT__PROBES_weft_sleep_until ~, WEFT__ARM_PROBES
#define WEFT__KEEPS_weft_sleep_until  ~, 1
#define weft_sleep_until(at) (WEFT__CALL_FORM("weft_sleep_until()"), weft__sleep_until(at))

/* Move the end of a sleep that is under way, or has not begun, to `at`: earlier or later, also once it is over but not yet
 * polled again. For stackless code that keeps a sleep in a select across rounds of a loop, and a time-out that each sign
 * of life puts off. Borrows the frame. Context: the task that polls it. */
WEFT_API void weft_sleep_reset(struct weft_sleep *sleep, weft_time at);
WEFT_API void weft_sleep_until_reset(struct weft_sleep_until *sleep, weft_time at);

/* ---- intervals ----------------------------------------------------------------------------------------------------------
 *
 *     weft_interval every = weft_interval_of(weft_ms(10));
 *     while (weft_tick(&every) >= 0) sample();
 *     weft_await(f->tick, weft_tick, &f->every);
 *
 * The first tick comes at once, the others a period apart, however long is done between two of them. If that takes longer
 * than a period, ticks are missed, and the interval does one of three things:
 *     WEFT_MISSED_BURST   the missed ones come at once, one after the other, until it has caught up: none is lost
 *     WEFT_MISSED_DELAY   the next one comes a period after this one: never two in less than a period
 *     WEFT_MISSED_SKIP    the missed ones are left out, and the next one is on the old grid
 * An interval is a plain value that waits for nothing while nobody awaits a tick. Cancel-safe: a tick that was given up
 * was not taken. One task at a time. */
enum weft_missed { WEFT_MISSED_BURST, WEFT_MISSED_DELAY, WEFT_MISSED_SKIP };

typedef struct weft_interval {
    weft_time period; /* above zero */
    weft_time next;   /* the next tick; WEFT__AT_ONCE: the first, at once */
    enum weft_missed missed;
    uint64_t ticks; /* that were taken */
} weft_interval;

#define WEFT__AT_ONCE INT64_MIN

/* The first tick at once; give `missed` another value for another behaviour. */
static inline weft_interval weft_interval_of(weft_time period)
{
    weft_interval every = {period, WEFT__AT_ONCE, WEFT_MISSED_BURST, 0};
    return every;
}

/* The first tick at `start`. */
static inline weft_interval weft_interval_at(weft_time start, weft_time period)
{
    weft_interval every = {period, start, WEFT_MISSED_BURST, 0};
    return every;
}

/* The next tick a period from now. Context: as weft_now. */
static inline void weft_interval_reset(weft_interval *every)
{
    every->next = weft_later(weft_now(), every->period);
}

/* Wait for the next tick. Borrows the interval until it is over.
 * Returns 0; -EINVAL for a period of zero or less; otherwise as weft_sleep. */
struct weft_tick {
    WEFT_FRAME(int);
    weft_interval *every;
    struct weft_sleep_until weft__until WEFT__ZERO;
};
WEFT_API weft_pollfn weft_tick_poll;
WEFT_API int weft__tick(weft_interval *every);
#define WEFT__PROBES_weft_tick ~, WEFT__ARM_PROBES
#define WEFT__KEEPS_weft_tick  ~, 1
#define weft_tick(every) (WEFT__CALL_FORM("weft_tick()"), weft__tick(every))

/* ---- a clock that stands -----------------------------------------------------------------------------------------------
 *
 * For tests: a program that sleeps for hours runs in no time, and always in the same order. A runtime's clock can be made to
 * stand (weft_rt_opts.paused, or weft_clock_pause), and then moves only
 *     by weft_clock_advance;
 *     by itself, when nothing is left to do: all workers sleep, nothing is queued, no blocking job runs. Then it goes to the
 *     next deadline, exactly.
 * docs/TIME.md says what is promised of the order. `rt` may be NULL: the current one.
 * Context: any thread. */

/* Make it stand. Returns 0; -EALREADY; -ENXIO without a runtime; -ECHILD in the child of a fork. */
WEFT_API int weft_clock_pause(weft_rt *rt);

/* Let it run on from the time at which it stands. The same. */
WEFT_API int weft_clock_resume(weft_rt *rt);

/* Jump ahead. Timers that become due are fired in the order of their deadlines; their tasks run when they get their
 * turn, and all of them find that the whole time has passed: to let them run at their own times, sleep.
 * Returns 0; -EINVAL for a clock that runs, or a time below zero; -ENXIO, -ECHILD as above. */
WEFT_API int weft_clock_advance(weft_rt *rt, weft_time by);

#ifdef __cplusplus
}
#endif

#endif
