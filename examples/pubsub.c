/* SPDX-License-Identifier: MIT
 *
 * pubsub - topics, and subscribers that come and go.
 *
 * A topic is a broadcast channel: who publishes never waits, and who listens is a cursor. Who is too slow is told how many notes it has
 * missed, and goes on with the oldest that is left. Subscribers are a keyed set: each is found again by its name, can be asked to leave, and
 * comes out with it when it has ended. The end is in order: topics are closed, everybody hears what is left, the last one out.
 */
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

struct note {
    int number;
};
typedef WEFT_BROADCAST(struct note) topic;

struct name {
    char text[8];
};
typedef WEFT_KEYED(struct name, int) crowd; /* by name; the result is an errno, or 0 */
typedef WEFT_SET(int) press;

/* What a subscriber is given, and leaves behind. */
struct reader {
    topic *of;
    weft_cursor at;
    weft_event *pause; /* waits for this behind its first note; NULL: reads on */
    int heard;
    int missed;
};

static int listens(struct reader *me)
{
    struct note note;
    int r;

    while ((r = weft_broadcast_recv(me->of, &me->at, &note)) != 0) {
        if (r == -EOVERFLOW) {
            me->missed += (int)me->at.missed;
        } else if (r < 0) {
            return r; /* told to leave */
        } else {
            me->heard++;
            if (me->pause && (r = weft_event_wait(me->pause)) < 0) return r;
        }
    }
    return 0; /* the topic is closed, and all was heard */
}

static int publishes(topic *of, int from, int count)
{
    for (int i = 0; i < count; i++) {
        struct note note = {from + i};
        int r = weft_broadcast_send(of, &note);
        if (r < 0) return r;
        if ((r = weft_yield()) < 0) return r;
    }
    return 0;
}

static int joins(crowd *all, const char *name, struct reader *me, topic *of)
{
    struct name key = {""};
    (void)snprintf(key.text, sizeof(key.text), "%s", name);
    me->of = of;
    me->at = weft_broadcast_now(of); /* from here on */
    return weft_keyed_go(all, &key, listens, me);
}

static int serves(topic *news, topic *weather)
{
    static weft_event printed = WEFT_EVENT_INIT;
    struct reader ann = {.of = NULL}, bob = {.of = NULL}, cat = {.of = NULL};
    struct reader slow = {.pause = &printed};
    struct name who = {"bob"};
    crowd readers = {0};
    press presses = {0};
    int r, was;

    if ((r = joins(&readers, "ann", &ann, news)) < 0) goto out;
    if ((r = joins(&readers, "slow", &slow, news)) < 0) goto out;
    if ((r = joins(&readers, "bob", &bob, weather)) < 0) goto out;
    if (joins(&readers, "ann", &ann, news) == -EEXIST) printf("there is one ann only\n");

    if ((r = weft_set_go(&presses, publishes, news, 0, 50)) < 0) goto out;
    if ((r = weft_set_go(&presses, publishes, weather, 0, 50)) < 0) goto out;
    if ((r = weft_set_join(&presses)) < 0) goto out;
    weft_event_set(&printed); /* the slow one may read on: most of it is gone */

    weft_keyed_cancel(&readers, &who); /* bob has had enough */
    if ((r = joins(&readers, "cat", &cat, news)) < 0) goto out;
    if ((r = publishes(news, 50, 10)) < 0) goto out;

    weft_broadcast_close(news);
    weft_broadcast_close(weather);
    while ((r = weft_keyed_join_next(&readers, &who, &was)) > 0)
        printf("%s %s\n", who.text, was == -ECANCELED ? "left early" : "heard the end");
    printf("ann: %d heard or missed\n", ann.heard + ann.missed);
    printf("slow: %d heard or missed, %s\n", slow.heard + slow.missed,
           slow.missed > 0 ? "and knows it" : "none missed");
    printf("cat: %d heard or missed\n", cat.heard + cat.missed);
out:
    weft_event_set(&printed);
    WEFT_SHIELD(weft_secs(1)) /* whatever went wrong: nobody is left behind */
    {
        (void)weft_set_stop(&presses);
        (void)weft_keyed_stop(&readers);
    }
    weft_set_done(&presses);
    weft_keyed_done(&readers);
    return r;
}

static int app(void)
{
    topic *news = NULL, *weather = NULL;
    int r = weft_broadcast_new(16, &news);
    if (r == 0) r = weft_broadcast_new(16, &weather);
    if (r == 0) r = serves(news, weather);
    weft_broadcast_free(weather);
    weft_broadcast_free(news);
    return r == -ECANCELED ? 0 : r;
}

WEFT_MAIN(app)
