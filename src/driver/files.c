/* SPDX-License-Identifier: MIT
 *
 * files - asking, fetching, and the life of a ring; the idea is in files.h.
 */
#include "driver/files.h"

#include "base/alloc.h"
#include "sys/clock.h"
#include "sys/futex.h"

#include <stdio.h>

/* Of a cancel's own answer: it says nothing that its operation's does not. */
#define CANCEL_TOKEN UINT64_C(0)

/* ---- asking -------------------------------------------------------------------------------------- */

/* Holds: files->lock. One entry was written. False: the kernel does not take it now, and it was taken back. */
static bool hand_over(struct weft__files *files)
{
    int r;
    do {
        r = weft__ring_submit(&files->ring);
    } while (r == -EINTR);
    if (weft__ring_unsubmitted(&files->ring) == 0) {
        files->due++;
        return true;
    }
    (void)weft__ring_withdraw(&files->ring);
    return false;
}

/* Holds: files->lock. */
static bool ask(struct weft__files *files, struct weft__fileop *op)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(&files->ring);
    weft_assert(sqe); /* each was handed over, or taken back */
    weft__file_fill(op->req, op->room, sqe);
    sqe->user_data = (uintptr_t)op;
    return hand_over(files);
}

/* Holds: files->lock. */
static bool ask_cancel(struct weft__files *files, struct weft__fileop *op)
{
    struct io_uring_sqe *sqe = weft__ring_sqe(&files->ring);
    weft_assert(sqe);
    sqe->opcode = IORING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->addr = (uintptr_t)op;
    sqe->user_data = CANCEL_TOKEN;
    return hand_over(files);
}

void weft__files_cancel(struct weft__fileop *op)
{
    struct weft__files *files = op->files;
    weft__lock_assert_held(&files->lock);
    if (!ask_cancel(files, op)) weft__list_push_back(&files->to_cancel, &op->link);
}

/* Holds: files->lock. */
static void retry_cancels(struct weft__files *files)
{
    struct weft__link *link;
    while ((link = weft__list_first(&files->to_cancel))) {
        if (!ask_cancel(files, weft__container_of(link, struct weft__fileop, link))) return;
        weft__list_remove(link);
    }
}

/* ---- answers --------------------------------------------------------------------------------------- */

/* Done once the lock is dropped. */
struct aftermath {
    struct weft__wake_chain woken;
    struct weft__link late; /* operations that were given up */
    uint32_t ended;
};

/* Interrupted, or cancelled with the thread that had asked, though nobody told it to stop? */
static bool goes_on(const struct weft__fileop *op, int64_t result)
{
    return !op->stopping && (result == -ECANCELED || result == -EINTR);
}

/* Holds: files->lock. */
static void finish(struct weft__files *files, struct weft__fileop *op, int64_t ret,
                   struct aftermath *after)
{
    if (weft__link_linked(&op->link)) weft__list_remove(&op->link);
    files->running--;
    after->ended++;
    own_add(&files->done, 1);
    if (op->abandoned) {
        op->ret = ret;
        own_add(&files->late, 1);
        weft__list_push_back(&after->late, &op->link);
        return;
    }
    weft__fileop_finish(op, ret, &after->woken); /* it may be gone now */
}

/* Holds: files->lock. */
static void answered(struct weft__files *files, const struct weft__ring_done *done,
                     struct aftermath *after)
{
    struct weft__fileop *op = (struct weft__fileop *)(uintptr_t)done->data;

    weft_assert(files->due > 0);
    files->due--;
    if (done->data == CANCEL_TOKEN) return;
    int64_t result = weft__file_answer(done->result);
    if (!goes_on(op, result)) {
        finish(files, op, result, after);
    } else if (!ask(files, op)) {
        finish(files, op, -EAGAIN, after); /* who awaits it goes the other way */
    }
}

/* Holds: files->lock. */
static void fetch(struct weft__files *files, struct aftermath *after)
{
    struct weft__ring_done done[WEFT__FILES_BATCH];
    uint32_t count;

    do {
        count = weft__ring_reap(&files->ring, done, WEFT__FILES_BATCH);
        for (uint32_t i = 0; i < count; i++)
            answered(files, &done[i], after);
    } while (count == WEFT__FILES_BATCH);
    retry_cancels(files);
}

