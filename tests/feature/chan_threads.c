/* SPDX-License-Identifier: MIT
 *
 * Channels between plain threads alone, without any runtime: a wait that is given up in time.
 */
#include "ints.h"

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
