/* SPDX-License-Identifier: MIT
 *
 * First come, first served, where it is promised: those who wait come one after the other, what they wait for comes one at a time, and they
 * are served as they came. By tasks of both kinds in turn, on every shape of runtime, on a clock that stands.
 */
#include "crew.h"
#include "still.h"
#include "test.h"

#include <weft/weft.h>

typedef WEFT_CHAN(uint64_t) word_chan;

enum { MANY = 12 };

static weft_mutex mutex;
static weft_cond cond;
static weft_rwlock rwlock;
static weft_sem sem;
static weft_notify notify;
static word_chan *chan;
static uint64_t word;
static int order[MANY];    /* numbers of those who were served */
static _Atomic int served; /* relaxed: one at a time, a sleep apart */

union frames {
    struct weft_cond_wait cond;
    struct weft_lock lock;
    struct weft_write_lock write;
    struct weft_sem_acquire sem;
    struct weft_notify_wait notify;
    struct weft_send send;
    struct weft_recv recv;
    struct weft_reserve reserve;
    struct weft_reserve_many reserve_many;
};

struct waits {
    WEFT_FRAME(int);
    int number;
    int stage;
    const struct queue *queue;
    uint64_t word;
    union frames f;
};

struct queue {
    const char *name;
    weft_poll (*poll)(
        struct waits *w,
        weft_cx *cx);    /* begins, goes on, and when it is over gives back what it got */
    void (*block)(void); /* before anybody comes */
    void (*feed)(void);  /* lets the next one go */
};

/* stage 0: not begun */
#define BEGIN(member, ...)                                                                         \
    if (w->stage == 0) {                                                                           \
        w->f.member = (__typeof__(w->f.member)){__VA_ARGS__};                                      \
        w->stage = 1;                                                                              \
    }
