# SPDX-License-Identifier: Apache-2.0
"""The job that the default process group stands for: joined with it, left with it."""

import atexit
import os

from horovod.common import membership
from horovod.common.basics import basics, end_script

# Of a job that this module has joined, the function that waits for all of its ranks; None: there is
# no such job, or the script has called hvd.init() itself and calls hvd.shutdown().
_meet = None


def _is_launched(rank, size):
    """Whether srun --hvd or hvdrun gave this process the numbers that torch.distributed has for it,
    so that it needs no store to find the others."""
    return (os.environ.get('HOROVOD_RANK') == str(rank)
            and os.environ.get('HOROVOD_SIZE') == str(size))


def join(store, rank, size, meet):
    """Makes this process rank ``rank`` of ``size``; returns whether it was no rank before. ``meet``
    waits until all ranks have called it. ValueError if it is another rank already."""
    global _meet
    if _meet is not None:  # torch before 2.1 does not tell a backend that its group is destroyed
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
    """Leaves the job if ``join`` has joined it. That ends it for all ranks, some of which may still
    communicate among each other: so all ranks meet first, unless this one cannot go on."""
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
        pass  # a rank has died or left: the job is over
    finally:
        basics.shutdown()


_endings = []


def at_end(function):
    """To be called when Python ends, after the job has been left."""
    _endings.append(function)


def not_at_end(function):
    if function in _endings:
        _endings.remove(function)


@atexit.register
def _end_script():
    """A script that ends without destroy_process_group leaves at once: ranks that wait for it are
    told so."""
    global _meet
    _meet = None
    end_script()
    for each in list(_endings):
        each()
