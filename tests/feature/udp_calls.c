/* SPDX-License-Identifier: MIT
 *
 * What many messages cost: a list of them goes by as few calls as it fits into, to be sent and to be received.
 */
#include "base/fault.h"
#include "sys/packet.h"
#include "town.h"

#if defined(WEFT_FAULTS)

enum {
    MANY = 3 * WEFT__PACKETS_MAX / 2,
    BYTES = 40,
    CALLS = 2, /* that so many fit into */
};

/* The same list, sent by one and received by another. */
struct post {
    weft_udp *udp;
    weft_udp_msg msgs[MANY];
    unsigned char bytes[MANY][BYTES];
};

static void post_begins(struct post *post, const weft_addr *to)
{
    for (unsigned i = 0; i < MANY; i++) {
        post->msgs[i] = (weft_udp_msg){.buf = post->bytes[i], .len = BYTES};
        if (to) post->msgs[i].addr = *to;
        if (to) town_fill(post->bytes[i], BYTES, i);
    }
}

static int sends(struct post *post)
{
    for (unsigned done = 0; done < MANY;) {
        int r = weft_udp_send_many(post->udp, post->msgs + done, MANY - done);
        if (r < 0) return r;
        done += (unsigned)r;
    }
    return 0;
}

static int receives(struct post *post)
{
    for (unsigned done = 0; done < MANY;) {
        int r = weft_udp_recv_many(post->udp, post->msgs + done, MANY - done);
        if (r < 0) return r;
        done += (unsigned)r;
    }
    return 0;
}

struct moving {
    WEFT_FRAME(int);
    struct post *post;
    bool receives;
    unsigned done;
    struct weft_udp_send_many tx;
    struct weft_udp_recv_many rx;
};
static weft_async(moving)
{
    weft_begin;
    while (f->done < MANY) {
        if (f->receives) {
            weft_await(f->rx, weft_udp_recv_many, f->post->udp, f->post->msgs + f->done,
                       MANY - f->done);
        } else {
            weft_await(f->tx, weft_udp_send_many, f->post->udp, f->post->msgs + f->done,
                       MANY - f->done);
        }
        int r = f->receives ? f->rx.ret : f->tx.ret;
        if (r < 0) weft_return(r);
        f->done += (unsigned)r;
    }
    weft_return(0);
    weft_end;
}

/* To its end. Whoever receives finds them there. */
static void move(struct post *post, bool receiving, bool stackless)
{
    int r = 1;
    weft_task *task = stackless   ? weft_spawn(moving, post, receiving)
                      : receiving ? weft_go(receives, post)
                                  : weft_go(sends, post);
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
}

static uint32_t calls_to_move(struct post *post, bool receiving, bool stackless)
{
    weft__fault_reset();
    move(post, receiving, stackless);
    return weft__fault_calls(receiving ? WEFT__FAULT_RECV : WEFT__FAULT_SEND);
}

/* All of them, once. Gives the calls that it took to receive them. */
static uint32_t once_across(struct post *out, struct post *in, bool stackless)
{
    weft_addr to;
    ASSERT_OK(weft_udp_local(in->udp, &to));
    post_begins(out, &to);
    post_begins(in, NULL);
    ASSERT_EQ(calls_to_move(out, false, stackless), CALLS);
    uint32_t calls = calls_to_move(in, true, stackless);
    for (unsigned i = 0; i < MANY; i++) {
        ASSERT_EQ(in->msgs[i].got, BYTES);
        town_check(in->bytes[i], BYTES, i);
    }
    return calls;
}

/* A kernel that leaves them to its own thread (ksoftirqd) brings some late, and who receives asks once more: not each time. */
static void many_by_few(struct crew *crew)
{
    static struct post out, in;
    (void)crew;
    for (int stackless = 0; stackless < 2; stackless++) {
        uint32_t calls = 0;
        ASSERT_OK(weft_udp_bind("127.0.0.1:0", &out.udp));
        ASSERT_OK(weft_udp_bind("127.0.0.1:0", &in.udp));
        for (int i = 0; i < 100 && calls != CALLS; i++)
            calls = once_across(&out, &in, stackless);
        ASSERT_EQ(calls, CALLS);
        weft_close(out.udp);
        weft_close(in.udp);
    }
}

TEST(udp_many_go_by_few_calls)
{
    crew_each(many_by_few);
}

#else
TEST(udp_many_go_by_few_calls)
{
    TEST_SKIP("this build counts no calls");
}
#endif