#define WAIT(member, fn)                                                                           \
    if (fn##_poll(&w->f.member, cx) == WEFT_PENDING) return WEFT_PENDING;                          \
    ASSERT_GE(w->f.member.ret, 0)

static weft_poll notify_poll(struct waits *w, weft_cx *cx)
{
    BEGIN(notify, .notify = &notify);
    WAIT(notify, weft_notify_wait);
    return WEFT_READY;
}
static void notify_feed(void)
{
    weft_notify_one(&notify);
}

static weft_poll sem_poll(struct waits *w, weft_cx *cx)
{
    BEGIN(sem, .sem = &sem, .permits = 1 + (uint64_t)(w->number % 3)); /* also who wants fewer */
    WAIT(sem, weft_sem_acquire);
    return WEFT_READY;
}
static void sem_feed(void)
{
    weft_sem_release(&sem,
                     1 + (uint64_t)(load_relaxed(&served) % 3)); /* just what the first wants */
}

static weft_poll cond_poll(struct waits *w, weft_cx *cx)
{
    if (w->stage == 0) {
        w->f.lock = (struct weft_lock){.mutex = &mutex};
        w->stage = 1;
    }
    if (w->stage == 1) {
        WAIT(lock, weft_lock);
        w->f.cond = (struct weft_cond_wait){.cond = &cond, .mutex = &mutex};
        w->stage = 2;
    }
    WAIT(cond, weft_cond_wait);
    ASSERT_OK(weft_unlock(&mutex));
    return WEFT_READY;
}
static void cond_feed(void)
{
    weft_cond_wake_one(&cond);
}

/* Each keeps a permit, as a reader, until it is fed: the next one writes, and has to wait for that. */
static weft_poll rw_poll(struct waits *w, weft_cx *cx)
{
    BEGIN(write, .lock = &rwlock);
    WAIT(write, weft_write_lock);
    ASSERT_OK(weft_downgrade(&rwlock)); /* a permit belongs to nobody: the feeder gives it back */
    return WEFT_READY;
}
static void rw_block(void)
{
    ASSERT_OK(weft_try_read_lock(&rwlock));
}
static void rw_feed(void)
{
    ASSERT_OK(weft_read_unlock(&rwlock));
}

static weft_poll send_poll(struct waits *w, weft_cx *cx)
{
    BEGIN(send, .chan = chan, .msg = &word);
    WAIT(send, weft_send);
    return WEFT_READY;
}
static void chan_fill(void)
{
    while (weft_try_send(chan, &word) == 0)
        continue;
}
static void chan_take(void)
{
    uint64_t got;
    ASSERT_EQ(weft_try_recv(chan, &got), 1);
}
static weft_poll recv_poll(struct waits *w, weft_cx *cx)
{
    BEGIN(recv, .chan = chan, .into = &w->word);
    WAIT(recv, weft_recv);
    return WEFT_READY;
}
static void chan_put(void)
{
    ASSERT_OK(weft_try_send(chan, &word));
}
/* One place and two in turn; each gives them back, so that the channel stays as full as it was. */
static weft_poll reserve_poll(struct waits *w, weft_cx *cx)
{
    if (w->number % 2) {
        BEGIN(reserve, .chan = chan);
        WAIT(reserve, weft_reserve);
        ASSERT_OK(weft_permit_send(chan, &word));
    } else {
        BEGIN(reserve_many, .chan = chan, .count = 2);
        WAIT(reserve_many, weft_reserve_many);
        ASSERT_OK(weft_permit_send(chan, &word));
        ASSERT_OK(weft_permit_send(chan, &word));
    }
    return WEFT_READY;
}
static void chan_take_wanted(void)
{
    bool two = load_relaxed(&served) % 2 == 0; /* before the first: it may be all that is wanted */
    chan_take();
    if (two) chan_take();
}
static void nothing(void)
{
}

static const struct queue queues[] = {
    {"notify", notify_poll, nothing, notify_feed},
    {"semaphore", sem_poll, nothing, sem_feed},
    {"condition", cond_poll, nothing, cond_feed},
    {"read-write lock", rw_poll, rw_block, rw_feed},
    {"send", send_poll, chan_fill, chan_take},
    {"receive", recv_poll, nothing, chan_put},
    {"reserve", reserve_poll, chan_fill, chan_take_wanted},
};

static weft_poll waits_poll(void *frame, weft_cx *cx)
{
    struct waits *w = frame;
    if (w->queue->poll(w, cx) == WEFT_PENDING) return WEFT_PENDING;
    order[fetch_add_relaxed(&served, 1)] = w->number;
    w->ret = 0;
    return WEFT_READY;
}

static int on_a_fiber(int number, const struct queue *queue)
{
    struct waits w = {.number = number, .queue = queue};
    return weft__run(waits_poll, &w);
}

static void objects_new(void)
{
    weft_mutex_init(&mutex);
    weft_cond_init(&cond);
    weft_rwlock_init(&rwlock);
    weft_sem_init(&sem, 0);
    weft_notify_init(&notify);
    ASSERT_OK(weft_chan_new(3, &chan));
    store_relaxed(&served, 0);
}

static void serves_in_order(const struct queue *queue)
{
    weft_task *task[MANY];

    objects_new();
    queue->block();
    for (int i = 0; i < MANY; i++) {
        task[i] =
            i % 3 ? weft_spawn(waits, .number = i, .queue = queue) : weft_go(on_a_fiber, i, queue);
        ASSERT_OK(weft_sleep(weft_ms(1))); /* it waits now */
    }
    for (int i = 0; i < MANY; i++) {
        if (load_relaxed(&served) != i) /* relaxed: as above */
            ck_abort_msg("%s: %d were fed, %d served", queue->name, i, load_relaxed(&served));
        queue->feed();
        ASSERT_OK(weft_sleep(weft_ms(1)));
    }
    for (int i = 0; i < MANY; i++) {
        ASSERT_OK(weft_join(task[i], NULL));
        ASSERT_EQ(order[i], i);
    }
    weft_chan_free(chan);
    weft_notify_done(&notify);
    weft_sem_done(&sem);
    weft_cond_done(&cond);
    weft_mutex_done(&mutex);
}

static int all_queues(void)
{
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++)
        serves_in_order(&queues[i]);
    return 0;
}

TEST(sync_order_first_come_first_served)
{
    each_paused(all_queues);
}
