# SPDX-License-Identifier: Apache-2.0
"""Runs unittest modules and prints TAP. As one of several ranks it writes its lines to a file in
the directory HVD_TAP_DIR, from which launch.py makes one verdict for each test."""

import os
import sys
import unittest


def _stream():
    """Opens the output of this rank. Appends, because a test that imports this module for note()
    gets a second copy of it beside __main__, which opens the same file."""
    directory = os.environ.get('HVD_TAP_DIR')
    if not directory:
        return sys.stdout
    return open(os.path.join(directory, f'{os.uname().nodename}.{os.getpid()}'), 'a')


def note(text):
    """Prints a comment that is shown whether the tests pass or not."""
    print('#', text, file=_stream(), flush=True)


class TapResult(unittest.TestResult):
    """Prints a line for each test, and the traceback of a failure as comment lines after it."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream
        self._count = 0

    def _line(self, verdict, test, comment=''):
        self._count += 1
        promise = test.id().split('.', 1)[-1].replace('.test_', ': ').replace('_', ' ')
        print(f'{verdict} {self._count} - {promise}{comment}', file=self._stream, flush=True)

    def _failed(self, test, error):
        self._line('not ok', test)
        for line in self._exc_info_to_string(error, test).splitlines():
            print('#', line, file=self._stream, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line('ok', test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line('ok', test, f' # SKIP {reason}')

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(subtest, err)

    def finish(self):
        print(f'1..{self._count}', file=self._stream, flush=True)


def run(modules):
    """Runs the tests of the named modules; returns the exit status. A module is imported only after
    the tests of the previous ones: some modules change the framework for all later tests."""
    result = TapResult(_stream())
    for module in modules:
        unittest.defaultTestLoader.loadTestsFromName(module).run(result)
    result.finish()
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(run(sys.argv[1:]))
