# SPDX-License-Identifier: Apache-2.0
"""Which tests are to be tried again, and what came of it.

usage: again.py FILE          prints the names of the tests that failed in FILE, a line each; none if
                              more than a few did: then it is not chance
       again.py FILE AGAIN    puts the second tries of these, in AGAIN, into FILE in their place

FILE and AGAIN are testlogs of `meson test`, and AGAIN may have more tests. A second try keeps the
first one within it, for count.py to print.
"""

import json
import sys

import count

MOST = 3


def has_failed(entry):
    return bool(count.count_test(count.test_of(entry, '')).failed)


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def names_of_failed(entries):
    """As `meson test` takes them: without project and suites."""
    failed = [entry['name'].partition(' / ')[2] for entry in entries if has_failed(entry)]
    return failed if len(failed) <= MOST else []


def with_second_tries(entries, again):
    second = {entry['name']: entry for entry in again}
    return [dict(second[entry['name']], first=entry)
            if has_failed(entry) and entry['name'] in second else entry
            for entry in entries]


def main(path, again=None):
    entries = read(path)
    if again is None:
        for name in names_of_failed(entries):
            print(name)
        return
    entries = with_second_tries(entries, read(again))
    with open(path, 'w') as file:
        for entry in entries:
            print(json.dumps(entry), file=file)


if __name__ == '__main__':
    main(*sys.argv[1:])
