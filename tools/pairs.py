#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pairs - prints the ends of memory-order pairs that have no other end.

Every acquire, release and fence in src/ names its pair in brackets, in a comment at the place: `/* [runq-tail] with steal */`. A tag is
whole when it has a release end and an acquire end, and a row in docs/MEMORY_MODEL.md. This prints
    operations that order something and name no pair
    tags with one end only
    tags without a row, and rows without code
It reads text, not C: a comment belongs to the operation on its line, to the statement that it ends, or to the statement that follows.
A report for the author of a change: it exits 0 whatever it finds, unless it is called with --check.
"""

import argparse
import collections
import pathlib
import re
import sys

TAG = re.compile(r"\[([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\]")
ROW = re.compile(r"^\|\s*`?\[([a-z0-9-]+)\]`?\s*\|")
RMW = r"(?:exchange|fetch_add|fetch_sub|fetch_or|fetch_and|cas)"
RELEASES = re.compile(rf"\b(?:store_(?:release|seq_cst)|{RMW}_(?:release|acq_rel|seq_cst)|fence_(?:release|seq_cst)|own_add_release|mb_after_rmw)\s*\(")
ACQUIRES = re.compile(rf"\b(?:load_(?:acquire|seq_cst)|{RMW}_(?:acquire|acq_rel|seq_cst)|fence_(?:acquire|seq_cst)|mb_after_rmw)\s*\(")
# The wrappers themselves.
SEAM = {"base/atomic.h", "base/atomic.c"}

Line = collections.namedtuple("Line", "code comment")


def split(text):
    """The lines of a C file, each as (code, comment). String literals are blanked: brackets in messages are no tags."""
    lines, code, comment, state, at = [], "", "", "code", 0
    while at < len(text):
        two, one = text[at:at + 2], text[at]
        if one == "\n":
            lines.append(Line(code, comment))
            code = comment = ""
            state = "code" if state == "//" else state
        elif state in ("/*", "//"):
            if state == "/*" and two == "*/":
                state = "code"
                at += 1
            else:
                comment += one
        elif two in ("/*", "//"):
            state = two
            at += 1
        elif one in "\"'":
            end = at + 1
            while end < len(text) and text[end] not in (one, "\n"):
                end += 2 if text[end] == "\\" else 1
            code += one + one
            at = end if end < len(text) and text[end] == one else end - 1
        else:
            code += one
        at += 1
    return lines + [Line(code, comment)]


def orders(code):
    """Which halves the operations of some code have: a set of 'release' and 'acquire'."""
    return ({"release"} if RELEASES.search(code) else set()) | ({"acquire"} if ACQUIRES.search(code) else set())


def ends_statement(line):
    return line.code.rstrip().endswith((";", "{", "}"))


def comment_of(lines, at):
    """The comments that speak of the operation on line `at`: beside it, up to the end of its statement, and directly above it."""
    words = [lines[at].comment]
    below = at
    while not ends_statement(lines[below]) and below + 1 < min(len(lines), at + 5):
        below += 1
        words.append(lines[below].comment)
    above = at - 1
    while above >= 0 and lines[above].code.strip() and not ends_statement(lines[above]) and at - above < 5:
        words.append(lines[above].comment)
        above -= 1
    while above >= 0 and not lines[above].code.strip() and lines[above].comment.strip():
        words.append(lines[above].comment)
        above -= 1
    return "\n".join(words)


def read_sources(src):
    """({tag: {'release': [place], 'acquire': [place]}}, {tag: mentions}, [place of an operation without a tag])"""
    ends = collections.defaultdict(lambda: {"release": [], "acquire": []})
    mentions = collections.Counter()
    untagged = []
    for path in sorted(src.rglob("*.[ch]")):
        name = path.relative_to(src).as_posix()
        if name in SEAM:
            continue
        lines = split(path.read_text(encoding="utf-8"))
        for line in lines:
            mentions.update(TAG.findall(line.comment))
        for at, line in enumerate(lines):
            if line.code.lstrip().startswith("#"):
                continue
            halves = orders(line.code)
            tags = TAG.findall(comment_of(lines, at)) if halves else []
            if halves and not tags:
                untagged.append((f"src/{name}:{at + 1}", line.code.strip()))
            for tag in tags:
                for half in halves:
                    ends[tag][half].append(f"src/{name}:{at + 1}")
    return ends, mentions, untagged


def read_rows(page):
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return [found.group(1) for found in map(ROW.match, text.splitlines()) if found]


def findings(root):
    ends, mentions, untagged = read_sources(root / "src")
    rows = read_rows(root / "docs" / "MEMORY_MODEL.md")
    for place, code in untagged:
        yield f"{place}: names no pair: {code}"
    for tag in sorted(ends):
        places = ends[tag]["release"] + ends[tag]["acquire"]
        for half, other in (("release", "acquire"), ("acquire", "release")):
            if not ends[tag][half]:
                yield f"{places[0]}: [{tag}] has an {other} end and no {half} end".replace("an release", "a release")
        if mentions[tag] < 2:
            yield f"{places[0]}: [{tag}] is mentioned once in src/"
        if tag not in rows:
            yield f"{places[0]}: [{tag}] has no row in docs/MEMORY_MODEL.md"
    for tag in rows:
        if tag not in ends:
            yield f"docs/MEMORY_MODEL.md: [{tag}] has a row and no code"
        if rows.count(tag) > 1:
            yield f"docs/MEMORY_MODEL.md: [{tag}] has {rows.count(tag)} rows"


def main(argv):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="exit 1 if there is anything to report")
    options.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = options.parse_args(argv)

    found = list(dict.fromkeys(findings(options.root)))
    for line in found:
        print(line)
    print(f"pairs: {len(found) or 'nothing'} to look at")
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
