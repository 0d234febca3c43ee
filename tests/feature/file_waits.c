/* SPDX-License-Identifier: MIT
 *
 * Files that wait for somebody else: FIFOs, pipes and terminals by way of weft_file and weft_fs. Nobody comes, and each of them can be given up; somebody comes, and they
 * are what they would have been.
 */
#include "crew.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

static char dir[32];

/* One for each who waits, or they would wait for each other. */
struct fifo {
    char path[48];
};

static struct fifo fifo_of(int number)
{
    struct fifo f;
    snprintf(f.path, sizeof(f.path), "%s/%d", dir, number);
    return f;
}

enum { FIFOS = 20 };

static void fifos_make(void)
{
    snprintf(dir, sizeof(dir), "/tmp/weft-waits-XXXXXX");
    ASSERT(mkdtemp(dir));
    for (int i = 0; i < FIFOS; i++)
        ASSERT_OK(mkfifo(fifo_of(i).path, 0600));
}

/* They are what they were. */
static void fifos_end(void)
{
    struct stat about;
    for (int i = 0; i < FIFOS; i++) {
        ASSERT_OK(stat(fifo_of(i).path, &about));
        ASSERT(S_ISFIFO(about.st_mode));
        ASSERT_OK(unlink(fifo_of(i).path));
    }
    ASSERT_OK(rmdir(dir));
}

/* ---- nobody comes ---- */

enum way { OPENS_TO_READ, OPENS_TO_WRITE, LOADS, STORES, COPIES_FROM, COPIES_TO, READS, WRITES, WAYS };

/* As a file that blocks, with nothing in it; or so full that nothing more goes in. */
static weft_file *silent(const char *path, bool full)
{
    weft_file *file = NULL;
    char page[4096] = {0};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    ASSERT_GE(fd, 0);
    while (full && write(fd, page, sizeof page) > 0)
        continue;
    ASSERT_OK(fcntl(fd, F_SETFL, O_RDWR));
    ASSERT_OK(weft_file_of(fd, &file));
    return file;
}

static _Atomic uint32_t begun; /* relaxed: a count */

static int waits(int way, bool timed)
{
    struct fifo fifo = fifo_of(2 * way + timed);
    const char *path = fifo.path;
    weft_file *file = NULL;
    char *text = NULL;
    char b[10000] = {0};
    int64_t r = 0;
    if (way == READS || way == WRITES) file = silent(path, way == WRITES);
    WEFT_TIMEOUT(timed ? weft_ms(3) : WEFT_FOREVER)
    {
        (void)fetch_add_relaxed(&begun, 1);
        if (way == OPENS_TO_READ) r = weft_file_open(path, O_RDONLY, 0, &file);
        if (way == OPENS_TO_WRITE) r = weft_file_open(path, O_WRONLY, 0, &file);
        if (way == LOADS) r = weft_fs_load(path, 100, &text, NULL);
        if (way == STORES) r = weft_fs_store(path, "x", 1, 0600, false);
        if (way == COPIES_FROM) r = weft_fs_copy(path, "/dev/null");
        if (way == COPIES_TO) r = weft_fs_copy("/proc/self/status", path);
        if (way == READS) r = weft_file_read(file, b, sizeof b, WEFT_FILE_HERE);
        if (way == WRITES) r = weft_file_write(file, b, sizeof b, WEFT_FILE_HERE);
    }
    if (way == READS || way == WRITES) weft_file_close(file);
    return (int)r;
}

/* Told, and timed, in turns; some of them before they have begun. The runtime's stop finds nobody who still sits there. */
static void gives_all_up(struct crew *crew)
{
    weft_task *task[2 * WAYS];
    (void)crew;
    store_relaxed(&begun, 0);
    for (int i = 0; i < 2 * WAYS; i++)
        task[i] = weft_go(waits, i / 2, i % 2);
    CREW_UNTIL(load_relaxed(&begun) == 2 * WAYS);
    for (int i = 0; i < 2 * WAYS; i++) {
        int got = 0;
        if (i % 2 == 0) weft_cancel(task[i]);
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, i % 2 ? -ETIME : -ECANCELED);
    }
}

