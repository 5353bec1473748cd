# SPDX-License-Identifier: Apache-2.0
"""A rank of ``horovod.spark.run``: calls the function in a Spark task.

    task    ──>  (index of the task, its node, its GPUs)
    driver  ──>  Start, once all tasks are there; None if the run has ended
    task    ──>  ('stdout' or 'stderr', text), any number of times
    task    ──>  ('result', pickled) or ('failure', text, whether it is the error of a collective)
"""

import contextlib
import io
import os
import sys
import threading
import traceback
from typing import NamedTuple

from pyspark import TaskContext, cloudpickle

from horovod.common import basics, stores
from horovod.common.exceptions import HorovodInternalError
from horovod.runner import numbering
from horovod.runner.keyed_server import connect
from horovod.runner.rank_store import RankStore
from horovod.spark.task import gpu_addresses


class Start(NamedTuple):
    """How a task starts its rank. Contains no secret, because the driver sends it in clear text:
    those are in the task, which Spark ships."""
    rank: int
    size: int
    variables: dict
    store: tuple  # the address of the StoreServer


class _Messages:
    """Sends the messages of all threads to the driver, until ``end``."""

    def __init__(self, channel):
        self._channel = channel
        self._lock = threading.RLock()
        self._is_sending = self._has_ended = False

    def send(self, message):
        """Returns whether the message was sent: not after the end, nor from a signal handler or a
        finalizer that has interrupted another message of this thread."""
        with self._lock:
            if self._has_ended or self._is_sending:
                return False
            self._is_sending = True
            try:
                self._channel.send(message)
            finally:
                self._is_sending = False
            return True

    def end(self):
        with self._lock:
            self._has_ended = True


class _Lines(io.TextIOBase):
    """An output of the rank that goes to the driver. The output of a forked child, such as a worker
    of a DataLoader, stays on this node, and so does that of a logging handler that outlives the
    run, because Spark uses the process again."""

    def __init__(self, send, name, own):
        self._send, self._name, self._own = send, name, own
        self._pid = os.getpid()

    def write(self, text):
        if text and (os.getpid() != self._pid or not self._send((self._name, text))):
            self._own.write(text)
        return len(text)

    def fileno(self):
        return self._own.fileno()

    def flush(self):
        self._own.flush()


@contextlib.contextmanager
def _variables(values):
    """Sets variables for the block. Spark uses this process again, for other work."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def _call(function, start, store_key):
    """Calls the function as a rank; returns the last message to the driver."""
    try:
        stores.keep(stores.Place(RankStore(start.store, store_key), start.rank, start.size))
        return 'result', cloudpickle.dumps(function())
    except (Exception, SystemExit) as failure:
        if basics.is_initialized():
            basics.leave_after(failure)
        text = f'{type(failure).__name__}: {failure}\n{traceback.format_exc()}'
        return 'failure', text, isinstance(failure, HorovodInternalError)
    finally:
        if basics.is_initialized():
            basics.shutdown()
        stores.forget()


def run_task(place, key, store_key, secret, function):
    """Runs the rank of this Spark task for the driver at this address. key, store_key, secret: of
    the driver's server, of the store, and of the job."""
    with connect(place, key) as channel:
        channel.send((TaskContext.get().partitionId(), numbering.this_node(), gpu_addresses()))
        start = channel.recv()
        if start is None:
            raise RuntimeError('Spark has started this task again, but its run has failed before')
        messages = _Messages(channel)
        try:
            with _variables({**start.variables, 'HVD_SECRET': secret}), \
                    contextlib.redirect_stdout(_Lines(messages.send, 'stdout', sys.stdout)), \
                    contextlib.redirect_stderr(_Lines(messages.send, 'stderr', sys.stderr)):
                answer = _call(function, start, store_key)
            messages.send(answer)
        finally:
            messages.end()
