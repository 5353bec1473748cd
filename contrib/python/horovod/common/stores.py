# SPDX-License-Identifier: Apache-2.0
"""Starts a job whose ranks no launcher of hvd has started. The ranks find each other through a
store that they share, such as one of torch.distributed; under torchrun, torchrun's own store; with
HVD_STORE, a folder."""

import ctypes
import datetime
import operator
import os
import re
from typing import NamedTuple

from horovod.common.arguments import wrong_type
from horovod.common.file_store import FileStore, find_rank
from horovod.common.library import INPROGRESS, Store, StoreGet, StorePut, lib

_METHODS = ('set', 'get', 'add', 'wait')
_TORCHRUN = ('TORCHELASTIC_RUN_ID', 'RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')
_LONGEST_WAIT_MS = 1000  # limits how long Ctrl-C takes to end a rank that waits in a store

# compare_set returns this text for a missing key. No value in the store is equal to it.
_ABSENT = '?'

_malloc = ctypes.CDLL(None).malloc
_malloc.argtypes = [ctypes.c_size_t]
_malloc.restype = ctypes.c_void_p


class Place(NamedTuple):
    """The rank of this process, the number of ranks, and the store through which they find each
    other."""
    store: object
    rank: int
    size: int


# The Place of the last start with a store. init() without arguments uses it again: otherwise the
# process would become a job of one rank. It also keeps the server of torchrun's store alive, which
# may run in this process on rank 0.
_last = None


def chosen(store, rank, size):
    """Returns the Place for the arguments of init. Without arguments, returns the Place of the last
    start or, under torchrun, a Place with torchrun's store or, with HVD_STORE, one with this folder.
    Returns None if there is none of them: then the launcher tells libhvd the rank."""
    if store is None:
        if rank is not None or size is not None:
            raise ValueError('rank and size are given without a store by which this process finds '
                             'the others')
        return _last or _of_torchrun() or _of_folder()
    if not all(callable(getattr(store, method, None)) for method in _METHODS):
        raise wrong_type('store', store, 'a store as those of torch.distributed, with the methods '
                         + ', '.join(_METHODS))
    found = find_rank() if rank is None and size is None else None
    if found is not None:
        return Place(store, *found)
    return Place(store, _number('rank', rank, 'RANK'), _number('size', size, 'WORLD_SIZE'))


def _number(name, value, variable):
    text = os.environ.get(variable)
    try:
        if value is not None:
            return operator.index(value)
        return int(text)
    except TypeError:
        if value is not None:
            raise wrong_type(name, value, 'a whole number') from None
        raise ValueError(f'a store is given without {name}, and {variable} is not set') from None
    except ValueError:
        raise ValueError(f'{variable} is {text!r}: expected a whole number') from None


def _is_slurm_task():
    step = os.environ.get('SLURM_STEP_ID', '')
    return step.isdigit() and int(step) < 0xfffffffa  # others: batch scripts and shells


def is_elastic():
    """Whether the launcher made this job elastic; libhvd decides in the same way. The rendezvous
    service of a Slurm step is only for the tasks of that step. A job that such a task submits
    inherits the service's address in its environment, but is not elastic."""
    service = os.environ.get('HVD_RENDEZVOUS')
    of_step = os.environ.get('SLURM_HVD_RENDEZVOUS')
    if os.environ.get('HOROVOD_ELASTIC') != '1' or service is None:
        return False
    return not (of_step and service.endswith(of_step)) or _is_slurm_task()


# --- torchrun ------------------------------------------------------------------------------


def _is_torchrun():
    """Whether torchrun started this process. PMIx variables of srun do not contradict that: srun
    may have started torchrun. PMIx variables of another launcher mean that this launcher, not
    torchrun, started the process."""
    name_space = os.environ.get('PMIX_NAMESPACE', 'slurm.pmix.')
    return (all(os.environ.get(each) for each in _TORCHRUN) and not is_elastic()
            and name_space.startswith('slurm.pmix.'))


def start_timeout():
    """Returns how long the ranks wait for each other at the start."""
    try:
        return datetime.timedelta(seconds=max(1.0, float(os.environ['HVD_START_TIMEOUT'])))
    except (KeyError, OverflowError, ValueError):
        return datetime.timedelta(seconds=60)


