# SPDX-License-Identifier: Apache-2.0
"""The table of contrib/docs/frameworks.md: each framework trains on all ranks of a job, started by
hvd's launcher or by torchrun. Prints TAP; a framework that this Python lacks is skipped.

    frameworks_check.py RANKS [--torchrun] [NAME...]    all frameworks by default

Each script of frameworks/ trains on data that differ between ranks, and prints
``rank 0 of 2 over hvd: 0.481858``. The last number is the sum of the weights, which all ranks have
in common only if they have averaged their gradients. With the backend hvd, hvd's timeline must have their
allreduces, too: a framework may make process groups of its own beside the one of the script."""

import argparse
import collections
import os
import re
import sys
import tempfile

import launch
from report import Report

FOLDER = os.path.join(launch.HERE, 'frameworks')
TORCHRUN = ['-m', 'torch.distributed.run']
# New releases of torch find the backend by the entry points of the package, which only an installation has.
PREFIX = os.environ.get('HVD_TEST_PREFIX')
INSTALLED = os.path.join(PREFIX, 'lib', 'hvd', 'python') if PREFIX else None
SAID = re.compile(r'rank (\d+) of (\d+) over (\w+): (-?[\d.]+)')

# modules: what the script imports; backend: whose collectives it must use; starters: what starts its
# ranks, hvd's launcher, torchrun or the framework itself
Framework = collections.namedtuple('Framework', 'script modules backend starters')
BOTH = ('hvd', 'torchrun')
FRAMEWORKS = {
    'ddp': Framework('with_ddp', 'torch', 'hvd', BOTH),
    'trainer': Framework('with_trainer', 'torch, lightning', 'hvd', BOTH),
    'fabric': Framework('with_fabric', 'torch, lightning', 'hvd', BOTH),
    'accelerate': Framework('with_accelerate', 'torch, accelerate', 'hvd', BOTH),
    'transformers': Framework('with_transformers', 'torch, transformers, accelerate', 'hvd', BOTH),
    'composer': Framework('with_composer', 'torch, composer', 'hvd', BOTH),
    'deepspeed': Framework('with_deepspeed', 'torch, deepspeed', 'hvd', BOTH),
    'ray': Framework('with_ray', 'torch, ray', 'hvd', ('itself',)),
    'tensorflow': Framework('with_mirrored', 'tensorflow', 'grpc', ('hvd',)),
}


def allreduces(timeline):
    """Returns the number of allreduces in rank 0's timeline."""
    if not os.path.exists(timeline):
        return 0
    with open(timeline) as file:
        return file.read().count('"NEGOTIATE_ALLREDUCE"')


def start(framework, ranks, starter):
    """Runs the script; returns the exit status, the output, and how many allreduces hvd ran."""
    script = os.path.join(FOLDER, f'{framework.script}.py')
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as directory:
        timeline = os.path.join(directory, 'timeline.json')
        if starter == 'itself':
            result = launch.run_ranks(1, [script, str(ranks)], RAY_DEDUP_LOGS='0', HOROVOD_TIMELINE=timeline)
        else:
            result = launch.run_ranks(ranks, [*(TORCHRUN if starter == 'torchrun' else []), script],
                                      TF_CPP_MIN_LOG_LEVEL='3', HOROVOD_TIMELINE=timeline)
        return *result, allreduces(timeline)


def check(report, ranks, name, starter):
    """Runs the script and compares what its ranks say with each other."""
    framework = FRAMEWORKS[name]
    status, output, reduced = start(framework, ranks, starter)
    said = set(SAID.findall(output))  # Ray may print a line twice
    numbers = sorted(int(rank) for rank, *_ in said)
    common = {tuple(rest) for _, *rest in said}
    good = (status == 0 and numbers == list(range(ranks)) and len(common) == 1 and
            next(iter(common))[:2] == (str(ranks), framework.backend))
    if framework.backend == 'hvd':
        good = good and reduced > 0
        output += f'\n{reduced} allreduces in the timeline'
    line = f'{name}, started by torchrun' if starter == 'torchrun' else name
    report.line(good, f'{line}: {ranks} ranks train '
                f'together over {framework.backend}', f'exit status {status}\n{output}')


def torchrun_fault():
    """Returns why torchrun of this PyTorch starts nothing, or None."""
    import torch
    if int(torch.__version__.split('.')[0]) < 2 and sys.version_info >= (3, 11):
        return f'torchrun of PyTorch {torch.__version__} fails with Python 3.11 and later'
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('ranks', type=int)
    parser.add_argument('names', nargs='*', choices=[*FRAMEWORKS, []])
    parser.add_argument('--torchrun', action='store_true')
    arguments = parser.parse_intermixed_args()
    report = Report()
    if INSTALLED:
        os.environ['PYTHONPATH'] = os.pathsep.join(filter(None, [INSTALLED, os.environ.get('PYTHONPATH')]))
    for name in arguments.names or FRAMEWORKS:
        starters = FRAMEWORKS[name].starters
        starter = 'torchrun' if arguments.torchrun else starters[0]
        reason = launch.missing(arguments.ranks, FRAMEWORKS[name].modules)
        if starter not in starters:
            reason = 'torchrun does not start it'
        elif starter == 'torchrun':
            reason = reason or torchrun_fault()
        if reason:
            report.skip(f'{name} trains', reason)
        else:
            check(report, arguments.ranks, name, starter)
    return report.done()


if __name__ == '__main__':
    sys.exit(main())
