/* SPDX-License-Identifier: MIT
 *
 * test - the main of every test program: runs what TEST() registered under Check, and looks for leaks after each.
 *
 * Tests run in forked children, one after the other. Two things have to cross that fork. Skips are counted in a page shared with the
 * children, since Check knows only passed and failed. Seeds need not be sent back: round r of a test has the seed that follows from the
 * run's seed and r, and the parent finds r by counting the results of one test, which come in order.
 */
#include "test.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/sanitize.h"
#include "driver/driver.h"
#include "task/call.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXIT_PASSED  0
#define EXIT_BROKEN  1
#define EXIT_NO_TEST 2
#define EXIT_SKIPPED 77 /* CTest's SKIP_RETURN_CODE, as automake and meson have it */

static struct test_case *first_case;
static struct test_case **last_case = &first_case;
static const char *program;
static int errno_at_start;
static uint64_t seed_of_run;
static unsigned *skipped; /* shared with the children, which run one at a time */

/* The test that runs now, in its child. */
static const struct test_case *running;
static uint64_t seed_of_round;
static jmp_buf skip_point;

void test_register(struct test_case *c)
{
    *last_case = c;
    last_case = &c->next;
}

/* ---- seeds and loads ------------------------------------------------------------------------------------------------------------------- */

/* Round 0 has the run's own seed, so that WEFT_TEST_SEED of a later round repeats that round alone. */
static uint64_t seed_of(int round)
{
    return seed_of_run + (uint64_t)round * 0x9e3779b97f4a7c15u;
}

uint64_t test_seed(void)
{
    return seed_of_round;
}

#if defined(WEFT__TSAN)
#define THREAD_SANITIZED 1
#else
#define THREAD_SANITIZED 0
#endif
#if defined(WEFT__ASAN) || THREAD_SANITIZED
#define SANITIZED 1
#else
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

/* ---- what a test leaves behind --------------------------------------------------------------------------------------------------------- */

#define FDS_MAX 256 /* known by number; beyond that they are only counted */

struct fds {
    unsigned count;
    bool open[FDS_MAX];
};

/* The directory's own descriptor closes before anybody compares, so it is left out. */
static struct fds fds_now(void)
{
    struct fds now = {0};
    DIR *d = opendir("/proc/self/fd");
    if (!d) return now;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char *end;
        long fd = strtol(e->d_name, &end, 10);
        if (*end != '\0' || fd == dirfd(d)) continue;
        now.count++;
        if (fd < FDS_MAX) now.open[fd] = true;
    }
    closedir(d);
    return now;
}

static void check_fds(const struct fds *before)
{
    struct fds now = fds_now();
    for (int fd = 0; fd < FDS_MAX; fd++) {
        char link[32];
        char target[128];
        if (now.open[fd] == before->open[fd]) continue;
        ck_assert_msg(now.open[fd], "the test closed file descriptor %d, which it had not opened", fd);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        ck_abort_msg("the test left file descriptors open: %d is %s", fd, target);
    }
    ck_assert_msg(now.count == before->count, "the test left file descriptors open: there were %u, there are %u", before->count,
                  now.count);
}

static void check_memory(int64_t before)
{
    long long left = (long long)(weft__alloc_live() - before);
    ck_assert_msg(left == 0, "the test left %lld blocks of memory", left);
}

