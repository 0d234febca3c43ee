/* SPDX-License-Identifier: MIT
 *
 * face - what the programs of tests/face share: a check, and two leaf futures written by hand.
 *
 * The programs see public headers alone and are linked either with the stand-in (standin.c) or with the library.
 */
#ifndef WEFT_TESTS_FACE_H
#define WEFT_TESTS_FACE_H

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact)    ((fact) ? (void)0 : check_failed(#fact, __FILE__, __LINE__))
#define CHECK_EQ(a, b) check_eq((long long)(a), (long long)(b), #a, __FILE__, __LINE__)

static inline void check_failed(const char *fact, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this should hold and does not: %s\n", file, line, fact);
    exit(1);
}

static inline void check_eq(long long is, long long should, const char *what, const char *file,
                            int line)
{
    if (is == should) return;
    fprintf(stderr, "%s:%d: %s is %lld instead of %lld\n", file, line, what, is, should);
    exit(1);
}

/* Ready at the poll after `left` others; asks for each of them. As on the page. */
struct countdown {
    WEFT_FRAME(int);
    int left;
};

static inline weft_poll countdown_poll(void *frame, weft_cx *cx)
{
    struct countdown *f = (struct countdown *)frame;
    if ((f->ret = weft_cx_cancelled(cx)) < 0) return WEFT_READY;
    if (f->left-- == 0) return WEFT_READY;
    weft_waker_wake(weft_cx_waker(cx));
    return WEFT_PENDING;
}

#endif
