/* SPDX-License-Identifier: MIT
 *
 * Sends on io_uring: those of many tasks are handed in by one call; one that is given up before that was not sent, and the stream goes on behind it; one
 * that is closed is answered; in a select nothing is left to be sent later; who writes on waits once. On one worker, which polls everybody, so that what comes before what is known.
 */
#include "base/fault.h"
#include "on_uring.h"
#include "sys/clock.h"
#include "town.h"

#include <sys/socket.h>
#include <unistd.h>

/* One end is the runtime's, the other is not. */
static int pair_with(weft_stream **ours)
{
    int fds[2];
    ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
    ASSERT_OK(weft_stream_of_fd(fds[0], ours));
    return fds[1];
}

/* It is asked something: only an answer is noted. */
static void asks(int fd)
{
    ASSERT_EQ(write(fd, "?", 1), 1);
}

static ssize_t heard_by(int fd)
{
    char b[64];
    return read(fd, b, sizeof b);
}

struct word {
    weft_stream *stream;
    ssize_t said;
    _Atomic bool over; /* relaxed: a look */
};

static int says(struct word *w)
{
    char question;
    if (weft_read(w->stream, &question, 1) != 1) return -EIO;
    w->said = weft_write(w->stream, "word", 4);
    store_relaxed(&w->over, true);
    return 0;
}

struct saying {
    WEFT_FRAME(int);
    struct word *w;
    char question;
    struct weft_read rd;
    struct weft_write wr;
};
static weft_async(saying)
{
    weft_begin;
    weft_await(f->rd, weft_read, f->w->stream, &f->question, 1);
    if (f->rd.ret != 1) weft_return(-EIO);
    weft_await(f->wr, weft_write, f->w->stream, "word", 4);
    f->w->said = f->wr.ret;
    weft_return(0);
    weft_end;
}

/* ---- together ---- */

#if defined(WEFT_FAULTS)
enum { SPEAKERS = 20 };

static int all_say(struct word *words)
{
    weft_task *task[SPEAKERS];
    int r = 1;
    weft__fault_reset();
    for (int i = 0; i < SPEAKERS; i++)
        task[i] = i % 2 ? weft_spawn(saying, &words[i]) : weft_go(says, &words[i]);
    for (int i = 0; i < SPEAKERS; i++)
        if (weft_join(task[i], &r) < 0 || r < 0) return -EIO;
    return (int)weft__fault_calls(WEFT__FAULT_URING_ENTER);
}

TEST(send_of_many_is_one_call)
{
    weft_rt *rt = on_uring_quick();
    struct word words[SPEAKERS] = {{.said = 0}};
    int ears[SPEAKERS];
    int entered = 0;
    for (int i = 0; i < SPEAKERS; i++) {
        ears[i] = pair_with(&words[i].stream);
        asks(ears[i]);
    }
    ASSERT_OK(weft_join(weft_go(all_say, words), &entered));
    ASSERT_EQ(weft__fault_calls(WEFT__FAULT_SEND), 0);
    ASSERT_GE(entered, 1);
    ASSERT_LE(entered, SPEAKERS / 2); /* one as a rule; the port may have been looked after in between */
    for (int i = 0; i < SPEAKERS; i++) {
        ASSERT_EQ(words[i].said, 4);
        ASSERT_EQ(heard_by(ears[i]), 4);
        weft_close(words[i].stream);
        ASSERT_OK(close(ears[i]));
    }
    stops(rt);
}

/* Who writes on waits once, and not each time. */
static int goes_on(struct word *w)
{
    int r = says(w);
    weft__fault_reset();
    for (int i = 0; r == 0 && i < 9; i++)
        if (weft_write(w->stream, "word", 4) != 4) r = -EIO;
    return r < 0 ? r : (int)weft__fault_calls(WEFT__FAULT_SEND);
}

TEST(send_behind_a_send_is_a_call)
{
    weft_rt *rt = on_uring_quick();
    struct word w = {.said = 1};
    int calls = 0;
    int ear = pair_with(&w.stream);
    asks(ear);
    ASSERT_OK(weft_join(weft_go(goes_on, &w), &calls));
    ASSERT_EQ(calls, 9);
    ASSERT_EQ(heard_by(ear), 40);
    weft_close(w.stream);
    ASSERT_OK(close(ear));
    stops(rt);
}

