/* SPDX-License-Identifier: MIT
 *
 * Standard streams on real runtimes: pipes, sockets, files, terminals; opened anew or shared; the descriptors themselves stay as they were, and a
 * reader without input, or a writer that nobody reads from, keeps no runtime from its end.
 */
#include "base/fault.h"
#include "slot.h"
#include "town.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Another file in the place of a descriptor, for a while. */
struct place {
    int number;
    int before;
};

static struct place place_take(int number, int fd)
{
    struct place p = {number, fcntl(number, F_DUPFD_CLOEXEC, 10)};
    ASSERT_GE(p.before, 0);
    ASSERT_EQ(fd < 0 ? fd : dup2(fd, number), number);
    return p;
}

static void place_back(struct place p)
{
    ASSERT_EQ(dup2(p.before, p.number), p.number);
    close(p.before);
}

static void still_blocks(int fd)
{
    ASSERT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

enum kind { PIPE, SOCKET, PIPE_SHARED, KINDS };

/* Bytes written to [1] are read from [0]; both block. */
static void connect_pair(enum kind kind, int into[2])
{
    ASSERT_OK(kind == SOCKET ? socketpair(AF_UNIX, SOCK_STREAM, 0, into) : pipe(into));
}

/* One that must not be opened anew: as if it were another user's. */
static int opens(enum kind kind, int (*open)(weft_stream **into), weft_stream **into)
{
#if defined(WEFT_FAULTS)
    if (kind == PIPE_SHARED) weft__fault_arm(WEFT__FAULT_OPEN, 1, 1, -EACCES);
    int r = open(into);
    weft__fault_reset();
    return r;
#else
    (void)kind;
    return open(into);
#endif
}

/* ---- in ---- */

static int reads_all(weft_stream *in, uint64_t *total)
{
    unsigned char b[777];
    ssize_t n;
    while ((n = weft_read(in, b, sizeof b)) > 0) {
        town_check(b, (size_t)n, *total);
        *total += (uint64_t)n;
    }
    return (int)n;
}

struct reading_all {
    WEFT_FRAME(int);
    weft_stream *in;
    uint64_t *total;
    struct weft_read_exact rd;
    unsigned char b[500];
};
static weft_async(reading_all)
{
    weft_begin;
    do {
        weft_await(f->rd, weft_read_exact, f->in, f->b, sizeof f->b);
        if (f->rd.ret < 0) weft_return((int)f->rd.ret);
        town_check(f->b, (size_t)f->rd.ret, *f->total);
        *f->total += (uint64_t)f->rd.ret;
    } while (f->rd.ret == sizeof f->b);
    weft_return(0);
    weft_end;
}

static void in(struct crew *crew)
{
    enum { BYTES = 200000 };
    static unsigned char out[BYTES];
    (void)crew;
    town_fill(out, BYTES, 0);
    for (int i = 0; i < 2 * KINDS; i++) {
        int fds[2];
        weft_stream *s;
        uint64_t total = 0;
        int r = 1;
        connect_pair((enum kind)(i / 2), fds);
        struct place place = place_take(0, fds[0]);
        ASSERT_OK(opens((enum kind)(i / 2), weft_stdin, &s));
        still_blocks(0);
        weft_task *task =
            i % 2 ? weft_spawn(reading_all, s, &total) : weft_go(reads_all, s, &total);
        for (size_t at = 0; at < BYTES;) { /* blocks when it is full: the reader is another */
            ssize_t n = write(fds[1], out + at, BYTES - at);
            ASSERT_GE(n, 1);
            at += (size_t)n;
        }
        close(fds[1]);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_OK(r);
        ASSERT_EQ(total, BYTES);
        ASSERT_EQ(weft_write(s, "x", 1), -EBADF);
        still_blocks(0);
        weft_close(s);
        close(fds[0]);
        place_back(place);
    }
}

TEST(stdio_reads)
{
    crew_each(in);
}

/* ---- out ---- */

static int writes_all(weft_stream *s, const unsigned char *from, size_t bytes)
{
    return (int)weft_write_all(s, from, bytes);
}

static void out(struct crew *crew)
{
    enum { BYTES = 200000 };
    static unsigned char bytes[BYTES], got[BYTES];
    (void)crew;
    town_fill(bytes, BYTES, 0);
    for (int i = 0; i < KINDS; i++) {
        int fds[2];
        weft_stream *s;
        int r = 1;
        connect_pair((enum kind)i, fds);
        struct place place = place_take(1, fds[1]);
        r = opens((enum kind)i, weft_stdout, &s);
        place_back(place);
        ASSERT_OK(r);
        weft_task *task = weft_go(writes_all, s, bytes, (size_t)BYTES);
        for (size_t at = 0; at < BYTES;) {
            ssize_t n = read(fds[0], got + at, BYTES - at);
            ASSERT_GE(n, 1);
            at += (size_t)n;
        }
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, BYTES);
        town_check(got, BYTES, 0);
        still_blocks(fds[1]);
        close(fds[0]);
        close(fds[1]);
        ASSERT_EQ(weft_write(s, "x", 1), -EPIPE); /* and no signal */
        ASSERT_EQ(weft_read(s, got, 1), -EBADF);
        weft_close(s);
    }
}

