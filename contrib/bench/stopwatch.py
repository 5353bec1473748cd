# SPDX-License-Identifier: Apache-2.0
"""What calls cost the thread that makes them: noted step by step, printed in microseconds. For
calls.py and calls_tensorflow.py; call_costs.py reads what is printed, as of calls.c."""

import statistics
import time

WARM_UP_STEPS = 30


class Stopwatch:
    """Notes, for each name, clock and processor time since the last note."""

    def __init__(self):
        self.times = {}
        self.restart()

    def restart(self):
        self._last = time.perf_counter(), time.thread_time()

    def note(self, name):
        now = time.perf_counter(), time.thread_time()
        self.add(name, [after - before for after, before in zip(now, self._last)])
        self.restart()

    def add(self, name, seconds):
        """The pair (clock, processor) of a step."""
        self.times.setdefault(name, []).append(seconds)

    def figures(self, name, count):
        """(median, first decile) in microseconds per tensor, of clock and of processor."""
        columns = [sorted(column) for column in zip(*self.times[name][WARM_UP_STEPS:])]
        return [(statistics.median(column) / count * 1e6, column[len(column) // 10] / count * 1e6)
                for column in columns]

    def all_figures(self, count):
        return {name: self.figures(name, count) for name in self.times}


def print_figures(figures):
    """A line for each name; call_costs.read_figures() reads them."""
    print(f'{"us per tensor":<16}{"clock":>8}{"1/10":>8}{"cpu":>8}{"1/10":>8}')
    for name, pairs in figures.items():
        print(f'{name:<16}' + ''.join(f'{value:8.2f}' for pair in pairs for value in pair))
