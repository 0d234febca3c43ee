/* SPDX-License-Identifier: MIT
 *
 * dining_philosophers - five at a round table, a fork between each two, and two forks to eat.
 *
 * Three of them are fibers, two are stackless: the locks do not care. Who is hungry takes both forks at once, under the mutex of
 * the table, or waits until a neighbour has put his down (weft_cond): so nobody holds one fork and waits for the other, which is
 * how they would starve. A wait group tells when all have eaten. One who waits can be called away: then he has taken no fork.
 */
#include <stdbool.h>
#include <stdio.h>
#include <weft/weft.h>

#define SEATS 5
#define MEALS 100

static weft_mutex table = WEFT_MUTEX_INIT;
static weft_cond put_down = WEFT_COND_INIT;
static bool fork_taken[SEATS]; /* guarded by the table, as all that follows */
static int eating, eating_most, meals;

static weft_wg guests = WEFT_WG_INIT(SEATS);

static bool forks_free(int seat)
{
    return !fork_taken[seat] && !fork_taken[(seat + 1) % SEATS];
}

static void forks_take(int seat)
{
    fork_taken[seat] = fork_taken[(seat + 1) % SEATS] = true;
    if (++eating > eating_most) eating_most = eating;
}

static void forks_put_down(int seat)
{
    fork_taken[seat] = fork_taken[(seat + 1) % SEATS] = false;
    eating--;
    meals++;
}

/* ---- as a fiber ------------------------------------------------------------------------------------ */

static int eat(int seat)
{
    int r = weft_lock(&table);
    if (r < 0) return r;
    while (r == 0 && !forks_free(seat))
        r = weft_cond_wait(&put_down,
                           &table); /* the table is ours again, also if we are called away */
    if (r == 0) forks_take(seat);
    weft_unlock(&table);
    if (r < 0) return r;

    (void)weft_yield(); /* the meal: no lock is held, but the forks are */

    WEFT_SHIELD(weft_secs(1)) r = weft_lock(&table); /* called away or not, the forks go back */
    if (r < 0) return r;
    forks_put_down(seat);
    weft_unlock(&table);
    weft_cond_wake_all(&put_down); /* both neighbours may be waiting, and others in between */
    return 0;
}

static int dine(int seat)
{
    int r = 0;
    for (int i = 0; i < MEALS && r == 0; i++)
        r = eat(seat);
    weft_wg_finish(&guests);
    return r;
}

/* ---- the same, stackless --------------------------------------------------------------------------- */

struct dines {
    WEFT_FRAME(int);
    int seat;
    int i;
    struct weft_lock lock;
    struct weft_cond_wait wait;
    struct weft_yield meal;
    struct weft_shield back;
};

static weft_async(dines)
{
    weft_begin;
    for (f->i = 0; f->i < MEALS; f->i++) {
        weft_await(f->lock, weft_lock, &table);
        if (f->lock.ret < 0) break;
        f->wait.ret = 0;
        while (f->wait.ret == 0 && !forks_free(f->seat))
            weft_await(f->wait, weft_cond_wait, &put_down, &table);
        if (f->wait.ret == 0) forks_take(f->seat);
        weft_unlock(&table);
        if (f->wait.ret < 0) break;

        weft_await(f->meal, weft_yield);

        weft_await(f->back, weft_shield, weft_secs(1), weft_arm(f->lock, weft_lock, &table));
        if (f->lock.ret < 0) break;
        forks_put_down(f->seat);
        weft_unlock(&table);
        weft_cond_wake_all(&put_down);
    }
    weft_wg_finish(&guests);
    weft_return(f->i == MEALS ? 0 : -ECANCELED);
    weft_end;
}

static int called_away(void)
{
    for (int i = 0; i < SEATS; i++)
        fork_taken[i] = true; /* nobody else is there */
    weft_task *late = weft_go(eat, 0);
    int r = 0;
    (void)weft_sleep(weft_ms(1));
    weft_cancel(late);
    int joined = weft_join(late, &r);
    return joined < 0 ? joined : r;
}

static int app(void)
{
    for (int seat = 0; seat < SEATS; seat++) {
        weft_task *guest = seat % 2 ? weft_spawn(dines, .seat = seat) : weft_go(dine, seat);
        int r = weft_detach(guest);
        if (r < 0) return r;
    }
    int r = weft_wg_wait(&guests);
    if (r < 0) return r;
    printf("%d philosophers, %d meals each: %d meals\n", SEATS, MEALS, meals);
    printf("%s\n", eating_most <= SEATS / 2 ? "never more than 2 at once" : "too many at once");
    printf("called away: %s\n", called_away() == -ECANCELED ? "ECANCELED" : "not at all");
    return 0;
}

WEFT_MAIN(app)
