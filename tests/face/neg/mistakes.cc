/* SPDX-License-Identifier: MIT
 *
 * Planted mistakes of C++, where the macros are templates; the form is that of mistakes.c.
 */
#include <weft/weft.h>

int calls();
int calls()
{
    struct weft_wait w;
    struct weft_sleep s;
#if MISTAKE == 0
    weft_start(s, weft_sleep, 1);
    int which = weft_select(weft_keep(s, weft_sleep), weft_arm(w, weft_wait, nullptr));
    weft_settle(s, weft_sleep);
    return which;
#elif MISTAKE == 1 /* keep what may hold something. expect: only timers, intervals and tokens are kept */
    (void)s;
    return weft_select(weft_keep(w, weft_wait));
#elif MISTAKE == 2 /* keep in the frame of another function. expect: cannot convert|no matching function */
    (void)s;
    return weft_select(weft_keep(w, weft_sleep));
#elif MISTAKE == 3 /* start in the frame of another function. expect: cannot bind|invalid initialization|no matching function */
    (void)s;
    weft_start(w, weft_sleep, 1);
    return 0;
#elif MISTAKE == 4 /* an argument of the wrong type. expect: invalid conversion|cannot initialize */
    (void)w;
    weft_start(s, weft_sleep, "long");
    return 0;
#endif
}
