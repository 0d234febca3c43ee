/* SPDX-License-Identifier: MIT
 *
 * looks - the monitor's looks, made by hand: for tests that count them.
 *
 *     crew_start_with(&crew, &(weft_rt_opts){.workers = 2, .monitor_us = -1});     nobody else looks
 *     ASSERT_EQ(looks_once(crew.rt), 0);                                           who stands still
 * The source itself is taken in, its public functions under other names: the library's are there, too.
 */
#ifndef WEFT_TESTS_LOOKS_H
#define WEFT_TESTS_LOOKS_H

#include "sched/sched.h"

#define weft__monitor_start   looks_start
#define weft__monitor_stop    looks_stop
#define weft__monitor_trim    looks_trim
#define weft__monitor_watches looks_watches

int weft__monitor_start(struct weft_rt *rt);
void weft__monitor_stop(struct weft_rt *rt);
void weft__monitor_trim(struct weft_rt *rt);
bool weft__monitor_watches(const struct weft_rt *rt);

#include "sched/monitor.c"

#undef weft__monitor_start
#undef weft__monitor_stop
#undef weft__monitor_trim
#undef weft__monitor_watches

/* Returns how many workers stand still, each of which may be robbed from now on. */
static inline uint32_t looks_once(struct weft_rt *rt)
{
    return look_round(rt);
}

#endif
