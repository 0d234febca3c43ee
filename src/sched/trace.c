/* SPDX-License-Identifier: MIT
 *
 * trace - gather, format, print; the line is drawn in trace.h.
 */
#include "sched/trace.h"

#include "sched/sched.h"
#include "sys/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- a line ---- */

struct line {
    char *text;
    size_t bytes;
    size_t length;
};

/* Appends; what does not fit is cut, and room for a newline is kept. */
static __attribute__((format(printf, 2, 3))) void say(struct line *line, const char *format, ...)
{
    size_t room = line->bytes - line->length - 1;
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (wanted <= 0 || room == 0) return;
    line->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

static void say_queues(struct line *line, const struct weft__trace_facts *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->worker_count; i++)
        sum += f->queued[i];
    say(line, " tasks=%" PRIu64 " queued=%" PRIu64 " [", f->tasks, sum);
    for (uint32_t i = 0; i < f->worker_count; i++)
        say(line, i ? " %" PRIu64 : "%" PRIu64, f->queued[i]);
    say(line, "]");
}

static void say_since(struct line *line, const struct weft__trace_facts *f)
{
    const weft_stats *s = &f->since;
    say(line, " spawned=+%" PRIu64 " completed=+%" PRIu64 " polls=+%" PRIu64, s->spawned,
        s->completed, s->polls);
    say(line, " steals=+%" PRIu64 " parks=+%" PRIu64 " spills=+%" PRIu64, s->steals, s->parks,
        s->spills);
    say(line, " rescued=+%" PRIu64 " turns=+%" PRIu64, s->rescued, f->turns);
}

size_t weft__trace_format(const struct weft__trace_facts *f, char *into, size_t bytes)
{
    struct line line = {.text = into, .bytes = bytes};
    say(&line, "SCHED %s %" PRId64 "ms: workers=%" PRIu32 " sleeping=%" PRIu32, f->name,
        f->uptime_ns / WEFT__NS_PER_MS, f->worker_count, f->sleeping);
    say(&line, " searching=%" PRIu32 " still=%" PRIu32 " inject=%s", f->searching, f->still,
        f->injected ? "some" : "empty");
    say_queues(&line, f);
    say_since(&line, f);
    into[line.length++] = '\n';
    into[line.length] = '\0';
    return line.length;
}

/* ---- of a runtime ---- */

static uint64_t turns_of(const struct weft_rt *rt)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rt->worker_count; i++)
        sum += load_relaxed(&rt->shards[i].turns); /* relaxed: a count */
    return sum;
}

/* `now` less `before`, counter by counter. */
static weft_stats difference(const weft_stats *now, const weft_stats *before)
{
    return (weft_stats){
        .spawned = now->spawned - before->spawned,
        .completed = now->completed - before->completed,
        .polls = now->polls - before->polls,
        .steals = now->steals - before->steals,
        .stolen = now->stolen - before->stolen,
        .parks = now->parks - before->parks,
        .wakes = now->wakes - before->wakes,
        .spills = now->spills - before->spills,
        .inlined = now->inlined - before->inlined,
        .rescued = now->rescued - before->rescued,
    };
}

static void print(struct weft__trace *trace, struct weft_rt *rt, uint32_t still, int64_t now)
{
    char text[WEFT__TRACE_LINE_BYTES];
    uint64_t queued[WEFT__WORKERS_MAX];
    weft_stats stats;
    uint64_t turns = turns_of(rt);

    weft_rt_stats(rt, &stats);
    for (uint32_t i = 0; i < rt->worker_count; i++)
        queued[i] = weft__worker_queued(&rt->workers[i]);
    struct weft__trace_facts facts = {
        .name = rt->name,
        .uptime_ns = now - trace->began_at,
        .worker_count = rt->worker_count,
        .sleeping = weft__idle_sleeping(&rt->idle),
        .searching = weft__idle_searching(&rt->idle),
        .still = still,
        .injected = !weft__inject_idle(&rt->inject),
        /* what ended between two reads is counted as ended only */
        .tasks = stats.spawned > stats.completed ? stats.spawned - stats.completed : 0,
        .queued = queued,
        .since = difference(&stats, &trace->before),
        .turns = turns - trace->turns_before,
    };
    (void)weft__trace_format(&facts, text, sizeof(text));
    fputs(text, stderr); /* one call, one write: lines of several runtimes do not mix */
    trace->before = stats;
    trace->turns_before = turns;
}

void weft__trace_init(struct weft__trace *trace, unsigned interval_ms, int64_t now)
{
    *trace =
        (struct weft__trace){.interval_ns = WEFT__NEVER, .began_at = now, .next_at = WEFT__NEVER};
    if (interval_ms == 0) return;
    trace->interval_ns = interval_ms * WEFT__NS_PER_MS;
    trace->next_at = now + trace->interval_ns;
}

void weft__trace_line(struct weft__trace *trace, struct weft_rt *rt, uint32_t still, int64_t now)
{
    if (now < trace->next_at) return;
    print(trace, rt, still, now);
    /* the next point of the grid: a line that came late does not make the next ones late */
    int64_t missed = (now - trace->next_at) / trace->interval_ns;
    trace->next_at += (missed + 1) * trace->interval_ns;
}
