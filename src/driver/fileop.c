/* SPDX-License-Identifier: MIT
 *
 * fileop - the hand-over; the drawing is in fileop.h.
 */
#include "driver/fileop.h"

/* Holds: the ring's lock. */
static enum weft__fileop_answer give_up(struct weft__fileop *op)
{
    bool owning = plain_read(&op->dispose) != NULL;

    if (!plain_read(&op->stopping)) {
        plain_write(&op->stopping, true);
        weft__files_cancel(op);
    }
    if (!owning) return WEFT__FILEOP_WAIT;
    plain_write(&op->abandoned, true);
    return WEFT__FILEOP_LEFT;
}

enum weft__fileop_answer weft__fileop_poll(struct weft__fileop *op, struct weft__lock *lock, bool stop)
{
    enum weft__fileop_answer answer = WEFT__FILEOP_WAIT;

    if (weft__fileop_is_done(op)) return WEFT__FILEOP_READY;
    /* It is polled before it is done. Under the lock: then a finish that we miss claims the waker
     * after this, and another poll follows. */
    weft__lock_take(lock);
    if (load_relaxed(&op->state) == WEFT__FILEOP_DONE) { /* relaxed: under the lock */
        answer = WEFT__FILEOP_READY;
    } else if (stop) {
        answer = give_up(op);
    }
    weft__lock_drop(lock);
    return answer;
}

void weft__fileop_finish(struct weft__fileop *op, int64_t ret, struct weft__wake_chain *chain)
{
    struct weft_waker waker = plain_read(&op->waker);

    weft_assert(load_relaxed(&op->state) == WEFT__FILEOP_ASKED); /* relaxed: under the lock */
    plain_write(&op->ret, ret);
    if (!weft__waker_is_none(waker)) weft__wake_chain_claim(chain, waker);
    store_release(&op->state,
                  WEFT__FILEOP_DONE); /* [file-done] with poll: the answer; and the last touch */
}
