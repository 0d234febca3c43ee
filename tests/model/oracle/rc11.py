# SPDX-License-Identifier: MIT
"""rc11 - the outcomes that RC11 allows a small program, by enumeration of all its executions.

The independent opinion that the model checker is compared with (compare.py). It shares no idea with the checker: there
are no views, no schedules and no clocks here, only the axioms, written as relations over a finished execution graph, as
in Lahav, Vafeiadis, Kang, Hur, Dreyer: "Repairing sequential consistency in C/C++11" (PLDI 2017):
    hb         = (sb U sw)+
    COHERENCE    hb ; eco?  is irreflexive               eco = (rf U mo U fr)+
    ATOMICITY    no write comes between an RMW's read and its write
    SC           psc_base U psc_F  is acyclic
    NO-THIN-AIR  sb U rf  is acyclic
with C++20's release sequence: rs = [W] ; (rf ; rmw)*. An RMW is two events, as in the paper. A relation is a list of bit
masks: bit j of row i says that i is related to j. Clear rather than fast: programs of up to a dozen events.

A program is one line. Threads are parted by "|", operations by ";". The first part runs in the main thread, before the
others are created; it may be empty. Memory starts as zero.
    L x acq          load                    A x 1 rel        fetch_add
    S x 2 rlx        store                   X x 3 acq_rel    exchange
    F sc             fence                   C x 0 3 sc acq   compare-and-swap 0 -> 3, orders of success and failure
    R p              plain read              W p              plain write, of p or q; they race, or they do not
    ? S x 1 rlx      only if the last value that this thread read is not zero
An outcome is what each atomic operation read, "-" if it read nothing, then the final values of x, y, z. A program with a
data race in any execution has the one outcome "race".
"""
import itertools
import sys

LOCATIONS = "xyz"
ACQUIRE = {"acq", "acq_rel", "sc"}
RELEASE = {"rel", "acq_rel", "sc"}


class Op:
    """One operation of the program text."""

    def __init__(self, text):
        words = text.split()
        self.guarded = words[0] == "?"
        if self.guarded:
            words = words[1:]
        self.kind = words[0]
        self.loc = words[1] if self.kind != "F" else None
        self.order = words[-1] if self.kind not in "RW" else "na"
        self.fail_order = None
        self.value = int(words[2]) if self.kind in "SAX" else None
        if self.kind == "C":
            self.expected, self.value = int(words[2]), int(words[3])
            self.order, self.fail_order = words[4], words[5]
        self.reads = self.kind in "LAXC"


def parse(line):
    """The program's threads, each a list of operations; the main thread is the first."""
    return [[Op(text) for text in part.split(";") if text.strip()] for part in line.split("|")]


class Event:
    """A node of the execution graph. kind: R, W, F, P for a plain access, or N for a thread's creation and start."""

    def __init__(self, kind, thread, loc=None, order="rlx", op=None):
        self.kind, self.thread, self.loc, self.order, self.op = kind, thread, loc, order, op
        self.rmw_read = None        # of an RMW's write: the event of its read


# ---- relations ----

def empty(n):
    return [0] * n


def union(*relations):
    return [_or(rows) for rows in zip(*relations)]


def _or(rows):
    mask = 0
    for row in rows:
        mask |= row
    return mask


def bits(mask):
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def compose(a, b):
    return [_or(b[j] for j in bits(row)) for row in a]


def closure(a):
    a = list(a)
    for k in range(len(a)):
        row_k = a[k]
        if row_k:
            for i in range(len(a)):
                if a[i] >> k & 1:
                    a[i] |= row_k
    return a


def reflexive(a):
    return [row | 1 << i for i, row in enumerate(a)]


def within(a, rows, columns):
    """a, only from events in `rows` to events in `columns`."""
    return [row & columns if rows >> i & 1 else 0 for i, row in enumerate(a)]


def irreflexive(a):
    return not any(row >> i & 1 for i, row in enumerate(a))


def mask_of(events, test):
    return sum(1 << i for i, e in enumerate(events) if test(e))


# ---- event graphs: one per way of control ----

def ways_of(thread):
    """For each operation: None (not executed), True, or False (a compare-and-swap that fails)."""
    choices = []
    for op in thread:
        ways = [True, False] if op.kind == "C" else [True]
        choices.append(ways + [None] if op.guarded else ways)
    return itertools.product(*choices)


