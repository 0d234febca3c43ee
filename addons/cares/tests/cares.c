/* SPDX-License-Identifier: MIT
 *
 * Names by c-ares and by the system, of one name server: both answer the same, and fail in the same way. By c-ares, whoever gives up is free at once, and
 * nothing is left behind: no descriptor, no memory, no thread that would still be asking.
 *
 * The system is made to ask that server by way of getaddrinfo itself, which sets up the resolver of its thread first.
 */
#include "base/fault.h"
#include "nameserver.h"
#include "storm.h"
#include "town.h"

#include <weft/cares.h>

#include <dlfcn.h>
#include <netdb.h>
#include <resolv.h>

static struct nameserver server;
static _Atomic uint32_t system_asked; /* relaxed, as all here: a count */

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict req, struct addrinfo **restrict pai)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    fetch_add_relaxed(&system_asked, 1);
    ASSERT_OK(res_init());
    _res.nsaddr_list[0] = (struct sockaddr_in){.sin_family = AF_INET,
                                               .sin_port = htons((uint16_t)server.port),
                                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    _res.nscount = 1;
    _res.retrans = 1; /* a second, the least it knows */
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(name, service, req, pai);
}

/* ---- both ---- */

enum who { CARES, SYSTEM };

/* Patient: where a busy machine is slow, no try may be the last one. */
static weft_resolver *resolver_new(unsigned timeout_ms, unsigned tries)
{
    weft_resolver *resolver;
    weft_cares_opts opts = {.servers = server.address, .timeout_ms = timeout_ms, .tries = tries};
    ASSERT_OK(weft_cares_new(&opts, &resolver));
    return resolver;
}

struct fixture {
    struct crew crew;
    weft_resolver *resolver;
};

static void begin(struct fixture *f, int workers, enum who who, unsigned timeout_ms)
{
    nameserver_start(&server);
    store_relaxed(&system_asked, 0);
    f->resolver = who == CARES ? resolver_new(timeout_ms, 4) : NULL;
    ASSERT_PTR(weft_resolver_use(f->resolver), NULL);
    crew_start(&f->crew, workers);
}

static void end(struct fixture *f)
{
    crew_stop(&f->crew);
    ASSERT_PTR(weft_resolver_use(NULL), f->resolver);
    weft_cares_free(f->resolver);
    nameserver_stop(&server);
}

struct asking {
    WEFT_FRAME(int);
    const char *host;
    const weft_resolve_opts *opts;
    weft_addr_list **list;
    struct weft_resolve resolve;
};
static weft_async(asking)
{
    weft_begin;
    weft_await(f->resolve, weft_resolve, f->host, "80", f->opts, f->list);
    weft_return(f->resolve.ret);
    weft_end;
}

static int asks(const char *host, const weft_resolve_opts *opts, weft_addr_list **list)
{
    return weft_resolve(host, "80", opts, list);
}

static int ask(const char *host, enum weft_family family, bool stackless, weft_addr_list **list)
{
    int r = 1;
    weft_resolve_opts opts = {.family = family};
    weft_task *task =
        stackless ? weft_spawn(asking, host, &opts, list) : weft_go(asks, host, &opts, list);
    ASSERT_OK(weft_join(task, &r));
    return r;
}

static bool has(const weft_addr_list *list, const char *text)
{
    char is[WEFT_ADDR_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        ASSERT_GE(weft_addr_print(&list->addr[i], is, sizeof is), 1);
        if (strcmp(is, text) == 0) return true;
    }
    return false;
}

#define FOUR "192.0.2.1:80"
#define SIX  "[2001:db8::1]:80"

