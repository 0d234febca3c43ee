/* SPDX-License-Identifier: MIT
 *
 * Task-locals without a scheduler: a task is a header that this thread says it polls.
 */
#include "task/local.h"

#include "base/alloc.h"
#include "base/slab.h"
#include "task/here.h"
#include "test.h"

#define KEYS 40

static struct weft__task_key keys[KEYS];
/* A task in a chunk, whose header says that it is no pool's. */
static struct {
    struct weft__slab_chunk chunk;
    struct weft_task task;
} home __attribute__((aligned(WEFT__SLAB_CHUNK_BYTES)));
static int ends;

static void counts_end(void *value)
{
    (void)value;
    ends++;
}

static void begin(void)
{
    for (int i = 0; i < KEYS; i++)
        keys[i] = (struct weft__task_key){sizeof(int), _Alignof(int), counts_end, 0};
    weft__here()->task = &home.task;
}

static void end(void)
{
    weft__locals_end(&home.task);
    weft__here()->task = NULL;
    weft__free(home.task.ext);
}

TEST(local_value_stays_at_its_address_while_the_table_grows)
{
    int *value[KEYS];
    begin();
    for (int i = 0; i < KEYS; i++) {
        value[i] = weft__task_local(&keys[i]);
        ASSERT_EQ(*value[i], 0);
        *value[i] = i;
    }
    for (int i = 0; i < KEYS; i++) {
        ASSERT_PTR(weft__task_local(&keys[i]), value[i]);
        ASSERT_EQ(*value[i], i);
    }
    end();
    ASSERT_EQ(ends, KEYS);
}

TEST(local_keeps_the_name_that_was_there)
{
    struct weft__ext *ext = weft__alloc(sizeof(*ext));
    ext->name = "somebody";
    begin();
    home.task.ext = ext;
    ASSERT(weft__task_local(&keys[0]) != NULL);
    ASSERT_PTR(weft__ext_of(&home.task), ext);
    ASSERT_STR(weft__ext_of(&home.task)->name, "somebody");
    end();
    ASSERT_EQ(ends, 1);
}

TEST(local_end_of_a_named_task_without_values)
{
    begin();
    home.task.ext = weft__alloc(sizeof(struct weft__ext));
    end();
    ASSERT_EQ(ends, 0);
}

TEST(local_numbers_are_given_once)
{
    begin();
    ASSERT(weft__task_local(&keys[1]) != NULL);
    uint32_t number = keys[1].weft__number;
    ASSERT(number != 0);
    ASSERT_EQ(keys[0].weft__number, 0); /* not used so far */
    (void)weft__task_local(&keys[0]);
    (void)weft__task_local(&keys[1]);
    ASSERT_EQ(keys[1].weft__number, number);
    ASSERT_NE(keys[0].weft__number, number);
    end();
}

TEST(local_is_null_without_a_task)
{
    ASSERT_NULL(weft__task_local(&keys[0]));
}
