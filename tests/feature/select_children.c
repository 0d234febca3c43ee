/* SPDX-License-Identifier: MIT
 *
 * Waits for tasks of one's own as arms of a select, beside a sleep: for a tracker, for the next of a keyed set, for room in a scope, for a scope's end. A loser
 * has taken nothing, and whoever stood behind it gets it as soon as it is there. The end of a scope cannot be given up: as a loser it stops the children and has
 * waited for them. By fibers and stackless tasks, with children of both kinds, on every shape of runtime, on a clock that stands.
 */
#include "crew.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <weft/weft.h>

typedef WEFT_KEYED(uint64_t, int) by_number;

static weft_tracker tracker;
static by_number keyed;
static weft_scope scope;
static _Atomic uint32_t taken; /* results of the keyed set; relaxed, as all here: a count */

/* ---- children: they end after a time, or when they are told to, and then clean up for 1 ms ---- */

static _Atomic int heard; /* what the last one was told */

static int naps(int ms)
{
    int r = weft_sleep(weft_ms(ms));
    store_relaxed(&heard, r);
    if (r < 0) WEFT_SHIELD(WEFT_FOREVER)(void) weft_sleep(weft_ms(1));
    return r < 0 ? r : ms;
}

struct naps_too {
    WEFT_FRAME(int);
    int ms;
    struct weft_sleep sleep;
    struct weft_sleep cleans;
    struct weft_shield shield;
};
static weft_async(naps_too)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, weft_ms(f->ms));
    store_relaxed(&heard, f->sleep.ret);
    if (f->sleep.ret < 0) {
        weft_await(f->shield, weft_shield, WEFT_FOREVER,
                   weft_arm(f->cleans, weft_sleep, weft_ms(1)));
        weft_return(f->sleep.ret);
    }
    weft_return(f->ms);
    weft_end;
}

/* ---- arms: how each begins, and what must be so behind it ---- */

struct waits {
    union {
        struct weft_tracker_wait tracker;
        struct weft_keyed_join_next next;
        struct weft_scope_room room;
        struct weft_scope_join end;
    };
    uint64_t key;
    int got;
};

static void tracker_starts(bool stackless)
{
    ASSERT_OK(stackless ? weft_tracker_spawn(&tracker, naps_too, 3)
                        : weft_tracker_go(&tracker, naps, 3));
    (void)weft_tracker_close(&tracker);
}
static weft_future tracker_arm(struct waits *w)
{
    return weft_arm(w->tracker, weft_tracker_wait, &tracker);
}
static void tracker_lost(struct waits *w)
{
    if (w->tracker.ret == 0) { /* it was over as it was told to stop: a success that comes late */
        ASSERT_EQ(weft_tracker_len(&tracker), 0);
    } else {
        ASSERT_EQ(w->tracker.ret, -ECANCELED);
    }
}
static void tracker_got(struct waits *w)
{
    ASSERT_OK(w->tracker.ret);
    ASSERT_EQ(weft_tracker_len(&tracker), 0);
}
static void tracker_over(void)
{
    ASSERT_EQ(weft_tracker_len(&tracker), 0);
    (void)weft_tracker_reopen(&tracker);
}

static void keyed_starts(bool stackless)
{
    uint64_t key = 7;
    store_relaxed(&taken, 0);
    ASSERT_OK(stackless ? weft_keyed_spawn(&keyed, &key, naps_too, 3)
                        : weft_keyed_go(&keyed, &key, naps, 3));
}
static weft_future keyed_arm(struct waits *w)
{
    return weft_arm(w->next, weft_keyed_join_next, &keyed, &w->key, &w->got);
}
static void keyed_lost(struct waits *w)
{
    ASSERT_EQ(w->next.ret, -ECANCELED);
    ASSERT_EQ(w->key, 0);
    ASSERT_EQ(w->got, 0);
}
static void keyed_got(struct waits *w)
{
    if (w->next.ret == 0) return; /* another one has had the last */
    ASSERT_EQ(w->next.ret, 1);
    ASSERT_EQ(w->key, 7);
    ASSERT_EQ(w->got, 3);
    fetch_add_relaxed(&taken, 1);
}
static void keyed_over(void)
{
    ASSERT_EQ(weft_keyed_len(&keyed), 0);
    ASSERT_EQ(load_relaxed(&taken), 1);
}

static void room_starts(bool stackless)
{
    weft_scope_init(&scope, .limit = 1);
    ASSERT_OK(stackless ? weft_spawn_in(&scope, naps_too, 3) : weft_go_in(&scope, naps, 3));
}
static weft_future room_arm(struct waits *w)
{
    return weft_arm(w->room, weft_scope_room, &scope);
}
static void room_lost(struct waits *w)
{
    ASSERT_EQ(w->room.ret, -ECANCELED);
}
static void room_got(struct waits *w)
{
    ASSERT_OK(w->room.ret);
    ASSERT_EQ(weft_scope_count(&scope), 0);
}
static void room_over(void)
{
    ASSERT_OK(weft_try_go_in(&scope, naps, 1)); /* all of it is there */
    ASSERT_EQ(weft_try_go_in(&scope, naps, 1), -EAGAIN);
    ASSERT_OK(weft_scope_join(&scope));
}

struct row {
    const char *name;
    void (*start)(bool stackless); /* what it waits for comes in 3 ms */
    weft_future (*arm)(struct waits *w);
    void (*lost)(struct waits *w);
    void (*got)(struct waits *w);
    void (*over)(void); /* nobody waits any more: nothing is left, nothing was taken twice */
};

