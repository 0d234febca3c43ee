/* SPDX-License-Identifier: MIT
 *
 * The pool of stacks: guards that kill by both means, reuse, trim, tens of thousands of them,
 * failures that leave the pool usable, and finding a slot by address.
 */
#include "base/fault.h"
#include "base/rand.h"
#include "death.h"
#include "sys/mem.h"
#include "sys/stack.h"
#include "sys/thread.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>

#define BYTES (64 * 1024)

static void write_one(void *arg)
{
    *(volatile char *)arg = 1;
}

static void need_guard(void)
{
    int r = weft__mem_guard_probe();
    if (r < 0) TEST_SKIP("the kernel has no MADV_GUARD_INSTALL (%s)", strerror(-r));
}

static void pool_init(struct weft__stacks *pool, enum weft__stack_guard guard)
{
    ASSERT_OK(weft__stacks_init(pool, &(struct weft__stacks_options){
                                          .stack_bytes = BYTES, .chunk_slots = 4, .guard = guard}));
}

/* The whole stack is ours, and one byte below it is death, as is the guard's lowest byte. */
static void guard_kills(struct weft__stack *s, size_t guard_bytes)
{
    memset(s->lo, 1, weft__stack_bytes(s));
    ASSERT_EQ(death_of(write_one, s->lo - 1).signal, SIGSEGV);
    ASSERT_EQ(death_of(write_one, s->lo - guard_bytes).signal, SIGSEGV);
    ASSERT_EQ(death_of(write_one, s->lo).signal, 0);
    ASSERT_EQ(death_of(write_one, s->lo + weft__stack_bytes(s) - 1).signal, 0);
}

static void guards_of_three_kill(enum weft__stack_guard guard)
{
    struct weft__stacks pool;
    struct weft__stack *s[3];

    pool_init(&pool, guard);
    ASSERT_EQ(pool.guard, guard);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    for (int i = 0; i < 3; i++)
        guard_kills(s[i], pool.guard_bytes);
    for (int i = 0; i < 3; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
}

TEST(stack_guard_by_madvise_kills)
{
    need_guard();
    guards_of_three_kill(WEFT__STACK_GUARD_MADVISE);
}

TEST(stack_guard_by_mprotect_kills)
{
    guards_of_three_kill(WEFT__STACK_GUARD_MPROTECT);
}

TEST(stack_auto_chooses_what_the_kernel_has)
{
    struct weft__stacks pool;
    bool has = weft__mem_guard_probe() == 0;
    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    ASSERT_EQ(pool.guard, has ? WEFT__STACK_GUARD_MADVISE : WEFT__STACK_GUARD_MPROTECT);
    ASSERT_GE(pool.guard_bytes, has ? WEFT__STACK_GUARD_BYTES : weft__mem_page_bytes());
    weft__stacks_done(&pool);
}

TEST(stack_sizes_are_whole_pages_and_bounded)
{
    struct weft__stacks pool;
    struct weft__stack *s;
    size_t page = weft__mem_page_bytes();

    ASSERT_OK(weft__stacks_init(&pool, &(struct weft__stacks_options){.stack_bytes = page + 1}));
    ASSERT_EQ(pool.chunk_slots, WEFT__STACK_CHUNK_SLOTS);
    ASSERT_OK(weft__stack_get(&pool, &s));
    ASSERT_EQ(weft__stack_bytes(s), 2 * page);
    ASSERT_EQ((uintptr_t)s->lo % page, 0);
    weft__stack_put(&pool, s);
    weft__stacks_done(&pool);
    ASSERT_EQ(weft__stacks_init(&pool, &(struct weft__stacks_options){.stack_bytes = 0}), -EINVAL);
    ASSERT_EQ(weft__stacks_init(&pool, &(struct weft__stacks_options){.stack_bytes = SIZE_MAX}),
              -EINVAL);
    ASSERT_EQ(weft__stacks_init(&pool,
                                &(struct weft__stacks_options){
                                    .stack_bytes = SIZE_MAX / 4 / WEFT__STACK_CHUNK_SLOTS + 1}),
              -EINVAL);
    ASSERT_EQ(weft__stacks_init(&pool, &(struct weft__stacks_options){.stack_bytes = (size_t)1 << 44}),
              -EINVAL); /* more units than are counted */
}

TEST(stack_too_large_to_map_is_enomem)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind answers such a mapping itself, with another error");
    struct weft__stacks pool;
    struct weft__stack *s = NULL;
    ASSERT_OK(
        weft__stacks_init(&pool, &(struct weft__stacks_options){.stack_bytes = (size_t)1 << 43}));
    ASSERT_EQ(weft__stack_get(&pool, &s), -ENOMEM);
    ASSERT_NULL(s);
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
}

