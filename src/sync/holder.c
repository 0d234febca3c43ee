/* SPDX-License-Identifier: MIT
 *
 * holder - the messages about locks and who has them; the idea is in holder.h.
 */
#include "sync/holder.h"

#include "base/assert.h"
#include "sys/peek.h"
#include "task/name.h"
#include "task/waker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What is known of a holder. */
struct known {
    struct weft_site site;      /* a copy; .name NULL: not known */
    char own[WEFT__NAME_BYTES]; /* the name that it was given; empty: none, or it has ended */
    bool ended;
};

static struct weft_task *task_of(uintptr_t holder)
{
    return (void *)(holder & (((uintptr_t)1 << WEFT__HOLDER_GEN_SHIFT) - 1));
}

/* Is what lies in the block, whose state was `word`, still the record of that generation? It goes on to the next as it is freed, and its flags are zero until the task
 * that uses it again starts: until then the record is what it was, or that of a task that was never polled, which holds nothing. */
static bool is_record_of(const struct weft_task *copy, uint64_t word, uintptr_t holder)
{
    uint16_t since = (uint16_t)(weft__state_generation_of(word) - (holder >> WEFT__HOLDER_GEN_SHIFT));
    if (since == 1 && !(word & WEFT__STATE_FLAGS)) return load_relaxed(&copy->polls) > 0; /* relaxed: a copy */
    return since == 0;
}

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
    if (!is_record_of(&block.task, word, holder)) return known; /* another lives there by now, or did */
    if (weft__peek(block.task.site, &known.site, sizeof(known.site)) < 0) known.site.name = NULL;
    if (weft__name_peek(task_of(holder), word, known.own) < 0) known.own[0] = '\0';
    return known;
}

static void print_holder(uintptr_t holder, const struct known *known)
{
    if (holder == 0) {
        fputs("nobody", stderr);
    } else if (holder & WEFT__HOLDER_THREAD) {
        fputs("a thread", stderr);
    } else if (known->site.name) {
        fprintf(stderr, "task '%s' (spawned at %s:%u)",
                known->own[0] ? known->own : known->site.name, known->site.file, known->site.line);
    } else {
        fputs("a task", stderr);
    }
}

static const char *place_of(const struct weft__holder *holder)
{
    return load_relaxed(&holder->at); /* relaxed, both: for a message */
}

static uintptr_t who_of(const struct weft__holder *holder)
{
    return load_relaxed(&holder->who) & ~WEFT__HOLDER_READS;
}

static void print_place(const char *words, const char *at)
{
    if (at) fprintf(stderr, "%s%s", words, at);
}

bool weft__holder_report_ended(const struct weft__holder *holder, const char *what,
                               const void *lock)
{
    uintptr_t who = who_of(holder);
    struct known known = look_at(who);
    if (!known.ended || who_of(holder) != who)
        return false;  /* it was given back just before the end */
    flockfile(stderr); /* one line, whoever else prints */
    fprintf(stderr, "weft: %s %p is still held by ", what, lock);
    print_holder(who, &known);
    fputs(", which has ended", stderr);
    print_place(", since ", place_of(holder));
    fputs(": whoever waits for it waits for ever\n", stderr);
    funlockfile(stderr);
    return true;
}

static void print_other(const struct weft__holder *holder)
{
    uintptr_t who = who_of(holder);
    struct known known = look_at(who);

    fputs("; it is held by ", stderr);
    print_holder(who, &known);
    print_place(who ? ", since " : ", and was last at ", place_of(holder));
}

static void say_misuse(const struct weft__holder *holder, const char *what, const char *at)
{
    uintptr_t self = weft__holder_self();
    struct known me = look_at(self);

    flockfile(stderr);
    fprintf(stderr, "weft: %s by ", what);
    print_holder(self, &me);
    print_place(" at ", at);
    if (holder) print_other(holder);
    fputs("\n", stderr);
    funlockfile(stderr);
}

void weft__misuse(const char *what, const char *at)
{
    say_misuse(NULL, what, at);
    abort();
}

int weft__holder_misuse(const struct weft__holder *holder, const char *what, const char *at,
                        int error)
{
    say_misuse(holder, what, at);
    weft_dassert(!"a lock is used by who must not");
    return error;
}

void weft__holder_report_waiter(struct weft_waker waker, const char *what, const char *at)
{
    struct weft_task *task = weft__waker_task(waker);
    uintptr_t who = task ? (uintptr_t)task | (uintptr_t)weft__state_generation(task)
                                                 << WEFT__HOLDER_GEN_SHIFT
                         : WEFT__HOLDER_THREAD;
    struct known known = look_at(who);

    flockfile(stderr);
    fprintf(stderr, "weft: %s is ended", what);
    print_place(" at ", at);
    fputs(" while ", stderr);
    print_holder(who, &known);
    fputs(" waits for it\n", stderr);
    funlockfile(stderr);
}
