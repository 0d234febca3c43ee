/* SPDX-License-Identifier: MIT
 *
 * keyed - a task set whose members have keys: one task for each session, file or peer, found again by its key.
 *
 *     typedef WEFT_KEYED(uint64_t, int) session_set;     keys of one type, results of another, both type-checked
 *     session_set sessions = {0};
 *     r = weft_keyed_go(&sessions, &id, session, conn);              -EEXIST: there is one with this key
 *     r = weft_keyed_replace_go(&sessions, &id, session, conn);      that one is cancelled, and its result will not come out
 *     weft_keyed_cancel(&sessions, &id);                             asks one to stop
 *     while ((r = weft_keyed_join_next(&sessions, &id, &status)) > 0) gone(id, status);
 *
 * It is a set (set.h) in all else: who owns the members, in which order they come out, what giving up means. A key is in it from its spawn until its member is
 * taken out, so also when that has ended. Keys are copied, and compared byte by byte: a struct without holes, an integer, an array of bytes filled up with zeros.
 */
#ifndef WEFT_KEYED_H
#define WEFT_KEYED_H

#include <weft/set.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of type K, results of type T. The two pointers are there for their types; nobody reads them. */
#define WEFT_KEYED(K, T)                                                                           \
    struct {                                                                                       \
        size_t weft__none;                                                                         \
        void *weft__[22];                                                                          \
        T *weft_of;                                                                                \
        void *weft__table[12];                                                                     \
        K *weft_key;                                                                               \
    }

/* What they are inside; it begins as a set does. */
typedef struct weft_keyed {
    size_t weft__none;
    void *weft__[22];
    void *weft_of;
    void *weft__table[12];
    void *weft_key;
} weft_keyed;
#define weft_keyed_of(keyed) ((weft_keyed *)(void *)(keyed))

/* ---- in -----------------------------------------------------------------------------------------------------------------------
 *
 *     weft_keyed_go(keyed, &key, fn, args...)             weft_keyed_spawn(keyed, &key, fn, args...)
 *     weft_keyed_replace_go(keyed, &key, fn, args...)     weft_keyed_replace_spawn(keyed, &key, fn, args...)
 * and each of them with `_as` and options in front. They never wait. Context: anywhere. Copies *key. A frame is larger by 128 bytes and the key than that of a
 * plain spawn.
 * Returns 0; -EEXIST: there is one with this key, which goes on (the first two); -ENOMEM, -ENXIO, -ESHUTDOWN, -EINVAL as weft_set_go: nothing was started, and
 * nobody replaced. */

/* ---- one of them ---------------------------------------------------------------------------------------------------------------
 *
 * weft_keyed_cancel(keyed, &key): asks the member to stop; it comes out as any other. Returns 0; -ENOENT; -EINVAL for NULL.
 * weft_keyed_contains(keyed, &key): is there one, that runs or was not taken out? Both never wait. Context: anywhere. */
WEFT_API int weft__keyed_cancel(weft_keyed *keyed, const void *key, size_t bytes);
WEFT_API bool weft__keyed_contains(weft_keyed *keyed, const void *key, size_t bytes);

/* ---- out -------------------------------------------------------------------------------------------------------------------------
 *
 * weft_keyed_join_next(keyed, &key, &result): the next member that has ended, its key and its result; either pointer may be NULL.
 * Returns as weft_set_join_next. weft_keyed_try_join_next: the same at once; -EAGAIN: nobody has ended, but some run. */
struct weft_keyed_join_next {
    WEFT_FRAME(int);
    void *keyed;
    void *key;
    void *into;
    size_t bytes WEFT__ZERO; /* of *into */
    void *weft__waiter[3] WEFT__ZERO;
    void *weft__spare WEFT__ZERO;
};
WEFT_API weft_pollfn weft_keyed_join_next_poll;
WEFT_API int weft__keyed_join_next(weft_keyed *keyed, void *key, void *into, size_t bytes);
WEFT_API int weft__keyed_try_join_next(weft_keyed *keyed, void *key, void *into, size_t bytes);
#define WEFT__PROBES_weft_keyed_join_next ~, WEFT__ARM_PROBES

/* All of them, as of a set: weft_keyed_cancel_all, weft_keyed_join, weft_keyed_stop, weft_keyed_len; awaited as weft_set_join and weft_set_stop, of
 * weft_set_of(&f->keyed). weft_keyed_done ends it: nobody is in it, nobody waits, or it is a mistake that aborts; gives its memory back. NULL is nothing. */
WEFT_API void weft__keyed_done(weft_keyed *keyed);

/* ---- private: what the macros stand on --------------------------------------------------------------------------------------- */

