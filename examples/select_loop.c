/* SPDX-License-Identifier: MIT
 *
 * select_loop - a supervisor that waits for several things at once, in a loop: a worker's end, a clock, a request to stop.
 *
 * The wait for a worker is begun anew in each round, and is given up when another arm wins: a wait that loses has taken nothing. The
 * interval and the token hold nothing either, so they are kept from round to round. Once as a fiber, once stackless.
 */
#include <stdio.h>
#include <weft/weft.h>

#define WORKERS 3

static weft_token stop;

/* Works for a while; the last one then asks everybody to stop. */
static int work(int number)
{
    int r = weft_sleep(weft_ms(2 * number));
    if (r == 0 && number == WORKERS) weft_token_cancel(&stop);
    return r < 0 ? r : number * 10;
}

static int supervise_on_fiber(void)
{
    weft_task *worker[WORKERS];
    weft_interval every = weft_interval_of(weft_ms(1));
    struct weft_wait wait;
    struct weft_tick tick;
    struct weft_token_wait quit;
    int done = 0, ticks = 0, sum = 0, which;

    for (int i = 0; i < WORKERS; i++)
        worker[i] = weft_go(work, i + 1);
    weft_start(tick, weft_tick, &every);
    weft_start(quit, weft_token_wait, &stop);
    do {
        which = weft_select(weft_when(done < WORKERS, weft_arm(wait, weft_wait, worker[done])), /* 0 */
                            weft_keep(tick, weft_tick),                                         /* 1 */
                            weft_keep(quit, weft_token_wait));                                  /* 2 */
        if (which == 0) done++;
        if (which == 1) ticks++;
    } while (which == 0 || which == 1); /* 2: asked to stop; below zero: cancelled */
    weft_settle(tick, weft_tick);
    weft_settle(quit, weft_token_wait);

    for (int i = 0; i < WORKERS; i++) {
        int r = 0;
        if (weft_join(worker[i], &r) == 0) sum += r;
    }
    printf("fiber: sum %d, %s\n", sum, ticks > 0 ? "the clock ticked" : "no tick");
    return which < 0 ? which : 0;
}

struct supervise {
    WEFT_FRAME(int);
    weft_task *worker;
    int result, ticks;
    weft_interval every;
    struct weft_wait wait;
    struct weft_tick tick;
    struct weft_token_wait quit;
    struct weft_select sel;
    struct weft_join join;
};
static weft_async(supervise)
{
    weft_begin;
    f->worker = weft_go(work, WORKERS);
    f->every = weft_interval_of(weft_ms(1));
    weft_start(f->tick, weft_tick, &f->every);
    weft_start(f->quit, weft_token_wait, &stop);
    do {
        weft_await(f->sel, weft_select, .arm = {weft_keep(f->tick, weft_tick), weft_keep(f->quit, weft_token_wait)});
        if (f->sel.ret == 0) f->ticks++;
    } while (f->sel.ret == 0);
    weft_await_settled(f->tick, weft_tick);
    weft_await_settled(f->quit, weft_token_wait);
    weft_await(f->join, weft_join, f->worker, &f->result);
    printf("stackless: result %d, %s\n", f->result, f->ticks > 0 ? "the clock ticked" : "no tick");
    weft_return(f->join.ret);
    weft_end;
}

static int app(void)
{
    int r = supervise_on_fiber();
    if (r < 0) return r;
    weft_token_done(&stop);
    weft_token_init(&stop, NULL); /* a token is cancelled once, for good: this is another one */
    r = weft_run(supervise);
    weft_token_done(&stop);
    return r;
}

WEFT_MAIN(app)
