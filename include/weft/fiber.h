/* SPDX-License-Identifier: MIT
 *
 * fiber - a plain function as a task with a stack of its own: weft_go(fn, args...).
 *
 *     weft_task *t = weft_go(delayed_sum, 3, 4);
 *     weft_task *t = weft_go_as((.name = "db", .stack_bytes = 1 << 20), serve, db);
 *
 * `fn` is any plain function of up to six integers and pointers that returns an integer, a pointer or nothing. The
 * arguments are checked against its prototype, as in a call; what the machine would pass in other registers (floating
 * point, structs, vectors) is refused by the compiler. Two things it cannot see: a parameter of __int128, and a value
 * that does not fit a parameter narrower than int. gcc also refuses an enum by value: let the parameter be an int.
 * An argument of floating point is converted as in a call, by way of int64_t.
 *
 * Whatever else a function takes or gives goes into a frame, and its body becomes a weft_fiber, which is spawned, run
 * and awaited as a stackless function is:
 *
 *     struct mid { WEFT_FRAME(struct point); struct point a, b; };
 *     static weft_fiber(mid) { f->ret = middle(f->a, f->b); }
 */
#ifndef WEFT_FIBER_H
#define WEFT_FIBER_H

#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plain function with its arguments, bound: up to six integers and pointers. */
typedef struct weft_call {
    void (*fn)(void);
    uint64_t arg[6];
    uint8_t ret_bytes; /* 0: void */
    uint8_t ret_signed;
} weft_call;

/* Starts a fiber that makes the call. `site` names it; its poll is weft__go_poll and its frame a weft__go_frame. */
WEFT_API weft_task *weft__go(const struct weft_site *site, const weft_call *call,
                             const weft_spawn_opts *opts) __attribute__((warn_unused_result));

/* The poll function of weft_go's tasks, and their frame: what a site of weft_go is filled with. */
struct weft__go_frame {
    int32_t weft__at;
    void *weft__fiber; /* here, on the line that a poll reads anyway */
    uint64_t ret;      /* the function's result, in its low ret_bytes */
    weft_call call;
};
WEFT_API weft_pollfn weft__go_poll;

/* The poll function of a weft_fiber frame: runs body(frame) on a stack of its own. What it keeps in frame->weft__at is
 * odd (future.h). */
WEFT_API weft_poll weft__fiber_poll(void (*body)(void *frame), void *frame, weft_cx *cx);

/* The place of a weft_go. Its result is the low bytes of a word, which come first on the machines we run on. */
#define WEFT__GO_SITE(fn_name, bytes, is_signed)                                                   \
    {weft__go_poll,                                                                                \
     fn_name,                                                                                      \
     __FILE__,                                                                                     \
     __LINE__,                                                                                     \
     sizeof(struct weft__go_frame),                                                                \
     offsetof(struct weft__go_frame, ret),                                                         \
     bytes,                                                                                        \
     is_signed,                                                                                    \
     WEFT__FIBER}

#ifndef __cplusplus

/* ---- weft_bind: the call as a value --------------------------------------------------------------------------------------
 *
 * weft_bind(add, 3, 4) is a weft_call. Each argument is evaluated once, and three things are checked, none of which
 * leaves code behind: the arguments against the prototype; that every parameter would also take a pointer, which is so
 * for integers and pointers alone; and the result's class. The name of the pointer is what the message shows. */
