# SPDX-License-Identifier: MIT
"""Tests of the tools, on small trees with planted faults."""

import contextlib
import io
import pathlib
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import layers  # noqa: E402  (found through the line above)
import pairs  # noqa: E402


class Tree(unittest.TestCase):
    """A test with a tree of its own: self.plant("src/base/a.h", "text")."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "src").mkdir()

    def plant(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run_tool(self, tool, *options):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = tool.main(["--root", str(self.root), *options])
        return code, out.getvalue()

    def assert_clean(self, tool):
        code, out = self.run_tool(tool, "--check")
        self.assertEqual(code, 0, out)

    def assert_reports(self, tool, *wanted):
        """All of `wanted` is printed; --check fails, and without it the tool is a mere report."""
        code, out = self.run_tool(tool, "--check")
        self.assertEqual(code, 1, out)
        for text in wanted:
            self.assertIn(text, out)
        self.assertEqual(self.run_tool(tool)[0], 0)


class Layers(Tree):
    def test_downwards_is_fine(self):
        self.plant("src/types.h", '#include "base/atomic.h"\n')
        self.plant("src/base/a.c", '#include "base/a.h"\n#include "limits.h"\n#include <weft/api.h>\n#include <stdlib.h>\n')
        self.plant("src/sys/a.c", '#include "base/a.h"\n#include "sys/a.h"\n#include <unistd.h>\n')
        self.plant("src/task/a.c", '#include "types.h"\n#include "sys/lock.h"\n#include <weft/task.h>\n')
        self.plant("src/sync/a.c", '#include "task/waker.h"\n#include "sys/lock.h"\n')
        self.plant("src/sched/a.c", '#include "driver/driver.h"\n#include "sync/waitlist.h"\n')
        self.assert_clean(layers)

    def test_upwards_is_not(self):
        self.plant("src/base/a.c", '\n#include "sys/lock.h"\n')
        self.plant("src/sys/a.c", '#include "types.h"\n')
        self.plant("src/task/a.c", '#include "sched/runq.h"\n')
        self.plant("src/sync/a.c", '#  include "task/join.h"\n')
        self.plant("src/driver/a.c", '#include "sched/worker.h"\n')
        self.assert_reports(layers, 'src/base/a.c:2: "sys/lock.h" is not below base', "src/sys/a.c:1:", "src/task/a.c:1:",
                            "src/sync/a.c:1:", "src/driver/a.c:1:", "5 includes climb")

    def test_task_gets_lock_and_memory_of_sys_alone(self):
        self.plant("src/task/a.c", '#include "sys/mem.h"\n#include "sys/epoll.h"\n')
        self.assert_reports(layers, "src/task/a.c:2:", "1 include climbs")

    def test_only_sys_has_a_way_to_the_kernel(self):
        self.plant("src/sched/a.c", "#include <sys/epoll.h>\n")
        self.plant("src/sys/b.c", "#include <sys/epoll.h>\n")
        self.assert_reports(layers, "src/sched/a.c:1: <sys/epoll.h>", "1 include climbs")

    def test_the_ground_knows_no_public_nouns(self):
        self.plant("src/base/a.c", "#include <weft/task.h>\n")
        self.assert_reports(layers, "<weft/task.h> is above base")

    def test_a_new_folder_needs_a_floor(self):
        self.plant("src/attic/a.c", '#include "base/a.h"\n')
        self.assert_reports(layers, "attic has no floor")


class Pairs(Tree):
    def rows(self, *tags):
        self.plant("docs/MEMORY_MODEL.md", "| tag | release |\n| --- | --- |\n" + "".join(f"| `[{t}]` | x |\n" for t in tags))

    def test_a_whole_pair(self):
        self.rows("flag", "a-b")
        self.plant("src/x.c", """\
            /* A file note may mention [flag] and intervals such as [head, tail). */
            static int owner;                   /* whose it is [owner] */
            void f(void)
            {
                store_release(&flag, 1); /* [flag] with g: publishes data */
                char c[] = "[no-tag]";
            }
            void g(void)
            {
                if (load_acquire(&flag)) { /* [flag] with f */
                }
                /* [a-b] with itself:
                 * the comment above counts too. */
                fetch_sub_acq_rel(&count, 1);
                bool done = cas_acq_rel(&word, &expected,
                                        desired); /* [a-b] after a long statement */
                load_relaxed(&count); /* relaxed: a count */
            }
            """)
        self.assert_clean(pairs)

    def test_an_operation_without_a_tag(self):
        self.rows()
        self.plant("src/x.c", "void f(void)\n{\n    store_release(&flag, 1); /* publishes */\n    fence_seq_cst();\n}\n")
        self.assert_reports(pairs, "src/x.c:3: names no pair: store_release(&flag, 1);", "src/x.c:4: names no pair")

    def test_one_end_is_missing(self):
        self.rows("flag", "gate")
        self.plant("src/x.c", "store_release(&flag, 1); /* [flag] */\nstore_release(&flag, 2); /* [flag] */\n"
                              "load_acquire(&gate); /* [gate] */\n")
        self.assert_reports(pairs, "src/x.c:1: [flag] has a release end and no acquire end",
                            "src/x.c:3: [gate] has an acquire end and no release end", "[gate] is mentioned once")

    def test_rows_and_code_belong_together(self):
        self.rows("ghost", "twice", "twice")
        self.plant("src/x.c", "exchange_acq_rel(&w, 1); /* [flag] */\nexchange_acq_rel(&w, 0); /* [flag] [twice] */\n"
                              "exchange_acq_rel(&w, 0); /* [twice] */\n")
        self.assert_reports(pairs, "src/x.c:1: [flag] has no row", "[ghost] has a row and no code", "[twice] has 2 rows")

    def test_the_wrappers_are_no_users(self):
        self.rows()
        self.plant("src/base/atomic.h", "#define store_release(p, v) weft__a_store(p, v, release)\n")
        self.plant("src/y.h", "#define publish(p) store_release(p, 1)\n")
        self.assert_clean(pairs)


if __name__ == "__main__":
    unittest.main()
