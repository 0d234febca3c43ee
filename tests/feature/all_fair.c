/* SPDX-License-Identifier: MIT
 *
 * Arms of one task have one budget. One that always finds something to do uses it up with each poll; the others have their turn all the same.
 */
#include "crew.h"
#include "test.h"

#include <weft/weft.h>

typedef WEFT_CHAN(int) ints;

/* Sends to itself until its sibling is through. */
struct greedy {
    WEFT_FRAME(int);
    ints *own;
    const bool *through;
    int message;
    struct weft_send send;
    struct weft_recv recv;
};
static weft_async(greedy)
{
    weft_begin;
    while (!*f->through) {
        weft_await(f->send, weft_send, f->own, &f->message);
        if (f->send.ret < 0) weft_return(f->send.ret);
        weft_await(f->recv, weft_recv, f->own, &f->message);
        if (f->recv.ret < 0) weft_return((int)f->recv.ret);
    }
    weft_return(0);
    weft_end;
}

/* Its messages are there from the beginning. */
struct modest {
    WEFT_FRAME(int);
    ints *from;
    bool *through;
    int message;
    struct weft_recv recv;
};
static weft_async(modest)
{
    weft_begin;
    do {
        weft_await(f->recv, weft_recv, f->from, &f->message);
        if (f->recv.ret < 0) weft_return((int)f->recv.ret);
    } while (f->recv.ret > 0);
    *f->through = true;
    weft_return(0);
    weft_end;
}

static ints *some_messages(int count)
{
    ints *chan = NULL;
    ASSERT_OK(weft_chan_new((size_t)count, &chan));
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_send(chan, &i));
    ASSERT_OK(weft_chan_close(chan));
    return chan;
}

/* ---- as a fiber, and stackless ---- */

enum { MESSAGES = 100 };

static int both_in_a_fiber(int fail_fast, int greedy_first)
{
    struct greedy g, h;
    struct modest m;
    bool through = false;
    ints *ready = some_messages(MESSAGES);
    ints *own = NULL, *own_too = NULL;

    ASSERT_OK(weft_chan_new(4, &own));
    ASSERT_OK(weft_chan_new(4, &own_too));
    int r;
    if (fail_fast) {
        r = greedy_first ? weft_try_all(weft_arm(g, greedy, own, &through),
                                        weft_arm(h, greedy, own_too, &through),
                                        weft_arm(m, modest, ready, &through))
                         : weft_try_all(weft_arm(m, modest, ready, &through),
                                        weft_arm(g, greedy, own, &through),
                                        weft_arm(h, greedy, own_too, &through));
    } else {
        r = greedy_first
                ? weft_all(weft_arm(g, greedy, own, &through),
                           weft_arm(h, greedy, own_too, &through),
                           weft_arm(m, modest, ready, &through))
                : weft_all(weft_arm(m, modest, ready, &through), weft_arm(g, greedy, own, &through),
                           weft_arm(h, greedy, own_too, &through));
    }
    weft_chan_free(ready);
    weft_chan_free(own);
    weft_chan_free(own_too);
    return r;
}

struct both_stackless {
    WEFT_FRAME(int);
    int fail_fast;
    bool through;
    ints *ready, *own;
    struct greedy g;
    struct modest m;
    struct weft_all all;
    struct weft_try_all try_all;
};
static weft_async(both_stackless)
{
    weft_begin;
    if (f->fail_fast) {
        weft_await(f->try_all, weft_try_all,
                   .arm = {weft_arm(f->g, greedy, f->own, &f->through),
                           weft_arm(f->m, modest, f->ready, &f->through)});
        weft_return(f->try_all.ret);
    }
    weft_await(f->all, weft_all,
               .arm = {weft_arm(f->g, greedy, f->own, &f->through),
                       weft_arm(f->m, modest, f->ready, &f->through)});
    weft_return(f->all.ret);
    weft_end;
}

static void everybody_is_served(struct crew *crew)
{
    int r = -1;
    (void)crew;
    for (int fail_fast = 0; fail_fast < 2; fail_fast++) {
        for (int greedy_first = 0; greedy_first < 2; greedy_first++) {
            ASSERT_OK(weft_join(weft_go(both_in_a_fiber, fail_fast, greedy_first), &r));
            ASSERT_OK(r);
        }
        ints *own = NULL;
        ints *ready = some_messages(MESSAGES);
        ASSERT_OK(weft_chan_new(4, &own));
        ASSERT_OK(weft_join(
            weft_spawn(both_stackless, .fail_fast = fail_fast, .ready = ready, .own = own), &r));
        ASSERT_OK(r);
        weft_chan_free(ready);
        weft_chan_free(own);
    }
}

TEST(all_serves_every_arm)
{
    crew_each(everybody_is_served);
}
