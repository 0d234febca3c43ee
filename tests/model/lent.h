/* SPDX-License-Identifier: MIT
 *
 * lent - wait lists whose lock is lent, for model tests that run both ways.
 *
 * With WEFT_MODEL_REAL_BIAS threads 1 and 2 are workers, by these numbers; the others have none. The protocol is that of sys/bias.c, and a byte of each lock, which whoever
 * holds it may write, is written before each drop: two holders at once are a data race. A case says lends(list), or lends_lock, once it has set up what its threads find: the lock
 * is then nobody's, or one of the two's, and whoever takes it twice in a row is given it. Without WEFT_MODEL_REAL_BIAS nothing is lent, ever, and that says nothing.
 */
#ifndef MODEL_LENT_H
#define MODEL_LENT_H

#include "sys/membarrier.h"

#if defined(WEFT_MODEL_REAL_BIAS)

enum { TAKES_BACK_WITHOUT_BARRIER = 100 }; /* behind the mutants of any test */

#undef weft__membarrier
#define weft__membarrier() (model_mutant == TAKES_BACK_WITHOUT_BARRIER ? 0 : model_membarrier())

#include "sys/bias.c"

enum { LENT_WORKERS = 2 };

/* ---- before each drop: by bias.h's own ways, and by the word ---- */

static inline void watch(struct weft__lock *lock)
{
    plain_write(&lock->last, plain_read(&lock->last));
}

static inline void drop_word(struct weft__lock *lock)
{
    watch(lock);
    weft__lock_drop_brief(lock);
}

#undef weft__lock_drop_brief
#undef weft__lock_drop_brief_quietly
#define weft__lock_drop_brief(lock)          drop_word(lock)
#define weft__lock_drop_brief_quietly(lock)  (drop_word(lock), true)
#define weft__bias_drop(lock, number, place) (watch(lock), weft__bias_drop(lock, number, place))
#define weft__bias_drop_lent(lock, number, place)                                                  \
    (watch(lock), weft__bias_drop_lent(lock, number, place))

#include "sync/waitlist.h"

uint8_t weft__waitlist_me(void)
{
    return model_self() <= LENT_WORKERS ? (uint8_t)model_self() : 0;
}

static void lends_lock(struct weft__lock *lock, uint32_t *row)
{
    for (unsigned number = 1; number <= LENT_WORKERS; number++)
        for (unsigned place = 0; place < WEFT__BIAS_PLACES; place++)
            store_relaxed(weft__bias_mark_of((uint8_t)number, place), NULL);
    store_relaxed(&barrier, THERE); /* what the kernel said is kept from execution to execution */
    weft__bias_begin(lock, 0, row);
    store_relaxed(&lock->owner, (uint8_t)model_choose(LENT_WORKERS + 1));
}

#else

#define lends_lock(lock, row) ((void)(lock), (void)(row))

#endif

#define lends(list) lends_lock(&(list)->lock, &(list)->row)

#endif
