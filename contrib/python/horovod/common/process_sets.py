# SPDX-License-Identifier: Apache-2.0
"""Process sets: groups of ranks with collectives of their own.

libhvd has the table of sets, which is the same on all ranks; a ProcessSet that is registered knows
its number there.
"""

import operator
import os
import threading
import weakref
from ctypes import c_int

from horovod.common import membership, mpi, requests
from horovod.common.arguments import check_set
from horovod.common.exceptions import JobShutDownError
from horovod.common.library import SET_GLOBAL, lib

UNKNOWN_SET = 'Process set provided does not exist, or has not been registered.'

_known = weakref.WeakSet()  # every registered ProcessSet but the global one
_lock = threading.Lock()  # held while the table changes or is read
_is_dynamic = False


class ProcessSet:
    """Ranks of the job in any order, or an mpi4py communicator, for hvd.init() or
    hvd.add_process_set(). ``ranks`` is sorted; for a communicator it is None until the set is
    registered. ``process_set_id`` is None until then, too."""

    def __init__(self, ranks_or_comm):
        self.process_set_id = None
        self.ranks = None
        self.mpi_comm = None
        self._index = None
        if mpi.is_communicator(ranks_or_comm):
            self.mpi_comm = ranks_or_comm
        else:
            self.ranks = _sorted(ranks_or_comm)

    def size(self):
        """The number of ranks in the set; None until it is registered."""
        if self.process_set_id is None:
            return None
        membership.numbers()  # there must be some
        return len(self.ranks)

    def rank(self):
        """This process's index in the set, or None until the set is registered. ValueError if the
        process is not a member. The root of a broadcast is a rank of the job, not such an index."""
        if self.process_set_id is None:
            return None
        membership.numbers()
        if self._index is None:
            raise ValueError('Process is not part of provided process set.')
        return self._index

    def included(self):
        """Whether this process is a member; None if the ranks are not known yet."""
        return None if self.ranks is None else membership.numbers().rank in self.ranks

    def __deepcopy__(self, memo):
        """A copied model uses the same set, not a copy of it."""
        return self

    def _register(self, set_id, ranks):
        own = membership.numbers().rank
        self.ranks = ranks
        self._index = ranks.index(own) if own in ranks else None
        self.process_set_id = set_id

    def __repr__(self):
        return (f'ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, '
                f'mpi_comm={self.mpi_comm})')


def _sorted(ranks):
    try:
        return sorted(operator.index(rank) for rank in ranks)
    except TypeError:
        raise ValueError('ProcessSet should be initialized with a list of process ranks or an '
                         'mpi4py Comm object') from None


# All ranks of the job. Its ranks are filled in by init.
global_process_set = ProcessSet([])
global_process_set.process_set_id = SET_GLOBAL


def set_id(process_set, operation):
    """The set's number in libhvd. ValueError if it has none, or if this process is not a member and
    so cannot take part in the operation."""
    check_set(process_set)
    number = process_set.process_set_id
    if number is None:
        raise ValueError(f'{operation}: {UNKNOWN_SET}')
    if number != SET_GLOBAL and process_set._index is None:
        raise ValueError(f'{operation}: Rank {membership.numbers().rank} is not a member of the '
                         'provided process set.')
    return number


def registered():
    """{number: ranks} of the sets that the job has."""
    membership.must_be_rank()
    with _lock:
        return _table()


def _table():
    numbers = (c_int * lib.hvd_set_count())()
    lib.hvd_set_ids(numbers)
    return {number: _ranks_of(number) for number in numbers}


def _ranks_of(number):
    ranks = (c_int * lib.hvd_set_size(number))()
    lib.hvd_set_ranks(number, ranks)
    return list(ranks)


