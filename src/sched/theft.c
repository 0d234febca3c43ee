/* SPDX-License-Identifier: MIT
 *
 * theft - what a theft was worth, and what follows from that.
 *
 * A thief of tiny tasks slows both sides down. One that came home with less than 50 us of work, or 250 ns for each task it took, is deaf for a while: 100 us at first, doubling up to 1 ms.
 * CROWDS  Tasks that do nothing but use one lock are slower on two workers than on one. Whoever meets another thread at such a lock counts it (here->met). A worker that has stolen and meets others once
 * in 4 us has taken what belongs together: it says so at its next tick, and goes deaf, up to 8 ms; those it meets fetch its ring home, at theirs, as thieves do. All of it are hints: a task lies in one ring or
 * the other throughout. Tasks that work for 100 ns between two operations meet more seldom than that, and gain by two workers (docs/BENCHMARKS.md).
 * Threads: the worker itself, each.
 */
#include "sched/sched.h"

#include "sys/clock.h"

#define WORTHY_NS       INT64_C(50000)    /* what a theft should bring */
#define WORTHY_TASK_NS  INT64_C(250)      /* and what a stolen task should last */
#define DEAF_MIN_NS     INT64_C(100000)
#define DEAF_MAX_NS     INT64_C(1000000)
#define DEAF_CROWD_NS   INT64_C(8000000)  /* the most, where what it took was in others' way; doubled: other work waits twice as long to be shared */
#define CROWD_NS        INT64_C(4000)     /* a meeting in so long, or more: a crowd. Halved: mpmc stays on two workers, at twice the price */
#define CROWD_MEETINGS  16                /* and not fewer of them */

static void go_deaf(struct weft__worker *w, int64_t now, int64_t max_ns)
{
    if (w->deaf_ns > max_ns) w->deaf_ns = max_ns;
    w->deaf_until = now + w->deaf_ns;
    store_relaxed(&w->rt->share_after, w->deaf_until); /* relaxed: a hint */
    w->deaf_ns = w->deaf_ns * 2 > max_ns ? max_ns : w->deaf_ns * 2;
    w->stole_at = 0;
    w->stole_count = 0;
}

/* It has met others so often, in so long. */
static bool is_crowd(uint32_t met, int64_t took)
{
    return met >= CROWD_MEETINGS && took < (int64_t)met * CROWD_NS;
}

/* The worker has run dry: was its last theft worth it? */
void weft__theft_ends(struct weft__worker *w)
{
    w->visits = false;
    store_relaxed(&w->crowded, false); /* relaxed: a hint */
    if (w->stole_at == 0) return;
    int64_t now = weft__clock_now();
    int64_t took = now - w->stole_at;
    bool crowd = is_crowd(w->here->met - w->crowd_met, now - w->crowd_since);
    if (!crowd && took >= WORTHY_NS && took >= (int64_t)w->stole_count * WORTHY_TASK_NS) {
        w->deaf_ns = DEAF_MIN_NS;
        w->stole_at = 0;
        w->stole_count = 0;
        return;
    }
    go_deaf(w, now, crowd ? DEAF_CROWD_NS : DEAF_MAX_NS);
}

void weft__theft_begins(struct weft__worker *w, uint32_t count)
{
    if (w->stole_at == 0) {
        w->stole_at = weft__clock_now();
        w->crowd_since = w->stole_at;
        w->crowd_met = w->here->met;
    }
    w->visits = true;
    w->stole_count += count;
}

/* ---- crowds ---- */

/* What visitors have taken away, and meet us with. True: there was one. */
static bool fetch_home(struct weft__worker *w)
{
    struct weft_rt *rt = w->rt;
    bool any = false;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        struct weft__worker *visitor = &rt->workers[i];
        if (visitor == w || !load_relaxed(&visitor->crowded)) continue; /* relaxed, both: a hint */
        store_relaxed(&visitor->crowded, false);
        any = true;
        struct weft_task *task;
        for (uint32_t n = 0; n < WEFT__RUNQ_CAP && (task = weft__runq_steal(&visitor->ring)); n++)
            weft__worker_push_back(w, task);
    }
    return any;
}

/* At each tick; the clock is read if there is something to judge. */
void weft__theft_tick(struct weft__worker *w)
{
    uint32_t all = w->here->met;
    uint32_t met = all - w->crowd_met;
    if (met < CROWD_MEETINGS || w->rt->worker_count == 1) return;
    int64_t now = weft__clock_now();
    bool crowd = is_crowd(met, now - w->crowd_since);
    w->crowd_since = now;
    w->crowd_met = all;
    if (!crowd || fetch_home(w) || !w->visits) return;
    go_deaf(w, now, DEAF_CROWD_NS);
    store_relaxed(&w->crowded, true); /* relaxed: a hint */
}
