/* SPDX-License-Identifier: MIT
 *
 * stopsig - sigaction, and the way to die by a signal.
 */
#include "sys/stopsig.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

static void (*to_tell)(int signal); /* written before the first handler is there, as the next */
static pid_t whom;

/* The number is asked for: a child may be signalled before anything of its own has run. */
static void on_signal(int signal)
{
    int before = errno;
    if (getpid() == whom) {
        to_tell(signal);
    } else {
        weft__stopsig_die(signal);
    }
    errno = before;
}

static void catch_one(int signal)
{
    struct sigaction now;
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (sigaction(signal, NULL, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL) return;
    sigemptyset(&ours.sa_mask);
    sigaddset(&ours.sa_mask, SIGINT); /* one at a time: the count of signals needs no more */
    sigaddset(&ours.sa_mask, SIGTERM);
    (void)sigaction(signal, &ours, NULL);
}

void weft__stopsig_catch(void (*heard)(int signal))
{
    to_tell = heard;
    whom = getpid();
    catch_one(SIGINT);
    catch_one(SIGTERM);
}

void weft__stopsig_die(int signal)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t it;

    sigemptyset(&by_default.sa_mask);
    (void)sigaction(signal, &by_default, NULL);
    (void)raise(signal);
    sigemptyset(&it);
    sigaddset(&it, signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &it, NULL);
}

const char *weft__stopsig_name(int signal)
{
    return signal == SIGINT ? "SIGINT" : "SIGTERM";
}
