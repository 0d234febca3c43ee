/* SPDX-License-Identifier: MIT
 *
 * weft_case: arms whose frames have no name, on fibers and plain threads, in loops, guarded and nested. They behave as those of weft_arm; that their memory
 * lasts as long as the select needs it is seen by the sanitizers.
 */
#include "crew.h"
#include "pool.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

typedef WEFT_CHAN(int) int_chan;

struct trade {
    int_chan *numbers;
    int_chan *quit;
    int count;
};

/* A loop as one writes it in Go. Some rounds the guard is closed, and then nothing is taken. */
static int adds_up(struct trade *t)
{
    weft_interval every = weft_interval_of(weft_us(50));
    int number = 0;
    int sum = 0;
    int rounds = 0;

    for (;;) {
        bool takes = ++rounds % 3 != 0;
        switch (weft_select(weft_when(takes, weft_case(weft_recv, weft_on(t->numbers, &number))),
                            weft_case(weft_tick, &every),
                            weft_when(takes, weft_case(weft_recv, weft_on(t->quit, &number))))) {
        case 0:
            sum += number;
            break;
        case 1:
            break;
        case 2:
            return sum;
        default:
            return -ECANCELED;
        }
    }
}

static int gives_out(struct trade *t)
{
    for (int i = 1; i <= t->count; i++) {
        int number = i;
        /* nested, and by name: the time is never over, and the send happens once */
        int which =
            weft_select(weft_case(weft_timeout, .ns = weft_secs(3600),
                                  .of = weft_case(weft_send, weft_on(t->numbers, &number))));
        if (which != 0) return -EIO;
    }
    return weft_chan_close(t->quit);
}

static void trade_make(struct trade *t)
{
    t->count = (int)test_scaled(300);
    ASSERT_OK(weft_chan_new(0, &t->numbers));
    ASSERT_OK(weft_chan_new(0, &t->quit));
}

static void trades(struct crew *crew)
{
    struct trade t;
    int sum = 0;
    int r = 1;
    (void)crew;
    for (int i = 0; i < 2; i++) { /* who adds up is a fiber, then this thread */
        trade_make(&t);
        weft_task *from = weft_go(gives_out, &t);
        if (i == 0) {
            ASSERT_OK(weft_join(weft_go(adds_up, &t), &sum));
        } else {
            sum = adds_up(&t);
        }
        ASSERT_EQ(sum, t.count * (t.count + 1) / 2);
        ASSERT_OK(weft_join(from, &r));
        ASSERT_OK(r);
        weft_chan_free(t.numbers);
        weft_chan_free(t.quit);
    }
}

TEST(select_case_in_a_loop)
{
    crew_each(trades);
}

static int waits_for_ever(struct trade *t)
{
    int number;
    return weft_select(weft_case(weft_recv, weft_on(t->numbers, &number)),
                       weft_case(weft_sleep, weft_secs(3600)));
}

/* Stopped, it is the select's answer, and the arms were. */
static void is_cancelled(struct crew *crew)
{
    struct trade t;
    uint64_t random = pool_seed((uint64_t)crew->workers + 3);
    trade_make(&t);
    for (uint64_t n = test_scaled(100); n > 0; n--) {
        int r = 1;
        weft_task *task = weft_go(waits_for_ever, &t);
        for (uint32_t k = pool_random(&random, 20); k > 0; k--)
            sched_yield();
        weft_cancel(task);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, -ECANCELED);
    }
    weft_chan_free(t.numbers); /* nobody waits there */
    weft_chan_free(t.quit);
}

TEST(select_case_is_cancelled)
{
    crew_each(is_cancelled);
}

/* All of them, and which of the others never begin. */
static int all_at_once(void)
{
    weft_sem sem = WEFT_SEM_INIT(2);
    ASSERT_EQ(weft_all(weft_case(weft_sem_acquire, &sem, 1), weft_case(weft_yield)), 0);
    ASSERT_EQ(weft_try_all(weft_case(weft_sem_acquire, &sem, 1), weft_case(weft_yield)), 0);
    ASSERT_EQ(weft_select(weft_case(weft_sem_acquire, &sem, 1), weft_otherwise), 1);
    weft_sem_release(&sem, 2);
    ASSERT_EQ(weft_select_biased(weft_case(weft_sem_acquire, &sem, 2), weft_otherwise), 0);
    weft_sem_release(&sem, 2);
    weft_sem_done(&sem);
    return 0;
}

static void all_of_them(struct crew *crew)
{
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(all_at_once), &r));
    ASSERT_OK(r);
    ASSERT_OK(all_at_once());
}

TEST(select_case_of_other_combinators)
{
    crew_each(all_of_them);
}
