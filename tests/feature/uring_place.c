/* SPDX-License-Identifier: MIT
 *
 * Sockets that have a place in the ring's table: who sends often is given one, and what it says arrives all the same; its peer hears the end as soon as it is closed, whoever closes it,
 * and also if the kernel is short of memory then, its runtime stops first, or its process is killed and has a child; without a table sends go on as they did.
 */
#include "base/fault.h"
#include "child.h"
#include "driver/uring.h"
#include "line.h"

#include <fcntl.h>
#include <signal.h>

enum { OFTEN = 2 * WEFT__URING_PLACE_AFTER };

static bool is_placed(const struct line *l)
{
    struct weft__fdslot *slot = slot_of(l->ours);
    struct weft__uring *u = slot->port->own;
    weft__uring_lock(u);
    bool placed = weft__uring_more_of(slot)->placed;
    weft__uring_unlock(u);
    return placed;
}

static void needs_places(const struct line *l)
{
    const struct weft__uring *u = slot_of(l->ours)->port->own;
    if (u->places == 0) TEST_SKIP("the kernel gives no table that is empty at first");
}

/* A send is noted only behind something that was read, and by a worker whose polls are quick: the watchdog bounds it. */
static int gets_placed(struct line *l)
{
    int r = 0;
    for (unsigned round = 0; r == 0 && !is_placed(l); round++)
        r = echoes(l, round);
    for (unsigned round = 0; r == 0 && round < 5; round++) /* by its place */
        r = echoes(l, round);
    return r;
}

static struct line placed_line(bool tcp)
{
    struct line l = tcp ? line_by_tcp() : line_by_pair();
    needs_places(&l);
    ASSERT_OK(joined(weft_go(gets_placed, &l)));
    return l;
}

/* It was told nothing more than this: at once, where no network is in between; else the watchdog bounds it. */
static void hears_the_end(int fd, bool tcp)
{
    char b;
    ASSERT_EQ(recv(fd, &b, 1, tcp ? 0 : MSG_DONTWAIT), 0);
    ASSERT_OK(close(fd));
}

/* ---- given ---- */

TEST(place_is_given_to_who_sends_often)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        weft_rt *rt = on_uring_quick();
        struct line l = placed_line(tcp);
        line_end(&l);
        stops(rt);
    }
}

/* It answers while its number is another socket's. */
static int answers_elsewhere(const struct line *l, int other)
{
    char word = 'w', heard = 0;
    int number = slot_of(l->ours)->fd;
    int kept = fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (write(l->theirs, &word, 1) != 1 || weft_read(l->ours, &heard, 1) != 1) return -EIO;
    if (kept < 0 || dup3(other, number, O_CLOEXEC) != number) return -errno;
    ssize_t n = weft_write(l->ours, &heard, 1);
    if (dup3(kept, number, O_CLOEXEC) != number || close(kept) < 0) return -errno;
    return n == 1 && recv(l->theirs, &heard, 1, MSG_DONTWAIT) == 1 && heard == word ? 0 : -EXDEV;
}

static int answers_there(struct line *l)
{
    int r = 0, other[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other) < 0) return -errno;
    for (unsigned round = 0; r == 0 && round < 5; round++)
        r = answers_elsewhere(l, other[0]);
    return close(other[0]) < 0 || close(other[1]) < 0 ? -errno : r;
}

TEST(place_is_what_sends_name)
{
    weft_rt *rt = on_uring_quick();
    struct line l = placed_line(false); /* what is sent is there at once */
    ASSERT_OK(joined(weft_go(answers_there, &l)));
    line_end(&l);
    stops(rt);
}

/* In the middle of what others do at the same time, on every count of workers; each is closed by its task, and its slot is another's next. */
static int lives(struct line *l, bool tcp)
{
    int r = 0;
    for (int again = 0; r == 0 && again < 10; again++) {
        *l = tcp ? line_by_tcp() : line_by_pair();
        for (unsigned round = 0; r == 0 && round < OFTEN; round++) {
            r = echoes(l, round);
            if (r == 0 && round % 8 == 0) r = weft_yield();
        }
        weft_close(l->ours);
        hears_the_end(l->theirs, tcp);
    }
    return r;
}

TEST(place_of_one_is_the_next_ones)
{
    enum { LIVES = 8 };
    for (int workers = 1; workers <= 4; workers *= 2) {
        weft_rt *rt = on_uring(workers);
        struct line line[LIVES];
        weft_task *task[LIVES];
        for (int i = 0; i < LIVES; i++)
            task[i] = weft_go(lives, &line[i], i % 2 == 0);
        for (int i = 0; i < LIVES; i++)
            ASSERT_OK(joined(task[i]));
        stops(rt);
    }
}

/* ---- left ---- */

static int closes(struct line *l)
{
    weft_close(l->ours);
    return 0;
}

TEST(place_is_left_by_who_closes)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        weft_rt *rt = on_uring_quick();
        struct line by_task = placed_line(tcp);
        ASSERT_OK(joined(weft_go(closes, &by_task)));
        hears_the_end(by_task.theirs, tcp);
        struct line by_thread = placed_line(tcp);
        weft_close(by_thread.ours);
        hears_the_end(by_thread.theirs, tcp);
        stops(rt);
    }
}

static int reads_on(struct line *l)
{
    char b;
    return (int)weft_read(l->ours, &b, 1);
}

TEST(place_is_left_with_a_reader_that_waits)
{
    weft_rt *rt = on_uring_quick();
    struct line l = placed_line(true);
    weft_task *reader = weft_go(reads_on, &l);
    CREW_UNTIL(slot_is_awaited(l.ours, WEFT__SIDE_READ));
    weft_close(l.ours);
    ASSERT_EQ(joined(reader), -EBADF);
    hears_the_end(l.theirs, true);
    stops(rt);
}

