/* SPDX-License-Identifier: MIT
 *
 * Park and unpark, proven: a token is never lost, at most one is stored, and what was written before the unpark is seen after the park.
 */
#include "sched/park.c"

static struct weft__park park;
static int message;
static _Atomic int ready;

/* ---- broken twins ---- */

enum { HONEST, UNPARK_TRUSTS_A_LOAD, PARK_FORGETS_THE_TOKEN, GIVES_UP_BLINDLY };

/* "A token is there already": but what this thread wrote does not come with that one. */
static void unpark_by_load(void)
{
    if (load_relaxed(&park.word) == PARK_NOTIFIED) return;
    weft__unpark(&park);
}

static void park_forgetful(void)
{
    store_release(&park.word, PARK_PARKED);
    (void)park_slow(&park, WEFT__NEVER);
}

static bool park_timed_blindly(void)
{
    uint32_t was = fetch_sub_acquire(&park.word, 1);
    if (was == PARK_NOTIFIED) return true;
    int r = weft__futex_wait(&park.word, PARK_PARKED, 1);
    if (r == -ETIMEDOUT) {
        store_relaxed(&park.word, PARK_EMPTY);
        return false;
    }
    return park_slow(&park, 1);
}

static void unpark(void)
{
    if (model_mutant == UNPARK_TRUSTS_A_LOAD) {
        unpark_by_load();
    } else {
        weft__unpark(&park);
    }
}

static void park_until_woken(void)
{
    if (model_mutant == PARK_FORGETS_THE_TOKEN) {
        park_forgetful();
    } else {
        bool woken = weft__park(&park, WEFT__NEVER);
        model_assert(woken);
    }
}

/* ---- the cases ---- */

static void sender(void *arg)
{
    (void)arg;
    plain_write(&message, 1);
    unpark();
}

static void one_token(void)
{
    weft__park_init(&park);
    plain_write(&message, 0);
    model_thread(sender, NULL);
    park_until_woken();
    model_assert(plain_read(&message) == 1);
    model_join();
}

static void flag_sender(void *arg)
{
    (void)arg;
    fetch_add_relaxed(&ready, 1);
    unpark();
}

/* The usual loop: look, park, look again. Two unparks may be one token, but the second one's message is seen all the same. */
static void two_senders(void)
{
    weft__park_init(&park);
    store_relaxed(&ready, 0);
    model_thread(flag_sender, NULL);
    model_thread(flag_sender, NULL);
    while (load_relaxed(&ready) < 2) park_until_woken();
    model_join();
}

/* A timed park may end without a token; then the token is still there for the next one. */
static void timed(void)
{
    weft__park_init(&park);
    plain_write(&message, 0);
    model_thread(sender, NULL);
    bool woken = model_mutant == GIVES_UP_BLINDLY ? park_timed_blindly() : weft__park(&park, 1);
    if (!woken) park_until_woken();
    model_assert(plain_read(&message) == 1);
    model_join();
}

static const struct model_case cases[] = {
    {.name = "park: one token", .run = one_token, .unbounded = true, .weaken = true},
    {.name = "park: one token, spurious wakes", .run = one_token, .unbounded = true, .spurious = 2, .weaken = true},
    {.name = "park: two senders", .run = two_senders, .unbounded = true, .weaken = true},
    {.name = "park: timed", .run = timed, .unbounded = true, .spurious = 1, .weaken = true},
    {.name = "mutant: unpark trusts a load", .run = two_senders, .unbounded = true, .mutant = UNPARK_TRUSTS_A_LOAD, .must_fail = true, .why = "lost"},
    {.name = "mutant: park forgets a stored token", .run = one_token, .unbounded = true, .mutant = PARK_FORGETS_THE_TOKEN, .must_fail = true, .why = "lost"},
    {.name = "mutant: gives up without looking", .run = timed, .unbounded = true, .mutant = GIVES_UP_BLINDLY, .must_fail = true},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
