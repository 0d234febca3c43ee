/* SPDX-License-Identifier: MIT
 *
 * crawler - all pages of a site that is made up: four at a time, each try with a time of its own, and again if it fails.
 *
 * The block starts a child for each page that was found; with `.limit` that waits while four are under way. Children tell by a channel what they have
 * found, and the last of them closes it. One page fails the first time, one never answers: it is given up after three tries, which does not
 * stop the others: each child is on its own. The whole has a minute.
 */
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

#define PAGES  20
#define TRIES  3
#define FLAKY  7  /* fails the first time */
#define SILENT 11 /* never answers */

typedef WEFT_CHAN(int) page_chan;

struct crawl {
    page_chan *found;
    weft_mutex m; /* guards the rest */
    bool seen[PAGES];
    int open; /* pages that were found and are not over */
    int tries[PAGES];
    int read, given_up;
    int at_once, at_once_most;
};

/* ---- the site: a tree in which every page links home, too ---- */

struct page {
    int links[3];
    int count;
};

static int fetch(struct crawl *c, int page, struct page *into)
{
    if (page == SILENT) return weft_sleep(weft_secs(3600));
    int r = weft_sleep(weft_us(500));
    if (r < 0) return r;
    if (page == FLAKY && c->tries[page] == 1) return -EIO;
    *into = (struct page){.links = {0}, .count = 1};
    for (int next = 2 * page + 1; next <= 2 * page + 2 && next < PAGES; next++)
        into->links[into->count++] = next;
    return 0;
}

/* ---- one page ---- */

static int fetch_again_and_again(struct crawl *c, int page, struct page *into)
{
    int r = -ETIME;
    for (int i = 0; i < TRIES && r < 0 && weft_yield() == 0;
         i++) { /* a yield that fails: it was told to stop */
        c->tries[page]++;
        WEFT_TIMEOUT(weft_ms(100)) r = fetch(c, page, into);
    }
    return r;
}

/* holds: the mutex. Those that are new, and one less: this one is over. Gives how many. */
static int settle(struct crawl *c, const struct page *p, int fresh[3])
{
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        if (c->seen[p->links[i]]) continue;
        c->seen[p->links[i]] = true;
        fresh[count++] = p->links[i];
    }
    c->open += count - 1;
    return count;
}

static int visit(struct crawl *c, int page)
{
    struct page p = {.count = 0};
    int fresh[3], r;

    if ((r = weft_lock(&c->m)) < 0) return r;
    if (++c->at_once > c->at_once_most) c->at_once_most = c->at_once;
    weft_unlock(&c->m);

    int got = fetch_again_and_again(c, page, &p);

    if ((r = weft_lock(&c->m)) < 0) return r;
    c->at_once--;
    c->read += got == 0;
    c->given_up += got < 0;
    int count = settle(c, &p, fresh);
    bool last = c->open == 0;
    weft_unlock(&c->m);

    for (int i = 0; i < count && r == 0; i++)
        r = weft_send(c->found, &fresh[i]);
    if (last) weft_chan_close(c->found);
    return r;
}

/* ---- all of them ---- */

static int crawl_from(struct crawl *c, int first)
{
    int page = first;
    int r = weft_chan_new(PAGES, &c->found);
    if (r < 0) return r;
    c->seen[first] = true;
    c->open = 1;
    r = weft_send(c->found, &first);
    WEFT_SCOPE(s, .timeout = weft_secs(60), .limit = 4)
    {
        while (r >= 0 && (r = weft_recv(c->found, &page)) > 0)
            r = weft_go_in(s, visit, c, page); /* waits while four are under way */
        if (r < 0) break;                      /* no time, or no memory: the rest is cancelled */
    }
    weft_chan_free(c->found);
    return r;
}

static int app(void)
{
    struct crawl c = {.m = WEFT_MUTEX_INIT};
    int r = crawl_from(&c, 0);
    if (r < 0) return r;
    printf("%d pages read, %d given up\n", c.read, c.given_up);
    printf("page %d: try %d\n", FLAKY, c.tries[FLAKY]);
    printf("page %d: given up after %d tries\n", SILENT, c.tries[SILENT]);
    printf("at most %s at a time\n", c.at_once_most <= 4 ? "four" : "too many");
    return 0;
}

WEFT_MAIN(app)
