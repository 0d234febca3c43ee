/* SPDX-License-Identifier: MIT
 *
 * How many CPUs: quotas out of planted file trees of both cgroup versions, in and out of
 * containers, and every failure on the way.
 *
 * Each tree is a folder that stands for "/": proc/self/cgroup, proc/self/mountinfo, and the groups'
 * files.
 */
#include "base/fault.h"
#include "sys/cpu.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- planting -------------------------------------------------------------------------------- */

static char root[64];

static void root_open(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%.40s/weft-cpu-XXXXXX", folder && *folder ? folder : "/tmp");
    ASSERT(mkdtemp(root));
}

/* Goes down by descriptors, so that the tree may be deeper than a path is long. */
static void plant(const char *path, const char *text)
{
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *slash;

    ASSERT_GE(dir, 0);
    while ((slash = strchr(path, '/'))) {
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
        mkdirat(dir, name, 0700);
        int below = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        ASSERT_GE(below, 0);
        close(dir);
        dir = below;
        path = slash + 1;
    }
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    close(dir);
}

/* Takes: the descriptor, which is closed with the stream. */
static void remove_below(int dir)
{
    ASSERT_GE(dir, 0);
    DIR *d = fdopendir(dir);
    struct dirent *e;

    ASSERT(d);
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (e->d_type == DT_DIR) {
            remove_below(openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            unlinkat(dir, e->d_name, AT_REMOVEDIR);
        } else {
            unlinkat(dir, e->d_name, 0);
        }
    }
    closedir(d);
}

static void root_close(void)
{
    remove_below(open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_OK(rmdir(root));
}

struct file {
    const char *path;
    const char *text;
};

struct tree {
    const char *what;
    const char *cgroup;
    const char *mountinfo;
    struct file files[8];
    uint32_t milli; /* what comes of it; 0: no quota */
};

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT                                                                                   \
    "33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
#define V1_OTHER "34 25 0:30 / /sys/fs/cgroup/cpuset rw,nosuid - cgroup cgroup rw,cpuset\n"
#define V1_DIR   "sys/fs/cgroup/cpu,cpuacct/"

static uint32_t quota_of(const struct tree *t)
{
    uint32_t milli = 4711;

    root_open();
    plant("proc/self/cgroup", t->cgroup);
    plant("proc/self/mountinfo", t->mountinfo);
    for (const struct file *f = t->files; f->path; f++)
        plant(f->path, f->text);
    int r = weft__cpu_quota_at(root, &milli);
    root_close();
    ck_assert_msg(r == 0, "%s: %d", t->what, r);
    return milli;
}

static void expect(const struct tree *t)
{
    uint32_t milli = quota_of(t);
    ck_assert_msg(milli == t->milli, "%s: %u instead of %u", t->what, milli, t->milli);
}

#define EXPECT_ALL(trees)                                                                          \
    for (size_t i = 0; i < sizeof(trees) / sizeof((trees)[0]); i++)                                \
    expect(&(trees)[i])

/* ---- quotas ---------------------------------------------------------------------------------- */

/* Tables of trees. */
/* clang-format off */
TEST(cpu_quota_v2)
{
    static const struct tree trees[] = {
        {"two CPUs", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "200000 100000\n"}}, 2000},
        {"one and a half", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "150000 100000\n"}}, 1500},
        {"a fifth", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "20000 100000\n"}}, 200},
        {"another period", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "30000 10000\n"}}, 3000},
        {"a hair above one", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "100001 100000\n"}}, 1001},
        {"max", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "max 100000\n"}}, 0},
        {"no period", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "150000\n"}}, 1500},
        {"in the root group", "0::/\n", V2_MOUNT,
         {{"sys/fs/cgroup/cpu.max", "100000 100000\n"}}, 1000},
        {"no file", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.stat", "x"}}, 0},
        {"no newline at the end", "0::/a", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "200000 100000"}}, 2000},
        {"a colon in the name", "0::/a:b/c\n", V2_MOUNT,
         {{"sys/fs/cgroup/a:b/c/cpu.max", "200000 100000\n"}}, 2000},
        {"a name of two dots and more", "0::/..a\n", V2_MOUNT,
         {{"sys/fs/cgroup/..a/cpu.max", "200000 100000\n"}}, 2000},
    };
    EXPECT_ALL(trees);
}

