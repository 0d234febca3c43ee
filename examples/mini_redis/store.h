/* SPDX-License-Identifier: MIT
 *
 * store - keys and their values, which may expire. Safe for all tasks at once.
 *
 * A fixed number of buckets, each behind a lock of its own. What has expired is gone for everybody who asks, and its memory soon after
 * (store_sweep). All of them answer -ECANCELED or -ETIME if they were told to stop before they began.
 */
#ifndef MINI_REDIS_STORE_H
#define MINI_REDIS_STORE_H

#include "resp.h"

#include <weft/weft.h>

enum store_when { ALWAYS, IF_NEW, IF_THERE };

/* `expires`: a point on the clock of weft_now; WEFT_FOREVER: never. Returns 1; 0: the condition does not hold; -ENOMEM. */
int store_set(struct slice key, struct slice value, weft_time expires, enum store_when when);

/* Writes the value to `o`, or nil. Returns 1; 0: nil. */
int store_get(struct slice key, struct out *o);

/* Returns 1; -EINVAL: it is no number, or would not fit; -ENOMEM. */
int store_add(struct slice key, int64_t by, int64_t *into);

/* Return 1; 0: there is no such key. */
int store_delete(struct slice key);
int store_expire(struct slice key, weft_time at);
int store_expires(struct slice key, weft_time *into);

/* Frees what has expired at `now`; WEFT_FOREVER: everything. Returns how many are left. */
int64_t store_sweep(weft_time now);

#endif
