/* SPDX-License-Identifier: MIT
 *
 * The short way of a read (io/direct.h, as io/stream.c puts its steps together) beside events and a close, while the slot's lock is lent to who reads, to the others, or to
 * nobody: what fdslot.c proves of the loop holds of the steps, and of whoever goes over from the one to the other.
 */
#define WEFT_MODEL_REAL_BIAS
#include "fdslot_actors.h"

/* ---- what the steps stand on: the kernel, and the loop ---- */

static ssize_t twin_recv(size_t bytes)
{
    (void)plain_read(descriptor);
    uint32_t there = load_relaxed(&kernel); /* relaxed, both: the CAS orders */
    uint32_t taken;
    do {
        taken = there < bytes ? there : (uint32_t)bytes;
    } while (!cas_acq_rel(&kernel, &there, there - taken));
    if (taken == 0) in_vain++;
    return taken ? (ssize_t)taken : -EAGAIN;
}

#include "sys/socket.h"

#define weft__socket_recv_one(fd, into, bytes, flags) ((void)(fd), (void)(into), twin_recv(bytes))
#define weft__socket_send_one(fd, from, bytes)        ((void)(fd), (void)(from), (ssize_t)(bytes))
#include "direct_steps.h"

void weft__driver_closes(const char *what, const char *at)
{
    (void)what, (void)at;
}

/* As io/fdstream.c's. */
struct rest {
    size_t bytes; /* of one buffer */
    const size_t *done;
    struct weft__lesson lesson;
};

static ssize_t reads_rest(struct weft__fdslot *s, void *arg)
{
    struct rest *m = arg;
    size_t bytes = m->bytes - *m->done;
    (void)s;
    ssize_t r = twin_recv(bytes);
    m->lesson.bits = weft__take_lesson(m->lesson.seen, WEFT__SIDE_READ, r, (size_t)r < bytes);
    return r;
}

static weft_poll by_loop(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                         int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    static const struct weft__op_kind kind = {
        .side = WEFT__SIDE_READ,
        .as = WEFT__USE_READER,
        .bits = WEFT__READY_READ | WEFT__READY_READ_END,
        .tries = reads_rest,
    };
    struct rest m = {.bytes = iov->iov_len, .done = done};
    struct weft__op_all all = {.want = iov->iov_len, .done = done};
    (void)count;
    return weft__op_poll_as(weft__fdstream_slot(stream), weft__op_of(io), &kind, &m,
                            flags & WEFT_IO_ALL ? &all : NULL, &m.lesson, cx, ret);
}

const weft_stream_ops weft__fdstream_tables[] = {
    [WEFT__FDSTREAM_TCP_DIRECT] = {"tcp", by_loop, NULL, NULL, NULL, NULL},
};

_Thread_local struct weft__here weft__here_record; /* whoever writes ahead asks it; nobody does */

/* ---- a reader ---- */

enum { ROOM = 8 }; /* more than ever comes */

static char room[ROOM];

static weft_stream *stream_of_slot(void)
{
    weft_stream *stream = (weft_stream *)(void *)slot.face;
    stream->ops = &weft__fdstream_tables[WEFT__FDSTREAM_TCP_DIRECT];
    return stream;
}

/* True: it is over. */
static bool drank(ssize_t ret)
{
    if (ret >= 0) {
        got += (unsigned)ret;
        return false;
    }
    ended = (int)ret;
    given_up++;
    return true;
}

static weft_poll drinks_directly(struct actor *actor, weft_cx *cx)
{
    struct weft_read *f = (void *)actor->frame;
    while (got < wanted) {
        if (!f->stream)
            *f = (struct weft_read){.stream = stream_of_slot(), .buf = room, .len = ROOM};
        if (weft_read_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
        if (drank(f->ret)) return WEFT_READY;
    }
    return WEFT_READY;
}

static weft_poll drinks_all_directly(struct actor *actor, weft_cx *cx)
{
    struct weft_read_exact *f = (void *)actor->frame;
    if (!f->stream)
        *f = (struct weft_read_exact){.stream = stream_of_slot(), .buf = room, .len = wanted};
    if (weft_read_exact_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    (void)drank(f->ret);
    return WEFT_READY;
}

/* ---- cases ---- */

static void direct_one_byte(void)
{
    drinker = drinks_directly;
    one_byte();
}

static void direct_two_bytes(void)
{
    drinker = drinks_directly;
    two_bytes();
}

static void direct_all(void)
{
    drinker = drinks_all_directly;
    two_bytes();
}

static void direct_stopped(void)
{
    drinker = drinks_directly;
    stopped_reader();
}

static void direct_closed(void)
{
    drinker = drinks_directly;
    closed_reader();
}

static void direct_closed_beside_an_event(void)
{
    drinker = drinks_directly;
    closed_beside_an_event();
}

/* A try that brings something, while it is closed. */
static void direct_closed_with_a_byte(void)
{
    drinker = drinks_directly;
    begin(1, 0);
    store_relaxed(&kernel, 1); /* relaxed: nobody else is there yet */
    model_thread(actor_begin, actors[0]);
    model_thread(closes, NULL);
    model_join();
    model_assert(got + given_up == 1);
    model_assert(!descriptor);
    finish();
}

static const struct model_case cases[] = {
    {.name = "direct: one byte", .run = direct_one_byte, .unbounded = true},
    {.name = "direct: two bytes", .run = direct_two_bytes, .preemptions = 1},
    {.name = "direct: two bytes, at random", .run = direct_two_bytes, .pct_depth = 4},
    {.name = "direct: all of two bytes", .run = direct_all, .preemptions = 1},
    {.name = "direct: given up", .run = direct_stopped, .preemptions = 2},
    {.name = "direct: closed", .run = direct_closed, .preemptions = 3},
    {.name = "direct: closed with a byte there",
     .run = direct_closed_with_a_byte,
     .unbounded = true},
    {.name = "direct: closed beside an event",
     .run = direct_closed_beside_an_event,
     .preemptions = 1},
    {.name = "direct: closed beside an event, at random",
     .run = direct_closed_beside_an_event,
     .pct_depth = 4},
    {.name = "mutant: taken back without a barrier",
     .run = direct_one_byte,
     .mutant = TAKES_BACK_WITHOUT_BARRIER,
     .must_fail = true},
    {.name = "mutant: enters a lock that is not its own",
     .run = direct_one_byte,
     .mutant = ENTERS_UNLENT,
     .must_fail = true},
    {.name = "mutant: waits without a look",
     .run = direct_one_byte,
     .mutant = WAITS_BLINDLY,
     .must_fail = true},
    {.name = "mutant: a lesson of a later look",
     .run = direct_two_bytes,
     .preemptions = 2,
     .mutant = LOOKS_BEHIND,
     .must_fail = true},
    {.name = "mutant: the last one leaves it to nobody",
     .run = direct_closed_with_a_byte,
     .mutant = DISPOSES_NOT,
     .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
