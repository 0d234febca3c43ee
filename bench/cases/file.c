/* SPDX-License-Identifier: MIT
 *
 * Random reads of 4 KiB from a file of 256 MB that is in memory: one reader at a time, 8 and 64. Each page begins with its
 * number; the sum of those that were read is the checksum.
 */
#include "pages.h"
#include "root.h"

static weft_file *file; /* of all rounds */

static void file_ready(const struct bench *b)
{
    if (b->round > 0) return;
    if (weft_file_of(pages_make(pages_of(b->n)), &file) < 0) pages_give_up("weft_file_of");
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
    weft_begin;
    f->ret = 0;
    for (f->i = 0; f->i < f->n; f->i++) {
        weft_await(f->read, weft_file_read, file, f->page, sizeof(f->page),
                   (int64_t)(next_page(&f->seed, f->pages) * PAGE_BYTES));
        if (f->read.ret != PAGE_BYTES) weft_return(-1);
        f->ret += (int64_t)page_number(f->page);
    }
    weft_end;
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
    uint64_t expected = pages_sum(readers, each, pages_now);
    uint64_t start = root_start(b);
    weft_task *root = root_all(spawn_readers, readers, each);
    return root_finish(b, start, root, each * readers, expected);
}

PAGES_CASES(file_end)
