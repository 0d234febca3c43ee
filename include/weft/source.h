/* SPDX-License-Identifier: MIT
 *
 * source - one way to ask for the next of anything: weft_pull; and sources, which functions can take without knowing what is behind them.
 *
 *     while ((r = weft_pull(jobs, &job)) > 0) work(&job);       a channel, an interval, a task set, a delay queue, a source:
 *                                                               above 0: there is one; 0: the end; or an errno
 *     weft_await(f->pull, weft_pull, f->jobs, &f->job);         stackless
 *
 *     struct weft_from rx = weft_from(jobs);                    a source over any of these,
 *     struct weft_filter odd = weft_filter(&rx.source, is_odd, NULL);
 *     struct weft_chunks some = weft_chunks(&odd.source, 16, weft_ms(10));       and others around it
 *     while ((n = weft_pull(&some.source, batch)) > 0) store(batch, n);
 *
 * A source is a struct of yours with a poll function: no heap. One task at a time pulls. Between two pulls nothing is registered anywhere, so that a source
 * may be left at any time; what lies around another source pins it.
 * GIVEN UP  A pull that is told to stop, or loses in a select, loses nothing: what was taken by then is the answer, or kept for the next pull.
 * ITEMS  are checked by their type where there is one, else by their size: -EINVAL. docs/STREAMS.md has more.
 */
#ifndef WEFT_SOURCE_H
#define WEFT_SOURCE_H

#include <weft/cast.h>
#include <weft/chan.h>
#include <weft/delay.h>
#include <weft/set.h>
#include <weft/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a source ---------------------------------------------------------------------------------------------------------------
 *
 * One of your own begins with this: .source = {.poll = my_poll, .item_bytes = sizeof(struct item)}. Its poll is asked for one item, with the same `into`
 * until it has answered READY: source->ret is 1, and *into is the item; 0 at the end; or an errno. Told to stop (weft_cx_cancelled) it answers READY at
 * once, or as soon as what it has begun is over. Then it may be asked for the next. */
typedef struct weft_source weft_source;
typedef weft_poll weft_source_poll(weft_source *source, void *into, weft_cx *cx);

struct weft_source {
    weft_source_poll *poll;
    size_t item_bytes;
    int ret WEFT__ZERO;
    int weft__probes WEFT__ZERO;
    void *weft_of WEFT__ZERO; /* for its type, which is any */
};

/* ---- pull ---------------------------------------------------------------------------------------------------------------------
 *
 * weft_pull(from, &item): the next item, waiting until there is one. `from` is a channel, a set (the results of its members), a delay queue, an interval
 * (items are the times of its ticks, a weft_time), or a weft_source.
 * Returns above 0: it is in *item (of weft_chunks: so many are); 0: the end; -ECANCELED, -ETIME: told to stop, nothing was taken; -EINVAL for NULL, and for an item of
 * another size; -EDEADLK in a stackless poll (call form); and what the source itself answers. */
enum weft__pull_kind {
    WEFT__PULL_SOURCE,
    WEFT__PULL_CHAN,
    WEFT__PULL_DELAY,
    WEFT__PULL_SET,
    WEFT__PULL_INTERVAL
};

struct weft_pull {
    WEFT_FRAME(int);
    void *from;
    void *into;
    size_t bytes; /* of *into */
    int kind;     /* enum weft__pull_kind */
    int weft__spare WEFT__ZERO;
    union {
        void *weft__none;
        struct weft_recv weft__recv;
        struct weft_tick weft__tick;
        struct weft_delay_next weft__delay;
        struct weft_set_join_next weft__set;
    } weft__u WEFT__ZERO;
};
WEFT_API weft_pollfn weft_pull_poll;
WEFT_API int weft__pull(int kind, void *from, void *into, size_t bytes);
#define WEFT__PROBES_weft_pull ~, WEFT__ARM_PROBES

/* ---- sources over what there is -------------------------------------------------------------------------------------------------
 *
 * weft_from(from): whatever weft_pull takes. weft_from_generator(frame, fn): one that weft_start has made ready to begin (future.h); left early, it is
 * settled as any generator is. Told to stop while it makes an item it comes to its end by that, as all functions do: behind a pull that was given up, or lost in a weft_merge, or was
 * late in a weft_within or weft_chunks, there is nothing more to come of it. */
