/* SPDX-License-Identifier: MIT
 *
 * The read-write lock over the real semaphore, proven: nobody reads while one writes, who reads sees what was written, and a
 * cancelled writer lets the readers in; and who reads on behind its write lets readers in at once, and no writer.
 */
#include "holder.h"
#include "sync/semaphore.c"
#define ends rwlock_ends
#include "sync/rwlock.c"

static weft_rwlock lock;
static int guarded;
static int written; /* by who had the lock before anybody came */

enum {
    HONEST,
    WRITES_BESIDE_A_READER,
    KEEPS_A_PERMIT,      /* of a downgrade, beside the one that it reads by */
    WRITER_LEAVES_ALONE, /* given up, it looks at nobody who stands behind it */
};

weft_time weft_now(void)
{
    return 0;
}

/* ---- broken twins ---- */

static weft_poll leave_twin(struct weft_write_lock *f)
{
    struct weft_sem_acquire *acquire = &f->weft__acquire;
    struct weft__sem *s = sem_of(acquire->sem);

    weft__leaf_lock(&s->list);
    bool granted = weft__waitlist_settle(&s->list, WEFT__LEAF_WAITER(acquire)) && acquire->ret == 0;
    if (granted) (void)fetch_add_release(&s->word, acquire->permits * PERMIT);
    if (weft__waitlist_empty(&s->list)) (void)fetch_and_relaxed(&s->word, ~WAITERS);
    weft__waitlist_unlock(&s->list);
    return rwlock_ends((void *)f, -ECANCELED);
}

static weft_poll write_poll(struct weft_write_lock *f, weft_cx *cx)
{
    if (model_mutant == WRITES_BESIDE_A_READER) return lock_poll((void *)f, cx, 1);
    if (model_mutant == WRITER_LEAVES_ALONE && cx->why && f->weft__at) return leave_twin(f);
    return weft_write_lock_poll(f, cx);
}

static void downgrade(void)
{
    int r = model_mutant == KEEPS_A_PERMIT ? give_back(&lock, WEFT__READERS_MAX - 2, NULL)
                                           : weft_downgrade(&lock);
    model_assert(r == 0);
}

static int try_write(void)
{
    return model_mutant == WRITES_BESIDE_A_READER ? weft_try_read_lock(&lock)
                                                  : weft_try_write_lock(&lock);
}

/* ---- the bodies ---- */

