/* SPDX-License-Identifier: MIT
 *
 * Crowds: tasks that meet at one channel all the time are gathered by one worker (sched/theft.h). Whatever that does to where they run, every message comes,
 * every task ends, nothing stays queued, and who has nothing to do with it gets its share; on 1, 2, 4 and 8 workers and a current-thread runtime, by tasks of both kinds.
 */
#include "crew.h"
#include "sched/sched.h"
#include "test.h"

#include <weft/weft.h>

enum { PAIRS = 4, CHANNELS = 2, RUNTIMES = 2, MEETERS = 64 };

typedef WEFT_CHAN(uint64_t) numbers;

static numbers *chans[CHANNELS];
static uint64_t each;
static uint64_t sums[CHANNELS][RUNTIMES * PAIRS]; /* by the receiver alone, until it is joined */

static const int sizes[] = {1, 2, 4, 8, -1};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---- those who meet ---- */

static int sends(int channel)
{
    for (uint64_t i = 1; i <= each; i++) {
        int r = weft_send(chans[channel], &i);
        if (r < 0) return r;
    }
    return 0;
}

static int receives(int channel, int receiver)
{
    uint64_t v;
    while (weft_recv(chans[channel], &v) > 0)
        sums[channel][receiver] += v;
    return 0;
}

struct sends_too {
    WEFT_FRAME(int);
    int channel;
    uint64_t i;
    struct weft_send tx;
};
static weft_async(sends_too)
{
    weft_begin;
    for (f->i = 1; f->i <= each; f->i++) {
        weft_await(f->tx, weft_send, chans[f->channel], &f->i);
        if (f->tx.ret < 0) weft_return(f->tx.ret);
    }
    weft_return(0);
    weft_end;
}

struct receives_too {
    WEFT_FRAME(int);
    int channel;
    int receiver;
    uint64_t v;
    struct weft_recv rx;
};
static weft_async(receives_too)
{
    weft_begin;
    for (;;) {
        weft_await(f->rx, weft_recv, chans[f->channel], &f->v);
        if (f->rx.ret <= 0) break;
        sums[f->channel][f->receiver] += f->v;
    }
    weft_return(0);
    weft_end;
}

/* Of both kinds, those of the two channels side by side: they lie in one ring, and are stolen together. */
static void starts(int runtime, weft_task *tx[CHANNELS][PAIRS], weft_task *rx[CHANNELS][PAIRS])
{
    for (int i = 0; i < PAIRS; i++) {
        for (int c = 0; c < CHANNELS; c++) {
            bool fibers = i % 2;
            int receiver = runtime * PAIRS + i;
            tx[c][i] = fibers ? weft_go(sends, c) : weft_spawn(sends_too, c);
            rx[c][i] = fibers ? weft_go(receives, c, receiver) : weft_spawn(receives_too, c, receiver);
        }
    }
}

static void chans_new(void)
{
    for (int c = 0; c < CHANNELS; c++) {
        ASSERT_OK(weft_chan_new(64, &chans[c]));
        for (int i = 0; i < RUNTIMES * PAIRS; i++)
            sums[c][i] = 0;
    }
}

static void chans_free(void)
{
    for (int c = 0; c < CHANNELS; c++)
        weft_chan_free(chans[c]);
}

/* From a worker, as a program would; and somebody else's tasks come and go meanwhile. */
static int all_meet(void)
{
    weft_task *tx[CHANNELS][PAIRS];
    weft_task *rx[CHANNELS][PAIRS];
    int r;

    starts(0, tx, rx);
    for (int i = 0; i < 100; i++)
        ASSERT_OK(weft_join(weft_go(crew_nothing), NULL));
    for (int c = 0; c < CHANNELS; c++) {
        for (int i = 0; i < PAIRS; i++) {
            ASSERT_OK(weft_join(tx[c][i], &r));
            ASSERT_OK(r);
        }
        ASSERT_OK(weft_chan_close(chans[c]));
    }
    for (int c = 0; c < CHANNELS; c++) {
        uint64_t sum = 0;
        for (int i = 0; i < PAIRS; i++) {
            ASSERT_OK(weft_join(rx[c][i], &r));
            sum += sums[c][i];
        }
        ASSERT_EQ(sum, PAIRS * each * (each + 1) / 2);
    }
    return 0;
}

