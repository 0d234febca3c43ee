/* SPDX-License-Identifier: MIT
 *
 * token - a request to stop that many can see: cancelled once, for good, by whoever holds it.
 *
 *     weft_token stop = {0};                             zero is a token that stands alone
 *     WEFT_UNTIL(&stop) serve(listener);                 everything inside is cancelled with it (region.h)
 *     weft_token_cancel(&stop);                          anywhere, any thread
 *
 * Tokens form a tree: a child is cancelled with its parent, never the other way. A token says nothing to tasks that do
 * not look at it: they wait for it (weft_token_wait, as an arm of a select), stand inside of a WEFT_UNTIL, are called
 * back (weft_token_hook), or ask (weft_token_reason).
 */
#ifndef WEFT_TOKEN_H
#define WEFT_TOKEN_H

#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the program's own memory; all zero is a token without a parent. Pinned from its first use to weft_token_done. */
typedef struct weft_token {
    void *weft__[16];
} weft_token;

/* Make it a child of `parent`, which outlives it; of a cancelled one it is cancelled from the beginning. NULL: no parent. */
WEFT_API void weft_token_init(weft_token *token, weft_token *parent);

/* Ends it: nobody waits for it and no hook is left, or it is a mistake that aborts. Children of its own go to its parent;
 * one without a parent has none any more. Never waits, but for a cancel that is just coming to its end: behind it the
 * memory may go, also that of one whose cancel has woken the caller. NULL is nothing. */
WEFT_API void weft_token_done(weft_token *token);

/* Cancel it and all beneath it, once: of one that is cancelled nothing happens. Runs the hooks, then wakes who waits.
 * Borrows token: for as long as there are hooks or more than 64 who wait, until it returns.
 * Context: anywhere but in a signal handler; any thread. Returns whether it was this call that did it. */
WEFT_API bool weft_token_cancel(weft_token *token);

/* The same with a reason of the program's own, below zero; weft_token_cancel's is -ECANCELED. What is inside of a
 * WEFT_UNTIL is told -ECANCELED, whatever the reason is. */
WEFT_API bool weft_token_cancel_for(weft_token *token, int reason);

/* 0, or the reason it was cancelled for. Context: anywhere, any thread. */
WEFT_API int weft_token_reason(const weft_token *token);

/* weft_token_wait(token): until it is cancelled. Any number may. Borrows token meanwhile.
 * Returns 0: it is; -ECANCELED, -ETIME: the waiter was told to stop, and does so at once; -EINVAL for NULL; -EDEADLK in a
 * stackless poll. Cancel-safe: it takes nothing. May be kept across the rounds of a select (select.h).
 * Awaited: weft_await(f->quit, weft_token_wait, token). */
WEFT_API int weft__token_wait(weft_token *token);
struct weft_token_wait {
    WEFT_FRAME(int);
    weft_token *token;
    void *weft__waiter[3] WEFT__ZERO; /* in the token's list while it waits */
};
WEFT_API weft_pollfn weft_token_wait_poll;
#define WEFT__PROBES_weft_token_wait ~, WEFT__ARM_PROBES
#define WEFT__KEEPS_weft_token_wait  ~, 1
#define weft_token_wait(token)       (WEFT__CALL_FORM("weft_token_wait()"), weft__token_wait(token))

/* ---- hooks ---------------------------------------------------------------------------------------------------------------
 *
 *     weft_token_hook hook = {.fn = close_it, .arg = conn};
 *     weft_token_hook_on(&stop, &hook);
 *     ...
 *     weft_token_hook_off(&hook);                        before hook goes; it does not run any more
 *
 * `fn` runs once, in the thread that cancels, before those who wait are woken. It must not wait, and may do whatever else
 * weft_token_cancel's caller may. */
typedef struct weft_token_hook {
    void (*fn)(void *arg);
    void *arg;
    void *weft__[7] WEFT__ZERO;
} weft_token_hook;

/* Pins hook until weft_token_hook_off. Of a token that is cancelled `fn` runs at once. Returns whether it did. */
WEFT_API bool weft_token_hook_on(weft_token *token, weft_token_hook *hook);

/* Gives the hook's memory back: behind it `fn` does not run, and will not. Waits only while it runs in another thread, and
 * is not to be stopped in that.
 * Returns 0: it never ran; 1: it did, or was not on; -EDEADLK in `fn` itself, and in a stackless poll: the hook is still on.
 * Awaited: weft_await(f->off, weft_token_hook_off, &f->hook). */
WEFT_API int weft__token_hook_off(weft_token_hook *hook);
struct weft_token_hook_off {
    WEFT_FRAME(int);
    weft_token_hook *hook;
    void *weft__waiter[3] WEFT__ZERO;
};
WEFT_API weft_pollfn weft_token_hook_off_poll;
#define weft_token_hook_off(hook)                                                                  \
    (WEFT__CALL_FORM("weft_token_hook_off()"), weft__token_hook_off(hook))

#ifdef __cplusplus
}
#endif

#endif
