# SPDX-License-Identifier: Apache-2.0
"""What a compressor is, for all front ends; each has its own that cast."""

from horovod.common.arguments import check_compression
from horovod.common.basics import Average, Sum
from horovod.common.library import DTYPES


class Compressor:
    """compress returns a tensor and a context; decompress undoes it with that context.

    A class that only casts float32 tensors may name the dtype as ``wire_dtype``: then libhvd casts
    them in an allreduce of arrays in host memory, and neither function is called, whatever has been
    put in its place. Classes derived from it do not inherit
    that, since their functions may do more.
    """

    @staticmethod
    def compress(tensor):
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


_WIRES = {name: DTYPES[name] for name in ('float16', 'bfloat16')}


def _wire_of(compression):
    """The number of the dtype that it names itself, not a class that it is derived from; else 0."""
    return _WIRES.get(getattr(compression, '__dict__', {}).get('wire_dtype'), 0)


def _as_it_is(reduced):
    return reduced


def prepare(compression, tensor, is_float32, op):
    """What to submit of a dense tensor, the number of the dtype to which libhvd casts it for the
    way, or 0, and the function that makes the result of what comes back. Ranks whose arguments are
    of one kind agree about all three."""
    wire = _wire_of(compression) if is_float32 and op in (Average, Sum) else 0
    if wire:
        return tensor, wire, _as_it_is
    check_compression(compression)
    compressed, ctx = compression.compress(tensor)
    return compressed, 0, lambda reduced: compression.decompress(reduced, ctx)
