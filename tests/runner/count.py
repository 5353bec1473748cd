# SPDX-License-Identifier: Apache-2.0
"""Counts the promises of all tests and names the broken ones.

usage: count.py FILE...

FILE is a testlog.json of `meson test`, or the output of one TAP program (any other name). Prints failures with the
output of their test, then skipped promises with the reason; the last line is "N passed, N failed, N skipped". Exits
with 1 if a promise failed, or if nothing was counted.

A test that exits with an error, ends before its plan, is killed at its time limit or makes no promise counts as one
more failure. An error exit after a reported failure does not count again.
"""

import collections
import json
import os
import re
import sys

LINE = re.compile(r'(ok|not ok)\b\s*\d*\s*(?:- )?(.*?)(?:\s*#\s*(skip|todo)\w*\s*(.*))?$', re.I)
PLAN = re.compile(r'1\.\.(\d+)(?:\s*#\s*skip\w*\s*(.*))?\s*$', re.I)
SHOWN_LINES = 150

Test = collections.namedtuple('Test', 'name output status killed')


class Count:
    """The counted promises of one test."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    @property
    def promises(self):
        return self.passed + len(self.failed) + len(self.skipped)


def count_line(line, count):
    match = LINE.match(line)
    if not match:
        return
    verdict, promise, directive, reason = match.groups()
    if directive:
        count.skipped.append((promise, reason or directive))
    elif verdict == 'ok':
        count.passed += 1
    else:
        count.failed.append(promise)


def how_it_ended(test, count, planned):
    """Returns what is wrong with the end of a test, or None."""
    if test.killed:
        return 'ran out of time'
    if planned is None:
        return f'ended without a plan, exit status {test.status}'
    if planned != count.promises:
        return f'planned {planned} promises, made {count.promises}'
    if test.status != 0 and not count.failed:
        return f'exit status {test.status}'
    return None


def count_test(test):
    count, planned = Count(), None
    for line in test.output.splitlines():
        match = PLAN.match(line)
        if match and match[1] == '0':
            count.skipped.append(('all of it', match[2] or 'no reason given'))
            planned = count.promises
        elif match:
            planned = int(match[1])
        elif line.startswith('Bail out!'):
            count.failed.append(line)
            return count
        else:
            count_line(line, count)
    trouble = how_it_ended(test, count, planned)
    if trouble:
        count.failed.append(trouble)
    return count


def test_of(entry, label):
    """Makes a Test from an entry of a testlog."""
    return Test(f'{label}: {entry["name"]}', entry.get('stdout', '') + entry.get('stderr', ''),
                entry['returncode'], entry['result'] in ('TIMEOUT', 'INTERRUPT'))


def read_testlog(path):
    label = os.path.basename(path).split('.')[0]
    with open(path) as lines:
        for entry in map(json.loads, lines):
            yield test_of(entry, label)


def read_tap(path):
    with open(path) as file:
        yield Test(os.path.basename(path).split('.')[0], file.read(), 0, False)


def print_failure(test, count):
    print(f'\n=== {test.name}')
    for promise in count.failed:
        print('FAILED', promise)
    print('--- its output')
    print('\n'.join(test.output.splitlines()[-SHOWN_LINES:]))


def print_skipped(counts):
    reasons = collections.defaultdict(list)
    for test, count in counts:
        for promise, reason in count.skipped:
            reasons[reason].append(f'{test.name}: {promise}')
    for reason, promises in reasons.items():
        print(f'\nskipped, {reason}:')
        for promise in promises:
            print(f'    {promise}')


def main(paths):
    tests = [test for path in paths
             for test in (read_testlog(path) if path.endswith('.json') else read_tap(path))]
    counts = [(test, count_test(test)) for test in tests]
    for test, count in counts:
        if count.failed:
            print_failure(test, count)
    print_skipped(counts)
    passed = sum(count.passed for _, count in counts)
    failed = sum(len(count.failed) for _, count in counts)
    skipped = sum(len(count.skipped) for _, count in counts)
    print(f'\n{passed} passed, {failed} failed, {skipped} skipped')
    return 0 if failed == 0 and passed + skipped > 0 else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