TEST(stdio_writes)
{
    crew_each(out);
}

/* ---- files ---- */

static void files(struct crew *crew)
{
    char name[] = "/tmp/weft-stdio-XXXXXX";
    weft_stream *s;
    char b[20];
    (void)crew;
    int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    ASSERT_OK(unlink(name));
    struct place place = place_take(2, fd);
    int r = weft_stderr(&s);
    ssize_t n = r == 0 ? weft_write_all(s, "0123456789", 10) : r;
    place_back(place);
    ASSERT_EQ(n, 10);
    weft_close(s);
    ASSERT_EQ(lseek(fd, 0, SEEK_CUR), 10); /* the place is shared, as it always was */
    ASSERT_EQ(lseek(fd, 3, SEEK_SET), 3);
    place = place_take(0, fd);
    ASSERT_OK(weft_stdin(&s));
    ASSERT_EQ(weft_read_exact(s, b, 4), 4);
    ASSERT_EQ(memcmp(b, "3456", 4), 0);
    ASSERT_EQ(lseek(fd, 0, SEEK_CUR), 7);
    ASSERT_EQ(weft_read_exact(s, b, sizeof b), 3);
    ASSERT_EQ(weft_read(s, b, sizeof b), 0);
    weft_close(s);
    place_back(place);
    close(fd);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    place = place_take(0, fd);
    ASSERT_OK(weft_stdin(&s));
    ASSERT_EQ(weft_read(s, b, sizeof b), 0);
    weft_close(s);
    place_back(place);
    close(fd);
}

TEST(stdio_of_files)
{
    crew_each(files);
}

/* ---- terminals ---- */

/* False: there are none here. */
static bool terminal_pair(int *master, int *slave)
{
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0) return false;
    ASSERT_OK(grantpt(*master));
    ASSERT_OK(unlockpt(*master));
    *slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(*slave, 0);
    return true;
}

static void terminal(struct crew *crew)
{
    weft_stream *s;
    char b[20];
    (void)crew;
    int master, slave;
    if (!terminal_pair(&master, &slave)) TEST_SKIP("no pseudo terminals here");
    for (int shared = 0; shared < 2; shared++) {
        struct place place = place_take(0, slave);
        ASSERT_OK(opens(shared ? PIPE_SHARED : PIPE, weft_stdin, &s));
        ASSERT_EQ(write(master, "a line\n", 7), 7);
        ASSERT_EQ(weft_read(s, b, sizeof b), 7);
        ASSERT_EQ(memcmp(b, "a line\n", 7), 0);
        still_blocks(0);
        weft_close(s);
        place_back(place);
        place = place_take(1, slave);
        int r = opens(shared ? PIPE_SHARED : PIPE, weft_stdout, &s);
        place_back(place);
        ASSERT_OK(r);
        ASSERT_EQ(weft_write_all(s, "out", 3), 3);
        weft_close(s);
        still_blocks(slave);
        size_t got = 0;
        while (got < 3 || memcmp(b + got - 3, "out", 3) != 0) { /* behind the echo */
            ssize_t n = read(master, b + got, sizeof b - got);
            ASSERT_GE(n, 1);
            got += (size_t)n;
        }
    }
    close(slave);
    close(master);
}

TEST(stdio_of_terminals)
{
    crew_each(terminal);
}

/* Lines that were typed ahead, or packets, come one for each read, and there is no event for what is left. */
static void reads_pieces(int fd, bool shared)
{
    static const char *const lines[] = {"one\n", "two\n", "three\n", "four\n"};
    weft_stream *s;
    char b[20];
    struct place place = place_take(0, fd);
    ASSERT_OK(opens(shared ? PIPE_SHARED : PIPE, weft_stdin, &s));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        ASSERT_EQ(weft_read(s, b, sizeof b), strlen(lines[i]));
        ASSERT_EQ(memcmp(b, lines[i], strlen(lines[i])), 0);
    }
    weft_close(s);
    place_back(place);
}

