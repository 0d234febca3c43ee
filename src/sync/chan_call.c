/* SPDX-License-Identifier: MIT
 *
 * chan_call - the call forms of channels: for fibers, and for plain threads, which block.
 */
#include "sync/chan.h"

#include "task/call.h"

int weft__reserve(weft_chan *chan)
{
    struct weft_reserve f = {.chan = chan};
    int r = weft__run_from(weft_reserve_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__reserve_many(weft_chan *chan, size_t count)
{
    struct weft_reserve_many f = {.chan = chan, .count = count};
    int r = weft__run_from(weft_reserve_many_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__chan_closed(weft_chan *chan)
{
    struct weft_chan_closed f = {.chan = chan};
    int r = weft__run_from(weft_chan_closed_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
