/* SPDX-License-Identifier: MIT
 *
 * A resolver of the program's own in the place of the system's: asked for hosts and for nothing else, in both kinds of task, and given up at any moment.
 */
#include "names.h"
#include "storm.h"
#include "town.h"

static void prints(const weft_addr *addr, const char *text)
{
    char is[WEFT_ADDR_TEXT];
    ASSERT_GE(weft_addr_print(addr, is, sizeof is), 1);
    ASSERT_STR(is, text);
}

/* ---- one that takes a few turns, and knows hosts by their first letter ---- */

static _Atomic uint32_t asked; /* relaxed, all: counts */
static _Atomic uint32_t answered;

struct finds {
    WEFT_LOOKUP;
    uint32_t turns;
    struct storm_pause pause;
};

static int answers(struct finds *f)
{
    weft_addr addrs[2];
    ASSERT_OK(weft_addr_parse("10.0.0.1:9", &addrs[0]));
    ASSERT_OK(weft_addr_parse("[fd00::1]:9", &addrs[1]));
    if (f->host[0] == 'e') return -EIO;
    if (f->host[0] == 'n') return weft_addr_list_new(addrs, 0, &f->found);
    if (f->family == WEFT_FAMILY_V4) return weft_addr_list_new(&addrs[0], 1, &f->found);
    if (f->family == WEFT_FAMILY_V6) return weft_addr_list_new(&addrs[1], 1, &f->found);
    return weft_addr_list_new(addrs, 2, &f->found);
}

static weft_async(finds)
{
    weft_begin;
    fetch_add_relaxed(&asked, 1);
    ASSERT(f->rt);
    weft_await(f->pause, storm_pause, 3);
    fetch_add_relaxed(&answered, 1);
    weft_return(f->pause.ret < 0 ? f->pause.ret : answers(f));
    weft_end;
}
static const weft_resolver mine = {sizeof(struct finds), finds_poll};

/* And one that never answers. */
struct waits {
    WEFT_LOOKUP;
    struct weft_sleep sleep;
};
static weft_async(waits)
{
    weft_begin;
    fetch_add_relaxed(&asked, 1);
    weft_await(f->sleep, weft_sleep, WEFT_FOREVER);
    fetch_add_relaxed(&answered, 1);
    weft_return(f->sleep.ret);
    weft_end;
}
static const weft_resolver silent = {sizeof(struct waits), waits_poll};

static void begin_with(const weft_resolver *resolver)
{
    names_reset();
    store_relaxed(&asked, 0);
    store_relaxed(&answered, 0);
    ASSERT_PTR(weft_resolver_use(resolver), NULL);
}

static void end_with(const weft_resolver *resolver)
{
    ASSERT_PTR(weft_resolver_use(NULL), resolver);
}

/* ---- asking ---- */

struct asking {
    WEFT_FRAME(int);
    const char *host;
    const char *service;
    weft_addr_list **list;
    struct weft_resolve resolve;
};
static weft_async(asking)
{
    weft_begin;
    weft_await(f->resolve, weft_resolve, f->host, f->service, NULL, f->list);
    weft_return(f->resolve.ret);
    weft_end;
}

static int asks(const char *host, const char *service, weft_addr_list **list)
{
    return weft_resolve(host, service, NULL, list);
}

static int ask(const char *host, const char *service, weft_addr_list **list, bool stackless)
{
    int r = 1;
    weft_task *task =
        stackless ? weft_spawn(asking, host, service, list) : weft_go(asks, host, service, list);
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static void hosts_are_asked_for(struct crew *crew)
{
    weft_addr_list *list = NULL;
    (void)crew;
    begin_with(&mine);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(ask("host", "80", &list, i));
        ASSERT_EQ(list->count, 2);
        prints(&list->addr[0], "10.0.0.1:80"); /* the port is the query's */
        prints(&list->addr[1], "[fd00::1]:80");
        weft_free(list);
        ASSERT_OK(ask("host", NULL, &list, i));
        prints(&list->addr[0], "10.0.0.1:0");
        weft_free(list);
        ASSERT_EQ(ask("error", "80", &list, i), -EIO);
        ASSERT_EQ(ask("nobody", "80", &list, i), -ENOENT);
    }
    ASSERT_EQ(load_relaxed(&asked), 8);
    ASSERT_EQ(load_relaxed(&names_asked), 0); /* the system */
    end_with(&mine);
}

TEST(resolver_is_asked_for_hosts)
{
    crew_each(hosts_are_asked_for);
}

/* The system knows services, and numbers in all their forms. */
static void services_and_numbers_are_not(struct crew *crew)
{
    weft_addr_list *list;
    (void)crew;
    begin_with(&mine);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(ask("127.0.0.1", "80", &list, i));
        weft_free(list);
        ASSERT_EQ(load_relaxed(&names_asked), 0);
        ASSERT_OK(ask("127.1", "80", &list, i));
        prints(&list->addr[0], "127.0.0.1:80");
        weft_free(list);
        ASSERT_EQ(ask("127.0.0.1", "no-such-service", &list, i), -EPROTONOSUPPORT);
        ASSERT_EQ(load_relaxed(&asked), 0);
        ASSERT_EQ(ask("host", "no-such-service", &list, i), -EPROTONOSUPPORT);
        ASSERT_EQ(load_relaxed(&asked), 0); /* nobody is asked for the host of nothing */
        if (ask("127.0.0.1", "domain", &list, i) == 0) { /* where there is an /etc/services */
            weft_free(list);
            ASSERT_OK(ask("host", "domain", &list, i));
            prints(&list->addr[1], "[fd00::1]:53");
            weft_free(list);
        }
        store_relaxed(&names_asked, 0);
        store_relaxed(&asked, 0);
    }
    end_with(&mine);
}

