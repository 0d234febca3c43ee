# SPDX-License-Identifier: MIT
"""The table, the raw rounds as JSON, and the ratios as a drawing."""
import json
import math
import statistics

from . import contenders as parts
from . import goals, stats

HEAD = ("case", "side", "best", "median", "cold", "x weft", "95 %", "goal", "wall s", "cpu s", "rounds")


class Row:
    """One measure of one side."""

    def __init__(self, measure, side, runs, ours, result, seed, workers):
        values = [run.values[measure] for run in runs]
        self.measure = measure
        self.side = side
        self.best = min(min(some) for some in values)
        self.median = statistics.median(stats.typical(some) for some in values)
        self.cold = statistics.median(some[0] for some in values) if len(values[0]) >= stats.WARM_MIN else None
        self.wall_s = statistics.median(run.wall_s for run in runs)
        self.cpu_s = statistics.median(run.cpu_s for run in runs)
        self.kept = len(result.kept)
        self.discarded = len(result.discarded)
        self.disturbed = result.disturbed
        self.ratio = self.interval = None
        if ours and side != parts.WEFT:
            both = [(stats.typical(a.values[measure]), stats.typical(b.values[measure])) for a, b in zip(ours, runs)]
            compared = stats.compare([a for a, _ in both], [b for _, b in both], seed)
            if compared:
                self.ratio, self.interval = compared
        self.goal = goals.of_row(self, workers)


def rows_of(result, seed, workers=goals.WORKERS):
    """The rows of one case: each measure, weft first."""
    if not result.rounds:
        return []
    names = sorted(result.rounds[0], key=lambda name: (name != parts.WEFT, name))
    by_side = {name: [runs[name] for runs in result.rounds] for name in names}
    measures = list(dict.fromkeys(m for runs in by_side.values() for m in runs[0].values))
    rows = []
    for measure in measures:
        sides = [name for name in names if all(measure in run.values for run in by_side[name])]
        ours = by_side[parts.WEFT] if parts.WEFT in sides else None
        rows += [Row(measure, name, by_side[name], ours, result, seed, workers) for name in sides]
    return rows


def number(value):
    """Three digits that mean something, and no exponents."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cells(row, first):
    interval = f"{number(row.interval[0])} - {number(row.interval[1])}" if row.interval else ""
    count = f"{row.kept}" + (f" (-{row.discarded})" if row.discarded else "") + (" ~" if row.disturbed else "")
    return (row.measure if first else "", row.side, number(row.best), number(row.median), number(row.cold), number(row.ratio),
            interval, str(row.goal or ""), number(row.wall_s), number(row.cpu_s), count)


def table(rows):
    """Markdown that also reads well as it is."""
    lines, last = [HEAD], None
    for row in rows:
        lines.append(cells(row, row.measure != last))
        last = row.measure
    return aligned(lines, any(row.disturbed for row in rows))


def aligned(lines, disturbed):
    """A markdown table of cells, the first line its head; two columns of words, then numbers."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]

    def text(line):
        padded = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i < 2 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    out = [text(lines[0]), rule] + [text(line) for line in lines[1:]]
    if disturbed:
        out.append("\n~ hardly a round was undisturbed: these numbers are of all rounds, and worth little.")
    return "\n".join(out)


def as_json(head, results):
    def plain(runs):
        return {name: {"values": run.values, "checksum": run.checksum, "wall_s": run.wall_s, "cpu_s": run.cpu_s}
                for name, run in runs.items()}

    return json.dumps({**head, "cases": [{
        "case": result.case,
        "n": result.n,
        "kept": [plain(runs) for runs in result.kept],
        "discarded": [{"why": why, "runs": plain(runs)} for runs, why in result.discarded],
    } for result in results]}, indent=1)


# ---- the drawing ------------------------------------------------------------------------------------------------------------------

COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8d6a9f", "#b08900")
ROW_HEIGHT, LEFT, WIDTH, TOP = 22, 130, 620, 46


def plot(rows, title):
    """Ratios on a logarithmic axis, one line a case: right of 1 weft is faster, left of it slower."""
    shown = [row for row in rows if row.ratio]
    sides = sorted({row.side for row in shown})
    colour = {side: COLOURS[i % len(COLOURS)] for i, side in enumerate(sides)}
    measures = list(dict.fromkeys(row.measure for row in shown))
    ends = [end for row in shown for end in (row.interval or (row.ratio,)) if end > 0] + [0.8, 1.25]
    low, high = math.log10(min(ends)) - 0.05, math.log10(max(ends)) + 0.05
    height = TOP + ROW_HEIGHT * len(measures) + 40

    def x(ratio):
        return LEFT + WIDTH * (math.log10(max(ratio, 10 ** low)) - low) / (high - low)

    def at(measure, side):
        within = (sides.index(side) + 1) / (len(sides) + 1)
        return TOP + ROW_HEIGHT * (measures.index(measure) + within)

    marks = drawing(LEFT + WIDTH + 30, height, title) + legend(sides, colour, LEFT)
    for tick in ticks(low, high):
        stroke = "#222" if tick == 1 else "#ddd"
        marks.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{height - 36}" stroke="{stroke}"/>'
                      f'<text x="{x(tick):.1f}" y="{height - 20}" text-anchor="middle">{tick:g}x</text>')
    for i, measure in enumerate(measures):
        marks.append(f'<text x="{LEFT - 8}" y="{TOP + ROW_HEIGHT * i + 15}" text-anchor="end">{escape(measure)}</text>')
    for row in shown:
        y, fill = at(row.measure, row.side), colour[row.side]
        if row.interval:
            marks.append(f'<line x1="{x(row.interval[0]):.1f}" x2="{x(row.interval[1]):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                          f'stroke="{fill}" stroke-width="2"/>')
        marks.append(f'<circle cx="{x(row.ratio):.1f}" cy="{y:.1f}" r="4" fill="{fill}"/>')
    return "\n".join(marks + ["</svg>"]) + "\n"


def drawing(width, height, title):
    """How every drawing begins; its last mark is </svg>."""
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
            f'<rect width="100%" height="100%" fill="white"/><text x="10" y="18">{escape(title)}</text>']


def legend(sides, colour, left):
    return [f'<text x="{left + 90 * i}" y="36" fill="{colour[side]}">&#9679; {escape(side)}</text>' for i, side in enumerate(sides)]


def ticks(low, high):
    """1, 2, 5, 10, ... between two powers of ten."""
    every = [digit * 10.0 ** power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 2, 5)]
    return [tick for tick in every if low <= math.log10(tick) <= high]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
