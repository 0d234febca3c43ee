/* SPDX-License-Identifier: MIT
 *
 * The line of WEFT_SCHEDTRACE: its words, and that it fits.
 */
#include "sched/trace.h"

#include "sys/clock.h"
#include "sys/futex.h"
#include "test.h"

#include <string.h>

static struct weft__trace_facts some_facts(const uint64_t *queued, uint32_t workers)
{
    return (struct weft__trace_facts){
        .name = "weft",
        .uptime_ns = 2000 * WEFT__NS_PER_MS + 999999,
        .worker_count = workers,
        .sleeping = 2,
        .searching = 1,
        .still = 1,
        .injected = true,
        .tasks = 9,
        .queued = queued,
        .since =
            {.spawned = 120, .completed = 118, .polls = 400, .steals = 3, .parks = 8, .rescued = 1},
        .turns = 21,
    };
}

TEST(trace_line_says_all)
{
    static const uint64_t queued[] = {3, 4, 0, 0};
    struct weft__trace_facts facts = some_facts(queued, 4);
    char text[WEFT__TRACE_LINE_BYTES];
    static const char want[] =
        "SCHED weft 2000ms: workers=4 sleeping=2 searching=1 still=1 inject=some tasks=9 queued=7 [3 4 0 0]"
        " spawned=+120 completed=+118 polls=+400 steals=+3 parks=+8 spills=+0 rescued=+1 turns=+21\n";
    ASSERT_EQ(weft__trace_format(&facts, text, sizeof(text)), sizeof(want) - 1);
    ASSERT_STR(text, want);
    facts.injected = false;
    weft__trace_format(&facts, text, sizeof(text));
    ASSERT(strstr(text, " inject=empty "));
}

TEST(trace_longest_line_fits)
{
    uint64_t queued[WEFT__WORKERS_MAX];
    char text[WEFT__TRACE_LINE_BYTES];
    memset(queued, 0xff, sizeof(queued));
    struct weft__trace_facts facts = some_facts(queued, WEFT__WORKERS_MAX);
    facts.name = "fifteen letters";
    facts.uptime_ns = INT64_MAX;
    facts.tasks = UINT64_MAX;
    memset(&facts.since, 0xff, sizeof(facts.since));
    facts.turns = UINT64_MAX;
    size_t length = weft__trace_format(&facts, text, sizeof(text));
    ASSERT_EQ(length, strlen(text));
    ASSERT(strstr(text, " turns=+18446744073709551615\n"));
}

TEST(trace_line_is_cut_but_ends)
{
    static const uint64_t queued[] = {3, 4, 0, 0};
    struct weft__trace_facts facts = some_facts(queued, 4);
    char whole[WEFT__TRACE_LINE_BYTES];
    weft__trace_format(&facts, whole, sizeof(whole));
    for (size_t bytes = 3; bytes < 300; bytes++) {
        char text[300];
        memset(text, '#', sizeof(text));
        size_t length = weft__trace_format(&facts, text, bytes);
        ASSERT(length < bytes);
        ASSERT_EQ(text[length - 1], '\n');
        ASSERT_EQ(text[length], '\0');
        ASSERT_OK(strncmp(text, whole, length - 1));
    }
}

TEST(trace_without_interval_is_never_due)
{
    struct weft__trace trace;
    weft__trace_init(&trace, 0, 5);
    ASSERT_EQ(trace.next_at, WEFT__NEVER);
    weft__trace_init(&trace, 1000, 5);
    ASSERT_EQ(trace.next_at, 5 + WEFT__NS_PER_S);
}
