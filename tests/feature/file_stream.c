/* SPDX-License-Identifier: MIT
 *
 * Files as streams: what is written is read back, by lines, items and copies; they end, give up and are closed as streams do, by both kinds of task.
 */
#include "base/fault.h"
#include "storm.h"
#include "town.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>

static weft_stream *stream_of(weft_file *file)
{
    weft_stream *stream = NULL;
    ASSERT_OK(weft_stream_of_file(file, &stream));
    return stream;
}

static weft_stream *temp_stream(int *fd)
{
    weft_file *file;
    ASSERT_OK(weft_file_temp(NULL, &file));
    *fd = weft_file_fd(file);
    return stream_of(file);
}

static void back_to(int fd, off_t at)
{
    ASSERT_EQ(lseek(fd, at, SEEK_SET), at);
}

/* ---- bytes ---- */

#define BYTES 200000

struct passing {
    WEFT_FRAME(int);
    weft_stream *s;
    int fd;
    struct weft_write_all wr;
    struct weft_read_exact rd;
    unsigned char buf[BYTES];
};
static weft_async(passing)
{
    weft_begin;
    town_fill(f->buf, BYTES, 0);
    weft_await(f->wr, weft_write_all, f->s, f->buf, BYTES);
    ASSERT_EQ(f->wr.ret, BYTES);
    memset(f->buf, 0, BYTES);
    back_to(f->fd, 0);
    weft_await(f->rd, weft_read_exact, f->s, f->buf, BYTES);
    ASSERT_EQ(f->rd.ret, BYTES);
    town_check(f->buf, BYTES, 0);
    weft_await(f->rd, weft_read_exact, f->s, f->buf, BYTES);
    weft_return((int)f->rd.ret);
    weft_end;
}

static int passes(weft_stream *s, int fd)
{
    unsigned char *buf = malloc(BYTES);
    town_fill(buf, BYTES, 0);
    struct iovec two[2] = {{.iov_base = buf, .iov_len = 7},
                           {.iov_base = buf + 7, .iov_len = BYTES - 7}};
    ASSERT_EQ(weft_writev_all(s, two, 2), BYTES);
    memset(buf, 0, BYTES);
    back_to(fd, 0);
    ASSERT_EQ(weft_read_exact(s, buf, BYTES), BYTES);
    town_check(buf, BYTES, 0);
    free(buf);
    return (int)weft_read(s, two, sizeof two);
}

static int joined(weft_task *task)
{
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static void bytes(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 2; i++) {
        int fd;
        weft_stream *s = temp_stream(&fd);
        ASSERT_EQ(weft_stream_fd(s), fd);
        ASSERT_OK(joined(i ? weft_spawn(passing, s, fd) : weft_go(passes, s, fd)));
        ASSERT_EQ(weft_shutdown(s), -EOPNOTSUPP);
        ASSERT_EQ(weft_peek(s, &fd, 1), -EOPNOTSUPP);
        weft_close(s);
    }
}

TEST(file_stream_keeps_bytes)
{
    crew_each(bytes);
}

/* Opened for one way: the other is refused. What grows can be read on. A plain thread needs no runtime. */
TEST(file_stream_goes_as_it_was_opened)
{
    char name[] = "/tmp/weft-file-stream-XXXXXX";
    weft_stream *in, *out;
    weft_file *file;
    char b[20];
    close(mkstemp(name));
    ASSERT_EQ(weft_stream_of_file(NULL, &in), -EINVAL);
    ASSERT_OK(weft_file_open(name, O_WRONLY | O_APPEND, 0, &file));
    ASSERT_EQ(weft_stream_of_file(file, NULL), -EINVAL);
#if defined(WEFT_FAULTS)
    weft__fault_arm(WEFT__FAULT_ALLOC, 1, 1, -ENOMEM);
    ASSERT_EQ(weft_stream_of_file(file, &out), -ENOMEM); /* the file is still ours */
    weft__fault_reset();
#endif
    out = stream_of(file);
    ASSERT_OK(weft_file_open(name, O_RDONLY, 0, &file));
    in = stream_of(file);
    ASSERT_EQ(weft_write(in, "x", 1), -EBADF);
    ASSERT_EQ(weft_read(out, b, 1), -EBADF);
    ASSERT_EQ(weft_read(in, b, sizeof b), 0);
    ASSERT_EQ(weft_write_all(out, "one", 3), 3);
    ASSERT_EQ(weft_read(in, b, sizeof b), 3);
    ASSERT_EQ(weft_read(in, b, sizeof b), 0);
    ASSERT_EQ(weft_write_all(out, "two", 3), 3);
    ASSERT_EQ(weft_read_exact(in, b, sizeof b), 3);
    ASSERT_EQ(memcmp(b, "two", 3), 0);
    weft_close(in);
    weft_close(out);
    ASSERT_OK(unlink(name));
}

/* ---- what stands on it ---- */

static void lines(struct crew *crew)
{
    enum { LINES = 1000 };
    char text[40];
    int fd;
    weft_buf *b;
    weft_slice line;
    (void)crew;
    ASSERT_OK(weft_buf_new(temp_stream(&fd), NULL, &b));
    for (int i = 0; i < LINES; i++) {
        int len = snprintf(text, sizeof text, "line %d\n", i);
        ASSERT_EQ(weft_write_all(weft_buf_stream(b), text, (size_t)len), len);
    }
    ASSERT_OK(weft_flush(b));
    back_to(fd, 0);
    for (int i = 0; i < LINES; i++) {
        int len = snprintf(text, sizeof text, "line %d", i);
        ASSERT_EQ(weft_read_line(b, 0, &line), 1);
        ASSERT_EQ(line.len, len);
        ASSERT_EQ(memcmp(line.data, text, (size_t)len), 0);
    }
    ASSERT_EQ(weft_read_line(b, 0, &line), 0);
    weft_close(b);
}

