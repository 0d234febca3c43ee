/* SPDX-License-Identifier: MIT
 *
 * Loops that ignore that they were told to stop, over every wait of sync, channels and directories: they let others run all the same. One worker is
 * enough to be frozen by one that does not.
 */
#include "crew.h"
#include "test.h"

#include "task/call.h"

#include <string.h>
#include <weft/weft.h>

typedef WEFT_CHAN(int) ints;
typedef WEFT_BROADCAST(int) news;
typedef WEFT_WATCH(int) state;

static _Atomic bool gate; /* relaxed, both: a flag and a count */
static _Atomic uint32_t told;

/* What is waited for: none of it comes. */
static struct {
    weft_mutex held, is_free;
    weft_cond cond;
    weft_rwlock written;
    weft_sem none;
    weft_event event;
    weft_wg group;
    weft_notify notify;
    weft_barrier two;
    weft_once begun;
    weft_cell cell;
    ints *empty, *full;
    news *news;
    state *state;
    weft_dir *dir;
} of;

union room {
    struct weft_lock lock;
    struct weft_cond_wait cond;
    struct weft_read_lock read;
    struct weft_write_lock write;
    struct weft_sem_acquire sem;
    struct weft_event_wait event;
    struct weft_wg_wait group;
    struct weft_notify_wait notify;
    struct weft_barrier_wait barrier;
    struct weft_once_enter once;
    struct weft_cell_enter cell;
    struct weft_recv recv;
    struct weft_recv_many many;
    struct weft_send send;
    struct weft_reserve reserve;
    struct weft_chan_closed closed;
    struct weft_broadcast_recv heard;
    struct weft_watch_changed changed;
    struct weft_dir_next dir;
};

/* One deaf loop's own. */
struct deaf_one {
    union room room;
    weft_cursor at;
    int message[2];
    void *place;
    weft_dirent entry;
};

typedef weft_future begin_fn(struct deaf_one *d);

#define WAIT(name, ...)                                                                            \
    static weft_future name(struct deaf_one *d)                                                    \
    {                                                                                              \
        (void)d;                                                                                   \
        return weft_arm(__VA_ARGS__);                                                              \
    }

WAIT(lock_held, d->room.lock, weft_lock, &of.held)
WAIT(lock_free, d->room.lock, weft_lock, &of.is_free)
WAIT(cond_wait, d->room.cond, weft_cond_wait, &of.cond, &of.is_free)
WAIT(read_lock, d->room.read, weft_read_lock, &of.written)
WAIT(write_lock, d->room.write, weft_write_lock, &of.written)
WAIT(sem_acquire, d->room.sem, weft_sem_acquire, &of.none, 1)
WAIT(event_wait, d->room.event, weft_event_wait, &of.event)
WAIT(wg_wait, d->room.group, weft_wg_wait, &of.group)
WAIT(notify_wait, d->room.notify, weft_notify_wait, &of.notify)
WAIT(barrier_wait, d->room.barrier, weft_barrier_wait, &of.two)
WAIT(once_enter, d->room.once, weft_once_enter, &of.begun)
WAIT(cell_enter, d->room.cell, weft_cell_enter, &of.cell, &d->place)
WAIT(recv_none, d->room.recv, weft_recv, of.empty, &d->message[0])
WAIT(recv_one, d->room.recv, weft_recv, of.full, &d->message[0])
WAIT(recv_many, d->room.many, weft_recv_many, of.empty, d->message, 2)
WAIT(send_full, d->room.send, weft_send, of.full, &d->message[0])
WAIT(send_empty, d->room.send, weft_send, of.empty, &d->message[0])
WAIT(reserve, d->room.reserve, weft_reserve, of.full)
WAIT(chan_closed, d->room.closed, weft_chan_closed, of.empty)
WAIT(broadcast_recv, d->room.heard, weft_broadcast_recv, of.news, &d->at, &d->message[0])
WAIT(watch_changed, d->room.changed, weft_watch_changed, of.state, &d->at, &d->message[0])
WAIT(dir_next, d->room.dir, weft_dir_next, of.dir, &d->entry)

