/* SPDX-License-Identifier: MIT
 *
 * process: a child gets what it is given and nothing else, its end is seen and told as it was, and what cannot be started leaves
 * nothing.
 */
#include "base/fault.h"
#include "sys/fd.h"
#include "sys/probe.h"
#include "sys/process.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SH(text) ((const char *[]){"sh", "-c", (text), NULL})

static struct weft__process_req req_of(const char *const *argv)
{
    return (struct weft__process_req){.path = argv[0], .argv = argv, .fds = {-1, -1, -1}};
}

/* Not where there is no pidfd: a kernel before 5.3, Valgrind 3.19. */
static void skip_without_pidfd(void)
{
    int r = weft__probe()->pidfd_open;
    if (r < 0) TEST_SKIP("pidfd_open: %d", r);
}

static struct weft__process started(const struct weft__process_req *req)
{
    struct weft__process p;
    ASSERT_OK(weft__process_start(req, &p));
    ASSERT(fcntl(p.fd, F_GETFD) & FD_CLOEXEC);
    return p;
}

static int status_of(struct weft__process *p)
{
    int status = -1;
    ASSERT_EQ(weft__process_wait(p, &status), 1);
    ASSERT_EQ(weft__process_ended(p, false, &status), -ECHILD); /* once */
    ASSERT_EQ(weft__process_signal(p, SIGTERM), -ESRCH);
    weft__fd_close(p->fd);
    return status;
}

/* All that it says on its standard output. */
static void says(struct weft__process_req req, char *into, size_t bytes)
{
    int ends[2];
    size_t used = 0;
    ASSERT_OK(weft__process_pipe(0, ends));
    ASSERT(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    ASSERT(!(fcntl(ends[1], F_GETFL) & O_NONBLOCK));
    req.fds[1] = ends[1];
    struct weft__process p = started(&req);
    weft__fd_close(ends[1]);
    for (;;) {
        struct pollfd ready = {.fd = ends[0], .events = POLLIN};
        ASSERT_GE(poll(&ready, 1, -1), 0);
        ssize_t n = read(ends[0], into + used, bytes - 1 - used);
        if (n <= 0) break;
        used += (size_t)n;
    }
    into[used] = 0;
    weft__fd_close(ends[0]);
    ASSERT_EQ(status_of(&p), 0);
}

#if defined(WEFT_FAULTS)
static int killed;              /* calls of kill in this process */
static int kill_waits_for = -1; /* a descriptor where a byte comes; below 0: it does not wait */

/* In the place of libc's. It can be held up: a child that is to be killed first has the time to start one of its own.
 * NOLINTNEXTLINE(bugprone-reserved-identifier): its header has these names */
int kill(pid_t __pid, int __sig)
{
    char byte;
    killed++;
    if (kill_waits_for >= 0) {
        struct pollfd ready = {.fd = kill_waits_for, .events = POLLIN};
        ASSERT_EQ(poll(&ready, 1, -1), 1);
        ASSERT_EQ(read(kill_waits_for, &byte, 1), 1);
    }
    return (int)syscall(SYS_kill, __pid, __sig);
}

/* Children that nobody has to wait for are gone at once, and so is what their number means: it is not signalled. */
TEST(process_that_another_has_waited_for_is_not_killed)
{
    struct weft__process_req req = req_of(SH("exit 0"));
    struct weft__process p;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    weft__fault_arm(WEFT__FAULT_PIDFD, 1, 1, -ESRCH);
    killed = 0;
    ASSERT_EQ(weft__process_start(&req, &p), -ECHILD);
    ASSERT_EQ(killed, 0);
    weft__fault_reset();
    while (waitpid(-1, NULL, 0) > 0) /* until there is none */
        continue;
    (void)signal(SIGCHLD, before);
}
#endif

TEST(process_ends_as_it_says)
{
    skip_without_pidfd();
    struct weft__process_req req = req_of(SH("exit 7"));
    struct weft__process p = started(&req);
    int status = status_of(&p);
    ASSERT(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 7);
    req = req_of(SH("kill -USR1 $$"));
    p = started(&req);
    status = status_of(&p);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGUSR1);
}

TEST(process_is_readable_once_it_has_ended)
{
    skip_without_pidfd();
    struct weft__process_req req = req_of(SH("read line"));
    int ends[2];
    int status = -1;
    ASSERT_OK(weft__process_pipe(1, ends));
    req.fds[0] = ends[0];
    struct weft__process p = started(&req);
    weft__fd_close(ends[0]);
    struct pollfd ended = {.fd = p.fd, .events = POLLIN};
    ASSERT_EQ(poll(&ended, 1, 0), 0);
    ASSERT_EQ(weft__process_ended(&p, false, &status), 0);
    ASSERT_EQ(write(ends[1], "\n", 1), 1);
    ASSERT_EQ(poll(&ended, 1, -1), 1);
    ASSERT_EQ(weft__process_ended(&p, true, &status), 1);
    ASSERT_EQ(weft__process_ended(&p, true, &status), 1);
    ASSERT_EQ(weft__process_ended(&p, false, &status), 1);
    ASSERT_EQ(status, 0);
    weft__fd_close(p.fd);
    weft__fd_close(ends[1]);
}

TEST(process_gets_environment_and_directory)
{
    skip_without_pidfd();
    char said[200];
    struct weft__process_req req = req_of(SH("echo $A; pwd"));
    req.env = (const char *[]){"A=b c", "PATH=/usr/bin:/bin", NULL};
    req.dir = "/usr";
    says(req, said, sizeof(said));
    ASSERT(strcmp(said, "b c\n/usr\n") == 0);
}

