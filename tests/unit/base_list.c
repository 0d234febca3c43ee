/* SPDX-License-Identifier: MIT
 *
 * The intrusive list and queue: order, removal from the middle, splice.
 */
#include "base/list.h"
#include "test.h"

struct item {
    int value;
    struct weft__link link;
};

static int value_of(struct weft__link *link)
{
    return weft__container_of(link, struct item, link)->value;
}

TEST(list_keeps_order_and_gives_up_its_middle)
{
    struct weft__link head = WEFT__LIST_INIT(head);
    struct item items[5];

    for (int i = 0; i < 5; i++) {
        items[i].value = i;
        weft__link_init(&items[i].link);
        weft__list_push_back(&head, &items[i].link);
    }
    weft__list_remove(&items[2].link);
    ASSERT(!weft__link_linked(&items[2].link));

    static const int left[] = {0, 1, 3, 4};
    int at = 0;
    weft__list_each(it, &head) ASSERT_EQ(value_of(it), left[at++]);
    ASSERT_EQ(at, 4);
    weft__list_each_safe(it, next, &head) weft__list_remove(it);
    ASSERT(weft__list_empty(&head));
    ASSERT_NULL(weft__list_pop_front(&head));
}

TEST(list_splice_moves_all_to_the_back)
{
    struct weft__link a = WEFT__LIST_INIT(a);
    struct weft__link b = WEFT__LIST_INIT(b);
    struct item items[4];

    for (int i = 0; i < 4; i++) {
        items[i].value = i;
        weft__link_init(&items[i].link);
        weft__list_push_back(i < 2 ? &a : &b, &items[i].link);
    }
    weft__list_splice_back(&a, &b);
    ASSERT(weft__list_empty(&b));
    for (int i = 0; i < 4; i++) ASSERT_EQ(value_of(weft__list_pop_front(&a)), i);
    ASSERT(weft__list_empty(&a));
    weft__list_splice_back(&a, &b);
    ASSERT(weft__list_empty(&a));
}

TEST(list_push_front_comes_out_first)
{
    struct weft__link head = WEFT__LIST_INIT(head);
    struct item a = {.value = 1};
    struct item b = {.value = 2};

    weft__link_init(&a.link);
    weft__link_init(&b.link);
    weft__list_push_back(&head, &a.link);
    weft__list_push_front(&head, &b.link);
    ASSERT_EQ(value_of(weft__list_first(&head)), 2);
}

TEST(queue_is_first_in_first_out)
{
    struct weft__queue q;
    struct weft__qlink links[3];

    weft__queue_init(&q);
    ASSERT_NULL(weft__queue_pop(&q));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) weft__queue_push(&q, &links[i]);
        for (int i = 0; i < 3; i++) ASSERT_PTR(weft__queue_pop(&q), &links[i]);
        ASSERT(weft__queue_empty(&q));
    }
}
