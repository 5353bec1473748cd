# SPDX-License-Identifier: Apache-2.0
"""Tests of run.py: a mutant that no test notices is never reported as killed."""

import contextlib
import glob
import io
import os
import subprocess
import sys
import tempfile

import mutants
import run

# A tree with one source that makes two promises; its test checks one of them.
TREE = {
    'meson.build': """project('toy', 'c')
test('clamp', executable('clamp_test', 'tests/collectives/clamp_test.c', 'collectives/clamp.c'),
  protocol: 'tap', suite: 'unit')
""",
    'meson_options.txt': "option('tests', type: 'boolean', value: false)\n",
    'collectives/clamp.c': """int clamp(int value)
{
    if (value > 9) {
        return 9;
    }
    if (value < 0) {
        return 0;
    }
    return value;
}
""",
    'tests/collectives/clamp_test.c': """#include <stdio.h>

int clamp(int value);

int main(void)
{
    puts(clamp(10) == 9 ? "ok 1 - at most 9" : "not ok 1 - at most 9");
    puts("1..1");
    return clamp(10) != 9;
}
""",
    'tests/mutation/toy.mutants': """# A promise that is tested.
collectives/clamp.c: at most 9
-    if (value > 9) {
+    if (value > 10) {
         return 9;

collectives/clamp.c: at least 0
-    if (value < 0) {
+    if (value < -1) {

collectives/clamp.c: lines that the source does not have
-    if (value < 1) {
+    if (value < 0) {

collectives/clamp.c: lines that it has twice
-    }
+    };

collectives/clamp.c: no C
-    return value;
+    return
""",
}

BROKEN_LISTS = ('no promise\n-a\n', 'a.c: a line without a sign\n-a\nb\n', 'a.c: nothing goes\n+a\n')


def make_tree(root):
    for name, text in TREE.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
    subprocess.run(['git', 'init', '--quiet', root], check=True)


def run_in(root, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = run.main(root, ['--scratch', os.path.join(os.path.dirname(root), 'scratch'), *arguments])
    return out.getvalue().splitlines(), status


def outdated():
    """Returns mistakes in the tree's own lists: lines that the sources lack."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    for path in sorted(glob.glob(os.path.join(here, '*.mutants'))):
        for mutant in mutants.read(path):
            try:
                with open(os.path.join(root, mutant.source)) as source:
                    mutants.mutated(source.read(), mutant)
            except (mutants.ListError, OSError) as error:
                yield f'{os.path.basename(path)}: {mutant.promise}: {error}'


def is_refused(text, directory):
    path = os.path.join(directory, 'list')
    with open(path, 'w') as file:
        file.write(text)
    try:
        mutants.read(path)
    except mutants.ListError as error:
        return f'{path}:1: ' in str(error)
    return False


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.join(directory, 'root')
        make_tree(root)
        lines, status = run_in(root)
        of_promise = {line.split(': ')[1]: line for line in lines if ': ' in line}
        drawn = [run_in(root, '--draw', '1', '--seed', seed)[0] for seed in '12']
        with open(os.path.join(directory, 'scratch', 'collectives', 'clamp.c')) as file:
            left = file.read()
        refused = all(is_refused(text, directory) for text in BROKEN_LISTS)
    results = {
        'the lines of each mutant of the lists are in its source': not list(outdated()),
        'a mutant that a test notices is killed by it, and the promise is told':
            'killed by clamp: not ok 1 - at most 9' in of_promise['at most 9'],
        'one that no test notices survives': ': SURVIVED (' in of_promise['at least 0'],
        'lines that the source lacks do not apply':
            ': does not apply: ' in of_promise['lines that the source does not have'],
        'nor do those that it has twice':
            'occur 2 times' in of_promise['lines that it has twice'],
        'what does not compile is no kill': 'no C: does not compile' in of_promise['no C'],
        'the counts come last': lines[-1] == '1 killed, 1 survived, 3 wrong',
        'and the exit status tells that not all were killed': status == 1,
        'a mutant leaves the copy sound': left == TREE['collectives/clamp.c'],
        'core sources are drawn': drawn == [['collectives/clamp.c']] * 2,
        'what is wrong with a list is told with its line': refused,
    }
    for number, (promise, is_kept) in enumerate(results.items(), 1):
        print('ok' if is_kept else 'not ok', number, '-', promise)
    for place in outdated():
        print('#', place)
    print(f'1..{len(results)}')
    return 0 if all(results.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
