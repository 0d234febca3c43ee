/* SPDX-License-Identifier: MIT
 *
 * io_uring on a kernel that does not know how to fetch: everybody is served by calls.
 */
#include "base/fault.h"
#include "fetched.h"
#include "net/listen.h"

#if defined(WEFT_FAULTS)
static bool has_no_cap(weft_stream *stream)
{
    struct weft__uring *u = slot_of(stream)->port->own;
    weft__uring_lock(u);
    bool no_cap = u->no_cap;
    weft__uring_unlock(u);
    return no_cap;
}

static int echoes(weft_stream *c)
{
    char b[16];
    ssize_t n;
    while ((n = weft_read(c, b, sizeof b)) > 0)
        if (weft_write_all(c, b, (size_t)n) != n) return -EIO;
    weft_close(c);
    return (int)n;
}

struct echoing {
    WEFT_FRAME(int);
    weft_stream *c;
    char b[16];
    struct weft_read rd;
    struct weft_write_all wr;
};
static weft_async(echoing)
{
    weft_begin;
    for (;;) {
        weft_await(f->rd, weft_read, f->c, f->b, sizeof f->b);
        if (f->rd.ret <= 0) break;
        weft_await(f->wr, weft_write_all, f->c, f->b, (size_t)f->rd.ret);
        if (f->wr.ret != f->rd.ret) weft_return(-EIO);
    }
    weft_close(f->c);
    weft_return((int)f->rd.ret);
    weft_end;
}

enum { CALLERS = 6, WORDS = 20 };

static weft_task *serves_one(weft_stream *c, int i)
{
    return i % 2 ? weft_spawn(echoing, c) : weft_go(echoes, c);
}

static int serves(weft_listener *l, weft_task **served)
{
    for (int i = 0; i < CALLERS; i++) {
        weft_stream *c;
        int r = weft_accept(l, &c);
        if (r < 0) return r;
        served[i] = serves_one(c, i);
    }
    return 0;
}

struct serving {
    WEFT_FRAME(int);
    weft_listener *l;
    weft_task **served;
    int i;
    weft_stream *c;
    struct weft_accept accept;
};
static weft_async(serving)
{
    weft_begin;
    for (f->i = 0; f->i < CALLERS; f->i++) {
        weft_await(f->accept, weft_accept, f->l, &f->c);
        if (f->accept.ret < 0) weft_return(f->accept.ret);
        f->served[f->i] = serves_one(f->c, f->i);
    }
    weft_return(0);
    weft_end;
}

static int talks(const char *address)
{
    weft_stream *s;
    int r = weft_tcp_connect(address, &s);
    for (int i = 0; r == 0 && i < WORDS; i++) {
        char b[8];
        if (weft_write_all(s, "a word.", 8) != 8 || weft_read_exact(s, b, 8) != 8) r = -EIO;
        if (r == 0 && memcmp(b, "a word.", 8) != 0) r = -EILSEQ;
    }
    weft_close(s);
    return r;
}

/* Somebody waits in an accept, and one in a read: what they asked for is refused, and they wait by other means. */
static void learns_it(struct crew *crew, weft_listener *l)
{
    weft_stream *pair[2];
    int r = 0;
    const struct weft__uring *u = weft__listener_slot(l)->port->own;
    CREW_UNTIL(load_relaxed(&u->no_fetch_listener)); /* relaxed, both: a look */
    town_pair(TOWN_TCP, pair);
    weft_task *reader = weft_go(reads_one, pair[1]);
    u = slot_of(pair[1])->port->own;
    CREW_UNTIL(load_relaxed(&u->no_fetch_stream));
    ASSERT(has_no_cap(pair[1])); /* tried first without its bound */
    if (crew->rt->worker_count == 1) ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_FETCH), 3);
    ASSERT_EQ(weft_write_all(pair[0], "c", 1), 1);
    ASSERT_OK(weft_join(reader, &r));
    ASSERT_EQ(r, 'c');
    weft_close(pair[0]);
    weft_close(pair[1]);
}

static void serves_by_calls(int workers, bool stackless)
{
    struct crew crew;
    struct town_gate gate;
    weft_task *served[CALLERS], *callers[CALLERS];
    int r = 1;
    crew_on_uring(&crew, workers);
    weft__fault_arm(WEFT__FAULT_URING_FETCH, 1, UINT32_MAX, -EINVAL);
    town_open(&gate);
    weft_task *server = stackless ? weft_spawn(serving, gate.listener, served)
                                  : weft_go(serves, gate.listener, served);
    learns_it(&crew, gate.listener);
    for (int i = 0; i < CALLERS; i++)
        callers[i] = weft_go(talks, gate.address);
    for (int i = 0; i < CALLERS; i++) {
        ASSERT_OK(weft_join(callers[i], &r));
        ASSERT_OK(r);
    }
    ASSERT_OK(weft_join(server, &r));
    ASSERT_OK(r);
    for (int i = 0; i < CALLERS; i++) {
        ASSERT_OK(weft_join(served[i], &r));
        ASSERT_OK(r);
    }
    if (crew.rt->worker_count == 1)
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_FETCH), 3); /* it is not asked for again */
    weft_close(gate.listener);
    crew_stop(&crew);
    weft__fault_reset();
}

/* Each request that goes on for ever is answered -EINVAL, by the kernel itself: everybody is served all the same. */
TEST(uring_that_cannot_fetch_goes_on_by_calls)
{
    for (size_t i = 0; i < 2 * CREW_SIZES; i++)
        serves_by_calls(crew_sizes[i / 2], i % 2);
}

/* A kernel before 6.17 knows no bound: it is asked without, and stopped when the slot is full. */
TEST(uring_that_cannot_bound_a_fetch_is_stopped)
{
    weft_rt *rt = on_uring(1);
    weft_stream *pair[2];
    int r = 0;
    town_pair(TOWN_TCP, pair);
    weft__fault_arm(WEFT__FAULT_URING_FETCH, 1, 1, -EINVAL);
    weft_task *first = weft_go(reads_one, pair[1]);
    CREW_UNTIL(has_no_cap(pair[1]) && (asked_of(pair[1]) & WEFT__URING_FETCH));
    weft_task *writer = weft_go(writes_much, pair[0]);
    ASSERT_OK(weft_join(first, &r));
    ASSERT_EQ(r, town_byte(0));
    CREW_UNTIL(!(asked_of(pair[1]) & WEFT__URING_FETCH));
    ASSERT_GE(unread_of(pair[1]), WEFT__URING_UNREAD / 2);
    weft_task *rest = weft_go(reads_all, pair[1], UINT64_C(1));
    ASSERT_OK(weft_join(rest, &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(writer, &r));
    ASSERT_OK(r);
    weft_close(pair[1]);
    stops(rt);
    weft__fault_reset();
}
#else
TEST(uring_calls_need_a_build_with_faults)
{
    TEST_SKIP("this build has no fault injection");
}
#endif
