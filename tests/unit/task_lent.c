/* SPDX-License-Identifier: MIT
 *
 * Scopes that were not joined: found in memory that goes, by name, and nowhere else. Debug builds only.
 */
#include "task/lent.h"

#include "death.h"
#include "test.h"

#include <string.h>

#ifdef WEFT_DEBUG

static const struct weft_site site = {.name = "forgetful", .file = "owner.c", .line = 7};
static struct weft_task task = {.site = &site};
static _Alignas(16) char memory[64 * 1024];

static struct weft__lent *lent_at(size_t offset)
{
    struct weft__lent *lent = (void *)&memory[offset];
    *lent = (struct weft__lent){.file = "scope.c", .line = 42};
    return lent;
}

TEST(lent_and_joined)
{
    struct weft__lent *lent = lent_at(512);
    weft__lent_remove(lent); /* it has no child so far */
    for (int i = 0; i < 3; i++) {
        weft__lent_add(lent);
        weft__lent_add(lent);
        weft__lent_check(memory, 512, &task); /* beside it */
        weft__lent_check(memory + 512 + sizeof(*lent), 1024, &task);
        weft__lent_remove(lent);
        weft__lent_check(memory, sizeof(memory), &task);
    }
}

static void dies(void *offset)
{
    struct weft__lent *lent = lent_at((size_t)(uintptr_t)offset);
    weft__lent_add(lent);
    weft__lent_check(memory, sizeof(memory), (uintptr_t)offset ? &task : NULL);
}

TEST(lent_and_not_joined)
{
    static const size_t places[] = {0, 1008, 1024, 40000, 65472};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct death d = death_of(dies, (void *)places[i]);
        ASSERT_EQ(d.signal, SIGABRT);
        ASSERT(strstr(d.said, places[i] ? "task 'forgetful' (spawned at owner.c:7)" : "a fiber"));
        ASSERT(strstr(d.said, "ends with a scope in its memory that was not joined (scope.c:42)"));
    }
}

TEST(lent_and_not_joined_by_one_with_a_name)
{
    struct weft__ext ext = {.name = "own"};
    task.ext = &ext;
    struct death d = death_of(dies, (void *)1024);
    task.ext = NULL;
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "task 'own' (spawned at owner.c:7) ends with a scope"));
}

/* One that was never joined, whose memory is another's by now; and more than the table has room for. */
TEST(lent_and_lost)
{
    struct weft__lent *lent = lent_at(2048);
    weft__lent_add(lent);
    memset(lent, 0, sizeof(*lent));
    weft__lent_check(memory, sizeof(memory), &task);
    for (size_t i = 0; i < 1000; i++)
        weft__lent_add(lent_at(i * 32));
    for (size_t i = 0; i < 1000; i++)
        weft__lent_remove((void *)&memory[i * 32]);
    weft__lent_check(memory, sizeof(memory), &task);
    weft__lent_add(lent_at(0));
    weft__lent_forget();
    weft__lent_check(memory, sizeof(memory), &task);
}

#else

TEST(lent_is_for_debug_builds)
{
    TEST_SKIP("only debug builds look for it");
}

#endif
