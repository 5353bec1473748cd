# SPDX-License-Identifier: Apache-2.0
"""Collectives as operations of MXNet's engine (contrib/python/native/mxnet, through ctypes).

The engine starts one when what computes its arrays has ended, and lets those who need them wait, so
that gradients travel while backward still computes. Failures come out where a script waits for an
array: as horovod.mxnet.errors has them, from wait_to_read() and asnumpy().
"""

import atexit
import ctypes
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_void_p

from mxnet.base import _LIB

from horovod.common import membership, requests
from horovod.common.basics import basics
from horovod.common.library import DEVICE_CPU, Error, Tensor, check_submitted, companion
from horovod.mxnet.arrays import number

# enum hvd_mxnet_kind
ALLREDUCE, BROADCAST = range(2)

_PATIENCE_MS = 500  # between two looks at signals, such as Ctrl-C's


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
    """Hands over a collective in place, on arrays in host memory; ``wires`` are the dtypes that
    they travel as, 0 their own; ``settings`` are other fields of _Call."""
    membership.must_be_rank()
    tensors = requests.describe([(name, None, None, array.shape, number(array), DEVICE_CPU, wire)
                                 for name, array, wire in zip(names, arrays, wires)])
    handles = (c_void_p * len(arrays))(*(array.handle.value for array in arrays))
    call = _Call(kind=kind, count=len(arrays), tensors=tensors, arrays=handles, **settings)
    error = Error()
    check_submitted(_library.hvd_mxnet_push(call, error), error)


def drain():
    """Waits until all that was handed over has ended."""
    while _library.hvd_mxnet_drain(_PATIENCE_MS) != 0:
        pass


@atexit.register
def _leave_job():
    """Ends what the engine has of ours while there is still an engine. What a script has left
    under way is waited for, as other ranks need it, unless an exception ended the script."""
    if membership.is_inherited():
        return
    if not hasattr(sys, 'last_value'):
        drain()
    basics.shutdown()
    drain()
