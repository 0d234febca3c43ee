/* SPDX-License-Identifier: MIT
 *
 * codec - items on a buffered stream (weft/codec.h): the search for one, the place for one, lines and lengths.
 *
 * Threads: the reader's and the writer's of the buffer (seat.h).
 */
#include <weft/codec.h>

#include "io/buf.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <limits.h>
#include <string.h>

/* ---- lines ---- */

static size_t line_limit(const weft_codec *codec)
{
    return codec->limit ? codec->limit : WEFT_LINE_LIMIT;
}

static int line_found(const weft_codec *codec, size_t len, size_t used, struct weft_decoded *into)
{
    if (len > line_limit(codec)) return -EMSGSIZE;
    into->at = 0;
    into->len = len;
    into->used = used;
    return 1;
}

int weft__line_decode(const weft_codec *codec, const char *data, size_t len, bool ended,
                      struct weft_decoded *into)
{
    const char *lf = into->seen < len ? memchr(data + into->seen, '\n', len - into->seen) : NULL;
    into->seen = len;
    if (lf) {
        size_t bytes = (size_t)(lf - data);
        bool cr = bytes > 0 && data[bytes - 1] == '\r';
        return line_found(codec, bytes - cr, bytes + 1, into);
    }
    if (ended) return line_found(codec, len, len, into);
    return len > line_limit(codec) && len - 1 > line_limit(codec) ? -EMSGSIZE : 0;
}

int weft__line_encode(const weft_codec *codec, const char *data, size_t len,
                      struct weft_encoded *into)
{
    if (len > line_limit(codec)) return -EMSGSIZE;
    if (len > 0 && memchr(data, '\n', len)) return -EINVAL;
    into->tail[0] = '\n';
    into->tail_len = 1;
    return 0;
}

/* ---- lengths ---- */

static bool length_is_sound(const weft_codec *codec)
{
    return codec->bytes == 1 || codec->bytes == 2 || codec->bytes == 4 || codec->bytes == 8;
}

static size_t item_limit(const weft_codec *codec)
{
    return codec->limit ? codec->limit : WEFT_ITEM_LIMIT;
}

/* Where byte i, from the lowest on, stands. */
static unsigned place_of(const weft_codec *codec, unsigned i)
{
    return codec->little ? i : codec->bytes - 1 - i;
}

static uint64_t length_get(const weft_codec *codec, const char *data)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < codec->bytes; i++)
        length |= (uint64_t)(unsigned char)data[place_of(codec, i)] << 8 * i;
    return length;
}

static void length_put(const weft_codec *codec, uint64_t length, char *into)
{
    for (unsigned i = 0; i < codec->bytes; i++)
        into[place_of(codec, i)] = (char)(unsigned char)(length >> 8 * i);
}

static int not_yet(bool ended, size_t need, struct weft_decoded *into)
{
    into->need = need;
    return ended ? -EPROTO : 0;
}

int weft__length_decode(const weft_codec *codec, const char *data, size_t len, bool ended,
                        struct weft_decoded *into)
{
    if (!length_is_sound(codec)) return -EINVAL;
    if (len < codec->bytes) return not_yet(ended, codec->bytes, into);
    uint64_t length = length_get(codec, data);
    if (length > item_limit(codec) || length > (uint64_t)SSIZE_MAX - 8) return -EMSGSIZE;
    if (len - codec->bytes < length) return not_yet(ended, codec->bytes + (size_t)length, into);
    into->at = codec->bytes;
    into->len = (size_t)length;
    into->used = codec->bytes + (size_t)length;
    return 1;
}

int weft__length_encode(const weft_codec *codec, const char *data, size_t len,
                        struct weft_encoded *into)
{
    (void)data;
    if (!length_is_sound(codec)) return -EINVAL;
    uint64_t most = codec->bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * codec->bytes) - 1;
    if (len > item_limit(codec) || len > most) return -EMSGSIZE;
    length_put(codec, len, into->head);
    into->head_len = codec->bytes;
    return 0;
}