/* ---- in a select ---- */

struct choice {
    weft_stream *stream;
    ssize_t said;
    uint64_t sends; /* calls */
};

/* Beside one that is ready at once: whichever wins, what was sent is told. */
static int chooses(struct choice *c)
{
    char question;
    if (weft_read(c->stream, &question, 1) != 1) return -EIO;
    weft__fault_reset();
    for (int i = 0; i < 100; i++) {
        struct weft_write wr;
        struct weft_yield turn;
        (void)weft_select(weft_arm(wr, weft_write, c->stream, "x", 1), weft_arm(turn, weft_yield));
        if (wr.ret > 0) c->said += wr.ret;
    }
    c->sends = weft__fault_calls(WEFT__FAULT_SEND);
    return 0;
}

TEST(send_in_a_select_is_made_on_the_spot)
{
    weft_rt *rt = on_uring_quick();
    struct choice c = {.said = 0};
    ssize_t heard = 0;
    int r = 1;
    int ear = pair_with(&c.stream);
    asks(ear);
    ASSERT_OK(weft_join(weft_go(chooses, &c), &r));
    ASSERT_OK(r);
    for (ssize_t n; (n = heard_by(ear)) > 0;)
        heard += n;
    ASSERT_GE(c.said, 1);
    ASSERT_EQ(heard, c.said);
    ASSERT_EQ(c.sends, (uint64_t)c.said);
    weft_close(c.stream);
    ASSERT_OK(close(ear));
    stops(rt);
}
#endif

/* ---- given up, closed ---- */

/* The speaker is polled when we wait for it the first time; its send is handed in when the worker has nothing else to do, which it has while we yield. */
static int cancels_it(struct word *w, bool stackless)
{
    int r = 1;
    weft_task *task = stackless ? weft_spawn(saying, w) : weft_go(says, w);
    (void)weft_yield();
    weft_cancel(task);
    return weft_join(task, &r);
}

TEST(send_that_is_given_up_was_not_made)
{
    for (int stackless = 0; stackless < 2; stackless++) {
        weft_rt *rt = on_uring_quick();
        struct word w = {.said = 1};
        int r = 1;
        int ear = pair_with(&w.stream);
        asks(ear);
        ASSERT_OK(weft_join(weft_go(cancels_it, &w, stackless != 0), &r));
        ASSERT_OK(r);
        ASSERT_EQ(w.said, -ECANCELED);
        /* and the next one is, and alone */
        asks(ear);
        ASSERT_OK(weft_join(weft_go(says, &w), &r));
        ASSERT_EQ(w.said, 4);
        ASSERT_EQ(heard_by(ear), 4);
        weft_close(w.stream);
        ASSERT_OK(close(ear));
        stops(rt);
    }
}

static int closes_it(struct word *w)
{
    int r = 1;
    weft_task *task = weft_go(says, w);
    (void)weft_yield();
    weft_close(w->stream);
    return weft_join(task, &r);
}

TEST(send_that_is_closed_was_not_made)
{
    weft_rt *rt = on_uring_quick();
    struct word w = {.said = 1};
    int r = 1;
    int ear = pair_with(&w.stream);
    asks(ear);
    ASSERT_OK(weft_join(weft_go(closes_it, &w), &r));
    ASSERT_OK(r);
    ASSERT_EQ(w.said, -EBADF);
    ASSERT_EQ(heard_by(ear), 0); /* the end, and nothing before it */
    ASSERT_OK(close(ear));
    stops(rt);
}

/* ---- in one breath ---- */

/* The last of a split's writer goes out with it, though nobody waits: a buffer that is flushed by its close. */
static int closes_half(struct word *w)
{
    weft_stream *in = NULL;
    weft_stream *out = NULL;
    weft_buf *buf = NULL;
    char question;
    int r = weft_buf_new(w->stream, NULL, &buf);
    if (r == 0) r = weft_split(weft_buf_stream(buf), &in, &out);
    if (r < 0) return r;
    if (weft_read(in, &question, 1) != 1 || weft_write_all(out, "words", 5) != 5) return -EIO;
    weft_close(out);
    weft_close(in);
    return 0;
}

