# SPDX-License-Identifier: Apache-2.0
"""The Keras example learns digits on one rank and on two, and continues from its checkpoint. Prints
TAP; starts its ranks itself."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import launch  # noqa: E402
from digits import accurate  # noqa: E402
from report import run_check  # noqa: E402
from training_check import train  # noqa: E402

SCRIPT = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'keras', 'train.py')


def check(report):
    directory = report.directory
    whole = [SCRIPT, '--epochs', '6']
    part = [SCRIPT, '--checkpoint', directory, '--epochs']
    alone = train(1, directory, whole)
    # Each run with a checkpoint must be the first of its job. It loads a model on rank 0 only, and
    # Keras numbers the models of a process: in a later run the names of the gradients, which
    # contain the number, would differ between the ranks.
    (begun, text), together = train(2, directory, [*part, '2'], whole)
    (rest, more), = train(2, directory, [*part, '3'])
    for ranks, (facts, output) in ((1, *alone), (2, together)):
        accurate(report, f'{ranks} ranks', facts, output, 0.9, 'val_accuracy')
    good = (len(begun) == 2 and [each['epoch'] for each in rest] == [3]
            and rest[0]['loss'] < begun[1]['loss'])
    report.line(good, 'training continues from the checkpoint of rank 0', text + more)


if __name__ == '__main__':
    run_check(check, 2, f'{launch.NEEDS}, sklearn')
