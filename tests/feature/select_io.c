/* SPDX-License-Identifier: MIT
 *
 * Select over what comes from outside, in a stackless task: a connection, a signal and bytes are arms of one select. Each that comes is
 * taken once, whoever wins beside it; a select that is given up loses none. Of fibers: net, stream, signal.
 */
#include "town.h"

#include <signal.h>

/* What there is to wait for, and how much of it was taken. */
struct desk {
    struct town_gate gate;
    weft_signal *bell;
    weft_stream *post[2];    /* letters go into [0] */
    _Atomic uint32_t guests; /* relaxed, all: counts */
    _Atomic uint32_t rings;
    _Atomic uint64_t bytes;
};

static void desk_open(struct desk *desk)
{
    *desk = (struct desk){.guests = 0};
    town_open(&desk->gate);
    town_pair(TOWN_UNIX, desk->post);
    ASSERT_OK(weft_signal_open(SIGUSR1, &desk->bell));
}

static void desk_close(struct desk *desk)
{
    weft_signal_close(desk->bell);
    weft_close(desk->post[0]);
    weft_close(desk->post[1]);
    weft_close(desk->gate.listener);
}

/* Its answer is how many rounds it took. A loser's result counts as a winner's does: it may have finished all the same. */
struct attends {
    WEFT_FRAME(int);
    struct desk *desk;
    int rounds;
    weft_stream *guest;
    unsigned char letter[16];
    struct weft_accept accept;
    struct weft_signal_wait ring;
    struct weft_read read;
    struct weft_select sel;
};
static weft_async(attends)
{
    weft_begin;
    for (;; f->rounds++) {
        weft_await(
            f->sel, weft_select,
            .arm = {weft_arm(f->accept, weft_accept, f->desk->gate.listener, &f->guest),
                    weft_arm(f->ring, weft_signal_wait, f->desk->bell),
                    weft_arm(f->read, weft_read, f->desk->post[1], f->letter, sizeof f->letter)});
        if (f->sel.ret < 0) weft_return(f->sel.ret);
        const ssize_t got[] = {f->accept.ret, f->ring.ret, f->read.ret};
        ASSERT_GE(got[f->sel.ret], 0); /* the winner has something */
        if (f->accept.ret == 0) {
            weft_close(f->guest);
            fetch_add_relaxed(&f->desk->guests, 1);
        }
        if (f->ring.ret == 1) fetch_add_relaxed(&f->desk->rings, 1);
        if (f->read.ret > 0) {
            town_check(f->letter, (size_t)f->read.ret, load_relaxed(&f->desk->bytes));
            fetch_add_relaxed(&f->desk->bytes, (uint64_t)f->read.ret);
        }
        if (f->read.ret == 0) weft_return(f->rounds);
    }
    weft_end;
}

enum { GUEST = 1, RING = 2, LETTER = 4, ALL = GUEST | RING | LETTER, LETTER_BYTES = 5 };

/* A guest who has not been let in: it is in the listener's queue. */
static weft_stream *knocks(struct desk *desk)
{
    weft_stream *guest;
    ASSERT_OK(weft_tcp_connect(desk->gate.address, &guest));
    return guest;
}

static void rings(void)
{
    ASSERT_OK(raise(SIGUSR1)); /* this thread's: those of the library block it */
}

static void writes(struct desk *desk, uint64_t from)
{
    unsigned char letter[LETTER_BYTES];
    town_fill(letter, sizeof letter, from);
    ASSERT_EQ(weft_write_all(desk->post[0], letter, sizeof letter), sizeof letter);
}

/* One of them, two or all at once, and nothing more before they are all taken. */
static void attended(struct crew *crew)
{
    struct desk desk;
    uint32_t guests = 0, rung = 0;
    uint64_t bytes = 0;
    int rounds = -1;
    (void)crew;
    desk_open(&desk);
    weft_task *task = weft_spawn(attends, &desk);
    for (int i = 0; i < 4 * (ALL + 1); i++) {
        weft_stream *guest = i & GUEST ? knocks(&desk) : NULL;
        if (i & RING) rings();
        if (i & LETTER) writes(&desk, bytes);
        guests += i & GUEST ? 1 : 0;
        rung += i & RING ? 1 : 0;
        bytes += i & LETTER ? LETTER_BYTES : 0;
        CREW_UNTIL(load_relaxed(&desk.guests) == guests && load_relaxed(&desk.rings) == rung &&
                   load_relaxed(&desk.bytes) == bytes);
        weft_close(guest);
    }
    ASSERT_OK(weft_shutdown(desk.post[0]));
    ASSERT_OK(weft_join(task, &rounds));
    ASSERT_GE(rounds, 4 * ALL); /* one at least for each time that something came */
    ASSERT_EQ(load_relaxed(&desk.guests), guests);
    ASSERT_EQ(load_relaxed(&desk.rings), rung);
    ASSERT_EQ(load_relaxed(&desk.bytes), bytes);
    desk_close(&desk);
}

TEST(select_io_takes_each_once)
{
    crew_each(attended);
}

/* All three come, beside the cancel or behind it: each was taken and counted, or is still there for another. */
static void is_there_still(struct desk *desk)
{
    weft_stream *guest;
    unsigned char letter[LETTER_BYTES];
    if (load_relaxed(&desk->guests) == 0) {
        ASSERT_OK(weft_accept(desk->gate.listener, &guest));
        weft_close(guest);
    }
    if (load_relaxed(&desk->rings) == 0) ASSERT_EQ(weft_signal_wait(desk->bell), 1);
    if (load_relaxed(&desk->bytes) == 0) {
        ASSERT_EQ(weft_read_exact(desk->post[1], letter, sizeof letter), sizeof letter);
        town_check(letter, sizeof letter, 0);
    }
}

static void given_up(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 20; i++) {
        struct desk desk;
        bool beside = i % 2;
        int r = 1;
        desk_open(&desk);
        weft_task *task = weft_spawn(attends, &desk);
        for (int k = 0; k < i % 5; k++)
            sched_yield(); /* it waits, or is about to */
        weft_cancel(task);
        if (!beside) ASSERT_OK(weft_wait(task));
        weft_stream *guest = knocks(&desk);
        rings();
        writes(&desk, 0);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, -ECANCELED);
        if (!beside) ASSERT_EQ(load_relaxed(&desk.guests) + load_relaxed(&desk.rings), 0);
        is_there_still(&desk);
        weft_close(guest);
        desk_close(&desk);
    }
}

TEST(select_io_given_up_loses_nothing)
{
    crew_each(given_up);
}
