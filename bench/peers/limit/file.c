/* SPDX-License-Identifier: MIT
 *
 * limit_files CASE [WORKERS] [N] - the cases file_read... by pread(2) and nothing else, one thread: what the machine allows. Readers take turns, one page each; so that
 * what is read, and in which order, is what a runtime with one worker reads.
 */
#include "pages.h"

static int fd = -1; /* of all rounds */

static void end(struct bench *b)
{
    (void)b;
    close(fd);
}

static uint64_t read_page(uint64_t number)
{
    static char page[PAGE_BYTES];
    if (pread(fd, page, sizeof(page), (off_t)(number * PAGE_BYTES)) != (ssize_t)sizeof(page))
        pages_give_up("pread");
    return page_number(page);
}

static double reads(struct bench *b, uint64_t readers)
{
    uint64_t pages = pages_of(b->n);
    uint64_t each = b->n / readers;
    uint64_t state[64] = {0};
    uint64_t sum = 0;

    if (b->round == 0) fd = pages_make(pages);
    for (uint64_t i = 0; i < readers; i++)
        state[i] = i;
    uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < each * readers; i++)
        sum += read_page(next_page(&state[i % readers], pages));
    double took = bench_per_op(start, each * readers);
    bench_check(b, sum, pages_sum(readers, each, pages));
    return took;
}

PAGES_CASES(end)
