/* SPDX-License-Identifier: MIT
 *
 * process - posix_spawn, and the pidfd of what came of it.
 *
 * posix_spawn and not fork: a child of vfork shares the parent's memory until it executes, whatever the parent's size, and
 * says by its answer whether it could. Its number is safe until it was waited for, so the pidfd may be opened behind it.
 */
#include "sys/process.h"

#include "base/fault.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* ---- start -------------------------------------------------------------------------------------------- */

/* Copies made by dup2 are not close-on-exec; all three are above 2, or below 0. */
static int fds_say(posix_spawn_file_actions_t *actions, const int fds[3], const char *dir)
{
    int r = 0;
    for (int i = 0; i < 3 && r == 0; i++)
        if (fds[i] >= 0) r = posix_spawn_file_actions_adddup2(actions, fds[i], i);
    if (r == 0 && dir) r = posix_spawn_file_actions_addchdir_np(actions, dir);
    return -r;
}

static int attributes_say(posix_spawnattr_t *attributes, bool group)
{
    sigset_t none;
    sigset_t usual;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;

    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE); /* the library ignores it, perhaps: a child should not */
    int r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0) r = posix_spawnattr_setsigdefault(attributes, &usual);
    if (r == 0 && group) r = posix_spawnattr_setpgroup(attributes, 0);
    if (group) flags = (short)(flags | POSIX_SPAWN_SETPGROUP);
    if (r == 0) r = posix_spawnattr_setflags(attributes, flags);
    return -r;
}

/* What is to be 0 may be 2 now, and the other way round: copies out of the way, for as long as it takes. */
static int fds_above(const int given[3], int into[3])
{
    for (int i = 0; i < 3; i++)
        into[i] = -1;
    for (int i = 0; i < 3; i++) {
        if (given[i] < 0) continue;
        into[i] = fcntl(given[i], F_DUPFD_CLOEXEC, 3);
        if (into[i] < 0) return -errno;
    }
    return 0;
}

static void fds_close(const int fds[3])
{
    for (int i = 0; i < 3; i++)
        weft__fd_close(fds[i]);
}

static int spawn(const struct weft__process_req *req, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, int64_t *pid)
{
    int r = weft__fault(WEFT__FAULT_PROCESS);
    if (r < 0) return r;
    pid_t child;
    r = -posix_spawnp(&child, req->path, actions, attributes, (char *const *)req->argv,
                      req->env ? (char *const *)req->env : environ); /* the casts: it writes to none of them */
    if (r == 0) *pid = child;
    return r;
}

static int start_with(const struct weft__process_req *req, const int fds[3], int64_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = -posix_spawn_file_actions_init(&actions);
    if (r < 0) return r;
    r = -posix_spawnattr_init(&attributes);
    if (r < 0) goto out_actions;
    r = fds_say(&actions, fds, req->dir);
    if (r == 0) r = attributes_say(&attributes, req->group);
    if (r == 0) r = spawn(req, &actions, &attributes, pid);
    (void)posix_spawnattr_destroy(&attributes);
out_actions:
    (void)posix_spawn_file_actions_destroy(&actions);
    return r;
}

static int start(const struct weft__process_req *req, int64_t *pid)
{
    int fds[3];
    int r = fds_above(req->fds, fds);
    if (r == 0) r = start_with(req, fds, pid);
    fds_close(fds);
    return r;
}

static int open_pidfd(int64_t pid)
{
    int r = weft__fault(WEFT__FAULT_PIDFD);
    if (r < 0) return r;
    long fd = syscall(SYS_pidfd_open, (pid_t)pid, 0);
    return fd < 0 ? -errno : (int)fd;
}

int weft__process_start(const struct weft__process_req *req, struct weft__process *into)
{
    int64_t pid = 0;
    int r = start(req, &pid);
    if (r < 0) return r;
    int fd = open_pidfd(pid);
    if (fd == -ESRCH)
        return -ECHILD; /* it ended, and was waited for by another: its number may be anybody's */
    if (fd < 0) {       /* nobody could wait for it: it has not been, nor has what it started itself */
        (void)kill((pid_t)(req->group ? -pid : pid), SIGKILL);
        (void)waitpid((pid_t)pid, NULL, 0);
        return fd;
    }
    *into = (struct weft__process){.pid = pid, .fd = fd};
    return 0;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static int status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED) return (info->si_status & 0xff) << 8;
    return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

static int wait_for(const struct weft__process *process, int how, int *status)
{
    siginfo_t info = {0};
    int r;
    do
        r = waitid((idtype_t)P_PIDFD, (id_t)process->fd, &info, WEXITED | how);
    while (r < 0 && errno == EINTR);
    if (r < 0) return -errno;
    if (info.si_pid == 0) return 0;
    *status = status_of(&info);
    return 1;
}

int weft__process_ended(const struct weft__process *process, bool keep, int *status)
{
    return wait_for(process, WNOHANG | (keep ? WNOWAIT : 0), status);
}

int weft__process_wait(const struct weft__process *process, int *status)
{
    return wait_for(process, 0, status);
}

int weft__process_signal(const struct weft__process *process, int signal)
{
    return syscall(SYS_pidfd_send_signal, process->fd, signal, NULL, 0) < 0 ? -errno : 0;
}

int weft__process_signal_group(const struct weft__process *process, int signal)
{
    return kill((pid_t)-process->pid, signal) < 0 ? -errno : 0;
}

/* ---- what it is given ------------------------------------------------------------------------------------ */

int weft__process_pipe(int ours, int into[2])
{
    int r = weft__fault(WEFT__FAULT_PROCESS);
    if (r < 0) return r;
    if (pipe2(into, O_CLOEXEC) < 0) return -errno;
    (void)fcntl(into[ours], F_SETFL, O_NONBLOCK); /* of a pipe of our own: cannot fail */
    return 0;
}

int weft__process_null(bool to_write)
{
    int fd = open("/dev/null", (to_write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
