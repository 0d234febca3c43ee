/* SPDX-License-Identifier: MIT
 *
 * trace - WEFT_SCHEDTRACE: one line about the scheduler in each interval, on stderr.
 *
 *     SCHED weft 2000ms: workers=4 sleeping=2 searching=1 still=0 inject=empty tasks=9 queued=7 [3 4 0 0]
 *           spawned=+120 completed=+118 polls=+400 steals=+3 parks=+8 spills=+0 rescued=+0 turns=+21
 * (one line). docs/SCHEDULER.md says what each word means. The words are stable: new ones are added
 * at the end.
 * Threads: the monitor's; of a current-thread runtime, which has none, whoever makes the turn at whose end
 * it is due. The numbers are read one after the other, each right for itself.
 */
#ifndef WEFT_SCHED_TRACE_H
#define WEFT_SCHED_TRACE_H

#include "limits.h"

#include <stddef.h>
#include <stdint.h>
#include <weft/rt.h>

struct weft_rt;

/* What one line says. */
struct weft__trace_facts {
    const char *name;
    int64_t uptime_ns;
    uint32_t worker_count;
    uint32_t sleeping;
    uint32_t searching;
    uint32_t still;         /* workers that stand still with work behind them */
    bool injected;          /* something lies in the inject queue */
    uint64_t tasks;         /* that live */
    const uint64_t *queued; /* by worker */
    weft_stats since;       /* the line before */
    uint64_t turns;         /* since then, of all shards */
};

/* Longest line: 20 digits and a blank for each worker, and the rest. */
#define WEFT__TRACE_LINE_BYTES (WEFT__WORKERS_MAX * 21 + 512)

/* Writes one line with its newline; cut if it does not fit. Returns its length. */
size_t weft__trace_format(const struct weft__trace_facts *facts, char *into, size_t bytes);

struct weft__trace {
    int64_t interval_ns; /* WEFT__NEVER: nothing is printed */
    int64_t began_at;
    int64_t next_at;   /* when the next line is due; WEFT__NEVER: never */
    weft_stats before; /* at the last line, as the next one */
    uint64_t turns_before;
};

void weft__trace_init(struct weft__trace *trace, unsigned interval_ms, int64_t now);

/* Print, if it is time. `still`: how many workers stood still at the last look. */
void weft__trace_line(struct weft__trace *trace, struct weft_rt *rt, uint32_t still, int64_t now);

#endif
