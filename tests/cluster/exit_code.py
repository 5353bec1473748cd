# SPDX-License-Identifier: Apache-2.0
"""A rank of exit_code_test.sh: exit_code.py HOW [CODE]

Rank 1 leaves the job in its midst: HOW exit (7), raise, kill (-9) or leave (0). The others return CODE
themselves when they are told; else the exception ends them. As with a large framework, the
interpreter takes a while to end.
"""

import atexit
import os
import signal
import sys
import time

atexit.register(time.sleep, 0.3)  # after horovod's

from horovod.common.basics import basics  # noqa: E402
from horovod.common.exceptions import HorovodInternalError  # noqa: E402
from horovod.common.objects import allgather_object  # noqa: E402

ENDS = {'exit': lambda: sys.exit(7), 'leave': lambda: os._exit(0),
        'kill': lambda: os.kill(os.getpid(), signal.SIGKILL)}


def fail(how):
    if how == 'raise':
        raise ValueError('boom')
    ENDS[how]()


def train(how):
    basics.init()
    for step in range(100):
        if step == 5 and basics.rank() == 1:
            fail(how)
        allgather_object(step)


try:
    train(sys.argv[1])
except HorovodInternalError:
    if len(sys.argv) == 2:
        raise
    sys.exit(int(sys.argv[2]))
