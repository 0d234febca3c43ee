/* SPDX-License-Identifier: MIT
 *
 * Names of tasks that may end while they are read: the own one as long as it is borrowed, and no other's.
 */
#include "task/name.h"

#include "task/state.h"
#include "test.h"

#include <errno.h>
#include <string.h>

static const struct weft_site site = {.name = "function", .file = "file.c", .line = 7};
static struct weft__ext ext = {.name = "own"};
static struct weft_task task;

static uint64_t begins(struct weft__ext *with)
{
    task.site = &site;
    task.ext = with;
    weft__state_init(&task, 1);
    return weft__state_look(&task);
}

TEST(name_is_the_own_one_or_the_functions)
{
    struct weft__ext nameless = {.name = NULL};
    (void)begins(&ext);
    ASSERT_STR(weft__name_of(&task), "own");
    task.ext = &nameless;
    ASSERT_STR(weft__name_of(&task), "function");
    task.ext = NULL;
    ASSERT_STR(weft__name_of(&task), "function");
}

TEST(name_is_copied_while_the_task_lives)
{
    char name[WEFT__NAME_BYTES];
    struct weft__ext nameless = {.name = NULL};
    uint64_t state = begins(&ext);
    ASSERT_OK(weft__name_peek(&task, state, name));
    ASSERT_STR(name, "own");
    task.ext = &nameless;
    ASSERT_EQ(weft__name_peek(&task, state, name), -ENOENT);
    task.ext = NULL;
    ASSERT_EQ(weft__name_peek(&task, state, name), -ENOENT);
}

TEST(name_of_one_that_has_ended_is_not_copied)
{
    char name[WEFT__NAME_BYTES];
    uint64_t state = begins(&ext);
    fetch_or_relaxed(&task.state, WEFT__STATE_COMPLETE); /* relaxed, both: there is one thread */
    ASSERT_EQ(weft__name_peek(&task, state, name), -ESRCH);
    task.ext = (void *)(uintptr_t)16; /* nor is it looked at for good */
    ASSERT_EQ(weft__name_peek(&task, state, name), -ESRCH);
    store_relaxed(&task.state, state + (UINT64_C(1) << WEFT__STATE_GEN_SHIFT));
    ASSERT_EQ(weft__name_peek(&task, state, name), -ESRCH);
    ASSERT_EQ(weft__name_peek((void *)(uintptr_t)16, state, name), -EFAULT);
}

TEST(name_that_is_too_long_is_cut)
{
    char name[WEFT__NAME_BYTES];
    char given[3 * WEFT__NAME_BYTES];
    memset(given, 'x', sizeof(given));
    given[sizeof(given) - 1] = '\0';
    struct weft__ext lengthy = {.name = given};
    ASSERT_OK(weft__name_peek(&task, begins(&lengthy), name));
    ASSERT_EQ(strlen(name), WEFT__NAME_BYTES - 1);
}
