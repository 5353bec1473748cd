# SPDX-License-Identifier: Apache-2.0
"""The numbers of this process in the job, between init and shutdown, and whether the process is a
forked child of a rank.

A forked child, such as a DataLoader's worker, has a copy of the parent's memory but none of its
threads. It may read its rank. It must neither communicate nor free what the parent owns.
"""

import os
from typing import NamedTuple

from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import NOT_INITIALIZED, lib

_FORKED = ('this process was forked after hvd.init(), so it is not a rank of the job: '
           'communicate in the parent only, or fork before hvd.init()')


class Numbers(NamedTuple):
    """The numbers of this rank, from libhvd."""
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    is_homogeneous: bool


_numbers = None
_inherited = False


def begin():
    """Stores the numbers after init has succeeded."""
    global _numbers
    _numbers = Numbers(lib.hvd_rank(), lib.hvd_size(), lib.hvd_local_rank(),
                       lib.hvd_local_size(), lib.hvd_cross_rank(), lib.hvd_cross_size(),
                       lib.hvd_is_homogeneous() == 1)


def end():
    """Forgets the numbers at shutdown."""
    global _numbers
    _numbers = None


def exists():
    """Whether this process is a rank, or was forked from one."""
    return _numbers is not None


def numbers():
    """Returns the numbers. ValueError before init."""
    if _numbers is None:
        raise ValueError(NOT_INITIALIZED)
    return _numbers


def is_inherited():
    """Whether this process was forked from a rank."""
    return _inherited


def must_be_own():
    """Raises HorovodInternalError in a process that was forked from a rank."""
    if _inherited:
        raise HorovodInternalError(_FORKED)


def must_be_rank():
    """Raises ValueError before init, and HorovodInternalError in a process that was forked from a
    rank."""
    numbers()
    must_be_own()


def _note_fork():
    global _inherited
    _inherited = _inherited or _numbers is not None


os.register_at_fork(after_in_child=_note_fork)
