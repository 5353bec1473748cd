# SPDX-License-Identifier: Apache-2.0
"""Threads that finish calls for which no thread of the script waits, and complete their futures."""

import contextlib
import math
import threading
import time

import torch

from horovod.torch.distributed import job

# How long to wait for one call before checking the others. Each check polls for a moment, so that
# an idle waiter uses 2 % of a core.
_PATIENCE_MS = 5
# Seconds that a thread has to finish calls after the group or the job was left.
_LEAVE_TIME = 2
# A callback that uses less than _IDLE_USE_S of processor time in _IDLE_S is waiting for something.
_IDLE_S = 1
_IDLE_USE_S = 0.001

_this_thread = threading.local()
_waiters = set()  # the waiters that have a thread


def depth():
    """Returns the depth of this thread: 0 for threads of the script, n + 1 for threads that
    complete the futures of calls made by threads of depth n."""
    return getattr(_this_thread, 'depth', 0)


@contextlib.contextmanager
def in_wait():
    """A context manager for the time in which this thread waits for a call within libhvd, so that
    no deputy replaces it."""
    waiter = getattr(_this_thread, 'waiter', None)
    if waiter is not None:
        waiter.is_in_wait = True
    try:
        yield
    finally:
        if waiter is not None:
            waiter.is_in_wait = False


class Waiter:
    """Completes the futures of the calls that threads of one depth have made in one group, in a
    thread of its own.

    Futures of collectives complete in the order of the calls, so that callbacks that make calls
    make them in the same order on all ranks. Futures of messages complete as soon as the message
    has been sent or received.

    A callback may wait for the future of a call that it makes: the thread of the next depth
    completes that future. If a callback waits for something else, such as another future of this
    thread, a deputy thread takes over the remaining calls after about a second."""

    is_in_wait = False  # whether a callback is waiting for a call within libhvd

    def __init__(self, depth):
        self._depth = depth
        self._works = []  # in the order of the calls; only the waiter's thread removes them
        self._first_added = math.inf  # the first call that was added since the thread's last look
        self._changed = threading.Condition()
        self._thread = None
        self._threads = []  # the current thread, those that it has replaced, and deputies
        self._told = None  # the work whose callbacks are running
        self._deputy = None
        self._ended = threading.Event()
        self._leave_at = None  # when the thread abandons the remaining works
        self._streams = {}

    def add(self, work):
        """Makes the thread wait for the work and call ``work.tell()`` when it has ended or timed
        out. The end of a work also starts the next call of the same name; a work without a future
        is added only for that."""
        with self._changed:
            if work in self._works:
                return
            self._works.append(work)
            self._works.sort(key=lambda each: each.number)
            self._first_added = min(self._first_added, work.number)
            if self._thread is None:
                self._begin()
            self._appoint_deputy()
            self._changed.notify()

    def is_idle(self):
        """Whether the waiter has no work and no callback is running."""
        return not self._works and self._told is None

    def end(self):
        """Ends the threads after the group was left. Calls that do not fail within _LEAVE_TIME get
        an exception. Waits for the threads: torch aborts the process if Python ends while a thread
        is inside torch."""
        with self._changed:
            threads = list(self._threads)
            self._leave_at = time.monotonic() + _LEAVE_TIME
            self._ended.set()
            self._changed.notify()
        job.not_at_end(self.end)
        until = time.monotonic() + 2 * _LEAVE_TIME
        for each in threads:
            if each is not threading.current_thread():
                each.join(max(until - time.monotonic(), 0))

    def _begin(self):
        _waiters.add(self)
        job.at_end(self.end)
        self._leave_at = None
        self._ended.clear()
        self._thread = self._start(self._run, 'hvd futures')

    def _start(self, target, name):
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()
        return thread

    def _run(self):
        _this_thread.depth, _this_thread.waiter = self._depth + 1, self
        while self._has_works():
            self._look_at_all()
        for work in self._leave():
            work.abandon()

    def _has_works(self):
        """Waits until there are works. Returns False if this thread must end."""
        with self._changed:
            self._changed.wait_for(lambda: self._works or self._leave_at is not None
                                   or not self._is_mine())
            is_late = self._leave_at is not None and time.monotonic() > self._leave_at
            return self._is_mine() and bool(self._works) and not is_late

    def _is_mine(self):
        return self._thread is threading.current_thread()

    def _leave(self):
        """Removes and returns the works that have not ended, because the thread ends. Returns none
        if a deputy has replaced the thread."""
        with self._changed:
            if not self._is_mine():
                return []
            works, self._works, self._thread = self._works, [], None
            _waiters.discard(self)
            return works

    def _look_at_all(self):
        patience_ms, is_held_up = _PATIENCE_MS, False
        with self._changed:
            works, self._first_added = list(self._works), math.inf
        for work in works:
            with self._stream_for(work):
                if not work.look(patience_ms):
                    patience_ms = 0
                    is_held_up = is_held_up or (work.has_future() and not work.is_message())
                elif work.is_message() or not is_held_up or not work.is_over:
                    if not self._tell(work):
                        return

    def _tell(self, work):
        """Runs the callbacks of a work. Returns False if the thread must look again, because a work
        of an earlier call has been added, or if a deputy has replaced the thread."""
        with self._changed:
            if not self._is_mine() or (self._first_added < work.number and not work.is_message()):
                return False
            self._works.remove(work)
            self._told = work
            self._appoint_deputy()
        work.tell()
        with self._changed:
            if self._is_mine():
                self._told = None
            return self._is_mine()

    @contextlib.contextmanager
    def _stream_for(self, work):
        """A context manager that makes this thread's own stream current if the tensors are on a
        GPU."""
        if work.stream is None:
            yield
            return
        device = work.stream.device
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        with torch.cuda.stream(self._streams[device]):
            yield

    # --- callbacks that wait ---

    def _appoint_deputy(self):
        """Starts a deputy if the thread is running callbacks while other works wait. The deputy
        watches the thread."""
        if self._deputy is None and self._told is not None and self._works:
            self._deputy = self._start(self._stand_by, 'hvd futures, deputy')

    def _stand_by(self):
        """The deputy: replaces the waiter's thread if a callback seems to wait for something that
        only this waiter can complete."""
        told, used = None, 0
        while True:
            with self._changed:
                before, told = told, self._told
                if told is None or not self._works or self._thread is None:
                    self._deputy = None
                    return
                used_before, used = used, _processor_time(self._thread)
                if (told is before and used - used_before < _IDLE_USE_S
                        and not self.is_in_wait and not self._next_depth_has_works()):
                    self._deputy, self._told = None, None
                    self._thread = threading.current_thread()
                    break
            self._ended.wait(_IDLE_S)
        self._run()

    def _next_depth_has_works(self):
        return any(each._works for each in list(_waiters) if each._depth == self._depth + 1)


def _processor_time(thread):
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
