# SPDX-License-Identifier: MIT
"""Medians, paired ratios and their bootstrap interval.

A round runs every contender once, close together in time, so the ratio inside a round is freer of the machine's slow moods than
the ratio of two medians. The interval comes from resampling rounds: nothing is assumed about how the noise is distributed.
"""
import random
import statistics

RESAMPLES = 2000
WARM_MIN = 3  # with fewer values than this the first, cold one is all there is to speak of


def warm(values):
    """The values of one process without the first, which pays for untouched memory."""
    return values[1:] if len(values) >= WARM_MIN else values


def typical(values):
    """What one process says: the median of its warm rounds."""
    return statistics.median(warm(values))


def paired_ratios(ours, theirs):
    """How many times longer they took, round by round. Rounds in which we took no time at all say nothing."""
    return [b / a for a, b in zip(ours, theirs) if a > 0]


def bootstrap(ratios, seed=0, resamples=RESAMPLES):
    """The 95 % interval of the median: (low, high). None for fewer than two ratios."""
    if len(ratios) < 2:
        return None
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples) - 1]


def compare(ours, theirs, seed=0):
    """(median ratio, interval or None) of two lists of the same rounds; None when no round says anything."""
    ratios = paired_ratios(ours, theirs)
    if not ratios:
        return None
    return statistics.median(ratios), bootstrap(ratios, seed)
