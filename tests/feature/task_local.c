/* SPDX-License-Identifier: MIT
 *
 * Task-locals, and the rule for what a thread has of its own: the one moves along with the task, the other stays behind.
 */
#include "base/fault.h"
#include "bell.h"
#include "crew.h"
#include "test.h"

#include <errno.h>
#include <unistd.h>
#include <weft/local.h>

struct request {
    int id;
    char note[100];
};

static _Atomic uint32_t ended;

static void request_done(struct request *r)
{
    if (r->id >= 0) fetch_add_relaxed(&ended, 1);
}

static WEFT_TASK_LOCAL(struct request, this_request, request_done);
static WEFT_TASK_LOCAL(uint64_t, this_count);

/* Seen from other files too: declared by hand, as a header would. */
int *this_number(void);
WEFT_TASK_LOCAL(int, this_number);

struct wide {
    _Alignas(128) char bytes[200];
};
static WEFT_TASK_LOCAL(struct wide, this_wide);

static _Atomic bool over;

/* ---- each its own --------------------------------------------------------------------------------------- */

static int keeps(int id, struct bell *bell)
{
    struct request *own = this_request();
    if (!own || own->id != 0 || own->note[99] != 0) return -1;
    if (!this_count() || *this_count() != 0 || !this_number()) return -2;
    if ((uintptr_t)this_wide() % 128 != 0) return -3;
    own->id = id;
    *this_number() = -id;
    for (int i = 0; i < 20; i++) {
        ++*this_count();
        int r = i % 2 ? weft_yield() : weft_run(hear, .bell = bell);
        if (r < 0) return r;
        if (this_request() != own || own->id != id || *this_number() != -id) return -5;
    }
    return *this_count() == 20 ? 0 : -6;
}

struct keeps_too {
    WEFT_FRAME(int);
    int id;
    struct bell *bell;
    struct request *r;
    int i;
    struct hear wait;
    struct weft_yield pause;
};
static weft_async(keeps_too)
{
    weft_begin;
    f->r = this_request();
    if (!f->r || f->r->id != 0) weft_return(-1);
    f->r->id = f->id;
    for (f->i = 0; f->i < 10; f->i++) {
        ++*this_count();
        weft_await(f->wait, hear, .bell = f->bell);
        weft_await(f->pause, weft_yield);
        if (this_request() != f->r || f->r->id != f->id) weft_return(-2);
    }
    weft_return(*this_count() == 10 ? 0 : -3);
    weft_end;
}

#define COUNT 16

static struct bell bells[COUNT];

static void *rings_in_turn(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !load_relaxed(&over); i++) {
        bell_ring(&bells[i % COUNT]);
        if (i % COUNT == 0) sched_yield();
    }
    return NULL;
}

/* Woken from outside they go to whichever worker is there: the values go with them. */
static void each_its_own(struct crew *crew)
{
    weft_task *task[COUNT];
    pthread_t ringer;
    (void)crew;
    store_relaxed(&over, false);
    store_relaxed(&ended, 0);
    for (int i = 0; i < COUNT; i++) {
        bell_init(&bells[i]);
        task[i] = i % 2 ? weft_go(keeps, i + 1, &bells[i])
                        : weft_spawn(keeps_too, .id = i + 1, .bell = &bells[i]);
    }
    ASSERT_OK(pthread_create(&ringer, NULL, rings_in_turn, NULL));
    for (int i = 0; i < COUNT; i++) {
        int got = -1;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
    }
    ASSERT_EQ(load_relaxed(&ended), COUNT); /* joined: its values have ended */
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(ringer, NULL));
}

TEST(task_local_moves_along)
{
    crew_each(each_its_own);
}

/* ---- parents and children ---------------------------------------------------------------------------------- */

struct child {
    WEFT_FRAME(int);
};
static weft_async(child)
{
    weft_begin;
    if (*this_number() != 0) weft_return(-1);
    *this_number() = 7;
    weft_return(0);
    weft_end;
}

