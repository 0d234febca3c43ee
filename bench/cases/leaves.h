/* SPDX-License-Identifier: MIT
 *
 * leaves - the two smallest things to wait for, on the waitlist: a notify of one permit, and a value that comes once.
 */
#ifndef WEFT_BENCH_LEAVES_H
#define WEFT_BENCH_LEAVES_H

#include "sync/waitlist.h"

#include <weft/weft.h>

struct bell {
    struct weft__waitlist list;
    bool rung;                      /* nobody waited when it was rung; guarded by the list's lock */
};

void bell_init(struct bell *bell);
void bell_ring(struct bell *bell);

struct bell_wait {
    WEFT_FRAME(int);
    struct bell *bell;
    struct weft__waiter waiter;
};
weft_pollfn bell_wait_poll;

struct oneshot {
    struct bell bell;
    int64_t value;                  /* written before the bell */
};

static inline void oneshot_init(struct oneshot *one)
{
    bell_init(&one->bell);
}

static inline void oneshot_send(struct oneshot *one, int64_t value)
{
    one->value = value;
    bell_ring(&one->bell);
}

#endif
