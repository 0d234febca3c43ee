/* SPDX-License-Identifier: MIT
 *
 * Files by io_uring that are told to stop: operations that are given up at any moment, FIFOs without their other end, the end of the runtime, and of the thread that turns it.
 */
#include "base/fault.h"
#include "cabinet.h"

/* With workers: threads that others turn a runtime by leave opens to the pool. */
static void crew_each_with_workers(void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        if (crew_sizes[i] < 0) continue;
        crew_start(&crew, crew_sizes[i]);
        body(&crew);
        crew_stop(&crew);
    }
}

/* ---- given up ---- */

/* Each writes whole records, one behind the other, until it is told to stop. What it was told of is there, and nothing else. */
struct records {
    weft_file *file;
    int count; /* that it was told of */
    char text[64];
};

static char *record_of(struct records *r)
{
    memset(r->text, 'a' + r->count % 26, sizeof(r->text));
    return r->text;
}

static int writes_records(struct records *r)
{
    for (;; r->count++) {
        ssize_t n = weft_file_write(r->file, record_of(r), 64, (int64_t)r->count * 64);
        if (n < 0) return (int)n;
        if (n != 64) return -EIO;
        if (r->count % 8 != 7) continue;
        int ret = weft_file_sync(r->file, true);
        if (ret == 0) continue;
        r->count++;
        return ret;
    }
}

struct writes_awaited {
    WEFT_FRAME(int);
    struct records *r;
    union {
        struct weft_file_write write;
        struct weft_file_sync sync;
    } op;
};
static weft_async(writes_awaited)
{
    weft_begin;
    for (;; f->r->count++) {
        weft_await(f->op.write, weft_file_write, f->r->file, record_of(f->r), 64,
                   (int64_t)f->r->count * 64);
        if (f->op.write.ret < 0) weft_return((int)f->op.write.ret);
        if (f->op.write.ret != 64) weft_return(-EIO);
        if (f->r->count % 8 != 7) continue;
        weft_await(f->op.sync, weft_file_sync, f->r->file, true);
        if (f->op.sync.ret == 0) continue;
        f->r->count++;
        weft_return(f->op.sync.ret);
    }
    weft_end;
}

/* One assert for all: each is a system call. */
static bool records_are_whole(int fd, int count)
{
    char text[64];
    char want[64];
    for (int i = 0; i < count; i++) {
        memset(want, 'a' + i % 26, sizeof(want));
        if (pread(fd, text, sizeof(text), (off_t)i * 64) != 64) return false;
        if (memcmp(text, want, sizeof(want)) != 0) return false;
    }
    return true;
}

static void check_records(const struct records *r)
{
    struct stat about;
    int fd = weft_file_fd(r->file);
    ASSERT_OK(fstat(fd, &about));
    ASSERT_EQ(about.st_size, (off_t)r->count * 64);
    ASSERT(records_are_whole(fd, r->count));
    ASSERT_OK(ftruncate(fd, 0));
}

static void pause_a_little(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    for (uint64_t k = *random >> 61; k > 0; k--)
        sched_yield();
}

enum { WRITERS = 6 };

