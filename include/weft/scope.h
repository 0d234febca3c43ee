/* SPDX-License-Identifier: MIT
 *
 * scope - tasks that never outlive the block that started them.
 *
 *     WEFT_SCOPE(s) {                                              fibers and threads: a block
 *         while ((r = weft_accept(l, &c)) >= 0)
 *             if (weft_go_in(s, client, c) < 0) weft_close(c);
 *     }                                                            its end waits for the clients
 *
 *     weft_scope clients;                                          stackless: a member of the frame; zero is a scope
 *     if (weft_spawn_in(&f->clients, client, f->c) < 0) weft_close(f->c);
 *     weft_await(f->end, weft_scope_join, &f->clients);            its end, awaited on every path out
 *
 * What must be known:
 * - A block left by its end (or `continue`) waits for its children; left by `break`, `return` or `goto` it cancels them first.
 *   `break` leaves the scope, not a loop around it. A returned value is computed before the wait.
 * - To leave a scope never answers -ECANCELED, and never returns early. Whoever is cancelled inside, or meets a deadline from
 *   further out, passes it on to the children, with its reason, at the next wait at the latest, and still waits for them.
 * - So children may borrow from the block, and from the frame.
 * - A child in a cancelled scope is born cancelled, but starts: arguments never leak.
 * - Children are on their own: a failure is reported as any that nobody reads. With .error block and children are one thing.
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include <weft/fiber.h>
#include <weft/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the program's own memory; all zero is a scope without options. Pinned from the first spawn until it was joined: debug
 * builds stop a task or a fiber that ends before, and name it. Joined, it is as before the first spawn, and can be used again;
 * one that was cancelled stays so. */
typedef struct weft_scope {
    void *weft__[20];
} weft_scope;

/* All of it may be left out. In C++ in this order.
 *   error          block and children are one thing: the first failure cancels the rest, and the block. Written at the end: 0;
 *                  that failure; or why the whole was stopped, if that came first: -ECANCELED (also when the block was left
 *                  by break, return or goto), -ETIME. Further failures are reported as any that nobody reads.
 *                  NULL: children are on their own. It is the scope's until then: not for what a spawn answers.
 *   timeout        from here on. Children and block are told -ETIME. 0: none; what is below zero has passed already.
 *   deadline       the same at a point on the clock of weft_now. The earlier of the two counts.
 *   limit          children at a time. A spawn into a full scope waits.
 *   first_success  the first child whose result is not below zero cancels the others; failures do not. *error is 0 once
 *                  one has succeeded, else the first failure, or why the whole was stopped; -ECHILD if there was no child. */
typedef struct weft_scope_opts {
    const char *weft__file WEFT__ZERO; /* where it stands: filled in by the macros */
    uint32_t weft__line WEFT__ZERO;
    int *error WEFT__ZERO;
    weft_time timeout WEFT__ZERO;
    weft_time deadline WEFT__ZERO;
    uint32_t limit WEFT__ZERO;
    bool first_success WEFT__ZERO;
} weft_scope_opts;

/* ---- the block -----------------------------------------------------------------------------------------------------------
 *
 *     WEFT_SCOPE(s, .error = &r, .timeout = weft_secs(5)) statement
 * declares `weft_scope *s` for the statement, and expands to
 *     for (struct weft__scope_block b __attribute__((cleanup(weft__scope_leave))), *once = weft__scope_enter(&b, &opts); once; once = NULL)
 *         for (weft_scope *s = &b.scope; s; s = weft__scope_end(&b)) statement
 * The end, and `continue`, come by weft__scope_end; all other ways out by weft__scope_leave alone.
 * In a helper that a stackless body calls it is refused as all call forms are: the statement is not run, and *error is -EDEADLK. */
struct weft__scope_block {
    weft_scope scope;
    struct weft__region_block weft__time;
    void *weft__[20];
};
WEFT_API struct weft__scope_block *weft__scope_enter(struct weft__scope_block *block,
                                                     const weft_scope_opts *opts);
WEFT_API weft_scope *weft__scope_end(struct weft__scope_block *block);
WEFT_API void weft__scope_leave(struct weft__scope_block *block);

