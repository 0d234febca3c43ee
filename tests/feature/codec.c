/* SPDX-License-Identifier: MIT
 *
 * Items on buffered streams, on real runtimes: lines and lengths of every kind, limits, ends in the middle, a codec of one's own; given up at any moment.
 */
#include "storm.h"
#include "town.h"

/* Two buffered ends of a connection in memory. */
static void ends(size_t room, weft_buf *into[2], size_t buffer)
{
    weft_stream *s[2];
    ASSERT_OK(weft_duplex(room, &s[0], &s[1]));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(weft_buf_new(s[i], &(weft_buf_opts){.read_bytes = buffer, .write_bytes = buffer},
                               &into[i]));
}

static void both_close(weft_buf *b[2])
{
    weft_close(b[0]);
    weft_close(b[1]);
}

static void sends(weft_buf *b, const char *bytes, size_t len)
{
    ASSERT_EQ(weft_write_all(weft_buf_stream(b), bytes, len), len);
    ASSERT_OK(weft_flush(b));
}

/* ---- how they look ---- */

static void looks(const weft_codec *codec, const char *item, const char *bytes, size_t len)
{
    weft_buf *b[2];
    weft_slice got;
    char in[100];
    ends(1000, b, 7);
    ASSERT_OK(weft_encode(b[0], codec, item, strlen(item)));
    ASSERT_OK(weft_flush(b[0]));
    ASSERT_EQ(weft_read_exact(weft_buf_stream(b[1]), in, len), len);
    ASSERT_EQ(memcmp(in, bytes, len), 0);
    sends(b[0], bytes, len);
    ASSERT_EQ(weft_decode(b[1], codec, &got), 1);
    ASSERT_EQ(got.len, strlen(item));
    ASSERT_EQ(memcmp(got.data, item, got.len), 0);
    both_close(b);
}

static void all_looks(struct crew *crew)
{
    static const weft_codec lines = WEFT_CODEC_LINES(100);
    static const weft_codec codecs[] = {
        WEFT_CODEC_LENGTHS(1, 100),    WEFT_CODEC_LENGTHS(2, 100),    WEFT_CODEC_LENGTHS(4, 0),
        WEFT_CODEC_LENGTHS(8, 0),      WEFT_CODEC_LENGTHS_LE(1, 100), WEFT_CODEC_LENGTHS_LE(2, 100),
        WEFT_CODEC_LENGTHS_LE(4, 100), WEFT_CODEC_LENGTHS_LE(8, 100),
    };
    (void)crew;
    looks(&lines, "a line", "a line\n", 7);
    looks(&lines, "", "\n", 1);
    looks(&codecs[0], "three", "\5three", 6);
    looks(&codecs[1], "three", "\0\5three", 7);
    looks(&codecs[2], "three", "\0\0\0\5three", 9);
    looks(&codecs[3], "three", "\0\0\0\0\0\0\0\5three", 13);
    looks(&codecs[4], "three", "\5three", 6);
    looks(&codecs[5], "three", "\5\0three", 7);
    looks(&codecs[6], "three", "\5\0\0\0three", 9);
    looks(&codecs[7], "three", "\5\0\0\0\0\0\0\0three", 13);
    looks(&codecs[2], "", "\0\0\0\0", 4);
}

TEST(codec_lines_and_lengths)
{
    crew_each(all_looks);
}

static void limits(struct crew *crew)
{
    static const weft_codec small = WEFT_CODEC_LENGTHS(2, 5);
    static const weft_codec byte = WEFT_CODEC_LENGTHS(1, 1000);
    static const weft_codec lines = WEFT_CODEC_LINES(5);
    static const weft_codec broken = WEFT_CODEC_LENGTHS(3, 5);
    static const char big[300];
    weft_buf *b[2];
    weft_slice got;
    (void)crew;
    ends(1000, b, 8);
    ASSERT_EQ(weft_encode(b[0], &small, "123456", 6), -EMSGSIZE);
    ASSERT_EQ(weft_encode(b[0], &byte, big, 256), -EMSGSIZE); /* a byte cannot say it */
    ASSERT_OK(weft_encode(b[0], &byte, big, 255)); /* larger than the buffer, and as a whole */
    ASSERT_EQ(weft_encode(b[0], &lines, "123456", 6), -EMSGSIZE);
    ASSERT_EQ(weft_encode(b[0], &lines, "1\n2", 3), -EINVAL);
    ASSERT_EQ(weft_encode(b[0], &broken, "1", 1), -EINVAL);
    ASSERT_OK(weft_flush(b[0]));
    ASSERT_EQ(weft_decode(b[1], &byte, &got), 1);
    ASSERT_EQ(got.len, 255);
    sends(b[0], "\0\6", 2); /* too large: told before it has come, and not consumed */
    ASSERT_EQ(weft_decode(b[1], &small, &got), -EMSGSIZE);
    ASSERT_EQ(weft_decode(b[1], &small, &got), -EMSGSIZE);
    ASSERT_OK(weft_buf_consume(b[1], 2));
    sends(b[0], "12345\r\n12345\n1234567", 20);
    ASSERT_EQ(weft_decode(b[1], &lines, &got), 1);
    ASSERT_EQ(weft_decode(b[1], &lines, &got), 1);
    ASSERT_EQ(got.len, 5);
    ASSERT_EQ(weft_decode(b[1], &lines, &got), -EMSGSIZE);
    both_close(b);
}

