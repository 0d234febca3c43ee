/* SPDX-License-Identifier: MIT
 *
 * news - telling slots what has come, a group at a time; the idea is in news.h.
 */
#include "driver/news.h"

#include "task/warm.h"

/* ---- the steps before ---- */

static bool is_to_read(const struct weft__news *news, uint32_t i)
{
    return news->of[i].bits & weft__ready_bits(WEFT__SIDE_READ);
}

/* Who waits to write is on the second line, which others do not need. */
static void warm_slots(const struct weft__news *news)
{
    for (uint32_t i = 0; i < news->count; i++) {
        weft__warm_line(news->of[i].slot, 0);
        if (!is_to_read(news, i)) weft__warm_line(news->of[i].slot, 1);
    }
}

typedef void looks_at(struct weft__waitlist *list, const struct weft__waiter *waiter);

static void warm_waiter(struct weft__waitlist *list, const struct weft__waiter *waiter)
{
    (void)list;
    weft__warm_waiter(waiter);
}

static void warm_task(struct weft__waitlist *list, const struct weft__waiter *waiter)
{
    const struct weft_task *task = weft__waiter_task(list, waiter);
    if (task) weft__warm_task(task, waiter);
}

static void warm_poll(struct weft__waitlist *list, const struct weft__waiter *waiter)
{
    const struct weft_task *task = weft__waiter_task(list, waiter);
    if (task) weft__warm_poll(task, waiter);
}

/* The first of those whom the news is for; one, as a rule. */
static inline __attribute__((always_inline)) void of_waiters(const struct weft__news *news, looks_at *look)
{
    uint8_t me = weft__waitlist_me();
    for (uint32_t i = 0; i < news->count; i++) {
        struct weft__fdslot *slot = news->of[i].slot;
        if (!weft__waitlist_try_loan(&slot->list, me)) continue;
        const struct weft__link *queue =
            weft__fdslot_queue(slot, is_to_read(news, i) ? WEFT__SIDE_READ : WEFT__SIDE_WRITE);
        if (!weft__list_empty(queue))
            look(&slot->list, weft__container_of(queue->next, struct weft__waiter, link));
        weft__waitlist_drop(&slot->list, me, WEFT__BY_LOAN);
    }
}

static void warm_group(const struct weft__news *news)
{
    if (news->count < WEFT__NEWS_FEW) return;
    warm_slots(news);
    of_waiters(news, warm_waiter);
    of_waiters(news, warm_task);
    of_waiters(news, warm_poll);
}

/* ---- telling ---- */

void weft__news_tell(struct weft__news *news)
{
    warm_group(news);
    for (uint32_t i = 0; i < news->count; i++)
        weft__fdslot_ready(news->of[i].slot, news->of[i].generation, news->of[i].bits,
                           &news->chain);
    news->count = 0;
}

uint32_t weft__news_end(struct weft__news *news)
{
    weft__news_tell(news);
    uint32_t woken = news->chain.count;
    weft__wake_chain_push(&news->chain, &weft__sched);
    return woken;
}
