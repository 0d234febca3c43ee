/* SPDX-License-Identifier: MIT
 *
 * future - a struct with a poll function, and stackless functions, which are futures that read like code.
 *
 * A future does nothing until it is polled. A poll answers WEFT_READY, and then the result is in the struct; or
 * WEFT_PENDING, and then somebody holds the waker and will have it polled again. A stackless function is such a
 * struct (its frame) and a body that picks up where it left off:
 *
 *     struct twice {
 *         WEFT_FRAME(int);                    resume point and result, `.ret`
 *         int a;                              arguments, then whatever must survive an await
 *         struct weft_yield pause;            what it awaits lives inside it
 *     };
 *     static weft_async(twice)                its frame is `f`
 *     {
 *         weft_begin;
 *         weft_await(f->pause, weft_yield);
 *         if (f->pause.ret < 0) weft_return(f->pause.ret);
 *         weft_return(2 * f->a);
 *         weft_end;
 *     }
 *
 * What must be known:
 * - An await is a statement. It works inside loops and a `switch` of yours, and several fit on one line.
 * - Locals do not survive an await: keep them in the frame. Those declared before weft_begin are made anew at each
 *   poll. Debug builds of the library scribble over the dead stack before each poll, so that a stale one fails at once.
 *   No variable-length array and no variable with a cleanup attribute may be in scope at an await: clang refuses, gcc
 *   says nothing.
 * - A frame is a plain value until its first poll; from then on it must not move until it is READY.
 * - Arguments are given by name (`.a = 1`) or in order; one that is left out is zero.
 * - What is polled must be polled until it is READY: no started future is given up.
 *
 * ---- What it expands to -------------------------------------------------------------------------------------------
 *
 *     static weft_poll twice_poll(void *, weft_cx *);          the word in front of weft_async goes here
 *     weft_poll twice_poll(void *frame, weft_cx *cx) { return twice__body(frame, cx, (char *)twice_poll); }
 *     static weft_poll twice__body(struct twice *f, weft_cx *cx, const char *base)
 *     {
 *         if (f->weft__at) goto *(&&top + ((struct weft__await *)(base + f->weft__at))->resume);
 *     top:
 *         f->pause = (struct weft_yield){ 0 };                                       // weft_await: the child begins,
 *         static const struct weft__await here = { &&resume - &&top, __LINE__, offsetof(struct twice, pause), ... };
 *         f->weft__at = (char *)&here - base;                                        // the place is noted,
 *     resume:
 *         if (weft_yield_poll(&f->pause, cx) == WEFT_PENDING) return WEFT_PENDING;   // and each poll comes back here
 *         ...
 *         { f->ret = 2 * f->a; goto end; }                                           // weft_return
 *     end:
 *         return WEFT_READY;                                                         // weft_end
 *     }
 *
 * The resume point is four bytes: the distance from the poll function to a static record of the await. The record
 * holds the label to jump to, and beside it the line, the callee and where in the frame its frame lies. So whoever
 * knows a frame and its poll function, a debugger or a console in another process too, can tell what it awaits, and
 * what that awaits in turn ("Await chains" below).
 *
 * Rejected: `switch (f->line) { case __LINE__: }`, which breaks inside a user's switch and for two awaits on a line; a
 * label's address in the frame, which is eight bytes, and tells nothing to anybody outside.
 */
#ifndef WEFT_FUTURE_H
#define WEFT_FUTURE_H

#include <weft/api.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the poll protocol -------------------------------------------------------------------------------------------- */

/* What a poll is given: waker, reason to stop, budget. Valid during the poll. */
typedef struct weft_cx weft_cx;

typedef enum { WEFT_PENDING, WEFT_READY } weft_poll;
typedef weft_poll weft_pollfn(void *frame, weft_cx *cx);

/* The right to have one task polled again: one word, copied freely. It holds no reference; weft_waker_ref gives one
 * that does. */
typedef struct weft_waker {
    uintptr_t word;
} weft_waker;

/* Why to stop: 0, -ECANCELED, or -ETIME. A leaf that has done nothing yet settles with it. Costs budget when not 0. */
WEFT_API int weft_cx_cancelled(weft_cx *cx);

/* The waker of the task that polls. Valid until this poll's frame settles. */
WEFT_API weft_waker weft_cx_waker(weft_cx *cx);

/* Have the task polled again. Context: anywhere but in a signal handler; any thread. Never blocks. */
WEFT_API void weft_waker_wake(weft_waker waker);

