/* SPDX-License-Identifier: MIT
 *
 * select - several operations at once, inside of one task: the first to finish, all of them, one after the other.
 *
 *     struct weft_wait t; struct weft_token_wait quit;   a frame per arm, whose .ret is the arm's result
 *     switch (weft_select(weft_arm(t, weft_wait, task), weft_arm(quit, weft_token_wait, &stop))) {
 *     case 0: ...                                        the index of the first to finish
 *     case 1: ...
 *     default: return which;                             -ECANCELED, -ETIME: nothing happened, the select was stopped
 *     }
 *     weft_await(f->sel, weft_select, .arm = {weft_arm(f->t, weft_wait, f->task), ...});      stackless: f->sel.ret
 *
 * An ARM is any operation or function, of either kind, with a frame to run in. What they share:
 * - Arms run in the task that awaits them, in turns; nothing is spawned.
 * - An arm that has begun is never left alone: before a combinator returns, those that lost are told to stop, and awaited.
 *   Their .ret is -ECANCELED (or why the whole was stopped), or their result if they finished all the same. An arm that never
 *   began took nothing: its frame holds its arguments, and .ret says the same if it is a signed integer.
 * - To stop a combinator is to stop its arms. Combinators are arms like others, and nest.
 * - Arm frames lie where the combinator's own does: in the frame of a stackless function, on the stack of a fiber or thread.
 */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arms ------------------------------------------------------------------------------------------------------------------
 *
 *     weft_arm(frame, fn, args...)      begin `fn` in `frame`, with the arguments, by name or in order
 *     weft_case(fn, args...)            the same in a frame without a name, which lives as long as the block around it: for calls, where nobody
 *                                       asks for .ret. Not for stackless bodies, and not in C++, which have no such place
 *     weft_when(condition, arm)         the arm, if the condition holds; else one that is passed over, its frame untouched
 *     weft_keep(frame, fn)              an arm that goes on from round to round of a loop: a timer, an interval or a token, which
 *                                       hold nothing. Begin it by weft_start(frame, fn, args...); losing, it is not stopped. Once over,
 *                                       a tick goes on to the next, a token stays over, and so does a sleep until it is begun anew, or
 *                                       moved by weft_sleep_reset. Behind the loop, on every path: weft_settle(frame, fn), or
 *                                       weft_await_settled.
 *     weft_otherwise                    of a select: what happens if no other arm is ready at once
 */
typedef struct weft_future {
    weft_pollfn *poll; /* NULL: passed over */
    void *frame;       /* borrowed until the combinator is over; of weft_keep until it is settled */
    uint16_t ret_at;   /* where in the frame the result lies */
    uint16_t ret_bytes;
    uint8_t ret_signed;
    uint8_t kind;                   /* enum weft__arm_kind, or'ed */
    uint8_t weft__state WEFT__ZERO; /* the combinator's, as the next */
    uint8_t weft__told WEFT__ZERO;  /* why to stop, so far: bits */
} weft_future;

enum weft__arm_kind {
    WEFT__ARM_PROBES =
        1,              /* it knows what a probe is, and answers one without registering anything */
    WEFT__ARM_KEPT = 2, /* not stopped when it loses */
    WEFT__ARM_OTHERWISE = 4, /* wins if nobody else does at once */
    WEFT__ARM_NESTS = 8, /* a combinator: probed with a reason to stop, it refuses its own arms */
};

/* Arms of a stackless combinator; of weft_race and of the calls there may be any number. */
#define WEFT_ARMS_MAX 8

/* Which operations know the probe, and which may be kept, is said beside them: WEFT__PROBES_<name> is `~, kind`, WEFT__KEEPS_<name>
 * is `~, 1`. All others need to know nothing. */
#ifdef __cplusplus
#define WEFT__HOOK(...)             WEFT__SECOND(__VA_ARGS__)
#define WEFT__SECOND(one, two, ...) two
#endif
#define WEFT__PROBES(fn)        WEFT__HOOK(WEFT__PROBES_##fn, 0, ~)
#define WEFT__KEEPS(fn)         WEFT__HOOK(WEFT__KEEPS_##fn, 0, ~)
#define WEFT__PROBES_weft_wait  ~, WEFT__ARM_PROBES
#define WEFT__PROBES_weft_yield ~, WEFT__ARM_PROBES
#define WEFT__ARM_COMBINES      (WEFT__ARM_PROBES | WEFT__ARM_NESTS)

#ifndef __cplusplus
#define weft_arm(child, fn, ...)                                                                   \
    (WEFT__ARM_LIVES_ON(child), (child) = WEFT__NEW(fn, __VA_ARGS__),                              \
     WEFT__FUTURE(child, fn, WEFT__PROBES(fn)))
#define weft_case(fn, ...)                                                                         \
    (WEFT__CALL_FORM("weft_case()"),                                                               \
     WEFT__FUTURE(*(struct fn[1]){WEFT__NEW(fn, __VA_ARGS__)}, fn, WEFT__PROBES(fn)))