struct weft_from {
    weft_source source;
    struct weft_pull weft__pull;
};
WEFT_API void weft__from_init(struct weft_from *source, int kind, void *from, size_t bytes);

struct weft_from_generator {
    weft_source source;
    weft_pollfn *weft__poll;
    void *weft__frame;
    const int *weft__ret;
    const void *weft__item;
};
WEFT_API weft_source_poll weft__from_generator_poll;

/* weft_from_broadcast(cast, &at), weft_from_watch(watch, &seen): what a cursor hears or sees (cast.h), which is borrowed as long as the source; -EOVERFLOW is an
 * answer of a pull, and at.missed says how many are gone. (weft_pull takes neither: there would be no cursor.) */
struct weft_from_cast {
    weft_source source;
    void *weft__cast;
    weft_cursor *weft__at;
    struct weft_broadcast_recv weft__recv; /* of a watch the same by another name */
};
WEFT_API void weft__from_cast_init(struct weft_from_cast *source, weft_cast *cast, weft_cursor *at,
                                   size_t bytes, bool watches);
#define weft_from_broadcast(cast, at)                                                              \
    weft__from_cast(WEFT__CAST(cast), at, sizeof(*(cast)->weft_of), false)
#define weft_from_watch(watch, seen)                                                               \
    weft__from_cast(WEFT__CAST(watch), seen, sizeof(*(watch)->weft_of), true)

/* ---- sources around others --------------------------------------------------------------------------------------------------------
 *
 * Each has a member `source`, borrows the one it stands around, and passes its end and its errors on. */

/* weft_filter(of, fn, ctx): fn(ctx, item) looks at each item, and may change it. Above 0: it is passed on; 0: it is dropped; below: the answer of this pull. */
struct weft_filter {
    weft_source source;
    weft_source *of;
    int (*fn)(void *ctx, void *item);
    void *ctx;
};
WEFT_API void weft__filter_init(struct weft_filter *source, weft_source *of,
                                int (*fn)(void *ctx, void *item), void *ctx);
#define weft_filter(of, fn, ctx) weft__filter(of, fn, ctx)

/* weft_map(of, fn, ctx, &in, Out): items of another type: fn(ctx, in, into) makes an Out of what is in *in, whose type is that of the items of `of`. It
 * answers as of weft_filter. *in is borrowed as long as the source. Of an item that is borrowed itself (a line: incoming.h) fn copies what is to last. */
struct weft_map {
    weft_source source;
    weft_source *of;
    int (*fn)(void *ctx, const void *in, void *into);
    void *ctx;
    void *in;
    size_t in_bytes;
};
WEFT_API void weft__map_init(struct weft_map *source, weft_source *of,
                             int (*fn)(void *ctx, const void *in, void *into), void *ctx, void *in,
                             size_t in_bytes, size_t out_bytes);
#define weft_map(of, fn, ctx, in, Out) weft__map(of, fn, ctx, in, sizeof(*(in)), sizeof(Out))

/* weft_take(of, count): so many items, then the end. */
struct weft_take {
    weft_source source;
    weft_source *of;
    uint64_t left;
};
WEFT_API void weft__take_init(struct weft_take *source, weft_source *of, uint64_t count);
#define weft_take(of, count) weft__take(of, count)

/* weft_merge(of, count, late): the items of several, whichever comes first, all served alike; the end when all have ended. `of` is an array of pointers to at
 * most 64 sources, which are made by then, and `late` one of as many items, for what comes from two at once; both are borrowed as long as the source. */
struct weft_merge {
    weft_source source;
    weft_source *const *of;
    size_t count;
    void *late;
    uint64_t weft__begun; /* a bit for each: asked for an item */
    uint64_t weft__ended;
    uint64_t weft__late; /* there is one in `late`, or an error in its `ret` */
    uint32_t weft__next; /* whose turn it is */
    int weft__won;
};
WEFT_API void weft__merge_init(struct weft_merge *source, weft_source *const *of, size_t count,
                               void *late, size_t late_bytes);
#define weft_merge(of, count, late) weft__merge(of, count, late, sizeof(*(late)))

/* weft_chunks(of, max, ns): up to `max` items at once, into an array; the answer is how many. A chunk is complete when it is full, when `ns` have passed since its
 * first item (WEFT_FOREVER: never mind), at the end, at an error, which is the next answer, and when the pull is told to stop: it is never lost. Of items that are
 * borrowed until the next pull (lines: incoming.h) there are no chunks: -EINVAL. Around chunks stand weft_take (so many chunks), weft_within and weft_throttle; to the others, which
 * have room for one item, they are -EINVAL. */
