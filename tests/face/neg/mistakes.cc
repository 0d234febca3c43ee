/* SPDX-License-Identifier: MIT
 *
 * Planted mistakes of C++, where the macros are templates; the form is that of mistakes.c.
 */
#include <weft/weft.h>

typedef WEFT_CHAN(int) int_chan;
typedef WEFT_BROADCAST(int) int_cast;
extern int_chan *ints;
extern int_cast *news;

int calls();
int calls()
{
    struct weft_wait w;
    struct weft_sleep s;
    struct weft_recv rx;
    int which = 0;
    (void)rx;
#if MISTAKE == 0
    weft_start(s, weft_sleep, 1);
    which = weft_select(weft_keep(s, weft_sleep), weft_arm(w, weft_wait, nullptr));
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
#elif MISTAKE == 5 /* a broadcast is no channel. expect: this is another kind of thing */
    (void)w, (void)s;
    return weft_try_send(news, &which);
#elif MISTAKE == 6 /* nor made as one. expect: this is another kind of thing */
    (void)w, (void)s;
    return weft_chan_new(1, &news);
#elif MISTAKE == 7 /* a channel is no broadcast. expect: this is another kind of thing */
    (void)w, (void)s;
    return weft_broadcast_send(ints, &which);
#elif MISTAKE == 8 /* there is no cursor. expect: weft_pull takes no broadcast or watch */
    (void)w, (void)s;
    return weft_pull(news, &which);
#elif MISTAKE == 9 /* nor is there on its own. expect: weft_on takes a channel or a delay queue */
    (void)s, (void)w;
    return weft_select(weft_arm(rx, weft_recv, weft_on(news, &which)));
#endif
}
