/* SPDX-License-Identifier: MIT
 *
 * once - tasks that go through a queue: each comes out once, with what was written before it was put there. TASKS of them; the test includes what they are first.
 */
#ifndef MODEL_ONCE_H
#define MODEL_ONCE_H

static struct weft_task tasks[TASKS];
static unsigned taken[TASKS];

static void got(struct weft_task *t)
{
    if (!t) return;
    size_t i = (size_t)(t - tasks);
    model_assert(i < TASKS);
    model_assert(plain_read(&t->ext) == t);
    model_assert(taken[i] == 0);
    taken[i] = 1;
}

static struct weft_task *fresh(size_t i)
{
    plain_write(&tasks[i].ext, &tasks[i]);
    return &tasks[i];
}

#endif