def build(program, ways):
    """The events of one way through the program, and its sb, as relations."""
    events = [Event("W", -1, loc) for loc in LOCATIONS]         # initial values
    sw_create = []
    for t, thread in enumerate(program):
        if t > 0:
            events.append(Event("N", t))                        # the thread's start
            sw_create.append(len(events) - 1)
        for op, way in zip(thread, ways[t]):
            if way is None:
                continue
            if op.kind == "F":
                events.append(Event("F", t, None, op.order, op))
                continue
            if op.kind in "RW":
                events.append(Event("P", t, op.loc, op.order, op))
                continue
            writes = op.kind != "L" and way
            if op.reads:
                events.append(Event("R", t, op.loc, op.order if way else op.fail_order, op))
            if writes:
                w = Event("W", t, op.loc, op.order, op)
                if op.reads:
                    w.rmw_read = len(events) - 1
                events.append(w)
        if t == 0:
            events.append(Event("N", 0))                        # creates the others
            create = len(events) - 1
    n = len(events)
    sb = empty(n)
    for i, a in enumerate(events):
        for j in range(i + 1, n):
            if a.thread == -1 and events[j].thread != -1 or a.thread >= 0 and a.thread == events[j].thread:
                sb[i] |= 1 << j
    created = empty(n)
    for s in sw_create:
        created[create] |= 1 << s
    return events, sb, created


# ---- values ----

def values_of(events, sb, rf):
    """What each event reads or writes; None if sb U rf has a cycle."""
    n = len(events)
    order = union(sb, [_or(1 << r for r, w in rf.items() if w == i) for i in range(n)])
    if not irreflexive(closure(order)):
        return None
    before = empty(n)
    for i in range(n):
        for j in bits(order[i]):
            before[j] |= 1 << i
    value = [None] * n
    done = 0
    while done != (1 << n) - 1:
        for i, e in enumerate(events):
            if done >> i & 1 or before[i] & ~done:
                continue
            done |= 1 << i
            if e.kind == "R":
                value[i] = value[rf[i]]
            elif e.kind == "W":
                value[i] = written(e, value)
    return value


def written(e, value):
    if e.thread == -1:
        return 0
    if e.op.kind == "A":
        return value[e.rmw_read] + e.op.value
    return e.op.value


def control_fits(program, ways, events, value):
    """Do the values read lead along the way that was assumed?"""
    read_of = {id(e.op): value[i] for i, e in enumerate(events) if e.kind == "R"}
    for t, thread in enumerate(program):
        last = 0
        for op, way in zip(thread, ways[t]):
            if op.guarded and (last != 0) != (way is not None):
                return False
            if way is None or not op.reads:
                continue
            last = read_of[id(op)]
            if op.kind == "C" and (last == op.expected) != way:
                return False
    return True


# ---- the axioms ----

def happens_before(events, sb, created, rf):
    n = len(events)
    rmw_of = {e.rmw_read: i for i, e in enumerate(events) if e.rmw_read is not None}
    readers = {}
    for r, w in rf.items():
        readers.setdefault(w, []).append(r)
    sw = list(created)
    for w, e in enumerate(events):
        if e.kind != "W" or e.thread == -1:
            continue
        sequence, at = [w], 0                                   # the release sequence: RMWs only
        while at < len(sequence):
            sequence += [rmw_of[r] for r in readers.get(sequence[at], []) if r in rmw_of]
            at += 1
        heads = [w] if e.order in RELEASE else []
        heads += [f for f in range(n) if events[f].kind == "F" and events[f].order in RELEASE and sb[f] >> w & 1]
        for r in (r for s in sequence for r in readers.get(s, [])):
            tails = [r] if events[r].order in ACQUIRE else []
            tails += [f for f in bits(sb[r]) if events[f].kind == "F" and events[f].order in ACQUIRE]
            for head in heads:
                for tail in tails:
                    sw[head] |= 1 << tail
    return closure(union(sb, sw))


def location_orders(events, loc, rf, hb):
    """All modification orders of one location that atomicity and coherence allow."""
    writes = [i for i, e in enumerate(events) if e.kind == "W" and e.loc == loc]
    reads = [i for i, e in enumerate(events) if e.kind == "R" and e.loc == loc]
    for rest in itertools.permutations(writes[1:]):
        mo = [writes[0], *rest]
        place = {w: k for k, w in enumerate(mo)}
        if any(events[w].rmw_read is not None and place[rf[events[w].rmw_read]] + 1 != place[w] for w in mo[1:]):
            continue
        communication = empty(len(events))
        for k, w in enumerate(mo):
            for later in mo[k + 1:]:
                communication[w] |= 1 << later
        for r in reads:
            communication[rf[r]] |= 1 << r
            for later in mo[place[rf[r]] + 1:]:
                communication[r] |= 1 << later                  # also an RMW's own write
        eco = closure(communication)
        if irreflexive(compose(hb, eco)):
            yield mo, communication, eco


