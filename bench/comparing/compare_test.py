# SPDX-License-Identifier: MIT
"""Tests of bench/compare without building or running any contender: statistics, discarding, parsing, table, drawing."""
import io
import json
import os
import pathlib
import random
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from comparing import contenders, goals, growth, machine, progress, report, rounds, stats  # noqa: E402


def run(*values, case="spawn", checksum="7", wall_s=1.0, cpu_s=1.5):
    return contenders.Run({case: list(values)}, checksum, wall_s, cpu_s)


class FakeSide:
    def __init__(self, name, values, cases=("spawn",), checksum="7"):
        self.name, self.values, self.cases, self.checksum = name, values, list(cases), checksum
        self.asked = []

    def run(self, case, workers, n=None):
        self.asked.append((case, workers) if n is None else (case, workers, n))
        return run(*self.values, case=case, checksum=self.checksum)


class FakeWatch:
    """Says of each run, in turn, what it is told to; nothing once that is used up."""

    def __init__(self, *complaints):
        self.complaints = list(complaints)

    def begin(self):
        pass

    def end(self, _cpu_s):
        return self.complaints.pop(0) if self.complaints else None


class Statistics(unittest.TestCase):
    def test_the_first_round_of_a_process_is_cold(self):
        self.assertEqual(stats.typical([100, 2, 1, 3]), 2)

    def test_a_single_value_stands_for_itself(self):
        self.assertEqual(stats.typical([440]), 440)
        self.assertEqual(stats.typical([3, 1]), 2)

    def test_ratios_are_taken_inside_a_round(self):
        # A machine that halves its speed midway changes both sides and no ratio.
        self.assertEqual(stats.paired_ratios([1, 2, 2], [10, 20, 20]), [10, 10, 10])

    def test_a_round_of_no_time_says_nothing(self):
        self.assertEqual(stats.paired_ratios([0, 2], [5, 4]), [2])
        self.assertIsNone(stats.compare([0], [1]))

    def test_the_interval_holds_the_median_and_is_repeatable(self):
        rng = random.Random(1)
        ratios = [rng.gauss(5, 1) for _ in range(31)]
        ratio, (low, high) = stats.compare([1] * 31, ratios, seed=3)
        self.assertLess(low, ratio)
        self.assertLess(ratio, high)
        self.assertLess(high - low, 2)
        self.assertEqual(stats.bootstrap(ratios, 3), stats.bootstrap(ratios, 3))

    def test_the_interval_covers_the_truth_about_19_times_in_20(self):
        rng = random.Random(2)
        covered = 0
        for trial in range(200):
            low, high = stats.bootstrap([rng.gauss(5, 1) for _ in range(25)], trial, resamples=400)
            covered += low <= 5 <= high
        self.assertGreaterEqual(covered, 175)

    def test_one_round_has_no_interval(self):
        self.assertEqual(stats.compare([1], [4]), (4, None))