static const struct answer {
    const char *host;
    enum weft_family family;
    int ret; /* below zero, or how many addresses */
    const char *first;
    const char *second;
} answers[] = {
    {"four.test", WEFT_FAMILY_ANY, 1, FOUR, NULL},
    {"four.test", WEFT_FAMILY_V4, 1, FOUR, NULL},
    {"four.test", WEFT_FAMILY_V6, -ENOENT, NULL, NULL},
    {"six.test", WEFT_FAMILY_ANY, 1, SIX, NULL},
    {"six.test", WEFT_FAMILY_V6, 1, SIX, NULL},
    {"six.test", WEFT_FAMILY_V4, -ENOENT, NULL, NULL},
    {"both.test", WEFT_FAMILY_ANY, 2, FOUR, SIX},
    {"both.test", WEFT_FAMILY_V6, 1, SIX, NULL},
    {"alias.test", WEFT_FAMILY_ANY, 1, FOUR, NULL},
    {"junk.test", WEFT_FAMILY_V4, 1, FOUR, NULL},
    {"cut.test", WEFT_FAMILY_ANY, NAMESERVER_MANY, FOUR, "192.0.2.40:80"},
    {"none.test", WEFT_FAMILY_ANY, -ENOENT, NULL, NULL},
    {"empty.test", WEFT_FAMILY_ANY, -ENOENT, NULL, NULL},
    {"fail.test", WEFT_FAMILY_V4, -EAGAIN, NULL, NULL},
    {"refused.test", WEFT_FAMILY_V4, -EAGAIN, NULL, NULL},
    {"notimp.test", WEFT_FAMILY_V4, -EAGAIN, NULL, NULL},
    {"format.test", WEFT_FAMILY_V4, -ENOENT, NULL, NULL},
    {"hangup.test", WEFT_FAMILY_ANY, -EAGAIN, NULL, NULL},
    {"two..dots", WEFT_FAMILY_ANY, -ENOENT, NULL, NULL},
};

static void check(const struct answer *a, bool stackless)
{
    weft_addr_list *list = NULL;
    int r = ask(a->host, a->family, stackless, &list);
    int is = r == 0 ? (int)list->count : r;
    bool all = r < 0 || (has(list, a->first) && (!a->second || has(list, a->second)));
    if (is != a->ret || !all)
        ck_abort_msg("%s, family %d: %d, all of it: %d", a->host, a->family, is, all);
    weft_free(list);
}

/* Whether the system asks name servers at all is up to /etc/nsswitch.conf. */
static bool system_asks_servers(void)
{
    weft_addr_list *list;
    if (weft_resolve("four.test", "80", NULL, &list) < 0) return false;
    weft_free(list);
    return load_relaxed(&server.asked) > 0;
}

static void answers_all(enum who who)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct fixture f;
        begin(&f, crew_sizes[i], who, 2000);
        bool asked = who == CARES || system_asks_servers();
        for (size_t k = 0; asked && k < sizeof(answers) / sizeof(answers[0]); k++)
            check(&answers[k], (i + k) % 2);
        ASSERT_EQ(who == CARES, load_relaxed(&system_asked) == 0);
        end(&f);
        if (!asked) TEST_SKIP("the system's resolver asks no name servers");
    }
}

TEST_WITH(cares_answers, .timeout_s = 240)
{
    answers_all(CARES);
}

TEST_WITH(cares_answers_as_the_system_does, .timeout_s = 240)
{
    answers_all(SYSTEM);
}

/* ---- what is asked of nobody ---- */

/* Numbers, and names in /etc/hosts: the first that is neither an alias nor a localhost. */
static bool name_in_hosts(char *into, size_t bytes)
{
    char line[256];
    char name[128];
    bool found = false;
    FILE *hosts = fopen("/etc/hosts", "re");
    while (hosts && !found && fgets(line, sizeof line, hosts)) {
        if (sscanf(line, " %*[0-9.] %127s", name) != 1 || strstr(name, "localhost")) continue;
        snprintf(into, bytes, "%s", name);
        found = true;
    }
    if (hosts) fclose(hosts);
    return found;
}

TEST(cares_asks_nobody_for_what_is_known_here)
{
    char name[128];
    struct fixture f;
    weft_addr_list *list;
    begin(&f, 2, CARES, 2000);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(ask("127.0.0.1", WEFT_FAMILY_ANY, i, &list));
        weft_free(list);
        ASSERT_OK(ask("::1", WEFT_FAMILY_ANY, i, &list));
        weft_free(list);
        ASSERT_EQ(load_relaxed(&system_asked), 0);
        ASSERT_OK(ask("localhost", WEFT_FAMILY_V4, i, &list));
        ASSERT(has(list, "127.0.0.1:80"));
        weft_free(list);
        if (name_in_hosts(name, sizeof name)) {
            ASSERT_OK(ask(name, WEFT_FAMILY_V4, i, &list));
            weft_free(list);
        }
    }
    ASSERT_EQ(load_relaxed(&server.asked), 0);
    end(&f);
}

/* ---- time ---- */

/* The first question of each type gets no answer: the second try does, after a timeout that is weft's. */
static void tries_again(struct crew *crew)
{
    (void)crew;
    weft_addr_list *list;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(ask("second.test", WEFT_FAMILY_V4, i, &list));
        ASSERT(has(list, FOUR));
        weft_free(list);
    }
    ASSERT_GE(load_relaxed(&server.asked), 4);
}

