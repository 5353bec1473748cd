# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs, for all front ends: the saved state of a training, and the restart after ranks die
or join.

The launcher decides whether a job is elastic: ``srun --hvd=elastic`` or ``hvdrun --min-np N``. In
other jobs these functions work, too, but the death of a rank ends the job.
"""

import contextlib
import copy
import functools
import queue
import time
from ctypes import addressof, c_int64

from horovod.common import process_sets, requests, requeue
from horovod.common.basics import Max, basics
from horovod.common.exceptions import (HorovodInternalError, HostsUpdatedInterrupt,
                                       RanksDisagreeError)
from horovod.common.library import DEVICE_CPU, DTYPES, SET_GLOBAL, lib

# Changes of the hosts, as in Horovod: bits that can be combined.
HOSTS_REMOVED, HOSTS_ADDED = 1, 2

_NOTHING, _ONLY_REMOVED, _ADDED = range(3)
_LOOK_SECONDS = 0.1


def is_elastic():
    """Whether the job survives the loss of a rank. False before init."""
    return lib.hvd_elastic() == 1


def _agree_on(value):
    """Returns the largest value of all ranks. Collective."""
    number = c_int64(value)
    place = addressof(number)
    request = requests.allreduce(
        [('elastic.hosts', place, place, (1,), DTYPES['int64'], DEVICE_CPU)], Max, (1.0, 1.0),
        SET_GLOBAL, number, lambda request: number.value)
    return requests.synchronize(requests.add(request))


class _HostMessages(queue.Queue):
    """A queue of (time, change of the hosts). It asks libhvd for new changes whenever it is read,
    so that no thread has to wait for them."""

    def __init__(self):
        super().__init__()
        self._seen = 0

    def _fetch(self):
        changes = max(lib.hvd_elastic_updates(), 0)
        if changes & ~self._seen:
            self.put((int(time.time()), changes & ~self._seen))
            self._seen |= changes

    def empty(self):
        self._fetch()
        return super().empty()

    def qsize(self):
        self._fetch()
        return super().qsize()

    def get(self, block=True, timeout=None):
        """Like queue.Queue.get, but also returns when libhvd reports a change."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            self._fetch()
            wait = _LOOK_SECONDS if end is None else min(_LOOK_SECONDS,
                                                         max(end - time.monotonic(), 0))
            try:
                return super().get(block, wait)
            except queue.Empty:
                if not block or (end is not None and time.monotonic() >= end):
                    raise


class State:
    """The state of a training, in memory. Derived classes implement:

    save(): saves the current values
    restore(): returns to the saved values
    sync(): gives rank 0's values to all ranks, and saves them; collective
    reset(): called after the ranks have changed, before the reset callbacks

    ``bcast_object`` and ``get_rank`` are the front end's broadcast_object() and rank().
    """

    def __init__(self, bcast_object, get_rank):
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks = []
        self._host_messages = _HostMessages()

    def register_reset_callbacks(self, callbacks):
        """Registers functions without arguments to call after the ranks have changed. They can,
        for example, adjust a learning rate that depends on hvd.size()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        """Resets the state and runs the reset callbacks, after the ranks have changed."""
        self._host_messages = _HostMessages()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        """Reports a change of the hosts to this rank. Any thread may call it."""
        self._host_messages.put((timestamp, update_res))

    def commit(self):
        """Saves the current values, then calls check_host_updates(). Collective in an elastic
        job. Raises HorovodInternalError and saves nothing if a collective on a GPU has failed
        since the last commit."""
        requests.must_have_landed()
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """Raises HostsUpdatedInterrupt, on all ranks together, if hosts were added or removed.
        Collective in an elastic job."""
        news = self._news()
        if is_elastic():
            news = _agree_on(news)
        if news != _NOTHING:
            raise HostsUpdatedInterrupt(news == _ONLY_REMOVED)

    def _news(self):
        changes = max(lib.hvd_elastic_updates(), 0)
        while not self._host_messages.empty():
            changes |= self._host_messages.get()[1]
        if changes == 0:
            return _NOTHING
        return _ONLY_REMOVED if changes == HOSTS_REMOVED else _ADDED

    def save(self):
        """Saves the current values in the memory of this rank."""
        raise NotImplementedError()

    def restore(self):
        """Returns to the saved values."""
        raise NotImplementedError()

    def sync(self):
        """Gives rank 0's values to all ranks and saves them. Collective."""
        raise NotImplementedError()

    def reset(self):
        """Prepares the state for the new ranks; on_reset() calls it. Does nothing here."""