/* ---- decode ---- */

/* Bytes that may stand around an item, beside its limit: what a buffer grows to at most. */
#define AROUND 64

struct looking {
    const weft_codec *codec;
    struct weft_decoded *found;
};

/* Is it some of what is there, and the item within? A decoder that forgets to say would else be asked for ever, or take what is not there. */
static bool is_there(const struct weft_decoded *found, size_t len)
{
    return found->used > 0 && found->used <= len && found->at <= found->used &&
           found->len <= found->used - found->at;
}

static ssize_t find_item(struct weft__seek *seek, const char *data, size_t len, bool ended)
{
    const struct looking *l = seek->how;
    if (len == 0) return 0;
    l->found->need = 0;
    int r = l->codec->decode(l->codec, data, len, ended, l->found);
    seek->need = l->found->need;
    if (r > 0 && !is_there(l->found, len)) return -EINVAL;
    return r > 0 ? (ssize_t)l->found->used : r;
}

static size_t most_of(const weft_codec *codec)
{
    size_t limit = codec->limit ? codec->limit : WEFT_ITEM_LIMIT;
    return limit < SSIZE_MAX - AROUND ? limit + AROUND : SSIZE_MAX;
}

weft_poll weft_decode_poll(void *frame, weft_cx *cx)
{
    struct weft_decode *f = frame;
    struct looking l = {f->codec, &f->weft__found};
    struct weft__seek seek = {.find = find_item, .how = &l};
    ssize_t got = -EINVAL;
    f->weft__at = 0;
    if (f->buf && f->codec && f->codec->decode && f->into) {
        seek.most = most_of(f->codec);
        if (weft__buf_seek(f->buf, &f->weft__io, &seek, cx, &got) == WEFT_PENDING) {
            f->weft__at = WEFT__LEAF_WAITS;
            return WEFT_PENDING;
        }
    }
    if (got > 0) {
        f->into->data = weft__buf_found(f->buf, (size_t)got) + f->weft__found.at;
        f->into->len = f->weft__found.len;
    }
    f->ret = got > 0 ? 1 : (int)got;
    return WEFT_READY;
}

/* ---- encode ---- */

/* READY: *ret. The codec is asked at each poll: it is cheaper than to keep what it said. */
static weft_poll encode(struct weft_encode *f, weft_cx *cx, ssize_t *ret)
{
    struct weft_encoded around = {.head_len = 0};
    *ret = f->codec->encode(f->codec, f->data, f->len, &around);
    bool fits = around.head_len <= sizeof(around.head) && around.tail_len <= sizeof(around.tail);
    if (*ret >= 0 && !fits) *ret = -EINVAL;
    if (*ret < 0) return WEFT_READY;
    const weft_slice parts[] = {
        {around.head, around.head_len}, {f->data, f->len}, {around.tail, around.tail_len}};
    return weft__buf_put(f->buf, &f->weft__io, parts, 3, cx, ret);
}

weft_poll weft_encode_poll(void *frame, weft_cx *cx)
{
    struct weft_encode *f = frame;
    ssize_t answer = -EINVAL;
    f->weft__at = 0;
    if (f->buf && f->codec && f->codec->encode && (f->data || f->len == 0) &&
        f->len < SSIZE_MAX - AROUND &&
        encode(f, cx, &answer) == WEFT_PENDING) {
        f->weft__at = WEFT__LEAF_WAITS;
        return WEFT_PENDING;
    }
    f->ret = (int)answer;
    return WEFT_READY;
}

/* ---- call forms ---- */

int weft__decode(weft_buf *buf, const weft_codec *codec, weft_slice *into)
{
    struct weft_decode f = {.buf = buf, .codec = codec, .into = into};
    int r = weft__run_from(weft_decode_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

int weft__encode(weft_buf *buf, const weft_codec *codec, const void *data, size_t len)
{
    struct weft_encode f = {.buf = buf, .codec = codec, .data = data, .len = len};
    int r = weft__run_from(weft_encode_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
