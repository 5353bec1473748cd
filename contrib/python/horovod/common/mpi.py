# SPDX-License-Identifier: Apache-2.0
"""The script's own MPI, where it has one: hvd communicates without it, but takes communicators.

mpi4py is never imported here, which would start MPI: a script that has a communicator has imported
it.
"""

import os
import sys


def _module():
    return sys.modules.get('mpi4py.MPI')


def is_communicator(thing):
    """Whether it is a communicator of mpi4py."""
    module = _module()
    return module is not None and isinstance(thing, module.Comm)


def threads_supported():
    """Whether any thread may call MPI at any time; None where MPI is not running."""
    module = _module()
    if module is None or not module.Is_initialized() or module.Is_finalized():
        return None
    return module.Query_thread() == module.THREAD_MULTIPLE


def world_ranks(communicator):
    """The launcher's numbers of a communicator's members, in the communicator's order."""
    world = _module().COMM_WORLD
    launched = os.environ.get('HOROVOD_SIZE')
    if os.environ.get('HVD_LAUNCH') and launched and int(launched) != world.size:
        raise ValueError(
            f'MPI.COMM_WORLD has {world.size} ranks, but {launched} were launched: this MPI does '
            'not know the launcher; start the script with mpirun, or with srun --hvd')
    return ranks_within(communicator, world)


def ranks_within(communicator, other):
    """The numbers that the members of one communicator have in the other."""
    module = _module()
    if communicator == module.COMM_NULL:
        raise ValueError('the communicator is MPI.COMM_NULL on this rank')
    group = communicator.Get_group()
    ranks = module.Group.Translate_ranks(group, list(range(group.size)), other.Get_group())
    if module.UNDEFINED in ranks:
        raise ValueError(f'rank {ranks.index(module.UNDEFINED)} of {communicator.name} is not in '
                         f'{other.name}')
    return list(ranks)
