/* SPDX-License-Identifier: MIT
 *
 * The slot by itself: its word, its users, its waiters; and slots of a port, which never move and are used again.
 */
#include "driver/driver.h"
#include "counted.h"
#include "port.h"
#include "sys/fd.h"
#include "sys/membarrier.h"
#include "sys/pipe.h"
#include "task/here.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static uint64_t word_of(const struct weft__fdslot *slot)
{
    return load_relaxed(&slot->word);
}

static void tell(struct weft__fdslot *slot, uint32_t generation, uint64_t bits)
{
    struct weft__wake_chain chain = WEFT__WAKE_CHAIN_INIT;
    weft__fdslot_ready(slot, generation, bits, &chain);
    weft__wake_chain_push(&chain, &weft__sched);
}

struct fixture {
    struct weft__driver *driver;
    struct weft__fdslot *slot;
    int other; /* the pipe's writing end */
};

static struct fixture fixture_start(void)
{
    struct fixture f = {.driver = driver_of(1)};
    int fds[2];
    ASSERT_OK(weft__pipe_open(fds));
    f.other = fds[1];
    ASSERT_OK(weft__driver_add(&f.driver->ports[0], fds[0], &f.slot));
    return f;
}

static void fixture_end(struct fixture *f)
{
    weft__driver_close(f->slot);
    weft__fd_close(f->other);
    driver_end(f->driver);
}

TEST(slot_begins_ready_for_everything)
{
    struct fixture f = fixture_start();
    ASSERT_EQ(word_of(f.slot), WEFT__READY_READ | WEFT__READY_WRITE);
    ASSERT(!weft__port_idle(&f.driver->ports[0]));
    fixture_end(&f);
}

TEST(slot_clear_spares_what_came_since)
{
    struct fixture f = fixture_start();
    uint64_t seen = weft__fdslot_look(f.slot);
    weft__fdslot_clear(f.slot, seen, WEFT__READY_READ);
    ASSERT_EQ(word_of(f.slot) & WEFT__READY_BITS, WEFT__READY_WRITE);
    weft__fdslot_clear(f.slot, seen, WEFT__READY_WRITE); /* the other side's clear is no news */
    ASSERT_EQ(word_of(f.slot) & WEFT__READY_BITS, 0);
    seen = weft__fdslot_look(f.slot);
    tell(f.slot, 0, WEFT__READY_READ);
    weft__fdslot_clear(f.slot, seen, WEFT__READY_READ);
    ASSERT_EQ(word_of(f.slot) & WEFT__READY_BITS, WEFT__READY_READ);
    fixture_end(&f);
}

/* 2^24 events later the tick begins anew, and nothing else has changed. */
TEST(slot_tick_wraps)
{
    struct fixture f = fixture_start();
    store_relaxed(&f.slot->word, WEFT__READY_TICKS | WEFT__READY_WRITE);
    tell(f.slot, 0, WEFT__READY_READ);
    ASSERT_EQ(word_of(f.slot), WEFT__READY_READ | WEFT__READY_WRITE);
    fixture_end(&f);
}

TEST(slot_wakes_who_waits_for_that_side)
{
    struct fixture f = fixture_start();
    struct counted counted;
    struct weft__waiter waiter;
    weft__waiter_init(&waiter);
    struct weft_waker waker = counted_waker(&counted);
    uint64_t bits = weft__ready_bits(WEFT__SIDE_READ);
    ASSERT(
        !weft__fdslot_wait(f.slot, WEFT__SIDE_READ, bits, NULL, &waiter, waker)); /* it is ready */
    weft__fdslot_clear(f.slot, weft__fdslot_look(f.slot), WEFT__READY_READ);
    ASSERT(weft__fdslot_wait(f.slot, WEFT__SIDE_READ, bits, NULL, &waiter, waker));
    tell(f.slot, 0, WEFT__READY_WRITE);
    ASSERT_EQ(counted.wakes, 0);
    ASSERT(!weft__fdslot_has_turn(f.slot, &waiter));
    tell(f.slot, 7, WEFT__READY_READ); /* of another generation */
    ASSERT_EQ(counted.wakes, 0);
    tell(f.slot, 0, WEFT__READY_READ_END);
    ASSERT_EQ(counted.wakes, 1);
    ASSERT(weft__fdslot_has_turn(f.slot, &waiter));
    weft__waiter_check_out(&waiter);
    weft__fdslot_clear(f.slot, weft__fdslot_look(f.slot), bits);
    ASSERT(weft__fdslot_wait(f.slot, WEFT__SIDE_READ, bits, NULL, &waiter, waker));
    weft__fdslot_give_up(f.slot, &waiter);
    weft__waiter_check_out(&waiter);
    tell(f.slot, 0, WEFT__READY_READ);
    ASSERT_EQ(counted.wakes, 1);
    fixture_end(&f);
}