struct weft_chunks {
    weft_source source;
    weft_source *of;
    uint32_t max;
    uint32_t weft__count;
    weft_time ns;
    int weft__after; /* the answer behind the chunk, if it is known */
    bool weft__knows;
    bool weft__begun;
    bool weft__late;
    struct weft_sleep weft__sleep;
};
WEFT_API void weft__chunks_init(struct weft_chunks *source, weft_source *of, uint32_t max,
                                weft_time ns);
#define weft_chunks(of, max, ns) weft__chunks(of, max, ns)

/* weft_within(of, ns): each item within `ns` of its pull, or else the answer is -ETIME; the next pull goes on. */
struct weft_within {
    weft_source source;
    weft_source *of;
    weft_time ns;
    bool weft__begun;
    bool weft__late;
    struct weft_sleep weft__sleep;
};
WEFT_API void weft__within_init(struct weft_within *source, weft_source *of, weft_time ns);
#define weft_within(of, ns) weft__within(of, ns)

/* weft_throttle(of, ns): `ns` between one item and the next, at least. */
struct weft_throttle {
    weft_source source;
    weft_source *of;
    weft_time ns;
    weft_time weft__next;
    bool weft__begun;
    struct weft_sleep_until weft__sleep;
};
WEFT_API void weft__throttle_init(struct weft_throttle *source, weft_source *of, weft_time ns);
#define weft_throttle(of, ns) weft__throttle(of, ns)

#ifdef __cplusplus
}
#endif

/* ---- private: sources as values ------------------------------------------------------------------------------------------------------- */

static inline struct weft_from weft__from(int kind, void *from, size_t bytes)
{
    struct weft_from source;
    weft__from_init(&source, kind, from, bytes);
    return source;
}
static inline struct weft_filter weft__filter(weft_source *of, int (*fn)(void *ctx, void *item),
                                              void *ctx)
{
    struct weft_filter source;
    weft__filter_init(&source, of, fn, ctx);
    return source;
}
static inline struct weft_map weft__map(weft_source *of,
                                        int (*fn)(void *ctx, const void *in, void *into), void *ctx,
                                        void *in, size_t in_bytes, size_t out_bytes)
{
    struct weft_map source;
    weft__map_init(&source, of, fn, ctx, in, in_bytes, out_bytes);
    return source;
}
static inline struct weft_take weft__take(weft_source *of, uint64_t count)
{
    struct weft_take source;
    weft__take_init(&source, of, count);
    return source;
}
static inline struct weft_merge weft__merge(weft_source *const *of, size_t count, void *late,
                                            size_t late_bytes)
{
    struct weft_merge source;
    weft__merge_init(&source, of, count, late, late_bytes);
    return source;
}
static inline struct weft_chunks weft__chunks(weft_source *of, uint32_t max, weft_time ns)
{
    struct weft_chunks source;
    weft__chunks_init(&source, of, max, ns);
    return source;
}
static inline struct weft_within weft__within(weft_source *of, weft_time ns)
{
    struct weft_within source;
    weft__within_init(&source, of, ns);
    return source;
}
static inline struct weft_throttle weft__throttle(weft_source *of, weft_time ns)
{
    struct weft_throttle source;
    weft__throttle_init(&source, of, ns);
    return source;
}

static inline struct weft_from_cast weft__from_cast(weft_cast *cast, weft_cursor *at, size_t bytes,
                                                    bool watches)
{
    struct weft_from_cast source;
    weft__from_cast_init(&source, cast, at, bytes, watches);
    return source;
}

/* ---- private: what is behind a pointer -------------------------------------------------------------------------------------------------
 *
 * Typed channels, delay queues and sets are structs without a name; their sizes tell them apart. */
#define WEFT__PULL_WITHOUT_CURSOR                                                                  \
    "weft_pull takes no broadcast or watch: weft_from_broadcast, weft_from_watch have a cursor"
