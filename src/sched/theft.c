/* SPDX-License-Identifier: MIT */
#include "sched/sched.h"

#include "sys/clock.h"

#define WORTHY_NS      INT64_C(50000)   /* what a theft should bring */
#define WORTHY_TASK_NS INT64_C(70)      /* and what a stolen task should last. Thrice as much: pairs of tasks that talk, 100 ns, keep to one worker while the other sleeps */
#define SHUN_MIN_NS    INT64_C(100000)
#define SHUN_MAX_NS    INT64_C(1000000)
#define SHUN_CROWD_NS  INT64_C(8000000) /* the most, where what was taken was in others' way; doubled: other work that lies there waits twice as long to be shared */
#define CROWD_NS       INT64_C(4000)    /* a meeting in so long, or more: a crowd. Halved: mpmc stays on two workers, at twice the price */
#define CROWD_MEETINGS 16               /* and not fewer of them */
#define CROWD_OVER_NS  INT64_C(1000000) /* fewer than these in so long: the crowd has gone. A tenth: it is taken back before others come to their tick */

void weft__shun_init(struct weft__shun *shun)
{
    store_relaxed(&shun->until, 0); /* relaxed, all: not shared yet */
    store_relaxed(&shun->next_ns, SHUN_MIN_NS);
    store_relaxed(&shun->crowd, 0);
}

/* Each judgement makes the next one last longer, and none ends what another has begun. */
static void shun(struct weft__worker *victim, int64_t now, int64_t max_ns)
{
    struct weft__shun *s = &victim->shun;
    int64_t ns = load_relaxed(&s->next_ns); /* relaxed, all: hints */
    if (ns > max_ns) ns = max_ns;
    if (!weft__shunned(s, now + ns)) store_relaxed(&s->until, now + ns);
    store_relaxed(&s->next_ns, ns * 2 > max_ns ? max_ns : ns * 2);
}

/* It has met others so often, in so long. */
static bool is_crowd(uint32_t met, int64_t took)
{
    return met >= CROWD_MEETINGS && took < (int64_t)met * CROWD_NS;
}

/* It is in a crowd there, or in none. Its own line: written if that is new. */
static void say_crowd(struct weft__worker *w, uint64_t places)
{
    if (load_relaxed(&w->shun.crowd) != places) store_relaxed(&w->shun.crowd, places); /* relaxed, both: a hint */
}

/* Its meetings, from now on. */
static void count_meetings(struct weft__worker *w, int64_t now)
{
    w->theft.met_since = now;
    w->theft.met = w->here->met;
    w->here->met_at = 0;
}

/* ---- theft ---- */

void weft__theft_begins(struct weft__worker *w, struct weft__worker *victim, uint32_t count, bool judged)
{
    struct weft__theft *theft = &w->theft;
    theft->victim = victim;
    theft->count = count;
    int64_t now = weft__clock_now();
    theft->begun = now;
    theft->judged = judged;
    count_meetings(w, now);
}

void weft__theft_ends(struct weft__worker *w)
{
    struct weft__theft *theft = &w->theft;
    struct weft__worker *victim = theft->victim;
    if (!victim) return;
    theft->victim = NULL;
    say_crowd(w, 0);
    if (!theft->judged) return;
    int64_t now = weft__clock_now();
    int64_t took = now - theft->begun;
    bool crowd = is_crowd(w->here->met - theft->met, now - theft->met_since);
    if (crowd || took < WORTHY_NS || took < (int64_t)theft->count * WORTHY_TASK_NS) {
        shun(victim, now, crowd ? SHUN_CROWD_NS : SHUN_MAX_NS);
    } else if (load_relaxed(&victim->shun.next_ns) != SHUN_MIN_NS) { /* relaxed, both: a hint. Another's line */
        store_relaxed(&victim->shun.next_ns, SHUN_MIN_NS);
    }
}

/* ---- crowds ---- */

/* Are these two in the same crowd, and is it this one's to gather? */
static bool gathers_from(const struct weft__worker *w, const struct weft__worker *other, uint64_t places)
{
    if (other == w || (load_relaxed(&other->shun.crowd) & places) == 0) return false; /* relaxed: a hint */
    return !w->theft.victim || w->index < other->index;
}

/* What others have taken away, and meet us with. True: somebody had. */
static bool gather(struct weft__worker *w, uint64_t places)
{
    struct weft_rt *rt = w->rt;
    bool any = false;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        struct weft__worker *other = &rt->workers[i];
        if (!gathers_from(w, other, places)) continue;
        store_relaxed(&other->shun.crowd, 0); /* relaxed: a hint */
        any = true;
        struct weft_task *task;
        uint32_t n = 0;
        for (; n < WEFT__RUNQ_CAP && (task = weft__runq_steal(&other->ring)); n++)
            weft__worker_push_back(w, task);
        weft__tally(&w->counts.gathered, n);
    }
    return any;
}

/* It meets others all the time, there. */
static void in_crowd(struct weft__worker *w, uint64_t places, int64_t now)
{
    struct weft__theft *theft = &w->theft;
    if (gather(w, places)) {
        shun(w, now, SHUN_CROWD_NS);
    } else if (theft->victim) {
        if (now - theft->begun < SHUN_CROWD_NS) shun(theft->victim, now, SHUN_CROWD_NS);
        theft->judged = false;
        say_crowd(w, places);
    }
}

/* The clock is read if there is something to judge, or to take back. */
void weft__theft_tick(struct weft__worker *w)
{
    struct weft__theft *theft = &w->theft;
    uint32_t met = w->here->met - theft->met;
    bool says = load_relaxed(&w->shun.crowd) != 0; /* relaxed: a hint */
    if ((met < CROWD_MEETINGS && !says) || w->rt->worker_count == 1) return;
    int64_t now = weft__clock_now();
    int64_t took = now - theft->met_since;
    if (met < CROWD_MEETINGS && took < CROWD_OVER_NS) return; /* too early to say */
    uint64_t places = w->here->met_at;
    count_meetings(w, now);
    if (is_crowd(met, took)) {
        in_crowd(w, places, now);
    } else if (met < CROWD_MEETINGS) {
        say_crowd(w, 0);
    }
}
