/* SPDX-License-Identifier: MIT
 *
 * Streams in memory, proven: bytes pass in order through room for one, and whoever waits is woken; an end may be closed while somebody uses it, who is answered, and the
 * memory goes with the last of all.
 */
#include "leaf.h"

#include "io/duplex.c"

void *weft__alloc(size_t bytes)
{
    char *memory = model_alloc(bytes);
    memset(memory, 0, bytes);
    return memory;
}

void weft__free(void *memory)
{
    if (memory) model_free(memory);
}

static weft_stream *end[2];
static bool closed;    /* both, under the reader */
static ssize_t answer; /* of the reader's last read */

/* An operation of one byte, in an actor's frame. */
struct byte {
    struct weft_io io;
    char byte;
    int round;
};

static weft_poll poll_byte(weft_stream *stream, struct byte *b, bool writes, weft_cx *cx,
                           ssize_t *ret)
{
    struct iovec iov = {.iov_base = &b->byte, .iov_len = 1};
    size_t done = 0;
    return writes ? duplex_write(stream, &b->io, &iov, 1, 0, cx, ret, &done)
                  : duplex_read(stream, &b->io, &iov, 1, 0, cx, ret, &done);
}

/* Writes 'a' and 'b', and closes. */
static weft_poll writes(struct actor *actor, weft_cx *cx)
{
    struct byte *b = (void *)actor->frame;
    ssize_t n;

    for (; b->round < 2; b->round++) {
        b->byte = (char)('a' + b->round);
        if (poll_byte(end[1], b, true, cx, &n) == WEFT_PENDING) return WEFT_PENDING;
        model_assert(n == 1);
    }
    duplex_close(end[1]);
    return WEFT_READY;
}

/* Reads until the end, and closes. */
static weft_poll reads(struct actor *actor, weft_cx *cx)
{
    struct byte *b = (void *)actor->frame;

    for (;;) {
        if (poll_byte(end[0], b, false, cx, &answer) == WEFT_PENDING) return WEFT_PENDING;
        if (answer <= 0) break;
        model_assert(b->byte == 'a' + (char)got);
        got++;
    }
    if (answer == 0 && !closed) duplex_close(end[0]);
    if (answer < 0) given_up++;
    return WEFT_READY;
}

static void begin(void)
{
    actors_begin();
    answer = 1;
    closed = false;
    model_assert(weft_duplex(1, &end[0], &end[1]) == 0);
}

static struct actor *actor_of(weft_poll (*body)(struct actor *, weft_cx *), uint32_t references)
{
    actors[0] = actor_new(body, references);
    memset(actors[0]->frame, 0, sizeof(actors[0]->frame));
    return actors[0];
}

/* Who finds a reader there (another would be answered -EBUSY) may close both ends under it. */
static void closes_if_busy(void *unused)
{
    struct half *h = &end_of(end[0])->duplex->half[0];

    (void)unused;
    weft__waitlist_lock(&h->list);
    bool busy = h->busy[READER];
    weft__waitlist_unlock(&h->list);
    if (!busy) return;
    duplex_close(end[0]);
    duplex_close(end[1]);
    closed = true;
}

/* ---- the cases ---- */

static void passes(void)
{
    begin();
    model_thread(actor_begin, actor_of(reads, 0));
    model_thread(actor_begin, actor_of(writes, 0));
    model_join();
    model_assert(got == 2);
    model_assert(answer == 0);
}

static void reader_is_cancelled(void)
{
    begin();
    struct actor *reader = actor_of(reads, 1);
    actor_run(reader);
    model_thread(actor_cancel, reader);
    model_thread(actor_begin, actor_of(writes, 0));
    model_join();
    if (answer == 0) return;
    model_assert(given_up == 1);
    actor_run(actor_of(reads, 0)); /* another reads on: nothing was lost */
    model_join();
    model_assert(got == 2);
}

static void closed_under_a_reader(void)
{
    begin();
    model_thread(actor_begin, actor_of(reads, 0));
    model_thread(closes_if_busy, NULL);
    model_join();
    if (closed) {
        model_assert(answer == -EBADF);
        return;
    }
    duplex_close(end[1]); /* the reader waits, finds the end, and closes its own */
    model_assert(answer == 0);
}

static const struct model_case cases[] = {
    {.name = "duplex: two bytes through room for one", .run = passes, .preemptions = 3, .weaken = true},
    {.name = "duplex: a reader is cancelled", .run = reader_is_cancelled, .preemptions = 2},
    {.name = "duplex: closed under a reader", .run = closed_under_a_reader, .preemptions = 3, .weaken = true},
};

static const struct model_spare spare[] = {LEAF_SPARE, {NULL, NULL, NULL}};

int main(int argc, char **argv)
{
    return model_main_with(argc, argv, cases, MODEL_COUNT(cases), spare);
}