def add_process_set(process_set):
    """Registers a ProcessSet, or makes one from ranks, and returns it. All ranks of the job must
    call this together, including those that will not be members."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.ranks is None:
        raise NotImplementedError('a process set given as an MPI communicator can be registered '
                                  'by hvd.init() only: give add_process_set() a list of ranks')
    membership.must_be_rank()
    _must_be_dynamic('adding')
    with _lock:
        if process_set.ranks in _table().values():
            raise ValueError(f'Attempted to add a duplicate process set: {process_set}')
        process_set._register(_add(process_set.ranks), process_set.ranks)
        _known.add(process_set)
    return process_set


def remove_process_set(process_set):
    """Removes a set. All ranks of the job must call this together, after the set's collectives have
    ended. Returns False for the global set and for a set that is not registered."""
    check_set(process_set)
    number = process_set.process_set_id
    if number in (None, SET_GLOBAL):
        return False
    membership.must_be_rank()
    _must_be_dynamic('removing')
    with _lock:
        _run(requests.remove_set, number)
        _invalidate(number)
    return True


def _must_be_dynamic(doing):
    if not _is_dynamic:
        raise ValueError(f'Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow {doing} process sets after '
                         'Horovod initialization.')


def _add(ranks):
    size = membership.numbers().size
    if not ranks or len(set(ranks)) < len(ranks) or ranks[0] < 0 or ranks[-1] >= size:
        raise ValueError(f'a process set has one or more different ranks from 0 to {size - 1}, '
                         f'not {ranks}')
    return _run(requests.add_set, ranks)


def _run(start, argument):
    try:
        return requests.synchronize(requests.add(start(argument)))
    except JobShutDownError:
        raise ValueError('Horovod is shutting down.') from None


def _invalidate(number=None):
    """Called when the set with this number has been removed, or all sets (None)."""
    for each in list(_known):
        if number in (None, each.process_set_id):
            each.process_set_id = None
            _known.discard(each)


def listed(process_sets):
    """The argument of init as a list. For "dynamic", sets the environment variable that has the
    same meaning."""
    if isinstance(process_sets, str) and process_sets.lower() == 'dynamic':
        os.environ['HOROVOD_DYNAMIC_PROCESS_SETS'] = '1'
        return []
    try:
        result = [] if process_sets is None else list(process_sets)
    except TypeError:
        result = [None]
    if not all(isinstance(each, ProcessSet) for each in result):
        raise ValueError('process_sets must be a list of hvd.ProcessSet, or "dynamic", not '
                         f'{process_sets!r}')
    return result


def begin(wanted, communicator):
    """The job has begun: registers the sets that init was given. ``communicator`` is None or the
    one that the job's ranks are of."""
    global _is_dynamic
    setting = os.environ.get('HOROVOD_DYNAMIC_PROCESS_SETS', '').strip()
    _is_dynamic = setting.isdigit() and int(setting) > 0
    global_process_set._register(SET_GLOBAL, list(range(membership.numbers().size)))
    global_process_set.mpi_comm = communicator
    with _lock:
        known = [global_process_set.ranks]
        for ranks in _in_order(wanted, communicator):
            if ranks not in known:
                known.append(ranks)
                _add(ranks)


def _in_order(wanted, communicator):
    """The lists of ranks to register, in the same order on all ranks of the job. Communicators
    come first, as in Horovod: one that was split off is another set on each rank."""
    for each in wanted:
        if each.ranks is None:
            yield from communicator.allgather(_members(each, communicator))
    yield from (each.ranks for each in wanted if each.ranks is not None)


def _members(process_set, communicator):
    if process_set.ranks is not None:
        return process_set.ranks
    return sorted(mpi.ranks_within(process_set.mpi_comm, communicator))


def resolve(wanted, communicator):
    """Gives the sets their numbers. A set with the same ranks as an earlier one, or as the global
    one, gets no number: a ValueError names it, and the job continues, as in Horovod."""
    numbers = {tuple(ranks): number for number, ranks in registered().items()}
    seen, duplicates = {SET_GLOBAL}, []
    for index, each in enumerate(wanted):
        ranks = _members(each, communicator)
        number = numbers.get(tuple(ranks))
        if number is None:
            raise ValueError(f'{each} is not among the process sets of the first hvd.init(): use '
                             'hvd.add_process_set()')
        if number in seen:
            duplicates.append((index, each))
            continue
        seen.add(number)
        each._register(number, ranks)
        _known.add(each)
    for index, each in duplicates:
        raise ValueError('Horovod could not be initialized because process_sets entry number '
                         f'{index} is a duplicate: {each}')


def end():
    """Called when the job is over: its sets no longer exist."""
    _invalidate()
