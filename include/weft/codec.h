/* SPDX-License-Identifier: MIT
 *
 * codec - items instead of bytes: lines, frames with their length in front, or what a program defines; on a buffered stream (buf.h).
 *
 *     static const weft_codec packets = WEFT_CODEC_LENGTHS(4, 1 << 20);      four bytes, the highest first; a megabyte at most
 *     weft_slice item;
 *     while ((r = weft_decode(b, &packets, &item)) > 0)                      1 and an item, 0 at the end, or an errno
 *         r = weft_encode(b, &packets, item.data, item.len);
 *     r = weft_flush(b);
 *
 * GIVEN UP  A decode has taken nothing: what has come of the item stays in the buffer. An encode has put the whole item into the buffer, or
 * nothing of it; so the stream is never left in the middle of one.
 */
#ifndef WEFT_CODEC_H
#define WEFT_CODEC_H

#include <weft/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- your own ------------------------------------------------------------------------------------------------------------ */

/* Where an item is. Zero before the first look at one; `seen` and `need` stay between two looks at the same. */
struct weft_decoded {
    size_t at;   /* of the item, from the first byte */
    size_t len;  /* of it */
    size_t used; /* what is consumed: the item and all around it; not 0 */
    size_t need; /* not found yet: so many bytes there must be; 0: one more */
    size_t seen; /* the decoder's: what it need not look at again */
};

/* What stands around an item. */
struct weft_encoded {
    char head[16];
    char tail[16];
    size_t head_len;
    size_t tail_len;
};

typedef struct weft_codec weft_codec;
struct weft_codec {
    /* Is there an item at the front? `ended`: nothing follows, and there is something. Returns 1 and *into; 0: not yet; -EMSGSIZE and any other errno: it
     * never will. Neither waits nor keeps `data`. */
    int (*decode)(const weft_codec *codec, const char *data, size_t len, bool ended,
                  struct weft_decoded *into);
    /* What goes around it? Returns 0 and *into, which is zero before; an errno: it cannot be sent. */
    int (*encode)(const weft_codec *codec, const char *data, size_t len, struct weft_encoded *into);
    size_t limit;   /* bytes of an item; 0: the default */
    unsigned bytes; /* of lengths: 1, 2, 4 or 8 */
    bool little;    /* of lengths: the lowest byte first */
};

#define WEFT_ITEM_LIMIT (8 * 1024 * 1024)

/* ---- ready made ------------------------------------------------------------------------------------------------------------
 *
 * WEFT_CODEC_LINES(limit): lines, ended by LF or CRLF; the last may be without. Default limit: WEFT_LINE_LIMIT. A line that is sent gets an LF, and must
 * not have one inside (-EINVAL).
 * WEFT_CODEC_LENGTHS(bytes, limit): frames with their length in front, in 1, 2, 4 or 8 bytes, the highest first; ..._LE: the lowest first. Default
 * limit: WEFT_ITEM_LIMIT. A stream that ends in the middle of one: -EPROTO. */
WEFT_API int weft__line_decode(const weft_codec *codec, const char *data, size_t len, bool ended,
                               struct weft_decoded *into);
WEFT_API int weft__line_encode(const weft_codec *codec, const char *data, size_t len,
                               struct weft_encoded *into);
WEFT_API int weft__length_decode(const weft_codec *codec, const char *data, size_t len, bool ended,
                                 struct weft_decoded *into);
WEFT_API int weft__length_encode(const weft_codec *codec, const char *data, size_t len,
                                 struct weft_encoded *into);

#define WEFT_CODEC_LINES(limit) {weft__line_decode, weft__line_encode, (limit), 0, false}
#define WEFT_CODEC_LENGTHS(bytes, limit)                                                           \
    {weft__length_decode, weft__length_encode, (limit), (bytes), false}
#define WEFT_CODEC_LENGTHS_LE(bytes, limit)                                                        \
    {weft__length_decode, weft__length_encode, (limit), (bytes), true}

/* ---- operations --------------------------------------------------------------------------------------------------------------
 *
 * weft_decode(buf, codec, &item): the next item, borrowed until the next read of the buffer. Borrows the codec. Returns 1; 0 at the end; -EMSGSIZE: it
 * is larger than the limit, and was not consumed; what the codec says; -EINVAL for NULL, and if it says what cannot be (nothing used, or more than there is); else as weft_read.
 *
 * weft_encode(buf, codec, data, len): put an item into the buffer, as a whole, waiting for room; weft_flush sends it. Borrows all. Returns 0; -EMSGSIZE:
 * it is larger than the limit, than its length's bytes can say, or than the caller's room; -ENOMEM; what the codec says; -EINVAL as above; else as weft_write. */
struct weft_decode {
    WEFT_FRAME(int);
    weft_buf *buf;
    const weft_codec *codec;
    weft_slice *into;
    struct weft_decoded weft__found WEFT__ZERO;
    struct weft_io weft__io WEFT__ZERO;
};
struct weft_encode {
    WEFT_FRAME(int);
    weft_buf *buf;
    const weft_codec *codec;
    const void *data;
    size_t len;
    struct weft_io weft__io WEFT__ZERO;
};
WEFT_API weft_pollfn weft_decode_poll;
WEFT_API weft_pollfn weft_encode_poll;
WEFT_API int weft__decode(weft_buf *buf, const weft_codec *codec, weft_slice *into)
    __attribute__((warn_unused_result));
WEFT_API int weft__encode(weft_buf *buf, const weft_codec *codec, const void *data, size_t len)
    __attribute__((warn_unused_result));
#define weft_decode(buf, codec, into)                                                              \
    (WEFT__CALL_FORM("weft_decode()"), weft__decode(buf, codec, into))
#define weft_encode(buf, codec, data, len)                                                         \
    (WEFT__CALL_FORM("weft_encode()"), weft__encode(buf, codec, data, len))

#ifdef __cplusplus
}
#endif

#endif
