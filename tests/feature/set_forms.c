/* SPDX-License-Identifier: MIT
 *
 * Every form of spawning into a set, a keyed set and a tracker: those that wait, try, and spend a permit, each with options and with a
 * reference, of both kinds of task. Each member tells by the name that it runs under which form it was. What becomes of members: set.c,
 * keyed.c, tracker.c.
 */
#include "crew.h"

#include <string.h>
#include <weft/weft.h>

typedef WEFT_SET(int) int_set;
typedef WEFT_KEYED(int, int) int_keyed;

/* 1: it runs under that name. */
static int is_called(const char *name)
{
    return strcmp(weft_task_name(weft_self()), name) == 0;
}

struct is_called_too {
    WEFT_FRAME(int);
    const char *name;
};
static weft_async(is_called_too)
{
    weft_begin;
    weft_return(is_called(f->name));
    weft_end;
}

/* So many members come out, and each was called what it should be. */
static void come_out(int_set *set, int count)
{
    int right = 0;
    for (int i = 0; i < count; i++) {
        ASSERT_EQ(weft_set_join_next(set, &right), 1);
        ASSERT_EQ(right, 1);
    }
    ASSERT_EQ(weft_set_join_next(set, &right), 0);
}

/* ---- with options ---- */

static void by_name(struct crew *crew)
{
    int_set set = {.limit = 6};
    (void)crew;
    ASSERT_OK(weft_set_go_as((.name = "a"), &set, is_called, "a"));
    ASSERT_OK(weft_set_spawn_as((.name = "b"), &set, is_called_too, "b"));
    ASSERT_OK(weft_set_try_go_as((.name = "c"), &set, is_called, "c"));
    ASSERT_OK(weft_set_try_spawn_as((.name = "d"), &set, is_called_too, "d"));
    ASSERT_OK(weft_set_reserve(&set));
    ASSERT_OK(weft_set_permit_go_as((.name = "e"), &set, is_called, "e"));
    ASSERT_OK(weft_set_reserve(&set));
    ASSERT_OK(weft_set_permit_spawn_as((.name = "f"), &set, is_called_too, "f"));
    come_out(&set, 6);
    weft_set_done(&set);
}

TEST(set_forms_take_options)
{
    crew_each(by_name);
}

/* ---- with a reference ---- */

static void ends(weft_task *task, const char *name)
{
    ASSERT(task != NULL);
    ASSERT_STR(weft_task_name(task), name);
    ASSERT_OK(weft_wait(task));
    weft_unref(task);
}

static void by_reference(struct crew *crew)
{
    int_set set = {.limit = 4};
    weft_task *task[4] = {NULL};
    (void)crew;
    ASSERT_OK(weft_set_go_ref(&task[0], &set, is_called, "is_called"));
    ASSERT_OK(weft_set_spawn_ref(&task[1], &set, is_called_too, "is_called_too"));
    ASSERT_OK(weft_set_try_go_ref(&task[2], &set, is_called, "is_called"));
    ASSERT_OK(weft_set_try_spawn_ref(&task[3], &set, is_called_too, "is_called_too"));
    for (int i = 0; i < 4; i++)
        ends(task[i], i % 2 ? "is_called_too" : "is_called");
    come_out(&set, 4);
    weft_set_done(&set);
}

TEST(set_forms_give_references)
{
    crew_each(by_reference);
}

/* ---- under a key, and counted ---- */

static void by_key(struct crew *crew)
{
    int_keyed keyed = {0};
    int key = 0, right = 0;
    (void)crew;
    for (int form = 0; form < 4; form++) {
        if (form == 0) ASSERT_OK(weft_keyed_go_as((.name = "a"), &keyed, &form, is_called, "a"));
        if (form == 1)
            ASSERT_OK(weft_keyed_spawn_as((.name = "b"), &keyed, &form, is_called_too, "b"));
        if (form == 2)
            ASSERT_OK(weft_keyed_replace_go_as((.name = "c"), &keyed, &form, is_called, "c"));
        if (form == 3)
            ASSERT_OK(
                weft_keyed_replace_spawn_as((.name = "d"), &keyed, &form, is_called_too, "d"));
        ASSERT_EQ(weft_keyed_join_next(&keyed, &key, &right), 1);
        ASSERT_EQ(key, form);
        ASSERT_EQ(right, 1);
    }
    weft_keyed_done(&keyed);
}

TEST(keyed_forms_take_options)
{
    crew_each(by_key);
}

static _Atomic int counted; /* relaxed: a count, read when all have ended */

static int counts(const char *name)
{
    fetch_add_relaxed(&counted, is_called(name));
    return 0;
}

struct counts_too {
    WEFT_FRAME(int);
    const char *name;
};
static weft_async(counts_too)
{
    weft_begin;
    weft_return(counts(f->name));
    weft_end;
}

static void by_tracker(struct crew *crew)
{
    weft_tracker tracker = {0};
    (void)crew;
    store_relaxed(&counted, 0);
    ASSERT_OK(weft_tracker_go_as((.name = "a"), &tracker, counts, "a"));
    ASSERT_OK(weft_tracker_spawn_as((.name = "b"), &tracker, counts_too, "b"));
    (void)weft_tracker_close(&tracker);
    ASSERT_OK(weft_tracker_wait(&tracker));
    ASSERT_EQ(load_relaxed(&counted), 2);
    weft_tracker_done(&tracker);
}

TEST(tracker_forms_take_options)
{
    crew_each(by_tracker);
}
