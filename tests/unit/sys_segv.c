/* SPDX-License-Identifier: MIT
 *
 * The SIGSEGV handler without anybody's question about fibers: who is asked, who is called, who
 * dies; and the stack it runs on. What the question is for: tests/unit/task_overflow.c.
 */
#include "sys/segv.h"

#include "base/fault.h"
#include "death.h"
#include "sys/mem.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>

/* ---- the question ---- */

/* volatile: the compiler must not know where that is. */
static const volatile char *volatile nowhere = (const volatile char *)24;

static bool says_yes(const void *addr)
{
    weft__segv_say(addr == (const void *)(uintptr_t)nowhere ? "yes\n" : "other\n", 4);
    return true;
}

static bool says_no(const void *addr)
{
    weft__segv_say(addr == (const void *)(uintptr_t)nowhere ? "no\n" : "other\n", 3);
    return false;
}

/* Valgrind does not let a stack grow while it delivers a signal. */
static void stack_has_room(void)
{
    volatile char room[65536];
    for (size_t i = 0; i < sizeof room; i += 4096)
        room[i] = 0;
    (void)room[0];
}

static void fault_with(weft__segv_question *question)
{
    stack_has_room();
    if (weft__segv_install(question) < 0) _exit(3);
    (void)*nowhere;
    _exit(4); /* nobody died */
}

static void faults_and_is_owned(void *unused)
{
    (void)unused;
    fault_with(says_yes);
}

static void faults_and_is_not(void *unused)
{
    (void)unused;
    fault_with(says_no);
}

TEST(segv_asks_with_the_address_and_dies_either_way)
{
    struct death owned = death_of(faults_and_is_owned, NULL);
    struct death not_owned = death_of(faults_and_is_not, NULL);
    ASSERT_EQ(owned.signal, SIGSEGV);
    ASSERT_STR(owned.said, "yes\n");
    ASSERT_EQ(not_owned.signal, SIGSEGV);
    ASSERT_STR(not_owned.said, "no\n");
}

static void installs_twice(void *unused)
{
    (void)unused;
    if (weft__segv_install(says_no) < 0) _exit(3);
    fault_with(says_yes);
}

TEST(segv_installed_twice_keeps_the_first_question)
{
    struct death d = death_of(installs_twice, NULL);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, "no\n");
}

/* ---- who was there before ---- */

static sigjmp_buf way_out;
static volatile sig_atomic_t called;

static void jumps_out(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    called = info->si_addr == (void *)(uintptr_t)nowhere;
    siglongjmp(way_out, 1);
}

/* A host that recovers from its own faults still does, as often as it likes. */
static void recovers(void *unused)
{
    struct sigaction theirs = {.sa_sigaction = jumps_out, .sa_flags = SA_SIGINFO | SA_NODEFER};
    (void)unused;
    if (sigaction(SIGSEGV, &theirs, NULL) < 0 || weft__segv_install(says_no) < 0) _exit(3);
    for (volatile int i = 0; i < 3; i++) {
        called = 0;
        if (!sigsetjmp(way_out, 1)) (void)*nowhere;
        if (!called) _exit(5);
    }
    _exit(0);
}

TEST(segv_host_that_recovers_still_does)
{
    if (getenv("WEFT_TEST_UNDER"))
        TEST_SKIP("Valgrind delivers faults and keeps signal stacks in its own way");
    struct death d = death_of(recovers, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, "no\nno\nno\n");
}

static void spoils_errno(int signal)
{
    (void)signal;
    called++;
    (void)close(-1); /* EBADF */
}

/* A signal that was sent is no fault: nobody is asked, the host's handler is called, and the thread's errno is as it was. */
static void is_sent_one(void *unused)
{
    (void)unused;
    stack_has_room();
    if (signal(SIGSEGV, spoils_errno) == SIG_ERR || weft__segv_install(says_yes) < 0) _exit(3);
    errno = ENOENT;
    (void)raise(SIGSEGV);
    _exit(called == 1 && errno == ENOENT ? 0 : 5);
}

