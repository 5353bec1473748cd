# SPDX-License-Identifier: Apache-2.0
"""The digits example, run by an engine's ranks and by hvdrun's."""

import json
import os

import launch

SCRIPT = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'digits', 'train.py')
OPTIONS = ('--float64', '--epochs', '2')


def losses_of(log):
    """Returns the loss of each epoch. Rank 0 has written them."""
    with open(log) as file:
        return [json.loads(line)['loss'] for line in file]


def losses_of_hvdrun(ranks, directory):
    log = os.path.join(directory, 'hvdrun')
    status, output = launch.run_ranks(ranks, [SCRIPT, *OPTIONS, '--log', log])
    assert status == 0, output
    return losses_of(log)


def function(log):
    """Returns a function that trains, for a rank of an engine. It is pickled with its variables,
    because ranks cannot import this module."""
    arguments = [SCRIPT, *OPTIONS, '--log', log]

    def train():
        import runpy
        import sys
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name='__main__')
    return train