static void one_round(struct records *r, uint64_t *random)
{
    weft_task *task[WRITERS];
    int got;
    for (int i = 0; i < WRITERS; i++) {
        r[i].count = 0;
        task[i] = i % 2 ? weft_go(writes_records, &r[i]) : weft_spawn(writes_awaited, &r[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        pause_a_little(random);
        weft_cancel(task[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, -ECANCELED);
        check_records(&r[i]);
    }
}

static void given_up(struct crew *crew)
{
    struct records r[WRITERS];
    uint64_t random = test_seed();
    (void)crew;
    for (int i = 0; i < WRITERS; i++)
        ASSERT_OK(weft_file_temp(dir, &r[i].file));
    for (uint64_t round = 0; round < test_scaled(8); round++)
        one_round(r, &random);
    for (int i = 0; i < WRITERS; i++)
        weft_file_close(r[i].file);
}

TEST(file_ring_given_up_tells_what_happened)
{
    dir_make();
    crew_each(given_up);
    ASSERT_OK(rmdir(dir));
}

/* An open that nobody waits for any more is closed, and the file that it opened stays usable. The harness counts what is left open. */
static int opens_on(const char *path)
{
    weft_file *file;
    int r;
    while ((r = weft_file_open(path, O_RDONLY, 0, &file)) == 0)
        weft_file_close(file);
    return r;
}

static void opens_given_up(struct crew *crew)
{
    struct name n = name_of("o", 0);
    uint64_t random = test_seed();
    weft_task *task[4];
    int got;
    (void)crew;
    int fd = open(n.text, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    close(fd);
    for (uint64_t round = 0; round < test_scaled(10); round++) {
        for (int i = 0; i < 4; i++)
            task[i] = weft_go(opens_on, (const char *)n.text);
        for (int i = 0; i < 4; i++) {
            pause_a_little(&random);
            weft_cancel(task[i]);
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, -ECANCELED);
        }
    }
    ASSERT_OK(unlink(n.text));
}

TEST(file_ring_closes_what_it_opened_too_late)
{
    dir_make();
    crew_each(opens_given_up);
    ASSERT_OK(rmdir(dir));
}

/* ---- what takes long: a FIFO without its other end ---- */

static int opens_fifo(const char *path, int flags)
{
    weft_file *file;
    int r = weft_file_open(path, flags, 0, &file);
    if (r == 0) weft_file_close(file);
    return r;
}

/* Given up, it answers at once and the kernel's thread is free again; its late answer is counted. Not taken by a try on the spot,
 * which would open it without a writer. */
static void fifo_given_up(struct crew *crew)
{
    struct name n = name_of("f", 0);
    int got;
    ASSERT_OK(mkfifo(n.text, 0600));
    weft_task *t = weft_go(opens_fifo, (const char *)n.text, O_RDONLY);
    for (int i = 0; i < 20; i++)
        sched_yield();
    ASSERT(!weft_done(t));
    weft_cancel(t);
    ASSERT_OK(weft_join(t, &got));
    ASSERT_EQ(got, -ECANCELED);
    CREW_UNTIL(stats_of(crew).file_late == stats_of(crew).file_ring);
    ASSERT_OK(unlink(n.text));
}

TEST(file_ring_gives_a_fifo_up)
{
    need_ring();
    dir_make();
    crew_each_with_workers(fifo_given_up);
    ASSERT_OK(rmdir(dir));
}

/* As many as a machine of two has threads in the kernel for, and more: no end waits behind another for ever. */
static void fifos_meet(struct crew *crew)
{
    enum { FIFOS = 24 };
    static struct name n[FIFOS];
    weft_task *task[2 * FIFOS];
    int got;
    (void)crew;
    for (int i = 0; i < FIFOS; i++) {
        n[i] = name_of("f", i);
        ASSERT_OK(mkfifo(n[i].text, 0600));
        task[i] = weft_go(opens_fifo, (const char *)n[i].text, O_RDONLY);
    }
    for (int i = 0; i < FIFOS; i++)
        task[FIFOS + i] = weft_go(opens_fifo, (const char *)n[i].text, O_WRONLY);
    for (int i = 0; i < 2 * FIFOS; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
    }
    for (int i = 0; i < FIFOS; i++)
        ASSERT_OK(unlink(n[i].text));
}

TEST(file_ring_opens_both_ends_of_many_fifos)
{
    dir_make();
    crew_each(fifos_meet);
    ASSERT_OK(rmdir(dir));
}

/* The runtime stops while some are under way: they are cancelled, and it does not wait for a writer that never comes. */
static void stopped_under_way(struct crew *crew)
{
    static struct name n; /* tasks that have not begun read it when this has returned */
    (void)crew;
    n = name_of("f", 0);
    for (int i = 0; i < 8; i++)
        ASSERT_OK(weft_detach(weft_go(opens_fifo, (const char *)n.text, O_RDONLY)));
    for (int i = 0; i < 20; i++)
        sched_yield();
}

TEST(file_ring_stops_with_its_runtime)
{
    need_ring();
    dir_make();
    ASSERT_OK(mkfifo(name_of("f", 0).text, 0600));
    for (uint64_t round = 0; round < test_scaled(10); round++)
        crew_each_with_workers(stopped_under_way);
    ASSERT_OK(unlink(name_of("f", 0).text));
    ASSERT_OK(rmdir(dir));
}

/* The thread that turns a runtime may end, whatever its tasks wait for. */
static weft_task *waits_for_writer;

static void *turns_and_ends(void *rt)
{
    struct name n = name_of("f", 0);
    (void)weft_rt_enter(rt);
    waits_for_writer = weft_go(opens_fifo, (const char *)n.text, O_RDONLY);
    ASSERT_GE(weft_rt_turn(rt, 0), 1);
    (void)weft_rt_enter(NULL);
    return NULL;
}

TEST(file_open_does_not_hold_the_thread_that_turns)
{
    pthread_t thread;
    weft_rt *rt;
    struct name n;
    int got = 1;

    dir_make();
    n = name_of("f", 0);
    ASSERT_OK(mkfifo(n.text, 0600));
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    ASSERT_OK(pthread_create(&thread, NULL, turns_and_ends, rt));
    ASSERT_OK(pthread_join(thread, NULL));
    int fd = open(n.text, O_WRONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    while (!weft_done(waits_for_writer))
        ASSERT_GE(weft_rt_turn(rt, -1), 0);
    ASSERT_OK(weft_join(waits_for_writer, &got));
    ASSERT_EQ(got, 0);
    close(fd);
    ASSERT_OK(weft_rt_stop(rt, -1));
    ASSERT_OK(unlink(n.text));
    ASSERT_OK(rmdir(dir));
}

/* ---- what fails ---- */

#if defined(WEFT_FAULTS)

/* A cancel that the kernel does not take stays to be asked for: at the next look at the ring. */
static void cancel_not_taken(struct crew *crew)
{
    struct name n = name_of("f", 0);
    int got;
    weft__fault_reset();
    weft_task *t = weft_go(opens_fifo, (const char *)n.text, O_RDONLY);
    while (weft__fault_calls(WEFT__FAULT_URING_ENTER) == 0)
        sched_yield();
    weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, UINT32_MAX, -EAGAIN);
    weft_cancel(t);
    ASSERT_OK(weft_join(t, &got));
    ASSERT_EQ(got, -ECANCELED);
    ASSERT_EQ(stats_of(crew).file_late, 0);
    weft__fault_reset();
    if (crew->workers == 1) { /* the same ring, then, is looked at again */
        ASSERT_OK(weft_join(weft_go(makes_one, 0), &got));
        ASSERT_OK(got);
        CREW_UNTIL(stats_of(crew).file_late == 1);
        ASSERT_OK(rmdir(name_of("m", 0).text));
    } /* else, at the latest, at the end */
}

TEST(file_ring_asks_again_for_a_cancel)
{
    need_ring();
    dir_make();
    ASSERT_OK(mkfifo(name_of("f", 0).text, 0600));
    crew_each_with_workers(cancel_not_taken);
    ASSERT_OK(unlink(name_of("f", 0).text));
    ASSERT_OK(rmdir(dir));
}

#endif
