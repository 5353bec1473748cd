# SPDX-License-Identifier: Apache-2.0
"""The examples in contrib/examples/tensorflow: two ranks do what one does with twice the batch,
also when they go on from a checkpoint, and recognise digits. Prints TAP; starts its ranks itself.
"""

import os
import re
import shutil
import sys
import tempfile

import launch
from report import Report
from training_check import train

EXAMPLES = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'tensorflow')
EPOCHS = 6


TRAIN, SESSION, FIT = (os.path.join(EXAMPLES, each) for each in ('train.py', 'session.py', 'fit.py'))


def accurate(report, script, ranks, facts, output):
    share = facts[-1]['accuracy'] if facts else 0
    report.line(share >= 0.93, f'{script} on {ranks} recognises 93 % of the held-out digits',
                f'accuracy {share}\n{output}')
    launch.comment(f'{script} on {ranks}: accuracy {share:.4f}')


def curve_of_one(script):
    """Six epochs on one rank."""
    return [script, '--float64', '--epochs', str(EPOCHS), '--batch-size', '32', '--lr', '0.04']


def part_of_two(script, epochs, directory):
    """So many on two ranks, from the checkpoint on: with half of its batch and, as all scripts
    multiply it, half of its learning rate."""
    return [script, '--float64', '--epochs', str(epochs), '--batch-size', '16', '--lr', '0.02',
            '--checkpoint', os.path.join(directory, os.path.basename(script))]


def same_curve(report, script, *runs):
    """The run of one rank, and both of two."""
    (one, text), (begun, more), (rest, most) = runs
    script = os.path.basename(script)
    report.line([len(one), len(begun), len(rest)] == [EPOCHS, 2, EPOCHS - 2],
                f'{script} trains on one rank, on two, and goes on from the checkpoint of rank 0',
                text + more + most)
    for promise, epochs in (('loss of two ranks is that of one within 1e-9', begun),
                            ('so it is after they went on', rest)):
        pairs = [(one[each['epoch'] - 1], each) for each in epochs if len(one) == EPOCHS]
        worst = max((abs(a['loss'] / b['loss'] - 1) for a, b in pairs), default=1)
        report.line(worst < 1e-9, f'{script}: {promise}',
                    f'relative difference {worst}\n{text}\n{more}\n{most}')
        launch.comment(f'{script}: largest relative difference of the loss: {worst:.2e}')
    accurate(report, script, '1 rank', one, text)
    accurate(report, script, '2 ranks', rest, most)


def fit(report, alone, together):
    accurate(report, 'fit.py', '1 rank', *alone)
    facts, output = together
    accurate(report, 'fit.py', '2 ranks', facts, output)
    shares = [each['accuracy'] for each in facts]
    loaded = re.findall(r'^the best model: accuracy ([\d.]+)$', output, re.MULTILINE)
    report.line(len(loaded) == 1 and abs(float(loaded[0]) - max(shares, default=0)) < 1e-3,
                'fit.py: rank 0 has kept the model of the best epoch, and Keras loads it',
                f'{shares}\n{output}')


def main():
    reason = launch.missing(2, 'tensorflow, sklearn')
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    report = Report()
    directory = tempfile.mkdtemp(prefix='hvd-test-')
    try:
        # Sessions come last in their job: they change TensorFlow's mode for good.
        whole = [FIT, '--epochs', str(EPOCHS)]
        tape, keras, session = train(1, directory, curve_of_one(TRAIN), whole,
                                     curve_of_one(SESSION))
        *tapes, keras_of_two, begun = train(
            2, directory, part_of_two(TRAIN, 2, directory), part_of_two(TRAIN, EPOCHS, directory),
            [*whole, '--accumulate', '2', '--best', os.path.join(directory, 'best.keras')],
            part_of_two(SESSION, 2, directory))
        [rest] = train(2, directory, part_of_two(SESSION, EPOCHS, directory))
        same_curve(report, TRAIN, tape, *tapes)
        same_curve(report, SESSION, session, begun, rest)
        fit(report, keras, keras_of_two)
    finally:
        shutil.rmtree(directory)
    return report.done()


if __name__ == '__main__':
    sys.exit(main())