/* The tightest of all ancestors counts, wherever it is. */
TEST(cpu_quota_of_all_ancestors)
{
    static const struct tree trees[] = {
        {"the grandparent is the tightest", "0::/pod/mid/leaf\n", V2_MOUNT,
         {{"sys/fs/cgroup/pod/cpu.max", "150000 100000\n"},
          {"sys/fs/cgroup/pod/mid/cpu.max", "max 100000\n"},
          {"sys/fs/cgroup/pod/mid/leaf/cpu.max", "800000 100000\n"}}, 1500},
        {"the parent is", "0::/pod/mid/leaf\n", V2_MOUNT,
         {{"sys/fs/cgroup/pod/cpu.max", "400000 100000\n"},
          {"sys/fs/cgroup/pod/mid/cpu.max", "25000 10000\n"},
          {"sys/fs/cgroup/pod/mid/leaf/cpu.max", "max 100000\n"}}, 2500},
        {"the leaf is", "0::/pod/leaf\n", V2_MOUNT,
         {{"sys/fs/cgroup/pod/cpu.max", "400000 100000\n"},
          {"sys/fs/cgroup/pod/leaf/cpu.max", "100000 100000\n"}}, 1000},
        {"one in between has no files", "0::/pod/mid/leaf\n", V2_MOUNT,
         {{"sys/fs/cgroup/pod/cpu.max", "300000 100000\n"},
          {"sys/fs/cgroup/pod/mid/leaf/x", ""}}, 3000},
        {"the leaf is gone", "0::/pod/leaf (deleted)\n", V2_MOUNT,
         {{"sys/fs/cgroup/pod/cpu.max", "300000 100000\n"}}, 3000},
        {"v1 too", "4:cpu,cpuacct:/a/b/c\n", V1_MOUNT,
         {{V1_DIR "a/cpu.cfs_quota_us", "120000\n"},
          {V1_DIR "a/cpu.cfs_period_us", "100000\n"},
          {V1_DIR "a/b/cpu.cfs_quota_us", "-1\n"},
          {V1_DIR "a/b/cpu.cfs_period_us", "100000\n"},
          {V1_DIR "a/b/c/cpu.cfs_quota_us", "400000\n"},
          {V1_DIR "a/b/c/cpu.cfs_period_us", "100000\n"}}, 1200},
    };
    EXPECT_ALL(trees);
}

