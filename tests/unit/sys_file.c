/* SPDX-License-Identifier: MIT
 *
 * file: each request does what its system call does, whole files come and go in one piece, what is stopped or fails leaves
 * nothing behind.
 */
#include "base/alloc.h"
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][160];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static void dir_make(void)
{
    bool memory = access("/dev/shm", W_OK) == 0; /* which is faster to sync */
    snprintf(dir, sizeof(dir), "%s", memory ? "/dev/shm/weft-file-XXXXXX" : "/tmp/weft-file-XXXXXX");
    ASSERT(mkdtemp(dir));
}

static int entries(void)
{
    DIR *d = opendir(dir);
    int n = -2;
    ASSERT(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

#define DO(...)  weft__file_do(&(struct weft__file_req){__VA_ARGS__})
#define TRY(...) weft__file_try(&(struct weft__file_req){__VA_ARGS__})

static void store(const char *name, const void *from, size_t bytes)
{
    ASSERT_EQ(DO(.op = WEFT__FILE_STORE, .path = in_dir(name), .from = from, .bytes = bytes, .mode = 0600), 0);
}

static int64_t load(const char *name, size_t most, char **into)
{
    struct weft__file_req req = {.op = WEFT__FILE_LOAD, .path = in_dir(name), .bytes = most};
    int64_t n = weft__file_do(&req);
    *into = req.loaded;
    return n;
}

TEST(file_reads_and_writes_where_it_is_told)
{
    char got[8] = {0};
    dir_make();
    int64_t fd = DO(.op = WEFT__FILE_OPEN, .path = in_dir("a"), .flags = O_RDWR | O_CREAT | O_EXCL, .mode = 0640);
    ASSERT_GE(fd, 0);
    ASSERT(fcntl((int)fd, F_GETFD) & FD_CLOEXEC);
    ASSERT_EQ(DO(.op = WEFT__FILE_OPEN, .path = in_dir("a"), .flags = O_CREAT | O_EXCL), -EEXIST);
    ASSERT_EQ(DO(.op = WEFT__FILE_WRITE, .fd = (int)fd, .from = "hello", .bytes = 5, .offset = 3), 5);
    ASSERT_EQ(DO(.op = WEFT__FILE_READ, .fd = (int)fd, .into = got, .bytes = 8, .offset = 4), 4);
    ASSERT(memcmp(got, "ello", 4) == 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_READ, .fd = (int)fd, .into = got, .bytes = 8, .offset = 8), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_READ, .fd = (int)fd, .into = got, .bytes = 4, .offset = WEFT__FILE_HERE), 4);
    ASSERT(memcmp(got, "\0\0\0h", 4) == 0);
    int64_t n = TRY(.op = WEFT__FILE_READ, .fd = (int)fd, .into = got, .bytes = 4,
                    .offset = WEFT__FILE_HERE);
    if (n != -EAGAIN) { /* some filesystems cannot be asked */
        ASSERT_EQ(n, 4);
        ASSERT(memcmp(got, "ello", 4) == 0);
    }
    ASSERT_EQ(TRY(.op = WEFT__FILE_WRITE, .fd = (int)fd, .from = "x", .bytes = 1), -EAGAIN);
    ASSERT_EQ(DO(.op = WEFT__FILE_SYNC, .fd = (int)fd), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_SYNC, .fd = (int)fd, .flags = 1), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_TRUNCATE, .fd = (int)fd, .offset = 2), 0);
    struct stat about;
    ASSERT_EQ(DO(.op = WEFT__FILE_STAT, .fd = (int)fd, .into = &about), 0);
    ASSERT_EQ(about.st_size, 2);
    weft__fd_close((int)fd);
    ASSERT_EQ(DO(.op = WEFT__FILE_UNLINK, .path = in_dir("a")), 0);
    ASSERT_OK(rmdir(dir));
}

