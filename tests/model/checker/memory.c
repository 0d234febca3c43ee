/* SPDX-License-Identifier: MIT
 *
 * memory - the memory model: what a load may see, where a store may go.
 *
 * Each location keeps all its stores in modification order. Each thread has a view: for each location, the last access that happens before the
 * thread's next event. A load may return any store from there on; a store may go anywhere after it, except between a store and the RMW that read it.
 * A releasing store carries its thread's view, an acquiring load takes it over; fences do the same for the relaxed accesses around them. An RMW passes
 * on what the store it read carried (a release sequence goes on through RMWs, and through nothing else, as C++20 and C23 have it).
 * This is RC11 without seq_cst, which order.c adds; as in RC11 there are no load-buffering cycles: a load never sees what comes later.
 */
#include "internal.h"

#include <stdio.h>
#include <string.h>

struct loc model__locs[LOCS_MAX];
unsigned model__loc_count;

static struct store store_pool[LOCS_MAX * 24];
static unsigned store_count;
static struct view view_pool[VIEWS_MAX];
static unsigned view_count;

/* Address -> location, open addressing; emptied by bumping the stamp. */
#define BUCKETS 512
static struct {
    uint64_t stamp;
    struct loc *loc;
} buckets[BUCKETS];
static uint64_t stamp;

void model__memory_reset(void)
{
    model__loc_count = 0;
    store_count = 0;
    view_count = 0;
    stamp++;
}

/* ---- views ---- */

static void view_grow(struct view *v, unsigned locs)
{
    for (; v->locs < locs; v->locs++)
        v->loc[v->locs] = (struct known){0, 0};
}

void model__view_join(struct view *into, const struct view *from)
{
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++)
        if (from->clock[i] > into->clock[i]) into->clock[i] = from->clock[i];
    into->sc |= from->sc;
    into->departed |= from->departed;
    view_grow(into, from->locs);
    for (unsigned i = 0; i < from->locs; i++) {
        if (from->loc[i].seen > into->loc[i].seen) into->loc[i].seen = from->loc[i].seen;
        if (from->loc[i].wrote > into->loc[i].wrote) into->loc[i].wrote = from->loc[i].wrote;
    }
}

void model__view_copy(struct view *into, const struct view *from)
{
    memcpy(into, from, offsetof(struct view, loc) + from->locs * sizeof(from->loc[0]));
}

code model__seen(const struct view *v, const struct loc *l)
{
    return l->index < v->locs ? v->loc[l->index].seen : 0;
}

static bool view_is_empty(const struct view *v)
{
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++)
        if (v->clock[i]) return false;
    return true;
}

static struct view *view_new(const struct view *from)
{
    if (view_count == VIEWS_MAX) model__fail_limit("too many stores in one execution (VIEWS_MAX)");
    struct view *v = &view_pool[view_count++];
    model__view_copy(v, from);
    return v;
}

/* ---- locations ---- */

static unsigned bucket_of(const volatile void *address)
{
    return (unsigned)(((uintptr_t)address * 0x9E3779B97F4A7C15u) >> 40) % BUCKETS;
}

struct loc *model__loc_if_known(const volatile void *address)
{
    for (unsigned b = bucket_of(address); buckets[b].stamp == stamp; b = (b + 1) % BUCKETS)
        if (buckets[b].loc->address == address) return buckets[b].loc;
    return NULL;
}

static struct store *store_new(struct loc *l, unsigned at_index, uint64_t value, uint32_t key)
{
    if (l->count == STORES_MAX) model__fail_limit("too many stores to one location (STORES_MAX)");
    if (store_count == sizeof(store_pool) / sizeof(store_pool[0]))
        model__fail_limit("too many stores in one execution");
    struct store *s = &store_pool[store_count++];
    for (unsigned i = l->count++; i > at_index; i--)
        l->mo[i] = l->mo[i - 1];
    l->mo[at_index] = s;
    *s = (struct store){.value = value, .key = key, .thread = model__current, .step = model__step};
    return s;
}

/* Sizes as constants: a memcpy of unknown size is a call, and this runs at each access. */
static uint64_t raw_value(const volatile void *address, size_t bytes)
{
    switch (bytes) {
    case 1:
        return *(const volatile uint8_t *)address;
    case 2:
        return *(const volatile uint16_t *)address;
    case 4:
        return *(const volatile uint32_t *)address;
    default:
        return *(const volatile uint64_t *)address;
    }
}

static void set_raw_value(const volatile void *address, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        *(volatile uint8_t *)address = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)address = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)address = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)address = value;
    }
}

static bool overlap(const struct loc *a, const struct loc *b)
{
    return (uintptr_t)a->address < (uintptr_t)b->address + b->bytes &&
           (uintptr_t)b->address < (uintptr_t)a->address + a->bytes;
}