class Discarding(unittest.TestCase):
    STAT = ("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 1000 50 4 5 6 0 0\ncpu1 10 0 0 0 0 0 0 1 0 0\n"
            "cpu10 500 0 0 0 0 0 0 70 0 0\nintr 1 2\n")

    def test_stat_counts_the_named_cores_alone(self):
        self.assertEqual(machine.parse_stat(self.STAT, {0, 1}), (25, 7))
        self.assertEqual(machine.parse_stat(self.STAT, {10}), (500, 70))

    def judge(self, busy=190, steal=0, cpu_s=1.9):
        return machine.judge(1.0, cpu_s, busy, steal, core_count=2, tick_s=0.01)

    def test_a_quiet_run_is_kept(self):
        self.assertIsNone(self.judge())

    def test_stolen_time_discards(self):
        self.assertIsNone(self.judge(steal=2))
        self.assertIn("stolen", self.judge(steal=3))

    def test_work_of_others_discards(self):
        self.assertIsNone(self.judge(busy=199))
        self.assertIn("others", self.judge(busy=150, cpu_s=1.0))

    def test_a_short_run_is_not_judged_by_one_tick(self):
        self.assertIsNone(machine.judge(0.05, 0.05, 7, 0, core_count=2, tick_s=0.01))

    def test_the_canary_complains_over_its_limit(self):
        times = iter([1.0, 1.0, 1.04, 1.0, 1.0, 1.06, 0.9, 1.0])
        canary = machine.Canary({0, 1}, lambda _cpu: next(times))
        self.assertIsNone(canary.look())
        self.assertIsNone(canary.look())
        self.assertIn("core 1", canary.look())
        self.assertEqual(canary.look(), None)
        self.assertEqual(canary.best, {0: 0.9, 1: 1.0})

    def case(self, sides, watch, count=3):
        self.said = []
        return rounds.run_case("spawn", sides, 2, count, random.Random(1), watch, self.said.append)

    def test_one_disturbed_run_discards_the_whole_round(self):
        sides = [FakeSide("weft", [1]), FakeSide("tokio", [10])]
        result = self.case(sides, FakeWatch(None, "noise"))
        self.assertEqual((len(result.kept), len(result.discarded)), (3, 1))
        self.assertFalse(result.disturbed)
        self.assertEqual([len(side.asked) for side in sides], [4, 4])
        self.assertIn("noise", self.said[0])

    def test_a_restless_machine_is_given_up_and_said_to_be_so(self):
        result = self.case([FakeSide("weft", [1])], FakeWatch(*["noise"] * 100))
        self.assertEqual(len(result.discarded), rounds.ATTEMPTS_PER_ROUND * 3)
        self.assertTrue(result.disturbed)
        self.assertEqual(len(result.rounds), len(result.discarded))

    def test_one_wanted_round_that_was_quiet_is_not_disturbed(self):
        self.assertFalse(self.case([FakeSide("weft", [1])], FakeWatch(), count=1).disturbed)

    def test_the_order_is_random_and_follows_from_the_seed(self):
        def orders(seed):
            log = []

            class Side(FakeSide):
                def run(self, case, workers, n=None):
                    log.append(self.name)
                    return super().run(case, workers, n)

            rounds.run_case("spawn", [Side(name, [1]) for name in "abc"], 2, 20, random.Random(seed), FakeWatch(), print)
            return log

        self.assertEqual(orders(1), orders(1))
        self.assertNotEqual(orders(1), orders(2))
        self.assertEqual({name for name in orders(1)[::3]}, {"a", "b", "c"})

    def test_different_checksums_end_it(self):
        with self.assertRaises(rounds.Mismatch):
            self.case([FakeSide("weft", [1]), FakeSide("tokio", [1], checksum="8")], FakeWatch())

    def test_cases_are_those_that_somebody_has(self):
        said = []
        sides = [FakeSide("weft", [1], ["spawn"]), FakeSide("go", [1], ["spawn", "mpmc"])]
        chosen = [(case, [s.name for s in able]) for case, able in rounds.choose_cases([], sides, said.append)]
        self.assertEqual(chosen, [("spawn", ["weft", "go"]), ("mpmc", ["go"])])
        self.assertIn("weft_bench does not have this case yet", said[0])
        self.assertEqual(rounds.choose_cases(["nonsense"], sides, said.append), [])
        self.assertIn("nobody", said[-1])


