/* SPDX-License-Identifier: MIT
 *
 * unread - the records of sites with failures; the idea is in unread.h.
 */
#include "sched/unread.h"

#include "base/alloc.h"
#include "base/err.h"
#include "limits.h"

#include <stdio.h>

/* Characters of a place. Doubled: a runtime in trouble keeps 8 KiB more. */
#define TEXT_BYTES 128

struct weft__unread_site {
    struct weft__unread_site *next;
    const struct weft_site *site; /* the key; never followed */
    uint64_t more;                /* failures after the first */
    char text[TEXT_BYTES];        /* "task 'x' (spawned at file:line)" */
};

void weft__unread_init(struct weft__unread *unread)
{
    *unread = (struct weft__unread){.sites = NULL};
    weft__lock_init(&unread->lock, WEFT__RANK_SLAB);
}

static void write_text(char *into, const struct weft_site *site)
{
    (void)snprintf(into, TEXT_BYTES, "task '%s' (spawned at %s:%u)", site->name, site->file,
                   site->line);
}

/* Holds: unread->lock. NULL: it has none. */
static struct weft__unread_site *record_of(struct weft__unread *unread,
                                           const struct weft_site *site)
{
    struct weft__unread_site *r = unread->sites;
    while (r && r->site != site)
        r = r->next;
    return r;
}

/* Holds: unread->lock. False: there is no room for another. */
static bool record_new(struct weft__unread *unread, const struct weft_site *site)
{
    if (unread->site_count == WEFT__UNREAD_SITES_MAX) return false;
    struct weft__unread_site *r = weft__alloc(sizeof(*r));
    if (!r) return false;
    r->site = site;
    r->more = 0;
    write_text(r->text, site);
    r->next = unread->sites;
    unread->sites = r;
    unread->site_count++;
    return true;
}

/* Holds: unread->lock. True: it is the first of its place, to be printed. */
static bool count(struct weft__unread *unread, const struct weft_site *site)
{
    if (unread->closed) return true;
    struct weft__unread_site *r = record_of(unread, site);
    if (r) {
        r->more++;
        return false;
    }
    if (record_new(unread, site)) return true;
    unread->elsewhere++;
    return false;
}

void weft__unread_add(struct weft__unread *unread, const struct weft_site *site, int64_t failure)
{
    char text[TEXT_BYTES];

    fetch_add_relaxed(&unread->total, 1); /* relaxed: a count */
    weft__lock_take(&unread->lock);
    bool first = count(unread, site);
    weft__lock_drop(&unread->lock);
    if (!first) return;
    write_text(text, site);
    fprintf(stderr, "weft: %s ended with %s, and nobody reads it\n", text,
            weft__err_name((int)failure));
}

/* The oldest first, as they were reported. */
static struct weft__unread_site *reversed(struct weft__unread_site *r)
{
    struct weft__unread_site *done = NULL;
    while (r) {
        struct weft__unread_site *next = r->next;
        r->next = done;
        done = r;
        r = next;
    }
    return done;
}

static void tell(struct weft__unread_site *r)
{
    while (r) {
        struct weft__unread_site *next = r->next;
        if (r->more > 0)
            fprintf(stderr, "weft: %llu more like it: %s\n", (unsigned long long)r->more, r->text);
        weft__free(r);
        r = next;
    }
}

void weft__unread_done(struct weft__unread *unread)
{
    weft__lock_take(&unread->lock);
    struct weft__unread_site *sites = reversed(unread->sites);
    uint64_t elsewhere = unread->elsewhere;
    unread->sites = NULL;
    unread->elsewhere = 0;
    unread->closed = true;
    weft__lock_drop(&unread->lock);
    tell(sites);
    if (elsewhere > 0)
        fprintf(stderr, "weft: %llu more failures that nobody read, of tasks spawned elsewhere\n",
                (unsigned long long)elsewhere);
}
