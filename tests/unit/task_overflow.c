/* SPDX-License-Identifier: MIT
 *
 * A fiber's overflow dies by name; every other fault goes its usual way.
 */
#include "task/overflow.h"

#include "death.h"
#include "task/fiber.h"
#include "task/here.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

static const struct weft_site site = {.name = "digger", .file = "mine.c", .line = 42};
static struct weft_task task = {.site = &site};
static struct weft__stacks pool;

/* Without end, and not a loop in disguise: each call keeps some of its stack. */
__attribute__((noinline)) static int dig(int depth)
{
    volatile char spoil[512];
    spoil[0] = (char)depth;
    return depth < 0 ? 0 : dig(depth + 1) + spoil[0];
}

static int dig_forever(void)
{
    return dig(1);
}

static void poll_once(struct weft__go_frame *frame)
{
    struct weft_cx cx = {.budget = 128};
    (void)weft__go_poll(frame, &cx);
}

static void run_on_fiber(void (*fn)(void), uintptr_t arg, enum weft__stack_guard guard)
{
    struct weft__stacks_options o = {.stack_bytes = 128 * 1024, .guard = guard};
    struct weft__go_frame frame = {.call = {.fn = fn, .arg = {arg}, .ret_bytes = 4}};
    struct weft__altstack a;

    if (weft__overflow_thread_init(&a) < 0 || weft__stacks_init(&pool, &o) < 0) _exit(3);
    weft__here()->stacks = &pool;
    weft__here()->task = &task;
    poll_once(&frame);
}

static void overflow_with_guard(void *arg)
{
    run_on_fiber((void (*)(void))dig_forever, 0, *(enum weft__stack_guard *)arg);
}

static const char said[] =
    "weft: fiber 'digger' (spawned at mine.c:42) overflowed its stack of 128 KiB; raise it with .stack_bytes\n";

TEST(overflow_dies_by_segv_and_names_the_fiber)
{
    enum weft__stack_guard guards[] = {WEFT__STACK_GUARD_AUTO, WEFT__STACK_GUARD_MPROTECT};

    for (unsigned i = 0; i < 2; i++) {
        struct death d = death_of(overflow_with_guard, &guards[i]);
        ASSERT_EQ(d.signal, SIGSEGV);
        ASSERT_STR(d.said, said);
    }
}

static int poll_inner(void)
{
    struct weft__go_frame frame = {.call = {.fn = (void (*)(void))dig_forever}};
    poll_once(&frame);
    return 0;
}

static void overflow_nested(void *arg)
{
    (void)arg;
    run_on_fiber((void (*)(void))poll_inner, 0, WEFT__STACK_GUARD_AUTO);
}

TEST(overflow_of_a_fiber_in_a_fiber_is_found)
{
    struct death d = death_of(overflow_nested, NULL);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, said);
}

static void *overflow_on_thread(void *arg)
{
    overflow_with_guard(arg);
    return NULL;
}

static void start_thread(void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, overflow_on_thread, arg)) _exit(3);
    pthread_join(thread, NULL);
}

TEST(overflow_on_another_thread_is_found)
{
    enum weft__stack_guard guard = WEFT__STACK_GUARD_AUTO;
    struct death d = death_of(start_thread, &guard);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, said);
}

/* ---- not an overflow ---- */

static int touch(const volatile char *addr)
{
    return *addr;
}

static void touch_null(void *arg)
{
    (void)arg;
    run_on_fiber((void (*)(void))touch, 16, WEFT__STACK_GUARD_AUTO);
}

TEST(overflow_is_not_what_a_bad_pointer_is)
{
    struct death d = death_of(touch_null, NULL);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, "");
}

static void touch_others_guard(void *arg)
{
    struct weft__stacks_options o = {.stack_bytes = 65536};
    static struct weft__stacks others;
    struct weft__stack *stack;

    (void)arg;
    if (weft__stacks_init(&others, &o) < 0 || weft__stack_get(&others, &stack) < 0) _exit(3);
    run_on_fiber((void (*)(void))touch, (uintptr_t)stack->lo - 8, WEFT__STACK_GUARD_AUTO);
}

TEST(overflow_is_not_what_a_pointer_into_anothers_guard_is)
{
    struct death d = death_of(touch_others_guard, NULL);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, "");
}

static void say_and_exit(int signal, siginfo_t *info, void *context)
{
    char text[64];
    (void)context;
    int n = snprintf(text, sizeof(text), "%d at %p\n", signal, info->si_addr);
    (void)!write(STDERR_FILENO, text, (size_t)n);
    _exit(9);
}

static void touch_with_handler(void *arg)
{
    struct sigaction theirs = {.sa_sigaction = say_and_exit, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGSEGV, &theirs, NULL);
    touch_null(arg);
}

TEST(overflow_passes_other_faults_to_the_handler_before)
{
    if (getenv("WEFT_TEST_UNDER")) TEST_SKIP("Valgrind delivers faults and keeps signal stacks in its own way");
    struct death d = death_of(touch_with_handler, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 9);
    ASSERT_STR(d.said, "11 at 0x10\n");
}

static void say_once(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, "once\n", 5);
}

static void touch_with_one_shot(void *arg)
{
    struct sigaction theirs = {.sa_handler = say_once, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGSEGV, &theirs, NULL);
    touch_null(arg);
}

/* A handler that returns from a fault without mending it, and counts on being called once. */
TEST(overflow_calls_a_handler_that_wants_one_call_once)
{
    struct death d = death_of(touch_with_one_shot, NULL);
    ASSERT_EQ(d.signal, SIGSEGV);
    ASSERT_STR(d.said, "once\n");
}

static void send_segv(void *arg)
{
    struct weft__altstack a;
    if (arg) (void)signal(SIGSEGV, SIG_IGN);
    if (weft__overflow_thread_init(&a) < 0) _exit(3);
    (void)raise(SIGSEGV);
    _exit(4);
}

TEST(overflow_leaves_sent_signals_their_meaning)
{
    int ignored = 1;
    struct death by_default = death_of(send_segv, NULL);
    struct death d = death_of(send_segv, &ignored);
    ASSERT_EQ(by_default.signal, SIGSEGV);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 4);
}
