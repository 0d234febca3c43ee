/* SPDX-License-Identifier: MIT
 *
 * Files and directories, as calls and awaited, from all kinds of callers; given up at every moment; and closed while they are in use.
 */
#include "crew.h"
#include "stuck.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

static char dir[64];

static void dir_make(void)
{
    bool memory = access("/dev/shm", W_OK) == 0; /* which is faster to sync */
    snprintf(dir, sizeof(dir), "%s", memory ? "/dev/shm/weft-fs-XXXXXX" : "/tmp/weft-fs-XXXXXX");
    ASSERT(mkdtemp(dir));
}

struct names {
    char a[96], b[96], c[96];
};

static struct names names_of(int number)
{
    struct names n;
    snprintf(n.a, sizeof(n.a), "%s/a%d", dir, number);
    snprintf(n.b, sizeof(n.b), "%s/b%d", dir, number);
    snprintf(n.c, sizeof(n.c), "%s/c%d", dir, number);
    return n;
}

/* ---- as calls ---- */

static int uses_a_file(int number)
{
    struct names n = names_of(number);
    struct stat about;
    weft_file *file;
    char got[16] = {0};

    ASSERT_OK(weft_file_open(n.a, O_RDWR | O_CREAT, 0600, &file));
    ASSERT_GE(weft_file_fd(file), 0);
    ASSERT_EQ(weft_file_write(file, "0123456789", 10, WEFT_FILE_HERE), 10);
    ASSERT_EQ(weft_file_write(file, "ab", 2, 4), 2);
    ASSERT_EQ(weft_file_read(file, got, 16, 3), 7);
    ASSERT(memcmp(got, "3ab6789", 7) == 0);
    ASSERT_EQ(weft_file_read(file, got, 16, WEFT_FILE_HERE), 0);
    ASSERT_OK(weft_file_sync(file, false));
    ASSERT_OK(weft_file_sync(file, true));
    ASSERT_OK(weft_file_truncate(file, 5));
    ASSERT_OK(weft_file_stat(file, &about));
    ASSERT_EQ(about.st_size, 5);
    ASSERT_EQ(weft_file_truncate(file, -1), -EINVAL);
    ASSERT_EQ(weft_file_read(file, got, 16, -2), -EINVAL);
    weft_file_close(file);
    ASSERT_EQ(weft_file_open(n.b, O_RDONLY, 0, &file), -ENOENT);
    ASSERT_OK(weft_fs_unlink(n.a));
    return 0;
}

static int uses_names(int number)
{
    struct names n = names_of(number);
    struct stat about;
    char *text;
    size_t bytes;
    char link[96];

    ASSERT_OK(weft_fs_store(n.a, "whole", 5, 0600, false));
    ASSERT_OK(weft_fs_store(n.a, "anew", 4, 0600, true));
    ASSERT_OK(weft_fs_load(n.a, 100, &text, &bytes));
    ASSERT_EQ(bytes, 4);
    ASSERT(strcmp(text, "anew") == 0);
    weft_free(text);
    ASSERT_EQ(weft_fs_load(n.a, 3, &text, NULL), -EFBIG);
    ASSERT_EQ(weft_fs_load("/", 3, &text, NULL), -EISDIR); /* however large it says that it is */
    ASSERT_EQ(weft_fs_load("/", 1 << 20, &text, NULL), -EISDIR);
    ASSERT_EQ(weft_fs_copy(n.a, n.b), 4);
    ASSERT_OK(weft_fs_rename(n.b, n.c));
    ASSERT_OK(weft_fs_link(n.c, n.b));
    ASSERT_OK(weft_fs_unlink(n.c));
    ASSERT_OK(weft_fs_symlink(n.b, n.c));
    ASSERT_OK(weft_fs_stat(n.c, true, &about));
    ASSERT(S_ISLNK(about.st_mode));
    ASSERT_OK(weft_fs_stat(n.c, false, &about));
    ASSERT_EQ(about.st_size, 4);
    ASSERT_EQ(weft_fs_readlink(n.c, link, sizeof(link)), (ssize_t)strlen(n.b));
    ASSERT(strcmp(link, n.b) == 0);
    ASSERT_OK(weft_fs_chmod(n.b, 0640));
    ASSERT_OK(weft_fs_unlink(n.a));
    ASSERT_OK(weft_fs_unlink(n.b));
    ASSERT_OK(weft_fs_unlink(n.c));
    ASSERT_EQ(weft_fs_unlink(n.c), -ENOENT);
    return 0;
}

