/* SPDX-License-Identifier: MIT
 *
 * io_uring, asked for and had, or not: where it is forbidden, missing or too old epoll takes its place, for all workers, and says why.
 */
#include "base/err.h"
#include "base/fault.h"
#include "death.h"
#include "driver/uring.h"
#include "filter.h"
#include "on_uring.h"
#include "town.h"

#include <errno.h>
#include <stdlib.h>

#if defined(WEFT_FAULTS)
TEST(uring_that_is_denied_gives_way_and_says_why)
{
    static const int errors[] = {-EPERM, -ENOSYS, -ENOMEM};
    static const char *const words[] = {"EPERM", "ENOSYS", "ENOMEM"};
    const char *asked = getenv("WEFT_DRIVER"); /* it has the last word */
    if (asked && *asked && strcmp(asked, "io_uring") != 0) TEST_SKIP("WEFT_DRIVER asks for %s", asked);
    if (weft__driver_uring_probe() == -EOPNOTSUPP) TEST_SKIP("it is not asked for here");
    for (int i = 0; i < 3; i++) {
        weft_rt *rt;
        const char *why = NULL;
        weft_stream *pair[2];
        char b[4];
        weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, errors[i]);
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .driver = WEFT_DRIVER_IO_URING}, &rt));
        weft__fault_reset();
        ASSERT_STR(weft_rt_driver(rt, &why), "epoll");
        ASSERT(why && strstr(why, words[i]));
        (void)weft_rt_enter(rt);
        town_pair(TOWN_TCP, pair);
        ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
        ASSERT_EQ(weft_read(pair[1], b, sizeof b), 3);
        weft_close(pair[0]);
        weft_close(pair[1]);
        stops(rt);
    }
}

static bool asks_for_another(void)
{
    const char *asked = getenv("WEFT_DRIVER"); /* it has the last word */
    return (asked && *asked && strcmp(asked, "io_uring") != 0) || weft__driver_uring_probe() < 0;
}

static void says_a_word(void)
{
    weft_stream *pair[2];
    char b[4];
    town_pair(TOWN_TCP, pair);
    ASSERT_EQ(weft_write_all(pair[0], "abc", 3), 3);
    ASSERT_EQ(weft_read(pair[1], b, sizeof b), 3);
    weft_close(pair[0]);
    weft_close(pair[1]);
}

/* A program that asks for io_uring, and has a runtime by whichever it gets: 3 by io_uring, 4 by epoll. */
static void asks_for_uring(void *error)
{
    weft_rt *rt;
    int r = *(const int *)error; /* 0: nothing is denied */
    if (r < 0) weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, 1, r);
    if (weft_rt_new(&(weft_rt_opts){.workers = 2, .driver = WEFT_DRIVER_IO_URING}, &rt) < 0)
        _exit(5);
    _exit(strcmp(weft_rt_driver(rt, NULL), "io_uring") == 0 ? 3 : 4);
}

/* One line, with the reason; where nothing is denied nothing is said. */
TEST(uring_that_is_denied_is_told_on_stderr)
{
    static const struct {
        int error;
        int code;
        const char *said;
    } rows[] = {
        {-EPERM, 4,
         "weft: io_uring does not work here: not permitted (EPERM); sockets go by epoll\n"},
        {-ENOSYS, 4,
         "weft: io_uring does not work here: not implemented by the kernel (ENOSYS); sockets go by epoll\n"},
        {-ENOMEM, 4,
         "weft: io_uring does not work here: out of memory (ENOMEM); sockets go by epoll\n"},
        {0, 3, ""},
    };
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int error = rows[i].error;
        struct death d = death_of(asks_for_uring, &error);
        ASSERT_EQ(d.code, rows[i].code);
        ASSERT_STR(d.said, rows[i].said);
    }
}

/* Whichever of its rings is the one that cannot be had: no runtime is half of one and half of the other. */
TEST(uring_that_is_denied_for_one_worker_gives_way_for_all)
{
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    for (uint32_t nth = 1; nth <= 5; nth++) {
        weft_rt *rt;
        const char *why = NULL;
        weft__fault_arm(WEFT__FAULT_URING_SETUP, nth, 1, -ENOMEM);
        ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 4, .driver = WEFT_DRIVER_IO_URING}, &rt));
        weft__fault_reset();
        ASSERT_STR(weft_rt_driver(rt, &why), "epoll"); /* the first is the question, then one for each worker */
        ASSERT(why && strstr(why, "ENOMEM"));
        (void)weft_rt_enter(rt);
        for (int i = 0; i < 4; i++)
            says_a_word();
        stops(rt);
    }
}

