# SPDX-License-Identifier: Apache-2.0
"""The TAP lines of a program that starts jobs and looks at what they print."""

import os
import sys
import tempfile

import launch


class Report:
    """One line for each promise; a broken one is followed by a comment."""

    def __init__(self, directory=None):
        self.count = self.failed = 0
        self.directory = directory

    def line(self, good, promise, comment=''):
        self.count += 1
        self.failed += not good
        print('ok' if good else 'not ok', self.count, '-', promise, flush=True)
        launch.comment('' if good else comment)

    def done(self):
        """Prints the plan; the exit status of the program."""
        print(f'1..{self.count}')
        return 1 if self.failed else 0


def run_check(check, ranks, modules=launch.NEEDS, with_hvdrun=False):
    """Ends the program: ``check`` gets a report with a temporary directory, or all is skipped where so many
    ranks, the modules or hvdrun cannot be had."""
    reason = launch.missing(ranks, modules)
    if reason is None and with_hvdrun and not os.environ.get('HVD_TEST_LAUNCHER'):
        reason = 'there is no hvdrun: set HVD_TEST_LAUNCHER'
    if reason:
        sys.exit(print(f'1..0 # SKIP {reason}'))
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as directory:
        report = Report(directory)
        check(report)
    sys.exit(report.done())
