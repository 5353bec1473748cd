# SPDX-License-Identifier: Apache-2.0
"""Which tests are to be tried again, and what came of it.

usage: again.py FILE          prints of each test that failed in FILE and may be tried again a line:
                              the seed that it told, or "-", and its name
       again.py FILE AGAIN    puts the second tries of these, in AGAIN, into FILE in their place

FILE and AGAIN are testlogs of `meson test`. Chance is no excuse for what a sanitizer found, and what
ran out of time has had its time. A second try counts if it keeps all promises that the first one made,
and skips none of them; the first one is kept within it, for count.py to print.
"""

import json
import re
import sys

import count

SEED = re.compile(r'^# seed (\d+) \(repeat with', re.M)
REPORT = re.compile(r'(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error: ')


def outcome(entry):
    return count.count_test(count.test_of(entry, ''))


def may_be_chance(entry):
    test = count.test_of(entry, '')
    return bool(outcome(entry).failed) and not test.killed and not REPORT.search(test.output)


def seed_of(entry):
    told = SEED.search(count.test_of(entry, '').output)
    return told[1] if told else '-'


def name_of(entry):
    """As `meson test` takes it: without project and suites."""
    return entry['name'].partition(' / ')[2]


def is_better(second, first):
    before, after = outcome(first), outcome(second)
    return (not after.failed and after.passed >= before.passed
            and {promise for promise, _ in after.skipped} <=
            {promise for promise, _ in before.skipped})


def with_second_try(entry, again):
    for second in again:
        if second['name'] == entry['name'] and may_be_chance(entry) and is_better(second, entry):
            return dict(second, first=entry)
    return entry


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def main(path, again=None):
    entries = read(path)
    if again is None:
        for entry in filter(may_be_chance, entries):
            print(seed_of(entry), name_of(entry))
        return
    second = read(again)
    with open(path, 'w') as file:
        for entry in entries:
            print(json.dumps(with_second_try(entry, second)), file=file)


if __name__ == '__main__':
    main(*sys.argv[1:])
