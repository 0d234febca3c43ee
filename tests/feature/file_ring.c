/* SPDX-License-Identifier: MIT
 *
 * Files by io_uring: which operations go there and which do not, what happens where it is forbidden or short of memory, and that a ring nobody uses costs nothing.
 * What is given up, and what takes long: file_ring_stop.c.
 */
#include "base/fault.h"
#include "cabinet.h"
#include "death.h"

static void crew_each_way(weft_files_way way, void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i], .files = way});
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

/* The port cannot watch it: the same. An epoll may be full, a ring is never. */
static void unwatched(struct crew *crew)
{
    by_pool(crew);
    ASSERT_EQ(weft_rt_files(crew->rt), -ENOSPC);
}

TEST(file_ring_that_cannot_be_watched_leaves_all_to_the_pool)
{
    const char *driver = getenv("WEFT_DRIVER");
    if (driver && strcmp(driver, "io_uring") == 0) return;
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

#endif