def _of_torchrun():
    global _last
    if not _is_torchrun():
        return None
    try:
        from torch.distributed.rendezvous import rendezvous
    except ImportError:
        return None
    try:
        _last = Place(*next(rendezvous('env://', timeout=start_timeout())))
    except (RuntimeError, ValueError) as failure:
        raise ValueError('hvd.init() failed: the store of torchrun cannot be opened: '
                         f'{failure}') from None
    return _last


def _of_folder():
    folder = os.environ.get('HVD_STORE')
    if not folder or is_elastic():
        return None
    found = find_rank()
    if found is None:
        raise ValueError('HVD_STORE is set, but no variable tells the rank of this process: set RANK '
                         'and WORLD_SIZE')
    try:
        return Place(FileStore(folder), *found)
    except OSError as failure:
        raise ValueError(f'HVD_STORE is {folder}: the folder cannot be used: {failure}') from None


# --- the store as libhvd's functions -------------------------------------------------------


class _Session:
    """The functions put and get of struct hvd_store for one start. They keep exceptions in
    ``failure``, because C code cannot pass them on."""

    def __init__(self, place):
        self.place = place
        self.failure = None
        self._prefix = None

    def put(self, _, key, value, count, error):
        return self._guard(error, lambda: self._put(key, ctypes.string_at(value, count)))

    def get(self, _, key, timeout_ms, value, count, error):
        return self._guard(error, lambda: self._get(key, timeout_ms, value, count))

    def _guard(self, error, action):
        try:
            return action()
        except BaseException as failure:
            self.failure = failure
            text = ' '.join(f'{type(failure).__name__}: {failure}'.split())
            error.contents.text = text.encode()[:400]
            return -1

    def _key(self, key):
        """Returns the key for the store, with the number of this start. The store counts the starts
        of each rank; the count is the same on all ranks."""
        if self._prefix is None:
            number = self.place.store.add(f'hvd.starts.{self.place.size}.{self.place.rank}', 1)
            self._prefix = f'hvd.start.{number}.'
        return self._prefix + key.decode()

    def _put(self, key, value):
        self.place.store.set(self._key(key), value)
        return 0

    def _get(self, key, timeout_ms, value, count):
        key = self._key(key)
        if not _has(self.place.store, key, timeout_ms):
            return INPROGRESS
        data = self.place.store.get(key)
        memory = _malloc(len(data) or 1)
        if not memory:
            raise MemoryError(f'{len(data)} bytes')
        ctypes.memmove(memory, data, len(data))
        value[0], count[0] = memory, len(data)
        return 0


def _is_there(store, key):
    """Whether the store has the key; None if this store cannot tell without waiting."""
    for ask in (lambda: store.check([key]),  # since torch 2
                lambda: store.compare_set(key, _ABSENT, _ABSENT) != _ABSENT.encode()):
        try:
            return ask()
        except (AttributeError, NotImplementedError, RuntimeError):
            pass  # this store lacks the method; or it is lost, and wait() will report that
    return None


def _has(store, key, timeout_ms):
    """Whether the store has the key, or gets it within the timeout. Avoids wait() if possible: a
    TCPStore of torch 1 gives wrong answers after a wait has timed out."""
    is_there = _is_there(store, key)
    if is_there is not None:
        return is_there
    wait_ms = min(max(timeout_ms, 20), _LONGEST_WAIT_MS)
    try:
        store.wait([key], datetime.timedelta(milliseconds=wait_ms))
        return True
    except RuntimeError as failure:
        if re.search(r'time.?out|timed out', str(failure), re.IGNORECASE):
            return False
        raise


def join(place, error):
    """Calls hvd_init_with for the Place; returns its status."""
    session = _Session(place)
    functions = Store(None, StorePut(session.put), StoreGet(session.get))
    status = lib.hvd_init_with(place.rank, place.size, functions, error)
    if session.failure is not None and not isinstance(session.failure, Exception):
        raise session.failure  # an interrupt such as Ctrl-C
    return status


def keep(place):
    """Makes later calls of init() without arguments use this Place. Not with HVD_STORE: a worker of
    dask, say, may have another rank and another folder in its next job."""
    global _last
    if not isinstance(place.store, FileStore):
        _last = place


def forget():
    """Makes init() without arguments no longer use the Place of the last start."""
    global _last
    _last = None