TEST(place_goes_with_its_runtime)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        weft_rt *rt = on_uring_quick();
        struct line l = placed_line(tcp);
        stops(rt);
        weft_close(l.ours);
        hears_the_end(l.theirs, tcp);
    }
}

#if defined(WEFT_FAULTS)
static const int errors_of_a_submit[] = {-ENOMEM, -EAGAIN, -EBUSY};

static bool is_still_there(int fd)
{
    char b;
    return recv(fd, &b, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* The kernel takes nothing while it is closed: it is told later. */
TEST(place_is_left_when_the_kernel_has_memory_again)
{
    for (int i = 0; i < 3; i++) {
        weft_rt *rt = on_uring_quick();
        struct line l = placed_line(true);
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, UINT32_MAX, errors_of_a_submit[i]);
        weft_close(l.ours);
        ASSERT(is_still_there(l.theirs));
        weft__fault_reset();
        hears_the_end(l.theirs, true);
        stops(rt);
    }
}

/* ... or not at all, before its runtime has stopped: as long as that tries to end what is under way. Nothing is left of it. */
TEST(place_is_left_by_a_stop_in_need)
{
    for (int i = 0; i < 3; i++) {
        weft_rt *rt = on_uring_quick();
        struct line l = placed_line(false);
        weft__fault_arm(WEFT__FAULT_URING_ENTER, 1, 200, errors_of_a_submit[i]);
        weft_close(l.ours);
        stops(rt);
        weft__fault_reset();
        hears_the_end(l.theirs, false);
    }
}

/* ---- refused ---- */

static int echoes_often(struct line *l)
{
    int r = 0;
    for (unsigned round = 0; r == 0 && round < 4 * OFTEN; round++)
        r = echoes(l, round);
    return r;
}

TEST(place_that_cannot_be_had_is_not_needed)
{
    static const int errors[] = {-ENOMEM, -EINVAL, -EPERM, -EMFILE};
    for (int i = 0; i < 4; i++) {
        weft__fault_arm(WEFT__FAULT_URING_TABLE, 1, UINT32_MAX, errors[i]);
        weft_rt *rt = on_uring_quick();
        struct line l = line_by_tcp();
        ASSERT_OK(joined(weft_go(echoes_often, &l)));
        ASSERT_EQ(weft__fault_calls(WEFT__FAULT_URING_TABLE), 1);
        ASSERT(!is_placed(&l));
        weft_close(l.ours);
        hears_the_end(l.theirs, true);
        weft__fault_reset();
        stops(rt);
    }
}
#endif

/* ---- fork ---- */

/* Answers what it is asked; once it has a place, it says who its child is, and waits. */
static int answers(const char *address, pid_t child)
{
    struct line l;
    struct {
        char mark;
        char child[sizeof child];
    } end = {.mark = 'P'};
    char b;
    int r = weft_tcp_connect(address, &l.ours);
    if (r < 0) return r;
    while (!is_placed(&l)) {
        if (weft_read(l.ours, &b, 1) != 1 || weft_write_all(l.ours, "a", 1) != 1) return -EIO;
    }
    memcpy(end.child, &child, sizeof child);
    if (weft_write_all(l.ours, &end, sizeof end) != sizeof end) return -EIO;
    return (int)weft_read(l.ours, &b, 1);
}

/* Its ring is there before its child is, its connection is not: what is open of that in the child, the ring has open. */
static void has_a_child_and_answers(const char *address)
{
    (void)alarm(60);
    weft_rt *rt = on_uring_quick();
    struct line first = line_by_pair();
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        for (;;)
            (void)pause();
    }
    int r = joined(weft_go(answers, address, child));
    line_end(&first);
    stops(rt);
    _exit(r == 0 ? 7 : CHILD_WRONG);
}

/* Asks until it is told whose child there is. */
static pid_t asks_for_the_child(int fd)
{
    pid_t child;
    char b = 0;
    while (b != 'P') {
        ASSERT_EQ(send(fd, "q", 1, MSG_NOSIGNAL), 1);
        ASSERT_EQ(recv(fd, &b, 1, 0), 1);
    }
    ASSERT_EQ(recv(fd, &child, sizeof child, MSG_WAITALL), sizeof child);
    return child;
}

/* Something of the first byte that was asked for may be unread: then it is a reset. */
static void hears_of_the_death(int fd)
{
    char b;
    ssize_t n = recv(fd, &b, 1, 0);
    ASSERT(n == 0 || (n < 0 && errno == ECONNRESET));
    ASSERT_OK(close(fd));
}

TEST(place_is_not_kept_by_a_child)
{
    char address[WEFT_ADDR_TEXT];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    weft_rt *rt = on_uring_quick(); /* or it is left out */
    struct line l = placed_line(true);
    line_end(&l);
    stops(rt);
    int gate = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(gate, 0);
    ASSERT_OK(bind(gate, (struct sockaddr *)&at, bytes));
    ASSERT_OK(listen(gate, 1));
    ASSERT_OK(getsockname(gate, (struct sockaddr *)&at, &bytes));
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
    pid_t parent = fork();
    if (parent == 0) has_a_child_and_answers(address);
    int fd = accept4(gate, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_GE(fd, 0);
    pid_t child = asks_for_the_child(fd);
    ASSERT_OK(kill(parent, SIGKILL));
    hears_of_the_death(fd);
    ASSERT_OK(kill(child, SIGKILL));
    ASSERT_EQ(exit_code_of(parent), 1000 + SIGKILL);
    ASSERT_OK(close(gate));
}
