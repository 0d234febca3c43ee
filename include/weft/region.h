/* SPDX-License-Identifier: MIT
 *
 * region - reasons to stop that end with a block: deadlines, tokens, shields.
 *
 *     WEFT_TIMEOUT(weft_ms(500)) r = fetch(url, &page);             fibers and threads: over a statement or block
 *     WEFT_DEADLINE(at) r = fetch(url, &page);
 *     WEFT_UNTIL(&stop) serve(listener);
 *     WEFT_SHIELD(weft_secs(1)) say_goodbye(c);                      what lies further out is not heard; for so long
 *     weft_await(f->to, weft_timeout, weft_ms(500), weft_arm(f->get, fetch, .url = f->url));    the same, stackless
 *
 * Inside, every wait answers -ECANCELED once the token is cancelled, or -ETIME once the deadline has passed; and goes on to do so until the
 * block is left. Where several ask at once the outermost answers, up to the nearest shield; none outlives its block.
 * Blocks are left by their end, `break`, `continue`, `return` and `goto`; break and continue leave the block, not a loop around it.
 */
#ifndef WEFT_REGION_H
#define WEFT_REGION_H

#include <weft/select.h>
#include <weft/time.h>
#include <weft/token.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- blocks, for fibers and threads -----------------------------------------------------------------------------------------------------
 *
 *     WEFT_UNTIL(token) statement
 * expands to
 *     for (struct weft__region_block b __attribute__((cleanup(weft__region_block_leave))), *once = (weft__until_enter(&b, token), &b); once; once = NULL) statement */
struct weft__region_block {
    void *weft__[16];
};
WEFT_API void weft__timeout_enter(struct weft__region_block *block, weft_time ns);
WEFT_API void weft__deadline_enter(struct weft__region_block *block, weft_time at);
WEFT_API void weft__shield_enter(struct weft__region_block *block, weft_time ns);
WEFT_API void weft__until_enter(struct weft__region_block *block, weft_token *token);
WEFT_API void weft__region_block_leave(struct weft__region_block *block);

/* So long from the end of the poll in which something inside first waits; what is ready at once does not count, and is not cut short.
 * On a plain thread: from here on. */
#define WEFT_TIMEOUT(ns) WEFT__BLOCK(__COUNTER__, "WEFT_TIMEOUT", timeout, ns)

/* Until a point on the clock of weft_now. */
#define WEFT_DEADLINE(at) WEFT__BLOCK(__COUNTER__, "WEFT_DEADLINE", deadline, at)

/* Until the token is cancelled; NULL: no token. */
#define WEFT_UNTIL(token) WEFT__BLOCK(__COUNTER__, "WEFT_UNTIL", until, token)

/* For clean-up that waits: no cancel and no deadline from further out is heard inside. It has a time of its own instead, from when
 * something inside first waits, and then answers -ETIME. WEFT_FOREVER is a shutdown that may last as long. */
#define WEFT_SHIELD(ns) WEFT__BLOCK(__COUNTER__, "WEFT_SHIELD", shield, ns)

#define WEFT__BLOCK(n, what, kind, value) WEFT__BLOCK_(n, what, kind, value)
#define WEFT__BLOCK_(n, what, kind, value)                                                         \
    for (struct weft__region_block weft__block##n                                                  \
         __attribute__((cleanup(weft__region_block_leave))),                                       \
         *weft__once##n = (WEFT__CALL_FORM(what), weft__##kind##_enter(&weft__block##n, value),    \
                           &weft__block##n);                                                       \
         weft__once##n; weft__once##n = NULL)

/* ---- around a child frame, stackless ---------------------------------------------------------------------------------------------------------
 *
 * Awaits the arm, whose result is its own. Returns 0: it has ended; -ECANCELED, -ETIME: it was told to stop with that, by this region
 * or from further out, and gave up; -EINVAL for an arm that is passed over. A child that finishes all the same, late, is a success. */
struct weft_timeout {
    WEFT_FRAME(int);
    weft_time ns;
    weft_future of;
    struct weft__region_block weft__b WEFT__ZERO;
};
WEFT_API weft_pollfn weft_timeout_poll;

struct weft_deadline {
    WEFT_FRAME(int);
    weft_time at;
    weft_future of;
    struct weft__region_block weft__b WEFT__ZERO;
};
WEFT_API weft_pollfn weft_deadline_poll;

struct weft_shield {
    WEFT_FRAME(int);
    weft_time ns;
    weft_future of;
    struct weft__region_block weft__b WEFT__ZERO;
};
WEFT_API weft_pollfn weft_shield_poll;

struct weft_until {
    WEFT_FRAME(int);
    weft_token *token; /* borrowed; NULL: none */
    weft_future of;
    struct weft__region_block weft__b WEFT__ZERO;
};
WEFT_API weft_pollfn weft_until_poll;

#define WEFT__PROBES_weft_timeout  ~, WEFT__ARM_COMBINES
#define WEFT__PROBES_weft_deadline ~, WEFT__ARM_COMBINES
#define WEFT__PROBES_weft_shield   ~, WEFT__ARM_COMBINES
#define WEFT__PROBES_weft_until    ~, WEFT__ARM_COMBINES

#ifdef __cplusplus
}
#endif

#endif
