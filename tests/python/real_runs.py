#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digits examples with each framework and prints the results as a table in Markdown:

    tests/python/real_runs.py BUILD [--ranks 1,4] [--epochs 8] [--only NAME ...]

BUILD is a build folder. The frameworks are Debian's PyTorch and those of PyPI, in environments that
tests/*_env.sh create if they are missing. Below the table the program lists the frameworks that are
not available, with the reasons. The exit status is 1 if a training failed; its output is on stderr.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import namedtuple

import launch

TESTS = os.path.dirname(launch.HERE)
EXAMPLES = os.path.join(TESTS, '..', 'contrib', 'examples')
NO_KERAS = '-'

# python: the path of the interpreter, or the command that prints it. module: the module of the
# framework. examples: {script: the environment variables that it needs}.
Framework = namedtuple('Framework', 'name python module examples')
Row = namedtuple('Row', 'framework keras python example ranks loss accuracy')

WITH_KERAS = {'KERAS_BACKEND': 'tensorflow', 'TF_CPP_MIN_LOG_LEVEL': '2'}
OF_TENSORFLOW = {'tensorflow/train.py': WITH_KERAS, 'keras/train.py': WITH_KERAS}
FRAMEWORKS = [
    Framework('torch-newest', ['torch_env.sh'], 'torch',
              {'digits/train.py': {}, 'keras/train.py': {'KERAS_BACKEND': 'torch'}}),
    Framework('torch-debian', '/usr/bin/python3', 'torch', {'digits/train.py': {}}),
    Framework('tensorflow-newest', ['tensorflow_env.sh'], 'tensorflow', OF_TENSORFLOW),
    Framework('tensorflow-2.15', ['tensorflow_env.sh', '2.15'], 'tensorflow', OF_TENSORFLOW),
    Framework('mxnet', ['mxnet_env.sh'], 'mxnet', {'mxnet/train.py': {}}),
]


class Missing(Exception):
    """The framework is not available; the text is the reason."""


def output_of(command, **variables):
    """Returns the last line that the command prints. Raises Missing if the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env=dict(os.environ, **variables))
    if done.returncode != 0:
        raise Missing((done.stderr.strip().splitlines() or ['it says nothing'])[-1])
    return done.stdout.strip().splitlines()[-1]


def find_python(framework):
    if isinstance(framework.python, str):
        return framework.python
    script, *arguments = framework.python
    return output_of([os.path.join(TESTS, script), *arguments])


def version(python, module, **variables):
    return output_of([python, '-c', f'import sklearn, {module}; print({module}.__version__)'],
                     **variables)


def train(python, script, ranks, epochs, variables):
    """Trains; returns the facts of the last epoch from the script's log. If the training fails,
    prints its output on stderr and returns None."""
    with tempfile.TemporaryDirectory(prefix='hvd-runs-') as directory:
        log = os.path.join(directory, 'log')
        status, output = launch.run_ranks(
            ranks, [os.path.join(EXAMPLES, script), '--epochs', str(epochs), '--log', log],
            python=python, **variables)
        if status == 0 and os.path.exists(log):
            return json.loads(open(log).readlines()[-1])
    print(f'{script} on {ranks} ranks with {python}: exit status {status}\n{output}',
          file=sys.stderr)
    return None


def rows_of(framework, all_ranks, epochs):
    """Yields a row for each example and number of ranks."""
    python = find_python(framework)
    name = f'{framework.module} {version(python, framework.module)}'
    for script, variables in framework.examples.items():
        keras = version(python, 'keras', **variables) if 'KERAS_BACKEND' in variables else NO_KERAS
        for ranks in all_ranks:
            facts = train(python, script, ranks, epochs, variables)
            yield Row(name, keras, output_of([python, '--version']).split()[-1], script, ranks,
                      *numbers(facts))


def numbers(facts):
    """Returns loss and accuracy as texts for a row."""
    if facts is None:
        return 'failed', 'failed'
    return f'{facts["loss"]:.4f}', f'{facts.get("val_accuracy", facts.get("accuracy")):.4f}'


def table(rows):
    """Returns the lines of a table in Markdown."""
    words = [list(map(str, row)) for row in rows]
    heads = ['framework', 'Keras', 'Python', 'example', 'ranks', 'loss', 'accuracy']
    widths = [max(map(len, column)) for column in zip(heads, *words)]
    lines = [heads, ['-' * width for width in widths], *words]
    return ['| ' + ' | '.join(map(str.ljust, line, widths)) + ' |' for line in lines]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', metavar='BUILD')
    parser.add_argument('--ranks', type=lambda text: [int(each) for each in text.split(',')],
                        default=[1, 4])
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--only', metavar='NAME', nargs='+', help='of: %(choices)s',
                        choices=[each.name for each in FRAMEWORKS])
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    build = os.path.abspath(arguments.build)
    os.environ['HVD_LIBRARY'] = os.path.join(build, 'collectives', 'libhvd.so')
    os.environ['HVD_TEST_LAUNCHER'] = os.path.join(build, 'pmix_boot', 'hvdrun', 'hvdrun')
    rows, missing = [], []
    for framework in FRAMEWORKS:
        if arguments.only and framework.name not in arguments.only:
            continue
        try:
            for row in rows_of(framework, arguments.ranks, arguments.epochs):
                print(*row, file=sys.stderr)
                rows.append(row)
        except Missing as reason:
            missing.append(f'Missing: {framework.name}: {reason}')
    print('\n'.join(table(rows)))
    if missing:
        print('', *missing, sep='\n')
    return 1 if any(row.loss == 'failed' for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
