/* SPDX-License-Identifier: MIT
 *
 * set - tasks that are waited for together: whoever ends first comes out first, with its result.
 *
 *     typedef WEFT_SET(int) int_set;                     results are type-checked; a weft_set takes tasks of any kind
 *     int_set set = {.limit = 8};                        at most 8 run at once; zero: as many as there are
 *     for (int i = 0; i < n; i++)
 *         if ((r = weft_set_go(&set, fetch, urls[i])) < 0) break;       waits while 8 run
 *     while ((r = weft_set_join_next(&set, &status)) > 0) use(status);  as read: above 0, then 0 (nobody is left), or an errno
 *     weft_set_stop(&set);                               whoever is left: cancelled, and waited for
 *     weft_set_done(&set);
 *
 *     r = weft_set_try_spawn(&f->set, fetch, .url = u);                 stackless: never waits
 *     weft_await(f->next, weft_set_join_next, &f->set, &f->status);
 *
 * A set owns its members: nobody else joins or detaches them. One that has ended keeps its result, and its memory, until it
 * is taken out. Any number of tasks and threads may spawn into a set, take out of it and wait for it at once, its members too.
 * It lies in the program's own memory, all zero but for its limit; pinned from its first use to weft_set_done.
 *
 * ORDER  Members come out in the order in which they ended.
 * GIVEN UP  Who waits for the next and is told to stop has taken nobody: cancel-safe, also as an arm that loses in a select. Members
 * are not cancelled by that. weft_set_join and weft_set_stop answer for the members, as weft_join does for one: told to stop, they
 * pass it on, and wait until all have ended.
 */
#ifndef WEFT_SET_H
#define WEFT_SET_H

#include <weft/chan.h>
#include <weft/fiber.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of tasks whose result is a T. `weft_of` is there for its type; nobody reads it. */
#define WEFT_SET(T)                                                                                \
    struct {                                                                                       \
        size_t limit; /* of members that run at once; 0: none. Constant */                         \
        void *weft__[22];                                                                          \
        T *weft_of;                                                                                \
    }

/* Of tasks with any result: join_next compares sizes when it runs, as weft_join does. */
typedef struct weft_set {
    size_t limit;
    void *weft__[22];
    void *weft_of;
} weft_set;
#define weft_set_of(set) WEFT__AS_PART(weft_set, set)

/* ---- spawning into it ------------------------------------------------------------------------------------------------------
 *
 *     weft_set_go(set, fn, args...)             weft_set_spawn(set, fn, args...)             wait while the set is full
 *     weft_set_try_go(set, fn, args...)         weft_set_try_spawn(set, fn, args...)         -EAGAIN: it is, or others wait
 *     weft_set_permit_go(set, fn, args...)      weft_set_permit_spawn(set, fn, args...)      spend what weft_set_reserve gave
 * and each of them with `_as` and options in front: weft_set_go_as((.name = "db"), set, fn, args...); those that wait and those that try also with `_ref`:
 *     weft_set_go_ref(&task, set, fn, args...)  gives a reference beside, for weft_cancel, weft_wait and weft_task_id of this one; ended by weft_unref
 *
 * Start a task as weft_go or weft_spawn do, as a member. Arguments are evaluated when there is a place, not before.
 * Context: anywhere; the first two are calls of fibers and threads. A frame is larger by 80 bytes than that of a plain spawn.
 * Returns 0; -EAGAIN as said; -ENOMEM, -ENXIO (no runtime), -ESHUTDOWN (it stops), -ECHILD (it stayed with the parent of a fork), -EINVAL (options that contradict each
 * other): nothing was started, and a permit is spent all the same; -ECANCELED, -ETIME, -EDEADLK as any wait. */

/* weft_set_reserve(set): a place, waiting while there is none; first come, first served. For stackless tasks, which then spend it:
 *     weft_await(f->place, weft_set_reserve, &f->set);
 *     if (f->place.ret == 0) r = weft_set_permit_spawn(&f->set, fetch, f->url);
 * Returns 0; -ECANCELED, -ETIME: told to stop, nothing was taken; -EINVAL for NULL; -EDEADLK in a stackless poll (call form). */