static void holds(const char *path, const char *what)
{
    char *text;
    ASSERT_OK(weft_fs_load(path, 100, &text, NULL));
    ASSERT(strcmp(text, what) == 0);
    weft_free(text);
}

/* What is there is not lost to a copy that cannot be made. */
static int copies_what_it_cannot(int number)
{
    struct names n = names_of(number);
    struct stat about;
    ASSERT_OK(weft_fs_store(n.a, "mine", 4, 0600, false));
    ASSERT_OK(weft_fs_link(n.a, n.b));
    ASSERT_OK(weft_fs_symlink(n.a, n.c));
    ASSERT_EQ(weft_fs_copy(n.a, n.a), -EINVAL);
    ASSERT_EQ(weft_fs_copy(n.a, n.b), -EINVAL);
    ASSERT_EQ(weft_fs_copy(n.a, n.c), -EINVAL);
    ASSERT_EQ(weft_fs_copy(n.c, n.a), -EINVAL);
    ASSERT_EQ(weft_fs_copy(dir, n.a), -EISDIR);
    holds(n.b, "mine");
    ASSERT_OK(weft_fs_unlink(n.b));
    ASSERT_OK(weft_fs_unlink(n.c));
    ASSERT_OK(mkfifo(n.b, 0600));
    int fifo = open(n.b, O_RDWR | O_CLOEXEC); /* so that nobody waits for the other side */
    ASSERT_GE(fifo, 0);
    ASSERT_EQ(weft_fs_copy("/proc/self/mem", n.b), -EIO); /* its first page is nobody's */
    ASSERT_OK(weft_fs_stat(n.b, true, &about));
    ASSERT(S_ISFIFO(about.st_mode));
    ASSERT_EQ(weft_fs_copy("/proc/self/mem", n.a), -EIO);
    ASSERT_EQ(weft_fs_stat(n.a, true, &about), -ENOENT);
    close(fifo);
    ASSERT_OK(weft_fs_unlink(n.b));
    return 0;
}

static int uses_a_temp(int number)
{
    char got[4] = {0};
    weft_file *file;
    (void)number;
    ASSERT_OK(weft_file_temp(dir, &file));
    ASSERT_EQ(weft_file_write(file, "xyz", 3, 0), 3);
    ASSERT_EQ(weft_file_read(file, got, 4, 0), 3);
    weft_file_close(file);
    return 0;
}

/* More entries than a page has. */
static int lists(int number)
{
    enum { COUNT = 700 };
    struct names n = names_of(number);
    unsigned char seen[COUNT] = {0};
    char name[400];
    weft_dirent entry;
    weft_dir *list;
    int r;

    ASSERT_OK(weft_fs_mkdir(n.a, 0700));
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "%s/an-entry-with-a-name-that-is-longer-than-most-so-that-a-page-is-soon-full-%d", n.a, i);
        ASSERT_OK(weft_fs_mkdir(name, 0700));
    }
    ASSERT_OK(weft_dir_open(n.a, &list));
    while ((r = weft_dir_next(list, &entry)) > 0) {
        int i = atoi(strrchr(entry.name, '-') + 1);
        ASSERT(i >= 0 && i < COUNT && !seen[i]);
        seen[i] = 1;
        ASSERT(entry.type == DT_DIR || entry.type == DT_UNKNOWN);
        snprintf(name, sizeof(name), "%s/%s", n.a, entry.name);
        ASSERT_OK(weft_fs_rmdir(name));
    }
    ASSERT_EQ(r, 0);
    ASSERT_EQ(weft_dir_next(list, &entry), 0);
    weft_dir_close(list);
    for (int i = 0; i < COUNT; i++)
        ASSERT(seen[i]);
    ASSERT_OK(weft_fs_rmdir(n.a));
    ASSERT_EQ(weft_dir_open(n.a, &list), -ENOENT);
    return 0;
}

