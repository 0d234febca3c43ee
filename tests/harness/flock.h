/* SPDX-License-Identifier: MIT
 *
 * flock - what tests of task sets share: members of both kinds that sleep, or wait for a token, and count themselves.
 */
#ifndef WEFT_TESTS_FLOCK_H
#define WEFT_TESTS_FLOCK_H

#include "crew.h"
#include "still.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <weft/weft.h>

typedef WEFT_SET(int) int_set;

static _Atomic uint32_t begun; /* members; relaxed, both: counts */
static _Atomic uint32_t over;

static inline int sleeps_for(int ms)
{
    int r = weft_sleep(weft_ms(ms));
    return r < 0 ? r : ms;
}

struct sleeps_for_too {
    WEFT_FRAME(int);
    int ms;
    struct weft_sleep sleep;
};
__attribute__((unused)) static weft_async(sleeps_for_too)
{
    weft_begin;
    weft_await(f->sleep, weft_sleep, weft_ms(f->ms));
    weft_return(f->sleep.ret < 0 ? f->sleep.ret : f->ms);
    weft_end;
}

static inline int waits_for(weft_token *token)
{
    fetch_add_relaxed(&begun, 1);
    int r = weft_token_wait(token);
    fetch_add_relaxed(&over, 1);
    return r;
}

#endif
