/* SPDX-License-Identifier: MIT
 *
 * Slurp: files of every length around the buffer's, and every failure on the way without a leak.
 */
#include "base/alloc.h"
#include "base/fault.h"
#include "limits.h"
#include "sys/slurp.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file without a name, as a path that can be opened again. */
struct scratch {
    int fd;
    char path[64];
};

#define LONGEST 20000
static char alphabet[LONGEST];

static struct scratch scratch_of(size_t bytes)
{
    struct scratch s;
    s.fd = memfd_create("slurp", MFD_CLOEXEC);
    ASSERT_GE(s.fd, 0);
    for (size_t i = 0; i < LONGEST; i++)
        alphabet[i] = (char)('a' + i % 26);
    ASSERT_EQ(pwrite(s.fd, alphabet, bytes, 0), bytes);
    snprintf(s.path, sizeof(s.path), "/proc/self/fd/%d", s.fd);
    return s;
}

static void reads_back(size_t bytes)
{
    struct scratch s = scratch_of(bytes);
    char *text = NULL;
    ASSERT_OK(weft__slurp(AT_FDCWD, s.path, &text));
    ASSERT_EQ(strlen(text), bytes);
    ASSERT_EQ(memcmp(text, alphabet, bytes), 0);
    weft__free(text);
    close(s.fd);
}

TEST(slurp_reads_files_of_any_length)
{
    static const size_t lengths[] = {0, 1, 4094, 4095, 4096, 4097, 8191, 8192, LONGEST};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        reads_back(lengths[i]);
}

TEST(slurp_reads_proc_and_relative_paths)
{
    char *text;
    int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(weft__slurp(dir, "status", &text));
    ASSERT(strstr(text, "Pid:"));
    weft__free(text);
    close(dir);
}

TEST(slurp_answers_what_open_and_read_say)
{
    char *text = NULL;
    ASSERT_EQ(weft__slurp(AT_FDCWD, "/proc/self/no such file", &text), -ENOENT);
    ASSERT_EQ(weft__slurp(AT_FDCWD, "/proc/self", &text), -EISDIR);
    ASSERT_NULL(text);
}

TEST(slurp_refuses_what_has_no_end)
{
    char *text = NULL;
    struct scratch s = scratch_of(0);
    ASSERT_OK(ftruncate(s.fd, WEFT__SLURP_BYTES_MAX));
    ASSERT_EQ(weft__slurp(AT_FDCWD, s.path, &text), -EFBIG);
    ASSERT_NULL(text);
    close(s.fd);
}

#if defined(WEFT_FAULTS)
/* Fail the nth call of a kind, for every n until none fails: each answers the error and leaks
 * nothing. */
static uint32_t fails_cleanly(const char *path, enum weft__fault_kind kind, int error)
{
    for (uint32_t nth = 1;; nth++) {
        char *text = NULL;
        weft__fault_arm(kind, nth, 1, error);
        int r = weft__slurp(AT_FDCWD, path, &text);
        if (weft__fault_calls(kind) < nth) {
            ASSERT_EQ(r, 0);
            weft__free(text);
            return nth - 1;
        }
        ASSERT_EQ(r, error);
        ASSERT_NULL(text);
    }
}

TEST(slurp_fails_cleanly_everywhere)
{
    struct scratch s = scratch_of(LONGEST);
    ASSERT_EQ(fails_cleanly(s.path, WEFT__FAULT_OPEN, -EMFILE), 1);
    weft__fault_reset();
    ASSERT_GE(fails_cleanly(s.path, WEFT__FAULT_READ, -EIO), 4);
    weft__fault_reset();
    ASSERT_EQ(fails_cleanly(s.path, WEFT__FAULT_ALLOC, -ENOMEM), 4);
    close(s.fd);
}
#endif