class ObjectState(State):
    """A state whose attributes are the ``kwargs``; their values must be picklable."""

    def __init__(self, bcast_object, get_rank, **kwargs):
        super().__init__(bcast_object, get_rank)
        self._saved_state = {}
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._names = list(kwargs)
        ObjectState._keep(self)

    def save(self):
        requests.must_have_landed()
        self._keep()

    def _keep(self):
        """Saves all values. If it raises, the values saved before are unchanged, including those of
        derived classes."""
        self._saved_state = copy.deepcopy({name: getattr(self, name) for name in self._names})

    def restore(self):
        self._adopt(copy.deepcopy(self._saved_state))

    def sync(self):
        if self._names:
            self._adopt(self._bcast_object({name: getattr(self, name) for name in self._names}))
        ObjectState._keep(self)

    def _adopt(self, values):
        for name, value in values.items():
            setattr(self, name, value)


class ValuesState(ObjectState):
    """An ObjectState that also holds the variables of a framework. Before it calls __init__, a
    derived class sets ``_values`` to an object that can save, restore and sync the variables."""

    def _keep(self):
        self._values.save()
        super()._keep()

    def restore(self):
        self._values.restore()
        super().restore()

    def sync(self):
        self._values.sync()
        super().sync()


def begin_anew():
    """Leaves the job and joins it again with the ranks that exist now. Raises RuntimeError, with
    the reason, if the job cannot continue."""
    requeue.forget()
    basics.shutdown()
    requests.forget_pending()
    try:
        basics.init()
    except ValueError as failure:
        raise RuntimeError(str(failure)) from None


def _rejoin(reset, sets):
    """Joins the job again and makes its process sets again. Repeats this if a rank dies
    meanwhile."""
    while True:
        reset()
        try:
            process_sets.restore(sets)
            return
        except RanksDisagreeError:
            raise
        except HorovodInternalError:
            if not is_elastic():
                raise


def run_fn(func, reset, failures=contextlib.nullcontext):
    """Wraps the training function ``func(state, ...)`` so that it starts again when ranks die or
    join.

    The function begins with rank 0's state. After a failure each rank first returns to its last
    commit. ``reset`` leaves the job and joins it again; then the process sets that existed when
    the training began are made again. ``failures`` returns a context manager that turns the
    framework's exception for a failed collective into HorovodInternalError.
    """
    @functools.wraps(func)
    def train(state, *args, **kwargs):
        is_new, needs_sync = False, True
        sets = process_sets.kept()
        while True:
            try:
                with failures():
                    if is_new:
                        state.on_reset()
                        is_new = False
                    if needs_sync:
                        state.sync()
                    lib.hvd_elastic_ready()
                    return func(state, *args, **kwargs)
            except RanksDisagreeError:
                raise  # no rank has died, so a restart would fail in the same way
            except HorovodInternalError:
                if not is_elastic():
                    raise
                state.restore()
                needs_sync = True
            except HostsUpdatedInterrupt as interrupt:
                # In an elastic job always sync: other ranks may have failed or joined meanwhile and
                # need the state, even if this rank's interrupt allows it to skip the sync.
                needs_sync = is_elastic() or not interrupt.skip_sync
            _rejoin(reset, sets)
            is_new = True

    return train