class Programs(unittest.TestCase):
    def test_rounds_further_measures_and_checksum_are_read(self):
        out = "tasks100k 12.5 ms\ntasks100k 3.5 ms\ntasks100k_rss 36.1\nsomething else\n"
        read = contenders.parse_run("tasks100k", out, "checksum tasks100k 100000\n", 2.0, 3.0)
        self.assertEqual(read.values, {"tasks100k": [12.5, 3.5], "tasks100k_rss": [36.1]})
        self.assertEqual((read.checksum, read.wall_s, read.cpu_s), ("100000", 2.0, 3.0))

    def test_a_case_is_not_taken_for_another_that_begins_like_it(self):
        with self.assertRaises(contenders.Failed):
            contenders.parse_run("mpsc", "mpsc4 1.0\n", "checksum mpsc4 1\n", 1, 1)

    def test_no_checksum_is_a_failure(self):
        with self.assertRaises(contenders.Failed):
            contenders.parse_run("spawn", "spawn 1.0\n", "", 1, 1)

    def test_a_child_is_charged_with_its_own_time(self):
        def wait4(pid, options):
            os.waitpid(pid, options)
            return pid, 0, unittest.mock.Mock(ru_utime=1.25, ru_stime=0.5)

        with unittest.mock.patch("os.wait4", wait4):
            out, err, _, cpu_s = contenders.run_program(
                [sys.executable, "-c", "import sys; print('spawn 1'); print('checksum', file=sys.stderr)"], "it")
        self.assertEqual((out, err, cpu_s), ("spawn 1\n", "checksum\n", 1.75))

    def test_a_failing_child_says_why(self):
        with self.assertRaisesRegex(contenders.Failed, "exits with 3: because"):
            contenders.run_program([sys.executable, "-c", "import sys; print('because', file=sys.stderr); sys.exit(3)"], "it")

    def test_a_missing_toolchain_leaves_its_peer_out(self):
        said = []
        side = contenders.Contender("zig", "/nowhere", "no-such-toolchain", "false", "true")
        self.assertEqual(contenders.prepare([side], said.append), [])
        self.assertEqual(said, ["zig is left out: no-such-toolchain is not installed"])

    def test_an_old_toolchain_leaves_its_peer_out(self):
        said = []
        side = contenders.Contender("zig", "/nowhere", "sh", "false", "true", ("echo zig 0.9.1", (0, 13)))
        self.assertEqual(contenders.prepare([side], said.append), [])
        self.assertEqual(said, ["zig is left out: sh 0.13 is needed, not zig 0.9.1"])

    def test_versions_compare_as_numbers(self):
        self.assertLess(contenders.version_in("go1.9"), contenders.version_in("go1.23.1"))
        self.assertEqual(contenders.version_in("what?"), (0, 0))

    def test_a_failing_build_ends_it(self):
        side = contenders.Contender("zig", "/nowhere", "sh", "echo broken; false", "true")
        with self.assertRaisesRegex(contenders.Failed, "broken"):
            contenders.prepare([side], [].append)


class Report(unittest.TestCase):
    def result(self, kept=5, discarded=0):
        result = rounds.CaseRounds("spawn")
        pairs = [{"tokio": run(900, 300 + i, 300 + i, wall_s=2), "weft": run(30, 20, 20)} for i in range(kept + discarded)]
        result.kept = pairs[:kept]
        result.discarded = [(pair, "noise") for pair in pairs[kept:]]
        return result

    def test_weft_comes_first_and_has_no_ratio_to_itself(self):
        ours, theirs = report.rows_of(self.result(), 1)
        self.assertEqual((ours.side, ours.ratio), ("weft", None))
        self.assertEqual((theirs.side, theirs.best, theirs.median, theirs.cold), ("tokio", 300, 302, 900))
        self.assertAlmostEqual(theirs.ratio, 15.1)
        self.assertEqual((theirs.wall_s, theirs.cpu_s), (2, 1.5))

    def test_the_table(self):
        lines = report.table(report.rows_of(self.result(discarded=2), 1)).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertEqual([cell.strip() for cell in lines[3].split("|")[1:-1]],
                         ["", "tokio", "300", "302", "900", "15.1", "15.0 - 15.2", "15x yes", "2.00", "1.50", "5 (-2)"])

    def test_losses_are_printed_like_wins(self):
        result = rounds.CaseRounds("spawn")
        result.kept = [{"weft": run(20), "go": run(5)}] * 3
        self.assertIn("0.25", report.table(report.rows_of(result, 1)))

    def test_a_disturbed_case_is_marked(self):
        text = report.table(report.rows_of(self.result(kept=1, discarded=5), 1))
        self.assertIn("1 (-5) ~", text)
        self.assertIn("worth little", text)

    def test_peers_alone_have_no_ratios(self):
        result = rounds.CaseRounds("spawn")
        result.kept = [{"tokio": run(3), "go": run(4)}] * 3
        self.assertEqual([row.ratio for row in report.rows_of(result, 1)], [None, None])

    def test_no_rounds_make_no_rows(self):
        self.assertEqual(report.rows_of(rounds.CaseRounds("spawn"), 1), [])
        self.assertIn("| case", report.table([]))

    def test_numbers_have_digits_that_mean_something(self):
        self.assertEqual([report.number(v) for v in (None, 0.5, 12.345, 1087534.2)], ["", "0.50", "12.3", "1,087,534"])

    def test_json_keeps_every_round(self):
        kept = json.load(io.StringIO(report.as_json({"seed": 1}, [self.result(kept=2, discarded=1)])))
        self.assertEqual(kept["seed"], 1)
        self.assertEqual(len(kept["cases"][0]["kept"]), 2)
        self.assertEqual(kept["cases"][0]["discarded"][0]["why"], "noise")
        self.assertEqual(kept["cases"][0]["kept"][0]["weft"]["values"], {"spawn": [30, 20, 20]})

    def test_the_drawing_is_xml_with_a_point_for_each_ratio(self):
        root = xml.etree.ElementTree.fromstring(report.plot(report.rows_of(self.result(), 1), "weft <1> & others"))
        self.assertEqual(sum(1 for node in root.iter() if node.tag.endswith("circle")), 1)

    def test_a_drawing_of_nothing_is_still_one(self):
        xml.etree.ElementTree.fromstring(report.plot([], "nothing"))


