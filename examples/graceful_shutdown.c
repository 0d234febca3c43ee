/* SPDX-License-Identifier: MIT
 *
 * graceful_shutdown - ^C: take no more requests, let those that run come to their end, but not for ever, and say how it went.
 *
 * WEFT_MAIN cancels app at SIGINT or SIGTERM. The loop that takes requests hears it; those that run do not, since the scope is no block around the
 * loop but joined behind it, and behind a shield: what app was told is not passed on there. The shield's own time is how long they may
 * drain: then the join passes -ETIME on to who is left, and waits until they have let go.
 * With a number it sends itself the signal after so many requests.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/weft.h>

struct server {
    weft_scope requests;
    weft_mutex m; /* guards the rest */
    int served;
    int cut_off;
};

static void count(struct server *s, int r)
{
    if (weft_lock(&s->m) < 0) return;
    s->served += r == 0;
    s->cut_off += r == -ETIME;
    weft_unlock(&s->m);
}

/* The third of them would last for an hour. */
static int handle(struct server *s, int number)
{
    int r = weft_sleep(number == 3 ? weft_secs(3600) : weft_ms(3));
    WEFT_SHIELD(weft_secs(1)) count(s, r); /* clean-up, whatever it was told */
    return r;
}

/* In a real program: accept. */
static int next_request(int *number)
{
    int r = weft_sleep(weft_us(300));
    if (r == 0) ++*number;
    return r;
}

static int serve(struct server *s, int signal_after)
{
    int number = 0, r;
    while ((r = next_request(&number)) == 0) {
        if ((r = weft_go_in(&s->requests, handle, s, number)) < 0) break;
        if (number == signal_after) kill(getpid(), SIGINT);
    }
    return r;
}

static int app(int argc, char **argv)
{
    struct server s = {.m = WEFT_MUTEX_INIT};
    int r = serve(&s, argc > 1 ? atoi(argv[1]) : 0);

    printf("no more requests: %s, %s\n", r == -ECANCELED ? "told to stop" : "an error",
           weft_scope_count(&s.requests) > 0 ? "some still run" : "none runs");
    WEFT_SHIELD(weft_ms(300))(void)
        weft_scope_join(&s.requests); /* as long as that they are left alone */
    printf("served: %d, cut off: %d\n", s.served, s.cut_off);
    return r == -ECANCELED ? 0 : r;
}

WEFT_MAIN(app)
