/* SPDX-License-Identifier: MIT
 *
 * name - copying a name that may go away; the idea is in name.h.
 */
#include "task/name.h"

#include "sys/peek.h"
#include "task/state.h"

#include <errno.h>

static int copy_name(const struct weft_task *task, char *into)
{
    struct weft__ext *at;
    struct weft__ext ext;

    int r = weft__peek(&task->ext, &at, sizeof(void *));
    if (r < 0) return r;
    if (!at) return -ENOENT;
    r = weft__peek(at, &ext, sizeof(ext));
    if (r < 0) return r;
    return ext.name ? weft__peek_text(ext.name, into, WEFT__NAME_BYTES) : -ENOENT;
}

static int still_lives(const struct weft_task *task, uint64_t before)
{
    uint64_t now;

    int r = weft__peek((const void *)&task->state, &now, sizeof(now));
    if (r < 0) return r;
    if (weft__state_generation_of(before) != weft__state_generation_of(now)) return -ESRCH;
    return (now & WEFT__STATE_ALIVE) && !(now & WEFT__STATE_COMPLETE) ? 0 : -ESRCH;
}

int weft__name_peek(const struct weft_task *task, uint64_t state, char *into)
{
    int copied = copy_name(task, into);
    int ordered = weft__peek_order();
    int lives = still_lives(task, state);

    if (lives < 0) return lives; /* also if it could not be copied: this is why */
    return copied < 0 ? copied : ordered;
}
