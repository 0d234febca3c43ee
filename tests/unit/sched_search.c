/* SPDX-License-Identifier: MIT
 *
 * How long a search lasts: shorter behind those in vain, and whole again once one has paid.
 */
#include "sched/search.h"

#include "test.h"

enum { FULL = 20000 };

TEST(search_halves_with_each_one_in_vain_down_to_an_eighth)
{
    struct weft__search s = {0};
    ASSERT_EQ(weft__search_ns(&s, FULL), FULL);
    weft__search_over(&s, false, 100);
    ASSERT_EQ(weft__search_ns(&s, FULL), FULL / 2);
    weft__search_over(&s, false, 100);
    weft__search_over(&s, false, 100);
    weft__search_over(&s, false, 100);
    ASSERT_EQ(weft__search_ns(&s, FULL), FULL / 8);
}

TEST(search_that_paid_makes_the_next_one_whole)
{
    struct weft__search s = {.vain = WEFT__SEARCH_HALVES};
    weft__search_over(&s, true, 2);
    ASSERT_EQ(weft__search_ns(&s, FULL), FULL);
}

TEST(search_that_found_at_once_says_nothing)
{
    struct weft__search s = {.vain = 2};
    weft__search_over(&s, true, 1);
    ASSERT_EQ(weft__search_ns(&s, FULL), FULL / 4);
}
