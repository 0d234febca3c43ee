/* SPDX-License-Identifier: MIT
 *
 * probe - what this kernel can do for us, found out by trying, in one struct that can be printed.
 *
 * A feature is 0 where it is there, else the negative errno that says why not: containers filter
 * calls that the kernel's version promises, so versions are printed and never compared.
 * Threads: any. The first weft__probe makes a dozen syscalls (about 100 us, most of it a ring of
 * io_uring); it leaves nothing open.
 */
#ifndef WEFT_SYS_PROBE_H
#define WEFT_SYS_PROBE_H

#include "sys/cpu.h"

#include <stddef.h>
#include <stdint.h>

enum weft__probe_thp {
    WEFT__THP_UNKNOWN, /* the kernel has none, or hides it */
    WEFT__THP_NEVER,
    WEFT__THP_MADVISE,
    WEFT__THP_ALWAYS,
};

struct weft__probe {
    char release[65]; /* uname -r */
    struct weft__cpu_limits cpu;
    size_t page_bytes;
    enum weft__probe_thp thp;
    int guard; /* MADV_GUARD_INSTALL: 0 or why not, as all that follow */
    int epoll_pwait2;
    int io_uring;               /* a ring of two entries could be set up */
    uint32_t io_uring_features; /* IORING_FEAT_*, if it could */
    int io_uring_disabled;      /* the sysctl of that name: 0, 1, 2; -1: there is none */
    int membarrier;             /* private expedited */
    int peek;                   /* process_vm_readv on ourselves */
    int pidfd_open;
};

/* The answers for this process, found out by the first call and constant from then on. Blocks:
 * only while another thread is finding out. */
const struct weft__probe *weft__probe(void);

/* Find out afresh. For tests, and for those who want the CPU limits as they are now. Cannot
 * fail: what fails is an answer. */
void weft__probe_run(struct weft__probe *into);

/* One feature a line, "io_uring          no (EPERM: not permitted; kernel.io_uring_disabled is
 * 2)", into the caller's buffer; cut to fit, always terminated. Returns how many bytes the whole
 * text has, without the NUL: 2 KiB are always enough. */
size_t weft__probe_text(const struct weft__probe *p, char *into, size_t bytes);

#endif
