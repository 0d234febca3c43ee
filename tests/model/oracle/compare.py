#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare - random litmus programs, run by the model checker and by the RC11 enumerator; the outcomes must be the same.

    compare.py CHECKER [--seeds 1-8] [--programs 200] [--seconds 0] [--program "| S x 1 sc | L x sc"]

First come the programs of programs.txt, then random ones: each seed gives a list, always the same. The first difference is shrunk to the smallest program that still
shows one, and printed with the outcomes that only one side has. Exit 0: no difference; 1: a difference; 2: bad usage.
"""
import argparse
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import rc11  # noqa: E402

LOAD_ORDERS = ["rlx", "acq", "sc", "sc"]
STORE_ORDERS = ["rlx", "rel", "sc", "sc"]
RMW_ORDERS = ["rlx", "acq", "rel", "acq_rel", "sc"]
FENCE_ORDERS = ["acq", "rel", "acq_rel", "sc", "sc", "sc"]
FAIL_ORDERS = ["rlx", "acq", "sc"]

# What programs are made of; each seed takes the next. Weights of L S A X C F R W, the chance of a guard, and that the main
# thread begins with operations of its own; one order that most accesses have, or None. A flavour with `cycle` makes threads that
# each go from one location to the next one's, which is where weak memory shows; the number is the chance of something in between.
FLAVOURS = [
    dict(weights=(8, 8, 1, 1, 1, 12, 0, 0), guard=0.0, main=0.1, order="mixed", cycle=0.5),
    dict(weights=(8, 8, 1, 1, 1, 3, 0, 0), guard=0.0, main=0.1, order=None, cycle=0.5),
    dict(weights=(8, 8, 1, 1, 1, 2, 0, 1), guard=0.0, main=0.0, order="sc", cycle=0.5),
    dict(weights=(8, 8, 1, 1, 1, 16, 0, 0), guard=0.0, main=0.0, order="rlx", cycle=0.7),
    dict(weights=(4, 4, 1, 1, 6, 4, 0, 0), guard=0.1, main=0.0, order="mixed", cycle=0.5),
    dict(weights=(8, 8, 1, 1, 1, 4, 0, 0), guard=0.05, main=0.1, order=None),
    dict(weights=(6, 6, 2, 2, 2, 2, 0, 0), guard=0.1, main=0.1, order=None),
    dict(weights=(8, 8, 0, 0, 0, 6, 0, 0), guard=0.0, main=0.1, order="rlx"),
    dict(weights=(8, 8, 1, 1, 1, 1, 0, 0), guard=0.05, main=0.2, order="sc"),
    dict(weights=(6, 6, 2, 2, 2, 2, 2, 2), guard=0.3, main=0.2, order=None),
    dict(weights=(10, 10, 0, 0, 0, 0, 0, 0), guard=0.0, main=0.0, order=None),
    dict(weights=(6, 6, 1, 1, 1, 2, 2, 2), guard=0.5, main=0.1, order="half"),
]
SHAPES = [(2, 2), (3, 3), (2, 3), (4, 2), (4, 4), (2, 2, 2), (3, 2, 2), (3, 3, 2), (1, 2, 3), (1, 1, 3, 3), (1, 1, 2, 2), (2, 2, 2, 2)]


def random_op(rng, flavour, locations, number):
    kind = rng.choices("LSAXCFRW", flavour["weights"])[0]
    loc = rng.choice(locations)
    guard = "? " if rng.random() < flavour["guard"] else ""

    def order(choices):
        if flavour["order"] == "half":
            return rng.choice([o for o in choices if o != "sc"] + ["acq" if "acq" in choices else "rel"])
        if flavour["order"] == "mixed":
            return rng.choice(("sc", "rlx"))
        if flavour["order"] and rng.random() < 0.8:
            return flavour["order"]
        return rng.choice(choices)

    if kind == "L":
        return f"{guard}L {loc} {order(LOAD_ORDERS)}"
    if kind == "S":
        return f"{guard}S {loc} {number} {order(STORE_ORDERS)}"
    if kind == "A":
        return f"{guard}A {loc} {rng.choice((1, 1, 10))} {order(RMW_ORDERS)}"
    if kind == "X":
        return f"{guard}X {loc} {number} {order(RMW_ORDERS)}"
    if kind == "C":
        return f"{guard}C {loc} {rng.choice((0, 0, 1, 2))} {number} {order(RMW_ORDERS)} {rng.choice(FAIL_ORDERS)}"
    if kind == "F":
        return f"{guard}F {rng.choice(FENCE_ORDERS)}"
    return f"{guard}{kind} {rng.choice('pq')}"


def access(rng, flavour, loc, number):
    while True:
        op = random_op(rng, flavour, [loc], number)
        if op.split()[0] in "LSAXC":
            return op


def random_cycle(rng, flavour):
    length = rng.choice((2, 2, 2, 3, 3, 4))
    locations = [rc11.LOCATIONS[i % 3] for i in range(length)] if length < 4 else list("xyxy")
    numbers = iter(range(1, 100))
    threads = [[]]
    for t in range(length):
        here, there = locations[t], locations[(t + 1) % length]
        thread = [access(rng, flavour, here, next(numbers))]
        while rng.random() < flavour["cycle"] and len(thread) < (4 if length < 3 else 3):
            thread.append(random_op(rng, flavour, [here, there], next(numbers)))
        if rng.random() < 0.9:
            thread.append(access(rng, flavour, there, next(numbers)))
        threads.append(thread)
    return threads


def random_program(rng, flavour):
    if "cycle" in flavour:
        return random_cycle(rng, flavour)
    shape = rng.choice(SHAPES)
    locations = rng.choice(["xy", "xy", "xyz", "x"])
    numbers = iter(range(1, 100))
    threads = [[]]
    if rng.random() < flavour["main"]:
        threads[0] = [random_op(rng, flavour, locations, next(numbers)) for _ in range(rng.choice((1, 2)))]
    for length in shape:
        threads.append([random_op(rng, flavour, locations, next(numbers)) for _ in range(length)])
    return threads


def line_of(threads):
    return " | ".join(" ; ".join(thread) for thread in threads)


def is_small(threads):
    """The enumerator looks at all ways to read; keep to what takes it milliseconds."""
    ways = 1
    for loc in rc11.LOCATIONS:
        accesses = [op for thread in threads for op in thread if f" {loc} " in op]
        writes = sum(1 for op in accesses if op.replace("? ", "")[0] in "SAXC") + 1
        reads = sum(1 for op in accesses if op.replace("? ", "")[0] in "LAXC")
        ways *= max(1, writes) ** reads
        for k in range(2, writes):
            ways *= k
    control = sum(op.startswith("?") + (" C " in " " + op) for thread in threads for op in thread)
    return ways << control <= 4000


class Checker:
    """The checker's program, asked one program at a time."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def outcomes(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answers = [self.process.stdout.readline().rstrip("\n") for _ in range(2)]
        if not answers[1]:
            raise SystemExit(f"the checker died on: {line}")
        return [set(answer.split(",")) for answer in answers]


