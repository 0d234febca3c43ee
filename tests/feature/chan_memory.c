/* SPDX-License-Identifier: MIT
 *
 * What channels cost, as their allocator sees it: an idle one, a fast sender before a slow receiver, blocks that come and go. The
 * allocator is never called with a lock of the library's held (debug builds abort there).
 */
#include "ints.h"

#include "sys/lock.h"
#include "task/call.h"

#include <stdlib.h>
#include <string.h>

/* ---- an allocator that counts ---- */

static _Atomic int64_t bytes_alive; /* relaxed everywhere: a count, read when nothing moves it */

static void *count_alloc(void *ctx, size_t bytes, size_t align)
{
    void *memory = NULL;
    (void)ctx;
    weft__lock_assert_none_held();
    if (posix_memalign(&memory, align, bytes) != 0) return NULL;
    fetch_add_relaxed(&bytes_alive, (int64_t)bytes);
    return memory;
}

static void count_free(void *ctx, void *memory, size_t bytes)
{
    (void)ctx;
    weft__lock_assert_none_held();
    fetch_sub_relaxed(&bytes_alive, (int64_t)bytes);
    free(memory);
}

static const weft_allocator counted = {.alloc = count_alloc, .free = count_free};

static int64_t alive(void)
{
    return load_relaxed(&bytes_alive); /* relaxed: as above */
}

/* ---- tests ---- */

/* What the library notes before a block of the program's, and before one that is aligned. */
enum { NOTE_BYTES = 16, NOTE_ALIGNED = 64 };

/* Beside its buffer, of whatever kind, with a word for the heap itself. Of an unbounded one the first block is a block of its own. */
TEST(chan_memory_of_an_idle_one)
{
    const int64_t most = 255 - (int64_t)sizeof(void *) + NOTE_ALIGNED;
    int_chan *chan;

    ASSERT_OK(weft_set_allocator(&counted));
    ASSERT_OK(weft_chan_new(0, &chan));
    int64_t meets = alive();
    ASSERT_LE(meets, most);
    weft_chan_free(chan);
    ASSERT_EQ(alive(), 0);
    ASSERT_OK(weft_chan_unbounded(&chan));
    ASSERT_LE(alive(), most + 31 * 8 + 8 + NOTE_BYTES);
    weft_chan_free(chan);
    ASSERT_EQ(alive(), 0);
    ASSERT_OK(weft_chan_oneshot(&chan));
    ASSERT_LE(alive(), most);
    weft_chan_free(chan);
    ASSERT_EQ(alive(), 0);
    ASSERT_OK(weft_chan_new(64, &chan));
    ASSERT_EQ(alive(), meets + 64 * 8); /* and there is nothing but the two, in one block */
    weft_chan_free(chan);
    ASSERT_EQ(alive(), 0);
}

/* The same of what many hear: a broadcast's ring is beside it, a watch has one place. */
TEST(chan_memory_of_an_idle_broadcast_and_watch)
{
    typedef WEFT_BROADCAST(int) int_cast;
    typedef WEFT_WATCH(int) int_watch;
    const int64_t most = 255 - (int64_t)sizeof(void *) + NOTE_BYTES;
    const int first = 7;
    int_cast *cast;
    int_watch *watch;

    ASSERT_OK(weft_set_allocator(&counted));
    ASSERT_OK(weft_broadcast_new(1, &cast));
    int64_t one = alive();
    ASSERT_LE(one - (int64_t)sizeof(int), most);
    weft_broadcast_free(cast);
    ASSERT_EQ(alive(), 0);
    ASSERT_OK(weft_broadcast_new(64, &cast));
    ASSERT_EQ(alive(), one + 63 * (int64_t)sizeof(int)); /* in one block, as above */
    weft_broadcast_free(cast);
    ASSERT_EQ(alive(), 0);
    ASSERT_OK(weft_watch_new(&first, &watch));
    ASSERT_LE(alive() - (int64_t)sizeof(int), most);
    weft_watch_free(watch);
    ASSERT_EQ(alive(), 0);
}

/* Its places are not touched before messages come to them: a large one costs its memory by and by. */
enum { UNTOUCHED = 0xa5 };
static unsigned char *marked;
static size_t marked_bytes;

static void *mark_alloc(void *ctx, size_t bytes, size_t align)
{
    marked = count_alloc(ctx, bytes, align);
    marked_bytes = bytes;
    return marked ? memset(marked, UNTOUCHED, bytes) : NULL;
}

static size_t untouched(void)
{
    size_t count = 0;
    while (count < marked_bytes && marked[marked_bytes - 1 - count] == UNTOUCHED)
        count++;
    return count;
}

TEST(chan_memory_of_places_that_are_not_used)
{
    static const weft_allocator marks = {.alloc = mark_alloc, .free = count_free};
    int_chan *chan;
    int value = 7;

    ASSERT_OK(weft_set_allocator(&marks));
    ASSERT_OK(weft_chan_new(1000, &chan));
    ASSERT_EQ(untouched(), 1000 * 8);
    ASSERT_OK(weft_try_send(chan, &value));
    ASSERT_EQ(weft_chan_len(chan), 1);
    ASSERT_GE(untouched(), 999 * 8);
    ASSERT_EQ(weft_try_recv(chan, &value), 1);
    ASSERT_EQ(value, 7);
    weft_chan_free(chan);
    ASSERT_EQ(alive(), 0);
}

/* However fast the sender and slow the receiver, a bounded channel has what it was made with: the receiver looks after each message. */
static int sends_all(int_chan *chan, int count)
{
    int r = sends(chan, 0, count);
    (void)weft_chan_close(chan);
    return r;
}

TEST(chan_memory_of_a_fast_sender)
{
    ASSERT_OK(weft_set_allocator(&counted));
    for (size_t i = 0; i < CREW_SIZES; i++) {
        int_chan *chan;
        int64_t before = alive();
        ASSERT_OK(weft_chan_new(8, &chan));
        int64_t its_own = alive() - before;
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        weft_task *tx = weft_go(sends_all, chan, 5000);
        int value;
        CREW_UNTIL(weft_chan_len(chan) == 8); /* it is full, and the sender waits, or is about to */
        int64_t full = alive();
        for (int n = 0; n < 5000; n++) {
            ASSERT_LE(weft_chan_len(chan), 8);
            ASSERT_EQ(weft_recv(chan, &value), 1);
            ASSERT_EQ(value, n);
        }
        ASSERT_LE(alive(), full + 4096); /* beside it, a thread that waits has a waker */
        ASSERT_EQ(joined(tx), 5000);
        crew_stop(&crew);
        ASSERT_EQ(alive() - before, its_own);
        weft_chan_free(chan);
    }
}

/* An unbounded one grows with what lies in it, and shrinks again; by one block at most it is larger than that. */
TEST(chan_memory_of_an_unbounded_one_follows_its_length)
{
    enum { ROUNDS = 3, MANY = 10000 };
    int_chan *chan;
    int value;

    ASSERT_OK(weft_set_allocator(&counted));
    ASSERT_OK(weft_chan_unbounded(&chan));
    int64_t empty = alive();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            ASSERT_OK(weft_try_send(chan, &i));
        ASSERT_GE(alive(), empty + (MANY - 31) * 8);
        ASSERT_LE(alive(), empty + MANY * 10);
        for (int i = 0; i < MANY; i++)
            ASSERT_EQ(weft_recv(chan, &value), 1);
        ASSERT_LE(alive(), empty + 512);
    }
    weft_chan_free(chan);
    weft__call_forget(); /* this thread's own */
    ASSERT_EQ(alive(), 0);
}
