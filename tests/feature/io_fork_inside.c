/* SPDX-License-Identifier: MIT
 *
 * A plain thread forks inside of weft_fd_try's function, and the child returns from it: it gets what the function brought, or is told -ECHILD, also if another thread was
 * inside the descriptor's slot just then, and a descriptor that the function closed is closed once. So do other arms of the same wait, also those that stay in a slot between
 * their operations: an accept, and a send to somebody whose queue is full.
 */
#include "child.h"
#include "driver/slot.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <weft/weft.h>

/* What is forked beside: each is its slot. */
enum what { WATCHED, LISTENER, DGRAM };

struct job {
    void *w;
    enum what what;
    ssize_t brings;
    bool closes;
    bool beside_another;
    pthread_t other;
    _Atomic bool inside;
    _Atomic bool forked;
    pid_t child;
};

static struct weft__fdslot *slot_of(const struct job *j)
{
    return j->w;
}

static void close_it(const struct job *j)
{
    if (j->what == LISTENER)
        weft_close((weft_listener *)j->w);
    else if (j->what == DGRAM)
        weft_close((weft_dgram *)j->w);
    else
        weft_close((weft_fd *)j->w);
}

/* As a worker that delivers an event, and is held up there. */
static void *stays_inside(void *arg)
{
    struct job *j = arg;
    weft__waitlist_lock(&slot_of(j)->list);
    store_relaxed(&j->inside, true); /* relaxed, all: flags of a test */
    while (!load_relaxed(&j->forked))
        sched_yield();
    weft__waitlist_unlock(&slot_of(j)->list);
    return NULL;
}

static void in_the_child(struct job *j, int fd)
{
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(60); /* a child that hangs ends, with another code */
    if (!j->closes) return;
    close_it(j);
    CHILD_NEEDS(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, fd) == fd); /* its number is another's now */
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

static void child_is_over(const struct job *j)
{
    if (j->beside_another) ASSERT_OK(pthread_join(j->other, NULL));
    ASSERT(ended_by(exit_code_of(j->child), 7));
}

static void tries(struct job *j)
{
    int number = slot_of(j)->fd;
    ssize_t n = weft_fd_try(j->w, WEFT_FD_READ, forks, j);
    if (j->child == 0) {
        CHILD_NEEDS(n == (j->brings == -EAGAIN ? -ECHILD : j->brings));
        CHILD_NEEDS(fcntl(number, F_GETFD) >= 0);
        _exit(7);
    }
    ASSERT_EQ(n, 7);
    child_is_over(j);
}

static void *event_of(unsigned count)
{
    weft_fd *w;
    int event = eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT_GE(event, 0);
    ASSERT_OK(weft_fd_open(event, &w));
    return w;
}

static void child_returns(struct job *j)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    weft_rt *before = weft_rt_enter(rt);
    j->w = event_of(1);
    tries(j);
    close_it(j);
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

/* It waits for `other` and tries `w`, whose function forks once the other has begun to wait and somebody has written there. */
struct two_arms {
    struct job other; /* whose slot is somebody's, or that is closed, at the fork */
    struct job mine;
    weft_addr full; /* whose queue is full, for a dgram */
    int queue;
    bool both; /* in the child the other arm goes on; else it is told to stop */
};

static ssize_t forks_when_rung(int fd, void *arg)
{
    struct two_arms *t = arg;
    uint64_t rung;
    if (read(fd, &rung, sizeof(rung)) < 0) return -EAGAIN;
    return forks(slot_of(&t->other)->fd, &t->other);
}

/* A look of a select leaves again; a send is none, and is in no list. */
static bool has_begun(const struct job *j)
{
    struct weft__fdslot *slot = slot_of(j);
    weft__waitlist_lock(&slot->list);
    bool waits = !weft__list_empty(weft__fdslot_queue(slot, WEFT__SIDE_READ));
    weft__waitlist_unlock(&slot->list);
    return waits || (j->what == DGRAM && load_relaxed(&slot->users)); /* relaxed: a look */
}

/* The queue of somebody else, which `full` names. */
static void fill_queue(struct two_arms *t)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 +
                      (socklen_t)snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
                                          "weft-fork-inside-%d", (int)getpid());
    t->queue = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_GE(t->queue, 0);
    ASSERT_OK(bind(t->queue, (struct sockaddr *)&at, bytes));
    while (sendto(slot_of(&t->other)->fd, "f", 1, MSG_DONTWAIT, (struct sockaddr *)&at, bytes) ==
           1) {
    }
    ASSERT_EQ(errno, EAGAIN);
    at.sun_path[0] = '@';
    ASSERT_OK(weft_addr_of_path(at.sun_path, &t->full));
}