struct shares {
    WEFT_FRAME(int);
};
static weft_fiber(shares)
{
    (void)weft_yield();
    f->ret = *this_number();
}

/* A child that has not begun is run inside of the join; one that is awaited belongs to the task. */
struct parent {
    WEFT_FRAME(int);
    int got;
    int i;
    struct weft_join join;
    struct shares shares;
};
static weft_async(parent)
{
    weft_begin;
    *this_number() = 3;
    for (f->i = 0; f->i < 10; f->i++) {
        weft_await(f->join, weft_join, weft_spawn(child), &f->got);
        if (f->join.ret < 0 || f->got != 0 || *this_number() != 3) weft_return(-1);
        weft_await(f->shares, shares);
        if (f->shares.ret != 3) weft_return(-2);
    }
    weft_return(0);
    weft_end;
}

static void families(struct crew *crew)
{
    (void)crew;
    for (unsigned i = 0; i < test_scaled(100); i++) {
        int got = -1;
        ASSERT_OK(weft_join(weft_spawn(parent), &got));
        ASSERT_EQ(got, 0);
    }
}

TEST(task_local_is_not_inherited_nor_mixed_up)
{
    crew_each(families);
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t ends; /* a digit for each, in order */

static void note_end(uint32_t digit)
{
    store_relaxed(&ends, load_relaxed(&ends) * 10 + digit);
}

static int *late(void);
static int *oldest(void);
static void oldest_done(const int *value)
{
    note_end(*value == 42 ? 1 : 9);
}
static void middle_done(const int *value)
{
    (void)value;
    note_end(late() ? 9 : 2); /* no new ones at the end */
}
static void youngest_done(const int *value)
{
    if (oldest()) *oldest() = 42; /* older ones are still there */
    note_end(*value == 5 ? 3 : 9);
}
static WEFT_TASK_LOCAL(int, late);
static WEFT_TASK_LOCAL(int, oldest, oldest_done);
static WEFT_TASK_LOCAL(int, middle, middle_done);
static WEFT_TASK_LOCAL(int, youngest, youngest_done);

static int uses_three(struct bell *bell)
{
    (void)oldest();
    (void)middle();
    *youngest() = 5;
    return bell ? weft_run(hear, .bell = bell) : 0;
}

static void ends_in_order(struct crew *crew)
{
    struct bell bell;
    (void)crew;
    store_relaxed(&ends, 0);
    ASSERT_OK(weft_join(weft_go(uses_three, NULL), (int *)NULL));
    ASSERT_EQ(load_relaxed(&ends), 321);
    bell_init(&bell);
    store_relaxed(&ends, 0);
    weft_task *t = weft_go_as((.name = "named"), uses_three, &bell); /* its ext is there already */
    weft_cancel(t);
    ASSERT_OK(weft_join(t, (int *)NULL));
    ASSERT_EQ(load_relaxed(&ends), 321);
}

TEST(task_local_ends_youngest_first_before_the_joiner_is_told)
{
    crew_each(ends_in_order);
}

/* Tasks that a stop cancels end theirs too. */
TEST(task_local_ends_with_a_stop)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        struct bell unrung[COUNT];
        crew_start(&crew, crew_sizes[i]);
        store_relaxed(&ended, 0);
        for (int k = 0; k < COUNT; k++) {
            bell_init(&unrung[k]);
            ASSERT_OK(weft_detach(weft_go(keeps, k, &unrung[k])));
        }
        crew_stop(&crew);
        ASSERT_EQ(load_relaxed(&ended), COUNT);
    }
}

/* ---- none here ------------------------------------------------------------------------------------------------ */

TEST(task_local_is_null_on_a_plain_thread)
{
    ASSERT_NULL(this_request());
    ASSERT_NULL(this_number());
}