/* A kernel that has rings, and does not know what is asked of them: found by the question before the first, or at any worker's. */
TEST(uring_that_lacks_a_request_gives_way_for_all)
{
    enum { WORKERS = 2, REQUESTS = 5 /* poll, cancel, accept, receive, send */, ASKED = (1 + WORKERS) * REQUESTS };
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    for (uint32_t nth = 1; nth <= ASKED + 1; nth++) {
        weft_rt *rt;
        const char *why = NULL;
        weft__fault_arm(WEFT__FAULT_URING_PROBE, nth, 1, -EOPNOTSUPP);
        ASSERT_OK(
            weft_rt_new(&(weft_rt_opts){.workers = WORKERS, .driver = WEFT_DRIVER_IO_URING}, &rt));
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_PROBE), nth <= ASKED ? nth : ASKED);
        weft__fault_reset();
        ASSERT_STR(weft_rt_driver(rt, &why), nth <= ASKED ? "epoll" : "io_uring");
        if (nth <= ASKED)
            ASSERT_STR(why, "io_uring does not work here: not supported (EOPNOTSUPP)");
        (void)weft_rt_enter(rt);
        for (int i = 0; i < WORKERS; i++)
            says_a_word();
        stops(rt);
    }
}

/* By a filter that a program has put up behind its start: the rings are there. */
TEST(uring_that_is_denied_later_goes_on)
{
    if (asks_for_another()) TEST_SKIP("io_uring is not asked for, or does not work here");
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 4, .driver = WEFT_DRIVER_IO_URING}, &rt));
    ASSERT_STR(weft_rt_driver(rt, NULL), "io_uring");
    weft__fault_arm(WEFT__FAULT_URING_SETUP, 1, UINT32_MAX, -EPERM);
    (void)weft_rt_enter(rt);
    for (int i = 0; i < 4; i++)
        says_a_word();
    weft__fault_reset();
    stops(rt);
}
#endif

/* ---- for real ---- */

static bool moves_a_byte(void)
{
    weft_stream *pair[2];
    char b = 0;
    if (weft_unix_pair(&pair[0], &pair[1]) < 0) return false;
    bool moved = weft_write(pair[0], "x", 1) == 1 && weft_read(pair[1], &b, 1) == 1 && b == 'x';
    weft_close(pair[0]);
    weft_close(pair[1]);
    return moved;
}

enum { RIGHT = 3, NO_FILTERS = 4, WRONG = 5 /* or above: the fact, in its order */ };

/* What is asked for, by epoll; files know of it, too. */
static void lives_without_rings(void *asked)
{
    const weft_driver *driver = asked;
    const char *said = "io_uring does not work here: not permitted (EPERM)";
    weft_rt_opts opts = {.workers = 2, .driver = *driver};
    const char *why = NULL;
    weft_rt *rt;
    unsetenv("WEFT_DRIVER");
    unsetenv("WEFT_FILES");
    if (!filter_denies(SYS_io_uring_setup, EPERM)) _exit(NO_FILTERS); /* from now on nobody here gets a ring */
    if (weft_rt_new(&opts, &rt) < 0) _exit(WRONG);
    if (strcmp(weft_rt_driver(rt, &why), "epoll") != 0) _exit(WRONG + 1);
    if (*driver == WEFT_DRIVER_IO_URING && (!why || strcmp(why, said) != 0)) _exit(WRONG + 2);
    if (*driver == WEFT_DRIVER_AUTO && why) _exit(WRONG + 3);
    if (weft_rt_files(rt) != -EPERM) _exit(WRONG + 4);
    (void)weft_rt_enter(rt);
    if (!moves_a_byte()) _exit(WRONG + 5);
    (void)weft_rt_enter(NULL);
    if (weft_rt_stop(rt, -1) < 0) _exit(WRONG + 6);
    _exit(RIGHT);
}

/* Who has asked for it is told why he has another; who has not, nothing. */
TEST(uring_that_is_denied_by_a_filter_gives_way)
{
    static weft_driver asked[] = {WEFT_DRIVER_IO_URING, WEFT_DRIVER_AUTO};
    static const char *const said[] = {
        "weft: io_uring does not work here: not permitted (EPERM); sockets go by epoll\n", ""};
    int r = weft__driver_uring_probe();
    if (r < 0) TEST_SKIP("io_uring does not work here anyway: %s", weft__err_name(r));
    for (int i = 0; i < 2; i++) {
        struct death d = death_of(lives_without_rings, &asked[i]);
        if (d.code == NO_FILTERS) TEST_SKIP("no seccomp here");
        ASSERT_EQ(d.code, RIGHT);
        ASSERT_STR(d.said, said[i]);
    }
}

static void asks_for_nonsense(void *arg)
{
    weft_rt *rt;
    (void)arg;
    setenv("WEFT_DRIVER", "kqueue", 1);
    _exit(weft_rt_new(NULL, &rt) == -EINVAL ? 3 : 4);
}

TEST(uring_or_what_else_is_asked_for_in_words)
{
    weft_rt *rt;
    struct death d = death_of(asks_for_nonsense, NULL);
    ASSERT_EQ(d.code, 3);
    ASSERT(strstr(d.said, "weft: WEFT_DRIVER=kqueue: want auto, epoll or io_uring"));
    if (getenv("WEFT_DRIVER")) return; /* the environment has the last word */
    weft_rt_opts none = {.workers = 1};
    memset(&none.driver, 1, sizeof(none.driver)); /* no driver has that number */
    ASSERT_EQ(weft_rt_new(&none, &rt), -EINVAL);
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 1, .driver = WEFT_DRIVER_AUTO}, &rt));
    ASSERT_STR(weft_rt_driver(rt, NULL), "epoll");
    stops(rt);
}

