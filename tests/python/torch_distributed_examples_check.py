# SPDX-License-Identifier: Apache-2.0
"""An example of contrib/examples/torch_distributed learns on two ranks with the backend hvd, with
the same losses as on one rank and with Gloo. Prints TAP; starts its ranks itself. Argument: the
name of the example."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import launch
from digits import accurate, same_loss
from report import Report

EXAMPLES = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'torch_distributed')
# Looks for FSDP2 without importing torch.
LOOK_FOR_FSDP2 = '''
import importlib.util, os, sys
torch = importlib.util.find_spec('torch').submodule_search_locations[0]
sys.exit(not os.path.exists(os.path.join(torch, 'distributed', 'fsdp', '_fully_shard')))
'''


def script(name):
    return os.path.join(EXAMPLES, f'{name}.py')


def train(report, ranks, name, *options):
    """Trains in double precision, in a job of its own. Returns the facts of the epochs (none if the
    job failed) and the output. A job with Gloo may fail after its last epoch: torch aborts if a
    thread of Gloo frees a Python object while Python ends."""
    log = os.path.join(report.directory, 'log')
    status, output = launch.run_ranks(ranks, [script(name), '--float64', '--log', log, *options])
    counts = status == 0 or 'gloo' in options
    facts = [json.loads(line) for line in open(log)] if counts and os.path.exists(log) else []
    if os.path.exists(log):
        os.remove(log)
    return facts, f'exit status {status}\n{output}'


def trains(report, name):
    """Checks that the first epochs have the losses of one rank with twice the batch size, and of
    Gloo, and that a training continues from a checkpoint with the same losses."""
    saved = ['--checkpoint', os.path.join(report.directory, 'saved')]
    six = ['--backend', 'hvd', '--epochs', '6']
    straight, text = train(report, 2, name, *six)
    report.line('backend hvd' in text, f'{name}: the backend is hvd', text)
    alone = ['--backend', 'hvd', '--epochs', '2', '--batch-size', '32', '--lr', '0.04']
    for promise, (curve, more) in (
            ('one rank', train(report, 1, name, *alone)),
            ('gloo', train(report, 2, name, '--backend', 'gloo', '--epochs', '2', *saved))):
        pairs = list(zip(straight, curve)) if len(curve) == 2 else []
        same_loss(report, f'{name}: loss of two ranks over hvd is that of {promise}', pairs, 1e-9,
                  text + more)
    rest, more = train(report, 2, name, *six, *saved)
    pairs = list(zip(straight[2:], rest)) if len(rest) == 4 else []
    same_loss(report, f'{name}: a checkpoint changes no loss', pairs, 1e-9, text + more)
    accurate(report, f'{name}: 2 ranks', rest, more)


def ddp(report):
    trains(report, 'ddp')


def fsdp2(report):
    trains(report, 'fsdp2')


def learns(report, name, *options):
    status, output = launch.run_ranks(2, [script(name), *options])
    found = re.findall(r'^epoch +\d+ .*accuracy ([\d.]+)$', output, re.MULTILINE)
    report.line(status == 0 and len(found) == 8, f'{name} prints each epoch once',
                f'exit status {status}\n{output}')
    accurate(report, f'{name}: 2 ranks', [{'accuracy': float(each)} for each in found], output)
    return output


def with_lightning(report):
    output = learns(report, 'with_lightning')
    report.line('distributed_backend=hvd' in output, 'Lightning uses the backend hvd', output)


def with_accelerate(report):
    learns(report, 'with_accelerate')


def epochs(output):
    return [line for line in output.splitlines() if line.startswith('epoch ')]


def with_deepspeed(report):
    for stage in '2', '3':
        ours = learns(report, 'with_deepspeed', '--stage', stage)
        _, theirs = launch.run_ranks(2, [script('with_deepspeed'), '--stage', stage, '--backend', 'gloo'])
        report.line(epochs(ours) == epochs(theirs), f'ZeRO {stage}: hvd gives the losses of gloo',
                    ours + theirs)


CHECKS = {'ddp': (ddp, ''), 'fsdp2': (fsdp2, ''),
          'with_lightning': (with_lightning, ', pytorch_lightning'),
          'with_accelerate': (with_accelerate, ', accelerate'),
          'with_deepspeed': (with_deepspeed, ', deepspeed, ninja')}


def missing(name, modules):
    reason = launch.missing(2, f'torch, sklearn{modules}')
    if not reason and name == 'fsdp2' and subprocess.run(
            [launch.PYTHON, '-c', LOOK_FOR_FSDP2], check=False).returncode != 0:
        reason = f'torch of {launch.PYTHON} has no fully_shard: it is there since 2.6'
    return reason


def main():
    name = sys.argv[1]
    check, modules = CHECKS[name]
    reason = missing(name, modules)
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
    report = Report()
    report.directory = tempfile.mkdtemp(prefix='hvd-test-')
    try:
        check(report)
    finally:
        shutil.rmtree(report.directory)
    return report.done()


if __name__ == '__main__':
    sys.exit(main())
