/* SPDX-License-Identifier: MIT
 *
 * The directory of stacks, proven at one entry a block: what a reader finds was entered so, whole,
 * and what stays entered is found whatever others enter and remove.
 */
#define WEFT__STACKDIR_BLOCK_BYTES 64
#include "sys/stackdir.c"

_Static_assert(BLOCK_ENTRIES == 1, "so that a second mapping needs a second block");

#define BLOCKS 2

static struct block memory[BLOCKS];
static unsigned mapped;

/* Zeroed pages, as the kernel's. */
int weft__mem_map(size_t bytes, void **into)
{
    (void)bytes;
    model_assert(mapped < BLOCKS);
    *into = &memory[mapped++];
    return 0;
}

static void entry_zero(struct weft__stackdir_entry *e)
{
    store_relaxed(&e->version, 0); /* relaxed: before any thread */
    store_relaxed(&e->base, 0);
    store_relaxed(&e->slot_bytes, 0);
    store_relaxed(&e->guard_bytes, 0);
    store_relaxed(&e->count, 0);
    store_relaxed(&e->owner, NULL);
    plain_write(&e->next_free, NULL);
}

static void directory_empty(void)
{
    mapped = 0;
    store_relaxed(&blocks, NULL); /* relaxed: before any thread */
    plain_write(&free_entries, NULL);
    for (int i = 0; i < BLOCKS; i++) {
        store_relaxed(&memory[i].next, NULL);
        entry_zero(&memory[i].entries[0]);
    }
}

/* Two shapes that overlap at OVERLAP and have no number in common, and one that lies apart. */
#define OVERLAP ((const void *)0x2500)
#define APART   ((const void *)0x90000)

static const struct weft__stackdir_span first = {(char *)0x1000, 0x3000, 0x100, 1, (void *)0x1001};
static const struct weft__stackdir_span second = {(char *)0x2000, 0x5000, 0x200, 2, (void *)0x2002};
static const struct weft__stackdir_span apart = {(char *)0x90000, 0x4000, 0x300, 3, (void *)0x9003};

static bool same(const struct weft__stackdir_span *a, const struct weft__stackdir_span *b)
{
    return a->base == b->base && a->slot_bytes == b->slot_bytes &&
           a->guard_bytes == b->guard_bytes && a->count == b->count && a->owner == b->owner;
}

/* ---- broken twins ---- */

enum { HONEST, READS_WHILE_IT_CHANGES, LOOKS_ONLY_ONCE };

static bool read_entry_broken(struct weft__stackdir_entry *e, struct weft__stackdir_span *into)
{
    uint32_t version = load_acquire(&e->version);

    if (model_mutant == LOOKS_ONLY_ONCE && version & 1) return false;
    into->base = (char *)load_relaxed(&e->base);
    into->slot_bytes = load_relaxed(&e->slot_bytes);
    into->guard_bytes = load_relaxed(&e->guard_bytes);
    into->owner = load_relaxed(&e->owner);
    into->count = load_relaxed(&e->count);
    fence_acquire();
    return model_mutant == LOOKS_ONLY_ONCE || load_relaxed(&e->version) == version;
}

static bool find(const void *addr, struct weft__stackdir_span *into)
{
    if (model_mutant == HONEST) return weft__stackdir_find(addr, into);
    return read_entry_broken(&memory[0].entries[0], into) && contains(into, addr);
}

/* ---- the cases ---- */

static struct weft__stackdir_entry *entered;

static void replace(void *arg)
{
    (void)arg;
    weft__stackdir_remove(entered);
    model_assert(weft__stackdir_add(&second, &entered) == 0);
}

static void look_at_overlap(void *arg)
{
    struct weft__stackdir_span found;
    (void)arg;
    if (find(OVERLAP, &found)) model_assert(same(&found, &first) || same(&found, &second));
}

/* One entry changes from one mapping to another while a reader looks where both lie. */
static void replaced(void)
{
    directory_empty();
    model_assert(weft__stackdir_add(&first, &entered) == 0);
    model_thread(replace, NULL);
    model_thread(look_at_overlap, NULL);
    model_join();
    struct weft__stackdir_span found;
    model_assert(weft__stackdir_find(OVERLAP, &found) && same(&found, &second));
    model_assert(mapped == 1);
}

static struct weft__stackdir_entry *entered_apart;

static void enter_first(void *arg)
{
    (void)arg;
    model_assert(weft__stackdir_add(&first, &entered) == 0);
    weft__stackdir_remove(entered);
}

static void look_apart(void *arg)
{
    struct weft__stackdir_span found;
    (void)arg;
    model_assert(weft__stackdir_find(APART, &found));
    model_assert(same(&found, &apart));
}

/* A mapping that stays is found also while a new block is linked before its own. */
static void stays(void)
{
    directory_empty();
    model_assert(weft__stackdir_add(&apart, &entered_apart) == 0);
    model_thread(enter_first, NULL);
    model_thread(look_apart, NULL);
    model_join();
    model_assert(mapped == 2);
}

/* Two threads enter at once, one of them by way of a new block. */
static void enter_second(void *arg)
{
    struct weft__stackdir_entry *e;
    (void)arg;
    model_assert(weft__stackdir_add(&second, &e) == 0);
}

static void enter_apart(void *arg)
{
    (void)arg;
    model_assert(weft__stackdir_add(&apart, &entered_apart) == 0);
}

static void two_enter(void)
{
    struct weft__stackdir_span found;
    directory_empty();
    model_thread(enter_second, NULL);
    model_thread(enter_apart, NULL);
    model_join();
    model_assert(weft__stackdir_find(OVERLAP, &found) && same(&found, &second));
    model_assert(weft__stackdir_find(APART, &found) && same(&found, &apart));
}

/* clang-format off */
static const struct model_case cases[] = {
    {.name = "stackdir: an entry is replaced under a reader", .run = replaced, .unbounded = true, .weaken = true},
    {.name = "stackdir: what stays is found", .run = stays, .unbounded = true, .weaken = true},
    {.name = "stackdir: two enter", .run = two_enter, .unbounded = true},
    {.name = "mutant: reads while it changes", .run = replaced, .unbounded = true, .mutant = READS_WHILE_IT_CHANGES, .must_fail = true},
    {.name = "mutant: looks only once", .run = replaced, .unbounded = true, .mutant = LOOKS_ONLY_ONCE, .must_fail = true},
};
/* clang-format on */

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
