/* SPDX-License-Identifier: MIT
 *
 * weft_from_lines and weft_from_accept: lines and connections by the one way to ask for the next, by both kinds of tasks; sources around them, which never keep a
 * line beyond its pull; and that a pull that is given up at any moment has taken nothing.
 */
#include "peer.h"
#include "storm.h"
#include "town.h"

/* ---- lines ---- */

/* A pair of Unix sockets, of which the second has a buffer so small that it moves what lies in it all the time. */
static weft_buf *buffered(weft_stream **peer)
{
    weft_stream *pair[2];
    weft_buf *b;
    town_pair(TOWN_UNIX, pair);
    ASSERT_OK(weft_buf_new(pair[1], &(weft_buf_opts){.read_bytes = 16}, &b));
    *peer = pair[0];
    return b;
}

static weft_buf *said(const char *text)
{
    weft_stream *peer;
    weft_buf *b = buffered(&peer);
    ASSERT_EQ(weft_write_all(peer, text, strlen(text)), (ssize_t)strlen(text));
    weft_close(peer);
    return b;
}

static bool is(const weft_slice *line, const char *text)
{
    return line->len == strlen(text) && memcmp(line->data, text, line->len) == 0;
}

static int is_no_comment(void *ctx, void *item)
{
    const weft_slice *line = item;
    (void)ctx;
    return line->len > 0 && line->data[0] != '#';
}

static int parse(void *ctx, const void *in, void *into)
{
    const weft_slice *line = in;
    int number = 0;
    (void)ctx;
    for (size_t i = 0; i < line->len; i++) {
        if (line->data[i] < '0' || line->data[i] > '9') return -EILSEQ;
        number = number * 10 + line->data[i] - '0';
    }
    *(int *)into = number;
    return 1;
}

static int lines_by_calls(void)
{
    weft_buf *b = said("one\r\n# two\n\nthree\nfour, without an end");
    struct weft_from_lines lines = weft_from_lines(b, 0);
    struct weft_filter text = weft_filter(&lines.source, is_no_comment, NULL);
    struct weft_take two = weft_take(&text.source, 2);
    weft_slice line;
    char other;

    ASSERT_EQ(weft_pull(&two.source, &line), 1);
    ASSERT(is(&line, "one"));
    ASSERT_EQ(weft_pull(&two.source, &other), -EINVAL); /* of another size */
    ASSERT_EQ(weft_pull(&two.source, &line), 1);
    ASSERT(is(&line, "three"));
    ASSERT_EQ(weft_pull(&two.source, &line), 0);
    ASSERT_EQ(weft_pull(&lines.source, &line), 1);
    ASSERT(is(&line, "four, without an end"));
    ASSERT_EQ(weft_pull(&lines.source, &line), 0);
    ASSERT_EQ(weft_pull(&lines.source, &line), 0); /* the end stays */
    weft_close(b);
    return 0;
}

struct lines_awaited {
    WEFT_FRAME(int);
    weft_buf *b;
    weft_slice line;
    struct weft_from_lines lines;
    struct weft_filter text;
    struct weft_pull pull;
};
static weft_async(lines_awaited)
{
    weft_begin;
    f->lines = weft_from_lines(f->b, 10);
    f->text = weft_filter(&f->lines.source, is_no_comment, NULL);
    weft_await(f->pull, weft_pull, &f->text.source, &f->line);
    ASSERT_EQ(f->pull.ret, 1);
    ASSERT(is(&f->line, "one"));
    weft_await(f->pull, weft_pull, &f->text.source, &f->line);
    ASSERT_EQ(f->pull.ret, 1);
    ASSERT(is(&f->line, "two"));
    weft_await(f->pull, weft_pull, &f->text.source, &f->line);
    weft_return(f->pull.ret);
    weft_end;
}

static void both_kinds(struct crew *crew)
{
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(lines_by_calls), &r));
    ASSERT_OK(r);
    weft_buf *b = said("one\n#\ntwo");
    ASSERT_OK(weft_join(weft_spawn(lines_awaited, b), &r));
    ASSERT_OK(r);
    weft_close(b);
    ASSERT_OK(lines_by_calls()); /* by a plain thread */
}

