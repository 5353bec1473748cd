# SPDX-License-Identifier: Apache-2.0
"""TAP lines of tests that compare pages with the sources."""

import sys

_results = []


def report(is_ok, promise, found=''):
    """Prints the promise and, if it is not kept, the lines of ``found``."""
    _results.append(bool(is_ok))
    print('ok' if is_ok else 'not ok', len(_results), '-', promise)
    for line in str(found).split('\n') if found and not is_ok else []:
        print('#', line)


def end():
    """Prints the plan and ends the test."""
    print(f'1..{len(_results)}')
    sys.exit(not all(_results))
