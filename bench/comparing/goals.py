# SPDX-License-Identifier: MIT
"""What weft wants to reach, case by case, and whether a row of the table does.

A factor is a goal against one peer: so many times faster, by the median of the paired ratios, with two workers; against Tokio also where both have the
current thread alone. Where no factor is set the goal is the floor: not slower than anybody. A limit is a goal in the case's own unit, whoever else runs.

The answer is `yes` or `no` when the 95 % interval lies on one side of the goal, and `open` when the goal lies inside of it.
"""
from . import contenders as parts

FLOOR = 1
WORKERS = 2         # the factors are meant for these; with others the floor is the goal,
CURRENT_THREAD = 0  # but for Tokio's

FACTORS = {
    "spawn": {"tokio": 15},
    "spawn_join": {"tokio": 12},
    "join_all": {"tokio": 15},
    "spawn_remote": {"tokio": 8},
    "yield": {"tokio": 5},
    "ping_pong": {"tokio": 10},
    "switch": {"tokio": 4},  # a worker's slot is emptied by a plain store (docs/decisions/0003-run-queue.md); 3 where it has to be an exchange
    "chained": {"tokio": 12},
    "skynet": {"tokio": 30},
    "fib": {"tokio": 20},
    "mpsc": {"tokio": 5, "go": 3},
    "mpsc4": {"tokio": 5, "go": 3},
    "mpmc": {"go": 3},
    "timer_churn": {"tokio": 12},
    "timer_many": {"tokio": 3.5},
    "blocking": {"tokio": 8},
    "file_read": {"tokio": 5},
    "file_read8": {"tokio": 5},
    "file_read64": {"tokio": 5},
    "spawn_fiber": {"go": 8},
    "yield_fiber": {"go": 8},
    "switch_fiber": {"go": 8},
    "skynet_fiber": {"go": 8},
}

# {measure: {what of the row: the most that it may be}}
LIMITS = {
    "sleep_error": {"median": 40_000},
    "mem_sleep": {"median": 144},
    "mem_wait": {"median": 132},
    "mem_fiber": {"median": 4_300},
    "tasks100k": {"median": 2, "cold": 5},
    "tasks100k_rss": {"median": 15},
}


class Goal:
    """A goal of one row: what is asked for, and the answer."""

    def __init__(self, text, answer):
        self.text = text
        self.answer = answer  # "yes", "no", "open"

    def __str__(self):
        return f"{self.text} {self.answer}"


def of_peer(row, workers):
    """The goal of a peer's row, which has a ratio."""
    meant = workers == WORKERS or (workers == CURRENT_THREAD and row.side == "tokio")
    factor = FACTORS.get(row.measure, {}).get(row.side, FLOOR) if meant else FLOOR
    low, high = row.interval or (row.ratio, row.ratio)
    answer = "yes" if low >= factor else "no" if high < factor else "open"
    return Goal(f"{factor:g}x", answer)


def of_weft(row):
    """The goal of weft's own row; None: it has none of its own."""
    limits = LIMITS.get(row.measure)
    if not limits:
        return None
    has = {"median": row.median, "cold": row.cold}
    text = ", ".join(f"<= {limit:,g}" + (f" {what}" if what != "median" else "") for what, limit in limits.items())
    return Goal(text, "yes" if all(has[what] is None or has[what] <= limit for what, limit in limits.items()) else "no")


def of_row(row, workers):
    """None: nothing is asked of it."""
    if row.side == parts.WEFT:
        return of_weft(row)
    return of_peer(row, workers) if row.ratio else None


def slower_than(rows):
    """["mutex (go 0.62x)"]: where a peer is faster, and the interval says so."""
    return [f"{row.measure} ({row.side} {row.ratio:.2f}x)" for row in rows
            if row.ratio and (row.interval or (row.ratio, row.ratio))[1] < FLOOR]


def summary(rows):
    """One or two sentences under the table."""
    answers = [row.goal.answer for row in rows if row.goal]
    if not answers:
        return ""
    text = f"Goals: {answers.count('yes')} reached, {answers.count('no')} missed, {answers.count('open')} open."
    losses = slower_than(rows)
    return f"{text} Behind a peer: {', '.join(losses) if losses else 'nowhere'}."
