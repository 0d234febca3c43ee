# SPDX-License-Identifier: MIT
"""The sweep: the same case with a thousand tasks, or timers, up to a million, and how the price of one operation grows.

The slope is that of a straight line through log(ns) over log(N), by least squares: 0 is flat, 1 would be a price that grows as N does.
"""
import math
import statistics

from . import contenders as parts
from . import report, stats

DECADES = (1_000, 10_000, 100_000, 1_000_000)

# A million suspended fibers would be four gigabytes of stacks. Of timer_churn N is how many other timers are live.
SWEEPS = {"spawn": DECADES, "yield": DECADES, "spawn_fiber": DECADES, "yield_fiber": DECADES[:-1], "timer_churn": DECADES}


def slope(points):
    """The exponent of N in the price, of [(N, price)]. None for fewer than two points, or a price of nothing."""
    if len(points) < 2 or any(price <= 0 for _, price in points):
        return None
    logs = [(math.log10(n), math.log10(price)) for n, price in points]
    mean_x = statistics.fmean(x for x, _ in logs)
    mean_y = statistics.fmean(y for _, y in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


class Curve:
    """One side in one case."""

    def __init__(self, case, side):
        self.case = case
        self.side = side
        self.points = []  # [(N, median)]
        self.kept = []    # rounds at each N
        self.disturbed = False

    @property
    def slope(self):
        return slope(self.points)

    def add(self, result):
        runs = [some[self.side].values[self.case] for some in result.rounds]
        self.points.append((result.n, statistics.median(stats.typical(values) for values in runs)))
        self.kept.append(len(result.kept))
        self.disturbed = self.disturbed or result.disturbed


def curves_of(results):
    """[Curve] of the rounds of a sweep, weft first in each case."""
    curves = {}
    for result in results:
        if not result.rounds:
            continue
        for side in sorted(result.rounds[0], key=lambda name: (name != parts.WEFT, name)):
            curves.setdefault((result.case, side), Curve(result.case, side)).add(result)
    return list(curves.values())


def table(curves):
    """Markdown: ns per operation at each N, the slope, and what ten times as many tasks make of the price."""
    decades = sorted({n for curve in curves for n, _ in curve.points})
    lines, last = [("case", "side") + tuple(f"{n:,}" for n in decades) + ("slope", "x a decade", "rounds")], None
    for curve in curves:
        at = dict(curve.points)
        exponent = curve.slope
        lines.append((curve.case if curve.case != last else "", curve.side)
                     + tuple(report.number(at.get(n)) for n in decades)
                     + ("" if exponent is None else f"{exponent:+.3f}", "" if exponent is None else f"{10 ** exponent:.2f}",
                        f"{min(curve.kept)}" + (" ~" if curve.disturbed else "")))
        last = curve.case
    return report.aligned(lines, any(curve.disturbed for curve in curves))


# ---- the drawing ------------------------------------------------------------------------------------------------------------------

LEFT, WIDTH, HEIGHT, TOP, GAP = 70, 560, 190, 46, 60


def plot(curves, title):
    """A panel a case, both axes logarithmic: flat is what is wanted."""
    cases = list(dict.fromkeys(curve.case for curve in curves))
    sides = sorted({curve.side for curve in curves}, key=lambda name: (name != parts.WEFT, name))
    colour = {side: report.COLOURS[i % len(report.COLOURS)] for i, side in enumerate(sides)}
    height = TOP + (HEIGHT + GAP) * max(len(cases), 1)
    marks = report.drawing(LEFT + WIDTH + 40, height, title)
    marks += report.legend(sides, colour, LEFT)
    for i, case in enumerate(cases):
        marks += panel([curve for curve in curves if curve.case == case], case, TOP + 10 + i * (HEIGHT + GAP), colour)
    return "\n".join(marks + ["</svg>"]) + "\n"


def panel(curves, case, top, colour):
    prices = [price for curve in curves for _, price in curve.points if price > 0] or [1]
    counts = [n for curve in curves for n, _ in curve.points]
    low, high = math.log10(min(prices)) - 0.1, math.log10(max(prices)) + 0.1
    first, last = math.log10(min(counts)), max(math.log10(max(counts)), math.log10(min(counts)) + 1)

    def x(n):
        return LEFT + WIDTH * (math.log10(n) - first) / (last - first)

    def y(price):
        return top + HEIGHT * (1 - (math.log10(price) - low) / (high - low))

    marks = [f'<text x="{LEFT}" y="{top - 4}">{report.escape(case)}: ns per operation over N</text>']
    for tick in report.ticks(low, high):
        marks.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for n in sorted(set(counts)):
        marks.append(f'<text x="{x(n):.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{n:,}</text>')
    for curve in curves:
        dots = [(x(n), y(price)) for n, price in curve.points if price > 0]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in dots)
        marks.append(f'<polyline points="{line}" fill="none" stroke="{colour[curve.side]}" stroke-width="2"/>')
        marks += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour[curve.side]}"/>' for a, b in dots]
    return marks
