# SPDX-License-Identifier: Apache-2.0
"""The digits example has the same losses on four ranks as on one, the same parameters on every
rank, and recognises digits. Prints TAP; starts its ranks itself."""

import json
import os
import tempfile

import launch
from digits import accurate, same_loss
from report import run_check

SCRIPT = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'digits', 'train.py')
# Compares parameters with torch.equal, so it runs in the interpreter of the ranks.
COMPARE = '''
import sys, torch
first, *others = [torch.load(path) for path in sys.argv[1:]]
assert all(torch.equal(first[key], other[key]) for other in others for key in first)
'''


def train(ranks, directory, *runs):
    """Trains once for each of the runs (lists of a script and its options), one after the other in
    one job. Returns for each run the facts of its epochs (none if the job failed) and the
    output."""
    folder = tempfile.mkdtemp(dir=directory)
    logs = [os.path.join(folder, str(number)) for number in range(len(runs))]
    status, outputs = launch.run_scripts(ranks, *([script, '--log', log, *options]
                                                  for log, (script, *options) in zip(logs, runs)))
    if status != 0:
        return [([], f'exit status {status}\n{output}') for output in outputs]
    return [([json.loads(line) for line in open(log)], output)
            for log, output in zip(logs, outputs)]


def same_curve(report, ones, fours):
    """Compares trainings in double precision with a global batch of 64 images: 64 on one rank, and
    16 on each of four ranks."""
    (one, text), (four, more) = ones, fours
    pairs = list(zip(one, four)) if len(one) == len(four) == 3 else []
    same_loss(report, 'four ranks have the loss of one rank', pairs, 1e-5, text + more)


def same_bits(report, directory, output):
    """Reports whether all ranks have saved exactly the same parameters, in single precision."""
    paths = [os.path.join(directory, f'rank{rank}.pt') for rank in range(4)]
    same = all(map(os.path.exists, paths)) and launch.run_ranks(1, ['-c', COMPARE, *paths])[0] == 0
    report.line(same, 'four ranks have exactly the same parameters', output)


def resumes(report, directory):
    """Reports whether two epochs, and two more from the checkpoint, end like four epochs at
    once."""
    common = [SCRIPT, '--float64', '--checkpoint', directory, '--epochs']
    (straight, text), _, (rest, more) = train(
        2, directory, [SCRIPT, '--float64', '--epochs', '4'], [*common, '2'], [*common, '4'])
    good = (len(straight) == 4 and len(rest) == 2
            and abs(straight[-1]['loss'] / rest[-1]['loss'] - 1) < 1e-9)
    report.line(good, 'training continues from the checkpoint of rank 0', text + more)


def check(report):
    directory = report.directory
    common = [SCRIPT, '--float64', '--epochs', '3', '--batch-size']
    curve, (facts, output) = train(4, directory, [*common, '16', '--lr', '0.02'],
                                   [SCRIPT, '--dump-params', directory])
    curve_of_one, alone = train(1, directory, [*common, '64', '--lr', '0.08'], [SCRIPT])
    same_curve(report, curve_of_one, curve)
    same_bits(report, directory, output)
    accurate(report, '4 ranks', facts, output)
    accurate(report, '1 rank', *alone)
    named = ('4 ranks on 1 node, ' in output, '1 rank on 1 node, ' in alone[1])
    report.line(named == (True, True), 'the first line says "1 node" and "4 ranks"', output + alone[1])
    resumes(report, directory)


if __name__ == '__main__':
    run_check(check, 4, 'torch, sklearn')
