/* SPDX-License-Identifier: MIT
 *
 * Names on real runtimes: numbers ask nobody, names are asked for elsewhere, errors are errnos; who gives up is free at once, however long the
 * system takes, and slow names hold up nobody else.
 */
#include "base/fault.h"
#include "names.h"
#include "storm.h"
#include "town.h"

static void prints(const weft_addr *addr, const char *text)
{
    char is[WEFT_ADDR_TEXT];
    ASSERT_GE(weft_addr_print(addr, is, sizeof is), 1);
    ASSERT_STR(is, text);
}

/* ---- numbers ---- */

static void numbers_ask_nobody(struct crew *crew)
{
    static const struct {
        const char *host, *service, *text;
    } numbers[] = {
        {"127.0.0.1", "80", "127.0.0.1:80"},
        {"::1", "443", "[::1]:443"},
        {"10.0.0.7", NULL, "10.0.0.7:0"},
        {"fe80::1%1", "5", "[fe80::1%1]:5"},
    };
    weft_addr_list *list;
    weft_stats stats;
    names_reset();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ASSERT_OK(weft_resolve(numbers[i].host, numbers[i].service, NULL, &list));
        ASSERT_EQ(list->count, 1);
        prints(&list->addr[0], numbers[i].text);
        weft_free(list);
    }
    weft_resolve_opts six = {.family = WEFT_FAMILY_V6};
    ASSERT_EQ(weft_resolve("127.0.0.1", "80", &six, &list), -ENOENT);
    ASSERT_OK(weft_resolve("::1", "80", &six, &list));
    weft_free(list);
    ASSERT_EQ(load_relaxed(&names_asked), 0);
    weft_rt_stats(crew->rt, &stats);
    ASSERT_EQ(stats.blocking_jobs, 0);
}

TEST(resolve_numbers_ask_nobody)
{
    crew_each(numbers_ask_nobody);
}

/* ---- names ---- */

struct asking {
    WEFT_FRAME(int);
    const char *host;
    weft_addr_list **list;
    struct weft_resolve resolve;
};
static weft_async(asking)
{
    weft_begin;
    weft_await(f->resolve, weft_resolve, f->host, "80", NULL, f->list);
    weft_return(f->resolve.ret);
    weft_end;
}

static int asks(const char *host, weft_addr_list **list)
{
    return weft_resolve(host, "80", NULL, list);
}

static int asked(const char *host, weft_addr_list **list, bool stackless)
{
    int r = 1;
    weft_task *task = stackless ? weft_spawn(asking, host, list) : weft_go(asks, host, list);
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static void names_are_found(struct crew *crew)
{
    weft_addr_list *list;
    (void)crew;
    names_reset();
    ASSERT_OK(weft_addr_parse("127.0.0.1:80", &names_table[0]));
    ASSERT_OK(weft_addr_parse("[::1]:80", &names_table[1]));
    names_count = 2;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(asked("table.test", &list, i));
        ASSERT_EQ(list->count, 2);
        prints(&list->addr[0], "127.0.0.1:80");
        prints(&list->addr[1], "[::1]:80");
        weft_free(list);
        ASSERT_OK(asked("localhost", &list, i)); /* the C library's own */
        ASSERT_EQ(weft_addr_port(&list->addr[0]), 80);
        weft_free(list);
    }
    names_count = 0;
    ASSERT_EQ(asked("table.test", &list, false), -ENOENT); /* an answer without addresses */
}

TEST(resolve_finds_names)
{
    crew_each(names_are_found);
}

static void errors_are_told(struct crew *crew)
{
    weft_addr_list *list = NULL;
    (void)crew;
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(asked("none.test", &list, i), -ENOENT);
        ASSERT_EQ(asked("family.test", &list, i), -ENOENT);
        ASSERT_EQ(asked("again.test", &list, i), -EAGAIN);
        ASSERT_EQ(asked("fail.test", &list, i), -EIO);
        ASSERT_EQ(asked("service.test", &list, i), -EPROTONOSUPPORT);
        ASSERT_EQ(asked("system.test", &list, i), -EMFILE);
        ASSERT_EQ(asked("memory.test", &list, i), -ENOMEM);
        ASSERT_EQ(asked("", &list, i), -EINVAL);
        ASSERT_EQ(asked(NULL, &list, i), -EINVAL);
        ASSERT_EQ(asked("localhost", NULL, i), -EINVAL);
    }
    ASSERT_NULL(list);
}