static const struct {
    const char *name;
    begin_fn *begin;
} waits[] = {
    {"a lock that is held", lock_held},
    {"a lock that is free", lock_free},
    {"a condition", cond_wait},
    {"a read lock", read_lock},
    {"a write lock", write_lock},
    {"a semaphore", sem_acquire},
    {"an event", event_wait},
    {"a wait group", wg_wait},
    {"a notify", notify_wait},
    {"a barrier", barrier_wait},
    {"a once", once_enter},
    {"a cell", cell_enter},
    {"a receive", recv_none},
    {"one that would be", recv_one},
    {"of many", recv_many},
    {"a send", send_full},
    {"one that would be", send_empty},
    {"a place", reserve},
    {"a channel's end", chan_closed},
    {"a broadcast", broadcast_recv},
    {"a watch", watch_changed},
    {"a directory", dir_next},
};

/* ---- the loops ----
 *
 * They begin when they are told to stop: before that some of it would be given to them. */

static int deaf_fiber(int which)
{
    struct deaf_one d = {.message = {0}};
    ASSERT_EQ(weft_event_wait(&of.event), -ECANCELED);
    while (!load_relaxed(&gate)) {
        weft_future f = waits[which].begin(&d);
        ASSERT_OK(weft__run_from(f.poll, f.frame, NULL));
        fetch_add_relaxed(&told, 1);
    }
    return 1;
}

struct deaf_stackless {
    WEFT_FRAME(int);
    int which;
    weft_future future;
    struct deaf_one d;
};
static weft_poll deaf_stackless_poll(void *frame, weft_cx *cx)
{
    struct deaf_stackless *f = frame;
    if (!weft_cx_cancelled(cx)) return WEFT_PENDING; /* the cancel wakes it */
    while (f->future.poll || !load_relaxed(&gate)) {
        if (!f->future.poll) f->future = waits[f->which].begin(&f->d);
        if (f->future.poll(f->future.frame, cx) == WEFT_PENDING) return WEFT_PENDING;
        f->future.poll = NULL;
        fetch_add_relaxed(&told, 1);
    }
    f->ret = 1;
    return WEFT_READY;
}

/* ---- who is let through ---- */

static int opens_the_gate(void)
{
    store_relaxed(&gate, true);
    return 0;
}

/* More of them than workers: they must let the one through that sets them free. */
static void deaf_ones(int which)
{
    enum { COUNT = 3 };
    weft_task *task[2 * COUNT];
    int got;

    store_relaxed(&gate, false);
    store_relaxed(&told, 0);
    for (int i = 0; i < COUNT; i++) {
        task[2 * i] = weft_go(deaf_fiber, which);
        task[2 * i + 1] = weft_spawn(deaf_stackless, .which = which);
    }
    for (int i = 0; i < 2 * COUNT; i++)
        weft_cancel(task[i]);
    while (load_relaxed(&told) < 1000) /* several budgets */
        ASSERT_OK(weft_yield());
    ASSERT_OK(weft_join(weft_go(opens_the_gate), &got));
    for (int i = 0; i < 2 * COUNT; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
}

static void prepare(void)
{
    int message = 1;
    void *place;
    memset(&of, 0, sizeof(of));
    of.written = (weft_rwlock)WEFT_RWLOCK_INIT;
    of.two = (weft_barrier)WEFT_BARRIER_INIT(2);
    of.group = (weft_wg)WEFT_WG_INIT(1);
    ASSERT_OK(weft_lock(&of.held));
    ASSERT_OK(weft_write_lock(&of.written));
    ASSERT_EQ(weft_once_enter(&of.begun), 1);
    ASSERT_EQ(weft_cell_enter(&of.cell, &place), 1);
    ASSERT_OK(weft_chan_new(1, &of.empty));
    ASSERT_OK(weft_chan_new(1, &of.full));
    ASSERT_OK(weft_send(of.full, &message));
    ASSERT_OK(weft_broadcast_new(1, &of.news));
    ASSERT_OK(weft_watch_new(&message, &of.state));
    ASSERT_OK(weft_dir_open("/", &of.dir));
}

static void tidy_up(void)
{
    weft_unlock(&of.held);
    weft_write_unlock(&of.written);
    ASSERT_OK(weft_once_leave(&of.begun, true));
    ASSERT_OK(weft_cell_leave(&of.cell, NULL));
    weft_chan_free(of.empty);
    weft_chan_free(of.full);
    weft_broadcast_free(of.news);
    weft_watch_free(of.state);
    weft_dir_close(of.dir);
}

static int all_of_them(void)
{
    prepare();
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        deaf_ones((int)i);
    tidy_up();
    return 0;
}

static void on_crew(struct crew *crew)
{
    int got = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(all_of_them), &got));
    ASSERT_OK(got);
}

TEST(deaf_loops_over_sync_let_others_run)
{
    crew_each(on_crew);
}
