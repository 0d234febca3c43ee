/* SPDX-License-Identifier: MIT
 *
 * A task that ends with a wait that is not over is named: a future that was polled has to be polled until it is READY. In debug builds, which count.
 */
#include "death.h"
#include "test.h"

#include <weft/weft.h>

static weft_notify bell = WEFT_NOTIFY_INIT;
static weft_notify other = WEFT_NOTIFY_INIT;

/* It polls its waits once, and is READY whatever they say. */
struct leaves_early {
    WEFT_FRAME(int);
    int waits;
    struct weft_notify_wait at[2];
};

static weft_poll leaves_early_poll(void *frame, weft_cx *cx)
{
    struct leaves_early *f = frame;
    weft_notify *bells[] = {&bell, &other};
    for (int i = 0; i < f->waits; i++) {
        f->at[i] = (struct weft_notify_wait){.notify = bells[i]};
        (void)weft_notify_wait_poll(&f->at[i], cx);
    }
    f->ret = 0;
    return WEFT_READY;
}

struct scene {
    int waits;
    int workers;
};

static void run_scene(void *arg)
{
    const struct scene *s = arg;
    weft_rt *rt;
    int r;
    ASSERT_OK(weft_rt_new(&(weft_rt_opts){.workers = s->workers}, &rt));
    weft_rt *before = weft_rt_enter(rt);
    ASSERT_OK(weft_join(weft_spawn(leaves_early, .waits = s->waits), &r));
    ASSERT_OK(r);
    (void)weft_rt_enter(before);
    ASSERT_OK(weft_rt_stop(rt, -1));
}

static void is_named(struct scene *s, const char *how_many)
{
#if defined(WEFT_DEBUG)
    struct death d = death_of(run_scene, s);
    ASSERT_EQ(d.signal, SIGABRT);
    ASSERT(strstr(d.said, "task 'leaves_early' (spawned at "));
    ASSERT(strstr(d.said, how_many));
#else
    (void)s, (void)how_many;
    TEST_SKIP("release builds do not count");
#endif
}

TEST(linked_wait_at_the_end_of_a_task_is_named)
{
    is_named(&(struct scene){.waits = 1, .workers = 1}, "while 1 of its waits is not over");
    is_named(&(struct scene){.waits = 1, .workers = 2}, "while 1 of its waits is not over");
}

TEST(linked_waits_are_counted)
{
    is_named(&(struct scene){.waits = 2, .workers = 2}, "while 2 of its waits are not over");
}

/* Who had a ring for itself waits for nothing: it may go. */
TEST(linked_counts_nobody_who_has_what_it_waited_for)
{
    weft_notify_one(&bell);
    run_scene(&(struct scene){.waits = 1, .workers = 1});
}