static const struct row rows[] = {
    {"tracker", tracker_starts, tracker_arm, tracker_lost, tracker_got, tracker_over},
    {"keyed set", keyed_starts, keyed_arm, keyed_lost, keyed_got, keyed_over},
    {"room", room_starts, room_arm, room_lost, room_got, room_over},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- one select, by either kind of task; what it answers is which arm has won ---- */

static int on_a_fiber(const struct row *row, int64_t limit)
{
    struct waits w = {.key = 0};
    struct weft_sleep sleep;
    int which = weft_select(row->arm(&w), weft_arm(sleep, weft_sleep, limit));
    if (which == 0) row->got(&w);
    if (which == 1) row->lost(&w);
    return which;
}

struct stackless {
    WEFT_FRAME(int);
    const struct row *row;
    int64_t limit;
    struct waits w;
    struct weft_sleep sleep;
    weft_future arms[2];
    struct weft_race race;
};
static weft_async(stackless)
{
    weft_begin;
    f->arms[0] = f->row->arm(&f->w);
    f->arms[1] = weft_arm(f->sleep, weft_sleep, f->limit);
    weft_await(f->race, weft_race, f->arms, 2);
    if (f->race.ret == 0) f->row->got(&f->w);
    if (f->race.ret == 1) f->row->lost(&f->w);
    weft_return(f->race.ret);
    weft_end;
}

static weft_task *selects(const struct row *row, int64_t limit, bool fiber)
{
    return fiber ? weft_go(on_a_fiber, row, limit) : weft_spawn(stackless, row, limit);
}

static int which_of(weft_task *task)
{
    int which = -1;
    ASSERT_OK(weft_join(task, &which));
    return which;
}

/* ---- the trials ---- */

/* It comes at once and leaves at 2 ms; one that came behind it has it at 3, and one that comes at 4 need not wait. */
static void loses(const struct row *row, bool fiber, bool stackless)
{
    weft_time start = weft_now();
    row->start(stackless);
    weft_task *first = selects(row, weft_ms(2), fiber);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    weft_task *behind = selects(row, weft_ms(9), !fiber);
    ASSERT_EQ(which_of(first), 1);
    ASSERT_EQ(weft_now(), start + weft_ms(2));
    ASSERT_EQ(which_of(behind), 0);
    ASSERT_EQ(weft_now(), start + weft_ms(3));
    ASSERT_OK(weft_sleep(weft_ms(1)));
    ASSERT_EQ(which_of(selects(row, weft_ms(1), fiber)), 0);
    ASSERT_EQ(weft_now(), start + weft_ms(4));
    row->over();
}

/* Its time is over as the child ends, which may have given it its turn: whoever wins, the one behind it does not wait for longer. Each of both wins in a share of these,
 * as the select draws which arm it looks at first. */
static void loses_or_wins(const struct row *row, bool fiber, bool stackless)
{
    weft_time start = weft_now();
    row->start(stackless);
    weft_task *first = selects(row, weft_ms(3), fiber);
    ASSERT_OK(weft_sleep(weft_ms(1)));
    weft_task *behind = selects(row, weft_ms(9), !fiber);
    ASSERT_GE(which_of(first), 0);
    ASSERT_EQ(which_of(behind), 0);
    ASSERT_EQ(weft_now(), start + weft_ms(3));
    row->over();
}

static int all_rows(void)
{
    for (int i = 0; i < ROWS; i++) {
        for (int kind = 0; kind < 4; kind++) {
            loses(&rows[i], kind / 2, kind % 2);
            for (int again = 0; again < 10; again++)
                loses_or_wins(&rows[i], kind / 2, kind % 2);
        }
    }
    weft_tracker_done(&tracker); /* somebody left on it would abort */
    weft_keyed_done(&keyed);
    return 0;
}

TEST(select_over_waits_for_children)
{
    each_paused(all_rows);
}

/* ---- the end of a scope ---- */

static weft_future end_arm(struct waits *w)
{
    return weft_arm(w->end, weft_scope_join, &scope);
}
static void end_over(struct waits *w) /* lost or won, there are no children any more */
{
    ASSERT_OK(w->end.ret);
    ASSERT_EQ(weft_scope_count(&scope), 0);
}
static const struct row end_row = {"end", NULL, end_arm, end_over, end_over, NULL};

static int ends(void)
{
    for (int kind = 0; kind < 4; kind++) {
        bool fiber = kind / 2, stackless = kind % 2;
        weft_time start = weft_now();

        weft_scope_init(&scope, .limit = 0);
        ASSERT_OK(stackless ? weft_spawn_in(&scope, naps_too, 3) : weft_go_in(&scope, naps, 3));
        ASSERT_EQ(which_of(selects(&end_row, weft_ms(9), fiber)), 0);
        ASSERT_EQ(weft_now(), start + weft_ms(3));
        ASSERT_EQ(load_relaxed(&heard), 0);
        ASSERT_EQ(weft_scope_reason(&scope), 0);

        ASSERT_OK(stackless ? weft_spawn_in(&scope, naps_too, 3000)
                            : weft_go_in(&scope, naps, 3000));
        ASSERT_EQ(which_of(selects(&end_row, weft_ms(2), fiber)), 1);
        ASSERT_EQ(weft_now(), start + weft_ms(3 + 2 + 1)); /* its cleaning up was waited for */
        ASSERT_EQ(load_relaxed(&heard), -ECANCELED);
        ASSERT_EQ(weft_scope_reason(&scope), -ECANCELED);
        ASSERT_EQ(which_of(selects(&end_row, weft_ms(2), fiber)), 0); /* nobody is there */
        ASSERT_OK(weft_scope_join(&scope));
    }
    return 0;
}

TEST(select_over_the_end_of_a_scope)
{
    each_paused(ends);
}
