# SPDX-License-Identifier: Apache-2.0
"""Collectives on memory, for all front ends: submit, poll, wait; handles and tensor names.

A front end describes each tensor as ``(name, input address, output address, shape, dtype,
device)``. Two optional fields follow: the dtype in which it travels (0: its own), and for a tensor
on a GPU the CUDA stream. The function ``finish(request)`` makes the caller's result when the C
library is done. Handles are integers in a table; a request keeps everything that the library
borrows alive until it is waited for.
"""

import itertools
from collections import defaultdict
from ctypes import c_int, c_int32, c_int64, c_void_p

from horovod.common import membership
from horovod.common.arguments import (check_name, check_op, check_rank, check_scale,
                                      check_set)
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import (INPROGRESS, SET_GLOBAL, Error, Tensor, check_ended,
                                    check_submitted, lib, quick)

# Python runs signal handlers, such as Ctrl-C's, only between calls: a wait returns this often.
_PATIENCE_MS = 500

_wait_for = quick.wait_for
_memory_is_short = quick.gpu_memory_is_short


class Request:
    """One submitted collective; owns the C request. For tensors on a GPU, ``stream`` is the
    function that returns the caller's current CUDA stream, and its method ``record(borrowed)`` tells
    the framework that this one uses the memory, and ``free_cache()`` that hvd needs memory; otherwise it
    is None."""

    __slots__ = ('pointer', 'stream', '_started_on', '_borrowed', '_finish')

    def __init__(self, pointer, borrowed, finish):
        self.pointer = pointer
        self.stream = None
        self._borrowed = borrowed
        self._finish = finish

    def result(self):
        """What the caller gets after the request has succeeded."""
        return self._finish(self)

    def start_on(self, stream):
        """``stream``: see Request."""
        self.stream = stream
        self._started_on = None if stream is None else stream()

    def wait_on(self, patience_ms, error):
        """As hvd_wait_on. The memory belongs to the stream that it was allocated on, which waits for
        the collective only if it is the current one; else the current one keeps it from being used
        again too early."""
        stream = self.stream()
        status = lib.hvd_wait_on(self.pointer, stream, patience_ms, error)
        free_memory_if_short(self.stream)
        if status == 0 and stream != self._started_on:
            self.stream.record(self.borrowed())
        return status

    def borrowed(self):
        """Tuples and lists of tensors, among other things."""
        return self._borrowed

    def take(self, index):
        """The address and first dimension of an output that the library allocated; the caller
        ends it with hvd_free."""
        data, rows = c_void_p(), c_int64()
        if lib.hvd_request_take(self.pointer, index, data, rows) != 0:
            raise HorovodInternalError(f'output {index} of the request was taken before')
        return data.value, rows.value

    def rows(self, index):
        """The first dimension of an output that the library allocated on a GPU."""
        rows = c_int64()
        if lib.hvd_request_rows(self.pointer, index, rows) != 0:
            raise HorovodInternalError(f'output {index} of the request is not on a GPU')
        return rows.value

    def copy(self, index, address):
        """Copies that output to device memory of the caller's, on the caller's stream."""
        error = Error()
        check_ended(lib.hvd_request_copy(self.pointer, index, address, self.stream(), error),
                    error)

    def received_splits(self, size):
        """How many rows of an alltoall came from each of ``size`` ranks."""
        splits = (c_int32 * size)()
        if lib.hvd_request_splits(self.pointer, splits) != 0:
            raise HorovodInternalError('the request is not a finished alltoall')
        return list(splits)

    def last_rank(self):
        """The rank that joined last, after a join has ended."""
        return lib.hvd_request_last_rank(self.pointer)

    def set_id(self):
        """The number of the process set that a finished ``add_set`` made."""
        return lib.hvd_request_set(self.pointer)

    def __del__(self):
        if not membership.is_inherited():
            lib.hvd_request_free(self.pointer)


def describe(tensors):
    """An array of struct hvd_tensor, which keeps its names and shapes."""
    return (Tensor * len(tensors))(*(
        Tensor(name.encode(), source, target, (c_int64 * len(shape))(*shape), len(shape),
               dtype, device, *wire_and_stream)
        for name, source, target, shape, dtype, device, *wire_and_stream in tensors))


def _start(function, arguments, borrowed, finish):
    membership.must_be_own()
    pointer, error = c_void_p(), Error()
    check_submitted(function(*arguments, pointer, error), error)
    return Request(pointer, (arguments, borrowed), finish)


def allreduce(tensors, op, scale, set_id, borrowed, finish):
    """``scale`` is the pair (prescale, postscale), here and in reducescatter."""
    return _start(lib.hvd_allreduce_start,
                  (describe(tensors), len(tensors), check_op(op), *check_scale(scale), set_id),
                  borrowed, finish)


def reducescatter(tensors, op, scale, set_id, borrowed, finish):
    return _start(lib.hvd_reducescatter_start,
                  (describe(tensors), len(tensors), check_op(op), *check_scale(scale), set_id),
                  borrowed, finish)


def allgather(tensors, set_id, borrowed, finish):
    return _start(lib.hvd_allgather_start, (describe(tensors), len(tensors), set_id),
                  borrowed, finish)


def broadcast(tensor, root_rank, set_id, borrowed, finish):
    return _start(lib.hvd_broadcast_start,
                  (describe([tensor]), check_rank('root_rank', root_rank), set_id),
                  borrowed, finish)