class FakeRow:
    def __init__(self, measure, side, ratio=None, interval=None, median=0, cold=None):
        self.measure, self.side, self.ratio, self.interval = measure, side, ratio, interval
        self.median, self.cold = median, cold
        self.goal = goals.of_row(self, goals.WORKERS)


class Goals(unittest.TestCase):
    def answer(self, *args, workers=2, **more):
        goal = goals.of_row(FakeRow(*args, **more), workers)
        return goal and str(goal)

    def test_a_factor_is_reached_missed_or_open(self):
        self.assertEqual(self.answer("spawn", "tokio", 16, (15.5, 17)), "15x yes")
        self.assertEqual(self.answer("spawn", "tokio", 14, (13, 14.9)), "15x no")
        self.assertEqual(self.answer("spawn", "tokio", 15, (14, 16)), "15x open")
        self.assertEqual(self.answer("spawn", "tokio", 15), "15x yes")

    def test_not_to_be_slower_is_the_goal_where_there_is_no_other(self):
        self.assertEqual(self.answer("spawn", "go", 0.9, (0.8, 0.95)), "1x no")
        self.assertEqual(self.answer("nonsense", "go", 1.2, (1.1, 1.3)), "1x yes")

    def test_factors_are_meant_for_two_workers_and_of_tokio_for_the_current_thread(self):
        self.assertEqual(self.answer("spawn", "tokio", 3, (2, 4), workers=4), "1x yes")
        self.assertEqual(self.answer("spawn", "tokio", 3, (2, 4), workers=0), "15x no")
        self.assertEqual(self.answer("spawn_fiber", "go", 3, (2, 4), workers=0), "1x yes")

    def test_fibers_are_measured_by_go(self):
        self.assertEqual(self.answer("switch_fiber", "go", 9, (8.5, 9)), "8x yes")

    def test_a_limit_is_of_wefts_own_row(self):
        self.assertEqual(self.answer("mem_wait", "weft", median=113), "<= 132 yes")
        self.assertEqual(self.answer("mem_fiber", "weft", median=4313), "<= 4,300 no")
        self.assertEqual(self.answer("tasks100k", "weft", median=1.5, cold=6), "<= 2, <= 5 cold no")
        self.assertIsNone(self.answer("spawn", "weft", median=20))

    def test_losses_are_named_below_the_table(self):
        rows = [FakeRow("spawn", "tokio", 16, (15, 17)), FakeRow("mutex", "go", 0.6, (0.5, 0.7)), FakeRow("spawn", "weft")]
        self.assertEqual(goals.summary(rows), "Goals: 1 reached, 1 missed, 0 open. Behind a peer: mutex (go 0.60x).")
        self.assertIn("nowhere", goals.summary(rows[:1]))
        self.assertEqual(goals.summary([]), "")


