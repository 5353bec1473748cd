# SPDX-License-Identifier: Apache-2.0
"""The interface of a compressor. Each front end has compressors of its own."""

from horovod.common.arguments import check_compression
from horovod.common.basics import Average, Sum
from horovod.common.library import DTYPES


class Compressor:
    """compress returns a tensor and a context; decompress uses that context to undo it.

    A class that only casts float32 tensors may name the dtype as ``wire_dtype``. Then libhvd casts
    arrays in host memory during an allreduce, and neither function is called, even if it has been
    replaced. Derived classes do not inherit this, since their functions may do more.
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
    """The number of the dtype that the class names itself, or 0. A dtype named by a base class does
    not count."""
    return _WIRES.get(getattr(compression, '__dict__', {}).get('wire_dtype'), 0)


def _as_it_is(reduced):
    return reduced


def prepare(compression, tensor, is_float32, op):
    """Prepares a dense tensor. Returns the tensor to submit, the number of the dtype to which
    libhvd casts it while it travels (0: none), and a function that makes the result from the
    reduced tensor. Ranks that pass arguments of the same kind get the same three."""
    wire = _wire_of(compression) if is_float32 and op in (Average, Sum) else 0
    if wire:
        return tensor, wire, _as_it_is
    check_compression(compression)
    compressed, ctx = compression.compress(tensor)
    return compressed, 0, lambda reduced: compression.decompress(reduced, ctx)
