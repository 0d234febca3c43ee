/* SPDX-License-Identifier: MIT
 *
 * uv_files CASE [WORKERS] [N] - the cases file_read... by uv_fs_read, on libuv's pool of threads: so many requests under way as there are readers, each of which asks for
 * its next page when it has one.
 */
#include "pages.h"

#include <uv.h>

static uv_file file = -1; /* of all rounds */

struct reader {
    uv_fs_t fs; /* first: a request is its reader */
    uint64_t state;
    uint64_t left;
    uint64_t pages;
    uint64_t sum;
    char page[PAGE_BYTES];
};

static struct reader all[64];

static void on_page(uv_fs_t *fs);

static void ask(struct reader *r)
{
    uv_buf_t buf = uv_buf_init(r->page, sizeof(r->page));
    int64_t at = (int64_t)(next_page(&r->state, r->pages) * PAGE_BYTES);
    if (r->left-- == 0) return;
    if (uv_fs_read(uv_default_loop(), &r->fs, file, &buf, 1, at, on_page) < 0)
        pages_give_up("uv_fs_read");
}

static void on_page(uv_fs_t *fs)
{
    struct reader *r = (struct reader *)fs;
    if (fs->result != PAGE_BYTES) pages_give_up("uv_fs_read");
    uv_fs_req_cleanup(fs);
    r->sum += page_number(r->page);
    ask(r);
}

static void end(struct bench *b)
{
    (void)b;
    close(file);
}

static double reads(struct bench *b, uint64_t readers)
{
    uint64_t pages = pages_of(b->n);
    uint64_t each = b->n / readers;
    uint64_t sum = 0;

    if (b->round == 0) file = pages_make(pages);
    uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < readers; i++) {
        all[i] = (struct reader){.state = i, .left = each, .pages = pages};
        ask(&all[i]);
    }
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    double took = bench_per_op(start, each * readers);
    for (uint64_t i = 0; i < readers; i++)
        sum += all[i].sum;
    bench_check(b, sum, pages_sum(readers, each, pages));
    return took;
}

PAGES_CASES(end)
