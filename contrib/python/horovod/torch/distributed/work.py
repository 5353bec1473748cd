# SPDX-License-Identifier: Apache-2.0
"""A call under way, as torch's Work.

Threads: any thread may call any method of a Work. The thread that finds that the call has ended, in
wait(), in is_completed() or in a Waiter, takes its result and starts the next call of the same
name. Callbacks of futures run without a lock, so they may start calls and wait for them.

Streams, for tensors on a GPU: the collective begins after the work that was on the caller's stream
when the call was made. Each wait() makes the current stream of its thread wait for the result,
copies included. The thread that completes futures uses a stream of its own, so that it does not
delay the script's streams. Waiting for a future makes the current stream wait, as with all futures
of torch.
"""

import itertools
import threading
import time
import traceback

import torch
import torch.distributed as dist

from horovod.common.library import INPROGRESS, Error, lib, quick
from horovod.common.requests import free_memory_if_short
from horovod.torch.collectives.tensors import stream_of
from horovod.torch.distributed.waiter import in_wait
from horovod.torch.dynamo import uncompiled

_Base = getattr(dist, '_Work', None) or dist.Work
_Failure = getattr(dist, 'DistBackendError', RuntimeError)

# The longest wait within libhvd. Python runs signal handlers, such as that of Ctrl-C, only between
# calls into C.
_PATIENCE_MS = 500
# Most calls end within this time, so that their timeout need not be computed.
_SOON_MS = 1

_numbers = itertools.count()  # numbers the calls of this process
_futures = threading.Lock()  # protects the making of futures and the choice of who completes them


def _wait_for(pointer, patience_ms):
    """Waits up to ``patience_ms`` for a request; returns its status."""
    if patience_ms == 0:
        return quick.wait_for(pointer, 0, None)
    return lib.hvd_wait_for(pointer, patience_ms, None)