TEST(file_waits_can_be_given_up)
{
    fifos_make();
    crew_each(gives_all_up);
    fifos_end();
}

/* The task is cancelled by the stop itself. */
TEST(file_waits_keep_no_runtime_from_its_end)
{
    fifos_make();
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        store_relaxed(&begun, 0);
        crew_start(&crew, crew_sizes[i]);
        for (int way = 0; way < WAYS; way++)
            ASSERT_OK(weft_detach(weft_go(waits, way, false)));
        CREW_UNTIL(load_relaxed(&begun) == WAYS);
        crew_stop(&crew);
    }
    fifos_end();
}

/* ---- somebody comes ---- */

static void *writes_late(void *arg)
{
    const struct fifo *fifo = arg;
    int fd = open(fifo->path, O_WRONLY | O_CLOEXEC); /* goes on when the other side is open */
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, "hello", 5), 5);
    close(fd);
    return NULL;
}

static void *reads_late(void *arg)
{
    const struct fifo *fifo = arg;
    char b[8];
    int fd = open(fifo->path, O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(read(fd, b, sizeof b), 5);
    ASSERT_EQ(memcmp(b, "hello", 5), 0);
    close(fd);
    return NULL;
}

static int meets(int way)
{
    struct fifo fifo = fifo_of(way);
    const char *path = fifo.path;
    weft_file *file;
    char *text = NULL;
    size_t len = 0;
    char b[8];
    switch (way) {
    case OPENS_TO_READ:
        ASSERT_OK(weft_file_open(path, O_RDONLY, 0, &file));
        ASSERT_EQ(fcntl(weft_file_fd(file), F_GETFL) & O_NONBLOCK, 0);
        ASSERT_EQ(weft_file_read(file, b, sizeof b, WEFT_FILE_HERE), 5);
        ASSERT_EQ(weft_file_read(file, b, sizeof b, WEFT_FILE_HERE), 0);
        weft_file_close(file);
        break;
    case OPENS_TO_WRITE:
        ASSERT_OK(weft_file_open(path, O_WRONLY | O_APPEND, 0, &file));
        ASSERT_EQ(fcntl(weft_file_fd(file), F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
        ASSERT_EQ(weft_file_write(file, "hello", 5, WEFT_FILE_HERE), 5);
        weft_file_close(file);
        break;
    case LOADS:
        ASSERT_OK(weft_fs_load(path, 100, &text, &len));
        ASSERT_EQ(len, 5);
        weft_free(text);
        break;
    case COPIES_FROM:
        ASSERT_EQ(weft_fs_copy(path, "/dev/null"), 5);
        break;
    default:
        ASSERT_OK(weft_fs_store(path, "hello", 5, 0600, false));
        break;
    }
    return 0;
}

static void meets_all(struct crew *crew)
{
    (void)crew;
    for (int way = OPENS_TO_READ; way <= COPIES_FROM; way++) {
        bool reads = way == OPENS_TO_READ || way == LOADS || way == COPIES_FROM;
        struct fifo fifo = fifo_of(way);
        pthread_t other;
        int got = -1;
        weft_task *task = weft_go(meets, way);
        ASSERT_OK(pthread_create(&other, NULL, reads ? writes_late : reads_late, &fifo));
        ASSERT_OK(weft_join(task, &got));
        ASSERT_OK(got);
        ASSERT_OK(pthread_join(other, NULL));
    }
}

TEST(file_waits_until_the_other_side_is_there)
{
    fifos_make();
    crew_each(meets_all);
    fifos_end();
}

/* A pipe that does not block is not waited for: it answers what it always did. One whose reader is gone is an error, and no signal, also without a runtime. */
TEST(file_waits_for_nobody_who_does_not_block)
{
    weft_file *file;
    char b[8] = {0};
    int ends[2];
    ASSERT_OK(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    ASSERT_OK(weft_file_of(ends[0], &file));
    ASSERT_EQ(weft_file_read(file, b, sizeof b, WEFT_FILE_HERE), -EAGAIN);
    weft_file_close(file);
    ASSERT_OK(weft_file_of(ends[1], &file));
    ASSERT_EQ(weft_file_write(file, b, sizeof b, WEFT_FILE_HERE), -EPIPE);
    weft_file_close(file);
}