#define WEFT_SCOPE(...)  WEFT__SCOPE(__COUNTER__, __VA_ARGS__)
#define WEFT__SCOPE(...) WEFT__SCOPE_(__VA_ARGS__)
#define WEFT__SCOPE_(n, s, ...)                                                                    \
    for (struct weft__scope_block weft__block##n __attribute__((cleanup(weft__scope_leave))),      \
         *weft__once##n = (WEFT__CALL_FORM("WEFT_SCOPE"),                                          \
                           weft__scope_enter(&weft__block##n, WEFT__SCOPE_OPTS(__VA_ARGS__)));     \
         weft__once##n; weft__once##n = NULL)                                                      \
        for (weft_scope *s = &weft__block##n.scope; s; s = weft__scope_end(&weft__block##n))

#ifdef __cplusplus
#define WEFT__SCOPE_OPTS(...)                                                                      \
    weft__address_of(weft_scope_opts{.weft__file = __FILE__, .weft__line = __LINE__, __VA_ARGS__})
#else
#define WEFT__SCOPE_OPTS(...)                                                                      \
    (&(const weft_scope_opts){.weft__file = __FILE__, .weft__line = __LINE__, __VA_ARGS__})
#endif

/* ---- in a frame -----------------------------------------------------------------------------------------------------------
 *
 * weft_scope_init(&f->clients, .error = &f->r, .limit = 100): with options, and with a place that messages can name. Before the
 * first spawn. Any context. */
#define weft_scope_init(scope, ...) weft__scope_init(scope, WEFT__SCOPE_OPTS(__VA_ARGS__))
WEFT_API void weft__scope_init(weft_scope *scope, const weft_scope_opts *opts);

/* weft_scope_join(s): wait until it has no children. Told to stop, or at its deadline, it cancels them, with that reason, and
 * waits all the same. The scope's memory may go as soon as it has returned.
 * Returns 0; -EDEADLK for a child of that scope, and in a stackless poll; -EBUSY if another one waits already; -EINVAL for
 * NULL; -ECHILD in the child of a fork: its children stayed with the parent.
 * Awaited: weft_await(f->end, weft_scope_join, &f->clients). */
WEFT_API int weft__scope_join(weft_scope *scope);
struct weft_scope_join {
    WEFT_FRAME(int);
    weft_scope *scope;
    void *weft__waiter[3] WEFT__ZERO;
    struct weft_sleep_until weft__late WEFT__ZERO;
};
WEFT_API weft_pollfn weft_scope_join_poll;
#define weft_scope_join(scope) (WEFT__CALL_FORM("weft_scope_join()"), weft__scope_join(scope))

/* ---- children -------------------------------------------------------------------------------------------------------------
 *
 *     weft_go_in(s, client, c)                     weft_spawn_in(&f->clients, client, .c = c)
 *     weft_go_in_as(s, (.name = "db"), serve, db)  weft_spawn_in_as(s, (.pinned = true), client, c)
 *     weft_try_go_in(s, client, c)                 weft_try_spawn_in(s, client, c)
 *
 * Start a task in the scope, which has its handle. From the block, from children, from any task or thread that knows that the
 * scope is not over; several at once.
 * Returns 0; then the child starts, whatever happens. Else nothing was taken: -ENOMEM; -ESHUTDOWN from outside of a runtime
 * that shuts down; -ENXIO without a runtime; -EINVAL for NULL, or options that contradict each other; -ECHILD in the child of
 * a fork.
 * In a scope with a limit that is full a fiber or thread waits for room, and may answer -ECANCELED or -ETIME then; -EDEADLK if the
 * caller is the one child there may be. The try forms, and all forms inside a stackless poll, answer -EAGAIN instead; there
 *     weft_await(f->room, weft_scope_room, &f->clients)
 * waits. It promises nothing where several spawn: then who gets -EAGAIN waits again. Children that all wait for room among
 * themselves wait until they are cancelled: where children start siblings in a scope with a limit, they try. */
WEFT_API int weft__scope_new(weft_scope *scope, const struct weft_site *site,
                             const weft_spawn_opts *opts, bool waits, weft_task **into);
WEFT_API void weft__scope_start(weft_task *task);
WEFT_API int weft__go_in(weft_scope *scope, const struct weft_site *site, const weft_call *call,
                         const weft_spawn_opts *opts, bool waits);

__attribute__((warn_unused_result)) static inline int weft__started(int answer)
{
    return answer;
}

#define weft_go_in(scope, ...) WEFT__GO_IN(__COUNTER__, scope, WEFT__NO_OPTS, true, __VA_ARGS__)
#define weft_go_in_as(scope, opts, ...)                                                            \
    WEFT__GO_IN(__COUNTER__, scope, WEFT__OPTS opts, true, __VA_ARGS__)
#define weft_try_go_in(scope, ...)                                                                 \
    WEFT__GO_IN(__COUNTER__, scope, WEFT__NO_OPTS, false, __VA_ARGS__)
#define WEFT__GO_IN(...) WEFT__GO_IN_(__VA_ARGS__)

#ifndef __cplusplus
#define WEFT__NO_OPTS NULL
#define WEFT__GO_IN_(n, scope, opts, waits, fn, ...)                                               \
    weft__started(__extension__({                                                                  \
        typedef __typeof__((fn)(__VA_ARGS__)) weft__result##n;                                     \
        static const struct weft_site weft__site##n =                                              \
            WEFT__GO_SITE(#fn, WEFT__BYTES(weft__result##n), WEFT__SIGNED(weft__result##n));       \
        const weft_call weft__call##n = WEFT__CHECKED_CALL(weft__result##n, fn, ##__VA_ARGS__);    \
        weft__go_in(scope, &weft__site##n, &weft__call##n, opts, waits);                           \
    }))

#define weft_spawn_in(scope, fn, ...)                                                              \
    WEFT__SPAWN_IN(__COUNTER__, scope, NULL, true, fn, __VA_ARGS__)
#define weft_spawn_in_as(scope, opts, fn, ...)                                                     \
    WEFT__SPAWN_IN(__COUNTER__, scope, WEFT__OPTS opts, true, fn, __VA_ARGS__)
#define weft_try_spawn_in(scope, fn, ...)                                                          \
    WEFT__SPAWN_IN(__COUNTER__, scope, NULL, false, fn, __VA_ARGS__)
#define WEFT__SPAWN_IN(...) WEFT__SPAWN_IN_(__VA_ARGS__)
#define WEFT__SPAWN_IN_(n, scope, opts, waits, fn, ...)                                            \
    weft__started(__extension__({                                                                  \
        WEFT__FITS(fn);                                                                            \
        static const struct weft_site weft__site##n = WEFT__SITE(fn);                              \
        weft_task *weft__task##n;                                                                  \
        int weft__r##n = weft__scope_new(scope, &weft__site##n, opts, waits, &weft__task##n);      \
        if (weft__r##n == 0) {                                                                     \
            *WEFT__FRAME_IN(weft__task##n, fn) = WEFT__NEW(fn, __VA_ARGS__);                       \
            weft__scope_start(weft__task##n);                                                      \
        }                                                                                          \
        weft__r##n;                                                                                \
    }))
#endif

/* weft_scope_room(s): wait until a scope with a limit is not full; see above.
 * Returns 0; -ECANCELED, -ETIME; -EINVAL for NULL; -ECHILD in the child of a fork; -EDEADLK as above. */
WEFT_API int weft__scope_room(weft_scope *scope);
struct weft_scope_room {
    WEFT_FRAME(int);
    weft_scope *scope;
    void *weft__waiter[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_scope_room_poll;
#define weft_scope_room(scope) (WEFT__CALL_FORM("weft_scope_room()"), weft__scope_room(scope))

/* ---- stop and look: any context, any thread that knows that the scope is not over ------------------------------------------ */

/* Cancel children and block, once. False: it was stopped before. Never waits. */
WEFT_API bool weft_scope_cancel(weft_scope *scope);

/* The same for an error, below zero: what a child's failure does in a scope with .error, for the block itself to say.
 * False: it was stopped before, or that is no error. */
WEFT_API bool weft_scope_fail(weft_scope *scope, int error);

/* What its children were told: 0, -ECANCELED or -ETIME. */
WEFT_API int weft_scope_reason(const weft_scope *scope);

/* Children that have not ended; where others spawn or end, a number from a moment ago. */
WEFT_API size_t weft_scope_count(const weft_scope *scope);

/* ---- the block, stackless -----------------------------------------------------------------------------------------------
 *
 *     weft_scope_init(&f->s, .error = &f->r);
 *     weft_await(f->run, weft_scope_run, &f->s, weft_arm(f->accepts, accepts, &f->s));
 * Awaits the arm inside of the scope, and then the scope's end: what WEFT_SCOPE is to a fiber. The arm is told to stop when
 * the scope is, and what it is told from further out its children hear at once. In a scope with .error a failure of the arm is
 * one of the whole, as a child's. The arm's result is its own.
 * Returns 0; as weft_scope_join; -EINVAL for an arm that is passed over. */
struct weft_scope_run {
    WEFT_FRAME(int);
    weft_scope *scope;
    weft_future of;
    struct weft_scope_join weft__end WEFT__ZERO;
    void *weft__waiter[3] WEFT__ZERO;
    uint32_t weft__stage WEFT__ZERO;
};
WEFT_API weft_pollfn weft_scope_run_poll;
#define WEFT__PROBES_weft_scope_run ~, WEFT__ARM_NESTS

/* ---- supervise ------------------------------------------------------------------------------------------------------------
 *
 *     static int start_db(weft_scope *s, void *arg) { return weft_go_in(s, db, db_conf_new(arg)); }
 *     weft_spawn_in(s, weft_supervise, .start = start_db, .arg = &conf, .restarts = 3, .within = weft_secs(5))
 *
 * Starts children, waits for their end, and starts them anew when one has failed. They are one thing: the first failure stops
 * the rest, and `start` makes all arguments anew; for children that are restarted one by one there is one weft_supervise
 * each. It gives up, with that failure, when there were more than `restarts` of them within the time, as Erlang's supervisors
 * do: in a scope with .error the whole fails then, in any other it is reported.
 * `start` is called inside a poll: it spawns into the scope, and does not wait. What it answers below zero is a failure, too;
 * what it had started by then is stopped.
 * Returns 0: all ended well; the failure; -ECANCELED, -ETIME: it was told to stop, and has stopped them; -EINVAL without
 * `start`, for too many restarts, or within less than no time. Awaited, spawned, or called: r = weft_supervise(start_db, &conf, 3, weft_secs(5)). */
#define WEFT_RESTARTS_MAX 16
struct weft_supervise {
    WEFT_FRAME(int);
    int (*start)(weft_scope *scope, void *arg);
    void *arg;
    uint32_t restarts;          /* up to WEFT_RESTARTS_MAX */
    weft_time within;           /* 0: for ever */
    weft_time pause WEFT__ZERO; /* before each restart */
    int weft__error WEFT__ZERO;
    uint32_t weft__count WEFT__ZERO;                    /* restarts so far */
    weft_time weft__when[WEFT_RESTARTS_MAX] WEFT__ZERO; /* the last of them */
    weft_scope weft__scope WEFT__ZERO;
    struct weft_scope_join weft__end WEFT__ZERO;
    struct weft_sleep weft__sleep WEFT__ZERO;
};
WEFT_API weft_pollfn weft_supervise_poll;
WEFT_API int weft__supervise(int (*start)(weft_scope *scope, void *arg), void *arg,
                             uint32_t restarts, weft_time within);
#define weft_supervise(start, arg, restarts, within)                                               \
    (WEFT__CALL_FORM("weft_supervise()"), weft__supervise(start, arg, restarts, within))

#ifdef __cplusplus
}

#define WEFT__NO_OPTS ((const weft_spawn_opts *)nullptr)
#define WEFT__GO_IN_(n, scope, opts, waits, ...)                                                   \
    weft__started(__extension__({                                                                  \
        using weft__kind##n =                                                                      \
            weft__in_a_word<decltype(weft__result_of(WEFT__FIRST(__VA_ARGS__)))>;                  \
        static const struct weft_site weft__site##n = WEFT__GO_SITE(                               \
            WEFT__TEXT(WEFT__FIRST(__VA_ARGS__)), weft__kind##n::bytes, weft__kind##n::is_signed); \
        weft__go_in_cpp(scope, &weft__site##n, weft__bind(__VA_ARGS__), opts, waits);              \
    }))
static inline int weft__go_in_cpp(weft_scope *scope, const struct weft_site *site,
                                  const weft_call &call, const weft_spawn_opts *opts, bool waits)
{
    return weft__go_in(scope, site, &call, opts, waits);
}
static inline const weft_scope_opts *weft__address_of(const weft_scope_opts &opts)
{
    return &opts;
}
#endif

#endif
