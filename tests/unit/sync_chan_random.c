/* SPDX-License-Identifier: MIT
 *
 * A channel of each kind, driven by hand through random operations: sends, receives, permits and waits for the end begin, are polled for a reason or for none, are
 * given up, in any order. Goal: whenever all who were woken have looked, nobody waits who need not, and nothing was lost, doubled or made up. Method: each wait has
 * a waker that counts; what must hold is computed from the messages alone, not from the channel's inside. Seeded.
 */
#include "counted.h"
#include "pool.h"
#include "sync/chan.h"
#include "test.h"

#include <errno.h>
#include <string.h>

/* As ASSERT, which tells the harness each time where it is: that takes longer than all else here. */
#define HOLDS(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) ASSERT(!#fact);                                                               \
    } while (0)

enum { WAITS = 8, MESSAGES = 512 };
enum what { NONE, SENDS, RECEIVES, RECEIVES_MANY, RESERVES, AWAITS_END, KINDS };

/* One wait. */
struct wait {
    enum what what;
    struct counted waker;
    struct weft_cx cx;
    uint64_t msg[4];
    size_t places; /* that a reserve wants */
    unsigned came; /* its number */
    union {
        struct weft_send send;
        struct weft_recv recv;
        struct weft_recv_many many;
        struct weft_reserve_many reserve;
        struct weft_chan_closed end;
    } f;
};

/* Where a message is. */
enum { UNSENT, SENT, RECEIVED };

static struct {
    uint64_t random;
    enum weft_chan_kind kind;
    size_t capacity;
    weft_chan *chan;
    struct wait wait[WAITS];
    unsigned came;
    unsigned char message[MESSAGES];
    uint64_t next; /* message */
    size_t permits;
    bool closed;
} t;

static uint32_t any(uint32_t bound)
{
    return pool_random(&t.random, bound);
}

static bool meets(void)
{
    return t.kind == WEFT_CHAN_BOUNDED && t.capacity == 0;
}

/* ---- messages ---- */

/* Whether it was sent is known when the send answers; until then it may be received. */
static uint64_t message_new(void)
{
    t.message[t.next] = SENT;
    return t.next++;
}

static void message_back(uint64_t id)
{
    HOLDS(t.message[id] == SENT);
    t.message[id] = UNSENT;
}

static void message_came(uint64_t id)
{
    HOLDS(id < t.next);
    HOLDS(t.message[id] == SENT);
    t.message[id] = RECEIVED;
}

static size_t messages_on_their_way(void)
{
    size_t count = 0;
    for (uint64_t id = 0; id < t.next; id++)
        count += t.message[id] == SENT;
    return count;
}

/* ---- waits ---- */

static weft_poll poll_of(struct wait *w)
{
    switch (w->what) {
    case SENDS:
        return weft_send_poll(&w->f.send, &w->cx);
    case RECEIVES:
        return weft_recv_poll(&w->f.recv, &w->cx);
    case RECEIVES_MANY:
        return weft_recv_many_poll(&w->f.many, &w->cx);
    case RESERVES:
        return weft_reserve_many_poll(&w->f.reserve, &w->cx);
    default:
        return weft_chan_closed_poll(&w->f.end, &w->cx);
    }
}

static ssize_t answer_of(const struct wait *w)
{
    return w->what == RECEIVES_MANY ? w->f.many.ret : w->f.send.ret; /* all others begin alike */
}

static void is_over(struct wait *w)
{
    ssize_t answer = answer_of(w);
    bool receives = w->what == RECEIVES || w->what == RECEIVES_MANY;

    t.closed |= weft_chan_is_closed(t.chan); /* a oneshot, by its message */
    if (w->what == SENDS && answer < 0) message_back(w->msg[0]);
    if (w->what == RESERVES && answer == 0) t.permits += w->places;
    for (ssize_t i = 0; receives && i < answer; i++)
        message_came(w->msg[i]);
    if (receives && answer == 0) HOLDS(t.closed && t.permits == 0 && weft_chan_len(t.chan) == 0);
    if (w->what == AWAITS_END && answer == 0) HOLDS(t.closed);
    if (answer == -EPIPE) HOLDS(t.closed && !receives);
    if (answer < 0 && answer != -EPIPE) HOLDS(answer == w->cx.why);
    w->what = NONE;
}

static void looks(struct wait *w)
{
    w->waker.wakes = 0;
    if (poll_of(w) == WEFT_READY) is_over(w);
}

static void begins(struct wait *w, enum what what)
{
    w->cx = cx_of(&w->waker);
    w->cx.budget = WEFT__UNBUDGETED;
    w->what = what;
    w->came = ++t.came;
    w->places = t.capacity > 0 ? 1 + any((uint32_t)t.capacity) : 1;
    memset(&w->f, 0, sizeof(w->f));
    switch (what) {
    case SENDS:
        w->msg[0] = message_new();
        w->f.send = (struct weft_send){.chan = t.chan, .msg = w->msg};
        break;
    case RECEIVES:
        w->f.recv = (struct weft_recv){.chan = t.chan, .into = w->msg};
        break;
    case RECEIVES_MANY:
        w->f.many = (struct weft_recv_many){.chan = t.chan, .into = w->msg, .max = 1 + any(4)};
        break;
    case RESERVES:
        w->f.reserve = (struct weft_reserve_many){.chan = t.chan, .count = w->places};
        break;
    default:
        w->f.end = (struct weft_chan_closed){.chan = t.chan};
    }
    looks(w);
}

static void gives_up(struct wait *w)
{
    w->cx.why = any(2) ? -ECANCELED : -ETIME;
    looks(w);
    HOLDS(w->what == NONE); /* at once */
}