TEST(file_names_come_and_go)
{
    struct stat about;
    char text[16] = "";
    dir_make();
    ASSERT_EQ(DO(.op = WEFT__FILE_MKDIR, .path = in_dir("d"), .mode = 0700), 0);
    store("a", "abc", 3);
    ASSERT_EQ(DO(.op = WEFT__FILE_RENAME, .path = in_dir("a"), .other = in_dir("d/b")), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_STAT, .path = in_dir("a"), .into = &about), -ENOENT);
    ASSERT_EQ(DO(.op = WEFT__FILE_LINK, .path = in_dir("d/b"), .other = in_dir("c")), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_SYMLINK, .path = "d/b", .other = in_dir("s")), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_STAT, .path = in_dir("s"), .into = &about), 0);
    ASSERT(S_ISREG(about.st_mode));
    ASSERT_EQ(about.st_nlink, 2);
    ASSERT_EQ(DO(.op = WEFT__FILE_STAT, .path = in_dir("s"), .flags = 1, .into = &about), 0);
    ASSERT(S_ISLNK(about.st_mode));
    ASSERT_EQ(DO(.op = WEFT__FILE_READLINK, .path = in_dir("s"), .into = text, .bytes = sizeof(text)), 3);
    ASSERT(strcmp(text, "d/b") == 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_READLINK, .path = in_dir("s"), .into = text, .bytes = 3), -ERANGE);
    ASSERT_EQ(DO(.op = WEFT__FILE_READLINK, .path = in_dir("s"), .into = text, .bytes = 0), -ERANGE);
    ASSERT_EQ(DO(.op = WEFT__FILE_CHMOD, .path = in_dir("c"), .mode = 0604), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_STAT, .path = in_dir("c"), .into = &about), 0);
    ASSERT_EQ(about.st_mode & 0777, 0604);
    ASSERT_EQ(DO(.op = WEFT__FILE_RMDIR, .path = in_dir("d")), -ENOTEMPTY);
    ASSERT_EQ(DO(.op = WEFT__FILE_UNLINK, .path = in_dir("d/b")), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_UNLINK, .path = in_dir("c")), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_UNLINK, .path = in_dir("s")), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_RMDIR, .path = in_dir("d")), 0);
    ASSERT_OK(rmdir(dir));
}

/* Lengths around what is read at once, and around the room it begins with. */
TEST(file_comes_back_as_it_was_stored)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (3 << 20) + 5};
    char *bytes = malloc(4 << 20);
    char *got;
    for (size_t i = 0; i < (size_t)4 << 20; i++)
        bytes[i] = (char)(i * 31 + i / 4096);
    dir_make();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        store("a", bytes, sizes[i]);
        ASSERT_EQ(load("a", sizes[i], &got), (int64_t)sizes[i]);
        ASSERT(memcmp(got, bytes, sizes[i]) == 0);
        ASSERT_EQ(got[sizes[i]], 0);
        weft__free(got);
        ASSERT_EQ(DO(.op = WEFT__FILE_COPY, .path = in_dir("a"), .other = in_dir("b")), (int64_t)sizes[i]);
        ASSERT_EQ(load("b", SIZE_MAX, &got), (int64_t)sizes[i]);
        ASSERT(memcmp(got, bytes, sizes[i]) == 0);
        weft__free(got);
        if (sizes[i] > 0) ASSERT_EQ(load("a", sizes[i] - 1, &got), -EFBIG);
    }
    ASSERT_OK(unlink(in_dir("a")));
    ASSERT_OK(unlink(in_dir("b")));
    ASSERT_OK(rmdir(dir));
    free(bytes);
}

/* Files of /proc have no size. */
TEST(file_without_a_size_is_loaded_and_copied)
{
    struct weft__file_req req = {.op = WEFT__FILE_LOAD, .path = "/proc/self/status", .bytes = 1 << 20};
    dir_make();
    ASSERT_GE(weft__file_do(&req), 100);
    ASSERT(strstr(req.loaded, "Threads:"));
    weft__free(req.loaded);
    req = (struct weft__file_req){.op = WEFT__FILE_LOAD, .path = "/proc/self/status", .bytes = 100};
    ASSERT_EQ(weft__file_do(&req), -EFBIG);
    ASSERT_GE(DO(.op = WEFT__FILE_COPY, .path = "/proc/self/status", .other = in_dir("s")), 100);
    ASSERT_OK(unlink(in_dir("s")));
    ASSERT_OK(rmdir(dir));
}

