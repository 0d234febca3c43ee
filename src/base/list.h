/* SPDX-License-Identifier: MIT
 *
 * list - an intrusive circular doubly linked list, and an intrusive singly linked queue.
 *
 * A `struct weft__link` inside an object puts the object on one list. The head is a link too: it points at itself when the list is empty, so that
 * insertion and removal have no special case. A link that is on no list points at itself after weft__link_init or weft__list_remove.
 * Threads: none of its own; the list's owner says which lock guards it.
 */
#ifndef WEFT_BASE_LIST_H
#define WEFT_BASE_LIST_H

#include "base/assert.h"

#include <stddef.h>

struct weft__link {
    struct weft__link *next;
    struct weft__link *prev;
};

#define weft__container_of(link_ptr, type, member) ((type *)(void *)((char *)(link_ptr) - offsetof(type, member)))

#define WEFT__LIST_INIT(head) {&(head), &(head)}

static inline void weft__link_init(struct weft__link *link)
{
    link->next = link;
    link->prev = link;
}

static inline bool weft__list_empty(const struct weft__link *head)
{
    return head->next == head;
}

static inline bool weft__link_linked(const struct weft__link *link)
{
    return link->next != link;
}

/* A link that has not been initialised yet. */
static inline void weft__list_insert_new_before(struct weft__link *at, struct weft__link *link)
{
    link->next = at;
    link->prev = at->prev;
    at->prev->next = link;
    at->prev = link;
}

static inline void weft__list_insert_before(struct weft__link *at, struct weft__link *link)
{
    weft_dassert(!weft__link_linked(link));
    weft__list_insert_new_before(at, link);
}

static inline void weft__list_push_back(struct weft__link *head, struct weft__link *link)
{
    weft__list_insert_before(head, link);
}

static inline void weft__list_push_front(struct weft__link *head, struct weft__link *link)
{
    weft__list_insert_before(head->next, link);
}

/* Of a link that is looked at no more, but by checks of debug builds, before it is made anew. */
static inline void weft__list_take_out(struct weft__link *link)
{
    struct weft__link *next = link->next;
    struct weft__link *prev = link->prev;
    prev->next = next;
    next->prev = prev;
#if defined(WEFT_DEBUG)
    weft__link_init(link);
#endif
}

static inline void weft__list_remove(struct weft__link *link)
{
    weft__list_take_out(link);
    weft__link_init(link);
}

static inline struct weft__link *weft__list_first(const struct weft__link *head)
{
    return weft__list_empty(head) ? NULL : head->next;
}

static inline struct weft__link *weft__list_pop_front(struct weft__link *head)
{
    struct weft__link *first = weft__list_first(head);
    if (first) weft__list_remove(first);
    return first;
}

/* Move all of `from` to the back of `to`; `from` is empty afterwards. */
static inline void weft__list_splice_back(struct weft__link *to, struct weft__link *from)
{
    if (weft__list_empty(from)) return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    weft__link_init(from);
}

#define weft__list_each(it, head) for (struct weft__link *it = (head)->next; it != (head); it = it->next)
#define weft__list_each_safe(it, tmp, head)                                                                            \
    for (struct weft__link *it = (head)->next, *tmp = it->next; it != (head); it = tmp, tmp = it->next)

/* ---- queue: first in, first out, one pointer per element ---- */
struct weft__qlink {
    struct weft__qlink *next;
};

struct weft__queue {
    struct weft__qlink *first;      /* NULL when empty */
    struct weft__qlink *last;       /* meaningless when empty */
};

static inline void weft__queue_init(struct weft__queue *q)
{
    q->first = NULL;
    q->last = NULL;
}

static inline bool weft__queue_empty(const struct weft__queue *q)
{
    return !q->first;
}

static inline void weft__queue_push(struct weft__queue *q, struct weft__qlink *link)
{
    link->next = NULL;
    if (q->first) {
        q->last->next = link;
    } else {
        q->first = link;
    }
    q->last = link;
}

static inline struct weft__qlink *weft__queue_pop(struct weft__queue *q)
{
    struct weft__qlink *first = q->first;
    if (first) q->first = first->next;
    return first;
}

#endif