#define weft_bind(...)  WEFT__BIND(__COUNTER__, __VA_ARGS__)
#define WEFT__BIND(...) WEFT__BIND_(__VA_ARGS__)
#define WEFT__BIND_(n, fn, ...)                                                                    \
    __extension__({                                                                                \
        typedef __typeof__((fn)(__VA_ARGS__)) weft__result##n;                                     \
        WEFT__CHECKED_CALL(weft__result##n, fn, ##__VA_ARGS__);                                    \
    })
#define WEFT__CHECKED_CALL(R, fn, ...)                                                             \
    __extension__({                                                                                \
        WEFT__CALL_CHECKS(R, fn, ##__VA_ARGS__);                                                   \
        WEFT__CALL_VALUE(R, fn, ##__VA_ARGS__);                                                    \
    })

/* Apart, for who makes the call in the same block: a compound literal among the arguments lives as long as that. */
#define WEFT__CALL_CHECKS(R, fn, ...)                                                              \
    WEFT__PRAGMA(GCC diagnostic push)                                                              \
    WEFT__PRAGMA(GCC diagnostic ignored "-Wint-conversion")                                        \
    (void)sizeof(__typeof__((fn)(WEFT__EACH(WEFT__POINTER, ##__VA_ARGS__))) *);                    \
    WEFT__PRAGMA(GCC diagnostic pop)                                                               \
    _Static_assert(WEFT__IN_A_WORD(R, (fn)(__VA_ARGS__)),                                          \
                   "weft_go: " #fn " must return an integer, a pointer or void")
#define WEFT__CALL_VALUE(R, fn, ...)                                                               \
    (weft_call)                                                                                    \
    {                                                                                              \
        (void (*)(void))(fn), {WEFT__EACH(WEFT__WORD, ##__VA_ARGS__)}, WEFT__BYTES(R),             \
            WEFT__SIGNED(R)                                                                        \
    }

/* Function and arguments pass through `...` once before they meet a ##, which keeps macros from being expanded: a
 * weft_go may be an argument of a weft_go. */
#define weft_go(...)          WEFT__GO(__COUNTER__, NULL, __VA_ARGS__)
#define weft_go_as(opts, ...) WEFT__GO(__COUNTER__, WEFT__OPTS opts, __VA_ARGS__)

#define WEFT__GO(...) WEFT__GO_(__VA_ARGS__)
#define WEFT__GO_(n, opts, fn, ...)                                                                \
    weft__given(__extension__({                                                                    \
        typedef __typeof__((fn)(__VA_ARGS__)) weft__result##n;                                     \
        static const struct weft_site weft__site##n =                                              \
            WEFT__GO_SITE(#fn, WEFT__BYTES(weft__result##n), WEFT__SIGNED(weft__result##n));       \
        const weft_call weft__call##n = WEFT__CHECKED_CALL(weft__result##n, fn, ##__VA_ARGS__);    \
        weft__go(&weft__site##n, &weft__call##n, opts);                                            \
    }))

/* Never defined and never used: see weft_bind. */
extern void *weft_go_takes_integers_and_pointers_only;
#define WEFT__POINTER(arg) weft_go_takes_integers_and_pointers_only
#define WEFT__WORD(arg)    (uint64_t)(intptr_t)(arg) /* signed: a double below zero has no value as an unsigned one */
#define WEFT__IS_VOID(T)   _Generic((T *)0, void *: 1, default: 0)
#define WEFT__BYTES(T)     (WEFT__IS_VOID(T) ? 0 : __extension__ sizeof(T))

/* Classes 0 to 5 are void, integer, char, enumeration, boolean and pointer; 16 bytes are an __int128. */
#define WEFT__IN_A_WORD(T, value)                                                                  \
    (WEFT__BYTES(T) <= 8 &&                                                                        \
     __builtin_classify_type(__builtin_choose_expr(WEFT__IS_VOID(T), 0, value)) <= 5)

/* m(a), m(b), ... for up to six. The first parameter of WEFT__COUNT is there so that a list may be empty in C11. */
#define WEFT__EACH(m, ...)                           WEFT__CAT(WEFT__EACH_, WEFT__COUNT(m, ##__VA_ARGS__))(m, ##__VA_ARGS__)
#define WEFT__COUNT(m, ...)                          WEFT__COUNT_(m, ##__VA_ARGS__, TOO_MANY, 6, 5, 4, 3, 2, 1, 0)
#define WEFT__COUNT_(m, a, b, c, d, e, f, g, n, ...) n
#define WEFT__EACH_0(m)
#define WEFT__EACH_1(m, a)          m(a)
#define WEFT__EACH_2(m, a, ...)     m(a), WEFT__EACH_1(m, __VA_ARGS__)
#define WEFT__EACH_3(m, a, ...)     m(a), WEFT__EACH_2(m, __VA_ARGS__)
#define WEFT__EACH_4(m, a, ...)     m(a), WEFT__EACH_3(m, __VA_ARGS__)
#define WEFT__EACH_5(m, a, ...)     m(a), WEFT__EACH_4(m, __VA_ARGS__)
#define WEFT__EACH_6(m, a, ...)     m(a), WEFT__EACH_5(m, __VA_ARGS__)
#define WEFT__EACH_TOO_MANY(m, ...) weft_go_takes_at_most_six_arguments

/* ---- weft_fiber: an ordinary body over a frame -------------------------------------------------------------------------------
 *
 * The storage class in front goes to name_poll, as with weft_async. The body sees its frame as `f`, calls what it likes,
 * and has set f->ret when it returns. */
#define weft_fiber(fn)                                                                             \
    weft_poll fn##_poll(void *weft__p, weft_cx *weft__cx);                                         \
    static void fn##__body(struct fn *f);                                                          \
    static void fn##__enter(void *weft__p)                                                         \
    {                                                                                              \
        fn##__body((struct fn *)weft__p);                                                          \
    }                                                                                              \
    weft_poll fn##_poll(void *weft__p, weft_cx *weft__cx)                                          \
    {                                                                                              \
        return weft__fiber_poll(fn##__enter, weft__p, weft__cx);                                   \
    }                                                                                              \
    static void fn##__body(struct fn *f)

#endif /* !__cplusplus */

#ifdef __cplusplus
}

/* ---- the same for C++, where the compiler says which types they are -------------------------------------------------------------- */

#include <type_traits>

template <class T> struct weft__in_a_word {
    static constexpr bool ok =
        (std::is_integral<T>::value || std::is_pointer<T>::value || std::is_enum<T>::value) &&
        sizeof(T) <= 8;
    static constexpr uint16_t bytes = sizeof(T);
    static constexpr uint8_t is_signed = std::is_signed<T>::value && std::is_integral<T>::value;
};
template <> struct weft__in_a_word<void> {
    static constexpr bool ok = true;
    static constexpr uint16_t bytes = 0;
    static constexpr uint8_t is_signed = 0;
};
template <class T> static inline uint64_t weft__word(T value)
{
    static_assert(weft__in_a_word<T>::ok, "weft_go takes integers and pointers only");
    return (uint64_t)(value);
}
template <class T> static inline uint64_t weft__word(T *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* Arguments are converted to the parameters' types, which common_type keeps from being deduced from them. */
template <class R, class... P>
static inline weft_call weft__bind(R (*fn)(P...), typename std::common_type<P>::type... arg)
{
    static_assert(sizeof...(P) <= 6, "weft_go takes at most six arguments");
    static_assert(weft__in_a_word<R>::ok,
                  "weft_go: the function must return an integer, a pointer or void");
    return weft_call{(void (*)(void))fn,
                     {weft__word<P>(arg)...},
                     weft__in_a_word<R>::bytes,
                     weft__in_a_word<R>::is_signed};
}

/* Never defined: only its type is used. */
template <class R, class... P> R weft__result_of(R (*)(P...));

#define weft_bind(...)         weft__bind(__VA_ARGS__)
#define weft_go(...)           WEFT__GO(__COUNTER__, nullptr, __VA_ARGS__)
#define weft_go_as(opts, ...)  WEFT__GO(__COUNTER__, WEFT__OPTS opts, __VA_ARGS__)
#define WEFT__OPTS(...)        weft__address_of(weft_spawn_opts{__VA_ARGS__})
#define WEFT__FIRST(...)       WEFT__FIRST_(__VA_ARGS__, ~)
#define WEFT__FIRST_(one, ...) one
#define WEFT__TEXT(...)        WEFT__TEXT_(__VA_ARGS__)
#define WEFT__TEXT_(...)       #__VA_ARGS__
#define WEFT__GO(...)          WEFT__GO_(__VA_ARGS__)
#define WEFT__GO_(n, opts, ...)                                                                    \
    weft__given(__extension__({                                                                    \
        using weft__kind##n =                                                                      \
            weft__in_a_word<decltype(weft__result_of(WEFT__FIRST(__VA_ARGS__)))>;                  \
        static const struct weft_site weft__site##n = WEFT__GO_SITE(                               \
            WEFT__TEXT(WEFT__FIRST(__VA_ARGS__)), weft__kind##n::bytes, weft__kind##n::is_signed); \
        weft__go_cpp(&weft__site##n, weft__bind(__VA_ARGS__), opts);                               \
    }))
static inline weft_task *weft__go_cpp(const struct weft_site *site, const weft_call &call,
                                      const weft_spawn_opts *opts)
{
    return weft__go(site, &call, opts);
}
static inline const weft_spawn_opts *weft__address_of(const weft_spawn_opts &opts)
{
    return &opts;
}
#endif

#endif
