# SPDX-License-Identifier: Apache-2.0
"""A second try may only take the place of a failure, and the failure stays to be seen."""

import contextlib
import io
import json
import os
import sys
import tempfile

import again
import count


def entry(name, output='ok 1\n1..1\n', result='OK'):
    return {'name': f'hvd:unit / {name}', 'stdout': output, 'result': result,
            'returncode': 0 if result == 'OK' else 1}


BAD = 'not ok 1 - a promise\n1..1\n'


def printed(function, *args):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = function(*args)
    return out.getvalue(), status


def after(first, second):
    """What again.py names of the first log, and what count.py makes of both: text and status."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [os.path.join(directory, name) for name in ('log.json', 'more.json')]
        for path, entries in zip(paths, (first, second)):
            with open(path, 'w') as file:
                file.writelines(json.dumps(one) + '\n' for one in entries)
        names, _ = printed(again.main, paths[0])
        again.main(*paths)
        return (names, *printed(count.main, paths[:1]))


def main():
    good, bad = entry('a, b'), entry('c / d', BAD, 'FAIL')
    silent = entry('e', '# seed 12 (repeat with HVD_TEST_SEED=12)\nok 1\n1..2\n')
    names, text, status = after([good, bad, silent], [entry('c / d'), entry('e')])
    still = after([good, bad], [good, bad])
    lost = after([good, bad], [good])
    better = after([good], [entry('a, b', BAD, 'FAIL')])
    skipped = after([bad], [entry('c / d', 'ok 1 - a promise # SKIP no time\n1..1\n')])
    report = after([entry('s', BAD + 'WARNING: ThreadSanitizer: data race', 'FAIL')], [entry('s')])
    late = after([entry('t', 'ok 1\n', 'TIMEOUT')], [entry('t')])
    failed, passed = '\n0 passed, 1 failed, 0 skipped\n', '\n1 passed, 0 failed, 0 skipped\n'
    results = [
        ('what failed is named with its seed, whatever way it failed in',
         names == '- c / d\n12 e\n'),
        ('a second try that passes counts', '\n3 passed, 0 failed, 0 skipped\n' in text),
        ('and then nothing has failed', status == 0),
        ('the first try is shown with its output', 'c / d, its first try' in text and BAD in text),
        ('what fails again has failed', '\n1 passed, 1 failed, 0 skipped\n' in still[1]
         and still[2] == 1),
        ('so has what was not tried again', '\n1 passed, 1 failed, 0 skipped\n' in lost[1]),
        ('and what is skipped then', failed in skipped[1]),
        ('what passed is not tried again', better[0] == '' and passed in better[1]),
        ('nor what a sanitizer reports', report[0] == '' and failed in report[1]),
        ('nor what ran out of time', late[0] == '' and late[2] == 1),
    ]
    for number, (promise, is_kept) in enumerate(results, 1):
        print('ok' if is_kept else 'not ok', number, '-', promise)
    print(f'1..{len(results)}')
    return 0 if all(is_kept for _, is_kept in results) else 1


if __name__ == '__main__':
    sys.exit(main())