/* Those who were woken look, some of them or all, in any order. */
static void woken_look(bool all)
{
    for (bool again = true; again;) {
        uint32_t first = any(WAITS);
        again = false;
        for (uint32_t i = 0; i < WAITS; i++) {
            struct wait *w = &t.wait[(first + i) % WAITS];
            if (w->what == NONE || w->waker.wakes == 0 || (!all && any(3) == 0)) continue;
            looks(w);
            again = all;
        }
    }
}

/* ---- what happens ---- */

static void tries(void)
{
    uint64_t id;
    if (any(2)) {
        int r = weft_try_recv(t.chan, &id);
        if (r == 1) message_came(id);
        if (r == 0) HOLDS(t.closed && t.permits == 0);
        return;
    }
    id = message_new();
    int r = weft_try_send(t.chan, &id);
    if (r < 0) message_back(id);
    HOLDS(r == 0 || r == -EAGAIN || (r == -EPIPE && t.closed));
}

static void spends_permit(void)
{
    if (t.permits == 0) {
        HOLDS(weft_permit_drop(t.chan) == -EINVAL);
        return;
    }
    t.permits--;
    if (any(2)) {
        HOLDS(weft_permit_drop(t.chan) == 0);
    } else {
        uint64_t id = message_new();
        HOLDS(weft_permit_send(t.chan, &id) == 0);
    }
}

static void closes(void)
{
    int r = weft_chan_close(t.chan);
    HOLDS(r == (t.closed ? -EALREADY : 0));
    t.closed = true;
}

static void something_happens(void)
{
    struct wait *w = &t.wait[any(WAITS)];
    enum what what = (enum what)(1 + any(KINDS - 1));

    if (w->what == NONE) {
        if (what != RESERVES || t.capacity > 0) begins(w, what);
    } else if (any(3) == 0) {
        gives_up(w);
    } else if (any(3) == 0) {
        looks(w); /* for no reason */
    }
    if (any(3) == 0) tries();
    if (any(4) == 0) spends_permit();
    t.closed |= weft_chan_is_closed(t.chan);
    if (any(50) == 0) closes();
}

/* ---- what must hold when all who were woken have looked ---- */

static bool wants_place(const struct wait *w)
{
    return w->what == SENDS || w->what == RESERVES;
}

/* First come, first served: the first of them lacks places. */
static void senders_wait_for_a_reason(void)
{
    const struct wait *first = NULL;
    for (int i = 0; i < WAITS; i++)
        if (wants_place(&t.wait[i]) && (!first || t.wait[i].came < first->came)) first = &t.wait[i];
    if (!first) return;
    HOLDS(!t.closed);
    HOLDS(t.kind != WEFT_CHAN_UNBOUNDED);
    if (meets()) return; /* it waits for a receiver */
    size_t wants = first->what == RESERVES ? first->places : 1;
    HOLDS(wants > t.capacity - weft_chan_len(t.chan) - t.permits);
}

static void others_wait_for_a_reason(void)
{
    bool offers = false;
    for (int i = 0; i < WAITS; i++)
        offers |= meets() && t.wait[i].what == SENDS;
    for (int i = 0; i < WAITS; i++) {
        const struct wait *w = &t.wait[i];
        if (w->what == AWAITS_END) HOLDS(!t.closed);
        if (w->what != RECEIVES && w->what != RECEIVES_MANY) continue;
        HOLDS(weft_chan_len(t.chan) == 0);
        HOLDS(!(t.closed && t.permits == 0));
        HOLDS(!offers);
    }
}

static void nothing_is_lost(void)
{
    size_t unsent = 0;
    for (int i = 0; i < WAITS; i++)
        unsent += t.wait[i].what == SENDS;
    HOLDS(messages_on_their_way() == weft_chan_len(t.chan) + unsent);
}

static void all_is_well(void)
{
    woken_look(true);
    t.closed |= weft_chan_is_closed(t.chan);
    senders_wait_for_a_reason();
    others_wait_for_a_reason();
    nothing_is_lost();
}

/* Closed, and its permits spent, it lets everybody go. */
static void comes_to_its_end(void)
{
    uint64_t id;
    if (!t.closed) closes();
    all_is_well();
    while (t.permits > 0) {
        spends_permit();
        all_is_well();
    }
    for (int i = 0; i < WAITS; i++)
        HOLDS(t.wait[i].what == NONE);
    while (weft_try_recv(t.chan, &id) == 1)
        message_came(id);
    HOLDS(messages_on_their_way() == 0);
    weft_chan_free(t.chan);
}

static void one_channel(uint64_t *random)
{
    memset(&t, 0, sizeof(t));
    t.random = (uint64_t)pool_random(random, UINT32_MAX) << 32 | pool_random(random, UINT32_MAX) | 1;
    t.kind = (enum weft_chan_kind)any(3);
    t.capacity = t.kind == WEFT_CHAN_BOUNDED ? any(5) : t.kind == WEFT_CHAN_ONESHOT;
    HOLDS(weft_chan_new_sized(t.kind, sizeof(uint64_t), t.capacity, &t.chan) == 0);
    for (uint32_t steps = 5 + any(60); steps > 0; steps--) {
        something_happens();
        if (any(3) == 0) woken_look(false);
        if (any(3) == 0) all_is_well();
    }
    comes_to_its_end();
}

TEST(chan_random_operations_lose_nothing_and_nobody)
{
    uint64_t random = test_seed();
    for (uint64_t i = 0; i < test_scaled(20000); i++)
        one_channel(&random);
}
