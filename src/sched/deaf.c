/* SPDX-License-Identifier: MIT
 *
 * deaf - following tasks that do not listen; the idea is in deaf.h.
 */
#include "sched/deaf.h"

#include "sched/sched.h"
#include "sched/snapshot.h"
#include "sync/kin.h"
#include "sys/clock.h"
#include "sys/peek.h"

#include <stdio.h>

#define AFTER_NS INT64_C(1000000000)

/* Who has not been seen for this part of the time has listened meanwhile, or slept. */
#define PAUSE_PART 10

/* Characters of a scope's place; a longer one is cut. */
#define SCOPE_BYTES 160

void weft__deaf_init(struct weft__deaf *deaf)
{
    *deaf = (struct weft__deaf){.after_ns = AFTER_NS};
    weft__lock_init(&deaf->lock, WEFT__RANK_SLAB);
}

static int64_t after_of(const struct weft__deaf *deaf)
{
    return load_relaxed(&deaf->after_ns); /* relaxed: a number; tests change it */
}

/* Its record, or that of whom nobody has seen for longest. Holds: the lock. */
static struct weft__deaf_task *record_of(struct weft__deaf *deaf, uint64_t id)
{
    struct weft__deaf_task *oldest = &deaf->task[0];
    for (uint32_t i = 0; i < WEFT__DEAF_FOLLOWED; i++) {
        struct weft__deaf_task *it = &deaf->task[i];
        if (it->id == id) return it;
        if (it->last_ns < oldest->last_ns) oldest = it;
    }
    return oldest;
}

/* For how long it has not listened. Holds: the lock. */
static int64_t follow(struct weft__deaf *deaf, uint64_t id, int64_t now)
{
    struct weft__deaf_task *it = record_of(deaf, id);
    if (it->id != id || now - it->last_ns > after_of(deaf) / PAUSE_PART) {
        it->id = id;
        it->since_ns = now;
    }
    it->last_ns = now;
    return now - it->since_ns;
}

/* True: this is the first of its place. Holds: the lock. */
static bool first_of(struct weft__deaf *deaf, const struct weft_site *site)
{
    for (uint32_t i = 0; i < deaf->named_count; i++)
        if (deaf->named[i] == site) return false;
    if (deaf->named_count == WEFT__DEAF_SITES) return false; /* it has said enough */
    deaf->named[deaf->named_count++] = site;
    return true;
}

/* The scope whose end it holds up; it is there as long as the task is. */
static const char *scope_text(char *into, const struct weft_task *task)
{
    const struct weft__kin *kin = weft__kin_of(task);

    if (!kin || !kin->lent.file) return "";
    (void)snprintf(into, SCOPE_BYTES, ", in the scope of %s:%u", kin->lent.file, kin->lent.line);
    return into;
}

void weft__deaf_seen(struct weft__deaf *deaf, const struct weft_task *task)
{
    const struct weft_site *site = task->site;
    int64_t now = weft__clock_now();

    weft__lock_take(&deaf->lock);
    int64_t for_ns = follow(deaf, weft_task_id(task), now);
    bool name_it = for_ns >= after_of(deaf) && first_of(deaf, site);
    weft__lock_drop(&deaf->lock);
    if (!name_it) return;
    char scope[SCOPE_BYTES];
    fprintf(
        stderr,
        "weft: task '%s' (spawned at %s:%u%s) was told to stop, and goes on: for %lld ms it has not looked at what its waits answer\n",
        weft__name_of(task), site->file, site->line, scope_text(scope, task),
        (long long)(for_ns / 1000000));
}

/* ---- a poll that does not end ---- */

/* Whom the worker polls, and its state, by who may read neither: NULL: nobody, or it cannot be seen. */
static const struct weft_task *running(struct weft__worker *w, uint64_t *state)
{
    const struct weft__here *here;
    const struct weft_task *task;

    if (weft__peek(&w->here, &here, sizeof(void *)) < 0 || !here) return NULL;
    if (weft__peek(&here->task, &task, sizeof(void *)) < 0 || !task) return NULL;
    return weft__peek((const void *)&task->state, state, sizeof(*state)) < 0 ? NULL : task;
}

static bool still_there(struct weft__worker *w, uint64_t polls)
{
    return load_relaxed(&w->counts.polls) == polls; /* relaxed: a count, behind system calls */
}

/* True: there is no more to say of this poll. */
static bool name_poll(struct weft__deaf *deaf, struct weft__worker *w, uint64_t polls,
                      const struct weft_task *task, uint64_t state, int64_t for_ns)
{
    struct weft__snapshot s;
    char scope[WEFT__SNAPSHOT_SCOPE_TEXT];

    if (weft__snapshot_take_far(task, state, &s) < 0 || !still_there(w, polls)) return false;
    weft__lock_take(&deaf->lock);
    bool name_it = first_of(deaf, s.site_at);
    weft__lock_drop(&deaf->lock);
    if (name_it)
        fprintf(
            stderr,
            "weft: task '%s' (spawned at %s:%u%s) was told to stop, and goes on: for %lld ms it has not come back from its poll\n",
            s.name, s.file, s.site.line, weft__snapshot_scope(&s, scope),
            (long long)(for_ns / 1000000));
    return true;
}

void weft__deaf_look(struct weft__deaf *deaf, struct weft__worker *w, uint64_t polls, int64_t now)
{
    struct weft__deaf_poll *it = &w->poll;
    int64_t after_ns = after_of(deaf);
    uint64_t state = 0;

    if (it->polls != polls)
        *it = (struct weft__deaf_poll){.polls = polls, .look_ns = now + after_ns / PAUSE_PART};
    if (now < it->look_ns) return;
    it->look_ns = now + after_ns / PAUSE_PART;
    const struct weft_task *task = running(w, &state);
    bool told = task && (state & WEFT__STATE_CANCELLED) && !(state & WEFT__STATE_COMPLETE);
    uint32_t generation = weft__state_generation_of(state);
    if (!told || it->who != task || it->generation != generation) it->told_ns = 0;
    it->who = task;
    it->generation = generation;
    if (told && it->told_ns == 0) it->told_ns = now;
    if (!told || now - it->told_ns < after_ns) return;
    if (name_poll(deaf, w, polls, task, state, now - it->told_ns)) it->look_ns = INT64_MAX;
}
