#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the suite that torch ships for its backends (torch.testing._internal.distributed) over hvd.

    tests/python/on_torch_distributed/torch_suite.py --build build --ranks 2 [TEST...]

All ranks run one test after the other in one job, which takes minutes where a process for each test
and rank takes hours. What can be in a bad state after a failure is started anew. The suite knows
Gloo by name, so hvd takes Gloo's place: every test that Gloo can pass is tried. --backend gloo runs
the same with Gloo, to compare. Tests of GPUs skip; tests of torch's profiler are left out, because
they count events that only Gloo itself writes.

For current releases of torch: --python $(tests/torch_env.sh). The suite needs the package expecttest,
which is fetched for the run.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..', '..')
MOST_STARTS = 60


def run_once(options, directory):
    """One job, which ends at the first failure; its exit status."""
    hvdrun = os.path.join(options.build, 'pmix_boot', 'hvdrun', 'hvdrun')
    environment = dict(
        os.environ, OMP_NUM_THREADS='1', BACKEND='gloo', HVD_SUITE_BACKEND=options.backend,
        HVD_SUITE_DIRECTORY=directory, TEMP_DIR=directory, INIT_METHOD='env://',
        HVD_LIBRARY=os.path.abspath(os.path.join(options.build, 'collectives', 'libhvd.so')),
        PYTHONPATH=f'{os.path.join(ROOT, "contrib", "python")}:{directory}/packages')
    command = [hvdrun, '-np', str(options.ranks), options.python,
               os.path.join(HERE, 'torch_suite_rank.py'), *options.tests]
    with open(os.path.join(directory, 'log'), 'a') as log:
        return subprocess.run(command, env=environment, stdout=log, stderr=log,
                              check=False).returncode


def outcomes(options, directory):
    """{test: [(word, reason) of each rank]}"""
    seen = collections.defaultdict(dict)
    for rank in range(options.ranks):
        path = os.path.join(directory, f'results.{rank}')
        for line in open(path) if os.path.exists(path) else []:
            name, word, *reason = line.rstrip('\n').split(' ', 2)
            seen[name][rank] = (word, ' '.join(reason))
    return {name: [by_rank.get(rank, ('lost', '')) for rank in range(options.ranks)]
            for name, by_rank in seen.items()}


def verdict(words):
    if words == {'ok'}:
        return 'passed'
    return 'skipped' if words <= {'ok', 'skipped'} else 'failed'


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True, help='the build directory of hvd')
    parser.add_argument('--python', default='/usr/bin/python3', help='with torch')
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--backend', choices=('hvd', 'gloo'), default='hvd')
    parser.add_argument('tests', nargs='*', metavar='TEST', help='default: all')
    options = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory(prefix='hvd-suite-') as directory:
        subprocess.run([options.python, '-m', 'pip', 'install', '--quiet', '--target',
                        f'{directory}/packages', 'expecttest'], check=True)
        starts = 1
        while run_once(options, directory) != 0 and starts < MOST_STARTS:
            starts += 1
        results = outcomes(options, directory)
        if not results:
            sys.exit(open(os.path.join(directory, 'log')).read()[-4000:])
    for name, by_rank in sorted(results.items()):
        how = verdict({word for word, _ in by_rank})
        counts[how] += 1
        if how == 'failed':
            print(f'failed: {name}')
            for rank, (word, reason) in enumerate(by_rank):
                print(f'  rank {rank}: {word} {reason}')
    print(', '.join(f'{counts[each]} {each}' for each in ('passed', 'failed', 'skipped')))
    return counts['failed'] > 0


if __name__ == '__main__':
    sys.exit(main())
