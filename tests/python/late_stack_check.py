# SPDX-License-Identifier: Apache-2.0
"""The warning of a late rank shows the line of the script, although the rank is deep in packages. Needs no framework.
Prints TAP; starts its ranks itself."""

import os
import re
import tempfile

import launch
from report import run_check

SCRIPT = '''
import sys
sys.path.insert(0, {place!r})
import deep
import horovod.common.basics as hvd
from horovod.common.objects import allgather_object

def load():
    deep.dive(9)

hvd.init()
if hvd.rank() == 1:
    load()
allgather_object(None)
'''
PACKAGE = '''
import time

def dive(depth):
    if depth > 0:
        dive(depth - 1)
    else:
        time.sleep(600)
'''


def check(report):
    with tempfile.TemporaryDirectory() as directory:
        place = os.path.join(directory, 'site-packages')
        os.mkdir(place)
        with open(os.path.join(place, 'deep.py'), 'w') as file:
            file.write(PACKAGE)
        folder = os.path.join(directory, 'horovod')  # where scripts may be, too
        os.mkdir(folder)
        script = os.path.join(folder, 'train.py')
        with open(script, 'w') as file:
            file.write(SCRIPT.format(place=place))
        # The job ends by itself, because nobody may wait for the late rank longer than that.
        _, output = launch.run_ranks(2, [script], HOROVOD_STALL_CHECK_TIME_SECONDS='1',
                                     HOROVOD_STALL_SHUTDOWN_TIME_SECONDS='5')
    stack = re.search(r'rank 1 on .* holds others up; its stack:\n((?:  .*\n)+)', output)
    lines = stack.group(1).splitlines() if stack else []
    report.line(sum('deep.py' in line for line in lines) == 6, 'the innermost lines are shown', output)
    report.line([line for line in lines if 'train.py' in line] == [f'  File "{script}", line 9 in load'],
                'and the line of the script that led there', output)


if __name__ == '__main__':
    run_check(check, 2, 'json')