/* And nobody who is asked at all, in the end: it is over, with the answer of the system's resolver. */
static void gives_up_by_itself(struct crew *crew)
{
    (void)crew;
    weft_addr_list *list;
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(ask("never.test", WEFT_FAMILY_ANY, i, &list), -EAGAIN);
}

static void with_short_timeouts(void (*body)(struct crew *crew))
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct fixture f;
        begin(&f, crew_sizes[i], CARES, 20);
        body(&f.crew);
        end(&f);
    }
}

TEST_WITH(cares_tries_again, .timeout_s = 120)
{
    with_short_timeouts(tries_again);
}

TEST_WITH(cares_gives_up_by_itself, .timeout_s = 120)
{
    with_short_timeouts(gives_up_by_itself);
}

/* A server that is not there: refused by the kernel, or by nobody's answer. */
TEST(cares_server_that_is_not_there)
{
    struct fixture f;
    weft_addr_list *list;
    begin(&f, 1, CARES, 20);
    weft_resolver *gone;
    weft_cares_opts opts = {.servers = "127.0.0.1:1", .timeout_ms = 20, .tries = 2};
    ASSERT_OK(weft_cares_new(&opts, &gone));
    weft_resolve_opts ask_it = {.resolver = gone};
    ASSERT_EQ(weft_resolve("four.test", "80", &ask_it, &list), -EAGAIN);
    weft_cares_free(gone);
    end(&f);
}

TEST(cares_by_tcp_alone)
{
    struct fixture f;
    weft_addr_list *list;
    begin(&f, 2, CARES, 2000);
    weft_resolver *tcp;
    weft_cares_opts opts = {.servers = server.address, .tcp = true};
    ASSERT_OK(weft_cares_new(&opts, &tcp));
    weft_resolve_opts ask_it = {.resolver = tcp};
    ASSERT_OK(weft_resolve("both.test", "80", &ask_it, &list));
    ASSERT_EQ(list->count, 2);
    weft_free(list);
    ASSERT_EQ(load_relaxed(&server.asked), 0);
    ASSERT_EQ(load_relaxed(&server.by_tcp), 2);
    weft_cares_free(tcp);
    end(&f);
}

/* ---- many ---- */

/* More than the system's lane has threads, none of them answered, and then all at once. */
static void many_at_once(struct crew *crew)
{
    enum { TASKS = 60 };
    weft_task *task[TASKS];
    weft_addr_list *list[TASKS];
    weft_resolve_opts opts = {.family = WEFT_FAMILY_V4};
    (void)crew;
    for (int i = 0; i < TASKS; i++)
        task[i] = i % 2 ? weft_spawn(asking, "held.test", &opts, &list[i])
                        : weft_go(asks, "held.test", &opts, &list[i]);
    CREW_UNTIL(load_relaxed(&server.held_count) >= TASKS); /* all have been asked, side by side */
    nameserver_open(&server);
    for (int i = 0; i < TASKS; i++) {
        int r = 1;
        ASSERT_OK(weft_join(task[i], &r));
        ASSERT_OK(r);
        ASSERT(has(list[i], FOUR));
        weft_free(list[i]);
    }
    ASSERT_EQ(load_relaxed(&system_asked), 0);
}

TEST_WITH(cares_many_at_once, .timeout_s = 120)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct fixture f;
        begin(&f, crew_sizes[i], CARES, 20000);
        many_at_once(&f.crew);
        end(&f);
    }
}

/* ---- given up ---- */

static const char *const slow[] = {"never.test", "hangup.test", "cut.test",
                                   "four.test",  "second.test", "none.test"};

static int takes(const char *host)
{
    weft_addr_list *list;
    int r = weft_resolve(host, "80", NULL, &list);
    if (r == 0) weft_free(list);
    return r == -ENOENT || r == -EAGAIN ? 0 : r; /* answered, one way or the other */
}

struct taking {
    WEFT_FRAME(int);
    const char *host;
    weft_addr_list *list;
    struct weft_resolve resolve;
};
static weft_async(taking)
{
    weft_begin;
    weft_await(f->resolve, weft_resolve, f->host, "80", NULL, &f->list);
    if (f->resolve.ret == 0) weft_free(f->list);
    bool answered = f->resolve.ret == -ENOENT || f->resolve.ret == -EAGAIN;
    weft_return(answered ? 0 : f->resolve.ret);
    weft_end;
}

