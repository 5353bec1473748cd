# SPDX-License-Identifier: Apache-2.0
"""Communicators of a script that uses MPI through mpi4py. The ranks of a communicator find each
other by messages over it; after that, hvd uses its own transports.

This module never imports mpi4py, because the import would start MPI. A script that has a
communicator has imported it already.
"""

import collections
import importlib.util
import os
import sys
import time

from horovod.common.stores import Place, is_elastic, start_timeout

# The tag of hvd's messages; every MPI supports it. hvd does not receive the script's messages,
# which have other tags.
_TAG = 32749


def is_installed():
    """Whether scripts can use MPI with this Python."""
    return importlib.util.find_spec('mpi4py') is not None


def _module():
    return sys.modules.get('mpi4py.MPI')


def is_communicator(thing):
    """Whether the argument is a communicator of mpi4py."""
    module = _module()
    return module is not None and isinstance(thing, module.Comm)


def _launched(world):
    """The number of ranks that a launcher of hvd started, or world.size if another launcher started
    them."""
    launched = os.environ.get('HOROVOD_SIZE')
    return int(launched) if os.environ.get('HVD_LAUNCH') and launched else world.size


def is_shared():
    """Whether the script has started MPI and MPI.COMM_WORLD has all ranks that were launched."""
    module = _module()
    return (module is not None and module.Is_initialized() and not module.Is_finalized()
            and _launched(module.COMM_WORLD) == module.COMM_WORLD.size)


def threads_supported():
    """Whether several threads may call MPI at the same time."""
    module = _module()
    return module.Query_thread() == module.THREAD_MULTIPLE


def place(communicator):
    """Returns the Place (store, rank, size) of this process for a job that consists of all ranks of
    the communicator. ValueError if the communicator cannot be used."""
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
    """Returns the Place (store, rank, size) of this process for a job of these ranks of
    MPI.COMM_WORLD ([]: all of them). Returns None if the script has not started MPI with several
    ranks, if this thread may not call MPI, or if the job is elastic.

    If the script has started MPI, the ranks find each other by MPI, not by PMIx. MPI is already
    this rank's client of the PMIx server, and libhvd's helper process would be a second one. With
    Open MPI 4.1 and libpmix 4.2, a rank with two clients sometimes does not terminate.
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
    """Raises ValueError for a list of ranks that hvd_init_ranks would reject."""
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
    """Returns the ranks that the members of a communicator have in the communicator ``other``.
    ValueError if a member is not in ``other``."""
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
    """The messages that have arrived over a communicator, including those for a later start of hvd.
    The mailbox is an attribute of the communicator. A table by communicator handles would not do:
    MPI may reuse a handle for another communicator."""

    _key = None  # MPI's key of this attribute

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
    """A store through which some ranks of a communicator exchange their records at the start
    (pmix_boot/modex_store.c). Each value is sent only to the ranks that will read it, and each of
    them reads it once: all ranks send their records to the first rank, and the first rank sends the
    combined record to the others."""

    def __init__(self, communicator, ranks):
        self._communicator = communicator
        self._ranks = tuple(ranks)
        self._mailbox = _Mailbox.of(communicator)

    def add(self, key, number):
        """Adds to a counter, by which these ranks number their starts of hvd; returns its new
        value."""
        self._mailbox.starts[self._ranks, key] += number
        return self._mailbox.starts[self._ranks, key]

    def set(self, key, value):
        """Sends the value and waits until MPI has completed the sends, because MPI may make no
        progress after that, when the script does not call it. TimeoutError after the start
        timeout."""
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
                raise TimeoutError(f'the other ranks of {self._communicator.name} do not '
                                   f'receive the messages of rank {rank}')
            self._receive()
            time.sleep(0.001)

    def check(self, keys):
        """Whether all of these values have arrived."""
        self._receive()
        return all((self._ranks, key) in self._mailbox.values for key in keys)

    def get(self, key):
        """Removes and returns a value that has arrived."""
        return self._mailbox.values.pop((self._ranks, key))

    def _receive(self):
        while self._communicator.iprobe(tag=_TAG):
            key, value = self._communicator.recv(tag=_TAG)
            self._mailbox.values[key] = value
