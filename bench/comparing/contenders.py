# SPDX-License-Identifier: MIT
"""Who takes part: how each side is built, asked for its cases, and run once.

Every side understands `CASE [WORKERS] [N]` and `--list` (docs/BENCHMARKS.md). A peer whose toolchain is missing is left out, with a
sentence; a side whose build fails is an error, since a table that lacks somebody by accident is worse than none.
"""
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "peers")
WEFT = "weft"
RUN_LIMIT_S = 600  # a hang, not a slow case


class Missing(Exception):
    """A contender that cannot take part, and why."""


class Failed(Exception):
    """A contender that should have, but could not be built or run."""


class Contender:
    def __init__(self, name, program, tool, build, version, oldest=None):
        self.name = name
        self.program = program  # absolute path
        self.tool = tool        # what has to be installed
        self.oldest = oldest    # (command that prints the tool's version, the oldest that will do); None: any
        self.build_command = build
        self.version_command = version
        self.version = ""
        self.cases = []

    def require(self):
        """Raises Missing where it cannot be built."""
        if not shutil.which(self.tool):
            raise Missing(f"{self.name} is left out: {self.tool} is not installed")
        if self.oldest:
            self.check_age(*self.oldest)

    def build(self):
        done = subprocess.run(self.build_command, cwd=ROOT, shell=True, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failed(f"{self.name} could not be built:\n{done.stdout}")
        self.version = subprocess.run(self.version_command, cwd=ROOT, shell=True, text=True, check=False,
                                      stdout=subprocess.PIPE).stdout.strip()
        self.cases = subprocess.run([self.program, "--list"], text=True, check=True, stdout=subprocess.PIPE).stdout.split()

    def check_age(self, command, oldest):
        """What a distribution packages may be older than what a peer's source needs."""
        text = subprocess.run(command, shell=True, text=True, check=False, stdout=subprocess.PIPE).stdout
        if version_in(text) < oldest:
            wanted = ".".join(map(str, oldest))
            raise Missing(f"{self.name} is left out: {self.tool} {wanted} is needed, not {text.strip() or 'none'}")

    def run(self, case, workers, n=None):
        """One process; n None: the case's own."""
        words = [case, str(workers)] + ([] if n is None else [str(n)])
        return parse_run(case, *run_program([self.program] + words, self.name))


class Libuv(Contender):
    def require(self):
        super().require()
        done = subprocess.run("cmake --preset release > /dev/null && cmake --build --preset release --target help", cwd=ROOT, shell=True,
                              text=True, check=False, stdout=subprocess.PIPE)
        if "uv_files" not in done.stdout:
            raise Missing("libuv is left out: libuv1-dev is not installed")


def version_in(text):
    """(1, 85) of "cargo 1.85.0"; (0, 0) of what has no version in it."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def all_contenders():
    return [
        Contender(WEFT, os.path.join(ROOT, "build/release/bench/weft_bench"), "cmake",
                  "cmake --preset release && cmake --build --preset release --target weft_bench",
                  "git describe --always --dirty"),
        Contender("tokio", os.path.join(BUILD, "tokio/release/tokio-bench"), "cargo",
                  "cargo build --release --manifest-path bench/peers/tokio/Cargo.toml --target-dir build/peers/tokio",
                  "sed -n 's/^tokio = .*\"=\\([0-9.]*\\)\".*/\\1/p' bench/peers/tokio/Cargo.toml",
                  ("cargo --version", (1, 85))),
        Contender("go", os.path.join(BUILD, "go/go-bench"), "go",
                  "cd bench/peers/go && go build -o ../../../build/peers/go/go-bench .",
                  "go env GOVERSION", ("go env GOVERSION", (1, 23))),
        Contender("limit", os.path.join(ROOT, "build/release/bench/limit_files"), "cmake",
                  "cmake --preset release && cmake --build --preset release --target limit_files",
                  "git describe --always --dirty"),
        Libuv("libuv", os.path.join(ROOT, "build/release/bench/uv_files"), "cmake",
              "cmake --build --preset release --target uv_files", "pkg-config --modversion libuv"),
    ]


def prepare(contenders, say):
    """Builds them; returns those that take part. weft itself may have no cases yet."""
    ready = []
    for contender in contenders:
        if contender.name == WEFT and not has_cases():
            say("weft has no cases yet (bench/cases): the peers run alone")
            continue
        try:
            contender.require()
            say(f"building {contender.name}")
            contender.build()
            ready.append(contender)
        except Missing as why:
            say(str(why))
    return ready


def has_cases():
    folder = os.path.join(ROOT, "bench", "cases")
    return os.path.isdir(folder) and any(name.endswith(".c") for name in os.listdir(folder))


def run_program(command, name):
    """(stdout, stderr, wall seconds, CPU seconds) of one child: its own usage, not that of all children so far."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=err)
        watchdog = threading.Timer(RUN_LIMIT_S, child.kill)
        watchdog.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        watchdog.cancel()
        out.seek(0)
        err.seek(0)
        if child.returncode:
            raise Failed(f"{name}: {' '.join(command)} exits with {child.returncode}: {err.read().strip()}")
        return out.read(), err.read(), wall_s, usage.ru_utime + usage.ru_stime


class Run:
    """What one process said: the values of each of its measures, its checksum, and what it cost."""

    def __init__(self, values, checksum, wall_s, cpu_s):
        self.values = values  # {"tasks100k": [12.3, ...], "tasks100k_rss": [36.1]}
        self.checksum = checksum
        self.wall_s = wall_s
        self.cpu_s = cpu_s


def parse_run(case, out, err, wall_s, cpu_s):
    values = {}
    for line in out.splitlines():
        words = line.split()
        if len(words) >= 2 and (words[0] == case or words[0].startswith(case + "_")):
            values.setdefault(words[0], []).append(float(words[1]))
    sums = [line.split()[2] for line in err.splitlines() if line.startswith(f"checksum {case} ")]
    if case not in values or not sums:
        raise Failed(f"{case}: values and a checksum were expected, not:\n{out}{err}")
    return Run(values, sums[0], wall_s, cpu_s)
