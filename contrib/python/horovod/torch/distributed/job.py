# SPDX-License-Identifier: Apache-2.0
"""Joins hvd's job when the default process group is made, and leaves it when that is destroyed."""

import atexit
import os

from horovod.common import membership
from horovod.common.basics import basics, end_script

# A function that waits for all ranks of the job, if this module has joined it. None: there is no
# job, or the script has called hvd.init() and will call hvd.shutdown() itself.
_meet = None


def _is_launched(rank, size):
    """Whether srun --hvd or hvdrun gave this process the same rank and size as torch.distributed.
    Then it needs no store to find the other ranks."""
    return (os.environ.get('HOROVOD_RANK') == str(rank)
            and os.environ.get('HOROVOD_SIZE') == str(size))


def join(store, rank, size, meet):
    """Makes this process rank ``rank`` of ``size``. Returns False if the script has joined the job
    already. ``meet``: a function that waits until all ranks have called it. ValueError if this
    process has another rank or size already."""
    global _meet
    if _meet is not None:  # torch before 2.1 does not tell a backend that its group was destroyed
        leave()
    if basics.is_initialized():
        if (basics.rank(), basics.size()) != (rank, size):
            raise ValueError(
                f'init_process_group("hvd") is for rank {rank} of {size}, but hvd.init() made this '
                f'process rank {basics.rank()} of {basics.size()}: call init_process_group first, '
                'or with the same rank and world_size')
        return False
    if _is_launched(rank, size):
        basics.init()
    else:
        basics.init(store=store, rank=rank, size=size)
    _meet = meet
    return True


def leave(at_once=False):
    """Leaves the job if ``join`` has joined it. The first rank to leave ends the job for all ranks,
    and some may still communicate. So all ranks wait for each other first, unless ``at_once``
    says that this rank cannot go on."""
    global _meet
    if _meet is None:
        return
    meet, _meet = _meet, None
    if membership.is_inherited():
        return
    try:
        if not at_once:
            meet()
    except RuntimeError:
        pass  # a rank has died or left, so the job is over
    finally:
        basics.shutdown()


_endings = []


def at_end(function):
    """Registers a function to call when Python ends, after this rank has left the job."""
    _endings.append(function)


def not_at_end(function):
    """Undoes at_end()."""
    if function in _endings:
        _endings.remove(function)


@atexit.register
def _end_script():
    """Leaves the job at once if the script ends without destroy_process_group: ranks that wait for
    this one get an error that says so."""
    global _meet
    _meet = None
    end_script()
    for each in list(_endings):
        each()
