/* SPDX-License-Identifier: MIT
 *
 * cpu - affinity masks, and the walk through the control groups.
 *
 * For each mount of a cgroup file system that has the CPU controller, the process's group is found
 * relative to the mount's root, and every directory from the mount point down to the group is asked
 * for its quota. The walk goes down by openat, one name at a time, so that no path is ever too
 * long.
 *
 *     /proc/self/cgroup      4:cpu,cpuacct:/docker/abc            group  /docker/abc
 *     /proc/self/mountinfo   ... /docker /mnt/cpu ... - cgroup    root   /docker  => /mnt/cpu/abc
 */
#include "sys/cpu.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PERIOD_US 100000
#define SANE_US           (UINT64_C(1) << 50) /* 35 years; beyond it the text is no quota */

/* ---- affinity -------------------------------------------------------------------------------- */

uint32_t weft__cpus_count(const struct weft__cpus *set)
{
    uint32_t count = 0;
    for (size_t i = 0; i < WEFT__CPUS_MAX / 64; i++)
        count += weft__popcount(set->word[i]);
    return count;
}

int weft__cpu_affinity_get(pid_t tid, struct weft__cpus *into)
{
    struct weft__cpus set = {0}; /* the kernel writes as many words as it has CPUs for */
    int r = weft__fault(WEFT__FAULT_AFFINITY);
    if (r < 0) return r;
    if (syscall(SYS_sched_getaffinity, tid, sizeof(set), &set) < 0) return -errno;
    *into = set;
    return 0;
}

int weft__cpu_affinity_set(pid_t tid, const struct weft__cpus *set)
{
    int r = weft__fault(WEFT__FAULT_AFFINITY);
    if (r < 0) return r;
    return syscall(SYS_sched_setaffinity, tid, sizeof(*set), set) < 0 ? -errno : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Cut the text at the first `end` and give what comes before; *rest goes on behind it, NULL
 * after the last. */
static char *cut(char **rest, char end)
{
    char *field = *rest;
    if (!field) return NULL;
    char *at = strchr(field, end);
    if (at) *at = '\0';
    *rest = at ? at + 1 : NULL;
    return field;
}

/* "\040" becomes a space, in place: mountinfo writes spaces, tabs, newlines and backslashes so. */
static void unescape(char *text)
{
    char *to = text;
    for (char *from = text; *from; to++) {
        *to = *from++;
        if (*to != '\\' || strspn(from, "01234567") < 3) continue;
        *to = (char)((from[0] - '0') << 6 | (from[1] - '0') << 3 | (from[2] - '0'));
        from += 3;
    }
    *to = '\0';
}

/* Is `word` one of the names in a list with commas between? */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        if (strcspn(at, ",") == length && strncmp(at, word, length) == 0) return true;
    }
    return false;
}

/* A decimal number; false if there is none or it is beyond all sense. *at goes on behind it and
 * the blanks after it. */
static bool take_number(const char **at, uint64_t *into)
{
    const char *first = *at;
    uint64_t n = 0;

    while (**at >= '0' && **at <= '9' && n < SANE_US)
        n = n * 10 + (uint64_t)(*(*at)++ - '0');
    if (*at == first || n >= SANE_US) return false;
    while (**at == ' ' || **at == '\n')
        (*at)++;
    *into = n;
    return true;
}

/* ---- quotas ---------------------------------------------------------------------------------- */

struct walk {
    int root;       /* directory that stands for "/" */
    char *group_v1; /* our group where v1's CPU controller is; NULL: not there */
    char *group_v2; /* our group in the unified hierarchy; NULL: not there */
    uint32_t milli; /* tightest so far; 0: none */
};

static void tighten(struct walk *w, uint64_t quota_us, uint64_t period_us)
{
    if (quota_us == 0 || period_us == 0) return;
    uint64_t milli = weft__div_up(quota_us * 1000, period_us);
    if (milli > UINT32_MAX) return;
    if (w->milli == 0 || milli < w->milli) w->milli = (uint32_t)milli;
}