static void empty_queue(const struct two_arms *t)
{
    char b;
    while (recv(t->queue, &b, 1, 0) >= 0) {
    }
}

static void *rings(void *arg)
{
    struct two_arms *t = arg;
    while (!has_begun(&t->other))
        sched_yield();
    ASSERT_OK(eventfd_write(slot_of(&t->mine)->fd, 1));
    while (t->both && !load_relaxed(&t->other.forked))
        sched_yield();
    if (t->both) empty_queue(t);
    return NULL;
}

struct answers {
    struct weft_fd_readable waits;
    struct weft_accept accepts;
    struct weft_dgram_send_to sends;
    struct weft_fd_try try;
};

static ssize_t answer_of(const struct answers *a, enum what what)
{
    return what == LISTENER ? a->accepts.ret : what == DGRAM ? a->sends.ret : a->waits.ret;
}

static int waits_for_one(struct two_arms *t, struct answers *a)
{
    weft_stream *conn;
    enum what what = t->other.what;
    return weft_select(
        weft_when(what == WATCHED, weft_arm(a->waits, weft_fd_readable, t->other.w)),
        weft_when(what == LISTENER, weft_arm(a->accepts, weft_accept, t->other.w, &conn)),
        weft_when(what == DGRAM,
                  weft_arm(a->sends, weft_dgram_send_to, t->other.w, "x", 1, &t->full)),
        weft_arm(a->try, weft_fd_try, t->mine.w, WEFT_FD_READ, forks_when_rung, t));
}

static int waits_for_both(struct two_arms *t, struct answers *a)
{
    return weft_all(weft_arm(a->sends, weft_dgram_send_to, t->other.w, "x", 1, &t->full),
                    weft_arm(a->try, weft_fd_try, t->mine.w, WEFT_FD_READ, forks_when_rung, t));
}

/* Who sends was between two tries, and is told to stop like any sleeper. */
static void waits(struct two_arms *t)
{
    struct answers a;
    enum what what = t->other.what;
    int number = slot_of(&t->other)->fd;
    pthread_t ringer;
    ASSERT_OK(pthread_create(&ringer, NULL, rings, t));
    int r = t->both ? waits_for_both(t, &a) : waits_for_one(t, &a);
    if (t->other.child == 0) {
        CHILD_NEEDS(r == (t->both ? 0 : 3));
        CHILD_NEEDS(a.try.ret == t->other.brings);
        CHILD_NEEDS(answer_of(&a, what) == (what == DGRAM && !t->both ? -ECANCELED : -ECHILD));
        CHILD_NEEDS(fcntl(number, F_GETFD) >= 0);
        _exit(7);
    }
    ASSERT_EQ(r, t->both ? 0 : 3);
    ASSERT_EQ(a.try.ret, 7);
    ASSERT_EQ(answer_of(&a, what), t->both ? 1 : -ECANCELED);
    ASSERT_OK(pthread_join(ringer, NULL));
    child_is_over(&t->other);
}

static void *made(struct two_arms *t)
{
    weft_listener *l;
    weft_dgram *d;
    switch (t->other.what) {
    case LISTENER:
        ASSERT_OK(weft_tcp_listen("127.0.0.1:0", &l));
        return l;
    case DGRAM:
        ASSERT_OK(weft_dgram_bind(NULL, &d));
        return d;
    default:
        return event_of(0);
    }
}

static void other_arm_ends(struct two_arms *t)
{
    weft_rt *rt;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = 2}, &rt));
    weft_rt *before = weft_rt_enter(rt);
    t->other.w = made(t);
    t->mine.w = event_of(0);
    if (t->other.what == DGRAM) fill_queue(t);
    (void)weft_rt_enter(before); /* the sleeps of a thread that has entered none are its own */
    waits(t);
    close_it(&t->other);
    close_it(&t->mine);
    if (t->other.what == DGRAM) ASSERT_OK(close(t->queue));
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static void each_other_arm_ends(struct job like)
{
    for (int what = WATCHED; what <= DGRAM; what++) {
        struct two_arms t = {.other = like};
        t.other.what = (enum what)what;
        other_arm_ends(&t);
    }
}

TEST(io_fork_inside_an_arm_ends_the_others)
{
    each_other_arm_ends((struct job){.brings = 9});
}

TEST(io_fork_inside_an_arm_beside_another_thread)
{
    each_other_arm_ends((struct job){.brings = 9, .beside_another = true});
}

TEST(io_fork_inside_an_arm_that_closes_closes_once)
{
    each_other_arm_ends((struct job){.brings = 9, .closes = true});
}

/* What the child would send would be the parent's. */
TEST(io_fork_inside_an_arm_beside_one_that_goes_on)
{
    other_arm_ends(&(struct two_arms){.other = {.what = DGRAM, .brings = 9}, .both = true});
}
