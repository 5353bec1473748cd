# SPDX-License-Identifier: Apache-2.0
"""The program that makes the table of real trainings, with Debian's PyTorch and with a framework
that is not available. Prints TAP."""

import os
import re
import subprocess
import sys

import real_runs
from report import run_check

ROW = re.compile(r'^\| torch [\d.]+\S* +\| - +\| 3\.\d+\.\d+ +\| digits/train.py +\| (\d) +'
                 r'\| (\d\.\d{4}) +\| (0\.\d{4}) +\|$', re.MULTILINE)


def run(*arguments, **variables):
    """Runs the program; returns its exit status, its output, and the output with stderr."""
    build = os.path.dirname(os.path.dirname(os.environ['HVD_LIBRARY']))
    done = subprocess.run([sys.executable, real_runs.__file__, build, *arguments],
                          env=dict(os.environ, **variables), capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stdout + done.stderr


def check(report):
    status, output, text = run('--only', 'torch-debian', '--ranks', '1,2', '--epochs', '1')
    rows = ROW.findall(output)
    report.line(status == 0 and [row[0] for row in rows] == ['1', '2'],
                'the table has a row for each number of ranks', text)
    report.line(len(rows) == 2 and all(0 < float(loss) < 2.5 and float(accuracy) > 0.3
                                       for _, loss, accuracy in rows),
                'losses and accuracies show that the network has begun to learn', text)
    # The environment cannot be created, because /dev/null is not a folder.
    status, output, text = run('--only', 'mxnet', XDG_CACHE_HOME='/dev/null')
    report.line(status == 0 and re.search(r'^Missing: mxnet: .*/dev/null.*$', output, re.MULTILINE)
                and not ROW.search(output), 'a missing framework is named with the reason', text)


if __name__ == '__main__':
    run_check(check, 2, 'torch, sklearn')
