// SPDX-License-Identifier: MIT
//
// What the page promises to C++: calls, weft_go and join. Stackless bodies are co_await there.
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(fact) ((fact) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact), std::exit(1)))

enum color { RED, GREEN };

static int add(int a, long b)
{
    return a + (int)b + weft_yield();
}
static unsigned char paint(color c)
{
    return c == GREEN ? 200 : 0;
}
static void mark(bool *at) noexcept
{
    *at = true;
}
static const char *same(const char *text)
{
    return text;
}
static int named()
{
    return std::strcmp(weft_task_name(weft_self()), "same");
}
static int wait_for(weft_task *t)
{
    int r = 0;
    return weft_join(t, &r) < 0 ? -1 : r;
}

struct request {
    int id;
};
static void request_done(request *r)
{
    r->id = 0;
}
static WEFT_TASK_LOCAL(request, this_request, request_done);
static WEFT_TASK_LOCAL(int, this_number);
static int stays()
{
    int blocks = 0;
    weft_local here = weft_local_here();
    WEFT_PINNED {
        blocks++;
        WEFT_PINNED break;
        blocks++;
    }
    if (this_request()) this_request()->id = this_number() ? *this_number() : 0;
    return weft_local_is_here(&here) == (here.rt != nullptr) ? blocks : -1;
}

static int app(int argc, char **argv)
{
    unsigned char shade = 0;
    long wide = 0;
    bool marked = false;
    const char *text = nullptr;
    const struct weft_yield frame = {};

    CHECK(argc > 0 && argv[0]);
    CHECK(wait_for(weft_go(add, 3, 4)) == 7);
    CHECK(weft_join(weft_go(paint, GREEN), &shade) == 0 && shade == 200);
    CHECK(weft_join(weft_go(mark, &marked), nullptr) == 0 && marked);
    CHECK(weft_join(weft_go(same, "weft"), &text) == 0 && std::strcmp(text, "weft") == 0);
    CHECK(weft_join(weft_go(add, 1, 2), &wide) == -EINVAL);
    CHECK(weft_join(nullptr, &wide) == -ECHILD);
    CHECK(wait_for(weft_go(named)) != 0);
    CHECK(wait_for(weft_go(add, wait_for(weft_go(add, 1, 2)), 3)) == 6);
    CHECK(wait_for(weft_go(stays)) == 2);
    CHECK(sizeof frame == 8 && offsetof(struct weft_join, task) == 8);
    return 0;
}

WEFT_MAIN(app)
