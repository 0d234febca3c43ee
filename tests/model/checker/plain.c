/* SPDX-License-Identifier: MIT
 *
 * plain - plain memory that is declared to the checker: races, use after free, leaks.
 *
 * Two accesses of one address race if one of them is a plain write and neither happens before the other. To free is to write all of a block: whoever
 * touched it, atomically or not, must have done so before. That finds a use after free in every execution in which the two are not ordered, also when
 * the use happened to come first. Freed memory is not given out again before the execution ends.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 64
#define NAMES_MAX  64
#define RED_BYTES                                                                                  \
    64 /* behind a block, nobody's: an access there is beyond the block, and not in the next one */

static struct block {
    char *memory;
    size_t bytes;
    bool freed;
} blocks[BLOCKS_MAX];
static unsigned block_count;

static struct {
    const volatile void *address;
    const char *name;
} names[NAMES_MAX];
static unsigned name_count;

void model__plain_reset(void)
{
    for (unsigned i = 0; i < block_count; i++)
        free(blocks[i].memory);
    block_count = 0;
    name_count = 0;
}

void model__plain_end(void)
{
    for (unsigned i = 0; i < block_count; i++)
        if (!blocks[i].freed) model__fail("leak: %zu bytes were never freed", blocks[i].bytes);
}

void model__touch_loc(struct loc *l)
{
    l->touched[model__current] = self()->now.clock[model__current];
}

static struct block *block_of(const volatile void *address)
{
    for (unsigned i = 0; i < block_count; i++) {
        uintptr_t offset = (uintptr_t)address - (uintptr_t)blocks[i].memory;
        if (offset < blocks[i].bytes + RED_BYTES) return &blocks[i];
    }
    return NULL;
}

void model__check_not_freed(const volatile void *address, size_t bytes)
{
    const struct block *b = block_of(address);
    if (!b) return;
    if (b->freed) model__fail("use after free");
    if ((uintptr_t)address + bytes > (uintptr_t)b->memory + b->bytes)
        model__fail("access beyond the end of a block");
}

/* A thread's clock starts at one: zero means never. */
bool model__ordered(uint32_t clock, unsigned thread)
{
    return thread == model__current || clock <= self()->now.clock[thread];
}

static void check_race(const struct model_site *at, const struct loc *l, bool write)
{
    for (unsigned t = 0; t < model__thread_count; t++) {
        if (!model__ordered(l->written[t], t))
            model__fail("data race: %s, unordered with a write by T%u", at->text, t);
        if (write && !model__ordered(l->touched[t], t))
            model__fail("data race: %s, unordered with a read by T%u", at->text, t);
    }
}

void model_plain(const struct model_site *at, const volatile void *p, size_t bytes, bool write)
{
    struct loc *l = model__loc(p, bytes, true);
    if (model__tracing) model__trace(at, "%s", "");
    check_race(at, l, write);
    for (unsigned w = 0; w < LOC_WORDS; w++)
        for (uint64_t rest = l->overlaps[w]; rest; rest &= rest - 1)
            check_race(at, &model__locs[w * 64 + __builtin_ctzll(rest)], write);
    model__touch_loc(l);
    if (write) l->written[model__current] = l->touched[model__current];
    model__order_plain(l);
}

/* ---- blocks ---- */

void *model_alloc(size_t bytes)
{
    if (block_count == BLOCKS_MAX)
        model__fail_limit("too many blocks in one execution (BLOCKS_MAX)");
    size_t rounded = (bytes + RED_BYTES + 63) / 64 * 64;
    char *memory = aligned_alloc(64, rounded);
    if (!memory) abort();
    memset(memory, 0, rounded);
    blocks[block_count++] = (struct block){.memory = memory, .bytes = bytes};
    return memory;
}

void model_free(void *memory)
{
    if (!memory) return;
    struct block *b = block_of(memory);
    if (!b || b->memory != memory) model__fail("free of what model_alloc did not give");
    if (b->freed) model__fail("double free");
    b->freed = true;
    for (unsigned i = 0; i < model__loc_count; i++) {
        struct loc *l = &model__locs[i];
        if ((uintptr_t)l->address - (uintptr_t)b->memory >= b->bytes) continue;
        for (unsigned t = 0; t < model__thread_count; t++) {
            if (!model__ordered(l->touched[t], t)) {
                model__fail(
                    "use after free: memory is freed while an access by T%u is not ordered before (%s)",
                    t, l->name ? l->name : "unnamed location");
            }
        }
        l->dead = true;
    }
    model__free_locks(b->memory, b->bytes);
}

/* ---- names ---- */

const char *model__name_of(const volatile void *address)
{
    for (unsigned i = name_count; i-- > 0;)
        if (names[i].address == address) return names[i].name;
    return NULL;
}

void model_name(const volatile void *address, const char *name)
{
    struct loc *l = model__loc_if_known(address);
    if (l) l->name = name;
    if (name_count < NAMES_MAX) { /* more go without a name */
        names[name_count].address = address;
        names[name_count++].name = name;
    }
}