#define weft_keep(child, fn)                                                                       \
    (WEFT__KEEPABLE(child, fn), WEFT__ARM_LIVES_ON(child),                                         \
     WEFT__FUTURE(child, fn, WEFT__PROBES(fn) | WEFT__ARM_KEPT))
#define weft_when(condition, ...) ((condition) ? (__VA_ARGS__) : (weft_future){.poll = NULL})
#define weft_otherwise            ((weft_future){.poll = weft__otherwise_poll, .kind = WEFT__ARM_OTHERWISE})

#define WEFT__FUTURE(child, fn, its_kind)                                                          \
    ((weft_future){.poll = fn##_poll,                                                              \
                   .frame = &(child),                                                              \
                   .ret_at = offsetof(struct fn, ret),                                             \
                   .ret_bytes = sizeof(WEFT__RET(fn)),                                             \
                   .ret_signed = WEFT__SIGNED(WEFT__RET(fn)),                                      \
                   .kind = (its_kind)})

#define WEFT__KEEPABLE(child, fn)                                                                  \
    ((void)sizeof(struct {                                                                         \
         char weft__;                                                                              \
         _Static_assert(WEFT__KEEPS(fn),                                                           \
                        "weft_keep: " #fn                                                          \
                        " may hold something; only timers, intervals and tokens are kept");        \
     }),                                                                                           \
     (void)sizeof(&(child) == (struct fn *)0))

/* In a stackless body, an arm on the poll's own stack is refused as any awaited frame is. Most lie far from it. */
#define WEFT__ARM_LIVES_ON(child)                                                                  \
    (sizeof(struct weft__where) == 1 ||                                                            \
             (uintptr_t)__builtin_dwarf_cfa() - (uintptr_t)&(child) > 65536                        \
         ? (void)0                                                                                 \
         : weft__child_elsewhere(&(child), __builtin_dwarf_cfa(), __FILE__, __LINE__))
#endif

/* Stop what weft_start began, and wait until it has settled; nothing happens to one that never began or is over. For fibers
 * and threads; awaited: weft_await_settled(f->child, fn). Not to be stopped itself. */
