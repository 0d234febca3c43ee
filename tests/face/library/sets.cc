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

typedef WEFT_KEYED(uint64_t, int) int_keyed;
typedef WEFT_DELAY(int) int_delay;
typedef WEFT_CHAN(int) int_chan;

static int keys()
{
    int_keyed keyed = {};
    struct weft_keyed_join_next next;
    uint64_t key = 7, which = 0;
    int got = 0;
    CHECK(weft_keyed_go(&keyed, &key, twice, 4) == 0);
    CHECK(weft_keyed_go(&keyed, &key, twice, 4) == -EEXIST);
    CHECK(weft_keyed_replace_go(&keyed, &key, twice, 5) == 0 && weft_keyed_contains(&keyed, &key));
    CHECK(weft_select(weft_arm(next, weft_keyed_join_next, &keyed, &which, &got, sizeof got)) == 0);
    CHECK(next.ret == 1 && which == 7 && got == 10);
    CHECK(weft_keyed_cancel(&keyed, &key) == -ENOENT && weft_keyed_join_next(&keyed, nullptr, &got) == 0);
    CHECK(weft_keyed_try_join_next(&keyed, &which, nullptr) == 0);
    weft_keyed_cancel_all(&keyed);
    CHECK(weft_keyed_join(&keyed) == 0 && weft_keyed_stop(&keyed) == 0 && weft_keyed_len(&keyed) == 0);
    weft_keyed_done(&keyed);
    return 0;
}

static int is_odd(void *, void *item)
{
    return *(int *)item % 2;
}

static int pulls()
{
    int_delay *queue = nullptr, *none = nullptr;
    int_chan *chan = nullptr;
    weft_interval every = weft_interval_of(weft_us(1));
    weft_delay_key key;
    weft_time at;
    struct weft_delay_next next;
    int item = 3, got = 0, batch[4];

    CHECK(weft_delay_new(&queue) == 0 && weft_delay_insert(queue, &item, weft_us(1), &key) == 0);
    CHECK(weft_delay_reset(queue, key, 0) == 0 && weft_delay_deadline(queue, key, &at) == 0);
    CHECK(weft_select(weft_arm(next, weft_delay_next, weft_on(queue, &got))) == 0 && got == 3);
    CHECK(weft_delay_remove(queue, key, &got) == -ENOENT && weft_delay_remove(queue, key, nullptr) == -ENOENT);
    CHECK(weft_delay_next(none, &got) == -EINVAL && weft_delay_remove(none, key, &got) == -EINVAL);
    CHECK(weft_delay_close(queue) == 0 && weft_pull(queue, &got) == 0 && weft_delay_len(queue) == 0);
    weft_delay_free(queue);
    CHECK(weft_pull(&every, &at) == 1);
    CHECK(weft_chan_new(8, &chan) == 0);
    for (int i = 0; i < 6; i++) CHECK(weft_send(chan, &i) == 0);
    CHECK(weft_chan_close(chan) == 0 && weft_pull(chan, &got) == 1);
    struct weft_from from = weft_from(chan);
    struct weft_filter odd = weft_filter(&from.source, is_odd, nullptr);
    struct weft_chunks some = weft_chunks(&odd.source, 4, WEFT_FOREVER);
    CHECK(weft_pull(&some.source, batch) == 3 && batch[2] == 5);
    CHECK(weft_pull(&some.source, batch) == 0);
    weft_chan_free(chan);
    return 0;
}

static int comes_in()
{
    weft_listener *listener = nullptr;
    weft_stream *guest = nullptr, *conn = nullptr;
    weft_buf *buf = nullptr;
    weft_slice line, some[2];
    char at[WEFT_ADDR_TEXT];

    CHECK(weft_tcp_listen("127.0.0.1:0", &listener) == 0 && weft_listener_print(listener, at, sizeof at) > 0);
    CHECK(weft_tcp_connect(at, &conn) == 0 && weft_write_all(conn, "one\n", 4) == 4);
    weft_close(conn);
    struct weft_from_accept guests = weft_from_accept(listener);
    CHECK(weft_pull(&guests.source, &guest) == 1 && weft_buf_new(guest, nullptr, &buf) == 0);
    struct weft_from_lines lines = weft_from_lines(buf, 100);
    struct weft_chunks chunks = weft_chunks(&lines.source, 2, WEFT_FOREVER);
    CHECK(weft_pull(&chunks.source, some) == -EINVAL);
    CHECK(weft_pull(&lines.source, &line) == 1 && line.len == 3 && weft_pull(&lines.source, &line) == 0);
    weft_close(buf);
    weft_close(listener);
    return 0;
}

static int app()
{
    int r = 1;
    CHECK(weft_join(weft_go(comes_in), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(sets), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(tracks), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(keys), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(pulls), &r) == 0 && r == 0);
    return r;
}

WEFT_MAIN(app)
