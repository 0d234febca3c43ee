/* SPDX-License-Identifier: MIT
 *
 * Floods on io_uring, of a runtime with a worker: while one lasts its streams are watched by the port's epoll, read and written by calls; behind it they are fetched ahead again. Nothing is lost on the way over, nor by who
 * is closed or given up meanwhile; without an epoll they are polled in the ring.
 */
#include "base/fault.h"
#include "fetched.h"
#include "flooded.h"
#include "sys/fd.h"

#include <fcntl.h>

/* ---- a worker that is held until all have said something ---- */

static _Atomic bool is_held, may_go;

static int holds(void)
{
    store_release(&is_held, true);
    while (!load_acquire(&may_go))
        sched_yield();
    return 0;
}

static weft_task *hold(void)
{
    store_relaxed(&is_held, false); /* relaxed, both: nobody is held now */
    store_relaxed(&may_go, false);
    weft_task *holder = weft_go(holds);
    while (!load_acquire(&is_held))
        sched_yield();
    return holder;
}

static void says_at_once(unsigned round)
{
    weft_task *holder = hold();
    all_say(round);
    store_release(&may_go, true);
    ASSERT_OK(joined(holder));
    all_hear(round);
}

static uint32_t count_watched(void)
{
    return load_relaxed(&ring_here()->in_epoll); /* relaxed: a count */
}

enum { ROUNDS = 40 };

/* Until the epoll has some. Returns the next round. */
static unsigned floods(void)
{
    unsigned round = 0;
    do {
        says_at_once(round);
        ASSERT_LE(++round, ROUNDS - 1);
    } while (count_watched() == 0);
    return round;
}

static weft_rt *in_a_flood(unsigned *round)
{
    weft_rt *rt = on_uring(1);
    flood_begins(MOST);
    says_at_once(0);
    if (load_relaxed(&ring_here()->no_fetch_stream)) TEST_SKIP("the kernel fetches nothing ahead"); /* relaxed: it is known by now */
    *round = floods();
    return rt;
}

