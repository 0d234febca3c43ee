/* SPDX-License-Identifier: MIT
 *
 * store - see store.h.
 */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096 /* a table that grows would need a lock around all of it */

struct entry {
    struct entry *next; /* in its bucket */
    weft_time expires;
    size_t key_bytes, value_bytes;
    char bytes[]; /* the key, then the value */
};

static struct bucket {
    weft_mutex m; /* guards the list; all zero is a mutex */
    struct entry *first;
} table[BUCKETS];

static struct slice value_of(const struct entry *e)
{
    return (struct slice){e->bytes + e->key_bytes, e->value_bytes};
}

static void drop(struct entry **e)
{
    struct entry *gone = *e;
    *e = gone->next;
    free(gone);
}

/* Lock the key's bucket, and find where the key hangs, or would. Behind it comes leave. */
static int enter(struct slice key, struct bucket **b, struct entry ***e)
{
    *b = &table[slice_hash(key) % BUCKETS];
    int r = weft_lock(&(*b)->m);
    if (r < 0) return r;

    struct entry **at = &(*b)->first;
    while (*at && ((*at)->key_bytes != key.len || memcmp((*at)->bytes, key.at, key.len) != 0))
        at = &(*at)->next;
    if (*at && (*at)->expires != WEFT_FOREVER && (*at)->expires <= weft_now()) {
        drop(at);
        while (*at) /* there is no other of that key: a new one hangs at the end */
            at = &(*at)->next;
    }
    *e = at;
    return 0;
}

static int leave(struct bucket *b, int answer)
{
    weft_unlock(&b->m);
    return answer;
}

/* In place of what hangs there. */
static int put(struct entry **at, struct slice key, struct slice value, weft_time expires)
{
    struct entry *e = malloc(sizeof *e + key.len + value.len);
    if (!e) return -ENOMEM;
    *e = (struct entry){NULL, expires, key.len, value.len};
    memcpy(e->bytes, key.at, key.len);
    memcpy(e->bytes + key.len, value.at, value.len);
    if (*at) drop(at);
    e->next = *at;
    *at = e;
    return 1;
}

static int add(struct entry **at, struct slice key, int64_t by, int64_t *into)
{
    char text[24];
    int64_t n = 0;
    if (*at && !slice_number(value_of(*at), &n)) return -EINVAL;
    if (__builtin_add_overflow(n, by, &n)) return -EINVAL;
    size_t len = (size_t)snprintf(text, sizeof text, "%" PRId64, n);
    *into = n;
    return put(at, key, (struct slice){text, len}, *at ? (*at)->expires : WEFT_FOREVER);
}

int store_set(struct slice key, struct slice value, weft_time expires, enum store_when when)
{
    struct bucket *b;
    struct entry **e;
    int r = enter(key, &b, &e);
    if (r < 0) return r;
    if (when != ALWAYS && (*e != NULL) != (when == IF_THERE)) return leave(b, 0);
    return leave(b, put(e, key, value, expires));
}

int store_get(struct slice key, struct out *o)
{
    struct bucket *b;
    struct entry **e;
    int r = enter(key, &b, &e);
    if (r < 0) return r;
    *e ? out_bulk(o, value_of(*e)) : out_nil(o);
    return leave(b, *e != NULL);
}

int store_add(struct slice key, int64_t by, int64_t *into)
{
    struct bucket *b;
    struct entry **e;
    int r = enter(key, &b, &e);
    return r < 0 ? r : leave(b, add(e, key, by, into));
}

int store_delete(struct slice key)
{
    struct bucket *b;
    struct entry **e;
    int r = enter(key, &b, &e);
    if (r < 0) return r;
    if (!*e) return leave(b, 0);
    drop(e);
    return leave(b, 1);
}

int store_expire(struct slice key, weft_time at)
{
    struct bucket *b;
    struct entry **e;
    int r = enter(key, &b, &e);
    if (r < 0) return r;
    if (*e) (*e)->expires = at;
    return leave(b, *e != NULL);
}

int store_expires(struct slice key, weft_time *into)
{
    struct bucket *b;
    struct entry **e;
    int r = enter(key, &b, &e);
    if (r < 0) return r;
    if (*e) *into = (*e)->expires;
    return leave(b, *e != NULL);
}

int64_t store_sweep(weft_time now)
{
    int64_t left = 0;
    for (struct bucket *b = table; b < table + BUCKETS; b++) {
        int r = weft_lock(&b->m);
        if (r < 0) return r;
        for (struct entry **e = &b->first; *e;) {
            if ((*e)->expires <= now) {
                drop(e);
            } else {
                e = &(*e)->next;
                left++;
            }
        }
        weft_unlock(&b->m);
    }
    return left;
}
