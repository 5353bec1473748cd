# SPDX-License-Identifier: Apache-2.0
"""Runs the elastic examples and kills some of their ranks."""

import fcntl
import os
import re
import signal
import subprocess
import tempfile

import launch

EXAMPLES = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'elastic')
EPOCHS = '14'


def child_of(process, slot):
    """Returns the pid of the rank in a slot."""
    children = open(f'/proc/{process.pid}/task/{process.pid}/children').read().split()
    for child in map(int, children):
        with open(f'/proc/{child}/environ') as environment:
            if f'HOROVOD_RANK={slot}' in environment.read().split('\0'):
                return child
    raise ProcessLookupError(f'no slot {slot}')


class Gates:
    """A locked file for each epoch after which a slot is killed. The rank that prints the line of
    the epoch then waits for the lock, so that the training continues only after the kill."""

    def __init__(self, directory, epochs):
        self.directory = directory
        self._files = {}
        for epoch in epochs:
            self._files[epoch] = open(os.path.join(directory, str(epoch)), 'w')
            fcntl.flock(self._files[epoch], fcntl.LOCK_EX)

    def open(self, epoch):
        self._files.pop(epoch).close()


# Runs the example in a rank, with a print() that waits for the lock of an epoch after its line.
RANK = '''
import builtins, fcntl, os, re, runpy, sys
directory, *sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
write = print

def print_and_wait(*words, **options):
    write(*words, **options)
    match = re.match(r"epoch +(\\d+) ", " ".join(map(str, words)))
    gate = match and os.path.join(directory, match[1])
    if gate and os.path.exists(gate):
        with open(gate) as file:
            fcntl.flock(file, fcntl.LOCK_SH)

builtins.print = print_and_wait
runpy.run_path(sys.argv[0], run_name="__main__")
'''


def train_example(script, ranks, kills):
    """Runs the example on ``ranks`` slots. ``kills``: {epoch: slot to kill after it}. Returns the
    accuracy and the number of ranks in the last epoch (both None if the training failed), and the
    output."""
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as directory:
        return _train(script, ranks, kills, Gates(directory, kills))


def _train(script, ranks, kills, gates):
    elastic = ['--min-np', '1'] if ranks > 1 else []
    process = subprocess.Popen(
        [*launch.launcher(ranks), *elastic, *launch.sanitizer(), launch.PYTHON, '-c', RANK,
         gates.directory, os.path.join(EXAMPLES, script), '--epochs', EPOCHS],
        env=launch.environment(ranks), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, last, kills = '', None, dict(kills)
    for line in process.stdout:
        output += line
        match = re.match(r'epoch +(\d+)  accuracy ([\d.]+)  (\d) ranks? on \d nodes?', line)
        if match and int(match[1]) in kills:
            os.kill(child_of(process, kills.pop(int(match[1]))), signal.SIGKILL)
            gates.open(int(match[1]))
        if match and match[1] == EPOCHS:
            last = float(match[2]), int(match[3])
    status = process.wait()
    accuracy, ranks = last if last and status == 0 else (None, None)
    return accuracy, ranks, f'exit status {status}\n{output}'
