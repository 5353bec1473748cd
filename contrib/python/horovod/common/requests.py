# SPDX-License-Identifier: Apache-2.0
"""Collectives on memory, for all front ends: submission, polling and waiting; handles; tensor
names.

A front end describes each tensor as ``(name, input address, output address, shape, dtype,
device)``. Two optional fields follow: the wire type (0: the tensor's own dtype) and, for a tensor
on a GPU, the CUDA stream. When libhvd has finished, ``finish(request)`` returns the caller's
result. A handle is an integer, the key of a request in a table. A request keeps all memory that
libhvd uses alive until the caller has waited for it.
"""

import itertools
from collections import defaultdict
from ctypes import c_int, c_int32, c_int64, c_void_p

from horovod.common import alone, membership
from horovod.common.arguments import (check_name, check_op, check_rank, check_scale,
                                      check_set)
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import (INPROGRESS, SET_GLOBAL, Error, Tensor, check_ended,
                                    check_submitted, lib, quick)

# The longest wait within libhvd. Python runs signal handlers, such as that of Ctrl-C, only between
# calls into C.
_PATIENCE_MS = 500

_wait_for = quick.wait_for
_memory_is_short = quick.gpu_memory_is_short


class Request:
    """One submitted collective; owns the request of libhvd.

    ``stream`` is None for tensors on the host. For tensors on a GPU, ``stream()`` returns the
    caller's current CUDA stream, ``stream.record(borrowed)`` tells the framework that this stream
    uses the tensors, and ``stream.free_cache()`` makes the framework return unused memory to the
    device.
    """

    __slots__ = ('pointer', 'stream', '_started_on', '_borrowed', '_finish')

    def __init__(self, pointer, borrowed, finish):
        self.pointer = pointer
        self.stream = None
        self._borrowed = borrowed
        self._finish = finish

    def result(self):
        """Returns the caller's result, after the request has succeeded."""
        return self._finish(self)

    def start_on(self, stream):
        """Stores ``stream`` (see Request) and the stream that is current now."""
        self.stream = stream
        self._started_on = None if stream is None else stream()

    def wait_on(self, patience_ms, error):
        """Calls hvd_wait_on for the current stream. If that is not the stream on which the
        collective was started, tells the framework that the current stream uses the memory, too:
        otherwise the framework could reuse the memory too early."""
        stream = self.stream()
        status = lib.hvd_wait_on(self.pointer, stream, patience_ms, error)
        free_memory_if_short(self.stream)
        if status == 0 and stream != self._started_on:
            self.stream.record(self.borrowed())
        return status

    def borrowed(self):
        """Returns all that the request keeps alive: tuples and lists of tensors and other
        objects."""
        return self._borrowed

    def take(self, index):
        """Returns the address and the number of rows (dimension 0) of an output that libhvd
        allocated. The caller owns it from now on and frees it with hvd_free."""
        data, rows = c_void_p(), c_int64()
        if lib.hvd_request_take(self.pointer, index, data, rows) != 0:
            raise HorovodInternalError(f'output {index} of the request was taken before')
        return data.value, rows.value

    def rows(self, index):
        """Returns the number of rows (dimension 0) of a gathered output on a GPU."""
        rows = c_int64()
        if lib.hvd_request_rows(self.pointer, index, rows) != 0:
            raise HorovodInternalError(f'output {index} of the request is not on a GPU')
        return rows.value

    def copy(self, index, address):
        """Copies an output that libhvd allocated on a GPU to the caller's device memory, on the
        caller's stream."""
        error = Error()
        check_ended(lib.hvd_request_copy(self.pointer, index, address, self.stream(), error),
                    error)

    def received_splits(self, size):
        """Returns how many rows of an alltoall came from each of the ``size`` ranks."""
        splits = (c_int32 * size)()
        if lib.hvd_request_splits(self.pointer, splits) != 0:
            raise HorovodInternalError('the request is not a finished alltoall')
        return list(splits)

    def last_rank(self):
        """Returns the rank that joined last, after a join has ended."""
        return lib.hvd_request_last_rank(self.pointer)

    def set_id(self):
        """Returns the number of the process set that ``add_set`` or ``create_set`` has made."""
        return lib.hvd_request_set(self.pointer)

    def __del__(self):
        if not membership.is_inherited():
            lib.hvd_request_free(self.pointer)


def describe(tensors):
    """Returns an array of struct hvd_tensor that keeps its names and shapes alive."""
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
    """Starts an allreduce. ``scale``: (prescale factor, postscale factor), as in
    reducescatter."""
    alone.shared()
    return _start(lib.hvd_allreduce_start,
                  (describe(tensors), len(tensors), check_op(op), *check_scale(scale), set_id),
                  borrowed, finish)


def reducescatter(tensors, op, scale, set_id, borrowed, finish):
    """Starts the reducescatter of a group. ``scale``: the prescale and the postscale factor."""
    alone.shared()
    return _start(lib.hvd_reducescatter_start,
                  (describe(tensors), len(tensors), check_op(op), *check_scale(scale), set_id),
                  borrowed, finish)


def allgather(tensors, set_id, borrowed, finish):
    """Starts the allgather of a group."""
    alone.shared()
    return _start(lib.hvd_allgather_start, (describe(tensors), len(tensors), set_id),
                  borrowed, finish)


def broadcast(tensor, root_rank, set_id, borrowed, finish):
    """Starts a broadcast. ``root_rank``: the rank number in the job."""
    return _start(lib.hvd_broadcast_start,
                  (describe([tensor]), check_rank('root_rank', root_rank), set_id),
                  borrowed, finish)


