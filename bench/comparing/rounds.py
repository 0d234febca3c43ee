# SPDX-License-Identifier: MIT
"""Rounds: every contender once, in random order, kept only if nobody was disturbed.

A round is kept or discarded as a whole, so that the values in it stay pairs. Discarded rounds are repeated, up to a bound: a machine
that never comes to rest is said to be so in the table, and its rounds are shown with that mark instead of being hidden.
"""
from . import contenders as parts

ATTEMPTS_PER_ROUND = 4
KEPT_MIN = 3  # below this, a median of kept rounds says less than one of all rounds


class Mismatch(Exception):
    """Two sides did not do the same work."""


class CaseRounds:
    def __init__(self, case, n=None):
        self.case = case
        self.n = n           # None: the case's own
        self.kept = []       # [{contender: Run}]
        self.discarded = []  # [({contender: Run}, why)]

    @property
    def disturbed(self):
        return len(self.kept) < min(KEPT_MIN, len(self.kept) + len(self.discarded))

    @property
    def rounds(self):
        """What the table is made of."""
        return self.kept + [runs for runs, _ in self.discarded] if self.disturbed else self.kept


def check_sums(case, runs):
    sums = {name: run.checksum for name, run in runs.items()}
    if len(set(sums.values())) > 1:
        raise Mismatch(f"{case}: the checksums differ: " + ", ".join(f"{name} {value}" for name, value in sums.items()))


def run_round(case, contenders, workers, rng, watch, n=None):
    """({contender: Run}, None or why it is worth nothing)."""
    order = list(contenders)
    rng.shuffle(order)
    runs, why = {}, None
    for contender in order:
        watch.begin()
        run = contender.run(case, workers, n)
        why = watch.end(run.cpu_s) or why
        runs[contender.name] = run
    check_sums(case, runs)
    return runs, why


def run_case(case, contenders, workers, count, rng, watch, say, n=None, after_round=lambda kept, wanted, discarded: None):
    result = CaseRounds(case, n)
    for _ in range(ATTEMPTS_PER_ROUND * count):
        if len(result.kept) == count:
            break
        runs, why = run_round(case, contenders, workers, rng, watch, n)
        if why:
            result.discarded.append((runs, why))
            say(f"{case}: round discarded: {why}")
        else:
            result.kept.append(runs)
        after_round(len(result.kept), count, len(result.discarded))
    return result


def choose_cases(wanted, contenders, say):
    """The cases to run, each with those who have it: all that anybody has, or the wanted ones."""
    known = list(dict.fromkeys(case for contender in contenders for case in contender.cases))
    chosen = []
    for case in wanted or known:
        able = [contender for contender in contenders if case in contender.cases]
        if not able:
            say(f"{case}: nobody has this case")
            continue
        if any(c.name == parts.WEFT for c in contenders) and not any(c.name == parts.WEFT for c in able):
            say(f"{case}: weft_bench does not have this case yet")
        chosen.append((case, able))
    return chosen
