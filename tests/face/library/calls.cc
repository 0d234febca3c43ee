// SPDX-License-Identifier: MIT
//
// What the page promises to C++: blocks and select. Arguments of arms are given in order.
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(fact) ((fact) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact), std::exit(1)))

static weft_token stop;

static int sleeps()
{
    return weft_sleep(weft_secs(99));
}

static int selects()
{
    weft_task *t = weft_go(sleeps);
    struct weft_wait w;
    struct weft_sleep s;
    struct weft_token_wait quit;
    int r = 1;

    int which = weft_select(weft_arm(w, weft_wait, t), weft_arm(s, weft_sleep, weft_us(1)),
                            weft_when(r == 0, weft_arm(quit, weft_token_wait, &stop)));
    CHECK(which == 1 && s.ret == 0 && w.ret == -ECANCELED);
    CHECK(weft_select_biased(weft_arm(quit, weft_token_wait, &stop), weft_otherwise) == 1);
    CHECK(weft_then(weft_arm(s, weft_sleep, 0), weft_arm(s, weft_sleep, 0)) == 0);
    WEFT_TIMEOUT(weft_us(1)) CHECK(weft_all(weft_arm(w, weft_wait, t), weft_arm(s, weft_sleep, 1)) == -ETIME);
    WEFT_DEADLINE(weft_now()) CHECK(weft_try_all(weft_arm(w, weft_wait, t)) == -ETIME);
    WEFT_UNTIL(&stop) {
        weft_token_cancel(&stop);
        CHECK(weft_yield() == -ECANCELED);
        WEFT_SHIELD(weft_secs(1)) CHECK(weft_sleep(1) == 0);
    }
    CHECK(weft_token_reason(&stop) == -ECANCELED);
    weft_cancel(t);
    return weft_join(t, &r) == 0 && r == -ECANCELED ? 0 : 1;
}

static int app()
{
    weft_token_hook hook = {nullptr, nullptr};
    int r = 1;
    CHECK(weft_join(weft_go(selects), &r) == 0 && r == 0);
    CHECK(weft_token_hook_off(&hook) == 1);
    weft_token_done(&stop);
    return r;
}

WEFT_MAIN(app)