/* Plain memory may be written as a whole and read in parts; an atomic is one object of one size. */
static void find_overlaps(struct loc *l)
{
    for (unsigned i = 0; i < model__loc_count; i++) {
        struct loc *other = &model__locs[i];
        if (other == l || !overlap(l, other)) continue;
        if (!l->plain || !other->plain)
            model__fail(
                "an atomic overlaps with memory that is accessed with another address or size");
        l->overlaps[i / 64] |= 1ull << i % 64;
        other->overlaps[l->index / 64] |= 1ull << l->index % 64;
    }
}

static struct loc *loc_new(const volatile void *address, size_t bytes, bool plain)
{
    if (model__loc_count == LOCS_MAX)
        model__fail_limit("too many locations in one execution (LOCS_MAX)");
    if (!plain && bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
        model__fail("an atomic of %zu bytes: 1, 2, 4 or 8", bytes);
    }
    struct loc *l = &model__locs[model__loc_count];
    memset(l, 0, offsetof(struct loc, mo));
    l->address = address;
    l->bytes = bytes;
    l->plain = plain;
    l->name = model__name_of(address);
    l->index = model__loc_count++;
    unsigned b = bucket_of(address);
    while (buckets[b].stamp == stamp)
        b = (b + 1) % BUCKETS;
    buckets[b].stamp = stamp;
    buckets[b].loc = l;
    if (!plain) store_new(l, 0, raw_value(address, bytes), KEY_GAP);
    find_overlaps(l);
    return l;
}

static void check_size(struct loc *l, size_t bytes)
{
    if (l->bytes == bytes) return;
    if (!l->plain)
        model__fail("an atomic is accessed with two sizes, %zu and %zu bytes", l->bytes, bytes);
    if (bytes < l->bytes) return;
    model__check_not_freed(l->address, bytes);
    l->bytes = bytes;
    find_overlaps(l);
}

struct loc *model__loc(const volatile void *address, size_t bytes, bool plain)
{
    struct loc *l = model__loc_if_known(address);
    if (!l) {
        model__check_not_freed(address, bytes);
        l = loc_new(address, bytes, plain);
    }
    if (l->dead) model__fail("use after free");
    if (l->plain != plain) model__fail("one address is used both as an atomic and as plain memory");
    check_size(l, bytes);
    if (!plain && raw_value(address, bytes) != l->mo[l->count - 1]->value) {
        model__fail(
            "an atomic was written around the checker (memset, plain assignment): use store_relaxed");
    }
    return l;
}

/* ---- what may be seen ---- */

static uint32_t floor_key(const struct loc *l)
{
    const struct thread *t = self();
    uint32_t key = model__seen(&t->now, l) >> 1;
    if (l->index < t->least_locs && t->least[l->index] > key) key = t->least[l->index];
    return key;
}

unsigned model__first_from(const struct loc *l, uint32_t key)
{
    unsigned i = l->count;
    while (i > 0 && l->mo[i - 1]->key >= key)
        i--;
    return i;
}

/* ---- what is learnt ---- */

static void set_seen(struct thread *t, const struct loc *l, code c, bool write)
{
    view_grow(&t->now, l->index + 1);
    struct known *k = &t->now.loc[l->index];
    if (c > k->seen) k->seen = c;
    if (write && c > k->wrote) k->wrote = c;
}

static void learn(const struct store *s, bool acquire)
{
    struct thread *t = self();
    if (!s->view) return;
    model__view_join(&t->acquirable, s->view);
    if (acquire) model__view_join(&t->now, s->view);
}

void model__tick(void)
{
    self()->now.clock[model__current]++;
}

static void write_memory(struct loc *l)
{
    set_raw_value(l->address, l->bytes, l->mo[l->count - 1]->value);
}

static struct view *view_of_store(bool release, const struct view *passed_on)
{
    struct thread *t = self();
    const struct view *own = release ? &t->now : &t->released;
    struct view *v = NULL;
    if (!view_is_empty(own)) v = view_new(own);
    if (passed_on) {
        if (v) {
            model__view_join(v, passed_on);
        } else {
            v = view_new(passed_on);
        }
    }
    return v;
}

/* ---- orders made weaker, for the mutants that are made by themselves ---- */

static enum model_order effective(const struct model_site *at, enum model_order order)
{
    if (model__collecting) model__collect(at, order, false);
    if (at != model__weak_site) return order;
    if (model__weak_how == WEAKEN_SEQ_CST) return order == MODEL_seq_cst ? MODEL_acq_rel : order;
    bool acquire = acquires(order) && model__weak_how != WEAKEN_ACQUIRE;
    bool release = releases(order) && model__weak_how != WEAKEN_RELEASE;
    if (acquire && release) return MODEL_acq_rel;
    return acquire ? MODEL_acquire : release ? MODEL_release : MODEL_relaxed;
}

