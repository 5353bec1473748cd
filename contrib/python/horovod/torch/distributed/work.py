# SPDX-License-Identifier: Apache-2.0
"""A call under way, as torch's Work, and the thread that ends those for which nobody waits."""

import queue
import threading
import time

import torch
import torch.distributed as dist

from horovod.common.library import INPROGRESS, Error, lib, quick
from horovod.common.requests import free_memory_if_short
from horovod.torch.collectives.tensors import stream_of
from horovod.torch.distributed import job
from horovod.torch.dynamo import uncompiled

_Base = getattr(dist, '_Work', None) or dist.Work
_Failure = getattr(dist, 'DistBackendError', RuntimeError)

# Python runs signal handlers, such as Ctrl-C's, only between calls: a wait returns this often.
_PATIENCE_MS = 500
# Most calls end so soon that their timeout need not be looked at.
_SOON_MS = 1
# Seconds that a thread gets to end calls of a job that has been left, or of a group.
_LEAVE_TIME = 2

# Functions of libhvd that say whether a request has ended, with what they take after it.
_AT_ONCE = quick.wait_for, 0, None
_SOON = lib.hvd_wait_for, _SOON_MS, None
_TEST = lib.hvd_test, None  # unlike the first it moves things on


@uncompiled
class Work(_Base):
    """One call. It holds the caller's tensors until it has ended. Any thread may wait for it."""

    source = None  # of a message that has been received: its rank in the group
    # Most works never have these.
    _borrowed = None  # what libhvd reads and writes
    _stream = None  # of tensors on a GPU: tells the current one
    _look = _SOON
    _started_on = None  # that of then
    _delayed = None  # (the work before it, how to start it then)
    _future = None
    _failure = None
    on_failure = None  # a function
    _ended = False

    def __init__(self, calls, slot, result, finish, options):
        super().__init__()
        self._calls = calls
        self._slot = slot
        self._result = result
        self._finish = finish
        self._options = options
        self._lock = threading.Lock()

    def start(self, function, memories, arguments):
        """Hands the call over to libhvd: see Slot.start."""
        self._borrowed = memories, arguments
        if memories and not memories[0].source.is_cpu:
            self._stream = stream_of(memories[0].source)
            self._look = _AT_ONCE  # for more, the caller's stream waits
            self._started_on = self._stream()
        try:
            self._slot.start(function, memories, arguments)
        except BaseException:
            self._leave_slot()
            raise

    def start_after(self, before, how):
        """Its name is in use: it starts when the call before it has ended."""
        self._delayed = before, how

    # --- what torch calls ---

    def wait(self, timeout=None):
        if not self._ended and not self._has_ended(*self._look):
            self._end(self._seconds(timeout), gives_up=not timeout)
        if self._failure is not None:
            raise self._failure
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._ended or self._has_ended(*_TEST)

    def is_success(self):
        return self.is_completed() and self._failure is None

    def exception(self):
        return self._failure

    def result(self):
        return self._result

    def source_rank(self):
        return self.source

    _source_rank = source_rank

    def pointer(self):
        """The request in libhvd, until the work has ended."""
        return self._slot.pointer

    def get_future(self):
        if self._future is None:
            self._future = torch.futures.Future(devices=self._devices())
            if self.is_completed():
                self.tell()
            else:
                self._calls.complete(self)
        return self._future

    # --- the end ---

    def _has_ended(self, ask, *arguments):
        if self._delayed is None and self._lock.acquire(False):
            try:
                if not self._ended:
                    status = ask(self._slot.pointer, *arguments)
                    if status != INPROGRESS:
                        self._finish_up(status)
            finally:
                self._lock.release()
        return self._ended

    def _devices(self):
        tensors = [each for each in self._result if isinstance(each, torch.Tensor)]
        return sorted({each.device for each in tensors if each.is_cuda}, key=str) or None

    def _seconds(self, *timeouts):
        """The first of the timeouts of wait, the call and the group that is one."""
        for each in (*timeouts, getattr(self._options, 'timeout', None)):
            seconds = 0 if each is None else each.total_seconds()
            if seconds > 0:
                return seconds
        return self._calls.timeout

    def end(self):
        """Waits for the end, and does not raise."""
        try:
            self.wait()
        except Exception as failure:
            self._failure = failure

    def tell(self):
        """The future, if there is one, gets the outcome, once: the waiter may have the work twice,
        and the caller may ask at the same time."""
        with self._lock:
            if self._future is None or self._future.done():
                return
            if self._failure is not None:
                self._future.set_exception(self._failure)
            else:
                self._future.set_result(self._result)

    def _end(self, seconds, gives_up):
        """``gives_up``: with the call that takes longer, the group is lost, as with NCCL."""
        until = time.monotonic() + seconds
        line = [self]
        while line[-1]._delayed is not None:
            line.append(line[-1]._delayed[0])
        try:
            for work in reversed(line):
                work._end_this(until)
        except TimeoutError:
            if gives_up:
                self._calls.abort(f'{self._slot.name} timed out after {seconds:g} s')
            raise self._failed(
                f'Timed out after {seconds:g} s: some ranks of the group have not called it. After '
                'HOROVOD_STALL_CHECK_TIME_SECONDS rank 0 of the job writes which') from None

    def _failed(self, why):
        if self.on_failure is not None:
            self.on_failure()
        return _Failure(f'{self._slot.name}: {why}')

    def _end_this(self, until):
        """Those before it in its line have ended. TimeoutError."""
        if not self._lock.acquire(timeout=max(until - time.monotonic(), 0)):
            raise TimeoutError
        try:
            if not self._ended:
                self._start_delayed()
                self._finish_up(self._wait_until(until))
        finally:
            self._lock.release()

    def _start_delayed(self):
        if self._delayed is not None:
            how, self._delayed = self._delayed[1], None
            self.start(*how)

    def _wait_until(self, until):
        while True:
            left_ms = int((until - time.monotonic()) * 1000)
            patience_ms = max(min(left_ms, _PATIENCE_MS), 0)
            if self._stream is None:
                status = lib.hvd_wait_for(self._slot.pointer, patience_ms, None)
            else:
                status = self._wait_on(self._stream(), patience_ms)
            if status != INPROGRESS:
                return status
            if left_ms <= 0:
                raise TimeoutError

    def _wait_on(self, stream, patience_ms):
        """As horovod.common.requests.Request.wait_on."""
        status = lib.hvd_wait_on(self._slot.pointer, stream, patience_ms, None)
        free_memory_if_short(self._stream)
        if status == 0 and stream != self._started_on:
            self._stream.record([(each.source, each.target) for each in self._borrowed[0]])
        return status

    def _finish_up(self, status):
        """The request has ended, or, on a GPU, is on its streams; the lock is held."""
        if status != 0:
            error = Error()
            lib.hvd_test(self._slot.pointer, error)
            self._failure = self._failed(error.message())
        elif self._finish is not None:
            try:
                with torch.no_grad():
                    self._finish()
            except Exception as failure:
                self._failure = failure
        self._slot.free()
        self._leave_slot()

    def _leave_slot(self):
        self._ended = True
        self._borrowed = self._finish = None
        self._slot.leave(self)


class Waiter:
    """A thread that waits for works in the order in which they came, so that futures complete by
    themselves."""

    def __init__(self):
        self._works = queue.SimpleQueue()
        self._thread = None
        self._lock = threading.Lock()

    def add(self, work):
        self._works.put(work)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='hvd futures', daemon=True)
                self._thread.start()
                job.at_end(self.end)

    def end(self):
        """Python must not end while the thread is in torch, which aborts the process then."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._works.put(None)
            job.not_at_end(self.end)
            if thread is not threading.current_thread():
                thread.join(_LEAVE_TIME)

    def _run(self):
        while True:
            work = self._works.get()
            if work is None:
                return
            work.end()
            work.tell()
