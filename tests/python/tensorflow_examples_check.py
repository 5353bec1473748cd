# SPDX-License-Identifier: Apache-2.0
"""The examples in contrib/examples/tensorflow: two ranks train like one rank with twice the batch
size, also when they continue from a checkpoint, and recognise digits. Prints TAP; starts its ranks
itself."""

import os
import re

import launch
from digits import accurate, same_loss
from report import run_check
from training_check import train

EXAMPLES = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'tensorflow')
EPOCHS = 6
LEAST = 0.93  # the least accuracy on the test images


TRAIN, SESSION, FIT = (os.path.join(EXAMPLES, each) for each in ('train.py', 'session.py', 'fit.py'))


def curve_of_one(script):
    """Returns the command for six epochs on one rank."""
    return [script, '--float64', '--epochs', str(EPOCHS), '--batch-size', '32', '--lr', '0.04']


def part_of_two(script, epochs, directory):
    """Returns the command for a training on two ranks that ends after ``epochs`` epochs and
    continues from the checkpoint if there is one. Batch size and learning rate are half of those
    for one rank, because two ranks double both."""
    return [script, '--float64', '--epochs', str(epochs), '--batch-size', '16', '--lr', '0.02',
            '--checkpoint', os.path.join(directory, os.path.basename(script))]


def same_curve(report, script, *runs):
    """Compares the run of one rank with both runs of two ranks."""
    (one, text), (begun, more), (rest, most) = runs
    script = os.path.basename(script)
    report.line([len(one), len(begun), len(rest)] == [EPOCHS, 2, EPOCHS - 2],
                f'{script} trains on one rank, on two, and continues from the checkpoint of rank 0',
                text + more + most)
    for promise, epochs in (('two ranks have the loss of one rank', begun),
                            ('two ranks have the loss of one rank after the checkpoint', rest)):
        pairs = [(one[each['epoch'] - 1], each) for each in epochs if len(one) == EPOCHS]
        same_loss(report, f'{script}: {promise}', pairs, 1e-9, text + more + most)
    accurate(report, f'1 rank of {script}', one, text, LEAST)
    accurate(report, f'2 ranks of {script}', rest, most, LEAST)


def fit(report, alone, together):
    accurate(report, '1 rank of fit.py', *alone, LEAST)
    facts, output = together
    accurate(report, '2 ranks of fit.py', facts, output, LEAST)
    shares = [each['accuracy'] for each in facts]
    loaded = re.findall(r'^the best model: accuracy ([\d.]+)$', output, re.MULTILINE)
    report.line(len(loaded) == 1 and abs(float(loaded[0]) - max(shares, default=0)) < 1e-3,
                'fit.py: rank 0 has saved the model of the best epoch, and Keras can load it',
                f'{shares}\n{output}')


def check(report):
    directory = report.directory
    # session.py comes last in its job, because it changes TensorFlow's mode permanently.
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


if __name__ == '__main__':
    run_check(check, 2, 'tensorflow, sklearn')
