/* SPDX-License-Identifier: MIT
 *
 * overflow - the question that the SIGSEGV handler asks, and the line it prints.
 *
 * All of it runs in a signal handler: a buffer on the alternate stack, no stdio, no lock.
 */
#include "task/overflow.h"

#include "sys/stack.h"
#include "task/fiber.h"
#include "task/here.h"
#include "task/name.h"

/* Room for the line; a name or a path that does not fit is cut. Doubled: as much more of the
 * alternate stack. */
#define LINE_BYTES 512

struct line {
    size_t used;
    char text[LINE_BYTES];
};

/* Leaves room for what follows a long name. */
static void add(struct line *line, const char *text, size_t limit)
{
    while (*text && line->used < limit)
        line->text[line->used++] = *text++;
}

static void add_number(struct line *line, size_t number)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    add(line, digits + at, LINE_BYTES);
}

static void add_task(struct line *line, const struct weft_task *task)
{
    const struct weft_site *site = task ? task->site : NULL;

    if (!site) {
        add(line, "a fiber of a plain thread", LINE_BYTES);
        return;
    }
    const char *name = weft__name_of(task); /* read as plainly as the site is: it is running */
    add(line, "fiber '", LINE_BYTES);
    add(line, name ? name : "?", 128);
    add(line, "' (spawned at ", LINE_BYTES);
    add(line, site->file ? site->file : "?", 384);
    add(line, ":", LINE_BYTES);
    add_number(line, site->line);
    add(line, ")", LINE_BYTES);
}

static void report(const struct weft_task *task, size_t stack_bytes)
{
    struct line line = {.used = 0};

    add(&line, "weft: ", LINE_BYTES);
    add_task(&line, task);
    add(&line, " overflowed its stack of ", LINE_BYTES);
    add_number(&line, stack_bytes / 1024);
    add(&line, " KiB; raise it with .stack_bytes\n", LINE_BYTES);
    weft__segv_say(line.text, line.used);
}

static bool is_overflow(const void *addr)
{
    struct weft__fiber *running = weft__here()->fiber;
    struct weft__stack_hit hit;

    if (!running || !weft__stack_find(addr, &hit)) return false;
    if (!hit.in_guard || weft__fiber_at(hit.lo, hit.bytes) != running) return false;
    report(running->task, hit.bytes);
    return true;
}

int weft__overflow_thread_init(struct weft__altstack *a)
{
    int r = weft__altstack_init(a);
    if (r < 0) return r;
    r = weft__segv_install(is_overflow);
    if (r < 0) weft__altstack_done(a);
    return r;
}

void weft__overflow_thread_done(struct weft__altstack *a)
{
    weft__altstack_done(a);
}

void weft__overflow_thread_watch(void)
{
    if (weft__altstack_keep() == 0) (void)weft__segv_install(is_overflow);
}
