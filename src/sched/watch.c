/* SPDX-License-Identifier: MIT
 *
 * watch - the monitor's pace and its sleep; the idea is in watch.h.
 */
#include "sched/watch.h"

enum weft__pace_next weft__pace_after(struct weft__pace *pace, bool trouble, bool all_asleep)
{
    if (trouble) pace->alert_left = WEFT__PACE_ALERT_LOOKS;
    pace->quiet = all_asleep ? pace->quiet + 1 : 0;
    if (pace->quiet >= WEFT__PACE_QUIET_LOOKS) {
        *pace = (struct weft__pace){0};
        return WEFT__PACE_DOZE;
    }
    if (pace->alert_left == 0) return WEFT__PACE_LONG;
    pace->alert_left--;
    return WEFT__PACE_SHORT;
}

void weft__watch_init(struct weft__watch *watch)
{
    store_relaxed(&watch->asleep, false); /* relaxed, both: not shared yet */
    store_relaxed(&watch->stopped, false);
    weft__park_init(&watch->park);
}

bool weft__watch_goes_on(const struct weft__watch *watch)
{
    return !load_relaxed(&watch->stopped); /* relaxed: its token ends the next park */
}

/* A token that came late would make this rest too short, and two looks too close for anybody to have
 * moved in between: only the deadline counts. */
bool weft__watch_rest(struct weft__watch *watch, int64_t until_ns)
{
    while (weft__watch_goes_on(watch) && weft__park(&watch->park, until_ns)) {
    }
    return weft__watch_goes_on(watch);
}

bool weft__watch_doze(struct weft__watch *watch, const struct weft__idle *idle, int64_t until_ns)
{
    store_relaxed(&watch->asleep, true); /* relaxed: ordered by the fence */
    fence_seq_cst(); /* [watch-sb] with stir: we see its bit off, or it sees this */
    bool may = weft__idle_sleeping(idle) == idle->worker_count;
    bool slept = may && !weft__park(&watch->park, until_ns);
    /* relaxed: who still reads true brings a token too many */
    store_relaxed(&watch->asleep, false);
    return slept;
}

void weft__watch_stir(struct weft__watch *watch)
{
    fence_seq_cst(); /* [watch-sb] with doze: it sees our bit off, or we see that it sleeps */
    if (!load_relaxed(&watch->asleep)) return; /* relaxed: ordered by the fence */
    /* relaxed: of several workers one brings the token, which is all that is said */
    if (exchange_relaxed(&watch->asleep, false)) weft__unpark(&watch->park);
}

void weft__watch_stop(struct weft__watch *watch)
{
    store_relaxed(&watch->stopped, true); /* relaxed: the token carries it  [park] */
    weft__unpark(&watch->park);
}