#ifndef __cplusplus
_Static_assert(sizeof(weft_source) != sizeof(weft_cast), "their sizes tell them apart");
_Static_assert(sizeof(weft_interval) != sizeof(weft_cast), "as above");
#define WEFT__PULL_KIND(from)                                                                      \
    ((void)sizeof(struct {                                                                         \
         char weft__;                                                                              \
         _Static_assert(sizeof(*(from)) != sizeof(weft_cast), WEFT__PULL_WITHOUT_CURSOR);          \
     }),                                                                                           \
     (int)_Generic((from),                                                                         \
         weft_source *: WEFT__PULL_SOURCE,                                                         \
         weft_interval *: WEFT__PULL_INTERVAL,                                                     \
         default: sizeof(*(from)) == sizeof(weft_chan) ? WEFT__PULL_CHAN                           \
         : sizeof(*(from)) == sizeof(weft_delay)       ? WEFT__PULL_DELAY                          \
                                                       : WEFT__PULL_SET))

/* A pointer of the items' type, for its type alone: it is not evaluated. */
#define WEFT__ITEM(from)                                                                           \
    _Generic((from),                                                                               \
        weft_interval *: (weft_time *)0,                                                           \
        default: ((__typeof__(_Generic((from),                                                     \
                                  weft_interval *: (weft_source *)0,                               \
                                  default: (from))))(void *)(from))                                \
            ->weft_of)
#define WEFT__PULL_INTO(from, into) (1 ? (into) : WEFT__ITEM(from))

#define weft_pull(from, into)                                                                      \
    (WEFT__CALL_FORM("weft_pull()"), weft__pull(WEFT__PULL_KIND(from), (void *)(from),             \
                                                WEFT__PULL_INTO(from, into), WEFT__SIZE(into)))
#define weft_from(from)                                                                            \
    weft__from(WEFT__PULL_KIND(from), (void *)(from), WEFT__SIZE(WEFT__ITEM(from)))

#define weft_from_generator(frame, fn)                                                             \
    ((struct weft_from_generator){                                                                 \
        .source = {.poll = weft__from_generator_poll, .item_bytes = sizeof((frame)->item)},        \
        .weft__poll = fn##_poll,                                                                   \
        .weft__frame = (frame),                                                                    \
        .weft__ret = &(frame)->ret,                                                                \
        .weft__item = &(frame)->item})

/* Awaited in order, the item is checked, and what it comes from is filled in. */
#define WEFT__HOOK_weft_pull ~, pull
#define WEFT__NEW_pull(fn, its_from, its_into)                                                     \
    ((struct fn){.from = (its_from),                                                               \
                 .into = WEFT__PULL_INTO(its_from, its_into),                                      \
                 .bytes = WEFT__SIZE(its_into),                                                    \
                 .kind = WEFT__PULL_KIND(its_from)})
#else
template <class F> struct weft__pull_kind_of {
    static_assert(sizeof(F) != sizeof(weft_cast), WEFT__PULL_WITHOUT_CURSOR);
    static constexpr int kind = sizeof(F) == sizeof(weft_chan)    ? WEFT__PULL_CHAN
                                : sizeof(F) == sizeof(weft_delay) ? WEFT__PULL_DELAY
                                                                  : WEFT__PULL_SET;
};
template <> struct weft__pull_kind_of<weft_source> {
    static constexpr int kind = WEFT__PULL_SOURCE;
};
template <> struct weft__pull_kind_of<weft_interval> {
    static constexpr int kind = WEFT__PULL_INTERVAL;
};
template <class F, class T> static inline int weft__pull_cpp(F *from, T *into)
{
    return weft__pull(weft__pull_kind_of<F>::kind, from, weft__result(WEFT__OF(from), into),
                      sizeof(T));
}
template <class T> static inline int weft__pull_cpp(weft_source *from, T *into)
{
    return weft__pull(WEFT__PULL_SOURCE, from, into, sizeof(T));
}
static inline int weft__pull_cpp(weft_interval *from, weft_time *into)
{
    return weft__pull(WEFT__PULL_INTERVAL, from, into, sizeof(*into));
}
template <class F> static inline struct weft_from weft__from_cpp(F *from)
{
    return weft__from(weft__pull_kind_of<F>::kind, from, sizeof(*from->weft_of));
}
static inline struct weft_from weft__from_cpp(weft_interval *from)
{
    return weft__from(WEFT__PULL_INTERVAL, from, sizeof(weft_time));
}
#define weft_pull(from, into) weft__pull_cpp(from, into)
#define weft_from(from)       weft__from_cpp(from)
#endif

#endif
