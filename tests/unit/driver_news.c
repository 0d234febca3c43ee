/* SPDX-License-Identifier: MIT
 *
 * News: more of them than a group holds, of slots with and without somebody who waits, of a generation that is gone, twice of one slot; whether the slots' locks are lent to who tells or not.
 */
#include "driver/news.h"
#include "counted.h"
#include "port.h"
#include "sys/fd.h"
#include "sys/membarrier.h"
#include "sys/pipe.h"
#include "task/here.h"
#include "test.h"

enum { SLOTS = 3 * WEFT__NEWS_GROUP + WEFT__NEWS_FEW - 1 };

struct reader {
    struct weft__fdslot *slot;
    int other; /* the pipe's writing end */
    struct counted counted;
    struct weft__waiter waiter;
};

struct fixture {
    struct weft__driver *driver;
    struct reader readers[SLOTS];
};

static void reader_open(struct weft__port *port, struct reader *reader)
{
    int fds[2];
    ASSERT_OK(weft__pipe_open(fds));
    reader->other = fds[1];
    ASSERT_OK(weft__driver_add(port, fds[0], &reader->slot));
    (void)counted_waker(&reader->counted);
    weft__waiter_init(&reader->waiter);
}

static struct weft__port *port_of(const struct fixture *f)
{
    return &f->driver->ports[0];
}

static void fixture_start(struct fixture *f)
{
    f->driver = driver_of(1);
    for (int i = 0; i < SLOTS; i++)
        reader_open(port_of(f), &f->readers[i]);
}

static void fixture_end(struct fixture *f)
{
    for (int i = 0; i < SLOTS; i++) {
        weft__driver_close(f->readers[i].slot);
        weft__fd_close(f->readers[i].other);
    }
    driver_end(f->driver);
}

/* Every third waits for nothing. */
static bool waits(int i)
{
    return i % 3 != 2;
}

static void all_wait(struct fixture *f)
{
    for (int i = 0; i < SLOTS; i++) {
        struct reader *r = &f->readers[i];
        weft__fdslot_clear(r->slot, weft__fdslot_look(r->slot), WEFT__READY_READ);
        if (!waits(i)) continue;
        ASSERT(weft__fdslot_wait(r->slot, WEFT__SIDE_READ, weft__ready_bits(WEFT__SIDE_READ), NULL,
                                 &r->waiter, weft__waker_of_foreign(&r->counted.foreign)));
    }
}

/* Of another generation: nobody is told by it. */
static bool is_late(int i)
{
    return i % 5 == 4;
}

static void tells_all(struct fixture *f)
{
    struct weft__news news;
    weft__news_begin(&news, port_of(f));
    for (int i = 0; i < SLOTS; i++)
        weft__news_add(&news, weft__fdslot_token(f->readers[i].slot) ^ (is_late(i) ? 1 : 0),
                       WEFT__READY_READ);
    weft__news_add(&news, weft__fdslot_token(f->readers[0].slot), WEFT__READY_READ_END);
    (void)weft__news_end(&news);
    for (int i = 0; i < SLOTS; i++) {
        struct reader *r = &f->readers[i];
        bool told = !is_late(i);
        ASSERT_EQ(r->counted.wakes, told && waits(i) ? 1 : 0);
        ASSERT_EQ((weft__fdslot_look(r->slot) & WEFT__READY_READ) != 0, told);
        if (waits(i)) ASSERT_EQ(weft__fdslot_has_turn(r->slot, &r->waiter), told);
        if (waits(i) && !told) weft__fdslot_give_up(r->slot, &r->waiter);
    }
    ASSERT(weft__fdslot_look(f->readers[0].slot) & WEFT__READY_READ_END);
}

TEST(news_reach_their_slots)
{
    struct fixture f;
    fixture_start(&f);
    all_wait(&f);
    tells_all(&f);
    fixture_end(&f);
}

static void get_lent(struct weft__fdslot *slot)
{
    for (int i = 0; i < 1 << slot->list.lock.bits; i++) {
        ASSERT_OK(weft__fdslot_enter(slot, WEFT__USE_READER));
        ASSERT(!weft__fdslot_finish(slot, WEFT__USE_READER, 0, 0));
    }
    ASSERT(weft__bias_is_given(&slot->list.lock));
}

/* Who waits is looked at, and the loan is as it was. */
TEST(news_of_lent_slots)
{
    struct fixture f;
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    fixture_start(&f);
    weft__here()->number = weft__bias_number_new();
    for (int i = 0; i < SLOTS; i++)
        if (i % 4 != 3) get_lent(f.readers[i].slot);
    all_wait(&f);
    tells_all(&f);
    for (int i = 0; i < SLOTS; i++)
        if (i % 4 != 3) ASSERT(weft__bias_is_given(&f.readers[i].slot->list.lock));
    weft__bias_number_free(weft__here()->number);
    weft__here()->number = 0;
    fixture_end(&f);
}

/* Nothing is told twice: what was added is gone when it was told. */
TEST(news_are_told_once)
{
    struct fixture f;
    struct weft__news news;
    fixture_start(&f);
    all_wait(&f);
    weft__news_begin(&news, port_of(&f));
    ASSERT_EQ(weft__news_end(&news), 0);
    weft__news_add(&news, weft__fdslot_token(f.readers[0].slot), WEFT__READY_READ);
    weft__news_tell(&news);
    weft__news_tell(&news);
    ASSERT_EQ(weft__fdslot_look(f.readers[0].slot) & WEFT__READY_TICKS, WEFT__READY_TICK);
    ASSERT_EQ(f.readers[0].counted.wakes, 0); /* that is done when they end */
    (void)weft__news_end(&news);
    ASSERT_EQ(f.readers[0].counted.wakes, 1);
    ASSERT(weft__fdslot_has_turn(f.readers[0].slot, &f.readers[0].waiter));
    for (int i = 1; i < SLOTS; i++)
        if (waits(i)) weft__fdslot_give_up(f.readers[i].slot, &f.readers[i].waiter);
    fixture_end(&f);
}
