/* SPDX-License-Identifier: MIT
 *
 * A plain thread forks inside of weft_fd_try's function, and the child returns from it: it gets what the function brought, or is told -ECHILD, also if another thread was
 * inside the descriptor's slot just then, and a descriptor that the function closed is closed once. So do other arms of the same wait.
 */
#include "child.h"
#include "driver/slot.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weft/weft.h>

static struct weft__waitlist *list_of(weft_fd *w)
{
    return &((struct weft__fdslot *)(void *)w)->list;
}

struct job {
    weft_fd *w;
    ssize_t brings;
    bool closes;
    bool beside_another;
    pthread_t other;
    _Atomic bool inside;
    _Atomic bool forked;
    pid_t child;
};

/* As a worker that delivers an event, and is held up there. */
static void *stays_inside(void *arg)
{
    struct job *j = arg;
    weft__waitlist_lock(list_of(j->w));
    store_relaxed(&j->inside, true); /* relaxed, all: flags of a test */
    while (!load_relaxed(&j->forked))
        sched_yield();
    weft__waitlist_unlock(list_of(j->w));
    return NULL;
}

static void in_the_child(struct job *j, int fd)
{
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(60); /* a child that hangs ends, with another code */
    if (!j->closes) return;
    weft_close(j->w);
    CHILD_NEEDS(open("/dev/null", O_RDONLY | O_CLOEXEC) == fd); /* its number is another's now */
}

static ssize_t forks(int fd, void *arg)
{
    struct job *j = arg;
    if (j->beside_another) {
        ASSERT_OK(pthread_create(&j->other, NULL, stays_inside, j));
        while (!load_relaxed(&j->inside))
            sched_yield();
    }
    j->child = fork();
    if (j->child == 0) in_the_child(j, fd);
    store_relaxed(&j->forked, true);
    return j->child == 0 ? j->brings : 7;
}

static void tries(struct job *j)
{
    int number = weft_fd_number(j->w);
    ssize_t n = weft_fd_try(j->w, WEFT_FD_READ, forks, j);
    if (j->child == 0) {
        CHILD_NEEDS(n == (j->brings == -EAGAIN ? -ECHILD : j->brings));
        CHILD_NEEDS(fcntl(number, F_GETFD) >= 0);
        _exit(7);
    }
    ASSERT_EQ(n, 7);
    if (j->beside_another) ASSERT_OK(pthread_join(j->other, NULL));
    ASSERT(ended_by(exit_code_of(j->child), 7));
}

static void child_returns(struct job *j)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    weft_rt *before = weft_rt_enter(rt);
    int event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT_GE(event, 0);
    ASSERT_OK(weft_fd_open(event, &j->w));
    tries(j);
    weft_close(j->w);
    (void)weft_rt_enter(before);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

TEST(io_fork_inside_a_try_returns_what_it_brought)
{
    child_returns(&(struct job){.brings = 9});
}

TEST(io_fork_inside_a_try_that_has_nothing_says_echild)
{
    child_returns(&(struct job){.brings = -EAGAIN});
}

TEST(io_fork_inside_a_try_beside_another_thread)
{
    child_returns(&(struct job){.brings = 9, .beside_another = true});
    child_returns(&(struct job){.brings = -EAGAIN, .beside_another = true});
}

TEST(io_fork_inside_a_try_that_closes_closes_once)
{
    child_returns(&(struct job){.brings = 9, .closes = true});
}

/* ---- another arm of the same wait ---- */

/* It waits for `other` and tries `w`, whose function forks once somebody has written there: in the child the first arm is told to stop. */
struct two_arms {
    struct job other; /* whose slot is somebody's, or that is closed, at the fork */
    weft_fd *w;
    _Atomic bool begun;
    int number; /* of `w`, to be written to by whoever rings */
};

static ssize_t forks_when_rung(int fd, void *arg)
{
    struct two_arms *t = arg;
    uint64_t rung;
    if (read(fd, &rung, sizeof(rung)) < 0) {
        store_relaxed(&t->begun, true);
        return -EAGAIN;
    }
    return forks(weft_fd_number(t->other.w), &t->other);
}

static void *rings(void *arg)
{
    struct two_arms *t = arg;
    while (!load_relaxed(&t->begun))
        sched_yield();
    ASSERT_OK(eventfd_write(t->number, 1));
    return NULL;
}

static void selects(struct two_arms *t)
{
    struct weft_fd_readable waits;
    struct weft_fd_try try;
    int number = weft_fd_number(t->other.w);
    pthread_t ringer;
    ASSERT_OK(pthread_create(&ringer, NULL, rings, t));
    int which = weft_select(weft_arm(waits, weft_fd_readable, t->other.w),
                            weft_arm(try, weft_fd_try, t->w, WEFT_FD_READ, forks_when_rung, t));
    if (t->other.child == 0) {
        CHILD_NEEDS(which == 1);
        CHILD_NEEDS(try.ret == t->other.brings);
        CHILD_NEEDS(waits.ret == -ECHILD);
        CHILD_NEEDS(fcntl(number, F_GETFD) >= 0);
        _exit(7);
    }
    ASSERT_EQ(which, 1);
    ASSERT_EQ(try.ret, 7);
    ASSERT_EQ(waits.ret, -ECANCELED);
    ASSERT_OK(pthread_join(ringer, NULL));
    if (t->other.beside_another) ASSERT_OK(pthread_join(t->other.other, NULL));
    ASSERT(ended_by(exit_code_of(t->other.child), 7));
}

static weft_fd *silent_event(void)
{
    weft_fd *w;
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT_GE(event, 0);
    ASSERT_OK(weft_fd_open(event, &w));
    return w;
}

static void other_arm_ends(struct two_arms *t)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    weft_rt *before = weft_rt_enter(rt);
    t->other.w = silent_event();
    t->w = silent_event();
    t->number = weft_fd_number(t->w);
    selects(t);
    weft_close(t->other.w);
    weft_close(t->w);
    (void)weft_rt_enter(before);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

TEST(io_fork_inside_an_arm_ends_the_others)
{
    other_arm_ends(&(struct two_arms){.other = {.brings = 9}});
}

TEST(io_fork_inside_an_arm_beside_another_thread)
{
    other_arm_ends(&(struct two_arms){.other = {.brings = 9, .beside_another = true}});
}

TEST(io_fork_inside_an_arm_that_closes_closes_once)
{
    other_arm_ends(&(struct two_arms){.other = {.brings = 9, .closes = true}});
}