static void on_all_kinds(struct crew *crew, int (*uses)(int), int count)
{
    weft_task *task[8];
    int got;
    (void)crew;
    ASSERT_EQ(uses(100), 0); /* a thread that has entered it */
    for (int i = 0; i < count; i++)
        task[i] = weft_go(uses, i);
    for (int i = 0; i < count; i++)
        ASSERT_OK(weft_join(task[i], &got));
}

static void files(struct crew *crew)
{
    on_all_kinds(crew, uses_a_file, 8);
    on_all_kinds(crew, uses_names, 8);
    on_all_kinds(crew, uses_a_temp, 8);
}

TEST(file_calls_from_fibers_and_threads)
{
    dir_make();
    crew_each(files);
    ASSERT_OK(rmdir(dir));
}

static void lists_all(struct crew *crew)
{
    on_all_kinds(crew, lists, 1);
}

TEST(file_lists_directories)
{
    dir_make();
    crew_each(lists_all);
    ASSERT_OK(rmdir(dir));
}

static void copies(struct crew *crew)
{
    on_all_kinds(crew, copies_what_it_cannot, 4);
}

TEST(file_copy_spares_what_it_cannot_replace)
{
    dir_make();
    crew_each(copies);
    ASSERT_EQ(copies_what_it_cannot(1), 0);
    ASSERT_OK(rmdir(dir));
}

TEST(file_calls_without_a_runtime)
{
    dir_make();
    ASSERT_EQ(uses_a_file(1), 0);
    ASSERT_EQ(uses_names(1), 0);
    ASSERT_EQ(uses_a_temp(1), 0);
    ASSERT_EQ(lists(1), 0);
    ASSERT_OK(rmdir(dir));
}

TEST(file_refuses_what_makes_no_sense)
{
    weft_file *file = NULL;
    weft_dir *list;
    char *text;
    ASSERT_EQ(weft_file_open(NULL, 0, 0, &file), -EINVAL);
    ASSERT_EQ(weft_file_open("/", 0, 0, NULL), -EINVAL);
    ASSERT_EQ(weft_file_of(-1, &file), -EBADF);
    ASSERT_EQ(weft_file_fd(NULL), -EINVAL);
    ASSERT_EQ(weft_file_read(NULL, NULL, 0, 0), -EINVAL);
    ASSERT_EQ(weft_file_write(NULL, NULL, 0, 0), -EINVAL);
    ASSERT_EQ(weft_fs_load(NULL, 1, &text, NULL), -EINVAL);
    ASSERT_EQ(weft_fs_rename("a", NULL), -EINVAL);
    ASSERT_EQ(weft_dir_open(NULL, &list), -EINVAL);
    ASSERT_EQ(weft_dir_next(NULL, NULL), -EINVAL);
    weft_file_close(NULL);
    weft_dir_close(NULL);
    weft_free(NULL);
}

/* ---- awaited ---- */