/* ---- loads ---- */

static const char *label(const struct loc *l)
{
    static char text[64];
    if (!l->name) return "";
    snprintf(text, sizeof(text), "[%s] ", l->name);
    return text;
}

static const char *where(const struct store *s, char *buffer, size_t bytes)
{
    if (!s->at) return "initial";
    snprintf(buffer, bytes, "by T%u at step %u", s->thread, s->step);
    return buffer;
}

static void trace_read(const struct model_site *at, const struct loc *l, unsigned index)
{
    char text[64];
    const struct store *s = l->mo[index];
    if (!model__tracing) return;
    model__trace(at, "%s-> 0x%llx  (%s%s)", label(l), (unsigned long long)s->value,
                 where(s, text, sizeof(text)), index + 1 < l->count ? ", not the newest" : "");
}

uint64_t model__read(struct loc *l, uint32_t least_key, enum model_order order,
                     const struct model_site *at)
{
    uint32_t key = floor_key(l);
    unsigned from = model__first_from(l, key > least_key ? key : least_key);
    unsigned index = l->count - 1 - model__choose(l->count - from);
    struct store *s = l->mo[index];

    model__note_look(l, s);
    model__touch_loc(l);
    trace_read(at, l, index);
    set_seen(self(), l, 2 * s->key + 1, false);
    learn(s, acquires(order));
    model__order_access(l, true, s->key, false, 0, order == MODEL_seq_cst);
    model__tick();
    return s->value;
}

uint64_t model_load(const struct model_site *at, const volatile void *p, size_t bytes,
                    enum model_order order)
{
    order = effective(at, order);
    model__point(OP_LOAD, p);
    return model__read(model__loc(p, bytes, false), 0, order, at);
}

/* ---- stores ---- */

/* A store may stand before mo[i] if it comes after all that this thread has seen, and parts no RMW from what it read. */
static unsigned choose_place(const struct loc *l)
{
    unsigned places[STORES_MAX + 1];
    unsigned count = 0;
    uint32_t key = floor_key(l);

    places[count++] = l->count;
    for (unsigned i = l->count; i-- > 1;) {
        if (l->mo[i - 1]->key < key) break;
        if (!l->mo[i - 1]->read_by_rmw) places[count++] = i;
    }
    return places[model__choose(count)];
}

static uint32_t key_at(const struct loc *l, unsigned place)
{
    if (place == l->count) return l->mo[place - 1]->key + KEY_GAP;
    uint32_t below = l->mo[place - 1]->key;
    uint32_t above = l->mo[place]->key;
    if (above - below < 2) model__fail_limit("too many stores between two others (KEY_GAP)");
    return below + (above - below) / 2;
}

static uint64_t clip(uint64_t value, size_t bytes)
{
    return bytes == 8 ? value : value & ((1ull << (8 * bytes)) - 1);
}

void model_store(const struct model_site *at, volatile void *p, size_t bytes, uint64_t value,
                 enum model_order order)
{
    order = effective(at, order);
    model__point(OP_WRITE, p);
    struct loc *l = model__loc(p, bytes, false);
    unsigned place = choose_place(l);
    uint32_t key = key_at(l, place);
    model__note_write(l);
    struct store *s = store_new(l, place, clip(value, bytes), key);

    s->at = at;
    model__note_look(l, s);
    model__touch_loc(l);
    set_seen(self(), l, 2 * key, true);
    model__order_access(l, false, 0, true, key, order == MODEL_seq_cst);
    s->view = view_of_store(releases(order), NULL);
    write_memory(l);
    if (model__tracing) {
        model__trace(at, "%s= 0x%llx%s", label(l), (unsigned long long)s->value,
                     place + 1 < l->count ? "  (before newer stores)" : "");
    }
    model__tick();
}

/* ---- read-modify-writes ---- */

static uint64_t apply(enum model_rmw op, uint64_t old, uint64_t operand)
{
    switch (op) {
    case MODEL_EXCHANGE:
        return operand;
    case MODEL_ADD:
        return old + operand;
    case MODEL_SUB:
        return old - operand;
    case MODEL_OR:
        return old | operand;
    case MODEL_AND:
        return old & operand;
    }
    return old;
}

/* Which store the RMW reads. One that is to write needs a store that no other RMW has read; a CAS that differs only reads. */
static unsigned choose_read(struct loc *l, const uint64_t *expected)
{
    unsigned from = model__first_from(l, floor_key(l));
    unsigned candidates[STORES_MAX];
    unsigned count = 0;

    for (unsigned i = l->count; i-- > from;) {
        bool writes = !expected || l->mo[i]->value == *expected;
        if (!writes || !l->mo[i]->read_by_rmw) candidates[count++] = i;
    }
    return candidates[model__choose(count)]; /* never empty: the newest has no reader behind it */
}