static weft_poll reads(struct actor *actor, weft_cx *cx)
{
    struct weft_read_lock *f = (void *)actor->frame;
    f->lock = &lock;
    if (weft_read_lock_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    model_assert(f->ret == 0);
    model_assert(plain_read(&guarded) >= written);
    got++;
    (void)weft_read_unlock(&lock);
    return WEFT_READY;
}

static weft_poll writes(struct actor *actor, weft_cx *cx)
{
    struct weft_write_lock *f = (void *)actor->frame;
    f->lock = &lock;
    if (write_poll(f, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (f->ret < 0) {
        given_up++;
        return WEFT_READY;
    }
    plain_write(&guarded, plain_read(&guarded) + 1);
    got++;
    (void)(model_mutant == WRITES_BESIDE_A_READER ? weft_read_unlock(&lock) : weft_write_unlock(&lock));
    return WEFT_READY;
}

static void begin(void)
{
    actors_begin();
    weft_rwlock_init(&lock);
    plain_write(&guarded, 0);
    written = 0;
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

/* ---- who wrote reads on ---- */

static void begin_written(void)
{
    begin();
    model_assert(weft_try_write_lock(&lock) == 0);
    plain_write(&guarded, 1);
    written = 1;
}

/* It writes once more, and reads on until it is through: nobody writes in between. */
static void downgrades(void *arg)
{
    (void)arg;
    plain_write(&guarded, 2);
    written = 2;
    downgrade();
    model_assert(plain_read(&guarded) == 2);
    (void)weft_read_unlock(&lock);
}

static void one_waits_one_comes(struct actor *waits, struct actor *comes)
{
    actor_run(waits);
    model_assert(got == 0);
    model_thread(downgrades, NULL);
    model_thread(actor_begin, comes);
    end(2);
}

static void reader_waits_writer_comes(void)
{
    begin_written();
    one_waits_one_comes(actor_new(reads, 0), actor_new(writes, 0));
}

static void writer_waits_reader_comes(void)
{
    begin_written();
    one_waits_one_comes(actor_new(writes, 0), actor_new(reads, 0));
}

static void both_come(void)
{
    begin_written();
    model_thread(downgrades, NULL);
    model_thread(actor_begin, actor_new(reads, 0));
    model_thread(actor_begin, actor_new(writes, 0));
    end(2);
}

static void downgrades_and_stays(void *arg)
{
    (void)arg;
    downgrade();
}

/* A writer waits, and behind it a reader, which comes in beside the one that reads on when the writer is cancelled. */
static void writer_in_between_is_cancelled(void)
{
    begin_written();
    actors[0] = actor_new(writes, 1);
    actors[1] = actor_new(reads, 0);
    actor_run(actors[0]);
    actor_run(actors[1]);
    model_thread(downgrades_and_stays, NULL);
    model_thread(actor_cancel, actors[0]);
    model_join();
    model_assert(got == 1 && given_up == 1);
    model_assert(plain_read(&guarded) == 1);
    (void)weft_read_unlock(&lock);
    end(2);
}

/* ---- at once ---- */

static void reads_and_unlocks(void *arg)
{
    (void)arg;
    (void)plain_read(&guarded);
    (void)weft_read_unlock(&lock);
}

static void tries_to_write(void *arg)
{
    (void)arg;
    int r = try_write();
    model_assert(r == 0 || r == -EBUSY);
    if (r < 0) return;
    plain_write(&guarded, 1);
    (void)(model_mutant == WRITES_BESIDE_A_READER ? weft_read_unlock(&lock) : weft_write_unlock(&lock));
}

static void tried_while_it_is_read(void)
{
    begin();
    model_assert(weft_try_read_lock(&lock) == 0);
    model_thread(reads_and_unlocks, NULL);
    model_thread(tries_to_write, NULL);
    end(0);
}

static const struct model_case cases[] = {
    {.name = "rwlock: a reader and a writer", .run = reader_and_writer, .preemptions = 3},
    {.name = "rwlock: two writers", .run = two_writers, .preemptions = 3},
    {.name = "rwlock: a waiting writer is cancelled", .run = writer_is_cancelled, .preemptions = 4},
    {.name = "rwlock: a downgrade, a reader waits, a writer comes", .run = reader_waits_writer_comes, .preemptions = 3},
    {.name = "rwlock: a downgrade, a writer waits, a reader comes", .run = writer_waits_reader_comes, .preemptions = 3},
    {.name = "rwlock: a downgrade, both come", .run = both_come, .preemptions = 1},
    {.name = "rwlock: a downgrade, a writer before a reader is cancelled", .run = writer_in_between_is_cancelled, .preemptions = 4},
    {.name = "rwlock: a try to write, one reads", .run = tried_while_it_is_read, .unbounded = true, .weaken = true},
    {.name = "mutant: a writer takes one permit", .run = reader_and_writer, .mutant = WRITES_BESIDE_A_READER, .must_fail = true},
    {.name = "mutant: so does one that tries", .run = tried_while_it_is_read, .unbounded = true, .mutant = WRITES_BESIDE_A_READER, .must_fail = true, .why = "data race"},
    {.name = "mutant: a downgrade keeps a permit", .run = reader_waits_writer_comes, .mutant = KEEPS_A_PERMIT, .must_fail = true},
    {.name = "mutant: a cancelled writer passes nothing on", .run = writer_is_cancelled, .mutant = WRITER_LEAVES_ALONE, .must_fail = true},
    {.name = "mutant: nor beside one that reads on", .run = writer_in_between_is_cancelled, .mutant = WRITER_LEAVES_ALONE, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