/* What is not there, or not for us to see, is no limit. Anything else (no memory, no
 * descriptors) leaves the answer unknown. */
static bool absent(int r)
{
    switch (r) {
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
    case -EACCES:
    case -EPERM:
    case -ENODEV:
    case -EOPNOTSUPP:
        return true;
    default:
        return false;
    }
}

/* The one number in a file; 0 if there is none. */
static int read_number(int dir, const char *file, uint64_t *into)
{
    char *text;
    uint64_t n = 0;
    int r = weft__slurp(dir, file, &text);

    *into = 0;
    if (r < 0) return absent(r) ? 0 : r;
    const char *at = text;
    if (take_number(&at, &n)) *into = n;
    weft__free(text);
    return 0;
}

/* v1: "-1" for none, or microseconds; the period is a file of its own. */
static int look_v1(struct walk *w, int dir)
{
    uint64_t quota_us;
    uint64_t period_us;
    int r = read_number(dir, "cpu.cfs_quota_us", &quota_us);

    if (r < 0 || quota_us == 0) return r;
    r = read_number(dir, "cpu.cfs_period_us", &period_us);
    if (r == 0) tighten(w, quota_us, period_us);
    return r;
}

/* v2: "max 100000" or "150000 100000". */
static int look_v2(struct walk *w, int dir)
{
    char *text;
    uint64_t quota_us;
    uint64_t period_us = DEFAULT_PERIOD_US;
    int r = weft__slurp(dir, "cpu.max", &text);

    if (r < 0) return absent(r) ? 0 : r;
    const char *at = text;
    bool whole = take_number(&at, &quota_us) && (*at == '\0' || take_number(&at, &period_us));
    if (whole) tighten(w, quota_us, period_us);
    weft__free(text);
    return 0;
}

static int open_dir(int dir, const char *name)
{
    int r = weft__fault(WEFT__FAULT_OPEN);
    if (r < 0) return r;
    r = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return r < 0 ? -errno : r;
}

/* Open the first name of *path below `dir` and move *path behind it. Takes `dir`. -ENOENT at the
 * end of the path. */
static int step_down(int dir, const char **path)
{
    char name[NAME_MAX + 1];
    int r = -ENOENT;

    while (**path == '/')
        (*path)++;
    size_t length = strcspn(*path, "/");
    if (length > NAME_MAX) r = -ENAMETOOLONG;
    if (length > 0 && length <= NAME_MAX) {
        memcpy(name, *path, length);
        name[length] = '\0';
        *path += length;
        r = open_dir(dir, name);
    }
    weft__fd_close(dir);
    return r;
}

typedef int look_fn(struct walk *w, int dir);

/* Ask every directory from `dir` down along `path`. Takes `dir`. */
static int look_down(struct walk *w, int dir, const char *path, look_fn *look)
{
    while (dir >= 0) {
        int r = look(w, dir);
        if (r < 0) {
            weft__fd_close(dir);
            return r;
        }
        dir = step_down(dir, &path);
    }
    return absent(dir) ? 0 : dir;
}

static bool begins_with_dots(const char *path)
{
    return strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0');
}

static bool only_dots(const char *path)
{
    while (begins_with_dots(path))
        path += 3;
    return *path == '\0';
}

/* The group as seen from a mount whose root is `root`, both absolute: "/a/b/c" from "/a" is
 * "/b/c". A root that is above our namespace shows as "/.."; the way from there to us is hidden,
 * but the mount point itself is an ancestor. NULL when the mount shows another branch. */
static const char *below(const char *root, const char *group)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(root, group, length) == 0 && (group[length] == '/' || group[length] == '\0')) {
        if (!begins_with_dots(group + length)) return group + length;
    }
    return length > 0 && only_dots(root) ? "" : NULL;
}

struct mount {
    char *root;
    char *point;
    char *type;
    char *options; /* of the file system; v1 lists its controllers there */
};