TEST(cpu_quota_v1)
{
    static const struct tree trees[] = {
        {"three halves", "4:cpu,cpuacct:/a\n3:cpuset:/b\n", V1_OTHER V1_MOUNT,
         {{V1_DIR "a/cpu.cfs_quota_us", "150000\n"},
          {V1_DIR "a/cpu.cfs_period_us", "100000\n"}}, 1500},
        {"none", "4:cpu,cpuacct:/a\n", V1_MOUNT,
         {{V1_DIR "a/cpu.cfs_quota_us", "-1\n"}, {V1_DIR "a/cpu.cfs_period_us", "100000\n"}}, 0},
        {"no period", "4:cpu,cpuacct:/a\n", V1_MOUNT,
         {{V1_DIR "a/cpu.cfs_quota_us", "150000\n"}}, 0},
        {"cpuset is not cpu", "3:cpuset:/a\n", V1_OTHER,
         {{"sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "150000\n"},
          {"sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000\n"}}, 0},
        {"a named hierarchy is not cpu", "1:name=cpu:/a\n", V1_MOUNT,
         {{V1_DIR "a/cpu.cfs_quota_us", "150000\n"},
          {V1_DIR "a/cpu.cfs_period_us", "100000\n"}}, 0},
        {"cpu comes second", "4:cpuacct,cpu:/a\n",
         "33 25 0:29 / /c rw - cgroup cgroup rw,cpuacct,cpu\n",
         {{"c/a/cpu.cfs_quota_us", "150000\n"}, {"c/a/cpu.cfs_period_us", "100000\n"}}, 1500},
    };
    EXPECT_ALL(trees);
}

/* v1 with a unified hierarchy beside it, in which the CPU controller may or may not be. */
TEST(cpu_quota_hybrid)
{
    static const char unified[] =
        "41 25 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" V1_OTHER V1_MOUNT;
    static const struct tree trees[] = {
        {"in v1", "4:cpu,cpuacct:/a\n0::/b\n", unified,
         {{V1_DIR "a/cpu.cfs_quota_us", "250000\n"},
          {V1_DIR "a/cpu.cfs_period_us", "100000\n"},
          {"sys/fs/cgroup/unified/b/x", ""}}, 2500},
        {"in v2", "3:cpuset:/a\n0::/b\n", unified,
         {{"sys/fs/cgroup/unified/b/cpu.max", "350000 100000\n"}}, 3500},
        {"in neither", "4:cpu,cpuacct:/\n0::/\n", unified,
         {{V1_DIR "cpu.cfs_quota_us", "-1\n"}, {"sys/fs/cgroup/unified/x", ""}}, 0},
    };
    EXPECT_ALL(trees);
}

/* Containers: the mount's root is not the hierarchy's, or a namespace hides what is above. */
TEST(cpu_quota_in_containers)
{
    static const struct tree trees[] = {
        {"no namespace, the mount shows the container's group", "4:cpu,cpuacct:/docker/abc\n",
         "33 25 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
         {{V1_DIR "cpu.cfs_quota_us", "250000\n"}, {V1_DIR "cpu.cfs_period_us", "100000\n"}}, 2500},
        {"no namespace, a group below it", "0::/docker/abc/sub\n",
         "33 25 0:29 /docker/abc /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "250000 100000\n"}, {"cg/sub/cpu.max", "50000 100000\n"}}, 500},
        {"a root that is a prefix of the name only", "0::/docker/abcdef\n",
         "33 25 0:29 /docker/abc /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "250000 100000\n"}}, 0},
        {"a namespace", "0::/\n", "33 25 0:29 / /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "250000 100000\n"}}, 2500},
        {"a mount made above the namespace", "0::/\n",
         "33 25 0:29 /../.. /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "250000 100000\n"}}, 2500},
        {"a group outside of the namespace", "0::/../other\n",
         "33 25 0:29 / /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "250000 100000\n"}}, 0},
        {"both outside", "0::/../other\n", "33 25 0:29 /.. /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "max 100000\n"}, {"cg/other/cpu.max", "250000 100000\n"}}, 2500},
        {"a mount of somebody else's group", "0::/mine\n",
         "33 25 0:29 /other /cg ro - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "250000 100000\n"}}, 0},
        {"two mounts, one of them shows us", "0::/mine\n",
         "33 25 0:29 /other /cg ro - cgroup2 cgroup rw\n"
         "34 25 0:29 /mine /my ro shared:1 - cgroup2 cgroup rw\n",
         {{"cg/cpu.max", "100000 100000\n"}, {"my/cpu.max", "250000 100000\n"}}, 2500},
        {"a space in the mount point", "0::/a b\n",
         "33 25 0:29 / /the\\040cg ro - cgroup2 cgroup rw\n",
         {{"the cg/a b/cpu.max", "250000 100000\n"}}, 2500},
        {"the mount point is the root", "0::/a\n", "33 25 0:29 / / ro - cgroup2 cgroup rw\n",
         {{"a/cpu.max", "250000 100000\n"}}, 2500},
    };
    EXPECT_ALL(trees);
}

/* What makes no sense is no limit, and hurts nobody. */
TEST(cpu_quota_garbage_is_no_quota)
{
    static const struct tree trees[] = {
        {"words", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "plenty of it\n"}}, 0},
        {"empty", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", ""}}, 0},
        {"negative", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "-5 100000\n"}}, 0},
        {"zero", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "0 100000\n"}}, 0},
        {"no time at all", "0::/a\n", V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "100000 0\n"}}, 0},
        {"a word for a period", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "100000 often\n"}}, 0},
        {"beyond 64 bits", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "99999999999999999999999999 100000\n"}}, 0},
        {"beyond 32 bits of CPUs", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/cpu.max", "999999999999999 1\n"}}, 0},
        {"a folder where a file should be", "0::/a\n", V2_MOUNT,
         {{"sys/fs/cgroup/a/x/cpu.max", ""}}, 0},
        {"mountinfo of another shape", "0::/a\n",
         "what\n\n- \n - \n1 2 3 - cgroup2\n"
         "1 2 3 4 5 - cgroup2 x y\n1 2 3 / relative - cgroup2 x y\n",
         {{NULL, NULL}}, 0},
        {"cgroup of another shape", "\n0\n0:\n0::\n0::relative\n:::\n7:cpu\n", V2_MOUNT V1_MOUNT,
         {{"sys/fs/cgroup/cpu.max", "100000 100000\n"}}, 0},
        {"both empty", "", "", {{NULL, NULL}}, 0},
        {"the mount point is gone", "0::/a\n", V2_MOUNT, {{NULL, NULL}}, 0},
        {"an escape that is none", "0::/a\n", "33 25 0:29 / /c\\9\\04 ro - cgroup2 cgroup rw\n",
         {{"c\\9\\04/a/cpu.max", "100000 100000\n"}}, 1000},
    };
    EXPECT_ALL(trees);
}

