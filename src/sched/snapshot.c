/* SPDX-License-Identifier: MIT
 *
 * snapshot - copy, then look whether it was worth it; the idea is in snapshot.h.
 */
#include "sched/snapshot.h"

#include "sched/sched.h"
#include "sync/kin.h"
#include "sys/peek.h"

#include <errno.h>
#include <stdio.h>

/* Its own name, if it has one. */
static int peek_name(const struct weft_task *copy, struct weft__snapshot *into)
{
    struct weft__ext ext = {.name = into->site.name};

    if (copy->ext) {
        int r = weft__peek(copy->ext, &ext, sizeof(ext));
        if (r < 0) return r;
    }
    return weft__peek_text(ext.name ? ext.name : into->site.name, into->name, sizeof(into->name));
}

/* The scope is there as long as its child is. One that cannot be read is not told. */
static void peek_scope(const struct weft_task *copy, struct weft__snapshot *into)
{
    const struct weft__kin *kin = weft__kin_of(copy);
    struct weft__lent lent;

    into->scope_file[0] = '\0';
    if (!kin || weft__peek(&kin->lent, &lent, sizeof(lent)) < 0 || !lent.file) return;
    into->scope_line = lent.line;
    if (weft__peek_text(lent.file, into->scope_file, sizeof(into->scope_file)) < 0)
        into->scope_file[0] = '\0';
}

static int copy_all(const struct weft_task *task, struct weft__snapshot *into)
{
    struct weft_task copy;

    int r = weft__peek(task, &copy, sizeof(copy));
    if (r < 0) return r;
    into->scope = copy.scope;
    into->site_at = copy.site;
    into->wait = load_relaxed(&copy.wait); /* relaxed, all: of a copy that is ours */
    into->polls = load_relaxed(&copy.polls);
    into->since = load_relaxed(&copy.since);
    r = weft__peek(copy.site, &into->site, sizeof(into->site));
    if (r < 0) return r;
    peek_scope(&copy, into);
    r = peek_name(&copy, into);
    if (r < 0) return r;
    return weft__peek_text(into->site.file, into->file, sizeof(into->file));
}

static bool same_task(uint64_t before, uint64_t after)
{
    if (weft__state_generation_of(before) != weft__state_generation_of(after)) return false;
    return (after & WEFT__STATE_ALIVE) && !(after & WEFT__STATE_COMPLETE);
}

int weft__snapshot_take(const struct weft_task *task, uint64_t state, struct weft__snapshot *into)
{
    int copied = copy_all(task, into);
    int ordered = weft__peek_order();

    into->state = weft__state_look(task);
    if (!same_task(state, into->state))
        return -ESRCH; /* also if it could not be copied: this is why */
    if (copied < 0) return copied;
    into->id = weft__slab_id_of(task, weft__state_generation_of(state));
    return ordered;
}

int weft__snapshot_take_far(const struct weft_task *task, uint64_t state,
                            struct weft__snapshot *into)
{
    int copied = copy_all(task, into);
    int ordered = weft__peek_order();
    int looked = weft__peek((const void *)&task->state, &into->state, sizeof(into->state));

    if (looked < 0) return looked == -EFAULT ? -ESRCH : looked;
    if (!same_task(state, into->state)) return -ESRCH;
    into->id = 0;
    return copied < 0 ? copied : ordered;
}

const char *weft__snapshot_scope(const struct weft__snapshot *s, char *into)
{
    into[0] = '\0';
    if (s->scope_file[0])
        (void)snprintf(into, WEFT__SNAPSHOT_SCOPE_TEXT, ", in the scope of %s:%u", s->scope_file,
                       s->scope_line);
    return into;
}
