# SPDX-License-Identifier: Apache-2.0
"""The TAP lines of a program that starts jobs and looks at what they print."""

import launch


class Report:
    """One line for each promise; a broken one is followed by a comment."""

    def __init__(self):
        self.count = self.failed = 0

    def line(self, good, promise, comment=''):
        self.count += 1
        self.failed += not good
        print('ok' if good else 'not ok', self.count, '-', promise, flush=True)
        launch.comment('' if good else comment)

    def done(self):
        """Prints the plan; the exit status of the program."""
        print(f'1..{self.count}')
        return 1 if self.failed else 0
