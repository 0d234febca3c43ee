/* SPDX-License-Identifier: MIT
 *
 * Channels between plain threads alone, without any runtime: a wait that is given up in time, and a close that many of them sleep for.
 */
#include "ints.h"
#include "sync/chan.h"

#include <errno.h>

/* ---- given up in time ---- */

static void *sends_seven(void *chan)
{
    ASSERT_EQ(sends(chan, 7, 1), 1);
    return NULL;
}

static void *receives_seven(void *of)
{
    int_chan *chan = of;
    int value = 0;
    ASSERT_EQ(weft_recv(chan, &value), 1);
    ASSERT_EQ(value, 7);
    return NULL;
}

/* One message each way, between this thread and another. */
static void still_works(int_chan *chan)
{
    pthread_t other;
    ASSERT_OK(pthread_create(&other, NULL, sends_seven, chan));
    receives_seven(chan);
    ASSERT_OK(pthread_join(other, NULL));
    ASSERT_OK(pthread_create(&other, NULL, receives_seven, chan));
    sends_seven(chan);
    ASSERT_OK(pthread_join(other, NULL));
    ASSERT_EQ(weft_chan_len(chan), 0);
}

/* Of a channel with so many places. Nobody else uses it meanwhile: however long a millisecond lasts here, it ends the wait. */
static void gives_up_both(int_chan *chan, size_t capacity)
{
    int value = 5;

    WEFT_TIMEOUT(weft_ms(1)) ASSERT_EQ(weft_recv(chan, &value), -ETIME);
    ASSERT_EQ(value, 5);
    ASSERT_EQ(weft_chan_len(chan), 0);
    still_works(chan);
    for (size_t i = 0; i < capacity; i++)
        ASSERT_OK(weft_send(chan, &(int){1}));
    WEFT_TIMEOUT(weft_ms(1)) ASSERT_EQ(weft_send(chan, &(int){2}), -ETIME);
    ASSERT_EQ(weft_chan_len(chan), capacity);
    for (size_t i = 0; i < capacity; i++) {
        ASSERT_EQ(weft_recv(chan, &value), 1);
        ASSERT_EQ(value, 1);
    }
    still_works(chan);
}

static void *gives_up(void *none)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        int_chan *chan = chan_of(capacity);
        gives_up_both(chan, capacity);
        weft_chan_free(chan); /* which knows whether somebody was left in line */
    }
    return none;
}

/* Nothing was taken and nothing sent, and the next who come are served. */
TEST(chan_thread_gives_up_in_time)
{
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, gives_up, NULL));
    ASSERT_OK(pthread_join(thread, NULL));
}

/* ---- closed ---- */

enum { SIDE = 4 };

static void *receives(void *of)
{
    int_chan *chan = of;
    int value;
    return (void *)(intptr_t)weft_recv(chan, &value);
}

static void *offers(void *of)
{
    int_chan *chan = of;
    return (void *)(intptr_t)weft_send(chan, &(int){9});
}

static int length_of(struct weft__link *head)
{
    int length = 0;
    weft__list_each (it, head)
        length++;
    return length;
}

/* How many wait in it, on either side. Who is counted sleeps, or is about to. */
static int waiting_in(int_chan *chan)
{
    struct weft__chan *c = weft__chan_of(chan);
    struct weft__wake_chain none = WEFT__WAKE_CHAIN_INIT;

    weft__chan_lock_both(c);
    int count = length_of(&c->receivers.head) + length_of(&c->senders.head);
    weft__chan_unlock_both(c, &none);
    return count;
}

static void start_side(pthread_t *thread, void *(*does)(void *), int_chan *chan)
{
    for (int i = 0; i < SIDE; i++)
        ASSERT_OK(pthread_create(&thread[i], NULL, does, chan));
    CREW_UNTIL(waiting_in(chan) == SIDE);
}

static void expect_side(const pthread_t *thread, intptr_t answer)
{
    for (int i = 0; i < SIDE; i++) {
        void *answered = NULL;
        ASSERT_OK(pthread_join(thread[i], &answered));
        ASSERT_EQ((intptr_t)answered, answer);
    }
}

/* All of them sleep when it comes: who waits for a message is told the end, who waits for room that nothing is sent any more. */
TEST(chan_close_wakes_threads)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        int_chan *empty = chan_of(capacity), *full = chan_of(capacity);
        pthread_t rx[SIDE], tx[SIDE];

        for (size_t i = 0; i < capacity; i++)
            ASSERT_OK(weft_send(full, &(int){1}));
        start_side(rx, receives, empty);
        start_side(tx, offers, full);
        ASSERT_OK(weft_chan_close(empty));
        ASSERT_OK(weft_chan_close(full));
        expect_side(rx, 0);
        expect_side(tx, -EPIPE);
        ASSERT_EQ(weft_chan_len(full), capacity);
        weft_chan_free(empty);
        weft_chan_free(full);
    }
}

/* The same of an unbounded one, for which nobody waits to send. */
TEST(chan_close_wakes_threads_of_an_unbounded_one)
{
    int_chan *chan;
    pthread_t rx[SIDE];

    ASSERT_OK(weft_chan_unbounded(&chan));
    start_side(rx, receives, chan);
    ASSERT_OK(weft_chan_close(chan));
    expect_side(rx, 0);
    weft_chan_free(chan);
}
