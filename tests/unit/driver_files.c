/* SPDX-License-Identifier: MIT
 *
 * files: answers reach their operations whoever fetches them, what is given up is cancelled or left, what the kernel cancels without
 * being told to goes on, cancels that were not taken are asked for again, and the port's count is that of what is under way.
 *
 * The driver stands alone here: no worker, no task. Whoever waits is a foreign waker that counts its wakes.
 */
#include "base/fault.h"
#include "driver/files.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int stirred;
static _Atomic int calmed;
static _Atomic int woken;

static void stir(struct weft__driver *driver, uint32_t port)
{
    (void)driver;
    (void)port;
    fetch_add_relaxed(&stirred, 1);
}

static void calm(struct weft__driver *driver)
{
    (void)driver;
    fetch_add_relaxed(&calmed, 1);
}

static void wakes(struct weft__foreign *unused)
{
    (void)unused;
    fetch_add_relaxed(&woken, 1);
}

static void frees(struct weft__foreign *unused)
{
    (void)unused;
}

static const struct weft__foreign_ops waker_ops = {.wake = wakes, .free = frees};
static struct weft__foreign waiter;

struct fixture {
    struct weft__driver *driver;
    struct weft__port *port;
    struct weft__files *files;
    int pipe[2];
    char byte;
    struct weft__file_req req;
    struct weft__fileop op;
};

static struct fixture begin(void)
{
    struct fixture f = {0};
    ASSERT_OK(weft__driver_new(&weft__driver_epoll, 1, &f.driver));
    f.driver->stir = stir;
    f.driver->calm = calm;
    f.driver->files_wanted = true;
    f.port = f.driver->ports;
    f.files = weft__port_files(f.port);
    if (!f.files) TEST_SKIP("no io_uring here: %d", weft__files_why_not(f.driver));
    weft__foreign_init(&waiter, &waker_ops);
    ASSERT_OK(pipe2(f.pipe, O_CLOEXEC));
    return f;
}

static void end(struct fixture *f)
{
    weft__fd_close(f->pipe[0]);
    weft__fd_close(f->pipe[1]);
    ASSERT_OK(weft__files_settle(f->driver, WEFT__NEVER));
    ASSERT_EQ(f->port->fds, 0);
    weft__driver_stop(f->driver);
    weft__driver_let_go(f->driver);
}

/* A read that takes as long as the pipe is empty. */
static void ask_for_byte(struct fixture *f)
{
    f->byte = 0;
    f->req = (struct weft__file_req){
        .op = WEFT__FILE_READ, .fd = f->pipe[0], .into = &f->byte, .bytes = 1};
    f->op = (struct weft__fileop){.req = &f->req};
    ASSERT(weft__files_begin(f->files, &f->op, weft__waker_of_foreign(&waiter)));
}

/* As a worker that sleeps in the port. */
static void turn_until_done(struct fixture *f)
{
    struct weft__events events;
    while (!weft__fileop_is_done(&f->op)) {
        (void)f->driver->ops->wait(f->port, &events, WEFT__EVENTS_MAX, WEFT__NEVER);
        (void)f->driver->ops->deliver(f->port, &events, true);
    }
}

TEST(files_answer_by_the_port)
{
    struct fixture f = begin();
    ASSERT_EQ(f.port->fds, 0); /* a ring alone is nothing to wait for */
    for (int i = 1; i <= 20; i++) {
        ask_for_byte(&f);
        ASSERT(!weft__fileop_is_done(&f.op));
        ASSERT_EQ(f.port->fds, 1);
        ASSERT_EQ(stirred, i);
        ASSERT_EQ(write(f.pipe[1], "x", 1), 1);
        turn_until_done(&f);
        ASSERT_EQ(f.op.ret, 1);
        ASSERT_EQ(f.byte, 'x');
        ASSERT_EQ(woken, i);
        ASSERT_EQ(calmed, i);
        ASSERT_EQ(f.port->fds, 0);
    }
    uint64_t done = 0;
    uint64_t late = 0;
    weft__files_count(f.driver, &done, &late);
    ASSERT_EQ(done, 20);
    ASSERT_EQ(late, 0);
    end(&f);
}

/* What is there already is answered on the spot, and nobody is woken. */
TEST(files_answer_on_the_spot)
{
    struct fixture f = begin();
    ASSERT_EQ(write(f.pipe[1], "y", 1), 1);
    ask_for_byte(&f);
    ASSERT(weft__fileop_is_done(&f.op));
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, true), WEFT__FILEOP_READY);
    ASSERT_EQ(f.op.ret, 1);
    ASSERT_EQ(f.byte, 'y');
    ASSERT_EQ(woken, 0);
    end(&f);
}

TEST(files_given_up_are_waited_for)
{
    struct fixture f = begin();
    ask_for_byte(&f);
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, false), WEFT__FILEOP_WAIT);
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, true), WEFT__FILEOP_WAIT);
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, true), WEFT__FILEOP_WAIT);
    turn_until_done(&f);
    ASSERT_EQ(f.op.ret, -ECANCELED);
    ASSERT_EQ(woken, 1);
    end(&f);
}

static _Atomic int disposed;

static void dispose(struct weft__fileop *op, int64_t ret)
{
    (void)op;
    ASSERT_EQ(ret, -ECANCELED);
    fetch_add_relaxed(&disposed, 1);
}

TEST(files_left_are_disposed_of)
{
    struct fixture f = begin();
    ask_for_byte(&f);
    f.op.dispose = dispose;
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, true), WEFT__FILEOP_LEFT);
    end(&f);
    ASSERT_EQ(disposed, 1);
    ASSERT_EQ(woken, 0);
}

static void *asks_and_ends(void *f)
{
    ask_for_byte(f);
    return NULL;
}

