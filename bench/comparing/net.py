# SPDX-License-Identifier: MIT
"""The network cases: a server on one core, the load on the other, and what a request costs.

A *side* is a server in one of its forms: which program, which case of it, on which driver. A run starts the server, lets the load ask it with so many
connections, ends it, and reads what both have said (bench/serve.h, bench/load). The ratio is that of CPU time to the bare loop on the same kind of driver, in the
same round: sockets are bound by the kernel, so that the bare loop is the limit, and 1.00 the goal.
"""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from . import contenders as parts
from . import report, rounds, stats
from .growth import slope

CASES = ("echo", "http")
SWEEP = (1, 10, 100, 1000, 8000)
LIMIT = "limit"
WITHIN = 1.03      # of the bare loop's CPU time: so close weft is to come
USER_MOST_US = 0.2  # of a request, in user space
RUN_LIMIT_S = 120  # beyond what the load was asked for: a hang
PROGRAMS = os.path.join(parts.ROOT, "build/release/bench")
LOAD = os.path.join(PROGRAMS, "load")


class Side:
    """A server: `name` as the table has it, `suffix` behind the name of a case, and what it is to run on."""

    def __init__(self, name, program, driver="epoll", suffix=""):
        self.family = name
        self.program = program
        self.driver = driver
        self.suffix = suffix
        self.name = " ".join(word for word in (name, suffix.strip("_"), driver if driver != "epoll" else "") if word)
        self.version = ""

    @property
    def limit(self):
        """The name of the side that is its limit."""
        return LIMIT if self.driver == "epoll" else f"{LIMIT} {self.driver}"


class NetRun:
    """What one run has said: {"cpu": us a request, "user", "system", "rate", "p50", "p99", "p999"}."""

    def __init__(self, values, driver, cpu_s=0.0):
        self.values = values
        self.driver = driver
        self.cpu_s = cpu_s  # of both programs: for the watch


def known_sides():
    weft = os.path.join(PROGRAMS, "weft_bench")
    limit = os.path.join(PROGRAMS, "limit_bench")
    return [
        Side(parts.WEFT, weft), Side(parts.WEFT, weft, suffix="_fiber"),
        Side(parts.WEFT, weft, driver="io_uring"), Side(parts.WEFT, weft, driver="io_uring", suffix="_fiber"),
        Side(LIMIT, limit), Side(LIMIT, limit, driver="io_uring"),
        Side("libuv", os.path.join(PROGRAMS, "uv_bench")),
        Side("tokio", os.path.join(parts.BUILD, "tokio/release/tokio-bench")),
        Side("go", os.path.join(parts.BUILD, "go/go-bench")),
    ]


# ---- building -----------------------------------------------------------------------------------------------------------------------


def build_ours(say):
    """weft, the load, the bare loops, and libuv's server where libuv is."""
    say("building weft, the load and the bare loops")
    shell("cmake --preset release && cmake --build --preset release --target weft_bench load limit_bench")
    if "uv_bench" in shell("cmake --build --preset release --target help"):
        shell("cmake --build --preset release --target uv_bench")
    else:
        say("libuv is left out: libuv1-dev is not installed")