def alltoall(tensor, splits, set_id, borrowed, finish):
    """``splits`` is a list of row counts, or None for equal parts."""
    counts = None if splits is None else (c_int32 * len(splits))(*splits)
    return _start(lib.hvd_alltoall_start,
                  (describe([tensor]), counts, len(splits or ()), set_id), borrowed, finish)


def barrier(set_id):
    return _start(lib.hvd_barrier_start, (set_id,), None, lambda request: None)


def join():
    """The result is the rank that joined last. Ranks that waited made no unnamed calls, so all
    ranks restart the numbers of theirs."""
    def finish(request):
        restart_names(SET_GLOBAL)
        return request.last_rank()

    return _start(lib.hvd_join_start, (), None, finish)


def add_set(ranks):
    """All ranks of the job must call this, including those outside the set. The result is the set's
    number."""
    def finish(request):
        restart_names(request.set_id())  # a number may have belonged to other ranks before
        return request.set_id()

    return _start(lib.hvd_set_add_start, ((c_int * len(ranks))(*ranks), len(ranks)), None,
                  finish)


def create_set(ranks, label):
    """The ranks, and no others, must call this, with the same label, which tells the set from others
    that share a rank with it. The result is the set's number."""
    def finish(request):
        restart_names(request.set_id())
        return request.set_id()

    return _start(lib.hvd_set_create_start,
                  ((c_int * len(ranks))(*ranks), len(ranks), label.encode()), None, finish)


def remove_set(set_id):
    """All ranks of the job must call this, including those outside the set; only its members if they
    have created it."""
    return _start(lib.hvd_set_remove_start, (set_id,), None, lambda request: None)


def abort_set(set_id, why):
    """A member gives up the set, whose calls fail on all of them. The text has ``why``."""
    return _start(lib.hvd_set_abort_start, (set_id, why.encode()), None, lambda request: None)


_pending = {}
_handles = itertools.count(1)


def add(request, stream=None):
    """Gives the request a handle. ``stream``: see Request."""
    request.start_on(stream)
    handle = next(_handles)
    _pending[handle] = request
    return handle


def poll(handle):
    """Whether the handle's collective has ended. ValueError for an unknown handle."""
    request = _pending.get(handle)
    if request is None:
        raise ValueError(f'Handle {handle} was not created or has been cleared.')
    # At first without releasing the GIL; what is not done yet, hvd_test may move on.
    return (_wait_for(request.pointer, 0, None) != INPROGRESS
            or lib.hvd_test(request.pointer, None) != INPROGRESS)


def synchronize(handle):
    """Waits, forgets the handle and returns the result, or None for an unknown handle. If a signal
    handler raises, the request stays under way and the handle valid. For tensors on a GPU, the
    caller's stream waits for the result, and this function only until the collective has been
    launched."""
    request = _pending.pop(handle, None)
    if request is None:
        return None
    if request.stream is not None:
        _wait_on_stream(handle, request)
        return request.result()
    status = _wait_for(request.pointer, 0, None)
    if status == INPROGRESS:
        status = _wait(handle, request)
    if status != 0:
        error = Error()
        check_ended(lib.hvd_test(request.pointer, error), error)
    return request.result()


def _wait(handle, request):
    try:
        status = INPROGRESS
        while status == INPROGRESS:
            status = lib.hvd_wait_for(request.pointer, _PATIENCE_MS, None)
        return status
    except BaseException:
        _pending[handle] = request
        raise


def _wait_on_stream(handle, request):
    error = Error()
    try:
        status = INPROGRESS
        while status == INPROGRESS:
            status = request.wait_on(_PATIENCE_MS, error)
    except BaseException:
        _pending[handle] = request
        raise
    check_ended(status, error)


def free_memory_if_short(stream):
    """``stream``: see Request. At the end of a wait, when nothing of libhvd waits for this thread."""
    if _memory_is_short():
        stream.free_cache()
        lib.hvd_gpu_memory_freed()


def must_have_landed():
    """Waits until the GPU has completed every collective that ``synchronize`` has returned, and raises
    HorovodInternalError if the job has failed: then their results may be wrong. For what is about
    to be saved."""
    status, error = INPROGRESS, Error()
    while status == INPROGRESS:
        status = lib.hvd_gpu_synchronize(_PATIENCE_MS, error)
    check_ended(status, error)


def forget_pending():
    """Drops every handle; the interpreter is about to end."""
    _pending.clear()


_unnamed = defaultdict(itertools.count)  # by number of process set and operation


def tensor_name(operation, name, process_set):
    """The name by which the ranks match a tensor. Unnamed ones are numbered per process set and
    operation, so that a set's ranks agree as long as they make the same unnamed calls on it in
    the same order."""
    check_name(name)
    if name is None:
        check_set(process_set)
        return f'{operation}.noname.{next(_unnamed[process_set.process_set_id, operation])}'
    return f'{operation}.{name}'


def tensor_names(operation, name, count, process_set):
    """The names of a group's members."""
    base = tensor_name(operation, name, process_set)
    return [f'{base}_{index}of{count}' for index in range(1, count + 1)]


def restart_names(set_id):
    """Called when a set begins, or after its ranks have met: unnamed tensors are numbered from
    zero."""
    for key in [key for key in _unnamed if key[0] == set_id]:
        del _unnamed[key]


def restart_all_names():
    """Called when a job begins: unnamed tensors are numbered from zero, as on ranks that have just
    joined."""
    _unnamed.clear()
