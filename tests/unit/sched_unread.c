/* SPDX-License-Identifier: MIT
 *
 * Failures that nobody reads: the first of a place is printed, the others are counted, within bounds.
 */
#include "sched/unread.h"

#include "base/fault.h"
#include "death.h"
#include "limits.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

static const struct weft_site site_a = {.name = "a", .file = "a.c", .line = 1};
static const struct weft_site site_b = {.name = "b", .file = "b.c", .line = 2};

static unsigned count_of(const char *text, const char *word)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

static void two_places(void *unused)
{
    struct weft__unread u;
    (void)unused;
    weft__unread_init(&u);
    for (int i = 0; i < 5; i++)
        weft__unread_add(&u, &site_a, -EIO);
    weft__unread_add(&u, &site_b, -EPIPE);
    weft__unread_add(&u, &site_a, -ENOMEM);
    if (load_relaxed(&u.total) != 7) _exit(1);
    weft__unread_done(&u);
}

TEST(unread_says_each_place_once_and_counts_the_rest)
{
    struct death d = death_of(two_places, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(count_of(d.said, "\n"), 3);
    ASSERT_EQ(count_of(d.said, "task 'a' (spawned at a.c:1) ended with EIO, and nobody reads it\n"),
              1);
    ASSERT_EQ(count_of(d.said, "task 'b' (spawned at b.c:2) ended with EPIPE"), 1);
    ASSERT_EQ(count_of(d.said, "5 more like it: task 'a' (spawned at a.c:1)\n"), 1);
}

static void one_each(void *unused)
{
    struct weft__unread u;
    (void)unused;
    weft__unread_init(&u);
    weft__unread_add(&u, &site_a, -EIO);
    weft__unread_done(&u);
    weft__unread_add(&u, &site_a, -EIO); /* afterwards nobody would tell a number */
    weft__unread_add(&u, &site_a, -EIO);
}

TEST(unread_says_nothing_more_where_there_is_nothing_more)
{
    struct death d = death_of(one_each, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(count_of(d.said, "nobody reads it"), 3);
    ASSERT_EQ(count_of(d.said, "\n"), 3);
}

static void very_many_places(void *unused)
{
    static struct weft_site sites[WEFT__UNREAD_SITES_MAX + 10];
    struct weft__unread u;
    int said = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    (void)unused;
    weft__unread_init(&u);
    ASSERT_GE(nowhere, 0);
    dup2(nowhere, STDERR_FILENO); /* the lines themselves are more than a test can hear */
    for (unsigned i = 0; i < WEFT__UNREAD_SITES_MAX + 10; i++) {
        sites[i] = (struct weft_site){.name = "n", .file = "f", .line = i};
        weft__unread_add(&u, &sites[i], -1);
    }
    dup2(said, STDERR_FILENO);
    if (u.site_count != WEFT__UNREAD_SITES_MAX) _exit(1);
    weft__unread_done(&u);
}

TEST(unread_is_bounded)
{
    struct death d = death_of(very_many_places, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "10 more failures that nobody read, of tasks spawned elsewhere\n"));
}

#if defined(WEFT_FAULTS)
static void no_memory(void *unused)
{
    struct weft__unread u;
    (void)unused;
    weft__unread_init(&u);
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    weft__unread_add(&u, &site_a, -EIO); /* counted with those of elsewhere */
    weft__unread_add(&u, &site_a, -EIO);
    weft__unread_done(&u);
}

TEST(unread_without_memory_counts_all_the_same)
{
    struct death d = death_of(no_memory, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(count_of(d.said, "nobody reads it"), 1);
    ASSERT(strstr(d.said, "1 more failures that nobody read"));
}
#endif

/* ---- many threads ---- */

static struct weft__unread shared;

static void *adds(void *arg)
{
    for (int i = 0; i < 1000; i++)
        weft__unread_add(&shared, i % 2 ? &site_a : &site_b, -EIO);
    return arg;
}

static void four_threads(void *unused)
{
    pthread_t thread[4];
    (void)unused;
    weft__unread_init(&shared);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, adds, NULL));
    for (int i = 0; i < 4; i++)
        ASSERT_OK(pthread_join(thread[i], NULL));
    weft__unread_done(&shared);
    if (load_relaxed(&shared.total) != 4000) _exit(1);
}

TEST(unread_from_many_threads_loses_none)
{
    struct death d = death_of(four_threads, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(count_of(d.said, "nobody reads it"), 2);
    ASSERT_EQ(count_of(d.said, "1999 more like it"), 2);
}
