/* SPDX-License-Identifier: MIT
 *
 * process - children: started, waited for by a descriptor, signalled.
 *
 * A child gets the three descriptors that it is given and no other of the library's: all that it opens is close-on-exec, and so is
 * what is made here. What the program leaves open to its children (a make's jobs, sockets of an init) is the program's. It has no signal blocked and none ignored but what the program ignored itself, since
 * the library's threads block all of them, which must not be inherited.
 * Waiting is for the child's own descriptor (a pidfd), so that it can be polled like any other, no handler of SIGCHLD is needed, and
 * a number that was used again is never signalled.
 *
 * Threads: any.
 */
#ifndef WEFT_SYS_PROCESS_H
#define WEFT_SYS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct weft__process_req {
    const char *path;        /* looked for in PATH if it has no slash */
    const char *const *argv;       /* ends with NULL */
    const char *const *env;        /* ends with NULL; NULL: as the program's */
    const char *dir;         /* NULL: as the program's */
    int fds[3];              /* what is to be its 0, 1 and 2; below 0: as the program's. Borrowed */
    bool group;              /* it leads a process group of its own */
};

struct weft__process {
    int64_t pid;
    int fd; /* the pidfd, close-on-exec; readable once it has ended. weft__fd_close closes it */
};

/* Start it. Blocks: until it runs, or cannot (vfork: the disk that has the program). Returns 0; -ENOENT, -EACCES, ...: the program or the
 * directory; -EAGAIN, -ENOMEM; -EMFILE: then nothing runs. -ECHILD: it ran, and somebody else has waited for it. */
int weft__process_start(const struct weft__process_req *req, struct weft__process *into);

/* Has it ended? Blocks: no. Returns 1, and how, as waitpid says it; 0: not yet; -ECHILD: somebody else has waited for it. With `keep` it can be asked again; else
 * it is gone with the answer 1. */
int weft__process_ended(const struct weft__process *process, bool keep, int *status);

/* Wait for its end; then it is gone. Blocks: yes. As above. */
int weft__process_wait(const struct weft__process *process, int *status);

/* Returns 0; -ESRCH: it has ended; -EINVAL: no such signal; -EPERM. */
int weft__process_signal(const struct weft__process *process, int signal);

/* To the whole group that it leads. */
int weft__process_signal_group(const struct weft__process *process, int signal);

/* A pipe whose end `ours` (0 is read, 1 is written) is not blocking, for this side, and the other for a child; both close-on-exec. Returns 0;
 * -EMFILE; -ENFILE. */
int weft__process_pipe(int ours, int into[2]);

/* /dev/null. Returns an fd, close-on-exec, or why not. */
int weft__process_null(bool to_write);

#endif
