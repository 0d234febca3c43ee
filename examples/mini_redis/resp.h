/* SPDX-License-Identifier: MIT
 *
 * resp - the protocol of Redis, version 2: commands come in, answers go out. No I/O is done here.
 */
#ifndef MINI_REDIS_RESP_H
#define MINI_REDIS_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct slice {
    const char *at;
    size_t len;
};

#define RESP_ARGS 128       /* of one command */
#define RESP_BULK (8 << 20) /* bytes of one argument */

/* The first command in buf: an array of strings, or a line of words. The arguments are views into buf.
 * Returns how many bytes it has; 0: more is to come; -EPROTO: it is none. *argc may be 0: an empty one, to be passed over. */
ssize_t resp_parse(const char *buf, size_t len, struct slice argv[RESP_ARGS], int *argc);

bool slice_is(struct slice s, const char *word); /* in any case */
uint32_t slice_hash(struct slice s);
bool slice_number(struct slice s, int64_t *into);

/* Answers, as they gather. `failed`: there was no memory. */
struct out {
    char *at;
    size_t len, cap;
    bool failed;
};

void out_line(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_raw(struct out *o, const void *bytes, size_t len);
void out_bulk(struct out *o, struct slice s);
void out_nil(struct out *o);
void out_int(struct out *o, int64_t n);

#endif
