#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs torch's own test suite for backends (torch.testing._internal.distributed) with hvd, and
prints a TAP line for each test that is not skipped.

    tests/python/on_torch_distributed/torch_suite.py --build build --ranks 2 [TEST...]

All ranks run the tests one after the other in one job, which takes minutes; a process for each test
and rank would take hours. After a failure a new job continues. The suite knows Gloo by name, so hvd
replaces Gloo, and every test that Gloo can pass is tried. --backend gloo runs the same tests with
Gloo, to compare. Most tests of GPUs are skipped. Tests of torch's profiler are left out, because
they count events that only Gloo writes.

KNOWN lists the tests that fail, with the reason, and the backends, releases of torch and numbers of
ranks for which they fail. A test that fails without being listed is not ok, and neither is a listed
test that passes. Failed tests run a second time, because a busy machine may exceed their time
limits.

For current releases of torch: --python $(tests/torch_env.sh). The suite needs the package
expecttest, which that environment has.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..', '..')
sys.path.insert(0, os.path.join(HERE, '..'))

import launch  # noqa: E402
from report import Report  # noqa: E402

MOST_STARTS = 60
FEWEST_PASS = 80  # the least number of tests that pass in a whole run, on any supported release


class Failure:
    """The reason why a test fails with these backends, with torch before this version, and on fewer
    than this number of ranks."""

    def __init__(self, reason, backends=('hvd', 'gloo'), before=(99,), ranks=99):
        self.reason = reason
        self._backends, self._before, self._ranks = backends, before, ranks

    def comes(self, backend, version, ranks):
        return backend in self._backends and version < self._before and ranks < self._ranks


_GPU = Failure('it is for GPUs')
_NAME = Failure('it compares the name of the backend with "gloo"', ['hvd'])
_BARRIER = Failure('before 2.14 torch has monitored_barrier for Gloo alone', ['hvd'], before=(2, 14))
_ALL_TO_ALL = Failure('Gloo has no all_to_all of tensors of different sizes', ['gloo'])
KNOWN = {
    'test_SyncBatchNorm_process_group': Failure('it needs torchvision'),
    'test_all_to_all': _ALL_TO_ALL,
    'test_all_to_all_complex': _ALL_TO_ALL,
    'test_all_to_all_cuda': _GPU,
    'test_all_to_all_cuda_complex': _GPU,
    'test_all_to_all_full_group': _ALL_TO_ALL,
    'test_all_to_all_full_group_cuda': _GPU,
    'test_all_to_all_group': _ALL_TO_ALL,
    'test_all_to_all_group_cuda': _GPU,
    'test_batch_isend_irecv_mixed_backend_err': _GPU,
    'test_batch_isend_irecv_op_err': _GPU,
    'test_batch_isend_irecv_tensor_err': Failure('it is for GPUs', before=(2, 0)),
    'test_ddp_logging_data_cpu': _NAME,
    'test_monitored_barrier_failure_order': _BARRIER,
    'test_monitored_barrier_gloo': _BARRIER,
    'test_monitored_barrier_gloo_rank_0_timeout': _BARRIER,
    'test_monitored_barrier_gloo_subgroup': _BARRIER,
    'test_monitored_barrier_wait_all_ranks': _BARRIER,
    'test_new_subgroups_with_group_param': Failure('it makes groups of four ranks', ranks=4),
}


def version_of_torch(python):
    """Returns the version of torch, such as (2, 15)."""
    found = subprocess.run([python, '-c', 'from importlib.metadata import version; print(version("torch"))'],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(map(int, found.split('.')[:2]))


def known(options):
    """Returns {test: reason} for the tests of KNOWN that fail here."""
    version = version_of_torch(options.python)
    return {name: failure.reason for name, failure in KNOWN.items()
            if (not options.tests or name in options.tests)
            and failure.comes(options.backend, version, options.ranks)}


def run_once(options, directory, failing, tests):
    """Runs a job, which ends at the first failure; returns its exit status."""
    hvdrun = os.path.join(options.build, 'pmix_boot', 'hvdrun', 'hvdrun')
    environment = dict(
        os.environ, OMP_NUM_THREADS='1', BACKEND='gloo', HVD_SUITE_BACKEND=options.backend,
        HVD_SUITE_DIRECTORY=directory, HVD_SUITE_KNOWN=' '.join(failing), TEMP_DIR=directory,
        INIT_METHOD='env://',
        HVD_LIBRARY=os.path.abspath(os.path.join(options.build, 'collectives', 'libhvd.so')),
        PYTHONPATH=os.pathsep.join([os.path.join(ROOT, 'contrib', 'python'),
                                    os.environ.get('PYTHONPATH', '')]))
    command = [hvdrun, '-np', str(options.ranks), options.python,
               os.path.join(HERE, 'torch_suite_rank.py'), *tests]
    with open(os.path.join(directory, 'log'), 'a') as log:
        return subprocess.run(command, env=environment, stdout=log, stderr=log,
                              check=False).returncode


def outcomes(options, directory):
    """Reads the results; returns {test: [(word, reason) of each rank]}."""
    seen = collections.defaultdict(dict)
    for rank in range(options.ranks):
        path = os.path.join(directory, f'results.{rank}')
        for line in open(path) if os.path.exists(path) else []:
            name, word, *reason = line.rstrip('\n').split(' ', 2)
            seen[name][rank] = (word, ' '.join(reason))
    return {name: [by_rank.get(rank, ('lost', '')) for rank in range(options.ranks)]
            for name, by_rank in seen.items()}


def run(options, failing, tests):
    """Runs jobs until all tests have run; returns the outcomes and the output of the jobs."""
    with tempfile.TemporaryDirectory(prefix='hvd-suite-') as directory:
        starts = 1
        while run_once(options, directory, failing, tests) != 0 and starts < MOST_STARTS:
            starts += 1
        with open(os.path.join(directory, 'log')) as log:
            return outcomes(options, directory), log.read()


def verdict(words):
    if words == {'ok'}:
        return 'passed'
    return 'skipped' if words <= {'ok', 'skipped'} else 'failed'


def tell(results, failing):
    """Prints the lines; returns the report and {verdict: number of tests}."""
    report, counts = Report(), collections.Counter()
    for name, by_rank in sorted(results.items()):
        how = verdict({word for word, _ in by_rank})
        counts[how] += 1
        if how == 'skipped':
            continue
        reasons = '\n'.join(f'rank {rank}: {word} {reason}'
                            for rank, (word, reason) in enumerate(by_rank))
        if name in failing:
            report.line(how == 'failed', f'{name} fails: {failing[name]}', reasons)
        else:
            report.line(how == 'passed', name, reasons)
    launch.comment(', '.join(f'{counts[each]} {each}' for each in ('passed', 'failed', 'skipped')))
    return report, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True, help='the build directory of hvd')
    parser.add_argument('--python', default=launch.PYTHON, help='with torch and expecttest')
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--backend', choices=('hvd', 'gloo'), default='hvd')
    parser.add_argument('tests', nargs='*', metavar='TEST', help='default: all')
    options = parser.parse_args()
    launch.PYTHON = options.python
    reason = launch.missing(1, 'torch, expecttest')
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    failing = known(options)
    results, log = run(options, failing, options.tests)
    report, counts = tell(results, failing)
    if options.tests:
        report.line(counts.total() == len(set(options.tests)), 'all tests asked for were run', log[-4000:])
    else:
        report.line(counts['passed'] >= FEWEST_PASS, f'{FEWEST_PASS} tests or more pass', log[-4000:])
    return report.done()


if __name__ == '__main__':
    sys.exit(main())
