/* SPDX-License-Identifier: MIT
 *
 * news - what a port's kernel has told, on its way to the slots and tasks that it is about.
 *
 * Of thousands of connections nothing is in a cache when one has its turn, and telling it is a chain of lines, each of which says where the next one is: slot, waiter, task,
 * fiber. So news is told a group at a time, and before that the lines of the whole group are asked for, step by step (task/warm.h): its slots; then the waiters of
 * all; then their tasks; then what those begin with. With 8,000 connections that is 0.2 us of a task's request, 0.5 of a fiber's; of a few it is nothing, and is left.
 *     weft__news_begin(&news, port);
 *     weft__news_add(&news, token, bits);      ...
 *     weft__news_end(&news);
 * LOOKED AT BY LOAN ALONE  Who waits for a slot is told by its list, which is its lock's. Where that is lent to this thread a look costs no read-modify-write; where it is not, the slot
 * itself is asked for, and no more.
 * Threads: whoever turns the port. No lock is held between two calls.
 */
#ifndef WEFT_DRIVER_NEWS_H
#define WEFT_DRIVER_NEWS_H

#include "driver/driver.h"

/* Told together. Doubled: 256 bytes more of stack, and the first lines of a group are on their way out when the last ones come. */
#define WEFT__NEWS_GROUP 16

/* Fewer than so many come one after the other: there is nothing to be asked for side by side. */
#ifndef WEFT__NEWS_FEW
#define WEFT__NEWS_FEW 4
#endif

struct weft__news {
    struct weft__port *port;
    struct weft__wake_chain chain;
    uint32_t count;
    struct {
        struct weft__fdslot *slot;
        uint32_t generation;
        uint32_t bits; /* of its word, to be added */
    } of[WEFT__NEWS_GROUP];
};

static inline void weft__news_begin(struct weft__news *news, struct weft__port *port)
{
    news->port = port;
    news->chain = (struct weft__wake_chain)WEFT__WAKE_CHAIN_INIT;
    news->count = 0;
}

/* Those that were added go to their slots. */
void weft__news_tell(struct weft__news *news);

/* The side of the slot of this token is ready for more. */
static inline void weft__news_add(struct weft__news *news, uint64_t token, uint64_t bits)
{
    if (news->count == WEFT__NEWS_GROUP) weft__news_tell(news);
    struct weft__fdslot *slot = weft__port_slot(news->port, (uint32_t)(token >> 32));
    weft_assert(slot); /* we made the token */
    news->of[news->count].slot = slot;
    news->of[news->count].generation = (uint32_t)token;
    news->of[news->count++].bits = (uint32_t)bits;
}

/* All of them, and those who waited for it are pushed. Returns how many. */
uint32_t weft__news_end(struct weft__news *news);

#endif
