/* SPDX-License-Identifier: MIT
 *
 * tracker - counts tasks that nobody joins, so that a program can wait until the last of them is over.
 *
 *     weft_tracker sessions = {0};
 *     r = weft_tracker_go(&sessions, session, conn);     from anywhere; r = weft_tracker_spawn(&sessions, session, .conn = conn);
 *
 *     weft_token_cancel(&stop);                          time to go: the token tells them,
 *     weft_tracker_close(&sessions);                     no more are expected,
 *     weft_tracker_wait(&sessions);                      and the last one is over
 *     weft_tracker_done(&sessions);
 *
 * A set (set.h) keeps results, and so the memory of whoever has ended, until somebody asks. A tracker keeps a number: its tasks are
 * detached, their memory is free as soon as they end, and a failure is reported as that of any detached task. It tells nobody to
 * stop: that is a token's part.
 * It lies in the program's own memory, all zero; pinned from its first use to weft_tracker_done.
 */
#ifndef WEFT_TRACKER_H
#define WEFT_TRACKER_H

#include <weft/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_tracker {
    void *weft__[8];
} weft_tracker;

/* ---- what is counted ---------------------------------------------------------------------------------------------------------
 *
 *     weft_tracker_go(tracker, fn, args...)     weft_tracker_spawn(tracker, fn, args...)      and both with `_as` and options in front
 * Start a task as weft_go or weft_spawn do, detached, and counted until it has ended. Also while the tracker is closed: whoever is
 * counted may need another task to come to its end. Context: anywhere. A frame is larger by 80 bytes than that of a plain spawn.
 * Returns 0; -ENOMEM, -ENXIO, -ESHUTDOWN, -EINVAL (also for NULL) as weft_set_go: nothing was started. */

/* The same for work that is no task: count one more, then one less. What was written before weft_tracker_leave is seen by who has
 * waited. One more that leaves than entered aborts, and says where. Never waits. Context: anywhere, any thread. */
WEFT_API void weft_tracker_enter(weft_tracker *tracker);
WEFT_API void weft__tracker_leave(weft_tracker *tracker, const char *caller);
#define weft_tracker_leave(tracker) weft__tracker_leave(tracker, WEFT__CALLER)

/* ---- waiting -------------------------------------------------------------------------------------------------------------------
 *
 * weft_tracker_wait(tracker): until it is closed, and nothing is counted. A moment of that is enough for who waits at that moment,
 * whatever happens next; an open tracker lets nobody through. Any number may wait, and whoever has waited may end the tracker.
 * Returns 0; -ECANCELED, -ETIME: told to stop; -EINVAL for NULL; -EDEADLK in a stackless poll (call form). Cancel-safe.
 * Awaited: weft_await(f->wait, weft_tracker_wait, &tracker). */
struct weft_tracker_wait {
    WEFT_FRAME(int);
    weft_tracker *tracker;
    void *weft__waiter[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_tracker_wait_poll;
WEFT_API int weft__tracker_wait(weft_tracker *tracker);
#define WEFT__PROBES_weft_tracker_wait ~, WEFT__ARM_PROBES
#define weft_tracker_wait(tracker)                                                                 \
    (WEFT__CALL_FORM("weft_tracker_wait()"), weft__tracker_wait(tracker))

/* Close it, or open it again. Each returns whether that changed anything. Context: anywhere. */
WEFT_API bool weft_tracker_close(weft_tracker *tracker);
WEFT_API bool weft_tracker_reopen(weft_tracker *tracker);
WEFT_API bool weft_tracker_is_closed(const weft_tracker *tracker);

/* How many are counted; by the time you look it may be another number. */
WEFT_API size_t weft_tracker_len(const weft_tracker *tracker);

/* Ends it: nothing is counted and nobody waits, or it is a mistake that aborts. NULL is nothing. */
WEFT_API void weft__tracker_done(weft_tracker *tracker, const char *caller);
#define weft_tracker_done(tracker) weft__tracker_done(tracker, WEFT__CALLER)

/* ---- private: what the macros stand on --------------------------------------------------------------------------------------- */

/* Makes a task of a site that has room for a member one that is counted; it was before. 0; or why there is no task. */
WEFT_API int weft__tracker_add(weft_tracker *tracker, weft_task *task, const weft_spawn_opts *opts);

static inline bool weft__tracker_may_enter(weft_tracker *tracker)
{
    if (!tracker) return false;
    weft_tracker_enter(tracker);
    return true;
}

#ifdef __cplusplus
}
#endif

#define weft_tracker_go(tracker, ...) weft_tracker_go_as((), tracker, __VA_ARGS__)
#define weft_tracker_go_as(opts, tracker, ...)                                                     \
    WEFT__TRACKER_GO(__COUNTER__, opts, tracker, __VA_ARGS__)
#define WEFT__TRACKER_GO(...) WEFT__TRACKER_GO_(__VA_ARGS__)

#ifndef __cplusplus
#define weft_tracker_spawn(tracker, ...) weft_tracker_spawn_as((), tracker, __VA_ARGS__)
#define weft_tracker_spawn_as(opts, tracker, ...)                                                  \
    WEFT__TRACKER_SPAWN(__COUNTER__, opts, tracker, __VA_ARGS__)
#define WEFT__TRACKER_SPAWN(...) WEFT__TRACKER_SPAWN_(__VA_ARGS__)

#define WEFT__TRACKER_GO_(n, opts, tracker, fn, ...)                                               \
    __extension__({                                                                                \
        const weft_spawn_opts *weft__opts##n = WEFT__OPTS_OR_NULL opts;                            \
        weft_tracker *weft__tracker##n = (tracker);                                                \
        weft__tracker_may_enter(weft__tracker##n)                                                  \
            ? weft__tracker_add(                                                                   \
                  weft__tracker##n,                                                                \
                  WEFT__GO_AND(n, WEFT__MEMBER_BYTES, weft__opts##n, fn, ##__VA_ARGS__),           \
                  weft__opts##n)                                                                   \
            : -EINVAL;                                                                             \
    })
#define WEFT__TRACKER_SPAWN_(n, opts, tracker, fn, ...)                                            \
    __extension__({                                                                                \
        const weft_spawn_opts *weft__opts##n = WEFT__OPTS_OR_NULL opts;                            \
        weft_tracker *weft__tracker##n = (tracker);                                                \
        weft__tracker_may_enter(weft__tracker##n)                                                  \
            ? weft__tracker_add(                                                                   \
                  weft__tracker##n,                                                                \
                  WEFT__SPAWN_AND(n, WEFT__MEMBER_BYTES, weft__opts##n, fn, ##__VA_ARGS__),        \
                  weft__opts##n)                                                                   \
            : -EINVAL;                                                                             \
    })
#else
#define WEFT__TRACKER_GO_(n, opts, tracker, ...)                                                   \
    __extension__({                                                                                \
        const weft_spawn_opts weft__opts##n = weft_spawn_opts WEFT__BRACED opts;                   \
        weft_tracker *weft__tracker##n = (tracker);                                                \
        weft__tracker_may_enter(weft__tracker##n)                                                  \
            ? weft__tracker_add(weft__tracker##n,                                                  \
                                WEFT__GO_AND(n, WEFT__MEMBER_BYTES, &weft__opts##n, __VA_ARGS__),  \
                                &weft__opts##n)                                                    \
            : -EINVAL;                                                                             \
    })
#endif

#endif
