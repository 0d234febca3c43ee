/* SPDX-License-Identifier: MIT
 *
 * Streams whose four halves have a task each, on several workers at once: each gives up what it waits for again and again, and closes its own half when it is
 * through, or has it closed by another at any moment. What arrives is what was sent, in order and, if nobody was disturbed, to the last byte. Seeded.
 */
#include "storm.h"
#include "town.h"

struct owner {
    weft_stream *half;
    uint64_t bytes; /* that go this way */
    uint64_t at;
    uint64_t random;
    bool kept;         /* it is closed by another */
    _Atomic bool left; /* relaxed: a look */
};

static void lets_go(struct owner *o)
{
    store_relaxed(&o->left, true);
    if (!o->kept) weft_close(o->half);
}

/* ---- fibers ---- */

static int pours(struct owner *o)
{
    unsigned char buf[200];
    struct storm_pause pause;
    int r = 0;
    while (r == 0 && o->at < o->bytes) {
        struct weft_write_all wr;
        size_t len = 1 + pool_random(&o->random, sizeof buf - 1);
        if (len > o->bytes - o->at) len = (size_t)(o->bytes - o->at);
        town_fill(buf, len, o->at);
        (void)weft_select(weft_arm(wr, weft_write_all, o->half, buf, len),
                          weft_arm(pause, storm_pause, pool_random(&o->random, 4)));
        if (wr.ret < 0 && wr.ret != -ECANCELED) r = (int)wr.ret;
        o->at += wr.done;
    }
    lets_go(o);
    return r;
}

static int drinks(struct owner *o)
{
    unsigned char buf[200];
    struct storm_pause pause;
    struct weft_read rd;
    do {
        size_t len = 1 + pool_random(&o->random, sizeof buf - 1);
        (void)weft_select(weft_arm(rd, weft_read, o->half, buf, len),
                          weft_arm(pause, storm_pause, pool_random(&o->random, 4)));
        if (rd.ret > 0) town_check(buf, (size_t)rd.ret, o->at);
        if (rd.ret > 0) o->at += (uint64_t)rd.ret;
    } while (rd.ret > 0 || rd.ret == -ECANCELED);
    lets_go(o);
    return (int)rd.ret;
}

/* ---- stackless ---- */

struct pouring {
    WEFT_FRAME(int);
    struct owner *o;
    size_t len;
    struct weft_write_all wr;
    struct storm_pause pause;
    unsigned char buf[200];
};
static weft_async(pouring)
{
    struct owner *o = f->o;
    weft_begin;
    while (o->at < o->bytes) {
        f->len = 1 + pool_random(&o->random, sizeof f->buf - 1);
        if (f->len > o->bytes - o->at) f->len = (size_t)(o->bytes - o->at);
        town_fill(f->buf, f->len, o->at);
        weft_await(f->wr, weft_write_all, o->half, f->buf, f->len);
        o->at += f->wr.done;
        if (f->wr.ret < 0) break;
        weft_await(f->pause, storm_pause, pool_random(&o->random, 3));
    }
    lets_go(o);
    weft_return(f->wr.ret < 0 ? (int)f->wr.ret : 0);
    weft_end;
}

struct drinking {
    WEFT_FRAME(int);
    struct owner *o;
    struct weft_read rd;
    struct storm_pause pause;
    unsigned char buf[200];
};
static weft_async(drinking)
{
    struct owner *o = f->o;
    weft_begin;
    do {
        weft_await(f->rd, weft_read, o->half, f->buf,
                   1 + pool_random(&o->random, sizeof f->buf - 1));
        if (f->rd.ret > 0) town_check(f->buf, (size_t)f->rd.ret, o->at);
        if (f->rd.ret > 0) o->at += (uint64_t)f->rd.ret;
        weft_await(f->pause, storm_pause, pool_random(&o->random, 3));
    } while (f->rd.ret > 0);
    lets_go(o);
    weft_return((int)f->rd.ret);
    weft_end;
}

/* ---- a round ---- */

static weft_task *begin(struct owner *o, bool reads, bool stackless)
{
    if (reads) return stackless ? weft_spawn(drinking, o) : weft_go(drinks, o);
    return stackless ? weft_spawn(pouring, o) : weft_go(pours, o);
}

/* Two ends, and of each a reader and a writer: half 0 writes to half 1, half 2 to half 3. */
#define NOBODY     4 /* nor its sibling is one of them */
#define SIBLING(i) (3 - (i))

struct round {
    struct owner owner[4];
    weft_task *task[4];
};

static void round_begin(struct round *r, uint64_t *random, int victim)
{
    static const enum town_kind kinds[] = {TOWN_TCP, TOWN_UNIX, TOWN_MEMORY};
    weft_stream *pair[2];
    weft_stream *half[4];
    town_pair(kinds[pool_random(random, 3)], pair);
    ASSERT_OK(weft_split(pair[0], &half[3], &half[0]));
    ASSERT_OK(weft_split(pair[1], &half[1], &half[2]));
    for (int i = 0; i < 4; i++)
        r->owner[i] = (struct owner){.half = half[i],
                                     .bytes = test_scaled(3000),
                                     .random = pool_seed(pool_random(random, UINT32_MAX)),
                                     .kept = i == victim || i == SIBLING(victim)};
    for (int i = 0; i < 4; i++)
        r->task[i] = begin(&r->owner[i], i % 2, pool_random(random, 2));
}

static int joined(weft_task *task)
{
    int r = 1;
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static void undisturbed(struct crew *crew)
{
    uint64_t random = pool_seed((uint64_t)crew->workers);
    for (uint64_t i = test_scaled(12); i > 0; i--) {
        struct round r;
        round_begin(&r, &random, NOBODY);
        for (int k = 0; k < 4; k++) {
            ASSERT_OK(joined(r.task[k]));
            ASSERT_EQ(r.owner[k].at, r.owner[k].bytes);
        }
    }
}

TEST_WITH(split_halves_work_at_once, .timeout_s = 180)
{
    crew_each(undisturbed);
}

static bool is_end(int r)
{
    return r == 0 || r == -EPIPE || r == -ECONNRESET;
}

/* One half is closed under its owner, who is told by whatever it does next; the sibling goes on, and keeps the stream. The others end as that ends them: nobody waits for
 * ever, and no byte is wrong. */
static void disturbed(struct crew *crew)
{
    uint64_t random = pool_seed((uint64_t)crew->workers + 100);
    for (uint64_t i = test_scaled(12); i > 0; i--) {
        struct round r;
        int victim = (int)pool_random(&random, 4);
        int sibling = SIBLING(victim);
        round_begin(&r, &random, victim);
        for (uint32_t k = pool_random(&random, 300); k > 0; k--)
            if (!load_relaxed(&r.owner[victim].left)) storm_linger(&random);
        weft_close(r.owner[victim].half);
        int got = joined(r.task[victim]);
        ASSERT(is_end(got) || got == -EBADF);
        ASSERT(is_end(joined(r.task[sibling])));
        weft_close(r.owner[sibling].half);
        for (int k = 0; k < 4; k++) {
            if (k != victim && k != sibling) ASSERT(is_end(joined(r.task[k])));
            ASSERT_LE(r.owner[k].at, r.owner[k].bytes);
        }
    }
}

TEST_WITH(split_halves_are_closed_at_any_moment, .timeout_s = 180)
{
    crew_each(disturbed);
}
