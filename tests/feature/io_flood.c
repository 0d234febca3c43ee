/* SPDX-License-Identifier: MIT
 *
 * Floods: more connections have something at once than one look brings, or a ring has buffers for. All of them are heard, whole and in order, whatever kind of task they have; on io_uring
 * who found no buffer is polled meanwhile, and fetches ahead again when it is over.
 */
#include "flooded.h"

/* Each has said two words before one is answered. */
static void flooded(struct crew *crew)
{
    (void)crew;
    flood_begins(SOME);
    for (unsigned round = 0; round < 6; round += 2) {
        all_say(round);
        all_say(round + 1);
        all_hear(round);
        all_hear(round + 1);
    }
    flood_ends(NULL);
}

TEST_WITH(flood_is_heard, .timeout_s = 120)
{
    crew_each(flooded);
}

/* A fiber whose frame has a box, since its key is so long. */
struct name {
    char text[1024];
};
typedef WEFT_KEYED(struct name, int) by_name;

static void boxed_fibers(struct crew *crew)
{
    enum { FIBERS = 12 };
    by_name set = {0};
    (void)crew;
    flood_begins(0);
    flood->count = FIBERS;
    for (unsigned i = 0; i < FIBERS; i++) {
        struct name name = {{0}};
        (void)snprintf(name.text, sizeof name.text, "%u", i);
        flood->lines[i] = line_by_tcp();
        ASSERT_OK(weft_keyed_go(&set, &name, serves, flood->lines[i].ours));
    }
    for (unsigned round = 0; round < 60; round++) {
        all_say(round);
        all_hear(round);
    }
    for (unsigned i = 0; i < FIBERS; i++)
        ASSERT_OK(close(flood->lines[i].theirs));
    int ret;
    for (unsigned i = 0; i < FIBERS; i++) {
        ASSERT_EQ(weft_keyed_join_next(&set, NULL, &ret), 1);
        ASSERT_OK(ret);
    }
    weft_keyed_done(&set);
    free(flood);
}

TEST(flood_of_boxed_fibers)
{
    crew_each(boxed_fibers);
}

/* ---- turned by this thread ---- */

static int hears_one(weft_stream *stream)
{
    char b;
    return weft_read(stream, &b, 1) == 1 ? 0 : -EIO;
}

static void turns_quietly(weft_rt *rt)
{
    while (weft_rt_turn(rt, 0) > 0) {
    }
}

/* More events that nobody waits for than one look brings: who is behind them has his turn all the same. */
TEST(flood_hides_nobody)
{
    enum { OTHERS = 3 * WEFT__EPOLL_EVENTS };
    weft_rt *rt;
    struct line others[OTHERS];
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    (void)weft_rt_enter(rt);
    struct line l = line_by_pair();
    weft_task *task = weft_go(hears_one, l.ours);
    turns_quietly(rt);
    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = line_by_pair();
    ASSERT_EQ(write(l.theirs, "x", 1), 1);
    turns_quietly(rt);
    ASSERT(weft_done(task));
    ASSERT_OK(joined(task));
    for (unsigned i = 0; i < OTHERS; i++)
        line_end(&others[i]);
    line_end(&l);
    stops(rt);
}

/* ---- on the ring, turned by this thread: what it has found is as it was left ---- */

static void turns_until(weft_rt *rt, uint32_t served)
{
    while (load_relaxed(&flood->served) < served) {
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
        flood->seen |= load_relaxed(&ring_here()->flood); /* relaxed: this thread's */
    }
}

/* One after the other, in quiet. */
static void each_says(weft_rt *rt, unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word = word_of(round, i);
        ASSERT_EQ(send(flood->lines[i].theirs, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
        turns_until(rt, load_relaxed(&flood->served) + 1);
    }
    all_hear(round);
    turns_quietly(rt);
}

TEST_WITH(flood_is_polled_until_it_is_over, .timeout_s = 120)
{
    weft_rt *rt = on_uring(-1);
    flood_begins(MOST);
    each_says(rt, 0);
    if (load_relaxed(&ring_here()->no_fetch_stream)) TEST_SKIP("the kernel fetches nothing ahead"); /* relaxed: this thread's */
    ASSERT(!flood->seen);
    ASSERT_EQ(count_fetching(), MOST);
    for (unsigned round = 1; round < 4; round++) {
        all_say(round);
        turns_until(rt, (round + 1) * MOST);
        all_hear(round);
    }
    ASSERT(flood->seen);
    ASSERT_LE(count_fetching(), MOST - 1);
    each_says(rt, 4);
    each_says(rt, 5);
    ASSERT(!load_relaxed(&ring_here()->flood)); /* relaxed: this thread's */
    ASSERT_EQ(count_fetching(), MOST);
    flood_ends(rt);
    stops(rt);
}
