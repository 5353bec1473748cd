# SPDX-License-Identifier: Apache-2.0
"""The interface of compressors. Each front end implements its own."""

from horovod.common.arguments import check_compression
from horovod.common.basics import Average, Sum
from horovod.common.library import DTYPES


class Compressor:
    """Makes tensors smaller while they travel between ranks. ``compress(tensor)`` returns the
    tensor to send and a context; ``decompress(tensor, context)`` restores the result's dtype.

    A class that only casts float32 tensors may set ``wire_dtype`` to the name of the 16-bit dtype.
    During an allreduce of host memory libhvd then casts the data itself and calls neither method,
    even if a script has replaced them. Derived classes do not inherit ``wire_dtype``, because their
    methods may do more than cast.
    """

    @staticmethod
    def compress(tensor):
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Does not change tensors."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


_WIRES = {name: DTYPES[name] for name in ('float16', 'bfloat16')}


def _wire_of(compression):
    """Returns the number of the dtype that the class itself names in ``wire_dtype``, or 0. A value
    that the class inherits does not count."""
    return _WIRES.get(getattr(compression, '__dict__', {}).get('wire_dtype'), 0)


def _as_it_is(reduced):
    return reduced


def prepare(compression, tensor, is_float32, op):
    """Prepares a dense tensor for an allreduce. Returns the tensor to submit, the number of its
    wire type (0: libhvd does not cast it), and a function that turns the reduced tensor into the
    result. The wire type depends only on the class, on ``is_float32`` and on the op: ranks that
    agree in these get the same one."""
    wire = _wire_of(compression) if is_float32 and op in (Average, Sum) else 0
    if wire:
        return tensor, wire, _as_it_is
    check_compression(compression)
    compressed, ctx = compression.compress(tensor)
    return compressed, 0, lambda reduced: compression.decompress(reduced, ctx)
