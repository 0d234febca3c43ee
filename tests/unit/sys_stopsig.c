/* SPDX-License-Identifier: MIT
 *
 * The signals that ask a program to stop: told where nobody else decided, and deadly on request.
 */
#include "sys/stopsig.h"

#include "death.h"

#include <errno.h>

static volatile sig_atomic_t told;

static void heard(int signal)
{
    told = signal;
    errno = ENOENT;
}

/* The test runner has handlers of its own, which a child inherits. */
static void as_in_a_program(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

/* Each body runs in a process of its own: the handlers stay. */
static void in_a_child(void (*body)(void *))
{
    struct death d = death_of(body, NULL);
    ASSERT_EQ(d.signal, 0);
    ASSERT_EQ(d.code, 0);
}

static void tells(void *unused)
{
    (void)unused;
    as_in_a_program();
    weft__stopsig_catch(heard);
    errno = EBADF;
    raise(SIGINT);
    ASSERT_EQ(told, SIGINT);
    raise(SIGTERM);
    ASSERT_EQ(told, SIGTERM);
    ASSERT_EQ(errno, EBADF);
}

TEST(stopsig_tells)
{
    in_a_child(tells);
}

static volatile sig_atomic_t own;

static void own_handler(int signal)
{
    own = signal;
}

static void own_sigaction(int signal, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    own = signal;
}

static void leaves_alone(void *unused)
{
    struct sigaction wide = {.sa_sigaction = own_sigaction, .sa_flags = SA_SIGINFO};
    (void)unused;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, own_handler);
    weft__stopsig_catch(heard);
    raise(SIGINT);
    raise(SIGTERM);
    ASSERT_EQ(told, 0);
    ASSERT_EQ(own, SIGTERM);
    ASSERT_OK(sigaction(SIGINT, &wide, NULL));
    weft__stopsig_catch(heard);
    raise(SIGINT);
    ASSERT_EQ(told, 0);
    ASSERT_EQ(own, SIGINT);
}

TEST(stopsig_leaves_alone_what_was_decided)
{
    in_a_child(leaves_alone);
}

static void dies_when_told(int signal)
{
    weft__stopsig_die(signal);
    _exit(1); /* not inside of the handler, and not behind it */
}

static void dies_in_handler(void *signal)
{
    as_in_a_program();
    weft__stopsig_catch(dies_when_told);
    raise(*(int *)signal);
}

static void dies(void *signal)
{
    weft__stopsig_die(*(int *)signal);
}

TEST(stopsig_die_kills_by_the_signal)
{
    int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        ASSERT_EQ(death_of(dies, &signals[i]).signal, signals[i]);
        ASSERT_EQ(death_of(dies_in_handler, &signals[i]).signal, signals[i]);
    }
    ASSERT_STR(weft__stopsig_name(SIGINT), "SIGINT");
    ASSERT_STR(weft__stopsig_name(SIGTERM), "SIGTERM");
}

static void forks_and_signals(void *unused)
{
    (void)unused;
    as_in_a_program();
    weft__stopsig_catch(heard);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(stopsig_kills_a_child)
{
    in_a_child(forks_and_signals);
}