TEST(send_of_a_half_that_is_closed_is_made)
{
    weft_rt *rt = on_uring_quick();
    struct word w = {.said = 1};
    int r = 1;
    int ear = pair_with(&w.stream);
    asks(ear);
    ASSERT_OK(weft_join(weft_go(closes_half, &w), &r));
    ASSERT_OK(r);
    ASSERT_EQ(heard_by(ear), 5);
    ASSERT_OK(close(ear));
    stops(rt);
}

/* ---- no room ---- */

static int fills(weft_stream *s)
{
    static const char block[8192];
    for (int i = 0; i < 100; i++) {
        ssize_t n = weft_write_all(s, block, sizeof block);
        if (n != (ssize_t)sizeof block) return n < 0 ? (int)n : -EIO;
    }
    return 0;
}

/* It waits for room, again and again. */
TEST(send_waits_for_room)
{
    weft_rt *rt = on_uring_quick();
    weft_stream *s;
    int r = 1;
    int ear = pair_with(&s);
    static char b[10000];
    weft_task *task = weft_go(fills, s);
    for (size_t heard = 0; heard < (size_t)100 * 8192;) {
        ssize_t n = read(ear, b, sizeof b);
        ASSERT(n > 0 || errno == EAGAIN);
        if (n > 0) heard += (size_t)n;
        if (n < 0) sched_yield();
    }
    ASSERT_OK(weft_join(task, &r));
    ASSERT_OK(r);
    weft_close(s);
    ASSERT_OK(close(ear));
    stops(rt);
}

/* ---- among slow polls ---- */

/* Each poll of these lasts; one of them is the peer, too, who asks, and looks for the answer at each of its polls. */
enum { SLOW = 4, SLOW_NS = 200000, QUESTIONS = 12 };

struct market {
    int peer;
    weft_stream *ours;
    unsigned polls; /* slow ones; one worker polls everybody */
    unsigned answered_at;
    unsigned waited_most; /* between an answer and its arrival, in polls of all */
    int asked;
};

static void lasts(struct market *m)
{
    int64_t end = weft__clock_now() + SLOW_NS;
    m->polls++;
    while (weft__clock_now() < end)
        continue;
}

static int is_busy(struct market *m)
{
    while (m->asked <= QUESTIONS) {
        lasts(m);
        weft_yield();
    }
    return 0;
}

static void hears(struct market *m)
{
    if (m->asked > 0 && heard_by(m->peer) <= 0) return;
    unsigned waited = m->polls - m->answered_at;
    if (m->asked > 2 && waited > m->waited_most) m->waited_most = waited; /* by then it is known that they are slow */
    if (m->asked++ < QUESTIONS) asks(m->peer);
}

static int is_the_peer(struct market *m)
{
    while (m->asked <= QUESTIONS) {
        lasts(m);
        hears(m);
        weft_yield();
    }
    return 0;
}

static int answers(struct market *m)
{
    char question;
    for (int i = 0; i < QUESTIONS; i++) {
        if (weft_read(m->ours, &question, 1) != 1) return -EIO;
        m->answered_at = m->polls;
        if (weft_write(m->ours, "word", 4) != 4) return -EIO;
    }
    return 0;
}

TEST(send_does_not_wait_for_slow_polls)
{
    weft_rt *rt = on_uring(1);
    struct market m = {.asked = 0};
    weft_task *busy[SLOW];
    int r = 1;
    m.peer = pair_with(&m.ours);
    weft_task *answerer = weft_go(answers, &m);
    for (int i = 0; i < SLOW; i++)
        busy[i] = i == 0 ? weft_go(is_the_peer, &m) : weft_go(is_busy, &m);
    for (int i = 0; i < SLOW; i++)
        ASSERT_OK(weft_join(busy[i], &r));
    ASSERT_OK(weft_join(answerer, &r));
    ASSERT_OK(r);
    ASSERT_LE(m.waited_most, 2 * SLOW); /* until the peer's next poll; the tick would be 61 */
    weft_close(m.ours);
    ASSERT_OK(close(m.peer));
    stops(rt);
}
