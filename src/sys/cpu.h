/* SPDX-License-Identifier: MIT
 *
 * cpu - how many CPUs this process may use: by affinity, and by the CPU quota of its control group
 * and all groups above it.
 *
 *     usable = max(1, min(CPUs in the affinity mask, tightest quota / period rounded up))
 * A quota is looked for in every ancestor that is visible: a pod or a slice with a limit of two
 * holds a container without one to two. Both cgroup versions are read, also side by side; where the
 * group lies comes from /proc/self/cgroup and /proc/self/mountinfo, which agree in a container with
 * and without a cgroup namespace. What is absent or makes no sense is no limit.
 * Threads: any. Blocks: on /proc and /sys alone. Allocates while it runs, keeps nothing.
 * Rejected: sysconf(_SC_NPROCESSORS_ONLN) (knows neither), reading the process's own group alone
 * (misses the tighter parent).
 */
#ifndef WEFT_SYS_CPU_H
#define WEFT_SYS_CPU_H

#include "base/assert.h"
#include "limits.h"

#include <stdint.h>
#include <sys/types.h>

/* A set of CPUs: bit i % 64 of word i / 64. The layout is the kernel's. */
struct weft__cpus {
    uint64_t word[WEFT__CPUS_MAX / 64];
};

static inline void weft__cpus_add(struct weft__cpus *set, uint32_t cpu)
{
    weft_assert(cpu < WEFT__CPUS_MAX);
    set->word[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static inline bool weft__cpus_has(const struct weft__cpus *set, uint32_t cpu)
{
    weft_assert(cpu < WEFT__CPUS_MAX);
    return set->word[cpu / 64] >> cpu % 64 & 1;
}

uint32_t weft__cpus_count(const struct weft__cpus *set);

/* The CPUs that thread `tid` (0: the calling one) may run on. Blocks: no. Returns 0; -ESRCH;
 * -EINVAL on a machine with more CPUs than the set can name. */
int weft__cpu_affinity_get(pid_t tid, struct weft__cpus *into);

/* Keep thread `tid` (0: the calling one) on these CPUs. Blocks: until it has moved. Returns 0;
 * -EINVAL if none of them may be used; -ESRCH; -EPERM. */
int weft__cpu_affinity_set(pid_t tid, const struct weft__cpus *set);

/* What bounds the number of CPUs, and the bound. */
struct weft__cpu_limits {
    uint32_t affinity_count; /* CPUs in the mask; at least 1 */
    uint32_t quota_milli;    /* thousandths of a CPU, of the tightest group; 0: no quota */
    int quota_error;         /* why it could not be read, with quota_milli 0; 0: it could */
    uint32_t usable_count;   /* what follows from both; at least 1 */
};

/* The tightest quota, in thousandths of a CPU, rounded up; 0 when there is none. `root` stands
 * before every path that is read: "" for the real files.
 * Returns 0; -ENOENT or -EACCES when /proc cannot be read; -ENOMEM; -EMFILE; -ENFILE; -EIO. */
int weft__cpu_quota_at(const char *root, uint32_t *into);

/* Both limits, given the affinity. Cannot fail: a quota that cannot be read is none, with the
 * reason beside it. */
void weft__cpu_limits_at(const char *root, uint32_t affinity_count, struct weft__cpu_limits *into);

/* Both limits of the calling thread and this process, now. Cannot fail. */
void weft__cpu_limits(struct weft__cpu_limits *into);

#endif