static void typed_ahead(struct crew *crew)
{
    (void)crew;
    int master, slave;
    if (!terminal_pair(&master, &slave)) TEST_SKIP("no pseudo terminals here");
    for (int shared = 0; shared < 2; shared++) {
        int there = 0;
        ASSERT_EQ(write(master, "one\ntwo\nthree\nfour\n", 19), 19);
        CREW_UNTIL(ioctl(slave, FIONREAD, &there) == 0 && there == 19);
        reads_pieces(slave, shared);
    }
    close(slave);
    close(master);
}

TEST(stdio_reads_every_line_that_was_typed_ahead)
{
    crew_each(typed_ahead);
}

static void in_packets(struct crew *crew)
{
    (void)crew;
    for (int shared = 0; shared < 2; shared++) {
        int ends[2];
        ASSERT_OK(pipe2(ends, O_CLOEXEC | O_DIRECT));
        ASSERT_EQ(write(ends[1], "one\n", 4), 4);
        ASSERT_EQ(write(ends[1], "two\n", 4), 4);
        ASSERT_EQ(write(ends[1], "three\n", 6), 6);
        ASSERT_EQ(write(ends[1], "four\n", 5), 5);
        reads_pieces(ends[0], shared);
        close(ends[0]);
        close(ends[1]);
    }
}

TEST(stdio_reads_every_packet)
{
    crew_each(in_packets);
}

/* ---- the end ---- */

static int reads_for_ever(weft_stream *s)
{
    char b;
    ssize_t n = weft_read(s, &b, 1);
    weft_close(s);
    return (int)n;
}

/* Nobody types anything, and the runtime stops. */
TEST(stdio_keeps_no_runtime_from_its_end)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            struct crew crew;
            weft_stream *s;
            int fds[2];
            connect_pair((enum kind)kind, fds);
            struct place place = place_take(0, fds[0]);
            crew_start(&crew, crew_sizes[i]);
            ASSERT_OK(opens((enum kind)kind, weft_stdin, &s));
            ASSERT_OK(weft_detach(weft_go(reads_for_ever, s)));
            crew_stop(&crew);
            place_back(place);
            close(fds[0]);
            close(fds[1]);
        }
    }
}

static _Atomic int told; /* what ended the writer, or the reader; relaxed: read behind its end */

static int writes_for_ever(weft_stream *s)
{
    static const char bytes[1000];
    ssize_t n;
    while ((n = weft_write(s, bytes, sizeof bytes)) > 0) {
    }
    store_relaxed(&told, (int)n);
    weft_close(s);
    return 0;
}

struct writing_for_ever {
    WEFT_FRAME(int);
    weft_stream *s;
    struct weft_write wr;
    char bytes[1000];
};
static weft_async(writing_for_ever)
{
    weft_begin;
    do {
        weft_await(f->wr, weft_write, f->s, f->bytes, sizeof f->bytes);
    } while (f->wr.ret > 0);
    store_relaxed(&told, (int)f->wr.ret);
    weft_close(f->s);
    weft_return(0);
    weft_end;
}

/* Nobody reads from the other end. */
static void stops_beside_a_writer(int workers, int fd, bool shared, bool stackless)
{
    struct crew crew;
    weft_stream *s;
    crew_start(&crew, workers);
    struct place place = place_take(1, fd);
    int r = opens(shared ? PIPE_SHARED : PIPE, weft_stdout, &s);
    place_back(place);
    ASSERT_OK(r);
    store_relaxed(&told, 0);
    ASSERT_OK(weft_detach(stackless ? weft_spawn(writing_for_ever, .s = s)
                                    : weft_go(writes_for_ever, s)));
    CREW_UNTIL(slot_is_awaited(s, WEFT__SIDE_WRITE));
    crew_stop(&crew);
    ASSERT_EQ(load_relaxed(&told), -ECANCELED);
    still_blocks(fd);
}

/* Nobody reads what is written, so that it is full, and the runtime stops. */
TEST(stdio_that_is_full_keeps_no_runtime_from_its_end)
{
    for (size_t i = 0; i < 2 * CREW_SIZES; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            int fds[2];
            connect_pair((enum kind)kind, fds);
            stops_beside_a_writer(crew_sizes[i / 2], fds[1], kind == PIPE_SHARED, i % 2);
            close(fds[0]);
            close(fds[1]);
        }
    }
}