static weft_task *starts(void *of, uint32_t i, bool stackless)
{
    const char *host = slow[i % (sizeof(slow) / sizeof(slow[0]))];
    (void)of;
    return stackless ? weft_spawn(taking, host) : weft_go(takes, host);
}

/* At any moment: while the job opens it, between tries, by UDP and by TCP. The harness counts descriptors and memory. */
static void given_up(struct crew *crew)
{
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(3); round++) {
        struct storm_sum sum = storm(starts, NULL, 60, NULL);
        ASSERT_EQ(sum.other, 0);
        ASSERT_EQ(sum.got + sum.cancelled, 60);
    }
}

TEST_WITH(cares_given_up_leaves_nothing, .timeout_s = 240)
{
    with_short_timeouts(given_up);
}

/* With questions that nobody will ever answer, and timeouts longer than any test: whoever gives up, by a cancel or a deadline, and a runtime that stops, go on at once. */
static int asks_in_time(void)
{
    weft_addr_list *list;
    int r = 1;
    WEFT_TIMEOUT(weft_ms(5)) r = weft_resolve("never.test", "80", NULL, &list);
    return r;
}

TEST(cares_is_over_when_it_is_given_up)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct fixture f;
        int r = 1;
        weft_addr_list *list;
        begin(&f, crew_sizes[i], CARES, 100000);
        weft_task *task = weft_go(asks, "never.test", NULL, &list);
        CREW_UNTIL(load_relaxed(&server.asked) > 0);
        weft_cancel(task);
        ASSERT_OK(weft_join(task, &r));
        ASSERT_EQ(r, -ECANCELED);
        ASSERT_OK(weft_join(weft_go(asks_in_time), &r));
        ASSERT_EQ(r, -ETIME);
        uint32_t asked = load_relaxed(&server.asked);
        ASSERT_OK(weft_detach(weft_go(takes, "never.test")));
        CREW_UNTIL(load_relaxed(&server.asked) > asked);
        end(&f); /* with one under way */
    }
}

/* ---- who asks ---- */

/* A plain thread that names the runtime; and a connection by name. */
static void by_a_thread(struct crew *crew)
{
    weft_addr_list *list;
    weft_resolve_opts opts = {.rt = crew->rt};
    (void)weft_rt_enter(NULL);
    ASSERT_OK(weft_resolve("both.test", "80", &opts, &list));
    ASSERT_EQ(list->count, 2);
    weft_free(list);
    ASSERT_OK(weft_resolve("cut.test", "80", &opts, &list)); /* opens a second socket, over there */
    ASSERT_EQ(list->count, NAMESERVER_MANY);
    weft_free(list);
    (void)weft_rt_enter(crew->rt);
    ASSERT_OK(weft_resolve("both.test", "80", NULL, &list));
    weft_free(list);
}

TEST(cares_by_a_plain_thread)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct fixture f;
        begin(&f, crew_sizes[i], CARES, 2000);
        by_a_thread(&f.crew);
        end(&f);
    }
}

#if defined(WEFT_FAULTS)
/* Of weft's own memory and descriptors, one after the other is not to be had. */
static void without_one(enum weft__fault_kind fault, int error)
{
    for (uint32_t n = 1;; n++) {
        weft_addr_list *list = NULL;
        weft__fault_arm(fault, n, 1, error);
        int r = weft_resolve("cut.test", "80", NULL, &list);
        bool reached = weft__fault_calls(fault) >= n;
        weft__fault_reset();
        weft_free(list);
        if (r != 0 && r != error) ck_abort_msg("fault %d, call %u: %d", (int)fault, n, r);
        if (!reached) break;
    }
}

TEST_WITH(cares_faults, .timeout_s = 120)
{
    struct fixture f;
    begin(&f, 1, CARES, 200);
    without_one(WEFT__FAULT_ALLOC, -ENOMEM);
    without_one(WEFT__FAULT_EPOLL_CTL, -ENOSPC);
    end(&f);
}
#endif

TEST(cares_options)
{
    weft_resolver *resolver = NULL;
    ASSERT_EQ(weft_cares_new(NULL, NULL), -EINVAL);
    weft_cares_opts opts = {.servers = "no server, but words"};
    ASSERT_EQ(weft_cares_new(&opts, &resolver), -EINVAL);
    ASSERT_NULL(resolver);
    ASSERT_OK(weft_cares_new(NULL, &resolver));
    weft_cares_free(resolver);
    weft_cares_free(NULL);
}
