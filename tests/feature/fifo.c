/* SPDX-License-Identifier: MIT
 *
 * FIFOs opened as streams: each side before the other, and before one that blocks; given up while it waits, with nothing left behind; by both kinds of task.
 */
#include "base/fault.h"
#include "storm.h"
#include "town.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir[40];
static char path[64];

static void fifo_make(void)
{
    snprintf(dir, sizeof dir, "/tmp/weft-fifo-XXXXXX");
    ASSERT(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/fifo", dir);
    ASSERT_OK(mkfifo(path, 0600));
}

static void fifo_remove(void)
{
    ASSERT_OK(unlink(path));
    ASSERT_OK(rmdir(dir));
}

static void each(void (*body)(struct crew *crew))
{
    fifo_make();
    crew_each(body);
    fifo_remove();
}

/* ---- opening, of both kinds ---- */

struct opening {
    WEFT_FRAME(int);
    int flags;
    weft_stream **into;
    struct weft_fifo_open open;
};
static weft_async(opening)
{
    weft_begin;
    weft_await(f->open, weft_fifo_open, path, f->flags, f->into);
    weft_return(f->open.ret);
    weft_end;
}

static int opens(int flags, weft_stream **into)
{
    return weft_fifo_open(path, flags, into);
}

static weft_task *begin(bool stackless, int flags, weft_stream **into)
{
    return stackless ? weft_spawn(opening, flags, into) : weft_go(opens, flags, into);
}

static int joined(weft_task *task)
{
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

/* The other side as a plain descriptor. -1: nobody reads. */
static int plain(int flags)
{
    return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

/* It is there as soon as somebody has it open to read. */
static int plain_writer(void)
{
    int fd;
    while ((fd = plain(O_WRONLY)) < 0) {
        ASSERT_EQ(errno, ENXIO);
        sched_yield();
    }
    return fd;
}

/* A stream that is closed may be open for a moment more: a ring lets go of it when it comes to it. The next round must not find that reader. */
static void close_reader(weft_stream *in)
{
    int fd;
    weft_close(in);
    while ((fd = plain(O_WRONLY)) >= 0) {
        close(fd);
        sched_yield();
    }
    ASSERT_EQ(errno, ENXIO);
}

/* ---- one before the other ---- */

static void reader_first(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        weft_stream *in = NULL;
        char b[10];
        weft_task *task = begin(i, O_RDONLY, &in);
        int fd = plain_writer();
        ASSERT_OK(joined(task)); /* nothing was written: that it is there is enough */
        ASSERT_EQ(weft_write(in, "x", 1), -EBADF);
        ASSERT_EQ(write(fd, "words", 5), 5);
        ASSERT_EQ(weft_read(in, b, sizeof b), 5);
        ASSERT_EQ(memcmp(b, "words", 5), 0);
        close(fd);
        ASSERT_EQ(weft_read(in, b, sizeof b), 0);
        close_reader(in);
    }
}

TEST(fifo_reader_waits_for_a_writer)
{
    each(reader_first);
}

static void writer_first(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        weft_stream *out = NULL;
        char b[10];
        weft_task *task = begin(i, O_WRONLY, &out);
        for (int k = 0; k < 50; k++)
            sched_yield();
        ASSERT(!weft_done(task));
        int fd = plain(O_RDONLY);
        ASSERT_GE(fd, 0);
        ASSERT_OK(joined(task));
        ASSERT_EQ(weft_read(out, b, 1), -EBADF);
        ASSERT_EQ(weft_write_all(out, "words", 5), 5);
        ASSERT_EQ(read(fd, b, sizeof b), 5);
        close(fd);
        ASSERT_EQ(weft_write(out, "x", 1), -EPIPE); /* and nobody is killed */
        weft_close(out);
    }
}

TEST(fifo_writer_waits_for_a_reader)
{
    each(writer_first);
}

/* Both sides here; and what is under way when it opens is waited for. */
static void both(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        weft_stream *in = NULL, *out = NULL;
        char b[10];
        weft_task *first = begin(i & 1, i & 2 ? O_RDONLY : O_WRONLY, i & 2 ? &in : &out);
        weft_task *second = begin(i & 1, i & 2 ? O_WRONLY : O_RDONLY, i & 2 ? &out : &in);
        ASSERT_OK(joined(second));
        ASSERT_OK(joined(first));
        ASSERT_EQ(weft_write_all(out, "there", 5), 5);
        weft_close(out);
        ASSERT_EQ(weft_read_exact(in, b, sizeof b), 5);
        close_reader(in);
    }
}

TEST(fifo_both_sides)
{
    each(both);
}