struct awaits {
    WEFT_FRAME(int);
    int number;
    struct names n;
    weft_file *file;
    weft_dir *dir;
    weft_dirent entry;
    char got[16];
    char *text;
    struct stat about;
    union {
        struct weft_file_open open;
        struct weft_file_read read;
        struct weft_file_write write;
        struct weft_file_sync sync;
        struct weft_file_truncate truncate;
        struct weft_file_stat stat;
        struct weft_fs_load load;
        struct weft_fs_store store;
        struct weft_fs_copy copy;
        struct weft_fs_rename rename;
        struct weft_fs_unlink unlink;
        struct weft_dir_open dir_open;
        struct weft_dir_next next;
    } op;
};
static weft_async(awaits)
{
    weft_begin;
    f->n = names_of(f->number);
    weft_await(f->op.open, weft_file_open, f->n.a, O_RDWR | O_CREAT, 0600, &f->file);
    ASSERT_OK(f->op.open.ret);
    weft_await(f->op.write, weft_file_write, f->file, "0123456789", 10, .offset = 0);
    ASSERT_EQ(f->op.write.ret, 10);
    weft_await(f->op.read, weft_file_read, f->file, f->got, 16, 8);
    ASSERT_EQ(f->op.read.ret, 2);
    ASSERT(memcmp(f->got, "89", 2) == 0);
    weft_await(f->op.sync, weft_file_sync, f->file);
    ASSERT_OK(f->op.sync.ret);
    weft_await(f->op.truncate, weft_file_truncate, f->file, 3);
    ASSERT_OK(f->op.truncate.ret);
    weft_await(f->op.stat, weft_file_stat, f->file, &f->about);
    ASSERT_OK(f->op.stat.ret);
    ASSERT_EQ(f->about.st_size, 3);
    weft_file_close(f->file);
    weft_await(f->op.copy, weft_fs_copy, f->n.a, f->n.b);
    ASSERT_EQ(f->op.copy.ret, 3);
    weft_await(f->op.rename, weft_fs_rename, f->n.b, f->n.c);
    ASSERT_OK(f->op.rename.ret);
    weft_await(f->op.load, weft_fs_load, f->n.c, 10, &f->text);
    ASSERT_OK(f->op.load.ret);
    ASSERT(strcmp(f->text, "012") == 0);
    weft_free(f->text);
    weft_await(f->op.dir_open, weft_dir_open, dir, &f->dir);
    ASSERT_OK(f->op.dir_open.ret);
    do {
        weft_await(f->op.next, weft_dir_next, f->dir, &f->entry);
        ASSERT_GE(f->op.next.ret, 0);
    } while (f->op.next.ret > 0);
    weft_dir_close(f->dir);
    weft_await(f->op.unlink, weft_fs_unlink, f->n.a);
    ASSERT_OK(f->op.unlink.ret);
    weft_await(f->op.unlink, weft_fs_unlink, f->n.c);
    ASSERT_OK(f->op.unlink.ret);
    weft_return(1);
    weft_end;
}

static void awaited(struct crew *crew)
{
    weft_task *task[8];
    int got;
    (void)crew;
    for (int i = 0; i < 8; i++)
        task[i] = weft_spawn(awaits, .number = i);
    for (int i = 0; i < 8; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
}

TEST(file_awaited)
{
    dir_make();
    crew_each(awaited);
    ASSERT_OK(rmdir(dir));
}

/* ---- given up ---- */

/* Opens and copies until it is told to stop: whatever was opened is closed, whatever was copied is whole. */
static int goes_on(int number)
{
    struct names n = names_of(number);
    weft_file *file;
    int64_t r = weft_fs_store(n.a, "0123456789", 10, 0600, true);
    while (r >= 0) {
        r = weft_file_open(n.a, O_RDONLY, 0, &file);
        if (r < 0) break;
        weft_file_close(file);
        r = weft_fs_copy(n.a, n.b);
        ASSERT(r == 10 || r == -ECANCELED);
    }
    WEFT_SHIELD(WEFT_FOREVER)
    {
        (void)weft_fs_unlink(n.a);
        (void)weft_fs_unlink(n.b);
    }
    return (int)r;
}

/* So many yields of the canceller, and not so much time. */
static void given_up(struct crew *crew)
{
    weft_task *task[6];
    int got;
    uint64_t random = test_seed();
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(20); round++) {
        for (int i = 0; i < 6; i++)
            task[i] = weft_go(goes_on, i);
        for (int i = 0; i < 6; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            for (uint64_t k = random >> 59; k > 0; k--)
                sched_yield();
            weft_cancel(task[i]);
        }
        for (int i = 0; i < 6; i++) {
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, -ECANCELED);
        }
    }
}

