/* SPDX-License-Identifier: MIT
 *
 * Living with longjmp: between the frames of one fiber it works, also when the fiber was suspended since the setjmp, and has
 * moved to another thread; with and without the check of _FORTIFY_SOURCE.
 */
#if defined(__OPTIMIZE__) && !defined(_FORTIFY_SOURCE)
#define _FORTIFY_SOURCE 2 /* longjmp becomes ____longjmp_chk, which looks at the stack pointer */
#endif
#include "crew.h"
#include "test.h"

#include <setjmp.h>

/* Unchecked: the plain function, by its name. */
void plain_longjmp(jmp_buf env, int value) __asm__("longjmp") __attribute__((noreturn));

struct jumper {
    jmp_buf env;
    bool checked;
    int suspensions; /* between setjmp and longjmp */
};

static void jump(struct jumper *j)
{
    for (int i = 0; i < j->suspensions; i++)
        (void)weft_yield();
    if (j->checked) longjmp(j->env, 7);
    plain_longjmp(j->env, 7);
}

static int (*volatile dig_deeper)(struct jumper *j, int depth); /* so that no compiler sees through it */

/* Jumps from so many frames further down. */
static int dig(struct jumper *j, int depth)
{
    volatile char here[256];
    here[0] = (char)depth;
    if (depth == 0) jump(j);
    return dig_deeper(j, depth - 1) + here[0];
}

static int jumps(int suspensions, bool checked)
{
    struct jumper j = {.suspensions = suspensions, .checked = checked};
    volatile int rounds = 0;
    int got = setjmp(j.env);
    if (got != 0 && got != 7) return -1;
    rounds++;
    if (rounds <= 20) return dig(&j, 10 + rounds);
    return rounds;
}

static void all_jump(struct crew *crew)
{
    enum { TASKS = 16 };
    (void)crew;
    dig_deeper = dig;
    for (int suspensions = 0; suspensions < 4; suspensions++) {
        weft_task *tasks[TASKS];
        for (int i = 0; i < TASKS; i++)
            tasks[i] = weft_go(jumps, suspensions, i % 2 == 0);
        for (int i = 0; i < TASKS; i++) {
            int got;
            ASSERT_OK(weft_join(tasks[i], &got));
            ASSERT_EQ(got, 21);
        }
    }
}

TEST(longjmp_between_the_frames_of_one_fiber)
{
    crew_each(all_jump);
}

/* ---- and on another thread ---------------------------------------------------------------------------------------- */

static __attribute__((noinline)) pthread_t this_thread(void)
{
    __asm__ volatile("");
    return pthread_self();
}

static _Atomic bool moved_one; /* relaxed: a flag */

/* Yields until it runs on another thread than its setjmp did, then jumps back; or until another has. */
static int jumps_elsewhere(void)
{
    jmp_buf env;
    volatile bool jumped = false;
    pthread_t before = this_thread();
    if (setjmp(env)) return jumped ? 1 : -1;
    while (pthread_equal(before, this_thread())) {
        if (load_relaxed(&moved_one)) return 0;
        for (volatile int i = 0; i < 2000; i++) {
        }
        if (weft_yield() < 0) return -1;
    }
    jumped = true;
    store_relaxed(&moved_one, true);
    longjmp(env, 1);
}

TEST(longjmp_on_another_thread_than_setjmp)
{
    enum { TASKS = 64 };
    struct crew crew;
    int jumped = 0;
    weft_task *tasks[TASKS];
    crew_start(&crew, 4);
    for (int i = 0; i < TASKS; i++)
        tasks[i] = weft_go(jumps_elsewhere);
    for (int i = 0; i < TASKS; i++) {
        int got;
        ASSERT_OK(weft_join(tasks[i], &got));
        ASSERT_GE(got, 0);
        jumped += got;
    }
    ASSERT_GE(jumped, 1);
    crew_stop(&crew);
}
