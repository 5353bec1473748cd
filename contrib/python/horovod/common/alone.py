# SPDX-License-Identifier: Apache-2.0
"""Warns at the end of a job in which each rank has trained for itself, because the script never
averages gradients.

A script that only evaluates gets no warning: front ends report steps of the framework's own
optimizers, too.
"""

import contextlib
import datetime
import os
import sys

from horovod.common import membership


class _Job:
    """has_trained: an optimizer has changed parameters. has_shared: this rank has started a
    collective other than a broadcast or a barrier, or uses another library for them."""

    has_trained = False
    has_shared = False


def trained(shares):
    """Notes the step of an optimizer. ``shares()``: whether the ranks can average by other means
    than hvd; called at the first step only."""
    if not _Job.has_trained:
        _Job.has_trained = True
        _Job.has_shared = _Job.has_shared or shares() or 'mpi4py.MPI' in sys.modules


def shared():
    """Notes a collective."""
    _Job.has_shared = True


@contextlib.contextmanager
def checks():
    """Begins a block whose collectives do not count, because hvd starts them for a check."""
    has_shared = _Job.has_shared
    try:
        yield
    finally:
        _Job.has_shared = has_shared


def _warn(text):
    """Prints a warning of rank 0, in the form of the log of libhvd."""
    if os.environ.get('HOROVOD_LOG_LEVEL', '').lower() in ('error', 'fatal'):
        return
    hides_time = os.environ.get('HOROVOD_LOG_HIDE_TIME', '0').lower() in ('1', 'true', 'yes', 'on')
    begin = 'hvd: ' if hides_time else f'[{datetime.datetime.now():%Y-%m-%d %H:%M:%S.%f}: W hvd rank 0] '
    print(begin + text, file=sys.stderr, flush=True)


def warn_if_alone():
    """Warns on rank 0 if the ranks have trained and shared nothing. To be called before a job ends
    without an error; the next job begins anew."""
    is_alone = _Job.has_trained and not _Job.has_shared
    _Job.has_trained = _Job.has_shared = False
    if not is_alone or not membership.exists() or os.environ.get('HVD_CHECK_AVERAGING') == '0':
        return
    numbers = membership.numbers()
    if numbers.rank == 0 and numbers.size > 1:
        _warn(f'this job of {numbers.size} ranks has averaged nothing, so each rank has trained '
              'alone: wrap the optimizer in hvd.DistributedOptimizer(...). '
              'HVD_CHECK_AVERAGING=0 turns this check off.')
