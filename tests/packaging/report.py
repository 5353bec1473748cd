# SPDX-License-Identifier: Apache-2.0
"""TAP lines of tests that compare files."""

import sys

_results = []


def report(wrong, promise):
    """Prints the promise, and each line of ``wrong``, which is empty if the promise is kept."""
    _results.append(not wrong)
    print('not ok' if wrong else 'ok', len(_results), '-', promise)
    for line in wrong:
        print('#', line)


def end():
    """Prints the plan and ends the test."""
    print(f'1..{len(_results)}')
    sys.exit(not all(_results))