/* A key whose task is being made; on the stack of who makes it. */
struct weft__keyed_place {
    void *weft__link[2];
    const void *key;
    bool replaces;
};
WEFT_API int weft__keyed_enter(weft_keyed *keyed, struct weft__keyed_place *place, const void *key,
                               size_t bytes, bool replaces);
WEFT_API int weft__keyed_add(weft_keyed *keyed, struct weft__keyed_place *place, weft_task *task,
                             const weft_spawn_opts *opts);

/* What a member has behind its frame: how it is found, its key, and what a set's has. */
#define WEFT__KEYED_BYTES(key_bytes) WEFT__FRAME_AND(48 + (key_bytes), WEFT__MEMBER_BYTES)

#ifdef __cplusplus
}
#endif

#define weft_keyed_done(keyed)       weft__keyed_done(weft_keyed_of(keyed))
#define weft_keyed_cancel_all(keyed) weft_set_cancel(keyed)
#define weft_keyed_len(keyed)        weft_set_len(keyed)
#define weft_keyed_join(keyed)                                                                     \
    (WEFT__CALL_FORM("weft_keyed_join()"), weft__set_join(weft_set_of(keyed)))
#define weft_keyed_stop(keyed)                                                                     \
    (WEFT__CALL_FORM("weft_keyed_stop()"), weft__set_stop(weft_set_of(keyed)))
#define weft_keyed_cancel(keyed, key)                                                              \
    weft__keyed_cancel(weft_keyed_of(keyed), WEFT__KEY(keyed, key), sizeof(*(keyed)->weft_key))
#define weft_keyed_contains(keyed, key)                                                            \
    weft__keyed_contains(weft_keyed_of(keyed), WEFT__KEY(keyed, key), sizeof(*(keyed)->weft_key))
#define weft_keyed_join_next(keyed, key, into)                                                     \
    (WEFT__CALL_FORM("weft_keyed_join_next()"),                                                    \
     weft__keyed_join_next(weft_keyed_of(keyed), WEFT__KEY_INTO(keyed, key),                       \
                           WEFT__RESULT(keyed, into), WEFT__RESULT_BYTES(into)))
#define weft_keyed_try_join_next(keyed, key, into)                                                 \
    weft__keyed_try_join_next(weft_keyed_of(keyed), WEFT__KEY_INTO(keyed, key),                    \
                              WEFT__RESULT(keyed, into), WEFT__RESULT_BYTES(into))

#define weft_keyed_go(keyed, key, ...) weft_keyed_go_as((), keyed, key, __VA_ARGS__)
#define weft_keyed_go_as(opts, keyed, key, ...)                                                    \
    WEFT__KEYED_GO(__COUNTER__, false, opts, keyed, key, __VA_ARGS__)
#define weft_keyed_replace_go(keyed, key, ...) weft_keyed_replace_go_as((), keyed, key, __VA_ARGS__)
#define weft_keyed_replace_go_as(opts, keyed, key, ...)                                            \
    WEFT__KEYED_GO(__COUNTER__, true, opts, keyed, key, __VA_ARGS__)
#define WEFT__KEYED_GO(...) WEFT__KEYED_GO_(__VA_ARGS__)

#ifndef __cplusplus
#define weft_keyed_spawn(keyed, key, ...) weft_keyed_spawn_as((), keyed, key, __VA_ARGS__)
#define weft_keyed_spawn_as(opts, keyed, key, ...)                                                 \
    WEFT__KEYED_SPAWN(__COUNTER__, false, opts, keyed, key, __VA_ARGS__)
#define weft_keyed_replace_spawn(keyed, key, ...)                                                  \
    weft_keyed_replace_spawn_as((), keyed, key, __VA_ARGS__)
#define weft_keyed_replace_spawn_as(opts, keyed, key, ...)                                         \
    WEFT__KEYED_SPAWN(__COUNTER__, true, opts, keyed, key, __VA_ARGS__)
#define WEFT__KEYED_SPAWN(...) WEFT__KEYED_SPAWN_(__VA_ARGS__)

/* A key's address; a mismatch of the types is the compiler's to report. */
#define WEFT__KEY(keyed, key)      (1 ? (key) : (const __typeof__(*(keyed)->weft_key) *)0)
#define WEFT__KEY_INTO(keyed, key) (1 ? (key) : (keyed)->weft_key)

