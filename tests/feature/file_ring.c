/* SPDX-License-Identifier: MIT
 *
 * Files by io_uring: which operations go there and which do not, what happens where it is forbidden or short of memory, what is given up at any
 * moment, threads that end, clocks that stand, and that a ring nobody uses costs nothing.
 */
#include "base/fault.h"
#include "crew.h"
#include "death.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

static char dir[64];

static void dir_make(void)
{
    bool memory = access("/dev/shm", W_OK) == 0; /* which is faster to sync */
    snprintf(dir, sizeof(dir), "%s", memory ? "/dev/shm/weft-fr-XXXXXX" : "/tmp/weft-fr-XXXXXX");
    ASSERT(mkdtemp(dir));
}

struct name {
    char text[96];
};

static struct name name_of(const char *what, int number)
{
    struct name n;
    snprintf(n.text, sizeof(n.text), "%s/%s%d", dir, what, number);
    return n;
}

static weft_stats stats_of(const struct crew *crew)
{
    weft_stats stats;
    weft_rt_stats(crew->rt, &stats);
    return stats;
}

/* Tests of the ring itself: where there is none there is nothing to see. */
static void need_ring(void)
{
    weft_rt *rt;
    unsetenv("WEFT_FILES"); /* what a test asks for, it gets */
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt));
    int r = weft_rt_files(rt);
    ASSERT_OK(weft_rt_stop(rt, -1));
    if (r < 0) TEST_SKIP("no io_uring here: %d", r);
}

static void crew_each_way(weft_files_way way, void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i], .files = way});
        body(&crew);
        crew_stop(&crew);
    }
}

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

/* ---- which way ---- */

/* All that a ring can do, and a write that is too long to be copied on the spot. */
static int does_all(int number)
{
    enum { LONG = 300000 };
    struct name a = name_of("a", number);
    struct name b = name_of("b", number);
    struct stat by_ring;
    struct stat by_call;
    weft_file *file;
    char *text = calloc(1, LONG);

    ASSERT_OK(weft_file_open(a.text, O_RDWR | O_CREAT, 0640, &file));
    ASSERT_EQ(weft_file_write(file, text, LONG, 0), LONG);
    ASSERT_EQ(weft_file_write(file, "abc", 3, LONG), 3);
    ASSERT_OK(weft_file_sync(file, true));
    ASSERT_OK(weft_file_sync(file, false));
    ASSERT_OK(weft_file_stat(file, &by_ring));
    ASSERT_OK(fstat(weft_file_fd(file), &by_call));
    ASSERT_EQ(memcmp(&by_ring, &by_call, sizeof(by_call)), 0);
    weft_file_close(file);
    ASSERT_OK(weft_fs_rename(a.text, b.text));
    ASSERT_OK(weft_fs_link(b.text, a.text));
    ASSERT_OK(weft_fs_unlink(b.text));
    ASSERT_OK(weft_fs_symlink(a.text, b.text));
    ASSERT_OK(weft_fs_stat(b.text, true, &by_ring));
    ASSERT_OK(lstat(b.text, &by_call));
    ASSERT_EQ(memcmp(&by_ring, &by_call, sizeof(by_call)), 0);
    ASSERT_OK(weft_fs_unlink(a.text));
    ASSERT_EQ(weft_fs_stat(b.text, false, &by_ring), -ENOENT);
    ASSERT_OK(weft_fs_unlink(b.text));
    ASSERT_OK(weft_fs_mkdir(a.text, 0700));
    ASSERT_EQ(weft_fs_mkdir(a.text, 0700), -EEXIST);
    ASSERT_OK(weft_fs_rmdir(a.text));
    ASSERT_EQ(weft_fs_rmdir(a.text), -ENOENT);
    free(text);
    return 1;
}
#define ALL_COUNT 18 /* operations of does_all */