static unsigned threads_now(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/task");
    if (!d) return 0;
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

/* A thread that has been joined leaves /proc a moment after: wait for that, with a generous end. */
static unsigned threads_once_settled(unsigned expected)
{
    unsigned now = threads_now();
    for (int i = 0; i < 5000 && now > expected; i++) {
        struct timespec ms = {.tv_nsec = 1000000};
        nanosleep(&ms, NULL);
        now = threads_now();
    }
    return now;
}

static void check_threads(unsigned before)
{
    unsigned now = threads_once_settled(before);
    ck_assert_msg(now <= before, "the test left %u threads running", now - before);
}

static void *tell_tid(void *into)
{
    *(pid_t *)into = gettid();
    return NULL;
}

/* ThreadSanitizer starts threads of its own beside the first one of a process, also of a forked one: they have to be there before we
 * count, and the one that made them come has to be gone. */
static unsigned threads_before(void)
{
    pthread_t first;
    pid_t tid;
    if (!THREAD_SANITIZED) return threads_now();
    ck_assert_int_eq(pthread_create(&first, NULL, tell_tid, &tid), 0);
    ck_assert_int_eq(pthread_join(first, NULL), 0);
    while (tgkill(getpid(), tid, 0) == 0) sched_yield();
    return threads_now();
}

/* ---- one test -------------------------------------------------------------------------------------------------------------------------- */

/* False: it skipped itself. A function of its own, since locals beside a setjmp may be lost. */
static __attribute__((noinline)) bool ran_to_its_end(void (*body)(void))
{
    if (setjmp(skip_point)) return false;
    body();
    return true;
}

void test_run_body(const struct test_case *c, void (*body)(void), int round)
{
    running = c;
    seed_of_round = seed_of(round);

    struct fds fds = fds_now();
    unsigned threads = threads_before();
    int64_t blocks = weft__alloc_live();

    if (!ran_to_its_end(body)) return;
    if (!c->fds_may_stay) check_fds(&fds);
    weft__call_forget(); /* what this thread keeps for its next call is nobody's leak */
    if (!c->memory_may_stay) check_memory(blocks);
    if (!c->threads_may_stay) check_threads(threads);
}

void test_skip(const char *why, ...)
{
    va_list args;
    va_start(args, why);
    printf("skipped: %s: ", running->ttest->name);
    vprintf(why, args);
    printf("\n");
    fflush(stdout);
    va_end(args);

    (*skipped)++;
    if (running->signal) { /* Check waits for this death: skipping must look like it */
        signal(running->signal, SIG_DFL);
        raise(running->signal);
    }
    longjmp(skip_point, 1);
}

/* ---- all of them ----------------------------------------------------------------------------------------------------------------------- */

/* A whole name means that test alone, so that the command printed for a failure runs nothing else. */
static bool is_name(const char *word)
{
    for (const struct test_case *c = first_case; c; c = c->next)
        if (strcmp(c->ttest->name, word) == 0) return true;
    return false;
}

static bool matches(const struct test_case *c, const char *word)
{
    return is_name(word) ? strcmp(c->ttest->name, word) == 0 : strstr(c->ttest->name, word) != NULL;
}

static bool wanted(const struct test_case *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (matches(c, argv[i])) return true;
    return argc < 2;
}

static Suite *suite_of(int argc, char **argv, int rounds)
{
    Suite *suite = suite_create(program);
    for (struct test_case *c = first_case; c; c = c->next) {
        if (!wanted(c, argc, argv)) continue;
        TCase *one = tcase_create(c->ttest->name);
        tcase_set_timeout(one, (c->timeout_s > 0 ? c->timeout_s : 60) * (slow_build() ? 10 : 1));
        if (c->signal) {
            tcase_add_loop_test_raise_signal(one, c->ttest, c->signal, 0, rounds);
        } else {
            tcase_add_loop_test(one, c->ttest, 0, rounds);
        }
        suite_add_tcase(suite, one);
    }
    return suite;
}

/* One line per test that failed, for its first failure: paste it into a shell. WEFT_TEST_UNDER is the command that this program was
 * started by, if any (Valgrind): a program cannot see that itself. */
static void print_reproducers(SRunner *runner, int ran)
{
    TestResult **results = srunner_results(runner);
    const char *name = "";
    const char *told = "";
    const char *under = getenv("WEFT_TEST_UNDER");
    int round = 0;

    fprintf(stderr, "\n");
    for (int i = 0; i < ran; i++) {
        round = strcmp(tr_tcname(results[i]), name) == 0 ? round + 1 : 0;
        name = tr_tcname(results[i]);
        if (tr_rtype(results[i]) == CK_PASS || strcmp(told, name) == 0) continue;
        told = name;
        fprintf(stderr, "To reproduce: %sWEFT_TEST_SEED=%llu %s%s%s %s\n", getenv("WEFT_TEST_SLOW") ? "WEFT_TEST_SLOW=1 " : "",
                (unsigned long long)seed_of(round), under ? under : "", under ? " " : "", program, name);
    }
    free(results);
}

static int verdict(SRunner *runner)
{
    int ran = srunner_ntests_run(runner);

    if (!first_case) {
        printf("skipped: none of its tests is for this build\n");
        return EXIT_SKIPPED;
    }
    if (ran == 0) {
        fprintf(stderr, "%s: no test matches\n", program);
        return EXIT_NO_TEST;
    }
    if (srunner_ntests_failed(runner) > 0) {
        print_reproducers(runner, ran);
        return EXIT_BROKEN;
    }
    if (*skipped == (unsigned)ran) return EXIT_SKIPPED;
    if (*skipped) printf("%u of %d skipped\n", *skipped, ran);
    return EXIT_PASSED;
}

/* Asked for a driver that does not work here, a program would try the other one once more, and say that it passed. */
static bool driver_is_there(void)
{
    const char *driver = getenv("WEFT_DRIVER");
    int r = driver && strcmp(driver, "io_uring") == 0 ? weft__driver_uring_probe() : 0;
    if (r < 0) printf("skipped: io_uring does not work here: %s\n", weft__err_name(r));
    return r == 0;
}

static uint64_t fresh_seed(void)
{
    const char *text = getenv("WEFT_TEST_SEED");
    struct timespec now;
    if (text && *text) return strtoull(text, NULL, 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 20;
}

int test_errno_at_start(void)
{
    return errno_at_start;
}

int main(int argc, char **argv)
{
    errno_at_start = errno;
    const char *repeat = getenv("WEFT_TEST_REPEAT");
    long rounds = repeat ? strtol(repeat, NULL, 10) : 1;

    program = argv[0];
    if (!driver_is_there()) return EXIT_SKIPPED;
    seed_of_run = fresh_seed();
    skipped = mmap(NULL, sizeof(*skipped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (skipped == MAP_FAILED) {
        perror("mmap");
        return EXIT_BROKEN;
    }
    setenv("CK_FORK", getenv("WEFT_TEST_NO_FORK") ? "no" : "yes", 1);
    SRunner *runner = srunner_create(suite_of(argc, argv, rounds > 0 ? (int)rounds : 1));
    srunner_run_all(runner, CK_NORMAL);
    int code = verdict(runner);
    srunner_free(runner);
    return code;
}