/* Once all sleep nobody has a task, nor says that it is in a crowd. */
static void all_is_quiet(weft_rt *rt)
{
    weft_stats stats;
    CREW_UNTIL(weft__idle_sleeping(&rt->idle) == rt->worker_count);
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        ASSERT_EQ(weft__worker_queued(&rt->workers[i]), 0);
        ASSERT_EQ(load_relaxed(&rt->workers[i].shun.crowd), 0);
    }
    weft_rt_stats(rt, &stats);
    ASSERT_EQ(stats.spawned, stats.completed);
}

static void two_crowds(struct crew *crew)
{
    each = test_scaled(10000);
    chans_new();
    ASSERT_OK(weft_join(weft_go(all_meet), NULL));
    if (crew->workers > 0) all_is_quiet(crew->rt);
    chans_free();
}

TEST(crowd_two_channels_lose_nothing)
{
    crew_each_in(sizes, SIZES, two_crowds);
}

/* The runtime stops in their midst: all are told, and end. */
static void stopped(struct crew *crew)
{
    weft_task *tx[CHANNELS][PAIRS];
    weft_task *rx[CHANNELS][PAIRS];

    each = UINT64_MAX;
    chans_new();
    starts(0, tx, rx);
    for (int c = 0; c < CHANNELS; c++) {
        for (int i = 0; i < PAIRS; i++) {
            ASSERT_OK(weft_detach(tx[c][i]));
            ASSERT_OK(weft_detach(rx[c][i]));
        }
    }
    ASSERT_OK(weft_join(weft_go(crew_nothing), NULL));
    crew_stop(crew);
    chans_free();
}

TEST(crowd_is_stopped_in_its_midst)
{
    for (size_t i = 0; i < SIZES; i++) {
        for (uint64_t round = 0; round < test_scaled(20); round++) {
            struct crew crew;
            crew_start(&crew, sizes[i]);
            stopped(&crew);
        }
    }
}

/* Tasks of two runtimes meet at one channel: each runtime judges for itself. */
TEST(crowd_of_two_runtimes)
{
    struct crew crews[RUNTIMES];
    weft_task *tx[RUNTIMES][CHANNELS][PAIRS];
    weft_task *rx[RUNTIMES][CHANNELS][PAIRS];
    int r;

    each = test_scaled(10000);
    chans_new();
    for (int k = 0; k < RUNTIMES; k++) {
        crew_start(&crews[k], 2);
        starts(k, tx[k], rx[k]);
    }
    for (int c = 0; c < CHANNELS; c++) {
        for (int i = 0; i < RUNTIMES * PAIRS; i++)
            ASSERT_OK(weft_join(tx[i / PAIRS][c][i % PAIRS], &r));
        ASSERT_OK(weft_chan_close(chans[c]));
    }
    for (int c = 0; c < CHANNELS; c++) {
        uint64_t sum = 0;
        for (int i = 0; i < RUNTIMES * PAIRS; i++) {
            ASSERT_OK(weft_join(rx[i / PAIRS][c][i % PAIRS], &r));
            sum += sums[c][i];
        }
        ASSERT_EQ(sum, RUNTIMES * PAIRS * each * (each + 1) / 2);
    }
    for (int k = 0; k < RUNTIMES; k++) {
        all_is_quiet(crews[k].rt);
        (void)weft_rt_enter(crews[k].rt);
        crew_stop(&crews[k]);
    }
    chans_free();
}

/* ---- who gathers ---- */

static const char place[2];
static _Atomic bool over; /* relaxed everywhere: a flag */
static _Atomic uint64_t turns[MEETERS];

/* It says that it has met others, as often as nobody can: at one of two places. */
static int says_that_it_meets(int number)
{
    while (!load_relaxed(&over)) {
        weft__here_meets(&place[number % 2], 1U << 20);
        fetch_add_relaxed(&turns[number], 1);
        int r = weft_yield();
        if (r < 0) return r;
    }
    return 0;
}

static uint64_t gathered(const weft_rt *rt)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rt->worker_count; i++)
        sum += load_relaxed(&rt->workers[i].counts.gathered);
    return sum;
}

/* From a worker: what comes from outside may come to several, none of which has stolen. */
static int all_say_so(void)
{
    weft_task *tasks[MEETERS];
    int r;
    for (int i = 0; i < MEETERS; i++)
        tasks[i] = weft_go(says_that_it_meets, i);
    for (int i = 0; i < MEETERS; i++)
        ASSERT_OK(weft_join(tasks[i], &r));
    return 0;
}