TEST(file_is_replaced_in_one_piece)
{
    struct stat about;
    char *got;
    dir_make();
    store("a", "old", 3);
    int64_t held = DO(.op = WEFT__FILE_OPEN, .path = in_dir("a"), .flags = O_RDONLY);
    ASSERT_EQ(DO(.op = WEFT__FILE_STORE, .path = in_dir("a"), .from = "newer", .bytes = 5, .mode = 0640,
                 .flags = WEFT__FILE_WHOLE),
              0);
    char text[8] = {0};
    ASSERT_EQ(DO(.op = WEFT__FILE_READ, .fd = (int)held, .into = text, .bytes = 8), 3); /* who has it open has the old one */
    weft__fd_close((int)held);
    ASSERT_EQ(load("a", 100, &got), 5);
    ASSERT(strcmp(got, "newer") == 0);
    weft__free(got);
    ASSERT_OK(stat(in_dir("a"), &about));
    ASSERT_EQ(about.st_mode & 0777, 0640);
    ASSERT_EQ(entries(), 1);
    ASSERT_OK(unlink(in_dir("a")));
    ASSERT_OK(rmdir(dir));
}

TEST(file_that_is_stopped_leaves_nothing)
{
    char *got;
    dir_make();
    store("a", "abc", 3);
    ASSERT_EQ(DO(.op = WEFT__FILE_COPY, .path = in_dir("a"), .other = in_dir("b"), .stopped = true), -ECANCELED);
    ASSERT_EQ(DO(.op = WEFT__FILE_STORE, .path = in_dir("a"), .from = "newer", .bytes = 5, .mode = 0600,
                 .flags = WEFT__FILE_WHOLE, .stopped = true),
              -ECANCELED);
    ASSERT_EQ(DO(.op = WEFT__FILE_LOAD, .path = in_dir("a"), .bytes = 100, .stopped = true), -ECANCELED);
    ASSERT_EQ(entries(), 1);
    ASSERT_EQ(load("a", 100, &got), 3);
    weft__free(got);
    ASSERT_OK(unlink(in_dir("a")));
    ASSERT_OK(rmdir(dir));
}

TEST(file_for_a_while_has_no_name)
{
    dir_make();
    int64_t fd = DO(.op = WEFT__FILE_TEMP, .path = dir);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(entries(), 0);
    ASSERT_EQ(DO(.op = WEFT__FILE_WRITE, .fd = (int)fd, .from = "x", .bytes = 1), 1);
    weft__fd_close((int)fd);
    ASSERT_EQ(DO(.op = WEFT__FILE_TEMP, .path = in_dir("none")), -ENOENT);
    ASSERT_OK(rmdir(dir));
}

#if defined(WEFT_FAULTS)

/* Each read, write and open of the longer ones fails in turn. */
TEST(file_that_fails_half_way_leaves_nothing)
{
    static const enum weft__fault_kind kinds[] = {WEFT__FAULT_OPEN, WEFT__FAULT_READ, WEFT__FAULT_WRITE, WEFT__FAULT_ALLOC};
    char *got = NULL;
    dir_make();
    store("a", "abc", 3);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (uint32_t nth = 1; nth <= 4; nth++) {
            weft__fault_arm(kinds[k], nth, 1, -EIO);
            int64_t r = DO(.op = WEFT__FILE_STORE, .path = in_dir("a"), .from = "abc", .bytes = 3, .mode = 0600,
                           .flags = WEFT__FILE_WHOLE);
            ASSERT(r == 0 || r == -EIO);
            weft__fault_arm(kinds[k], nth, 1, -EIO);
            r = load("a", 100, &got);
            ASSERT(r == 3 || (r < 0 && !got));
            weft__free(got);
            weft__fault_arm(kinds[k], nth, 1, -EIO);
            r = DO(.op = WEFT__FILE_COPY, .path = in_dir("a"), .other = in_dir("b"));
            weft__fault_reset();
            ASSERT_EQ(entries(), r < 0 ? 1 : 2);
            if (r >= 0) ASSERT_OK(unlink(in_dir("b")));
        }
    weft__fault_arm(WEFT__FAULT_FILE, 1, 1, -EDQUOT);
    ASSERT_EQ(DO(.op = WEFT__FILE_SYNC, .fd = 0), -EDQUOT);
    ASSERT_OK(unlink(in_dir("a")));
    ASSERT_OK(rmdir(dir));
}

#endif
