# SPDX-License-Identifier: Apache-2.0
"""Process sets: groups of ranks with collectives of their own.

libhvd holds the table of sets, which is the same on all ranks. A registered ProcessSet knows its
number in that table.

In an elastic job the numbers of the ranks change, but a set keeps its processes: after a restart
each rank tells the others which sets it belongs to. The list of ranks that the set was made from
then only identifies the set. A new process becomes a member if its rank is in that list. A set
whose processes have all left has no number in libhvd. Two sets with the same remaining ranks share
one number.
"""

import operator
import os
import threading
import weakref
import zlib
from ctypes import addressof, c_int, c_int64

from horovod.common import membership, mpi, requests
from horovod.common.arguments import check_set
from horovod.common.exceptions import JobShutDownError
from horovod.common.library import DEVICE_CPU, DTYPES, SET_GLOBAL, lib

UNKNOWN_SET = 'Process set provided does not exist, or has not been registered.'

_MAX = 4  # the number of hvd.Max
_known = weakref.WeakSet()  # every registered ProcessSet except the global one
_made = {}  # all sets except the global one: {ranks as given: current ranks}; same on all ranks
_lock = threading.Lock()  # protects _known, _made and the table in libhvd
_is_dynamic = False


class ProcessSet:
    """A group of ranks with collectives of its own. Register it with hvd.init() or
    hvd.add_process_set(), then pass it to collectives as ``process_set``.

    ranks_or_comm: ranks of the job, in any order, or an mpi4py communicator.

    ``ranks`` is the sorted list of ranks. ``process_set_id`` is None until the set is registered;
    ``ranks`` of a set made from a communicator is None until then, too.
    """

    def __init__(self, ranks_or_comm):
        self.process_set_id = None
        self.ranks = None
        self.mpi_comm = None
        self._index = None
        self._number_in_graphs = None
        if mpi.is_communicator(ranks_or_comm):
            self.mpi_comm = ranks_or_comm
        else:
            self.ranks = _sorted(ranks_or_comm)
        self._given = self.ranks  # never changes; self.ranks may, in an elastic job

    def size(self):
        """The number of ranks in the set; None until it is registered."""
        if not is_registered(self):
            return None
        membership.numbers()  # raises ValueError after shutdown
        return len(self.ranks)

    def rank(self):
        """The index of this process in the set; None until the set is registered. ValueError if
        the process is not a member. root_rank of a broadcast is a rank of the job, not such an
        index."""
        if not is_registered(self):
            return None
        membership.numbers()
        if self._index is None:
            raise ValueError('Process is not part of provided process set.')
        return self._index

    def included(self):
        """Whether this process is a member; None if the ranks are not known yet."""
        return None if self.ranks is None else membership.numbers().rank in self.ranks

    def __deepcopy__(self, memo):
        """Returns the set itself: a copied model uses the same process set."""
        return self

    def note_graph(self):
        """Remembers the current number, because a TensorFlow graph was built with it."""
        self._number_in_graphs = self.process_set_id

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


# The set of all ranks of the job; init fills in its ranks.
global_process_set = ProcessSet([])
global_process_set.process_set_id = SET_GLOBAL


def is_registered(process_set):
    """Whether the set is registered, even if all its processes have left."""
    return process_set.process_set_id is not None or process_set in _known


def set_id(process_set, operation):
    """Returns the set's number in libhvd. ValueError, which names the operation, if the set has no
    number or this process is not a member."""
    check_set(process_set)
    number = process_set.process_set_id
    if number is None:
        raise ValueError(f'{operation}: {_why_missing(process_set)}')
    if number != SET_GLOBAL and process_set._index is None:
        raise ValueError(f'{operation}: Rank {membership.numbers().rank} is not a member of the '
                         'provided process set.')
    return number


def _why_missing(process_set):
    if process_set not in _known:
        return UNKNOWN_SET
    return (f'all processes of the process set {process_set._given} have left this elastic job, '
            f'which has {membership.numbers().size} ranks: ask included() before you use the set')