/* The last one put is the first one got, with its contents; no new mapping while one is free. */
TEST(stack_reuse_is_last_in_first_out)
{
    struct weft__stacks pool;
    struct weft__stack *s[8];
    struct weft__stack *again;

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    for (int i = 0; i < 8; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    ASSERT_EQ(pool.slot_count, 8);
    s[5]->lo[100] = 'x';
    weft__stack_put(&pool, s[2]);
    weft__stack_put(&pool, s[5]);
    ASSERT_OK(weft__stack_get(&pool, &again));
    ASSERT_PTR(again, s[5]);
    ASSERT_EQ(again->lo[100], 'x');
    ASSERT_OK(weft__stack_get(&pool, &again));
    ASSERT_PTR(again, s[2]);
    ASSERT_EQ(pool.slot_count, 8);
    weft__stacks_check(&pool);
    for (int i = 0; i < 8; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
}

/* A magazine keeps some, of its own pool only, and gives all of them back. */
TEST(stack_magazine_keeps_a_few)
{
    struct weft__stacks pool;
    struct weft__stacks other;
    struct weft__stack *s[WEFT__STACK_MAGAZINE + 2];
    struct weft__stack *again;
    struct weft__stack_magazine magazine = {.pool = &pool};

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    pool_init(&other, WEFT__STACK_GUARD_AUTO);
    for (int i = 0; i < WEFT__STACK_MAGAZINE + 2; i++)
        ASSERT_OK(weft__stack_get_by(&magazine, &pool, &s[i]));
    for (int i = 0; i < WEFT__STACK_MAGAZINE + 2; i++)
        weft__stack_put_by(&magazine, &pool, s[i]);
    ASSERT_EQ(magazine.count, WEFT__STACK_MAGAZINE);
    ASSERT_EQ(pool.in_use_count, WEFT__STACK_MAGAZINE); /* the two that did not fit are the pool's */
    weft__stacks_check(&pool);

    ASSERT_OK(weft__stack_get_by(&magazine, &pool, &again));
    ASSERT_PTR(again, s[WEFT__STACK_MAGAZINE - 1]);
    weft__stack_put_by(&magazine, &pool, again);
    ASSERT_OK(weft__stack_get_by(&magazine, &other, &again));
    ASSERT_EQ(magazine.count, WEFT__STACK_MAGAZINE);
    weft__stack_put_by(&magazine, &other, again);
    ASSERT_EQ(other.in_use_count, 0);
    ASSERT_OK(weft__stack_get_by(NULL, &other, &again));
    weft__stack_put_by(NULL, &other, again);

    weft__stack_magazine_flush(&magazine);
    ASSERT_EQ(pool.in_use_count, 0);
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
    weft__stacks_done(&other);
}

#if defined(WEFT_FAULTS)
/* A put, and a get of what was put, make no syscall. */
TEST(stack_reuse_makes_no_syscall)
{
    struct weft__stacks pool;
    struct weft__stack *s;

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    ASSERT_OK(weft__stack_get(&pool, &s));
    weft__fault_reset();
    for (int i = 0; i < 100; i++) {
        weft__stack_put(&pool, s);
        ASSERT_OK(weft__stack_get(&pool, &s));
    }
    for (int kind = 0; kind < WEFT__FAULT_COUNT; kind++)
        ASSERT_EQ(weft__fault_calls(kind), 0);
    weft__stack_put(&pool, s);
    weft__stacks_done(&pool);
}
#endif

static void trim_keeps_guards(enum weft__stack_guard guard)
{
    struct weft__stacks pool;
    struct weft__stack *s[6];

    pool_init(&pool, guard);
    for (int i = 0; i < 6; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    for (int i = 0; i < 6; i++)
        memset(s[i]->lo, 'x', weft__stack_bytes(s[i]));
    for (int i = 0; i < 5; i++)
        weft__stack_put(&pool, s[i]); /* the sixth stays in use */
    ASSERT_EQ(weft__stacks_trim(&pool, 2), 3);
    ASSERT_EQ(weft__stacks_trim(&pool, 2), 0);
    weft__stacks_check(&pool);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(s[i]->lo[weft__stack_bytes(s[i]) - 1], 0); /* these went first */
    for (int i = 3; i < 6; i++)
        ASSERT_EQ(s[i]->lo[weft__stack_bytes(s[i]) - 1], 'x');
    for (int i = 0; i < 6; i++)
        ASSERT_EQ(death_of(write_one, s[i]->lo - 1).signal, SIGSEGV);
    ASSERT_EQ(weft__stacks_trim(&pool, 0), 2);
    weft__stack_put(&pool, s[5]);
    weft__stacks_check(&pool);
    for (int i = 0; i < 6; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    for (int i = 0; i < 6; i++)
        guard_kills(s[i], pool.guard_bytes);
    for (int i = 0; i < 6; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_done(&pool);
}

TEST(stack_trim_keeps_guards_of_madvise)
{
    need_guard();
    trim_keeps_guards(WEFT__STACK_GUARD_MADVISE);
}

TEST(stack_trim_keeps_guards_of_mprotect)
{
    trim_keeps_guards(WEFT__STACK_GUARD_MPROTECT);
}

/* More than a batch: all are trimmed, whatever the batch. */
TEST(stack_trim_goes_through_all)
{
    enum { MANY = 3 * WEFT__STACK_TRIM_BATCH + 5 };
    struct weft__stacks pool;
    static struct weft__stack *s[MANY];

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    ASSERT_EQ(weft__stacks_trim(&pool, 0), 0);
    for (int i = 0; i < MANY; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    for (int i = 0; i < MANY; i++)
        s[i]->lo[0] = 'x';
    for (int i = 0; i < MANY; i++)
        weft__stack_put(&pool, s[i]);
    ASSERT_EQ(weft__stacks_trim(&pool, 1), MANY - 1);
    for (int i = 0; i < MANY - 1; i++)
        ASSERT_EQ(s[i]->lo[0], 0);
    ASSERT_EQ(s[MANY - 1]->lo[0], 'x');
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
}

static unsigned mapping_count(void)
{
    unsigned lines = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    ASSERT(f);
    for (int c; (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    fclose(f);
    return lines;
}

/* Fifty thousand stacks, each with its guard, and hardly a mapping more than before. */
TEST_WITH(stack_fifty_thousand_by_madvise, .timeout_s = 300)
{
    size_t many = test_scaled(50000);
    struct weft__stacks pool;

    if (getenv("WEFT_TEST_UNDER")) many /= 10; /* Valgrind looks for pointers in all of them, at every death */
    need_guard();
    struct weft__stack **s = calloc(many, sizeof(struct weft__stack *));
    unsigned before = mapping_count();
    ASSERT_OK(weft__stacks_init(
        &pool, &(struct weft__stacks_options){.stack_bytes = 256 * 1024,
                                              .guard = WEFT__STACK_GUARD_MADVISE}));
    int r = 0;
    for (size_t i = 0; i < many && r == 0; i++)
        r = weft__stack_get(&pool, &s[i]);
    ASSERT_OK(r);
    for (size_t i = 0; i < many; i += 64)
        s[i]->lo[weft__stack_bytes(s[i]) - 1] = 1;
    ASSERT_LE(mapping_count(), before + many / 10);
    ASSERT_EQ(death_of(write_one, s[0]->lo - 1).signal, SIGSEGV);
    ASSERT_EQ(death_of(write_one, s[many / 2]->lo - 1).signal, SIGSEGV);
    ASSERT_EQ(death_of(write_one, s[many - 1]->lo - 1).signal, SIGSEGV);
    weft__stacks_check(&pool);
    for (size_t i = 0; i < many; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_done(&pool);
    free(s);
}

#define MAPPINGS_MAX 100000 /* more would take the test too long; the default is 65530 */

static unsigned long max_map_count(void)
{
    unsigned long limit = 0;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    if (f) {
        if (fscanf(f, "%lu", &limit) != 1) limit = 0;
        fclose(f);
    }
    return limit;
}

/* With mprotect the process runs out of mappings: that is -ENOMEM, what is there stays good, and
 * what is put can be got again. */
TEST_WITH(stack_mprotect_ends_at_the_limit_of_mappings, .timeout_s = 300)
{
    unsigned long limit = max_map_count();
    if (limit == 0 || limit > MAPPINGS_MAX)
        TEST_SKIP("vm.max_map_count is %lu: too many to use up", limit);
    if (test_scaled(20) != 20) TEST_SKIP("a sanitizer needs mappings of its own");
    struct weft__stacks pool;
    struct weft__stack *extra = NULL;
    struct weft__stack **s = calloc(MAPPINGS_MAX, sizeof(struct weft__stack *));
    size_t count = 0;
    int r = 0;

    ASSERT_OK(weft__stacks_init(
        &pool,
        &(struct weft__stacks_options){.stack_bytes = 4096, .guard = WEFT__STACK_GUARD_MPROTECT}));
    while (count < limit && (r = weft__stack_get(&pool, &s[count])) == 0)
        count++;
    int second = weft__stack_get(&pool, &extra);
    weft__stack_put(&pool, s[count - 1]);
    int third = weft__stack_get(&pool, &s[count - 1]);
    for (size_t i = 0; i < count; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
    free(s);
    ASSERT_EQ(r, -ENOMEM);
    ASSERT_EQ(second, -ENOMEM);
    ASSERT_OK(third);
    ASSERT_GE(count, limit / 3);
}

/* ---- finding --------------------------------------------------------------------------------- */

TEST(stack_find_tells_guard_from_stack)
{
    struct weft__stacks pool;
    struct weft__stack *s[6];
    struct weft__stack_hit hit;
    int local;

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    for (int i = 0; i < 6; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    for (int i = 0; i < 6; i++) {
        ASSERT(weft__stack_find(s[i]->lo - 1, &hit));
        ASSERT(hit.in_guard);
        ASSERT_PTR(hit.owner, &pool);
        ASSERT_PTR(hit.lo, s[i]->lo);
        ASSERT_EQ(hit.bytes, weft__stack_bytes(s[i]));
        ASSERT_PTR(hit.guard_lo, s[i]->lo - pool.guard_bytes);
        ASSERT_EQ(hit.guard_bytes, pool.guard_bytes);
        ASSERT_EQ(hit.index, i % 4);
        ASSERT(weft__stack_find(hit.guard_lo, &hit) && hit.in_guard);
        ASSERT(weft__stack_find(s[i]->lo, &hit) && !hit.in_guard);
        ASSERT(weft__stack_find(s[i]->lo + weft__stack_bytes(s[i]) - 1, &hit) && !hit.in_guard);
        ASSERT_PTR(hit.lo, s[i]->lo);
    }
    ASSERT(!weft__stack_find(&local, &hit));
    char *was = s[0]->lo;
    for (int i = 0; i < 6; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_done(&pool);
    ASSERT(!weft__stack_find(was, &hit));
}

static void report(int number, siginfo_t *info, void *context)
{
    static const char yes[] = "overflow of slot ";
    struct weft__stack_hit hit;
    (void)number;
    (void)context;
    if (weft__stack_find(info->si_addr, &hit) && hit.in_guard) {
        char digit = (char)('0' + hit.index);
        (void)!write(STDERR_FILENO, yes, sizeof(yes) - 1);
        (void)!write(STDERR_FILENO, &digit, 1);
    }
    signal(SIGSEGV, SIG_DFL);
}

static void overflow_with_handler(void *arg)
{
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    write_one(arg);
}

/* What the overflow report will do: the handler of a SIGSEGV looks the address up. */
TEST(stack_find_works_in_a_signal_handler)
{
    struct weft__stacks pool;
    struct weft__stack *s[3];

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft__stack_get(&pool, &s[i]));
    struct death d = death_of(overflow_with_handler, s[2]->lo - 8);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, "overflow of slot 2");
    d = death_of(overflow_with_handler, (void *)64);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, "");
    for (int i = 0; i < 3; i++)
        weft__stack_put(&pool, s[i]);
    weft__stacks_done(&pool);
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct user {
    struct weft__thread thread;
    struct weft__stacks *pool;
    uint64_t seed;
    uint64_t rounds;
    bool good;
};

static bool own_and_check(struct weft__stack *s, uint64_t mark)
{
    volatile uint64_t *top = (volatile uint64_t *)(void *)(s->lo + weft__stack_bytes(s) - sizeof(uint64_t));
    *top = mark;
    weft__thread_yield();
    return *top == mark;
}

/* Hold up to four stacks, write a mark of one's own into each, and see that it stays; now and
 * then trim. */
static void use_stacks(void *arg)
{
    struct user *u = arg;
    struct weft__stack *held[4] = {NULL};
    struct weft__rand r;

    u->good = true;
    weft__rand_seed(&r, u->seed);
    for (uint64_t i = 0; i < u->rounds; i++) {
        struct weft__stack **s = &held[weft__rand_below(&r, 4)];
        if (weft__rand_chance(&r, 1, 16)) (void)weft__stacks_trim(u->pool, weft__rand_below(&r, 4));
        if (*s) {
            u->good = u->good && own_and_check(*s, u->seed + i);
            weft__stack_put(u->pool, *s);
            *s = NULL;
        } else if (weft__stack_get(u->pool, s) < 0) {
            u->good = false;
            *s = NULL;
        }
    }
    for (int i = 0; i < 4; i++)
        if (held[i]) weft__stack_put(u->pool, held[i]);
}

/* Six threads get, write, put and trim: no stack is ever two threads', and none is trimmed while
 * it is in use. Seeded. */
TEST(stack_pool_shared_by_threads)
{
    struct weft__stacks pool;
    static struct user users[6];

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    for (int i = 0; i < 6; i++) {
        users[i] = (struct user){
            .pool = &pool, .seed = test_seed() + (uint64_t)i, .rounds = test_scaled(2000)};
        ASSERT_OK(weft__thread_start(&users[i].thread, &(struct weft__thread_options){0},
                                     use_stacks, &users[i]));
    }
    for (int i = 0; i < 6; i++)
        weft__thread_join(&users[i].thread);
    for (int i = 0; i < 6; i++)
        ASSERT(users[i].good);
    weft__stacks_check(&pool);
    ASSERT_EQ(pool.in_use_count, 0);
    weft__stacks_done(&pool);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void put_twice(void *arg)
{
    struct weft__stacks pool;
    struct weft__stack *s;
    (void)arg;
    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    ASSERT_OK(weft__stack_get(&pool, &s));
    weft__stack_put(&pool, s);
    weft__stack_put(&pool, s);
}

static void done_while_in_use(void *arg)
{
    struct weft__stacks pool;
    struct weft__stack *s;
    (void)arg;
    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    ASSERT_OK(weft__stack_get(&pool, &s));
    weft__stacks_done(&pool);
}

TEST(stack_misuse_aborts)
{
    struct death d = death_of(put_twice, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "in_use"));
    d = death_of(done_while_in_use, NULL);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "in_use_count == 0"));
}

/* ---- faults ---------------------------------------------------------------------------------- */

#if defined(WEFT_FAULTS)

/* Fail the nth call of a kind while six stacks are got, for every n until none fails. A failed
 * get answers the error and gives nothing; the next one succeeds, and the pool is whole. */
static void fails_cleanly(enum weft__stack_guard guard, enum weft__fault_kind kind, int error)
{
    for (uint32_t nth = 1;; nth++) {
        struct weft__stacks pool;
        struct weft__stack *s[6];
        int failures = 0;

        weft__fault_reset();
        pool_init(&pool, guard);
        weft__fault_arm(kind, nth, 1, error);
        for (int i = 0; i < 6; i++) {
            s[i] = NULL;
            int r = weft__stack_get(&pool, &s[i]);
            weft__stacks_check(&pool);
            if (r == 0) continue;
            ASSERT_EQ(r, error);
            ASSERT_NULL(s[i]);
            failures++;
            i--;
        }
        bool over = weft__fault_calls(kind) < nth;
        ASSERT_EQ(failures, over ? 0 : 1);
        for (int i = 0; i < 6; i++)
            ASSERT_EQ(death_of(write_one, s[i]->lo - 1).signal, SIGSEGV);
        for (int i = 0; i < 6; i++)
            weft__stack_put(&pool, s[i]);
        weft__stacks_done(&pool);
        if (over) break;
    }
}

TEST(stack_mapping_failure_leaves_the_pool_usable)
{
    fails_cleanly(WEFT__STACK_GUARD_AUTO, WEFT__FAULT_MMAP, -ENOMEM);
    fails_cleanly(WEFT__STACK_GUARD_AUTO, WEFT__FAULT_ALLOC, -ENOMEM);
}

TEST(stack_mprotect_failure_leaves_the_pool_usable)
{
    fails_cleanly(WEFT__STACK_GUARD_MPROTECT, WEFT__FAULT_MPROTECT, -ENOMEM);
}

TEST(stack_madvise_failure_leaves_the_pool_usable)
{
    need_guard();
    fails_cleanly(WEFT__STACK_GUARD_MADVISE, WEFT__FAULT_GUARD, -ENOMEM);
}

/* Advice that is refused is no failure: neither huge pages nor trimming are owed. */
TEST(stack_advice_may_be_refused)
{
    struct weft__stacks pool;
    struct weft__stack *s;

    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    weft__fault_arm(WEFT__FAULT_MADVISE, 1, UINT32_MAX, -EINVAL);
    ASSERT_OK(weft__stack_get(&pool, &s));
    weft__stack_put(&pool, s);
    ASSERT_EQ(weft__stacks_trim(&pool, 0), 1);
    weft__stacks_check(&pool);
    weft__stacks_done(&pool);
}

/* A kernel without the cheap guard: AUTO takes the other, an explicit wish is an error, no
 * memory is no answer. */
TEST(stack_without_madvise_guard_falls_back)
{
    struct weft__stacks pool;
    struct weft__stack *s;

    weft__fault_arm(WEFT__FAULT_GUARD, 1, UINT32_MAX, -EINVAL);
    pool_init(&pool, WEFT__STACK_GUARD_AUTO);
    ASSERT_EQ(pool.guard, WEFT__STACK_GUARD_MPROTECT);
    ASSERT_EQ(pool.guard_bytes, weft__mem_page_bytes());
    ASSERT_OK(weft__stack_get(&pool, &s));
    guard_kills(s, pool.guard_bytes);
    weft__stack_put(&pool, s);
    weft__stacks_done(&pool);
    ASSERT_EQ(weft__stacks_init(&pool,
                                &(struct weft__stacks_options){.stack_bytes = BYTES,
                                                               .guard = WEFT__STACK_GUARD_MADVISE}),
              -EINVAL);
    weft__fault_arm(WEFT__FAULT_MMAP, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__stacks_init(&pool, &(struct weft__stacks_options){.stack_bytes = BYTES}),
              -ENOMEM);
}

/* A mapping that refuses the cheap guard although the probe got it: the slot is protected
 * instead. */
TEST(stack_refused_guard_is_made_by_mprotect)
{
    struct weft__stacks pool;
    struct weft__stack *s;

    need_guard();
    pool_init(&pool, WEFT__STACK_GUARD_MADVISE);
    weft__fault_arm(WEFT__FAULT_GUARD, 1, 1, -EINVAL);
    ASSERT_OK(weft__stack_get(&pool, &s));
    guard_kills(s, pool.guard_bytes);
    weft__stack_put(&pool, s);
    weft__stacks_done(&pool);
}

#endif
