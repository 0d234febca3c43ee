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
#include "types.h"

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

static int (*volatile dig_deeper)(struct jumper *j,
                                  int depth); /* so that no compiler sees through it */

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

struct jumps_elsewhere {
    WEFT_FRAME(int);
};
static weft_fiber(jumps_elsewhere)
{
    jmp_buf env;
    volatile int jumped = 0;
    if (setjmp(env) == 0) {
        (void)weft_yield();
        jumped = 1;
        longjmp(env, 1);
    }
    f->ret = jumped;
}

/* One poll, on whatever thread. */
static void *poll_once(void *frame)
{
    struct weft_cx cx = {.budget = 100};
    return jumps_elsewhere_poll(frame, &cx) == WEFT_READY ? frame : NULL;
}

static bool ready_on_another_thread(struct jumps_elsewhere *frame)
{
    pthread_t thread;
    void *ready;
    ASSERT_OK(pthread_create(&thread, NULL, poll_once, frame));
    ASSERT_OK(pthread_join(thread, &ready));
    return ready;
}

/* Two threads poll one fiber in turns: the one that jumps is not the one that called setjmp. */
TEST(longjmp_on_another_thread_than_setjmp)
{
    struct jumps_elsewhere frame = {.ret = -1};
    ASSERT_NULL(poll_once(&frame));
    ASSERT(ready_on_another_thread(&frame));
    ASSERT_EQ(frame.ret, 1);
}
