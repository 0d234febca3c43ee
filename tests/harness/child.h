/* SPDX-License-Identifier: MIT
 *
 * child - tests that fork beside threads: what the child finds wrong, and how it ended.
 *
 *     pid_t child = fork();
 *     if (child == 0) { CHILD_NEEDS(weft_rt_current() == NULL); _exit(7); }
 *     ASSERT(ended_by(exit_code_of(child), 7));
 * What a child finds wrong it prints, and exits with 98; so no test's assert runs in two processes.
 * By one file of a program.
 */
#ifndef WEFT_TESTS_CHILD_H
#define WEFT_TESTS_CHILD_H

#include "death.h"

/* TSan does not follow threads that a child of a program with threads starts; it can be told to live with that. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0:die_after_fork=0";
}

/* What only a thread that is not there any more, or not stopped, knew of would count as leaked at an exit. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

#define CHILD_WRONG 98 /* 99 is Valgrind's */

#define CHILD_NEEDS(fact)                                                                          \
    do {                                                                                           \
        if (fact) break;                                                                           \
        fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #fact);                   \
        _exit(CHILD_WRONG);                                                                        \
    } while (0)

static inline int exit_code_of(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Valgrind looks for leaks at the end of every process, and has the last word: what only the parent's other threads knew of is lost in the child. */
static inline bool ended_by(int code, int expected)
{
    return code == expected || (code == 99 && getenv("WEFT_TEST_UNDER"));
}

#endif
