# SPDX-License-Identifier: Apache-2.0
"""The table of front ends counts every test in the right cell."""

import sys

import front_ends
from count import Test

GOOD = 'ok 1 - a\nok 2 - b # SKIP no gpu\n1..2\n'


def test(name, comment, output=GOOD, status=0):
    return Test(name, f'{comment}\n{output}', status, False)


TESTS = [
    test('old: torch on 2 ranks', '# with torch 1.13.1'),
    test('new: torch on 2 ranks', '# with torch 2.9.0'),
    test('new: torch of today on 2 ranks', '# with torch 2.9.0', 'not ok 1 - a\n1..1\n', 1),
    test('new: torch on two nodes', '# with torch 2.9.0'),
    test('new: torch on 4 ranks', '# with torch 2.9.0', 'ok 1 - a\n1..3\n'),
    test('old: torch on stand-ins of GPUs, 4 ranks', '# with torch 1.13.1'),
    test('old: digits example', '# with torch 1.13.1 sklearn 1.2.1'),
    test('x: tf.keras on 2 ranks', '# with tensorflow 2.15.1 keras 2.15.0'),
    test('x: keras with TensorFlow on 2 ranks', '# with tensorflow 2.15.1 keras 2.15.0'),
    test('x: mxnet on 2 ranks', '', '1..0 # SKIP python lacks mxnet\n'),
    test('x: headers', '# all of them'),
]


def main():
    table = front_ends.table_of(TESTS)
    old, new = ('torch', 'torch 1.13.1'), ('torch', 'torch 2.9.0')
    both = 'tensorflow 2.15.1, keras 2.15.0'
    lines = list(front_ends.lines_of(table))
    results = {
        'versions have rows of their own': table[old]['2 ranks'] == (1, 0, 1),
        'tests of a cell are added up': table[new]['2 ranks'] == (1, 1, 1),
        'two nodes are a column': table[new]['two nodes'] == (1, 0, 1),
        'a promise that was planned but not made is a failure': table[new]['4 ranks'] == (1, 1, 0),
        'a name may end with its ranks': table[old]['4 ranks'] == (1, 0, 1),
        'examples are counted apart': table[old][None] == (1, 0, 1),
        'Keras has rows of its own': table['tf.keras', both]['2 ranks'] == (1, 0, 1) and
                                     table['keras', both]['2 ranks'] == (1, 0, 1),
        'tests that did not run, or are not of a front end, have no row': len(table) == 4,
        'a row is a line of Markdown': '| torch | torch 2.9.0 | - | 1 / 1 / 1 | - | 1 / 1 / 0 | '
                                       '1 / 0 / 1 | - |' in lines,
        'without rows there is no table': list(front_ends.lines_of({})) == [],
    }
    for number, (promise, passed) in enumerate(results.items(), 1):
        print('ok' if passed else 'not ok', number, '-', promise)
    print(f'1..{len(results)}')
    return 0 if all(results.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