/* clang-format on */

/* Forty names of 200 bytes: the group's path is twice as long as any path the kernel takes. The
 * limit sits at the bottom. */
TEST(cpu_quota_of_very_long_paths)
{
    static char group[9000];
    static char line[9100];
    static char file[9100];
    uint32_t milli = 0;

    for (int i = 0; i < 40; i++) {
        size_t used = strlen(group);
        group[used++] = '/';
        memset(group + used, 'a' + i % 26, 200);
    }
    snprintf(line, sizeof(line), "0::%s\n", group);
    snprintf(file, sizeof(file), "sys/fs/cgroup%s/cpu.max", group);
    root_open();
    plant("proc/self/cgroup", line);
    plant("proc/self/mountinfo", V2_MOUNT);
    plant(file, "70000 20000\n");
    int r = weft__cpu_quota_at(root, &milli);
    root_close();
    ASSERT_OK(r);
    ASSERT_EQ(milli, 3500);
}

/* A single name longer than a name can be ends the walk; what is above it counts. */
TEST(cpu_quota_above_an_impossible_name)
{
    static char line[600] = "0::/a/";
    memset(line + strlen(line), 'x', 500);
    struct tree t = {
        "impossible name", line, V2_MOUNT, {{"sys/fs/cgroup/a/cpu.max", "200000 100000\n"}}, 2000};
    expect(&t);
}

TEST(cpu_quota_without_proc_is_an_error)
{
    uint32_t milli = 7;
    ASSERT_EQ(weft__cpu_quota_at("/proc/self/no such folder", &milli), -ENOENT);
    root_open();
    ASSERT_EQ(weft__cpu_quota_at(root, &milli), -ENOENT);
    plant("proc/self/cgroup", "0::/a\n");
    ASSERT_EQ(weft__cpu_quota_at(root, &milli), -ENOENT);
    root_close();
    ASSERT_EQ(milli, 7);
}

/* ---- both limits ----------------------------------------------------------------------------- */

static uint32_t usable(uint32_t affinity_count, const char *quota)
{
    struct weft__cpu_limits limits;
    root_open();
    plant("proc/self/cgroup", "0::/a\n");
    plant("proc/self/mountinfo", V2_MOUNT);
    plant("sys/fs/cgroup/a/cpu.max", quota);
    weft__cpu_limits_at(root, affinity_count, &limits);
    root_close();
    ASSERT_OK(limits.quota_error);
    return limits.usable_count;
}

TEST(cpu_usable_is_the_smaller_rounded_up)
{
    ASSERT_EQ(usable(8, "150000 100000\n"), 2);
    ASSERT_EQ(usable(8, "50000 100000\n"), 1);
    ASSERT_EQ(usable(8, "1000 100000\n"), 1);
    ASSERT_EQ(usable(8, "800000 100000\n"), 8);
    ASSERT_EQ(usable(2, "800000 100000\n"), 2);
    ASSERT_EQ(usable(8, "max 100000\n"), 8);
    ASSERT_EQ(usable(0, "max 100000\n"), 1);
}

TEST(cpu_unreadable_quota_is_none_with_a_reason)
{
    struct weft__cpu_limits limits;
    weft__cpu_limits_at("/proc/self/no such folder", 3, &limits);
    ASSERT_EQ(limits.quota_error, -ENOENT);
    ASSERT_EQ(limits.quota_milli, 0);
    ASSERT_EQ(limits.usable_count, 3);
}

TEST(cpu_limits_of_this_process)
{
    struct weft__cpu_limits limits;
    cpu_set_t set;
    ASSERT_OK(sched_getaffinity(0, sizeof(set), &set));
    weft__cpu_limits(&limits);
    ASSERT_EQ(limits.affinity_count, CPU_COUNT(&set));
    ASSERT_GE(limits.usable_count, 1);
    ASSERT_LE(limits.usable_count, limits.affinity_count);
}

