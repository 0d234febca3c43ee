/* SPDX-License-Identifier: MIT
 *
 * ring - the mapping, and the two ends of two queues.
 */
#include "sys/ring.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/futex.h"

#include <errno.h>
#include <linux/time_types.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup    425
#define SYS_io_uring_enter    426
#define SYS_io_uring_register 427
#endif

/* Of newer kernels than the headers: a place lets go of its file at once, and takes no memory to do so (6.13, which nothing tells; the flag is of 6.14), where it took up to a second;
 * a sleeper in the ring does not count as one that waits for a disk. */
enum { FEAT_RW_ATTR = 1 << 16, FEAT_NO_IOWAIT = 1 << 17, ENTER_NO_IOWAIT = 1 << 7 };
/* IORING_REGISTER_IOWQ_MAX_WORKERS, which is younger than some headers. */
#define REGISTER_MAX_WORKERS 19

static const uint32_t wanted_flags =
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL;

/* ---- open, close ------------------------------------------------------------------------------- */

static int ring_setup(uint32_t entries, uint32_t answers, uint32_t flags, struct io_uring_params *params)
{
    int r = weft__fault(WEFT__FAULT_URING_SETUP);
    if (r < 0) return r;
    *params = (struct io_uring_params){.flags = flags | IORING_SETUP_CQSIZE, .cq_entries = answers};
    long fd = syscall(SYS_io_uring_setup, entries, params);
    return fd < 0 ? -errno : weft__fd_beyond_standard((int)fd);
}

static int ring_map(int fd, size_t bytes, off_t what, void **into)
{
    int r = weft__fault(WEFT__FAULT_MMAP);
    if (r < 0) return r;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
    if (at == MAP_FAILED) return -errno;
    *into = at;
    return 0;
}

static size_t max_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void *at(void *base, uint32_t offset)
{
    return (char *)base + offset;
}

/* The array between tail and entries stays as it is from now on: place i is entry i. */
static void queues_find(struct weft__ring *ring, const struct io_uring_params *p)
{
    uint32_t *array = at(ring->queues, p->sq_off.array);

    ring->sq_head = at(ring->queues, p->sq_off.head);
    ring->sq_tail = at(ring->queues, p->sq_off.tail);
    ring->sq_flags = at(ring->queues, p->sq_off.flags);
    ring->sq_entries = p->sq_entries;
    ring->sq_mask = p->sq_entries - 1;
    ring->cq_head = at(ring->queues, p->cq_off.head);
    ring->cq_tail = at(ring->queues, p->cq_off.tail);
    ring->cqes = at(ring->queues, p->cq_off.cqes);
    ring->cq_mask = p->cq_entries - 1;
    for (uint32_t i = 0; i < p->sq_entries; i++)
        array[i] = i;
}

static int queues_map(struct weft__ring *ring, const struct io_uring_params *p)
{
    size_t sq_bytes = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t cq_bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    void *sqes = NULL; /* gcc does not see that a map without an error gives one */

    ring->queues_bytes = max_of(sq_bytes, cq_bytes);
    ring->sqes_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    int r = ring_map(ring->fd, ring->queues_bytes, IORING_OFF_SQ_RING, &ring->queues);
    if (r < 0) return r;
    r = ring_map(ring->fd, ring->sqes_bytes, IORING_OFF_SQES, &sqes);
    if (r < 0) {
        (void)munmap(ring->queues, ring->queues_bytes);
        return r;
    }
    ring->sqes = sqes;
    queues_find(ring, p);
    return 0;
}

int weft__ring_open(struct weft__ring *ring, uint32_t entries)
{
    return weft__ring_open_wide(ring, entries, 2 * entries);
}

int weft__ring_open_wide(struct weft__ring *ring, uint32_t entries, uint32_t places)
{
    const uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP;
    struct io_uring_params params;

    *ring = (struct weft__ring){.fd = -1};
    int fd = ring_setup(entries, places, wanted_flags, &params);
    ring->coop = fd >= 0;
    if (fd == -EINVAL) fd = ring_setup(entries, places, 0, &params); /* before 5.19 */
    if (fd < 0) return fd;
    ring->fd = fd;
    ring->features = params.features;
    int r = (params.features & needed) == needed ? queues_map(ring, &params) : -ENOSYS;
    if (r < 0) {
        weft__fd_close(fd);
        ring->fd = -1;
    }
    return r;
}

void weft__ring_close(struct weft__ring *ring)
{
    if (ring->fd < 0) return;
    (void)munmap(ring->sqes, ring->sqes_bytes); /* whole mappings: cannot fail */
    (void)munmap(ring->queues, ring->queues_bytes);
    weft__fd_close(ring->fd);
    ring->fd = -1;
}

int weft__ring_probe(const struct weft__ring *ring, uint8_t opcode)
{
    enum { OPS = 256 };
    int fault = weft__fault(WEFT__FAULT_URING_PROBE);
    if (fault < 0) return fault;
    struct io_uring_probe *probe =
        weft__alloc(sizeof(*probe) + OPS * sizeof(struct io_uring_probe_op));
    if (!probe) return -ENOMEM;
    memset(probe, 0, sizeof(*probe) + OPS * sizeof(struct io_uring_probe_op));
    long r = syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_PROBE, probe, OPS);
    int answer = r < 0 ? -errno : 0;
    if (answer == 0 && !(probe->ops[opcode].flags & IO_URING_OP_SUPPORTED)) answer = -EOPNOTSUPP;
    weft__free(probe);
    return answer;
}

int weft__ring_let_work(struct weft__ring *ring, uint32_t count)
{
    uint32_t most[2] = {count, count}; /* on files and on all else; the kernel writes what they were */
    long r = syscall(SYS_io_uring_register, ring->fd, REGISTER_MAX_WORKERS, most, 2);
    return r < 0 ? -errno : 0;
}

