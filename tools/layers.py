#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""layers - prints the #includes in src/ that climb the stairs.

The house (docs/ARCHITECTURE.md) has floors, and a folder includes only what lies below it. This is a report for the author of a change:
it exits 0 whatever it finds, unless it is called with --check.
"""

import argparse
import pathlib
import re
import sys

# What a folder may include besides itself and limits.h: a folder ("base/"), or one file of it ("sys/lock.h").
LOCK_AND_MEMORY = ["sys/lock.h", "sys/futex.h", "sys/mem.h", "sys/stack.h", "sys/fork.h", "sys/segv.h", "sys/peek.h", "sys/thread.h"]
WAKER = ["task/waker.h", "task/park.h"]
FLOORS = {
    "": ["base/"],
    "base": [],
    "sys": ["base/"],
    "task": ["base/", "types.h"] + LOCK_AND_MEMORY,
    "time": ["base/", "types.h", "sys/lock.h", "sys/bias.h", "task/call.h", "task/here.h"] + WAKER,
    "sync": ["base/", "types.h", "sys/lock.h", "sys/bias.h", "sys/peek.h", "task/call.h", "task/here.h", "task/state.h", "task/orphan.h", "task/tail.h", "task/lent.h", "task/linked.h", "task/holds.h", "task/name.h"] + WAKER,
    "driver": ["base/", "types.h", "sys/", "sync/waitlist.h", "sync/leaf.h", "task/warm.h"] + WAKER,
    "sched": ["base/", "types.h", "sys/", "task/", "time/", "sync/", "driver/"],
    "flow": ["base/", "types.h", "task/", "sync/", "time/"],
    "console": ["base/", "types.h", "trace/"],
}
for outer in ("io", "net", "fs", "proc"):
    FLOORS[outer] = ["base/", "types.h", "task/", "sync/", "time/", "flow/", "driver/", "sys/"]
FLOORS["net"].append("io/")  # what it gives are streams

# Doors to the kernel. Only sys has a key: the simulator and the fault injector stand there.
KERNEL = re.compile(r"^(linux/.*|sys/(syscall|epoll|eventfd|timerfd|signalfd|mman|socket|uio|resource|wait|prctl)\.h"
                    r"|unistd\.h|pthread\.h|sched\.h|fcntl\.h|poll\.h|sys/types\.h|netdb\.h)$")
# Public headers that say nothing of tasks, so that even the ground may use them.
PUBLIC_FOR_ALL = {"weft/alloc.h", "weft/api.h", "weft/version.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def allowed(folder, target):
    """Whether a file of `folder` may say #include "target"."""
    own = folder + "/" if folder else ""
    if target == "limits.h" or (own and target.startswith(own)):
        return True
    if folder == "" and "/" not in target:
        return True
    return any(target == may or (may.endswith("/") and target.startswith(may)) for may in FLOORS[folder])


def complaint(folder, kind, target):
    """What is wrong with one include, or None."""
    if folder not in FLOORS:
        return f"the folder {folder} has no floor in tools/layers.py"
    if kind == "<":
        if KERNEL.match(target) and folder != "sys":
            return f"<{target}> is a way to the kernel; only sys has one"
        if target.startswith("weft/") and folder in ("base", "sys") and target not in PUBLIC_FOR_ALL:
            return f"<{target}> is above {folder}"
        return None
    if target in ("model.h", "model_atomic.h"):  # the model checker's side of a seam
        return None
    return None if allowed(folder, target) else f'"{target}" is not below {folder or "src"}'


def findings(src):
    """Yields (file, line, what) for every include that climbs."""
    for path in sorted(src.rglob("*.[ch]")):
        parts = path.relative_to(src).parts
        folder = parts[0] if len(parts) > 1 else ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            what = found and complaint(folder, found.group(1), found.group(2))
            if what:
                yield path, number, what


def main(argv):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="exit 1 if there is anything to report")
    options.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = options.parse_args(argv)

    count = 0
    for path, line, what in findings(options.root / "src"):
        print(f"{path.relative_to(options.root)}:{line}: {what}")
        count += 1
    print(f"layers: {count or 'no'} include{'' if count == 1 else 's'} climb{'s' if count == 1 else ''} the stairs")
    return 1 if options.check and count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
