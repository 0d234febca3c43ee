/* SPDX-License-Identifier: MIT
 *
 * Names to addresses below the runtime: what counts as a number, and each error of the system as an errno.
 */
#include "base/alloc.h"
#include "names.h"
#include "sys/resolve.h"

static int numbers(const char *host, const char *service)
{
    struct weft__address_list *list = NULL;
    struct weft__query q = {.host = host, .service = service};
    int r = weft__resolve_numbers(&q, &list);
    weft__free(list);
    return r;
}

TEST(resolve_knows_numbers)
{
    char huge[300];
    names_reset();
    memset(huge, '1', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    ASSERT_OK(numbers("127.0.0.1", NULL));
    ASSERT_OK(numbers("127.0.0.1", "65535"));
    ASSERT_OK(numbers("::", "1"));
    ASSERT_EQ(numbers("127.0.0.1", "65536"), -EAGAIN); /* who asks is told what is wrong with it */
    ASSERT_EQ(numbers("127.0.0.1", "http"), -EAGAIN);
    ASSERT_EQ(numbers("localhost", "80"), -EAGAIN);
    ASSERT_EQ(numbers("*", "80"), -EAGAIN);
    ASSERT_EQ(numbers("[::1]", "80"), -EAGAIN);
    ASSERT_EQ(numbers(huge, "80"), -EAGAIN);
    ASSERT_EQ(load_relaxed(&names_asked), 0);
}

static int asks_for(const char *host, const char *service)
{
    struct weft__address_list *list = NULL;
    struct weft__query q = {.host = host, .service = service};
    int r = weft__resolve(&q, &list);
    weft__free(list);
    return r;
}

static int asks(const char *host)
{
    return asks_for(host, "80");
}

/* The C library would take the lowest 16 bits of any number, and connect to somebody else. */
TEST(resolve_takes_no_number_for_a_port_that_is_none)
{
    static const char *const none[] = {"65536", "99999", "4294967376", "-1", "+80", " 80", "", "80 "};
    names_reset();
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        ASSERT_EQ(asks_for("127.0.0.1", none[i]), -EPROTONOSUPPORT);
        ASSERT_EQ(asks_for("localhost", none[i]), -EPROTONOSUPPORT);
    }
    ASSERT_EQ(load_relaxed(&names_asked), 0);
    ASSERT_OK(asks_for("localhost", "65535"));
    ASSERT_OK(asks_for("localhost", "00080"));
    ASSERT_OK(asks_for("localhost", NULL));
}

TEST(resolve_errors)
{
    ASSERT_EQ(asks("none.test"), -ENOENT);
    ASSERT_EQ(asks("family.test"), -ENOENT);
    ASSERT_EQ(asks("again.test"), -EAGAIN);
    ASSERT_EQ(asks("fail.test"), -EIO);
    ASSERT_EQ(asks("service.test"), -EPROTONOSUPPORT);
    ASSERT_EQ(asks("system.test"), -EMFILE);
    ASSERT_EQ(asks("memory.test"), -ENOMEM);
    ASSERT_EQ(asks("table.test"), -ENOENT); /* an answer, and nothing in it */
    ASSERT_OK(asks("localhost"));
}