/* The kernel answers -ECANCELED for a thread that is not there any more; nobody told the read to stop. */
TEST(files_outlive_the_thread_that_asked)
{
    struct fixture f = begin();
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        ASSERT_OK(pthread_create(&thread, NULL, asks_and_ends, &f));
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_EQ(write(f.pipe[1], "z", 1), 1);
        turn_until_done(&f);
        ASSERT_EQ(f.op.ret, 1);
        ASSERT_EQ(f.byte, 'z');
    }
    end(&f);
}

/* All at once, and each told to stop: there is a place for every answer. */
TEST(files_take_so_many_and_no_more)
{
    enum { MANY = WEFT__FILES_DEPTH + 10 };
    static struct weft__fileop ops[MANY];
    struct fixture f = begin();
    struct weft__file_req req = {
        .op = WEFT__FILE_READ, .fd = f.pipe[0], .into = &f.byte, .bytes = 1};
    int taken = 0;

    for (int i = 0; i < MANY; i++) {
        ops[i].req = &req;
        taken += weft__files_begin(f.files, &ops[i], weft__waker_of_foreign(&waiter));
    }
    ASSERT_EQ(taken, WEFT__FILES_DEPTH);
    ASSERT_EQ(f.port->fds, WEFT__FILES_DEPTH);
    for (int i = 0; i < taken; i++)
        ASSERT_EQ(weft__fileop_poll(&ops[i], &f.files->lock, true), WEFT__FILEOP_WAIT);
    ASSERT_OK(weft__files_settle(f.driver, WEFT__NEVER));
    for (int i = 0; i < taken; i++) {
        ASSERT(weft__fileop_is_done(&ops[i]));
        ASSERT_EQ(ops[i].ret, -ECANCELED);
    }
    ASSERT_EQ(f.files->due, 0);
    end(&f);
}

TEST(files_that_do_not_end_are_told)
{
    struct fixture f = begin();
    ask_for_byte(&f);
    ASSERT_EQ(weft__files_settle(f.driver, weft__clock_now()), -ETIME);
    ASSERT_EQ(write(f.pipe[1], "x", 1), 1);
    end(&f);
    ASSERT_EQ(f.op.ret, 1);
}

#if defined(WEFT_FAULTS)

TEST(files_not_taken_have_not_happened)
{
    struct fixture f = begin();
    f.req = (struct weft__file_req){
        .op = WEFT__FILE_WRITE, .fd = f.pipe[1], .from = "x", .bytes = 1};
    f.op = (struct weft__fileop){.req = &f.req};
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 3, -EAGAIN);
    for (int i = 0; i < 3; i++)
        ASSERT(!weft__files_begin(f.files, &f.op, weft__waker_of_foreign(&waiter)));
    ASSERT_EQ(f.port->fds, 0);
    ASSERT_EQ(weft__fd_ready(f.pipe[0], WEFT__FD_IN), 0);
    ASSERT(weft__files_begin(f.files, &f.op, weft__waker_of_foreign(&waiter)));
    turn_until_done(&f);
    ASSERT_EQ(f.op.ret, 1);
    end(&f);
}

TEST(files_ask_again_for_a_cancel)
{
    struct fixture f = begin();
    ask_for_byte(&f);
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, true), WEFT__FILEOP_WAIT);
    ASSERT(!weft__list_empty(&f.files->to_cancel));
    weft__files_reap(f.files);
    ASSERT(weft__list_empty(&f.files->to_cancel));
    turn_until_done(&f);
    ASSERT_EQ(f.op.ret, -ECANCELED);
    end(&f);
}

/* It is answered before its cancel is asked for again: there is nothing left to cancel. */
TEST(files_forget_a_cancel_that_comes_too_late)
{
    struct fixture f = begin();
    ask_for_byte(&f);
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 1, -EBUSY);
    ASSERT_EQ(weft__fileop_poll(&f.op, &f.files->lock, true), WEFT__FILEOP_WAIT);
    ASSERT_EQ(write(f.pipe[1], "x", 1), 1);
    turn_until_done(&f);
    ASSERT_EQ(f.op.ret, 1);
    ASSERT(weft__list_empty(&f.files->to_cancel));
    end(&f);
}

/* Cancelled with its thread, and then the kernel does not take it: who awaits it is told to go the other way. */
TEST(files_that_cannot_be_asked_for_anew_go_the_other_way)
{
    struct fixture f = begin();
    pthread_t thread;
    ASSERT_OK(pthread_create(&thread, NULL, asks_and_ends, &f));
    ASSERT_OK(pthread_join(thread, NULL));
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, UINT32_MAX, -EAGAIN);
    ASSERT_EQ(write(f.pipe[1], "x", 1), 1);
    turn_until_done(&f);
    weft__fault_reset();
    ASSERT_EQ(f.op.ret, -EAGAIN);
    ASSERT_EQ(weft__fd_ready(f.pipe[0], WEFT__FD_IN), WEFT__FD_IN);
    end(&f);
}

TEST(files_that_do_not_open_are_not_asked_for_twice)
{
    struct weft__driver *driver;
    ASSERT_OK(weft__driver_new(&weft__driver_epoll, 1, &driver));
    driver->files_wanted = true;
    weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, UINT32_MAX, -EPERM);
    ASSERT(!weft__port_files(driver->ports));
    ASSERT(!weft__port_files(driver->ports));
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_SETUP), 1);
    ASSERT_EQ(weft__files_why_not(driver), -EPERM);
    driver->files_wanted = false;
    ASSERT_EQ(weft__files_why_not(driver), -ENOTSUP);
    weft__driver_stop(driver);
    weft__driver_let_go(driver);
}

#endif
