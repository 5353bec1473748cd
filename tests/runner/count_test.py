# SPDX-License-Identifier: Apache-2.0
"""The count must not lose a failure, however a test fails."""

import contextlib
import io
import json
import os
import sys
import tempfile

import count

CASES = [
    # promise, output, exit status, killed, (passed, failed, skipped)
    ('passes are counted', 'ok 1 - a\nok 2 - b\n1..2\n', 0, False, (2, 0, 0)),
    ('a plan may come first', '1..1\nok 1 a\n', 0, False, (1, 0, 0)),
    ('failures are counted', 'not ok 1 - a\nok 2 - b\nnot ok 3 - c\n1..3\n', 1, False, (1, 2, 0)),
    ('a skip does not count as passed', 'ok 1 - a # SKIP no gpu\nok 2 - b\n1..2\n', 0, False, (1, 0, 1)),
    ('a failure marked as todo does not count as passed', 'not ok 1 - a # todo\n1..1\n', 0, False, (0, 0, 1)),
    ('a hash in a promise does not make it a skip', 'ok 1 - line #3 skips none\n1..1\n', 0, False, (1, 0, 0)),
    ('a test can skip all its promises', '1..0 # SKIP not root\n', 0, False, (0, 0, 1)),
    ('comments and indented lines are not counted', '# ok\n    ok 1 - x\nok 1\n1..1\n', 0, False,
     (1, 0, 0)),
    ('an exit status without a failure fails', 'ok 1\n1..1\n', 1, False, (1, 1, 0)),
    ('a signal fails', 'ok 1\n1..1\n', -11, False, (1, 1, 0)),
    ('an exit status after a failure fails once', 'not ok 1\n1..1\n', 1, False, (0, 1, 0)),
    ('no output fails', '', 0, False, (0, 1, 0)),
    ('a missing plan fails', 'ok 1\n', 0, False, (1, 1, 0)),
    ('too few promises fail', 'ok 1\n1..3\n', 0, False, (1, 1, 0)),
    ('no promise at all fails', 'hello\n', 0, False, (0, 1, 0)),
    ('a time limit fails', 'ok 1\n', -15, True, (1, 1, 0)),
    ('bailing out fails once', 'ok 1\nBail out! no cluster\n', 1, False, (1, 1, 0)),
    ('a sanitizer report after the plan fails', 'ok 1\n1..1\n', 23, False, (1, 1, 0)),
]


def counted(output, status, killed):
    result = count.count_test(count.Test('test', output, status, killed))
    return result.passed, len(result.failed), len(result.skipped)


def last_line(output, status):
    """Runs main() on a testlog with one test. Returns its output and its exit status."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'log.json')
        with open(path, 'w') as file:
            json.dump({'name': 'x', 'stdout': output, 'stderr': 'why', 'returncode': status,
                       'result': 'OK' if status == 0 else 'FAIL'}, file)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = count.main([path])
    return printed.getvalue(), status


def main():
    results = [(promise, counted(*case) == wanted) for promise, *case, wanted in CASES]
    good, status = last_line('ok 1\nok 2 # SKIP no gpu\n1..2\n', 0)
    results.append(('the last line is the count',
                    good.endswith('\n1 passed, 0 failed, 1 skipped\n')))
    results.append(('no failure gives exit status 0', status == 0))
    results.append(('a skip is shown with its reason', 'skipped, no gpu:' in good))
    bad, status = last_line('not ok 1 - promise\n1..1\n', 1)
    results.append(('a failure gives exit status 1', status == 1))
    results.append(('a failure is shown with its output', 'FAILED promise' in bad and 'why' in bad))
    results.append(('nothing to count gives exit status 1',
                    last_line('', 0)[1] == 1))
    for number, (promise, passed) in enumerate(results, 1):
        print('ok' if passed else 'not ok', number, '-', promise)
    print(f'1..{len(results)}')
    return 0 if all(passed for _, passed in results) else 1


if __name__ == '__main__':
    sys.exit(main())