int weft__ring_table_open(const struct weft__ring *ring, uint32_t most)
{
    struct rlimit limit;
    int fault = weft__fault(WEFT__FAULT_URING_TABLE);
    if (fault < 0) return fault;
    if (!(ring->features & FEAT_RW_ATTR)) return -EOPNOTSUPP;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < most)
        most = (uint32_t)limit.rlim_cur; /* it refuses more */
    struct io_uring_rsrc_register table = {.nr = most, .flags = IORING_RSRC_REGISTER_SPARSE};
    long r = syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES2, &table, sizeof(table));
    return r < 0 ? -errno : (int)most;
}

void weft__ring_table_close(const struct weft__ring *ring)
{
    (void)syscall(SYS_io_uring_register, ring->fd, IORING_UNREGISTER_FILES, NULL, 0);
}

/* ---- requests ----------------------------------------------------------------------------------- */

/* Up to where the kernel has read. */
static uint32_t sq_taken(const struct weft__ring *ring)
{
    return load_acquire(ring->sq_head); /* [ring-sq] with the kernel: it has copied what lies before */
}

struct io_uring_sqe *weft__ring_sqe(struct weft__ring *ring)
{
    if (ring->written - sq_taken(ring) == ring->sq_entries) return NULL;
    struct io_uring_sqe *sqe = &ring->sqes[ring->written++ & ring->sq_mask];
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

uint32_t weft__ring_unsubmitted(const struct weft__ring *ring)
{
    return ring->written - sq_taken(ring);
}

static int ring_enter(const struct weft__ring *ring, uint32_t count, uint32_t flags)
{
    int r = weft__fault(WEFT__FAULT_URING_ENTER);
    if (r < 0) return r;
    long n = syscall(SYS_io_uring_enter, ring->fd, count, 0, flags, NULL, (size_t)0);
    return n < 0 ? -errno : (int)n;
}

int weft__ring_submit(struct weft__ring *ring)
{
    store_release(ring->sq_tail, ring->written); /* [ring-sq] with the kernel: the entries are written */
    uint32_t count = weft__ring_unsubmitted(ring);
    return count ? ring_enter(ring, count, 0) : 0;
}

const struct io_uring_sqe *weft__ring_withdraw(struct weft__ring *ring)
{
    if (weft__ring_unsubmitted(ring) == 0) return NULL;
    ring->written--;
    store_relaxed(ring->sq_tail, ring->written); /* relaxed: nobody submits now, and the kernel looks only then */
    return &ring->sqes[ring->written & ring->sq_mask];
}

/* ---- answers -------------------------------------------------------------------------------------- */

/* The kernel keeps answers that have no place, or has some to post that it did not interrupt anybody for. */
static bool kernel_holds_some(const struct weft__ring *ring)
{
    /* relaxed: whoever misses it looks again; the ring's fd is readable meanwhile */
    return load_relaxed(ring->sq_flags) & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN);
}

static uint32_t cq_posted(const struct weft__ring *ring)
{
    return load_acquire(ring->cq_tail); /* [ring-cq] with the kernel: the answers are written */
}

bool weft__ring_due(const struct weft__ring *ring)
{
    /* relaxed: a hint */
    return cq_posted(ring) != load_relaxed(ring->cq_head) || kernel_holds_some(ring);
}

bool weft__ring_has(const struct weft__ring *ring)
{
    /* relaxed, both: hints */
    return cq_posted(ring) != load_relaxed(ring->cq_head) || (load_relaxed(ring->sq_flags) & IORING_SQ_CQ_OVERFLOW);
}

uint32_t weft__ring_left(const struct weft__ring *ring)
{
    return cq_posted(ring) - load_relaxed(ring->cq_head); /* relaxed: ours, or a hint */
}

static uint32_t reap_posted(struct weft__ring *ring, struct weft__ring_done *into, uint32_t max)
{
    uint32_t head = load_relaxed(ring->cq_head); /* relaxed: ours */
    uint32_t ready = cq_posted(ring) - head;
    uint32_t n = ready < max ? ready : max;

    for (uint32_t i = 0; i < n; i++) {
        const struct io_uring_cqe *cqe = &ring->cqes[(head + i) & ring->cq_mask];
        into[i] = (struct weft__ring_done){cqe->user_data, cqe->res, cqe->flags};
    }
    store_release(ring->cq_head, head + n); /* [ring-cq] with the kernel: they are copied */
    return n;
}

uint32_t weft__ring_reap(struct weft__ring *ring, struct weft__ring_done *into, uint32_t max)
{
    uint32_t n = reap_posted(ring, into, max);
    if (n == max || !kernel_holds_some(ring)) return n;
    (void)ring_enter(ring, 0, IORING_ENTER_GETEVENTS); /* failing, the flag stays for the next reap */
    return n + reap_posted(ring, into + n, max - n);
}

int weft__ring_wait(const struct weft__ring *ring, int64_t timeout_ns)
{
    struct __kernel_timespec time = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    struct io_uring_getevents_arg arg = {.ts = timeout_ns == WEFT__NEVER ? 0 : (uintptr_t)&time};
    uint32_t flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    int r = weft__fault(WEFT__FAULT_URING_ENTER);
    if (r == 0) {
        if (ring->features & FEAT_NO_IOWAIT) flags |= ENTER_NO_IOWAIT;
        long n = syscall(SYS_io_uring_enter, ring->fd, 0, 1, flags, &arg, sizeof(arg));
        r = n < 0 ? -errno : 0;
    }
    return r == -EBADR || r == -EINVAL ? r : 0; /* all else: look, and wait again */
}