static uint64_t mask_in(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    ASSERT(at);
    return strtoull(at + strlen(name), NULL, 16);
}

/* What is open here is not there, and none of our signals is blocked there; SIGPIPE is as usual. */
TEST(process_inherits_nothing_else)
{
    skip_without_pidfd();
    char said[600];
    char look[100];
    sigset_t all;
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigfillset(&all);
    ASSERT_OK(pthread_sigmask(SIG_BLOCK, &all, NULL));
    signal(SIGPIPE, SIG_IGN);
    snprintf(look, sizeof(look), "test -e /proc/$$/fd/%d && echo there; cat /proc/$$/status | grep Sig", other);
    says(req_of(SH(look)), said, sizeof(said));
    weft__fd_close(other);
    ASSERT(!strstr(said, "there"));
    ASSERT_EQ(mask_in(said, "SigBlk:"), 0);
    ASSERT(!(mask_in(said, "SigIgn:") & (UINT64_C(1) << (SIGPIPE - 1))));
}

/* Its error output where ours goes, and the other way round. */
TEST(process_descriptors_may_cross)
{
    skip_without_pidfd();
    int ends[2];
    char got[8] = {0};
    ASSERT_OK(weft__process_pipe(0, ends));
    int kept[2] = {fcntl(1, F_DUPFD_CLOEXEC, 3), fcntl(2, F_DUPFD_CLOEXEC, 3)};
    ASSERT_GE(dup2(ends[1], 1), 0);
    struct weft__process_req req = req_of(SH("echo err >&2"));
    req.fds[2] = 1;
    req.fds[1] = 2;
    struct weft__process p = started(&req);
    ASSERT_EQ(status_of(&p), 0);
    ASSERT_GE(dup2(kept[0], 1), 0);
    ASSERT_EQ(read(ends[0], got, sizeof(got)), 4);
    ASSERT(strcmp(got, "err\n") == 0);
    weft__fd_close(kept[0]);
    weft__fd_close(kept[1]);
    weft__fd_close(ends[0]);
    weft__fd_close(ends[1]);
}

TEST(process_group_is_signalled_together)
{
    skip_without_pidfd();
    struct weft__process_req req = req_of(SH("sleep 1000 & echo; wait"));
    int ends[2];
    char line;
    ASSERT_OK(weft__process_pipe(0, ends));
    req.fds[1] = ends[1];
    req.group = true;
    struct weft__process p = started(&req);
    weft__fd_close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    ASSERT_EQ(poll(&ready, 1, -1), 1);
    ASSERT_EQ(read(ends[0], &line, 1), 1);
    ASSERT_OK(weft__process_signal_group(&p, SIGKILL));
    int status = status_of(&p);
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ASSERT_EQ(poll(&ready, 1, -1), 1); /* the pipe is closed once the last of the group is gone */
    ASSERT_EQ(read(ends[0], &line, 1), 0);
    weft__fd_close(ends[0]);
}

TEST(process_that_cannot_be_started)
{
    skip_without_pidfd();
    struct weft__process p = {.fd = -1};
    struct weft__process_req req = req_of((const char *[]){"/nowhere/at/all", NULL});
    ASSERT_EQ(weft__process_start(&req, &p), -ENOENT);
    req = req_of((const char *[]){"/etc/passwd", NULL});
    ASSERT_EQ(weft__process_start(&req, &p), -EACCES);
    req = req_of(SH("true"));
    req.dir = "/nowhere";
    ASSERT_EQ(weft__process_start(&req, &p), -ENOENT);
    req = req_of(SH("true"));
    req.fds[1] = 1000;
    ASSERT_EQ(weft__process_start(&req, &p), -EBADF);
    ASSERT_EQ(p.fd, -1);
    ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child */
}

TEST(process_nothing_to_read_or_write)
{
    char byte = 'x';
    int in = weft__process_null(false);
    int out = weft__process_null(true);
    ASSERT_EQ(read(in, &byte, 1), 0);
    ASSERT_EQ(write(out, &byte, 1), 1);
    weft__fd_close(in);
    weft__fd_close(out);
}

#if defined(WEFT_FAULTS)

TEST(process_without_a_descriptor_is_not_left_running)
{
    struct weft__process p = {.fd = -1};
    struct weft__process_req req = req_of(SH("sleep 1000"));
    weft__fault_arm(WEFT__FAULT_PIDFD, 1, 1, -EMFILE);
    ASSERT_EQ(weft__process_start(&req, &p), -EMFILE);
    ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
    weft__fault_arm(WEFT__FAULT_PROCESS, 1, 1, -EAGAIN);
    ASSERT_EQ(weft__process_start(&req, &p), -EAGAIN);
    ASSERT_EQ(p.fd, -1);
}

TEST(process_group_without_a_descriptor_is_not_left_running)
{
    struct weft__process p = {.fd = -1};
    struct weft__process_req req = req_of(SH("sleep 1000 & echo; wait"));
    int ends[2];
    char line;
    ASSERT_OK(weft__process_pipe(0, ends));
    req.fds[1] = req.fds[2] = ends[1];
    req.group = true;
    kill_waits_for = ends[0];
    weft__fault_arm(WEFT__FAULT_PIDFD, 1, 1, -EMFILE);
    ASSERT_EQ(weft__process_start(&req, &p), -EMFILE);
    kill_waits_for = -1;
    weft__fd_close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    ASSERT_EQ(poll(&ready, 1, -1), 1); /* the pipe is closed once the last of the group is gone */
    ASSERT_EQ(read(ends[0], &line, 1), 0);
    weft__fd_close(ends[0]);
}

#endif
