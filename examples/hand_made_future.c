/* SPDX-License-Identifier: MIT
 *
 * hand_made_future - a future without macros, and everything that can be done with it.
 *
 * A future is a struct and a function that is called, "polled", with it. The function answers READY,
 * with the result in `ret`; or PENDING, and then somebody has its waker and will have it polled again.
 */
#include <stdio.h>
#include <weft/weft.h>

struct countdown {
    WEFT_FRAME(int); /* opens the frame of every future: its result is an int, `ret` */
    long left;
};

static weft_poll countdown_poll(void *frame, weft_cx *cx)
{
    struct countdown *f = frame;
    if ((f->ret = weft_cx_cancelled(cx)) < 0) return WEFT_READY; /* asked to stop: -ECANCELED */
    if (f->left-- == 0) return WEFT_READY;
    weft_waker_wake(weft_cx_waker(cx)); /* ask to be polled again */
    return WEFT_PENDING;
}

/* Any stackless function can await it; the frame lies inside the awaiter's. */
struct twice {
    WEFT_FRAME(int);
    long from;
    struct countdown count;
};
static weft_async(twice)
{
    weft_begin;
    weft_await(f->count, countdown, .left = f->from);
    if (f->count.ret == 0) weft_await(f->count, countdown, .left = f->from);
    weft_return(f->count.ret);
    weft_end;
}

static int app(void)
{
    int ret;

    /* Called: the fiber sleeps until it is READY. On a plain thread this would block the thread. */
    printf("called: %d\n", weft_run(countdown, .left = 10));
    printf("awaited: %d\n", weft_run(twice, .from = 5));

    /* A task of its own, running while we go on. */
    int r = weft_join(weft_spawn(countdown, .left = 10), &ret);
    if (r < 0) return r;
    printf("joined: %d\n", ret);

    /* One that would take years. A cancel only asks; the future sees it at its next poll. */
    weft_task *endless = weft_spawn(countdown, .left = 1L << 60);
    weft_cancel(endless);
    r = weft_join(endless, &ret);
    if (r < 0) return r;
    printf("cancelled: %s\n", ret == -ECANCELED ? "ECANCELED" : "something else");
    return 0;
}

WEFT_MAIN(app)
