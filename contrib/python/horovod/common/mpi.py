# SPDX-License-Identifier: Apache-2.0
"""The script's own MPI, if it uses one. hvd does not communicate by MPI, but accepts its
communicators.

mpi4py is never imported here, which would start MPI: a script that has a communicator has imported
it.
"""

import importlib.util
import os
import sys


def is_installed():
    """Whether scripts can use MPI with this Python."""
    return importlib.util.find_spec('mpi4py') is not None


def _module():
    return sys.modules.get('mpi4py.MPI')


def is_communicator(thing):
    """Whether it is a communicator of mpi4py."""
    module = _module()
    return module is not None and isinstance(thing, module.Comm)


def _launched(world):
    """How many ranks were launched; world.size where only MPI knows."""
    launched = os.environ.get('HOROVOD_SIZE')
    return int(launched) if os.environ.get('HVD_LAUNCH') and launched else world.size


def is_shared():
    """Whether the script has started MPI, and its world is the ranks that were launched."""
    module = _module()
    return (module is not None and module.Is_initialized() and not module.Is_finalized()
            and _launched(module.COMM_WORLD) == module.COMM_WORLD.size)


def threads_supported():
    """Whether any thread may call the MPI that is running at any time."""
    module = _module()
    return module.Query_thread() == module.THREAD_MULTIPLE


def world_ranks(communicator):
    """The launcher's numbers of a communicator's members, in the communicator's order."""
    world = _module().COMM_WORLD
    launched = _launched(world)
    if launched != world.size:
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
