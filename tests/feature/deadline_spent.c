/* SPDX-License-Identifier: MIT
 *
 * A timeout or shield of no time at all begins, looks and ends in polls whose budget others of the same task have spent: that is no reason for it to fail.
 */
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

typedef WEFT_CHAN(int) ints;

enum { GREEDY = 3, ROUNDS = 2000 };

/* Sends to itself, and uses up the budget of every poll. */
struct greedy {
    WEFT_FRAME(int);
    ints *own;
    int message;
    int round;
    struct weft_send send;
    struct weft_recv recv;
};
static weft_async(greedy)
{
    weft_begin;
    while (f->round++ < ROUNDS) {
        weft_await(f->send, weft_send, f->own, &f->message);
        weft_await(f->recv, weft_recv, f->own, &f->message);
    }
    weft_return(0);
    weft_end;
}

/* Is ready with its poll number `polls`, and does not listen. */
struct counted {
    WEFT_FRAME(int);
    int polls;
};
static weft_poll counted_poll(void *frame, weft_cx *cx)
{
    struct counted *f = frame;
    f->ret = 7;
    if (--f->polls <= 0) return WEFT_READY;
    weft_waker_wake(weft_cx_waker(cx));
    return WEFT_PENDING;
}

/* The same inside of blocks. */
struct blocks {
    WEFT_FRAME(int);
    weft_time ns;
    int polls;
};
static weft_fiber(blocks)
{
    WEFT_TIMEOUT(f->ns)
    {
        WEFT_SHIELD(f->ns) f->ret = weft_run(counted, .polls = f->polls);
    }
}

struct beside {
    WEFT_FRAME(int);
    weft_time ns;
    int polls;
    ints *own[GREEDY];
    struct greedy greedy[GREEDY];
    struct counted counted, covered;
    struct weft_timeout timeout;
    struct weft_shield shield;
    struct blocks blocks;
    struct weft_all all;
};
static weft_async(beside)
{
    weft_begin;
    weft_await(f->all, weft_all,
               .arm = {weft_arm(f->greedy[0], greedy, f->own[0]),
                       weft_arm(f->greedy[1], greedy, f->own[1]),
                       weft_arm(f->greedy[2], greedy, f->own[2]),
                       weft_arm(f->timeout, weft_timeout, f->ns,
                                weft_arm(f->counted, counted, .polls = f->polls)),
                       weft_arm(f->shield, weft_shield, f->ns,
                                weft_arm(f->covered, counted, .polls = f->polls)),
                       weft_arm(f->blocks, blocks, .ns = f->ns, .polls = f->polls)});
    ASSERT_OK(f->all.ret);
    ASSERT_OK(f->timeout.ret); /* it has ended, and not by giving up */
    ASSERT_OK(f->shield.ret);
    ASSERT_EQ(f->counted.ret, 7);
    ASSERT_EQ(f->covered.ret, 7);
    ASSERT_EQ(f->blocks.ret, 7);
    weft_return(0);
    weft_end;
}

static void no_time_and_no_budget(struct crew *crew)
{
    static const weft_time times[] = {0, -1, INT64_MIN, 1};
    ints *own[GREEDY];

    (void)crew;
    for (int i = 0; i < GREEDY; i++)
        ASSERT_OK(weft_chan_new(4, &own[i]));
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        for (int polls = 1; polls < 6; polls++) {
            int r = -1;
            ASSERT_OK(weft_join(
                weft_spawn(beside, .ns = times[i], .polls = polls, .own = {own[0], own[1], own[2]}),
                &r));
            ASSERT_OK(r);
        }
    }
    for (int i = 0; i < GREEDY; i++)
        weft_chan_free(own[i]);
}

TEST(timeout_of_no_time_in_a_poll_without_budget)
{
    crew_each(no_time_and_no_budget);
}
