/* SPDX-License-Identifier: MIT
 *
 * deadline_retry - try again, each try for a time of its own and all of them under one deadline; and clean up in peace.
 *
 * A deadline that has passed answers -ETIME from every wait inside of its block, and nobody else's: so the loop needs no clock. When
 * the outer one passes, the next try fails at once, and the loop ends by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

static const char *name_of(int r)
{
    return r == -ETIME ? "ETIME" : r == -ECANCELED ? "ECANCELED" : r < 0 ? "another error" : "done";
}

/* A server that answers only the third time it is asked, and says goodbye in good order. */
struct server {
    int asked;
    int ready_at;
};

static int ask(struct server *s)
{
    s->asked++;
    if (s->asked < s->ready_at) return weft_sleep(weft_secs(3600)); /* it does not answer */
    return 42;
}

static int say_goodbye(struct server *s)
{
    (void)s;
    return weft_sleep(weft_ms(1));
}

/* Up to ten tries of 2 ms. */
static int ask_again_and_again(struct server *s)
{
    int r = -ETIME;
    for (int i = 0; i < 10 && r == -ETIME && weft_yield() == 0; i++)
        WEFT_TIMEOUT(weft_ms(2)) r = ask(s);
    return r;
}

static int session(struct server *s, weft_time patience)
{
    int r = -1;
    int bye = -1;
    WEFT_TIMEOUT(patience) {
        r = ask_again_and_again(s);
        WEFT_SHIELD(weft_secs(1)) bye = say_goodbye(s); /* also when the deadline has passed, or the task is cancelled */
    }
    printf("answer: %s, goodbye: %s\n", r == 42 ? "42" : name_of(r), name_of(bye));
    return r;
}

/* The same without a stack: a deadline is a future around a child. */
struct asks {
    WEFT_FRAME(int);
    int i;
    struct weft_sleep answer;
    struct weft_timeout one_try;
    struct weft_yield pause;
};
static weft_async(asks)
{
    weft_begin;
    do {
        weft_await(f->one_try, weft_timeout, weft_ms(2), weft_arm(f->answer, weft_sleep, f->i < 2 ? weft_secs(3600) : 0));
        weft_await(f->pause, weft_yield); /* why it failed: this try, or the whole? */
    } while (f->one_try.ret == -ETIME && f->pause.ret == 0 && ++f->i < 10);
    weft_return(f->one_try.ret < 0 ? f->one_try.ret : f->i);
    weft_end;
}

struct within {
    WEFT_FRAME(int);
    weft_time patience;
    struct asks asks;
    struct weft_timeout whole;
};
static weft_async(within)
{
    weft_begin;
    weft_await(f->whole, weft_timeout, f->patience, weft_arm(f->asks, asks));
    weft_return(f->asks.ret);
    weft_end;
}

static int app(void)
{
    struct server quick = {.ready_at = 3};
    struct server slow = {.ready_at = 1000};

    (void)session(&quick, weft_secs(60));
    printf("tries: %d\n", quick.asked);
    (void)session(&slow, weft_ms(5));
    printf("it was asked %s\n", slow.asked < 10 ? "less than ten times" : "too often");
    printf("stackless: try %d\n", weft_run(within, weft_secs(60)));
    printf("stackless, in no time: %s\n", name_of(weft_run(within, weft_us(1))));
    return 0;
}

WEFT_MAIN(app)