#if defined(WEFT_FAULTS)
/* Whichever allocation fails, the answer is NULL, and the next try may be better. */
static int tries_until_it_works(void)
{
    int failures = 0;
    for (uint32_t nth = 1;; nth++) {
        weft__fault_arm(WEFT__FAULT_ALLOC, nth, 1, -ENOMEM);
        struct request *own = this_request();
        weft__fault_reset();
        if (own) return own->id == 0 && own == this_request() ? failures : -1;
        failures++;
    }
}

static void out_of_memory(struct crew *crew)
{
    int got = -1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(tries_until_it_works), &got));
    ASSERT_GE(got, 3);
}

TEST(task_local_is_null_without_memory)
{
    crew_each(out_of_memory);
}
#endif

static int uses_all_keys(struct weft__task_key *keys, int count)
{
    for (int i = count - 1; i >= 0; i--) /* the table reaches far at once, then grows no more */
        if (!weft__task_local(&keys[i])) return -1;
    for (int i = 0; i < count; i++)
        *(int *)weft__task_local(&keys[i]) += i;
    for (int i = 0; i < count; i++)
        if (*(int *)weft__task_local(&keys[i]) != i) return -2;
    return 0;
}

static struct weft__task_key many_keys[100];

static void many(struct crew *crew)
{
    (void)crew;
    for (int i = 0; i < 100; i++)
        many_keys[i] =
            (struct weft__task_key){sizeof(int), _Alignof(int), NULL, many_keys[i].weft__number};
    weft_task *task[8];
    for (int i = 0; i < 8; i++) /* at once: they run for the numbers */
        task[i] = weft_go(uses_all_keys, many_keys, 100 - i * 10);
    for (int i = 0; i < 8; i++) {
        int got = -1;
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
    }
}

TEST(task_local_keys_may_be_many)
{
    crew_each(many);
}

/* ---- the rule for threads' own ----------------------------------------------------------------------------------- */

static _Thread_local int threads_own;

/* A compiler must not keep its address: the thread may be another one behind every await. */
static __attribute__((noinline)) int *threads_own_now(void)
{
    int *p = &threads_own;
    __asm__ volatile("" : "+r"(p));
    return p;
}

static _Atomic uint32_t moved;

/* Each thread's own holds its number. Behind an await the fiber finds the number of the thread it is on now. */
static int follows_the_rule(struct bell *bell)
{
    *this_number() = 11;
    while (!load_relaxed(&over)) {
        pid_t before = gettid();
        *threads_own_now() = before;
        for (int i = 0; i < 5000; i++)
            cpu_pause();
        if (weft_run(hear, .bell = bell) < 0) return -1;
        pid_t now = gettid();
        int own = *threads_own_now();
        if (own != 0 && own != now) return -2;
        if (*this_number() != 11) return -3;
        if (now != before) store_relaxed(&moved, 1);
        WEFT_PINNED
        {
            before = gettid();
            *threads_own_now() = before;
            if (weft_run(hear, .bell = bell) < 0) return -4;
            if (gettid() != before || *threads_own_now() != before) return -5;
        }
    }
    return 0;
}

TEST(thread_local_stays_behind_and_task_local_moves_along)
{
    struct crew crew;
    weft_task *task[COUNT];
    pthread_t ringer;
    crew_start(&crew, 2);
    store_relaxed(&over, false);
    store_relaxed(&moved, 0);
    for (int i = 0; i < COUNT; i++) {
        bell_init(&bells[i]);
        task[i] = weft_go(follows_the_rule, &bells[i]);
    }
    ASSERT_OK(pthread_create(&ringer, NULL, rings_in_turn, NULL));
    CREW_UNTIL(load_relaxed(&moved));
    store_relaxed(&over, true);
    ASSERT_OK(pthread_join(ringer, NULL));
    for (int i = 0; i < COUNT; i++) {
        int got = -1;
        bell_ring(&bells[i]);
        while (!weft_done(task[i])) {
            bell_ring(&bells[i]);
            sched_yield();
        }
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 0);
    }
    crew_stop(&crew);
}
