# SPDX-License-Identifier: Apache-2.0
"""Counts tests of each front end by outcome, version of the framework and number of ranks.

usage: front_ends.py FILE...

FILE is a testlog.json of `meson test`, as tests/run.sh leaves them in build-tests/results. Prints a Markdown table
whose cells are passed / failed / skipped, or nothing if no test of a front end ran. Tests of front ends are those
whose output names the versions that they ran with (tests/python/launch.py).
"""

import collections
import re
import sys

import count

WITH = re.compile(r'^# with (.*)$', re.M)
RANKS = re.compile(r' on (\d ranks|two nodes)$|, (\d ranks)$')
FRAMEWORKS = ('torch', 'tensorflow', 'keras', 'mxnet', 'jax')
PLACES = {'1 ranks': '1 rank', '2 ranks': '2 ranks', '3 ranks': '3 ranks', '4 ranks': '4 ranks',
          'two nodes': '2 nodes x 2 ranks', None: 'examples and others'}


def framework_of(test):
    """Returns (front end, versions of the frameworks), or None if the test is not one of a front end."""
    told = WITH.search(test.output)
    if not told:
        return None
    words = told[1].split()
    versions = {name: version for name, version in zip(words[::2], words[1::2])
                if name in FRAMEWORKS}
    if not versions:
        return None
    front_end = next(iter(versions))
    if 'keras' in test.name:
        front_end = 'tf.keras' if 'tf.keras' in test.name else 'keras'
    return front_end, ', '.join(f'{name} {version}' for name, version in versions.items())


def place_of(test):
    found = RANKS.search(test.name)
    return found and (found[1] or found[2])


def table_of(tests):
    """Returns {(front end, versions): {place: (passed, failed, skipped)}}."""
    table = collections.defaultdict(lambda: collections.defaultdict(lambda: (0, 0, 0)))
    for test in tests:
        row, result = framework_of(test), count.count_test(test)
        if row:
            numbers = (result.passed, len(result.failed), len(result.skipped))
            cells = table[row]
            cells[place_of(test)] = tuple(map(sum, zip(cells[place_of(test)], numbers)))
    return table


def cell(numbers):
    return ' / '.join(map(str, numbers)) if numbers else '-'


def lines_of(table):
    """Yields the table as lines of Markdown; nothing for an empty table."""
    if not table:
        return
    yield '| ' + ' | '.join(['front end', 'with', *PLACES.values()]) + ' |'
    yield '|---|---|' + '---:|' * len(PLACES)
    for (front_end, versions), cells in sorted(table.items()):
        yield '| ' + ' | '.join([front_end, versions,
                                 *(cell(cells.get(place)) for place in PLACES)]) + ' |'


def main(paths):
    tests = [test for path in paths for test in count.read_testlog(path)]
    lines = list(lines_of(table_of(tests)))
    if lines:
        print('\nfront ends, tests passed / failed / skipped:\n')
        print('\n'.join(lines))


if __name__ == '__main__':
    main(sys.argv[1:])
