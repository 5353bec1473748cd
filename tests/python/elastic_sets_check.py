# SPDX-License-Identifier: Apache-2.0
"""Process sets of an elastic job under hvdrun in which slot 1 of three dies and comes back:
elastic_sets_check.py FRONT_END. Prints TAP; starts its ranks itself."""

import os
import re
import sys

import launch
from report import run_check

JOB = os.path.join(launch.HERE, 'elastic_sets_job.py')
LINE = re.compile(r'^(\d) slot (\d) (\w+): (.*)$', re.MULTILINE)
NONE_LEFT = ('Allgather: all processes of the process set [1] have left this elastic job, which has {} '
             'ranks: ask included() before you use the set')

# {generation: {set: {slot: the slots that it finds in the set}}}. In the last generation, the ranks
# are the slots 0, 2, 1 in this order.
EXPECTED = {
    0: {'pair': {1: '[1, 2]', 2: '[1, 2]'}, 'ends': {0: '[0, 2]', 2: '[0, 2]'},
        'alone': {1: '[1]'}, 'train': {0: '[0]'}},
    1: {'pair': {2: '[2]'}, 'ends': {0: '[0, 2]', 2: '[0, 2]'},
        'alone': dict.fromkeys((0, 2), NONE_LEFT.format(2)), 'train': {0: '[0]'}},
    2: {'pair': {1: '[2, 1]', 2: '[2, 1]'}, 'ends': dict.fromkeys((0, 1, 2), '[0, 2, 1]'),
        'alone': dict.fromkeys((0, 1, 2), NONE_LEFT.format(3)), 'train': {0: '[0]'}},
}
PROMISES = {
    0: 'process sets have their ranks',
    1: 'after a rank has died, process sets have the ranks that are left',
    2: 'a rank that comes back is in the sets that have its number',
}


def check(report):
    directory = report.directory
    status, output = launch.run_ranks(
        3, [JOB, sys.argv[1], directory],
        options=['--min-np', '1', '--blacklist-cooldown-range', '1', '2'])
    told = {}
    for generation, slot, name, answer in LINE.findall(output):
        told.setdefault(int(generation), {}).setdefault(name, {})[int(slot)] = answer
    for generation, promise in PROMISES.items():
        report.line(told.get(generation) == EXPECTED[generation], promise, output)
    report.line(status == 0, 'the job ends without an error', output)


if __name__ == '__main__':
    run_check(check, 3, with_hvdrun=True)