TEST(resolve_errors_are_errnos)
{
    crew_each(errors_are_told);
}

/* A plain thread without a runtime asks by itself. */
TEST(resolve_needs_no_runtime)
{
    weft_addr_list *list;
    ASSERT_OK(weft_resolve("127.0.0.1", "80", NULL, &list));
    weft_free(list);
    ASSERT_OK(weft_resolve("localhost", "80", NULL, &list));
    weft_free(list);
}

/* ---- slow ones ---- */

static int64_t answers_7(void)
{
    return 7;
}

/* More names than the lane has threads, none answered; jobs of others run, tasks give up, each at once. */
static void slow_names_hold_up_nobody(struct crew *crew)
{
    enum { TASKS = 40 };
    weft_task *task[TASKS];
    weft_addr_list *list[TASKS];
    (void)crew;
    names_reset();
    for (int i = 0; i < TASKS; i++)
        task[i] = i % 2 ? weft_spawn(asking, "slow.test", &list[i])
                        : weft_go(asks, "slow.test", &list[i]);
    CREW_UNTIL(load_relaxed(&names_slow) > 0);
    ASSERT_EQ(weft_blocking(answers_7), 7);
    for (int i = 0; i < TASKS; i++) {
        int r = 1;
        weft_cancel(task[i]);
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(r, -ECANCELED);
    }
    ASSERT(load_relaxed(&names_slow) > 0); /* and it still has not been answered */
    names_open();
}

/* With one thread for all other jobs: a single name in their lane would hold them up for ever. */
TEST(resolve_slow_names_hold_up_nobody)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_rt_opts opts = {
            .workers = crew_sizes[i], .seed = test_seed() | 1, .blocking_threads = 1};
        crew_start_with(&crew, &opts);
        slow_names_hold_up_nobody(&crew);
        crew_stop(&crew);
    }
}

/* ---- given up ---- */

static int takes(weft_addr_list **unused)
{
    weft_addr_list *list;
    (void)unused;
    int r = weft_resolve("table.test", "80", NULL, &list);
    if (r == 0) weft_free(list);
    return r;
}

struct taking {
    WEFT_FRAME(int);
    weft_addr_list *list;
    struct weft_resolve resolve;
};
static weft_async(taking)
{
    weft_begin;
    weft_await(f->resolve, weft_resolve, "table.test", "80", NULL, &f->list);
    if (f->resolve.ret == 0) weft_free(f->list);
    weft_return(f->resolve.ret);
    weft_end;
}

static weft_task *starts(void *of, uint32_t i, bool stackless)
{
    (void)of, (void)i;
    return stackless ? weft_spawn(taking, NULL) : weft_go(takes, NULL);
}

/* Whenever it is given up, no list is left behind: the harness counts memory. */
static void given_up(struct crew *crew)
{
    (void)crew;
    names_reset();
    ASSERT_OK(weft_addr_parse("127.0.0.1:80", &names_table[0]));
    names_count = 1;
    for (uint64_t round = 0; round < test_scaled(5); round++) {
        struct storm_sum sum = storm(starts, NULL, 100, NULL);
        ASSERT_EQ(sum.other, 0);
        ASSERT_EQ(sum.got + sum.cancelled, 100);
    }
}

TEST_WITH(resolve_given_up_leaves_nothing, .timeout_s = 180)
{
    crew_each(given_up);
}

#if defined(WEFT_FAULTS)
static void faults(struct crew *crew)
{
    weft_addr_list *list = NULL;
    (void)crew;
    names_reset();
    ASSERT_OK(weft_addr_parse("127.0.0.1:80", &names_table[0]));
    names_count = 1;
    weft__fault_arm(WEFT__FAULT_RESOLVE, 1, 1, -EIO);
    ASSERT_EQ(weft_resolve("table.test", NULL, NULL, &list), -EIO);
    for (uint32_t n = 1;; n++) {
        weft__fault_arm(WEFT__FAULT_ALLOC, n, 1, -ENOMEM);
        int r = weft_resolve("table.test", NULL, NULL, &list);
        bool reached = weft__fault_calls(WEFT__FAULT_ALLOC) >= n;
        weft__fault_reset();
        if (r == 0) weft_free(list);
        ASSERT(r == 0 || r == -ENOMEM);
        if (!reached) break;
    }
}

TEST(resolve_faults)
{
    crew_each(faults);
}
#endif