def sc_holds(events, sb, hb, rf, orders):
    n = len(events)
    everything = (1 << n) - 1
    sc = mask_of(events, lambda e: e.order == "sc")
    fences = mask_of(events, lambda e: e.order == "sc" and e.kind == "F")
    if not sc & (sc - 1):
        return True
    same = [mask_of(events, lambda e, a=a: a.loc is not None and e.loc == a.loc) for a in events]
    mo_fr = empty(n)
    eco = empty(n)
    for mo, communication, loc_eco in orders:
        eco = union(eco, loc_eco)
        reads_from = {(w, r) for r, w in rf.items()}
        for i in range(n):
            for j in bits(communication[i]):
                if (i, j) not in reads_from:
                    mo_fr[i] |= 1 << j
    sb_elsewhere = [row & ~same[i] for i, row in enumerate(sb)]
    hb_here = [row & same[i] for i, row in enumerate(hb)]
    scb = union(sb, compose(compose(sb_elsewhere, hb), sb_elsewhere), hb_here, mo_fr)
    hb_r = reflexive(hb)
    left = union(within(reflexive(empty(n)), sc, sc), within(hb_r, fences, everything))
    right = union(within(reflexive(empty(n)), sc, sc), within(hb_r, everything, fences))
    psc_base = compose(compose(left, scb), right)
    psc_f = within(union(hb, compose(compose(hb, eco), hb)), fences, fences)
    return irreflexive(closure(union(psc_base, psc_f)))


def has_race(events, hb):
    plain = [i for i, e in enumerate(events) if e.kind == "P"]
    for i, j in itertools.combinations(plain, 2):
        conflict = events[i].loc == events[j].loc and "W" in (events[i].op.kind, events[j].op.kind)
        if conflict and not hb[i] >> j & 1 and not hb[j] >> i & 1:
            return True
    return False


# ---- executions ----

def readings(events, sb):
    """All rf that the obvious does not forbid: own later writes, two RMWs that read one write."""
    reads = [i for i, e in enumerate(events) if e.kind == "R"]
    rmw_reads = {e.rmw_read for e in events if e.rmw_read is not None}
    sources = []
    for r in reads:
        sources.append([w for w, e in enumerate(events) if e.kind == "W" and e.loc == events[r].loc and not sb[r] >> w & 1])
    for choice in itertools.product(*sources):
        taken = [w for r, w in zip(reads, choice) if r in rmw_reads]
        if len(taken) == len(set(taken)):
            yield dict(zip(reads, choice))


def text_of(program, ways, events, value, finals):
    read_of = {id(e.op): value[i] for i, e in enumerate(events) if e.kind == "R"}
    words = [str(read_of.get(id(op), "-")) for thread in program for op in thread]
    return " ".join(words + [str(value[w]) for w in finals])


def outcomes(line):
    """The set of outcomes that RC11 allows the program."""
    program = parse(line)
    found = set()
    for ways in itertools.product(*(list(ways_of(thread)) for thread in program)):
        events, sb, created = build(program, ways)
        has_sc = mask_of(events, lambda e: e.order == "sc")
        for rf in readings(events, sb):
            value = values_of(events, union(sb, created), rf)
            if value is None or not control_fits(program, ways, events, value):
                continue
            hb = happens_before(events, sb, created, rf)
            if not irreflexive(hb):
                continue
            orders = [list(location_orders(events, loc, rf, hb)) for loc in LOCATIONS]
            for choice in itertools.product(*orders):
                text = text_of(program, ways, events, value, [mo[-1] for mo, _, _ in choice])
                race = has_race(events, hb)
                if text in found and not race:
                    continue
                if not has_sc or sc_holds(events, sb, hb, rf, choice):
                    if race:
                        return {"race"}
                    found.add(text)
    return found


if __name__ == "__main__":
    for program_line in sys.stdin:
        if program_line.strip():
            print(program_line.strip(), "=>", " , ".join(sorted(outcomes(program_line.strip()))))