TEST(incoming_lines_are_pulled)
{
    crew_each(both_kinds);
}

/* A line that is too long stays, as it does for weft_read_line: who knows better reads on by other means. */
static int long_ones(void)
{
    weft_buf *b = said("0123456789abcdef\nshort\n");
    struct weft_from_lines lines = weft_from_lines(b, 10);
    struct weft_from_lines none = weft_from_lines(NULL, 0);
    weft_slice line;
    const char *data;

    ASSERT_EQ(weft_pull(&lines.source, &line), -EMSGSIZE);
    ASSERT_EQ(weft_pull(&lines.source, &line), -EMSGSIZE);
    ASSERT_EQ(weft_read_until(b, '\n', 100, &data), 17);
    ASSERT_EQ(weft_pull(&lines.source, &line), 1);
    ASSERT(is(&line, "short"));
    ASSERT_EQ(weft_pull(&none.source, &line), -EINVAL);
    weft_close(b);
    return 0;
}

/* Two readers with one buffer would find each other's lines: one hears -EBUSY, as of any read. */
static int waits_for_a_line(weft_buf *b)
{
    struct weft_from_lines lines = weft_from_lines(b, 10);
    weft_slice line;
    return weft_pull(&lines.source, &line);
}

static int busy_ones(void)
{
    weft_stream *peer;
    weft_buf *b = buffered(&peer);
    weft_task *reader = weft_go(waits_for_a_line, b);
    int r = 0;

    while (weft_buf_consume(b, 0) != -EBUSY) /* until it reads */
        (void)weft_yield();
    ASSERT_EQ(waits_for_a_line(b), -EBUSY);
    weft_close(peer);
    ASSERT_OK(weft_join(reader, &r));
    weft_close(b);
    return r;
}

static void odd_ones(struct crew *crew)
{
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(long_ones), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_go(busy_ones), &r));
    ASSERT_OK(r);
}

TEST(incoming_lines_fail_as_reads_do)
{
    crew_each(odd_ones);
}

/* ---- lines are not kept ---- */

/* The second read moves the first line: whatever stands between, they are not collected. What was made of them is. */
static int collected(void)
{
    weft_buf *b = said("1\n2\n3\n4\n5\n");
    weft_buf *c = said("6\n");
    struct weft_from_lines lines = weft_from_lines(b, 10);
    struct weft_from_lines more = weft_from_lines(c, 10);
    weft_source *both[] = {&more.source, &lines.source};
    weft_slice late[2];
    weft_slice some[4];
    weft_slice line;
    int numbers[4];

    struct weft_chunks bare = weft_chunks(&lines.source, 4, WEFT_FOREVER);
    ASSERT_EQ(weft_pull(&bare.source, some), -EINVAL);
    struct weft_filter text = weft_filter(&lines.source, is_no_comment, NULL);
    struct weft_within quick = weft_within(&text.source, weft_secs(99));
    struct weft_throttle slow = weft_throttle(&quick.source, 0);
    struct weft_take ten = weft_take(&slow.source, 10);
    struct weft_chunks deep = weft_chunks(&ten.source, 4, WEFT_FOREVER);
    ASSERT_EQ(weft_pull(&deep.source, some), -EINVAL);
    struct weft_merge merged = weft_merge(both, 2, late);
    struct weft_chunks wide = weft_chunks(&merged.source, 4, WEFT_FOREVER);
    ASSERT_EQ(weft_pull(&wide.source, some), -EINVAL);

    struct weft_map parsed = weft_map(&ten.source, parse, NULL, &line, int);
    struct weft_chunks right = weft_chunks(&parsed.source, 4, WEFT_FOREVER);
    ASSERT_EQ(weft_pull(&right.source, numbers), 4); /* none was lost by those who were refused */
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(numbers[i], i + 1);
    ASSERT_EQ(weft_pull(&right.source, numbers), 1);
    ASSERT_EQ(numbers[0], 5);
    ASSERT_EQ(weft_pull(&right.source, numbers), 0);
    weft_close(b);
    weft_close(c);
    return 0;
}

