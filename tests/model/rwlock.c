/* SPDX-License-Identifier: MIT
 *
 * The read-write lock over the real semaphore, proven: nobody reads while one writes, who reads sees what was written, and a
 * cancelled writer lets the readers in.
 */
#include "holder.h"
#include "sync/semaphore.c"
#define ends rwlock_ends
#include "sync/rwlock.c"

static weft_rwlock lock;
static int guarded;

enum { HONEST, WRITES_BESIDE_A_READER };

weft_time weft_now(void)
{
    return 0;
}

static weft_poll reads(struct actor *actor, weft_cx *cx)
{
    struct weft_read_lock *f = (void *)actor->frame;
    f->lock = &lock;
    if (weft_read_lock_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    model_assert(f->ret == 0);
    (void)plain_read(&guarded);
    got++;
    (void)weft_read_unlock(&lock);
    return WEFT_READY;
}

static weft_poll writes(struct actor *actor, weft_cx *cx)
{
    struct weft_write_lock *f = (void *)actor->frame;
    f->lock = &lock;
    bool hasty = model_mutant == WRITES_BESIDE_A_READER;
    if ((hasty ? lock_poll((void *)f, cx, 1) : weft_write_lock_poll(f, cx)) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        return WEFT_READY;
    }
    plain_write(&guarded, plain_read(&guarded) + 1);
    got++;
    (void)(hasty ? weft_read_unlock(&lock) : weft_write_unlock(&lock));
    return WEFT_READY;
}

static void begin(void)
{
    actors_begin();
    weft_rwlock_init(&lock);
    plain_write(&guarded, 0);
}

static void end(unsigned count)
{
    model_join();
    model_assert(got + given_up == count);
    weft_rwlock_done(&lock);
}

static void reader_and_writer(void)
{
    begin();
    actors[0] = actor_new(reads, 0);
    actors[1] = actor_new(writes, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2);
}

static void two_writers(void)
{
    begin();
    actors[0] = actor_new(writes, 0);
    actors[1] = actor_new(writes, 0);
    model_thread(actor_begin, actors[0]);
    model_thread(actor_begin, actors[1]);
    end(2);
}

static void read_unlocks(void *arg)
{
    (void)arg;
    (void)weft_read_unlock(&lock);
}

/* One reads; a writer waits, and behind it a reader: the writer is cancelled while the first is through. */
static void writer_is_cancelled(void)
{
    begin();
    model_assert(weft_try_read_lock(&lock) == 0);
    actors[0] = actor_new(writes, 1);
    actors[1] = actor_new(reads, 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_assert(got == 0);
    model_thread(read_unlocks, NULL);
    model_thread(actor_cancel, actors[0]);
    end(2);
}

static const struct model_case cases[] = {
    {.name = "rwlock: a reader and a writer", .run = reader_and_writer, .preemptions = 3},
    {.name = "rwlock: two writers", .run = two_writers, .preemptions = 3},
    {.name = "rwlock: a waiting writer is cancelled", .run = writer_is_cancelled, .preemptions = 4},
    {.name = "mutant: a writer takes one permit", .run = reader_and_writer, .mutant = WRITES_BESIDE_A_READER, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
