# SPDX-License-Identifier: Apache-2.0
"""TAP lines for programs that start jobs and check their output."""

import os
import sys
import tempfile

import launch


class Report:
    """Prints a TAP line for each promise, and a comment after a broken one."""

    def __init__(self, directory=None):
        self.count = self.failed = 0
        self.directory = directory

    def line(self, good, promise, comment=''):
        self.count += 1
        self.failed += not good
        print('ok' if good else 'not ok', self.count, '-', promise, flush=True)
        launch.comment('' if good else comment)

    def skip(self, promise, reason):
        self.count += 1
        print('ok', self.count, '-', promise, '# SKIP', reason, flush=True)

    def done(self):
        """Prints the plan; returns the exit status for the program."""
        print(f'1..{self.count}')
        return 1 if self.failed else 0


def run_check(check, ranks, modules=launch.NEEDS, with_hvdrun=False):
    """Calls ``check`` with a report that has a temporary directory, and ends the program. Skips
    everything if so many ranks, the modules or hvdrun are not available."""
    reason = launch.missing(ranks, modules)
    if reason is None and with_hvdrun and not os.environ.get('HVD_TEST_LAUNCHER'):
        reason = 'there is no hvdrun: set HVD_TEST_LAUNCHER'
    if reason:
        sys.exit(print(f'1..0 # SKIP {reason}'))
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as directory:
        report = Report(directory)
        check(report)
    sys.exit(report.done())