/* ---- affinity -------------------------------------------------------------------------------- */

TEST(cpu_sets_count_and_contain)
{
    struct weft__cpus set = {0};
    ASSERT_EQ(weft__cpus_count(&set), 0);
    weft__cpus_add(&set, 0);
    weft__cpus_add(&set, 63);
    weft__cpus_add(&set, 64);
    weft__cpus_add(&set, WEFT__CPUS_MAX - 1);
    weft__cpus_add(&set, 64);
    ASSERT_EQ(weft__cpus_count(&set), 4);
    ASSERT(weft__cpus_has(&set, 64));
    ASSERT(!weft__cpus_has(&set, 65));
}

TEST(cpu_affinity_is_the_kernels)
{
    struct weft__cpus set;
    struct weft__cpus one = {0};
    struct weft__cpus none = {0};
    cpu_set_t theirs;

    ASSERT_OK(sched_getaffinity(0, sizeof(theirs), &theirs));
    ASSERT_OK(weft__cpu_affinity_get(0, &set));
    for (uint32_t i = 0; i < CPU_SETSIZE; i++)
        ASSERT_EQ(weft__cpus_has(&set, i), CPU_ISSET(i, &theirs) != 0);
    ASSERT_EQ(weft__cpus_count(&set), CPU_COUNT(&theirs));

    uint32_t last = CPU_SETSIZE;
    while (!CPU_ISSET(--last, &theirs))
        continue;
    weft__cpus_add(&one, last);
    ASSERT_OK(weft__cpu_affinity_set(0, &one));
    ASSERT_OK(sched_getaffinity(0, sizeof(theirs), &theirs));
    ASSERT(CPU_ISSET(last, &theirs));
    ASSERT_EQ(CPU_COUNT(&theirs), 1);
    ASSERT_EQ(weft__cpu_affinity_set(0, &none), -EINVAL);
    ASSERT_EQ(weft__cpu_affinity_get(0x7fffffff, &set), -ESRCH);
}

#if defined(WEFT_FAULTS)

/* Fail the nth open, read or allocation, for every n until none fails: each is an error or no
 * limit, and leaks nothing. */
static void fails_cleanly(enum weft__fault_kind kind, int error, bool known)
{
    for (uint32_t nth = 1;; nth++) {
        uint32_t milli = 7;
        weft__fault_arm(kind, nth, 1, error);
        int r = weft__cpu_quota_at(root, &milli);
        if (weft__fault_calls(kind) < nth) {
            ASSERT_OK(r);
            ASSERT_EQ(milli, 1500);
            ASSERT_GE(nth, 4);
            break;
        }
        if (!known) ASSERT_EQ(r, error);
        ASSERT_EQ(milli == 7, r < 0);
    }
    weft__fault_reset();
}

TEST(cpu_quota_fails_cleanly_everywhere)
{
    root_open();
    plant("proc/self/cgroup", "4:cpu,cpuacct:/a/b\n0::/a/b\n");
    plant("proc/self/mountinfo", V2_MOUNT V1_MOUNT);
    plant("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    plant("sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
    plant(V1_DIR "a/b/cpu.cfs_quota_us", "900000\n");
    plant(V1_DIR "a/b/cpu.cfs_period_us", "100000\n");
    fails_cleanly(WEFT__FAULT_ALLOC, -ENOMEM, false);
    fails_cleanly(WEFT__FAULT_OPEN, -EMFILE, false);
    fails_cleanly(WEFT__FAULT_READ, -EIO, false);
    fails_cleanly(WEFT__FAULT_OPEN, -EACCES, true);
    root_close();
}

TEST(cpu_affinity_fails_when_told)
{
    struct weft__cpus set = {0};
    struct weft__cpu_limits limits;

    weft__fault_arm(WEFT__FAULT_AFFINITY, 1, 3, -EPERM);
    ASSERT_EQ(weft__cpu_affinity_get(0, &set), -EPERM);
    ASSERT_EQ(weft__cpu_affinity_set(0, &set), -EPERM);
    weft__cpu_limits(&limits); /* asks the C library instead */
    ASSERT_EQ(limits.affinity_count, sysconf(_SC_NPROCESSORS_ONLN));
}

#endif
