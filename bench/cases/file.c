/* SPDX-License-Identifier: MIT
 *
 * Random reads of 4 KiB from a file of 256 MB that is in memory: one reader at a time, 8 and 64. Each page begins with its
 * number; the sum of those that were read is the checksum.
 */
#include "root.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096

/* Short runs, which decide nothing, have a small one. */
static uint64_t pages_of(uint64_t reads)
{
    return reads < 10000 ? 256 : 65536;
}

/* The same on all sides. */
static uint64_t next_page(uint64_t *state, uint64_t pages)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % pages;
}

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* A file without a name, written anew by each process: so it is in memory. */
static int file_make(uint64_t pages)
{
    char name[] = "/tmp/weft-bench-XXXXXX";
    char page[PAGE_BYTES] = {0};
    int fd = mkstemp(name);

    if (fd < 0 || unlink(name) < 0) give_up("weft_bench: a file in /tmp");
    for (uint64_t i = 0; i < pages; i++) {
        memcpy(page, &i, sizeof(i));
        if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page)) give_up("weft_bench: write");
    }
    return fd;
}

static weft_file *file; /* of all rounds */

static void file_ready(const struct bench *b)
{
    if (b->round > 0) return;
    if (weft_file_of(file_make(pages_of(b->n)), &file) < 0) give_up("weft_bench: weft_file_of");
}

static void file_end(struct bench *b)
{
    weft_file_close(file);
    root_end(b);
}

struct reader {
    WEFT_FRAME(int64_t);
    uint64_t seed;
    uint64_t n;
    uint64_t pages;
    uint64_t i;
    struct weft_file_read read;
    char page[PAGE_BYTES];
};

static weft_async(reader)
{
    uint64_t number;
    weft_begin;
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->read, weft_file_read, file, f->page, sizeof(f->page),
                   (int64_t)(next_page(&f->seed, f->pages) * PAGE_BYTES));
        if (f->read.ret != PAGE_BYTES) weft_return(-1);
        memcpy(&number, f->page, sizeof(number));
        f->ret += (int64_t)number;
    }
    weft_end;
}

static uint64_t sum_of(uint64_t readers, uint64_t each, uint64_t pages)
{
    uint64_t sum = 0;
    for (uint64_t seed = 0; seed < readers; seed++) {
        uint64_t state = seed;
        for (uint64_t i = 0; i < each; i++)
            sum += next_page(&state, pages);
    }
    return sum;
}

static uint64_t pages_now; /* of this round */

static void spawn_readers(weft_task **tasks, uint64_t readers, uint64_t each)
{
    for (uint64_t i = 0; i < readers; i++)
        tasks[i] = weft_spawn(reader, .seed = i, .n = each, .pages = pages_now);
}

static double reads(struct bench *b, uint64_t readers)
{
    uint64_t each = b->n / readers;
    file_ready(b);
    pages_now = pages_of(b->n);
    uint64_t expected = sum_of(readers, each, pages_now);
    uint64_t start = root_start(b);
    weft_task *root = root_all(spawn_readers, readers, each);
    return root_finish(b, start, root, each * readers, expected);
}

BENCH(file_read, .n = 200000, .end = file_end)
{
    return reads(b, 1);
}

BENCH(file_read8, .n = 200000, .end = file_end)
{
    return reads(b, 8);
}

BENCH(file_read64, .n = 200000, .end = file_end)
{
    return reads(b, 64);
}