/* The harness finds files that stay open; an empty directory is all that is left. */
TEST(file_given_up_leaves_nothing)
{
    dir_make();
    crew_each(given_up);
    ASSERT_OK(rmdir(dir));
}

static _Atomic bool copies_on; /* relaxed: a flag */

/* It never ends by itself. */
static int copies_for_ever(bool timed)
{
    int64_t r = 0;
    WEFT_TIMEOUT(timed ? weft_ms(3) : WEFT_FOREVER)
    {
        store_relaxed(&copies_on, true);
        r = weft_fs_copy("/dev/zero", "/dev/null");
    }
    return (int)r;
}

/* One that stops on its way says what for. */
static void stopped_on_the_way(struct crew *crew)
{
    (void)crew;
    for (int timed = 0; timed < 2; timed++) {
        int got = 0;
        store_relaxed(&copies_on, false);
        weft_task *t = weft_go(copies_for_ever, timed);
        CREW_UNTIL(load_relaxed(&copies_on));
        if (!timed) weft_cancel(t);
        ASSERT_OK(weft_join(t, &got));
        ASSERT_EQ(got, timed ? -ETIME : -ECANCELED);
    }
}

TEST(file_stopped_on_the_way_says_what_for)
{
    crew_each(stopped_on_the_way);
}

static int reads_on(weft_file *file)
{
    char byte;
    ssize_t n = weft_file_read(file, &byte, 1, WEFT_FILE_HERE); /* a pipe that is empty: it takes a while */
    return n == 1 ? byte : (int)n;
}

/* An operation under way keeps the file: it is closed behind it. A read that was given up answers what happened: it has the byte, or that is still there. */
static void closed_in_use(struct crew *crew)
{
    int ends[2];
    int got = 0;
    char byte = 0;
    weft_file *file;
    weft_stats stats;

    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    int still = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    ASSERT_GE(still, 0);
    ASSERT_OK(weft_file_of(ends[0], &file));
    weft_task *t = weft_go(reads_on, file);
    do
        weft_rt_stats(crew->rt, &stats);
    while (stats.blocking_threads == 0 || stats.blocking_queued > 0 || stats.blocking_idle > 0);
    weft_cancel(t);
    weft_file_close(file);
    ASSERT_EQ(write(ends[1], "y", 1), 1);
    ASSERT_OK(weft_join(t, &got));
    if (got == -ECANCELED) {
        ASSERT_EQ(read(still, &byte, 1), 1);
        got = (unsigned char)byte;
    }
    ASSERT_EQ(got, 'y');
    ASSERT_EQ(close(still), 0);
    ASSERT_EQ(close(ends[1]), 0);
}

TEST(file_closed_in_use_goes_with_its_last_user)
{
    crew_each(closed_in_use);
}

/* Told to stop before it began, it does nothing. */
static int refused(void)
{
    struct names n = names_of(7);
    weft_file *file = NULL;
    char *text = NULL;
    while (weft_yield() >= 0)
        continue;
    ASSERT_EQ(weft_fs_store(n.a, "x", 1, 0600, false), -ECANCELED);
    ASSERT_EQ(weft_file_open(n.a, O_CREAT | O_RDWR, 0600, &file), -ECANCELED);
    ASSERT_EQ(weft_fs_load("/proc/self/status", 1 << 20, &text, NULL), -ECANCELED);
    ASSERT(!file && !text);
    return 1;
}

static void refused_all(struct crew *crew)
{
    int got;
    (void)crew;
    weft_task *t = weft_go(refused);
    weft_cancel(t);
    ASSERT_OK(weft_join(t, &got));
    ASSERT_EQ(got, 1);
}

TEST(file_told_to_stop_does_nothing)
{
    dir_make();
    crew_each(refused_all);
    ASSERT_OK(rmdir(dir));
}
