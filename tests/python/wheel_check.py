# SPDX-License-Identifier: Apache-2.0
"""The wheel: pip builds it from contrib/python and installs it in a virtual environment, where two
ranks use it. Prints TAP."""

import os
import subprocess
import sys
import tempfile

import launch
from report import Report

PYTHON = '/usr/bin/python3'  # the virtual environment of the wheel sees this Python's torch
TOOLS = ['wheel', 'meson', 'ninja']
USE = '''
import importlib.metadata, horovod, torch, hvd.torch as hvd
hvd.init()
total = hvd.allreduce(torch.tensor([hvd.rank() + 1]), op=hvd.Sum).item()
print(horovod.__file__, importlib.metadata.version('horovod'), hvd.size(), total, sep='|')
'''

OPERATIONS = '''
import ctypes, os, horovod
from horovod.common import library
for name in ('tensorflow', 'mxnet'):
    ctypes.CDLL(library.companion(f'{os.path.dirname(horovod.__file__)}/{name}/native.py', name,
                                  f'hvd_{name}.so'))
'''


def clean_environment():
    """Returns the environment without variables that would lead to this source tree."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(('HVD_', 'PYTHONPATH', 'PIP_NO_', 'VIRTUAL_ENV'))}


def run(*command):
    """Runs a command; returns (exit status, output)."""
    result = subprocess.run(command, env=clean_environment(), text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd='/')
    return result.returncode, result.stdout


def reason_to_skip(environment):
    if launch.PYTHON != PYTHON:
        return f'tested with {PYTHON} only: the wheel is the same for all'
    if run(PYTHON, '-c', 'import torch')[0] != 0:
        return f'{PYTHON} has no torch: apt-get install python3-torch'
    status, output = run(PYTHON, '-m', 'venv', '--system-site-packages', environment)
    if status != 0:
        return 'no virtual environment: apt-get install python3-venv'
    status, output = run(f'{environment}/bin/python', '-m', 'pip', 'install', '--quiet',
                         '--disable-pip-version-check', '--retries', '2', *TOOLS)
    return f'pip cannot have {" ".join(TOOLS)}: {output.splitlines()[-1]}' if status else None


def check(report, environment):
    python = f'{environment}/bin/python'
    status, output = run(python, '-m', 'pip', 'install', '--quiet', '--no-build-isolation',
                         '--disable-pip-version-check', '--no-deps', launch.PACKAGE)
    report.line(status == 0, 'pip installs contrib/python', output)
    if status != 0:
        return
    status, output = run(f'{environment}/bin/horovodrun', '-np', '2', python, '-c', USE)
    lines = [line.split('|') for line in output.splitlines() if '|' in line]
    report.line(status == 0 and [line[2:] for line in lines] == [['2', '3']] * 2,
                'two ranks of the installed package communicate', output)
    report.line(all(line[0].startswith(environment) for line in lines),
                'the ranks use the package of the environment', output)
    report.line(all(line[1].startswith('0.28.1+hvd.') for line in lines),
                'its version names the interface and hvd', output)
    status, output = run('/usr/bin/env', f'PATH={environment}/bin:{os.environ["PATH"]}',
                         'horovodrun', '--check-build')
    expected = (f'Python: {environment}/bin/python\n', '[X] PyTorch\n', '[X] NCCL\n',
                '[X] hvd UCX, between nodes\n')
    report.line(all(text in output for text in expected),
                'horovodrun --check-build lists the features', output)
    status, output = run(python, '-c', 'import horovod\n'
                         'print(horovod.run(lambda number: number + 1, (1,), num_proc=2))')
    report.line(output == '[2, 2]\n', 'horovod.run finds the hvdrun of the wheel', output)
    status, output = run(f'{environment}/bin/hvd-info', f'--python={python}')
    report.line(status == 0 and '/horovod, hvd\'s, installed by hvd ' in output,
                'hvd-info --python names the wheel as the distribution', output)
    status, output = run(python, '-c', OPERATIONS)
    report.line(status == 0, 'the wheel has the operations of TensorFlow and MXNet', output)


def main():
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as directory:
        environment = os.path.join(os.path.realpath(directory), 'environment')
        reason = reason_to_skip(environment)
        if reason:
            print(f'1..0 # SKIP {reason}')
            return 0
        report = Report()
        check(report, environment)
    return report.done()


if __name__ == '__main__':
    sys.exit(main())