static void run_all(int count)
{
    weft_task *task[64];
    int got;
    for (int i = 0; i < count; i++)
        task[i] = weft_go(does_all, i);
    for (int i = 0; i < count; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
}

static void by_ring(struct crew *crew)
{
    run_all(8);
    uint64_t opens = crew->workers < 0 ? 8 : 0; /* which go to the pool there */
    ASSERT_OK(weft_rt_files(crew->rt));
    ASSERT_EQ(stats_of(crew).file_ring, 8 * ALL_COUNT - opens);
    ASSERT_EQ(stats_of(crew).file_late, 0);
    ASSERT_EQ(stats_of(crew).blocking_jobs, opens);
}

TEST(file_ring_does_what_it_can)
{
    need_ring();
    dir_make();
    crew_each_way(WEFT_FILES_AUTO, by_ring);
    crew_each_way(WEFT_FILES_IO_URING, by_ring);
    ASSERT_OK(rmdir(dir));
}

static void by_pool(struct crew *crew)
{
    run_all(8);
    ASSERT_EQ(stats_of(crew).file_ring, 0);
    ASSERT_EQ(stats_of(crew).blocking_jobs, 8 * ALL_COUNT);
}

static void told_to_use_the_pool(struct crew *crew)
{
    by_pool(crew);
    ASSERT_EQ(weft_rt_files(crew->rt), -ENOTSUP);
}

TEST(file_ring_is_left_alone_when_told)
{
    unsetenv("WEFT_FILES");
    dir_make();
    crew_each_way(WEFT_FILES_POOL, told_to_use_the_pool);
    setenv("WEFT_FILES", "pool", 1); /* which goes before what the program says */
    crew_each_way(WEFT_FILES_AUTO, told_to_use_the_pool);
    ASSERT_OK(rmdir(dir));
}

/* A thread outside has nobody who is sure to turn a ring for it. */
static void from_outside(struct crew *crew)
{
    ASSERT_EQ(does_all(1), 1);
    ASSERT_EQ(stats_of(crew).file_ring, 0);
}

TEST(file_ring_is_for_tasks)
{
    unsetenv("WEFT_FILES");
    dir_make();
    crew_each_way(WEFT_FILES_AUTO, from_outside);
    ASSERT_OK(rmdir(dir));
}

/* What has no place to seek to is refused as pwrite(2) refuses it; where a file stands is the business of one at a time. */
static int writes_where_it_cannot(void)
{
    int ends[2];
    weft_file *file;
    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ASSERT_OK(weft_file_of(ends[1], &file));
    ASSERT_EQ(weft_file_write(file, "x", 1, 5), -ESPIPE);
    ASSERT_EQ(weft_file_write(file, "x", 1, WEFT_FILE_HERE), 1);
    weft_file_close(file);
    ASSERT_OK(weft_file_of(ends[0], &file));
    char got;
    ASSERT_EQ(weft_file_read(file, &got, 1, 0), -ESPIPE);
    weft_file_close(file);
    return 1;
}

static int appends_where_it_stands(weft_file *file)
{
    for (int i = 0; i < 50; i++)
        ASSERT_EQ(weft_file_write(file, "line\n", 5, WEFT_FILE_HERE), 5);
    return 1;
}

static void places(struct crew *crew)
{
    weft_task *task[4];
    weft_file *file;
    struct stat about;
    int got;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(writes_where_it_cannot), &got));
    ASSERT_EQ(got, 1);
    ASSERT_OK(weft_file_temp(dir, &file));
    for (int i = 0; i < 4; i++)
        task[i] = weft_go(appends_where_it_stands, file);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weft_join(task[i], &got));
    ASSERT_OK(fstat(weft_file_fd(file), &about));
    ASSERT_EQ(about.st_size, 4 * 50 * 5);
    weft_file_close(file);
}

TEST(file_ring_keeps_places_as_the_calls_do)
{
    dir_make();
    crew_each(places);
    ASSERT_OK(rmdir(dir));
}

/* More at once than a ring takes: the rest goes the other way, and all of it happens. */
static int makes_one(int number)
{
    struct name n = name_of("m", number);
    return weft_fs_mkdir(n.text, 0700);
}

static void many(struct crew *crew)
{
    enum { MANY = 1500 };
    static weft_task *task[MANY];
    int got;
    (void)crew;
    for (int i = 0; i < MANY; i++)
        task[i] = weft_go(makes_one, i);
    for (int i = 0; i < MANY; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
        ASSERT_OK(rmdir(name_of("m", i).text));
    }
}

TEST(file_ring_full_leaves_the_rest_to_the_pool)
{
    dir_make();
    crew_each(many);
    ASSERT_OK(rmdir(dir));
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

/* ---- a clock that stands ---- */

/* Nothing is under way: the clock moves to the timer, as if there were no ring. */
static int syncs_and_sleeps(void)
{
    struct name n = name_of("c", 0);
    weft_file *file;
    ASSERT_OK(weft_file_open(n.text, O_RDWR | O_CREAT, 0600, &file));
    for (int i = 0; i < 5; i++) {
        weft_time before = weft_now();
        ASSERT_EQ(weft_file_write(file, "x", 1, i), 1);
        ASSERT_OK(weft_file_sync(file, false));
        ASSERT_EQ(weft_now(), before);
        ASSERT_OK(weft_sleep(weft_secs(100)));
        ASSERT_EQ(weft_now() - before, weft_secs(100));
    }
    weft_file_close(file);
    ASSERT_OK(weft_fs_unlink(n.text));
    return 1;
}

TEST(file_ring_lets_a_clock_that_stands_move)
{
    dir_make();
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int got = 0;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i], .paused = true});
        ASSERT_OK(weft_join(weft_go(syncs_and_sleeps), &got));
        ASSERT_EQ(got, 1);
        crew_stop(&crew);
    }
    ASSERT_OK(rmdir(dir));
}