#define weft_settle(frame, fn)                                                                     \
    (WEFT__CALL_FORM("weft_settle()"), weft__settle(fn##_poll, &(frame), &(frame).weft__at))
WEFT_API weft_pollfn weft__otherwise_poll;
WEFT_API int weft__settle(weft_pollfn *poll, void *frame, const int32_t *at);

/* ---- select -------------------------------------------------------------------------------------------------------------------
 *
 * The first arm to finish wins; the others are stopped and awaited. Which one is looked at first is drawn anew each time, so
 * that none starves; with .biased (weft_select_biased) they are looked at in order, which is cheaper and lets the first
 * ones starve the last. First all are asked whether they are ready at once; only then is anything registered.
 * Returns the winner's index; -ECANCELED, -ETIME: it was stopped, and nothing happened (a stopped select whose arm finished
 * all the same returns that arm's index); -EINVAL: all arms are passed over; -EDEADLK in a stackless poll. First polled when
 * the task is told to stop already, it begins nothing. */
struct weft__selecting {
    int32_t won WEFT__ZERO; /* 1 + the winner's index; 0: none yet */
    int32_t why WEFT__ZERO; /* it was stopped */
    uint32_t stage WEFT__ZERO;
    uint32_t running WEFT__ZERO; /* arms that are not passed over */
};

struct weft_select {
    WEFT_FRAME(int);
    weft_future arm[WEFT_ARMS_MAX];
    bool biased;
    struct weft__selecting weft__s WEFT__ZERO;
};
WEFT_API weft_pollfn weft_select_poll;
WEFT_API int weft__select(weft_future *arms, size_t count, bool biased);

/* The same over an array of any length, which is borrowed. */
struct weft_race {
    WEFT_FRAME(int);
    weft_future *arms;
    size_t count;
    bool biased;
    struct weft__selecting weft__s WEFT__ZERO;
};
WEFT_API weft_pollfn weft_race_poll;
#define weft_race(arms, count) (WEFT__CALL_FORM("weft_race()"), weft__select(arms, count, false))

/* ---- all of them ----------------------------------------------------------------------------------------------------------------
 *
 * weft_all waits until every arm is over. Returns 0; or why it was stopped, if an arm gave up for that; the results are the
 * arms'. weft_try_all stops the others as soon as one has failed (its result is a signed integer below zero), and returns that
 * failure, the first; else as weft_all. Each wake polls all arms that are not over: for many, spawn tasks. */
struct weft__gathering {
    int32_t failed WEFT__ZERO;
    int32_t why WEFT__ZERO;
    uint32_t next WEFT__ZERO; /* the arm that is polled first */
    uint32_t spare WEFT__ZERO;
};

struct weft_all {
    WEFT_FRAME(int);
    weft_future arm[WEFT_ARMS_MAX];
    struct weft__gathering weft__s WEFT__ZERO;
};
WEFT_API weft_pollfn weft_all_poll;

struct weft_try_all {
    WEFT_FRAME(int);
    weft_future arm[WEFT_ARMS_MAX];
    struct weft__gathering weft__s WEFT__ZERO;
};
WEFT_API weft_pollfn weft_try_all_poll;
WEFT_API int weft__all(weft_future *arms, size_t count, bool fail_fast);

/* ---- one after the other ---------------------------------------------------------------------------------------------------------
 *
 * weft_then begins the next arm when the one before it is over and did not fail. Returns 0; or the first failure: arms behind
 * it never begin. Their arguments are taken when the arms are written down: what one leaves to the next goes by a pointer. */
struct weft_then {
    WEFT_FRAME(int);
    weft_future arm[WEFT_ARMS_MAX];
    uint32_t weft__next[4] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_then_poll;
WEFT_API int weft__then(weft_future *arms, size_t count);

#define WEFT__PROBES_weft_select  ~, WEFT__ARM_COMBINES
#define WEFT__PROBES_weft_race    ~, WEFT__ARM_COMBINES
#define WEFT__PROBES_weft_all     ~, WEFT__ARM_NESTS
#define WEFT__PROBES_weft_try_all ~, WEFT__ARM_NESTS
#define WEFT__PROBES_weft_then    ~, WEFT__ARM_NESTS

#ifndef __cplusplus
/* The arms of a call live as long as the block it stands in. */
#define WEFT__ARMS(...)                                                                            \
    (weft_future[]){__VA_ARGS__}, sizeof((weft_future[]){__VA_ARGS__}) / sizeof(weft_future)
#define weft_select(...)                                                                           \
    (WEFT__CALL_FORM("weft_select()"), weft__select(WEFT__ARMS(__VA_ARGS__), false))
#define weft_select_biased(...)                                                                    \
    (WEFT__CALL_FORM("weft_select_biased()"), weft__select(WEFT__ARMS(__VA_ARGS__), true))
#define weft_all(...) (WEFT__CALL_FORM("weft_all()"), weft__all(WEFT__ARMS(__VA_ARGS__), false))
#define weft_try_all(...)                                                                          \
    (WEFT__CALL_FORM("weft_try_all()"), weft__all(WEFT__ARMS(__VA_ARGS__), true))
#define weft_then(...) (WEFT__CALL_FORM("weft_then()"), weft__then(WEFT__ARMS(__VA_ARGS__)))
#endif

#ifdef __cplusplus
}

/* ---- the same for C++: arguments in order --------------------------------------------------------------------------------------- */

#include <type_traits>

template <class F> static inline weft_future weft__future(weft_pollfn *poll, F *frame, int kind)
{
    typedef decltype(F::ret) R;
    return weft_future{poll,
                       frame,
                       (uint16_t)((char *)&frame->ret - (char *)frame),
                       (uint16_t)sizeof(R),
                       (uint8_t)(std::is_signed<R>::value && std::is_integral<R>::value),
                       (uint8_t)kind};
}
template <class F, class... A> static inline void weft__begin(F &frame, A... args)
{
    frame = F{0, {}, args...};
}
template <class F, bool keeps>
static inline weft_future weft__kept(weft_pollfn *poll, F *frame, int kind)
{
    static_assert(keeps,
                  "weft_keep: this may hold something; only timers, intervals and tokens are kept");
    return weft__future(poll, frame, kind | WEFT__ARM_KEPT);
}
template <class... A> static inline int weft__select_of(bool biased, A... arm)
{
    weft_future arms[] = {arm...};
    return weft__select(arms, sizeof...(arm), biased);
}
template <class... A> static inline int weft__all_of(bool fail_fast, A... arm)
{
    weft_future arms[] = {arm...};
    return weft__all(arms, sizeof...(arm), fail_fast);
}
template <class... A> static inline int weft__then_of(A... arm)
{
    weft_future arms[] = {arm...};
    return weft__then(arms, sizeof...(arm));
}
#define weft_arm(child, fn, ...)                                                                   \
    (weft__begin(child, ##__VA_ARGS__), weft__future(fn##_poll, &(child), WEFT__PROBES(fn)))
#define weft_keep(child, fn)                                                                       \
    weft__kept<struct fn, (WEFT__KEEPS(fn) != 0)>(fn##_poll, &(child), WEFT__PROBES(fn))
#define weft_start(frame, fn, ...) weft__begin<struct fn>(frame, ##__VA_ARGS__)
#define weft_when(condition, ...)                                                                  \
    ((condition) ? (__VA_ARGS__) : weft_future{nullptr, nullptr, 0, 0, 0, 0})
#define weft_otherwise          (weft_future{weft__otherwise_poll, nullptr, 0, 0, 0, WEFT__ARM_OTHERWISE})
#define weft_select(...)        weft__select_of(false, __VA_ARGS__)
#define weft_select_biased(...) weft__select_of(true, __VA_ARGS__)
#define weft_all(...)           weft__all_of(false, __VA_ARGS__)
#define weft_try_all(...)       weft__all_of(true, __VA_ARGS__)
#define weft_then(...)          weft__then_of(__VA_ARGS__)
#endif

#endif
