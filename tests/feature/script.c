/* SPDX-License-Identifier: MIT
 *
 * Streams that follow a script, as the tests of a program use them: what comes in order, what is told of what does not, and time that stands.
 */
#include "town.h"

#include <weft/test.h>

#define COUNT(steps) (sizeof(steps) / sizeof((steps)[0]))

/* ---- what is followed ---- */

static int greets(weft_stream *s)
{
    char b[20];
    ssize_t n = weft_write_all(s, "hello\n", 6);
    if (n < 0) return (int)n;
    n = weft_read_exact(s, b, 6);
    if (n < 0) return (int)n;
    return n == 6 && memcmp(b, "fine!\n", 6) == 0 ? 0 : -EPROTO;
}

static int follows(void)
{
    static const weft_script_step steps[] = {
        WEFT_SCRIPT_EXPECTS("hel"),         WEFT_SCRIPT_EXPECTS("lo\n"),
        WEFT_SCRIPT_WAITS(3000000000),      WEFT_SCRIPT_GIVES("fi"),
        WEFT_SCRIPT_GIVES("ne!\n"),         WEFT_SCRIPT_ENDS,
        WEFT_SCRIPT_READ_FAILS(ECONNRESET), WEFT_SCRIPT_WRITE_FAILS(EPIPE),
    };
    weft_time before = weft_now();
    weft_stream *s;
    char b;
    int r = weft_script_new(steps, COUNT(steps), &s);
    if (r < 0) return r;
    if ((r = greets(s)) < 0) return r;
    if (weft_now() - before != weft_secs(3)) return -ETIME;
    if (weft_read(s, &b, 1) != 0) return -1;
    if (weft_script_check(s) != -EBADMSG) return -2; /* steps are left */
    if (weft_read(s, &b, 1) != -ECONNRESET) return -3;
    if (weft_write(s, "x", 1) != -EPIPE) return -4;
    if (weft_read(s, &b, 1) != 0) return -5; /* behind the last step */
    if (weft_shutdown(s) != 0) return -6;
    r = weft_script_check(s);
    weft_close(s);
    return r;
}

TEST(script_is_followed_and_waits_take_no_time)
{
    ASSERT_OK(weft_test_run(follows));
}

/* ---- what is not ---- */

static int strays(void)
{
    static const weft_script_step other[] = {WEFT_SCRIPT_EXPECTS("hello")};
    static const weft_script_step early[] = {WEFT_SCRIPT_GIVES("a"), WEFT_SCRIPT_EXPECTS("b")};
    weft_stream *s;
    if (weft_script_new(other, 1, &s) < 0) return -1;
    if (weft_write_all(s, "help", 4) != -EBADMSG) return -2;
    if (weft_script_check(s) != -EBADMSG) return -3;
    weft_close(s);
    if (weft_script_new(early, 2, &s) < 0) return -4;
    if (weft_write(s, "b", 1) != -EBADMSG) return -5;
    weft_close(s);
    if (weft_script_new(NULL, 0, &s) < 0) return -6;
    if (weft_write(s, "b", 1) != -EBADMSG || weft_script_check(s) != -EBADMSG) return -7;
    weft_close(s);
    return weft_script_check(NULL) == -EINVAL ? 0 : -8;
}

TEST(script_tells_what_strays)
{
    ASSERT_OK(weft_test_run(strays));
}

TEST(script_of_nothing_is_a_mistake)
{
    static const weft_script_step nothing[] = {WEFT_SCRIPT_GIVES("")};
    weft_stream *s;
    ASSERT_EQ(weft_script_new(nothing, 1, &s), -EINVAL);
    ASSERT_EQ(weft_script_new(NULL, 1, &s), -EINVAL);
    ASSERT_EQ(weft_script_new(nothing, 0, NULL), -EINVAL);
}

/* ---- by two tasks, and given up ---- */

static int reads_reply(weft_stream *s)
{
    char b[10];
    return (int)weft_read(s, b, sizeof b);
}

/* A reader that comes early waits until what comes before was written, by another task. */
static void in_turns(struct crew *crew)
{
    static const weft_script_step steps[] = {WEFT_SCRIPT_EXPECTS("ask"),
                                             WEFT_SCRIPT_GIVES("reply")};
    (void)crew;
    weft_stream *s;
    int r = 0;
    ASSERT_OK(weft_script_new(steps, 2, &s));
    weft_task *reader = weft_go(reads_reply, s);
    ASSERT_EQ(weft_write_all(s, "ask", 3), 3);
    ASSERT_OK(weft_join(reader, &r));
    ASSERT_EQ(r, 5);
    ASSERT_OK(weft_script_check(s));
    weft_close(s);
}

TEST(script_reader_waits_for_its_turn)
{
    crew_each(in_turns);
}

static int gives_up(void)
{
    static const weft_script_step steps[] = {WEFT_SCRIPT_WAITS(10000000000),
                                             WEFT_SCRIPT_GIVES("x")};
    weft_time before = weft_now();
    weft_stream *s;
    char b;
    ssize_t n = 1;
    if (weft_script_new(steps, 2, &s) < 0) return -1;
    for (int i = 0; i < 3; i++) {
        WEFT_TIMEOUT(weft_secs(3)) n = weft_read(s, &b, 1);
        if (n != -ETIME) return -2;
    }
    if (weft_read(s, &b, 1) != 1) return -3; /* the rest of the same wait */
    if (weft_now() - before != weft_secs(10)) return -4;
    weft_close(s);
    return 0;
}

TEST(script_wait_goes_on_when_it_is_given_up)
{
    ASSERT_OK(weft_test_run(gives_up));
}

static int waits_for_ever(void)
{
    static const weft_script_step steps[] = {WEFT_SCRIPT_WAITS(WEFT_FOREVER),
                                             WEFT_SCRIPT_GIVES("x")};
    weft_stream *s;
    char b;
    ssize_t n = 1;
    if (weft_script_new(steps, 2, &s) < 0) return -1;
    for (int i = 0; i < 2; i++) {
        WEFT_TIMEOUT(weft_secs(86400)) n = weft_read(s, &b, 1);
        if (n != -ETIME) return -2;
    }
    weft_close(s);
    return 0;
}

TEST(script_peer_that_never_answers)
{
    ASSERT_OK(weft_test_run(waits_for_ever));
}