#define WEFT__KEYED_GO_(n, replaces, opts, keyed, key, fn, ...)                                    \
    __extension__({                                                                                \
        WEFT__SET_TAKES(keyed, __typeof__((fn)(__VA_ARGS__)), fn);                                 \
        weft_keyed *weft__keyed##n = weft_keyed_of(keyed);                                         \
        struct weft__keyed_place weft__place##n;                                                   \
        int weft__r##n = weft__keyed_enter(weft__keyed##n, &weft__place##n, WEFT__KEY(keyed, key), \
                                           sizeof(*(keyed)->weft_key), replaces);                  \
        if (weft__r##n == 0) {                                                                     \
            const weft_spawn_opts *weft__opts##n = WEFT__OPTS_OR_NULL opts;                        \
            weft__r##n =                                                                           \
                weft__keyed_add(weft__keyed##n, &weft__place##n,                                   \
                                WEFT__GO_AND(n, WEFT__KEYED_BYTES(sizeof(*(keyed)->weft_key)),     \
                                             weft__opts##n, fn, ##__VA_ARGS__),                    \
                                weft__opts##n);                                                    \
        }                                                                                          \
        weft__r##n;                                                                                \
    })
#define WEFT__KEYED_SPAWN_(n, replaces, opts, keyed, key, fn, ...)                                 \
    __extension__({                                                                                \
        WEFT__SET_TAKES(keyed, WEFT__RET(fn), fn);                                                 \
        weft_keyed *weft__keyed##n = weft_keyed_of(keyed);                                         \
        struct weft__keyed_place weft__place##n;                                                   \
        int weft__r##n = weft__keyed_enter(weft__keyed##n, &weft__place##n, WEFT__KEY(keyed, key), \
                                           sizeof(*(keyed)->weft_key), replaces);                  \
        if (weft__r##n == 0) {                                                                     \
            const weft_spawn_opts *weft__opts##n = WEFT__OPTS_OR_NULL opts;                        \
            weft__r##n =                                                                           \
                weft__keyed_add(weft__keyed##n, &weft__place##n,                                   \
                                WEFT__SPAWN_AND(n, WEFT__KEYED_BYTES(sizeof(*(keyed)->weft_key)),  \
                                                weft__opts##n, fn, ##__VA_ARGS__),                 \
                                weft__opts##n);                                                    \
        }                                                                                          \
        weft__r##n;                                                                                \
    })

/* Awaited in order, key and result are checked, and the result's size filled in; by name, `bytes` is an argument like the others. */
#define WEFT__HOOK_weft_keyed_join_next ~, keyed_join_next
#define WEFT__NEW_keyed_join_next(fn, ...)                                                         \
    WEFT__CAT(WEFT__NEW_keyed_join_next_, WEFT__KEYED_FORM(__VA_ARGS__))(fn, __VA_ARGS__)
#define WEFT__KEYED_FORM(...)                       WEFT__KEYED_FORM_(__VA_ARGS__, whole, whole, sized, whole, whole, ~)
#define WEFT__KEYED_FORM_(a, b, c, d, e, form, ...) form
#define WEFT__NEW_keyed_join_next_whole(fn, ...)    WEFT__NEW_plain(fn, __VA_ARGS__)
#define WEFT__NEW_keyed_join_next_sized(fn, keyed, key, into)                                      \
    ((struct fn){.weft__at = 0,                                                                    \
                 .weft_args = {},                                                                  \
                 keyed,                                                                            \
                 WEFT__KEY_INTO(keyed, key),                                                       \
                 WEFT__RESULT(keyed, into),                                                        \
                 weft_join_by_name_takes_bytes_too(into)})
#else
template <class K> static inline const void *weft__key(K *, const K *key)
{
    return key;
}
#define WEFT__KEY_OF(keyed)        static_cast<decltype((keyed)->weft_key)>(nullptr)
#define WEFT__KEY(keyed, key)      weft__key(WEFT__KEY_OF(keyed), key)
#define WEFT__KEY_INTO(keyed, key) weft__result(WEFT__KEY_OF(keyed), key)
#define WEFT__KEYED_GO_(n, replaces, opts, keyed, key, ...)                                        \
    __extension__({                                                                                \
        static_assert(weft__set_takes<std::remove_pointer<decltype((keyed)->weft_of)>::type,       \
                                      decltype(weft__result_of(WEFT__FIRST(__VA_ARGS__)))>::ok,    \
                      "the function does not return what this set is of");                         \
        weft_keyed *weft__keyed##n = weft_keyed_of(keyed);                                         \
        struct weft__keyed_place weft__place##n;                                                   \
        int weft__r##n = weft__keyed_enter(weft__keyed##n, &weft__place##n, WEFT__KEY(keyed, key), \
                                           sizeof(*(keyed)->weft_key), replaces);                  \
        if (weft__r##n == 0) {                                                                     \
            const weft_spawn_opts weft__opts##n = weft_spawn_opts WEFT__BRACED opts;               \
            weft__r##n =                                                                           \
                weft__keyed_add(weft__keyed##n, &weft__place##n,                                   \
                                WEFT__GO_AND(n, WEFT__KEYED_BYTES(sizeof(*(keyed)->weft_key)),     \
                                             &weft__opts##n, __VA_ARGS__),                         \
                                &weft__opts##n);                                                   \
        }                                                                                          \
        weft__r##n;                                                                                \
    })
#endif

#endif
