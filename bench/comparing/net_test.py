# SPDX-License-Identifier: MIT
"""Tests of the network comparison that need no server: what is read, how it is paired, what is printed."""
import os
import random
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from comparing import contenders, net, rounds  # noqa: E402  (the path comes first)

SERVER = "http_listens 7000\nhttp 5.912 us epoll\nhttp_user 0.110\nhttp_system 5.802\nhttp_requests 1234\n"
LOAD = "load_rate 99000.5\nload_requests 1234\nload_seconds 2.000\nload_p50 9.500\nload_p99 20.000\nload_p999 31.000\nload_max 40.0\nload_cpu 5.000\n"
WRK = """Running 2s test @ http://127.0.0.1:7000/
  Latency Distribution
     50%  512.00us
     75%  600.00us
     90%    1.00ms
     99%    1.20ms
  130000 requests in 2.00s, 9.00MB read
Requests/sec:  65000.25
"""


def values(cpu, user=0.1, rate=1000.0):
    return {"cpu": cpu, "user": user, "system": cpu - user, "rate": rate, "p50": 9.0, "p99": 20.0, "p999": 30.0}


def result_of(costs, conns=1, case="http"):
    """Rounds of [{side: CPU us}]."""
    result = rounds.CaseRounds(case, conns)
    result.kept = [{name: net.NetRun(values(cpu), "epoll") for name, cpu in some.items()} for some in costs]
    return result


WEFT, FIBER, LIMIT = net.Side("weft", "w"), net.Side("weft", "w", suffix="_fiber"), net.Side("limit", "l")
URING, LIMIT_URING = net.Side("weft", "w", driver="io_uring"), net.Side("limit", "l", driver="io_uring")


class Reading(unittest.TestCase):
    def test_a_servers_lines(self):
        driver, told = net.parse_server("http", SERVER)
        self.assertEqual(driver, "epoll")
        self.assertEqual(told, {"cpu": 5.912, "user": 0.11, "system": 5.802, "served": 1234})

    def test_a_server_that_says_nothing_is_a_failure(self):
        for text in ("", "http_listens 7000\n", SERVER.replace("http_user", "echo_user"), SERVER.replace("requests 1234", "requests 0")):
            with self.assertRaises(contenders.Failed):
                net.parse_server("http", text)

    def test_one_case_is_not_taken_for_its_fiber_form(self):
        with self.assertRaises(contenders.Failed):
            net.parse_server("http", SERVER.replace("http", "http_fiber"))

    def test_the_loads_lines(self):
        self.assertEqual(net.parse_load(LOAD), {"rate": 99000.5, "p50": 9.5, "p99": 20.0, "p999": 31.0, "load_cpu": 5.0})
        with self.assertRaises(contenders.Failed):
            net.parse_load(LOAD.replace("load_p999", "load_p9"))

    def test_wrk(self):
        self.assertEqual(net.parse_wrk(WRK), {"rate": 65000.25, "p50": 512.0, "p99": 1200.0})
        with self.assertRaises(contenders.Failed):
            net.parse_wrk(WRK + "  Non-2xx or 3xx responses: 3\n")


class Pairing(unittest.TestCase):
    def test_names(self):
        self.assertEqual([side.name for side in (WEFT, FIBER, LIMIT, URING, LIMIT_URING)],
                         ["weft", "weft fiber", "limit", "weft io_uring", "limit io_uring"])

    def test_the_limit_is_that_of_the_same_driver(self):
        result = result_of([{"weft": 6.0, "weft io_uring": 5.0, "limit": 5.0, "limit io_uring": 4.0}] * 3)
        rows = {row.side.name: row for row in net.rows_of([result], [WEFT, URING, LIMIT, LIMIT_URING], 1)}
        self.assertAlmostEqual(rows["weft"].ratio, 1.2)
        self.assertAlmostEqual(rows["weft io_uring"].ratio, 1.25)
        self.assertIsNone(rows["limit"].ratio)

    def test_without_a_limit_there_is_no_ratio(self):
        rows = net.rows_of([result_of([{"weft": 6.0}])], [WEFT, LIMIT], 1)
        self.assertEqual([(row.side.name, row.ratio) for row in rows], [("weft", None)])

    def test_ratios_are_made_inside_of_a_round(self):
        """A machine that is twice as slow in one round does not change them."""
        result = result_of([{"weft": 5.5, "limit": 5.0}, {"weft": 11.0, "limit": 10.0}, {"weft": 5.5, "limit": 5.0}])
        self.assertAlmostEqual(net.rows_of([result], [WEFT, LIMIT], 1)[0].ratio, 1.1)


class Printing(unittest.TestCase):
    def test_the_table_has_a_line_for_each_side(self):
        rows = net.rows_of([result_of([{"weft": 6.0, "limit": 5.0}] * 3, conns=8000)], [WEFT, LIMIT], 1)
        lines = net.table(rows).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("8,000", lines[2])
        self.assertIn("1.200", lines[2])

    def test_what_wrk_does_not_tell_stays_empty(self):
        result = result_of([{"weft": 6.0}])
        for run in result.kept[0].values():
            del run.values["p999"]
        self.assertIn("weft", net.table(net.rows_of([result], [WEFT], 1)))

    def test_the_sweep_tells_the_slope(self):
        results = [result_of([{"weft": 5.0}], conns=n) for n in (1, 10, 100)]
        line = net.sweep_table(net.rows_of(results, [WEFT], 1)).splitlines()[2]
        self.assertIn("+0.000", line)

    def test_verdicts(self):
        near = net.rows_of([result_of([{"weft": 5.1, "limit": 5.0}] * 3)], [WEFT, LIMIT], 1)
        far = net.rows_of([result_of([{"weft": 5.5, "limit": 5.0}] * 3)], [WEFT, LIMIT], 1)
        self.assertIn("1 of 1. Under", net.verdicts(near))
        self.assertIn("0 of 1. Under", net.verdicts(far))


class Rounds(unittest.TestCase):
    class Watch:
        def __init__(self, complaints):
            self.complaints = list(complaints)

        def begin(self):
            pass

        def end(self, cpu_s):
            return self.complaints.pop(0) if self.complaints else None

    def kept_and_discarded(self, complaints):
        saved, net.run_once = net.run_once, lambda side, case, ask, cores: net.NetRun(values(5.0), "epoll")
        try:
            result = net.run_cell("http", [WEFT, LIMIT], net.Ask(), 2, (0, 1), random.Random(1), self.Watch(complaints), lambda text: None)
        finally:
            net.run_once = saved
        return len(result.kept), len(result.discarded)

    def test_a_disturbed_run_is_repeated_alone(self):
        self.assertEqual(self.kept_and_discarded([None, "noise"]), (2, 0))

    def test_a_round_whose_run_stays_disturbed_is_repeated(self):
        self.assertEqual(self.kept_and_discarded([None] + ["noise"] * net.RUNS_AT_MOST), (2, 1))


class CommandLine(unittest.TestCase):
    def complains(self, arguments, sentence):
        program = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compare-net")
        done = subprocess.run([sys.executable, "-B", program, *arguments], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(sentence, done.stderr)

    def test_what_is_wrong_is_said(self):
        self.complains(["spawn"], "there is no network case spawn")
        self.complains(["--servers=nobody"], "servers are")
        self.complains(["--conns=0"], "numbers above 0")
        self.complains(["--rounds=0"], "above 0")


if __name__ == "__main__":
    unittest.main()
