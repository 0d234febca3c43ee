/* SPDX-License-Identifier: MIT
 *
 * blocking - a plain function on a thread that may block: weft_blocking(fn, args...).
 *
 *     r = weft_blocking(resize_image, path);                                   fibers and threads
 *     weft_await(f->job, weft_blocking, weft_bind(resize_image, f->path));     stackless; then f->job.ret
 *     r = weft_blocking_as((.lane = dns), resolve, &query);
 *
 * `fn` is as for weft_go, of up to six integers and pointers, and returns a signed integer: below zero is an errno. It
 * runs on a thread of the runtime's blocking pool, as on a plain thread that has entered the runtime: it may block,
 * spawn, and wait. The task that asked waits, and its worker does not.
 *
 * GIVEN UP  A job that has not begun is withdrawn: it never runs, and the answer is -ECANCELED (or -ETIME) at once. One
 * that has begun borrows what its arguments point at, so it is waited for, and the answer is what it returned. A job
 * that may last too long for that is *given* its first argument, by `.dispose`:
 *
 *     struct lookup *q = lookup_new(host);
 *     r = weft_blocking_as((.dispose = lookup_dispose), lookup_run, q);
 *     if (r == -ECANCELED || r == -ETIME) return r;       q is not ours any more
 *     ...
 *     lookup_free(q);                                     whatever else the answer is, it is
 *
 * Given up, it settles at once, whether it has begun or not, and dispose(q, ret) is called, once: `ret` is what the
 * function returned, or why it never ran. So these two answers always mean that the argument is gone, also where the
 * function itself returned them; and with any other answer it is still the caller's. dispose runs on a thread of the
 * pool or on the caller's; it neither waits nor fails.
 *
 * Returns what fn returned; -ECANCELED, -ETIME as above; -EAGAIN, -ENOMEM: no thread could be started, and there is none
 * (while there is one, a job waits for it); -ENOMEM: no memory for a job that is given its argument; -ESHUTDOWN: the runtime
 * stops, and the caller is no task of it; -ENXIO: no runtime; -ECHILD: it stayed with the parent of a fork; -EINVAL: no
 * function, one whose result is no signed integer, a lane of another runtime than `.rt`; -EDEADLK in a stackless poll.
 * Called on a thread of the pool that runs a job of the same lane, it calls fn right there.
 */
#ifndef WEFT_BLOCKING_H
#define WEFT_BLOCKING_H

#include <weft/fiber.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A queue with a bound of its own. Jobs of one lane never wait for those of another: its threads
 * come in addition to those of the others, and `blocking_threads` (rt.h) is the bound of the jobs
 * that name no lane. */
typedef struct weft_lane weft_lane;

/* Gives a lane of `rt` (NULL: the current one) that runs at most `threads` jobs at once. Borrows:
 * `name` for the call; it stands in messages, cut to 15 bytes.
 * Returns 0; -EINVAL: no threads; -ENOMEM; -ENXIO, -ECHILD, -ESHUTDOWN as above. */
WEFT_API int weft_lane_new(weft_rt *rt, const char *name, unsigned threads, weft_lane **into);

/* Takes the lane. No job may be waiting in it; those that run may go on, it goes behind the last.
 * Not freed, it goes with its runtime; behind the runtime's stop it must not be. NULL is fine. */
WEFT_API void weft_lane_free(weft_lane *lane);

typedef struct weft_blocking_opts {
    weft_lane *lane WEFT__ZERO; /* NULL: the common one */
    void (*dispose)(void *arg,
                    int64_t ret) WEFT__ZERO; /* the job is given its first argument; NULL: it borrows */
    weft_rt *rt WEFT__ZERO;                  /* NULL: the lane's, else the current one */
    const char *name WEFT__ZERO; /* for messages; borrowed while the job runs. NULL: the function's */
} weft_blocking_opts;

struct weft_blocking {
    WEFT_FRAME(int64_t);
    weft_call call; /* weft_bind(fn, args...) */
    weft_lane *lane;
    void (*dispose)(void *arg, int64_t ret);
    weft_rt *rt;
    const char *name;
    void *weft__job[12] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_blocking_poll;

/* The call form. Borrows all. */
WEFT_API int64_t weft__blocking(const weft_call *call, const char *name,
                                const weft_blocking_opts *opts);

#ifndef __cplusplus
#define weft_blocking(...) WEFT__BLOCKING(__COUNTER__, NULL, __VA_ARGS__)
#define weft_blocking_as(opts, ...)                                                                \
    WEFT__BLOCKING(__COUNTER__, WEFT__BLOCKING_OPTS opts, __VA_ARGS__)

#define WEFT__BLOCKING_OPTS(...) (&(const weft_blocking_opts){__VA_ARGS__})
#define WEFT__BLOCKING(...)      WEFT__BLOCKING_(__VA_ARGS__)
#define WEFT__BLOCKING_(n, opts, fn, ...)                                                          \
    __extension__({                                                                                \
        WEFT__CALL_FORM("weft_blocking()");                                                        \
        typedef __typeof__((fn)(__VA_ARGS__)) weft__result##n;                                     \
        _Static_assert(WEFT__SIGNED(weft__result##n),                                              \
                       "weft_blocking: " #fn                                                       \
                       " must return a signed integer, so that an error can be told");             \
        WEFT__CALL_CHECKS(weft__result##n, fn, ##__VA_ARGS__);                                     \
        const weft_call weft__call##n = WEFT__CALL_VALUE(weft__result##n, fn, ##__VA_ARGS__);      \
        (weft__result##n) weft__blocking(&weft__call##n, #fn, opts);                               \
    })
#endif

#ifdef __cplusplus
}

template <class R, class... P>
static inline R weft__blocking_cpp(const char *name, const weft_blocking_opts *opts, R (*fn)(P...),
                                   typename std::common_type<P>::type... arg)
{
    static_assert(
        weft__in_a_word<R>::is_signed,
        "weft_blocking: the function must return a signed integer, so that an error can be told");
    const weft_call call = weft__bind(fn, arg...);
    return (R)weft__blocking(&call, name, opts);
}
static inline const weft_blocking_opts *weft__address_of(const weft_blocking_opts &opts)
{
    return &opts;
}
#define weft_blocking(...)                                                                         \
    weft__blocking_cpp(WEFT__TEXT(WEFT__FIRST(__VA_ARGS__)), nullptr, __VA_ARGS__)
#define weft_blocking_as(opts, ...)                                                                \
    weft__blocking_cpp(WEFT__TEXT(WEFT__FIRST(__VA_ARGS__)), WEFT__BLOCKING_OPTS opts, __VA_ARGS__)
#define WEFT__BLOCKING_OPTS(...) weft__address_of(weft_blocking_opts{__VA_ARGS__})
#endif

#endif
