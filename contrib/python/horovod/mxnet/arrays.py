# SPDX-License-Identifier: Apache-2.0
"""MXNet's arrays as libhvd sees them: dense row-major host memory.

An array on a GPU is staged: its copy on the host is reduced and copied back. MXNet's engine orders
these copies, like all operations on arrays.
"""

import ctypes
import math

import mxnet as mx
import numpy as np
from mxnet.base import _LIB, check_call

from horovod.common.arguments import check_iterable
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import DEVICE_CPU, DTYPES, lib

_HOST = ('cpu', 'cpu_pinned', 'cpu_shared')


def is_host(tensor):
    """Whether libhvd can read and write the array's memory."""
    return tensor.context.device_type in _HOST


def check(tensor, name='tensor'):
    """Returns the array; ValueError if it cannot be communicated."""
    if not isinstance(tensor, mx.nd.NDArray):
        raise ValueError(f'Tensor type {type(tensor).__name__} is not supported: {name} is '
                         f'{tensor!r}, expected an mx.nd.NDArray or mx.np.ndarray')
    if tensor.stype != 'default':
        raise ValueError(f'Tensor type {tensor.stype} is not supported: it is not dense; see '
                         'tostype("default")')
    return tensor


def check_all(tensors):
    """The same for the members of a group; returns their list."""
    check_iterable('tensors', tensors, 'a list of arrays')
    tensors = [check(tensor, f'tensors[{index}]') for index, tensor in enumerate(tensors)]
    if not tensors:
        raise ValueError('a grouped collective needs at least one tensor')
    if any(tensor.context != tensors[0].context for tensor in tensors):
        raise HorovodInternalError('Tensors in list must be on same device.')
    return tensors


def number(tensor):
    """What libhvd calls the array's dtype."""
    dtype = np.dtype(tensor.dtype)
    name = dtype.names[0] if dtype.names else dtype.name  # bfloat16 is a record of one field
    try:
        return DTYPES[name]
    except KeyError:
        raise ValueError(f'Tensor type {name} is not supported.') from None


def host(tensor):
    """The array itself if it is in host memory, otherwise a copy in host memory."""
    return tensor if is_host(tensor) else copied(tensor)


def copied(tensor):
    """A copy in host memory, made when the engine reaches it. Autograd does not record it."""
    with mx.autograd.pause():
        return tensor.copyto(mx.cpu())


def empty(like, shape):
    """Host memory for a result of the same kind and dtype. MXNet's older arrays can be empty or
    scalar too when they are made so."""
    with mx.util.np_shape(True):
        if isinstance(like, mx.np.ndarray):
            return mx.np.empty(shape, dtype=like.dtype, ctx=mx.cpu())
        return mx.nd.empty(shape, ctx=mx.cpu(), dtype=like.dtype)


def placed(result, like):
    """The result on the device of the original array."""
    return result if is_host(like) else result.copyto(like.context)


def _address(tensor):
    """The address of the elements. Waits until all pending operations on the array have ended."""
    address = ctypes.c_void_p()
    tensor.wait_to_read()
    check_call(_LIB.MXNDArrayGetData(tensor.handle, ctypes.byref(address)))
    return address.value


def describe(name, source, target=None):
    """The description for horovod.common.requests. Waits for the computation of the source. Without
    a target, the library allocates the output."""
    return (name, _address(source), None if target is None else _address(target),
            source.shape, number(source), DEVICE_CPU)


def taken(request, index, like):
    """The output ``index`` that the library allocated, as an array."""
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


def vector(values, dtype, like):
    """The numbers as an array of the same kind and on the same device as ``like``."""
    make = mx.np.array if isinstance(like, mx.np.ndarray) else mx.nd.array
    return make(values, dtype=dtype, ctx=like.context)
