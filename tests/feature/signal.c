/* SPDX-License-Identifier: MIT
 *
 * Signals as something to wait for: by fibers, threads and stackless tasks, several at once, in a select; nothing is lost by who gives up.
 */
#include "crew.h"

#include <errno.h>
#include <signal.h>
#include <weft/weft.h>

static _Atomic int heard; /* relaxed: a count */

static int hears(weft_signal *s, int times)
{
    for (int i = 0; i < times; i++) {
        int r = weft_signal_wait(s);
        if (r < 0) return r;
        fetch_add_relaxed(&heard, 1);
    }
    return times;
}

struct hears_stackless {
    WEFT_FRAME(int);
    weft_signal *s;
    int times, i;
    struct weft_signal_wait wait;
};
static weft_async(hears_stackless)
{
    weft_begin;
    for (f->i = 0; f->i < f->times; f->i++) {
        weft_await(f->wait, weft_signal_wait, f->s);
        if (f->wait.ret < 0) weft_return(f->wait.ret);
        fetch_add_relaxed(&heard, 1);
    }
    weft_return(f->times);
    weft_end;
}

/* To this thread: those of the library block them. */
static void send(int number)
{
    ASSERT_OK(raise(number));
}

/* Each who listens hears each, if it is not too fast. */
static void all_hear(struct crew *crew)
{
    weft_signal *s[3];
    int got;
    (void)crew;
    store_relaxed(&heard, 0);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weft_signal_open(SIGUSR1, &s[i]));
    weft_task *a = weft_go(hears, s[0], 5);
    weft_task *b = weft_spawn(hears_stackless, .s = s[1], .times = 5);
    for (int i = 0; i < 5; i++) {
        send(SIGUSR1);
        ASSERT_EQ(weft_signal_wait(s[2]), 1);
        CREW_UNTIL(load_relaxed(&heard) == 2 * (i + 1));
    }
    ASSERT_OK(weft_join(a, &got));
    ASSERT_EQ(got, 5);
    ASSERT_OK(weft_join(b, &got));
    ASSERT_EQ(got, 5);
    for (int i = 0; i < 3; i++)
        weft_signal_close(s[i]);
}

TEST(signal_is_heard_by_all)
{
    crew_each(all_hear);
}

/* Those that come before anybody looks are one; the next is another. */
static void coalesced(struct crew *crew)
{
    weft_signal *s;
    (void)crew;
    ASSERT_OK(weft_signal_open(SIGUSR1, &s));
    send(SIGUSR1);
    send(SIGUSR1);
    ASSERT_EQ(weft_signal_wait(s), 1);
    WEFT_TIMEOUT(weft_ms(1)) ASSERT_EQ(weft_signal_wait(s), -ETIME);
    send(SIGUSR1);
    ASSERT_EQ(weft_signal_wait(s), 1);
    weft_signal_close(s);
}

TEST(signal_several_are_one)
{
    crew_each(coalesced);
}

static int selects(weft_signal *usr, weft_signal *hup, int *into)
{
    struct weft_signal_wait a;
    struct weft_signal_wait b;
    struct weft_sleep nap;
    for (;;) {
        int which = weft_select(weft_arm(a, weft_signal_wait, usr), weft_arm(b, weft_signal_wait, hup),
                                weft_arm(nap, weft_sleep, weft_us(50)));
        if (which < 0) return which;
        if (which < 2) into[which]++;
        if (which == 0) ASSERT_EQ(a.ret, 1);
        if (which == 1) return 0;
        fetch_add_relaxed(&heard, which == 0);
    }
}

/* A loser has taken nothing: each that was sent, one at a time, is heard once. */
static void selected(struct crew *crew)
{
    weft_signal *usr;
    weft_signal *hup;
    int got;
    int into[2] = {0};
    (void)crew;
    store_relaxed(&heard, 0);
    ASSERT_OK(weft_signal_open(SIGUSR1, &usr));
    ASSERT_OK(weft_signal_open(SIGHUP, &hup));
    weft_task *t = weft_go(selects, usr, hup, into);
    for (int i = 1; i <= 20; i++) {
        send(SIGUSR1);
        CREW_UNTIL(load_relaxed(&heard) == i);
    }
    send(SIGHUP);
    ASSERT_OK(weft_join(t, &got));
    ASSERT_OK(got);
    ASSERT_EQ(into[0], 20);
    ASSERT_EQ(into[1], 1);
    weft_signal_close(usr);
    weft_signal_close(hup);
}

TEST(signal_in_a_select)
{
    crew_each(selected);
}

static void given_up(struct crew *crew)
{
    weft_signal *s;
    int got;
    (void)crew;
    ASSERT_OK(weft_signal_open(SIGUSR1, &s));
    for (int i = 0; i < 50; i++) {
        weft_task *t = weft_go(hears, s, 1);
        for (int k = 0; k < i % 5; k++)
            sched_yield();
        weft_cancel(t);
        ASSERT_OK(weft_join(t, &got));
        ASSERT_EQ(got, -ECANCELED);
    }
    send(SIGUSR1);
    ASSERT_EQ(weft_signal_wait(s), 1);
    weft_signal_close(s);
}

TEST(signal_given_up_is_not_taken)
{
    crew_each(given_up);
}

/* A fault of the program raises it, nobody can have it, or it is the C library's own. */
static bool cannot_be_had(int number)
{
    switch (number) {
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGKILL:
    case SIGSEGV:
    case SIGSTOP:
    case SIGSYS:
        return true;
    default:
        return number > SIGSYS && number < SIGRTMIN;
    }
}

/* What would end the process, stop it, or be ignored by default is heard as the others are, and does nothing else. */
static void each_number(struct crew *crew)
{
    (void)crew;
    int last =
        getenv("WEFT_TEST_UNDER") ? SIGRTMAX - 1 : SIGRTMAX; /* Valgrind keeps one for itself */
    for (int number = 1; number <= last; number++) {
        weft_signal *s = NULL;
        int r = weft_signal_open(number, &s);
        ck_assert_msg(r == (cannot_be_had(number) ? -EINVAL : 0), "signal %d: %d", number, r);
        ASSERT_EQ(s == NULL, cannot_be_had(number));
        if (!s) continue;
        send(number);
        r = weft_signal_wait(s);
        ck_assert_msg(r == 1, "signal %d is not heard: %d", number, r);
        weft_signal_close(s);
    }
}

TEST(signal_each_is_heard_but_those_that_cannot_be_had)
{
    ASSERT_EQ(SIGRTMAX, 64);
    crew_each(each_number);
}

static void refused(struct crew *crew)
{
    weft_signal *s = NULL;
    (void)crew;
    ASSERT_EQ(weft_signal_open(SIGSEGV, &s), -EINVAL);
    ASSERT_EQ(weft_signal_open(SIGKILL, &s), -EINVAL);
    ASSERT_EQ(weft_signal_open(0, &s), -EINVAL);
    ASSERT_EQ(weft_signal_open(SIGRTMAX + 1, &s), -EINVAL);
    ASSERT_EQ(weft_signal_open(1000, &s), -EINVAL);
    ASSERT_EQ(weft_signal_open(SIGUSR1, NULL), -EINVAL);
    ASSERT_EQ(weft_signal_wait(NULL), -EINVAL);
    weft_signal_close(NULL);
    ASSERT(!s);
}

TEST(signal_refused)
{
    weft_signal *s = NULL;
    crew_each(refused);
    ASSERT_EQ(weft_signal_open(SIGUSR1, &s), -ENXIO);
    ASSERT(!s);
}
