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

/* A record that is in no list. NULL: there is no memory. */
static struct weft__unread_site *record_new(const struct weft_site *site)
{
    struct weft__unread_site *r = weft__alloc(sizeof(*r));
    if (!r) return NULL;
    r->site = site;
    write_text(r->text, site);
    return r;
}

enum counted {
    FIRST,  /* of its place, to be printed */
    AGAIN,  /* counted */
    UNKNOWN /* its place has no record, and there is room for one */
};

/* Holds: unread->lock. */
static enum counted count(struct weft__unread *unread, const struct weft_site *site)
{
    if (unread->closed) return FIRST;
    struct weft__unread_site *r = record_of(unread, site);
    if (r) {
        r->more++;
        return AGAIN;
    }
    if (unread->site_count < WEFT__UNREAD_SITES_MAX) return UNKNOWN;
    unread->elsewhere++;
    return AGAIN;
}

/* Holds: unread->lock. Its place had no record a moment ago. *r, which may be NULL, becomes that record
 * and then is NULL, unless somebody was faster. */
static enum counted count_with(struct weft__unread *unread, const struct weft_site *site,
                               struct weft__unread_site **r)
{
    enum counted c = count(unread, site);
    if (c != UNKNOWN) return c;
    if (!*r) {
        unread->elsewhere++;
        return AGAIN;
    }
    (*r)->next = unread->sites;
    unread->sites = *r;
    unread->site_count++;
    *r = NULL;
    return FIRST;
}

/* Memory comes and goes without the lock: the program's own allocator may wait for anything. */
static enum counted count_new(struct weft__unread *unread, const struct weft_site *site)
{
    struct weft__unread_site *r = record_new(site);
    weft__lock_take(&unread->lock);
    enum counted c = count_with(unread, site, &r);
    weft__lock_drop(&unread->lock);
    weft__free(r);
    return c;
}

void weft__unread_add(struct weft__unread *unread, const struct weft_site *site, int64_t failure)
{
    char text[TEXT_BYTES];

    fetch_add_relaxed(&unread->total, 1); /* relaxed: a count */
    weft__lock_take(&unread->lock);
    enum counted c = count(unread, site);
    weft__lock_drop(&unread->lock);
    if (c == UNKNOWN) c = count_new(unread, site);
    if (c != FIRST) return;
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
