# SPDX-License-Identifier: MIT
"""What a comparison says while it runs: on a terminal one line that is written over, elsewhere a line now and then.

All of it goes to stderr: stdout belongs to the table.
"""
import sys
import time

QUIET_S = 15  # between two lines where nothing can be written over: a log that grows by four lines a minute


class Progress:
    def __init__(self, stream=None, clock=time.monotonic):
        self.stream = stream or sys.stderr
        self.clock = clock
        self.terminal = self.stream.isatty()
        self.started = self.said = clock()
        self.width = 0  # of what stands on the terminal's last line
        self.cases = self.case_index = 0
        self.case = ""

    def say(self, text):
        """A sentence that stays."""
        self.wipe()
        print(f"compare: {text}", file=self.stream, flush=True)
        self.said = self.clock()

    def begin(self, cases):
        """So many cases will follow."""
        self.cases, self.case_index, self.started = cases, 0, self.clock()

    def next_case(self, case, sides):
        self.case_index += 1
        self.case = f"{case} ({self.case_index} of {self.cases})"
        self.say(f"{self.case}: {', '.join(sides)}; {self.left((self.case_index - 1) / self.cases)}")

    def round(self, kept, wanted, discarded):
        """After each round of the case."""
        text = f"{self.case}: {kept} of {wanted} rounds" + (f", {discarded} discarded" if discarded else "")
        done = (self.case_index - 1 + min(kept / wanted, 1)) / max(self.cases, 1)
        text += f"; {self.left(done)}"
        if self.terminal:
            self.stream.write(f"\r{text.ljust(self.width)}")
            self.stream.flush()
            self.width = len(text)
        elif self.clock() - self.said >= QUIET_S:
            self.say(text)

    def left(self, done):
        """ "1:20 so far, about 3:00 to go": by what the share that is done has taken."""
        spent = self.clock() - self.started
        if done <= 0 or spent < 1:
            return f"{minutes(spent)} so far"
        return f"{minutes(spent)} so far, about {minutes(spent / done - spent)} to go"

    def wipe(self):
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.width = 0


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
