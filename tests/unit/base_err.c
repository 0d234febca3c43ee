/* SPDX-License-Identifier: MIT
 *
 * Errors by name: both signs, all numbers, and what nobody knows.
 */
#include "base/err.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

TEST(err_names_both_signs)
{
    ASSERT_STR(weft__err_name(-ECANCELED), "ECANCELED");
    ASSERT_STR(weft__err_name(ECANCELED), "ECANCELED");
    ASSERT_STR(weft__err_text(-ECANCELED), "cancelled");
    ASSERT_STR(weft__err_text(ECANCELED), "cancelled");
    ASSERT_STR(weft__err_name(0), "OK");
    ASSERT_STR(weft__err_text(0), "success");
    ASSERT_STR(weft__err_name(-EWOULDBLOCK), "EAGAIN");
    ASSERT_STR(weft__err_name(-ENOTSUP), "EOPNOTSUPP");
}

/* The C library knows the same names, where it knows any. */
TEST(err_agrees_with_the_c_library)
{
    int known = 0;
    for (int e = 1; e < 4096; e++) {
        const char *theirs = strerrorname_np(e);
        if (!theirs) {
            ASSERT_STR(weft__err_name(e), "E?");
            continue;
        }
        if (strcmp(theirs, "ENOTSUP") != 0) ASSERT_STR(weft__err_name(e), theirs);
        ASSERT_STR(weft__err_name(-e), weft__err_name(e));
        ASSERT(strlen(weft__err_text(e)) > 0);
        ASSERT_STR(weft__err_text(-e), weft__err_text(e));
        known++;
    }
    ASSERT_GE(known, 130);
}

TEST(err_unknown_has_its_number)
{
    char text[WEFT__ERR_TEXT_BYTES];
    ASSERT_STR(weft__err_name(-4711), "E?");
    ASSERT_STR(weft__err_text(4711), "unknown error");
    ASSERT_STR(weft__err_format(-4711, text, sizeof(text)), "E?4711: unknown error");
    ASSERT_STR(weft__err_format(INT_MIN, text, sizeof(text)), "E?2147483648: unknown error");
    ASSERT_STR(weft__err_format(INT_MAX, text, sizeof(text)), "E?2147483647: unknown error");
}

TEST(err_format_fits_and_is_cut)
{
    char text[WEFT__ERR_TEXT_BYTES];
    char few[6];
    char one[1] = {'x'};

    ASSERT_STR(weft__err_format(-EPIPE, text, sizeof(text)), "EPIPE: other end is closed");
    ASSERT_STR(weft__err_format(0, text, sizeof(text)), "OK: success");
    ASSERT_STR(weft__err_format(-ECANCELED, few, sizeof(few)), "ECANC");
    ASSERT_STR(weft__err_format(-ECANCELED, one, sizeof(one)), "");
    for (int e = 0; e < 200; e++) {
        char wide[200];
        weft__err_format(e, wide, sizeof(wide));
        ASSERT(strlen(wide) < WEFT__ERR_TEXT_BYTES);
    }
}
