# SPDX-License-Identifier: Apache-2.0
"""A rank of exit_code_test.sh: exit_code.py HOW [CODE]

Rank 1 ends in the middle of the job: HOW is exit (with 7), raise, kill (signal 9) or leave (exit with 0). The other
ranks get an exception. If CODE is given they catch it and exit with CODE, otherwise the exception ends them. The
interpreter takes a while to exit, as with a large framework.
"""

import atexit
import os
import signal
import sys
import time

atexit.register(time.sleep, 0.3)  # runs after horovod's handler

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