/* Who waits for the end alone is told of it beside data that is there, and so is who waits for urgent data. */
TEST(slot_tells_of_the_end_beside_data)
{
    static const uint64_t fresh[] = {WEFT__READY_READ_END, WEFT__READY_URGENT};
    for (int i = 0; i < 2; i++) {
        struct fixture f = fixture_start(); /* ready to be read already */
        struct counted counted;
        struct weft_waker waker = counted_waker(&counted);
        struct weft__waiter waiter;
        uint64_t bits = WEFT__READY_READ_END | WEFT__READY_URGENT;
        weft__waiter_init(&waiter);
        ASSERT(weft__fdslot_wait(f.slot, WEFT__SIDE_READ, bits, NULL, &waiter, waker));
        tell(f.slot, 0, WEFT__READY_READ);
        ASSERT_EQ(counted.wakes, 0); /* that was so before */
        tell(f.slot, 0, fresh[i]);
        ASSERT_EQ(counted.wakes, 1);
        ASSERT(weft__fdslot_has_turn(f.slot, &waiter));
        fixture_end(&f);
    }
}

static void *event_comes(void *slot)
{
    tell(slot, 0, WEFT__READY_READ);
    return NULL;
}

/* A worker that is alone with it is lent its lock; an event that another thread delivers takes it back, and finds who waits. */
TEST(slot_is_lent_and_taken_back)
{
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    struct fixture f = fixture_start();
    struct counted counted;
    struct weft__waiter waiter;
    pthread_t thread;
    uint8_t bits = f.slot->list.lock.bits;
    uint64_t reads = weft__ready_bits(WEFT__SIDE_READ);

    weft__here()->number = weft__bias_number_new();
    for (int i = 0; i < 1 << bits; i++) {
        ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_READER));
        ASSERT(!weft__fdslot_finish(f.slot, WEFT__USE_READER, weft__fdslot_look(f.slot), reads));
    }
    ASSERT(weft__bias_is_given(&f.slot->list.lock));
    ASSERT_EQ(weft__fdslot_begin(f.slot, WEFT__USE_READER, WEFT__SIDE_READ, reads, &waiter,
                                 counted_waker(&counted)), 1);
    ASSERT_EQ(load_relaxed(&f.slot->users), WEFT__USE_READER); /* relaxed: our own */
    ASSERT_OK(pthread_create(&thread, NULL, event_comes, f.slot));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT(!weft__bias_is_given(&f.slot->list.lock));
    ASSERT_EQ(f.slot->list.lock.bits, bits + 1);
    ASSERT_EQ(counted.wakes, 1);
    ASSERT(weft__fdslot_has_turn(f.slot, &waiter));
    ASSERT(!weft__fdslot_finish(f.slot, WEFT__USE_READER, 0, 0));
    weft__bias_number_free(weft__here()->number);
    weft__here()->number = 0;
    fixture_end(&f);
}

/* The next connection in a slot that was lent does not begin by taking it back. */
TEST(slot_is_given_back_with_its_fd)
{
    if (weft__membarrier() < 0) TEST_SKIP("no membarrier here");
    struct fixture f = fixture_start();
    struct weft__lock *lock = &f.slot->list.lock;
    uint8_t bits = lock->bits;

    weft__here()->number = weft__bias_number_new();
    for (int i = 0; i < 1 << (bits - 1); i++) {
        ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_READER));
        ASSERT(!weft__fdslot_finish(f.slot, WEFT__USE_READER, 0, 0));
    }
    ASSERT(weft__bias_is_given(lock));
    int fds[2];
    struct weft__fdslot *next;
    weft__driver_close(f.slot);
    weft__fd_close(f.other);
    ASSERT(!weft__bias_is_given(lock));
    ASSERT_EQ(lock->bits, bits);
    ASSERT_OK(weft__pipe_open(fds));
    f.other = fds[1];
    ASSERT_OK(weft__driver_add(&f.driver->ports[0], fds[0], &next));
    ASSERT(next == f.slot);
    weft__bias_number_free(weft__here()->number);
    weft__here()->number = 0;
    fixture_end(&f);
}

TEST(slot_has_one_reader_and_one_writer)
{
    struct fixture f = fixture_start();
    ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_READER));
    ASSERT_EQ(weft__fdslot_enter(f.slot, WEFT__USE_READER), -EBUSY);
    ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_WRITER));
    ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_SHARED));
    ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_SHARED));
    ASSERT_EQ(weft__driver_release(f.slot), -EBUSY);
    weft__driver_leave(f.slot, WEFT__USE_SHARED);
    weft__driver_leave(f.slot, WEFT__USE_SHARED);
    weft__driver_leave(f.slot, WEFT__USE_READER);
    weft__driver_leave(f.slot, WEFT__USE_WRITER);
    fixture_end(&f);
}

