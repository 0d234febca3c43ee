// SPDX-License-Identifier: MIT
//
// What the page promises to C++, for tasks that are waited for together.
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(fact) ((fact) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact), std::exit(1)))

static int twice(int n)
{
    return 2 * n;
}
static const char *same(const char *text)
{
    return text;
}
static void nothing()
{
}

typedef WEFT_SET(int) int_set;

static int sets()
{
    int_set set = {};
    weft_set any = {};
    struct weft_set_join_next next;
    struct weft_sleep idle;
    weft_task *task = nullptr;
    const char *text = nullptr;
    int got = 0, sum = 0;

    set.limit = 2;
    for (int i = 0; i < 5; i++) CHECK(weft_set_go(&set, twice, i) == 0);
    while (weft_set_join_next(&set, &got) > 0) sum += got;
    CHECK(sum == 20);
    CHECK(weft_set_try_join_next(&set, &got) == 0);
    CHECK(weft_set_try_go(&set, twice, 4) == 0);
    CHECK(weft_select(weft_arm(next, weft_set_join_next, &set, &got, sizeof got), weft_arm(idle, weft_sleep, weft_secs(99))) == 0);
    CHECK(next.ret == 1 && got == 8);
    CHECK(weft_set_go(&any, same, "x") == 0 && weft_set_next(&any, &task) == 1 && weft_join(task, &text) == 0);
    CHECK(weft_set_go(&any, nothing) == 0 && weft_set_join_next(&any, nullptr) == 1);
    CHECK(weft_set_join(&set) == 0 && weft_set_stop(&set) == 0 && weft_set_detach(&set) == 0);
    weft_set_cancel(&set);
    CHECK(weft_set_len(&set) == 0 && weft_set_running(&any) == 0);
    weft_set_done(&set);
    weft_set_done(&any);
    return 0;
}

static int tracks()
{
    weft_tracker tracker = {};
    struct weft_tracker_wait wait;
    for (int i = 0; i < 5; i++) CHECK(weft_tracker_go(&tracker, twice, i) == 0);
    CHECK(weft_tracker_close(&tracker));
    CHECK(weft_tracker_wait(&tracker) == 0);
    CHECK(weft_select(weft_arm(wait, weft_tracker_wait, &tracker)) == 0);
    weft_tracker_done(&tracker);
    return 0;
}

static int app()
{
    int r = 1;
    CHECK(weft_join(weft_go(sets), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(tracks), &r) == 0 && r == 0);
    return r;
}

WEFT_MAIN(app)
