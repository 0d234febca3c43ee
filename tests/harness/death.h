/* SPDX-License-Identifier: MIT
 *
 * death - run something that should end the process, in a process of its own, and see how it went
 * and what it said.
 *
 *     struct death d = death_of(drop_twice, &lock);
 *     ASSERT_EQ(d.signal, SIGABRT);
 *     ASSERT(strstr(d.said, "does not hold"));
 * Where the message does not matter, TEST_WITH(name, .signal = SIGABRT) is shorter. Sanitizers' own
 * handlers are taken out of the way, so that a SIGSEGV is one.
 */
#ifndef WEFT_TESTS_DEATH_H
#define WEFT_TESTS_DEATH_H

#include "base/sanitize.h"
#include "test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* May the child of a program with threads allocate? glibc takes its own locks around fork; AddressSanitizer's allocator does not, and a
 * thread that was in it at that moment leaves it locked for ever. */
#if defined(WEFT__ASAN)
#define DEATH_CHILD_MAY_ALLOCATE false
#else
#define DEATH_CHILD_MAY_ALLOCATE true
#endif

struct death {
    int signal;      /* 0: it lived */
    int code;        /* exit code of one that lived; 0 if the body returned */
    char said[4096]; /* on stderr */
};

static inline void death_run_child(void (*body)(void *), void *arg, int out)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
        signal(deadly[i], SIG_DFL);
    dup2(out, STDERR_FILENO);
    body(arg);
    _exit(0);
}

static inline void death_listen(struct death *d, int in)
{
    size_t used = 0;
    ssize_t got;
    while ((got = read(in, d->said + used, sizeof(d->said) - 1 - used)) > 0)
        used += (size_t)got;
}

static inline struct death death_of(void (*body)(void *), void *arg)
{
    struct death d = {0};
    int ends[2];
    int status = 0;

    ASSERT_OK(pipe(ends));
    pid_t child = fork();
    ASSERT(child >= 0);
    if (child == 0) death_run_child(body, arg, ends[1]);
    close(ends[1]);
    death_listen(&d, ends[0]);
    close(ends[0]);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) d.signal = WTERMSIG(status);
    if (WIFEXITED(status)) d.code = WEXITSTATUS(status);
    return d;
}

/* A mistake that is refused: it is told, and debug builds stop there; others go on, and the body says
 * by 9 that it got its error. */
static inline void death_expect_told(void (*body)(void *), const char *told)
{
    struct death d = death_of(body, NULL);
#ifdef WEFT_DEBUG
    bool right = d.signal == SIGABRT;
#else
    bool right = d.signal == 0 && d.code == 9;
#endif
    if (!right || !strstr(d.said, told))
        ck_abort_msg("signal %d, code %d, said: %s", d.signal, d.code, d.said);
}

#endif
