# SPDX-License-Identifier: Apache-2.0
"""MXNet's arrays as libhvd needs them: dense row-major memory of the host or of a CUDA device.

If libhvd has found a CUDA driver, it uses arrays on a GPU in place. MXNet's engine and hvd both end
an operation only when the device has completed it, so hvd need not know the CUDA streams of MXNet.
Results are copied on the default stream; MXNet's streams wait for it, because MXNet creates them
without cudaStreamNonBlocking. Other arrays are staged: libhvd reduces a copy on the host, which is
copied back.
"""

import ctypes
import functools
import math

import mxnet as mx
import numpy as np
from mxnet.base import _LIB, check_call

from horovod.common.arguments import check_iterable
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import DEVICE_CPU, DTYPES, Error, check_ended, lib

_HOST = ('cpu', 'cpu_pinned', 'cpu_shared')


def is_host(tensor):
    """Whether the array is in host memory."""
    return tensor.context.device_type in _HOST


@functools.lru_cache(maxsize=None)
def _takes_gpus():
    return lib.hvd_cuda_version() > 0


def device_of(tensor):
    """Returns the device on which libhvd can use the array in place: DEVICE_CPU or the index of a
    GPU; None if it cannot."""
    if is_host(tensor):
        return DEVICE_CPU
    return tensor.context.device_id if _takes_gpus() else None


def check(tensor, name='tensor'):
    """Returns the array. ValueError if it is not a dense array of MXNet."""
    if not isinstance(tensor, mx.nd.NDArray):
        raise ValueError(f'Tensor type {type(tensor).__name__} is not supported: {name} is '
                         f'{tensor!r}, expected an mx.nd.NDArray or mx.np.ndarray')
    if tensor.stype != 'default':
        raise ValueError(f'Tensor type {tensor.stype} is not supported: it is not dense; see '
                         'tostype("default")')
    return tensor


def check_all(tensors):
    """Like check, for a group of arrays; returns their list. HorovodInternalError if they are on
    different devices."""
    check_iterable('tensors', tensors, 'a list of arrays')
    tensors = [check(tensor, f'tensors[{index}]') for index, tensor in enumerate(tensors)]
    if not tensors:
        raise ValueError('a grouped collective needs at least one tensor')
    if any(tensor.context != tensors[0].context for tensor in tensors):
        raise HorovodInternalError('Tensors in list must be on same device.')
    return tensors


def number(tensor):
    """Returns the number of the array's dtype in libhvd. ValueError if it has none."""
    dtype = np.dtype(tensor.dtype)
    name = dtype.names[0] if dtype.names else dtype.name  # bfloat16 is a record of one field
    try:
        return DTYPES[name]
    except KeyError:
        raise ValueError(f'Tensor type {name} is not supported.') from None


def usable(tensor):
    """Returns the array itself if libhvd can use it in place, otherwise a copy on the host."""
    return tensor if device_of(tensor) is not None else copied(tensor)


def copied(tensor):
    """Returns a copy that libhvd can use in place. MXNet's engine makes the copy asynchronously;
    autograd does not record it."""
    place = mx.cpu() if device_of(tensor) in (None, DEVICE_CPU) else tensor.context
    with mx.autograd.pause():
        return tensor.copyto(place)


def empty(like, shape):
    """Returns an uninitialised array for a result, with the class, dtype and device of ``like``,
    which libhvd can use in place. np_shape allows mx.nd arrays that are empty or scalars."""
    place = mx.cpu() if is_host(like) else like.context
    with mx.util.np_shape(True):
        if isinstance(like, mx.np.ndarray):
            return mx.np.empty(shape, dtype=like.dtype, ctx=place)
        return mx.nd.empty(shape, ctx=place, dtype=like.dtype)


def placed(result, like):
    """Returns the result on the device of the original array."""
    return result if device_of(like) is not None else result.copyto(like.context)


def _address(tensor):
    """Returns the address of the elements, after waiting for all pending operations that write the
    array."""
    address = ctypes.c_void_p()
    tensor.wait_to_read()
    check_call(_LIB.MXNDArrayGetData(tensor.handle, ctypes.byref(address)))
    return address.value


def describe(name, source, target=None):
    """Returns the description of an array for horovod.common.requests, after waiting for the
    computation of the source. Without a target, libhvd allocates the output."""
    return (name, _address(source), None if target is None else _address(target),
            source.shape, number(source), device_of(source))


def taken(request, index, like):
    """Returns output ``index``, which libhvd allocated, as a new array."""
    if device_of(like) != DEVICE_CPU:
        return _copied_out(request, index, like)
    address, rows = request.take(index)
    shape = (rows, *like.shape[1:])
    result = empty(like, shape)
    if address:
        try:
            ctypes.memmove(_address(result), address,
                           math.prod(shape) * np.dtype(like.dtype).itemsize)
        finally:
            lib.hvd_free(address)
    return result


def _copied_out(request, index, like):
    """Like taken, on a GPU. The copy is on the default stream, for which later operations of MXNet
    wait."""
    result = empty(like, (request.rows(index), *like.shape[1:]))
    error = Error()
    check_ended(lib.hvd_request_copy(request.pointer, index, _address(result), None, error), error)
    return result


def vector(values, dtype, like):
    """Returns the numbers as an array with the class and device of ``like``."""
    make = mx.np.array if isinstance(like, mx.np.ndarray) else mx.nd.array
    return make(values, dtype=dtype, ctx=like.context)