class Growth(unittest.TestCase):
    def results(self, prices, side="weft"):
        results = []
        for n, price in prices:
            result = rounds.CaseRounds("spawn", n)
            result.kept = [{side: run(9 * price, price, price), "tokio": run(price * 2, price * 2, price * 2)}] * 3
            results.append(result)
        return results

    def test_a_flat_price_has_no_slope(self):
        self.assertAlmostEqual(growth.slope([(1000, 7), (10000, 7), (100000, 7)]), 0)

    def test_a_price_that_grows_as_n_does_has_slope_one(self):
        self.assertAlmostEqual(growth.slope([(1000, 1), (10000, 10), (1000000, 1000)]), 1)

    def test_one_point_has_no_slope(self):
        self.assertIsNone(growth.slope([(1000, 1)]))
        self.assertIsNone(growth.slope([(1000, 0), (2000, 1)]))

    def test_the_table_says_price_slope_and_rounds(self):
        lines = growth.table(growth.curves_of(self.results([(1000, 10), (10000, 20)]))).splitlines()
        self.assertEqual([cell.strip() for cell in lines[2].split("|")[1:-1]],
                         ["spawn", "weft", "10.0", "20.0", "+0.301", "2.00", "3"])
        self.assertEqual([cell.strip() for cell in lines[3].split("|")[1:3]], ["", "tokio"])

    def test_a_case_may_end_earlier_than_others(self):
        fiber = rounds.CaseRounds("yield_fiber", 1000)
        fiber.kept = [{"weft": run(5, case="yield_fiber")}] * 3
        lines = growth.table(growth.curves_of(self.results([(1000, 10), (10000, 20)]) + [fiber])).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_each_n_is_handed_to_the_programs(self):
        side = FakeSide("weft", [1])
        result = rounds.run_case("spawn", [side], 0, 1, random.Random(1), FakeWatch(), print, 1000)
        self.assertEqual((side.asked, result.n), ([("spawn", 0, 1000)], 1000))

    def test_the_curves_are_xml_with_a_line_for_each_side(self):
        root = xml.etree.ElementTree.fromstring(growth.plot(growth.curves_of(self.results([(1000, 10), (10000, 20)])), "a < b"))
        self.assertEqual(sum(1 for node in root.iter() if node.tag.endswith("polyline")), 2)
        xml.etree.ElementTree.fromstring(growth.plot([], "nothing"))

    def test_a_sweep_is_of_cases_with_an_n_that_grows(self):
        self.assertEqual(growth.SWEEPS["spawn"][0], 1000)
        self.assertEqual(growth.SWEEPS["spawn"][-1], 1000000)
        self.assertLessEqual({1000, 100000, 1000000}, set(growth.SWEEPS["timer_churn"]))
        sources = "".join(path.read_text() for path in (pathlib.Path(__file__).parent.parent / "cases").glob("*.c"))
        for case in growth.SWEEPS:
            self.assertIn(f"BENCH({case},", sources)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Telling(unittest.TestCase):
    def tell(self, stream, times):
        clock = iter(times)
        shown = progress.Progress(stream, lambda: next(clock, times[-1]))
        shown.begin(2)
        shown.next_case("spawn", ["weft", "go"])
        return shown

    def test_a_log_gets_a_line_now_and_then(self):
        log = io.StringIO()
        shown = self.tell(log, [0, 0, 0, 0, 1])
        shown.round(1, 4, 0)
        self.assertEqual(log.getvalue(), "compare: spawn (1 of 2): weft, go; 0:00 so far\n")
        log = io.StringIO()
        shown = self.tell(log, [0, 0, 0, 0, 60])
        shown.round(2, 4, 1)
        self.assertIn("spawn (1 of 2): 2 of 4 rounds, 1 discarded; 1:00 so far, about 3:00 to go", log.getvalue())

    def test_a_terminal_has_one_line_that_is_written_over(self):
        screen = Terminal()
        shown = self.tell(screen, [0, 0, 0, 0, 1])
        shown.round(1, 4, 0)
        shown.round(2, 4, 0)
        shown.say("done")
        self.assertEqual(screen.getvalue().count("\n"), 2)
        self.assertTrue(screen.getvalue().endswith("\rcompare: done\n"))


if __name__ == "__main__":
    unittest.main()