/* Of a merge each line is whole while it is looked at, in the order of its own stream. */
static int merged_lines(void)
{
    weft_buf *b[3];
    struct weft_from_lines lines[3];
    weft_source *of[3];
    weft_slice late[3];
    weft_slice line;
    int seen[3] = {0};
    int r;

    for (int i = 0; i < 3; i++) {
        char text[200] = "";
        for (int k = 0; k < 9; k++)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%d%d-------%d\n", i, k,
                           k);
        b[i] = said(text);
        lines[i] = weft_from_lines(b[i], 100);
        of[i] = &lines[i].source;
    }
    struct weft_merge all = weft_merge(of, 3, late);
    while ((r = weft_pull(&all.source, &line)) > 0) {
        char want[40];
        int i = line.data[0] - '0';
        (void)snprintf(want, sizeof want, "%d%d-------%d", i, seen[i], seen[i]);
        ASSERT(is(&line, want));
        seen[i]++;
    }
    ASSERT_OK(r);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(seen[i], 9);
        weft_close(b[i]);
    }
    return 0;
}

static void kept(struct crew *crew)
{
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(collected), &r));
    ASSERT_OK(r);
    ASSERT_OK(weft_join(weft_go(merged_lines), &r));
    ASSERT_OK(r);
}

TEST(incoming_lines_are_not_kept)
{
    crew_each(kept);
}

/* ---- lines, given up ---- */

struct page {
    weft_stream *peer;
    weft_buf *b;
    struct weft_from_lines lines; /* one, for one puller after the other */
    uint64_t count;
    uint64_t at; /* the next one that must come */
};

static int writes_numbers(struct page *p)
{
    uint64_t random = pool_seed(3);
    char text[32];
    for (uint64_t i = 0; i < p->count; i++) {
        int len = snprintf(text, sizeof text, "%llu\n", (unsigned long long)i);
        for (int at = 0; at < len;) { /* in pieces */
            int piece = 1 + (int)pool_random(&random, (uint32_t)(len - at));
            ASSERT_EQ(weft_write_all(p->peer, text + at, (size_t)piece), piece);
            at += piece;
            if (pool_random(&random, 3) == 0) (void)weft_yield();
        }
    }
    weft_close(p->peer);
    return 0;
}

static void check_number(struct page *p, const weft_slice *line)
{
    int number = -1;
    ASSERT_EQ(parse(NULL, line, &number), 1);
    ASSERT_EQ(number, p->at);
    p->at++;
}

static int pulls_numbers(struct page *p)
{
    weft_slice line;
    int r;
    while ((r = weft_pull(&p->lines.source, &line)) > 0)
        check_number(p, &line);
    return r;
}

struct pulling_numbers {
    WEFT_FRAME(int);
    struct page *p;
    weft_slice line;
    struct weft_pull pull;
};
static weft_async(pulling_numbers)
{
    weft_begin;
    for (;;) {
        weft_await(f->pull, weft_pull, &f->p->lines.source, &f->line);
        if (f->pull.ret <= 0) break;
        check_number(f->p, &f->line);
    }
    weft_return(f->pull.ret);
    weft_end;
}

/* An arm that may lose against a pause. */
static int pulls_or_not(struct page *p)
{
    uint64_t random = pool_seed(p->at + 7);
    struct storm_pause pause;
    struct weft_pull pull;
    weft_slice line;
    for (int i = 0; i < 50; i++) {
        (void)weft_select(weft_arm(pull, weft_pull, &p->lines.source, &line),
                          weft_arm(pause, storm_pause, pool_random(&random, 3)));
        if (pull.ret > 0) check_number(p, &line);
        if (pull.ret == 0) return 0;
        if (pull.ret < 0) ASSERT_EQ(pull.ret, -ECANCELED);
    }
    return -ECANCELED;
}

static weft_task *puller(struct page *p, uint64_t *random)
{
    switch (pool_random(random, 3)) {
    case 0:
        return weft_go(pulls_numbers, p);
    case 1:
        return weft_spawn(pulling_numbers, p);
    default:
        return weft_go(pulls_or_not, p);
    }
}

