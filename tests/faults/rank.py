# SPDX-License-Identifier: Apache-2.0
"""A rank of the fault table in Python, without any framework.

rank.py VICTIM PLACE HOW DELAY_US SECONDS
Does the same as rank.c. PLACE is boot, init, steps or objects (inside a collective); HOW is raise (ValueError),
os_exit (with 7) or sys_exit (with 0).
"""

import os
import signal
import sys
import time

from horovod.common.basics import basics
from horovod.common.exceptions import HorovodInternalError
from horovod.common.objects import allgather_object

EXIT_CODE = 7


def say(*words):
    print(*words, flush=True)


def fail(how):
    say('fault', os.environ['HOROVOD_RANK'], time.monotonic_ns(), os.getpid())
    if how == 'os_exit':
        os._exit(EXIT_CODE)
    if how == 'sys_exit':
        sys.exit(0)
    raise ValueError('boom')


def train(must_fail, how, delay, seconds):
    start = time.monotonic()
    more = True
    while more:
        if must_fail and time.monotonic() > start + delay:
            fail(how)
        more = allgather_object(time.monotonic() < start + seconds)[0]


def main():
    victim, place, how, delay_us, seconds = sys.argv[1:]
    delay = int(delay_us) / 1e6
    is_victim = os.environ['HOROVOD_RANK'] == victim
    if is_victim and place == 'boot':
        fail(how)
    if is_victim and place in ('init', 'objects'):
        signal.signal(signal.SIGALRM, lambda number, frame: fail(how))
    if is_victim and place == 'init':
        signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        basics.init()
        if not is_victim:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this rank must print its error first
        if is_victim and place == 'objects':
            signal.setitimer(signal.ITIMER_REAL, delay)
        train(is_victim and place == 'steps', how, delay, float(seconds))
    except HorovodInternalError as error:
        say('said', os.environ['HOROVOD_RANK'], time.monotonic_ns(), -1, error)
        sys.exit(3)
    basics.shutdown()
    say('done', os.environ['HOROVOD_RANK'], time.monotonic_ns())


main()
