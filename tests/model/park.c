/* SPDX-License-Identifier: MIT
 *
 * Park and unpark, proven: a token is never lost, at most one is stored, and what was written before the unpark is seen after the park. The same
 * of a sleep elsewhere, in a kernel that reports an edge once, to one of those who ask: beside other events, beside somebody who
 * fetches them in the sleeper's place, and when the first fd comes while the owner sleeps on its futex.
 */
static int signal_event(int fd);
#define MODEL_EVENT_SIGNAL(fd) signal_event(fd)

#include "sched/park.c"

static struct weft__park park;
static int message;
static _Atomic int ready;

/* ---- the kernel ---- */

#define EVENT 7

static _Atomic uint32_t edges; /* 1: something is there that nobody has fetched. The kernel's locks order it all */

static void kernel_reports(void)
{
    (void)exchange_acq_rel(&edges, 1);
    (void)weft__futex_wake(&edges, 1);
}

/* Fetches without waiting. */
static bool kernel_has(void)
{
    return exchange_acq_rel(&edges, 0) == 1;
}

static void kernel_wait(void)
{
    while (!kernel_has())
        (void)weft__futex_wait(&edges, 0, WEFT__NEVER);
}

/* ---- broken twins ---- */

enum {
    HONEST,
    UNPARK_TRUSTS_A_LOAD,
    PARK_FORGETS_THE_TOKEN,
    GIVES_UP_BLINDLY,
    UNPARK_KEEPS_SILENT,
    ELSEWHERE_FORGETS_THE_TOKEN,
    BACK_BLINDLY,
    FETCHER_KEEPS_THE_EVENT,
    NOBODY_STIRS,
};

static int signal_event(int fd)
{
    model_assert(fd == EVENT);
    if (model_mutant != UNPARK_KEEPS_SILENT) kernel_reports();
    return 0;
}

static bool goes_elsewhere(void)
{
    if (model_mutant != ELSEWHERE_FORGETS_THE_TOKEN) return weft__park_elsewhere(&park, EVENT);
    store_relaxed(&park.event, EVENT);
    store_release(&park.word, PARK_ELSEWHERE);
    return true;
}

static bool comes_back(void)
{
    if (model_mutant != BACK_BLINDLY) return weft__park_back(&park);
    store_relaxed(&park.word, PARK_EMPTY);
    return false;
}

/* As a worker with fds sleeps. True: with a token. */
static bool sleeps_elsewhere(void)
{
    if (!goes_elsewhere()) return true;
    kernel_wait();
    return comes_back();
}

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

/* ---- elsewhere ---- */

static void begin_elsewhere(void)
{
    weft__park_init(&park);
    store_relaxed(&edges, 0);
    plain_write(&message, 0);
}

/* A token ends the sleep, whenever it comes: before it, on the way into it, or while it lasts. */
static void elsewhere(void)
{
    begin_elsewhere();
    model_thread(sender, NULL);
    while (!sleeps_elsewhere()) { /* an event that was none: again */
    }
    model_assert(plain_read(&message) == 1);
    model_join();
}

static void an_fd(void *arg)
{
    (void)arg;
    kernel_reports();
}

/* An fd's event may end the sleep in the token's place; the token is not lost by that. */
static void elsewhere_beside_events(void)
{
    begin_elsewhere();
    model_thread(sender, NULL);
    model_thread(an_fd, NULL);
    while (!sleeps_elsewhere()) {
    }
    model_assert(plain_read(&message) == 1);
    model_join();
}

/* Somebody else turns the port (the monitor's leave), and may fetch what was to wake the sleeper: it passes that on. */
static void fetcher(void *arg)
{
    (void)arg;
    if (kernel_has() && model_mutant != FETCHER_KEEPS_THE_EVENT) kernel_reports();
}

static void elsewhere_beside_a_fetcher(void)
{
    begin_elsewhere();
    model_thread(sender, NULL);
    model_thread(fetcher, NULL);
    while (!sleeps_elsewhere()) {
    }
    model_assert(plain_read(&message) == 1);
    model_join();
}

/* Another thread adds the port's first fd, and then something comes to it. The owner may be on its futex by then, or on its way. */
static _Atomic uint32_t fds;

static void adds_the_first(void *arg)
{
    (void)arg;
    fetch_add_relaxed(&fds, 1);
    if (model_mutant != NOBODY_STIRS) weft__unpark(&park);
    kernel_reports();
}

static void first_fd(void)
{
    begin_elsewhere();
    store_relaxed(&fds, 0);
    model_thread(adds_the_first, NULL);
    for (bool came = false; !came;) {
        if (load_relaxed(&fds) == 0) {
            (void)weft__park(&park, WEFT__NEVER);
        } else if (goes_elsewhere()) {
            kernel_wait();
            came = true; /* the event, or the token's signal, with the event behind it */
            (void)comes_back();
        }
    }
    model_join();
}

static const struct model_case cases[] = {
    {.name = "park: elsewhere", .run = elsewhere, .unbounded = true, .weaken = true},
    {.name = "park: elsewhere, beside events", .run = elsewhere_beside_events, .unbounded = true, .spurious = 1},
    {.name = "park: elsewhere, beside a fetcher", .run = elsewhere_beside_a_fetcher, .unbounded = true},
    {.name = "park: the first fd", .run = first_fd, .unbounded = true},
    {.name = "mutant: unpark does not signal", .run = elsewhere, .unbounded = true, .mutant = UNPARK_KEEPS_SILENT, .must_fail = true, .why = "lost"},
    {.name = "mutant: elsewhere forgets a stored token", .run = elsewhere, .unbounded = true, .mutant = ELSEWHERE_FORGETS_THE_TOKEN, .must_fail = true, .why = "lost"},
    {.name = "mutant: back without looking", .run = elsewhere_beside_events, .unbounded = true, .mutant = BACK_BLINDLY, .must_fail = true},
    {.name = "mutant: a fetcher keeps the event", .run = elsewhere_beside_a_fetcher, .unbounded = true, .mutant = FETCHER_KEEPS_THE_EVENT, .must_fail = true, .why = "lost"},
    {.name = "mutant: nobody stirs for the first fd", .run = first_fd, .unbounded = true, .mutant = NOBODY_STIRS, .must_fail = true, .why = "lost"},
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
