# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: breaks promises one after the other, and looks for a test that fails.

usage: run.py [--seed N] [--count N] [--near] [--scratch DIR] [SOURCE ...]
       run.py --draw N [--seed N]

Tries the mutants of each SOURCE, without SOURCE all mutants, or --count of them drawn by --seed. Each
is a change of one source that breaks one promise of its header. To add some, let --draw name N core
sources, drawn by --seed, read the header of each, and break what a user could notice: a block in the
list of its folder (collectives.mutants and the like; mutants.py tells how to write one).

Works on a copy of the tree, DIR or build-mutation, which is made and configured once. A mutant is put
into the copy and built with those tests that may find it soonest: those named like the source, those
of the folder that mirrors the source's or named like it, then (not with --near) suite unit, then suite
processes without suite more. The search ends with the first test that fails, or runs out of time, and
passes without the mutant. Prints of each mutant "killed by TEST" with the first promise that the test
broke, "SURVIVED", or what is wrong with the list: "does not apply", "does not compile". The counts come
last. Exits with 1 unless all were killed.
"""

import argparse
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

import mutants

CORE = ('collectives', 'pmix_boot', 'gpu_binding', 'spank')
BUILD = 'build' # in the copy: with the same name ccache finds the objects of a checkout
LOG = 'mutation'
OWN = 'tests/mutation/' # left out: these tests compare sources with the lists, so they fail with any mutant
BROKEN = ('FAIL', 'ERROR', 'TIMEOUT')


class DoesNotCompile(Exception):
    """The mutant does not compile; the text is the output of ninja."""


def tracked(root):
    """Returns the files of the checkout, also new ones, except those that git ignores."""
    names = subprocess.check_output(['git', 'ls-files', '-z', '--cached', '--others',
                                     '--exclude-standard'], cwd=root, text=True).split('\0')
    return sorted(name for name in set(names) if name and os.path.exists(os.path.join(root, name)))


def core_sources(root):
    return [name for name in tracked(root) if name.endswith('.c') and name.split('/')[0] in CORE]


def contents(path):
    with open(path, 'rb') as file:
        return file.read()


def copy_tree(root, tree):
    """Copies the files that differ, so that a second run builds little."""
    names = set(tracked(root))
    for folder, folders, files in os.walk(tree):
        if folder == tree and BUILD in folders:
            folders.remove(BUILD)
        for path in (os.path.join(folder, name) for name in files):
            if os.path.relpath(path, tree) not in names:
                os.remove(path)
    for name in names:
        source, copy = os.path.join(root, name), os.path.join(tree, name)
        if not os.path.exists(copy) or contents(source) != contents(copy):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy(source, copy)


def paths_of(test, targets, tree, build):
    """Returns the files below tests/ that a test runs, relative to the tree."""
    built = [name for target in test['depends'] for name in targets.get(target, [])]
    for path in test['cmd'] + built:
        for top in (build, tree):
            if path.startswith(top + '/'):
                path = os.path.relpath(path, top)
        if path.startswith('tests/'):
            yield path


class Copy:
    """A copy of the tree and its build, in which one source at a time is broken."""

    def __init__(self, root, tree):
        self.tree, self.build = tree, os.path.join(tree, BUILD)
        copy_tree(root, tree)
        if not os.path.exists(os.path.join(self.build, 'build.ninja')):
            subprocess.run(['meson', 'setup', '-Dtests=true', self.build, tree], check=True,
                           stdout=subprocess.DEVNULL)
        self.ninja('build.ninja')
        targets = {target['id']: target['filename'] for target in self.introspect('targets')}
        self.installed = [os.path.relpath(name, self.build)
                          for target in self.introspect('targets') if target['installed']
                          for name in target['filename']]
        self.passes = {} # by test: whether it passes without a mutant
        self.tests = [(test['name'], {suite.partition(':')[2] for suite in test['suite']}, paths)
                      for test in self.introspect('tests')
                      for paths in [list(paths_of(test, targets, self.tree, self.build))]
                      if not any(path.startswith(OWN) for path in paths)]

    def introspect(self, what):
        return json.loads(subprocess.check_output(['meson', 'introspect', '--' + what, self.build]))

    def ninja(self, *targets):
        done = subprocess.run(['ninja', '-C', self.build, *targets], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise DoesNotCompile(done.stdout)

    def stages(self, source, only_near):
        """Returns the names of the tests that may notice a mutant of the source, the likeliest first."""
        stem = 'tests/' + os.path.splitext(source)[0]
        folder = os.path.dirname(stem)

        def is_near(paths):
            return any(path.startswith((folder + '/', folder + '_')) for path in paths)

        near = (lambda suites, paths: any(path.startswith(stem + '_') for path in paths),
                lambda suites, paths: 'unit' in suites and is_near(paths),
                lambda suites, paths: is_near(paths))
        far = (lambda suites, paths: 'unit' in suites, lambda suites, paths: True)
        seen = set()
        for wanted in near if only_near else near + far:
            names = [name for name, suites, paths in self.tests if name not in seen
                     and suites & {'unit', 'processes'} and 'more' not in suites
                     and wanted(suites, paths)]
            seen.update(names)
            if names:
                yield names

    def failures(self, names):
        """Runs tests until one fails; returns {test: the first promise that it broke} of those that failed.
        All installed programs are built, because tests do not list all that they run."""
        log = os.path.join(self.build, 'meson-logs', LOG + '.json')
        if os.path.exists(log):
            os.remove(log)
        self.ninja(*self.installed)
        ran = subprocess.run(['meson', 'test', '-C', self.build, '--logbase', LOG, '--maxfail', '1',
                              '--num-processes', '2', *names], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not os.path.exists(log):
            raise DoesNotCompile(ran.stdout)
        with open(log) as lines:
            return {name_of(entry): broken_promise(entry)
                    for entry in map(json.loads, lines) if entry['result'] in BROKEN}

    def is_sound(self, name):
        """Returns whether a test passes without a mutant."""
        if name not in self.passes:
            self.passes[name] = not self.failures([name])
            if not self.passes[name]:
                print(f'# {name} fails without a mutant and is left out', flush=True)
        return self.passes[name]

    def killer(self, mutant, only_near):
        """Returns (test, the first promise that it broke) of a test that notices the mutant, or None.
        Restores the source."""
        path = os.path.join(self.tree, mutant.source)
        sound = contents(path).decode()
        broken = mutants.mutated(sound, mutant)
        for names in self.stages(mutant.source, only_near):
            failed = {None: None}
            while failed:
                names = [name for name in names if self.passes.get(name, True)]
                try:
                    write(path, broken)
                    failed = self.failures(names) if names else {}
                finally:
                    write(path, sound)
                for name, promise in failed.items():
                    if self.is_sound(name):
                        return name, promise
        return None


def write(path, text):
    with open(path, 'w') as file:
        file.write(text)


def name_of(entry):
    """Returns the name for `meson test`, from 'project:suite / test' or, by a newer meson, 'suite - project:test'."""
    return re.split(r' / |^.* - [^:]*:', entry['name'])[-1]


def broken_promise(entry):
    for line in entry.get('stdout', '').splitlines():
        if line.startswith('not ok') and '# SKIP' not in line:
            return line
    return {'TIMEOUT': 'ran out of time'}.get(entry['result'],
                                              f'exit status {entry["returncode"]}')


def verdict_of(copy, mutant, only_near):
    """Tries a mutant; returns (killed, survived or wrong; the text to print)."""
    try:
        failure = copy.killer(mutant, only_near)
    except (mutants.ListError, FileNotFoundError) as error:
        return 'wrong', f'does not apply: {error}'
    except DoesNotCompile as error:
        return 'wrong', f'does not compile:\n{error}'
    if failure:
        return 'killed', f'killed by {failure[0]}: {failure[1]}'
    return 'survived', 'SURVIVED'


def try_all(copy, tried, only_near):
    """Prints a line for each mutant, and the counts; returns how many were not killed."""
    counts = dict.fromkeys(('killed', 'survived', 'wrong'), 0)
    for mutant in tried:
        start = time.monotonic()
        verdict, text = verdict_of(copy, mutant, only_near)
        counts[verdict] += 1
        print(f'{mutant.source}: {mutant.promise}: {text} ({time.monotonic() - start:.0f} s)',
              flush=True)
    print(', '.join(f'{count} {verdict}' for verdict, count in counts.items()))
    return len(tried) - counts['killed']


def chosen(every, options):
    """Returns the mutants that the command line asks for."""
    unknown = set(options.sources) - {mutant.source for mutant in every}
    if unknown:
        sys.exit(f'no list has a mutant of {", ".join(sorted(unknown))}')
    some = [mutant for mutant in every if not options.sources or mutant.source in options.sources]
    if options.count is None or options.count >= len(some):
        return some
    return random.Random(options.seed).sample(some, options.count)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=17)
    parser.add_argument('--count', type=int)
    parser.add_argument('--draw', type=int)
    parser.add_argument('--near', action='store_true')
    parser.add_argument('--scratch')
    parser.add_argument('sources', nargs='*', metavar='SOURCE')
    return parser.parse_args(arguments)


def main(root, arguments):
    options = parse(arguments)
    if options.draw is not None:
        print('\n'.join(random.Random(options.seed).sample(core_sources(root), options.draw)))
        return 0
    lists = sorted(glob.glob(os.path.join(root, 'tests', 'mutation', '*.mutants')))
    try:
        every = [mutant for path in lists for mutant in mutants.read(path)]
    except mutants.ListError as error:
        sys.exit(str(error))
    tried = chosen(every, options)
    copy = Copy(root, os.path.abspath(options.scratch or os.path.join(root, 'build-mutation')))
    return 1 if try_all(copy, tried, options.near) else 0


if __name__ == '__main__':
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(os.path.dirname(os.path.dirname(here)), sys.argv[1:]))