TEST(segv_sent_goes_to_the_host_and_leaves_errno)
{
    struct death d = death_of(is_sent_one, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
    ASSERT_STR(d.said, "");
}

/* The mask and the flags of the handler before are kept. */
static void keeps_the_mask(void *unused)
{
    struct sigaction theirs = {.sa_sigaction = jumps_out, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction now;
    (void)unused;
    sigemptyset(&theirs.sa_mask);
    sigaddset(&theirs.sa_mask, SIGUSR2);
    if (sigaction(SIGSEGV, &theirs, NULL) < 0 || weft__segv_install(says_no) < 0) _exit(3);
    if (sigaction(SIGSEGV, NULL, &now) < 0) _exit(3);
    if (now.sa_sigaction == jumps_out) _exit(4);
    if (!sigismember(&now.sa_mask, SIGUSR2) || sigismember(&now.sa_mask, SIGUSR1)) _exit(5);
    _exit(now.sa_flags & SA_RESTART && now.sa_flags & SA_ONSTACK ? 0 : 6);
}

TEST(segv_keeps_mask_and_flags_of_the_handler_before)
{
    struct death d = death_of(keeps_the_mask, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
}

/* ---- saying ---- */

static void says_much(void *unused)
{
    char text[3000];
    (void)unused;
    memset(text, 'x', sizeof(text));
    weft__segv_say(text, sizeof(text));
    weft__segv_say(text, 0);
    close(STDERR_FILENO);
    weft__segv_say(text, sizeof(text)); /* to nobody: it gives up */
}

TEST(segv_say_says_all_of_it)
{
    struct death d = death_of(says_much, NULL);
    ASSERT_EQ(d.code, 0);
    ASSERT_EQ(strlen(d.said), 3000);
}

/* ---- the alternate stack ---- */

static stack_t altstack_now(void)
{
    stack_t now;
    ASSERT_OK(sigaltstack(NULL, &now));
    return now;
}

static void altstack_set(void *memory, size_t bytes)
{
    stack_t set = {.ss_sp = memory, .ss_size = bytes, .ss_flags = memory ? 0 : SS_DISABLE};
    ASSERT_OK(sigaltstack(&set, NULL));
}

TEST(altstack_is_made_where_there_is_none_and_taken_away)
{
    stack_t at_first = altstack_now();
    struct weft__altstack a;

    altstack_set(NULL, 0);
    ASSERT_OK(weft__altstack_init(&a));
    ASSERT_PTR(altstack_now().ss_sp, a.memory);
    ASSERT(!(altstack_now().ss_flags & SS_DISABLE));
    weft__altstack_done(&a);
    ASSERT(altstack_now().ss_flags & SS_DISABLE);
    ASSERT_OK(sigaltstack(&at_first, NULL));
}

TEST(altstack_of_the_host_stays_if_it_is_large_enough)
{
    static char large[256 * 1024];
    stack_t at_first = altstack_now();
    struct weft__altstack a;

    altstack_set(large, sizeof(large));
    ASSERT_OK(weft__altstack_init(&a));
    ASSERT_PTR(altstack_now().ss_sp, large);
    weft__altstack_done(&a);
    ASSERT_PTR(altstack_now().ss_sp, large);
    ASSERT_OK(sigaltstack(&at_first, NULL));
}

TEST(altstack_of_the_host_comes_back_if_it_was_too_small)
{
    if (getenv("WEFT_TEST_UNDER"))
        TEST_SKIP("Valgrind delivers faults and keeps signal stacks in its own way");
    static char large[256 * 1024];
    stack_t at_first = altstack_now();
    size_t small_bytes = (size_t)sysconf(_SC_MINSIGSTKSZ);
    struct weft__altstack a;

    altstack_set(large, small_bytes);
    ASSERT_OK(weft__altstack_init(&a));
    ASSERT(altstack_now().ss_sp != large);
    weft__altstack_done(&a);
    ASSERT_PTR(altstack_now().ss_sp, large);
    ASSERT_EQ(altstack_now().ss_size, small_bytes);
    ASSERT_OK(sigaltstack(&at_first, NULL));
}

/* What the thread set meanwhile is newer than what it had. */
TEST(altstack_that_the_thread_has_changed_since_is_left_alone)
{
    static char large[256 * 1024];
    stack_t at_first = altstack_now();
    struct weft__altstack a;

    altstack_set(NULL, 0);
    ASSERT_OK(weft__altstack_init(&a));
    altstack_set(large, sizeof(large));
    weft__altstack_done(&a);
    ASSERT_PTR(altstack_now().ss_sp, large);
    ASSERT_OK(sigaltstack(&at_first, NULL));
}

#if defined(WEFT_FAULTS)
TEST(altstack_without_memory_says_so)
{
    stack_t at_first = altstack_now();
    struct weft__altstack a;

    altstack_set(NULL, 0);
    weft__fault_arm(WEFT__FAULT_MMAP, 1, 1, -ENOMEM);
    ASSERT_EQ(weft__altstack_init(&a), -ENOMEM);
    weft__fault_reset();
    ASSERT_NULL(a.memory);
    weft__altstack_done(&a); /* of one that failed: nothing */
    ASSERT(altstack_now().ss_flags & SS_DISABLE);
    ASSERT_OK(sigaltstack(&at_first, NULL));
}
#endif

/* ---- for the rest of a thread's life ---- */

static bool is_mapped(const stack_t *stack)
{
    unsigned char page;
    return mincore(stack->ss_sp, 1, &page) == 0;
}

/* What the thread had at first is put back before it ends: a sanitizer's is the sanitizer's to free. */
static void *keeps_one(void *into)
{
    stack_t at_first = altstack_now();

    altstack_set(NULL, 0);
    ASSERT_OK(weft__altstack_keep());
    stack_t kept = altstack_now();
    ASSERT(!(kept.ss_flags & SS_DISABLE));
    ASSERT_OK(weft__altstack_keep());
    ASSERT_PTR(altstack_now().ss_sp, kept.ss_sp);
    ASSERT(is_mapped(&kept));
    ASSERT_OK(sigaltstack(&at_first, NULL));
    *(stack_t *)into = kept;
    return NULL;
}

TEST(altstack_that_is_kept_goes_with_its_thread)
{
    pthread_t thread;
    stack_t kept;
    ASSERT_OK(pthread_create(&thread, NULL, keeps_one, &kept));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT(!is_mapped(&kept));
}

#if defined(WEFT_FAULTS)
static void *keeps_none_at_first(void *into)
{
    weft__fault_arm(WEFT__FAULT_THREAD_KEY, 1, 1, -EAGAIN);
    ASSERT_EQ(weft__altstack_keep(), -EAGAIN);
    weft__fault_reset();
    return keeps_one(into);
}

TEST(altstack_whose_end_nobody_would_see_is_not_taken)
{
    pthread_t thread;
    stack_t kept;
    ASSERT_OK(pthread_create(&thread, NULL, keeps_none_at_first, &kept));
    ASSERT_OK(pthread_join(thread, NULL));
}
#endif
