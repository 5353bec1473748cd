# SPDX-License-Identifier: Apache-2.0
"""The example for uneven data: three ranks with files of different lengths train until the longest
file ends, and the model learns the curve. Prints TAP; starts its ranks itself."""

import os
import re

import launch
from report import run_check

SCRIPT = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'uneven', 'train.py')
EPOCH = re.compile(r'^epoch +\d+  rank (\d) was last  loss ([\d.]+)$', re.MULTILINE)


def check(report):
    status, output = launch.run_ranks(3, [SCRIPT, '--epochs', '10'])
    epochs = EPOCH.findall(output)
    report.line(status == 0 and len(epochs) == 10, 'three ranks with unequal files finish the training',
                f'exit status {status}\n{output}')
    report.line({last for last, _ in epochs} == {'2'}, 'the rank with the longest file joins last',
                output)
    losses = [float(loss) for _, loss in epochs]
    report.line(bool(losses) and losses[-1] < 0.1, 'the model learns the curve', output)


if __name__ == '__main__':
    run_check(check, 3)
