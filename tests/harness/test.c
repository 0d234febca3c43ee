/* SPDX-License-Identifier: MIT
 *
 * test - the main of every test program: runs what TEST() registered under Check, and looks for leaks after each.
 */
#include "test.h"

#include "base/alloc.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77

static struct test_case *first_case;
static struct test_case **last_case = &first_case;
static const char *program;
static uint64_t seed;

void test_register(struct test_case *c)
{
    *last_case = c;
    last_case = &c->next;
}

uint64_t test_seed(void)
{
    return seed;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static bool slow_build(void)
{
    return SANITIZED || getenv("WEFT_TEST_SLOW"); /* set by `./dev valgrind` */
}

uint64_t test_scaled(uint64_t full)
{
    uint64_t few = slow_build() ? full / 20 : full;
    return few ? few : 1;
}

static unsigned entries(const char *folder)
{
    unsigned count = 0;
    DIR *d = opendir(folder);
    if (!d) return 0;
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

/* A thread that has been joined leaves /proc a moment after: wait for that, with a generous end. */
static unsigned threads_once_settled(unsigned expected)
{
    unsigned now = entries("/proc/self/task");
    for (int i = 0; i < 5000 && now > expected; i++) {
        struct timespec ms = {.tv_nsec = 1000000};
        nanosleep(&ms, NULL);
        now = entries("/proc/self/task");
    }
    return now;
}

void test_run_body(const struct test_case *c, void (*body)(void))
{
    unsigned fds = entries("/proc/self/fd");
    unsigned threads = entries("/proc/self/task");
    int64_t blocks = weft__alloc_live();

    body();
    if (!c->fds_may_stay) ck_assert_msg(entries("/proc/self/fd") == fds, "the test left file descriptors open");
    if (!c->memory_may_stay) {
        ck_assert_msg(weft__alloc_live() == blocks, "the test left %lld blocks of memory", (long long)(weft__alloc_live() - blocks));
    }
    if (!c->threads_may_stay) ck_assert_msg(threads_once_settled(threads) == threads, "the test left threads running");
}

void test_skip(const char *why, ...)
{
    va_list args;
    va_start(args, why);
    fputs("skipped: ", stdout);
    vprintf(why, args);
    fputs("\n", stdout);
    fflush(stdout);
    va_end(args);
    _exit(0); /* Check has no word for it: the log line is what tells */
}

static bool wanted(const struct test_case *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(c->ttest->name, argv[i])) return true;
    return argc < 2;
}

static Suite *suite_of(int argc, char **argv, int repeat)
{
    Suite *suite = suite_create(program);
    for (struct test_case *c = first_case; c; c = c->next) {
        if (!wanted(c, argc, argv)) continue;
        TCase *one = tcase_create(c->ttest->name);
        tcase_set_timeout(one, (c->timeout_s ? c->timeout_s : 60) * (slow_build() ? 10 : 1));
        if (c->signal) {
            tcase_add_loop_test_raise_signal(one, c->ttest, c->signal, 0, repeat);
        } else {
            tcase_add_loop_test(one, c->ttest, 0, repeat);
        }
        suite_add_tcase(suite, one);
    }
    return suite;
}

static uint64_t seed_of_run(void)
{
    const char *text = getenv("WEFT_TEST_SEED");
    struct timespec now;
    if (text && *text) return strtoull(text, NULL, 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 20;
}

int main(int argc, char **argv)
{
    const char *repeat_text = getenv("WEFT_TEST_REPEAT");
    int repeat = repeat_text ? atoi(repeat_text) : 1;

    program = argv[0];
    seed = seed_of_run();
    setenv("CK_FORK", getenv("WEFT_TEST_NO_FORK") ? "no" : "yes", 1);
    SRunner *runner = srunner_create(suite_of(argc, argv, repeat > 0 ? repeat : 1));
    srunner_run_all(runner, CK_NORMAL);
    int ran = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (ran == 0) {
        fprintf(stderr, "%s: no test matches\n", program);
        return 2;
    }
    if (failed) fprintf(stderr, "\nTo reproduce: WEFT_TEST_SEED=%llu %s\n", (unsigned long long)seed, program);
    return failed ? 1 : 0;
}