/* The other side is a thread that blocks in open(2), as most programs do. */
static void *blocks(void *arg)
{
    int flags = *(int *)arg;
    char b = 'x';
    int fd = open(path, flags | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ssize_t n = flags == O_WRONLY ? write(fd, &b, 1) : read(fd, &b, 1);
    ASSERT_EQ(n, 1);
    close(fd);
    return NULL;
}

static void beside_a_blocked_one(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        weft_stream *s = NULL;
        pthread_t thread;
        char b = 0;
        int theirs = i & 1 ? O_WRONLY : O_RDONLY;
        ASSERT_OK(pthread_create(&thread, NULL, blocks, &theirs));
        ASSERT_OK(joined(begin(i & 2, i & 1 ? O_RDONLY : O_WRONLY, &s)));
        if (i & 1) {
            ASSERT_EQ(weft_read(s, &b, 1), 1);
            ASSERT_EQ(b, 'x');
        } else {
            ASSERT_EQ(weft_write(s, "x", 1), 1);
        }
        ASSERT_OK(pthread_join(thread, NULL));
        if (i & 1) {
            close_reader(s);
        } else {
            weft_close(s);
        }
    }
}

TEST(fifo_opens_beside_one_that_blocks)
{
    each(beside_a_blocked_one);
}

/* One that came and went was there, with or without a word. */
static void came_and_went(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 4; i++) {
        weft_stream *in = NULL;
        char b[10];
        weft_task *task = begin(i & 1, O_RDONLY, &in);
        int fd = plain_writer();
        if (i & 2) ASSERT_EQ(write(fd, "bye", 3), 3);
        close(fd);
        ASSERT_OK(joined(task));
        ASSERT_EQ(weft_read_exact(in, b, sizeof b), i & 2 ? 3 : 0);
        close_reader(in);
    }
}

TEST(fifo_writer_that_has_gone_was_there)
{
    each(came_and_went);
}

/* ---- given up ---- */

static void given_up(struct crew *crew)
{
    uint64_t random = pool_seed((uint64_t)crew->workers);
    for (int i = 0; i < 40; i++) {
        weft_stream *s = NULL;
        weft_task *task = begin(i & 1, i & 2 ? O_RDONLY : O_WRONLY, &s);
        for (uint32_t k = pool_random(&random, 20); k > 0; k--)
            storm_linger(&random);
        weft_cancel(task);
        ASSERT_EQ(joined(task), -ECANCELED);
        ASSERT_NULL(s);
        ASSERT_EQ(plain(O_WRONLY), -1); /* nobody is left who reads, nor a thread that waits */
        ASSERT_EQ(errno, ENXIO);
    }
}

TEST(fifo_given_up_leaves_nothing)
{
    each(given_up);
}

static int in_time(int flags)
{
    weft_stream *s;
    int r = 0;
    WEFT_TIMEOUT(weft_ms(3)) r = weft_fifo_open(path, flags, &s);
    return r;
}

static void timed_out(struct crew *crew)
{
    (void)crew;
    ASSERT_EQ(joined(weft_go(in_time, O_RDONLY)), -ETIME);
    ASSERT_EQ(joined(weft_go(in_time, O_WRONLY)), -ETIME);
    ASSERT_EQ(in_time(O_WRONLY), -ETIME); /* a plain thread, too */
}

TEST(fifo_open_is_timed_out)
{
    each(timed_out);
}

/* ---- what is none ---- */

static void refused(struct crew *crew)
{
    weft_stream *s;
    char b[4];
    (void)crew;
    ASSERT_EQ(weft_fifo_open(NULL, O_RDONLY, &s), -EINVAL);
    ASSERT_EQ(weft_fifo_open(path, O_RDONLY, NULL), -EINVAL);
    ASSERT_EQ(weft_fifo_open(path, O_WRONLY | O_CREAT, &s), -EINVAL);
    ASSERT_EQ(weft_fifo_open(path, O_ACCMODE, &s), -EINVAL);
    ASSERT_EQ(weft_fifo_open("/proc/self/status", O_RDONLY, &s), -EINVAL);
    ASSERT_EQ(weft_fifo_open("/proc/self/none", O_RDONLY, &s), -ENOENT);
    ASSERT_OK(weft_fifo_open(path, O_RDWR, &s)); /* both sides: it waits for nobody */
    ASSERT_EQ(weft_write_all(s, "self", 4), 4);
    ASSERT_EQ(weft_read_exact(s, b, 4), 4);
    close_reader(s);
#if defined(WEFT_FAULTS)
    weft__fault_arm(WEFT__FAULT_PIPE, 1, 1, -EMFILE);
    ASSERT_EQ(weft_fifo_open(path, O_RDONLY, &s), -EMFILE);
    weft__fault_reset();
#endif
}

TEST(fifo_refuses_what_is_none)
{
    weft_stream *s;
    each(refused);
    ASSERT_EQ(weft_fifo_open("/proc/self/status", O_RDONLY, &s), -ENXIO); /* no runtime */
}