TEST(file_stream_has_lines)
{
    crew_each(lines);
}

static void items(struct crew *crew)
{
    static const weft_codec packets = WEFT_CODEC_LENGTHS(4, 1 << 20);
    int fd;
    weft_buf *b;
    weft_slice item;
    (void)crew;
    ASSERT_OK(weft_buf_new(temp_stream(&fd), NULL, &b));
    for (size_t i = 0; i < 100; i++)
        ASSERT_OK(weft_encode(b, &packets, "0123456789abcdef", i % 17));
    ASSERT_OK(weft_flush(b));
    back_to(fd, 0);
    for (size_t i = 0; i < 100; i++) {
        ASSERT_EQ(weft_decode(b, &packets, &item), 1);
        ASSERT_EQ(item.len, i % 17);
    }
    ASSERT_EQ(weft_decode(b, &packets, &item), 0);
    weft_close(b);
}

TEST(file_stream_has_items)
{
    crew_each(items);
}

static int64_t copies(weft_stream *from, weft_stream *to)
{
    int64_t n = weft_copy(from, to);
    weft_close(to);
    return n;
}

/* Into a socket and out of it again, into another file, which is then read as a whole. */
static void copied(struct crew *crew)
{
    static unsigned char all[BYTES];
    int fd, to_fd;
    weft_stream *pair[2];
    char *text;
    size_t len;
    int64_t n = 0;
    (void)crew;
    weft_stream *from = temp_stream(&fd);
    weft_stream *to = temp_stream(&to_fd);
    town_fill(all, BYTES, 0);
    ASSERT_EQ(weft_write_all(from, all, BYTES), BYTES);
    back_to(fd, 0);
    town_pair(TOWN_UNIX, pair);
    weft_task *sender = weft_go(copies, from, pair[0]);
    ASSERT_EQ(weft_copy(pair[1], to), BYTES);
    ASSERT_OK(weft_join(sender, &n));
    ASSERT_EQ(n, BYTES);
    back_to(to_fd, 0);
    ASSERT_OK(weft_read_to_end(to, 0, &text, &len));
    ASSERT_EQ(len, BYTES);
    town_check((unsigned char *)text, len, 0);
    weft_free(text);
    weft_close(pair[1]);
    weft_close(from);
    weft_close(to);
}

TEST(file_stream_is_copied)
{
    crew_each(copied);
}

/* ---- given up, closed ---- */

/* Told to stop at any moment: what it answers is what the file's place says. */
static int tries_to_read(weft_stream *s, uint64_t *at, uint64_t random)
{
    unsigned char buf[3000];
    struct storm_pause pause;
    struct weft_read rd;
    do {
        (void)weft_select(weft_arm(rd, weft_read, s, buf, 1 + pool_random(&random, sizeof buf - 1)),
                          weft_arm(pause, storm_pause, pool_random(&random, 3)));
        if (rd.ret > 0) town_check(buf, (size_t)rd.ret, *at);
        if (rd.ret > 0) *at += (uint64_t)rd.ret;
    } while (rd.ret > 0 || rd.ret == -ECANCELED);
    return (int)rd.ret;
}

static void given_up(struct crew *crew)
{
    static unsigned char all[BYTES];
    uint64_t at = 0;
    int fd;
    weft_stream *s = temp_stream(&fd);
    town_fill(all, BYTES, 0);
    ASSERT_EQ(weft_write_all(s, all, BYTES), BYTES);
    back_to(fd, 0);
    ASSERT_OK(joined(weft_go(tries_to_read, s, &at, pool_seed((uint64_t)crew->workers))));
    ASSERT_EQ(at, BYTES);
    weft_close(s);
}

TEST(file_stream_given_up_loses_nothing)
{
    crew_each(given_up);
}

static int reads_three(weft_stream *s)
{
    char b[3];
    return (int)weft_read_exact(s, b, sizeof b);
}

struct reading_three {
    WEFT_FRAME(int);
    weft_stream *s;
    struct weft_read_exact rd;
    char b[3];
};
static weft_async(reading_three)
{
    weft_begin;
    weft_await(f->rd, weft_read_exact, f->s, f->b, sizeof f->b);
    ASSERT_GE(f->rd.done, 1);
    ASSERT_LE(f->rd.done, 2);
    weft_return((int)f->rd.ret);
    weft_end;
}

static void await_empty(int fd)
{
    int bytes = 1;
    while (bytes > 0) {
        sched_yield();
        ASSERT_OK(ioctl(fd, FIONREAD, &bytes));
    }
}

/* A pipe makes a file that takes its time. The piece that was begun when it was closed is done, and no other; the memory goes with it. */
static void closed_in_use(struct crew *crew)
{
    (void)crew;
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        int fds[2];
        weft_file *file;
        ASSERT_OK(pipe2(fds, O_CLOEXEC));
        ASSERT_OK(weft_file_of(fds[0], &file));
        weft_stream *s = stream_of(file);
        weft_task *task = i ? weft_spawn(reading_three, s) : weft_go(reads_three, s);
        ASSERT_EQ(write(fds[1], "x", 1), 1);
        await_empty(fds[1]);
        weft_close(s);
        (void)!write(fds[1], "y", 1); /* -EPIPE, if it was over already */
        ASSERT_EQ(joined(task), -EBADF);
        close(fds[1]);
    }
}

TEST(file_stream_closed_in_use_ends_with_its_piece)
{
    crew_each(closed_in_use);
}