struct weft_set_reserve {
    WEFT_FRAME(int);
    void *set;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_set_reserve_poll;
WEFT_API int weft__set_reserve(weft_set *set);
WEFT_API int weft__set_try_reserve(weft_set *set);
#define WEFT__PROBES_weft_set_reserve ~, WEFT__ARM_PROBES

/* Gives back what was reserved. Never waits. */
WEFT_API void weft__set_permit_drop(weft_set *set);

/* ---- taking out of it --------------------------------------------------------------------------------------------------------
 *
 * weft_set_join_next(set, &result): the next member that has ended, waiting until there is one. Its result is copied, if `into` is
 * not NULL, and its memory given back.
 * Returns 1: it is in *result; 0: the set is empty; -ECANCELED, -ETIME: told to stop, nobody was taken; -EINVAL for NULL, and in
 * a weft_set of any type for a result of another size than *result: the member stays where it is; -ENOMEM: a fiber that never ran,
 * as weft_join; -EDEADLK in a stackless poll (call form).
 * weft_set_try_join_next: the same at once; -EAGAIN: nobody has ended, but some run. Context: anywhere. */
struct weft_set_join_next {
    WEFT_FRAME(int);
    void *set;
    void *into;
    size_t bytes WEFT__ZERO; /* of *into */
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_set_join_next_poll;
WEFT_API int weft__set_join_next(weft_set *set, void *into, size_t bytes);
WEFT_API int weft__set_try_join_next(weft_set *set, void *into, size_t bytes);
#define WEFT__PROBES_weft_set_join_next ~, WEFT__ARM_PROBES

/* weft_set_next(set, &task): the same, but gives the member's handle: it has ended, so that weft_join does not wait, and tells by
 * the size which result it is. For sets of different tasks; weft_task_id and weft_task_name say who it was.
 * Returns as weft_set_join_next. */
struct weft_set_next {
    WEFT_FRAME(int);
    void *set;
    weft_task **into;
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_set_next_poll;
WEFT_API int weft__set_next(weft_set *set, weft_task **into);
#define WEFT__PROBES_weft_set_next ~, WEFT__ARM_PROBES

/* ---- all of them ---------------------------------------------------------------------------------------------------------------
 *
 * weft_set_join(set): until all have ended, also those that are spawned meanwhile; their results are dropped.
 * Returns 0; else the first failure (a signed integer below zero, other than what the member was cancelled with; further ones are
 * reported as those of detached tasks); else -ECANCELED, -ETIME: told to stop, which went to the members, too; -EINVAL for NULL;
 * -EDEADLK in a stackless poll.
 * weft_set_stop(set): cancels them first, and whoever is spawned meanwhile. Returns as weft_set_join.
 * Neither is for a member of the set: it would wait for itself. */
struct weft_set_join {
    WEFT_FRAME(int);
    void *set;
    void *weft__waiter[3] WEFT__ZERO;
    int32_t weft__s[4] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_set_join_poll;
WEFT_API int weft__set_join(weft_set *set);
#define WEFT__PROBES_weft_set_join ~, WEFT__ARM_PROBES

struct weft_set_stop {
    WEFT_FRAME(int);
    void *set;
    void *weft__waiter[3] WEFT__ZERO;
    int32_t weft__s[4] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_set_stop_poll;
WEFT_API int weft__set_stop(weft_set *set);
#define WEFT__PROBES_weft_set_stop ~, WEFT__ARM_PROBES

/* weft_set_detach(set): lets all go. Those that run go on without the set, results are dropped, failures reported. Waits only for
 * members that are at their very end, and is not to be stopped in that. Nobody spawns meanwhile.
 * Returns 0; -EINVAL for NULL; -EDEADLK in a stackless poll. */
struct weft_set_detach {
    WEFT_FRAME(int);
    void *set;
    void *weft__waiter[3] WEFT__ZERO;
    int32_t weft__s[4] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_set_detach_poll;
WEFT_API int weft__set_detach(weft_set *set);

/* weft_set_cancel(set): asks all that are in it now to stop. Never waits. Context: anywhere. */
WEFT_API void weft__set_cancel(weft_set *set);

/* Members that are in it: that run, or have ended and were not taken out; places that are reserved count. By the time you look it
 * may be another number. */
WEFT_API size_t weft__set_len(weft_set *set);

/* Those that run, with places that are reserved. */
WEFT_API size_t weft__set_running(weft_set *set);

/* Ends it: nobody is in it, nobody waits, or it is a mistake that aborts. NULL is nothing. */
WEFT_API void weft__set_done(weft_set *set);

/* ---- private: what the macros stand on --------------------------------------------------------------------------------------- */

/* Makes a task of a site that has room for a member a member of the set, or gives the place back. `ref`, unless it is NULL, gets a reference. 0; or why there is
 * no task. */
WEFT_API int weft__set_add(weft_set *set, weft_task *task, const weft_spawn_opts *opts,
                           weft_task **ref);

/* A member's frame: what the function needs, and behind it what its set does. */
#define WEFT__MEMBER_BYTES        80
#define WEFT__FRAME_AND(bytes, n) ((((bytes) + 15) & ~(size_t)15) + (n))

#ifdef __cplusplus
}
#endif

#define weft_set_permit_drop(set) weft__set_permit_drop(weft_set_of(set))
#define weft_set_cancel(set)      weft__set_cancel(weft_set_of(set))
#define weft_set_len(set)         weft__set_len(weft_set_of(set))
#define weft_set_running(set)     weft__set_running(weft_set_of(set))
#define weft_set_done(set)        weft__set_done(weft_set_of(set))
#define weft_set_reserve(set)                                                                      \
    (WEFT__CALL_FORM("weft_set_reserve()"), weft__set_reserve(weft_set_of(set)))
#define weft_set_next(set, into)                                                                   \
    (WEFT__CALL_FORM("weft_set_next()"), weft__set_next(weft_set_of(set), into))
#define weft_set_join(set) (WEFT__CALL_FORM("weft_set_join()"), weft__set_join(weft_set_of(set)))
#define weft_set_stop(set) (WEFT__CALL_FORM("weft_set_stop()"), weft__set_stop(weft_set_of(set)))
#define weft_set_detach(set)                                                                       \
    (WEFT__CALL_FORM("weft_set_detach()"), weft__set_detach(weft_set_of(set)))
#define weft_set_join_next(set, into)                                                              \
    (WEFT__CALL_FORM("weft_set_join_next()"),                                                      \
     weft__set_join_next(weft_set_of(set), WEFT__RESULT(set, into), WEFT__RESULT_BYTES(into)))
#define weft_set_try_join_next(set, into)                                                          \
    weft__set_try_join_next(weft_set_of(set), WEFT__RESULT(set, into), WEFT__RESULT_BYTES(into))

/* A place is taken in one of three ways: ENTER. */
#define WEFT__SET_WAITS(what, set)  (WEFT__CALL_FORM(what), weft__set_reserve(set))
#define WEFT__SET_TRIES(what, set)  weft__set_try_reserve(set)
#define WEFT__SET_SPENDS(what, set) ((void)(set), 0)

#define weft_set_go(set, ...) weft_set_go_as((), set, __VA_ARGS__)
#define weft_set_go_as(opts, set, ...)                                                             \
    WEFT__SET_GO(__COUNTER__, WEFT__SET_WAITS, "weft_set_go()", WEFT__NO_REF, opts, set,           \
                 __VA_ARGS__)
#define weft_set_go_ref(ref, set, ...)                                                             \
    WEFT__SET_GO(__COUNTER__, WEFT__SET_WAITS, "weft_set_go_ref()", ref, (), set, __VA_ARGS__)
#define weft_set_try_go(set, ...) weft_set_try_go_as((), set, __VA_ARGS__)
#define weft_set_try_go_as(opts, set, ...)                                                         \
    WEFT__SET_GO(__COUNTER__, WEFT__SET_TRIES, "", WEFT__NO_REF, opts, set, __VA_ARGS__)
#define weft_set_try_go_ref(ref, set, ...)                                                         \
    WEFT__SET_GO(__COUNTER__, WEFT__SET_TRIES, "", ref, (), set, __VA_ARGS__)
#define weft_set_permit_go(set, ...) weft_set_permit_go_as((), set, __VA_ARGS__)
#define weft_set_permit_go_as(opts, set, ...)                                                      \
    WEFT__SET_GO(__COUNTER__, WEFT__SET_SPENDS, "", WEFT__NO_REF, opts, set, __VA_ARGS__)

#define WEFT__SET_GO(...) WEFT__SET_GO_(__VA_ARGS__)
#define WEFT__NO_REF      ((weft_task **)0)

#ifndef __cplusplus

#define weft_set_spawn(set, ...) weft_set_spawn_as((), set, __VA_ARGS__)
#define weft_set_spawn_as(opts, set, ...)                                                          \
    WEFT__SET_SPAWN(__COUNTER__, WEFT__SET_WAITS, "weft_set_spawn()", WEFT__NO_REF, opts, set,     \
                    __VA_ARGS__)
#define weft_set_spawn_ref(ref, set, ...)                                                          \
    WEFT__SET_SPAWN(__COUNTER__, WEFT__SET_WAITS, "weft_set_spawn_ref()", ref, (), set, __VA_ARGS__)
#define weft_set_try_spawn(set, ...) weft_set_try_spawn_as((), set, __VA_ARGS__)
#define weft_set_try_spawn_as(opts, set, ...)                                                      \
    WEFT__SET_SPAWN(__COUNTER__, WEFT__SET_TRIES, "", WEFT__NO_REF, opts, set, __VA_ARGS__)
#define weft_set_try_spawn_ref(ref, set, ...)                                                      \
    WEFT__SET_SPAWN(__COUNTER__, WEFT__SET_TRIES, "", ref, (), set, __VA_ARGS__)
#define weft_set_permit_spawn(set, ...) weft_set_permit_spawn_as((), set, __VA_ARGS__)
#define weft_set_permit_spawn_as(opts, set, ...)                                                   \
    WEFT__SET_SPAWN(__COUNTER__, WEFT__SET_SPENDS, "", WEFT__NO_REF, opts, set, __VA_ARGS__)

#define WEFT__SET_SPAWN(...) WEFT__SET_SPAWN_(__VA_ARGS__)

/* No options are NULL: a task without any is spawned by the shortest way. */
#define WEFT__OPTS_OR_NULL(...)                                                                    \
    (sizeof(#__VA_ARGS__) == 1 ? NULL : &(const weft_spawn_opts){__VA_ARGS__})

/* `1 ? into : set->weft_of` is the result's address, and a mismatch of the two types is the compiler's to report. */
#define WEFT__RESULT(set, into)  (1 ? (into) : (set)->weft_of)
#define WEFT__RESULT_BYTES(into) WEFT__SIZE(into)
#define WEFT__SET_TAKES(set, R, fn)                                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__((set)->weft_of), void *) ||             \
                       __builtin_types_compatible_p(__typeof__((set)->weft_of), R *),              \
                   #fn " does not return what this set is of")

/* The place of a weft_go or weft_spawn whose frame has room for `more` bytes behind it. */
#define WEFT__GO_SITE_AND(more, fn_name, R)                                                        \
    {weft__go_poll,                                                                                \
     fn_name,                                                                                      \
     __FILE__,                                                                                     \
     __LINE__,                                                                                     \
     WEFT__FRAME_AND(sizeof(struct weft__go_frame), more),                                         \
     offsetof(struct weft__go_frame, ret),                                                         \
     WEFT__BYTES(R),                                                                               \
     WEFT__SIGNED(R),                                                                              \
     WEFT__FIBER}
#define WEFT__SITE_AND(more, fn)                                                                   \
    {fn##_poll,                                                                                    \
     #fn,                                                                                          \
     __FILE__,                                                                                     \
     __LINE__,                                                                                     \
     WEFT__FRAME_AND(sizeof(struct fn), more),                                                     \
     offsetof(struct fn, ret),                                                                     \
     sizeof(WEFT__RET(fn)),                                                                        \
     WEFT__SIGNED(WEFT__RET(fn)),                                                                  \
     WEFT__STACKLESS}

/* A task of each kind; the names are numbered as those of weft_go and weft_spawn. */
#define WEFT__GO_AND(n, more, opts, fn, ...)                                                       \
    __extension__({                                                                                \
        typedef __typeof__((fn)(__VA_ARGS__)) weft__result##n;                                     \
        static const struct weft_site weft__site##n =                                              \
            WEFT__GO_SITE_AND(more, #fn, weft__result##n);                                         \
        const weft_call weft__call##n = WEFT__CHECKED_CALL(weft__result##n, fn, ##__VA_ARGS__);    \
        weft__go(&weft__site##n, &weft__call##n, opts);                                            \
    })
#define WEFT__SPAWN_AND(n, more, opts, fn, ...)                                                    \
    __extension__({                                                                                \
        WEFT__FITS(fn);                                                                            \
        static const struct weft_site weft__site##n = WEFT__SITE_AND(more, fn);                    \
        weft_task *weft__task##n = weft__task_new(&weft__site##n, opts);                           \
        if (weft__task##n) {                                                                       \
            *(struct fn *)weft__task_frame(weft__task##n) = WEFT__NEW(fn, __VA_ARGS__);            \
            weft__task##n = weft__task_start(weft__task##n);                                       \
        }                                                                                          \
        weft__task##n;                                                                             \
    })

#define WEFT__SET_GO_(n, ENTER, what, ref, opts, set, fn, ...)                                     \
    __extension__({                                                                                \
        WEFT__SET_TAKES(set, __typeof__((fn)(__VA_ARGS__)), fn);                                   \
        weft_set *weft__set##n = weft_set_of(set);                                                 \
        int weft__r##n = ENTER(what, weft__set##n);                                                \
        if (weft__r##n == 0) {                                                                     \
            const weft_spawn_opts *weft__opts##n = WEFT__OPTS_OR_NULL opts;                        \
            weft__r##n = weft__set_add(                                                            \
                weft__set##n,                                                                      \
                WEFT__GO_AND(n, WEFT__MEMBER_BYTES, weft__opts##n, fn, ##__VA_ARGS__),             \
                weft__opts##n, ref);                                                               \
        }                                                                                          \
        weft__r##n;                                                                                \
    })
#define WEFT__SET_SPAWN_(n, ENTER, what, ref, opts, set, fn, ...)                                  \
    __extension__({                                                                                \
        WEFT__SET_TAKES(set, WEFT__RET(fn), fn);                                                   \
        weft_set *weft__set##n = weft_set_of(set);                                                 \
        int weft__r##n = ENTER(what, weft__set##n);                                                \
        if (weft__r##n == 0) {                                                                     \
            const weft_spawn_opts *weft__opts##n = WEFT__OPTS_OR_NULL opts;                        \
            weft__r##n = weft__set_add(                                                            \
                weft__set##n,                                                                      \
                WEFT__SPAWN_AND(n, WEFT__MEMBER_BYTES, weft__opts##n, fn, ##__VA_ARGS__),          \
                weft__opts##n, ref);                                                               \
        }                                                                                          \
        weft__r##n;                                                                                \
    })

/* Awaited in order, `into` is checked, and its size filled in; by name, `bytes` is an argument like the others. */
#define WEFT__HOOK_weft_set_join_next ~, set_join_next
#define WEFT__NEW_set_join_next(fn, ...)                                                           \
    WEFT__CAT(WEFT__NEW_set_join_next_, WEFT__JOIN_FORM(__VA_ARGS__))(fn, __VA_ARGS__)
#define WEFT__NEW_set_join_next_whole(fn, ...) WEFT__NEW_plain(fn, __VA_ARGS__)
#define WEFT__NEW_set_join_next_sized(fn, set, into)                                               \
    ((struct fn){.weft__at = 0,                                                                    \
                 .weft_args = {},                                                                  \
                 set,                                                                              \
                 WEFT__RESULT(set, into),                                                          \
                 weft_join_by_name_takes_bytes_too(into)})

#else /* __cplusplus */

template <class T> static inline T *weft__result(T *of, T *into)
{
    (void)of;
    return into;
}
template <class T> static inline T *weft__result(T *of, decltype(nullptr))
{
    (void)of;
    return nullptr;
}
static inline void *weft__result(void *of, void *into)
{
    (void)of;
    return into;
}
template <class T> static constexpr size_t weft__result_bytes(T *)
{
    return sizeof(T);
}
static inline size_t weft__result_bytes(decltype(nullptr))
{
    return 0;
}
#define WEFT__RESULT(set, into)  weft__result(WEFT__OF(set), into)
#define WEFT__RESULT_BYTES(into) weft__result_bytes(into)

/* Is R the result of a set of `Of *`? */
template <class Of, class R> struct weft__set_takes {
    static constexpr bool ok = std::is_same<Of, R>::value || std::is_void<Of>::value;
};

#define WEFT__GO_SITE_AND(more, fn_name, kind)                                                     \
    {weft__go_poll,                                                                                \
     fn_name,                                                                                      \
     __FILE__,                                                                                     \
     __LINE__,                                                                                     \
     WEFT__FRAME_AND(sizeof(struct weft__go_frame), more),                                         \
     offsetof(struct weft__go_frame, ret),                                                         \
     kind::bytes,                                                                                  \
     kind::is_signed,                                                                              \
     WEFT__FIBER}
#define WEFT__GO_AND(n, more, opts, ...)                                                           \
    __extension__({                                                                                \
        using weft__kind##n =                                                                      \
            weft__in_a_word<decltype(weft__result_of(WEFT__FIRST(__VA_ARGS__)))>;                  \
        static const struct weft_site weft__site##n =                                              \
            WEFT__GO_SITE_AND(more, WEFT__TEXT(WEFT__FIRST(__VA_ARGS__)), weft__kind##n);          \
        weft__go_cpp(&weft__site##n, weft__bind(__VA_ARGS__), opts);                               \
    })
#define WEFT__SET_GO_(n, ENTER, what, ref, opts, set, ...)                                         \
    __extension__({                                                                                \
        static_assert(weft__set_takes<std::remove_pointer<decltype((set)->weft_of)>::type,         \
                                      decltype(weft__result_of(WEFT__FIRST(__VA_ARGS__)))>::ok,    \
                      "the function does not return what this set is of");                         \
        weft_set *weft__set##n = weft_set_of(set);                                                 \
        int weft__r##n = ENTER(what, weft__set##n);                                                \
        if (weft__r##n == 0) {                                                                     \
            const weft_spawn_opts weft__opts##n = weft_spawn_opts WEFT__BRACED opts;               \
            weft__r##n = weft__set_add(                                                            \
                weft__set##n, WEFT__GO_AND(n, WEFT__MEMBER_BYTES, &weft__opts##n, __VA_ARGS__),    \
                &weft__opts##n, ref);                                                              \
        }                                                                                          \
        weft__r##n;                                                                                \
    })
#define WEFT__BRACED(...) {__VA_ARGS__}
#endif

#endif