/* Holds: no lock. The count last: until then the runtime has something under way. */
static void settle(struct weft__files *files, struct aftermath *after)
{
    struct weft__link *link;
    weft__wake_chain_push(&after->woken, &weft__sched);
    while ((link = weft__list_pop_front(&after->late))) {
        struct weft__fileop *op = weft__container_of(link, struct weft__fileop, link);
        op->dispose(op, op->ret);
    }
    weft__port_count_out(files->port, after->ended);
}

static void aftermath_init(struct aftermath *after)
{
    after->woken = (struct weft__wake_chain)WEFT__WAKE_CHAIN_INIT;
    weft__link_init(&after->late);
    after->ended = 0;
}

void weft__files_reap(struct weft__files *files)
{
    struct aftermath after;
    aftermath_init(&after);
    weft__lock_take(&files->lock);
    if (files->ring.fd >= 0) fetch(files, &after);
    weft__lock_drop(&files->lock);
    settle(files, &after);
}

/* ---- an operation begins ----------------------------------------------------------------------------- */

bool weft__files_know(const struct weft__files *files, const struct weft__file_req *req)
{
    return files->known >> req->op & 1 && weft__file_opcode(req) >= 0;
}

static void op_init(struct weft__files *files, struct weft__fileop *op)
{
    weft__link_init(&op->link);
    op->files = files;
    op->waker = weft__waker_none();
    op->ret = 0;
    op->stopping = false;
    op->abandoned = false;
    store_relaxed(&op->state, WEFT__FILEOP_ASKED); /* relaxed: published by the lock */
}

/* Without a waker for the look at what was answered on the spot: this task runs, and needs none. */
bool weft__files_begin(struct weft__files *files, struct weft__fileop *op, struct weft_waker waker)
{
    struct aftermath after;
    aftermath_init(&after);
    op_init(files, op);
    weft__port_count_in(files->port);
    weft__lock_take(&files->lock);
    bool taken = files->due < WEFT__FILES_DEPTH && ask(files, op);
    if (taken) {
        files->running++;
        if (weft__ring_due(&files->ring)) fetch(files, &after);
        /* relaxed: under the lock */
        if (load_relaxed(&op->state) != WEFT__FILEOP_DONE) op->waker = waker;
    } else {
        after.ended++;
    }
    weft__lock_drop(&files->lock);
    settle(files, &after);
    return taken;
}

/* ---- the ring as a waiter ------------------------------------------------------------------------------ */

/* It has its turn, or begins: fetches, and waits again. From the moment that it waits another thread may be in here. */
static void listen(struct weft__files *files)
{
    const uint64_t bits = weft__ready_bits(WEFT__SIDE_READ);
    struct weft__fdslot *slot = files->slot;
    uint64_t seen;

    do {
        seen = weft__fdslot_look(slot);
        if (seen & WEFT__READY_OVER) return;
        weft__files_reap(files);
        weft__fdslot_clear(slot, seen, bits);
    } while (!weft__fdslot_wait(slot, WEFT__SIDE_READ, bits, NULL, &files->waiter,
                                weft__waker_of_foreign(&files->foreign)));
    weft__driver_arm(slot, WEFT__SIDE_READ, bits);
}

static void wake(struct weft__foreign *foreign)
{
    struct weft__files *files = weft__container_of(foreign, struct weft__files, foreign);
    if (weft__fdslot_has_turn(files->slot, &files->waiter)) listen(files);
}

/* Its memory is the port's. */
static void nothing(struct weft__foreign *foreign)
{
    (void)foreign;
}

static const struct weft__foreign_ops wakes = {.wake = wake, .free = nothing};

/* ---- opening --------------------------------------------------------------------------------------------- */

/* One request of each kind that a ring might do. */
static uint64_t ask_what_it_knows(const struct weft__ring *ring)
{
    uint64_t known = 0;
    for (int op = WEFT__FILE_OPEN; op <= WEFT__FILE_COPY; op++) {
        struct weft__file_req req = {.op = (enum weft__file_op)op};
        int opcode = weft__file_opcode(&req);
        if (opcode >= 0 && weft__ring_probe(ring, (uint8_t)opcode) == 0) known |= UINT64_C(1) << op;
    }
    return known;
}