/* "36 35 98:0 /root /point rw,noatime master:1 - type source options"; false for a line of
 * another shape. */
static bool parse_mount(char *line, struct mount *into)
{
    char *tail = strstr(line, " - ");
    if (!tail) return false;
    *tail = '\0';
    tail += 3;
    for (int skip = 0; skip < 3; skip++)
        cut(&line, ' ');
    into->root = cut(&line, ' ');
    into->point = cut(&line, ' ');
    into->type = cut(&tail, ' ');
    cut(&tail, ' ');
    into->options = cut(&tail, ' ');
    if (!into->point || !into->options) return false;
    unescape(into->root);
    unescape(into->point);
    return into->root[0] == '/' && into->point[0] == '/';
}

static int look_mount(struct walk *w, const struct mount *m)
{
    bool v1 = strcmp(m->type, "cgroup") == 0 && list_has(m->options, "cpu");
    bool v2 = strcmp(m->type, "cgroup2") == 0;
    const char *group = v1 ? w->group_v1 : v2 ? w->group_v2 : NULL;
    if (!group) return 0;
    const char *path = below(m->root, group);
    if (!path) return 0;

    const char *point = m->point + strspn(m->point, "/");
    int dir = open_dir(w->root, *point ? point : ".");
    return look_down(w, dir, path, v1 ? look_v1 : look_v2);
}

static int look_mounts(struct walk *w)
{
    char *text;
    int r = weft__slurp(w->root, "proc/self/mountinfo", &text);
    if (r < 0) return r;

    char *rest = text;
    char *line;
    while (r == 0 && (line = cut(&rest, '\n'))) {
        struct mount m;
        if (parse_mount(line, &m)) r = look_mount(w, &m);
    }
    weft__free(text);
    return r;
}

/* "4:cpu,cpuacct:/group", and "0::/group" for v2; the group itself may contain colons. Borrows
 * the text for as long as the walk lasts. */
static void find_groups(struct walk *w, char *text)
{
    char *line;
    while ((line = cut(&text, '\n'))) {
        char *id = cut(&line, ':');
        char *controllers = cut(&line, ':');
        if (!line || line[0] != '/') continue;
        if (controllers[0] == '\0' && strcmp(id, "0") == 0) w->group_v2 = line;
        if (list_has(controllers, "cpu")) w->group_v1 = line;
    }
}

int weft__cpu_quota_at(const char *root, uint32_t *into)
{
    struct walk w = {0};
    char *groups;

    w.root = open_dir(AT_FDCWD, *root ? root : "/");
    if (w.root < 0) return w.root;
    int r = weft__slurp(w.root, "proc/self/cgroup", &groups);
    if (r < 0) goto out_close;
    find_groups(&w, groups);
    r = look_mounts(&w);
    if (r == 0) *into = w.milli;
    weft__free(groups);

out_close:
    weft__fd_close(w.root);
    return r;
}

/* ---- both ------------------------------------------------------------------------------------ */

void weft__cpu_limits_at(const char *root, uint32_t affinity_count, struct weft__cpu_limits *into)
{
    uint32_t milli = 0;
    int r = weft__cpu_quota_at(root, &milli);
    uint32_t affinity = affinity_count ? affinity_count : 1;
    uint32_t granted = milli ? (uint32_t)weft__div_up(milli, 1000) : UINT32_MAX;

    into->affinity_count = affinity;
    into->quota_milli = milli;
    into->quota_error = r;
    into->usable_count = granted < affinity ? granted : affinity;
    weft_assert(into->usable_count >= 1);
}

void weft__cpu_limits(struct weft__cpu_limits *into)
{
    struct weft__cpus mask = {0};
    uint32_t count = 1;

    if (weft__cpu_affinity_get(0, &mask) == 0) {
        count = weft__cpus_count(&mask);
    } else {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (online > 0) count = (uint32_t)online;
    }
    weft__cpu_limits_at("", count, into);
}
