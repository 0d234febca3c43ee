/* SPDX-License-Identifier: MIT
 *
 * api - what the headers need of the compiler.
 */
#ifndef WEFT_API_H
#define WEFT_API_H

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#error "weft needs gcc 12 or clang 16, or newer: its headers use GNU extensions"
#endif

/* Where a call stands, "file.c:12": for messages about mistakes that are noticed elsewhere. */
#define WEFT__CALLER         __FILE__ WEFT__CALLER_LINE(__LINE__)
#define WEFT__CALLER_LINE(n) WEFT__CALLER_TEXT(n)
#define WEFT__CALLER_TEXT(n) ":" #n

/* WEFT__AS(type, pointer), WEFT__INTO(type, into): as a pointer to `type`, or to a place for one, from the typed kin of that, which has no name: what it is is told by
 * its size. WEFT__AS_PART: also from what begins as one. Another kind of thing does not compile; a pointer to void does. */
#ifndef __cplusplus
#define WEFT__SIZED(pointer, as, type)                                                             \
    ((void)sizeof(struct {                                                                         \
        char weft__;                                                                               \
        _Static_assert(sizeof(*_Generic((pointer), void *: (type *)0, default: (pointer)))         \
                           as sizeof(type),                                                        \
                       "this is no " #type);                                                       \
    }))
#define WEFT__AS(type, pointer)      (WEFT__SIZED(pointer, ==, type), (type *)(void *)(pointer))
#define WEFT__AS_PART(type, pointer) (WEFT__SIZED(pointer, >=, type), (type *)(void *)(pointer))
#define WEFT__INTO(type, into)       (WEFT__SIZED(*(into), ==, type), (type **)(void *)(into))
#else
template <class T, bool part, class P> static inline T *weft__as(P *pointer)
{
    static_assert(sizeof(P) == sizeof(T) || (part && sizeof(P) > sizeof(T)),
                  "this is another kind of thing");
    return (T *)(void *)pointer;
}
template <class T, bool part> static inline T *weft__as(void *pointer)
{
    return (T *)pointer;
}
template <class T, class P> static inline T **weft__into(P **into)
{
    static_assert(sizeof(P) == sizeof(T), "this is another kind of thing");
    return (T **)(void *)into;
}
#define WEFT__AS(type, pointer)      weft__as<type, false>(pointer)
#define WEFT__AS_PART(type, pointer) weft__as<type, true>(pointer)
#define WEFT__INTO(type, into)       weft__into<type>(into)
#endif

#endif