/* They are stolen and gathered: each goes on, and whoever comes from outside is served. */
static void goes_home(struct crew *crew)
{
    store_relaxed(&over, false);
    for (int i = 0; i < MEETERS; i++)
        store_relaxed(&turns[i], 0);
    weft_task *all = weft_go(all_say_so);
    if (crew->workers > 1) CREW_UNTIL(gathered(crew->rt) > 0); /* not again and again: a thief that is left with the one that it polls has that for good */
    for (int round = 0; round < 5; round++) {
        uint64_t before[MEETERS]; /* of all at once: one after the other each would cost this thread a turn of the processor, on one core ten seconds */
        for (int i = 0; i < MEETERS; i++)
            before[i] = load_relaxed(&turns[i]);
        for (int i = 0; i < MEETERS; i++)
            CREW_UNTIL(load_relaxed(&turns[i]) > before[i]);
        ASSERT_OK(weft_join(weft_go(crew_nothing), NULL));
    }
    if (crew->workers == 1) ASSERT_EQ(gathered(crew->rt), 0);
    store_relaxed(&over, true);
    ASSERT_OK(weft_join(all, NULL));
    if (crew->workers > 0) all_is_quiet(crew->rt);
}

TEST(crowd_is_gathered_and_all_go_on)
{
    crew_each_in(sizes, SIZES, goes_home);
}

/* ---- who is left alone ---- */

static _Atomic uint32_t ran;
static _Atomic uint32_t ran_elsewhere;
static _Atomic uint32_t home; /* relaxed everywhere: it is set before any of them is spawned */

static uint32_t worker_here(void)
{
    return weft__here()->worker->index;
}

struct counts {
    WEFT_FRAME(int);
};
static weft_async(counts)
{
    weft_begin;
    if (worker_here() != load_relaxed(&home)) fetch_add_relaxed(&ran_elsewhere, 1);
    fetch_add_relaxed(&ran, 1);
    weft_return(0);
    weft_end;
}

static void count_from_nothing(void)
{
    store_relaxed(&ran, 0);
    store_relaxed(&ran_elsewhere, 0);
    store_relaxed(&home, worker_here());
}

static void shun_forever(weft_rt *rt, bool those_here)
{
    for (uint32_t i = 0; i < rt->worker_count; i++)
        store_relaxed(&rt->workers[i].shun.until, (i == load_relaxed(&home)) == those_here ? INT64_MAX : 0);
}

/* All others are shunned, as by thieves that met a crowd there: what is here is shared all the same. Its poll does not end before. */
static int shares(weft_rt *rt)
{
    uint32_t spawned = 0;
    count_from_nothing();
    shun_forever(rt, false);
    while (load_relaxed(&ran_elsewhere) == 0) {
        ASSERT_OK(weft_detach(weft_spawn(counts)));
        if (++spawned % 64 == 0) sched_yield();
    }
    while (load_relaxed(&ran) < spawned)
        (void)weft_yield();
    return 0;
}

/* It is shunned itself: nobody takes anything, and nobody is woken for it. */
static int keeps(weft_rt *rt)
{
    uint32_t count = (uint32_t)test_scaled(2000);
    count_from_nothing();
    shun_forever(rt, true);
    CREW_UNTIL(weft__idle_sleeping(&rt->idle) == rt->worker_count - 1); /* nobody is on its way here who has not seen that */
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(weft_detach(weft_spawn(counts)));
    while (load_relaxed(&ran) < count)
        (void)weft_yield();
    ASSERT_EQ(load_relaxed(&ran_elsewhere), 0);
    ASSERT_EQ(worker_here(), load_relaxed(&home));
    return 0;
}

/* Nobody gives leave to rob: it would be taken either way. */
static void by_hand(int workers, int (*body)(weft_rt *rt))
{
    struct crew crew;
    crew_start_with(&crew, &(weft_rt_opts){.workers = workers, .monitor_us = -1});
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weft_join(weft_go(body, crew.rt), NULL));
    crew_stop(&crew);
}

TEST(crowd_elsewhere_is_no_reason_to_share_late)
{
    by_hand(2, shares);
    by_hand(4, shares);
    by_hand(8, shares);
}

TEST(crowd_here_is_left_alone)
{
    by_hand(2, keeps);
    by_hand(4, keeps);
    by_hand(8, keeps);
}
