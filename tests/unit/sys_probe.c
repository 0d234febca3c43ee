/* SPDX-License-Identifier: MIT
 *
 * The probe: agrees with the calls themselves, says "no" with the reason when they fail, prints one
 * feature a line, leaves nothing open.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/probe.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static char text[2048];

static const char *text_of(const struct weft__probe *p)
{
    size_t length = weft__probe_text(p, text, sizeof(text));
    ASSERT(length < sizeof(text));
    ASSERT_EQ(length, strlen(text));
    return text;
}

/* The answer of a call that gives a descriptor, and no descriptor. */
static int closed(long fd)
{
    int r = fd < 0 ? -errno : 0;
    if (fd >= 0) close((int)fd);
    return r;
}

static int guard_directly(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(p != MAP_FAILED);
    int r = madvise(p, page, 102) < 0 ? -errno : 0;
    munmap(p, page);
    return r;
}

TEST(probe_agrees_with_the_calls)
{
    const struct weft__probe *p = weft__probe();
    struct io_uring_params params = {0};
    struct utsname names;

    uname(&names);
    ASSERT_STR(p->release, names.release);
    ASSERT_EQ(p->page_bytes, sysconf(_SC_PAGESIZE));
    ASSERT_EQ(p->guard, guard_directly());
    ASSERT_EQ(p->io_uring, closed(syscall(SYS_io_uring_setup, 2, &params)));
    ASSERT_EQ(p->io_uring_features, params.features);
    ASSERT_EQ(p->pidfd_open, closed(syscall(SYS_pidfd_open, getpid(), 0)));
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    ASSERT_EQ(p->membarrier == 0, commands > 0 && commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    ASSERT_GE(p->cpu.usable_count, 1);
}

TEST(probe_is_made_once)
{
    const struct weft__probe *first = weft__probe();
#if defined(WEFT_FAULTS)
    weft__fault_reset();
    ASSERT_PTR(weft__probe(), first);
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_SETUP), 0);
#endif
    ASSERT_PTR(weft__probe(), first);
}

struct asker {
    struct weft__thread thread;
    const struct weft__probe *answer;
    size_t page_bytes;
};

static void ask(void *arg)
{
    struct asker *a = arg;
    a->answer = weft__probe();
    a->page_bytes = a->answer->page_bytes;
}

/* Eight threads ask first, at once: one finds out, all see the whole answer. */
TEST(probe_first_asked_by_many)
{
    struct asker askers[8];
    for (int i = 0; i < 8; i++)
        ASSERT_OK(weft__thread_start(&askers[i].thread, &(struct weft__thread_options){0}, ask,
                                     &askers[i]));
    for (int i = 0; i < 8; i++)
        weft__thread_join(&askers[i].thread);
    for (int i = 0; i < 8; i++) {
        ASSERT_PTR(askers[i].answer, weft__probe());
        ASSERT_EQ(askers[i].page_bytes, sysconf(_SC_PAGESIZE));
    }
#if defined(WEFT_FAULTS)
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_SETUP), 1);
#endif
}

TEST(probe_text_has_one_feature_a_line)
{
    static const char *const features[] = {
        "kernel ",       "cpus ",     "page ",       "huge pages ",       "guard ",
        "epoll_pwait2 ", "io_uring ", "membarrier ", "process_vm_readv ", "pidfd_open "};
    const char *at = text_of(weft__probe());

    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        ASSERT_EQ(strncmp(at, features[i], strlen(features[i])), 0);
        at = strchr(at, '\n');
        ASSERT(at);
        at++;
    }
    ASSERT_EQ(*at, '\0');
}

TEST(probe_text_is_cut_to_fit)
{
    char few[10];
    size_t whole = weft__probe_text(weft__probe(), NULL, 0);
    ASSERT_EQ(weft__probe_text(weft__probe(), few, sizeof(few)), whole);
    ASSERT_STR(few, "kernel   ");
    ASSERT_EQ(strlen(text_of(weft__probe())), whole);
}

TEST(probe_text_says_why_not)
{
    struct weft__probe p = {
        .release = "6.1.0",
        .cpu = {.affinity_count = 8, .quota_milli = 1500, .usable_count = 2},
        .page_bytes = 4096,
        .thp = WEFT__THP_ALWAYS,
        .guard = -EINVAL,
        .io_uring = -EPERM,
        .io_uring_disabled = 2,
        .pidfd_open = -ENOSYS,
    };
    text_of(&p);
    ASSERT(strstr(text, "cpus              2 (affinity 8, quota 1.500)\n"));
    ASSERT(strstr(text, "huge pages        always\n"));
    ASSERT(strstr(text, "guard             no (EINVAL: invalid argument)\n"));
    ASSERT(strstr(text,
                  "io_uring          no (EPERM: not permitted; kernel.io_uring_disabled is 2)\n"));
    ASSERT(strstr(text, "membarrier        yes\n"));
    ASSERT(strstr(text, "pidfd_open        no (ENOSYS: not implemented by the kernel)\n"));
    p.io_uring_disabled = -1;
    p.cpu =
        (struct weft__cpu_limits){.affinity_count = 3, .quota_error = -EACCES, .usable_count = 3};
    text_of(&p);
    ASSERT(
        strstr(text, "cpus              3 (affinity 3, quota unknown: EACCES: access denied)\n"));
    ASSERT(strstr(text, "io_uring          no (EPERM: not permitted)\n"));
}

#if defined(WEFT_FAULTS)

TEST(probe_says_no_with_the_reason)
{
    struct weft__probe p;
    weft__fault_arm(WEFT__FAULT_GUARD, 1, 1, -EINVAL);
    weft__fault_arm(WEFT__FAULT_EPOLL_PWAIT2, 1, 1, -ENOSYS);
    weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, -EPERM);
    weft__fault_arm(WEFT__FAULT_MEMBARRIER, 1, 1, -ENOSYS);
    weft__fault_arm(WEFT__FAULT_PEEK, 1, 1, -EPERM);
    weft__fault_arm(WEFT__FAULT_PIDFD, 1, 1, -ENOSYS);
    weft__probe_run(&p);
    ASSERT_EQ(p.guard, -EINVAL);
    ASSERT_EQ(p.epoll_pwait2, -ENOSYS);
    ASSERT_EQ(p.io_uring, -EPERM);
    ASSERT_EQ(p.io_uring_features, 0);
    ASSERT_EQ(p.membarrier, -ENOSYS);
    ASSERT_EQ(p.peek, -EPERM);
    ASSERT_EQ(p.pidfd_open, -ENOSYS);
    text_of(&p);
    ASSERT(strstr(text, "io_uring          no (EPERM: not permitted"));
}

/* Whatever fails, and be it everything, the probe ends, answers, and leaks nothing. */
TEST(probe_bears_any_failure)
{
    for (int kind = 0; kind < WEFT__FAULT_COUNT; kind++) {
        struct weft__probe p;
        weft__fault_reset();
        weft__fault_arm(kind, 1, UINT32_MAX, -ENOMEM);
        weft__probe_run(&p);
        ASSERT_GE(p.cpu.usable_count, 1);
        text_of(&p);
    }
    for (int kind = 0; kind < WEFT__FAULT_COUNT; kind++)
        weft__fault_arm(kind, 1, UINT32_MAX, -ENOSYS);
    struct weft__probe none;
    weft__probe_run(&none);
    ASSERT_EQ(none.io_uring, -ENOSYS);
    ASSERT_EQ(none.io_uring_disabled, -1);
    ASSERT_EQ(none.thp, WEFT__THP_UNKNOWN);
    ASSERT_GE(none.cpu.usable_count, 1);
}

#endif