static void given_up_lines(struct crew *crew)
{
    struct page p = {.count = test_scaled(2000)};
    uint64_t random = pool_seed((uint64_t)crew->workers + 9);
    int r = -ECANCELED;
    int w = 1;
    p.b = buffered(&p.peer);
    p.lines = weft_from_lines(p.b, 30);
    weft_task *writer = weft_go(writes_numbers, &p);
    while (r == -ECANCELED) {
        weft_task *task = puller(&p, &random);
        for (uint32_t k = pool_random(&random, 30); k > 0; k--)
            sched_yield();
        weft_cancel(task);
        ASSERT_OK(weft_join(task, &r));
    }
    ASSERT_OK(r);
    ASSERT_EQ(p.at, p.count);
    ASSERT_OK(weft_join(writer, &w));
    weft_close(p.b);
}

TEST_WITH(incoming_lines_given_up_lose_nothing, .timeout_s = 180)
{
    crew_each(given_up_lines);
}

/* ---- connections ---- */

/* It says its number and goes. */
static int knocks(const char *address, int number)
{
    weft_stream *s;
    char byte = (char)number;
    ASSERT_OK(weft_tcp_connect(address, &s));
    ASSERT_EQ(weft_write_all(s, &byte, 1), 1);
    weft_close(s);
    return 0;
}

static int number_of(weft_stream *guest)
{
    char byte = -1;
    ASSERT_EQ(weft_read_exact(guest, &byte, 1), 1);
    weft_close(guest);
    return byte;
}

/* The filter has whom it drops: here the first few. It must not wait. */
static int turns_away(void *ctx, void *item)
{
    weft_stream **guest = item;
    int *left = ctx;
    if ((*left)-- <= 0) return 1;
    weft_close(*guest);
    return 0;
}

static int welcomes(struct town_gate *gate)
{
    struct weft_from_accept guests = weft_from_accept(gate->listener);
    int too_early = 3;
    struct weft_filter others = weft_filter(&guests.source, turns_away, &too_early);
    weft_stream *guest[2];
    int sum = 0;
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(weft_pull(&others.source, &guest[0]), 1);
        sum += number_of(guest[0]);
    }
    struct weft_take three = weft_take(&guests.source, 3);
    struct weft_chunks some = weft_chunks(&three.source, 2, WEFT_FOREVER);
    ASSERT_EQ(weft_pull(&some.source, guest), 2); /* nothing is lent: they are yours */
    sum += number_of(guest[0]) + number_of(guest[1]);
    ASSERT_EQ(weft_pull(&some.source, guest), 1);
    return sum + number_of(guest[0]);
}

struct welcoming {
    WEFT_FRAME(int);
    struct town_gate *gate;
    struct weft_from_accept guests;
    weft_stream *guest;
    char byte;
    int i;
    int sum;
    struct weft_pull pull;
    struct weft_read_exact read;
};
static weft_async(welcoming)
{
    weft_begin;
    f->guests = weft_from_accept(f->gate->listener);
    for (f->i = 0; f->i < 5; f->i++) {
        weft_await(f->pull, weft_pull, &f->guests.source, &f->guest);
        ASSERT_EQ(f->pull.ret, 1);
        weft_await(f->read, weft_read_exact, f->guest, &f->byte, 1);
        ASSERT_EQ(f->read.ret, 1);
        f->sum += f->byte;
        weft_close(f->guest);
    }
    weft_return(f->sum);
    weft_end;
}

static int guests_come(struct town_gate *gate, int count)
{
    int sum = 0;
    for (int i = 1; i <= count; i++) {
        ASSERT_OK(knocks(gate->address, i));
        sum += i;
    }
    return sum;
}

static void connections(struct crew *crew)
{
    struct town_gate gate;
    weft_listener *packets;
    int r = 1;
    (void)crew;
    town_open(&gate);
    weft_task *host = weft_go(welcomes, &gate);
    (void)guests_come(&gate, 3); /* they are turned away */
    int sum = guests_come(&gate, 5);
    ASSERT_OK(weft_join(host, &r));
    ASSERT_EQ(r, sum);
    host = weft_spawn(welcoming, &gate);
    sum = guests_come(&gate, 5);
    ASSERT_OK(weft_join(host, &r));
    ASSERT_EQ(r, sum);
    weft_close(gate.listener);

    weft_stream *guest = NULL;
    struct weft_from_accept nobody = weft_from_accept(NULL);
    ASSERT_EQ(weft_pull(&nobody.source, &guest), -EINVAL);
    ASSERT_OK(weft_packet_listen("@weft-incoming", &packets));
    struct weft_from_accept other = weft_from_accept(packets);
    ASSERT_EQ(weft_pull(&other.source, &guest), -EOPNOTSUPP);
    weft_close(packets);
}

