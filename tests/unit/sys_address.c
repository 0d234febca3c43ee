/* SPDX-License-Identifier: MIT
 *
 * Addresses that the public tests do not reach: paths at their limit, abstract names with any byte, addresses that are cut.
 */
#include "sys/address.h"
#include "test.h"

#include <errno.h>
#include <string.h>

TEST(address_of_paths_up_to_the_limit)
{
    struct weft__address addr;
    char path[200], out[WEFT__ADDRESS_TEXT];
    for (size_t len = 1; len < sizeof path; len++) {
        memset(path, 'p', len);
        path[len] = '\0';
        int r = weft__address_of_path(path, &addr);
        ASSERT_EQ(r, len <= 107 ? 0 : -ENAMETOOLONG);
        if (r < 0) continue;
        ASSERT_EQ(weft__address_print(&addr, out, sizeof out), (int)len);
        ASSERT_STR(out, path);
    }
    path[0] = '@';
    path[108] = '\0';
    ASSERT_OK(weft__address_of_path(path, &addr)); /* 107 bytes of name, and none for an end */
    ASSERT_EQ(weft__address_print(&addr, out, sizeof out), 108);
    path[108] = 'p';
    path[109] = '\0';
    ASSERT_EQ(weft__address_of_path(path, &addr), -ENAMETOOLONG);
}

/* The longest text of all fits, and one that is cut has its whole length told. */
TEST(address_prints_any_byte)
{
    struct weft__address addr;
    char path[109], out[WEFT__ADDRESS_TEXT];
    path[0] = '@';
    memset(path + 1, 1, 107);
    path[108] = '\0';
    ASSERT_OK(weft__address_of_path(path, &addr));
    ASSERT_EQ(weft__address_print(&addr, out, sizeof out), 1 + 107 * 4);
    ASSERT_EQ(memcmp(out, "@\\x01\\x01", 9), 0);
    char cut[5];
    ASSERT_EQ(weft__address_print(&addr, cut, sizeof cut), 1 + 107 * 4);
    ASSERT_STR(cut, "@\\x0");
    ASSERT_EQ(weft__address_port(&addr), -1);
}