/* The same from a signal handler, whatever thread it interrupts, and whatever that was doing: no lock, no memory, and errno
 * stays. The waker is one of weft_waker_ref, kept until the handler cannot run any more. */
WEFT_API void weft_waker_wake_signal(weft_waker waker);

/* A waker that keeps its task's memory alive, also beyond its runtime's end, for who stores it beyond the poll without
 * taking it back; weft_waker_unref ends it. Gives a reference. Returns a waker of word 0 if the task has 65,535
 * already; waking that does nothing. */
WEFT_API weft_waker weft_waker_ref(weft_waker waker);
WEFT_API void weft_waker_unref(weft_waker waker);

/* ---- frames --------------------------------------------------------------------------------------------------------
 *
 * WEFT_FRAME(T) opens a frame whose result is a T, `.ret`. WEFT_ITEMS(T) opens that of a generator: `.item` is a T, and
 * `.ret` is 1 with each item, 0 at the end, or an errno.
 *
 * `weft__at` belongs to weft_async. A future that is written by hand leaves it 0, or keeps an odd number there: the
 * distance to an await record is always even, so the two cannot be taken for each other.
 * `weft_args` has no size. It is where arguments in order begin: an initialiser that has just named it goes on with
 * the member that follows. C++ has neither a need nor a syntax for it; the layout is the same. */
#ifdef __cplusplus
#define WEFT_FRAME(T)                                                                              \
    int32_t weft__at = {};                                                                         \
    T ret = {}
#define WEFT_ITEMS(T)                                                                              \
    int32_t weft__at = {};                                                                         \
    int ret = {};                                                                                  \
    T item = {}
#define WEFT__ZERO = {} /* behind a private member: g++ then does not miss its initialiser */
#else
#define WEFT_FRAME(T)                                                                              \
    int32_t weft__at;                                                                              \
    T ret;                                                                                         \
    __extension__ char weft_args[0]
#define WEFT_ITEMS(T)                                                                              \
    int32_t weft__at;                                                                              \
    int ret;                                                                                       \
    T item;                                                                                        \
    __extension__ char weft_args[0]
#define WEFT__ZERO
#endif

/* ---- private: small tools of the macros ---------------------------------------------------------------------------- */

#define WEFT__CAT(a, b)     WEFT__CAT_(a, b)
#define WEFT__CAT_(a, b)    a##b
#define WEFT__BARE(...)     __VA_ARGS__ /* WEFT__BARE (.a = 1, .b = 2): the parentheses are gone */
#define WEFT__PRAGMA(words) _Pragma(#words)

/* A call form begins with this. weft_begin declares a struct weft__where of its own, of another size, so inside a
 * weft_async body the fact is false and the message is what the compiler prints. A tag is used because tags, unlike
 * variables and constants, may be declared again in a block without a warning. In C++ the run-time check remains. */
struct weft__where {
    char fiber_or_thread;
};
#ifdef __cplusplus
#define WEFT__CALL_FORM(what) ((void)0)
#else
#define WEFT__CALL_FORM(what)                                                                      \
    ((void)sizeof(struct {                                                                         \
        char weft__;                                                                               \
        _Static_assert(sizeof(struct weft__where) == 1,                                            \
                       what " is for fibers and threads; in a weft_async body, await it");         \
    }))
#endif

#ifndef __cplusplus /* from here to the await chains: C++ has co_await */

/* A frame with its arguments. Which ones an operation takes is usually a matter of its struct's members alone. Where
 * the macro should add something, WEFT__HOOK_<name> is defined as `~, <word>`, and WEFT__NEW_<word> makes the frame. */
#define WEFT__NEW(fn, ...)          WEFT__NEW_BY(WEFT__HOOK(WEFT__HOOK_##fn, plain, ~), fn, __VA_ARGS__)
#define WEFT__NEW_BY(word, ...)     WEFT__CAT(WEFT__NEW_, word)(__VA_ARGS__)
#define WEFT__HOOK(...)             WEFT__SECOND(__VA_ARGS__)
#define WEFT__SECOND(one, two, ...) two
#define WEFT__NEW_plain(fn, ...)    ((struct fn){.weft__at = 0, .weft_args = {}, __VA_ARGS__})
/* One that remembers who called: locks. */
#define WEFT__NEW_told(fn, ...)                                                                    \
    ((struct fn){.weft__at = 0, .weft__caller = WEFT__CALLER, .weft_args = {}, __VA_ARGS__})

