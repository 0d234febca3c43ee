/* SPDX-License-Identifier: MIT
 *
 * mistake - mistakes with what tasks share, each made in a process of its own, and the line that tells
 * of it: both sides are named, who has it and since where, who made the mistake and where.
 *
 *     static int locks_twice(void)
 *     {
 *         int r = TAKEN(weft_lock(&mutex));
 *         return r < 0 ? r : MISUSED(weft_lock(&mutex));
 *     }
 *     static const struct mistake mistakes[] = {
 *         {locks_twice, -EDEADLK, "a mutex is locked once more" BY, "held by task 'culprit'", true}};
 *     mistakes_are_told(mistakes, 1);
 * Which lines it was, that process leaves in memory that it shares with the test.
 */
#ifndef WEFT_TESTS_MISTAKE_H
#define WEFT_TESTS_MISTAKE_H

#include "crew.h"
#include "death.h"
#include "test.h"

#include <string.h>
#include <sys/mman.h>
#include <weft/weft.h>

struct places {
    const char *taken;   /* where it was taken: text of the program, there in both processes */
    const char *misused; /* where the mistake is */
};
static struct places *places;

#define TAKEN(call)   (places->taken = WEFT__CALLER, (call))
#define MISUSED(call) (places->misused = WEFT__CALLER, (call))
#define AWAITED(place, ...)                                                                        \
    do {                                                                                           \
        places->place = WEFT__CALLER;                                                              \
        weft_await(__VA_ARGS__);                                                                   \
    } while (0)

/* Before and behind what is told of: the memory that both processes see. */
static void places_map(void)
{
    places = mmap(NULL, sizeof(*places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(places != MAP_FAILED);
}

static void places_unmap(void)
{
    munmap(places, sizeof(*places));
}

static _Atomic int begun; /* relaxed: a count */

/* On the one worker: whoever has said that it begins has gone to sleep by the time that this one is
 * polled again. */
static void until_it_waits(void)
{
    do {
        (void)weft_yield();
    } while (load_relaxed(&begun) == 0); /* relaxed: a count */
}

static void says_it_begins(void)
{
    fetch_add_relaxed(&begun, 1); /* relaxed: a count */
}

struct mistake {
    int (*make)(void); /* by a fiber */
    int error;         /* what a release build answers; 0: it dies in any build */
    const char *what;  /* what the line begins with */
    const char *who;   /* and whom it names beside the culprit; NULL: nobody */
    bool since;        /* it says since where it was held */
};

#define RIVAL "rival" /* the culprit's name, where the line is to have it; else its function's */
#define BY    " by task 'culprit' (spawned at "

static int (*mistake_made)(void);

static int culprit(void)
{
    return mistake_made();
}

static void make_it(void *arg)
{
    const struct mistake *mistake = arg;
    struct crew crew;
    int r = 1;

    crew_start(&crew, 1);
    mistake_made = mistake->make;
    const char *name = strstr(mistake->what, RIVAL) ? RIVAL : NULL;
    (void)weft_join(weft_go_as((.name = name), culprit), &r);
    _exit(mistake->error && r == mistake->error ? 9 : 4);
}

static bool ended_as_it_must(const struct death *d, const struct mistake *mistake)
{
#ifdef WEFT_DEBUG
    (void)mistake;
    return d->signal == SIGABRT;
#else
    return mistake->error ? d->signal == 0 && d->code == 9 : d->signal == SIGABRT;
#endif
}

static bool names(const char *said, const char *words, const char *place)
{
    char text[512];
    snprintf(text, sizeof(text), "%s%s", words, place);
    return strstr(said, text);
}

/* What the two places are, and that both are in the line. */
static bool said_all(const struct death *d, const struct mistake *mistake)
{
    if (!strstr(d->said, mistake->what)) return false;
    if (mistake->who && !strstr(d->said, mistake->who)) return false;
    if (mistake->since && !names(d->said, ", since ", places->taken) &&
        !names(d->said, "was last at ", places->taken))
        return false;
    return names(d->said, " at ", places->misused);
}

static void mistakes_are_told(const struct mistake *mistakes, size_t count)
{
    places_map();
    for (size_t i = 0; i < count; i++) {
        struct death d = death_of(make_it, (void *)(uintptr_t)&mistakes[i]);
        if (!ended_as_it_must(&d, &mistakes[i]) || !said_all(&d, &mistakes[i]))
            ck_abort_msg("%zu (%s): signal %d, code %d, taken at %s, misused at %s, said: %s", i,
                         mistakes[i].what, d.signal, d.code, places->taken, places->misused,
                         d.said);
    }
    places_unmap();
}

#endif
