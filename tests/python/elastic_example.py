# SPDX-License-Identifier: Apache-2.0
"""Runs the elastic examples, and kills ranks of them."""

import os
import re
import signal
import subprocess

import launch

EXAMPLES = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'elastic')
EPOCHS = '14'


def child_of(process, slot):
    """The process of a slot."""
    children = open(f'/proc/{process.pid}/task/{process.pid}/children').read().split()
    for child in map(int, children):
        with open(f'/proc/{child}/environ') as environment:
            if f'HOROVOD_RANK={slot}' in environment.read().split('\0'):
                return child
    raise ProcessLookupError(f'no slot {slot}')


def train_example(script, ranks, kills):
    """The example on so many slots; kills: {epoch: slot to kill after it}. Returns the last epoch's
    accuracy (None: it did not get there), how many ranks it had, and the output."""
    elastic = ['--min-np', '1'] if ranks > 1 else []
    process = subprocess.Popen(
        [*launch.launcher(ranks), *elastic, *launch.sanitizer(), launch.PYTHON,
         os.path.join(EXAMPLES, script), '--epochs', EPOCHS], env=launch.environment(ranks),
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, last = '', None
    for line in process.stdout:
        output += line
        match = re.match(r'epoch +(\d+)  accuracy ([\d.]+)  (\d) ranks', line)
        if match and int(match[1]) in kills:
            os.kill(child_of(process, kills.pop(int(match[1]))), signal.SIGKILL)
        if match and match[1] == EPOCHS:
            last = float(match[2]), int(match[3])
    status = process.wait()
    accuracy, ranks = last if last and status == 0 else (None, None)
    return accuracy, ranks, f'exit status {status}\n{output}'