/* A kernel that does not know this one (before 5.15) does files by threads that are not the process's own, and that no cancel reaches. */
static int open_ring(struct weft__ring *ring)
{
    int r = weft__ring_open(ring, WEFT__FILES_DEPTH);
    if (r < 0) return r;
    if (weft__ring_let_work(ring, WEFT__FILES_DEPTH) == 0) return 0;
    weft__ring_close(ring);
    return -ENOSYS;
}

static int open_files(struct weft__port *port, struct weft__files *files)
{
    int r = open_ring(&files->ring);
    if (r < 0) return r;
    weft__lock_init(&files->lock, WEFT__RANK_DRIVER);
    weft__link_init(&files->to_cancel);
    weft__waiter_init(&files->waiter);
    weft__foreign_init(&files->foreign, &wakes);
    files->port = port;
    files->known = ask_what_it_knows(&files->ring);
    if (port->driver->turned_by_others) files->known &= ~(UINT64_C(1) << WEFT__FILE_OPEN);
    r = weft__port_watch(port, files->ring.fd, &files->slot);
    if (r < 0) weft__ring_close(&files->ring);
    return r;
}

static struct weft__files *make_files(struct weft__port *port)
{
    struct weft__files *files = weft__alloc_aligned(sizeof(*files), WEFT__CACHE_LINE);
    int r = files ? open_files(port, files) : -ENOMEM;
    if (r < 0) {
        weft__free(files);
        store_relaxed(&port->files_error, r); /* relaxed: a number */
        return NULL;
    }
    store_release(&port->files, files); /* [port-files] with settle, why_not, stats: the ring is there */
    listen(files);
    return files;
}

struct weft__files *weft__port_files(struct weft__port *port)
{
    struct weft__files *files = load_relaxed(&port->files); /* relaxed, both: its worker wrote them */
    if (__builtin_expect(files != NULL, 1)) return files;
    if (!port->driver->files_wanted || load_relaxed(&port->files_error) < 0) return NULL;
    return make_files(port);
}

/* ---- by the driver ------------------------------------------------------------------------------------------ */

static struct weft__files *files_of(const struct weft__port *port)
{
    return load_acquire(&port->files); /* [port-files] with make_files */
}

static uint32_t running(struct weft__files *files)
{
    weft__lock_take(&files->lock);
    uint32_t count = files->running;
    weft__lock_drop(&files->lock);
    return count;
}

static uint32_t reap_all(struct weft__driver *driver)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < driver->port_count; i++) {
        struct weft__files *files = files_of(&driver->ports[i]);
        if (!files) continue;
        weft__files_reap(files);
        left += running(files);
    }
    return left;
}

/* Between two looks it sleeps for as long as a stop does between two sweeps: others may fetch the answers meanwhile, so that no fd tells. */
int weft__files_settle(struct weft__driver *driver, int64_t until_ns)
{
    _Atomic uint32_t nobody = 0;
    uint32_t left;

    for (unsigned round = 0; (left = reap_all(driver)) > 0; round++) {
        int64_t now = weft__clock_now();
        if (now >= until_ns) {
            fprintf(stderr, "weft: %u file operations do not end\n", left);
            return -ETIME;
        }
        (void)weft__futex_wait(&nobody, 0, now + (round < 10 ? 50000 : WEFT__NS_PER_MS));
    }
    return 0;
}

void weft__files_count(const struct weft__driver *driver, uint64_t *done, uint64_t *late)
{
    for (uint32_t i = 0; i < driver->port_count; i++) {
        const struct weft__files *files = files_of(&driver->ports[i]);
        if (!files) continue;
        *done += load_relaxed(&files->done); /* relaxed, both: counts */
        *late += load_relaxed(&files->late);
    }
}

void weft__files_close(struct weft__port *port)
{
    struct weft__files *files = files_of(port);
    if (!files) return;
    weft__lock_take(&files->lock);
    weft_assert(files->running == 0);
    weft__ring_close(&files->ring);
    weft__lock_drop(&files->lock);
}

int weft__files_why_not(const struct weft__driver *driver)
{
    struct weft__ring ring;
    int error = 0;

    if (!driver->files_wanted) return -ENOTSUP;
    for (uint32_t i = 0; i < driver->port_count; i++) {
        if (files_of(&driver->ports[i])) return 0;
        if (error == 0) error = load_relaxed(&driver->ports[i].files_error); /* relaxed: a number */
    }
    if (error == 0) error = open_ring(&ring);
    if (error == 0) weft__ring_close(&ring);
    return error;
}