/* ---- what is refused ---- */

static void says_and_refuses(void *opts)
{
    weft_rt *rt = NULL;
    int r = weft_rt_new(opts, &rt);
    _exit(r == -EINVAL && !rt ? 0 : 1);
}

static void expect_refusal(weft_rt_opts opts)
{
    struct death d = death_of(says_and_refuses, &opts);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT(strstr(d.said, "WEFT_FILES"));
    ASSERT(strstr(d.said, "want auto, pool or io_uring\n"));
}

TEST(file_ring_refuses_other_words)
{
    weft_rt_opts none = {.workers = -1};
    unsetenv("WEFT_FILES");
    memset(&none.files, 1, sizeof(none.files)); /* no way has that number */
    expect_refusal(none);
    setenv("WEFT_FILES", "uring", 1);
    expect_refusal((weft_rt_opts){.workers = -1});
    ASSERT_EQ(weft_rt_files(NULL), -EINVAL);
}

/* ---- what fails ---- */

#if defined(WEFT_FAULTS)

static int setup_error;

static void without_ring(struct crew *crew)
{
    by_pool(crew);
    ASSERT_EQ(weft_rt_files(crew->rt), setup_error);
}

static void forced(void *unused)
{
    weft_rt *rt = NULL;
    (void)unused;
    int r = weft_rt_new(&(weft_rt_opts){.workers = 1, .files = WEFT_FILES_IO_URING}, &rt);
    _exit(r == setup_error && !rt ? 0 : 1);
}

TEST(file_ring_that_is_refused_leaves_all_to_the_pool)
{
    static const int errors[] = {-ENOMEM, -EPERM, -ENOSYS, -EMFILE};
    unsetenv("WEFT_FILES");
    dir_make();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        setup_error = errors[i];
        weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, UINT32_MAX, setup_error);
        crew_each(without_ring);
        struct death d = death_of(forced, NULL);
        ASSERT_EQ(d.code, 0);
        ASSERT(strstr(d.said, "WEFT_FILES=io_uring"));
    }
    weft__fault_reset();
    ASSERT_OK(rmdir(dir));
}

/* The port cannot watch it: the same. */
static void unwatched(struct crew *crew)
{
    by_pool(crew);
    ASSERT_EQ(weft_rt_files(crew->rt), -ENOSPC);
}

TEST(file_ring_that_cannot_be_watched_leaves_all_to_the_pool)
{
    need_ring();
    dir_make();
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        weft__fault_arm(WEFT__FAULT_EPOLL_CTL, 1, UINT32_MAX, -ENOSPC);
        unwatched(&crew);
        weft__fault_reset();
        crew_stop(&crew);
    }
    ASSERT_OK(rmdir(dir));
}

/* Operations that this kernel does not know go to the pool, the others do not. */
static void knows_little(struct crew *crew)
{
    run_all(4);
    ASSERT_GE(stats_of(crew).file_ring, 1);
    ASSERT_GE(stats_of(crew).blocking_jobs, 1);
    ASSERT_EQ(stats_of(crew).file_ring + stats_of(crew).blocking_jobs, 4 * ALL_COUNT);
}

TEST(file_ring_knows_what_the_kernel_does_not)
{
    need_ring();
    dir_make();
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start(&crew, crew_sizes[i]);
        weft__fault_arm(WEFT__FAULT_URING_PROBE, 1, 3, -EOPNOTSUPP);
        knows_little(&crew);
        weft__fault_reset();
        crew_stop(&crew);
    }
    ASSERT_OK(rmdir(dir));
}

/* The kernel takes nothing now and then: all of it happens, once, by one way or the other. */
static void short_of_memory(struct crew *crew)
{
    static const int errors[] = {-EAGAIN, -ENOMEM, -EBUSY, -EINTR};
    for (uint32_t i = 0; i < test_scaled(20); i++) {
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1 + i * 3, 1 + i % 5, errors[i % 4]);
        run_all(6);
    }
    weft__fault_reset();
    weft_stats stats = stats_of(crew);
    ASSERT_EQ(stats.file_ring + stats.blocking_jobs, test_scaled(20) * 6 * ALL_COUNT);
}

TEST(file_ring_short_of_memory_loses_nothing)
{
    need_ring();
    dir_make();
    crew_each(short_of_memory);
    ASSERT_OK(rmdir(dir));
}

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