TEST(codec_limits)
{
    crew_each(limits);
}

static void ends_early(struct crew *crew)
{
    static const weft_codec lengths = WEFT_CODEC_LENGTHS(4, 0);
    static const weft_codec lines = WEFT_CODEC_LINES(0);
    static const char *const cut[] = {"\0", "\0\0\0\5", "\0\0\0\5abc"};
    static const size_t cut_len[] = {1, 4, 7};
    weft_buf *b[2];
    weft_slice got;
    (void)crew;
    for (int i = 0; i < 3; i++) {
        ends(100, b, 8);
        sends(b[0], cut[i], cut_len[i]);
        ASSERT_OK(weft_shutdown(weft_buf_stream(b[0])));
        ASSERT_EQ(weft_decode(b[1], &lengths, &got), -EPROTO);
        both_close(b);
    }
    ends(100, b, 8);
    sends(b[0], "a\nlast", 6);
    ASSERT_OK(weft_shutdown(weft_buf_stream(b[0])));
    ASSERT_EQ(weft_decode(b[1], &lines, &got), 1);
    ASSERT_EQ(weft_decode(b[1], &lines, &got), 1);
    ASSERT_EQ(got.len, 4);
    ASSERT_EQ(weft_decode(b[1], &lines, &got), 0);
    ASSERT_EQ(weft_decode(b[1], &lengths, &got), 0); /* between two items: an end like any other */
    both_close(b);
}

TEST(codec_ends_in_the_middle)
{
    crew_each(ends_early);
}

/* The caller's room takes no item that is larger. */
TEST(codec_in_the_callers_room)
{
    static const weft_codec lengths = WEFT_CODEC_LENGTHS(1, 0);
    char room[8];
    weft_stream *s[2];
    weft_buf *b;
    ASSERT_OK(weft_duplex(100, &s[0], &s[1]));
    ASSERT_OK(weft_buf_new(s[0], &(weft_buf_opts){.write_room = room, .write_bytes = 8}, &b));
    ASSERT_EQ(weft_encode(b, &lengths, "12345678", 8), -EMSGSIZE);
    ASSERT_OK(weft_encode(b, &lengths, "1234567", 7));
    ASSERT_OK(weft_encode(b, &lengths, "1234567", 7));
    weft_close(b);
    weft_close(s[1]);
}

/* ---- one's own ---- */

/* Two digits, then so many bytes, then "!". */
static int digits_decode(const weft_codec *codec, const char *data, size_t len, bool ended,
                         struct weft_decoded *into)
{
    (void)codec;
    into->need = 3;
    if (len < 3) return ended ? -EPROTO : 0;
    size_t bytes = (size_t)(data[0] - '0') * 10 + (size_t)(data[1] - '0');
    into->need = bytes + 3;
    if (len < into->need) return ended ? -EPROTO : 0;
    if (data[bytes + 2] != '!') return -EBADMSG;
    *into = (struct weft_decoded){.at = 2, .len = bytes, .used = bytes + 3};
    return 1;
}

static int digits_encode(const weft_codec *codec, const char *data, size_t len,
                         struct weft_encoded *into)
{
    (void)codec, (void)data;
    if (len > 99) return -EMSGSIZE;
    into->head[0] = (char)('0' + len / 10);
    into->head[1] = (char)('0' + len % 10);
    into->tail[0] = '!';
    into->head_len = 2;
    into->tail_len = 1;
    return 0;
}

static void own(struct crew *crew)
{
    static const weft_codec digits = {digits_decode, digits_encode, 99, 0, false};
    (void)crew;
    looks(&digits, "hello world", "11hello world!", 14);
    looks(&digits, "", "00!", 3);
    weft_buf *b[2];
    weft_slice got;
    ends(100, b, 8);
    sends(b[0], "01x?", 4);
    ASSERT_EQ(weft_decode(b[1], &digits, &got), -EBADMSG);
    both_close(b);
}

TEST(codec_of_ones_own)
{
    crew_each(own);
}

/* What a codec says that cannot be: an item of nothing, or of what is not there; more around it than fits. */
static struct weft_decoded claims;

static int claims_decode(const weft_codec *codec, const char *data, size_t len, bool ended,
                         struct weft_decoded *into)
{
    (void)codec, (void)data, (void)len, (void)ended;
    *into = claims;
    return 1;
}

static int claims_encode(const weft_codec *codec, const char *data, size_t len,
                         struct weft_encoded *into)
{
    (void)codec, (void)data, (void)len;
    into->head_len = claims.used;
    into->tail_len = claims.len;
    return 0;
}