def shell(command):
    done = subprocess.run(command, cwd=parts.ROOT, shell=True, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise parts.Failed(f"{command}\n{done.stdout}")
    return done.stdout


def build_peers(names, say):
    """{name: version} of those that could be built."""
    peers = [peer for peer in parts.all_contenders() if peer.name != parts.WEFT and peer.name in names]
    return {peer.name: peer.version for peer in parts.prepare(peers, say)}


def prepare(names, cores, say):
    """The sides that take part, each tried once: it answers, and runs on what it was asked to run on."""
    sides = [side for side in known_sides() if not names or side.family in names or side.family == LIMIT]
    build_ours(say)
    versions = build_peers({side.family for side in sides}, say)
    versions[parts.WEFT] = versions[LIMIT] = shell("git describe --always --dirty").strip()
    return [side for side in sides if is_fit(side, versions, cores, say)]


def is_fit(side, versions, cores, say):
    if not os.path.exists(side.program):
        return False
    side.version = versions.get(side.family, "")
    if side.family == "libuv":
        side.version = shell(f"{side.program} --version").strip()
    elif side.family not in versions:
        return False
    try:
        run = run_once(side, "http", Ask(conns=2, seconds=0.05, warm=0), cores)
    except parts.Failed as why:
        say(f"{side.name} is left out: {why}")
        return False
    if run.driver != side.driver:
        say(f"{side.name} is left out: it runs on {run.driver}")
        return False
    return True


# ---- one run ------------------------------------------------------------------------------------------------------------------------


class Ask:
    """How a server is asked."""

    def __init__(self, conns=1, depth=1, seconds=2.0, warm=0.3, workers=1, wrk=False):
        self.conns = conns
        self.depth = depth
        self.seconds = seconds
        self.warm = warm
        self.workers = workers
        self.wrk = wrk


class Process:
    """A child on one core, whose output goes to files: it never waits for us."""

    def __init__(self, command, core, env=None):
        self.command = command
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(command, stdout=self.out, stderr=self.err, env=env,
                                      preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        self.cpu_s = 0.0
        self.status = None

    def text(self, file):
        return os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")

    def wait(self, limit_s):
        """Its output, once it has ended. Raises Failed if it fails, or hangs."""
        watchdog = threading.Timer(limit_s, self.child.kill)
        watchdog.start()
        _, status, usage = os.wait4(self.child.pid, 0)
        watchdog.cancel()
        self.child.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        if self.status:
            raise parts.Failed(f"{' '.join(self.command)} exits with {self.status}: {self.text(self.err).strip()}")
        return self.text(self.out)

    def port(self, case):
        """Where it listens. Raises Failed if it ends instead."""
        while True:
            found = re.search(rf"^{case}_listens (\d+)$", self.text(self.out), re.M)
            if found:
                return int(found[1])
            if os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self.wait(1)
                raise parts.Failed(f"{' '.join(self.command)} ended: {self.text(self.err).strip()}")
            time.sleep(0.01)

    def drop(self):
        if self.status is None:
            self.child.kill()
            self.child.wait()
        self.out.close()
        self.err.close()


def run_once(side, case, ask, cores):
    """Starts the server, asks it, ends it."""
    name = case + side.suffix
    server = Process([side.program, name, str(ask.workers), "0"], cores[0], {**os.environ, "WEFT_DRIVER": side.driver})
    try:
        port = server.port(name)
        asked = ask_by_wrk if ask.wrk else ask_by_load
        values, cpu_s = asked(case, port, ask, server.child.pid, cores[1])
        server.child.send_signal(signal.SIGTERM)
        driver, told = parse_server(name, server.wait(RUN_LIMIT_S))
        return NetRun({**values, **told}, driver, cpu_s + server.cpu_s)
    finally:
        server.drop()


def ask_by_load(case, port, ask, pid, core):
    load = Process([LOAD, case, str(port), f"--conns={ask.conns}", f"--depth={ask.depth}", f"--seconds={ask.seconds}",
                    f"--warm={ask.warm}", f"--pid={pid}"], core)
    try:
        return parse_load(load.wait(ask.seconds + ask.warm + RUN_LIMIT_S)), load.cpu_s
    finally:
        load.drop()


def ask_by_wrk(case, port, ask, pid, core):
    """wrk knows of no window: it is told to last longer than it."""
    if case != "http":
        raise parts.Failed(f"wrk asks http only, not {case}")
    duration = max(1, round(ask.seconds + 2 * ask.warm + 1))
    wrk = Process(["wrk", "-t1", f"-c{ask.conns}", f"-d{duration}s", "--latency", f"http://127.0.0.1:{port}/"], core)
    try:
        time.sleep(ask.warm + 0.3)
        os.kill(pid, signal.SIGUSR1)
        time.sleep(ask.seconds)
        os.kill(pid, signal.SIGUSR2)
        return parse_wrk(wrk.wait(duration + RUN_LIMIT_S)), wrk.cpu_s
    finally:
        wrk.drop()


# ---- what they say ------------------------------------------------------------------------------------------------------------------


def parse_server(name, text):
    """(driver, {"cpu", "user", "system", "served"}) of a server's lines."""
    head = re.search(rf"^{name} ([\d.]+) us (\S+)$", text, re.M)
    rest = dict(re.findall(rf"^{name}_(user|system|requests) ([\d.]+)$", text, re.M))
    if not head or len(rest) < 3:
        raise parts.Failed(f"{name}: what a request has cost was expected, not:\n{text}")
    if float(rest["requests"]) == 0:
        raise parts.Failed(f"{name}: no request was counted")
    return head[2], {"cpu": float(head[1]), "user": float(rest["user"]), "system": float(rest["system"]),
                     "served": float(rest["requests"])}


def parse_load(text):
    said = {key: float(value) for key, value in re.findall(r"^load_(\w+) ([\d.]+)$", text, re.M)}
    missing = {"rate", "p50", "p99", "p999"} - set(said)
    if missing:
        raise parts.Failed(f"load: there is no {', '.join(sorted(missing))} in:\n{text}")
    return {key: said[key] for key in ("rate", "p50", "p99", "p999")} | {"load_cpu": said.get("cpu", 0.0)}


UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6}


def parse_wrk(text):
    """Without p99.9: wrk does not tell it."""
    rate = re.search(r"^Requests/sec:\s+([\d.]+)", text, re.M)
    marks = {mark: float(value) * UNITS_US[unit] for mark, value, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", text, re.M)}
    if not rate or len(marks) < 2 or "Non-2xx" in text:
        raise parts.Failed(f"wrk: a rate and times were expected, not:\n{text}")
    return {"rate": float(rate[1]), "p50": marks["50"], "p99": marks["99"]}


# ---- rounds -------------------------------------------------------------------------------------------------------------------------


RUNS_AT_MOST = 4  # of one side in one round


def run_calm(side, case, ask, cores, watch):
    """(Run, None or why it is worth nothing): a disturbed run is repeated at once. A round has nine sides of seconds each: to discard the whole for one of them
    would leave hardly any, and seconds later is still a pair."""
    for _ in range(RUNS_AT_MOST):
        watch.begin()
        run = run_once(side, case, ask, cores)
        why = watch.end(run.cpu_s)
        if not why:
            break
    return run, why


def run_round(case, sides, ask, cores, rng, watch):
    order = list(sides)
    rng.shuffle(order)
    runs, why = {}, None
    for side in order:
        runs[side.name], disturbed = run_calm(side, case, ask, cores, watch)
        why = disturbed or why
    return runs, why


def run_cell(case, sides, ask, count, cores, rng, watch, say, after_round=lambda kept, wanted, discarded: None):
    """The rounds of one case with one number of connections."""
    result = rounds.CaseRounds(case, ask.conns)
    for _ in range(rounds.ATTEMPTS_PER_ROUND * count):
        if len(result.kept) == count:
            break
        runs, why = run_round(case, sides, ask, cores, rng, watch)
        if why:
            result.discarded.append((runs, why))
            say(f"{case}, {ask.conns} connections: round discarded: {why}")
        else:
            result.kept.append(runs)
        after_round(len(result.kept), count, len(result.discarded))
    return result


# ---- the table ----------------------------------------------------------------------------------------------------------------------

HEAD = ("case", "server", "conns", "requests/s", "cpu us", "user", "system", "p50 us", "p99", "p99.9", "x limit", "95 %", "rounds")


class Row:
    """One side in one cell: medians, and the ratio of its CPU time to the limit's."""

    def __init__(self, result, side, seed):
        runs = [some[side.name] for some in result.rounds]
        self.case = result.case
        self.side = side
        self.conns = result.n
        self.kept = len(result.kept)
        self.discarded = len(result.discarded)
        self.disturbed = result.disturbed
        self.values = {key: statistics.median(run.values[key] for run in runs) for key in runs[0].values}
        self.ratio = self.interval = None
        if side.limit != side.name and all(side.limit in some for some in result.rounds):
            limits = [some[side.limit].values["cpu"] for some in result.rounds]
            compared = stats.compare(limits, [run.values["cpu"] for run in runs], seed)
            if compared:
                self.ratio, self.interval = compared


def rows_of(results, sides, seed):
    return [Row(result, side, seed) for result in results if result.rounds for side in sides if side.name in result.rounds[0]]


def fixed(value, digits=2):
    return "" if value is None else f"{value:,.{digits}f}"


def cells(row, first):
    v = row.values
    interval = f"{row.interval[0]:.3f} - {row.interval[1]:.3f}" if row.interval else ""
    count = f"{row.kept}" + (f" (-{row.discarded})" if row.discarded else "") + (" ~" if row.disturbed else "")
    return (row.case if first else "", row.side.name, f"{row.conns:,}", fixed(v["rate"], 0), fixed(v["cpu"]), fixed(v["user"]), fixed(v["system"]),
            fixed(v["p50"], 1), fixed(v["p99"], 1), fixed(v.get("p999"), 1), fixed(row.ratio, 3), interval, count)


def table(rows):
    lines, last = [HEAD], None
    for row in rows:
        lines.append(cells(row, (row.case, row.conns) != last))
        last = (row.case, row.conns)
    return report.aligned(lines, any(row.disturbed for row in rows))


def verdicts(rows):
    """Sentences about weft's goals: close to the limit, little in user space."""
    ours = [row for row in rows if row.side.family == parts.WEFT]
    near = [row for row in ours if row.ratio]
    close = [row for row in near if (row.interval or (row.ratio, row.ratio))[0] <= WITHIN]
    light = [row for row in ours if row.values["user"] < USER_MOST_US]
    text = [f"Within {WITHIN:g}x of the limit, or not shown to be outside: {len(close)} of {len(near)}." if near else "",
            f"Under {USER_MOST_US} us in user space: {len(light)} of {len(ours)}." if ours else ""]
    return " ".join(part for part in text if part)


def sweep_table(rows):
    """Microseconds of CPU time a request at each number of connections, and how they grow."""
    counts = sorted({row.conns for row in rows})
    lines, last = [("case", "server") + tuple(f"{n:,}" for n in counts) + ("slope", "x a decade", "p99.9 us at most")], None
    for case, name in dict.fromkeys((row.case, row.side.name) for row in rows):
        mine = {row.conns: row for row in rows if (row.case, row.side.name) == (case, name)}
        exponent = slope([(n, row.values["cpu"]) for n, row in sorted(mine.items())])
        worst = max((row.values["p999"] for row in mine.values() if "p999" in row.values), default=None)
        lines.append((case if case != last else "", name)
                     + tuple(fixed(mine[n].values["cpu"]) if n in mine else "" for n in counts)
                     + ("" if exponent is None else f"{exponent:+.3f}", "" if exponent is None else f"{10 ** exponent:.2f}", fixed(worst, 1)))
        last = case
    return report.aligned(lines, any(row.disturbed for row in rows))


def as_json(head, results):
    def plain(runs):
        return {name: {"driver": run.driver, **run.values} for name, run in runs.items()}

    return json.dumps({**head, "cells": [{
        "case": result.case,
        "conns": result.n,
        "kept": [plain(runs) for runs in result.kept],
        "discarded": [{"why": why, "runs": plain(runs)} for runs, why in result.discarded],
    } for result in results]}, indent=1)


def has_wrk():
    return shutil.which("wrk") is not None