def registered():
    """Returns {number: ranks} for all sets of the job."""
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
    """Registers a ProcessSet, or makes one from a list of ranks, and returns it.

    All ranks of the job must call this together, including those that will not be members. Needs
    hvd.init(process_sets="dynamic") or HOROVOD_DYNAMIC_PROCESS_SETS=1. ValueError if a set with
    the same ranks exists.
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    given = process_set._given
    if given is None:
        raise NotImplementedError('a process set given as an MPI communicator can be registered '
                                  'by hvd.init() only: give add_process_set() a list of ranks')
    membership.must_be_rank()
    _must_be_dynamic('adding')
    with _lock:
        if tuple(given) in _made or _is_global(given):
            raise ValueError(f'Attempted to add a duplicate process set: {process_set}')
        _make(given)
        _adopt(process_set)
    return process_set


def remove_process_set(process_set):
    """Removes a set and returns True. Returns False for the global set and for a set that is not
    registered. All ranks of the job must call this together, after the set's collectives have
    ended."""
    check_set(process_set)
    if process_set not in _known:
        return False
    membership.must_be_rank()
    _must_be_dynamic('removing')
    given = process_set._given
    with _lock:
        others = [ranks for name, ranks in _made.items() if name != tuple(given)]
        if (process_set.process_set_id not in (None, SET_GLOBAL)
                and process_set.ranks not in others):
            _run(requests.remove_set, process_set.process_set_id)
        del _made[tuple(given)]
        _invalidate(given)
    return True


def _must_be_dynamic(doing):
    if not _is_dynamic:
        raise ValueError(f'Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow {doing} process sets after '
                         'Horovod initialization.')


def _is_global(given):
    """Whether these are all ranks of the job. Always false in an elastic job: ranks may join it
    later, and a set of all present ranks would not include them."""
    return not lib.hvd_elastic() and given == global_process_set.ranks


def _make(given, is_member=None):
    """Makes a set in libhvd. After a restart of an elastic job, ``is_member`` says whether this
    process was a member before; otherwise the given ranks are the members."""
    size = membership.numbers().size
    is_elastic = lib.hvd_elastic() == 1
    if (not given or len(set(given)) < len(given) or given[0] < 0
            or given[-1] >= size and not is_elastic):
        raise ValueError(f'a process set has one or more different ranks from 0 to {size - 1}, '
                         f'not {given}')
    ranks = _agree(given, is_member) if is_elastic else given
    if ranks and ranks not in _table().values():
        _run(requests.add_set, ranks)
    _made[tuple(given)] = ranks


def _agree(given, is_member):
    """Returns the current ranks of a set of an elastic job. Each rank tells the others whether it
    is a member. A rank that does not know (``is_member`` is None) is a member if ``given`` contains
    it. Collective; ValueError if the ranks make different sets."""
    own, size = membership.numbers().rank, membership.numbers().size
    name = zlib.crc32(str(given).encode())
    table = (c_int64 * (size + 2))()
    table[own] = own in given if is_member is None else is_member
    table[size], table[size + 1] = name, -name
    place = addressof(table)
    request = requests.allreduce(
        [('elastic.set', place, place, (size + 2,), DTYPES['int64'], DEVICE_CPU)], _MAX, (1.0, 1.0),
        SET_GLOBAL, table, lambda request: list(table))
    *members, first, last = requests.synchronize(requests.add(request))
    if first != -last:
        raise ValueError(f'this rank makes a process set of the ranks {given}, and another rank '
                         'a different one: all ranks make the same sets in the same order')
    return [rank for rank, is_in in enumerate(members) if is_in]


def _adopt(process_set):
    """Stores the set's number in libhvd and its current ranks in the object."""
    ranks = _made[tuple(process_set._given)]
    numbers = [number for number, present in _table().items() if present == ranks]
    process_set._register(numbers[0] if numbers else None, ranks)
    _known.add(process_set)


def _run(start, argument):
    try:
        return requests.synchronize(requests.add(start(argument)))
    except JobShutDownError:
        raise ValueError('Horovod is shutting down.') from None


def _invalidate(given=None):
    """Unregisters the objects of the set that was made from the ranks ``given``, or of all sets if
    ``given`` is None."""
    for each in list(_known):
        if given in (None, each._given):
            each.process_set_id = None
            each.ranks = each._given
            _known.discard(each)


def listed(process_sets):
    """Returns the argument process_sets of init as a list. For "dynamic", sets the environment
    variable with the same meaning. ValueError if it is neither."""
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
    """Registers the sets that were passed to init, at the start of the job. ``communicator`` is the
    communicator of the job's ranks, or None."""
    global _is_dynamic
    setting = os.environ.get('HOROVOD_DYNAMIC_PROCESS_SETS', '').strip()
    _is_dynamic = setting.isdigit() and int(setting) > 0
    global_process_set._register(SET_GLOBAL, list(range(membership.numbers().size)))
    global_process_set._given = global_process_set.ranks
    global_process_set.mpi_comm = communicator
    with _lock:
        for given in _in_order(wanted, communicator):
            if tuple(given) not in _made and not _is_global(given):
                _make(given)


def _in_order(wanted, communicator):
    """Yields the lists of ranks to register, in the same order on all ranks of the job. Sets of
    communicators come first, as in Horovod. They are gathered from all ranks, because Comm.Split
    gives different ranks different communicators."""
    for each in wanted:
        if each._given is None:
            yield from communicator.allgather(_members(each, communicator))
    yield from (each._given for each in wanted if each._given is not None)


def _members(process_set, communicator):
    if process_set._given is not None:
        return process_set._given
    return sorted(mpi.ranks_within(process_set.mpi_comm, communicator))


def resolve(wanted, communicator):
    """Gives the sets their numbers. A set with the same ranks as an earlier one or as the global
    set gets no number: a ValueError names it, but the job continues, as in Horovod."""
    seen, duplicates = set(), []
    for index, each in enumerate(wanted):
        given = _members(each, communicator)
        if _is_global(given) or tuple(given) in seen:
            duplicates.append((index, each))
        elif tuple(given) not in _made:
            raise ValueError(f'{each} is not among the process sets of the first hvd.init(): use '
                             'hvd.add_process_set()')
        else:
            seen.add(tuple(given))
            each._given = given
            with _lock:
                _adopt(each)
    for index, each in duplicates:
        raise ValueError('Horovod could not be initialized because process_sets entry number '
                         f'{index} is a duplicate: {each}')


def end():
    """Unregisters all sets at the end of the job."""
    _made.clear()
    _invalidate()


def kept():
    """Returns the current sets for restore(): {ranks as given: whether this rank is a member}, and
    the ProcessSet objects."""
    own = membership.numbers().rank
    with _lock:
        return ({given: own in ranks for given, ranks in _made.items()},
                weakref.WeakSet(_known))


def restore(sets):
    """Makes the sets of kept() again after a restart, with the processes that are left. All ranks
    call this together; new ranks make the same sets in their scripts instead."""
    memberships, objects = sets
    with _lock:
        for given, is_member in memberships.items():
            if given not in _made:
                _make(list(given), is_member)
        for each in objects:
            _adopt(each)
            _check_graphs(each)


def _check_graphs(process_set):
    number, before = process_set.process_set_id, process_set._number_in_graphs
    if None not in (number, before) and number != before:
        raise RuntimeError(
            f'the process set of the ranks {process_set._given} now has the number {number}, but a '
            f'tf.function was traced with {before}: make both in the function that '
            'hvd.elastic.run decorates')
