/* SPDX-License-Identifier: MIT
 *
 * The lock of a port's ring, which is lent to the worker that is alone with it: it stays so while others use rings of their own, whoever closes takes it
 * back, in the middle of what is under way, and nothing is lost by that; it is lent again; and the child of a fork, which has no such worker, does not wait for it.
 */
#include "child.h"
#include "driver/uring.h"
#include "lent.h"
#include "line.h"

static struct weft__uring *ring_of(const struct line *l)
{
    return slot_of(l->ours)->port->own;
}

static bool ring_is_lent(const struct line *l)
{
    return weft__bias_is_given(&ring_of(l)->lock);
}

static void needs_membarrier(void)
{
    if (weft__membarrier() < 0) TEST_SKIP("the kernel has no membarrier: nothing is lent");
}

/* ---- there and back, on its worker ---- */

/* Until it is lent; the watchdog bounds it. */
static int ring_gets_lent(struct line *l)
{
    int r = 0;
    for (unsigned round = 0; r == 0 && !ring_is_lent(l); round++)
        r = echoes(l, round);
    return r;
}

struct work {
    struct line line;
    _Atomic unsigned rounds; /* relaxed: progress */
    _Atomic bool over;       /* relaxed: a wish */
};

static int works(struct work *w)
{
    int r = 0;
    while (r == 0 && !load_relaxed(&w->over))
        r = echoes(&w->line, fetch_add_relaxed(&w->rounds, 1));
    return r;
}

TEST(ring_is_lent_to_the_worker_that_is_alone_with_it)
{
    weft_rt *rt = on_uring_quick();
    needs_membarrier();
    struct line l = line_by_tcp();
    ASSERT_OK(joined(weft_go(ring_gets_lent, &l)));
    ASSERT(ring_is_lent(&l));
    line_end(&l);
    stops(rt);
}

/* ---- others ---- */

/* A plain thread closes, again and again, beside a worker that has the lock, is given it, or is in a submit with it. */
TEST(ring_is_taken_back_by_whoever_closes)
{
    enum { CLOSES = 300 };
    weft_rt *rt = on_uring_quick();
    struct work w = {.line = line_by_tcp()};
    weft_task *task = weft_go(works, &w);
    for (unsigned i = 0; i < CLOSES; i++) {
        struct line other = line_by_pair();
        char nothing;
        unsigned seen = load_relaxed(&w.rounds);
        CREW_UNTIL(load_relaxed(&w.rounds) > seen + i); /* more and more in a row */
        weft_close(other.ours);
        CREW_UNTIL(read(other.theirs, &nothing, 1) == 0);
        ASSERT_OK(close(other.theirs));
    }
    store_relaxed(&w.over, true);
    ASSERT_OK(joined(task));
    line_end(&w.line);
    stops(rt);
}

/* Readers that wait are answered, whoever has the lock. */
static int reads_one(weft_stream *s)
{
    char b;
    return (int)weft_read(s, &b, 1);
}

TEST(ring_that_is_lent_answers_who_is_closed)
{
    weft_rt *rt = on_uring_quick();
    struct work w = {.line = line_by_tcp()};
    needs_membarrier();
    for (int i = 0; i < 20; i++) {
        struct line other = line_by_pair();
        weft_task *reader = weft_go(reads_one, other.ours);
        CREW_UNTIL(slot_is_awaited(other.ours, WEFT__SIDE_READ));
        ASSERT_OK(joined(weft_go(ring_gets_lent, &w.line)));
        weft_close(other.ours);
        ASSERT(!ring_is_lent(&w.line));
        ASSERT_EQ(joined(reader), -EBADF);
        ASSERT_OK(close(other.theirs));
    }
    line_end(&w.line);
    stops(rt);
}

/* Two workers, and connections of both that each of them uses. */
static int visits(struct work *w)
{
    int r = 0;
    for (unsigned round = 0; r == 0 && round < 500; round++) {
        r = echoes(&w->line, round);
        if (r == 0 && round % 50 == 0) r = weft_yield();
    }
    return r;
}

TEST(ring_serves_tasks_of_other_workers)
{
    enum { LINES = 8 };
    for (int workers = 1; workers <= 4; workers *= 2) {
        weft_rt *rt = on_uring(workers);
        struct work w[LINES] = {{.rounds = 0}};
        weft_task *task[LINES];
        for (int i = 0; i < LINES; i++)
            w[i].line = i % 2 ? line_by_tcp() : line_by_pair();
        for (int i = 0; i < LINES; i++)
            task[i] = weft_go(visits, &w[i]);
        for (int i = 0; i < LINES; i++)
            ASSERT_OK(joined(task[i]));
        for (int i = 0; i < LINES; i++)
            line_end(&w[i].line);
        stops(rt);
    }
}

/* ---- fork ---- */

static int forks(struct line *l)
{
    int r = ring_gets_lent(l);
    if (r < 0) return r;
    pid_t child = fork();
    if (child == 0) {
        char b;
        CHILD_NEEDS(weft_read(l->ours, &b, 1) == -ECHILD);
        CHILD_NEEDS(weft_write(l->ours, "x", 1) == -ECHILD);
        weft_close(l->ours);
        _exit(7);
    }
    if (!ended_by(exit_code_of(child), 7)) return -ECHILD;
    return echoes(l, 1);
}

TEST(ring_that_is_lent_keeps_no_child_waiting)
{
    weft_rt *rt = on_uring_quick();
    needs_membarrier();
    struct line l = line_by_tcp();
    ASSERT_OK(joined(weft_go(forks, &l)));
    line_end(&l);
    stops(rt);
}