TEST(incoming_connections_are_pulled)
{
    crew_each(connections);
}

/* Who waits is told when the listener goes. */
struct closing {
    WEFT_FRAME(int);
    weft_listener *listener;
    struct weft_yield pause;
};
static weft_async(closing)
{
    weft_begin;
    weft_await(f->pause, weft_yield); /* the pull beside it has begun by then */
    weft_close(f->listener);
    weft_end;
}

static int host_of_a_closing_house(void)
{
    struct town_gate gate;
    struct weft_pull pull;
    struct closing closes;
    weft_stream *guest;
    town_open(&gate);
    struct weft_from_accept guests = weft_from_accept(gate.listener);
    struct weft_within patient = weft_within(&guests.source, weft_secs(3600));
    ASSERT_EQ(weft_all(weft_arm(pull, weft_pull, &patient.source, &guest),
                       weft_arm(closes, closing, gate.listener)),
              0);
    return pull.ret;
}

static void goes_away(struct crew *crew)
{
    int r = 1;
    (void)crew;
    ASSERT_OK(weft_join(weft_go(host_of_a_closing_house), &r));
    ASSERT_EQ(r, -EBADF);
}

TEST(incoming_connections_end_with_their_listener)
{
    crew_each(goes_away);
}

/* ---- connections, given up ---- */

/* Two doors as one: whoever loses has let nobody in that is not given out. */
struct house {
    struct town_gate gate[2];
    struct weft_from_accept from[2];
    weft_source *of[2];
    weft_stream *late[2];
    struct weft_merge all;
    _Atomic int in; /* relaxed: a count */
};

static void lets_in(struct house *h, weft_stream *guest)
{
    weft_close(guest);
    fetch_add_relaxed(&h->in, 1);
}

static int hosts(struct house *h)
{
    weft_stream *guest;
    int r;
    while ((r = weft_pull(&h->all.source, &guest)) > 0)
        lets_in(h, guest);
    return r;
}

struct hosting {
    WEFT_FRAME(int);
    struct house *h;
    weft_stream *guest;
    struct weft_pull pull;
};
static weft_async(hosting)
{
    weft_begin;
    for (;;) {
        weft_await(f->pull, weft_pull, &f->h->all.source, &f->guest);
        if (f->pull.ret <= 0) break;
        lets_in(f->h, f->guest);
    }
    weft_return(f->pull.ret);
    weft_end;
}

static void given_up_guests(struct crew *crew)
{
    struct house h = {.in = 0};
    uint64_t random = pool_seed((uint64_t)crew->workers + 5);
    int count = (int)test_scaled(150);
    int came = 0;
    for (int i = 0; i < 2; i++) {
        town_open(&h.gate[i]);
        h.from[i] = weft_from_accept(h.gate[i].listener);
        h.of[i] = &h.from[i].source;
    }
    h.all = weft_merge(h.of, 2, h.late);
    while (load_relaxed(&h.in) < count) {
        int r = 1;
        weft_task *host = pool_random(&random, 2) ? weft_spawn(hosting, &h) : weft_go(hosts, &h);
        for (uint32_t k = pool_random(&random, 4); k > 0 && came < count; k--, came++)
            ASSERT_OK(close(peer_connect(h.gate[pool_random(&random, 2)].address, 0)));
        for (uint32_t k = pool_random(&random, 30); k > 0; k--)
            sched_yield();
        weft_cancel(host);
        ASSERT_OK(weft_join(host, &r));
        ASSERT_EQ(r, -ECANCELED);
    }
    ASSERT_EQ(load_relaxed(&h.in), count);
    ASSERT_EQ(h.all.weft__late, 0); /* an accept that loses has none */
    for (int i = 0; i < 2; i++)
        weft_close(h.gate[i].listener);
}

TEST_WITH(incoming_connections_given_up_stay_at_the_door, .timeout_s = 180)
{
    crew_each(given_up_guests);
}