def alltoall(tensor, splits, set_id, borrowed, finish):
    """Starts an alltoall. ``splits``: the number of rows for each rank, or None for equal
    parts."""
    counts = None if splits is None else (c_int32 * len(splits))(*splits)
    alone.shared()
    return _start(lib.hvd_alltoall_start,
                  (describe([tensor]), counts, len(splits or ()), set_id), borrowed, finish)


def barrier(set_id):
    """Starts a barrier of the process set."""
    return _start(lib.hvd_barrier_start, (set_id,), None, lambda request: None)


def join():
    """Starts a join, whose result is the rank that joined last. Ranks that wait in a join make no
    unnamed calls, so all ranks restart the numbering of unnamed tensors after it."""
    def finish(request):
        restart_names(SET_GLOBAL)
        return request.last_rank()

    return _start(lib.hvd_join_start, (), None, finish)


def add_set(ranks):
    """Starts to make a process set; the result is its number. All ranks of the job must call this,
    including those outside the set."""
    def finish(request):
        restart_names(request.set_id())  # an earlier set may have had this number
        return request.set_id()

    return _start(lib.hvd_set_add_start, ((c_int * len(ranks))(*ranks), len(ranks)), None,
                  finish)


def create_set(ranks, label):
    """Starts to make a process set; the result is its number. Only the members call this, with the
    same label, which must differ from those of other sets that share a rank with this one."""
    def finish(request):
        restart_names(request.set_id())
        return request.set_id()

    return _start(lib.hvd_set_create_start,
                  ((c_int * len(ranks))(*ranks), len(ranks), label.encode()), None, finish)


def remove_set(set_id):
    """Starts to remove a process set. For a set of add_set() all ranks of the job must call this,
    for a set of create_set() its members."""
    return _start(lib.hvd_set_remove_start, (set_id,), None, lambda request: None)


def abort_set(set_id, why):
    """Makes all calls of the set fail on all its members, with an error that contains ``why``. Any
    member may call it."""
    return _start(lib.hvd_set_abort_start, (set_id, why.encode()), None, lambda request: None)


_pending = {}
_handles = itertools.count(1)


def add(request, stream=None):
    """Adds the request to the table and returns its handle. ``stream``: see Request."""
    request.start_on(stream)
    handle = next(_handles)
    _pending[handle] = request
    return handle


def poll(handle):
    """Whether the collective of this handle has ended; does not wait. ValueError for a handle that
    is unknown or that synchronize() has returned."""
    request = _pending.get(handle)
    if request is None:
        raise ValueError(f'Handle {handle} was not created or has been cleared.')
    # First check without releasing the GIL. If the collective has not ended, hvd_test may
    # advance it.
    return (_wait_for(request.pointer, 0, None) != INPROGRESS
            or lib.hvd_test(request.pointer, None) != INPROGRESS)


def synchronize(handle):
    """Waits for the collective of this handle, which becomes invalid, and returns its result.

    Returns None for an unknown handle. For tensors on a GPU this function waits only until the
    collective has been launched; the caller's current CUDA stream waits for the result. Raises
    HorovodInternalError if the collective failed: the ranks disagree, a rank died, or a rank has
    left the job. If a signal handler raises, for example on Ctrl-C, the handle stays valid.
    """
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
    """Makes the framework return unused GPU memory if libhvd has asked for it. ``stream``: see
    Request. Call it after a wait, when libhvd does not depend on this thread."""
    if _memory_is_short():
        stream.free_cache()
        lib.hvd_gpu_memory_freed()


def must_have_landed():
    """Waits until the GPUs have completed all collectives that ``synchronize`` has returned. Raises
    HorovodInternalError if the job has failed, because their results may be wrong. Called before
    values are saved."""
    status, error = INPROGRESS, Error()
    while status == INPROGRESS:
        status = lib.hvd_gpu_synchronize(_PATIENCE_MS, error)
    check_ended(status, error)


def forget_pending():
    """Drops all handles and their requests, when the job has been left."""
    _pending.clear()


_unnamed = defaultdict(itertools.count)  # key: (number of the process set, operation)
_known = set()  # (number of the process set, name) of is_first
_restarted = []


def tensor_name(operation, name, process_set):
    """Returns the name by which the ranks match a tensor. Unnamed tensors are numbered per process
    set and operation, so the ranks of a set must make their unnamed calls in the same order."""
    check_name(name)
    if name is None:
        check_set(process_set)
        return f'{operation}.noname.{next(_unnamed[process_set.process_set_id, operation])}'
    return f'{operation}.{name}'


def tensor_names(operation, name, count, process_set):
    """Returns the names of the tensors of a group."""
    base = tensor_name(operation, name, process_set)
    return [f'{base}_{index}of{count}' for index in range(1, count + 1)]


def when_restarted(function):
    """Calls the function whenever names begin anew: with the number of the process set, or with
    None for all sets, in a new job."""
    _restarted.append(function)


def restart_names(set_id):
    """Numbers the set's unnamed tensors from zero again. Called when the set is new and after a
    join, when all its ranks do so."""
    for key in [key for key in _unnamed if key[0] == set_id]:
        del _unnamed[key]
    for function in _restarted:
        function(set_id)


def restart_all_names():
    """Numbers the unnamed tensors of all sets from zero again, at the start of a job: new ranks of
    an elastic job begin at zero, too. Forgets the names that is_first knows."""
    _unnamed.clear()
    _known.clear()
    for function in _restarted:
        function(None)


def is_first(set_id, name):
    """Whether this job asks for the name in this process set for the first time."""
    is_new = (set_id, name) not in _known
    _known.add((set_id, name))
    return is_new
