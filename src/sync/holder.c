/* SPDX-License-Identifier: MIT
 *
 * holder - the messages about locks and who has them; the idea is in holder.h.
 */
#include "sync/holder.h"

#include "base/assert.h"
#include "sys/peek.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

/* What is known of a holder. */
struct known {
    struct weft_site site; /* a copy; .name NULL: not known */
    bool ended;
};

static struct weft_task *task_of(uintptr_t holder)
{
    return (void *)(holder & (((uintptr_t)1 << WEFT__HOLDER_GEN_SHIFT) - 1));
}

/* The block goes on to the next generation when it is used again: before that its record is what it was. */
static struct known look_at(uintptr_t holder)
{
    struct known known = {.ended = false};
    union { /* bytes of a task, not one */
        struct weft_task task;
        char bytes[sizeof(struct weft_task)];
    } block;

    if (holder == 0 || (holder & WEFT__HOLDER_THREAD)) return known;
    int r = weft__peek(task_of(holder), block.bytes, sizeof(block.bytes));
    if (r < 0) {
        known.ended = r == -EFAULT; /* with its runtime */
        return known;
    }
    uint64_t word = load_relaxed(&block.task.state); /* relaxed: a copy */
    uint16_t generation = (uint16_t)weft__state_generation_of(word);
    known.ended = !(word & WEFT__STATE_FLAGS) || (word & WEFT__STATE_COMPLETE) ||
                  generation != (uint16_t)(holder >> WEFT__HOLDER_GEN_SHIFT);
    if (known.ended && (word & WEFT__STATE_FLAGS) && !(word & WEFT__STATE_COMPLETE))
        return known; /* another lives there by now */
    if (weft__peek(block.task.site, &known.site, sizeof(known.site)) < 0) known.site.name = NULL;
    return known;
}

static void print_holder(uintptr_t holder, const struct known *known)
{
    if (holder == 0) {
        fputs("nobody", stderr);
    } else if (holder & WEFT__HOLDER_THREAD) {
        fputs("a thread", stderr);
    } else if (known->site.name) {
        fprintf(stderr, "task '%s' (spawned at %s:%u)", known->site.name, known->site.file,
                known->site.line);
    } else {
        fputs("a task", stderr);
    }
}

bool weft__holder_report_ended(uintptr_t holder, const char *what, const void *lock)
{
    struct known known = look_at(holder);
    if (!known.ended) return false;
    flockfile(stderr); /* one line, whoever else prints */
    fprintf(stderr, "weft: %s %p is still held by ", what, lock);
    print_holder(holder, &known);
    fputs(", which has ended: whoever waits for it waits for ever\n", stderr);
    funlockfile(stderr);
    return true;
}

/* As "helper (/bin/server+0x1234)": the offset is what addr2line wants. */
static void print_caller(const void *caller)
{
    Dl_info info;
    if (!caller || !dladdr(caller, &info) || !info.dli_fname) return;
    size_t offset = (size_t)((const char *)caller - (const char *)info.dli_fbase);
    fprintf(stderr, ", called from %s (%s+0x%zx)", info.dli_sname ? info.dli_sname : "?",
            info.dli_fname, offset);
}

int weft__holder_misuse(uintptr_t holder, const char *what, const void *caller, int error)
{
    uintptr_t self = weft__holder_self();
    struct known me = look_at(self);
    struct known known = look_at(holder);

    flockfile(stderr);
    fprintf(stderr, "weft: %s by ", what);
    print_holder(self, &me);
    print_caller(caller);
    fputs("; it is held by ", stderr);
    print_holder(holder, &known);
    fputs("\n", stderr);
    funlockfile(stderr);
    weft_dassert(!"a lock is used by who must not");
    return error;
}
