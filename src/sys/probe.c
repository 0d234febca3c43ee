/* SPDX-License-Identifier: MIT
 *
 * probe - one trial per feature.
 */
#include "sys/probe.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/err.h"
#include "base/fault.h"
#include "sys/epoll.h"
#include "sys/fd.h"
#include "sys/mem.h"
#include "sys/peek.h"
#include "sys/slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

/* ---- trials ---------------------------------------------------------------------------------- */

static int try_io_uring(uint32_t *features)
{
    struct io_uring_params params = {0};
    int r = weft__fault(WEFT__FAULT_URING_SETUP);
    if (r < 0) return r;
    long fd = syscall(SYS_io_uring_setup, 2, &params);
    if (fd < 0) return -errno;
    *features = params.features;
    weft__fd_close((int)fd);
    return 0;
}

/* Asks, and does not register: that would change the process. */
static int try_membarrier(void)
{
    int r = weft__fault(WEFT__FAULT_MEMBARRIER);
    if (r < 0) return r;
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (commands < 0) return -errno;
    return commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED ? 0 : -EINVAL;
}

static int try_peek(void)
{
    int there = 1;
    int seen;
    return weft__peek(&there, &seen, sizeof(seen));
}

static int try_pidfd_open(void)
{
    int r = weft__fault(WEFT__FAULT_PIDFD);
    if (r < 0) return r;
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0) return -errno;
    weft__fd_close((int)fd);
    return 0;
}

static int read_io_uring_disabled(void)
{
    char *text;
    if (weft__slurp(AT_FDCWD, "/proc/sys/kernel/io_uring_disabled", &text) < 0) return -1;
    int value = text[0] >= '0' && text[0] <= '9' ? text[0] - '0' : -1;
    weft__free(text);
    return value;
}

/* "always [madvise] never": the one in brackets holds. */
static enum weft__probe_thp read_thp(void)
{
    char *text;
    enum weft__probe_thp state = WEFT__THP_UNKNOWN;
    int r = weft__slurp(AT_FDCWD, "/sys/kernel/mm/transparent_hugepage/enabled", &text);

    if (r < 0) return state;
    if (strstr(text, "[never]")) state = WEFT__THP_NEVER;
    if (strstr(text, "[madvise]")) state = WEFT__THP_MADVISE;
    if (strstr(text, "[always]")) state = WEFT__THP_ALWAYS;
    weft__free(text);
    return state;
}

void weft__probe_run(struct weft__probe *into)
{
    struct utsname names;

    *into = (struct weft__probe){.page_bytes = weft__mem_page_bytes()};
    if (uname(&names) == 0) snprintf(into->release, sizeof(into->release), "%s", names.release);
    weft__cpu_limits(&into->cpu);
    into->thp = read_thp();
    into->guard = weft__mem_guard_probe();
    into->epoll_pwait2 = weft__epoll_probe_pwait2();
    into->io_uring = try_io_uring(&into->io_uring_features);
    into->io_uring_disabled = read_io_uring_disabled();
    into->membarrier = try_membarrier();
    into->peek = try_peek();
    into->pidfd_open = try_pidfd_open();
}

static struct weft__probe answers;
static pthread_once_t answers_once = PTHREAD_ONCE_INIT;

static void find_answers(void)
{
    weft__probe_run(&answers);
}

const struct weft__probe *weft__probe(void)
{
    pthread_once(&answers_once, find_answers);
    return &answers;
}

/* ---- text ------------------------------------------------------------------------------------ */

struct page {
    char *into;
    size_t bytes;
    size_t used; /* as if there were room */
};

__attribute__((format(printf, 2, 3))) static void put(struct page *p, const char *format, ...)
{
    va_list args;
    size_t left = p->used < p->bytes ? p->bytes - p->used : 0;

    va_start(args, format);
    int n = vsnprintf(left ? p->into + p->used : NULL, left, format, args);
    va_end(args);
    weft_assert(n >= 0);
    p->used += (size_t)n;
}

static void put_feature(struct page *p, const char *name, int error, const char *more)
{
    char why[WEFT__ERR_TEXT_BYTES];

    if (error == 0) {
        put(p, "%-18syes\n", name);
    } else {
        put(p, "%-18sno (%s%s)\n", name, weft__err_format(error, why, sizeof(why)), more);
    }
}

static void put_cpus(struct page *p, const struct weft__cpu_limits *c)
{
    char why[WEFT__ERR_TEXT_BYTES];

    put(p, "%-18s%u (affinity %u, ", "cpus", c->usable_count, c->affinity_count);
    if (c->quota_error < 0) {
        put(p, "quota unknown: %s)\n", weft__err_format(c->quota_error, why, sizeof(why)));
    } else if (c->quota_milli == 0) {
        put(p, "no quota)\n");
    } else {
        put(p, "quota %u.%03u)\n", c->quota_milli / 1000, c->quota_milli % 1000);
    }
}

size_t weft__probe_text(const struct weft__probe *probe, char *into, size_t bytes)
{
    static const char *const thp[] = {"unknown", "never", "madvise", "always"};
    struct page p = {.into = into, .bytes = bytes};
    char sysctl[48] = "";

    if (probe->io_uring_disabled >= 0) {
        snprintf(sysctl, sizeof(sysctl), "; kernel.io_uring_disabled is %d",
                 probe->io_uring_disabled);
    }
    put(&p, "%-18s%s\n", "kernel", probe->release);
    put_cpus(&p, &probe->cpu);
    put(&p, "%-18s%zu\n", "page", probe->page_bytes);
    put(&p, "%-18s%s\n", "huge pages", thp[probe->thp]);
    put_feature(&p, "guard", probe->guard, "");
    put_feature(&p, "epoll_pwait2", probe->epoll_pwait2, "");
    put_feature(&p, "io_uring", probe->io_uring, sysctl);
    put_feature(&p, "membarrier", probe->membarrier, "");
    put_feature(&p, "process_vm_readv", probe->peek, "");
    put_feature(&p, "pidfd_open", probe->pidfd_open, "");
    return p.used;
}
