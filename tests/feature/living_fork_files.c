/* SPDX-License-Identifier: MIT
 *
 * A fork while file operations are under way: the child does not touch the parent's ring, files and a runtime of its own work there, and what the
 * parent has asked for is answered in the parent.
 */
#include "child.h"
#include "crew.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

static char path[64];

static void fifo_make(void)
{
    snprintf(path, sizeof(path), "/tmp/weft-fork-files-%d", (int)getpid());
    (void)unlink(path);
    ASSERT_OK(mkfifo(path, 0600));
}

static int opens(int flags)
{
    weft_file *file;
    int r = weft_file_open(path, flags, 0, &file);
    if (r == 0) weft_file_close(file);
    return r;
}

/* With a write, so that a ring is used where there is one. */
static int uses_files(void)
{
    weft_file *file;
    char got[4] = {0};
    int r = weft_file_temp("/tmp", &file);
    if (r < 0) return r;
    ssize_t n = weft_file_write(file, "abc", 3, 0);
    if (n == 3) n = weft_file_sync(file, true);
    if (n == 0) n = weft_file_read(file, got, 4, 0);
    weft_file_close(file);
    if (n < 0) return (int)n;
    return n == 3 && strcmp(got, "abc") == 0 ? 1 : -EIO;
}

static void in_the_child(weft_rt *parents)
{
    weft_rt *rt;
    int got = 0;
    CHILD_NEEDS(weft_rt_files(parents) == -ECHILD);
    CHILD_NEEDS(uses_files() == 1); /* a plain thread now, which has entered nothing */
    CHILD_NEEDS(weft_rt_new(&(weft_rt_opts){.workers = 1}, &rt) == 0);
    (void)weft_rt_enter(rt);
    CHILD_NEEDS(weft_join(weft_go(uses_files), &got) == 0);
    CHILD_NEEDS(got == 1);
    (void)weft_rt_enter(NULL);
    CHILD_NEEDS(weft_rt_stop(rt, -1) == 0);
    _exit(7);
}

static void forks_under_way(struct crew *crew)
{
    int got = 1;
    ASSERT_OK(weft_join(weft_go(uses_files), &got));
    ASSERT_EQ(got, 1);
    weft_task *reads = weft_go(opens, O_RDONLY);
    pid_t child = fork();
    if (child == 0) in_the_child(crew->rt);
    ASSERT(ended_by(exit_code_of(child), 7));
    weft_task *writes = weft_go(opens, O_WRONLY);
    ASSERT_OK(weft_join(reads, &got));
    ASSERT_EQ(got, 0);
    ASSERT_OK(weft_join(writes, &got));
    ASSERT_EQ(got, 0);
}

TEST_WITH(fork_leaves_the_ring_to_the_parent, .timeout_s = 120)
{
    fifo_make();
    crew_each(forks_under_way);
    ASSERT_OK(unlink(path));
}

/* The fork is a task's own: in the child it goes on as a plain thread, and its files with it. */
static int forks(void)
{
    if (uses_files() != 1) return -EIO;
    pid_t child = fork();
    if (child == 0) {
        CHILD_NEEDS(uses_files() == 1);
        _exit(7);
    }
    return exit_code_of(child) == 7 && uses_files() == 1 ? 1 : -EIO;
}

static void forks_inside(struct crew *crew)
{
    int got = 0;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(forks), &got));
    ASSERT_EQ(got, 1);
}

TEST(fork_in_a_task_goes_on_with_files)
{
    crew_each(forks_inside);
}