def _tensors(result):
    """Returns the tensors in nested lists as one list."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [each for part in result for each in _tensors(part)]


@uncompiled
class Work(_Base):
    """One call. It keeps the caller's tensors alive until it has ended."""

    source = None  # the sender's rank in the group, for a received message
    # The slot sets the next two.
    is_started = False
    is_over = False
    # Defaults in the class, because most works never set these.
    stream = None  # for tensors on a GPU: the function that returns the current stream
    started_on = None  # the stream that was current when the call was made
    on_failure = None  # a function to call when the call fails
    until = None  # the time.monotonic() at which the future times out
    _mark = None  # an event that the stream reaches after the result
    _future = None
    _completed = None  # the future that this class completes; _future depends on it
    _is_told = False  # whether the future is completed
    _failure_told = None
    _failure = None

    def __init__(self, calls, slot, call, result, finish, options):
        """``call``: (function, memories, arguments) for Slot._start; ``result``: the tensors that
        receive the result; the others as for Calls.start."""
        super().__init__()
        self.number = next(_numbers)
        self.call = call
        self._calls = calls
        self._slot = slot
        self._result = result
        self._finish = finish
        self._options = options
        self._lock = threading.Lock()  # held by the thread that is in libhvd for this call
        memories = call[1]
        if memories and not memories[0].source.is_cpu:
            self.stream = stream_of(memories[0].source)
            self.started_on = self.stream()

    # --- what torch calls ---

    def wait(self, timeout=None):
        """Waits for the call. Raises its failure, or DistBackendError after the timeout. For
        tensors on a GPU, this thread waits only until the collective has been launched; the current
        stream waits for the result."""
        if not self.is_over and (self.stream is not None or not self._advance(_SOON_MS)):
            self._wait(self._seconds(timeout), gives_up=not timeout)
        if self._failure is not None:
            raise self._failure
        if self._mark is not None:
            self.stream.follow(self._mark)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        """Whether the call has ended and, on a GPU, whether the device has completed it. Polling
        this also advances the earlier calls of the same name."""
        is_over = self.is_over or self._advance_line(0, lib.hvd_test)
        return is_over and (self._mark is None or self._mark.query())

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
        """Returns the request in libhvd; valid until the work has ended."""
        return self._slot.pointer

    def get_future(self):
        """Returns a future of the result. It completes without a call of wait(); if the call fails
        or times out, it raises the failure."""
        with _futures:
            is_first = self._future is None
            if is_first:
                self._make_future()
        if is_first:
            waiter = self._calls.waiter()
            # Futures of earlier calls complete first.
            if self.is_over or (waiter.is_idle() and self.is_completed()):
                self.tell()
            else:
                self._await_end()
                waiter.add(self)
        return self._future

    def _await_end(self):
        """Makes the next calls of the group unordered until the future is completed. Does nothing
        if it is completed already. This can happen if the call could not start at once, because
        Calls.start() then gives it to a waiter."""
        with _futures:
            if not self._is_told:
                self.until = time.monotonic() + self._seconds()
                self._calls.numbers.suspend()

    # --- what the waiter calls ---

    def has_future(self):
        return self._future is not None

    def is_message(self):
        """Whether this is a send or receive, whose future does not wait for earlier collectives."""
        return self._slot.is_message

    def look(self, patience_ms):
        """Whether the call has ended or timed out; waits up to ``patience_ms`` for its end."""
        return (self.is_over or self._advance_line(patience_ms)
                or (self.until is not None and time.monotonic() > self.until))

    def tell(self):
        """Completes the future, if there is one that is not completed. Its callbacks run in this
        thread."""
        if not self._is_to_be_told():
            return
        failure = self._failure
        if not self.is_over:  # only the future has timed out: the call may still end
            failure = self._timed_out(self._seconds(), gives_up=True)
        self._complete(failure)

    def abandon(self):
        """Completes the future with an exception, because the group was destroyed."""
        if self._is_to_be_told():
            self._complete(self._failed('the process group was destroyed before it ended'))

    # --- what the slot calls ---

    def fail(self, failure):
        """Ends the work with an exception, because the call could not be started."""
        self._failure = failure
        self._drop()
        self.is_over = True

    # --- the future ---

    def _devices(self):
        tensors = _tensors(self._result)
        return sorted({each.device for each in tensors if each.is_cuda}, key=str) or None

    def _make_future(self):
        """Makes the future, which raises a failure in a callback. It does not use
        Future.set_exception(), because C++ code such as that of DistributedDataParallel takes the
        exception for a result and crashes."""
        self._completed = torch.futures.Future(devices=self._devices())
        self._future = self._completed.then(self._outcome)

    def _outcome(self, _):
        if self._failure_told is not None:
            raise self._failure_told
        return self._result

    def _is_to_be_told(self):
        """Returns True for the first caller if there is a future; that caller completes it."""
        with _futures:
            is_first = self._future is not None and not self._is_told
            self._is_told = self._is_told or is_first
        return is_first

    def _complete(self, failure):
        self._failure_told = failure
        try:
            self._completed.set_result([] if failure is not None else self._result)
        except Exception:  # raised by a callback
            traceback.print_exc()
        finally:
            if self.until is not None:
                self._calls.numbers.resume()

    # --- the end ---

    def _seconds(self, *timeouts):
        """Returns the timeout in seconds: that of wait() if given, else the call's, else the
        group's."""
        for each in (*timeouts, getattr(self._options, 'timeout', None)):
            seconds = 0 if each is None else each.total_seconds()
            if seconds > 0:
                return seconds
        return self._calls.timeout

    def _wait(self, seconds, gives_up):
        until, left = time.monotonic() + seconds, seconds
        with in_wait():
            while not self._advance_line(max(min(int(left * 1000), _PATIENCE_MS), 0)):
                left = until - time.monotonic()
                if left <= 0:
                    raise self._timed_out(seconds, gives_up)

    def _timed_out(self, seconds, gives_up):
        """Returns the exception for a timeout. ``gives_up``: also makes all calls of the group
        fail, on all ranks, as with NCCL."""
        if gives_up:
            self._calls.abort(f'{self._slot.name} timed out after {seconds:g} s')
        return self._failed(
            f'Timed out after {seconds:g} s: some ranks of the group have not called it. After '
            'HOROVOD_STALL_CHECK_TIME_SECONDS rank 0 of the job prints which ones')

    def _failed(self, why):
        if self.on_failure is not None:
            self.on_failure()
        return _Failure(f'{self._slot.name}: {why}')

    def _advance_line(self, patience_ms, test=None):
        """Like _advance, for the earlier calls of the same name and then for this one."""
        for work in self._slot.line_to(self):
            if not work._advance(patience_ms, test):
                return False
        return self.is_over

    def _advance(self, patience_ms, test=None):
        """Returns whether the call has ended, after waiting up to ``patience_ms`` or, if ``test``
        is given, after calling that function of libhvd. Takes the result if the call has just
        ended, unless another thread is in libhvd for this call: then that thread takes it."""
        if not self._lock.acquire(patience_ms > 0, patience_ms / 1000 if patience_ms > 0 else -1):
            return self.is_over
        try:
            if not self.is_over and self.is_started:
                if test is not None:
                    status = test(self._slot.pointer, None)
                elif self.stream is not None:
                    status = lib.hvd_wait_on(self._slot.pointer, self.stream(), patience_ms, None)
                    free_memory_if_short(self.stream)
                else:
                    status = _wait_for(self._slot.pointer, patience_ms)
                if status != INPROGRESS:
                    self._end(status)
        finally:
            self._lock.release()
        return self.is_over

    def _end(self, status):
        """Takes the result when the request has ended or, on a GPU, when the current stream waits
        for it."""
        if status != 0:
            error = Error()
            lib.hvd_test(self._slot.pointer, error)
            self._failure = self._failed(error.message())
        elif self._finish is not None:
            try:
                self._finish()
            except Exception as failure:
                self._failure = failure
        if self.stream is not None:
            self._leave_streams()
        self._drop()
        self._slot.leave(self)

    def _leave_streams(self):
        """Records an event after the result. If the current stream is not the one on which the call
        was made, tells torch that the current one uses the tensors, too: otherwise torch could
        reuse their memory too early."""
        if self.stream() != self.started_on:
            memories = self.call[1]
            self.stream.record([self._result, *[(each.source, each.target) for each in memories]])
        self._mark = self.stream.mark()

    def _drop(self):
        self.call = self._finish = None
