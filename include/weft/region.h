/* SPDX-License-Identifier: MIT
 *
 * region - reasons to stop that end with a block: deadlines, tokens, shields.
 *
 *     WEFT_UNTIL(&stop) serve(listener);                             fibers and threads: over a statement or block
 *     weft_await(f->u, weft_until, &f->stop, weft_arm(f->s, serve, f->l));      the same, stackless
 *
 * Inside, every wait answers -ECANCELED once the token is cancelled, or -ETIME once the deadline has passed; and goes on to do so until the
 * block is left. Where several ask at once the outermost answers, up to the nearest shield; none outlives its block.
 * Blocks are left by their end, `break`, `continue`, `return` and `goto`; break and continue leave the block, not a loop around it.
 */
#ifndef WEFT_REGION_H
#define WEFT_REGION_H

#include <weft/select.h>
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
WEFT_API void weft__until_enter(struct weft__region_block *block, weft_token *token);
WEFT_API void weft__region_block_leave(struct weft__region_block *block);

#define WEFT_UNTIL(token) WEFT__BLOCK(__COUNTER__, "WEFT_UNTIL", until, token)

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
struct weft_until {
    WEFT_FRAME(int);
    weft_token *token; /* borrowed; NULL: none */
    weft_future of;
    struct weft__region_block weft__b WEFT__ZERO;
};
WEFT_API weft_pollfn weft_until_poll;
#define WEFT__PROBES_weft_until ~, WEFT__ARM_COMBINES

#ifdef __cplusplus
}
#endif

#endif