static void each_says(unsigned round)
{
    for (unsigned i = 0; i < flood->count; i++) {
        uint32_t word = word_of(round, i);
        ASSERT_EQ(send(flood->lines[i].theirs, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
        ASSERT_EQ(recv(flood->lines[i].theirs, &word, sizeof word, MSG_WAITALL), sizeof word);
        ASSERT_EQ(word, word_of(round, i));
    }
}

TEST_WITH(flood_is_watched_until_it_is_over, .timeout_s = 120)
{
    unsigned round;
    weft_rt *rt = in_a_flood(&round);
    ASSERT_GE(count_watched(), 1);
    for (unsigned more = 0; more < 3; more++)
        says_at_once(round++);
    while (count_watched() > 0) {
        each_says(round);
        ASSERT_LE(++round, ROUNDS);
    }
    ASSERT(!load_relaxed(&ring_here()->flood)); /* relaxed: nothing is left that could begin one */
    each_says(round++);
    each_says(round++);
    while (count_fetching() < MOST)
        sched_yield(); /* the last one is about to ask */
    flood_ends(NULL);
    stops(rt);
}

/* Nothing of it is left in the epoll. */
TEST_WITH(flood_ends_by_its_connections, .timeout_s = 120)
{
    unsigned round;
    weft_rt *rt = in_a_flood(&round);
    struct weft__uring *u = ring_here();
    flood_ends(NULL);
    ASSERT_EQ(load_relaxed(&u->in_epoll), 0); /* relaxed: all have ended */
    stops(rt);
}

/* Those of them that wait are answered, and what came for them is there for the next reader. */
static int hears(weft_stream *stream, uint32_t *word)
{
    ssize_t n = weft_read_exact(stream, word, sizeof *word);
    return n == sizeof *word ? 0 : (int)n;
}

TEST_WITH(flood_loses_nothing_by_who_gives_up, .timeout_s = 120)
{
    enum { OTHERS = 4 * WEFT__EPOLL_EVENTS };
    unsigned round;
    uint32_t words[OTHERS];
    weft_task *readers[OTHERS];
    weft_rt *rt = in_a_flood(&round);
    for (unsigned i = 0; i < OTHERS; i++) {
        weft_cancel(flood->tasks[i]);
        ASSERT_EQ(joined(flood->tasks[i]), -ECANCELED);
    }
    for (unsigned i = 0; i < OTHERS; i++) {
        uint32_t word = word_of(round, i);
        ASSERT_EQ(send(flood->lines[i].theirs, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
    }
    for (unsigned i = 0; i < OTHERS; i++)
        readers[i] = weft_go(hears, flood->lines[i].ours, &words[i]);
    for (unsigned i = 0; i < OTHERS; i++) {
        ASSERT_OK(joined(readers[i]));
        ASSERT_EQ(words[i], word_of(round, i));
        weft_close(flood->lines[i].ours);
    }
    flood_ends_from(OTHERS, NULL);
    stops(rt);
}

/* The runtime ends while its streams are in the epoll; they are closed behind it. */
TEST_WITH(flood_is_stopped_in, .timeout_s = 120)
{
    enum { KEPT = 100 };
    weft_stream *kept[KEPT];
    unsigned round;
    weft_rt *rt = in_a_flood(&round);
    for (unsigned i = 0; i < KEPT; i++) {
        weft_cancel(flood->tasks[i]);
        ASSERT_EQ(joined(flood->tasks[i]), -ECANCELED);
        kept[i] = flood->lines[i].ours;
    }
    flood_ends_from(KEPT, NULL);
    stops(rt);
    for (unsigned i = 0; i < KEPT; i++)
        weft_close(kept[i]);
}

/* ---- a flood that the test makes ---- */

static struct weft__uring *ring_of(weft_stream *stream)
{
    return slot_of(stream)->port->own;
}

static void says_flood(struct weft__uring *u, bool flood_is_there)
{
    weft__uring_lock(u);
    store_relaxed(&u->flood, flood_is_there); /* relaxed: under the lock */
    u->calm_looks = 0;
    weft__uring_unlock(u);
}

static bool is_watched(weft_stream *stream)
{
    return weft__uring_asked(weft__uring_more_of(slot_of(stream))) & WEFT__URING_EPOLL;
}

static weft_task *waits_watched(weft_stream *stream)
{
    says_flood(ring_of(stream), true);
    weft_task *task = weft_go(reads_one, stream);
    CREW_UNTIL(is_watched(stream));
    return task;
}

/* The number of a stream is put over by another's, and its file lives on: the epoll goes on telling of it, when it is closed and its slot is somebody else's. That one's wait is left as it is. */
TEST(flood_is_over_for_whom_it_is_told)
{
    weft_rt *rt = on_uring(1);
    struct line gone = line_by_tcp();
    uint32_t place = slot_of(gone.ours)->index;
    weft_task *task = waits_watched(gone.ours);
    int fd = weft_stream_fd(gone.ours);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ASSERT_GE(null, 0);
    int kept = dup(fd);
    ASSERT_GE(dup2(null, fd), 0);
    weft_close(gone.ours);
    ASSERT_EQ(joined(task), -EBADF);

    struct line line = line_by_tcp();
    ASSERT_EQ(slot_of(line.ours)->index, place);
    struct weft__uring *u = ring_of(line.ours);
    task = waits_watched(line.ours);
    while (weft__fd_ready(u->epoll, WEFT__FD_IN) > 0)
        sched_yield(); /* both were told that they can be written to */
    says_flood(u, false);
    ASSERT_EQ(send(gone.theirs, "g", 1, MSG_NOSIGNAL), 1);
    while (weft__fd_ready(u->epoll, WEFT__FD_IN) > 0)
        sched_yield();
    ASSERT_EQ(send(line.theirs, "l", 1, MSG_NOSIGNAL), 1);
    ASSERT_EQ(joined(task), 'l');
    weft_close(line.ours);
    ASSERT_OK(close(line.theirs));
    ASSERT_OK(close(gone.theirs));
    ASSERT_OK(close(kept));
    ASSERT_OK(close(null));
    stops(rt);
}

/* Streams go over to calls and back under who reads and who writes, on any worker: each byte comes, once, in its place. */
static void flooded_now_and_then(int workers)
{
    enum { PAIRS = 6 };
    struct crew crew;
    weft_task *readers[PAIRS], *writers[PAIRS];
    weft_stream *ends[PAIRS][2];
    int ret;
    crew_on_uring(&crew, workers);
    for (int i = 0; i < PAIRS; i++) {
        town_pair(TOWN_TCP, ends[i]);
        says_flood(ring_of(ends[i][1]), true);
        readers[i] = weft_go(reads_all, ends[i][1], 0);
        CREW_UNTIL(is_watched(ends[i][1]));
    }
    for (int i = 0; i < PAIRS; i++)
        writers[i] = weft_go(writes_much, ends[i][0]);
    for (unsigned turn = 0, i = 0; i < PAIRS; turn++) {
        struct weft__driver *driver = crew.rt->driver;
        for (uint32_t port = 0; port < driver->port_count; port++)
            if (load_acquire(&driver->ports[port].open)) says_flood(driver->ports[port].own, turn % 2);
        for (unsigned pause = turn * 2654435761U >> 24; pause > 0; pause--)
            sched_yield();
        if (!weft_done(readers[i]) || !weft_done(writers[i])) continue;
        ASSERT_OK(weft_join(writers[i], &ret));
        ASSERT_OK(ret);
        ASSERT_OK(weft_join(readers[i], &ret));
        ASSERT_OK(ret);
        weft_close(ends[i++][1]);
    }
    crew_stop(&crew);
}

TEST(floods_come_and_go)
{
    for (size_t i = 0; i < CREW_SIZES; i++)
        if (crew_sizes[i] > 0) flooded_now_and_then(crew_sizes[i]);
}

/* ---- without an epoll ---- */

#if defined(WEFT_FAULTS)

/* The kernel has no epoll to give, or no place in one: all are heard, by polls in the ring. */
static void floods_polled(int fault, int error)
{
    weft__fault_arm(fault, 1, UINT32_MAX, error);
    weft_rt *rt = on_uring(1);
    flood_begins(MOST);
    for (unsigned round = 0; round < 3; round++)
        says_at_once(round);
    ASSERT_EQ(count_watched(), 0);
    flood_ends(NULL);
    stops(rt);
    weft__fault_reset();
}

TEST_WITH(flood_without_an_epoll_is_polled, .timeout_s = 120)
{
    floods_polled(WEFT__FAULT_EPOLL_CREATE, -EMFILE);
}

TEST_WITH(flood_without_a_place_in_it_is_polled, .timeout_s = 120)
{
    floods_polled(WEFT__FAULT_EPOLL_CTL, -ENOSPC);
}

#endif