TEST(resolver_is_asked_for_nothing_else)
{
    crew_each(services_and_numbers_are_not);
}

/* For one query, by a thread that has entered nothing, and of a family. */
static void one_query_names_its_own(struct crew *crew)
{
    weft_addr_list *list;
    weft_resolve_opts opts = {.rt = crew->rt, .resolver = &mine, .family = WEFT_FAMILY_V6};
    names_reset();
    store_relaxed(&asked, 0);
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_resolve("host", "1", &opts, &list));
    ASSERT_EQ(list->count, 1);
    prints(&list->addr[0], "[fd00::1]:1");
    weft_free(list);
    opts.family = WEFT_FAMILY_V4;
    ASSERT_OK(weft_resolve("host", "1", &opts, &list));
    prints(&list->addr[0], "10.0.0.1:1");
    weft_free(list);
    ASSERT_EQ(load_relaxed(&asked), 2);
    ASSERT_EQ(load_relaxed(&names_asked), 0);
    opts.rt = NULL; /* and where there is no runtime at all, the system is asked */
    opts.family = WEFT_FAMILY_ANY;
    ASSERT_EQ(weft_resolve("none.test", "1", &opts, &list), -ENOENT);
    ASSERT_EQ(load_relaxed(&asked), 2);
    ASSERT_EQ(load_relaxed(&names_asked), 1);
    (void)weft_rt_enter(crew->rt);
}

TEST(resolver_of_one_query)
{
    crew_each(one_query_names_its_own);
}

/* ---- given up ---- */

static int waits_for_nobody(void)
{
    weft_addr_list *list;
    return weft_resolve("host", "80", NULL, &list);
}

static void is_told_to_stop(struct crew *crew)
{
    weft_task *task[2];
    weft_addr_list *list;
    (void)crew;
    begin_with(&silent);
    task[0] = weft_go(waits_for_nobody);
    task[1] = weft_spawn(asking, "host", "80", &list);
    CREW_UNTIL(load_relaxed(&asked) == 2);
    for (int i = 0; i < 2; i++) {
        int r = 1;
        weft_cancel(task[i]);
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_EQ(r, -ECANCELED);
    }
    ASSERT_EQ(load_relaxed(&answered), 2); /* each has settled */
    end_with(&silent);
}

TEST(resolver_is_told_to_stop)
{
    crew_each(is_told_to_stop);
}

static int takes(const char *service)
{
    weft_addr_list *list;
    int r = weft_resolve("host", service, NULL, &list);
    if (r == 0) weft_free(list);
    return r;
}

struct taking {
    WEFT_FRAME(int);
    const char *service;
    weft_addr_list *list;
    struct weft_resolve resolve;
};
static weft_async(taking)
{
    weft_begin;
    weft_await(f->resolve, weft_resolve, "host", f->service, NULL, &f->list);
    if (f->resolve.ret == 0) weft_free(f->list);
    weft_return(f->resolve.ret);
    weft_end;
}

static weft_task *starts(void *of, uint32_t i, bool stackless)
{
    const char *service = i % 4 ? "80" : of; /* some of them by way of the lane */
    return stackless ? weft_spawn(taking, service) : weft_go(takes, service);
}

/* Whenever it is given up, no list and no frame is left behind: the harness counts memory. */
static void given_up(struct crew *crew)
{
    weft_addr_list *list;
    char service[8] = "80";
    (void)crew;
    begin_with(&mine);
    if (ask("127.0.0.1", "domain", &list, false) == 0) {
        weft_free(list);
        strcpy(service, "domain");
    }
    for (uint64_t round = 0; round < test_scaled(5); round++) {
        struct storm_sum sum = storm(starts, service, 100, NULL);
        ASSERT_EQ(sum.other, 0);
    }
    end_with(&mine);
}

TEST_WITH(resolver_given_up_leaves_nothing, .timeout_s = 180)
{
    crew_each(given_up);
}

/* ---- pieces ---- */

TEST(resolver_lists_are_copies)
{
    weft_addr addr;
    weft_addr_list *list;
    struct sockaddr local = {.sa_family = AF_UNIX};
    ASSERT_OK(weft_addr_parse("[::1]:5", &addr));
    ASSERT_OK(weft_addr_list_new(&addr, 1, &list));
    weft_addr copy;
    ASSERT_OK(weft_addr_from(list->addr[0].weft__data, list->addr[0].bytes, &copy));
    weft_free(list);
    prints(&copy, "[::1]:5");
    ASSERT_EQ(weft_addr_list_new(&addr, 0, &list), -ENOENT);
    ASSERT_EQ(weft_addr_list_new(NULL, 1, &list), -EINVAL);
    ASSERT_EQ(weft_addr_list_new(&addr, 1, NULL), -EINVAL);
    ASSERT_EQ(weft_addr_from(addr.weft__data, 16, &copy), -EINVAL); /* cut */
    ASSERT_EQ(weft_addr_from(&local, sizeof local, &copy), -EINVAL);
    ASSERT_EQ(weft_addr_from(NULL, 16, &copy), -EINVAL);
}
