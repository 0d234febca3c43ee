/* SPDX-License-Identifier: MIT
 *
 * brood - what tests of scopes share: children of both kinds, which borrow, count themselves, and end by themselves or when they are told to.
 */
#ifndef WEFT_TESTS_BROOD_H
#define WEFT_TESTS_BROOD_H

#include "crew.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

static _Atomic uint32_t begun; /* children; relaxed, all: counts */
static _Atomic uint32_t over;
static _Atomic int heard; /* what the last child was told */

static inline void begin(void)
{
    store_relaxed(&begun, 0);
    store_relaxed(&over, 0);
    store_relaxed(&heard, 0);
}

/* Ends after some turns, and writes to what it borrowed. */
static inline int works(int *borrowed)
{
    fetch_add_relaxed(&begun, 1);
    for (int i = 0; i < 3; i++)
        (void)weft_yield();
    *borrowed += 1;
    fetch_add_relaxed(&over, 1);
    return 0;
}

struct works_stackless {
    WEFT_FRAME(int);
    int *borrowed;
    int turns;
    struct weft_yield yield;
};
__attribute__((unused)) static weft_async(works_stackless)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    for (; f->turns < 3; f->turns++)
        weft_await(f->yield, weft_yield);
    *f->borrowed += 1;
    fetch_add_relaxed(&over, 1);
    weft_return(0);
    weft_end;
}

/* Waits until it is told to stop; then cleans up, for which it waits, too. */
static inline int stays(int *borrowed)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_sleep(weft_secs(3600));
    store_relaxed(&heard, r);
    WEFT_SHIELD(WEFT_FOREVER) for (int i = 0; i < 3; i++)(void) weft_yield();
    *borrowed += 1;
    fetch_add_relaxed(&over, 1);
    return r;
}

struct stays_stackless {
    WEFT_FRAME(int);
    int *borrowed;
    struct weft_sleep sleep;
    struct weft_sleep nap;
    struct weft_shield shield;
};
__attribute__((unused)) static weft_async(stays_stackless)
{
    weft_begin;
    fetch_add_relaxed(&begun, 1);
    weft_await(f->sleep, weft_sleep, weft_secs(3600));
    store_relaxed(&heard, f->sleep.ret);
    weft_await(f->shield, weft_shield, WEFT_FOREVER, weft_arm(f->nap, weft_sleep, weft_us(10)));
    *f->borrowed += 1;
    fetch_add_relaxed(&over, 1);
    weft_return(f->sleep.ret);
    weft_end;
}

static inline int stay(weft_scope *s, int *borrowed, bool stackless)
{
    return stackless ? weft_spawn_in(s, stays_stackless, borrowed) : weft_go_in(s, stays, borrowed);
}

/* All of them run: they have something to be told. */
static inline void until_begun(uint32_t count)
{
    while (load_relaxed(&begun) < count) {
        WEFT_SHIELD(WEFT_FOREVER)(void) weft_sleep(weft_us(10));
    }
}

/* A body on a fiber, and on the test's thread. */
static inline void on_both(int (*body)(void))
{
    int r = -1;
    begin();
    ASSERT_OK(weft_join(weft_go(body), &r));
    ASSERT_EQ(r, 0);
    begin();
    ASSERT_EQ(body(), 0);
}

#endif
