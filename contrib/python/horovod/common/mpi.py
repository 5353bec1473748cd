# SPDX-License-Identifier: Apache-2.0
"""The script's own MPI, if it uses one. hvd accepts its communicators: the ranks of one find each
other by messages of it. Everything after that is hvd's own.

mpi4py is never imported here, which would start MPI: a script that has a communicator has imported
it.
"""

import collections
import importlib.util
import os
import sys
import time

from horovod.common.stores import Place, is_elastic, start_timeout

# Every MPI has it. Messages of the script that have another one are never taken.
_TAG = 32749


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


def place(communicator):
    """The Place of this process in a communicator, whose members alone start by it."""
    module = _module()
    if communicator == module.COMM_NULL:
        raise ValueError('the communicator is MPI.COMM_NULL on this rank')
    if communicator.Is_inter():
        raise ValueError(f'{communicator.name} joins two groups: expected an intracommunicator')
    world = module.COMM_WORLD
    launched = _launched(world)
    if launched != world.size:
        raise ValueError(
            f'MPI.COMM_WORLD has {world.size} ranks, but {launched} were launched: this MPI does '
            'not know the launcher; start the script with mpirun, or with srun --hvd')
    return _place_among(communicator, range(communicator.size))


def place_in_world(ranks):
    """The Place of this process among these ranks of MPI.COMM_WORLD, [] for all of them. None: the
    script has no MPI that knows of other ranks.

    The server of PMIx serves MPI then, and is left alone: libhvd's helper would be a second client
    of the rank there. With Open MPI 4.1 and libpmix 4.2, now and then, a rank does not end then.
    """
    if not is_shared() or is_elastic():
        return None
    module = _module()
    world = module.COMM_WORLD
    if world.size == 1 or not (module.Is_thread_main() or threads_supported()):
        return None
    _check_list(ranks, world)
    return _place_among(world, ranks or range(world.size))


def _check_list(ranks, world):
    """Refuses what libhvd refuses of a list."""
    for rank in ranks:
        if not 0 <= rank < world.size:
            raise ValueError(f'hvd.init() failed: there is no rank {rank}: MPI.COMM_WORLD has '
                             f'{world.size} ranks')
        if ranks.count(rank) > 1:
            raise ValueError(f'hvd.init() failed: rank {rank} is in the list of ranks twice')
    if ranks and world.rank not in ranks:
        raise ValueError(f'hvd.init() failed: rank {world.rank} is not in the list of {len(ranks)} '
                         'ranks that it passed to init: only the ranks in the list may call init '
                         'with it')


def _place_among(communicator, ranks):
    return Place(_Messages(communicator, ranks), ranks.index(communicator.rank), len(ranks))


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


class _Mailbox:
    """What a communicator keeps of all starts by its ranks, whose messages may come early."""

    _key = None  # of the attribute: the number of a communicator may come to be that of another

    def __init__(self):
        self.starts = collections.Counter()
        self.values = {}

    @classmethod
    def of(cls, communicator):
        if cls._key is None:
            cls._key = _module().Comm.Create_keyval()
        mailbox = communicator.Get_attr(cls._key)
        if mailbox is None:
            mailbox = cls()
            communicator.Set_attr(cls._key, mailbox)
        return mailbox


class _Messages:
    """The store of a start by some ranks of a communicator. Each value goes to those who ask for it,
    see pmix_boot/modex_store.c, and is there for them once: the records of all others go to the
    first rank, and what that makes of them to the others."""

    def __init__(self, communicator, ranks):
        self._communicator = communicator
        self._ranks = tuple(ranks)
        self._mailbox = _Mailbox.of(communicator)

    def add(self, key, number):
        """Counts the starts by these ranks."""
        self._mailbox.starts[self._ranks, key] += number
        return self._mailbox.starts[self._ranks, key]

    def set(self, key, value):
        """Returns when MPI has taken the value, because it may do nothing after the start."""
        rank, first = self._communicator.rank, self._ranks[0]
        if rank != first:
            receivers = [first]
        else:
            receivers = self._ranks[1:] if key.endswith('.all') else []
        message = ((self._ranks, key), value)
        sent = [self._communicator.isend(message, each, _TAG) for each in receivers]
        deadline = time.monotonic() + start_timeout().total_seconds()
        while not _module().Request.testall(sent)[0]:
            if time.monotonic() > deadline:
                raise TimeoutError(f'no rank takes what rank {rank} of '
                                   f'{self._communicator.name} sends')
            self._receive()
            time.sleep(0.001)

    def check(self, keys):
        """Whether all of these values have come."""
        self._receive()
        return all((self._ranks, key) in self._mailbox.values for key in keys)

    def get(self, key):
        """A value that has come."""
        return self._mailbox.values.pop((self._ranks, key))

    def _receive(self):
        while self._communicator.iprobe(tag=_TAG):
            key, value = self._communicator.recv(tag=_TAG)
            self._mailbox.values[key] = value