/* ---- a stackless body ----------------------------------------------------------------------------------------------- */

/* Differences of labels are constant only while a body exists once: it is neither inlined nor cloned. */
#ifdef __clang__
#define WEFT__ONCE __attribute__((noinline))
#else
#define WEFT__ONCE __attribute__((noinline, noclone))
#endif

/* The storage class in front of weft_async meets the first declaration, and so goes to name_poll. A header that offers
 * the function says `struct name { ... }; weft_pollfn name_poll;`.
 * `name__base` is name_poll by a name that always means the one of this file: an exported name_poll may, seen from
 * inside a shared library, be an entry of the program's that jumps here, and too far away for 32 bits. It is aligned,
 * as the await records are, which leaves the low bits of the distance zero. */
#define weft_async(fn)                                                                             \
    weft_poll fn##_poll(void *weft__p, weft_cx *weft__cx);                                         \
    static weft_poll fn##__base(void *weft__p, weft_cx *weft__cx)                                  \
        __attribute__((alias(#fn "_poll")));                                                       \
    static weft_poll fn##__body(struct fn *f, weft_cx *weft__cx, uintptr_t weft__base);            \
    __attribute__((aligned(16))) weft_poll fn##_poll(void *weft__p, weft_cx *weft__cx)             \
    {                                                                                              \
        return fn##__body((struct fn *)weft__p, weft__cx, (uintptr_t)fn##__base);                  \
    }                                                                                              \
    static WEFT__ONCE weft_poll fn##__body(struct fn *f, weft_cx *weft__cx, uintptr_t weft__base)

/* The first statement behind the declarations. */
#define weft_begin                                                                                 \
    struct weft__where {                                                                           \
        char weft_async_body[2];                                                                   \
    };                                                                                             \
    typedef __typeof__(*f) weft__frame;                                                            \
    weft__frame *const weft__f = f;                                                                \
    (void)weft__cx;                                                                                \
    if (f->weft__at) goto *(void *)(WEFT__LABEL(weft__top) + WEFT__RECORD(f->weft__at)->resume);   \
    weft__top:                                                                                     \
    (void)0

/* The last statement. Polled once more, a function that is over is READY again, with the same result. */
#define weft_end                                                                                   \
    weft__end:                                                                                     \
    WEFT__MARK(weft__end, -1, WEFT__OVER, NULL, NULL)                                              \
    return WEFT_READY

#define weft_return(...)                                                                           \
    do {                                                                                           \
        f->ret = (__VA_ARGS__);                                                                    \
        goto weft__end;                                                                            \
    } while (0)

/* ---- await ----------------------------------------------------------------------------------------------------------- */

/* Begin `fn` in the frame `child`, with the arguments, and wait for its end; its result is `child.ret`. */
#define weft_await(child, fn, ...)                                                                 \
    do {                                                                                           \
        WEFT__LIVES_ON(child);                                                                     \
        (child) = WEFT__NEW(fn, __VA_ARGS__);                                                      \
        WEFT__UNTIL(child, WEFT__INSIDE, fn, fn##_poll(&(child), weft__cx) == WEFT_READY);         \
    } while (0)

/* The same with the child's frame on the heap: recursion. `box` is a pointer in the frame, struct fn *. What comes of
 * it, -ENOMEM included, is weft_unbox(box), which frees.
 * Each poll calls through all levels, for 64 bytes of stack a level, or 144 where nothing is optimised: 50,000 levels fit
 * on a thread of 8 MiB. What goes deeper spawns and joins: that waits without a stack. */
#define weft_await_boxed(box, fn, ...)                                                             \
    do {                                                                                           \
        WEFT__LIVES_ON(box);                                                                       \
        (box) = (struct fn *)malloc(sizeof(struct fn));                                            \
        if (box) {                                                                                 \
            *(box) = WEFT__NEW(fn, __VA_ARGS__);                                                   \
            WEFT__UNTIL(box, WEFT__BOXED, fn, fn##_poll((box), weft__cx) == WEFT_READY);           \
        }                                                                                          \
    } while (0)

#define weft_unbox(box)                                                                            \
    __extension__({                                                                                \
        __typeof__((box)->ret) weft__ret = (box) ? (box)->ret : (__typeof__((box)->ret))(-ENOMEM); \
        free(box);                                                                                 \
        (box) = NULL;                                                                              \
        weft__ret;                                                                                 \
    })

/* ---- generators ------------------------------------------------------------------------------------------------------ */

/* In a generator's body: hand one item out. Behind it, f->ret is 0, or why to stop if whoever took the items has had
 * enough: a generator that awaits nothing looks at it. A body that is over with f->ret 0 has come to its end. */
#define weft_emit(...)                                                                             \
    do {                                                                                           \
        __label__ weft__resume;                                                                    \
        f->item = (__VA_ARGS__);                                                                   \
        f->ret = 1;                                                                                \
        WEFT__MARK(weft__resume, -1, WEFT__EMITTED, NULL, NULL)                                    \
        return WEFT_READY;                                                                         \
    weft__resume:                                                                                  \
        f->ret = weft_cx_cancelled(weft__cx);                                                      \
    } while (0)

/* Make a frame ready to begin, without beginning: a generator's, before its first item is asked for. Any context. */
#define weft_start(frame, fn, ...) ((void)((frame) = WEFT__NEW(fn, __VA_ARGS__)))

/* Wait for the next item: child.ret is 1 and child.item is there; 0 at the end; or an errno. */
#define weft_await_next(child, fn)                                                                 \
    do {                                                                                           \
        WEFT__LIVES_ON(child);                                                                     \
        WEFT__UNTIL(child, WEFT__INSIDE, fn, fn##_poll(&(child), weft__cx) == WEFT_READY);         \
    } while (0)

/* Leave a generator early: its awaits answer -ECANCELED until it has come to its end. Items that it still emits are
 * dropped. Nothing happens to one that never began or is over. */
#define weft_await_settled(child, fn)                                                              \
    do {                                                                                           \
        WEFT__LIVES_ON(child);                                                                     \
        WEFT__UNTIL(child, WEFT__INSIDE, fn, WEFT__STOPPED(child, fn));                            \
    } while (0)
#define WEFT__STOPPED(child, fn)                                                                   \
    __extension__({                                                                                \
        weft_poll weft__p = WEFT_READY;                                                            \
        if ((child).weft__at) do {                                                                 \
                weft__p = weft__poll_stop(fn##_poll, &(child), weft__cx);                          \
            } while (weft__p == WEFT_READY && (child).ret > 0);                                    \
        weft__p == WEFT_READY;                                                                     \
    })

/* The next item for fibers and threads: the same three answers. */
#define weft_next(frame, fn)                                                                       \
    (WEFT__CALL_FORM("weft_next()"), weft__run(fn##_poll, &(frame)), (frame).ret)

/* ---- private: how an await is noted ------------------------------------------------------------------------------------ */

#define WEFT__LABEL(label) ((char *)(&&label))
#define WEFT__RECORD(at)   ((const struct weft__await *)(weft__base + (uintptr_t)(intptr_t)(at)))

/* Note the place, then poll until the condition holds. */
#define WEFT__UNTIL(child, kind, fn, ...)                                                          \
    do {                                                                                           \
        __label__ weft__resume;                                                                    \
        WEFT__MARK(weft__resume, WEFT__OFFSET(child), kind, fn##_poll, #fn)                        \
    weft__resume:                                                                                  \
        if (!(__VA_ARGS__)) return WEFT_PENDING;                                                   \
    } while (0)

/* A static initialiser wants a constant, and `&f->child - f` is none while f is a variable. So for the length of this
 * block `f` is an array, of which only addresses are used: from -O1 on nothing of it remains. A child that is picked
 * at run time, f->kids[f->i], has no constant place: its record says -1. */
#define WEFT__MARK(label, child_at, how, callee_poll, callee_name)                                 \
    {                                                                                              \
        WEFT__PRAGMA(GCC diagnostic push)                                                          \
        WEFT__PRAGMA(GCC diagnostic ignored "-Wshadow")                                            \
        static weft__frame f[1] __attribute__((unused));                                           \
        WEFT__PRAGMA(GCC diagnostic pop)                                                           \
        static const struct weft__await weft__here = {                                             \
            .resume = (int32_t)(WEFT__LABEL(label) - WEFT__LABEL(weft__top)),                      \
            .line = __LINE__,                                                                      \
            .child = child_at,                                                                     \
            .kind = how,                                                                           \
            .poll = callee_poll,                                                                   \
            .callee = callee_name,                                                                 \
            .file = __FILE__,                                                                      \
        };                                                                                         \
        weft__f->weft__at = (int32_t)((intptr_t)&weft__here - (intptr_t)weft__base);               \
    }
#define WEFT__OFFSET(child)                                                                        \
    (__builtin_constant_p((char *)&(child) - (char *)f) ? (int32_t)((char *)&(child) - (char *)f)  \
                                                        : -1)

/* A child on the stack of this poll would be gone after the first suspension. For f->child the question is answered at
 * compile time from -O1 on; anything else goes to the library, which knows the stack and refuses what lies there. */
#define WEFT__LIVES_ON(child)                                                                      \
    ((uintptr_t)&(child) - (uintptr_t)f < sizeof(*f)                                               \
         ? (void)0                                                                                 \
         : weft__child_elsewhere(&(child), __builtin_dwarf_cfa(), __FILE__, __LINE__))

#endif /* !__cplusplus */

/* `child` lies outside of the frame that awaits it. Returns if that is memory that stays; if it is the poll's own stack,
 * which ends at `stack_end`, it names the place and aborts. */
WEFT_API void weft__child_elsewhere(const void *child, const void *stack_end, const char *file,
                                    int line);

/* Polls with a reason to stop: -ECANCELED, unless there is one already. */
WEFT_API weft_poll weft__poll_stop(weft_pollfn *poll, void *frame, weft_cx *cx);

/* Poll a frame to its end, from a fiber (which is suspended meanwhile) or a plain thread (which blocks).
 * Returns 0; -EDEADLK inside a poll: then the frame was not polled. */
WEFT_API int weft__run(weft_pollfn *poll, void *frame);

/* A call form that becomes part of its caller, with its frame on the caller's stack: behind a wait there is a return less. On a stack that was left and come back to, the
 * processor predicts each of them wrongly, and one is a quarter of a hand-over between fibers. `call`: its name; what follows `params` sets the frame's arguments. */
#ifdef __cplusplus
#define WEFT__NO_FRAME {}
#else
#define WEFT__NO_FRAME {0}
#endif
#define WEFT__CALLED(type, call, name, params, ...)                                                \
    static inline type call params                                                                 \
    {                                                                                              \
        struct name weft__f = WEFT__NO_FRAME;                                                      \
        __VA_ARGS__;                                                                               \
        int weft__r = weft__run(name##_poll, &weft__f);                                            \
        return weft__r < 0 ? weft__r : weft__f.ret;                                                \
    }

/* ---- await chains --------------------------------------------------------------------------------------------------
 *
 * Given a frame that is suspended and its poll function (of a task: both are known from its site), the walk is
 *
 *     for (const struct weft__await *at; (at = weft__await_of(poll, frame)); poll = at->poll) {
 *         ... at->file, at->line, at->callee ...
 *         frame = weft__await_child(at, frame);
 *         if (!frame) break;
 *     }
 *
 * From another process, or of a task that may run meanwhile, the same reads go through a fault-proof copy. The walk ends
 * at a leaf, whose `weft__at` is 0 or odd. */
enum weft__await_kind {
    WEFT__INSIDE,  /* the child's frame lies in this one, at `child` */
    WEFT__BOXED,   /* a pointer to it does */
    WEFT__EMITTED, /* a generator between two items; nothing is awaited */
    WEFT__OVER,    /* the function has ended */
};

/* The static record of one place that suspends. Layout is read from outside the process. */
struct weft__await {
    int32_t resume; /* where to go on: distance from the body's first label */
    uint32_t line;
    int32_t child;      /* the callee's frame in this one; -1: none, or chosen at run time */
    uint32_t kind;      /* enum weft__await_kind */
    weft_pollfn *poll;  /* the callee; NULL: nothing is awaited */
    const char *callee; /* its name */
    const char *file;
};

static inline const struct weft__await *weft__await_of(weft_pollfn *poll, const void *frame)
{
    int32_t at = *(const int32_t *)frame;

    if (at == 0 || at % 2 != 0) return NULL;
    return (const struct weft__await *)((uintptr_t)poll + (uintptr_t)(intptr_t)at);
}

static inline const void *weft__await_child(const struct weft__await *at, const void *frame)
{
    const char *child = (const char *)frame + at->child;

    if (!at->poll || at->child < 0) return NULL;
    return at->kind == WEFT__BOXED ? *(const void *const *)(const void *)child : child;
}

#ifdef __cplusplus
}
#endif

#endif