TEST(stdio_of_a_terminal_that_stands_keeps_no_runtime_from_its_end)
{
    for (size_t i = 0; i < 2 * CREW_SIZES; i++) {
        for (int shared = 0; shared < 2; shared++) {
            int master, slave;
            if (!terminal_pair(&master, &slave)) TEST_SKIP("no pseudo terminals here");
            stops_beside_a_writer(crew_sizes[i / 2], slave, shared, i % 2);
            close(slave);
            close(master);
        }
    }
}

static int reads_until_told(weft_stream *s)
{
    char b;
    store_relaxed(&told, (int)weft_read(s, &b, 1));
    weft_close(s);
    return 0;
}

struct reading_until_told {
    WEFT_FRAME(int);
    weft_stream *s;
    struct weft_read rd;
    char b;
};
static weft_async(reading_until_told)
{
    weft_begin;
    weft_await(f->rd, weft_read, f->s, &f->b, 1);
    store_relaxed(&told, (int)f->rd.ret);
    weft_close(f->s);
    weft_return(0);
    weft_end;
}

/* Its reader has looked, found nothing, and waits. */
static void stops_beside_a_reader(int workers, int fd, bool shared, bool stackless)
{
    struct crew crew;
    weft_stream *s;
    crew_start(&crew, workers);
    struct place place = place_take(0, fd);
    int r = opens(shared ? PIPE_SHARED : PIPE, weft_stdin, &s);
    place_back(place);
    ASSERT_OK(r);
    store_relaxed(&told, 0);
    ASSERT_OK(weft_detach(stackless ? weft_spawn(reading_until_told, .s = s)
                                    : weft_go(reads_until_told, s)));
    CREW_UNTIL(slot_is_awaited(s, WEFT__SIDE_READ));
    crew_stop(&crew);
    ASSERT_EQ(load_relaxed(&told), -ECANCELED);
    still_blocks(fd);
}

/* Nobody types anything there. */
TEST(stdio_of_a_terminal_that_is_silent_keeps_no_runtime_from_its_end)
{
    for (size_t i = 0; i < 2 * CREW_SIZES; i++) {
        for (int shared = 0; shared < 2; shared++) {
            int master, slave;
            if (!terminal_pair(&master, &slave)) TEST_SKIP("no pseudo terminals here");
            stops_beside_a_reader(crew_sizes[i / 2], slave, shared, i % 2);
            close(slave);
            close(master);
        }
    }
}

static int writes_to(weft_file *file)
{
    return (int)weft_file_write(file, "x", 1, 0);
}

/* Started without standard input, a program finds that it is closed, whatever the library has opened meanwhile; it does not read what is the library's. */
TEST(stdio_that_is_closed_stays_closed)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_stream *in, *out;
        weft_signal *usr;
        weft_file *file;
        int fds[2], r;
        connect_pair(PIPE, fds);
        ASSERT_OK(weft_file_of(memfd_create("any", MFD_CLOEXEC), &file));
        struct place standard_out = place_take(1, fds[1]);
        struct place standard_in = {0, fcntl(0, F_DUPFD_CLOEXEC, 10)};
        close(0);
        crew_start(&crew, crew_sizes[i]);
        if (crew.workers < 0) ASSERT_GE(weft_rt_fd(crew.rt), 3);
        int opened = weft_stdout(&out), heard = weft_signal_open(SIGUSR2, &usr);
        int joined = weft_join(weft_go(writes_to, file), &r), closed = weft_stdin(&in);
        int number = fcntl(0, F_GETFD);
        place_back(standard_in);
        place_back(standard_out);
        ASSERT_OK(opened);
        ASSERT_OK(heard);
        ASSERT(joined == 0 && r == 1);
        ASSERT_EQ(closed, -EBADF);
        ASSERT_EQ(number, -1);
        weft_signal_close(usr);
        weft_file_close(file);
        weft_close(out);
        crew_stop(&crew);
        close(fds[0]);
        close(fds[1]);
    }
}

TEST(stdio_mistakes)
{
    weft_stream *s;
    struct crew crew;
    ASSERT_EQ(weft_stdin(&s), -ENXIO);
    crew_start(&crew, 1);
    ASSERT_EQ(weft_stdin(NULL), -EINVAL);
    struct place place = {0, fcntl(0, F_DUPFD_CLOEXEC, 10)};
    close(0);
    ASSERT_EQ(weft_stdin(&s), -EBADF);
    place_back(place);
    crew_stop(&crew);
}
