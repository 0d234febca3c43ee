# SPDX-License-Identifier: MIT
"""What the machine did while a program ran: is the round worth anything?

Three witnesses. Stolen time: the hypervisor ran somebody else. Foreign time: our cores worked, but neither for the program nor for
us. The canary: a fixed piece of arithmetic, before and after, that takes longer when the core is slow for any other reason.
"""
import hashlib
import os
import time

CANARY_LIMIT = 1.05   # of its best; more lets a lower clock frequency through, less discards on cache noise
STEAL_LIMIT = 0.01    # of the time that the cores had
FOREIGN_LIMIT = 0.05  # the same; /proc/stat counts ticks of 10 ms, so a short run needs the slack below
SLACK_TICKS = 2

_BLOCK = bytes(1 << 20)


class Disturbed(Exception):
    """Why a round is worth nothing."""


def parse_stat(text, cpus):
    """(busy, stolen) ticks of these cores out of /proc/stat."""
    busy = stolen = 0
    for line in text.splitlines():
        words = line.split()
        if words and words[0][:3] == "cpu" and words[0][3:].isdigit() and int(words[0][3:]) in cpus:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, words[1:9])
            busy += user + nice + system + irq + softirq
            stolen += steal
    return busy, stolen


def judge(wall_s, cpu_s, busy_ticks, steal_ticks, core_count, tick_s):
    """None, or why what ran in that time was disturbed. cpu_s: what the program and we ourselves used."""
    available = wall_s * core_count / tick_s
    if steal_ticks > max(STEAL_LIMIT * available, SLACK_TICKS):
        return f"stolen time {100 * steal_ticks / available:.1f} %"
    foreign = busy_ticks - cpu_s / tick_s
    if foreign > max(FOREIGN_LIMIT * available, SLACK_TICKS):
        return f"others used {100 * foreign / available:.0f} % of the cores"
    return None


class Canary:
    """Remembers the best time of each core; the first looks set it, so the caller warms it up."""

    def __init__(self, cpus, measure=None):
        self.cpus = sorted(cpus)
        self.best = {}
        self.measure = measure or measure_core

    def look(self):
        """None, or why a core is slower than it can be."""
        complaint = None
        for cpu in self.cpus:
            took = self.measure(cpu)
            best = self.best[cpu] = min(took, self.best.get(cpu, took))
            if took > CANARY_LIMIT * best:
                complaint = f"canary {took / best:.2f}x on core {cpu}"
        return complaint


def measure_core(cpu):
    """The best of three hashes of 1 MiB on that core: the best, so that one interrupt does not count."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            hashlib.sha256(_BLOCK).digest()
            best = min(best, time.perf_counter() - start)
        return best
    finally:
        os.sched_setaffinity(0, before)


def read_stat(cpus):
    with open("/proc/stat", encoding="ascii") as file:
        return parse_stat(file.read(), cpus)


class Watch:
    """Wraps the run of one program: begin, run it, then end(cpu seconds of the program) says None or why it was disturbed."""

    def __init__(self, cpus, canary):
        self.cpus = cpus
        self.canary = canary
        self.tick_s = 1 / os.sysconf("SC_CLK_TCK")

    def begin(self):
        self.complaint = self.canary.look()
        self.stat = read_stat(self.cpus)
        self.own = time.process_time()
        self.start = time.perf_counter()

    def end(self, program_cpu_s):
        wall_s = time.perf_counter() - self.start
        cpu_s = program_cpu_s + time.process_time() - self.own
        busy, stolen = (after - before for after, before in zip(read_stat(self.cpus), self.stat))
        noise = judge(wall_s, cpu_s, busy, stolen, len(self.cpus), self.tick_s)
        return self.complaint or noise or self.canary.look()


def describe():
    """One line about the machine, for the head of a table."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{os.cpu_count()} x {model}, Linux {os.uname().release}"
