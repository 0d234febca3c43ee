/* SPDX-License-Identifier: MIT
 *
 * pages - the file of the cases file_read..., the same on all sides that are written in C: 256 MB that are in memory, each page begins with its number.
 */
#ifndef WEFT_BENCH_PAGES_H
#define WEFT_BENCH_PAGES_H

#include "harness.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096

/* Short runs, which decide nothing, have a small one. */
static inline uint64_t pages_of(uint64_t reads)
{
    return reads < 10000 ? 256 : 65536;
}

/* The same on all sides. */
static inline uint64_t next_page(uint64_t *state, uint64_t pages)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % pages;
}

static inline void pages_give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* A file without a name, written anew by each process: so it is in memory. */
static inline int pages_make(uint64_t pages)
{
    char name[] = "/tmp/weft-bench-XXXXXX";
    char page[PAGE_BYTES] = {0};
    int fd = mkstemp(name);

    if (fd < 0 || unlink(name) < 0) pages_give_up("a file in /tmp");
    for (uint64_t i = 0; i < pages; i++) {
        memcpy(page, &i, sizeof(i));
        if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page)) pages_give_up("write");
    }
    return fd;
}

/* What is read by so many readers. */
static inline uint64_t pages_sum(uint64_t readers, uint64_t each, uint64_t pages)
{
    uint64_t sum = 0;
    for (uint64_t seed = 0; seed < readers; seed++) {
        uint64_t state = seed;
        for (uint64_t i = 0; i < each; i++)
            sum += next_page(&state, pages);
    }
    return sum;
}

static inline uint64_t page_number(const char *page)
{
    uint64_t number;
    memcpy(&number, page, sizeof(number));
    return number;
}

/* The cases, of a side's own `double reads(struct bench *b, uint64_t readers)`: one round. */
#define PAGES_CASES(end_)                                                                          \
    BENCH(file_read, .n = 200000, .end = (end_))                                                   \
    {                                                                                              \
        return reads(b, 1);                                                                        \
    }                                                                                              \
    BENCH(file_read8, .n = 200000, .end = (end_))                                                  \
    {                                                                                              \
        return reads(b, 8);                                                                        \
    }                                                                                              \
    BENCH(file_read64, .n = 200000, .end = (end_))                                                 \
    {                                                                                              \
        return reads(b, 64);                                                                       \
    }

#endif