/* The descriptor stays open until the last operation has left, and is closed then. */
TEST(slot_closes_behind_the_last_user)
{
    struct fixture f = fixture_start();
    int fd = f.slot->fd;
    ASSERT_OK(weft__fdslot_enter(f.slot, WEFT__USE_READER));
    weft__driver_close(f.slot);
    ASSERT(word_of(f.slot) & WEFT__READY_CLOSED);
    ASSERT_EQ(weft__fdslot_generation(word_of(f.slot)), 1);
    ASSERT_EQ(weft__fdslot_enter(f.slot, WEFT__USE_WRITER), -EBADF);
    ASSERT_GE(weft__fd_ready(fd, WEFT__FD_IN), 0);
    weft__driver_leave(f.slot, WEFT__USE_READER);
    ASSERT_EQ(weft__fd_ready(fd, WEFT__FD_IN), -EBADF);
    ASSERT(weft__port_idle(&f.driver->ports[0]));
    weft__fd_close(f.other);
    weft__driver_stop(f.driver);
    weft__driver_let_go(f.driver);
}

/* Slots are used again, with another generation: an event of the last owner finds nobody. */
TEST(slot_is_used_again)
{
    struct fixture f = fixture_start();
    struct weft__fdslot *before = f.slot;
    weft__driver_close(f.slot);
    ASSERT_OK(weft__driver_add(&f.driver->ports[0], dup(f.other), &f.slot));
    ASSERT_PTR(f.slot, before);
    ASSERT_EQ(weft__fdslot_generation(word_of(f.slot)), 1);
    weft__fdslot_clear(f.slot, weft__fdslot_look(f.slot), WEFT__READY_BITS & ~WEFT__READY_OVER);
    tell(f.slot, 0, WEFT__READY_READ);
    ASSERT_EQ(word_of(f.slot) & WEFT__READY_BITS, 0);
    tell(f.slot, 1, WEFT__READY_READ);
    ASSERT_EQ(word_of(f.slot) & WEFT__READY_BITS, WEFT__READY_READ);
    fixture_end(&f);
}

/* Beyond the first chunks: each slot is where its number says, and none has moved. */
TEST(port_slots_never_move)
{
    enum { COUNT = 300 };
    struct weft__driver *driver = driver_of(1);
    struct weft__port *port = &driver->ports[0];
    struct weft__fdslot *slots[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        int fds[2];
        ASSERT_OK(weft__pipe_open(fds));
        weft__fd_close(fds[1]);
        ASSERT_OK(weft__driver_add(port, fds[0], &slots[i]));
        ASSERT_EQ(slots[i]->index, i);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        ASSERT_PTR(weft__port_slot(port, i), slots[i]);
    ASSERT_NULL(weft__port_slot(port, 5000));
    ASSERT_NULL(weft__port_slot(port, UINT32_MAX - 100));
    for (uint32_t i = 0; i < COUNT; i++)
        weft__driver_close(slots[i]);
    driver_end(driver);
}

/* Events find their slots, by way of the kernel; the port's own event is passed on by who drives another's port. */
TEST(port_turns)
{
    struct fixture f = fixture_start();
    struct weft__port *port = &f.driver->ports[0];
    ASSERT_EQ(weft__port_turn(port, WEFT__EVENTS_MAX, true), 0);
    weft__fdslot_clear(f.slot, weft__fdslot_look(f.slot), WEFT__READY_READ | WEFT__READY_WRITE);
    ASSERT(!f.driver->ops->has(port));
    ASSERT_EQ(write(f.other, "x", 1), 1);
    ASSERT(f.driver->ops->has(port));
    ASSERT_EQ(weft__port_turn(port, WEFT__EVENTS_MAX, true), 0); /* nobody waits */
    ASSERT(word_of(f.slot) & WEFT__READY_READ);
    ASSERT(!f.driver->ops->has(port));
    uint64_t one = 1;
    ASSERT_EQ(write(port->event, &one, sizeof one), sizeof one);
    ASSERT_EQ(weft__port_turn(port, WEFT__EVENTS_MAX, false), 0);
    ASSERT(!f.driver->ops->has(port)); /* for whom it was meant does not sleep there */
    store_relaxed(&port->slept_in, true); /* relaxed: one thread */
    ASSERT_EQ(write(port->event, &one, sizeof one), sizeof one);
    ASSERT_EQ(weft__port_turn(port, WEFT__EVENTS_MAX, false), 0);
    ASSERT(f.driver->ops->has(port)); /* it is still there for whom it was meant */
    ASSERT_EQ(weft__port_turn(port, WEFT__EVENTS_MAX, true), 0);
    ASSERT(!f.driver->ops->has(port));
    fixture_end(&f);
}

/* A driver that has stopped takes nothing more, and what is closed late is closed all the same. */
TEST(driver_outlived_by_a_slot)
{
    struct fixture f = fixture_start();
    struct weft__port *port = &f.driver->ports[0];
    int fd = f.slot->fd;
    weft__driver_stop(f.driver);
    weft__driver_let_go(f.driver);
    ASSERT(word_of(f.slot) & WEFT__READY_DOWN);
    struct weft__fdslot *late;
    ASSERT_EQ(weft__driver_add(port, f.other, &late), -ESHUTDOWN);
    weft__driver_close(f.slot);
    ASSERT_EQ(weft__fd_ready(fd, WEFT__FD_IN), -EBADF);
    weft__fd_close(f.other);
}