def difference(checker, threads):
    """None, or what differs, in words."""
    line = line_of(threads)
    allowed = rc11.outcomes(line)
    words = []
    for name, found in zip(("bounded search", "sleep sets"), checker.outcomes(line)):
        if found - allowed - {"more"} and not (allowed == {"race"} and "more" in found):
            words.append(f"{name} finds, RC11 forbids: " + ", ".join(sorted(found - allowed)))
        if allowed - found and "more" not in found:
            words.append(f"RC11 allows, {name} misses: " + ", ".join(sorted(allowed - found)))
    return "\n".join(words) or None


def smaller(threads):
    """Programs with one thing less."""
    for t in range(len(threads)):
        if t > 0 and len(threads) > 2:
            yield threads[:t] + threads[t + 1:]
        for i, op in enumerate(threads[t]):
            yield threads[:t] + [threads[t][:i] + threads[t][i + 1:]] + threads[t + 1:]
            simpler = []
            if op.startswith("? "):
                simpler.append(op[2:])
            words = op.split()
            for strong, weak in (("sc", "acq_rel"), ("acq_rel", "acq"), ("acq_rel", "rel"), ("acq", "rlx"), ("rel", "rlx"),
                                 ("sc", "acq"), ("sc", "rel")):
                if words[-1] == strong and "C" not in words and not (words[-2:] == ["F", "acq"]):
                    if words[-2] == "F" and weak == "rlx" or "L" in words and "rel" in weak or "S" in words and "acq" in weak:
                        continue
                    simpler.append(" ".join(words[:-1] + [weak]))
            for replacement in simpler:
                yield threads[:t] + [threads[t][:i] + [replacement] + threads[t][i + 1:]] + threads[t + 1:]


def shrink(checker, threads):
    again = True
    while again:
        again = False
        for candidate in smaller(threads):
            if difference(checker, candidate):
                threads, again = candidate, True
                break
    return threads


def report(checker, threads, where):
    print(f"DIFFERENCE ({where})\n  {line_of(threads)}\n  {difference(checker, threads)}".replace("\n", "\n  "))
    small = shrink(checker, threads)
    print(f"shrunk:\n  {line_of(small)}\n{difference(checker, small)}".replace("\n", "\n  "))


def threads_of(line):
    return [[op.strip() for op in part.split(";") if op.strip()] for part in line.split("|")]


def run_listed(checker):
    """The programs of programs.txt; how many there are, and whether none differs."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.txt")
    with open(path, encoding="utf-8") as listed:
        lines = [line.strip() for line in listed if line.strip() and not line.startswith("#")]
    for line in lines:
        if difference(checker, threads_of(line)):
            report(checker, threads_of(line), "programs.txt")
            return len(lines), False
    return len(lines), True


def run_seed(checker, seed, count, until):
    rng = random.Random(seed)
    flavour = FLAVOURS[seed % len(FLAVOURS)]
    done = 0
    while done < count and time.monotonic() < until:
        threads = random_program(rng, flavour)
        if not is_small(threads):
            continue
        if difference(checker, threads):
            report(checker, threads, f"seed {seed}, program {done}")
            return done, False
        done += 1
    return done, True


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("checker")
    parser.add_argument("--seeds", default="1-12")
    parser.add_argument("--programs", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=0, help="stop early, after this long; 0: never")
    parser.add_argument("--program", help="compare this one program")
    return parser.parse_args()


def main():
    args = arguments()
    checker = Checker(args.checker)
    if args.program:
        words = difference(checker, threads_of(args.program))
        print(words or "no difference: " + ", ".join(sorted(rc11.outcomes(args.program))))
        return 1 if words else 0
    first, _, last = args.seeds.partition("-")
    until = time.monotonic() + args.seconds if args.seconds else float("inf")
    listed, same = run_listed(checker)
    total = 0
    if not same:
        return 1
    for seed in range(int(first), int(last or first) + 1):
        done, same = run_seed(checker, seed, args.programs, until)
        total += done
        if not same:
            return 1
    print(f"{listed} listed and {total} random programs, seeds {args.seeds}: the checker finds exactly what RC11 allows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
