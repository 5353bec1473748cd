# SPDX-License-Identifier: Apache-2.0
"""Collectives as operations of MXNet's engine (contrib/python/native/mxnet, through ctypes).

The engine starts a collective when its arrays have been computed, and delays the operations that
need its results. So gradients are reduced while backward is still running. If a collective fails,
the script gets an error of horovod.mxnet.errors when it waits for an array, in wait_to_read() or
asnumpy().
"""

import atexit
import ctypes
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_void_p

from mxnet.base import _LIB

from horovod.common import membership, requests
from horovod.common.basics import end_script
from horovod.common.library import Error, Tensor, check_submitted, companion
from horovod.mxnet import arrays as memory

# enum hvd_mxnet_kind
ALLREDUCE, BROADCAST = range(2)

_PATIENCE_MS = 500  # the longest wait before Python runs signal handlers, such as that of Ctrl-C


class _Call(Structure):
    """struct hvd_mxnet_call"""
    _fields_ = [('kind', c_int), ('op', c_int), ('prescale', c_double), ('postscale', c_double),
                ('root', c_int), ('set', c_int), ('priority', c_int), ('count', c_int),
                ('tensors', POINTER(Tensor)), ('arrays', POINTER(c_void_p))]


def _load():
    library = ctypes.CDLL(companion(__file__, 'mxnet', 'hvd_mxnet.so'))
    library.hvd_mxnet_open.argtypes = [c_char_p, POINTER(Error)]
    library.hvd_mxnet_push.argtypes = [POINTER(_Call), POINTER(Error)]
    library.hvd_mxnet_drain.argtypes = [c_int]
    error = Error()
    if library.hvd_mxnet_open(_LIB._name.encode(), error) != 0:
        raise ImportError(error.message())
    return library


_library = _load()


def push(kind, names, arrays, wires, settings):
    """Submits a collective in place on arrays that libhvd can use. ``wires``: the wire types of the
    arrays (0: their own dtype); ``settings``: the other fields of _Call."""
    membership.must_be_rank()
    tensors = requests.describe([(name, None, None, array.shape, memory.number(array),
                                  memory.device_of(array), wire)
                                 for name, array, wire in zip(names, arrays, wires)])
    handles = (c_void_p * len(arrays))(*(array.handle.value for array in arrays))
    call = _Call(kind=kind, count=len(arrays), tensors=tensors, arrays=handles, **settings)
    error = Error()
    check_submitted(_library.hvd_mxnet_push(call, error), error)


def drain():
    """Waits until all submitted collectives have ended."""
    while _library.hvd_mxnet_drain(_PATIENCE_MS) != 0:
        pass


@atexit.register
def _leave_job():
    """Ends hvd's operations while MXNet's engine still exists. Waits for the collectives under way,
    because other ranks need them, unless an exception ended the script."""
    if membership.is_inherited():
        return
    if not hasattr(sys, 'last_value'):
        drain()
    end_script()
    drain()