static void impossible(struct crew *crew)
{
    static const weft_codec codec = {claims_decode, claims_encode, 99, 0, false};
    static const weft_codec one_way[2] = {{claims_decode, NULL, 0, 0, false},
                                          {NULL, claims_encode, 0, 0, false}};
    static const struct weft_decoded cannot_be[] = {
        {.used = 0, .len = 17}, {.used = 17}, {.used = 4, .len = 17}, {.used = 17, .at = 5, .len = 17}};
    weft_buf *b[2];
    weft_slice got;

    (void)crew;
    ends(100, b, 8);
    sends(b[0], "abcd", 4);
    for (size_t i = 0; i < sizeof(cannot_be) / sizeof(cannot_be[0]); i++) {
        claims = cannot_be[i];
        ASSERT_EQ(weft_decode(b[1], &codec, &got), -EINVAL);
        ASSERT_EQ(weft_encode(b[1], &codec, "x", 1), -EINVAL);
    }
    claims = (struct weft_decoded){.used = 4, .at = 1, .len = 3};
    ASSERT_EQ(weft_decode(b[1], &one_way[1], &got), -EINVAL);
    ASSERT_EQ(weft_encode(b[1], &one_way[0], "x", 1), -EINVAL);
    ASSERT_EQ(weft_decode(b[1], &codec, &got), 1); /* nothing was consumed */
    ASSERT_EQ(got.len, 3);
    ASSERT_EQ(memcmp(got.data, "bcd", 3), 0);
    both_close(b);
}

TEST(codec_that_cannot_be)
{
    crew_each(impossible);
}

/* ---- given up ---- */

struct talk {
    weft_buf *b;
    const weft_codec *codec;
    uint64_t items;
    uint64_t at;
    uint64_t random;
};

static size_t item_make(uint64_t i, char *into)
{
    size_t len = (size_t)(i * 2654435761u >> 5) % 120;
    for (size_t k = 0; k < len; k++)
        into[k] = (char)('a' + (i + k) % 26);
    return len;
}

static int speaks(struct talk *t)
{
    char item[120];
    struct storm_pause pause;
    while (t->at < t->items) {
        size_t len = item_make(t->at, item);
        struct weft_encode enc;
        (void)weft_select(weft_arm(enc, weft_encode, t->b, t->codec, item, len),
                          weft_arm(pause, storm_pause, pool_random(&t->random, 3)));
        if (enc.ret == 0) t->at++;
        if (enc.ret < 0 && enc.ret != -ECANCELED) return enc.ret;
    }
    return weft_shutdown(weft_buf_stream(t->b));
}

static int hears(struct talk *t)
{
    struct storm_pause pause;
    for (;;) {
        char want[120];
        weft_slice item;
        struct weft_decode dec;
        (void)weft_select(weft_arm(dec, weft_decode, t->b, t->codec, &item),
                          weft_arm(pause, storm_pause, pool_random(&t->random, 3)));
        if (dec.ret == -ECANCELED) continue;
        if (dec.ret <= 0) return dec.ret < 0 ? dec.ret : t->at == t->items ? 0 : -EIO;
        size_t len = item_make(t->at++, want);
        if (item.len != len || memcmp(item.data, want, len) != 0) return -EILSEQ;
    }
}

struct hearing {
    WEFT_FRAME(int);
    struct talk *t;
    weft_slice item;
    struct weft_decode dec;
};
static weft_async(hearing)
{
    char want[120];
    weft_begin;
    for (;;) {
        weft_await(f->dec, weft_decode, f->t->b, f->t->codec, &f->item);
        if (f->dec.ret <= 0) break;
        size_t len = item_make(f->t->at++, want);
        if (f->item.len != len || memcmp(f->item.data, want, len) != 0) weft_return(-EILSEQ);
    }
    weft_return(f->dec.ret < 0 ? f->dec.ret : f->t->at == f->t->items ? 0 : -EIO);
    weft_end;
}

static void given_up(struct crew *crew)
{
    static const weft_codec codecs[] = {WEFT_CODEC_LINES(200), WEFT_CODEC_LENGTHS(2, 200),
                                        WEFT_CODEC_LENGTHS_LE(8, 200)};
    (void)crew;
    for (int i = 0; i < 6; i++) {
        weft_buf *b[2];
        int r[2] = {1, 1};
        ends(50, b, 32);
        struct talk out = {b[0], &codecs[i % 3], test_scaled(1000), 0, pool_seed(1)};
        struct talk in = {b[1], &codecs[i % 3], test_scaled(1000), 0, pool_seed(2)};
        weft_task *speaker = weft_go(speaks, &out);
        weft_task *hearer = i / 3 ? weft_spawn(hearing, &in) : weft_go(hears, &in);
        ASSERT_OK(weft_join(speaker, &r[0]));
        ASSERT_OK(weft_join(hearer, &r[1]));
        ASSERT_OK(r[0]);
        ASSERT_OK(r[1]);
        both_close(b);
    }
}

TEST_WITH(codec_given_up_leaves_whole_items, .timeout_s = 180)
{
    crew_each(given_up);
}
