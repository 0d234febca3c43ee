/* SPDX-License-Identifier: MIT
 *
 * signals - the handler, and who listens; the idea is in signals.h.
 */
#include "sys/signals.h"

#include "base/atomic.h"
#include "sys/event.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "sys/stopsig.h"
#include "sys/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

enum { NUMBERS = 65 }; /* Linux: 1 to 64 */

/* -- the handler's -- */
static _Atomic uint32_t counts[NUMBERS]; /* [signal-count] */
static _Atomic int event = -1;           /* [signal-sb], [signal-event] */
static _Atomic uint32_t inside;          /* handlers that run  [signal-sb] */
static _Atomic pid_t owner;              /* relaxed: a number, the same for all of a process */

/* -- who listens -- */
static struct weft__lock lock = WEFT__LOCK_INIT(WEFT__RANK_SLAB); /* guards the rest */
static uint32_t listeners[NUMBERS];
static uint32_t all_listeners;
static struct sigaction before[NUMBERS];

/* The number of the process is asked for: a child may be signalled before anything of its own has run. */
static void on_signal(int number)
{
    int saved = errno;
    if (getpid() != load_relaxed(&owner)) { /* relaxed: see there */
        weft__stopsig_die(number);
        errno = saved;
        return;
    }
    fetch_add_relaxed(&inside, 1);         /* relaxed: the fence orders it */
    fence_seq_cst();                       /* [signal-sb] with event_close */
    fetch_add_release(&counts[number], 1); /* [signal-count] with count */
    int fd = load_acquire(&event);         /* [signal-event] with event_open */
    if (fd >= 0) (void)weft__event_signal(fd);
    fetch_sub_release(&inside, 1); /* [signal-sb] with event_close: it has been used */
    errno = saved;
}

uint32_t weft__signals_count(int number)
{
    return load_acquire(&counts[number]); /* [signal-count] with the handler */
}

/* Holds: the lock. */
static int event_open(void)
{
    int fd;
    if (load_relaxed(&event) >= 0) return 0; /* relaxed: written under the lock */
    int r = weft__event_open(&fd);
    if (r < 0) return r;
    store_relaxed(&owner, getpid()); /* relaxed: see there */
    store_release(&event,
                  fd); /* [signal-event] with a handler of the listeners before, that began late */
    return 0;
}

/* Holds: the lock. Behind it nobody signals: a handler that runs elsewhere just now is at its end in a moment, and none begins that could see it. */
static void event_close(void)
{
    int fd = load_relaxed(&event); /* relaxed, both: under the lock, and the fence */
    store_relaxed(&event, -1);
    fence_seq_cst();              /* [signal-sb] with the handler */
    while (load_acquire(&inside)) /* [signal-sb] with the handler's end */
        weft__thread_yield();
    weft__fd_close(fd);
}

static bool may_be_caught(int number)
{
    if (number < 1 || number >= NUMBERS) return false;
    return number != SIGKILL && number != SIGSTOP && number != SIGSEGV && number != SIGBUS &&
           number != SIGFPE && number != SIGILL && number != SIGTRAP && number != SIGABRT &&
           number != SIGSYS;
}

/* Holds: the lock. -EINVAL: the C library keeps it for itself. */
static int catch_it(int number)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    if (listeners[number] > 0) return 0;
    sigfillset(&ours.sa_mask);
    return sigaction(number, &ours, &before[number]) < 0 ? -errno : 0;
}

/* Holds: the lock. */
static int listen_to(int number, int *fd)
{
    int r = event_open();
    if (r < 0) return r;
    int copy = fcntl(load_relaxed(&event), F_DUPFD_CLOEXEC, 3); /* relaxed: under the lock */
    r = copy < 0 ? -errno : catch_it(number);
    if (r == 0) {
        listeners[number]++;
        all_listeners++;
        *fd = copy;
        return 0;
    }
    weft__fd_close(copy);
    if (all_listeners == 0) event_close();
    return r;
}

int weft__signals_open(int number, int *fd)
{
    if (!may_be_caught(number)) return -EINVAL;
    weft__lock_take(&lock);
    int r = listen_to(number, fd);
    weft__lock_drop(&lock);
    return r;
}

void weft__signals_close(int number)
{
    weft__lock_take(&lock);
    if (--listeners[number] == 0) (void)sigaction(number, &before[number], NULL);
    if (--all_listeners == 0) event_close();
    weft__lock_drop(&lock);
}

struct weft__lock *weft__signals_lock(void)
{
    return &lock;
}

/* Unless the program has put a handler of its own in our place. */
static void back_to_default(int number)
{
    struct sigaction now;
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler == on_signal)
        (void)sigaction(number, &by_default, NULL);
}

/* The event is the parent's too, and the handler kills whoever is not the parent. Threads of the parent's that were in it are not here. */
void weft__signals_forget(void)
{
    int fd = load_relaxed(&event); /* relaxed, all: there is one thread */
    store_relaxed(&event, -1);
    store_relaxed(&inside, 0);
    if (fd >= 0) weft__fd_close(fd);
    for (int i = 1; all_listeners > 0 && i < NUMBERS; i++) {
        if (listeners[i] > 0) back_to_default(i);
        all_listeners -= listeners[i];
        listeners[i] = 0;
    }
}