static void write_after(struct loc *l, unsigned index, uint64_t value, enum model_order order,
                        const struct model_site *at)
{
    struct store *read = l->mo[index];
    uint32_t key = key_at(l, index + 1);
    model__note_write(l);
    struct store *s = store_new(l, index + 1, clip(value, l->bytes), key);

    read->read_by_rmw = true;
    s->at = at;
    model__note_look(l, s);
    set_seen(self(), l, 2 * key, true);
    model__order_access(l, true, read->key, true, key, order == MODEL_seq_cst);
    s->view = view_of_store(releases(order), read->view);
    write_memory(l);
    if (model__tracing) {
        model__trace(at, "%s0x%llx -> 0x%llx%s", label(l), (unsigned long long)read->value,
                     (unsigned long long)s->value,
                     index + 2 < l->count ? "  (before newer stores)" : "");
    }
}

uint64_t model_rmw(const struct model_site *at, volatile void *p, size_t bytes, enum model_rmw op,
                   uint64_t operand, enum model_order order)
{
    order = effective(at, order);
    model__point(OP_WRITE, p);
    struct loc *l = model__loc(p, bytes, false);
    unsigned index = choose_read(l, NULL);
    struct store *s = l->mo[index];

    model__note_look(l, s);
    model__touch_loc(l);
    set_seen(self(), l, 2 * s->key + 1, false);
    learn(s, acquires(order));
    write_after(l, index, apply(op, s->value, operand), order, at);
    model__tick();
    return s->value;
}

bool model_cas(const struct model_site *at, volatile void *p, size_t bytes, uint64_t *expected,
               uint64_t desired, enum model_order good, enum model_order bad)
{
    good = effective(at, good);
    if (at == model__weak_site && model__weak_how == WEAKEN_ACQUIRE) bad = MODEL_relaxed;
    if (at == model__weak_site && model__weak_how == WEAKEN_SEQ_CST && bad == MODEL_seq_cst)
        bad = MODEL_acquire;
    model__point(OP_WRITE, p);
    struct loc *l = model__loc(p, bytes, false);
    unsigned index = choose_read(l, expected);
    struct store *s = l->mo[index];
    bool same = s->value == *expected;

    model__note_look(l, s);
    model__touch_loc(l);
    set_seen(self(), l, 2 * s->key + 1, false);
    learn(s, acquires(same ? good : bad));
    if (same) {
        write_after(l, index, desired, good, at);
    } else {
        trace_read(at, l, index);
        model__order_access(l, true, s->key, false, 0, bad == MODEL_seq_cst);
        *expected = s->value;
    }
    model__tick();
    return same;
}

/* ---- fences: events of one thread alone, so no scheduling points ---- */

static void pass_fence(enum model_order order)
{
    struct thread *t = self();
    if (acquires(order)) model__view_join(&t->now, &t->acquirable);
    if (order == MODEL_seq_cst) {
        model__order_fence();
    } else {
        model__order_elsewhere();
    }
    if (releases(order)) model__view_copy(&t->released, &t->now);
    model__tick();
}

void model_fence(const struct model_site *at, enum model_order order)
{
    if (model__collecting) model__collect(at, order, true);
    if (at == model__weak_site) {
        if (model__weak_how == WEAKEN_FENCE) return;
        if (model__weak_how == WEAKEN_SEQ_CST && order == MODEL_seq_cst) order = MODEL_acq_rel;
    }
    if (model__tracing) model__trace(at, "%s", "");
    pass_fence(order);
}

/* A fence of the caller, one of each other thread at the point where it stands, and another of the caller. The first comes before theirs, and theirs
 * before the last, in the order of seq_cst fences: that is what the kernel promises. It hands nobody's view to anybody. */
void model_membarrier_at(const struct model_site *at)
{
    unsigned caller = model__current;
    unsigned theirs[MODEL_THREADS_MAX];
    unsigned count = 0;

    if (model__collecting) model__collect(at, MODEL_acq_rel, true);
    model__point(OP_MEMBARRIER, NULL);
    if (at == model__weak_site) return;
    if (model__tracing) model__trace(at, "%s", "");
    pass_fence(MODEL_seq_cst);
    unsigned first = model__order_newest();
    for (unsigned i = 0; i < model__thread_count; i++) {
        if (i == caller) continue; /* one that has ended passed it on its way into the kernel, at the latest */
        model__current = i;
        pass_fence(MODEL_seq_cst);
        theirs[count++] = model__order_newest();
        model__order_before(first, theirs[count - 1]);
    }
    model__current = caller;
    pass_fence(MODEL_seq_cst);
    for (unsigned i = 0; i < count; i++) model__order_before(theirs[i], model__order_newest());
}
